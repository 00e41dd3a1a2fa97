//! VERIFY and `tributary verify`: a sound server is never called wrong, and whatever is wrong is found and named.

use crate::damage::file_of;
use crate::stopped_copy::fill;
use crate::support::programs::{Finished, run};
use crate::support::server::program;
use crate::support::{Client, Server, wait_until};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

const TAIL: &str = "DISTRIBUTED BY HASH(id) BUCKETS 1";

/// `tributary verify`, and the exit code.
fn verify(server: &Server, arguments: &[&str]) -> (Finished, Option<i32>) {
    let url = format!("http://127.0.0.1:{}", server.http_port());
    let finished = run("tributary verify", program().args(["verify", "--url", &url]).args(arguments));
    let code = finished.code;
    (finished, code)
}

/// The verdict on a table by VERIFY.
struct Verdict(Value);

impl Verdict {
    fn of(server: &Server, table: &str, arguments: &[&str]) -> Self {
        let (finished, _) = verify(server, &[&["--json", "--table", table], arguments].concat());
        let all: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        Self(all[0].clone())
    }

    fn text(&self, column: &str) -> &str {
        self.0[column].as_str().expect("a text")
    }

    fn number(&self, column: &str) -> u64 {
        match &self.0[column] {
            Value::String(text) => text.parse().expect("a number"),
            number => number.as_u64().expect("a number"),
        }
    }
}

#[test]
fn each_row_is_counted_where_it_is() {
    let server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    fill(&server);
    let mut client = server.connect_to("d");
    client.ok(&format!(
        "CREATE TABLE open (id INT NOT NULL) DUPLICATE KEY(id) {TAIL} PROPERTIES ('group_commit_interval_ms' = '3600000')"
    ));
    client.ok("INSERT INTO open VALUES (1), (2)");
    // It flushes the two.
    client.ok("DELETE FROM open WHERE id = 1");
    client.ok("INSERT INTO open VALUES (3), (4), (5)");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO open VALUES (6), (7), (8), (9)");
    let found = Verdict::of(&server, "d.open", &["--full"]);
    assert_eq!((found.text("Result"), found.text("Faults")), ("OK", ""));
    let counts = ["VisibleRows", "DeltaRows", "DeletedRows", "LogRows", "WaitingRows", "Files"];
    assert_eq!(counts.map(|column| found.number(column)), [4, 1, 1, 3, 4, 1]);
    let (all, code) = verify(&server, &["--full"]);
    assert!(code == Some(0) && all.stdout.contains(" 0 wrong."), "{all:?}");
    assert!(all.stdout.contains("OK d.sums") && all.stdout.contains("OK d.days"), "{all:?}");
    client.ok("TRUNCATE TABLE open");
    client.ok("ALTER TABLE days DROP PARTITION old");
    let (all, code) = verify(&server, &["--full"]);
    assert_eq!(code, Some(0), "{all:?}");
    let (quiet, code) = verify(&server, &["--quiet"]);
    assert_eq!((quiet.stdout.as_str(), code), ("", Some(0)));
    assert!(server.metric("tributary_verify_runs_total") >= 4.0);
}

