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
fn health_tells_one_living_back_end() {
    let server = Server::shared();
    let expected = json!({
        "msg": "success", "code": 0, "data": {"total_backend_num": 1, "online_backend_num": 1}, "count": 0,
    });
    assert_eq!(get(&server, "/api/health"), expected);
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
