//! Transactions of several statements: what they read, and what they leave.

use crate::support::{Client, Server};

/// Runs the statement and returns how many rows it has changed.
fn changed(client: &mut Client, sql: &str) -> u64 {
    client.ok(sql).affected_rows
}

#[test]
fn a_transaction_reads_its_own_rows_and_nobody_else_does_before_its_commit() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE a (id INT, name VARCHAR(20))");
    client.ok("INSERT INTO a VALUES (1, 'before')");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (7, 'x')");
    assert_eq!(client.rows("SELECT name FROM a WHERE id = 7"), ["x"]);
    client.ok("INSERT INTO a SELECT id + 1, CONCAT(name, '!') FROM a WHERE id >= 7");
    assert_eq!(client.rows("SELECT * FROM a ORDER BY id"), ["1|before", "7|x", "8|x!"]);
    assert_eq!(
        client.value("SELECT COUNT(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM a) AS both_of_them"),
        "6"
    );
    client.ok("CREATE TABLE IF NOT EXISTS unrelated (a INT)");
    // DDL has committed.
    assert_eq!(other.value("SELECT COUNT(*) FROM a"), "3");
    client.ok("CREATE VIEW v AS SELECT id FROM a");
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (9, 'y')");
    other.ok("INSERT INTO a VALUES (10, 'other')");
    other.ok("SYNC");
    assert_eq!(
        client.rows("SELECT id FROM v ORDER BY id"),
        ["1", "7", "8", "9", "10"],
        "committed rows, too"
    );
    assert_eq!(other.rows("SELECT id FROM v ORDER BY id"), ["1", "7", "8", "10"]);
    client.ok("ROLLBACK");
    assert_eq!(client.rows("SELECT id FROM v ORDER BY id"), ["1", "7", "8", "10"]);
}

#[test]
fn statements_change_rows_that_were_inserted_in_their_transaction() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT, s VARCHAR(10) DEFAULT 'd') UNIQUE KEY(k)");
    client.ok("INSERT INTO e VALUES (1, 1, 'one'), (2, 2, 'two')");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO e VALUES (9, 9, 'nine'), (5, 5, 'five')");
    assert_eq!(
        changed(client, "UPDATE e SET n = 6 WHERE k = 1"),
        1,
        "the table is updated for the first time"
    );
    assert_eq!(changed(client, "UPDATE e SET n = n + 1 WHERE k IN (1, 9)"), 2);
    assert_eq!(changed(client, "DELETE FROM e WHERE k = 5"), 1);
    assert_eq!(changed(client, "DELETE FROM e WHERE k = 2"), 1);
    assert_eq!(changed(client, "UPDATE e SET n = 0 WHERE k = 5"), 0, "it is deleted");
    let rows = ["1|7|one", "9|10|nine"];
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), rows);
    client.ok("INSERT INTO e (k, n) VALUES (9, 90), (3, 3) ON DUPLICATE KEY UPDATE n = VALUES(n)");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["1|7|one", "3|3|d", "9|90|nine"]);
    assert_eq!(changed(client, "INSERT IGNORE INTO e VALUES (3, 33, 'x'), (4, 4, 'four')"), 1);
    assert_eq!(other.rows("SELECT * FROM e ORDER BY k"), ["1|1|one", "2|2|two"]);
    client.ok("COMMIT");
    let rows = ["1|7|one", "3|3|d", "4|4|four", "9|90|nine"];
    assert_eq!(other.rows("SELECT * FROM e ORDER BY k"), rows);
    client.ok("BEGIN");
    assert_eq!(changed(client, "DELETE FROM e WHERE k > 3"), 2);
    assert_eq!(client.value("SELECT COUNT(*) FROM e"), "2");
    client.ok("ROLLBACK");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), rows);
}

#[test]
fn rows_of_an_aggregate_key_are_folded_with_those_of_the_transaction() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE agg (k INT, n INT SUM, m INT MAX) AGGREGATE KEY(k)");
    client.ok("INSERT INTO agg VALUES (1, 1, 1)");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO agg VALUES (1, 2, 5), (2, 2, 2)");
    assert_eq!(client.rows("SELECT * FROM agg ORDER BY k"), ["1|3|5", "2|2|2"]);
    client.ok("INSERT INTO agg VALUES (1, 10, 3)");
    assert_eq!(client.rows("SELECT * FROM agg ORDER BY k"), ["1|13|5", "2|2|2"]);
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT * FROM agg ORDER BY k"), ["1|13|5", "2|2|2"], "nothing is counted twice");
}

