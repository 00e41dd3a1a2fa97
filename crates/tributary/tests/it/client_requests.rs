//! Requests over HTTP that clients of Doris send before, beside and after their loads, each with what they read of the answer. Loads
//! themselves have other tests.

use crate::support::{Curl, PATIENCE, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

fn url(server: &Server, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", server.http_port())
}

/// The answer to a request without a body.
fn get(server: &Server, path: &str) -> Value {
    answer(Curl::get(&url(server, path)), path)
}

/// Posts a statement.
fn post(server: &Server, path: &str, statement: &str) -> Value {
    let body = json!({ "stmt": statement }).to_string();
    let curl = Curl::get(&url(server, path)).argument("-X").argument("POST");
    answer(curl.header("Content-Type: application/json;charset=UTF-8").body(&body), statement)
}

fn answer(curl: Curl, what: &str) -> Value {
    let (status, text) = curl.status_and_text();
    assert_eq!(status, 200, "{what}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"))
}

/// The data of a successful answer.
fn data(answer: &Value) -> &Value {
    assert_eq!((&answer["code"], &answer["msg"]), (&json!(0), &json!("success")), "{answer}");
    &answer["data"]
}

/// Flink and Spark ask for `/`, Kafka's connector and DataX only connect.
#[test]
fn both_ports_show_that_they_live_without_a_login() {
    let server = Server::shared();
    for port in [server.http_port(), server.webserver_port()] {
        let (status, _) = Curl::anonymous(&format!("http://127.0.0.1:{port}/")).status_and_text();
        assert!(status < 500, "{status}");
        drop(TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
        let mut silent = TcpStream::connect(("127.0.0.1", port)).expect("it listens still");
        silent.set_read_timeout(Some(PATIENCE)).expect("above zero");
        silent.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        silent.read_to_string(&mut answer).expect("read");
        assert!(answer.starts_with("HTTP/1.") && answer.contains(" 200 "), "{answer}");
    }
}

/// Flink, Spark, Kafka's connector and streamloader read these by name, and numbers as numbers that fit.
#[test]
fn the_answer_to_a_load_has_all_that_connectors_read() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    for two_phase in ["false", "true"] {
        let reply = Curl::stream_load(&server, &db.name, "dt")
            .header("Expect: 100-continue")
            .header("column_separator: ,")
            .header(&format!("two_phase_commit: {two_phase}"))
            .body("1,a,1\n2,b,2\n")
            .load()
            .success();
        let json: Value = serde_json::from_str(&reply.text).expect("JSON");
        assert_eq!(json["TwoPhaseCommit"], two_phase, "a text");
        assert!(json["Label"].is_string() && json["Message"].is_string(), "{json}");
        for name in ["TxnId", "NumberTotalRows", "NumberLoadedRows", "LoadBytes"] {
            assert!(json[name].is_i64(), "{name}: {json}");
        }
        let small = [
            "NumberFilteredRows",
            "NumberUnselectedRows",
            "LoadTimeMs",
            "BeginTxnTimeMs",
            "StreamLoadPutTimeMs",
            "ReadDataTimeMs",
            "WriteDataTimeMs",
            "CommitAndPublishTimeMs",
        ];
        for name in small {
            assert!(json[name].as_i64().is_some_and(|value| i32::try_from(value).is_ok()), "{name}: {json}");
        }
    }
}

/// Flink and SeaTunnel send an empty load at their start, to find transactions that an earlier run has left.
#[test]
fn an_empty_two_phase_load_begins_a_transaction_that_the_next_one_finds() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let empty = || {
        Curl::stream_load(&server, &db.name, "dt")
            .headers(&["Expect: 100-continue", "Content-Type: text/plain; charset=ISO-8859-1"])
            .headers(&["two_phase_commit: true", "label: job_d_dt_0_1", "group_commit: sync_mode"])
            .body("")
            .load()
    };
    let first = empty().success();
    let txn = first.get("TxnId");
    assert!(txn.parse::<u64>().is_ok() && first.get("TwoPhaseCommit") == "true", "{}", first.text);
    let again = empty();
    assert_eq!(again.status(), "Label Already Exists");
    assert_eq!((again.get("TwoPhaseCommit"), again.label()), ("true".into(), "job_d_dt_0_1".into()));
    let found = format!(
        "errCode = 2, detailMessage = Label [job_d_dt_0_1] has already been used, relate to txn [{txn}]"
    );
    assert!(again.message().contains(&found), "{}", again.text);
    assert_eq!(again.get("ExistingJobStatus"), "PRECOMMITTED");
    let state = get(&server, &format!("/api/{}/get_load_state?label=job_d_dt_0_1", db.name));
    assert_eq!(data(&state), "PRECOMMITTED");
    let abort = Curl::put(&url(&server, &format!("/api/{}/_stream_load_2pc", db.name)))
        .headers(&["Expect: 100-continue", "txn_operation: abort"])
        .header(&format!("txn_id: {txn}"))
        .body("");
    assert_eq!(answer(abort, "abort")["status"], "Success");
    empty().success();
}

