//! The tables that a server writes, read by another Delta reader.

use crate::support::programs::python;
use crate::support::{Curl, Server, wait_until};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The folders below `root` that hold a Delta log.
fn delta_tables(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        // A file that disappears meanwhile does not count.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if entry.file_name() == "_delta_log" {
                found.push(folder.clone());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    found
}

/// The folder of the only Delta table of a server.
pub fn delta_table(server: &Server) -> String {
    let mut tables = Vec::new();
    wait_until("there is a Delta table", || {
        tables = delta_tables(&server.data());
        !tables.is_empty()
    });
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0).display().to_string()
}

#[test]
fn values_of_all_types_are_read_back() {
    let server = Server::with_settings(&[("flush_age_ms", "500")]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE types (
        k INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, ll LARGEINT, f FLOAT, d DOUBLE,
        n DECIMAL(27,9), day DATE, at DATETIME, at6 DATETIME(6), c CHAR(10), v VARCHAR(100), txt STRING, j JSON
    ) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")");
    db.client.ok("INSERT INTO types VALUES
        (1, true, 127, -32768, 2147483647, -9223372036854775808, 12345678901234567890123456789, 1.5, -2.25,
         123456789012345678.123456789, '2024-02-29', '2024-02-29 23:59:59', '2024-02-29 23:59:59.123456', 'abc',
         'Grüße', '', '{\"a\": 1}'),
        (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    python("delta_checks.py", &["types", &delta_table(&server)]);
    assert_eq!(db.client.value("SELECT count(*) FROM types"), "2", "a flushed row is not shown twice");
}

#[test]
fn rows_of_all_ways_are_read_back_once() {
    let server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"100\"");
    db.client.ok("SET group_commit = async_mode");
    let (mut count, mut total) = (0_u64, 0_u64);
    for round in 0..10_u64 {
        for id in round * 1000..round * 1000 + 20 {
            db.client.ok(&format!("INSERT INTO dt VALUES ({id}, 'insert', {id})"));
            (count, total) = (count + 1, total + id);
        }
        let mut csv = String::new();
        for id in round * 1000 + 20..round * 1000 + 500 {
            writeln!(csv, "{id},stream,{id}").expect("a String takes all");
            (count, total) = (count + 1, total + id);
        }
        let mode = ["async_mode", "sync_mode", "off_mode"][usize::try_from(round % 3).expect("small")];
        Curl::stream_load(&server, &db.name, "dt")
            .header("column_separator:,")
            .header(&format!("group_commit:{mode}"))
            .body(&csv)
            .load()
            .success();
    }
    db.client.ok("SYNC");
    let directory = delta_table(&server);
    python("delta_checks.py", &["sums", &directory, &count.to_string(), &total.to_string()]);
    let expected = format!("{count}|{count}|{total}");
    assert_eq!(db.client.rows("SELECT count(*), count(DISTINCT id), sum(score) FROM dt"), [expected]);
}

#[test]
fn deleted_rows_are_gone_for_other_readers_and_stay_gone() {
    let mut server = Server::start();
    let mut db = server
        .database()
        .with_dt("\"group_commit_mode\" = \"sync_mode\", \"group_commit_interval_ms\" = \"10\"");
    let values: Vec<String> = (0..100).map(|id| format!("({id}, 'n{id}', {})", id % 10)).collect();
    db.client.ok(&format!("INSERT INTO dt VALUES {}", values.join(", ")));
    assert_eq!(db.client.ok("DELETE FROM dt WHERE score < 9 AND id <> 50").affected_rows, 89);
    let left: Vec<String> =
        (0..100).filter(|id| id % 10 == 9 || *id == 50).map(|id| id.to_string()).collect();
    let directory = delta_table(&server);
    python("delta_checks.py", &["deleted", &directory, &left.join(",")]);
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), left);
    db.client.ok("INSERT INTO dt VALUES (200, 'later', 1)");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(
        client.value("SELECT COUNT(*), SUM(id) FROM dt"),
        format!("12|{}", 50 + 200 + (9..100).step_by(10).sum::<i32>())
    );
    client.ok("DELETE FROM dt WHERE id = 200");
    python("delta_checks.py", &["deleted", &directory, &left.join(",")]);
}

#[test]
fn stopping_flushes_everything_so_that_others_see_all_rows() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_mode\" = \"async_mode\"");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    python("delta_checks.py", &["sums", &delta_table(&server), "3", "60"]);
    server.start_again();
    assert_eq!(server.connect_to(&db.name).rows("SELECT sum(score) FROM dt"), ["60"]);
}

#[test]
fn rows_are_there_once_after_crashes_among_flushes() {
    let mut server = Server::with_settings(&[("flush_age_ms", "100")]);
    let db = server.database().with_dt("");
    let mut total = 0_u64;
    for round in 0..4_u64 {
        let mut client = server.connect_to(&db.name);
        for id in round * 100..round * 100 + 50 {
            client.ok(&format!("INSERT INTO dt VALUES ({id}, 'x', {id})"));
            total += id;
        }
        server.kill();
        server.start_again();
        let expected = format!("{0}|{0}|{total}", (round + 1) * 50);
        let found =
            server.connect_to(&db.name).rows("SELECT count(*), count(DISTINCT id), sum(score) FROM dt");
        assert_eq!(found, [expected], "round {round}");
    }
    python("delta_checks.py", &["sums", &delta_table(&server), "200", &total.to_string()]);
}

#[test]
fn compacted_files_are_read_by_others_whether_row_groups_were_large_or_small() {
    let server = Server::with_settings(&[("flush_age_ms", "100"), ("target_file_bytes", "1000000")]);
    let mut db = server.database().with_dt("");
    let csv = server.scratch().join("rows.csv");
    let mut count = 0_u64;
    // Each of the loads becomes a data file of its own.
    let mut load = |rows: u64| {
        let mut text = String::new();
        for id in count..count + rows {
            // Digits that are hard to compress, so that few files are enough.
            writeln!(text, "{id},{:x},{id}", id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .expect("a String takes all");
        }
        std::fs::write(&csv, text).expect("the scratch directory takes a file");
        Curl::stream_load(&server, &db.name, "dt").header("column_separator:,").file(&csv).load().success();
        count += rows;
        wait_until("the load is flushed", || server.metric("tributary_flushed_rows_total ") >= count as f64);
    };
    for _ in 0..8 {
        load(20_000);
        load(10);
    }
    wait_until("files are compacted", || server.metric("tributary_compactions_total ") >= 1.0);
    let total: u64 = (0..count).sum();
    let expected = format!("{count}|{count}|{total}");
    assert_eq!(db.client.rows("SELECT count(*), count(DISTINCT id), sum(score) FROM dt"), [expected]);
    python("delta_checks.py", &["sums", &delta_table(&server), &count.to_string(), &total.to_string()]);
}
