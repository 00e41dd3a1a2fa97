//! Statements of drivers and ORMs of MySQL: metadata, settings, DDL and comparisons.

use crate::support::{Client, Server};

#[test]
fn texts_of_information_schema_are_compared_without_case() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, Name VARCHAR(9))");
    let of_table = "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't'";
    assert_eq!(
        client.rows(&format!("SELECT IF(IS_NULLABLE = 'yes', 1, 0) {of_table} ORDER BY ORDINAL_POSITION")),
        ["0", "1"]
    );
    for (condition, count) in [
        ("COLUMN_NAME = 'NAME'", "1"),
        ("COLUMN_NAME IN ('ID', 'NAME')", "2"),
        ("COLUMN_NAME LIKE 'NA%'", "1"),
        ("COLUMN_NAME NOT LIKE 'NA%'", "1"),
        ("CASE DATA_TYPE WHEN 'INT' THEN 1 ELSE 0 END = 1", "1"),
        ("TABLE_NAME = 'T'", "0"),
        ("ORDINAL_POSITION = '2'", "1"),
    ] {
        let sql = format!("SELECT COUNT(*) {of_table} AND {condition}");
        assert_eq!(client.value(&sql), count, "{condition}");
    }
    let of_subquery = "SELECT COUNT(*) FROM (SELECT * FROM information_schema.tables) t WHERE table_schema = DATABASE() AND \
                       table_type LIKE 'base%'";
    assert_eq!(client.value(of_subquery), "1");
}

#[test]
fn columns_are_shown_as_doris_does_and_as_mysql_does() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k BIGINT NOT NULL, b BOOLEAN, d DECIMAL(12, 2), s STRING, v VARCHAR(9), at DATETIME(3)) UNIQUE KEY(k)");
    let types = "SELECT COLUMN_TYPE FROM information_schema.columns WHERE TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION";
    assert_eq!(
        client.rows(types),
        ["bigint(20)", "tinyint(1)", "decimalv3(12, 2)", "string", "varchar(9)", "datetime(3)"]
    );
    assert_eq!(
        client.rows("SHOW COLUMNS FROM t")[..2],
        ["k|bigint|NO|YES|NULL|", "b|boolean|YES|NO|NULL|NONE"]
    );
    assert_eq!(client.rows("DESC t")[..2], ["k|bigint|No|true|NULL|", "b|boolean|Yes|false|NULL|NONE"]);
    client.ok("SET mysql_ddl = compat");
    assert_eq!(
        client.rows(types),
        ["bigint", "tinyint(1)", "decimal(12,2)", "text", "varchar(9)", "datetime(3)"]
    );
    assert_eq!(client.rows("SHOW COLUMNS FROM t")[..2], ["k|bigint|NO|PRI|NULL|", "b|tinyint(1)|YES||NULL|"]);
}

#[test]
fn a_compatible_session_shows_a_table_that_it_can_create_again() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok(
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'it''s', done TINYINT(1) DEFAULT false, \
         at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id)) COMMENT='a table'",
    );
    let created = client.rows("SHOW CREATE TABLE t").join("\n");
    for part in [
        "  `id` int NOT NULL AUTO_INCREMENT,\n",
        "  `name` varchar(40) NOT NULL DEFAULT 'it\\'s',\n",
        "  `done` tinyint DEFAULT '0',\n",
        "  PRIMARY KEY (`id`)\n) ENGINE=OLAP COMMENT='a table' DISTRIBUTED BY ",
    ] {
        assert!(created.contains(part), "{part}\n{created}");
    }
    let statement = created.split_once('|').expect("a name and a statement").1.to_owned();
    client.ok("DROP TABLE t");
    client.ok(&statement);
    assert_eq!(client.rows("SHOW CREATE TABLE t").join("\n"), created);
    client.ok("CREATE TABLE nullable (id INT) UNIQUE KEY(id)");
    let created = client.rows("SHOW CREATE TABLE nullable").join("\n");
    assert!(created.contains("(\n  `id` int\n) ENGINE=OLAP UNIQUE KEY(`id`) DISTRIBUTED BY"), "{created}");
    client.ok("INSERT INTO t (id) VALUES (7)");
    assert_eq!(client.rows("SELECT id, name, done FROM t"), ["7|it's|0"]);
}

