SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ

SET CHARACTER SET utf8

SET NAMES utf8

SET SQL_SAFE_UPDATES=1

-- rows current_user()
SELECT current_user()

-- rows CONNECTION_ID()
SELECT CONNECTION_ID()

SHOW SESSION STATUS LIKE 'Ssl_cipher'

-- rows Variable_name, Value
SHOW SESSION VARIABLES LIKE 'lower_case_table_names'

-- rows Variable_name, Value
SHOW SESSION VARIABLES LIKE 'sql_mode'

-- rows Variable_name, Value
SHOW SESSION VARIABLES LIKE 'version_comment'

-- rows Variable_name, Value
SHOW SESSION VARIABLES LIKE 'version'

SHOW VARIABLES LIKE 'offline_mode'

SELECT DATABASE()

-- rows Database
SHOW DATABASES

-- rows Tables_in_shop, Table_type
SHOW FULL TABLES FROM `shop`

SHOW PROCEDURE STATUS WHERE Db='shop'

SHOW FUNCTION STATUS WHERE Db='shop'

-- rows Field, Type, Collation, Null, Key, Default, Extra, Privileges, Comment
SHOW FULL COLUMNS FROM `shop`.`orders`

-- rows Key_name
SHOW INDEXES FROM `shop`.`orders`

SHOW TRIGGERS FROM `shop`

-- rows Name
SHOW TABLE STATUS FROM `shop` LIKE 'orders'

-- rows Table, Create Table
SHOW CREATE TABLE `shop`.`orders`

-- rows Charset
SHOW CHARSET

-- rows Collation
SHOW COLLATION

-- rows Engine
SHOW ENGINES

SHOW PLUGINS

-- rows Variable_name
SHOW GLOBAL VARIABLES

-- rows Variable_name
SHOW GLOBAL STATUS

-- rows Id, User, Host, Command, Time, State, Info
SHOW FULL PROCESSLIST

SELECT st.* FROM performance_schema.events_statements_current st
  JOIN performance_schema.threads thr ON thr.thread_id = st.thread_id WHERE thr.processlist_id = 5

SELECT st.* FROM performance_schema.events_stages_history_long st WHERE st.nesting_event_id = 7

SELECT st.* FROM performance_schema.events_waits_history_long st WHERE st.nesting_event_id = 7

SELECT ps.id, ps.name FROM (SELECT processlist_id id, name FROM performance_schema.threads) ps

SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE enabled = 'YES'

-- rows id, name
SELECT * FROM shop.orders LIMIT 0, 1000

EXPLAIN SELECT * FROM shop.orders

EXPLAIN FORMAT=JSON SELECT * FROM shop.orders

-- reads Query_ID, Duration
SHOW PROFILES

SELECT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, TABLE_NAME, COLUMN_NAME, REFERENCED_COLUMN_NAME, CONSTRAINT_NAME
  FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'orders'
  AND REFERENCED_TABLE_NAME IS NOT NULL

-- rows Select_priv
SELECT * FROM mysql.user ORDER BY user, host

SELECT * FROM mysql.db

SHOW SLAVE STATUS

SHOW MASTER STATUS

-- rows Variable_name
SHOW VARIABLES LIKE 'datadir'

SELECT * FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop'

-- rows SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME
SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'shop'

CREATE SCHEMA `made` DEFAULT CHARACTER SET utf8mb4

CREATE TABLE `made`.`items` (
  `iditems` INT NOT NULL AUTO_INCREMENT,
  `label` VARCHAR(45) NULL,
  PRIMARY KEY (`iditems`),
  UNIQUE INDEX `label_UNIQUE` (`label` ASC) VISIBLE)
ENGINE = InnoDB

ALTER TABLE `made`.`items` ADD COLUMN `note` VARCHAR(45) NULL AFTER `label`

INSERT INTO `made`.`items` (`label`) VALUES ('a')

DROP DATABASE `made`
