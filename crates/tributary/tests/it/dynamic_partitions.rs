//! Partitions that are created and dropped on schedule, and Doris's own example tables.

use crate::support::{Client, Curl, Server, wait_until};

/// The names of a table's partitions, in the order of their making.
fn partitions(client: &mut Client, table: &str) -> Vec<String> {
    let shown = client.table(&format!("SHOW PARTITIONS FROM {table}"));
    shown.rows.into_iter().map(|row| row[1].clone().unwrap_or_default()).collect()
}

#[test]
fn a_table_with_dynamic_partitions_has_those_of_today_and_is_shown() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE log (id INT, at DATETIME) DUPLICATE KEY(id) PARTITION BY RANGE(at) () DISTRIBUTED BY HASH(id) \
         PROPERTIES (\"dynamic_partition.enable\" = \"true\", \"dynamic_partition.time_unit\" = \"DAY\", \
         \"dynamic_partition.start\" = \"-3\", \"dynamic_partition.end\" = \"2\", \"dynamic_partition.prefix\" = \"p\", \
         \"dynamic_partition.buckets\" = \"4\", \"dynamic_partition.create_history_partition\" = \"true\")",
    );
    let made = partitions(&mut db.client, "log");
    assert_eq!(made.len(), 6, "{made:?}");
    db.client
        .ok("INSERT INTO log VALUES (1, NOW()), (2, NOW() - INTERVAL 3 DAY), (3, NOW() + INTERVAL 2 DAY)");
    let error = db.client.error("INSERT INTO log VALUES (4, NOW() - INTERVAL 5 DAY)");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    let shown = db.client.table("SHOW DYNAMIC PARTITION TABLES");
    let row: Vec<_> = shown.rows[0].iter().map(|cell| cell.clone().unwrap_or_default()).collect();
    assert_eq!(row[..10], ["log", "true", "DAY", "-3", "2", "p", "4", "1", "tag.location.default: 1", "N/A"]);
    assert_eq!(row[12..], ["NORMAL", "N/A", "N/A", "NULL"]);
    assert_ne!(row[11], "N/A", "it was looked at");
    for statement in [
        "ALTER TABLE log ADD PARTITION mine VALUES LESS THAN ('2000-01-01')".to_owned(),
        format!("ALTER TABLE log DROP PARTITION {}", made[0]),
    ] {
        let error = db.client.error(&statement);
        assert!(
            error.message.contains("Cannot add/drop partition on a Dynamic Partition Table, Use command"),
            "{error}"
        );
    }
    // Older partitions are dropped at once, with their rows; future ones are created.
    db.client
        .ok("ALTER TABLE log SET (\"dynamic_partition.start\" = \"-1\", \"dynamic_partition.end\" = \"3\")");
    assert_eq!(partitions(&mut db.client, "log").len(), 5);
    assert_eq!(db.client.rows("SELECT id FROM log ORDER BY id"), ["1", "3"]);
    db.client.ok("ALTER TABLE log SET (\"dynamic_partition.enable\" = \"false\")");
    db.client.ok("ALTER TABLE log ADD PARTITION mine VALUES LESS THAN ('2000-01-01')");
    db.client.ok("ALTER TABLE log SET (\"dynamic_partition.enable\" = \"true\")");
    assert_eq!(partitions(&mut db.client, "log").len(), 5, "it was too old");
    let made = db.client.table("SHOW CREATE TABLE log").rows[0][1].clone().unwrap();
    assert!(made.contains("\"dynamic_partition.time_zone\" = \"Etc/UTC\""), "{made}");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id FROM log ORDER BY id"), ["1", "3"]);
    client.ok("DROP TABLE log");
    client.ok(&made);
    assert_eq!(partitions(&mut client, "log").len(), 5);
    assert_eq!(client.table("SHOW CREATE TABLE log").rows[0][1].as_ref(), Some(&made));
    let error = client.error("ALTER TABLE log SET (\"dynamic_partition.time_zone\" = \"Middle/Earth\")");
    assert!(error.message.contains("Unknown or incorrect time zone: 'Middle/Earth'"), "{error}");
    let error = client.error("ALTER TABLE log SET (\"dynamic_partition.time_unit\" = \"DECADE\")");
    assert_eq!(error.number, 5065, "{error}");
}