#[test]
fn a_failed_statement_and_a_savepoint_take_their_rows_out_of_what_is_read() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT NOT NULL) UNIQUE KEY(k)");
    client.ok("INSERT INTO e VALUES (1, 1)");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO e VALUES (2, 2)");
    client.error("INSERT INTO e VALUES (3, 3), (4, NULL)");
    assert_eq!(client.rows("SELECT k FROM e ORDER BY k"), ["1", "2"]);
    client.ok("SET enable_unique_key_partial_update = true");
    client.refused("INSERT INTO e (k) VALUES (8)", 1105, "should have default value or be nullable");
    assert_eq!(
        client.rows("SELECT k FROM e ORDER BY k"),
        ["1", "2"],
        "a key of which it is not known what it has"
    );
    client.ok("SET enable_unique_key_partial_update = false");
    client.ok("SAVEPOINT s");
    assert_eq!(changed(client, "UPDATE e SET n = n * 10"), 2);
    client.ok("INSERT INTO e VALUES (5, 5)");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["1|10", "2|20", "5|5"]);
    client.ok("ROLLBACK TO s");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["1|1", "2|2"]);
    assert_eq!(changed(client, "UPDATE e SET n = 3 WHERE k = 2"), 1);
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["1|1", "2|3"]);
}

#[test]
fn a_commit_fails_if_others_have_deleted_an_updated_row_meanwhile() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT, s VARCHAR(5)) UNIQUE KEY(k)");
    client.ok("INSERT INTO e VALUES (1, 1, 'a'), (2, 2, 'b')");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO e VALUES (3, 3, 'c')");
    assert_eq!(changed(client, "UPDATE e SET n = 30 WHERE k = 3"), 1);
    assert_eq!(changed(client, "UPDATE e SET n = 20 WHERE k = 2"), 1);
    other.ok("INSERT INTO e VALUES (4, 4, 'd')");
    other.ok("SYNC");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["1|1|a", "2|20|b", "3|30|c", "4|4|d"]);
    client.ok("BEGIN");
    assert_eq!(changed(client, "UPDATE e SET n = 11 WHERE k = 1"), 1);
    assert_eq!(changed(&mut other, "DELETE FROM e WHERE k = 1"), 1);
    client.refused("COMMIT", 1105, "the row with key=[1] was deleted while the UPDATE ran");
    assert_eq!(client.rows("SELECT * FROM e ORDER BY k"), ["2|20|b", "3|30|c", "4|4|d"]);
}

#[test]
fn a_transaction_of_several_tables_is_committed_or_rolled_back_as_a_whole() {
    const ALL: &str = "SELECT (SELECT COUNT(*) FROM a), (SELECT SUM(n) FROM e), (SELECT SUM(n) FROM agg)";
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE a (id INT, name VARCHAR(20))");
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT, s VARCHAR(5)) UNIQUE KEY(k)");
    client.ok("CREATE TABLE agg (k INT, n INT SUM) AGGREGATE KEY(k)");
    client.ok("INSERT INTO e VALUES (1, 1, 'a')");
    client.ok("SYNC");
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (1, 'x')");
    client.ok("INSERT INTO agg SELECT id, 10 FROM a");
    client.ok("SAVEPOINT s");
    assert_eq!(changed(client, "UPDATE e SET n = 5 WHERE k = 1"), 1);
    client.ok("INSERT INTO a VALUES (2, 'y')");
    client.ok("INSERT INTO agg VALUES (1, 5), (2, 2)");
    assert_eq!(client.rows(ALL), ["2|5|17"]);
    assert_eq!(
        client.rows("SELECT a.name, agg.n FROM a JOIN agg ON a.id = agg.k ORDER BY 1"),
        ["x|15", "y|2"]
    );
    client.ok("ROLLBACK TO s");
    assert_eq!(client.rows(ALL), ["1|1|10"]);
    client.ok("INSERT INTO e VALUES (2, 2, 'b')");
    assert_eq!(other.rows(ALL), ["0|1|NULL"]);
    client.ok("COMMIT");
    assert_eq!(other.rows(ALL), ["1|3|10"]);
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (3, 'z')");
    client.ok("DELETE FROM e WHERE k = 2");
    client.ok("ROLLBACK");
    assert_eq!(client.rows(ALL), ["1|3|10"]);
    // One of them can't be committed, so none is.
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (4, 'w')");
    client.ok("UPDATE e SET n = 9 WHERE k = 1");
    other.ok("DELETE FROM e WHERE k = 1");
    client.refused("COMMIT", 1105, "the row with key=[1] was deleted");
    assert_eq!(client.rows(ALL), ["1|2|10"]);
    assert_eq!(client.value("SELECT COUNT(*) FROM a WHERE id = 4"), "0");
}

