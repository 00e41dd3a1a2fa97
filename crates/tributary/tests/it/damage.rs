//! Damage to the files of a stopped server: detected, refused with file and offset, and repaired only as far as its owner said.

use crate::support::server::{command, program};
use crate::support::{Curl, Server, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Output;

const TABLE: &str = "CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50)) DUPLICATE KEY(id) \
    DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"3600000\")";

/// A killed server whose log has one frame for each of five loads, of ids 0 to 4, in a group without a
/// commit; and in data files the id 100.
fn killed_with_five_loads() -> Server {
    let mut server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE db");
    client.ok("USE db");
    client.ok(TABLE);
    client.ok("INSERT INTO dt VALUES (100, 'in a data file')");
    assert!(server.stop().success());
    server.start_again();
    let mut client = server.connect_to("db");
    client.ok("SET group_commit = async_mode");
    for id in 0..5 {
        client.ok(&format!("INSERT INTO dt VALUES ({id}, 'row {id}')"));
    }
    server.kill();
    server
}

/// Starts the program on the data and waits until it gives up; returns its output.
pub fn refusal(data: &Path) -> String {
    let mut child = command(data).spawn().expect("the program runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("standard output is read");
    if !line.is_empty() {
        let _ = child.kill();
        let _ = child.wait();
        panic!("the server started although it should not: {line}");
    }
    let mut error = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut error).expect("standard error is read");
    assert!(!child.wait().expect("its status").success());
    error.lines().filter(|line| line.starts_with("tributary: ")).collect()
}

fn wal(arguments: &[&str], data: &Path) -> Output {
    let output =
        program().arg("wal").args(arguments).arg("--storage-root-path").arg(data).output().expect("it runs");
    assert!(output.status.code().is_some(), "{output:?}");
    output
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The objects that a command with `--json` prints.
fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn of_kind<'a>(objects: &'a [Value], what: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["what"] == what).collect()
}

/// File and offset of the frames that hold asynchronous data, in order.
fn data_frames(data: &Path) -> Vec<(PathBuf, u64)> {
    let objects = objects(&wal(&["inspect", "--json"], data));
    let mut frames = Vec::new();
    let mut last = None;
    for object in &objects {
        if object["what"] == "frame" {
            let file = PathBuf::from(object["file"].as_str().expect("a path"));
            last = Some((file, object["offset"].as_u64().expect("an offset")));
        } else if object["kind"] == "data_async" {
            frames.extend(last.take());
        }
    }
    frames
}

fn flip(file: &Path, offset: u64) {
    let mut bytes = std::fs::read(file).expect("the file");
    bytes[offset as usize] ^= 0x40;
    std::fs::write(file, bytes).expect("written");
}

fn ids(server: &Server) -> Vec<String> {
    let mut client = server.connect_to("db");
    client.ok("SYNC");
    client.rows("SELECT id FROM dt ORDER BY id")
}

fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("the directory")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), std::fs::read(path).expect("the file")))
        .collect();
    files.sort();
    files
}

/// The newest file of the kind in the directory of the only table of `db`.
fn file_of_table(server: &Server, suffix: &str) -> PathBuf {
    file_of(server, "db", suffix)
}

pub fn file_of(server: &Server, database: &str, suffix: &str) -> PathBuf {
    let tables = server.data().join("tables").join(database);
    let table = std::fs::read_dir(&tables).expect("tables").next().expect("one").expect("a table").path();
    let folder = if suffix == ".json" { table.join("_delta_log") } else { table };
    let files = std::fs::read_dir(folder).expect("files").map(|file| file.expect("a file").path());
    files
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .max_by_key(|path| path.file_name().map(ToOwned::to_owned))
        .expect("there is one")
}

