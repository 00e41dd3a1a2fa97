//! BACKUP SERVER, `tributary backup` and `tributary restore`, of a running server under load.

use crate::stopped_copy::{assert_copied, contents, fill};
use crate::support::programs::{Finished, run};
use crate::support::server::program;
use crate::support::{Client, S3Store, Server, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;
use tributary_client::Rows;

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn server_with(backups: &TempDir, settings: &[(&str, &str)]) -> Server {
    let backups = text(backups.path());
    Server::with_settings(&[&[("backup_path", backups.as_str())], settings].concat())
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn restore(arguments: &[&str]) -> Finished {
    run("tributary restore", program().arg("restore").args(arguments))
}

/// A server on the newest backup, or the one of a name, in the directory.
pub fn restored(backups: &Path, name: Option<&str>) -> Server {
    Server::on(&[], |parent| {
        let (from, to) = (text(backups), text(&parent.join("data")));
        let name: Vec<&str> = name.iter().flat_map(|name| ["--name", name]).collect();
        let said =
            restore(&[&["--from", from.as_str(), "--to", to.as_str()], name.as_slice()].concat()).success();
        assert!(said.contains("restored the backup") && said.contains("tributary serve"), "{said}");
    })
}

/// The answer of BACKUP SERVER.
struct Taken(Rows);

impl Taken {
    fn number(&self, column: &str) -> u64 {
        let at = self.0.columns.iter().position(|known| known == column).expect("a column");
        self.0.rows[0][at].as_deref().and_then(|value| value.parse().ok()).expect("a number")
    }
}

fn backup(server: &Server, sql: &str) -> Taken {
    Taken(server.connect().table(sql))
}

#[test]
fn a_backup_has_everything_of_its_moment_and_nothing_later() {
    let backups = directory();
    let logs = directory();
    let two_logs = format!("{};{}", text(&logs.path().join("a")), text(&logs.path().join("b")));
    let server = server_with(&backups, &[("group_commit_wal_path", &two_logs)]);
    fill(&server);
    let mut client = server.connect();
    client.ok("CREATE TABLE d.dropped (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO d.dropped VALUES (1), (2)");
    client.ok("SYNC");
    client.ok("DROP TABLE d.dropped");
    let rows = contents(&server);
    let first = backup(&server, "BACKUP SERVER AS 'monday'");
    assert!(
        first.number("Tables") >= 5
            && first.number("Files") > 10
            && first.number("CopiedFiles") == first.number("Files")
    );
    // Whatever happens later is not in it.
    client.ok("INSERT INTO d.plain (v) VALUES ('late')");
    client.ok("DELETE FROM d.newest WHERE id = 1");
    client.ok("CREATE TABLE d.late (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("DROP TABLE d.sums FORCE");
    client.ok("CREATE USER late");
    let copy = restored(backups.path(), None);
    assert_copied(&copy, &rows);
    let mut there = copy.connect();
    there.ok("RECOVER TABLE d.dropped");
    assert_eq!(there.value("SELECT COUNT(*) FROM d.dropped"), "2");
    assert_eq!(there.rows("SHOW TABLES FROM d LIKE 'late'"), Vec::<String>::new());
    assert!(Client::connect_as("late", copy.mysql_port()).is_err());
}

#[test]
fn a_backup_under_load_is_of_one_moment() {
    const WRITERS: u64 = 4;
    let backups = directory();
    let server = server_with(&backups, &[("flush_age_ms", "50")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    for table in ["first", "second"] {
        client.ok(&format!(
            "CREATE TABLE d.{table} (writer INT NOT NULL, n BIGINT NOT NULL) DUPLICATE KEY(writer, n) \
             DISTRIBUTED BY HASH(n) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")"
        ));
    }
    client.ok(
        "CREATE TABLE d.last (writer INT NOT NULL, n BIGINT) UNIQUE KEY(writer) DISTRIBUTED BY HASH(writer) BUCKETS 1 \
         PROPERTIES (\"group_commit_interval_ms\" = \"20\")",
    );
    let acknowledged: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let begun: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    std::thread::scope(|threads| {
        for writer in 0..WRITERS {
            let (server, acknowledged, begun, is_over) = (&server, &acknowledged, &begun, &is_over);
            threads.spawn(move || {
                let mut client = server.connect_to("d");
                client.ok("SET group_commit = async_mode");
                for n in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    begun[writer as usize].store(n, Ordering::SeqCst);
                    // The second is sent once the first is acknowledged.
                    client.ok(&format!("INSERT INTO first VALUES ({writer}, {n})"));
                    client.ok(&format!("INSERT INTO second VALUES ({writer}, {n})"));
                    client.ok(&format!("INSERT INTO last VALUES ({writer}, {n})"));
                    acknowledged[writer as usize].store(n, Ordering::SeqCst);
                }
            });
        }
        let mut cleaner = server.connect_to("d");
        for round in 0..3 {
            wait_until("rows are loaded", || {
                acknowledged.iter().all(|n| n.load(Ordering::SeqCst) > 30 * (round + 1))
            });
            // Its Delta log is written without a load.
            cleaner.ok(&format!("DELETE FROM first WHERE n = {}", round + 1));
            before.push(acknowledged.iter().map(|n| n.load(Ordering::SeqCst)).collect::<Vec<_>>());
            backup(&server, &format!("BACKUP SERVER AS 'round-{round}'"));
            after.push(begun.iter().map(|n| n.load(Ordering::SeqCst)).collect::<Vec<_>>());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for round in 0..3_usize {
        let copy = restored(backups.path(), Some(&format!("round-{round}")));
        let mut client = copy.connect_to("d");
        client.ok("SYNC");
        for writer in 0..WRITERS {
            let mut of = |sql: &str| -> u64 {
                client.value(&format!("{sql} WHERE writer = {writer}")).parse().expect("a number")
            };
            let what = format!("round {round}, writer {writer}");
            let (first, second) = (of("SELECT MAX(n) FROM first"), of("SELECT MAX(n) FROM second"));
            let deleted = round as u64 + 1;
            assert_eq!(of("SELECT COUNT(*) FROM first"), first - deleted, "each once: {what}");
            assert_eq!(of("SELECT COUNT(*) FROM second"), second, "each once: {what}");
            let last = of("SELECT MAX(n) FROM last");
            assert!(
                first >= second && second >= last && first - last <= 1,
                "one moment: {first} {second} {last} {what}"
            );
            let index = writer as usize;
            assert!(last >= before[round][index], "{last} of {} acknowledged: {what}", before[round][index]);
            assert!(first <= after[round][index], "{first} of {} begun: {what}", after[round][index]);
        }
    }
}

#[test]
fn later_backups_copy_what_is_new_and_damage_is_found() {
    let backups = directory();
    let server = server_with(&backups, &[]);
    fill(&server);
    let rows = contents(&server);
    backup(&server, "BACKUP SERVER AS 'one'");
    let mut client = server.connect();
    client.ok("DELETE FROM d.plain WHERE v = 'c'");
    let second = backup(&server, "BACKUP SERVER AS 'two'");
    let third = backup(&server, "BACKUP SERVER AS 'three'");
    assert!(second.number("CopiedFiles") < second.number("Files"), "data files are shared");
    assert!(third.number("CopiedBytes") <= second.number("CopiedBytes"));
    let from = text(backups.path());
    let listed = restore(&["--from", &from, "--list"]).success();
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    client.refused("BACKUP SERVER AS 'two'", 1105, "the backup 'two' exists");
    client.refused("BACKUP SERVER AS '../two'", 1105, "can't be a backup's name");
    for name in ["one", "two", "three"] {
        let said = restore(&["--from", &from, "--check", "--name", name]).success();
        assert!(said.contains("checked the backup"), "{said}");
    }
    let copy = restored(backups.path(), Some("one"));
    assert_copied(&copy, &rows);
    drop(copy);
    let said = restore(&["--from", &from, "--check", "--name", "four"]).failure();
    assert!(said.contains("there are one, two, three"), "{said}");
    let said = restore(&["--from", &from, "--to", &from]).failure();
    assert!(said.contains("is not empty"), "{said}");
    let data: Vec<PathBuf> = walkdir::WalkDir::new(backups.path().join("data"))
        .into_iter()
        .map(|entry| entry.expect("an entry").into_path())
        .filter(|path| path.is_file())
        .collect();
    assert!(!data.is_empty());
    for file in data {
        let mut bytes = fs::read(&file).expect("a data file");
        bytes[20] ^= 1;
        fs::write(&file, bytes).expect("written");
    }
    let said = restore(&["--from", &from, "--check"]).failure();
    assert!(said.contains("is damaged: its hash is"), "{said}");
    let elsewhere = directory();
    let said = restore(&["--from", &from, "--to", &text(&elsewhere.path().join("data"))]).failure();
    assert!(said.contains("is damaged"), "{said}");
    assert!(!elsewhere.path().join("data/node.json").exists(), "no server starts there");
}

/// The files of the place that no backup has, and what checks of all backups say.
fn unneeded(place: &Path) -> Vec<String> {
    let files = walkdir::WalkDir::new(place).into_iter().map(|entry| entry.expect("an entry").into_path());
    let files =
        files.filter(|path| path.is_file()).map(|path| text(path.strip_prefix(place).expect("below it")));
    let mut unneeded: BTreeSet<String> = files.filter(|file| !file.starts_with("running/")).collect();
    for folder in fs::read_dir(place.join("backups")).expect("a directory") {
        let manifest = folder.expect("an entry").path().join("manifest.json");
        let Ok(read) = fs::read_to_string(&manifest) else { continue };
        let read: serde_json::Value = serde_json::from_str(&read).expect("JSON");
        for file in read["files"].as_array().expect("a list") {
            unneeded.remove(file["object"].as_str().expect("a text"));
        }
        unneeded.remove(&text(manifest.strip_prefix(place).expect("below it")));
        restore(&["--from", &text(place), "--check", "--name", read["name"].as_str().expect("a name")])
            .success();
    }
    unneeded.into_iter().collect()
}

fn names(place: &Path) -> Vec<String> {
    let listed = restore(&["--from", &text(place), "--list"]).success();
    listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_newest_backups_stay_and_what_only_others_needed_goes() {
    let backups = directory();
    let server = server_with(&backups, &[("flush_age_ms", "20")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("CREATE TABLE d.t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let loaded = |client: &mut Client, id: u64| {
        client.ok(&format!("INSERT INTO d.t VALUES ({id})"));
        let flushed =
            "SELECT COUNT(*) FROM information_schema.table_work WHERE STATE = 'FINISHED' AND KIND = 'FLUSH'";
        wait_until("it is in a data file", || {
            client.value(flushed).parse::<u64>().is_ok_and(|flushes| flushes > id)
        });
    };
    for (id, name) in ["one", "two", "three"].into_iter().enumerate() {
        loaded(&mut client, id as u64);
        backup(&server, &format!("BACKUP SERVER AS '{name}'"));
    }
    client.ok("TRUNCATE TABLE d.t");
    let taken = backup(&server, "BACKUP SERVER AS 'four' KEEP 2");
    assert_eq!(names(backups.path()), ["three", "four"]);
    assert_eq!(taken.number("RemovedBackups"), 2);
    assert!(taken.number("RemovedBytes") > 0);
    assert_eq!(unneeded(backups.path()), Vec::<String>::new());
    let copy = restored(backups.path(), Some("three"));
    assert_eq!(copy.connect().value("SELECT COUNT(*) FROM d.t"), "3");
    drop(copy);
    // A backup of another server in the same place is none of this one's.
    let other = server_with(&backups, &[]);
    backup(&other, "BACKUP SERVER AS 'others'");
    let url = format!("mysql://root@127.0.0.1:{}", server.mysql_port());
    run("tributary backup", program().args(["backup", "--url", &url, "--name", "five", "--keep", "1"]))
        .success();
    assert_eq!(names(backups.path()), ["others", "five"]);
    assert_eq!(unneeded(backups.path()), Vec::<String>::new());
    // While another server takes one, nothing goes.
    let running = backups.path().join("running");
    fs::write(running.join("f00.json"), r#"{"node":"f00","doing":"backup","begun_ms":0}"#).expect("written");
    let rows = client.rows("BACKUP SERVER AS 'six' KEEP 1");
    assert!(rows[0].contains("|0|0|another server works in this place"), "{rows:?}");
    assert_eq!(names(backups.path()), ["others", "five", "six"]);
    client.refused("BACKUP SERVER KEEP 0", 1064, "");
}

#[test]
fn a_kill_while_old_backups_go_harms_none() {
    let backups = directory();
    let mut server = server_with(&backups, &[("flush_age_ms", "1")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("CREATE TABLE d.t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    for round in 0..6_u64 {
        let mut client = server.connect_to("d");
        let before = names(backups.path()).len();
        for id in 0..4 {
            client.ok(&format!("INSERT INTO t VALUES ({id})"));
            backup(&server, &format!("BACKUP SERVER AS 'r{round}-{id}'"));
        }
        client.send(&format!("BACKUP SERVER AS 'r{round}-last' KEEP 1"));
        // As soon as the first one goes, or while the last one is taken.
        let gone = || names(backups.path()).len() < before + 4;
        if round % 2 == 0 {
            wait_until("a backup has gone", gone);
        }
        server.kill();
        let left = names(backups.path());
        unneeded(backups.path());
        assert!(!left.is_empty(), "round {round}");
        server.start_again();
    }
    backup(&server, "BACKUP SERVER AS 'end' KEEP 1");
    assert_eq!(names(backups.path()), ["end"]);
    assert_eq!(unneeded(backups.path()), Vec::<String>::new());
    let copy = restored(backups.path(), None);
    assert_eq!(copy.connect().value("SELECT COUNT(*) FROM d.t"), "24");
}

#[test]
fn a_backup_is_as_fast_as_it_may_be_and_says_how_far_it_is() {
    let backups = directory();
    let server = server_with(&backups, &[("backup_max_bytes_per_second", "1000")]);
    let mut client = server.connect();
    let jobs =
        "SELECT NAME, STATE, PROGRESS, JOB_ID IS NULL FROM information_schema.jobs WHERE KIND = 'BACKUP'";
    client.ok("CREATE USER eve");
    let mut eve = Client::connect_as("eve", server.mysql_port()).expect("eve may log in");
    std::thread::scope(|threads| {
        let taking = threads.spawn(|| backup(&server, "BACKUP SERVER AS 'slow'"));
        wait_until("it runs", || !client.rows(jobs).is_empty());
        let row = client.rows(jobs).remove(0);
        let place = text(&backups.path().canonicalize().expect("a directory"));
        assert!(row.starts_with(&format!("{place}|RUNNING|")) && row.ends_with(" bytes|1"), "{row}");
        assert!(eve.rows(jobs).is_empty());
        // The catalog alone would take a minute.
        client.ok("ADMIN SET FRONTEND CONFIG (\"backup_max_bytes_per_second\" = \"0\")");
        taking.join().expect("a backup");
    });
    assert!(client.rows(jobs).is_empty());
}

#[test]
fn a_backup_needs_a_place_and_the_right_to_take_it() {
    let server = Server::start();
    let mut client = server.connect();
    client.refused("BACKUP SERVER", 1235, "backup_path");
    client.refused("BACKUP SERVER TO 'file:///tmp/x'", 1235, "backup_path");
    client.refused("BACKUP SNAPSHOT d.label TO repository", 1235, "BACKUP SERVER");
    client.refused("BACKUP SERVER TO 's3://b/p' PROPERTIES ('nonsense' = '1')", 1105, "nonsense");
    let within = text(&server.data().join("backups"));
    let said = run(
        "tributary serve",
        program()
            .args(["serve", "--storage-root-path", &text(&server.data())])
            .env("TRIBUTARY_BACKUP_PATH", &within),
    )
    .failure();
    assert!(said.contains("choose a directory outside"), "{said}");
}

#[test]
fn backups_are_in_an_object_store_too() {
    let store = S3Store::shared();
    store.make_bucket("backups");
    let server = Server::start();
    fill(&server);
    let rows = contents(&server);
    let url = format!("mysql://root@127.0.0.1:{}", server.mysql_port());
    let endpoint = format!("s3.endpoint={}", store.endpoint());
    let place = [
        "--property",
        &endpoint,
        "--property",
        "s3.access_key=key",
        "--property",
        "use_path_style=true",
        "--property-env",
        "s3.secret_key=HUSH",
    ];
    let mut command = program();
    command.args(["backup", "--url", &url, "--name", "first", "--to", "s3://backups/here"]).args(place);
    let said = run("tributary backup", command.env("HUSH", "hush")).success();
    assert!(said.contains("s3://backups/here") && !said.contains("hush"), "{said}");
    let copy = Server::on(&[], |parent| {
        let to = text(&parent.join("data"));
        let mut command = program();
        command.args(["restore", "--from", "s3://backups/here", "--to", &to]).args(place).env("HUSH", "hush");
        run("tributary restore", &mut command).success();
    });
    assert_copied(&copy, &rows);
}
