//! Seeds that are text.

/// Statements in the forms that the manual shows and drivers send, each for a table that takes it.
pub fn values() -> Vec<Vec<u8>> {
    let statements: [(u8, &str); 17] = [
        (0, "INSERT INTO dt VALUES(1, 'Bob')"),
        (0, "insert into dt values(1, 'Bob'), (2, \"Alice\"), (-3, NULL);"),
        (0, "INSERT INTO db.t (`c0`, c1) VALUES (1, 'it''s'), (0x1F, x'4142')"),
        (0, "INSERT INTO internal.db.`t` VALUES (1.5e3, 'a\\'b\\\\c\\nd\\te\\0f\\Zg\\qh\\%i\\_j')"),
        (0, "/* app */ INSERT INTO t -- x\n (c0,c1) VALUES # y\n (+1, 'é漢'),( - 2 , \"a\"\"b\" ) ; ;"),
        (0, "INSERT INTO t VALUES (), (1,'x')"),
        (0x80, "INSERT INTO t VALUES ('bad', 'x'), (1, TRUE), (99999999999, FALSE)"),
        (0, "INSERT INTO t VALUES (1, 'a'), (2)"),
        (0, "INSERT INTO t VALUES (1 + 1, now()), (DEFAULT, 'x')"),
        (1, "INSERT INTO t VALUES (1),(1.0),(.5),(1.),('x'),(-0),(1e400)"),
        (
            2,
            "INSERT INTO t VALUES (TRUE, 1, 2, 3, 4, 5, 6.5, 7.25, 8.99, '2024-05-01', '2024-05-01 10:11:12.123', \
             'char', 'varchar', 'string', '{\"a\": [1, null]}')",
        ),
        (
            2,
            "INSERT INTO t VALUES (0,-128,-32768,-2147483648,-9223372036854775808,-1,1e-3,1e308,-0.005,20240501,20240501101112,NULL,'','x','1')",
        ),
        (
            3,
            "INSERT INTO t VALUES (170141183460469231731687303715884105727, 1234567890.0123456789, 1.7976931348623157e308)",
        ),
        (4, "INSERT INTO t VALUES (TIMESTAMP '2024-02-29 23:59:59.9999995', DATE '0001-01-01', '[]')"),
        (4, "INSERT INTO t VALUES ('2024-02-29T23:59:59+08:00', '9999-12-31', '\"\\\\u00e9\"')"),
        (5, "INSERT INTO t (c0) VALUES ('12345'),('éé'),('123456')"),
        (0, "INSERT INTO t WITH LABEL l PARTITION (p) VALUES (1, 'a')"),
    ];
    statements.iter().map(|(choice, sql)| [&[*choice], sql.as_bytes()].concat()).collect()
}

/// Bodies with options: see the target for the bytes.
pub fn csv() -> Vec<Vec<u8>> {
    const COMMA: u8 = 0;
    const QUOTED: u8 = 0x40;
    let bodies: [([u8; 3], &str); 16] = [
        ([0, COMMA, 3], "1\n2\n\n\\N\n"),
        ([1, COMMA, 3], "1,a\r\n2,b\r\n3,\r\n"),
        ([2, COMMA, 0], "id,name,x\n1,a,b\n2,\\N,\n"),
        ([1, QUOTED, 5], "1,\"a,b\"\n2,\"c\"\"d\"\n3,\"e\nf\"\n"),
        ([1, QUOTED, 5], "\u{feff}\"1\",\"\\N\"\n2,\"never closed\n3,x"),
        ([1, 0x80 | 0x20, 2], "'a','b\\'c'\n'd''e','\\\\'\n'x'y,'z'w\n"),
        ([5, COMMA, 1], "\"1\",\"x\"\n,\n\"\",\"\\N\"\n"),
        ([1, 1, 7], "1\ta\n2\tb"),
        ([0x10, 3, 7], "1||a\r\n2||b\r\n"),
        ([0x20, 4, 7], "1\u{1}a\u{1}\u{2}2\u{1}b"),
        ([0x30, 6, 7], "xaaaayaab"),
        ([0x50, 8, 7], "a\n,b|c\n,d"),
        ([0x80, 7, 0], "a\nb\n\nc"),
        ([8, COMMA, 9], "1,x\nbad,y\n99999999999,z\n"),
        ([2, QUOTED, 9], "1,2,3,4,5,6,7,8,9,2024-01-01,2024-01-01 00:00:00,c,v,s,{}\n"),
        ([1, QUOTED, 30], "é,漢\n\"é\",\"漢\"\n,\n"),
    ];
    bodies.iter().map(|(options, body)| [&options[..], body.as_bytes()].concat()).collect()
}

