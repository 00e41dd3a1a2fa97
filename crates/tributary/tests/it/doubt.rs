//! Changes of tables whose entry of the Delta log is in doubt, because storage does not answer: they end by themselves as soon as it does.

use crate::damage::refusal;
use crate::support::programs::python;
use crate::support::{Client, Database, Server, ServerError, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DAYS: &str = "CREATE TABLE days (id INT, day DATE, v INT) DUPLICATE KEY(id) \
                    PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
                    DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")";
const REPLACE: &str = "ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (new)";
const ALL: &str = "SELECT id FROM days ORDER BY id";
/// The error of a statement that stopped waiting.
const NOT_KNOWN: &str = "it is not known yet whether table";

/// The directory of the Delta log of the table `days`.
fn log_of(server: &Server, db: &Database) -> PathBuf {
    let tables = std::fs::read_dir(server.data().join("tables").join(&db.name)).unwrap();
    let is_its = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("days-");
    tables.map(|entry| entry.unwrap().path()).find(is_its).unwrap().join("_delta_log")
}

/// Storage that neither reads nor writes a log.
struct Broken {
    log: PathBuf,
    away: PathBuf,
}

impl Broken {
    fn new(log: &Path) -> Self {
        let (log, away) = (log.to_owned(), log.with_file_name("away"));
        std::fs::rename(&log, &away).unwrap();
        std::fs::write(&log, "").unwrap();
        Self { log, away }
    }

    fn mend(self) {
        std::fs::remove_file(&self.log).unwrap();
        std::fs::rename(&self.away, &self.log).unwrap();
    }
}

/// A server with the table `days`, all of whose rows are in files, and with a temporary partition.
fn prepared() -> (Server, Database) {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(DAYS);
    db.client.ok("INSERT INTO days (id, day) VALUES (1, '2024-01-31'), (2, '2024-02-01'), (3, '2024-03-01')");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION new VALUES [('2024-01-01'), ('2024-02-01'))");
    db.client.ok("INSERT INTO days TEMPORARY PARTITION new (id, day) VALUES (11, '2024-01-11')");
    assert!(server.stop().success());
    server.start_again();
    db.client = server.connect_to(&db.name);
    (server, db)
}

/// Runs a statement in a connection of its own.
fn beside(server: &Server, db: &Database, sql: &str) -> JoinHandle<Result<(), ServerError>> {
    let mut client = server.connect_to(&db.name);
    let sql = sql.to_owned();
    std::thread::spawn(move || client.try_bytes(sql.as_bytes()).expect("the server answers"))
}

fn names(client: &mut Client, show: &str) -> Vec<String> {
    client.table(show).rows.into_iter().map(|row| row[1].clone().unwrap()).collect()
}

fn restart(server: &mut Server, db: &mut Database) {
    server.kill();
    server.start_again();
    db.client = server.connect_to(&db.name);
}

#[test]
fn a_replacement_in_doubt_ends_by_itself_when_storage_answers() {
    let (mut server, mut db) = prepared();
    let broken = Broken::new(&log_of(&server, &db));
    let begun = Instant::now();
    let replacing = beside(&server, &db, REPLACE);
    wait_until("the entry is in doubt", || {
        server.log().contains("whether the Delta log has the change is not known")
    });
    let loading = beside(&server, &db, "INSERT INTO days (id, day) VALUES (4, '2024-01-04')");
    db.client.ok("CREATE TABLE other (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("ALTER TABLE other ADD COLUMN n INT");
    assert!(begun.elapsed() < Duration::from_secs(50), "others wait a little only: {:?}", begun.elapsed());
    let error = replacing.join().unwrap().unwrap_err();
    assert!(error.message.contains(NOT_KNOWN) && error.message.contains("_delta_log"), "{error}");
    for refused in [
        "ALTER TABLE days ADD COLUMN n INT",
        "ALTER TABLE days DROP PARTITION p_202402",
        REPLACE,
        "DROP TABLE days",
        &format!("DROP DATABASE {}", db.name),
    ] {
        let error = db.client.error(refused);
        assert!(error.message.contains("Table[days]'s last change is in doubt"), "{refused}: {error}");
    }
    assert_eq!(db.client.rows(ALL), ["1", "2", "3"]);
    assert_eq!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days"), ["new"]);
    assert!(!loading.is_finished(), "it waits");
    broken.mend();
    loading.join().unwrap().unwrap();
    wait_until("what is left is done", || {
        db.client.try_bytes(b"ALTER TABLE days ADD COLUMN n INT").expect("the server answers").is_ok()
    });
    assert!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days").is_empty());
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["2", "3", "4", "11"]);
        assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202402", "p_202403", "p_202401"]);
        restart(&mut server, &mut db);
    }
    db.client.ok("INSERT INTO days (id, day, n) VALUES (5, '2024-01-05', 5)");
    assert_eq!(db.client.rows("SELECT id FROM days PARTITION (p_202401) ORDER BY id"), ["4", "5", "11"]);
}

