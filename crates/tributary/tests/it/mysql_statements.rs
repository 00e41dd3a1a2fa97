//! Statements that MySQL's clients, dumps and tools of migration send.

use crate::support::{Client, MariaDb, Server, wait_until};
use std::process::Command;
use std::time::Instant;
use tributary_client::Value;

const PEOPLE: &str = "CREATE TABLE people (id INT NOT NULL AUTO_INCREMENT, name VARCHAR(40) DEFAULT NULL, notes LONGTEXT, at TIMESTAMP NOT \
                      NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id), KEY by_name (name(10))) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT \
                      CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

#[test]
fn ddl_commits_the_open_transaction() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.ok("CREATE TABLE other (a INT)");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "1");
    db.client.ok("ROLLBACK");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "1", "it was committed");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO dt VALUES (2, 'b', 1)");
    db.client.ok("ALTER TABLE other RENAME COLUMN a b");
    db.client.ok("INSERT INTO dt VALUES (3, 'c', 1)");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["1", "2", "3"], "no transaction is open");
}

#[test]
fn savepoints_are_kept_or_refused_and_never_half() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("SAVEPOINT s");
    client.refused("ROLLBACK TO SAVEPOINT s", 1305, "SAVEPOINT s does not exist");
    client.ok("BEGIN");
    client.ok("SAVEPOINT before");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("SAVEPOINT middle");
    client.ok("ROLLBACK TO SAVEPOINT middle");
    client.ok("INSERT INTO dt VALUES (2, 'b', 2), (7, 'c', 7)");
    client.ok("SAVEPOINT later");
    client.ok("INSERT INTO dt VALUES (8, 'b', 2)");
    client.ok("ROLLBACK TO SAVEPOINT middle");
    client.refused("ROLLBACK TO SAVEPOINT later", 1305, "SAVEPOINT later does not exist");
    client.ok("INSERT INTO dt VALUES (4, 'd', 4)");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT id FROM dt ORDER BY id"), ["1", "4"], "rows before and after it stay");
    client.ok("TRUNCATE TABLE dt");
    client.ok("BEGIN");
    client.ok("SAVEPOINT before");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("SAVEPOINT middle");
    client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    client.ok("ROLLBACK TO before");
    client.refused("RELEASE SAVEPOINT middle", 1305, "SAVEPOINT middle does not exist");
    client.ok("INSERT INTO dt VALUES (3, 'c', 3)");
    client.ok("RELEASE SAVEPOINT before");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT id FROM dt"), ["3"]);
    client.ok("CREATE TABLE u (k INT, a INT, b INT) UNIQUE KEY(k)");
    client.ok("INSERT INTO u VALUES (1, 1, 1), (2, 2, 2)");
    client.ok("BEGIN");
    client.ok("UPDATE u SET a = 10 WHERE k = 1");
    client.ok("SAVEPOINT s");
    client.ok("UPDATE u SET a = 20 WHERE k = 2");
    client.ok("ROLLBACK TO s");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT k, a FROM u ORDER BY k"), ["1|10", "2|2"]);
}

#[test]
fn a_transaction_that_cannot_go_back_to_a_savepoint_stores_nothing() {
    let server = Server::with_settings(&[("large_load_bytes", "2000")]);
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("BEGIN");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("SAVEPOINT s");
    // They go to data files. A client that ignores the refusal stores nothing.
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, 'name', 1)")).collect();
    client.ok(&format!("INSERT INTO dt VALUES {}", rows.join(", ")));
    client.refused("ROLLBACK TO s", 1235, "can only be rolled back as a whole");
    client.refused("COMMIT", 1105, "the transaction was rolled back");
    client.ok("COMMIT");
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "0");
}

#[test]
fn a_compatible_session_creates_tables_of_mysql() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    assert!(client.error(PEOPLE).message.contains("the type LONGTEXT is not supported yet"));
    client.refused("SET mysql_ddl = 'mysql'", 1231, "doris or compat");
    client.ok("SET mysql_ddl = compat");
    let created = client.ok(PEOPLE);
    assert!(created.warnings >= 6, "{created:?}");
    let notes = client.rows("SHOW WARNINGS").join("\n");
    assert!(
        notes.contains("Note|1105|PRIMARY KEY (id) is UNIQUE KEY: a row replaces the one of its key"),
        "{notes}"
    );
    let inserted = client.ok("INSERT INTO people (name) VALUES ('a'), ('b')");
    assert!(inserted.last_insert_id > 0, "{inserted:?}");
    assert_eq!(client.value("SELECT LAST_INSERT_ID()"), inserted.last_insert_id.to_string());
    assert_eq!(client.value("SELECT MIN(id) = LAST_INSERT_ID() FROM people"), "1");
    client.ok("ALTER TABLE people CHANGE notes remarks LONGTEXT");
    client.ok("ALTER TABLE people ADD KEY by_at (at), ENGINE=InnoDB");
    client.ok("ALTER TABLE people ADD COLUMN score FLOAT(53) NULL, ALGORITHM=INPLACE");
    client.ok("UPDATE people SET remarks = 'x', score = 1.5 WHERE name = 'a'");
    assert_eq!(
        client.rows("SELECT name, remarks, score FROM people ORDER BY name"),
        ["a|x|1.5", "b|NULL|NULL"]
    );
    client.ok("CREATE TABLE texts (name TEXT, n INT UNSIGNED)");
    assert_eq!(client.rows("SHOW COLUMNS FROM texts")[1].split('|').nth(1), Some("bigint"));
    client.ok("DROP TABLE IF EXISTS people, texts, nothing CASCADE");
    assert!(client.rows("SHOW TABLES").is_empty());
}

