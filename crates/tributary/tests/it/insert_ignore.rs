//! `INSERT IGNORE`: which rows stay, and what the client is told.

use crate::support::{Server, wait_until};
use std::sync::Barrier;

#[test]
fn rows_that_exist_stay_and_the_first_of_a_key_wins() {
    let mut server = Server::with_settings(&[("flush_age_ms", "200")]);
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k INT, a INT, b VARCHAR(10) DEFAULT 'new') UNIQUE KEY(k)");
    client.ok("INSERT INTO t VALUES (1, 1, 'old')");
    let done = client.ok("INSERT IGNORE INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (2, 21, 'z')");
    assert_eq!((done.affected_rows, done.warnings), (1, 1), "{done:?}");
    assert_eq!(client.rows("SHOW WARNINGS"), ["Note|1105|2 rows are left out: their keys exist"]);
    let rows = "SELECT k, a, b FROM t ORDER BY k";
    assert_eq!(client.rows(rows), ["1|1|old", "2|20|y"]);
    let done = client.ok("INSERT IGNORE INTO t (a, k) VALUES (30, 3), (40, 4)");
    assert_eq!((done.affected_rows, done.warnings), (2, 0));
    assert_eq!(client.ok("INSERT IGNORE t SET k = 4, a = 41").affected_rows, 0);
    assert_eq!(client.ok("INSERT IGNORE INTO t SELECT k + 1, a + 1, 's' FROM t").affected_rows, 1);
    let all = ["1|1|old", "2|20|y", "3|30|new", "4|40|new", "5|41|s"];
    assert_eq!(client.rows(rows), all);
    // They stay so in data files, and of deleted ones nothing is left.
    wait_until("they are in data files", || server.metric("tributary_flushed_rows_total ") >= 5.0);
    assert_eq!(client.ok("INSERT IGNORE INTO t VALUES (5, 0, 'x'), (6, 60, 'f')").affected_rows, 1);
    client.ok("DELETE FROM t WHERE k = 1");
    assert_eq!(client.ok("INSERT IGNORE INTO t VALUES (1, 9, 'again')").affected_rows, 1);
    let all = ["1|9|again", "2|20|y", "3|30|new", "4|40|new", "5|41|s", "6|60|f"];
    assert_eq!(client.rows(rows), all);
    // A row of it is replaced and updated as any other.
    client.ok("INSERT INTO t VALUES (6, 61, 'g')");
    client.ok("UPDATE t SET a = a + 1 WHERE k = 1");
    let all = ["1|10|again", "2|20|y", "3|30|new", "4|40|new", "5|41|s", "6|61|g"];
    assert_eq!(client.rows(rows), all);
    server.kill();
    server.start_again();
    assert_eq!(server.connect_to(&db.name).rows(rows), all);
}

#[test]
fn rows_that_are_not_visible_yet_stay_too() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (k INT, a INT) UNIQUE KEY(k) PROPERTIES ('group_commit_interval_ms' = '3000')");
    client.ok("INSERT IGNORE INTO t VALUES (0, 0)");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO t VALUES (1, 1)");
    client.ok("INSERT IGNORE INTO t VALUES (1, 2)");
    client.ok("SYNC");
    assert_eq!(client.value("SELECT a FROM t WHERE k = 1"), "1", "whichever commits first");
}

/// Of several clients that insert the same keys at once, each key has one that has inserted it: it may be a lock.
#[test]
fn one_client_inserts_a_key() {
    const CLIENTS: usize = 4;
    const KEYS: usize = 20;
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (k INT, owner INT) UNIQUE KEY(k)");
    let barrier = Barrier::new(CLIENTS);
    let inserted: Vec<Vec<(usize, usize)>> = std::thread::scope(|scope| {
        let run = |owner: usize| {
            let mut client = server.connect_to(&db.name);
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let insert = |key: &usize| {
                    let sql = format!("INSERT IGNORE INTO t VALUES ({key}, {owner})");
                    client.ok(&sql).affected_rows == 1
                };
                (0..KEYS).filter(insert).map(|key| (key, owner)).collect()
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(run).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let mut inserted: Vec<(usize, usize)> = inserted.into_iter().flatten().collect();
    inserted.sort_unstable();
    let inserted: Vec<String> = inserted.iter().map(|(key, owner)| format!("{key}|{owner}")).collect();
    assert_eq!(inserted.len(), KEYS);
    assert_eq!(db.client.rows("SELECT k, owner FROM t ORDER BY k"), inserted);
}

#[test]
fn bad_values_are_warnings() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    for keys in ["UNIQUE KEY(k)", "DUPLICATE KEY(k)"] {
        client.ok("DROP TABLE IF EXISTS t");
        client.ok(&format!("CREATE TABLE t (k INT NOT NULL, n INT) {keys}"));
        client.refused("INSERT INTO t VALUES (1, 'x'), (2, 2)", 1105, "column(n) value is incorrect");
        let done = client.ok("INSERT IGNORE INTO t VALUES (1, 'x'), (NULL, 3), (2, 2)");
        assert_eq!((done.affected_rows, done.warnings), (2, 1), "{keys}: {done:?}");
        assert!(client.rows("SHOW WARNINGS")[0].starts_with("Warning|1105|"), "{keys}");
        assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), ["1|NULL", "2|2"], "{keys}");
        client.refused("INSERT INTO t VALUES (4, 'x')", 1105, "column(n) value is incorrect");
    }
    client.ok("INSERT IGNORE INTO t VALUES (2, 3)");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "3", "without a key there is no duplicate");
}

#[test]
fn keys_may_come_from_the_server_and_statements_may_be_of_a_transaction() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT, a INT, b INT AS (a + 1)) UNIQUE KEY(id)");
    assert_eq!(client.ok("INSERT IGNORE INTO t (a) VALUES (1), (2)").affected_rows, 2);
    assert_eq!(client.rows("SELECT a, b FROM t ORDER BY a"), ["1|2", "2|3"]);
    client.ok("CREATE TABLE u (k INT, a INT) UNIQUE KEY(k)");
    client.ok("INSERT INTO u VALUES (1, 1)");
    client.ok("BEGIN");
    assert_eq!(client.ok("INSERT IGNORE INTO u VALUES (1, 2), (3, 3)").affected_rows, 1);
    assert_eq!(client.ok("INSERT IGNORE INTO u VALUES (3, 4)").affected_rows, 0);
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT * FROM u ORDER BY k"), ["1|1", "3|3"]);
    client.ok("CREATE TABLE agg (k INT, a INT SUM) AGGREGATE KEY(k)");
    client.refused("INSERT IGNORE INTO agg VALUES (1, 1)", 1235, "the table has an AGGREGATE KEY");
    client
        .ok("CREATE TABLE s (k INT, v INT) UNIQUE KEY(k) PROPERTIES ('function_column.sequence_col' = 'v')");
    client.refused("INSERT IGNORE INTO s VALUES (1, 1)", 1235, "the table has a sequence");
    client.refused(
        "INSERT IGNORE INTO u (k, __DORIS_DELETE_SIGN__) VALUES (1, 1)",
        1054,
        "__DORIS_DELETE_SIGN__",
    );
    client.ok("INSERT IGNORE INTO u (k, a) VALUES (1, 5) ON DUPLICATE KEY UPDATE a = VALUES(a)");
    assert_eq!(client.value("SELECT a FROM u WHERE k = 1"), "5");
}