#[test]
fn a_server_under_load_is_never_called_wrong() {
    let server = Server::with_settings(&[("flush_age_ms", "30")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    for (table, keys) in [("rows", "DUPLICATE"), ("newest", "UNIQUE")] {
        client.ok(&format!(
            "CREATE TABLE `{table}` (id INT NOT NULL, n BIGINT NOT NULL) {keys} KEY(id) {TAIL} \
             PROPERTIES ('group_commit_interval_ms' = '20')"
        ));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for (writer, mode) in ["async_mode", "sync_mode", "off_mode", "async_mode"].into_iter().enumerate() {
            let (server, is_over) = (&server, &is_over);
            threads.spawn(move || {
                let mut client = server.connect_to("d");
                client.ok(&format!("SET group_commit = {mode}"));
                for n in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    client.ok(&format!("INSERT INTO `rows` VALUES ({writer}, {n}), ({writer}, {n})"));
                    client.ok(&format!("INSERT INTO newest VALUES ({writer}, {n})"));
                    if writer == 0 && n % 20 == 0 {
                        client.ok(&format!("DELETE FROM `rows` WHERE n < {}", n - 10));
                    }
                }
            });
        }
        let mut rows = 0;
        for _ in 0..15 {
            let verdicts = client.table("VERIFY");
            for verdict in &verdicts.rows {
                assert_eq!(verdict[1].as_deref(), Some("OK"), "{verdict:?}");
            }
            let seen: u64 =
                verdicts.rows[1][3].as_deref().and_then(|rows| rows.parse().ok()).expect("a number");
            rows = seen.max(rows);
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(rows > 0, "nothing was loaded");
    });
    client.ok("SYNC");
    let (all, code) = verify(&server, &["--full"]);
    assert_eq!(code, Some(0), "{all:?}");
}

/// A server with a table of 3 rows in a data file, and one of 1.
fn with_files() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.connect();
    for (database, table, rows) in [("b", "broken", "(1), (2), (3)"), ("d", "sound", "(1)")] {
        client.ok(&format!("CREATE DATABASE {database}"));
        client.ok(&format!("CREATE TABLE {database}.{table} (id INT NOT NULL) DUPLICATE KEY(id) {TAIL}"));
        client.ok(&format!("INSERT INTO {database}.{table} VALUES {rows}, (100)"));
        // It flushes.
        client.ok(&format!("DELETE FROM {database}.{table} WHERE id = 100"));
    }
    (server, client)
}

#[test]
fn a_data_file_that_is_gone_is_named_and_is_a_problem_until_it_is_back() {
    let (server, mut client) = with_files();
    let file = file_of(&server, "b", ".parquet");
    let hidden = file.with_extension("hidden");
    std::fs::rename(&file, &hidden).expect("renamed");
    let (found, code) = verify(&server, &[]);
    assert!(code == Some(1) && found.stdout.contains("2 tables, 1 wrong."), "{found:?}");
    assert!(found.stdout.contains("WRONG b.broken") && found.stdout.contains("is missing"), "{found:?}");
    assert!(found.stdout.contains("OK d.sound"), "{found:?}");
    let problems = "SELECT CODE, SEVERITY, CAUSE FROM information_schema.problems WHERE CODE = 'TABLE_WRONG'";
    wait_until("it is a problem", || {
        let rows = client.rows(problems);
        rows.len() == 1 && rows[0].starts_with("TABLE_WRONG|CRITICAL|") && rows[0].contains("is missing")
    });
    assert_eq!(server.metric("tributary_verify_tables_wrong"), 1.0);
    std::fs::rename(&hidden, &file).expect("renamed");
    let (found, code) = verify(&server, &["--table", "b.broken"]);
    assert_eq!(code, Some(0), "{found:?}");
    wait_until("it is no problem any more", || client.rows(problems).is_empty());
}

#[test]
fn a_page_whose_bytes_changed_is_found_by_full() {
    let (server, _client) = with_files();
    let file = file_of(&server, "b", ".parquet");
    let mut bytes = std::fs::read(&file).expect("read");
    bytes[8] ^= 0xff;
    std::fs::write(&file, bytes).expect("written");
    let (found, code) = verify(&server, &[]);
    assert_eq!(code, Some(0), "its end is sound: {found:?}");
    let (found, code) = verify(&server, &["--full"]);
    assert!(code == Some(1) && found.stdout.contains("damaged"), "{found:?}");
}

#[test]
fn a_delta_log_with_other_rows_than_queries_see_is_found() {
    let (server, _client) = with_files();
    let entry = file_of(&server, "b", ".json");
    let text = std::fs::read_to_string(&entry).expect("read");
    // As if one row more had been acknowledged than is there.
    let more = text.replace("\\\"numRecords\\\":4", "\\\"numRecords\\\":5");
    assert_ne!(text, more, "{text}");
    std::fs::write(&entry, more).expect("written");
    let (found, code) = verify(&server, &[]);
    assert!(code == Some(1) && found.stdout.contains("the Delta log says 5"), "{found:?}");
    assert!(
        found.stdout.contains("queries see 3 rows") && found.stdout.contains("have 4 at version"),
        "{found:?}"
    );
}

