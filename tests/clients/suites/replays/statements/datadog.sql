-- rows VERSION()
SELECT VERSION()

-- rows @@version, @@version_comment
SELECT @@version, @@version_comment

-- rows Variable_name, Value
SHOW /*!50002 GLOBAL */ STATUS

-- rows Variable_name, Value
SHOW GLOBAL VARIABLES

-- reads Status
SHOW /*!50000 ENGINE*/ INNODB STATUS

SELECT engine FROM information_schema.ENGINES WHERE engine='InnoDB' and support != 'no' and support != 'disabled'

-- error 1381
SHOW BINARY LOGS

SHOW MASTER STATUS

SHOW SLAVE STATUS

SHOW SLAVE HOSTS

SELECT plugin_status FROM information_schema.plugins WHERE plugin_name='group_replication'

-- rows table_schema, total_mb
SELECT table_schema, IFNULL(SUM(data_length+index_length)/1024/1024,0) AS total_mb
  FROM information_schema.tables
  GROUP BY table_schema

-- rows table_schema, table_name, index_size_mb, data_size_mb
SELECT table_schema, table_name,
  IFNULL(index_length/1024/1024,0) AS index_size_mb,
  IFNULL(data_length/1024/1024,0) AS data_size_mb
  FROM information_schema.tables
  WHERE table_schema not in ('mysql', 'performance_schema', 'information_schema')

SELECT schema_name, ROUND((SUM(sum_timer_wait) / SUM(count_star)) / 1000000) AS avg_us
  FROM performance_schema.events_statements_summary_by_digest
  WHERE schema_name IS NOT NULL
  GROUP BY schema_name

SELECT `avg_us`, `ro` as `percentile` FROM
(SELECT `avg_us`, @rownum := @rownum + 1 as `ro` FROM
    (SELECT ROUND(avg_timer_wait / 1000000) as `avg_us`
        FROM performance_schema.events_statements_summary_by_digest
        ORDER BY `avg_us` ASC) p,
    (SELECT @rownum := 0) r) q
WHERE q.`ro` > ROUND(.95*@rownum)
ORDER BY `percentile` ASC
LIMIT 1

SELECT OBJECT_SCHEMA as table_schema, OBJECT_NAME as table_name, COUNT_READ as rows_read, COUNT_WRITE as rows_changed
  FROM performance_schema.table_io_waits_summary_by_table
  WHERE OBJECT_SCHEMA NOT IN ('mysql', 'performance_schema', 'information_schema')

SELECT THREAD_ID, NAME FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog dump%'

SELECT * FROM INFORMATION_SCHEMA.PROCESSLIST WHERE COMMAND LIKE 'Binlog dump%'

SELECT COUNT(processlist_user) AS connections, processlist_user, processlist_host, processlist_db, processlist_state
  FROM performance_schema.threads
  WHERE processlist_user IS NOT NULL AND processlist_state IS NOT NULL
  GROUP BY processlist_user, processlist_host, processlist_db, processlist_state

SELECT count as deadlocks FROM information_schema.INNODB_METRICS WHERE NAME='lock_deadlocks'

-- rows schema_name, default_character_set_name, default_collation_name
SELECT schema_name as `schema_name`,
  default_character_set_name as `default_character_set_name`,
  default_collation_name as `default_collation_name`
  FROM information_schema.SCHEMATA
  WHERE schema_name not in ('sys', 'mysql', 'performance_schema', 'information_schema')

-- rows table_name, engine, row_format, create_time, schema_name
SELECT table_name as `table_name`, engine as `engine`, row_format as `row_format`, create_time as `create_time`,
  table_schema as `schema_name` FROM information_schema.TABLES WHERE TABLE_TYPE="BASE TABLE"

-- rows table_name, schema_name, name, column_type, default, nullable, ordinal_position, column_key, extra
SELECT table_name as `table_name`, table_schema as `schema_name`, column_name as `name`, column_type as `column_type`,
  column_default as `default`, is_nullable as `nullable`, ordinal_position as `ordinal_position`, column_key as `column_key`,
  extra as `extra` FROM INFORMATION_SCHEMA.COLUMNS

-- rows table_name, schema_name, name, cardinality, index_type, non_unique, columns
SELECT table_name as `table_name`, table_schema as `schema_name`, index_name as `name`, cardinality as `cardinality`,
  index_type as `index_type`, non_unique as `non_unique`, NULL as `expression`,
  json_arrayagg(json_object(
      'name', column_name,
      'collation', collation,
      'nullable', nullable,
      'sub_part', sub_part
  )) as `columns`
  FROM INFORMATION_SCHEMA.STATISTICS
  GROUP BY index_name, table_name, schema_name, cardinality, index_type, non_unique, expression

SELECT kcu.constraint_schema as constraint_schema, kcu.constraint_name as name, kcu.table_name as table_name,
  kcu.table_schema as schema_name, group_concat(kcu.column_name order by kcu.ordinal_position asc) as column_names,
  kcu.referenced_table_schema as referenced_table_schema, kcu.referenced_table_name as referenced_table_name,
  group_concat(kcu.referenced_column_name) as referenced_column_names, rc.update_rule as update_action,
  rc.delete_rule as delete_action
  FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kcu
  LEFT JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS rc
    ON kcu.CONSTRAINT_SCHEMA = rc.CONSTRAINT_SCHEMA AND kcu.CONSTRAINT_NAME = rc.CONSTRAINT_NAME
  WHERE kcu.referenced_table_name is not null
  GROUP BY kcu.constraint_schema, kcu.constraint_name, kcu.table_name, kcu.table_schema, kcu.referenced_table_schema,
    kcu.referenced_table_name, rc.update_rule, rc.delete_rule

SELECT table_name as `table_name`, table_schema as `schema_name`, partition_name as `name`,
  partition_ordinal_position as `partition_ordinal_position`, partition_method as `partition_method`,
  partition_expression as `partition_expression`, partition_description as `partition_description`,
  json_arrayagg(json_object(
      'name', subpartition_name,
      'subpartition_ordinal_position', subpartition_ordinal_position,
      'subpartition_method', subpartition_method,
      'subpartition_expression', subpartition_expression,
      'table_rows', table_rows,
      'data_length', data_length
  )) as `subpartitions`
  FROM INFORMATION_SCHEMA.PARTITIONS
  WHERE partition_name IS NOT NULL
  GROUP BY table_name, table_schema, partition_name, partition_ordinal_position, partition_method, partition_expression,
    partition_description
