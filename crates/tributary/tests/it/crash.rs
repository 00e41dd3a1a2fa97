//! `kill -9` during concurrent writes: every acknowledged row exists exactly once.

use crate::support::{Client, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How often the server is killed and started again, on the same data.
const ROUNDS: u64 = 4;
/// Rows that must be acknowledged in a round before the kill.
const ROWS_BEFORE_KILL: u64 = 400;
/// Ids of one writer in one round.
const IDS_PER_WRITER: u64 = 1_000_000;

/// The writers' modes.
const MODES: [&str; 8] = [
    "async_mode",
    "sync_mode",
    "async_mode",
    "sync_mode",
    "off_mode",
    "async_mode",
    "sync_mode",
    "async_mode",
];

/// The sent and the acknowledged rows of all rounds.
#[derive(Default)]
struct Books {
    acknowledged: Mutex<BTreeSet<u64>>,
    sent: Mutex<BTreeSet<u64>>,
    count: AtomicU64,
}

/// Sends loads of two rows until the server is killed.
fn write(port: u16, mode: &str, first_id: u64, books: &Books, stop: &AtomicBool) {
    let mut client = Client::connect(port, Some("db"));
    client.ok(&format!("SET group_commit = {mode}"));
    for id in (first_id..).step_by(2) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        books.sent.lock().unwrap().extend([id, id + 1]);
        let sql = format!("INSERT INTO t VALUES ({id}, 'row {id}'), ({}, 'row {}')", id + 1, id + 1);
        match client.try_send(&sql) {
            Some(answer) => {
                assert_eq!(answer.affected_rows, 2);
                books.acknowledged.lock().unwrap().extend([id, id + 1]);
                books.count.fetch_add(2, Ordering::Relaxed);
            }
            None => return,
        }
    }
}

fn killed_round(server: &mut Server, round: u64, books: &Arc<Books>) {
    let before = books.count.load(Ordering::Relaxed);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = MODES
        .iter()
        .enumerate()
        .map(|(number, mode)| {
            let first_id = (round * MODES.len() as u64 + number as u64) * IDS_PER_WRITER;
            let (books, stop, port) = (Arc::clone(books), Arc::clone(&stop), server.mysql_port());
            std::thread::spawn(move || write(port, mode, first_id, &books, &stop))
        })
        .collect();
    crate::support::wait_until("enough rows are acknowledged", || {
        books.count.load(Ordering::Relaxed) >= before + ROWS_BEFORE_KILL * (round + 1)
    });
    server.kill();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().expect("a writer ends with the server");
    }
}

fn check(server: &Server, books: &Books) {
    let mut client = server.connect_to("db");
    let rows = client.rows("SELECT id, COUNT(*), MAX(name) FROM t GROUP BY id");
    let found: BTreeMap<u64, (u64, String)> = rows
        .iter()
        .map(|row| {
            let parts: Vec<&str> = row.splitn(3, '|').collect();
            (parts[0].parse().unwrap(), (parts[1].parse().unwrap(), parts[2].to_owned()))
        })
        .collect();
    let acknowledged = books.acknowledged.lock().unwrap();
    let sent = books.sent.lock().unwrap();
    let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains_key(id)).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged rows are lost: {lost:?}", lost.len(), acknowledged.len());
    for (id, (times, name)) in &found {
        assert_eq!((*times, name.as_str()), (1, format!("row {id}").as_str()), "row {id}");
        assert!(sent.contains(id), "row {id} was never sent");
        let of_load = id - id % 2;
        assert!(
            found.contains_key(&of_load) && found.contains_key(&(of_load + 1)),
            "half of a load: row {id}"
        );
    }
}

fn survives_kills(settings: &[(&str, &str)]) {
    let mut server = Server::with_settings(settings);
    let mut client = server.connect();
    client.ok("CREATE DATABASE db");
    client.ok("CREATE TABLE db.t (id BIGINT NOT NULL, name VARCHAR(50)) DUPLICATE KEY(id) \
         DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")");
    drop(client);
    let books = Arc::new(Books::default());
    for round in 0..ROUNDS {
        killed_round(&mut server, round, &books);
        server.start_again();
        server.connect().ok("SYNC");
        check(&server, &books);
    }
    assert!(server.stop().success());
    server.start_again();
    check(&server, &books);
}

#[test]
fn every_acknowledged_row_survives_kill_9_once() {
    survives_kills(&[]);
}

#[test]
fn every_acknowledged_row_survives_kill_9_once_with_flushes_going_on_and_two_logs() {
    let logs = tempfile::tempdir().expect("a temporary directory");
    let dirs = format!("{0}/a;{0}/b", logs.path().display());
    survives_kills(&[
        ("flush_age_ms", "30"),
        ("flush_bytes", "2000"),
        ("wal_segment_bytes", "1048576"),
        ("group_commit_wal_path", &dirs),
    ]);
}