#[test]
fn the_clock_is_asked_again_and_again() {
    let mut server = Server::with_settings(&[("dynamic_partition_check_interval_seconds", "1")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE log (id INT, d DATE) DUPLICATE KEY(id) PARTITION BY RANGE(d) () DISTRIBUTED BY HASH(id) \
         PROPERTIES (\"dynamic_partition.time_unit\" = \"MONTH\", \"dynamic_partition.end\" = \"1\", \"dynamic_partition.prefix\" = \"p\")",
    );
    let looked =
        |client: &mut Client| client.table("SHOW DYNAMIC PARTITION TABLES").rows[0][11].clone().unwrap();
    let first = looked(&mut db.client);
    wait_until("it is looked at again", || looked(&mut db.client) != first);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(partitions(&mut client, "log").len(), 2);
}

/// The fact table of the Star Schema Benchmark, as Doris's documentation creates it.
const LINEORDER: &str = r#"CREATE TABLE IF NOT EXISTS `lineorder` (
  `lo_orderkey` int(11) NOT NULL COMMENT "",
  `lo_linenumber` int(11) NOT NULL COMMENT "",
  `lo_custkey` int(11) NOT NULL COMMENT "",
  `lo_partkey` int(11) NOT NULL COMMENT "",
  `lo_suppkey` int(11) NOT NULL COMMENT "",
  `lo_orderdate` int(11) NOT NULL COMMENT "",
  `lo_orderpriority` varchar(16) NOT NULL COMMENT "",
  `lo_shippriority` int(11) NOT NULL COMMENT "",
  `lo_quantity` int(11) NOT NULL COMMENT "",
  `lo_extendedprice` int(11) NOT NULL COMMENT "",
  `lo_ordtotalprice` int(11) NOT NULL COMMENT "",
  `lo_discount` int(11) NOT NULL COMMENT "",
  `lo_revenue` int(11) NOT NULL COMMENT "",
  `lo_supplycost` int(11) NOT NULL COMMENT "",
  `lo_tax` int(11) NOT NULL COMMENT "",
  `lo_commitdate` int(11) NOT NULL COMMENT "",
  `lo_shipmode` varchar(11) NOT NULL COMMENT ""
) ENGINE=OLAP
DUPLICATE KEY(`lo_orderkey`)
COMMENT "OLAP"
PARTITION BY RANGE(`lo_orderdate`)
(PARTITION p1 VALUES [("-2147483648"), ("19930101")),
PARTITION p2 VALUES [("19930101"), ("19940101")),
PARTITION p3 VALUES [("19940101"), ("19950101")),
PARTITION p4 VALUES [("19950101"), ("19960101")),
PARTITION p5 VALUES [("19960101"), ("19970101")),
PARTITION p6 VALUES [("19970101"), ("19980101")),
PARTITION p7 VALUES [("19980101"), ("19990101")))
DISTRIBUTED BY HASH(`lo_orderkey`) BUCKETS 48
PROPERTIES ("replication_num" = "1", "colocate_with" = "groupa1", "in_memory" = "false", "storage_format" = "DEFAULT")"#;

#[test]
fn the_example_tables_of_doris_take_their_rows() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(LINEORDER);
    let row = |key: i32, date: i32| {
        format!("({key}, 1, 1, 1, 1, {date}, '1-URGENT', 0, 17, 100, 200, 4, 96, 50, 2, {date}, 'TRUCK')")
    };
    let rows: Vec<_> = (0..14).map(|number| row(number, 19_920_101 + number / 2 * 10_000)).collect();
    db.client.ok(&format!("INSERT INTO lineorder VALUES {}", rows.join(", ")));
    assert_eq!(db.client.rows("SELECT COUNT(*) FROM lineorder PARTITION (p1)"), ["2"]);
    assert_eq!(db.client.rows("SELECT COUNT(*) FROM lineorder PARTITION (p7)"), ["2"]);
    let revenue = "SELECT SUM(lo_extendedprice * lo_discount) AS revenue FROM lineorder WHERE lo_orderdate >= 19930101 AND \
                   lo_orderdate < 19940101 AND lo_discount BETWEEN 1 AND 4 AND lo_quantity < 25";
    assert_eq!(db.client.rows(revenue), ["800"]);
    let error = db.client.error(&format!("INSERT INTO lineorder VALUES {}", row(1, 19_990_101)));
    assert!(error.message.contains("no partition for this tuple"), "{error}");

    db.client.ok(
        "CREATE TABLE `date_table` (`TIME_STAMP` datev2 NOT NULL COMMENT 'collected') ENGINE=OLAP DUPLICATE KEY(`TIME_STAMP`) \
         AUTO PARTITION BY RANGE (date_trunc(`TIME_STAMP`, 'month')) ( ) DISTRIBUTED BY HASH(`TIME_STAMP`) BUCKETS 10 \
         PROPERTIES (\"replication_allocation\" = \"tag.location.default: 1\")",
    );
    db.client.ok("INSERT INTO date_table VALUES ('2022-12-14'), ('2022-12-15'), ('2023-01-19')");
    assert_eq!(partitions(&mut db.client, "date_table"), ["p20221201000000", "p20230101000000"]);
    db.client.ok(
        "CREATE TABLE `str_table` (`str` varchar NOT NULL) ENGINE=OLAP DUPLICATE KEY(`str`) AUTO PARTITION BY LIST (`str`) () \
         DISTRIBUTED BY HASH(`str`) BUCKETS 10 PROPERTIES (\"replication_num\" = \"1\")",
    );
    db.client.ok("INSERT INTO str_table VALUES ('Beijing'), ('XXX'), ('Abc'), ('Beijing')");
    assert_eq!(partitions(&mut db.client, "str_table"), ["pBeijing7", "pXXX3", "pAbc3"]);
    db.client.ok(
        "CREATE TABLE tbl1 (k1 DATE) DUPLICATE KEY(k1) PARTITION BY RANGE(k1) () DISTRIBUTED BY HASH(k1) PROPERTIES ( \
         \"dynamic_partition.enable\" = \"true\", \"dynamic_partition.time_unit\" = \"WEEK\", \"dynamic_partition.start\" = \"-2\", \
         \"dynamic_partition.end\" = \"2\", \"dynamic_partition.prefix\" = \"p\", \"dynamic_partition.buckets\" = \"8\")",
    );
    assert_eq!(partitions(&mut db.client, "tbl1").len(), 3);
}

