-- rows @@max_allowed_packet, @@character_set_client, @@character_set_connection, @@license, @@sql_mode, @@lower_case_table_names
-- types LONGLONG
SELECT @@max_allowed_packet, @@character_set_client, @@character_set_connection, @@license, @@sql_mode, @@lower_case_table_names

-- types TIME
SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP())

-- rows Collation, Charset, Id, Default, Compiled, Sortlen
SHOW COLLATION

-- rows Collation
SHOW COLLATION WHERE Id = 33

SET NAMES utf8mb4

SET character_set_results=NULL

SET SQL_AUTO_IS_NULL=0

-- rows Key_name, Column_name, Seq_in_index, Non_unique
SHOW KEYS FROM `shop`.`orders`

-- rows Field, Type, Null, Key, Default, Extra
SHOW FULL COLUMNS FROM `orders`

-- rows TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE
SELECT * FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA NOT LIKE 'information_schema' ORDER BY TABLE_SCHEMA, TABLE_NAME

SELECT * FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'shop'

SELECT * FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = 'shop'

SET sql_select_limit=0

SET sql_select_limit=DEFAULT

SELECT SLEEP(0) INTO @__MySqlConnector__Sleep
