set autocommit=1,sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES')

-- rows @@max_allowed_packet, @@system_time_zone, @@time_zone, @@auto_increment_increment
-- types LONGLONG
SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment

SELECT DATABASE()

-- rows Tables_in_shop
SHOW TABLES

-- rows Grants for root@%
SHOW GRANTS FOR CURRENT_USER()

-- rows Variable_name, Value
show global variables like 'local_infile'

-- rows global_tz, system_tz, offset
SELECT @@GLOBAL.time_zone AS global_tz, @@system_time_zone AS system_tz,
  time_format(timediff(now(), convert_tz(now(), @@GLOBAL.time_zone, '+00:00')), '%H:%i') AS 'offset'

SET @@session.time_zone = '+00:00'

-- rows c
SELECT str_to_date(date_format(moment, '%Y-%m-%d %H:%i'), '%Y-%m-%d %H:%i') AS t, count(*) AS c FROM orders GROUP BY t ORDER BY
  t ASC

-- rows c
SELECT makedate(year(`shop`.`orders`.`moment`), 1) AS y, COUNT(*) AS c FROM `shop`.`orders` GROUP BY y ORDER BY y ASC

-- rows c
SELECT str_to_date(concat(yearweek(moment), ' Sunday'), '%X%V %W') AS w, count(*) AS c FROM orders GROUP BY w

-- rows c
SELECT str_to_date(concat(date_format(moment, '%Y-%m'), '-01'), '%Y-%m-%d') AS m, count(*) AS c FROM orders GROUP BY m

-- rows d, w
SELECT dayofweek(moment) AS d, week(moment, 6) AS w FROM orders LIMIT 2000

-- rows substring
SELECT SUBSTRING(`source`.`name`, 1, 1234) AS `substring` FROM (SELECT `shop`.`orders`.`name` AS `name` FROM `shop`.`orders`) AS
  `source` LIMIT 10000

-- rows TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME
SELECT `c`.`table_schema` AS `TABLE_SCHEMA`, `c`.`table_name` AS `TABLE_NAME`, `c`.`column_name` AS `COLUMN_NAME`
  FROM `information_schema`.`columns` AS `c` INNER JOIN `information_schema`.`tables` AS `t`
  ON (`c`.`table_schema` = `t`.`table_schema`) AND (`c`.`table_name` = `t`.`table_name`)
  WHERE `c`.`table_schema` NOT IN ('information_schema', 'performance_schema', 'sys', 'mysql') ORDER BY `TABLE_NAME`