#[test]
fn a_log_that_was_changed_on_the_disk_is_an_error_with_its_place() {
    let (server, segment) = with_damaged_log(&[("flush_age_ms", "3600000")]);
    let mut client = server.connect();
    let (found, code) = verify(&server, &[]);
    assert!(code == Some(2) && found.stderr.contains("checksum is wrong"), "{found:?}");
    assert!(found.stderr.contains(&segment.display().to_string()), "{found:?}");
    client.refused("VERIFY", 1105, "checksum is wrong");
    assert!(server.metric("tributary_verify_failed_total") >= 2.0);
}

/// A server with a row in its log and in memory, which the disk has damaged in the log.
fn with_damaged_log(settings: &[(&str, &str)]) -> (Server, PathBuf) {
    let server = Server::with_settings(settings);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok(&format!("CREATE TABLE d.t (id INT NOT NULL, v STRING) DUPLICATE KEY(id) {TAIL}"));
    client.ok(&format!("INSERT INTO d.t VALUES (1, '{}')", "needle".repeat(50)));
    let wal = std::fs::read_dir(server.data().join("wal")).expect("a directory");
    let segment = wal
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            std::fs::read(path).is_ok_and(|bytes| bytes.windows(12).any(|window| window == b"needleneedle"))
        })
        .expect("the log has the row");
    let mut bytes = std::fs::read(&segment).expect("read");
    let place = bytes.windows(12).position(|window| window == b"needleneedle").expect("it is there");
    bytes[place] = b'X';
    std::fs::write(&segment, bytes).expect("written");
    (server, segment)
}

#[test]
fn a_log_that_the_clock_can_not_read_is_a_problem_with_a_way_out() {
    let (mut server, segment) =
        with_damaged_log(&[("flush_age_ms", "3600000"), ("verify_interval_seconds", "1")]);
    let mut client = server.connect();
    let problems = "SELECT SEVERITY, PROBLEM, CAUSE, WAY_OUT FROM information_schema.problems WHERE CODE = 'VERIFY_FAILS'";
    wait_until("the problem is named", || !client.rows(problems).is_empty());
    let row = client.rows(problems).remove(0);
    let text = "CRITICAL|The tables can't be compared with their logs: a log can't be read.|";
    assert!(row.starts_with(text), "{row}");
    assert!(row.contains(&segment.display().to_string()) && row.contains("checksum is wrong"), "{row}");
    assert_eq!(server.metric("tributary_problems{code=\"VERIFY_FAILS\"}"), 1.0);
    // The way out that it names.
    assert!(row.contains("SIGTERM") && row.contains("`tributary wal repair`"), "{row}");
    client.ok("INSERT INTO d.t VALUES (2, 'behind the damage')");
    assert!(server.stop().success());
    let refusal = Server::refusal(&server.data(), &[]);
    assert!(refusal.contains("the write-ahead log is damaged"), "{refusal}");
    let data = server.data().display().to_string();
    run("tributary wal repair", program().args(["wal", "repair", "--cut", "--storage-root-path", &data]))
        .success();
    server.start_again();
    let mut client = server.connect();
    assert_eq!(client.rows("SELECT id FROM d.t ORDER BY id"), ["1", "2"]);
    wait_until("it compares", || server.metric("tributary_verify_runs_total") >= 1.0);
    assert!(client.rows(problems).is_empty());
}

#[test]
fn tables_are_compared_by_the_clock_too() {
    let server = Server::with_settings(&[("verify_interval_seconds", "1")]);
    wait_until("a second is over", || server.metric("tributary_verify_runs_total") >= 2.0);
    assert!(server.metric("tributary_verify_last_run_seconds") > 1_700_000_000.0);
}