/// Bodies with options: see the target for the bytes.
pub fn json() -> Vec<Vec<u8>> {
    const ARRAY: u8 = 2;
    const ARRAYS: u8 = 4;
    const DOCUMENT: u8 = 6;
    let bodies: [([u8; 2], &str); 15] = [
        ([0, 3], "{\"c0\":1,\"c1\":\"a\",\"c2\":null}\n{\"c1\":\"b\",\"c0\":2,\"x\":[{}]}\n"),
        (
            [0, 7],
            "{\"c0\": true, \"c1\": \"\\u00e9\\ud83d\\ude00\\n\\\\\", \"c0\": 2}\r\n\n {}\nbroken\n7\n[]",
        ),
        ([ARRAY, 5], "\u{feff} [ {\"c0\":1.50e-3} , {\"c1\":{\"a\" : [1, \"]\"]}},3,\"x\"]\n"),
        ([ARRAY, 1], "[{\"c0\":1},{\"c0\":2"),
        ([ARRAYS, 2], "[{\"c0\":\"1\"},{\"c1\":\"漢\"}]\n[]\n{\"c0\":1}"),
        ([DOCUMENT, 9], "{\n  \"c0\": 1,\n  \"c1\": \"x\"\n}\n"),
        ([DOCUMENT, 9], "{\"c0\":1}\n{\"c0\":2}"),
        ([0x40 | 1, 4], "{\"c0\":12345678901234567890123456789012345678901}|{\"c0\":-0}|{\"c0\":1E400}"),
        ([0xc0, 4], "{\"c0\":1}aaaa{\"c1\":\"\\ud800\"}aa"),
        ([0x20, 4], "{\"c0\":\"renamed\"}\n{\"x\":1}"),
        ([0x30 | 8, 4], "{\"c0\":{\"a\":[1,{\"b\":2}]},\"c1\":3}"),
        ([0x40 | ARRAY, 4], "[{\"c0\":[1,\"second\"]},{\"c0\":{}}]"),
        ([0x60 | ARRAY, 4], "{\"c0\":[{\"c0\":1},{\"c1\":2}]}"),
        ([0x70, 4], "{\"a\":[{\"c0\":1}]}\n{\"a\":[]}"),
        (
            [1, 2],
            "{\"c0\":true,\"c1\":-128,\"c2\":\"7\",\"c8\":12.345,\"c9\":20240501,\"c10\":\"2024-05-01 10:11:12\",\"c14\":\"[1]\"}",
        ),
    ];
    bodies.iter().map(|(options, body)| [&options[..], body.as_bytes()].concat()).collect()
}