#[test]
fn a_load_of_rows_in_a_thousand_partitions_is_one_commit_of_bounded_memory() {
    let mut server = Server::with_settings(&[("large_load_bytes", "1048576"), ("flush_age_ms", "600000")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE many (id INT, v VARCHAR(100)) DUPLICATE KEY(id) PARTITION BY RANGE(id) (FROM ('0') TO ('100000') INTERVAL 100) \
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    assert_eq!(partitions(&mut db.client, "many").len(), 1000);
    // In an order in which neighbours are far from each other.
    let rows = |first: usize, count: usize| -> String {
        (first..first + count).map(|row| format!("{},{}\n", row * 7919 % 100_000, "x".repeat(40))).collect()
    };
    let load = |rows: String| {
        let file = server.scratch().join("many.csv");
        std::fs::write(&file, rows).expect("written");
        Curl::stream_load(&server, &db.name, "many")
            .header("column_separator:,")
            .header("Expect:100-continue")
            .file(&file)
            .load()
            .success()
    };
    assert_eq!(load(rows(0, 80_000)).get("NumberLoadedRows"), "80000", "a large one, to data files");
    assert_eq!(load(rows(80_000, 20_000)).get("NumberLoadedRows"), "20000", "one in memory");
    let all = "SELECT COUNT(*), COUNT(DISTINCT id) FROM many";
    assert_eq!(db.client.rows(all), ["100000|100000"]);
    assert_eq!(db.client.rows("SELECT COUNT(*) FROM many PARTITION (p_500_600)"), ["100"]);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(all), ["100000|100000"]);
    assert_eq!(client.rows("SELECT COUNT(*) FROM many WHERE id BETWEEN 500 AND 599"), ["100"]);
}

#[test]
fn a_table_whose_loads_make_its_partitions_drops_all_but_the_newest_old_ones() {
    let server = Server::with_settings(&[("dynamic_partition_check_interval_seconds", "1")]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE days (id INT, at DATETIME NOT NULL) DUPLICATE KEY(id) \
                  AUTO PARTITION BY RANGE (date_trunc(at, 'day')) () DISTRIBUTED BY HASH(id) BUCKETS 1");
    let rows = "INSERT INTO days VALUES (1, '2020-01-01 00:00:00'), (2, '2021-01-01 00:00:00'), \
                (3, '2022-01-01 00:00:00'), (4, '9000-01-01 00:00:00')";
    db.client.ok(rows);
    db.client.ok("ALTER TABLE days SET ('partition.retention_count' = '2')");
    let ids = "SELECT id FROM days ORDER BY id";
    assert_eq!(db.client.rows(ids), ["2", "3", "4"]);
    assert_eq!(db.client.table("SHOW PARTITIONS FROM days").rows.len(), 3);
    let made = db.client.table("SHOW CREATE TABLE days").rows[0][1].clone().unwrap();
    assert!(made.contains("\"partition.retention_count\" = \"2\""), "{made}");
    db.client.ok("INSERT INTO days VALUES (5, '2023-01-01 00:00:00')");
    crate::support::wait_until("the oldest one is dropped by the clock", || {
        db.client.rows(ids) == ["3", "4", "5"]
    });
    let error = db.client.error("ALTER TABLE days SET ('partition.retention_count' = '0')");
    assert!(error.message.contains("should be a positive integer"), "{error}");
}
