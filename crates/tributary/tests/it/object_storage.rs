//! Tables in a store that speaks S3's protocol: moto, directly or behind a door that is shut or loses answers.

use crate::backup::restored;
use crate::stopped_copy::{assert_copied, contents, fill};
use crate::support::programs::python_of_store;
use crate::support::{Client, Curl, Door, DoorMode, S3Store, Server, wait_until};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A bucket of one test, and the way to it.
pub struct Bucket {
    pub store: Arc<S3Store>,
    pub door: Door,
    pub name: String,
}

impl Bucket {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let store = S3Store::shared();
        let name = format!("tables-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        store.make_bucket(&name);
        let door = Door::to(&store.endpoint);
        Self { store, door, name }
    }

    pub fn url(&self) -> String {
        format!("s3://{}/a/b", self.name)
    }

    pub fn settings(&self) -> Vec<(String, String)> {
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            of("table_storage", &self.url()),
            of("table_storage_endpoint", &self.door.url),
            of("table_storage_access_key", "key"),
            of("table_storage_secret_key", "hush"),
            of("store_timeout_ms", "4000"),
            of("flush_age_ms", "300"),
            of("group_commit_interval_ms_default_value", "50"),
        ]
    }

    pub fn server(&self, more: &[(&str, &str)]) -> Server {
        let settings = self.settings();
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(more.iter().copied())
            .collect();
        Server::with_settings(&settings)
    }

    /// The URL of the only table whose name begins like this.
    pub fn table(&self, name: &str) -> String {
        let mut found = BTreeSet::new();
        wait_until("the table is in the bucket", || {
            let keys = self.store.keys(&self.name, "a/b/tables/db/");
            let location =
                |key: &String| key.split_once("/_delta_log/").map(|(location, _)| location.to_owned());
            found = keys
                .iter()
                .filter_map(location)
                .filter(|location| location.contains(&format!("/{name}-")))
                .collect();
            !found.is_empty()
        });
        assert_eq!(found.len(), 1, "{found:?}");
        format!("s3://{}/{}", self.name, found.pop_first().expect("one"))
    }

    /// Tries to start a server on a directory, and returns its complaint.
    fn refusal(data: &Path, settings: &[(String, String)]) -> String {
        let text = Server::refusal(data, settings);
        assert!(!text.contains("hush"), "{text}");
        text
    }
}

/// Rows from `first` on, one a line.
pub fn csv(first: u64, rows: u64) -> String {
    let mut text = String::new();
    for id in first..first + rows {
        writeln!(text, "{id},row {id},{id}").expect("a String takes all");
    }
    text
}

pub fn stream_load(server: &Server, table: &str, mode: &str, body: &str) {
    let file = server.scratch().join("rows.csv");
    std::fs::write(&file, body).expect("written");
    let load = Curl::stream_load(server, "db", table).header("column_separator:,");
    load.header(&format!("group_commit:{mode}")).file(&file).load().success();
}

pub fn sums(client: &mut Client, table: &str) -> String {
    client.rows(&format!("SELECT COUNT(*), COUNT(DISTINCT id), SUM(score) FROM {table}")).remove(0)
}

const UNIQUE: &str =
    "CREATE TABLE u (id INT NOT NULL, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";

