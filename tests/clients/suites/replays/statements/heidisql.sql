SELECT CONNECTION_ID()

/*!40101 SET NAMES utf8mb4 */

SHOW STATUS LIKE 'Ssl_cipher'

-- rows Variable_name, Value
SHOW VARIABLES

-- rows Variable_name, Value
SHOW /*!50002 GLOBAL */ STATUS

-- rows NOW()
SELECT NOW()

SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'

-- rows Database
SHOW DATABASES

USE `shop`

-- rows DEFAULT_COLLATION_NAME
SELECT `DEFAULT_COLLATION_NAME` FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME`='shop'

-- rows Name, Engine, Version, Row_format, Rows, Data_length, Index_length, Create_time, Update_time, Collation, Comment
SHOW TABLE STATUS FROM `shop`

SHOW FUNCTION STATUS WHERE `Db`='shop'

SHOW PROCEDURE STATUS WHERE `Db`='shop'

SHOW TRIGGERS FROM `shop`

SELECT *, EVENT_SCHEMA AS `Db`, EVENT_NAME AS `Name` FROM information_schema.`EVENTS` WHERE `EVENT_SCHEMA`='shop'

-- rows COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, COLLATION_NAME
SELECT * FROM `information_schema`.`COLUMNS` WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='orders' ORDER BY ORDINAL_POSITION

-- rows Key_name, Column_name, Sub_part, Index_type, Non_unique
SHOW INDEXES FROM `orders` FROM `shop`

SELECT * FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA='shop' AND TABLE_NAME='orders'
  AND REFERENCED_TABLE_NAME IS NOT NULL

SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='orders'
  AND REFERENCED_TABLE_NAME IS NOT NULL

SELECT tc.CONSTRAINT_NAME, cc.CHECK_CLAUSE FROM `information_schema`.`CHECK_CONSTRAINTS` AS cc,
  `information_schema`.`TABLE_CONSTRAINTS` AS tc WHERE tc.CONSTRAINT_SCHEMA='shop' AND tc.TABLE_NAME='orders'
  AND tc.CONSTRAINT_TYPE='CHECK' AND tc.CONSTRAINT_SCHEMA=cc.CONSTRAINT_SCHEMA AND tc.CONSTRAINT_NAME=cc.CONSTRAINT_NAME

-- rows Table, Create Table
SHOW CREATE TABLE `shop`.`orders`

-- rows View, Create View
SHOW CREATE VIEW `shop`.`dear`

-- rows Collation, Charset, Id, Default
SHOW COLLATION

-- rows Charset, Description, Default collation, Maxlen
SHOW CHARSET

-- rows Engine, Support, Comment
SHOW ENGINES

-- rows id, amount
SELECT `id`, LEFT(`name`, 256), `amount` FROM `shop`.`orders` LIMIT 1000

SELECT * FROM `shop`.`orders` WHERE  `id`=1 LIMIT 1

UPDATE `shop`.`orders` SET `name`='changed' WHERE  `id`=1

INSERT INTO `shop`.`orders` (`id`, `name`) VALUES (77, 'x')

DELETE FROM `shop`.`orders` WHERE  `id`=77

-- rows Rows
SELECT COUNT(*) AS `Rows`, `name` FROM `shop`.`orders` GROUP BY `name` ORDER BY `name` LIMIT 2000

-- rows ID, USER, HOST, DB, COMMAND, TIME, STATE, Info
SELECT `ID`, `USER`, `HOST`, `DB`, `COMMAND`, `TIME`, `STATE`, LEFT(`INFO`, 51200) AS `Info` FROM
  `information_schema`.`PROCESSLIST`

SHOW OPEN TABLES FROM `shop` WHERE `in_use`!=0

SHOW WARNINGS LIMIT 5

EXPLAIN SELECT * FROM orders

SHOW CREATE DATABASE `shop`

-- rows User, Host
SELECT `User`, `Host` FROM `mysql`.`user` ORDER BY LOWER(`User`), LOWER(`Host`)

SHOW GRANTS FOR 'root'@'%'

SHOW ENGINE INNODB STATUS

/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */

/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */

/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */

CREATE TABLE `made` (
	`id` INT NOT NULL AUTO_INCREMENT,
	`name` VARCHAR(50) NULL DEFAULT NULL,
	PRIMARY KEY (`id`)
)
COLLATE='utf8mb4_general_ci'

ALTER TABLE `made` ADD COLUMN `note` VARCHAR(50) NULL DEFAULT NULL AFTER `name`

ALTER TABLE `made` CHANGE COLUMN `note` `remark` VARCHAR(50) NULL DEFAULT NULL AFTER `name`

ALTER TABLE `made` COMMENT='of HeidiSQL'

RENAME TABLE `made` TO `made2`

TRUNCATE `made2`

DROP TABLE IF EXISTS `made2`