#[test]
fn alterations_without_effect_are_accepted_in_a_compatible_session() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, name VARCHAR(40) NULL)");
    client.refused("ALTER TABLE t MODIFY COLUMN name VARCHAR(40) NULL", 1105, "Nothing is changed");
    client.ok("SET mysql_ddl = compat");
    client.ok("ALTER TABLE t MODIFY name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NULL");
    client.ok("ALTER TABLE t CHANGE name name VARCHAR(40)");
    client.ok("ALTER TABLE t CHANGE name title VARCHAR(50) NULL COLLATE 'utf8mb4_0900_bin'");
    assert_eq!(client.rows("SHOW COLUMNS FROM t")[1], "title|varchar(50)|YES||NULL|");
    client.ok("CREATE VIEW v AS SELECT id FROM t");
    client.ok("DROP TABLE IF EXISTS v");
    client.ok("DROP VIEW v CASCADE");
    client.ok("DROP VIEW IF EXISTS v RESTRICT");
}

/// Flyway's baseline.
#[test]
fn a_table_with_columns_takes_those_of_a_query_by_their_names() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    let create = "CREATE TABLE t (rank INT NOT NULL, note VARCHAR(20), at DATETIME DEFAULT CURRENT_TIMESTAMP, CONSTRAINT pk PRIMARY KEY (rank)) \
                  AS SELECT 'x' AS \"note\", 7 AS \"rank\"";
    client.refused(create, 1235, "is not supported yet");
    client.refused("CREATE TABLE t (a INT) AS SELECT 1 AS a", 1235, "with types of columns");
    client.ok("SET mysql_ddl = compat");
    client.ok(create);
    assert_eq!(client.rows("SELECT rank, note, at IS NOT NULL FROM t"), ["7|x|1"]);
    assert_eq!(client.rows("SHOW COLUMNS FROM t")[0], "rank|int|NO|PRI|NULL|");
    client.refused("CREATE TABLE u (a INT) AS SELECT 1 AS b", 1235, "the query's column 'b'");
    client.refused("CREATE TABLE u (a INT NOT NULL, b INT) AS SELECT 1 AS b", 1105, "no default value");
    assert_eq!(client.rows("SHOW TABLES"), ["t"]);
}

#[test]
fn transactions_that_only_read_refuse_to_write() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    let shown = "SELECT @@session.transaction_read_only, @@session.tx_read_only";
    assert_eq!(client.value(shown), "0|0");
    client.ok("SET SESSION TRANSACTION READ ONLY");
    assert_eq!(client.value(shown), "1|1");
    for statement in [
        "INSERT INTO dt VALUES (1, 'a', 1)",
        "INSERT INTO dt SELECT 1, 'a', 1",
        "DELETE FROM dt WHERE id = 1",
        "CREATE TABLE x (a INT)",
        "TRUNCATE TABLE dt",
    ] {
        client.refused(statement, 1792, "Cannot execute statement in a READ ONLY transaction");
    }
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "0");
    client.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("SET TRANSACTION READ ONLY");
    assert_eq!(client.value(shown), "0|0", "a hint for the next transaction");
    client.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY");
    client.refused("INSERT INTO dt VALUES (2, 'b', 2)", 1792, "READ ONLY transaction");
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "1");
    client.ok("COMMIT");
    client.ok("SET SESSION TRANSACTION READ ONLY");
    client.ok("START TRANSACTION READ WRITE");
    client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    client.ok("COMMIT");
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "2");
}