/// Loads rows in all modes while answers of the store are lost, has files merged, and ends the server and kills it: all rows are there.
/// Returns how many `dt` has, and the sum of their ids.
pub fn lives_in_a_store(server: &mut Server, door: &Door) -> [u64; 2] {
    let mut client = server.connect_to("db");
    client.ok(UNIQUE);
    let mut count = 0_u64;
    for (round, mode) in ["async_mode", "sync_mode", "off_mode"].iter().cycle().take(12).enumerate() {
        // One answer of seven is lost: the store has done what it was asked.
        door.set(if round % 2 == 0 { DoorMode::Loses(7) } else { DoorMode::Open });
        stream_load(server, "dt", mode, &csv(count, 100));
        count += 100;
        client.ok(&format!("INSERT INTO u VALUES ({}, {round}), ({}, {round})", round % 5, round % 7));
        client.ok("SYNC");
    }
    assert!(door.lost() > 0);
    door.set(DoorMode::Open);
    // Written to data files while it arrives.
    stream_load(server, "dt", "off_mode", &csv(count, 20_000));
    count += 20_000;
    client.ok("DELETE FROM u WHERE id = 6");
    let mut more = 0;
    wait_until("files were merged", || {
        more += 1;
        client.ok(&format!("INSERT INTO u VALUES (1, {more})"));
        client.ok("SYNC");
        server.metric("tributary_compactions_total ") > 0.0
    });
    let total = count * (count - 1) / 2;
    let expected = format!("{count}|{count}|{total}");
    let unique = client.rows("SELECT id, v FROM u ORDER BY id");
    assert_eq!(unique.len(), 6, "{unique:?}");
    for round in 0..2 {
        if round == 0 {
            assert!(server.stop().success());
        } else {
            server.kill();
        }
        server.start_again();
        client = server.connect_to("db");
        assert_eq!(sums(&mut client, "dt"), expected);
        assert_eq!(client.rows("SELECT id, v FROM u ORDER BY id"), unique);
    }
    assert!(!server.data().join("tables").exists(), "no table is on the disk");
    [count, total]
}