#[test]
fn a_server_that_ends_while_a_replacement_is_in_doubt_has_the_partitions_that_the_log_has() {
    for is_killed in [false, true] {
        let (mut server, mut db) = prepared();
        let broken = Broken::new(&log_of(&server, &db));
        let error = db.client.error(REPLACE);
        assert!(error.message.contains(NOT_KNOWN), "{error}");
        if is_killed {
            server.kill();
        } else {
            assert!(server.stop().success());
        }
        broken.mend();
        server.start_again();
        db.client = server.connect_to(&db.name);
        assert_eq!(db.client.rows(ALL), ["1", "2", "3"]);
        assert_eq!(db.client.rows("SELECT id FROM days TEMPORARY PARTITION new"), ["11"]);
        db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-01-04')");
        db.client.ok(REPLACE);
        assert_eq!(db.client.rows(ALL), ["2", "3", "11"]);
    }
}

#[test]
fn dropped_and_recovered_partitions_in_doubt_are_dropped_and_recovered_when_storage_answers() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    let log = log_of(&server, &db);
    let broken = Broken::new(&log);
    let error = db.client.error("ALTER TABLE days DROP PARTITION p_202401");
    assert!(error.message.contains(NOT_KNOWN), "{error}");
    broken.mend();
    db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-02-04')");
    assert_eq!(db.client.rows(ALL), ["2", "3", "4"]);
    assert!(server.stop().success());
    server.start_again();
    db.client = server.connect_to(&db.name);
    let broken = Broken::new(&log);
    let error = db.client.error("RECOVER PARTITION p_202401 FROM days");
    assert!(error.message.contains(NOT_KNOWN), "{error}");
    let kept = db.client.table("SHOW CATALOG RECYCLE BIN WHERE NAME = 'p_202401'").rows;
    let id = kept[0][4].clone().unwrap();
    let error = db.client.error(&format!("DROP CATALOG RECYCLE BIN WHERE 'PartitionId' = {id}"));
    assert!(error.message.contains("is in doubt"), "{error}");
    broken.mend();
    wait_until("it is back", || names(&mut db.client, "SHOW PARTITIONS FROM days").len() == 3);
    db.client.ok("INSERT INTO days (id, day) VALUES (5, '2024-01-05')");
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["1", "2", "3", "4", "5"]);
        assert!(db.client.table("SHOW CATALOG RECYCLE BIN").rows.is_empty());
        restart(&mut server, &mut db);
    }
}

/// The partitions of the data files that a Delta log has, in order.
fn partitions_in(log: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    entries.sort();
    let mut files = BTreeMap::new();
    for entry in entries {
        for line in std::fs::read_to_string(entry).unwrap().lines() {
            let action: Value = serde_json::from_str(line).unwrap();
            if let Some(path) = action["remove"]["path"].as_str() {
                files.remove(path);
            }
            if let Some(path) = action["add"]["path"].as_str() {
                let partition = action["add"]["tags"]["tributary.partition"].as_str().map(str::to_owned);
                files.insert(path.to_owned(), partition);
            }
        }
    }
    let files = files.into_values().map(|partition| partition.expect("each file is of a partition"));
    let mut partitions: Vec<String> = files.collect();
    partitions.sort();
    partitions
}

