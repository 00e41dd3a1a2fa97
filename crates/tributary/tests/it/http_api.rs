//! The small HTTP endpoints that connectors and monitoring read.

use crate::support::{Curl, Server};
use serde_json::{Value, json};

fn get(server: &Server, path: &str) -> Value {
    let (status, text) =
        Curl::get(&format!("http://127.0.0.1:{}{path}", server.http_port())).status_and_text();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn health_reports_one_living_back_end() {
    let server = Server::shared();
    let expected = json!({
        "msg": "success", "code": 0, "data": {"total_backend_num": 1, "online_backend_num": 1}, "count": 0,
    });
    assert_eq!(get(&server, "/api/health"), expected);
    let ready = &get(&server, "/api/ready")["data"];
    assert_eq!(*ready, json!({"ready": true, "reasons": [], "warnings": []}));
}

#[test]
fn connectors_find_the_back_ends_port() {
    let server = Server::shared();
    let backends = &get(&server, "/api/backends?is_alive=true")["data"]["backends"];
    assert_eq!(
        *backends,
        json!([{"ip": "127.0.0.1", "http_port": server.webserver_port(), "is_alive": true}])
    );
}

#[test]
fn wal_size_counts_open_groups() {
    let server = Server::start().with_manual_table();
    let wals = || get(&server, "/api/get_wal_size")["data"][0].as_str().map(str::to_owned).expect("one node");
    let host_port = format!("127.0.0.1:{}", server.webserver_port());
    assert_eq!(wals(), format!("{host_port}:0"));
    let mut client = server.connect_to("db");
    client.ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"3600000\")");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert_eq!(wals(), format!("{host_port}:1"));
    client.ok("SYNC");
    assert_eq!(wals(), format!("{host_port}:0"));
}

#[test]
fn connectors_read_a_tables_schema_and_count() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    let schema = get(&server, &format!("/api/{}/dt/_schema", db.name));
    assert_eq!(schema["data"]["keysType"], "DUP_KEYS");
    let columns = schema["data"]["properties"].as_array().expect("a list of columns");
    let shown: Vec<_> = columns.iter().map(|column| (&column["name"], &column["type"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("id"), &json!("INT")),
            (&json!("name"), &json!("VARCHAR")),
            (&json!("score"), &json!("INT"))
        ]
    );
    assert_eq!(
        get(&server, &format!("/api/{}/dt/_count", db.name))["data"],
        json!({"status": 200, "size": 2})
    );
}

#[test]
fn the_state_of_a_label_can_be_asked() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let state =
        |label: &str| get(&server, &format!("/api/{}/get_load_state?label={label}", db.name))["data"].clone();
    assert_eq!(state("asked"), "UNKNOWN");
    Curl::stream_load(&server, &db.name, "dt")
        .header("column_separator:,")
        .header("label:asked")
        .header("two_phase_commit:true")
        .body("1,a,1\n")
        .load()
        .success();
    assert_eq!(state("asked"), "PRECOMMITTED");
    Curl::put(&format!("http://127.0.0.1:{}/api/{}/_stream_load_2pc", server.http_port(), db.name))
        .header("label:asked")
        .header("txn_operation:commit")
        .text();
    assert_eq!(state("asked"), "VISIBLE");
}

#[test]
fn metrics_count_loads_groups_and_fallbacks() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    assert!(server.metric("tributary_open_groups ") >= 1.0);
    client.ok("SYNC");
    client.ok("INSERT INTO dt WITH LABEL x VALUES (3, 'c', 3)");
    assert_eq!(server.metric("tributary_loads_total{mode=\"async_mode\"}"), 1.0);
    assert_eq!(server.metric("tributary_loads_total{mode=\"off_mode\"}"), 1.0);
    assert_eq!(server.metric("tributary_loaded_rows_total{mode=\"async_mode\"}"), 2.0);
    assert_eq!(server.metric("tributary_group_commit_fallbacks_total{reason=\"label\"}"), 1.0);
    assert_eq!(server.metric("tributary_open_groups "), 0.0);
    assert!(server.metric("tributary_wal_files ") >= 1.0);
    assert!(server.metric("tributary_memtable_rows ") >= 3.0);
    assert!(server.metric("tributary_ack_seconds_count{mode=\"async_mode\"}") >= 1.0);
}

#[test]
fn loads_by_the_front_port_are_sent_on_if_a_setting_says_so() {
    let server = Server::with_settings(&[("redirect_loads", "true")]);
    let mut db = server.database().with_dt("");
    let url = format!("http://127.0.0.1:{}/api/{}/dt/_stream_load", server.http_port(), db.name);
    let load = |url: &str, credentials: &str| {
        Curl::anonymous(url)
            .argument("-u")
            .argument(credentials)
            .argument("-X")
            .argument("PUT")
            .header("column_separator: ,")
            .header("Expect: 100-continue")
            .body("1,a,10\n2,b,20\n")
    };
    // Doris's form, in which the credentials are, too.
    let (status, text) = load(&format!("{url}?x=1"), "root:")
        .argument("-D")
        .argument("-")
        .argument("-o")
        .argument("/dev/null")
        .status_and_text();
    let location = format!(
        "location: http://root:@127.0.0.1:{}/api/{}/dt/_stream_load?x=1",
        server.webserver_port(),
        db.name
    );
    assert_eq!(status, 307, "{text}");
    assert!(text.lines().any(|line| line.trim_end() == location), "{location}: {text}");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "0");
    load(&url, "root:").argument("--location-trusted").load().success();
    assert_eq!(db.client.rows("SELECT * FROM dt ORDER BY id"), ["1|a|10", "2|b|20"]);
    // A large body, which is not sent twice, and all that belongs to a load.
    let lines: String = (3..200_003).map(|id| format!("{id},name,{}\n", id % 7)).collect();
    let file = server.scratch().join("large.csv");
    std::fs::write(&file, lines).expect("written");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("column_separator: ,")
        .header("two_phase_commit: true")
        .file(&file)
        .load()
        .success();
    assert_eq!(reply.rows(), [200_000, 200_000, 0, 0]);
    let commit = format!("http://127.0.0.1:{}/api/{}/_stream_load_2pc", server.http_port(), db.name);
    let (status, text) = Curl::put(&commit)
        .header("txn_operation: commit")
        .header(&format!("txn_id: {}", reply.get("TxnId")))
        .status_and_text();
    assert!(status == 200 && text.contains("commit successfully"), "{text}");
    let sql = format!("sql: insert into {}.dt select * from http_stream('column_separator' = ',')", db.name);
    Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
        .header(&sql)
        .body("0,z,1\n")
        .load()
        .success();
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "200003");
    // Clients that may not log in are told so at once; the other port, and requests that are not loads, are answered directly.
    let (status, text) = load(&url, "root:wrong").status_and_text();
    assert!(status == 401 && text.contains("[NOT_AUTHORIZED]"), "{status}: {text}");
    load(&url.replace(&server.http_port().to_string(), &server.webserver_port().to_string()), "root:")
        .load()
        .success();
    assert_eq!(get(&server, "/api/health")["msg"], "success");
}
