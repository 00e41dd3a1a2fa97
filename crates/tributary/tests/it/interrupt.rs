//! Statements and loads that end before their end: KILL, time limits, clients that go away. Nothing of
//! them stays behind.

use crate::support::{Client, Server, wait_until};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use walkdir::WalkDir;

/// A group that stays open for longer than any test runs.
const SLOW_GROUP: &str = "PROPERTIES (\"group_commit_interval_ms\" = \"3600000\")";

fn connection_id(client: &mut Client) -> String {
    client.value("SELECT connection_id()")
}

/// Waits until the connection runs a statement with this beginning.
fn wait_until_it_runs(watcher: &mut Client, id: &str, statement: &str) {
    wait_until("the statement runs", || {
        watcher.rows("SHOW FULL PROCESSLIST").iter().any(|row| row.contains(id) && row.contains(statement))
    });
}

fn table_with_slow_groups(server: &Server) -> (Client, Client) {
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(&format!(
        "CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 {SLOW_GROUP}"
    ));
    client.ok("SET group_commit = sync_mode");
    (client, server.connect_to("d"))
}

#[test]
fn kill_query_ends_an_insert_that_waits_for_its_group_and_the_group_continues() {
    let server = Server::start();
    let (mut client, mut other) = table_with_slow_groups(&server);
    let id = connection_id(&mut client);
    client.send("INSERT INTO t VALUES (1)");
    wait_until_it_runs(&mut other, &id, "INSERT INTO t");
    other.ok(&format!("KILL QUERY {id}"));
    let error = client.answered_error();
    assert_eq!(
        (error.number, error.state.as_str(), error.message.as_str()),
        (1317, "70100", "Query execution was interrupted")
    );
    other.ok("SYNC");
    assert_eq!(other.value("SELECT count(*) FROM t"), "1", "the group went on");
    assert_eq!(client.value("SELECT 1"), "1", "the connection stays");
}

#[test]
fn kill_ends_a_connection_whose_insert_waits_for_its_group() {
    let server = Server::start();
    let (mut client, mut other) = table_with_slow_groups(&server);
    let id = connection_id(&mut client);
    client.send("INSERT INTO t VALUES (1)");
    wait_until_it_runs(&mut other, &id, "INSERT INTO t");
    other.ok(&format!("KILL {id}"));
    assert_eq!(client.answered_error().number, 1317);
    wait_until("the connection is gone", || client.try_send("DO 1").is_none());
    wait_until("it is not listed", || {
        other.rows("SHOW PROCESSLIST").iter().all(|row| !row.contains("INSERT INTO t"))
    });
}

#[test]
fn a_kill_that_comes_too_late_does_not_end_the_next_statement() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let id = connection_id(&mut db.client);
    server.connect().ok(&format!("KILL QUERY {id}"));
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
}

/// Files of tables other than the Delta logs, finished or not.
fn data_files(directory: &Path) -> usize {
    let without_logs =
        WalkDir::new(directory).into_iter().filter_entry(|entry| entry.file_name() != "_delta_log");
    without_logs.flatten().filter(|entry| entry.file_type().is_file()).count()
}

