//! Data directories that earlier versions of the program left behind after `kill -9`: each is opened for ever.
//!
//! `fixtures/write_data_directory.py` wrote them, once each, and queried that version for their contents. They contain everything
//! that is hard to read back: rows of all types and of several schemas in data files and in the write-ahead log, an open group,
//! prepared loads, labels in the catalog and in the log, truncated tables, a user with a password.

use crate::support::programs::{repository, run};
use crate::support::{Curl, LoadReply, Server};
use std::path::PathBuf;
use std::process::Command;

/// The versions with stored data directories.
const VERSIONS: [&str; 1] = ["0.1.0"];

/// Labels and prepared loads stay, however long ago the directory was written.
const FOR_EVER: [(&str, &str); 2] =
    [("stream_load_default_precommit_timeout_second", "4294967295"), ("label_keep_max_second", "4294967295")];

fn fixture(name: &str) -> PathBuf {
    repository().join("crates/tributary/tests/fixtures").join(name)
}

/// A server of today on a copy of the data directory.
fn start(version: &str) -> Server {
    start_with(version, None)
}

/// As [`start`], with one more file in the directory.
fn start_with(version: &str, file: Option<(&str, &[u8])>) -> Server {
    Server::on(&FOR_EVER, |directory| {
        let archive = fixture(&format!("data-{version}.tar.gz"));
        run("tar", Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(directory)).success();
        if let Some((name, contents)) = file {
            std::fs::write(directory.join("data").join(name), contents).expect("written");
        }
    })
}

/// The statements that the old version ran, each with the rows of its answer.
fn answers(version: &str) -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(fixture(&format!("data-{version}.txt"))).expect("the old answers");
    let mut answers: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("> "), answers.last_mut()) {
            (Some(statement), _) => answers.push((statement.to_owned(), Vec::new())),
            (None, Some((_, rows))) => rows.push(line.to_owned()),
            (None, None) => panic!("rows before a statement: {line}"),
        }
    }
    assert!(answers.len() > 10, "{answers:?}");
    answers
}

fn assert_same_answers(server: &Server, answers: &[(String, Vec<String>)]) {
    let mut client = server.connect();
    for (statement, expected) in answers {
        let rows: Vec<String> =
            client.rows(statement).into_iter().map(|row| row.replace('\n', "\\n")).collect();
        assert_eq!(&rows, expected, "{statement}");
    }
}

fn load(server: &Server, label: &str) -> LoadReply {
    let load = Curl::stream_load(server, "logs", "modes").header("column_separator:,");
    load.header(&format!("label:{label}")).body("100,again\n").load()
}

/// Commits or aborts a prepared load by its label.
fn second_phase(server: &Server, label: &str, operation: &str) {
    let url = format!("http://127.0.0.1:{}/api/logs/_stream_load_2pc", server.http_port());
    let headers = [format!("label:{label}"), format!("txn_operation:{operation}")];
    let reply = Curl::put(&url).headers(&headers).load();
    assert_eq!(reply.get("status"), "Success", "{}", reply.text);
}

#[test]
fn every_row_of_an_old_data_directory_is_there_and_stays() {
    for version in VERSIONS {
        let answers = answers(version);
        let mut server = start(version);
        assert_same_answers(&server, &answers);
        // A stop flushes the rows from the log.
        assert!(server.stop().success());
        server.start_again();
        assert_same_answers(&server, &answers);
    }
}

#[test]
fn an_old_data_directory_opens_wherever_its_first_start_was_cut_off() {
    for version in VERSIONS {
        let answers = answers(version);
        let mut server = start(version);
        let node = std::fs::read(server.data().join("node.json")).expect("the first start writes it");
        let text = String::from_utf8_lossy(&node).into_owned();
        assert!(text.contains("\"dir\": \"wal\"") && text.contains("\"log\""), "{text}");
        server.kill();
        // Before the file had its name, and after that but before the catalog was updated.
        for (name, contents) in [("node.json.new", &node[..node.len() / 2]), ("node.json", &node)] {
            let mut server = start_with(version, Some((name, contents)));
            assert_same_answers(&server, &answers);
            assert_eq!(std::fs::read(server.data().join("node.json")).expect("the file"), node, "{name}");
            server.kill();
            server.start_again();
            assert_same_answers(&server, &answers);
        }
    }
}

