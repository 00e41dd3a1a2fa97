//! `refuse_existing_keys`: an INSERT of a key that exists fails, as in MySQL, instead of replacing the row.

use crate::support::{Client, Server, wait_until};
use std::sync::Barrier;
use tributary_client::Value;

const ROWS: &str = "SELECT id, part, n FROM t ORDER BY id, part";

fn table(client: &mut Client) {
    client.ok("CREATE TABLE t (id INT, part VARCHAR(10), n INT) UNIQUE KEY(id, part)");
}

#[test]
fn an_insert_of_a_key_that_exists_fails_as_a_whole() {
    let mut server = Server::with_settings(&[("flush_age_ms", "200")]);
    let mut db = server.database();
    let client = &mut db.client;
    table(client);
    client.ok("INSERT INTO t VALUES (1, 'a', 1)");
    client.ok("INSERT INTO t VALUES (1, 'a', 2)");
    assert_eq!(client.rows(ROWS), ["1|a|2"], "by default a row replaces the one of its key");
    client.ok("SET refuse_existing_keys = ON");
    let exists = |client: &mut Client, sql: &str, key: &str| {
        let error = client.error(sql);
        assert_eq!((error.number, &*error.state), (1062, "23000"), "{sql}: {error}");
        assert!(error.message.ends_with(&format!("Duplicate entry '{key}' for key 'PRIMARY'")), "{error}");
    };
    exists(client, "INSERT INTO t VALUES (1, 'a', 3)", "1-a");
    exists(client, "INSERT INTO t (n, part, id) VALUES (3, 'b', 2), (4, 'a', 0 + 1)", "1-a");
    exists(client, "INSERT INTO t VALUES (5, 'x', 1), (6, 'x', 1), (5, 'x', 2)", "5-x");
    exists(client, "INSERT INTO t SELECT id, part, 7 FROM t", "1-a");
    exists(client, "INSERT INTO t SET id = 1, part = 'a', n = 9", "1-a");
    assert_eq!(client.rows(ROWS), ["1|a|2"], "nothing of them is stored");
    assert_eq!(client.ok("INSERT INTO t VALUES (2, 'a', 1), (2, 'b', 1)").affected_rows, 2);
    // Statements that say what happens to rows that exist do so.
    client.ok("REPLACE INTO t VALUES (2, 'a', 20)");
    client.ok("INSERT INTO t VALUES (2, 'b', 21) ON DUPLICATE KEY UPDATE n = VALUES(n)");
    assert_eq!(client.ok("INSERT IGNORE INTO t VALUES (2, 'b', 0)").affected_rows, 0);
    client.ok("UPDATE t SET n = n + 1 WHERE id = 2");
    let rows = ["1|a|2", "2|a|21", "2|b|22"];
    assert_eq!(client.rows(ROWS), rows);
    // In data files, too; a deleted row's key is free.
    wait_until("they are in data files", || server.metric("tributary_flushed_rows_total ") >= 3.0);
    exists(client, "INSERT INTO t VALUES (2, 'b', 0)", "2-b");
    client.ok("DELETE FROM t WHERE id = 1");
    client.ok("INSERT INTO t VALUES (1, 'a', 5)");
    exists(client, "INSERT INTO t VALUES (1, 'a', 6)", "1-a");
    // Tables that keep all rows have no such keys.
    client.ok("CREATE TABLE d (id INT) DUPLICATE KEY(id)");
    client.ok("INSERT INTO d VALUES (1), (1)");
    let rows = ["1|a|5", "2|a|21", "2|b|22"];
    assert_eq!(client.rows(ROWS), rows);
    server.kill();
    server.start_again();
    assert_eq!(server.connect_to(&db.name).rows(ROWS), rows);
}

#[test]
fn rows_that_go_to_data_files_have_new_keys_too() {
    let server = Server::with_settings(&[("large_load_bytes", "2000")]);
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id BIGINT, name VARCHAR(20)) UNIQUE KEY(id)");
    client.ok("SET refuse_existing_keys = ON");
    let numbers = "SELECT number, 'a name of a row' FROM numbers('number' = '3000')";
    client.ok(&format!("INSERT INTO t {numbers}"));
    client.refused(&format!("INSERT INTO t {numbers}"), 1062, "for key 'PRIMARY'");
    let last = "SELECT 5999 - number, 'another' FROM numbers('number' = '3001')";
    client.refused(&format!("INSERT INTO t {last}"), 1062, "Duplicate entry '2999' for key 'PRIMARY'");
    assert_eq!(
        client.value("SELECT COUNT(*), COUNT(DISTINCT id) FROM t WHERE name LIKE 'a name%'"),
        "3000|3000"
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "3000");
}