#[test]
fn a_compatible_session_shows_keys_as_mysql_does() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (name VARCHAR(20), id BIGINT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id))");
    assert_eq!(
        client.rows("DESC t"),
        ["id|bigint|NO|PRI|NULL|auto_increment", "name|varchar(20)|YES||NULL|"]
    );
    let keys = client.rows("SHOW KEYS FROM t");
    assert!(keys[0].starts_with("t|0|PRIMARY|1|id|A|"), "{keys:?}");
    let of_schema = "WHERE table_schema = DATABASE() AND table_name = 't'";
    for (columns, table, expected) in [
        ("column_key", "columns", vec!["PRI", ""]),
        ("index_name, column_name", "statistics", vec!["PRIMARY|id"]),
        ("constraint_name, constraint_type", "table_constraints", vec!["PRIMARY|PRIMARY KEY"]),
        ("constraint_name, column_name", "key_column_usage", vec!["PRIMARY|id"]),
    ] {
        let sql = format!("SELECT {columns} FROM information_schema.{table} {of_schema}");
        assert_eq!(client.rows(&sql), expected, "{sql}");
    }
    // The key is the first column, so an INSERT without names would take values for others.
    client.refused("INSERT INTO t VALUES ('a', 1)", 1235, "name the columns, as in INSERT INTO t (id, name)");
    client.refused("INSERT INTO t SELECT 'a', 1", 1235, "name the columns");
    client.ok("INSERT INTO t (name, id) VALUES ('a', 1)");
    assert_eq!(client.rows("SELECT * FROM t"), ["1|a"]);
    assert!(!client.value("SHOW CREATE TABLE t").contains("columns_moved"));
    client.ok("DELETE x FROM t x WHERE x.id = 9");
    client.ok("DELETE FROM t");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0");
    client.ok("SET mysql_ddl = doris");
    assert!(client.rows("SHOW KEYS FROM t").is_empty(), "as in Doris");
    assert_eq!(client.rows("DESC t")[0], "id|bigint|No|true|NULL|AUTO_INCREMENT");
}

#[test]
fn a_compatible_session_lists_processes_as_mysql_does() {
    let server = Server::shared();
    let mut db = server.database();
    let listed = db.client.table("SHOW PROCESSLIST");
    assert_eq!(listed.columns[..3], ["CurrentConnected", "Id", "User"]);
    db.client.ok("SET mysql_ddl = compat");
    let listed = db.client.table("SHOW PROCESSLIST");
    assert_eq!(listed.columns, ["Id", "User", "Host", "db", "Command", "Time", "State", "Info"]);
    let id = db.client.value("SELECT CONNECTION_ID()");
    let rows = db.client.rows("SHOW FULL PROCESSLIST");
    let own = rows.iter().find(|row| row.starts_with(&format!("{id}|root|"))).expect("it is listed");
    assert!(
        own.contains(&format!("|{}|Query|", db.name)) && own.ends_with("|SHOW FULL PROCESSLIST"),
        "{own}"
    );
}

#[test]
fn databases_of_mysql_can_be_read() {
    let server = Server::shared();
    let mut client = server.connect();
    client.ok("USE mysql");
    assert_eq!(
        client.rows("SELECT Host, User, Select_priv FROM mysql.user WHERE User = 'root'"),
        ["%|root|Y"]
    );
    for table in ["tables_priv", "columns_priv", "proc", "general_log", "db"] {
        assert_eq!(client.value(&format!("SELECT COUNT(*) FROM mysql.{table}")), "0", "{table}");
    }
    assert!(client.rows("SHOW TABLES FROM mysql").contains(&"user".to_owned()));
    client.refused("SELECT * FROM mysql.nothing", 1146, "nothing");
    let version =
        "SELECT variable_value FROM PERFORMANCE_SCHEMA.global_variables WHERE variable_name = 'version'";
    assert_eq!(client.value(version), "5.7.99");
    assert_eq!(client.value("SELECT COUNT(*) FROM performance_schema.threads"), "0");
    client.refused("CREATE DATABASE performance_schema", 1007, "performance_schema");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM information_schema.FILES WHERE FILE_TYPE = 'UNDO LOG'"),
        "0"
    );
}

#[test]
fn the_reported_version_is_a_setting() {
    let settings = [("server_version", "8.0.36"), ("mysql_ddl", "compat"), ("like_ignores_case", "true")];
    let server = Server::with_settings(&settings);
    let mut db = server.database();
    assert_eq!(db.client.rows("SELECT VERSION(), @@version, @@mysql_ddl"), ["8.0.36|8.0.36|compat"]);
    assert_eq!(db.client.rows("SELECT @@like_ignores_case, 'a' LIKE 'A'"), ["1|1"]);
    db.client.ok(PEOPLE);
    let shown = MariaDb::new(&server).shows("status");
    assert!(shown.contains("8.0.36"), "{shown}");
}