/// The connectors look for these texts.
#[test]
fn two_phase_commits_say_what_they_found_as_doris_does() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let load = |label: &str| {
        let load = Curl::stream_load(&server, &db.name, "dt").header("column_separator: ,");
        let load = load.header("two_phase_commit: true").header(&format!("label: {label}"));
        load.body("1,a,1\n").load().success().get("TxnId")
    };
    let phase = |path: &str, target: &str, operation: &str| {
        let url = url(&server, &format!("/api/{}{path}/_stream_load_2pc", db.name));
        let curl = Curl::put(&url).header(target).header(&format!("txn_operation: {operation}"));
        let answer = answer(curl, target);
        let text = |key: &str| answer[key].as_str().unwrap_or_else(|| panic!("{key}: {answer}")).to_owned();
        (text("status"), text("msg"))
    };
    let txn = load("committed");
    let (status, _) = phase("", &format!("txn_id: {txn}"), "commit");
    assert_eq!(status, "Success");
    let (status, text) = phase("/dt", "label: committed", "commit");
    assert_ne!(status, "Success");
    let expected =
        format!("errCode = 2, detailMessage = transaction [{txn}] is already visible, not pre-committed.");
    assert!(text.ends_with(&expected), "{text}");
    let (_, text) = phase("", &format!("txn_id: {txn}"), "abort");
    assert!(text.contains(&format!("transaction [{txn}] is already visible")), "{text}");
    let txn = load("aborted");
    let (status, _) = phase("/dt", "label: aborted", "abort");
    assert_eq!(status, "Success");
    let (_, text) = phase("", &format!("txn_id: {txn}"), "abort");
    assert!(text.contains(&format!("transaction [{txn}] is already aborted")), "{text}");
    let (_, text) = phase("", "txn_id: 999999999", "abort");
    assert!(text.contains("transaction [999999999] not found"), "{text}");
}

/// Flink, Spark, Kafka's connector and SeaTunnel take the words of types from it, with their case.
#[test]
fn a_tables_schema_has_the_words_of_types_that_connectors_know() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE t (k INT NOT NULL COMMENT 'the key', b BOOLEAN, ti TINYINT, si SMALLINT, bi BIGINT, li LARGEINT, f FLOAT, \
         do DOUBLE, d9 DECIMAL(9, 2), d18 DECIMAL(18, 2), d38 DECIMAL(38, 2), da DATE, at DATETIME(3), c CHAR(5), v VARCHAR(9), \
         s STRING, j JSON, va VARIANT, i4 IPV4, i6 IPV6, a ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<x: INT>) UNIQUE KEY(k)",
    );
    let paths = ["", "internal/"].map(|catalog| format!("/api/{catalog}{}/t/_schema", db.name));
    for path in paths {
        let schema = get(&server, &path);
        let schema = data(&schema);
        assert_eq!((&schema["status"], &schema["keysType"]), (&json!(200), &json!("UNIQUE_KEYS")));
        let properties = schema["properties"].as_array().expect("a list");
        let words: Vec<&str> = properties.iter().filter_map(|column| column["type"].as_str()).collect();
        let expected = [
            "INT",
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "BIGINT",
            "LARGEINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL32",
            "DECIMAL64",
            "DECIMAL128",
            "DATEV2",
            "DATETIMEV2",
            "CHAR",
            "VARCHAR",
            "STRING",
            "JSONB",
            "VARIANT",
            "IPV4",
            "IPV6",
            "ARRAY",
            "MAP",
            "STRUCT",
        ];
        assert_eq!(words, expected);
        assert_eq!((&properties[0]["name"], &properties[0]["comment"]), (&json!("k"), &json!("the key")));
        assert_eq!((&properties[8]["precision"], &properties[8]["scale"]), (&json!("9"), &json!("2")));
    }
}

/// Vector and monitors.
#[test]
fn bootstrap_says_success_without_a_login() {
    let server = Server::shared();
    for credentials in [Curl::anonymous, Curl::get] {
        let answer = answer(credentials(&url(&server, "/api/bootstrap")), "bootstrap");
        assert_eq!(answer["msg"], "success");
    }
}

