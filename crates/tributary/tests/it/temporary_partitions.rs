//! Temporary partitions: filled and read by name, until they take the place of others.

use crate::support::{Client, Curl, Server};
use std::path::{Path, PathBuf};

const DAYS: &str = "CREATE TABLE days (id INT, day DATE, v VARCHAR(20)) DUPLICATE KEY(id) \
                    PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
                    DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")";
const ROWS: &str =
    "INSERT INTO days VALUES (1, '2024-01-31', 'a'), (2, '2024-02-01', 'b'), (3, '2024-03-01', 'c')";
const ALL: &str = "SELECT id, v FROM days ORDER BY id";

fn names(client: &mut Client, show: &str) -> Vec<String> {
    client.table(show).rows.into_iter().map(|row| row[1].clone().unwrap()).collect()
}

/// The entries of the Delta log of the table `name`, as text.
fn entries(data: &Path, db: &str, name: &str) -> Vec<String> {
    let tables = std::fs::read_dir(data.join("tables").join(db)).unwrap();
    let is_its = |path: &PathBuf| {
        let found = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.rsplit_once('-').is_some_and(|(table, _)| table == name)
    };
    let table = tables.map(|entry| entry.unwrap().path()).find(is_its).unwrap();
    let files = std::fs::read_dir(table.join("_delta_log")).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    entries.sort();
    entries.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn temporary_partitions_are_filled_and_read_by_name_and_take_the_place_of_others() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(DAYS);
    db.client.ok(ROWS);
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION early VALUES [('2024-01-01'), ('2024-01-20')) ('replication_num' = '1') DISTRIBUTED BY HASH(id) BUCKETS 2");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION late VALUES LESS THAN ('2024-02-01')");
    db.client
        .ok("ALTER TABLE days ADD TEMPORARY PARTITION IF NOT EXISTS late VALUES LESS THAN ('2030-02-01')");
    db.client.ok("INSERT INTO days TEMPORARY PARTITION (early, late) VALUES (11, '2024-01-05', 'e'), (12, '2024-01-30', 'l')");
    let foreign =
        db.client.error("INSERT INTO days TEMPORARY PARTITION (early) VALUES (9, '2024-01-30', 'x')");
    assert!(foreign.message.contains("no partition for this tuple"), "{foreign}");
    let reply = Curl::stream_load(&server, &db.name, "days")
        .header("column_separator:,")
        .header("temporary_partitions: late")
        .header("group_commit: async_mode")
        .body("13,2024-01-31,s\n")
        .load()
        .success();
    assert_eq!(reply.get("NumberLoadedRows"), "1");
    assert!(!reply.has("GroupCommit"), "{}", reply.text);
    db.client.ok("INSERT INTO days TEMPORARY PARTITION late SELECT id + 10, day, v FROM days TEMPORARY PARTITION (late) WHERE id = 13");
    let all = ["1|a", "2|b", "3|c"];
    for _ in 0..2 {
        assert_eq!(db.client.rows(ALL), all, "who names none sees none");
        assert_eq!(
            db.client.rows("SELECT t.id FROM days TEMPORARY PARTITION (early, late) t ORDER BY id"),
            ["11", "12", "13", "23"]
        );
        assert_eq!(db.client.rows("SELECT id FROM days TEMPORARY PARTITION early"), ["11"]);
        assert_eq!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days"), ["early", "late"]);
        assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days").len(), 3);
        assert_eq!(db.client.rows("SHOW TABLES"), ["days"]);
        server.kill();
        server.start_again();
        db.client = server.connect_to(&db.name);
    }
    let log = entries(&server.data(), &db.name, "days");
    assert!(log.iter().all(|entry| !entry.contains("\"add\"")), "no reader sees them: {log:?}");
    db.client.ok("ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (early, late)");
    let all = ["2|b", "3|c", "11|e", "12|l", "13|s", "23|s"];
    assert_eq!(db.client.rows(ALL), all);
    let log = entries(&server.data(), &db.name, "days");
    let last = log.last().unwrap();
    assert!(last.contains("\"remove\"") && last.contains("\"add\""), "one entry has all of it: {last}");
    db.client.ok("INSERT INTO days VALUES (4, '2024-01-19', 'd'), (5, '2024-01-20', 'd')");
    for _ in 0..2 {
        assert_eq!(db.client.rows("SELECT id FROM days PARTITION (early) ORDER BY id"), ["4", "11"]);
        assert_eq!(
            names(&mut db.client, "SHOW PARTITIONS FROM days"),
            ["p_202402", "p_202403", "early", "late"]
        );
        assert!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days").is_empty());
        server.kill();
        server.start_again();
        db.client = server.connect_to(&db.name);
    }
    db.client.ok("ALTER TABLE days ADD COLUMN more INT DEFAULT '7'");
    assert_eq!(db.client.value("SELECT SUM(more) FROM days"), "56");
}