#[test]
fn a_transaction_of_several_tables_and_its_label_survive_a_kill() {
    let mut server = Server::with_settings(&[("large_load_bytes", "20000")]);
    let db = server.database();
    let (name, mut client) = (db.name.clone(), db.client);
    client.ok("CREATE TABLE a (id INT)");
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT, s VARCHAR(200)) UNIQUE KEY(k)");
    client.ok("BEGIN WITH LABEL both");
    client.ok("INSERT INTO a VALUES (1), (2)");
    // They are in data files.
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, 1, '{}')", "x".repeat(100))).collect();
    client.ok(&format!("INSERT INTO e VALUES {}", rows.join(", ")));
    assert_eq!(client.ok("COMMIT").label(), "both");
    client.ok("BEGIN");
    client.ok("INSERT INTO a VALUES (3)");
    client.ok("INSERT INTO e VALUES (1000, 1, 'x')");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&name);
    assert_eq!(client.rows("SELECT (SELECT COUNT(*) FROM a), (SELECT COUNT(*) FROM e)"), ["2|500"]);
    let used = client.error("INSERT INTO a WITH LABEL both VALUES (9)");
    assert!(used.message.contains("Label [both] has already been used"), "{used:?}");
}

#[test]
fn a_transaction_whose_rows_are_in_files_refuses_to_read_them() {
    let server = Server::with_settings(&[("large_load_bytes", "20000")]);
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE a (id INT, name VARCHAR(200))");
    client.ok("CREATE TABLE b (id INT)");
    client.ok("BEGIN");
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, '{}')", "x".repeat(100))).collect();
    client.ok(&format!("INSERT INTO a VALUES {}", rows.join(", ")));
    client.refused(
        "SELECT COUNT(*) FROM a",
        1235,
        "its rows are in data files, and can't be read before COMMIT",
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM b"), "0", "other tables can");
    client.ok("COMMIT");
    assert_eq!(client.value("SELECT COUNT(*) FROM a"), "500");
}

#[test]
fn without_autocommit_statements_are_of_one_transaction_until_commit_or_rollback() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE e (k INT NOT NULL, n INT, s VARCHAR(5)) UNIQUE KEY(k)");
    client.ok("CREATE TABLE d (id INT)");
    // As in Doris, the variable has no effect by default.
    client.ok("SET autocommit = 0");
    client.ok("INSERT INTO e VALUES (1, 1, 'a')");
    client.ok("ROLLBACK");
    assert_eq!(client.value("SELECT COUNT(*) FROM e"), "1");
    client.ok("SET mysql_ddl = compat");
    client.ok("INSERT INTO e VALUES (2, 2, 'b')");
    client.ok("INSERT INTO d VALUES (1 + 1)");
    assert_eq!(changed(client, "UPDATE e SET n = 10"), 2);
    assert_eq!(client.rows("SELECT k, n FROM e ORDER BY k"), ["1|10", "2|10"]);
    assert_eq!(other.rows("SELECT (SELECT SUM(n) FROM e), (SELECT COUNT(*) FROM d)"), ["1|0"]);
    client.ok("ROLLBACK");
    assert_eq!(client.rows("SELECT (SELECT SUM(n) FROM e), (SELECT COUNT(*) FROM d)"), ["1|0"]);
    client.ok("INSERT INTO d VALUES (2)");
    client.ok("SAVEPOINT s");
    client.ok("INSERT INTO d VALUES (3)");
    client.ok("ROLLBACK TO SAVEPOINT s");
    client.ok("COMMIT");
    assert_eq!(other.rows("SELECT id FROM d"), ["2"]);
    // The next one begins. A savepoint may be its first statement.
    client.ok("SAVEPOINT t");
    client.ok("INSERT INTO d VALUES (4)");
    client.ok("ROLLBACK TO t");
    client.ok("INSERT INTO d VALUES (5)");
    client.ok("CREATE TABLE f (id INT)");
    assert_eq!(other.rows("SELECT id FROM d ORDER BY id"), ["2", "5"], "DDL commits");
    client.ok("INSERT INTO d VALUES (6)");
    client.ok("BEGIN");
    client.ok("ROLLBACK");
    assert_eq!(other.rows("SELECT id FROM d ORDER BY id"), ["2", "5", "6"], "BEGIN commits");
    client.ok("INSERT INTO d VALUES (7)");
    client.ok("SET autocommit = 1");
    client.ok("ROLLBACK");
    client.ok("INSERT INTO d VALUES (8)");
    client.ok("SYNC");
    assert_eq!(
        other.rows("SELECT id FROM d ORDER BY id"),
        ["2", "5", "6", "7", "8"],
        "SET autocommit commits"
    );
    client.ok("SET autocommit = 0");
    client.ok("INSERT INTO d VALUES (9)");
    drop(db.client);
    let mut later = server.connect_to(&db.name);
    later.ok("SYNC");
    assert_eq!(
        later.value("SELECT MAX(id) FROM d"),
        "8",
        "what was not committed is gone with the connection"
    );
}