#[test]
fn tables_in_a_store_are_loaded_changed_compacted_and_read_by_others() {
    let bucket = Bucket::new();
    let mut server =
        bucket.server(&[("large_load_bytes", "200000"), ("flush_age_ms", "20")]).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok(UNIQUE);
    let (mut count, mut total) = (0, 0);
    let mut add = |first: u64, rows: u64| {
        count += rows;
        total += (first..first + rows).sum::<u64>();
    };
    for (round, mode) in ["async_mode", "sync_mode", "off_mode"].iter().cycle().take(18).enumerate() {
        let first = round as u64 * 1000;
        stream_load(&server, "dt", mode, &csv(first, 100));
        client.ok(&format!("SET group_commit = {mode}"));
        client.ok(&format!("INSERT INTO dt VALUES ({}, 'one', {})", first + 500, first + 500));
        client.ok(&format!("INSERT INTO u VALUES ({}, {round}), ({}, {round})", round % 5, round % 7));
        client.ok("SYNC");
        add(first, 100);
        add(first + 500, 1);
    }
    // Written to data files while it arrives.
    stream_load(&server, "dt", "off_mode", &csv(100_000, 20_000));
    add(100_000, 20_000);
    assert_eq!(sums(&mut client, "dt"), format!("{count}|{count}|{total}"));
    client.ok("DELETE FROM dt WHERE id = 500");
    client.ok("UPDATE u SET v = 100 WHERE id = 6");
    (count, total) = (count - 1, total - 500);
    let expected = format!("{count}|{count}|{total}");
    assert_eq!(sums(&mut client, "dt"), expected);
    let unique = client.rows("SELECT id, v FROM u ORDER BY id");
    assert_eq!(unique.len(), 7, "{unique:?}");
    assert_eq!(unique[6], "6|100");
    let mut more = 0;
    wait_until("files were merged", || {
        more += 1;
        client.ok(&format!("INSERT INTO dt VALUES ({}, 'more', 0)", 200_000 + more));
        client.ok("SYNC");
        server.metric("tributary_compactions_total ") > 0.0
    });
    count += more;
    let expected = format!("{count}|{count}|{total}");
    assert_eq!(sums(&mut client, "dt"), expected);
    // A table without deletion vectors, which the other reader does not know.
    client.ok("CREATE TABLE copied (id INT NOT NULL, name VARCHAR(50), score INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("INSERT INTO copied SELECT id, name, score FROM dt");
    client.ok("SYNC");
    let arguments = ["sums", &bucket.table("copied"), &count.to_string(), &total.to_string()];
    python_of_store("delta_checks.py", &arguments, &bucket.store.endpoint);
    assert!(!server.data().join("tables").exists(), "no table is on the disk");
    let shown = client
        .rows("SELECT NAME, VALUE FROM information_schema.server_settings WHERE NAME LIKE 'table_storage%'");
    assert!(!shown.join(";").contains("hush"), "{shown:?}");
    for round in 0..2 {
        if round == 0 {
            assert!(server.stop().success());
        } else {
            client.ok("SET group_commit = async_mode");
            client.ok("INSERT INTO copied VALUES (1000000, 'last', 0)");
            server.kill();
        }
        server.start_again();
        client = server.connect_to("db");
        assert_eq!(sums(&mut client, "dt"), expected);
        assert_eq!(client.rows("SELECT id, v FROM u ORDER BY id"), unique);
    }
    client.ok("SYNC");
    assert_eq!(client.value("SELECT COUNT(*) FROM copied"), (count + 1).to_string());
    client.ok("DROP TABLE copied FORCE");
    wait_until("its objects are gone", || {
        !bucket.store.keys(&bucket.name, "a/b/tables/db/copied").iter().any(|key| key.ends_with(".parquet"))
    });
}

#[test]
fn a_store_that_is_away_for_a_while_costs_no_row() {
    let bucket = Bucket::new();
    let server = bucket.server(&[]).with_manual_table();
    let mut client = server.connect_to("db");
    client.ok("SET group_commit = async_mode");
    client.ok("INSERT INTO dt VALUES (0, 'before', 0)");
    client.ok("SYNC");
    bucket.table("dt");
    wait_until("it is flushed", || server.metric("tributary_flushes_total ") > 0.0);
    bucket.door.set(DoorMode::Shut);
    for id in 1..=50 {
        client.ok(&format!("INSERT INTO dt VALUES ({id}, 'away', {id})"));
    }
    // The store fails for long enough that the same failure is seen twice.
    let problems = "SELECT PROBLEM, CAUSE FROM information_schema.problems";
    let mut named = Vec::new();
    wait_until("the problem is named", || {
        named = client.rows(problems);
        named.iter().any(|problem| problem.contains("S3"))
    });
    let unreadable = client.error("SELECT COUNT(*), SUM(score) FROM dt");
    assert!(
        unreadable.message.contains("S3") && !unreadable.message.contains("hush"),
        "{}",
        unreadable.message
    );
    client.ok("INSERT INTO dt VALUES (51, 'away', 51)");
    bucket.door.set(DoorMode::Open);
    client.ok("SYNC");
    wait_until("queries are answered again", || {
        client
            .try_rows("SELECT COUNT(*), COUNT(DISTINCT id), SUM(score) FROM dt")
            .is_ok_and(|rows| rows == ["52|52|1326"])
    });
    wait_until("no problem is left", || client.rows(problems).is_empty());
    python_of_store("delta_checks.py", &["sums", &bucket.table("dt"), "52", "1326"], &bucket.store.endpoint);
}

#[test]
fn lost_answers_double_nothing_and_fail_nothing() {
    let bucket = Bucket::new();
    let mut server =
        bucket.server(&[("flush_age_ms", "50"), ("large_load_bytes", "100000")]).with_manual_table();
    bucket.door.set(DoorMode::Loses(8));
    let mut client = server.connect_to("db");
    let (mut count, mut total) = (0, 0);
    let mut round = 0;
    while round < 30 || bucket.door.lost() < 10 {
        let (first, mode) =
            (round * 10_000, ["async_mode", "off_mode"][usize::try_from(round % 2).expect("small")]);
        let rows = if round % 10 == 9 { 9000 } else { 50 };
        stream_load(&server, "dt", mode, &csv(first, rows));
        count += rows;
        total += (first..first + rows).sum::<u64>();
        round += 1;
    }
    client.ok("SYNC");
    assert_eq!(sums(&mut client, "dt"), format!("{count}|{count}|{total}"));
    wait_until("all rows are in files", || server.metric("tributary_memtable_rows ") == 0.0);
    server.kill();
    server.start_again();
    bucket.door.set(DoorMode::Open);
    let mut client = server.connect_to("db");
    assert_eq!(sums(&mut client, "dt"), format!("{count}|{count}|{total}"));
    let table = bucket.table("dt");
    python_of_store(
        "delta_checks.py",
        &["sums", &table, &count.to_string(), &total.to_string()],
        &bucket.store.endpoint,
    );
}

#[test]
fn a_start_is_refused_where_the_tables_are_not_this_servers() {
    let bucket = Bucket::new();
    let mut server = bucket.server(&[]).with_manual_table();
    assert!(server.stop().success());
    let settings = bucket.settings();
    let without = Bucket::refusal(&server.data(), &[]);
    assert!(without.contains(&format!("are in {} according to node.json", bucket.url())), "{without}");
    let with = |name: &str, value: &str| {
        let other = settings.iter().filter(|(known, _)| known != name).cloned();
        other.chain([(name.to_owned(), value.to_owned())]).collect::<Vec<_>>()
    };
    let elsewhere =
        Bucket::refusal(&server.data(), &with("table_storage", &format!("s3://{}/other", bucket.name)));
    assert!(elsewhere.contains("Nothing was changed"), "{elsewhere}");
    let second = tempfile::tempdir().expect("a temporary directory");
    let taken = Bucket::refusal(second.path(), &settings);
    assert!(taken.contains("give each server a prefix of its own"), "{taken}");
    // A store of the same name somewhere else.
    Curl::anonymous(&format!("{}/{}/a/b/_tributary_server.json", bucket.store.endpoint, bucket.name))
        .argument("-X")
        .argument("DELETE")
        .argument("--aws-sigv4")
        .argument("aws:amz:us-east-1:s3")
        .argument("-u")
        .argument("key:hush")
        .text();
    let gone = Bucket::refusal(&server.data(), &settings);
    assert!(gone.contains("_tributary_server.json, which says so, is gone"), "{gone}");
    let mut local = Server::start().with_manual_table();
    assert!(local.stop().success());
    let here = Bucket::refusal(&local.data(), &settings);
    assert!(here.contains("stay where they were made"), "{here}");
    let url = Bucket::refusal(Path::new("s3://bucket/a"), &[]);
    assert!(url.contains("table_storage"), "{url}");
}

#[test]
fn a_store_without_conditional_puts_is_refused() {
    let bucket = Bucket::new();
    bucket.door.set(DoorMode::Unconditional);
    let data = tempfile::tempdir().expect("a temporary directory");
    let refused = Bucket::refusal(data.path(), &bucket.settings());
    assert!(refused.contains("If-None-Match") && refused.contains("conditional puts"), "{refused}");
    bucket.door.set(DoorMode::Open);
    let mut settings = bucket.settings();
    settings.iter_mut().find(|(name, _)| name == "table_storage").expect("set").1 =
        format!("s3://no-such-bucket-{}", bucket.name);
    let missing = Bucket::refusal(data.path(), &settings);
    assert!(missing.contains("no-such-bucket"), "{missing}");
}

/// The figures of the cache of data files.
fn cache(client: &mut Client, figure: &str) -> u64 {
    let figures = "SELECT METRIC_VALUE FROM information_schema.file_cache_statistics WHERE METRIC_NAME = ";
    client.value(&format!("{figures}'{figure}'")).parse().expect("a number")
}

#[test]
fn data_files_are_read_once_and_then_from_the_disk_after_a_restart_too() {
    let bucket = Bucket::new();
    let mut server = bucket.server(&[("large_load_bytes", "200000")]).with_manual_table();
    let mut client = server.connect_to("db");
    for round in 0..3 {
        stream_load(&server, "dt", "off_mode", &csv(round * 100_000, 20_000));
    }
    client.ok("SYNC");
    let first = sums(&mut client, "dt");
    assert!(cache(&mut client, "misses") > 0);
    wait_until("the blocks are on the disk", || cache(&mut client, "blocks") >= 3);
    let (misses, hits) = (cache(&mut client, "misses"), cache(&mut client, "hits"));
    assert_eq!(sums(&mut client, "dt"), first);
    assert_eq!(cache(&mut client, "misses"), misses);
    assert!(cache(&mut client, "hits") > hits);
    assert!(server.stop().success());
    server.start_again();
    client = server.connect_to("db");
    assert_eq!(sums(&mut client, "dt"), first);
    assert_eq!(cache(&mut client, "misses"), 0, "{}", server.log());
    assert!(server.metric("tributary_table_cache_hits_total ") > 0.0);
    assert!(server.stop().success());
    // A block that is damaged is not believed.
    let directory = server.data().join("table_cache");
    let parts = std::fs::read_dir(&directory).expect("a directory");
    let blocks =
        parts.flat_map(|part| std::fs::read_dir(part.expect("an entry").path()).expect("a directory"));
    for block in blocks {
        let path = block.expect("an entry").path();
        let mut bytes = std::fs::read(&path).expect("a block");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).expect("written");
    }
    server.start_again();
    client = server.connect_to("db");
    assert_eq!(sums(&mut client, "dt"), first);
    assert!(cache(&mut client, "damaged") > 0);
    assert_eq!(client.rows("VERIFY TABLE dt").len(), 1);
    server.set("table_cache_limit", "0");
    assert!(server.stop().success());
    server.start_again();
    assert!(!directory.exists(), "what is not used is deleted");
    client = server.connect_to("db");
    assert_eq!(sums(&mut client, "dt"), first);
    assert!(client.rows("SELECT * FROM information_schema.file_cache_statistics").is_empty());
}