#[test]
fn a_start_completes_a_forced_drop_that_the_catalog_has_and_the_delta_log_has_not() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    let log = log_of(&server, &db);
    assert_eq!(partitions_in(&log), ["1", "2", "3"]);
    let broken = Broken::new(&log);
    db.client.ok("ALTER TABLE days DROP PARTITION p_202402 FORCE");
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    server.kill();
    broken.mend();
    assert_eq!(partitions_in(&log), ["1", "2", "3"], "its entry was not written");
    server.start_again();
    db.client = server.connect_to(&db.name);
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202401", "p_202403"]);
    assert!(server.stop().success());
    assert_eq!(partitions_in(&log), ["1", "3"], "the start has written what was left");
    server.start_again();
    db.client = server.connect_to(&db.name);
    // A partition of the same rows begins empty.
    db.client.ok("ALTER TABLE days ADD PARTITION again VALUES [('2024-02-01'), ('2024-03-01'))");
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-02-04')");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows(ALL), ["1", "3", "4"]);
}

/// Another engine writes the newest files of a Delta table again, without what the server says of them.
fn rewrite_without_tags(log: &Path) {
    let mut files = BTreeMap::new();
    let mut version = 0;
    while let Ok(entry) = std::fs::read_to_string(log.join(format!("{version:020}.json"))) {
        for line in entry.lines() {
            let action: Value = serde_json::from_str(line).unwrap();
            if let Some(path) = action["remove"]["path"].as_str() {
                files.remove(path);
            }
            if let Some(path) = action["add"]["path"].as_str() {
                files.insert(path.to_owned(), action.clone());
            }
        }
        version += 1;
    }
    let mut entry = String::from("{\"commitInfo\":{\"operation\":\"OPTIMIZE\"}}\n");
    for mut action in files.into_values() {
        action["add"].as_object_mut().unwrap().remove("tags").expect("it is a file of the server");
        action["add"]["dataChange"] = Value::from(false);
        entry.push_str(&format!("{action}\n"));
    }
    std::fs::write(log.join(format!("{version:020}.json")), entry).unwrap();
}

#[test]
fn a_start_completes_a_forced_drop_although_another_engine_has_rewritten_the_files() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    let log = log_of(&server, &db);
    let broken = Broken::new(&log);
    db.client.ok("ALTER TABLE days DROP PARTITION p_202402 FORCE");
    let again = "ALTER TABLE days ADD PARTITION again VALUES [('2024-02-01'), ('2024-03-01'))";
    let error = db.client.error(again);
    assert!(error.message.contains("partitions of the table were dropped, which its Delta log"), "{error}");
    server.kill();
    broken.mend();
    rewrite_without_tags(&log);
    server.start_again();
    db.client = server.connect_to(&db.name);
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    assert_eq!(partitions_in(&log), ["1", "3"]);
    db.client.ok(again);
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-02-04')");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows(ALL), ["1", "3", "4"]);
}

#[test]
fn a_statement_may_drop_a_partition_and_add_another_with_its_rows() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-02-04')");
    db.client.ok(
        "ALTER TABLE days DROP PARTITION p_202402 FORCE, ADD PARTITION again VALUES [('2024-02-01'), ('2024-03-01'))",
    );
    assert_eq!(db.client.rows(ALL), ["1", "3"]);
    assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202401", "p_202403", "again"]);
    db.client.ok("INSERT INTO days (id, day) VALUES (5, '2024-02-05')");
    restart(&mut server, &mut db);
    assert_eq!(db.client.rows(ALL), ["1", "3", "5"]);
}

#[test]
fn a_table_with_a_change_in_doubt_is_dropped_by_force() {
    let (mut server, mut db) = prepared();
    let log = log_of(&server, &db);
    let broken = Broken::new(&log);
    let error = db.client.error(REPLACE);
    assert!(error.message.contains(NOT_KNOWN), "{error}");
    db.client.ok("DROP TABLE days FORCE");
    assert!(db.client.rows("SHOW TABLES").is_empty());
    drop(broken);
    wait_until("its files are gone", || !log.parent().unwrap().exists());
    restart(&mut server, &mut db);
    assert!(db.client.rows("SHOW TABLES").is_empty());
    db.client.ok(DAYS);
    db.client.ok("INSERT INTO days (id, day) VALUES (1, '2024-01-31')");
    assert_eq!(db.client.rows(ALL), ["1"]);
}