#[test]
fn upserts_change_rows_that_exist_and_insert_others() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k INT, a INT, b VARCHAR(10) DEFAULT 'new') UNIQUE KEY(k)");
    client.ok("INSERT INTO t VALUES (1, 1, 'old')");
    client.ok("INSERT INTO t (k, a) VALUES (1, 10), (2, 20) ON DUPLICATE KEY UPDATE a = VALUES(a)");
    assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), ["1|10|old", "2|20|new"]);
    client.ok(
        "INSERT INTO t (k, a, b) VALUES (1, 11, 'x') AS n ON DUPLICATE KEY UPDATE a = n.a, b = n.b, k = k",
    );
    assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), ["1|11|x", "2|20|new"]);
    let refusals = [
        ("(a) VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)", "column 'k' is of the key"),
        (
            "(k, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a), b = VALUES(b)",
            "column 'b' has no new value",
        ),
    ];
    for (insert, reason) in refusals {
        client.refused(&format!("INSERT INTO t {insert}"), 1235, reason);
    }
    assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), ["1|11|x", "2|20|new"], "nothing was half done");
    // Values of columns that are not updated are those of new rows; the second row of a key updates the first.
    client.ok(
        "INSERT INTO t VALUES (1, 12, 'y'), (3, 30, 'z'), (3, 31, 'not') ON DUPLICATE KEY UPDATE a = VALUES(a)",
    );
    client.ok("INSERT INTO t (k, a) VALUES (2, 99), (4, 40) ON DUPLICATE KEY UPDATE k = k");
    let all = ["1|12|x", "2|20|new", "3|31|z", "4|40|new"];
    assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), all);
    client.ok("CREATE TABLE g (k INT, a INT, b INT, c INT AS (a + b)) UNIQUE KEY(k)");
    client.ok("INSERT INTO g (k, a, b) VALUES (1, 1, 1)");
    let insert = "INSERT INTO g (k, a, b) VALUES (1, 2, 3) ON DUPLICATE KEY UPDATE";
    client.refused(&format!("{insert} a = VALUES(a)"), 1235, "computed from column 'b'");
    client.ok(&format!("{insert} a = VALUES(a), b = VALUES(b)"));
    assert_eq!(client.rows("SELECT * FROM g"), ["1|2|3|5"]);
    client.ok("CREATE TABLE d (k INT, a INT)");
    client.ok("INSERT INTO d VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)");
    client.ok("INSERT INTO d VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)");
    assert_eq!(client.value("SELECT COUNT(*) FROM d"), "2", "without a key there is no duplicate");
}

#[test]
fn upserts_compute_values_from_rows_that_exist() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client.ok(
        "CREATE TABLE t (k INT NOT NULL, n BIGINT DEFAULT '0', s VARCHAR(20), at DATETIME) UNIQUE KEY(k)",
    );
    client.ok("INSERT INTO t VALUES (1, 10, 'old', '2024-01-01 00:00:00')");
    let insert = "INSERT INTO t (k, n, s) VALUES ('1', '5', 'new'), (2, 7, 'two') ON DUPLICATE KEY UPDATE";
    client.ok(&format!("{insert} n = n + VALUES(n), s = CONCAT(t.s, '+', VALUES(s))"));
    let all = "SELECT * FROM t ORDER BY k";
    assert_eq!(client.rows(all), ["1|15|old+new|2024-01-01 00:00:00", "2|7|two|NULL"]);
    // A column that is not inserted has its default in a new row.
    client.ok(
        "INSERT INTO t (k, s) VALUES (2, 'x'), (3, 'y') AS new ON DUPLICATE KEY UPDATE n = n + 1, s = new.s, k = k",
    );
    client.ok(
        r"INSERT INTO t (k, s) SELECT k + 2, 'no' FROM t WHERE k < 3 ON DUPLICATE KEY UPDATE s = 'C:\\x'",
    );
    let rows = ["1|15|old+new|2024-01-01 00:00:00", "2|8|x|NULL", r"3|0|C:\x|NULL", "4|0|no|NULL"];
    assert_eq!(client.rows(all), rows);
    for (rest, text) in [
        (
            "(k, n) VALUES (1, 1), ('1', 2) ON DUPLICATE KEY UPDATE n = n + 1",
            "two rows of the statement have one key",
        ),
        ("(k, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE k = k + 1", "column 'k' is of the key"),
        ("(k, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = (SELECT 1)", "with a subquery"),
    ] {
        client.refused(&format!("INSERT INTO t {rest}"), 1235, text);
    }
    client.refused("INSERT INTO t (k) VALUES (1) ON DUPLICATE KEY UPDATE m = 1", 1054, "m");
    client.refused("INSERT INTO t (k) VALUES (1) ON DUPLICATE KEY UPDATE n = m", 1054, "m");
    assert_eq!(client.rows(all), rows, "nothing was half done");
    client.ok("PREPARE s FROM 'INSERT INTO t (k, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE s = ?, n = n + ?'");
    client.ok("SET @k = 4, @n = 1, @s = 'given', @m = 100");
    client.ok("EXECUTE s USING @k, @n, @s, @m");
    assert_eq!(client.rows("SELECT n, s FROM t WHERE k = 4"), ["100|given"]);
    client.ok("BEGIN");
    for _ in 0..2 {
        client.ok("INSERT INTO t (k, n) VALUES (9, 1) ON DUPLICATE KEY UPDATE n = n + 10");
    }
    client.ok("COMMIT");
    assert_eq!(client.value("SELECT n FROM t WHERE k = 9"), "11");
    let count = |mut client: Client| {
        for _ in 0..10 {
            client.ok("INSERT INTO t (k, n) VALUES (5, 1) ON DUPLICATE KEY UPDATE n = n + 1");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let client = server.connect_to(&name);
            scope.spawn(move || count(client));
        }
    });
    assert_eq!(client.value("SELECT n FROM t WHERE k = 5"), "40", "no count is lost");
}

