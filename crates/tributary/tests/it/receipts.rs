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

#[test]
fn a_transaction_is_listed_with_the_delta_version_that_has_it() {
    let server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '10')");
    let url = |key: &str| {
        format!("http://127.0.0.1:{}/api/d/t/_load_state?idempotency_key={key}", server.http_port())
    };
    let load = |key: &str| {
        let header = format!("Idempotency-Key: {key}");
        let answer = Curl::stream_load(&server, "d", "t")
            .headers(&["group_commit: sync_mode", &header])
            .body("1\n")
            .load()
            .success();
        answer.get("TxnId").clone()
    };
    let state = |client: &mut Client, txn: &str| {
        client.value(&format!(
            "SELECT CONCAT_WS(' ', TABLE_NAME, STATUS, SOURCE_TYPE, LOADS, LOADED_ROWS, IFNULL(DELTA_VERSION, 'none')) \
             FROM information_schema.transactions WHERE TXN_ID = {txn}"
        ))
    };
    let first = load("a");
    assert_eq!(state(&mut client, &first), "t VISIBLE INSERT_STREAMING 1 1 none");
    let told: serde_json::Value = serde_json::from_str(&Curl::get(&url("a")).text()).expect("JSON");
    assert_eq!(
        (&told["data"]["state"], &told["data"]["delta_version"]),
        (&"VISIBLE".into(), &serde_json::Value::Null)
    );
    let directory = crate::delta::delta_table(&server);
    let entries = || {
        let log = std::fs::read_dir(format!("{directory}/_delta_log")).expect("there is one");
        log.flatten().filter(|entry| entry.path().extension().is_some_and(|name| name == "json")).count()
            as u64
    };
    let before = entries();
    // Moves rows to data files, as anything else that changes the log.
    client.ok("DELETE FROM t WHERE id = 7");
    let version = entries() - 1;
    assert!(version >= before, "{version}");
    let found = state(&mut client, &first);
    let delta_version: u64 = found.rsplit(' ').next().and_then(|text| text.parse().ok()).expect("a version");
    assert!((before..=version).contains(&delta_version), "{found}");
    let told: serde_json::Value = serde_json::from_str(&Curl::get(&url("a")).text()).expect("JSON");
    assert_eq!(told["data"]["delta_version"], delta_version);
    let path = format!("{directory}/_delta_log/{delta_version:020}.json");
    assert!(
        std::fs::read_to_string(path).expect("it is there").contains("\"add\""),
        "its rows are in a file of it"
    );
    let second = load("b");
    assert_eq!(state(&mut client, &second), "t VISIBLE INSERT_STREAMING 1 1 none");
    assert!(state(&mut client, &first).ends_with(&format!(" {delta_version}")), "it stays");
    client.ok("CREATE USER 'amy'");
    client.ok("GRANT SELECT_PRIV ON d.other TO 'amy'");
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("it may connect");
    assert_eq!(amy.value("SELECT COUNT(*) FROM information_schema.transactions"), "0");
}