/// Monitors send these to every server, and take an empty set for a server without the part.
#[test]
fn parts_that_there_are_not_have_no_rows() {
    let server = Server::shared();
    let mut client = server.connect();
    for (statement, first, columns) in [
        ("SHOW SLAVE STATUS", "Slave_IO_State", 57),
        ("SHOW REPLICA STATUS", "Replica_IO_State", 57),
        ("SHOW SLAVE HOSTS", "Server_id", 5),
        ("SHOW REPLICAS", "Server_Id", 5),
        ("SHOW MASTER STATUS", "File", 5),
        ("SHOW OPEN TABLES", "Database", 4),
        ("SHOW PROFILES", "Query_ID", 3),
        ("SELECT NAME FROM information_schema.INNODB_METRICS", "NAME", 1),
        ("SELECT * FROM performance_schema.events_waits_history_long", "THREAD_ID", 19),
    ] {
        let rows = client.table(statement);
        assert_eq!((rows.columns[0].as_str(), rows.columns.len()), (first, columns), "{statement}");
        assert!(rows.rows.is_empty(), "{statement}");
    }
    assert_eq!(client.rows("SHOW ENGINE INNODB STATUS"), ["InnoDB||"]);
    for statement in ["SHOW BINARY LOGS", "SHOW MASTER LOGS"] {
        client.refused(statement, 1381, "You are not using binary logging");
    }
}

/// Workbench reads where the files are, `mysqld_exporter` and replicas who the server is.
#[test]
fn a_server_says_who_and_where_it_is() {
    let server = Server::shared();
    let mut client = server.connect();
    let uuid = client.value("SELECT @@server_uuid");
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
    assert!(uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{uuid}");
    assert_eq!(client.rows("SHOW VARIABLES LIKE 'server_uuid'"), [format!("server_uuid|{uuid}")]);
    let directory = client.value("SELECT @@global.datadir");
    assert!(directory.starts_with('/') && directory.ends_with('/'), "{directory}");
    assert!(std::path::Path::new(&directory).join("wal").is_dir(), "{directory}");
    assert_eq!(client.rows("SELECT @@basedir, @@tmpdir, @@general_log, @@slow_query_log"), ["/|/tmp|0|0"]);
}

/// phpMyAdmin's page of a table asks so.
#[test]
fn a_column_may_be_shown_again_under_its_own_name() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (a INT, Cc INT) DUPLICATE KEY(a)");
    client.ok("INSERT INTO t VALUES (1, 9), (2, 8)");
    let answer = client.table("SELECT *, `Cc` AS `Cc` FROM `t` ORDER BY `Cc`");
    assert_eq!(answer.columns, ["a", "Cc", "Cc"]);
    assert_eq!(client.rows("SELECT *, `Cc` AS `Cc` FROM `t` ORDER BY `Cc`"), ["2|8|8", "1|9|9"]);
}

#[test]
fn a_table_is_described_in_part() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (a_b INT, axb INT, c VARCHAR(5)) DUPLICATE KEY(a_b)");
    let columns = |client: &mut Client, sql: &str| -> Vec<String> {
        let rows = client.rows(sql);
        rows.iter().map(|row| row.split('|').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(columns(client, "DESC t a_b"), ["a_b"]);
    assert_eq!(columns(client, "DESCRIBE t 'a%'"), ["a_b", "axb"]);
    assert_eq!(columns(client, "EXPLAIN t c"), ["c"]);
    assert_eq!(columns(client, "DESC t"), ["a_b", "axb", "c"]);
}

/// As object-relational mappers write associations: the server gives the key, so no row of it exists.
#[test]
fn a_row_whose_key_the_server_gives_is_inserted_whatever_it_would_update() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT, n VARCHAR(5)) UNIQUE KEY(id)");
    let insert = "INSERT INTO t (n) VALUES ('x') ON DUPLICATE KEY UPDATE id = id";
    assert_eq!(client.ok(insert).affected_rows, 1);
    assert_eq!(
        client
            .ok("INSERT INTO t (n) VALUES ('y'), ('z') ON DUPLICATE KEY UPDATE n = VALUES(n)")
            .affected_rows,
        2
    );
    assert_eq!(client.rows("SELECT n FROM t ORDER BY n"), ["x", "y", "z"]);
}

#[test]
fn null_is_the_default_of_a_column_that_has_none() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k INT, n VARCHAR(5)) DUPLICATE KEY(k)");
    client.ok("ALTER TABLE t MODIFY COLUMN n VARCHAR(20) DEFAULT NULL");
    client.refused(
        "ALTER TABLE t MODIFY COLUMN n VARCHAR(30) DEFAULT 'x'",
        1105,
        "Can not change default value",
    );
    client.ok("INSERT INTO t (k) VALUES (1)");
    assert_eq!(client.value("SELECT n FROM t"), "NULL");
}

