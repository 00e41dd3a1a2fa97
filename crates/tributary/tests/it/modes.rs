//! Modes of the server's files: other users of the machine read nothing, or the tables if a setting lets them.

use crate::support::{Server, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use walkdir::WalkDir;

/// The mode's bits of each file and directory, by its path below `root`.
fn modes(root: &Path) -> Vec<(String, u32)> {
    let all = WalkDir::new(root).into_iter().map(|entry| {
        let entry = entry.expect("readable");
        let mode = entry.metadata().expect("known").permissions().mode() & 0o777;
        (entry.path().strip_prefix(root).expect("below").display().to_string(), mode)
    });
    all.collect()
}

/// A server with files of every kind that has stopped.
fn with_files(settings: &[(&str, &str)]) -> Server {
    let mut server = Server::with_settings(settings).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("CREATE TABLE u (id INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    client.ok("INSERT INTO u VALUES (1)");
    crate::support::Curl::stream_load(&server, "db", "dt")
        .header("column_separator:,")
        .body("x,y,z\n")
        .load();
    assert!(server.stop().success());
    server
}

#[test]
fn other_users_read_no_file_of_the_server() {
    let server = with_files(&[]);
    let modes = modes(&server.data());
    for part in ["catalog.db", "node.json", "wal", "error_log/", ".parquet", "_delta_log/0", "keys"] {
        assert!(modes.iter().any(|(path, _)| path.contains(part)), "{part}: {modes:?}");
    }
    let open: Vec<_> = modes.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_setting_lets_a_group_read_the_tables_and_nothing_private() {
    let server = with_files(&[("umask", "027")]);
    for (path, mode) in modes(&server.data()) {
        let expected = match &*path {
            "" | "tables" => 0o750,
            path if path.starts_with("tables/") && server.data().join(path).is_dir() => 0o750,
            path if path.starts_with("tables/") => 0o640,
            "wal" | "error_log" | "keys" | "spool" | "spill" => 0o700,
            path if path.starts_with("catalog.db") => 0o600,
            _ => continue,
        };
        assert_eq!(mode, expected, "{path}: {mode:o}");
    }
    assert!(!server.log().contains("chmod"), "{}", server.log());
}

#[test]
fn a_directory_that_others_may_read_is_named_at_the_start() {
    let mut server = with_files(&[]);
    assert!(!server.log().contains("chmod"), "{}", server.log());
    let data = server.data();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    std::fs::set_permissions(data.join("wal"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    server.start_again();
    let advice = format!("whose mode is 0755: run chmod -R go-rwx {}, or", data.display());
    wait_until("the start warns", || server.log().contains(&advice));
    assert_eq!(server.log().matches("chmod").count(), 1, "what is below it is mended with it");
}
