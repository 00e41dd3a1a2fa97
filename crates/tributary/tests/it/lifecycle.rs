//! Starting, stopping and crashing: acknowledged rows exist exactly once afterwards.

use crate::support::server::{command, program};
use crate::support::{Curl, Server, wait_until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn the_ready_line_tells_the_addresses_and_the_directory() {
    let server = Server::start();
    let ready = server.ready();
    for (address, port) in [
        (&ready.mysql, server.mysql_port()),
        (&ready.http, server.http_port()),
        (&ready.webserver, server.webserver_port()),
    ] {
        assert_eq!(*address, format!("127.0.0.1:{port}"));
        assert_ne!(port, 0);
    }
    assert_eq!(ready.data, server.data().display().to_string());
}

#[test]
fn a_second_server_on_the_same_directory_is_refused_and_told_why() {
    let server = Server::start();
    let output = command(&server.data()).output().expect("the program runs");
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("in use by another server"), "{error}");
    assert!(error.contains(&server.data().display().to_string()), "{error}");
    assert_eq!(server.connect().value("SELECT 1"), "1", "the first server is unharmed");
}

#[test]
fn more_connections_than_the_shell_allows_open_files_are_served() {
    let server = Server::with_file_limit(64);
    let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.value("SELECT 1"), "1");
    }
}

#[test]
fn a_server_that_others_can_reach_needs_a_password_for_root() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = command(directory.path()).args(["--bind", "0.0.0.0"]).output().expect("the program runs");
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("root") && error.contains("SET PASSWORD"), "{error}");
}

#[test]
fn files_of_the_server_are_in_no_directory_that_statements_may_use() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (data, wal) = (directory.path().join("data"), directory.path().join("logs/wal"));
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).expect("a link");
    std::fs::create_dir_all(directory.path().join("logs")).expect("a directory");
    for (open, own) in [
        (directory.path().to_owned(), &data),
        (data.clone(), &data),
        (data.join("tables"), &data),
        (link.join("data"), &data),
        (directory.path().join("logs"), &wal),
    ] {
        std::fs::create_dir_all(&open).expect("a directory");
        let mut server = command(&data);
        server.env("TRIBUTARY_GROUP_COMMIT_WAL_PATH", &wal);
        let output =
            server.env("TRIBUTARY_MYSQL_LOAD_SERVER_SECURE_PATH", &open).output().expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&format!("the server's own files are in {}", own.display())), "{error}");
    }
}

#[test]
fn an_unknown_setting_and_a_bad_value_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, value, message) in [
        (
            "TRIBUTARY_FLUSH_AGE",
            "1",
            "unknown setting `flush_age` (environment TRIBUTARY_FLUSH_AGE), did you mean `flush_age_ms`?",
        ),
        (
            "TRIBUTARY_FLUSH_AGE_MS",
            "soon",
            "setting `flush_age_ms` (environment TRIBUTARY_FLUSH_AGE_MS): `soon` is not a whole number",
        ),
    ] {
        let output = command(directory.path()).env(name, value).output().expect("the program runs");
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn config_prints_a_file_that_sets_the_same_values() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let printed =
        program().arg("config").env("TRIBUTARY_FLUSH_AGE_MS", "1234").output().expect("the program runs");
    let text = String::from_utf8(printed.stdout).expect("UTF-8");
    assert!(text.contains("[environment TRIBUTARY_FLUSH_AGE_MS]\nflush_age_ms = 1234"), "{text}");
    let file = directory.path().join("tributary.toml");
    std::fs::write(&file, &text).expect("the file is written");
    let again = program().arg("config").arg("--config").arg(&file).output().expect("the program runs");
    assert!(String::from_utf8_lossy(&again.stdout).contains("flush_age_ms = 1234"), "{again:?}");
}

#[test]
fn stopping_commits_open_groups() {
    let mut server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"3600000\")");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    assert_eq!(client.value("SELECT count(*) FROM dt"), "0");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    server.start_again();
    assert_eq!(server.connect_to("db").rows("SELECT * FROM dt ORDER BY id"), ["1|a|1", "2|b|2"]);
}

#[test]
fn an_interrupt_stops_like_a_terminate() {
    let server = Server::start();
    server.signal("INT");
    wait_until("the server has stopped", || server.log().contains("stopped"));
}

#[test]
fn acknowledged_rows_of_every_mode_survive_a_crash() {
    let mut server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"500\")");
    client.ok("INSERT INTO dt VALUES (1, 'off', 1)");
    client.ok("SET group_commit = sync_mode");
    client.ok("INSERT INTO dt VALUES (2, 'sync', 2)");
    client.ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"3600000\")");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (3, 'async', 3)");
    Curl::stream_load(&server, "db", "dt")
        .header("column_separator:,")
        .header("group_commit:async_mode")
        .body("4,stream,4\n")
        .load()
        .success();
    client.ok("BEGIN");
    client.ok("INSERT INTO dt VALUES (5, 'never committed', 5)");
    server.kill();
    for _ in 0..2 {
        server.start_again();
        let mut client = server.connect_to("db");
        client.ok("SYNC");
        let rows = client.rows("SELECT id, name FROM dt ORDER BY id");
        assert_eq!(rows, ["1|off", "2|sync", "3|async", "4|stream"]);
        server.kill();
    }
}