#[test]
fn a_named_collation_compares_without_case() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'Alpha', 1), (2, 'beta', 2), (3, '50%A', 3)");
    for (condition, ids) in [
        ("name COLLATE utf8mb4_general_ci LIKE 'ALPH%'", "1"),
        ("name COLLATE utf8mb4_general_ci NOT LIKE 'ALPH%'", "2,3"),
        ("name LIKE 'BETA' COLLATE 'utf8mb4_unicode_ci'", "2"),
        ("name COLLATE utf8_general_ci = 'ALPHA'", "1"),
        ("name COLLATE utf8_general_ci IN ('ALPHA', 'BETA')", "1,2"),
        ("name COLLATE utf8_general_ci BETWEEN 'A' AND 'AZ'", "1"),
        ("name COLLATE utf8_general_ci REGEXP '^B'", "2"),
        ("name COLLATE utf8mb4_bin = 'ALPHA'", "NULL"),
        ("name = 'ALPHA'", "NULL"),
        ("name LIKE '%e%' ESCAPE ''", "2"),
        ("name COLLATE utf8_general_ci LIKE '50X%a' ESCAPE 'X'", "3"),
    ] {
        let sql = format!("SELECT GROUP_CONCAT(id ORDER BY id SEPARATOR ',') FROM dt WHERE {condition}");
        assert_eq!(client.value(&sql), ids, "{condition}");
    }
    client.refused(
        "SELECT id FROM dt WHERE name COLLATE utf8_general_ci IN (SELECT name FROM dt)",
        1235,
        "COLLATE … IN (SELECT …)",
    );
}

#[test]
fn modes_of_dumps_are_accepted() {
    let server = Server::shared();
    let mut client = server.connect();
    client.ok("SET SQL_QUOTE_SHOW_CREATE=1/*!40102 ,SQL_MODE=concat(@@sql_mode, _utf8 ',NO_KEY_OPTIONS,NO_TABLE_OPTIONS,NO_FIELD_OPTIONS') */");
    client.ok("SET sql_mode = 'STRICT_ALL_TABLES,,NO_KEY_OPTIONS'");
    client.refused(
        "SET sql_mode = 'HIGH_NOT_PRECEDENCE'",
        1231,
        "HIGH_NOT_PRECEDENCE would change what statements mean",
    );
    client.ok("SET sql_mode = ''");
    let dumped = "SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, EXTRA FROM INFORMATION_SCHEMA.FILES GROUP BY LOGFILE_GROUP_NAME, \
                  FILE_NAME, TOTAL_EXTENTS ORDER BY LOGFILE_GROUP_NAME";
    assert!(client.rows(dumped).is_empty());
}