#[test]
fn tables_are_renamed_and_replaced_in_one_step() {
    let mut server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    let ids = |client: &mut Client, table: &str| client.rows(&format!("SELECT id FROM {table} ORDER BY id"));
    for (table, id) in [("a", 1), ("b", 2), ("c", 3)] {
        client.ok(&format!("CREATE TABLE {table} (id INT)"));
        client.ok(&format!("INSERT INTO {table} VALUES ({id})"));
    }
    client.ok("RENAME TABLE a TO x, b TO a, x TO b");
    assert_eq!((ids(client, "a"), ids(client, "b")), (vec!["2".to_owned()], vec!["1".to_owned()]));
    client.refused("RENAME TABLE a TO d, b TO c", 1050, "Table 'c' already exists");
    client.refused("RENAME TABLE a TO d, a TO e", 1146, "does not exist");
    assert_eq!(client.rows("SHOW TABLES"), ["a", "b", "c"], "nothing has changed");
    client.ok("ALTER TABLE a REPLACE WITH TABLE c");
    assert_eq!((ids(client, "a"), ids(client, "c")), (vec!["3".to_owned()], vec!["2".to_owned()]));
    client.ok("INSERT INTO a VALUES (4)");
    client.ok("ALTER TABLE a REPLACE WITH TABLE `b` PROPERTIES('swap' = 'False')");
    assert_eq!(ids(client, "a"), ["1"]);
    assert_eq!(client.rows("SHOW TABLES"), ["a", "c"]);
    client.refused(
        "ALTER TABLE a REPLACE WITH TABLE c PROPERTIES('swop' = 'true')",
        1105,
        "Unknown properties",
    );
    client.refused("ALTER TABLE a REPLACE WITH TABLE missing", 1146, "missing");
    let name = db.name.clone();
    drop(db);
    server.stop();
    server.start_again();
    let mut client = server.connect_to(&name);
    assert_eq!((ids(&mut client, "a"), ids(&mut client, "c")), (vec!["1".to_owned()], vec!["2".to_owned()]));
}

#[test]
fn locks_exclude_sessions_and_end_with_them() {
    let server = Server::shared();
    let mut one = server.connect();
    let mut other = server.connect();
    let name = format!("lock-{}", std::process::id());
    assert_eq!(one.value(&format!("SELECT GET_LOCK('{name}', 10)")), "1");
    let title = &one.table(&format!("SELECT GET_LOCK('{name}',10)")).columns[0];
    assert_eq!(title, &format!("GET_LOCK('{name}',10)"));
    assert_eq!(other.value(&format!("SELECT GET_LOCK('{name}', 0)")), "0");
    assert_eq!(other.value(&format!("SELECT IS_FREE_LOCK('{name}') AS free")), "0");
    assert_eq!(other.value(&format!("SELECT RELEASE_LOCK('{name}')")), "0");
    assert_eq!(other.value("SELECT RELEASE_LOCK('nobody has it')"), "NULL");
    assert_eq!(one.value("SELECT CONNECTION_ID()"), other.value(&format!("SELECT IS_USED_LOCK('{name}')")));
    assert_eq!(one.value(&format!("SELECT RELEASE_LOCK('{name}') + 1")), "2");
    other.send(&format!("SELECT GET_LOCK('{name}', 60)"));
    drop(one);
    assert_eq!(other.answered_rows(), ["1"], "the lock has ended with its session");
    other.refused("SELECT GET_LOCK('', 1)", 3057, "1 to 64 characters");
    other.refused("SELECT GET_LOCK('x')", 1582, "parameter count");
    other.refused("SELECT SLEEP(1) FROM information_schema.tables", 1235, "without FROM");
}

#[test]
fn sleeping_is_interrupted() {
    let server = Server::shared();
    let mut one = server.connect();
    assert_eq!(one.value("SELECT SLEEP(0)"), "0");
    one.ok("DO SLEEP(0), 1 + 1");
    let id = one.value("SELECT CONNECTION_ID()");
    one.send("SELECT SLEEP(600)");
    let begun = Instant::now();
    let mut killer = server.connect();
    crate::support::wait_until("it sleeps", || {
        killer.rows("SHOW PROCESSLIST").iter().any(|row| row.contains("SLEEP(600)"))
    });
    killer.ok(&format!("KILL QUERY {id}"));
    assert_eq!(one.answered_error().number, 1317);
    assert!(begun.elapsed().as_secs() < 600);
}