#[test]
fn the_log_of_a_stopped_server_is_listed_and_that_of_a_running_one_is_not() {
    let mut server = killed_with_five_loads();
    let listed = objects(&wal(&["inspect", "--json"], &server.data()));
    let loads: Vec<&Value> = listed.iter().filter(|object| object["kind"] == "data_async").collect();
    assert_eq!(loads.len(), 5, "{listed:#?}");
    for (number, load) in loads.iter().enumerate() {
        assert_eq!((&load["table_name"], &load["rows"]), (&Value::from("db.dt"), &Value::from(1)));
        assert_eq!(load["load"], number);
        assert_eq!(load["txn"], loads[0]["txn"]);
    }
    let log = of_kind(&listed, "log")[0];
    assert!(log["end_lsn"].as_u64() > log["first_lsn"].as_u64());
    let shown = text(&wal(&["inspect"], &server.data()));
    assert!(shown.contains("data_async, db.dt (table 1)") && shown.contains("checksum right"), "{shown}");
    server.start_again();
    let refused = wal(&["inspect"], &server.data());
    assert!(!refused.status.success());
    assert!(text(&refused).contains("in use by another server"), "{}", text(&refused));
    let refused = wal(&["repair", "--cut"], &server.data());
    assert!(text(&refused).contains("in use by another server"), "{}", text(&refused));
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

/// Truncates the last write of the log after 100 bytes, in the middle of a frame. Returns its file and offset.
fn tear_end(server: &Server) -> (PathBuf, usize) {
    let (file, last) = data_frames(&server.data()).pop().expect("five frames");
    let mut bytes = std::fs::read(&file).expect("the segment");
    let end = (last as usize..).find(|&at| bytes[at..at + 64] == [0; 64]).expect("the end is zeros");
    let begun: Vec<u8> = bytes[last as usize..last as usize + 100.min(end - last as usize)].to_vec();
    let begins_at = objects(&wal(&["inspect", "--json"], &server.data()))
        .iter()
        .filter(|object| object["what"] == "frame" && object["file"] == file.display().to_string())
        .map(|frame| frame["offset"].as_u64().unwrap_or(0) + frame["bytes"].as_u64().unwrap_or(0))
        .max()
        .expect("a frame") as usize;
    bytes[begins_at..begins_at + begun.len()].copy_from_slice(&begun);
    std::fs::write(&file, bytes).expect("written");
    (file, begins_at)
}

#[test]
fn a_torn_end_of_the_log_is_cut_and_said_in_the_servers_log() {
    let mut server = killed_with_five_loads();
    let (file, begins_at) = tear_end(&server);
    let shown = wal(&["inspect"], &server.data());
    assert!(shown.status.success(), "a torn end is no damage");
    assert!(text(&shown).contains("unfinished write at the end, never acknowledged"), "{}", text(&shown));
    let repaired = wal(&["repair"], &server.data());
    assert!(repaired.status.success(), "there is nothing to repair: {}", text(&repaired));
    assert!(text(&repaired).contains("a start cuts it"), "{}", text(&repaired));
    assert!(!text(&repaired).contains("would lose"), "{}", text(&repaired));
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
    let log = server.log();
    assert!(log.contains("ends with an unfinished write, which was never acknowledged; it is cut"), "{log}");
    assert!(
        log.contains(&file.display().to_string()) && log.contains(&format!("offset={begins_at}")),
        "{log}"
    );
}

#[test]
fn damage_within_the_log_is_refused_and_skipped_only_by_name() {
    let mut server = killed_with_five_loads();
    let (file, offset) = data_frames(&server.data())[2].clone();
    flip(&file, offset + 60);
    let error = refusal(&server.data());
    let place = format!("{} at byte {offset}", file.display());
    assert!(error.contains("the write-ahead log is damaged") && error.contains(&place), "{error}");
    assert!(error.contains("tributary wal inspect") && error.contains("would be lost"), "{error}");

    let inspected = wal(&["inspect"], &server.data());
    assert_eq!(inspected.status.code(), Some(1));
    assert!(
        text(&inspected).contains(&format!("DAMAGE; what follows is readable: {place}")),
        "{}",
        text(&inspected)
    );

    let before = contents(&server.data().join("wal"));
    let proposed = wal(&["repair"], &server.data());
    assert_eq!(proposed.status.code(), Some(1), "{}", text(&proposed));
    let name = format!("{}:{offset}", file.file_name().expect("a name").to_string_lossy());
    assert!(text(&proposed).contains(&format!("`--skip {name}` would lose only")), "{}", text(&proposed));
    let wrong = wal(&["repair", "--skip", "wal-00000000000000000000.log:1"], &server.data());
    assert!(text(&wrong).contains("no damage at the place that --skip names"), "{}", text(&wrong));
    assert_eq!(contents(&server.data().join("wal")), before, "nothing was changed");

    let repaired = wal(&["repair", "--skip", &name, "--json"], &server.data());
    assert!(repaired.status.success(), "{}", text(&repaired));
    let report = &objects(&repaired)[0];
    assert_eq!(report["lost"]["within"]["1"]["async_loads"], 1, "{report:#}");
    let backup = PathBuf::from(report["backup"].as_str().expect("a path"));
    let saved = std::fs::read(backup.join(file.file_name().expect("a name"))).expect("the backup");
    assert!(before.iter().any(|(path, bytes)| *path == file && *bytes == saved));
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "3", "4", "100"]);
    assert!(server.log().contains("a repair has skipped a damaged place"), "{}", server.log());
    server.kill();
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "3", "4", "100"]);
}