#[test]
fn sql_mode_says_what_quotes_backslashes_and_pipes_mean() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, `a-b` VARCHAR(20)) UNIQUE KEY(id)");
    client.ok("SET sql_mode = 'ANSI_QUOTES'");
    client.ok(r#"INSERT INTO "t" ("id", "a-b") VALUES (1, 'it is "so"')"#);
    assert_eq!(client.rows(r#"SELECT "a-b" FROM "t" WHERE "id" = 1"#), [r#"it is "so""#]);
    client.refused(r#"SELECT "a-b" = "so" FROM t"#, 1054, "so");
    client.ok("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
    client.ok(r"INSERT INTO t VALUES (2, 'C:\new\')");
    client.ok(r#"INSERT INTO t VALUES (3, CONCAT("\", 'x'))"#);
    client.ok(r"PREPARE s FROM 'SELECT `a-b`, LENGTH(''\n'') FROM t WHERE id > ? ORDER BY id'");
    client.ok("SET @least = 1");
    assert_eq!(client.rows("EXECUTE s USING @least"), [r"C:\new\|2", r"\x|2"]);
    client.ok("SET sql_mode = 'PIPES_AS_CONCAT'");
    let pipes = "SELECT id || '-' || -1, NULL || 'x' FROM t WHERE id || 'x' = '1x'";
    assert_eq!(client.rows(pipes), ["1--1|NULL"]);
    client.refused("CREATE VIEW v AS SELECT id || 'x' AS c FROM t", 1235, "PIPES_AS_CONCAT");
    client.ok("SET sql_mode = 'ansi,TRADITIONAL'");
    client.ok("SET mysql_ddl = 'compat'");
    client.ok(r#"CREATE TABLE "r" ("k" INT, "x" REAL, PRIMARY KEY ("k"))"#);
    assert_eq!(client.rows("DESC r")[1], "x|float|YES||NULL|");
    assert_eq!(client.value("SELECT @@sql_mode"), "ansi,TRADITIONAL");
    client.ok("SET sql_mode = DEFAULT");
    assert_eq!(client.rows(r#"SELECT `a-b` = "\\x", '0' || '1' FROM t WHERE id = 3"#), ["1|1"]);
}

#[test]
fn columns_that_are_not_grouped_have_any_value_where_the_mode_allows_it() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'a', 5), (2, 'a', 5), (3, 'b', 6)");
    let select =
        "SELECT dt.name, score, score + 1 AS more, COUNT(*), UPPER(name) FROM dt GROUP BY name ORDER BY name";
    client.refused(select, 1105, "must be in GROUP BY");
    client.ok("SET sql_mode = 'STRICT_TRANS_TABLES'");
    let answer = client.table(select);
    assert_eq!(answer.columns, ["name", "score", "more", "COUNT(*)", "UPPER(name)"]);
    assert_eq!(client.rows(select), ["a|5|6|2|A", "b|6|7|1|B"]);
    assert_eq!(client.rows("SELECT name AS n, score FROM dt GROUP BY n ORDER BY score"), ["a|5", "b|6"]);
    assert_eq!(client.rows("SELECT LEFT(name, 1), score FROM dt GROUP BY 1 ORDER BY 2"), ["a|5", "b|6"]);
}

#[test]
fn bytes_that_are_no_text_are_refused_in_texts_with_the_reason() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (id INT NOT NULL, data LONGTEXT, PRIMARY KEY (id))");
    client.refused(
        "INSERT INTO t VALUES (1, x'00ff')",
        1366,
        "has bytes that are no UTF-8, which all text is",
    );
    client.ok("INSERT INTO t VALUES (1, x'4142')");
    assert_eq!(client.value("SELECT data FROM t"), "AB");
}

#[test]
fn patterns_match_in_any_case_on_request() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'Alpha', 1), (2, 'beta', 2)");
    client.ok("SET like_ignores_case = ON");
    for (condition, ids) in [
        ("name LIKE 'ALPH%'", "1"),
        ("name NOT LIKE 'ALPH%'", "2"),
        ("name REGEXP '^B'", "2"),
        ("REGEXP_LIKE(name, '^B')", "2"),
        ("REGEXP_LIKE(name, '^B', 'c')", "NULL"),
        ("name LIKE BINARY 'ALPH%'", "NULL"),
        ("name COLLATE utf8mb4_bin LIKE 'ALPH%'", "NULL"),
        ("name REGEXP BINARY '^B'", "NULL"),
        ("name = 'ALPHA'", "NULL"),
    ] {
        let sql = format!("SELECT GROUP_CONCAT(id) FROM dt WHERE {condition}");
        assert_eq!(client.value(&sql), ids, "{condition}");
    }
}

#[test]
fn alterations_are_done_when_they_are_answered_in_a_compatible_session() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (id INT NOT NULL, a INT NULL, b INT NULL, PRIMARY KEY (id))");
    client.ok("INSERT INTO t VALUES (1, 2, 3)");
    client.ok("ALTER TABLE t MODIFY a BIGINT NULL");
    client.ok("ALTER TABLE t MODIFY b VARCHAR(20) NULL");
    client.ok("ALTER TABLE t MODIFY a VARCHAR(30) NULL");
    assert_eq!(
        client.rows("SHOW COLUMNS FROM t"),
        ["id|int|NO|PRI|NULL|", "a|varchar(30)|YES||NULL|", "b|varchar(20)|YES||NULL|"]
    );
    assert_eq!(client.rows("SELECT * FROM t"), ["1|2|3"]);
}

#[test]
fn a_view_is_renamed() {
    let mut server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT)");
    client.ok("CREATE VIEW v AS SELECT id FROM t");
    client.ok("RENAME TABLE v TO w");
    client.refused("RENAME TABLE w TO t", 1050, "already exists");
    client.refused("RENAME TABLE v TO x", 1146, "does not exist");
    client.refused("RENAME TABLE w TO x, t TO u", 1235, "rename one at a time");
    client.ok("CREATE OR REPLACE VIEW w AS SELECT id, 1 AS one FROM t");
    assert_eq!(client.rows("SHOW TABLES"), ["t", "w"]);
    let name = db.name.clone();
    drop(db);
    server.stop();
    server.start_again();
    let mut client = server.connect_to(&name);
    assert!(client.rows("SELECT * FROM w").is_empty());
    client.refused("SELECT * FROM v", 1146, "does not exist");
}

/// The number of MySQL's type TIME.
const TIME: u8 = 0x0b;

#[test]
fn times_have_their_own_type_in_both_protocols() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE s (n INT) DUPLICATE KEY(n) DISTRIBUTED BY HASH(n) BUCKETS 1");
    db.client.ok("SET group_commit = off_mode");
    db.client.ok("INSERT INTO s VALUES (3723), (400000), (NULL)");
    let address = ("127.0.0.1", server.mysql_port());
    let mut driver = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let times = "SELECT CAST('10:11:12' AS TIME) AS t, SEC_TO_TIME(3723), MAKETIME(12, 15, 30), TIME('2024-01-01 10:11:12'), \
                 TIMEDIFF('2024-01-01 08:00:01.5', '2024-01-02 10:00:00'), ADDTIME('10:00:00', '01:00:00')";
    for (sql, first) in [
        (times, "10:11:12|01:02:03|12:15:30|10:11:12|-25:59:58.500000|11:00:00"),
        ("SELECT DISTINCT SEC_TO_TIME(n) AS t FROM s WHERE n > 3723 ORDER BY t LIMIT 1", "111:06:40"),
        ("SELECT SEC_TO_TIME(SUM(n)) FROM s", "112:08:43"),
        ("SELECT CURTIME() IS NULL, UTC_TIME()", "0|"),
    ] {
        let answer = driver.query(sql).expect("answered");
        let tributary_client::Answer::Rows(rows) = answer else { panic!("{sql} has rows") };
        let kind = rows.kinds.last().expect("a column");
        assert_eq!(kind.code, TIME, "{sql}");
        let text = |row: &tributary_client::Row| {
            row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
        };
        assert!(text(&rows.rows[0]).starts_with(first), "{sql}: {}", text(&rows.rows[0]));
    }
    // Where the texts may be others, they are texts.
    for sql in ["SELECT SEC_TO_TIME(1) AS t UNION ALL SELECT 'x'", "SELECT CONCAT(SEC_TO_TIME(1), 'x')"] {
        let answer = driver.query(sql).expect("answered");
        let tributary_client::Answer::Rows(rows) = answer else { panic!("{sql} has rows") };
        assert_ne!(rows.kinds[0].code, TIME, "{sql}");
    }
    let statement = driver.prepare("SELECT SEC_TO_TIME(n) FROM s WHERE n < ?").expect("prepared");
    let answer = driver.execute_query(statement, &[tributary_client::Value::BigInt(4000)]).expect("answered");
    let tributary_client::Answer::Rows(rows) = answer else { panic!("it has rows") };
    assert_eq!(rows.rows, [[Some("01:02:03".to_owned())]], "in binary form");
    let shared = "CREATE TABLE c AS SELECT SEC_TO_TIME(n) AS t FROM s WHERE n = 3723";
    db.client.ok(shared);
    assert_eq!(db.client.rows("SELECT t FROM c"), ["01:02:03"], "a table keeps the text");
}