/// A server that writes every load to data files, with 1000 numbers in `d.n` and the empty table `d.big`.
fn server_with_numbers() -> (Server, Client) {
    let server = Server::with_settings(&[
        ("large_load_bytes", "1"),
        ("flush_age_ms", "3600000"),
        // A file has its name once it is complete: each run of rows fills one.
        ("target_file_bytes", "1"),
    ]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    for table in ["n (id INT NOT NULL)", "big (id INT NOT NULL, text STRING)"] {
        client.ok(&format!("CREATE TABLE {table} DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"));
    }
    let rows: Vec<String> = (0..1000).map(|id| format!("({id})")).collect();
    client.ok(&format!("INSERT INTO n VALUES {}", rows.join(",")));
    (server, client)
}

/// 20 GB: it does not end by itself while a test runs.
const ENDLESS: &str = "INSERT INTO big SELECT a.id, repeat('x', 20000) FROM n a, n b";

#[test]
fn an_insert_select_that_is_killed_leaves_no_data_file() {
    let (server, mut client) = server_with_numbers();
    let mut other = server.connect_to("d");
    let tables = server.data().join("tables");
    let before = data_files(&tables);
    let id = connection_id(&mut client);
    client.send(ENDLESS);
    wait_until("rows are in a data file", || data_files(&tables) > before);
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(client.answered_error().number, 1317);
    wait_until("the files are deleted", || data_files(&tables) == before);
    assert_eq!(other.value("SELECT count(*) FROM big"), "0");
}

#[test]
fn query_timeout_ends_an_insert_select_and_its_label_is_free() {
    let (server, mut client) = server_with_numbers();
    let tables = server.data().join("tables");
    let before = data_files(&tables);
    client.ok("SET query_timeout = 2");
    let error = client.error(&ENDLESS.replace("big", "big WITH LABEL a"));
    assert_eq!(error.number, 5024, "{error}");
    assert!(error.message.contains("query timeout: 2 s have passed"), "{error}");
    wait_until("the files are deleted", || data_files(&tables) == before);
    client.ok("SET query_timeout = DEFAULT");
    client.ok("INSERT INTO big WITH LABEL a SELECT id, 'x' FROM n");
    assert_eq!(client.value("SELECT count(*) FROM big"), "1000");
}

#[test]
fn a_stream_load_that_times_out_leaves_no_data_file() {
    const TIMEOUT_SECONDS: u64 = 20;
    let (server, mut client) = server_with_numbers();
    let tables = server.data().join("tables");
    let before = data_files(&tables);
    let mut stream = TcpStream::connect(("127.0.0.1", server.http_port())).expect("the server listens");
    write!(
        stream,
        "PUT /api/d/big/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\nlabel: a\r\n\
         column_separator: ,\r\ntimeout: {TIMEOUT_SECONDS}\r\nConnection: close\r\nContent-Length: 1000000000\r\n\r\n"
    )
    .expect("sent");
    let line = format!("1,{}\n", "x".repeat(100_000));
    wait_until("rows are in a data file", || {
        // The server stops reading when the time is over.
        stream.write_all(line.repeat(50).as_bytes()).is_err() || data_files(&tables) > before
    });
    let answer = std::io::read_to_string(&mut stream).unwrap_or_default();
    assert!(answer.contains(&format!("timeout of {TIMEOUT_SECONDS} s reached")), "{answer}");
    wait_until("the files are deleted", || data_files(&tables) == before);
    client.ok("INSERT INTO big WITH LABEL a VALUES (1, 'x')");
}

/// Examines a billion rows and selects none: it does not end by itself during a test.
const ENDLESS_QUERY: &str = "SELECT COUNT(*) FROM n a, n b, n c WHERE a.id + b.id + c.id = -1";

#[test]
fn max_execution_time_ends_a_query_and_nothing_else() {
    let (_server, mut client) = server_with_numbers();
    client.ok("SET max_execution_time = 200");
    let error = client.error(ENDLESS_QUERY);
    assert_eq!(error.number, 5024, "{error}");
    assert!(error.message.contains("query timeout"), "{error}");
    assert_eq!(client.value("SELECT COUNT(*) FROM n"), "1000", "the connection stays");
    client.ok("INSERT INTO big SELECT a.id, 'x' FROM n a, n b WHERE b.id < 100");
    assert_eq!(client.value("SELECT COUNT(*) FROM big"), "100000", "it is for queries alone, as in MySQL");
    client.ok("SET max_execution_time = 0, query_timeout = 1");
    assert_eq!(client.error(ENDLESS_QUERY).number, 5024, "query_timeout holds without it");
}

#[test]
fn kill_query_ends_joins_that_let_no_row_through() {
    let (server, mut client) = server_with_numbers();
    let mut other = server.connect_to("d");
    let id = connection_id(&mut client);
    for query in [
        ENDLESS_QUERY,
        "SELECT COUNT(*) FROM n a JOIN n b ON a.id >= 0 * b.id JOIN n c ON a.id + b.id + c.id < 0",
        "SELECT COUNT(*) FROM n a JOIN n b ON a.id * 0 = b.id * 0 JOIN n c ON a.id * 0 = c.id * 0 WHERE a.id + b.id + c.id < 0",
    ] {
        client.send(query);
        wait_until_it_runs(&mut other, &id, "COUNT(*)");
        other.ok(&format!("KILL QUERY {id}"));
        assert_eq!(client.answered_error().number, 1317, "{query}");
        assert_eq!(client.value("SELECT COUNT(*) FROM n"), "1000", "the connection stays");
    }
}

#[test]
fn a_stream_load_without_a_timeout_has_the_servers() {
    let server = Server::with_settings(&[("stream_load_default_timeout_second", "2")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let mut stream = TcpStream::connect(("127.0.0.1", server.http_port())).expect("the server listens");
    write!(
        stream,
        "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\nlabel: a\r\n\
         Connection: close\r\nContent-Length: 1000000\r\n\r\n1\n"
    )
    .expect("sent");
    // The rest of the body never arrives.
    let answer = std::io::read_to_string(&mut stream).unwrap_or_default();
    assert!(answer.contains("timeout of 2 s reached"), "{answer}");
    client.ok("INSERT INTO t WITH LABEL a VALUES (1)");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "1");
}

#[test]
fn a_statement_within_a_transaction_has_no_label_of_its_own() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("BEGIN WITH LABEL a");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    for statement in
        ["INSERT INTO dt WITH LABEL b VALUES (2, 'b', 2)", "INSERT INTO dt WITH LABEL b SELECT 2, 'b', 2"]
    {
        let error = db.client.error(statement);
        assert!(
            error.message.starts_with("errCode = 2, detailMessage = Transaction insert expect label"),
            "{error}"
        );
    }
    db.client.ok("COMMIT");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
    db.client.ok("INSERT INTO dt WITH LABEL b VALUES (2, 'b', 2)");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2");
}