/// Flink's CDC jobs and Kafka's connector change and read schemas so; Flink asks for the port of Arrow Flight in `information_schema`.
#[test]
fn connectors_run_statements_of_schemas_over_http() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let path = format!("/api/query/default_cluster/{}", db.name);
    let run = |path: &str, statement: &str| {
        let answer = post(&server, path, statement);
        let data = data(&answer);
        let names = data["meta"].as_array().map_or(Vec::new(), |meta| {
            meta.iter().filter_map(|column| column["name"].as_str().map(str::to_owned)).collect()
        });
        (names, data["data"].clone())
    };
    let (names, rows) = run("/api/query/default_cluster/information_schema", "show frontends");
    for name in ["Host", "HttpPort", "QueryPort", "ArrowFlightSqlPort"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    let name = &db.name;
    run(&path, &format!("ALTER TABLE `{name}`.`dt` ADD COLUMN `more` INT DEFAULT '5' COMMENT 'x'"));
    let (names, rows) = run(&path, &format!("SHOW FULL COLUMNS FROM `{name}`.`dt`"));
    assert_eq!((names[0].as_str(), names[5].as_str()), ("Field", "Default"));
    assert_eq!((&rows[3][0], &rows[3][5]), (&json!("more"), &json!("5")));
    let (_, rows) = run(
        &path,
        &format!(
            "SELECT COLUMN_NAME FROM information_schema.`COLUMNS` WHERE TABLE_SCHEMA='{name}' AND TABLE_NAME='dt' AND \
             COLUMN_NAME='more'"
        ),
    );
    assert_eq!(rows, json!([["more"]]));
    let (_, rows) = run(
        &path,
        &format!("SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA` WHERE SCHEMA_NAME='{name}'"),
    );
    assert_eq!(rows, json!([[name]]));
    let failed = post(&server, &path, "ALTER TABLE nothing ADD COLUMN c INT");
    assert_ne!(failed["code"], 0, "{failed}");
}

/// Flink's CDC jobs ask it with a body, although it is a GET.
#[test]
fn light_schema_changes_are_enabled_for_a_table() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let ask = |table: &str| {
        let path = url(&server, &format!("/api/enable_light_schema_change/{}/{table}", db.name));
        let curl = Curl::get(&path).argument("-X").argument("GET").header("Content-Type: application/json");
        answer(curl.body(r#"{"isDropColumn":false,"columnName":"c"}"#), table)
    };
    assert_eq!(ask("dt")["code"], 0);
    assert_ne!(ask("nothing")["code"], 0);
}

/// Spark's connector, with `doris.fe.auto.fetch` or a compute group.
#[test]
fn the_managers_lists_of_nodes_name_this_server() {
    let server = Server::shared();
    for (path, port_name, port) in [
        ("frontends", "HttpPort", server.http_port()),
        ("frontends", "QueryPort", server.mysql_port()),
        ("backends", "HttpPort", server.webserver_port()),
    ] {
        let list = get(&server, &format!("/rest/v2/manager/node/{path}"));
        let list = data(&list);
        assert_eq!(list["columnNames"], list["column_names"]);
        let names: Vec<&str> =
            list["columnNames"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let rows = list["rows"].as_array().expect("a list");
        assert_eq!(rows.len(), 1, "{list}");
        let value = |name: &str| {
            let at = names.iter().position(|found| *found == name);
            at.map(|at| rows[0][at].as_str().expect("a text").to_owned())
        };
        assert_eq!(value(port_name), Some(port.to_string()), "{path}");
        assert_eq!(value("Host").as_deref(), Some("127.0.0.1"), "{path}");
        assert_eq!(value("Alive").as_deref(), Some("true"), "{path}");
        if path == "backends" {
            assert!(value("Tag").is_some_and(|tag| tag.contains("location")), "{list}");
        }
        assert!(rows[0].as_array().is_some_and(|row| row.iter().all(Value::is_string)), "{list}");
    }
}

/// Those of the COPY mode of Flink and Spark, of ancient connectors and of binlog sources.
#[test]
fn paths_that_are_not_there_are_client_errors() {
    let server = Server::shared();
    for (method, path) in [
        ("PUT", "/copy/upload"),
        ("POST", "/copy/query"),
        ("POST", "/rest/v1/login"),
        ("GET", "/api/tso"),
        ("GET", "/rest/v2/manager/node/nothing"),
    ] {
        let curl = Curl::get(&url(&server, path)).argument("-X").argument(method).body("{}");
        let (status, text) = curl.status_and_text();
        assert!((400..500).contains(&status), "{method} {path}: {status}: {text}");
    }
}
