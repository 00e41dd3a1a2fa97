SELECT DISTINCT TABLE_SCHEMA from information_schema.TABLES where TABLE_TYPE != 'SYSTEM VIEW' ORDER BY TABLE_SCHEMA

-- rows table_name
SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name

-- rows column_name, data_type
SELECT column_name, data_type FROM information_schema.columns
  WHERE table_schema = 'shop' AND table_name = 'orders' AND data_type IN ('timestamp','datetime','bigint') ORDER BY column_name

-- rows time, metric, value
-- types LONGLONG
SELECT UNIX_TIMESTAMP(moment) DIV 300 * 300 AS time, name AS metric, avg(amount) AS value FROM orders
  WHERE moment BETWEEN FROM_UNIXTIME(1500000000) AND FROM_UNIXTIME(2000000000) GROUP BY 1, 2 ORDER BY 1

SELECT id AS "time", name AS text FROM orders WHERE moment >= FROM_UNIXTIME(1500000000) AND moment <= FROM_UNIXTIME(2000000000)

-- rows __text, __value
SELECT name AS __text, id AS __value FROM orders