#[test]
fn the_only_damage_before_a_torn_end_is_skipped_and_nothing_is_left_to_do() {
    let mut server = killed_with_five_loads();
    tear_end(&server);
    let (file, offset) = data_frames(&server.data())[2].clone();
    flip(&file, offset + 60);
    let proposed = wal(&["repair"], &server.data());
    assert_eq!(proposed.status.code(), Some(1), "{}", text(&proposed));
    assert_eq!(text(&proposed).matches("`--cut` would lose").count(), 1, "{}", text(&proposed));
    let name = format!("{}:{offset}", file.file_name().expect("a name").to_string_lossy());
    let repaired = wal(&["repair", "--skip", &name], &server.data());
    assert!(repaired.status.success(), "{}", text(&repaired));
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "3", "4", "100"]);
}

#[test]
fn a_damaged_log_is_cut_before_its_first_damage() {
    let mut server = killed_with_five_loads();
    let (file, offset) = data_frames(&server.data())[2].clone();
    flip(&file, offset + 60);
    let repaired = wal(&["repair", "--cut", "--json"], &server.data());
    assert!(repaired.status.success(), "{}", text(&repaired));
    let report = &objects(&repaired)[0];
    assert_eq!(report["lost"]["behind"]["1"]["rows"], 2, "{report:#}");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "100"]);
    server.connect_to("db").ok("INSERT INTO dt VALUES (5, 'after')");
    server.kill();
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "5", "100"]);
    let sound = {
        server.kill();
        wal(&["repair"], &server.data())
    };
    assert!(sound.status.success() && text(&sound).contains("no damage"), "{}", text(&sound));
}