/// Heads of requests.
pub fn headers() -> Vec<Vec<u8>> {
    let heads = [
        "PUT /api/db/dt/_stream_load\nAuthorization: Basic cm9vdDo=\nExpect: 100-continue\nContent-Length: 30\n\
         group_commit: async_mode\ncolumn_separator: ,\n",
        "PUT /api/my%20db/a%2Fb/_stream_load\ntransfer-encoding: chunked\nformat: csv_with_names\nlabel: l-1:x_y\n\
         columns: k1, k2, tmp, `k``3` = if(tmp = 1, 'x,y', \"(\"), k4=concat(tmp, 'it\\'s')\nwhere: k1 > 20 and k2 like 'a%'\n",
        "PUT /api/db/t/_stream_load\nContent-Length: 10\ncolumn_separator: \\x01\nline_delimiter: \\x0102\nenclose: \"\n\
         escape: \\\ntrim_double_quotes: true\nskip_lines: 3\nempty_field_as_null: true\ncompress_type: gz\n\
         max_filter_ratio: 0.2\nstrict_mode: TRUE\ntimeout: 100\ntimezone: +08:00\n",
        "PUT /api/db/_stream_load_2pc\ntxn_id: 18036\ntxn_operation: commit\n",
        "PUT /api/db/t/_stream_load_2pc\nlabel: l\ntxn_operation: ABORT\n",
        "PUT /api/_http_stream\nContent-Length: 5\nsql: insert into db.t (a, b) select c1, c2 from http_stream(\"format\" = \"CSV\")\n\
         two_phase_commit: true\ngroup_commit: sync_mode\n",
        "PUT /api/db/t/_stream_load\nContent-Length: 99999999999\n",
        "PUT /api/db/t/_stream_load\nContent-Length: 1\nmerge_type: MERGE\ndelete: flag=1\n\
         function_column.sequence_col: s\npartial_columns: true\nunique_key_update_mode: UPDATE_FIXED_COLUMNS\n",
        "GET /api/db/t/_schema?x=%zz\nContent-Encoding: x-gzip\nContent-Length: 0\nexec_mem_limit: 2147483648\n\
         partitions: p1,p2\nhidden_columns: __DORIS_DELETE_SIGN__\nnegative: true\ncomment: nightly load\n",
        "PUT /api/db/t/_stream_load\nContent-Length: 10\nformat: json\nstrip_outer_array: true\n\
         jsonpaths: [\"$.a.b\", \"$.\\\"odd key\\\"[0]\"]\njson_root: $.data\nnum_as_string: true\nread_json_by_line: false\n",
    ];
    heads.iter().map(|head| head.as_bytes().to_vec()).collect()
}

/// Statements about users, after a byte that chooses their beginning: none.
pub fn accounts() -> Vec<Vec<u8>> {
    let statements = [
        "GRANT SELECT_PRIV(a, `b``c`), LOAD_PRIV ON internal.`d`.t TO 'u'@'10.%'",
        "GRANT ALL ON *.* TO ROLE 'r'",
        "REVOKE USAGE_PRIV ON RESOURCE 's3' FROM u",
        "GRANT 'r', s TO u@localhost",
        "CREATE USER IF NOT EXISTS 'u'@'h' IDENTIFIED BY 'long password' DEFAULT ROLE 'r' REQUIRE SSL PASSWORD_HISTORY 3 COMMENT 'c'",
        "ALTER USER u IDENTIFIED WITH caching_sha2_password BY 'x''y' FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 1 DAY",
        "ALTER USER u PASSWORD_EXPIRE INTERVAL 90 DAY ACCOUNT_UNLOCK",
        "CREATE TOKEN t FOR u LIMITED TO LOAD ON d.t, SELECT(a) ON d.s EXPIRES IN 90 DAY COMMENT 'it''s'",
        "DROP TOKEN IF EXISTS 't' FOR 'u'@'%'",
        "SET PASSWORD FOR u = PASSWORD('secret')",
        "CREATE ROLE 'r' COMMENT 'c'",
    ];
    statements.iter().map(|sql| [b"\0".as_slice(), sql.as_bytes()].concat()).collect()
}