#[test]
fn rows_become_user_variables() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, NULL, 2)");
    client.ok("SELECT 7 INTO @n");
    client.ok("SELECT id INTO @id FROM dt WHERE id = 1");
    client.ok("SELECT id, name FROM dt WHERE id = 1 INTO @id, @name");
    assert_eq!(client.rows("SELECT @n, @id, @name"), ["7|1|a"]);
    client.ok("SELECT name FROM dt WHERE id = 2 INTO @name");
    assert_eq!(client.value("SELECT @name"), "NULL");
    client.refused("SELECT id FROM dt INTO @id", 1172, "more than one row");
    client.refused("SELECT id, name FROM dt WHERE id = 1 INTO @id", 1222, "different number of columns");
    assert_eq!(client.ok("SELECT id FROM dt WHERE id = 9 INTO @id").warnings, 1);
    assert_eq!(client.value("SELECT @id"), "1");
}

#[test]
fn tables_are_checked() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let name = &db.name;
    assert_eq!(client.rows("CHECK TABLE dt QUICK"), [format!("{name}.dt|check|status|OK")]);
    let missing = client.rows("CHECK TABLE dt, missing");
    assert!(missing[1].contains("|check|Error|") && missing[1].contains("missing"), "{missing:?}");
    assert_eq!(missing[2], format!("{name}.missing|check|status|Operation failed"));
    assert_eq!(client.rows("ANALYZE TABLE dt")[1], format!("{name}.dt|analyze|status|OK"));
    assert_eq!(client.rows("OPTIMIZE TABLE dt")[1], format!("{name}.dt|optimize|status|OK"));
}

/// A dump in its default form, with the locks that it takes, is restored into another database.
#[test]
fn a_dump_in_its_default_form_is_restored() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (id INT, name VARCHAR(20), v DOUBLE) UNIQUE KEY(id)");
    db.client.ok("INSERT INTO t VALUES (1, 'a''b\\\\', 1.5), (2, NULL, NULL)");
    db.client.ok("CREATE VIEW v AS SELECT id, name FROM t");
    let mut target = server.database();
    for form in [&[][..], &["--single-transaction"]] {
        let dump = Command::new("mariadb-dump")
            .args(["-h", "127.0.0.1", "-u", "root", "-P", &server.mysql_port().to_string()])
            .args(form)
            .arg(&db.name)
            .output()
            .expect("mariadb-dump is installed");
        assert!(dump.status.success(), "{form:?}: {}", String::from_utf8_lossy(&dump.stderr));
        let text = String::from_utf8(dump.stdout).expect("UTF-8");
        assert!(text.contains("LOCK TABLES `t` WRITE"), "{text}");
        MariaDb::new(&server).option(&target.name).shows(&text);
        let rows = "SELECT id, name, v FROM t ORDER BY id";
        assert_eq!(target.client.rows(rows), db.client.rows(rows), "{form:?}");
    }
}

#[test]
fn if_exists_and_if_not_exists_note_what_was_not_done() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id)");
    client.ok("CREATE VIEW v AS SELECT 1 AS one");
    for (sql, note) in [
        ("DROP TABLE IF EXISTS missing", format!("Note|1051|Unknown table '{name}.missing'")),
        ("DROP TABLE IF EXISTS v", format!("Note|1051|Unknown table '{name}.v'")),
        ("DROP VIEW IF EXISTS missing", format!("Note|1051|Unknown table '{name}.missing'")),
        (
            "CREATE TABLE IF NOT EXISTS t (id INT) DUPLICATE KEY(id)",
            "Note|1050|Table 't' already exists".to_owned(),
        ),
        ("CREATE TABLE IF NOT EXISTS t LIKE t", "Note|1050|Table 't' already exists".to_owned()),
        ("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a", "Note|1050|Table 't' already exists".to_owned()),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS two", "Note|1050|Table 'v' already exists".to_owned()),
        (
            &*format!("CREATE DATABASE IF NOT EXISTS {name}"),
            format!("Note|1007|Can't create database '{name}'; database exists"),
        ),
        (
            "DROP DATABASE IF EXISTS no_such_database",
            "Note|1008|Can't drop database 'no_such_database'; database doesn't exist".to_owned(),
        ),
    ] {
        assert_eq!(client.ok(sql).warnings, 1, "{sql}");
        assert_eq!(client.rows("SHOW WARNINGS"), [note], "{sql}");
    }
    assert_eq!(client.ok("DROP TABLE IF EXISTS gone, t, lost").warnings, 2);
    let notes =
        [format!("Note|1051|Unknown table '{name}.gone'"), format!("Note|1051|Unknown table '{name}.lost'")];
    assert_eq!(client.rows("SHOW WARNINGS"), notes);
    assert_eq!(client.ok("DROP VIEW IF EXISTS v").warnings, 0);
    assert_eq!(client.rows("SHOW WARNINGS"), [""; 0]);
}

