//! A backup of a stopped server: its directory and its log, copied as docs/operation.md says, are a server of their own.

use crate::support::{Client, Server};
use std::fs;
use std::path::Path;

const TAIL: &str = "DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")";

/// The contents of all tables, by queries whose answers are one text each.
const CONTENTS: [&str; 4] = [
    "SELECT GROUP_CONCAT(CONCAT(id, v) ORDER BY id) FROM d.plain",
    "SELECT GROUP_CONCAT(CONCAT(id, v) ORDER BY id) FROM d.newest",
    "SELECT GROUP_CONCAT(CONCAT(id, ':', n) ORDER BY id) FROM d.sums",
    "SELECT GROUP_CONCAT(CONCAT(id, day) ORDER BY id) FROM d.days",
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("the directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

pub fn contents(server: &Server) -> Vec<String> {
    let mut client = server.connect();
    client.ok("SYNC");
    CONTENTS.iter().map(|sql| client.value(sql)).collect()
}

/// Tables of each kind, with rows in data files and rows that only the log has.
pub fn fill(server: &Server) {
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("CREATE USER reader");
    client.ok("GRANT SELECT_PRIV ON d.plain TO reader");
    let generated = "id BIGINT NOT NULL AUTO_INCREMENT, v VARCHAR(9)";
    client.ok(&format!("CREATE TABLE d.plain ({generated}) DUPLICATE KEY(id) {TAIL}"));
    client.ok(&format!("CREATE TABLE d.newest (id INT NOT NULL, v VARCHAR(9)) UNIQUE KEY(id) {TAIL}"));
    client.ok(&format!("CREATE TABLE d.sums (id INT NOT NULL, n BIGINT SUM) AGGREGATE KEY(id) {TAIL}"));
    client.ok(&format!(
        "CREATE TABLE d.days (id INT NOT NULL, day DATE NOT NULL) DUPLICATE KEY(id) PARTITION BY RANGE(day) \
         (PARTITION old VALUES LESS THAN ('2024-02-01'), PARTITION new VALUES LESS THAN ('2024-03-01')) {TAIL}"
    ));
    client.ok("INSERT INTO d.plain (v) VALUES ('a'), ('b'), ('c')");
    client.ok("INSERT INTO d.newest VALUES (1, 'a'), (2, 'b')");
    client.ok("INSERT INTO d.sums VALUES (1, 10), (2, 20)");
    client.ok("INSERT INTO d.days VALUES (1, '2024-01-05'), (2, '2024-02-05')");
    // A DELETE flushes, and its deletion vector is part of the copy.
    client.ok("DELETE FROM d.plain WHERE v = 'b'");
    client.ok("DELETE FROM d.newest WHERE id = 2");
    client.ok("INSERT INTO d.plain WITH LABEL once (v) VALUES ('d')");
    client.ok("INSERT INTO d.newest VALUES (1, 'new'), (3, 'c')");
    client.ok("INSERT INTO d.sums VALUES (1, 1), (3, 30)");
    client.ok("INSERT INTO d.days VALUES (3, '2024-01-06')");
}

/// The copy has the rows, users and labels of the original, and gives no value of AUTO_INCREMENT twice.
pub fn assert_copied(server: &Server, rows: &[String]) {
    assert_eq!(contents(server), rows);
    let mut client = server.connect_to("d");
    let used = client.error("INSERT INTO plain WITH LABEL once (v) VALUES ('d')");
    assert!(used.message.contains("has already been used"), "{used}");
    let highest: u64 = client.value("SELECT MAX(id) FROM plain").parse().expect("a number");
    client.ok("INSERT INTO plain (v) VALUES ('later')");
    client.ok("SYNC");
    let later: u64 = client.value("SELECT id FROM plain WHERE v = 'later'").parse().expect("a number");
    assert!(later > highest, "{later} was given after {highest}");
    let mut reader = Client::connect_as("reader", server.mysql_port()).expect("the user");
    assert_eq!(reader.value("SELECT COUNT(*) FROM d.plain"), "4");
    assert!(reader.try_rows("SELECT * FROM d.sums").is_err(), "its rights are those of the original");
}

#[test]
fn a_copy_of_a_killed_or_stopped_server_starts_elsewhere_and_leaves_the_original_alone() {
    for is_killed in [true, false] {
        let mut server = Server::start();
        fill(&server);
        let rows = contents(&server);
        if is_killed {
            server.kill();
        } else {
            assert!(server.stop().success());
        }
        let restored = Server::on(&[], |directory| copy(&server.data(), &directory.join("data")));
        assert_copied(&restored, &rows);
        server.start_again();
        assert_eq!(contents(&server), rows, "the original has none of the copy's rows");
    }
}

#[test]
fn a_copy_with_its_log_elsewhere_starts_at_the_new_place_and_leaves_the_original_alone() {
    let logs = tempfile::tempdir().expect("a temporary directory");
    let [here, there] = ["here", "there"].map(|name| logs.path().join(name));
    let setting = |dir: &Path| dir.to_str().expect("a text").to_owned();
    let mut server = Server::with_settings(&[("group_commit_wal_path", &setting(&here))]);
    fill(&server);
    let rows = contents(&server);
    server.kill();
    copy(&here, &there);
    let restored = Server::on(&[("group_commit_wal_path", &setting(&there))], |directory| {
        copy(&server.data(), &directory.join("data"));
    });
    assert_copied(&restored, &rows);
    server.start_again();
    assert_eq!(contents(&server), rows, "the original started with its own log");
}
