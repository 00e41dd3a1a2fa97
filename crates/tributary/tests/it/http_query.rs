//! Statements over HTTP: `POST /api/query/{catalog}/{db}`.

use crate::support::{Client, Curl, Server, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

fn ask(server: &Server, user: &str, headers: &[&str], body: &Value) -> Value {
    let url = format!("http://127.0.0.1:{}/api/query/default_cluster/d", server.http_port());
    let file = server.scratch().join("statement.json");
    std::fs::write(&file, body.to_string()).expect("written");
    let (status, text) = Curl::as_user(user, &url)
        .argument("-X")
        .argument("POST")
        .headers(headers)
        .file(&file)
        .status_and_text();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn run(server: &Server, statement: &str) -> Value {
    ask(server, "root:", &[], &json!({ "stmt": statement }))
}

#[track_caller]
fn error(answer: &Value, number: u64, part: &str) {
    assert_eq!((&answer["code"], &answer["error"]["number"]), (&json!(1), &json!(number)), "{answer}");
    assert!(answer["data"].as_str().is_some_and(|text| text.contains(part)), "{answer}");
}

fn server() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    (server, client)
}

#[test]
fn tables_are_made_filled_and_read() {
    let (server, mut client) = server();
    let made = run(
        &server,
        "CREATE TABLE t (id BIGINT, price DECIMAL(9,2), at DATETIME(3), name STRING, tags ARRAY<INT>, ok BOOLEAN, \
         ll LARGEINT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    assert_eq!((&made["code"], &made["data"]["type"]), (&json!(0), &json!("exec_status")), "{made}");
    let loaded = run(
        &server,
        "INSERT INTO t VALUES (9007199254740993, 0.5, '2024-05-06 07:08:09.123', 'a\"\\n', [1,NULL], true, 5), \
         (2, NULL, NULL, NULL, NULL, NULL, NULL)",
    );
    assert_eq!(loaded["data"]["status"]["affected_rows"], 2, "{loaded}");
    let info = loaded["data"]["status"]["info"].as_str().expect("as a MySQL client gets it");
    assert!(info.contains("'status':'VISIBLE'") && info.contains("'txnId':"), "{info}");
    let rows = run(&server, "SELECT * FROM t ORDER BY id DESC");
    let meta: Vec<String> = rows["data"]["meta"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| format!("{} {}", column["name"].as_str().unwrap(), column["type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        meta,
        [
            "id BIGINT",
            "price DECIMAL",
            "at DATETIME",
            "name STRING",
            "tags ARRAY",
            "ok BOOLEAN",
            "ll LARGEINT"
        ]
    );
    assert_eq!(
        rows["data"]["data"],
        json!([
            [9_007_199_254_740_993_u64, 0.50, "2024-05-06 07:08:09.123", "a\"\n", "[1, null]", 1, "5"],
            [2, null, null, null, null, null, null],
        ])
    );
    let limited = ask(&server, "root:", &[], &json!({ "stmt": "SELECT id FROM t ORDER BY id", "limit": 1 }));
    assert_eq!(limited["data"]["data"], json!([[2]]));
    let none = run(&server, "SELECT id FROM t WHERE id = 0");
    assert_eq!(
        (&none["data"]["data"], &none["data"]["meta"][0]["name"]),
        (&json!([]), &json!("id")),
        "{none}"
    );
    let shown = run(&server, "SHOW TABLES");
    assert_eq!(shown["data"]["data"], json!([["t"]]));
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "2");
}

#[test]
fn many_rows_are_streamed_as_one_document() {
    let (server, mut client) = server();
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let body: String = (0..50_000).map(|id| format!("{id}\n")).collect();
    let file = server.scratch().join("rows.csv");
    std::fs::write(&file, body).expect("written");
    Curl::stream_load(&server, "d", "t").file(&file).load().success();
    let rows = run(&server, "SELECT id, CONCAT('row ', id) FROM t ORDER BY id");
    let rows = rows["data"]["data"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[49_999]), (50_000, &json!([49_999, "row 49999"])));
    let limited = ask(&server, "root:", &[], &json!({ "stmt": "SELECT id FROM t", "limit": 9_000 }));
    assert_eq!(limited["data"]["data"].as_array().map(Vec::len), Some(9_000));
}

/// A table whose groups stay open, and the receipt of a load into it.
fn open_group(server: &Server, client: &mut Client) -> String {
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '3600000')");
    let loaded = Curl::stream_load(server, "d", "t").header("group_commit: async_mode").body("1\n").load();
    loaded.get("TxnId")
}

/// Waits until a statement runs, and returns its connection.
fn running(client: &mut Client, statement: &str) -> String {
    let find = format!("SELECT ID FROM information_schema.processlist WHERE INFO = '{statement}'");
    let mut id = String::new();
    wait_until("the statement runs", || {
        id = client.rows(&find).first().cloned().unwrap_or_default();
        !id.is_empty()
    });
    id
}

#[test]
fn a_receipt_in_the_header_is_waited_for() {
    let (server, mut client) = server();
    let receipt = open_group(&server, &mut client);
    let statement = "SELECT COUNT(*) FROM t";
    let count = json!({ "stmt": statement });
    assert_eq!(ask(&server, "root:", &[], &count)["data"]["data"], json!([[0]]), "the group is open");
    let header = format!("read_after: {receipt}");
    let answer = thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&server, "root:", &[&header], &count));
        running(&mut client, statement);
        client.ok("SYNC");
        waits.join().expect("it is answered")
    });
    assert_eq!(answer["data"]["data"], json!([[1]]));
    error(
        &ask(&server, "root:", &["read_after: 1000000"], &count),
        1210,
        "receipt 1000000 is of no transaction",
    );
}