#[test]
fn words_of_dumps_and_tools_are_taken() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT, name VARCHAR(9), id2 INT) DUPLICATE KEY(id)");
    let shown = client.rows(&format!("SHOW CREATE DATABASE IF NOT EXISTS {name}"));
    assert!(shown[0].contains("CREATE DATABASE"), "{shown:?}");
    let names = |rows: Vec<String>| {
        rows.iter().map(|row| row.split('|').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(client.rows("DESC t name")), ["name"]);
    assert_eq!(names(client.rows("DESCRIBE t 'id%';")), ["id", "id2"]);
    assert_eq!(names(client.rows("EXPLAIN t nothing")), [""; 0]);
    client.ok(
        "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW v AS SELECT id FROM t",
    );
    client.ok("CREATE DEFINER=CURRENT_USER() SQL SECURITY INVOKER VIEW w AS SELECT name FROM t");
    assert_eq!(client.rows("SELECT * FROM v"), [""; 0]);
    client.ok("DELETE LOW_PRIORITY QUICK FROM t WHERE id = 1 ORDER BY name DESC, id");
    assert_eq!(client.error("DELETE FROM t WHERE id = 1 ORDER BY id LIMIT 1").number, 1235);
    assert_eq!(client.error("DELETE IGNORE FROM t WHERE id = 1").number, 1235);
    assert_eq!(client.error("CREATE ALGORITHM=FAST VIEW x AS SELECT 1 AS a").number, 1064);
}

#[test]
fn indexes_of_mysql_are_kept_by_name_or_left_out_with_a_note() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT, a INT, b VARCHAR(20))");
    client.refused("CREATE UNIQUE INDEX u ON t (a)", 1235, "CREATE UNIQUE INDEX is not supported yet");
    client.refused("ALTER TABLE t RENAME INDEX x TO y", 1235, "RENAME INDEX is not supported yet");
    client.refused("DROP INDEX x ON t", 1105, "index x does not exist");
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE UNIQUE INDEX u ON t (a)");
    let notes = client.rows("SHOW WARNINGS");
    assert!(
        notes.contains(&"Note|1105|UNIQUE INDEX u is left out: it is not checked".to_owned()),
        "{notes:?}"
    );
    for left_out in [
        "CREATE INDEX two USING BTREE ON t (a, b)",
        "CREATE INDEX part ON t (b(10))",
        "CREATE INDEX down ON t (a DESC) USING BTREE ALGORITHM = INPLACE LOCK = NONE",
        "CREATE FULLTEXT INDEX f ON t (b)",
    ] {
        assert!(client.ok(left_out).warnings > 0, "{left_out}");
    }
    let names = |client: &mut Client| -> Vec<String> {
        let shown = client.rows("SHOW INDEX FROM t");
        shown.iter().filter_map(|row| row.split('|').nth(2).map(str::to_owned)).collect()
    };
    assert!(names(client).is_empty());
    client.ok("CREATE INDEX by_a ON t (a) USING BTREE");
    assert_eq!(names(client), ["by_a"]);
    let created = client.rows("SHOW CREATE TABLE t").join("\n");
    assert!(created.contains("KEY `by_a` (`a`)") && !created.contains("INVERTED"), "{created}");
    client.ok("ALTER TABLE t RENAME INDEX by_a TO of_a");
    client.ok("ALTER TABLE t RENAME INDEX u TO v");
    assert_eq!(names(client), ["of_a"]);
    for dropped in ["DROP INDEX u ON t", "ALTER TABLE t DROP INDEX two", "ALTER TABLE t DROP KEY part"] {
        assert!(client.ok(dropped).warnings > 0, "{dropped}");
    }
    assert_eq!(names(client), ["of_a"]);
    client.ok("ALTER TABLE t DROP KEY of_a");
    assert!(names(client).is_empty());
}

#[test]
fn keys_of_mysql_are_shown_where_clients_look_for_them() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b JSON, KEY by_a (a), KEY again (a), KEY by_b (b))");
    let listed = "SELECT index_name, non_unique, column_name, nullable FROM information_schema.statistics \
                  WHERE table_schema = DATABASE() ORDER BY 1";
    // Of two over one column the first is kept, as Doris has one; JSON has none.
    assert_eq!(client.rows(listed), ["PRIMARY|0|id|", "by_a|1|a|"]);
    assert!(
        client.rows("SHOW KEYS FROM t")[1].starts_with("t|1|by_a|1|a|A|"),
        "{:?}",
        client.rows("SHOW KEYS FROM t")
    );
    client.ok("ALTER TABLE t ADD KEY by_id (id), ADD INDEX more (a)");
    assert_eq!(client.rows(listed), ["PRIMARY|0|id|", "by_a|1|a|", "by_id|1|id|"]);
    client.refused("ALTER TABLE t ADD KEY by_a (id)", 1105, "already exist");
    client.refused("CREATE TABLE u (id INT PRIMARY KEY, KEY k (nothing))", 1105, "nothing");
    client.ok("ALTER TABLE t DROP KEY by_a, DROP KEY again");
    assert_eq!(client.rows(listed), ["PRIMARY|0|id|", "by_id|1|id|"]);
}

#[test]
fn a_column_gets_another_definition_and_another_default_at_once() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT DEFAULT 5, gone INT DEFAULT 1)");
    client.ok("INSERT INTO t (id) VALUES (1)");
    client.ok("ALTER TABLE t MODIFY name VARCHAR(200) DEFAULT 'none'");
    client.ok("ALTER TABLE t CHANGE n number VARCHAR(20) DEFAULT 'seven'");
    client.ok("ALTER TABLE t MODIFY gone INT");
    client.ok("ALTER TABLE t MODIFY gone INT");
    client.ok("INSERT INTO t (id) VALUES (2)");
    assert_eq!(client.rows("SELECT * FROM t ORDER BY id"), ["1|NULL|5|1", "2|none|seven|NULL"]);
    assert_eq!(client.rows("DESC t")[2], "number|varchar(20)|YES||seven|");
    client.refused(
        "ALTER TABLE t MODIFY gone INT DEFAULT 'x'",
        1105,
        "Invalid default value for column 'gone'",
    );
    assert_eq!(client.rows("DESC t")[3], "gone|int|YES||NULL|", "nothing has changed");
}

