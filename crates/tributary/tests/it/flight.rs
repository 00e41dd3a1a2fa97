//! Arrow Flight SQL: pyarrow's and ADBC's clients, unmodified.

use crate::support::certificates::Authority;
use crate::support::programs::python;
use crate::support::{Client, Curl, Server, wait_until};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server with the port.
fn served(more: &[(&str, &str)]) -> Server {
    let mut settings = vec![("arrow_flight_sql_port", "0")];
    settings.extend(more);
    Server::with_settings(&settings)
}

fn check(server: &Server, name: &str, more: &[&str]) {
    let port = server.flight_port().to_string();
    let arguments: Vec<&str> = [name, &port].into_iter().chain(more.iter().copied()).collect();
    assert_eq!(python("flight_checks.py", &arguments), "ok\n");
}

fn check_in_database(name: &str, more: &[&str]) {
    let server = served(&[]);
    let db = server.database();
    let arguments: Vec<&str> = [db.name.as_str()].into_iter().chain(more.iter().copied()).collect();
    check(&server, name, &arguments);
}

#[test]
fn passwords_are_those_of_the_other_ports() {
    check(&served(&[]), "logins", &[]);
}

#[test]
fn strangers_get_no_answer_and_a_token_ends_with_its_session() {
    check(&served(&[]), "strangers", &[]);
}

#[test]
fn actions_that_there_are_not_are_refused_by_their_names() {
    check(&served(&[]), "actions", &[]);
}

#[test]
fn values_of_all_types_are_arrows() {
    check_in_database("types", &[]);
}

#[test]
fn statements_run_in_a_session() {
    check_in_database("statements", &[]);
}

#[test]
fn a_large_result_arrives_whole_and_one_that_is_left_ends() {
    check_in_database("large", &["300000"]);
}

#[test]
fn prepared_statements_take_parameters() {
    check_in_database("prepared", &[]);
}

#[test]
fn rows_are_loaded_in_every_mode() {
    check_in_database("ingest", &[]);
}

#[test]
fn statements_and_sessions_are_killed() {
    check_in_database("kills", &[]);
}

#[test]
fn a_table_that_is_forbidden_is_like_one_that_is_missing() {
    check_in_database("privileges", &[]);
}

#[test]
fn names_of_the_catalog_are_listed() {
    check_in_database("names", &[]);
}

#[test]
fn clients_use_tls_and_others_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(dir.path());
    let mut settings = authority.settings();
    settings.push(("require_secure_transport".to_owned(), "true".to_owned()));
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    check(&served(&settings), "encrypted", &[&authority.path("ca.pem"), "root", ""]);
}

#[test]
fn the_port_is_off_until_it_is_asked_for_and_is_shown() {
    let port = |client: &mut Client, statement: &str| {
        let rows = client.rows(statement);
        rows[0].split('|').nth(6).expect("ArrowFlightSqlPort").to_owned()
    };
    let server = Server::start();
    assert_eq!(server.ready().flight, None);
    assert_eq!(port(&mut server.connect(), "SHOW FRONTENDS"), "-1");
    let server = served(&[]);
    let expected = server.flight_port().to_string();
    assert_eq!(port(&mut server.connect(), "SHOW FRONTENDS"), expected);
    assert_eq!(port(&mut server.connect(), "SHOW BACKENDS"), expected);
}

#[test]
fn the_audit_log_and_the_metrics_have_the_door() {
    let log = tempfile::tempdir().expect("a directory");
    let server = served(&[("audit_log_dir", &log.path().display().to_string())]);
    let db = server.database();
    check(&server, "ingest", &[&db.name]);
    let metrics = Curl::anonymous(&format!("http://127.0.0.1:{}/metrics", server.http_port())).text();
    for (door, least) in [("flight", 10), ("flight_load", 8), ("flight_login", 2)] {
        let line = format!("tributary_requests_total{{door=\"{door}\"}} ");
        let count = metrics.lines().find_map(|found| found.strip_prefix(line.as_str())).expect(door);
        assert!(count.parse::<u64>().expect("a number") >= least, "{door}: {count}");
    }
    let records = || {
        let files = std::fs::read_dir(log.path()).expect("the directory");
        let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a log"));
        texts.collect::<String>()
    };
    wait_until("the log has the load", || {
        let records = records();
        let has = |words: [&str; 2]| records.lines().any(|line| words.iter().all(|word| line.contains(word)));
        has(["\"flight_load\"", "DoPut"])
            && has(["\"flight\"", "CREATE TABLE g"])
            && has(["\"flight_login\"", "LOGIN"])
    });
}

