-- rows @@version, @@version_comment
SELECT @@version, @@version_comment

SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'

SET lc_messages = 'en_US'

-- rows CURRENT_USER()
SELECT CURRENT_USER()

SELECT 1 FROM mysql.user LIMIT 1

-- rows SCHEMA_NAME
SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA`, (SELECT DB_first_level FROM ( SELECT DISTINCT
  SUBSTRING_INDEX(SCHEMA_NAME, '_', 1) DB_first_level FROM INFORMATION_SCHEMA.SCHEMATA WHERE TRUE ) t
  ORDER BY DB_first_level ASC LIMIT 0, 100) t2 WHERE TRUE AND 1 = LOCATE(CONCAT(DB_first_level, '_'),
  CONCAT(SCHEMA_NAME, '_')) ORDER BY SCHEMA_NAME ASC

-- rows @@lower_case_table_names
SELECT @@lower_case_table_names

-- rows DEFAULT_COLLATION_NAME
SELECT `DEFAULT_COLLATION_NAME` FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME`='shop' LIMIT 1

-- rows Db, Name, TABLE_TYPE, Engine, Type, Rows, Data_length, Index_length, Auto_increment, Collation, Create_options, Comment
SELECT *, `TABLE_SCHEMA` AS `Db`, `TABLE_NAME` AS `Name`, `TABLE_TYPE` AS `TABLE_TYPE`, `ENGINE` AS `Engine`, `ENGINE` AS `Type`,
  `VERSION` AS `Version`, `ROW_FORMAT` AS `Row_format`, `TABLE_ROWS` AS `Rows`, `AVG_ROW_LENGTH` AS `Avg_row_length`,
  `DATA_LENGTH` AS `Data_length`, `MAX_DATA_LENGTH` AS `Max_data_length`, `INDEX_LENGTH` AS `Index_length`,
  `DATA_FREE` AS `Data_free`, `AUTO_INCREMENT` AS `Auto_increment`, `CREATE_TIME` AS `Create_time`,
  `UPDATE_TIME` AS `Update_time`, `CHECK_TIME` AS `Check_time`, `TABLE_COLLATION` AS `Collation`, `CHECKSUM` AS `Checksum`,
  `CREATE_OPTIONS` AS `Create_options`, `TABLE_COMMENT` AS `Comment`
  FROM `information_schema`.`TABLES` t WHERE `TABLE_SCHEMA` IN ('shop') AND t.`TABLE_NAME` = 'orders' ORDER BY Name ASC

-- rows Name
SHOW TABLE STATUS FROM `shop` LIKE 'orders%'

-- rows Tables_in_shop
SHOW TABLES FROM `shop`

-- rows Tables_in_shop, Table_type
SHOW FULL TABLES FROM `shop` WHERE `Table_type` IN('BASE TABLE', 'SYSTEM VERSIONED')

-- rows Field, Type, Collation, Null, Key, Default, Extra, Privileges, Comment
SHOW FULL COLUMNS FROM `shop`.`orders`

-- rows Key_name, Column_name, Non_unique
SHOW INDEXES FROM `shop`.`orders`

-- rows COUNT(*)
SELECT COUNT(*) FROM `shop`.`orders`

-- rows id
SELECT * FROM `orders` LIMIT 0, 25

-- rows Create Table
SHOW CREATE TABLE `shop`.`orders`

SHOW GRANTS

SHOW VARIABLES LIKE 'profiling'

SET PROFILING=1

-- rows Charset, Default collation, Maxlen
SELECT `CHARACTER_SET_NAME` AS `Charset`, `DEFAULT_COLLATE_NAME` AS `Default collation`, `DESCRIPTION` AS `Description`,
  `MAXLEN` AS `Maxlen` FROM `information_schema`.`CHARACTER_SETS`

-- rows Collation, Charset, Id, Default
SELECT `COLLATION_NAME` AS `Collation`, `CHARACTER_SET_NAME` AS `Charset`, `ID` AS `Id`, `IS_DEFAULT` AS `Default`,
  `IS_COMPILED` AS `Compiled`, `SORTLEN` AS `Sortlen` FROM `information_schema`.`COLLATIONS`

-- rows Engine, Support, Comment
SHOW STORAGE ENGINES

-- rows Variable_name
SHOW GLOBAL STATUS

-- rows Variable_name
SHOW SESSION VARIABLES

-- rows Id, User, Host, Command, Time, State, Info
SHOW FULL PROCESSLIST

-- error 1381
SHOW BINARY LOGS

SHOW MASTER STATUS

SHOW SLAVE STATUS

SELECT * FROM information_schema.PLUGINS ORDER BY PLUGIN_TYPE, PLUGIN_NAME

SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_TIMING, ACTION_STATEMENT,
  EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, DEFINER FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA='shop'
  AND EVENT_OBJECT_TABLE = 'orders'

SELECT COLUMN_NAME, TABLE_NAME, TABLE_SCHEMA FROM information_schema.key_column_usage
  WHERE referenced_table_name = 'orders' AND referenced_table_schema = 'shop' AND referenced_column_name = 'id'

-- rows TABLE_NAME
SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'dear'

SELECT `PRIVILEGE_TYPE` FROM `INFORMATION_SCHEMA`.`USER_PRIVILEGES` WHERE GRANTEE='''root''@''%''' AND
  PRIVILEGE_TYPE='CREATE USER'

SELECT `TABLE_SCHEMA`, `PRIVILEGE_TYPE` FROM `INFORMATION_SCHEMA`.`SCHEMA_PRIVILEGES` WHERE '''root''@''%''' LIKE `GRANTEE`

SELECT DISTINCT `partition_name` FROM `information_schema`.`PARTITIONS` WHERE `TABLE_SCHEMA`='shop' AND `TABLE_NAME`='orders'

SELECT DISTINCT `PARTITION_METHOD` FROM `information_schema`.`PARTITIONS` WHERE `TABLE_SCHEMA`='shop' AND `TABLE_NAME`='orders'
  LIMIT 1

-- rows s_schemata, s_tables
SELECT s.SCHEMA_NAME AS s_schemata, t.TABLE_NAME AS s_tables FROM information_schema.SCHEMATA s
  LEFT JOIN information_schema.TABLES t ON BINARY t.TABLE_SCHEMA = BINARY s.SCHEMA_NAME WHERE s.SCHEMA_NAME = 'shop'

SELECT SPECIFIC_NAME AS `Name`, ROUTINE_TYPE AS `Type` FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'shop'

SHOW EVENTS FROM `shop`

-- rows Table, Op, Msg_type, Msg_text
ANALYZE TABLE `shop`.`orders`

-- rows Table, Op, Msg_type, Msg_text
CHECK TABLE `shop`.`orders`

-- rows Table, Op, Msg_type, Msg_text
OPTIMIZE TABLE `shop`.`orders`

-- rows User, Host
SELECT `User`, `Host`, `Select_priv` FROM `mysql`.`user` ORDER BY `User` ASC, `Host` ASC

UPDATE `orders` SET `name` = 'again' WHERE `orders`.`id` = 1

INSERT INTO `orders` (`id`, `name`, `amount`) VALUES ('78', 'new', NULL)

DELETE FROM orders WHERE `orders`.`id` = 78

CREATE TABLE `shop`.`pages` (`id` INT NOT NULL AUTO_INCREMENT , `t` TEXT NOT NULL , PRIMARY KEY (`id`)) ENGINE = InnoDB

ALTER TABLE `pages` ADD `n` INT NULL AFTER `t`

DROP TABLE `pages`