#[test]
fn a_heavy_change_in_doubt_keeps_other_tables_from_nothing() {
    for is_dropped in [false, true] {
        let (server, mut db) = prepared();
        db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
        let broken = Broken::new(&log_of(&server, &db));
        db.client.ok("ALTER TABLE days MODIFY COLUMN v BIGINT");
        wait_until("the entry is in doubt", || {
            server.log().contains("whether the Delta log has the change is not known")
        });
        db.client.ok("CREATE TABLE other (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
        let error = db.client.error("DROP TABLE days");
        assert!(error.message.contains("is in doubt"), "{error}");
        if is_dropped {
            db.client.ok("DROP TABLE days FORCE");
            assert_eq!(db.client.rows("SHOW TABLES"), ["other"]);
            continue;
        }
        broken.mend();
        wait_until("it is finished", || db.client.rows("SHOW ALTER TABLE COLUMN")[0].contains("FINISHED"));
        db.client.ok("INSERT INTO days VALUES (4, '2024-01-31', 3000000000)");
        assert_eq!(db.client.value("SELECT max(v) FROM days"), "3000000000");
    }
}

#[test]
fn a_replacement_that_the_catalog_knows_half_of_is_completed_and_rows_wait_for_it() {
    for is_killed in [false, true] {
        let (mut server, mut db) = prepared();
        db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION next VALUES [('2024-04-01'), ('2024-05-01'))");
        let catalog = server.data().join("catalog.db").display().to_string();
        let refuses = "CREATE TRIGGER refuses BEFORE UPDATE ON tables WHEN NEW.name LIKE 'tributary.temporary.%' \
                       BEGIN SELECT RAISE(ABORT, 'refused'); END";
        python("catalog.py", &[&catalog, refuses]);
        let error = db.client.error(REPLACE);
        assert!(error.message.contains(NOT_KNOWN) && error.message.contains("refused"), "{error}");
        assert_eq!(db.client.rows(ALL), ["2", "3", "11"], "the Delta log has it");
        let into = |part: &str, day: &str| {
            format!("INSERT INTO days TEMPORARY PARTITION {part} (id, day) VALUES (12, '{day}')")
        };
        let moved = beside(&server, &db, &into("new", "2024-01-12"));
        let stays = beside(&server, &db, &into("next", "2024-04-12"));
        if is_killed {
            server.kill();
            python("catalog.py", &[&catalog, "DROP TRIGGER refuses"]);
            server.start_again();
            db.client = server.connect_to(&db.name);
            drop((moved, stays));
        } else {
            python("catalog.py", &[&catalog, "DROP TRIGGER refuses"]);
            let error = moved.join().unwrap().unwrap_err();
            assert!(error.message.contains("partition"), "not a row that nobody will find: {error}");
            stays.join().unwrap().unwrap();
            assert_eq!(db.client.rows("SELECT id FROM days TEMPORARY PARTITION next"), ["12"]);
            restart(&mut server, &mut db);
            assert_eq!(db.client.rows("SELECT id FROM days TEMPORARY PARTITION next"), ["12"]);
        }
        assert_eq!(db.client.rows(ALL), ["2", "3", "11"]);
        assert_eq!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days"), ["next"]);
        db.client.ok("INSERT INTO days (id, day) VALUES (4, '2024-01-04')");
        assert_eq!(db.client.rows("SELECT id FROM days PARTITION (p_202401) ORDER BY id"), ["4", "11"]);
    }
}

#[test]
fn a_replacement_is_done_also_if_the_table_of_temporary_partitions_cannot_be_dropped() {
    let (mut server, mut db) = prepared();
    let catalog = server.data().join("catalog.db").display().to_string();
    let refuses = "CREATE TRIGGER refuses BEFORE DELETE ON tables WHEN OLD.name LIKE 'tributary.temporary.%' \
                   BEGIN SELECT RAISE(ABORT, 'refused'); END";
    python("catalog.py", &[&catalog, refuses]);
    db.client.ok(REPLACE);
    wait_until("it is said that the table stays", || {
        server.log().contains("the table of temporary partitions, which has none, stays")
    });
    assert_eq!(db.client.rows(ALL), ["2", "3", "11"]);
    assert!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days").is_empty());
    db.client.ok("ALTER TABLE days ADD COLUMN n INT");
    let add = "ALTER TABLE days ADD TEMPORARY PARTITION new VALUES [('2024-01-01'), ('2024-02-01'))";
    let error = db.client.error(add);
    assert!(error.message.contains("refused"), "it has columns of before: {error}");
    python("catalog.py", &[&catalog, "DROP TRIGGER refuses"]);
    db.client.ok(add);
    db.client.ok("INSERT INTO days TEMPORARY PARTITION new (id, day, n) VALUES (12, '2024-01-12', 5)");
    db.client.ok(REPLACE);
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["2", "3", "12"]);
        restart(&mut server, &mut db);
    }
}