#[test]
fn a_compatible_session_gets_mysqls_numbers_for_bad_values() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (n TINYINT NOT NULL, s VARCHAR(3))");
    for (sql, number) in [
        ("INSERT INTO t VALUES (1, 'abcd')", 1406),
        ("INSERT INTO t VALUES (NULL, 'a')", 1048),
        ("INSERT INTO t VALUES ('x', 'a')", 1366),
        ("INSERT INTO t VALUES (128, 'a')", 1264),
        ("INSERT INTO t VALUES (1, 'a'), ('-129', 'a')", 1264),
        ("INSERT INTO t VALUES (9999999999999999999999999999999999999999, 'a')", 1264),
        ("INSERT INTO t VALUES (1e60, 'a')", 1264),
    ] {
        client.ok("SET mysql_ddl = doris");
        client.refused(sql, 1105, "Insert has filtered data in strict mode");
        client.ok("SET mysql_ddl = compat");
        client.refused(sql, number, "Insert has filtered data in strict mode");
        client.ok("BEGIN");
        client.refused(sql, number, "Insert has filtered data in strict mode");
        client.ok("ROLLBACK");
    }
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0");
}

/// Drivers show the text to users, and frameworks look for its words.
#[test]
fn a_number_out_of_range_is_named_as_by_mysql() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (id BIGINT NOT NULL, n TINYINT, d DECIMAL(4, 2), PRIMARY KEY (id))");
    for (sql, named) in [
        ("INSERT INTO t VALUES (1, 1, 1), (2, 300, 1)", "Out of range value for column 'n' at row 2"),
        ("INSERT INTO t VALUES (9223372036854775808, 1, 1)", "Out of range value for column 'id' at row 1"),
        ("INSERT INTO t VALUES (1, 1, 100)", "Out of range value for column 'd' at row 1"),
    ] {
        client.refused(sql, 1264, named);
    }
    client.ok("PREPARE s FROM 'INSERT INTO t VALUES (?, ?, 1)'");
    client.ok("SET @id = 1, @n = 200");
    client.refused("EXECUTE s USING @id, @n", 1264, "Out of range value for column 'n' at row 1");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0");
}

/// Metabase reads which tables its user may write from the statements.
#[test]
fn a_compatible_session_gets_grants_as_statements() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE DATABASE shop");
    root.ok("CREATE TABLE shop.t (a INT, b INT, c INT) DUPLICATE KEY(a)");
    root.ok("CREATE USER 'reader'@'%' IDENTIFIED BY 'x'");
    root.ok("SET mysql_ddl = compat");
    let own = root.table("SHOW GRANTS FOR CURRENT_USER()");
    assert_eq!(own.columns, ["Grants for root@%"]);
    assert_eq!(root.rows("SHOW GRANTS"), ["GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"]);
    let of_reader = "SHOW GRANTS FOR 'reader'@'%'";
    assert_eq!(root.rows(of_reader), ["GRANT USAGE ON *.* TO `reader`@`%`"]);
    root.ok("GRANT SELECT_PRIV ON shop.* TO 'reader'@'%'");
    root.ok("GRANT LOAD_PRIV, DROP_PRIV ON shop.t TO 'reader'@'%'");
    root.ok("GRANT SELECT_PRIV(a, b) ON shop.u TO 'reader'@'%'");
    assert_eq!(
        root.rows(of_reader),
        [
            "GRANT USAGE ON *.* TO `reader`@`%`",
            "GRANT SELECT ON `shop`.* TO `reader`@`%`",
            "GRANT INSERT, UPDATE, DELETE, DROP ON `shop`.`t` TO `reader`@`%`",
            "GRANT SELECT (`a`, `b`) ON `shop`.`u` TO `reader`@`%`",
        ]
    );
    root.ok("SET mysql_ddl = doris");
    assert_eq!(root.table(of_reader).columns[0], "UserIdentity");
}

#[test]
fn an_insert_may_sleep_and_lock() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("CREATE TABLE n (a INT, b INT)");
    let begun = Instant::now();
    client.ok("INSERT INTO n VALUES (SLEEP(0.2), 1), (GET_LOCK('of_insert', 1), 2)");
    client.ok("INSERT INTO n SELECT SLEEP(0.2), 3");
    assert!(begun.elapsed().as_millis() >= 400, "{:?}", begun.elapsed());
    client.ok("SYNC");
    assert_eq!(client.rows("SELECT a, b FROM n ORDER BY b"), ["0|1", "1|2", "0|3"]);
    assert_eq!(client.value("SELECT RELEASE_LOCK('of_insert')"), "1");
    client.refused(
        "INSERT INTO n SELECT SLEEP(1), id FROM dt",
        1235,
        "SLEEP in a query of tables is not supported",
    );
}