#[test]
fn changes_that_cannot_be_rolled_back_are_stored_at_once_and_rollback_warns_of_them() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    client.ok("CREATE TABLE d (id INT, n INT)");
    client.ok("INSERT INTO d VALUES (1, 1), (2, 2)");
    client.ok("SYNC");
    client.ok("SET mysql_ddl = compat, autocommit = 0");
    assert_eq!(changed(client, "DELETE FROM d WHERE id = 1"), 1);
    assert_eq!(changed(client, "UPDATE d SET n = 3 WHERE id = 2"), 1);
    assert_eq!(other.rows("SELECT * FROM d"), ["2|3"]);
    assert_eq!(client.ok("ROLLBACK").warnings, 1);
    assert_eq!(
        client.rows("SHOW WARNINGS"),
        ["Warning|1196|Some non-transactional changed tables couldn't be rolled back"]
    );
    assert_eq!(client.ok("ROLLBACK").warnings, 0);
    client.ok("INSERT INTO d VALUES (3, 3)");
    client.refused(
        "DELETE FROM d WHERE id = 2",
        1235,
        "DELETE in a transaction that has rows of the table is not supported",
    );
    client.ok("COMMIT");
    assert_eq!(other.rows("SELECT * FROM d ORDER BY id"), ["2|3", "3|3"]);
}

#[test]
fn changes_that_no_transaction_can_undo_are_stored_at_once_in_sessions_of_mysql() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k INT, v INT) DUPLICATE KEY(k)");
    client.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    client.ok("BEGIN");
    client.refused("DELETE FROM t WHERE k = 1", 1235, "DELETE in a transaction is not supported yet");
    client.ok("ROLLBACK");
    client.ok("SET mysql_ddl = compat");
    client.ok("BEGIN");
    client.ok("DELETE FROM t WHERE k = 1");
    client.ok("UPDATE t SET v = 20 WHERE k = 2");
    client.ok("INSERT INTO t VALUES (3, 3)");
    client.refused("DELETE FROM t WHERE k = 2", 1235, "DELETE in a transaction that has rows of the table");
    client.ok("ROLLBACK");
    let warning = "Warning|1196|Some non-transactional changed tables couldn't be rolled back";
    assert_eq!(client.rows("SHOW WARNINGS"), [warning]);
    assert_eq!(client.rows("SELECT k, v FROM t"), ["2|20"], "the inserted row is gone, the changes stay");
    client.ok("CREATE TABLE u (k INT) UNIQUE KEY(k)");
    client.ok("SET autocommit = 0");
    client.ok("INSERT INTO u VALUES (1)");
    client.ok("UPDATE t SET v = 21 WHERE k = 2");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT t.v, u.k FROM t, u"), ["21|1"], "rows of another table are no matter");
    client.ok("SET autocommit = 1");
    client.ok("ROLLBACK");
    assert!(client.rows("SHOW WARNINGS").is_empty());
}