/// Rows of texts that do not compress, of more than two parts of an upload.
fn large_csv() -> (String, u64, u64) {
    let rows = 320_000;
    let mut state = 1_u64;
    let mut text = String::new();
    for id in 0..rows {
        write!(text, "{id},").expect("a String takes all");
        for _ in 0..7 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Nearly six bits in each letter.
            for shift in [16, 22, 28, 34, 40, 46, 52] {
                let letter = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
                text.push(char::from(letter[usize::try_from(state >> shift & 63).expect("small")]));
            }
        }
        writeln!(text, ",{id}").expect("a String takes all");
    }
    (text, rows, (0..rows).sum())
}

#[test]
fn an_upload_that_fails_in_the_middle_leaves_nothing_and_is_loaded_once_when_it_is_sent_again() {
    let bucket = Bucket::new();
    let server = bucket.server(&[("large_load_bytes", "1000000")]).with_manual_table();
    let mut client = server.connect_to("db");
    let table = bucket.table("dt");
    let file = server.scratch().join("large.csv");
    let (text, rows, total) = large_csv();
    std::fs::write(&file, text).expect("written");
    let load = |label: &str| {
        let load = Curl::stream_load(&server, "db", "dt").header("column_separator:,");
        load.header("group_commit:off_mode").header(&format!("label:{label}")).file(&file).load()
    };
    bucket.door.set(DoorMode::RefusesParts(2));
    let failed = load("first");
    assert!(
        failed.failure().contains("writing the data file") || failed.failure().contains("durable"),
        "{}",
        failed.message()
    );
    assert_eq!(failed.get("Retry"), "after_ms", "{}", failed.message());
    assert!(bucket.door.refused() > 0);
    let prefix = table.trim_start_matches(&format!("s3://{}/", bucket.name)).to_owned();
    let data_files =
        || bucket.store.keys(&bucket.name, &prefix).iter().filter(|key| key.ends_with(".parquet")).count();
    wait_until("the upload is aborted", || bucket.store.uploads(&bucket.name) == 0);
    assert_eq!((sums(&mut client, "dt").as_str(), data_files()), ("0|0|NULL", 0));
    // The store completes the upload, and does not say so.
    bucket.door.set(DoorMode::LosesCompletions);
    load("first").success();
    assert!(bucket.door.lost() > 0, "it was an upload of several parts");
    bucket.door.set(DoorMode::Open);
    client.ok("SYNC");
    assert_eq!(sums(&mut client, "dt"), format!("{rows}|{rows}|{total}"));
    assert_eq!((bucket.store.uploads(&bucket.name), data_files()), (0, 1));
    assert_eq!(load("first").status(), "Label Already Exists");
}