#[test]
fn a_session_is_closed_when_it_is_idle_for_its_wait_timeout() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    assert_eq!(client.value("SELECT @@wait_timeout"), "28800");
    client.refused("SET wait_timeout = 0", 1231, "wait_timeout");
    client.ok("SET wait_timeout = 1");
    // A statement may take longer.
    assert_eq!(client.value("SELECT SLEEP(1.5)"), "0");
    let id = client.value("SELECT CONNECTION_ID()");
    let mut other = server.connect_to(&db.name);
    let listed = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    wait_until("it is disconnected", || other.value(&listed) == "0");
}

/// Connector/J writes these for a result that it can update.
#[test]
fn an_update_may_give_a_key_the_value_that_it_has() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT, part VARCHAR(10), name VARCHAR(20)) UNIQUE KEY(id, part)");
    client.ok("INSERT INTO t VALUES (1, 'a', 'one'), (2, 'a', 'two'), (-3, 'b', 'three')");
    for (sql, rows) in [
        ("UPDATE t SET id = 1, name = 'x' WHERE id <=> 1", 1),
        (
            "UPDATE t SET name = 'y', t.part = 'a', id = (2) WHERE (2 = t.id AND `part` <=> 'a') AND name = 'two'",
            1,
        ),
        ("UPDATE t AS u SET u.id = -3, u.name = 'z' WHERE u.id = -3", 1),
        ("UPDATE t SET id = id, name = 'none' WHERE id = 9", 0),
    ] {
        assert_eq!(client.ok(sql).affected_rows, rows, "{sql}");
    }
    let rows = ["-3|b|z", "1|a|x", "2|a|y"];
    assert_eq!(client.rows("SELECT * FROM t ORDER BY id"), rows);
    for sql in [
        "UPDATE t SET id = 2, name = 'q' WHERE id = 1",
        "UPDATE t SET id = 1, name = 'q' WHERE id = 1 OR name = 'y'",
        "UPDATE t SET id = 1, part = 'b', name = 'q' WHERE id = 1",
        "UPDATE t SET id = 1, name = 'q' WHERE id >= 1",
        "UPDATE t SET id = 1 WHERE id = 1",
    ] {
        client.refused(sql, 1105, "Only value columns of unique table could be updated");
    }
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let sql = "UPDATE t SET name = ?, id = ?, part = ? WHERE id <=> ? AND part <=> ? AND name <> ?";
    let statement = prepared.prepare(sql).expect("prepared");
    let (text, int) = (|text: &str| Value::Text(text.to_owned()), Value::BigInt);
    let params = [text("p"), int(1), text("a"), int(1), text("a"), text("none")];
    prepared.execute(statement, &params).expect("executed");
    let other = [text("p"), int(2), text("a"), int(1), text("a"), text("none")];
    let refused = prepared.execute(statement, &other).expect_err("it is another key");
    assert!(refused.to_string().contains("Only value columns of unique table"), "{refused}");
    assert_eq!(db.client.rows("SELECT * FROM t ORDER BY id"), ["-3|b|z", "1|a|p", "2|a|y"]);
}

#[test]
fn a_compatible_session_counts_rows_that_change() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    let columns = "(id INT, n INT, name VARCHAR(20), at DATETIME(3), d DECIMAL(8, 2))";
    for (table, keys) in [("d", "DUPLICATE KEY(id)"), ("u", "UNIQUE KEY(id)")] {
        client.ok("SET mysql_ddl = doris");
        client.ok(&format!("CREATE TABLE {table} {columns} {keys}"));
        client.ok(&format!(
            "INSERT INTO {table} VALUES (1, 1, 'a', '2024-01-01', 1), (2, 1, 'b', NULL, 2), (3, 2, NULL, NULL, 3)"
        ));
        let mut update =
            |sql: &str| client.ok(&sql.replace("UPDATE t", &format!("UPDATE {table}"))).affected_rows;
        assert_eq!(update("UPDATE t SET n = 1"), 3, "Doris counts found rows");
        update("UPDATE t SET n = 2 WHERE id = 3");
        client.ok("SET mysql_ddl = compat");
        let mut update =
            |sql: &str| client.ok(&sql.replace("UPDATE t", &format!("UPDATE {table}"))).affected_rows;
        for (sql, rows) in [
            ("UPDATE t SET n = 1", 1),
            ("UPDATE t SET n = '1', d = d + 0 WHERE id > 0", 0),
            ("UPDATE t SET name = 'a'", 2),
            ("UPDATE t SET name = DEFAULT WHERE id = 3", 1),
            ("UPDATE t SET name = NULL, at = NULL WHERE id = 3", 0),
            ("UPDATE t SET at = '2024-01-01 00:00:00'", 2),
            ("UPDATE t SET name = 7, d = 1.001 WHERE id = 1", 1),
            ("UPDATE t SET name = '7' WHERE id = 1", 0),
            ("UPDATE t SET n = n + 1 WHERE id = 99", 0),
        ] {
            assert_eq!(update(sql), rows, "{table}: {sql}");
        }
    }
    client.ok("BEGIN");
    client.ok("INSERT INTO u VALUES (5, 5, 'e', NULL, 5)");
    assert_eq!(client.ok("UPDATE u SET n = 5 WHERE id IN (1, 5)").affected_rows, 1);
    client.ok("ROLLBACK");
}