#[test]
fn an_old_table_is_loaded_changed_and_restarted() {
    for version in VERSIONS {
        let mut server = start(version);
        let mut client = server.connect_to("shop");
        for mode in ["off_mode", "sync_mode", "async_mode"] {
            client.ok(&format!("SET group_commit = {mode}"));
            client.ok("INSERT INTO orders (id, place) VALUES (100, 'new')");
            client.ok("INSERT INTO all_types (id) VALUES (100)");
            client.ok("INSERT INTO logs.modes VALUES (100, 'new')");
        }
        // Its group stays open.
        client.ok("INSERT INTO logs.open_group VALUES (100, 'new')");
        client.ok("ALTER TABLE orders ADD COLUMN newest INT DEFAULT '7'");
        client.ok("ALTER TABLE orders DROP COLUMN late");
        client.ok("CREATE TABLE fresh (a INT)");
        client.ok("TRUNCATE TABLE emptied");
        server.kill();
        server.start_again();
        let mut client = server.connect_to("shop");
        assert_eq!(client.value("SELECT count(*), sum(newest) FROM orders WHERE id < 100"), "6|42");
        assert_eq!(client.value("SELECT count(*), min(price) FROM orders WHERE id = 100"), "3|9.99");
        assert_eq!(client.value("SELECT count(*) FROM all_types"), "9");
        assert_eq!(client.value("SELECT count(*) FROM logs.modes"), "13");
        assert_eq!(client.value("SELECT count(*) FROM logs.open_group"), "6");
        assert_eq!(client.value("SELECT count(*) FROM emptied"), "0");
        assert_eq!(client.value("SELECT count(*) FROM fresh"), "0");
    }
}

#[test]
fn labels_of_an_old_data_directory_stay_used() {
    for version in VERSIONS {
        let mut server = start(version);
        for _ in 0..2 {
            for label in [
                "in-the-catalog",
                "insert-in-the-catalog",
                "insert-in-the-log",
                "stream-in-the-log",
                "large-in-the-log",
                "was-committed",
            ] {
                let reply = load(&server, label);
                assert_eq!(reply.status(), "Label Already Exists", "{label}: {}", reply.text);
                assert_eq!(reply.get("ExistingJobStatus"), "FINISHED", "{label}");
            }
            for label in ["to-commit", "to-commit-large", "to-abort"] {
                assert_eq!(load(&server, label).get("ExistingJobStatus"), "PRECOMMITTED", "{label}");
            }
            server.kill();
            server.start_again();
        }
        load(&server, "was-aborted").success();
    }
}

#[test]
fn prepared_loads_of_an_old_data_directory_are_finished() {
    for version in VERSIONS {
        let mut server = start(version);
        second_phase(&server, "to-commit", "commit");
        second_phase(&server, "to-commit-large", "commit");
        second_phase(&server, "to-abort", "abort");
        let question = "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM logs.prepared";
        assert_eq!(server.connect().value(question), "2003|2003|1|2099");
        server.kill();
        server.start_again();
        assert_eq!(server.connect().value(question), "2003|2003|1|2099");
    }
}

#[test]
fn users_of_an_old_data_directory_log_in_with_their_passwords() {
    for version in VERSIONS {
        let server = start(version);
        let url = format!("http://127.0.0.1:{}/api/logs/modes/_stream_load", server.http_port());
        let load = |credentials: &str| {
            let load = Curl::as_user(credentials, &url).argument("-X").argument("PUT");
            load.header("column_separator:,").body("100,by a user\n").status_and_text()
        };
        let (status, text) = load("reader:secret");
        assert!(status == 200 && LoadReply::parse(&text).status() == "Success", "{status} {text}");
        for wrong in ["reader:wrong", "reader:", "admin:"] {
            let (status, text) = load(wrong);
            assert!(!text.contains("Success"), "{wrong}: {status} {text}");
        }
    }
}