#[test]
fn names_stay_or_change_and_ranges_may_be_others_if_the_statement_says_so() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(DAYS);
    db.client.ok(ROWS);
    db.client.ok(
        "ALTER TABLE days ADD TEMPORARY PARTITIONS FROM ('2025-01-01') TO ('2025-03-01') INTERVAL 1 MONTH",
    );
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION feb VALUES [('2024-02-01'), ('2024-03-01'))");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION wide VALUES [('2024-03-01'), ('2024-05-01'))");
    db.client.ok("INSERT INTO days TEMPORARY PARTITION (feb, wide) VALUES (22, '2024-02-22', 'f'), (24, '2024-04-04', 'w')");
    // The number is the same, so the name stays.
    db.client.ok("ALTER TABLE days REPLACE PARTITION (p_202402) WITH TEMPORARY PARTITION (feb)");
    assert_eq!(db.client.rows(ALL), ["1|a", "3|c", "22|f"]);
    assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202401", "p_202403", "p_202402"]);
    let wide = "ALTER TABLE days REPLACE PARTITION (p_202403) WITH TEMPORARY PARTITION (wide)";
    let error = db.client.error(wide);
    assert!(
        error.message.contains(
            "2 range lists are not stricly matched. [[types: [DATEV2]; keys: [2024-03-01]; ..types"
        ),
        "{error}"
    );
    db.client
        .ok(&format!("{wide} PROPERTIES ('strict_range' = 'false', 'use_temp_partition_name' = 'true')"));
    assert_eq!(db.client.rows(ALL), ["1|a", "22|f", "24|w"]);
    assert_eq!(names(&mut db.client, "SHOW PARTITIONS FROM days"), ["p_202401", "p_202402", "wide"]);
    db.client.ok("INSERT INTO days VALUES (25, '2024-04-30', 'n')");
    let truncated = db.client.error("TRUNCATE TABLE days TEMPORARY PARTITION (p_202501)");
    assert!(truncated.message.contains("truncate temp partitions"), "{truncated}");
    assert_eq!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days"), ["p_202501", "p_202502"]);
    db.client.ok("ALTER TABLE days DROP TEMPORARY PARTITION p_202501");
    db.client.ok("TRUNCATE TABLE days");
    assert!(names(&mut db.client, "SHOW TEMPORARY PARTITIONS FROM days").is_empty(), "they go with the rows");
}