/// Triggers by which the catalog refuses writes of the records of jobs.
struct Refusing {
    catalog: String,
    names: Vec<String>,
}

impl Refusing {
    /// Refuses each of these events of the table `jobs`, such as `BEFORE DELETE`, when the condition is true.
    fn new(server: &Server, events: &[&str], condition: &str) -> Self {
        let catalog = server.data().join("catalog.db").display().to_string();
        let names: Vec<String> = (0..events.len()).map(|number| format!("refuses_{number}")).collect();
        for (name, event) in names.iter().zip(events) {
            let trigger = format!(
                "CREATE TRIGGER {name} {event} ON jobs WHEN {condition} BEGIN SELECT RAISE(ABORT, 'refused'); END"
            );
            python("catalog.py", &[&catalog, &trigger]);
        }
        Self { catalog, names }
    }

    fn mend(self) {
        for name in &self.names {
            python("catalog.py", &[&self.catalog, &format!("DROP TRIGGER {name}")]);
        }
    }
}

/// Runs statements that the catalog can't take the end of, then changes the table, and loads into it: the next start must leave that
/// alone.
fn changes_after(changes: &[&str], names_after: &[&str], ids_after: &[&str]) {
    let (mut server, mut db) = prepared();
    let mut in_doubt = 0;
    for change in changes {
        let refusing = Refusing::new(&server, &["BEFORE DELETE"], "true");
        let answer = db.client.try_bytes(change.as_bytes()).expect("the server answers");
        refusing.mend();
        if let Err(error) = answer {
            assert!(error.message.contains(NOT_KNOWN), "{change}: {error}");
            in_doubt += 1;
            let is_made = || server.log().matches("a change that was in doubt is made").count() == in_doubt;
            wait_until("the catalog has heard", is_made);
        }
    }
    wait_until("the table can be changed", || {
        let add = "ALTER TABLE days ADD PARTITION p9 VALUES [('2024-09-01'), ('2024-10-01'))";
        db.client.try_bytes(add.as_bytes()).expect("the server answers").is_ok()
    });
    db.client.ok("INSERT INTO days (id, day) VALUES (9, '2024-09-09')");
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ids_after, "{changes:?}");
        assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), names_after, "{changes:?}");
        restart(&mut server, &mut db);
    }
}

#[test]
fn a_record_of_a_replacement_undoes_no_change_after_it() {
    changes_after(&[REPLACE], &["p_202402", "p_202403", "p_202401", "p9"], &["2", "3", "9", "11"]);
}

#[test]
fn a_record_of_dropped_and_recovered_partitions_undoes_no_change_after_it() {
    let drop = "ALTER TABLE days DROP PARTITION p_202402";
    changes_after(&[drop], &["p_202401", "p_202403", "p9"], &["1", "3", "9"]);
    let recover = "RECOVER PARTITION p_202402 FROM days";
    changes_after(&[drop, recover], &["p_202401", "p_202403", "p_202402", "p9"], &["1", "2", "3", "9"]);
}