#[test]
fn a_store_that_throttles_slows_loads_and_queries_and_fails_none() {
    let bucket = Bucket::new();
    let server = bucket
        .server(&[("flush_age_ms", "50"), ("large_load_bytes", "100000"), ("table_cache_limit", "0")])
        .with_manual_table();
    let mut client = server.connect_to("db");
    bucket.door.set(DoorMode::Throttles(2));
    let (mut count, mut total) = (0, 0);
    let mut round = 0;
    let throttled = |server: &Server| server.metric("tributary_store_throttled_total ");
    while round < 12 || throttled(&server) < 20.0 {
        let first = round * 10_000;
        let (mode, rows) = [("async_mode", 50), ("off_mode", 50), ("off_mode", 9000)]
            [usize::try_from(round % 3).expect("small")];
        stream_load(&server, "dt", mode, &csv(first, rows));
        count += rows;
        total += (first..first + rows).sum::<u64>();
        client.ok("SYNC");
        assert_eq!(sums(&mut client, "dt"), format!("{count}|{count}|{total}"));
        round += 1;
    }
    let problems = "SELECT PROBLEM FROM information_schema.problems WHERE CODE = 'STORE_THROTTLES'";
    wait_until("the problem is named", || !client.rows(problems).is_empty());
    // For a moment it takes nothing at all.
    bucket.door.set(DoorMode::Throttles(1));
    let before = bucket.door.refused();
    let started = std::thread::scope(|scope| {
        let load = scope.spawn(|| stream_load(&server, "dt", "off_mode", &csv(1_000_000, 9000)));
        wait_until("it was refused several times", || bucket.door.refused() >= before + 2);
        bucket.door.set(DoorMode::Open);
        load.join().is_ok()
    });
    assert!(started, "a load waits for the store");
    count += 9000;
    total += (1_000_000..1_009_000).sum::<u64>();
    client.ok("SYNC");
    assert_eq!(sums(&mut client, "dt"), format!("{count}|{count}|{total}"));
    assert_eq!(server.metric("tributary_flushes_failed_total "), 0.0);
    assert_eq!(bucket.store.uploads(&bucket.name), 0);
}

