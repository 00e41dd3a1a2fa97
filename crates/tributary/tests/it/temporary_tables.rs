//! CREATE TEMPORARY TABLE: tables of one session.

use crate::support::{Server, wait_until};

#[test]
fn a_temporary_table_is_of_its_session_alone() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, v VARCHAR(9)) UNIQUE KEY(id)");
    client.ok("INSERT INTO t VALUES (1, 'kept'), (2, 'kept')");
    client.ok("CREATE TEMPORARY TABLE t (id INT NOT NULL, n INT) UNIQUE KEY(id)");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO t VALUES (7, 70), (8, 80)");
    assert_eq!(client.rows("SELECT t.id, n FROM t ORDER BY id"), ["7|70", "8|80"], "without a group's wait");
    assert_eq!(other.rows("SELECT id, v FROM t ORDER BY id"), ["1|kept", "2|kept"]);
    client.ok("UPDATE t SET n = n + 1 WHERE id = 7");
    client.ok("DELETE FROM t WHERE id = 8");
    let joined = format!("SELECT x.n, COUNT(*) FROM t x JOIN {}.t y ON x.id = y.id GROUP BY x.n", db.name);
    assert_eq!(client.rows(&joined), ["71|1"]);
    assert_eq!(client.rows("DESC t")[1], "n|int|Yes|false|NULL|NONE");
    let shown = client.rows("SHOW CREATE TABLE t").join("\n");
    assert!(shown.starts_with("t|CREATE TEMPORARY TABLE `t` ("), "{shown}");
    assert_eq!(client.rows("SHOW TABLES"), ["t"], "the other one");
    let columns =
        "SELECT COLUMN_NAME FROM information_schema.columns WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1";
    assert_eq!(client.rows(columns), ["id", "v"], "as in MySQL");
    client.refused("CREATE TEMPORARY TABLE t (a INT)", 1050, "Table 't' already exists");
    client.ok("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)");
    assert_eq!(client.rows("SHOW WARNINGS"), ["Note|1050|Table 't' already exists"]);
    for other_table in ["ALTER TABLE t ADD COLUMN c INT", "RENAME TABLE t TO u"] {
        client.refused(other_table, 1235, "of the temporary table 't' is not supported");
    }
    client.refused("CREATE VIEW w AS SELECT n FROM t", 1054, "n");
    client.ok("TRUNCATE TABLE t");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0");
    client.ok("CREATE TABLE u LIKE t");
    client.ok("INSERT INTO u VALUES (1, 10)");
    client.ok("SYNC");
    assert_eq!(other.rows("SELECT id, n FROM u"), ["1|10"], "a table like a temporary one is none");
    client.ok("DROP TABLE t");
    assert_eq!(client.rows("SELECT id, v FROM t ORDER BY id"), ["1|kept", "2|kept"]);
    client.refused("DROP TEMPORARY TABLE t", 1051, "t");
    client.ok("DROP TEMPORARY TABLE IF EXISTS t");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "2", "it is not temporary");
}

#[test]
fn temporary_tables_come_from_queries_and_others_and_go_with_their_session() {
    let server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, v VARCHAR(9))");
    client.ok("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    client.ok("CREATE TEMPORARY TABLE x AS SELECT id * 10 AS id, v FROM t");
    client.ok("CREATE TEMPORARY TABLE y LIKE t");
    client.ok("INSERT INTO y SELECT id, v FROM x WHERE id > 10");
    assert_eq!(
        client.rows("SELECT * FROM x UNION ALL SELECT * FROM y ORDER BY id, v"),
        ["10|a", "20|b", "20|b"]
    );
    client.ok("PREPARE s FROM 'SELECT COUNT(*) FROM x'");
    assert_eq!(client.rows("EXECUTE s"), ["2"]);
    client.ok("DROP TEMPORARY TABLE x, y");
    client.refused("SELECT * FROM x", 1146, "x");
    client.refused("EXECUTE s", 1146, "x");
    for number in 0..64 {
        client.ok(&format!("CREATE TEMPORARY TABLE x{number} (id INT)"));
    }
    client.refused("CREATE TEMPORARY TABLE one_more (id INT)", 1235, "at most 64 temporary tables");
    let tables = server.data().join("tables").join(&db.name);
    let directories = || std::fs::read_dir(&tables).map_or(0, Iterator::count);
    assert!(directories() >= 65, "{}", directories());
    drop(db);
    wait_until("the tables of the session are gone", || directories() == 1);
}

#[test]
fn a_transaction_goes_on_beside_temporary_tables() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, v VARCHAR(9)) UNIQUE KEY(id)");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    client.ok("CREATE TEMPORARY TABLE x AS SELECT id + 10 AS id, v FROM t");
    client.ok("INSERT INTO x VALUES (20, 'c')");
    client.ok("INSERT INTO t SELECT id, v FROM x");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "5", "with the rows of the transaction");
    assert_eq!(other.value("SELECT COUNT(*) FROM t"), "0");
    client.ok("ROLLBACK");
    assert_eq!(
        client.rows("SELECT id FROM x ORDER BY id"),
        ["11", "12"],
        "the row that was inserted is gone"
    );
    assert_eq!(other.value("SELECT COUNT(*) FROM t"), "0");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (1, 'a')");
    client.ok("DROP TEMPORARY TABLE x");
    client.ok("ROLLBACK");
    assert_eq!(other.value("SELECT COUNT(*) FROM t"), "0", "dropping one commits nothing");
}

#[test]
fn a_crash_leaves_no_temporary_tables() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (id INT)");
    db.client.ok("CREATE TEMPORARY TABLE x (id INT)");
    db.client.ok("INSERT INTO x VALUES (1)");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SHOW TABLES"), ["t"]);
    client.refused("SELECT * FROM x", 1146, "x");
    let tables = server.data().join("tables").join(&db.name);
    wait_until("its files are gone", || std::fs::read_dir(&tables).map_or(0, Iterator::count) == 1);
}