#[test]
fn a_damaged_catalog_is_refused_with_its_path_and_the_remedy() {
    let mut server = killed_with_five_loads();
    let catalog = server.data().join("catalog.db");
    // Opening and closing the database moves the journal's contents into the file.
    server.start_again();
    assert!(server.stop().success());
    let whole = std::fs::read(&catalog).expect("the catalog");
    for page in (0..whole.len()).step_by(4096) {
        let mut damaged = whole.clone();
        damaged[page..page + 100].fill(0x5a);
        std::fs::write(&catalog, damaged).expect("written");
        let error = refusal(&server.data());
        assert!(error.contains(&format!("the catalog {} is damaged", catalog.display())), "{page}: {error}");
        assert!(error.contains("Restore"), "{error}");
        if page > 4096 * 6 {
            break;
        }
    }
    std::fs::write(&catalog, whole).expect("written");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

#[test]
fn a_catalog_that_is_gone_does_not_make_the_rows_nobodys() {
    let mut server = killed_with_five_loads();
    let catalog = server.data().join("catalog.db");
    let saved = server.scratch().join("saved");
    std::fs::create_dir(&saved).expect("a directory");
    for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
        if server.data().join(name).exists() {
            std::fs::rename(server.data().join(name), saved.join(name)).expect("moved");
        }
    }
    for is_empty in [false, true] {
        if is_empty {
            std::fs::write(&catalog, b"").expect("written");
        }
        let error = refusal(&server.data());
        assert!(error.contains(&format!("the catalog {} is missing or empty", catalog.display())), "{error}");
    }
    for file in std::fs::read_dir(&saved).expect("the directory") {
        let file = file.expect("a file");
        std::fs::rename(file.path(), server.data().join(file.file_name())).expect("moved back");
    }
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

#[test]
fn a_damaged_entry_of_a_delta_log_is_refused_with_file_and_offset() {
    let mut server = killed_with_five_loads();
    let entry = file_of_table(&server, ".json");
    let whole = std::fs::read(&entry).expect("the entry");
    let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
    let mut garbled = whole.clone();
    garbled[10..20].fill(0xff);
    for damaged in [&b""[..], &whole[..whole.len() / 2], &garbled] {
        std::fs::write(&entry, damaged).expect("written");
        let error = refusal(&server.data());
        assert!(error.contains("the Delta log is damaged") && error.contains(&name), "{error}");
        assert!(error.contains("at byte") && error.contains("Restore the file"), "{error}");
        assert!(error.len() < 1500, "no backtrace: {error}");
    }
    std::fs::write(&entry, whole).expect("written");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

#[test]
fn a_data_file_that_is_gone_or_cut_short_fails_queries_of_its_table_by_name() {
    let mut server = killed_with_five_loads();
    let file = file_of_table(&server, ".parquet");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let whole = std::fs::read(&file).expect("the file");
    for damaged in [None, Some(&whole[..whole.len() / 2]), Some(&b""[..])] {
        match damaged {
            Some(bytes) => std::fs::write(&file, bytes).expect("written"),
            None => std::fs::remove_file(&file).expect("removed"),
        }
        server.start_again();
        let mut client = server.connect_to("db");
        let error = client.error("SELECT MAX(name) FROM dt");
        assert!(error.message.contains(&name), "{error}");
        client.ok("CREATE TABLE other (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
        client.ok("INSERT INTO other VALUES (1)");
        assert_eq!(client.value("SELECT MAX(id) FROM other"), "1", "other tables are unharmed");
        client.ok("DROP TABLE other");
        server.kill();
    }
    std::fs::write(&file, whole).expect("written");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

#[test]
fn a_data_file_with_a_damaged_footer_fails_queries_of_its_table_by_name() {
    let mut server = killed_with_five_loads();
    let file = file_of_table(&server, ".parquet");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let whole = std::fs::read(&file).expect("the file");
    let length = whole.len() - 8;
    let footer = length - u32::from_le_bytes(whole[length..length + 4].try_into().expect("four")) as usize;
    server.start_again();
    let mut client = server.connect_to("db");
    client.ok("CREATE TABLE other (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO other VALUES (1)");
    // The length of the footer, too large and too small, and the mark at the end.
    for (at, flip) in
        [(length, 0x04), (length + 1, 0x40), (length + 3, 0x80), (length + 3, 0x01), (length + 5, 1)]
    {
        let mut damaged = whole.clone();
        damaged[at] ^= flip;
        std::fs::write(&file, damaged).expect("written");
        for query in ["SELECT MAX(name) FROM dt", "SELECT * FROM dt WHERE id = 100"] {
            let error = client.error(query);
            assert!(error.message.contains(&format!("{name} is damaged: ")), "{at}: {error}");
            assert!(error.message.contains("Restore it from a copy"), "{at}: {error}");
        }
        assert_eq!(client.value("SELECT MAX(id) FROM other"), "1", "other tables are unharmed");
    }
    let mut named = 0;
    for at in (footer..length).step_by(11) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x81;
        std::fs::write(&file, damaged).expect("written");
        let answer = client.try_bytes(b"SELECT id, name FROM dt WHERE id > 0 ORDER BY name");
        match answer.expect("the connection stays") {
            Err(error) => {
                assert!(!error.message.contains("internal error"), "{at}: {error}");
                named += usize::from(error.message.contains(&name));
            }
            // Names and bounds have no checksum. A footer that was read stays cached until the server ends.
            Ok(()) => {
                server.kill();
                server.start_again();
                client = server.connect_to("db");
            }
        }
    }
    assert!(named > 5, "{named}");
    server.kill();
    std::fs::write(&file, whole).expect("written");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

/// Row groups are read whole, and by single pages where the key says which.
#[test]
fn a_data_file_with_damaged_pages_fails_the_queries_that_read_them_by_name() {
    // Pages in memory would be read instead.
    let server = Server::with_settings(&[("flush_age_ms", "100"), ("storage_page_cache_limit", "0")]);
    let mut db = server.database().with_dt("");
    let csv = server.scratch().join("rows.csv");
    let score = |id: u64| id * 2_654_435_761 % 1_000_000_007;
    let rows: String = (0..100_000).map(|id| format!("{id},name,{}\n", score(id))).collect();
    std::fs::write(&csv, rows).expect("the scratch directory takes a file");
    Curl::stream_load(&server, &db.name, "dt").header("column_separator:,").file(&csv).load().success();
    wait_until("the load is flushed", || server.metric("tributary_flushed_rows_total ") >= 100_000.0);
    let file = file_of(&server, &db.name, ".parquet");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let whole = std::fs::read(&file).expect("the file");
    let (all, one) = ("SELECT sum(id + score), max(name) FROM dt", "SELECT score FROM dt WHERE id = 50000");
    let sum: u64 = (0..100_000).map(|id| id + score(id)).sum();
    let (mut named, mut unharmed) = (0, 0);
    // The footer and the indexes are less than a tenth of the file.
    for place in 1..30 {
        let at = whole.len() * place / 33;
        let mut damaged = whole.clone();
        damaged[at] ^= 0x04;
        std::fs::write(&file, damaged).expect("written");
        let error = db.client.error(all);
        assert!(error.message.contains(&format!("{name} is damaged: column '")), "{at}: {error}");
        assert!(error.message.contains("Restore it from a copy"), "{at}: {error}");
        match db.client.try_bytes(one.as_bytes()).expect("the connection stays") {
            Ok(()) => {
                assert_eq!(db.client.value(one), score(50_000).to_string());
                unharmed += 1;
            }
            Err(error) => {
                assert!(error.message.contains(&format!("{name} is damaged: column '")), "{at}: {error}");
                named += 1;
            }
        }
    }
    assert!(named >= 5 && unharmed >= 5, "one page of several is read: {named}, {unharmed}");
    std::fs::write(&file, whole).expect("written");
    assert_eq!(db.client.rows(all), [format!("{sum}|name")]);
}

#[test]
fn a_log_whose_directory_is_gone_is_missed() {
    let mut server = killed_with_five_loads();
    let (log, away) = (server.data().join("wal"), server.scratch().join("away"));
    std::fs::rename(&log, &away).expect("moved");
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir_all(&log).expect("an empty directory, as of a disk that is not mounted");
        }
        let error = refusal(&server.data());
        assert!(error.contains(&format!("the write-ahead log {} was used", log.display())), "{error}");
        assert!(error.contains("Mount its disk"), "{error}");
    }
    let _ = std::fs::remove_dir_all(&log);
    std::fs::rename(&away, &log).expect("moved back");
    server.start_again();
    assert_eq!(ids(&server), ["0", "1", "2", "3", "4", "100"]);
}

#[test]
fn rows_stay_when_directories_of_logs_are_added_and_taken_away() {
    let mut server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    let (a, b) = (server.scratch().join("a"), server.scratch().join("b"));
    let mut client = server.connect();
    client.ok("CREATE DATABASE db");
    client.ok("USE db");
    client.ok(TABLE);
    drop(client);
    let mut expected = Vec::new();
    let one = a.display().to_string();
    let two = format!("{};{}", a.display(), b.display());
    for (round, dirs) in [&one, &two, &one, &two].into_iter().enumerate() {
        server.kill();
        server.set("group_commit_wal_path", dirs);
        server.start_again();
        let mut client = server.connect_to("db");
        client.ok("SET group_commit = async_mode");
        client.ok(&format!("INSERT INTO dt VALUES ({round}, 'x')"));
        expected.push(round.to_string());
        assert_eq!(ids(&server), expected);
    }
}

#[test]
fn rows_stay_when_a_directory_of_a_log_is_changed_and_changed_back() {
    let mut server = Server::with_settings(&[("flush_age_ms", "3600000")]);
    let a = server.scratch().join("a").display().to_string();
    let b = server.scratch().join("b").display().to_string();
    let mut client = server.connect();
    client.ok("CREATE DATABASE db");
    client.ok("USE db");
    client.ok(TABLE);
    drop(client);
    let mut expected: Vec<String> = Vec::new();
    for (round, dir) in [&a, &b, &b, &a, &a, &b].into_iter().enumerate() {
        server.kill();
        server.set("group_commit_wal_path", dir);
        server.start_again();
        assert_eq!(ids(&server), expected);
        let mut client = server.connect_to("db");
        client.ok("SET group_commit = async_mode");
        client.ok(&format!("INSERT INTO dt VALUES ({}, 'x')", round * 10));
        expected.push((round * 10).to_string());
        drop(client);
        // A clean stop forgets the log that is no longer configured. Its segments stay.
        if [1, 4].contains(&round) {
            assert!(server.stop().success());
            server.start_again();
            let mut client = server.connect_to("db");
            client.ok("SET group_commit = async_mode");
            client.ok(&format!("INSERT INTO dt VALUES ({}, 'y')", round * 10 + 1));
            expected.push((round * 10 + 1).to_string());
        }
    }
    server.kill();
    server.start_again();
    assert_eq!(ids(&server), expected);
}

#[test]
fn a_segment_that_is_cut_short_in_its_header_is_refused_listed_and_cut_off() {
    let mut server = killed_with_five_loads();
    let (file, _) = data_frames(&server.data())[0].clone();
    let short = std::fs::read(&file).expect("the segment")[..100].to_vec();
    std::fs::write(&file, &short).expect("written");
    let error = refusal(&server.data());
    assert!(error.contains(&file.display().to_string()) && error.contains("wal inspect"), "{error}");
    let inspected = wal(&["inspect"], &server.data());
    assert_eq!(inspected.status.code(), Some(1), "{}", text(&inspected));
    assert!(text(&inspected).contains("the file is shorter than a segment header"), "{}", text(&inspected));
    let repaired = wal(&["repair", "--cut", "--json"], &server.data());
    assert!(repaired.status.success(), "{}", text(&repaired));
    let backup = PathBuf::from(objects(&repaired)[0]["backup"].as_str().expect("a path"));
    assert_eq!(std::fs::read(backup.join(file.file_name().expect("a name"))).expect("the backup"), short);
    server.start_again();
    assert_eq!(ids(&server), ["100"]);
}