#[test]
fn a_record_of_a_heavy_change_undoes_no_change_after_it() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    let refusing =
        Refusing::new(&server, &["BEFORE INSERT", "BEFORE UPDATE"], "NEW.definition LIKE '%\"FINISHED\"%'");
    db.client.ok("ALTER TABLE days MODIFY COLUMN v BIGINT");
    wait_until("the catalog has refused the end", || server.log().contains("refused"));
    refusing.mend();
    wait_until("it is finished", || db.client.rows("SHOW ALTER TABLE COLUMN")[0].contains("FINISHED"));
    db.client.ok("ALTER TABLE days ADD COLUMN c INT");
    db.client.ok("INSERT INTO days (id, day, v, c) VALUES (4, '2024-01-31', 3000000000, 5)");
    for _ in 0..2 {
        assert_eq!(db.client.rows("SELECT v, c FROM days WHERE id = 4"), ["3000000000|5"]);
        assert!(db.client.rows("SHOW ALTER TABLE COLUMN")[0].contains("FINISHED"));
        restart(&mut server, &mut db);
    }
}

#[test]
fn a_change_whose_record_cannot_be_kept_changes_nothing() {
    let (mut server, mut db) = prepared();
    let refusing = Refusing::new(&server, &["BEFORE INSERT"], "true");
    for change in
        [REPLACE, "ALTER TABLE days DROP PARTITION p_202402", "ALTER TABLE days MODIFY COLUMN v BIGINT"]
    {
        let error = db.client.error(change);
        assert!(
            error.message.contains("refused") || error.message.contains("temp partitions"),
            "{change}: {error}"
        );
    }
    refusing.mend();
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), ["1", "2", "3"]);
        assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202401", "p_202402", "p_202403"]);
        assert_eq!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days"), ["new"]);
        restart(&mut server, &mut db);
    }
    db.client.ok(REPLACE);
    assert_eq!(db.client.rows(ALL), ["2", "3", "11"]);
}

#[test]
fn a_job_that_this_program_does_not_know_ends_the_start_with_its_name() {
    let (mut server, mut db) = prepared();
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
    db.client.ok("ALTER TABLE days MODIFY COLUMN v BIGINT");
    wait_until("it is finished", || db.client.rows("SHOW ALTER TABLE COLUMN")[0].contains("FINISHED"));
    assert!(server.stop().success());
    let catalog = server.data().join("catalog.db").display().to_string();
    python(
        "catalog.py",
        &[&catalog, "UPDATE jobs SET definition = replace(definition, 'schema_change', 'from_the_future')"],
    );
    let refusal = refusal(&server.data());
    assert!(refusal.contains("of the kind 'from_the_future'"), "{refusal}");
    python(
        "catalog.py",
        &[&catalog, "UPDATE jobs SET definition = replace(definition, 'from_the_future', 'schema_change')"],
    );
    server.start_again();
    db.client = server.connect_to(&db.name);
    assert_eq!(db.client.rows(ALL), ["1", "2", "3"]);
}

#[test]
fn a_change_that_can_be_neither_followed_nor_taken_back_is_completed_with_the_next_one() {
    for restarts in [false, true] {
        let (mut server, mut db) = prepared();
        db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION new");
        let catalog = server.data().join("catalog.db").display().to_string();
        let refuses = "CREATE TRIGGER refuses BEFORE UPDATE ON tables WHEN OLD.definition LIKE '%\"later\"%' \
                       BEGIN SELECT RAISE(ABORT, 'refused'); END";
        python("catalog.py", &[&catalog, refuses]);
        let broken = Broken::new(&log_of(&server, &db));
        let error = db.client.error("ALTER TABLE days ADD COLUMN later INT DEFAULT '5'");
        assert!(error.message.contains("refused") && error.message.contains("_delta_log"), "{error}");
        broken.mend();
        python("catalog.py", &[&catalog, "DROP TRIGGER refuses"]);
        if restarts {
            restart(&mut server, &mut db);
        } else {
            let error = db.client.error("ALTER TABLE days ADD COLUMN n INT");
            assert!(error.message.contains("run the statement again"), "{error}");
        }
        db.client.ok("ALTER TABLE days ADD COLUMN n INT");
        for _ in 0..2 {
            assert_eq!(
                db.client.rows("SELECT id, later, n FROM days ORDER BY id"),
                ["1|5|NULL", "2|5|NULL", "3|5|NULL"]
            );
            restart(&mut server, &mut db);
        }
    }
}