#[test]
fn lists_and_tables_with_keys_have_temporary_partitions_too() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE cities (city VARCHAR(20) NOT NULL, id INT NOT NULL, v INT) UNIQUE KEY(city, id) \
                  PARTITION BY LIST(city) (PARTITION north VALUES IN ('Oslo', 'Bergen'), PARTITION south VALUES IN ('Rome')) \
                  DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("INSERT INTO cities VALUES ('Oslo', 1, 1), ('Rome', 1, 1)");
    db.client.ok("ALTER TABLE cities ADD TEMPORARY PARTITION o VALUES IN ('Oslo')");
    db.client.ok("ALTER TABLE cities ADD TEMPORARY PARTITION b VALUES IN ('Bergen')");
    let into = "INSERT INTO cities TEMPORARY PARTITION (o, b) VALUES";
    db.client.ok(&format!("{into} ('Oslo', 1, 2), ('Oslo', 2, 2), ('Bergen', 1, 2)"));
    // Keys of its own: the later row of a key wins, in other files and in the same.
    db.client.ok(&format!("{into} ('Oslo', 1, 3), ('Oslo', 1, 4)"));
    assert_eq!(db.client.rows("SELECT v FROM cities WHERE city = 'Oslo'"), ["1"]);
    assert_eq!(
        db.client.rows("SELECT id, v FROM cities TEMPORARY PARTITION (o) ORDER BY id"),
        ["1|4", "2|2"]
    );
    let error = db.client.error("ALTER TABLE cities REPLACE PARTITION (north) WITH TEMPORARY PARTITION (o) PROPERTIES ('strict_range' = 'false')");
    assert!(error.message.contains("2 list lists are not stricly matched"), "{error}");
    db.client.ok("ALTER TABLE cities REPLACE PARTITION (north) WITH TEMPORARY PARTITION (o, b)");
    db.client.ok("INSERT INTO cities VALUES ('Oslo', 2, 5), ('Rome', 1, 5)");
    for _ in 0..2 {
        assert_eq!(
            db.client.rows("SELECT city, id, v FROM cities ORDER BY city, id"),
            ["Bergen|1|2", "Oslo|1|4", "Oslo|2|5", "Rome|1|5"]
        );
        server.kill();
        server.start_again();
        db.client = server.connect_to(&db.name);
    }
    db.client.ok("ALTER TABLE cities ADD TEMPORARY PARTITION r VALUES IN ('Rome')");
    db.client.ok("DROP TABLE cities FORCE");
    assert_eq!(db.client.rows("SHOW TABLES"), [""; 0]);
    let left = || std::fs::read_dir(server.data().join("tables").join(&db.name)).map_or(0, Iterator::count);
    crate::support::wait_until("the files of both are gone", || left() == 0);
}

/// Statements with the number and the text of their error.
const REFUSED: &[(&str, u16, &str)] = &[
    (
        "ALTER TABLE days ADD TEMPORARY PARTITION TP VALUES LESS THAN ('2025-01-01')",
        1517,
        "Duplicate partition name TP",
    ),
    (
        "ALTER TABLE days ADD TEMPORARY PARTITION p_202401 VALUES LESS THAN ('2020-01-01')",
        1517,
        "Duplicate partition name p_202401",
    ),
    (
        "ALTER TABLE days ADD PARTITION tp VALUES LESS THAN ('2025-01-01')",
        1517,
        "Duplicate partition name tp",
    ),
    ("ALTER TABLE days RENAME PARTITION p_202401 tp", 1517, "Duplicate partition name tp"),
    (
        "ALTER TABLE days ADD TEMPORARY PARTITION x VALUES [('2024-01-15'), ('2024-03-01'))",
        1105,
        "is intersected with range",
    ),
    (
        "ALTER TABLE days ADD TEMPORARY PARTITION x VALUES IN ('2024-03-05')",
        1105,
        "partitions types is invalid",
    ),
    ("ALTER TABLE days DROP TEMPORARY PARTITION x", 1507, "Error in list of partitions to x"),
    (
        "ALTER TABLE days REPLACE PARTITION (x) WITH TEMPORARY PARTITION (tp)",
        1105,
        "Partition[x] does not exist",
    ),
    (
        "ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (x)",
        1105,
        "Temp partition[x] does not exist",
    ),
    (
        "ALTER TABLE days REPLACE PARTITION (p_202401) WITH PARTITION (p_202402)",
        1105,
        "Only support replace partitions with temp partitions",
    ),
    (
        "ALTER TABLE days REPLACE PARTITION (p_202402) WITH TEMPORARY PARTITION (tp) PROPERTIES ('strict_range' = 'false')",
        1105,
        "conflicts with existing range",
    ),
    (
        "ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (tp) PROPERTIES ('x' = 'y')",
        1105,
        "Unknown properties: x",
    ),
    (
        "ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (tp) PROPERTIES ('strict_range' = 'maybe')",
        1105,
        "strict_range must be `true` or `false`, and is 'maybe'",
    ),
    (
        "ALTER TABLE days ADD COLUMN c INT",
        1105,
        "Can not alter table when there are temp partitions in table",
    ),
    (
        "ALTER TABLE days MODIFY COLUMN v VARCHAR(30)",
        1105,
        "Can not alter table when there are temp partitions in table",
    ),
    (
        "ALTER TABLE days DROP TEMPORARY PARTITION tp, DROP PARTITION p_202401",
        1105,
        "write one clause of them",
    ),
    (
        "INSERT INTO days TEMPORARY PARTITION (x) VALUES (1, '2024-01-01', '')",
        1105,
        "partition x is not found in table days",
    ),
    ("SELECT * FROM days TEMPORARY PARTITION (x)", 1105, "partition x is not found in table days"),
    (
        "SELECT * FROM days TEMPORARY PARTITION (p_202401)",
        1105,
        "partition p_202401 is not found in table days",
    ),
    ("SELECT * FROM days PARTITION (tp)", 1105, "partition tp is not found in table days"),
    ("SELECT * FROM dt TEMPORARY PARTITION (tp)", 1747, "PARTITION () clause on non partitioned table"),
    (
        "INSERT OVERWRITE TABLE days TEMPORARY PARTITION (tp) VALUES (1, '2024-01-01', '')",
        1235,
        "is not supported",
    ),
    ("DELETE FROM days TEMPORARY PARTITION (tp) WHERE id = 1", 1235, "are not supported here"),
    (
        "ALTER TABLE dt ADD TEMPORARY PARTITION x VALUES LESS THAN ('2025-01-01')",
        1105,
        "Only support adding partition to range and list partitioned table",
    ),
];