#[test]
fn clients_that_say_nothing_make_room() {
    let server = served(&[]);
    let silent = || TcpStream::connect(("127.0.0.1", server.flight_port())).expect("it listens");
    let mut first = silent();
    let _others: Vec<TcpStream> = (0..256).map(|_| silent()).collect();
    first.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    // The settings of HTTP/2 come first; then the end, or a reset.
    let mut received = [0; 4096];
    let ended = loop {
        match first.read(&mut received) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() == ErrorKind::ConnectionReset,
        }
    };
    assert!(ended, "the oldest one made room");
    check(&server, "strangers", &[]);
}

#[test]
fn nonsense_ends_its_connection_and_no_other() {
    let server = served(&[]);
    for nonsense in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0xff; 4096],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff",
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", server.flight_port())).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let _ = stream.write_all(nonsense);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    check(&server, "strangers", &[]);
}

#[test]
fn connectors_are_told_the_only_tablet_and_read_it() {
    let server = Server::with_settings(&[("arrow_flight_sql_port", "0")]);
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 5), (2, 'b', 6)");
    db.client.ok("SYNC");
    let url = |port: u16| format!("http://127.0.0.1:{port}/api/{}/dt/_query_plan", db.name);
    let plan = |port: u16, sql: &str| -> Value {
        let text = Curl::as_user("root:", &url(port)).body(&json!({ "sql": sql }).to_string()).text();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))["data"].take()
    };
    let of_table = format!("select `id` from `{}`.`dt` where id > 1", db.name);
    let found = plan(server.http_port(), &of_table);
    assert_eq!((&found["status"], &found["opaqued_query_plan"]), (&json!(200), &json!("")), "{found}");
    let partitions = found["partitions"].as_object().expect("tablets");
    let (tablet, routes) = partitions.iter().next().expect("one");
    assert_eq!(partitions.len(), 1);
    assert!(
        tablet.parse::<u64>().is_ok() && routes["routings"][0].as_str().unwrap().ends_with(":0"),
        "{found}"
    );
    let read = format!(
        "/* ApplicationName=Spark ArrowFlightSQL Query */SELECT `id` FROM {}.dt TABLET({tablet}) WHERE id > 1",
        db.name
    );
    assert_eq!(db.client.rows(&read), ["2"]);
    assert_eq!(python("flight_checks.py", &["tablet", &server.flight_port().to_string(), &read]), "ok\n");
    assert_eq!(
        db.client.rows(&format!("SELECT d.id FROM dt TABLET({tablet}, {tablet}) AS d LIMIT 1")).len(),
        1
    );
    db.client.refused("SELECT id FROM dt TABLET(1, 2)", 1105, "is none of table dt: its only one is");
    db.client.ok("CREATE VIEW v AS SELECT id FROM dt");
    db.client.refused(&format!("SELECT id FROM v TABLET({tablet})"), 1747, "");
    for (sql, text) in [
        ("", "the body has no statement"),
        ("select * from other", "a plan is only for SELECT"),
        ("select count(*) from dt join dt d using (id)", "a plan is only for SELECT"),
        ("select * from dt limit 1", "a plan is only for SELECT"),
        ("selec", "error"),
    ] {
        let refused = plan(server.http_port(), sql);
        assert_ne!(refused["status"], json!(200), "{sql}");
        assert!(refused["exception"].as_str().is_some_and(|found| found.contains(text)), "{sql}: {refused}");
    }
    let off = Server::shared();
    let other = off.database().with_dt("");
    let url = format!("http://127.0.0.1:{}/api/{}/dt/_query_plan", off.http_port(), other.name);
    let text = Curl::as_user("root:", &url).body("{\"sql\": \"select * from dt\"}").text();
    assert!(text.contains("set arrow_flight_sql_port"), "{text}");
}