/// Statements, many of them from `docs/sql.md`.
pub fn ddl() -> Vec<Vec<u8>> {
    let statements = [
        "CREATE TABLE IF NOT EXISTS db.t (k INT NOT NULL COMMENT 'key', v VARCHAR(50) NULL DEFAULT 'x', \
         at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)) ENGINE=OLAP DUPLICATE KEY(k) COMMENT 'text' \
         DISTRIBUTED BY HASH(k) BUCKETS 10 PROPERTIES (\"group_commit_interval_ms\" = \"2000\");",
        "CREATE TABLE `dt` (`id` int(11) NOT NULL, `name` varchar(50) NULL, `score` int(11) NULL) ENGINE=OLAP \
         DUPLICATE KEY(`id`) DISTRIBUTED BY HASH(`id`) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")",
        "CREATE TABLE t (a BOOLEAN DEFAULT true, b TINYINT DEFAULT -128, c SMALLINT, d BIGINT DEFAULT \"7\", \
         e LARGEINT, f FLOAT DEFAULT 1.5, g DOUBLE, h DECIMAL(38, 10) DEFAULT 0.5, i DATE DEFAULT CURRENT_DATE, \
         j CHAR(8) DEFAULT 'c', k STRING, l JSON, m DATETIME(6) DEFAULT '2024-05-01 10:11:12.5') DISTRIBUTED BY RANDOM BUCKETS AUTO",
        "CREATE TABLE t (a INT, b TEXT, PRIMARY KEY (a))",
        "CREATE TABLE t (`a``b` INT COMMENT \"it's\", `é` VARCHAR(3) DEFAULT 'a\\'b') COMMENT 'x\\\\y'",
        "ALTER TABLE t SET (\"group_commit_data_bytes\" = \"134217728\")",
        "SET PROPERTY FOR 'u'@'10.%' 'max_user_connections' = '100', query_timeout = -1",
        "SHOW PROPERTY FOR u LIKE 'max%'",
        "ALTER TABLE t ADD COLUMN c INT DEFAULT \"0\" AFTER k, DROP COLUMN c, RENAME COLUMN v w, MODIFY COLUMN w VARCHAR(100)",
        "ALTER TABLE t ADD COLUMN (c1 INT, c2 STRING), RENAME t2, MODIFY COMMENT 'new', MODIFY COLUMN s COMMENT 'x'",
        "DROP TABLE IF EXISTS t FORCE; TRUNCATE TABLE t; DROP DATABASE d;;CREATE DATABASE IF NOT EXISTS d",
        "SHOW CREATE TABLE t; DESC t ALL; SHOW FULL COLUMNS FROM t LIKE 'a%'; SHOW TABLES WHERE x = 1",
        "SET group_commit = async_mode, @@session.time_zone = '+08:00'; SET NAMES utf8mb4; USE internal.db",
        "BEGIN WITH LABEL l; INSERT INTO t WITH LABEL x (a) VALUES (1, DEFAULT); COMMIT; ROLLBACK; SYNC",
        "CREATE USER 'u'@'%' IDENTIFIED BY 'p'; ALTER USER u IDENTIFIED BY ''; DROP USER u; KILL QUERY 7",
        "SELECT a, count(*) AS n FROM d.t x JOIN u ON x.a = u.a WHERE a IN (1, 2) AND b LIKE 'x%' GROUP BY a \
         HAVING n > 1 ORDER BY 1 DESC LIMIT 5, 10",
        "WITH x AS (SELECT 1 AS one) SELECT CASE WHEN one = 1 THEN 'a' ELSE \"b\" END FROM x UNION ALL (SELECT 2)",
        "((((((((1 + -2) * 3) DIV 4) MOD 5) || a) && NOT b) XOR c) BETWEEN 1 AND 2)",
        "SELECT CAST(a AS DECIMAL(10,2)), DATE_ADD(d, INTERVAL 1 DAY), x -> '$.a' FROM t /* c */ -- d",
    ];
    let mut seeds: Vec<Vec<u8>> = statements.iter().map(|sql| sql.as_bytes().to_vec()).collect();
    seeds.push(format!("SELECT {}1{}", "(".repeat(120), ")".repeat(120)).into_bytes());
    seeds.push(format!("SELECT {}1", "NOT ".repeat(400)).into_bytes());
    seeds.push(format!("SELECT 1{}", " + 1".repeat(300)).into_bytes());
    seeds.extend(partitions());
    seeds
}