#[test]
fn what_temporary_partitions_cannot_be_is_refused_in_the_words_of_doris() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok(DAYS);
    let none = db.client.error("ALTER TABLE days DROP TEMPORARY PARTITION tp");
    assert_eq!(none.number, 1507, "{none}");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION tp VALUES [('2024-01-01'), ('2024-02-01'))");
    for &(statement, number, text) in REFUSED {
        db.client.refused(statement, number, text);
    }
    let load =
        Curl::stream_load(&server, &db.name, "days").header("temporary_partitions: x").body("1").load();
    assert!(load.failure().contains("partition x is not found in table days"), "{}", load.text);
    db.client.ok("ALTER TABLE days RENAME other");
    db.client.ok("ALTER TABLE other ADD PARTITION p_more VALUES [('2025-01-01'), ('2026-01-01'))");
    db.client.ok("INSERT INTO other TEMPORARY PARTITION (tp) VALUES (1, '2024-01-01', 'r')");
    db.client.ok("ALTER TABLE other REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (tp)");
    assert_eq!(db.client.rows("SELECT v FROM other PARTITION (p_202401)"), ["r"]);
}

/// Loads that were acknowledged exist after a replacement, whichever was first; none fails unless its partition is gone.
#[test]
fn loads_continue_while_partitions_are_replaced() {
    let server = Server::start();
    let mut db = server.database();
    db.client.ok(DAYS);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loading: Vec<_> = (0..2)
            .map(|number| {
                let mut client = server.connect_to(&db.name);
                let stop = &stop;
                scope.spawn(move || {
                    client.ok("SET group_commit = async_mode");
                    let mut told = 0;
                    while !stop.load(std::sync::atomic::Ordering::SeqCst) || told < 50 {
                        // Rows of partitions that stay.
                        client.ok(&format!(
                            "INSERT INTO days VALUES ({number}, '2024-03-0{}', 'l')",
                            told % 9 + 1
                        ));
                        told += 1;
                    }
                    told
                })
            })
            .collect();
        for round in 0..8 {
            db.client
                .ok("ALTER TABLE days ADD TEMPORARY PARTITION tp VALUES [('2024-01-01'), ('2024-02-01'))");
            db.client.ok(&format!(
                "INSERT INTO days TEMPORARY PARTITION (tp) VALUES ({round}, '2024-01-01', 'r')"
            ));
            db.client.ok("ALTER TABLE days REPLACE PARTITION (p_202401) WITH TEMPORARY PARTITION (tp)");
            assert_eq!(db.client.rows("SELECT id FROM days PARTITION (p_202401)"), [round.to_string()]);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        let told: usize = loading.into_iter().map(|thread| thread.join().unwrap()).sum();
        db.client.ok("SYNC");
        assert_eq!(db.client.value("SELECT COUNT(*) FROM days WHERE v = 'l'"), told.to_string());
    });
}
