-- rows Variable_name, Value
SHOW GLOBAL STATUS

-- rows Variable_name, Value
SHOW GLOBAL VARIABLES

SHOW SLAVE STATUS

-- error 1381
SHOW BINARY LOGS

SELECT COALESCE(command,''),COALESCE(state,''),count(*)
  FROM information_schema.processlist
  WHERE ID != connection_id()
  GROUP BY command,state
  ORDER BY null

-- rows user, connections
SELECT user, sum(1) AS connections FROM INFORMATION_SCHEMA.PROCESSLIST GROUP BY user

SELECT table_schema, table_name, column_name, auto_increment,
  CAST(pow(2, case data_type
    when 'tinyint'   then 7
    when 'smallint'  then 15
    when 'mediumint' then 23
    when 'int'       then 31
    when 'bigint'    then 63
    end+(column_type like '% unsigned'))-1 as decimal(19)) as max_int
  FROM information_schema.tables t
  JOIN information_schema.columns c USING (table_schema,table_name)
  WHERE c.extra = 'auto_increment' AND t.auto_increment IS NOT NULL

SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE status='enabled'

SELECT OBJECT_SCHEMA, OBJECT_NAME, COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE, SUM_TIMER_FETCH, SUM_TIMER_INSERT,
  SUM_TIMER_UPDATE, SUM_TIMER_DELETE FROM performance_schema.table_io_waits_summary_by_table
  WHERE OBJECT_SCHEMA NOT IN ('mysql', 'performance_schema')

SELECT ifnull(SCHEMA_NAME, 'NONE') as SCHEMA_NAME, DIGEST, LEFT(DIGEST_TEXT, 120) as DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT,
  SUM_ERRORS, SUM_WARNINGS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_CREATED_TMP_DISK_TABLES,
  SUM_CREATED_TMP_TABLES, SUM_SORT_MERGE_PASSES, SUM_SORT_ROWS, SUM_NO_INDEX_USED
  FROM performance_schema.events_statements_summary_by_digest
  WHERE SCHEMA_NAME NOT IN ('mysql', 'performance_schema', 'information_schema')
    AND last_seen > DATE_SUB(NOW(), INTERVAL 86400 SECOND)
  ORDER BY SUM_TIMER_WAIT DESC
  LIMIT 250

-- rows SCHEMA_NAME
SELECT SCHEMA_NAME FROM information_schema.schemata
  WHERE SCHEMA_NAME NOT IN ('mysql', 'performance_schema', 'information_schema')

-- rows table_name
SELECT table_name FROM information_schema.tables
  WHERE table_schema = 'performance_schema' AND table_name = 'events_statements_summary_by_digest'

SELECT coalesce(user, "unknown"), coalesce(host, "unknown"), coalesce(event_name, "unknown"), count_star, sum_timer_wait,
  min_timer_wait, avg_timer_wait, max_timer_wait, sum_lock_time, sum_errors, sum_warnings, sum_rows_affected, sum_rows_sent,
  sum_rows_examined, sum_created_tmp_disk_tables, sum_created_tmp_tables, sum_select_full_join, sum_select_full_range_join,
  sum_select_range, sum_select_range_check, sum_select_scan, sum_sort_merge_passes, sum_sort_range, sum_sort_rows, sum_sort_scan,
  sum_no_index_used, sum_no_good_index_used
  FROM performance_schema.events_statements_summary_by_account_by_event_name
