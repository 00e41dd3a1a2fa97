//! Reads that wait for writes: by receipts, which are the transaction ids in the answers to loads.

use crate::support::{Client, Curl, Server};

/// A table whose groups stay open for longer than any statement takes.
fn server() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '1500')");
    client.ok("SET group_commit = 'async_mode'");
    (server, client)
}

fn other(server: &Server) -> Client {
    let mut client = server.connect();
    client.ok("USE d");
    client
}

const COUNT: &str = "SELECT COUNT(*) FROM t";

#[test]
fn another_connection_reads_what_a_receipt_says() {
    let (server, mut writer) = server();
    let mut reader = other(&server);
    let receipt = writer.ok("INSERT INTO t VALUES (1)").info_value("txnId").to_owned();
    assert_eq!(reader.value(COUNT), "0", "the group is open");
    reader.ok(&format!("SYNC '{receipt}'"));
    assert_eq!(reader.value(COUNT), "1");
    let answer = Curl::stream_load(&server, "d", "t").header("group_commit: async_mode").body("2\n").load();
    assert_eq!(reader.value(COUNT), "1", "the next one is open");
    reader.ok(&format!("SET read_after = {}", answer.get("TxnId")));
    assert_eq!(reader.value(COUNT), "2");
    assert_eq!(reader.value(COUNT), "2", "the receipt stays");
}

#[test]
fn a_session_reads_its_own_writes_if_it_asks_for_it() {
    let (server, mut client) = server();
    client.ok("INSERT INTO t VALUES (1)");
    assert_eq!(client.value(COUNT), "0");
    client.ok("SET read_own_writes = true");
    client.ok("INSERT INTO t VALUES (2)");
    assert_eq!(client.value(COUNT), "2", "of one group");
    client.ok("INSERT INTO t VALUES (3)");
    assert_eq!(other(&server).value(COUNT), "2", "others do not wait");
    client.ok("INSERT INTO t SELECT id + 10 FROM t");
    client.ok("SYNC");
    assert_eq!(client.value(COUNT), "6", "the query of an INSERT waits, too");
}

#[test]
fn own_writes_that_a_read_did_not_wait_for_to_the_end_are_waited_for_by_the_next() {
    let (_server, mut client) = server();
    client.ok("SET read_own_writes = true, query_timeout = 1");
    client.ok("INSERT INTO t VALUES (1)");
    assert!(client.error(COUNT).message.contains("timeout"));
    client.ok("SET query_timeout = 60");
    assert_eq!(client.value(COUNT), "1");
}

#[test]
fn receipts_outlive_a_kill() {
    let (mut server, mut client) = server();
    let receipt = client.ok("INSERT INTO t VALUES (1)").info_value("txnId").to_owned();
    server.kill();
    server.start_again();
    let mut reader = other(&server);
    reader.ok(&format!("SYNC {receipt}"));
    assert_eq!(reader.value(COUNT), "1");
}

#[test]
fn a_wait_that_can_have_no_end_is_refused_or_ends_with_the_time_limit() {
    let (server, mut client) = server();
    let error = client.error("SYNC 1000000");
    assert_eq!((error.number, error.message.contains("receipt 1000000 is of no transaction")), (1210, true));
    let receipt = client.ok("INSERT INTO t VALUES (1)").info_value("txnId").to_owned();
    // Nobody learns of a table that it may not see.
    client.ok("CREATE USER amy");
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("it may connect");
    assert_eq!(amy.error(&format!("SYNC {receipt}")).number, 1210);
    let reply = Curl::stream_load(&server, "d", "t")
        .header("two_phase_commit: true")
        .header("label: prepared")
        .body("2\n")
        .load();
    let error = client.error(&format!("SYNC {}", reply.get("TxnId")));
    assert!(error.message.contains("will not become visible: it is prepared"), "{error:?}");
    let mut hurried = other(&server);
    hurried.ok("SET query_timeout = 1");
    let receipt = client.ok("INSERT INTO t VALUES (3)").info_value("txnId").to_owned();
    let error = hurried.error(&format!("SYNC {receipt}"));
    assert!(error.message.contains("timeout"), "{error:?}");
}