#[test]
fn uploads_that_a_crash_left_are_aborted_at_the_next_start() {
    let bucket = Bucket::new();
    let mut server = bucket.server(&[]).with_manual_table();
    let table = bucket.table("dt");
    let key = table.trim_start_matches(&format!("s3://{}/", bucket.name)).to_owned();
    server.kill();
    let begin = |key: &str| {
        Curl::anonymous(&format!("{}/{}/{key}?uploads", bucket.store.endpoint, bucket.name))
            .argument("-X")
            .argument("POST")
            .text();
    };
    begin(&format!("{key}/part-x.parquet"));
    begin("a/b2/tables/db/of_another_server.parquet");
    assert_eq!(bucket.store.uploads(&bucket.name), 2);
    server.start_again();
    assert_eq!(bucket.store.uploads(&bucket.name), 1, "{}", server.log());
    assert_eq!(server.connect_to("db").value("SELECT COUNT(*) FROM dt"), "0");
}

#[test]
fn a_backup_has_the_tables_of_a_store_and_needs_it_no_more() {
    let bucket = Bucket::new();
    let backups = tempfile::tempdir().expect("a temporary directory");
    let server = bucket.server(&[("backup_path", &backups.path().display().to_string())]);
    fill(&server);
    let rows = contents(&server);
    assert_eq!(server.connect().table("BACKUP SERVER").rows.len(), 1);
    drop(server);
    bucket.door.set(DoorMode::Shut);
    assert_copied(&restored(backups.path(), None), &rows);
}
