//! Files of newer versions: an older server refuses each by its name and its version, and changes nothing. Unit tests have the records
//! inside them: entries of the log, jobs, definitions of tables.

#![expect(clippy::case_sensitive_file_extension_comparisons, reason = "the server names these files")]

use crate::support::Server;
use crate::support::programs::run;
use crate::support::server::program;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All files but the locks.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files =
        walkdir::WalkDir::new(directory).into_iter().map(|entry| entry.expect("an entry").into_path());
    let files = files.filter(|path| path.is_file() && path.file_name().is_some_and(|name| name != "LOCK"));
    files.map(|path| (path.clone(), fs::read(&path).expect("readable"))).collect()
}

/// Files that a start which is refused must leave as they are. SQLite may write to its own, and the identity may name a log that the
/// start has found.
fn compared(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = contents(directory);
    let may_change = ["catalog.db-", "node.json"];
    files.retain(|path, _| !may_change.iter().any(|name| path.to_string_lossy().contains(name)));
    files
}

/// A stopped server.
fn stopped() -> Server {
    let mut server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("CREATE TABLE d.t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO d.t VALUES (1), (2)");
    client.ok("DELETE FROM d.t WHERE id = 1");
    client.ok("INSERT INTO d.t VALUES (3)");
    assert!(server.stop().success());
    server
}

fn file_below(directory: &Path, matches: impl Fn(&str) -> bool) -> PathBuf {
    let mut found: Vec<_> =
        contents(directory).into_keys().filter(|path| matches(&path.display().to_string())).collect();
    found.pop().expect("there is one")
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(crc & 1)))
    })
}

#[test]
fn a_server_refuses_what_a_newer_one_wrote_and_leaves_it_as_it_is() {
    type Change = fn(&Path) -> PathBuf;
    let cases: [(&str, Change, &str, &str); 5] = [
        (
            "the catalog",
            |data| {
                let path = data.join("catalog.db");
                let mut bytes = fs::read(&path).expect("a catalog");
                // `user_version` in the header of SQLite's file.
                bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
                fs::write(&path, bytes).expect("written");
                path
            },
            "99",
            "use the newer program that wrote it",
        ),
        (
            "the node",
            |data| replaced(data.join("node.json"), "\"format\": 1", "\"format\": 99"),
            "format 99",
            "start the newer server that wrote it",
        ),
        (
            "the log",
            |data| {
                let path =
                    file_below(&data.join("wal"), |name| name.contains("wal-") && name.ends_with(".log"));
                let mut bytes = fs::read(&path).expect("a segment");
                bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
                let crc = crc32c(&bytes[..40]);
                bytes[40..44].copy_from_slice(&crc.to_le_bytes());
                fs::write(&path, bytes).expect("written");
                path
            },
            "write-ahead log format 9",
            "start the server version that wrote it",
        ),
        (
            "a description of a data file",
            |data| {
                let is_entry = |name: &str| name.contains("_delta_log/0") && name.ends_with(".json");
                let entry = |name: &str| {
                    is_entry(name)
                        && fs::read_to_string(name).is_ok_and(|text| text.contains("tributary.format"))
                };
                replaced(
                    file_below(&data.join("tables"), entry),
                    "\"tributary.format\":\"2\"",
                    "\"tributary.format\":\"9\"",
                )
            },
            "format 9",
            "start a newer version of Tributary",
        ),
        (
            "a feature of Delta",
            |data| {
                let has_features = |name: &str| {
                    name.ends_with(".json")
                        && fs::read_to_string(name).is_ok_and(|text| text.contains("\"readerFeatures\":["))
                };
                let path = file_below(&data.join("tables"), has_features);
                let path = replaced(path, "\"readerFeatures\":[", "\"readerFeatures\":[\"fromTheFuture\",");
                replaced(path, "\"writerFeatures\":[", "\"writerFeatures\":[\"fromTheFuture\",")
            },
            "fromTheFuture",
            "",
        ),
    ];
    for (what, change, version, way_out) in cases {
        let mut server = stopped();
        let before = contents(&server.data());
        let path = change(&server.data());
        let (changed, newer) = (compared(&server.data()), fs::read(&path).expect("readable"));
        let refusal = Server::refusal(&server.data(), &[]);
        assert!(refusal.contains(version) && refusal.contains(way_out), "{what}: {refusal}");
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let table = if path.display().to_string().contains("tables/d/t-") { "d/t-" } else { name };
        assert!(refusal.contains(name) || refusal.contains(table), "{what}: {refusal}");
        let after = compared(&server.data());
        let touched: Vec<_> = after.keys().filter(|path| changed.get(*path) != after.get(*path)).collect();
        assert!(touched.is_empty() && after.len() == changed.len(), "{what}: {touched:?}");
        assert!(fs::read(&path).expect("readable") == newer, "{what}");
        // The newer server still has everything.
        fs::write(&path, &before[&path]).expect("written");
        server.start_again();
        assert_eq!(server.connect().rows("SELECT id FROM d.t ORDER BY id"), ["2", "3"], "{what}");
    }
}

fn replaced(path: PathBuf, from: &str, to: &str) -> PathBuf {
    let text = fs::read_to_string(&path).expect("text");
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replacen(from, to, 1)).expect("written");
    path
}

#[test]
fn a_restore_refuses_a_backup_of_a_newer_version() {
    let backups = tempfile::tempdir().expect("a directory");
    let place = backups.path().display().to_string();
    let server = Server::with_settings(&[("backup_path", &place)]);
    server.connect().ok("CREATE DATABASE d");
    server.connect().rows("BACKUP SERVER AS 'newer'");
    let manifest =
        replaced(backups.path().join("backups/newer/manifest.json"), "\"format\": 1", "\"format\": 99");
    let to = backups.path().join("restored");
    let said = run(
        "tributary restore",
        program().args(["restore", "--from", &place, "--to", &to.display().to_string()]),
    )
    .failure();
    assert!(said.contains("has format 99, and this version knows 1"), "{said}");
    assert!(said.contains("newer/manifest.json") && manifest.is_file(), "{said}");
    assert!(!to.join("node.json").exists());
    let error = server.connect().error("BACKUP SERVER AS 'older' KEEP 1");
    assert!(error.message.contains("format 99"), "{error}");
    assert!(manifest.is_file());
}