#[test]
fn the_catalog_survives_a_crash() {
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE kept");
    client.ok("USE kept");
    client.ok(crate::support::DT);
    client.ok("ALTER TABLE dt SET (\"group_commit_mode\" = \"sync_mode\")");
    client.ok("CREATE DATABASE gone");
    client.ok("DROP DATABASE gone");
    let shown = client.value("SHOW CREATE TABLE dt");
    server.kill();
    server.start_again();
    let mut client = server.connect_to("kept");
    assert_eq!(client.value("SHOW CREATE TABLE dt"), shown);
    assert!(!client.rows("SHOW DATABASES").contains(&"gone".to_owned()));
}

#[test]
fn rows_of_a_dropped_or_truncated_table_do_not_come_back() {
    let mut server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("DROP TABLE dt");
    client.ok(crate::support::DT);
    client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    client.ok("SYNC");
    client.ok("TRUNCATE TABLE dt");
    client.ok("INSERT INTO dt VALUES (3, 'c', 3)");
    server.kill();
    server.start_again();
    let mut client = server.connect_to("db");
    client.ok("SYNC");
    assert_eq!(client.rows("SELECT id FROM dt"), ["3"]);
}

/// Eight writers, four of each mode, until the server is killed among them; then every acknowledged row must exist exactly once.
#[test]
fn rows_acknowledged_to_concurrent_writers_survive_a_crash_exactly_once() {
    for (round, wait_rows) in [200, 700].into_iter().enumerate() {
        let mut server =
            Server::with_settings(&[("flush_bytes", "65536"), ("flush_age_ms", "200")]).with_manual_table();
        server.connect_to("db").ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"50\")");
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..8_u32)
            .map(|writer| {
                let (mut client, acknowledged) = (server.connect_to("db"), Arc::clone(&acknowledged));
                let is_over = Arc::clone(&is_over);
                std::thread::spawn(move || {
                    client.ok(if writer % 2 == 0 {
                        "SET group_commit = async_mode"
                    } else {
                        "SET group_commit = sync_mode"
                    });
                    for number in 0.. {
                        let id = writer * 1_000_000 + number;
                        let sent =
                            client.try_send(&format!("INSERT INTO dt VALUES ({id}, 'w{writer}', {number})"));
                        if sent.is_none() || is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        acknowledged.lock().expect("no writer panics with the list").push(id);
                    }
                })
            })
            .collect();
        wait_until("enough rows are acknowledged", || {
            acknowledged.lock().expect("no writer panics with the list").len() >= wait_rows
        });
        server.kill();
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("a writer ends when its connection does");
        }
        server.start_again();
        let mut client = server.connect_to("db");
        client.ok("SYNC");
        let found: Vec<u32> = client
            .rows("SELECT id FROM dt ORDER BY id")
            .iter()
            .map(|id| id.parse().expect("a number"))
            .collect();
        let mut once = found.clone();
        once.dedup();
        assert_eq!(once.len(), found.len(), "round {round}: a row is there twice");
        let acknowledged = acknowledged.lock().expect("all writers have ended");
        let lost: Vec<_> = acknowledged.iter().filter(|id| once.binary_search(id).is_err()).collect();
        assert!(lost.is_empty(), "round {round}: {} acknowledged rows are lost: {lost:?}", lost.len());
        assert!(
            once.len() <= acknowledged.len() + 8,
            "round {round}: at most one row of each writer was under way"
        );
    }
}

#[test]
fn changes_of_columns_are_shown_as_finished_after_a_restart_too() {
    let mut server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("ALTER TABLE dt ADD COLUMN a INT");
    client.ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"100\")");
    client.ok("ALTER TABLE dt DROP COLUMN a");
    client.ok("ALTER TABLE dt ADD COLUMN b INT, ADD COLUMN c INT");
    client.ok("CREATE TABLE unchanged (a INT)");
    let question = "SHOW ALTER TABLE COLUMN FROM db";
    let jobs = client.rows(question);
    let states = jobs.iter().filter(|job| job.contains("|dt|") && job.contains("|FINISHED|")).count();
    assert_eq!((jobs.len(), states), (3, 3), "one for each statement that changed columns: {jobs:?}");
    assert_eq!(
        client.rows(&format!("{question} WHERE TableName = 'dt' ORDER BY JobId DESC LIMIT 1")),
        jobs[2..]
    );
    assert!(client.rows(&format!("{question} WHERE State <> 'FINISHED'")).is_empty());
    server.kill();
    server.start_again();
    assert_eq!(server.connect().rows(question), jobs);
}