#[test]
fn what_needs_a_connection_and_what_is_wrong_is_refused() {
    let (server, mut client) = server();
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    error(&run(&server, "BEGIN"), 1235, "use the MySQL protocol");
    error(&run(&server, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), 1235, "send the file with a Stream Load");
    let syntax = run(&server, "SELEC 1");
    error(&syntax, 1064, "SELEC");
    assert_eq!(syntax["error"]["retry"], "never");
    error(&run(&server, "SELECT * FROM nowhere"), 1146, "nowhere");
    error(&run(&server, "SELECT 1; SELECT 2"), 1064, "");
    let other = format!("http://127.0.0.1:{}/api/query/internal/nodb", server.http_port());
    let answer = Curl::as_user("root:", &other).body(r#"{"stmt":"SELECT 1"}"#).text();
    error(&serde_json::from_str(&answer).expect("JSON"), 1049, "Unknown database 'nodb'");
}

#[test]
fn a_user_does_what_the_grants_allow_and_all_of_it_is_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path().display().to_string();
    let server = Server::with_settings(&[("audit_log_dir", &files)]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("CREATE TABLE u (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("CREATE USER 'amy' IDENTIFIED BY 'pw-4'");
    client.ok("GRANT SELECT_PRIV ON d.t TO 'amy'");
    let as_amy = |statement: &str| ask(&server, "amy:pw-4", &[], &json!({ "stmt": statement }));
    assert_eq!(as_amy("SELECT COUNT(*) FROM t")["data"]["data"], json!([[0]]));
    error(&as_amy("SELECT COUNT(*) FROM u"), 1142, "denied");
    error(&as_amy("INSERT INTO t VALUES (1)"), 1142, "denied");
    assert_eq!(as_amy("SELECT CURRENT_USER()")["data"]["data"][0][0], "amy@127.0.0.1");
    client.ok("SET PROPERTY FOR 'amy' 'max_user_connections' = '1'");
    assert_eq!(as_amy("SELECT 1")["code"], 0);
    client.ok("ALTER USER 'amy' IDENTIFIED BY ''");
    let connection = Client::connect_as("amy", server.mysql_port()).expect("it is the first one");
    error(&ask(&server, "amy:", &[], &json!({ "stmt": "SELECT 1" })), 1226, "max_user_connections");
    drop(connection);
    let mut found = String::new();
    wait_until("the audit log has it", || {
        found = std::fs::read_to_string(directory.path().join("audit.log")).unwrap_or_default();
        found.matches("http_query").count() >= 4
    });
    assert!(found.contains("SELECT COUNT(*) FROM u"), "{found}");
}

#[test]
fn a_statement_ends_with_its_client_and_with_kill() {
    let (server, mut client) = server();
    let receipt = open_group(&server, &mut client);
    let address = ("127.0.0.1", server.http_port());
    let body = r#"{"stmt":"SELECT id FROM t"}"#;
    let request = format!(
        "POST /api/query/internal/d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\n\
         read_after: {}\r\nContent-Length: {}\r\n\r\n{body}",
        receipt,
        body.len(),
    );
    let begin = |client: &mut Client| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let id = running(client, "SELECT id FROM t");
        (stream, id)
    };
    let count = "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO = 'SELECT id FROM t'";
    let (stream, _) = begin(&mut client);
    drop(stream);
    wait_until("it ends", || client.value(count) == "0");
    let (stream, id) = begin(&mut client);
    client.ok(&format!("KILL QUERY {id}"));
    let (mut stream, mut answer) = (stream, Vec::new());
    while !String::from_utf8_lossy(&answer).contains("Query execution was interrupted") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).expect("readable");
        assert!(read > 0, "no answer: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
    }
    wait_until("it ends", || client.value(count) == "0");
}
