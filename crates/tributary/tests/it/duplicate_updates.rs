//! UPDATE of tables that keep all rows: the rows are replaced in one commit, by any condition.

use crate::support::{Client, Database, HttpServer, Page, Server, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_client::Value;

const COLUMNS: &str = "(k INT, v INT, name VARCHAR(10), at DATETIME)";
const KEYS: &str = "DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1";
const ROWS: &str =
    "VALUES (1, 1, 'a', '2024-01-01'), (1, 2, 'b', NULL), (2, 3, NULL, NULL), (2, 3, NULL, NULL)";

/// A table with and one without deletion vectors, with the four rows.
fn tables(db: &mut Database) -> [&'static str; 2] {
    let names = ["vectors", "copies"];
    for (name, vectors) in names.into_iter().zip(["true", "false"]) {
        db.client.ok(&format!(
            "CREATE TABLE {name} {COLUMNS} {KEYS} \
             PROPERTIES (\"group_commit_interval_ms\" = \"20\", \"delta.enableDeletionVectors\" = \"{vectors}\")"
        ));
        db.client.ok("SET group_commit = off_mode");
        db.client.ok(&format!("INSERT INTO {name} {ROWS}"));
    }
    names
}

fn rows(client: &mut Client, name: &str) -> Vec<String> {
    client.rows(&format!("SELECT * FROM {name} ORDER BY k, v, name"))
}

#[test]
fn rows_get_new_values_from_their_old_ones_and_equal_rows_stay_apart() {
    let mut server = Server::start();
    let mut db = server.database();
    for name in tables(&mut db) {
        let client = &mut db.client;
        // Expressions see the old values, NULL included; keys are columns like others.
        let done =
            client.ok(&format!("UPDATE {name} SET v = v + 10, k = v, name = CONCAT(name, '!') WHERE k = 1"));
        assert_eq!(done.affected_rows, 2);
        let expected = ["1|11|a!|2024-01-01 00:00:00", "2|3|NULL|NULL", "2|3|NULL|NULL", "2|12|b!|NULL"];
        assert_eq!(rows(client, name), expected, "{name}");
        assert_eq!(
            client.ok(&format!("UPDATE {name} x SET x.name = NULL WHERE x.name IS NOT NULL")).affected_rows,
            2
        );
        assert_eq!(client.ok(&format!("UPDATE {name} SET v = 4 WHERE v = 3")).affected_rows, 2);
        let sql = format!("UPDATE LOW_PRIORITY {name} SET v = 4 WHERE v = 99 ORDER BY k, v DESC");
        assert_eq!(client.ok(&sql).affected_rows, 0);
        assert_eq!(client.ok(&format!("UPDATE {name} SET at = DEFAULT, name = 'all'")).affected_rows, 4);
        let expected = ["1|11|all|NULL", "2|4|all|NULL", "2|4|all|NULL", "2|12|all|NULL"];
        assert_eq!(rows(client, name), expected, "{name}");
        // Several rows of FROM for one row: it stays one row.
        client.ok(&format!(
            "UPDATE {name} t SET v = o.n FROM (SELECT 7 AS n UNION ALL SELECT 7) o WHERE t.v = 4"
        ));
        client.ok(&format!("UPDATE {name} SET name = 'max' WHERE v = (SELECT MAX(v) FROM {name})"));
        let expected = ["1|11|all|NULL", "2|7|all|NULL", "2|7|all|NULL", "2|12|max|NULL"];
        assert_eq!(rows(client, name), expected, "{name}");
    }
    // They are durable when they are answered.
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    for name in ["vectors", "copies"] {
        let expected = ["1|11|all|NULL", "2|7|all|NULL", "2|7|all|NULL", "2|12|max|NULL"];
        assert_eq!(rows(&mut client, name), expected, "{name}");
    }
}

#[test]
fn parameters_are_bound_in_the_order_of_the_text() {
    let server = Server::start();
    let mut db = server.database();
    let names = tables(&mut db);
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    for name in names {
        let sql = format!("UPDATE {name} SET name = ?, v = v + ? WHERE k = ? AND v < ?");
        let statement = prepared.prepare(&sql).expect("prepared");
        let name_of = |text: &str| Value::Text(text.to_owned());
        let int = Value::BigInt;
        prepared.execute(statement, &[name_of("x"), int(10), int(1), int(2)]).expect("executed");
        prepared.execute(statement, &[name_of("y"), int(20), int(1), int(20)]).expect("executed");
        let expected = ["1|22|y|NULL", "1|31|y|2024-01-01 00:00:00", "2|3|NULL|NULL", "2|3|NULL|NULL"];
        assert_eq!(rows(&mut db.client, name), expected, "{name}");
    }
}

#[test]
fn bad_values_and_statements_change_nothing() {
    let server = Server::start();
    let mut db = server.database();
    for name in tables(&mut db) {
        let client = &mut db.client;
        let before = rows(client, name);
        for (sql, part) in [
            ("SET name = 'longer than ten bytes' WHERE v = 1", "filtered data"),
            ("SET v = 1, v = 2", "specified twice"),
            ("SET w = 1", "unknown column in assignment list: w"),
            ("SET v = nowhere + 1", "nowhere"),
            ("SET v = 1 ORDER BY k LIMIT 1", "UPDATE with LIMIT"),
        ] {
            let error = client.error(&format!("UPDATE {name} {sql}"));
            assert!(error.message.contains(part), "{sql}: {error}");
            assert_eq!(rows(client, name), before, "{sql}");
        }
        // A value that does not fit becomes NULL if the session says so; a row never disappears.
        client.ok("SET enable_insert_strict = false");
        client.ok("SET insert_max_filter_ratio = 1");
        client.ok(&format!("UPDATE {name} SET name = 'longer than ten bytes' WHERE v = 1"));
        assert_eq!(client.rows(&format!("SELECT COUNT(*) FROM {name}")), ["4"]);
        client.ok("SET enable_insert_strict = true");
        client.ok("BEGIN");
        client.ok(&format!("INSERT INTO {name} (k) VALUES (9)"));
        let error = client.error(&format!("UPDATE {name} SET v = 1"));
        assert!(error.message.contains("in a transaction is not supported yet"), "{error}");
        client.ok("ROLLBACK");
        assert_eq!(client.rows(&format!("SELECT COUNT(*) FROM {name}")), ["4"]);
    }
    db.client.ok("CREATE TABLE agg (k INT, v INT SUM) AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    let error = db.client.error("UPDATE agg SET v = 1");
    assert!(error.message.contains("Only unique table could be updated"), "{error}");
    db.client
        .ok("CREATE TABLE strict (k INT NOT NULL, v INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("SET group_commit = off_mode");
    db.client.ok("INSERT INTO strict VALUES (1, 1), (2, 2)");
    db.client.ok("SET enable_insert_strict = false");
    let error = db.client.error("UPDATE strict SET k = NULL WHERE v = 2");
    assert!(error.message.contains("filtered data"), "no row is left out: {error}");
    assert_eq!(db.client.rows("SELECT * FROM strict ORDER BY k"), ["1|1", "2|2"]);
}

#[test]
fn a_changed_partition_column_moves_its_row_and_one_without_a_partition_is_refused() {
    let server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok(
        "CREATE TABLE p (day INT, v INT, g INT AS (v + 1), n BIGINT NOT NULL AUTO_INCREMENT) DUPLICATE KEY(day) \
         PARTITION BY RANGE(day) (PARTITION p1 VALUES LESS THAN ('10'), PARTITION p2 VALUES LESS THAN ('20')) \
         DISTRIBUTED BY HASH(day) BUCKETS 1",
    );
    client.ok("SET group_commit = off_mode");
    client.ok("INSERT INTO p (day, v) VALUES (1, 1), (2, 2), (11, 3)");
    let numbers = client.rows("SELECT n FROM p ORDER BY day");
    assert_eq!(client.ok("UPDATE p SET day = day + 10, v = 5 WHERE day = 2").affected_rows, 1);
    assert_eq!(client.rows("SELECT day, v, g FROM p PARTITION (p1)"), ["1|1|2"]);
    assert_eq!(client.rows("SELECT day, v, g FROM p PARTITION (p2) ORDER BY day"), ["11|3|4", "12|5|6"]);
    let error = client.error("UPDATE p SET day = 30 WHERE day = 1");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    let error = client.error("UPDATE p SET g = 30");
    assert!(error.message.contains("generated column"), "{error}");
    assert_eq!(client.rows("SELECT COUNT(*) FROM p"), ["3"]);
    let mut after = client.rows("SELECT n FROM p ORDER BY day");
    after.swap(1, 2);
    assert_eq!(after, numbers, "values that the server gave stay");

    client.ok(
        "CREATE TABLE made (at DATETIME NOT NULL, v INT) DUPLICATE KEY(at) AUTO PARTITION BY RANGE (date_trunc(at, 'day')) () \
         DISTRIBUTED BY HASH(at) BUCKETS 1",
    );
    client.ok("INSERT INTO made VALUES ('2024-01-01 10:00:00', 1), ('2024-01-01 11:00:00', 2)");
    client.ok("UPDATE made SET at = DATE_ADD(at, INTERVAL 1 DAY) WHERE v = 2");
    assert_eq!(
        client.rows("SELECT at FROM made ORDER BY at"),
        ["2024-01-01 10:00:00", "2024-01-02 11:00:00"]
    );
    assert_eq!(client.rows("SHOW PARTITIONS FROM made").len(), 2, "the row's partition is made");
}

#[test]
fn loads_beside_an_update_are_kept_and_deletions_wait_for_their_turn() {
    let server = Server::start();
    let mut db = server.database();
    for name in tables(&mut db) {
        let ends = Arc::new(AtomicBool::new(false));
        let page = Page::Held(b"1,x\n2,x\n".to_vec(), Arc::clone(&ends));
        let web = HttpServer::start(&[("/ids.csv", page)]);
        let source = format!("HTTP(\"uri\" = \"{}/ids.csv\", \"column_separator\" = \",\") h", web.url);
        let mut updater = server.connect_to(&db.name);
        updater
            .send(&format!("UPDATE {name} SET v = v * 100 FROM {source} WHERE {name}.k = CAST(h.c1 AS INT)"));
        wait_until("the UPDATE has begun to read", || web.requests() >= 1);
        db.client.ok(&format!("INSERT INTO {name} VALUES (1, 50, 'new', NULL)"));
        assert_eq!(
            db.client.rows(&format!("SELECT SUM(v) FROM {name}")),
            ["59"],
            "nothing of the UPDATE is visible"
        );
        let deleter = std::thread::spawn({
            let mut client = server.connect_to(&db.name);
            let sql = format!("DELETE FROM {name} WHERE v = 1 OR v = 200");
            move || client.ok(&sql).affected_rows
        });
        wait_until("the DELETE has begun", || {
            db.client.rows("SHOW FULL PROCESSLIST").iter().any(|row| row.contains("DELETE FROM"))
        });
        assert!(!deleter.is_finished(), "it waits for its turn");
        ends.store(true, Ordering::SeqCst);
        updater.answered_ok();
        assert_eq!(deleter.join().expect("it is deleted"), 1, "it sees the changed rows");
        let expected = ["50", "100", "300", "300"];
        assert_eq!(db.client.rows(&format!("SELECT v FROM {name} ORDER BY v")), expected, "{name}");
    }
}

#[test]
fn increments_of_many_clients_are_all_counted() {
    let server = Server::start();
    let mut db = server.database();
    for name in tables(&mut db) {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut client = server.connect_to(&db.name);
                let sql = format!("UPDATE {name} SET v = v + 1 WHERE k = 2");
                std::thread::spawn(move || (0..5).for_each(|_| assert_eq!(client.ok(&sql).affected_rows, 2)))
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("all are answered"));
        assert_eq!(db.client.rows(&format!("SELECT v FROM {name} WHERE k = 2")), ["23", "23"], "{name}");
    }
}

#[test]
fn a_killed_update_changes_nothing() {
    let server = Server::start();
    let mut db = server.database();
    for name in tables(&mut db) {
        let page = Page::Held(b"1,x\n".to_vec(), Arc::default());
        let web = HttpServer::start(&[("/ids.csv", page)]);
        let source = format!("HTTP(\"uri\" = \"{}/ids.csv\", \"column_separator\" = \",\") h", web.url);
        let before = rows(&mut db.client, name);
        let mut updater = server.connect_to(&db.name);
        let id = updater.rows("SELECT CONNECTION_ID()").remove(0);
        updater.send(&format!("UPDATE {name} SET v = 0 FROM {source} WHERE {name}.k = CAST(h.c1 AS INT)"));
        wait_until("the UPDATE has begun to read", || web.requests() >= 1);
        db.client.ok(&format!("KILL QUERY {id}"));
        assert_eq!(updater.answered_error().number, 1317);
        assert_eq!(rows(&mut db.client, name), before);
        assert_eq!(updater.ok(&format!("UPDATE {name} SET v = v + 1")).affected_rows, 4);
    }
}