#[test]
fn prepared_inserts_obey_it_whenever_it_is_set() {
    let server = Server::shared();
    let mut db = server.database();
    table(&mut db.client);
    let address = ("127.0.0.1", server.mysql_port());
    let mut client = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    let insert = client.prepare("INSERT INTO t VALUES (?, ?, ?)").expect("prepared");
    let row = |id: u64, n: u64| [Value::BigInt(id), Value::Text("a".to_owned()), Value::BigInt(n)];
    client.execute(insert, &row(1, 1)).expect("a new key");
    client.execute(insert, &row(1, 2)).expect("it replaces");
    client.run("SET refuse_existing_keys = ON").expect("set");
    let refused = client.execute(insert, &row(1, 3)).expect_err("it exists");
    assert!(refused.to_string().contains("Duplicate entry '1-a' for key 'PRIMARY'"), "{refused}");
    client.execute(insert, &row(2, 3)).expect("a new key");
    let other = client.prepare("INSERT INTO t VALUES (?, ?, ?)").expect("prepared");
    client.execute(other, &row(2, 4)).expect_err("it exists");
    client.run("SET refuse_existing_keys = OFF").expect("set");
    client.execute(other, &row(2, 5)).expect("it replaces");
    assert_eq!(db.client.rows(ROWS), ["1|a|2", "2|a|5"]);
}

#[test]
fn a_transaction_sees_its_own_keys_and_checks_all_again_at_its_commit() {
    let server = Server::shared();
    let mut db = server.database();
    let mut other = server.connect_to(&db.name);
    let client = &mut db.client;
    table(client);
    client.ok("SET refuse_existing_keys = ON");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (1, 'a', 1)");
    client.refused("INSERT INTO t VALUES (1, 'a', 2)", 1062, "'1-a'");
    client.ok("UPDATE t SET n = 10 WHERE id = 1");
    client.ok("DELETE FROM t WHERE id = 1");
    client.ok("INSERT INTO t VALUES (1, 'a', 3)");
    client.ok("INSERT INTO t VALUES (2, 'a', 4)");
    client.ok("COMMIT");
    assert_eq!(client.rows(ROWS), ["1|a|3", "2|a|4"]);
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (3, 'a', 1), (4, 'a', 1)");
    other.ok("INSERT INTO t VALUES (4, 'a', 40)");
    client.refused("COMMIT", 1062, "'4-a'");
    client.ok("ROLLBACK");
    assert_eq!(client.rows(ROWS), ["1|a|3", "2|a|4", "4|a|40"], "nothing of the transaction is stored");
}

/// Of several clients that insert one key at once, one has inserted it, and the others are told so: it may be a lock.
#[test]
fn one_of_several_clients_inserts_a_key() {
    const CLIENTS: usize = 4;
    const KEYS: usize = 15;
    let server = Server::with_settings(&[("refuse_existing_keys", "true")]);
    let mut db = server.database();
    assert_eq!(db.client.value("SELECT @@refuse_existing_keys"), "1");
    table(&mut db.client);
    let (name, port, barrier) = (&db.name, server.mysql_port(), Barrier::new(CLIENTS));
    let won: Vec<usize> = std::thread::scope(|scope| {
        let clients = (0..CLIENTS).map(|number| {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut client = Client::connect(port, Some(name.as_str()));
                let keys = (0..KEYS).filter(|key| {
                    barrier.wait();
                    match client.try_query(&format!("INSERT INTO t VALUES ({key}, 'a', {number})")) {
                        Ok(()) => true,
                        Err(error) => {
                            assert_eq!(error.number, 1062, "{error}");
                            false
                        }
                    }
                });
                keys.count()
            })
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    assert_eq!(won.iter().sum::<usize>(), KEYS, "{won:?}");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM t"), KEYS.to_string());
}