/// Statements about partitions.
fn partitions() -> Vec<Vec<u8>> {
    [
        r"CREATE TABLE t (d DATE, id INT) DUPLICATE KEY(d) PARTITION BY RANGE(d) (PARTITION p1 VALUES LESS THAN ('2024-01-01'), PARTITION `p-2` VALUES [('2024-01-01'), ('2024-02-01')), PARTITION p3 VALUES LESS THAN MAXVALUE) DISTRIBUTED BY HASH(d) BUCKETS AUTO",
        r#"CREATE TABLE t (d DATETIME(3) NOT NULL, id BIGINT) DUPLICATE KEY(d) PARTITION BY RANGE(d) (FROM ("2000-11-14") TO ("2003-11-14") INTERVAL 1 YEAR, FROM ("2022-01-03") TO ("2022-02-06") INTERVAL 1 WEEK, FROM ("2023-01-03") TO ("2023-01-04") INTERVAL 6 HOUR) DISTRIBUTED BY RANDOM"#,
        r#"CREATE TABLE t (a INT, b SMALLINT) DUPLICATE KEY(a, b) PARTITION BY RANGE(a, b) (PARTITION p1 VALUES LESS THAN ("10", "-5"), PARTITION p2 VALUES LESS THAN ("20"), PARTITION p3 VALUES [("20"), (MAXVALUE, MAXVALUE))) DISTRIBUTED BY HASH(a) BUCKETS 3"#,
        r#"CREATE TABLE t (c VARCHAR(20), b BOOLEAN) UNIQUE KEY(c, b) PARTITION BY LIST(c, b) (PARTITION p VALUES IN (('x"\\', true), (NULL, 'false')) ("replication_num" = "1"), PARTITION rest) DISTRIBUTED BY HASH(c) BUCKETS 1"#,
        r"CREATE TABLE t (d DATE NOT NULL, id INT) DUPLICATE KEY(d) AUTO PARTITION BY RANGE (date_trunc(d, 'month')) (PARTITION old VALUES LESS THAN ('2020-01-01')) DISTRIBUTED BY HASH(d) BUCKETS 1; CREATE TABLE t (c CHAR(3)) DUPLICATE KEY(c) AUTO PARTITION BY LIST (c) () DISTRIBUTED BY HASH(c) BUCKETS 1",
        r#"CREATE TABLE t (d DATE, id INT) DUPLICATE KEY(d) PARTITION BY RANGE(d) () DISTRIBUTED BY HASH(d) PROPERTIES ("dynamic_partition.enable" = "true", "dynamic_partition.time_unit" = "WEEK", "dynamic_partition.start" = "-3", "dynamic_partition.end" = "3", "dynamic_partition.prefix" = "p", "dynamic_partition.start_day_of_week" = "7", "dynamic_partition.reserved_history_periods" = "[2020-06-01,2020-06-20],[2020-10-31,2020-11-15]")"#,
        r#"ALTER TABLE t ADD PARTITION IF NOT EXISTS p9 VALUES LESS THAN ('2025-01-01') ("in_memory" = "false") DISTRIBUTED BY HASH(k) BUCKETS 4"#,
        r#"ALTER TABLE t ADD PARTITIONS FROM ('2024-05-01') TO ('2024-07-01') INTERVAL 1 MONTH; ALTER TABLE t DROP PARTITION IF EXISTS p1 FORCE; ALTER TABLE t RENAME PARTITION p1 old; ALTER TABLE t MODIFY PARTITION (*) SET ("storage_medium" = "HDD")"#,
        r#"ALTER TABLE t SET ("dynamic_partition.enable" = "false", "dynamic_partition.create_history_partition" = "true", "dynamic_partition.history_partition_num" = "3")"#,
        r"INSERT OVERWRITE TABLE t PARTITION (*) (a, b) SELECT 1, 2; INSERT OVERWRITE TABLE t PARTITION (p1, `p2`) WITH LABEL l VALUES (1, DEFAULT); SELECT * FROM t TEMPORARY PARTITION (p) x; TRUNCATE TABLE t PARTITION (p1) FORCE",
    ]
    .map(|sql| sql.as_bytes().to_vec())
    .to_vec()
}

/// Lists of columns, with expressions.
pub fn columns() -> Vec<Vec<u8>> {
    [
        "k1, k2, tmpk3, k3 = tmpk3 + 1",
        "`a,b`, `c``d` = `a,b`, 列1",
        r#"a, b = concat(a, 'it\'s, ok', "(")"#,
        "id, ts, day = date_trunc(ts, 'day'), kind = CASE WHEN id > 3 THEN 'x' ELSE NULL END",
        "a, b = if(a = 1, [1, 2][1], (SELECT 2)), c = -a % 7 /* one, two */",
        "a, at = date_add(from_unixtime(a), INTERVAL 3 DAY), d = CAST(a AS DECIMAL(10, 2)) -- last",
        "a, b = a NOT IN (1, 2) AND a BETWEEN 3 AND 4 OR a IS NULL, c = x'41', e = a -> '$.b'",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
