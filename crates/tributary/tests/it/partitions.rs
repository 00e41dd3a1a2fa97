//! Partitioned tables, as clients create, fill and read them.

use crate::support::{Curl, Database, Server, wait_until};

const ORDERS: &str = "CREATE TABLE orders (id INT, day DATE, v VARCHAR(20)) DUPLICATE KEY(id) \
                      PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
                      DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")";

#[test]
fn rows_go_to_their_partitions_and_stay_there_after_a_kill() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(ORDERS);
    db.client.ok("INSERT INTO orders VALUES (1, '2024-01-31', 'a'), (2, '2024-02-01', 'b')");
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO orders VALUES (3, '2024-03-31', 'c'), (4, '2024-02-29', 'd')");
    let error = db.client.error("INSERT INTO orders VALUES (5, '2024-02-02', 'e'), (6, '2024-04-01', 'f')");
    assert!(
        error.message.contains(r#"no partition for this tuple. tuple={"id":6,"day":"2024-04-01","v":"f"}"#),
        "{error}"
    );
    db.client.ok("SYNC");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id FROM orders PARTITION (p_202402) ORDER BY id"), ["2", "4"]);
    assert_eq!(client.rows("SELECT id FROM orders ORDER BY id"), ["1", "2", "3", "4"]);
    let shown = client.table("SHOW PARTITIONS FROM orders");
    assert_eq!(shown.rows.len(), 3);
    let ranges = client.rows("SELECT PARTITION_NAME, `RANGE` FROM information_schema.partitions WHERE TABLE_NAME = 'orders' ORDER BY 1 LIMIT 1");
    assert_eq!(
        ranges,
        ["p_202401|[types: [DATEV2]; keys: [2024-01-01]; ..types: [DATEV2]; keys: [2024-02-01]; )"]
    );
}

#[test]
fn small_files_of_a_table_at_rest_become_one_for_each_partition() {
    let server = Server::with_settings(&[("flush_age_ms", "50")]);
    let mut db = server.database();
    db.client.ok(ORDERS);
    db.client.ok("SET group_commit = off_mode");
    for load in 1..=3 {
        let rows = (1..=3).map(|month| format!("({load}{month}, '2024-0{month}-05', 'a')"));
        db.client.ok(&format!("INSERT INTO orders VALUES {}", rows.collect::<Vec<_>>().join(",")));
        let rows = f64::from(load * 3);
        wait_until("the load is flushed", || server.metric("tributary_flushed_rows_total ") >= rows);
    }
    wait_until("the files are put together", || server.metric("tributary_data_files ") == 3.0);
    assert_eq!(db.client.rows("SELECT id FROM orders PARTITION (p_202402) ORDER BY id"), ["12", "22", "32"]);
    assert_eq!(db.client.rows("SELECT count(*), sum(id) FROM orders"), ["9|198"]);
}

#[test]
fn a_table_is_shown_as_it_can_be_made_again() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(ORDERS);
    let made = db.client.table("SHOW CREATE TABLE orders").rows[0][1].clone().unwrap();
    assert!(
        made.contains(
            "PARTITION BY RANGE(`day`)\n(PARTITION p_202401 VALUES [('2024-01-01'), ('2024-02-01')),\n"
        ),
        "{made}"
    );
    db.client.ok("DROP TABLE orders");
    db.client.ok(&made);
    assert_eq!(db.client.table("SHOW CREATE TABLE orders").rows[0][1].as_ref(), Some(&made));
    db.client.ok("CREATE TABLE copy LIKE orders");
    let copied = db.client.table("SHOW CREATE TABLE copy").rows[0][1].clone().unwrap();
    assert_eq!(copied.replace("copy", "orders"), made);
}

#[test]
fn a_load_may_name_the_partitions_that_it_fills() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(ORDERS);
    let load = |headers: &[&str]| {
        let load = Curl::stream_load(&server, &db.name, "orders").header("column_separator:,");
        let load = load.headers(headers);
        load.body("1,2024-01-05,a\n2,2024-02-05,b\n3,2025-01-01,c\n").load()
    };
    let reply =
        load(&["partitions: p_202401", "max_filter_ratio: 0.7", "group_commit: async_mode"]).success();
    assert_eq!((reply.get("NumberLoadedRows"), reply.get("NumberFilteredRows")), ("1".into(), "2".into()));
    assert!(!reply.has("GroupCommit"), "a load that names partitions shares no group: {}", reply.text);
    let refused = load(&[]);
    assert!(refused.failure().contains("too many filtered rows"), "{}", refused.text);
    let unknown = load(&["partitions: p9"]);
    assert!(unknown.failure().contains("partition p9 is not found in table orders"), "{}", unknown.text);
    let temporary = load(&["temporary_partitions: p9"]);
    assert!(temporary.failure().contains("partition p9 is not found in table orders"), "{}", temporary.text);
    db.client.ok("INSERT INTO orders PARTITION (p_202402, p_202403) VALUES (4, '2024-03-05', 'd')");
    let error = db.client.error("INSERT INTO orders PARTITION (p_202402) VALUES (5, '2024-03-05', 'e')");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    let error = db.client.error("INSERT INTO orders PARTITION (p9) VALUES (5, '2024-03-05', 'e')");
    assert!(error.message.contains("partition p9 is not found"), "{error}");
    db.client.ok("INSERT INTO orders SELECT id + 10, day, v FROM orders PARTITION (p_202403)");
    assert_eq!(db.client.rows("SELECT id FROM orders ORDER BY id"), ["1", "4", "14"]);
    assert_eq!(db.client.ok("DELETE FROM orders PARTITION (p_202403) WHERE v = 'd'").affected_rows, 2);
    assert_eq!(db.client.rows("SELECT id FROM orders"), ["1"]);
}

#[test]
fn a_table_without_partitions_takes_no_rows() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE empty (id INT) DUPLICATE KEY(id) PARTITION BY RANGE(id) () DISTRIBUTED BY HASH(id) BUCKETS 1");
    let error = db.client.error("INSERT INTO empty VALUES (1)");
    assert_eq!(error.number, 5083, "{error}");
    assert!(error.message.contains("data cannot be inserted into table with empty partition."), "{error}");
}

#[test]
fn partitions_are_added_dropped_renamed_and_emptied_and_a_kill_changes_nothing() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(ORDERS);
    db.client.ok(
        "INSERT INTO orders VALUES (1, '2024-01-31', 'a'), (2, '2024-02-01', 'b'), (3, '2024-03-01', 'c')",
    );
    db.client.ok("ALTER TABLE orders ADD PARTITION IF NOT EXISTS p_202401 VALUES LESS THAN ('2000-01-01')");
    db.client.ok("ALTER TABLE orders ADD PARTITION april VALUES LESS THAN ('2024-05-01') ('replication_num' = '1') DISTRIBUTED BY HASH(id) BUCKETS 3");
    db.client.ok("ALTER TABLE orders ADD PARTITIONS FROM ('2024-05-01') TO ('2024-07-01') INTERVAL 1 MONTH");
    db.client.ok("ALTER TABLE orders RENAME PARTITION april p4");
    db.client.ok("ALTER TABLE orders MODIFY PARTITION (*) SET ('in_memory' = 'false')");
    db.client.ok("INSERT INTO orders VALUES (4, '2024-04-30', 'd'), (6, '2024-06-30', 'f')");
    db.client.ok("ALTER TABLE orders DROP PARTITION p_202402, DROP PARTITION IF EXISTS p9");
    db.client.ok("TRUNCATE TABLE orders PARTITION (p_202403, p_202405)");
    let late = db.client.error("INSERT INTO orders VALUES (7, '2024-02-07', 'g')");
    assert!(late.message.contains("no partition for this tuple"), "{late}");
    db.client.ok("INSERT INTO orders VALUES (8, '2024-03-08', 'h')");
    // The same range starts empty when it is added again, even after a restart that reads the rows of the old one in the log.
    db.client.ok("ALTER TABLE orders ADD PARTITION again VALUES [('2024-02-01'), ('2024-03-01'))");
    db.client.ok("INSERT INTO orders VALUES (9, '2024-02-09', 'i')");
    let all = ["1", "4", "6", "8", "9"];
    assert_eq!(db.client.rows("SELECT id FROM orders ORDER BY id"), all);
    for _ in 0..2 {
        server.kill();
        server.start_again();
        let mut client = server.connect_to(&db.name);
        assert_eq!(client.rows("SELECT id FROM orders ORDER BY id"), all);
        assert_eq!(client.rows("SELECT id FROM orders PARTITION (p4, again) ORDER BY id"), ["4", "9"]);
        assert_eq!(client.table("SHOW PARTITIONS FROM orders").rows.len(), 6);
    }
}

#[test]
fn a_change_of_partitions_that_cannot_be_is_refused_in_the_words_of_doris() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok(ORDERS);
    for (statement, number, text) in [
        (
            "ALTER TABLE orders ADD PARTITION P_202401 VALUES LESS THAN ('2025-01-01')",
            1517,
            "Duplicate partition name P_202401",
        ),
        (
            "ALTER TABLE orders ADD PARTITION x VALUES [('2024-03-05'), ('2024-06-01'))",
            1105,
            "is intersected with range",
        ),
        ("ALTER TABLE orders ADD PARTITION x VALUES IN ('2024-03-05')", 1105, "partitions types is invalid"),
        ("ALTER TABLE orders DROP PARTITION x", 1507, "Error in list of partitions to x"),
        ("ALTER TABLE orders RENAME PARTITION x y", 1735, "Unknown partition 'x' in table 'orders'"),
        ("ALTER TABLE orders RENAME PARTITION p_202401 p_202402", 1517, "Duplicate partition name p_202402"),
        ("ALTER TABLE orders MODIFY PARTITION x SET ('in_memory' = 'true')", 1735, "Unknown partition 'x'"),
        (
            "ALTER TABLE orders MODIFY PARTITION p_202401 SET ('nothing' = 'true')",
            1105,
            "nothing is no property of a partition",
        ),
        ("TRUNCATE TABLE orders PARTITION (x)", 1735, "Unknown partition 'x'"),
        (
            "ALTER TABLE orders DROP COLUMN day",
            1105,
            "Partition column[day] cannot be dropped. index[orders]",
        ),
        (
            "ALTER TABLE dt ADD PARTITION x VALUES LESS THAN ('2025-01-01')",
            1105,
            "Only support adding partition to range and list partitioned table",
        ),
        ("ALTER TABLE dt DROP PARTITION x", 1105, "table [dt] is not a partitioned table"),
    ] {
        db.client.refused(statement, number, text);
    }
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.ok("ALTER TABLE dt MODIFY PARTITION dt SET ('in_memory' = 'false')");
    db.client.ok("TRUNCATE TABLE dt PARTITION (dt)");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "0");
}

/// `auto_partition_name` gives the names that partitions got, and SHOW PARTITION finds them by their numbers.
fn names_and_numbers_lead_to_partitions(db: &mut Database) {
    for (table, name) in [
        ("days", "auto_partition_name('range', 'day', '2024-02-01 12:00:00')"),
        ("cities", "auto_partition_name('list', 'Oslo')"),
        ("cities", "auto_partition_name('list', NULL)"),
    ] {
        let found = db.client.rows(&format!(
            "SELECT PARTITION_ID, PARTITION_NAME FROM information_schema.partitions
             WHERE TABLE_SCHEMA = '{}' AND TABLE_NAME = '{table}' AND PARTITION_NAME = {name}",
            db.name
        ));
        assert_eq!(found.len(), 1, "{table} {name}");
        let (number, name) = found[0].split_once('|').expect("two columns");
        let shown = db.client.table(&format!("SHOW PARTITION {number}"));
        assert_eq!(shown.columns, ["DbName", "TableName", "PartitionName", "DbId", "TableId"]);
        let is_it = |row: &&Vec<Option<String>>| {
            row.iter().flatten().take(3).eq([&db.name, &table.to_owned(), &name.to_owned()])
        };
        assert_eq!(shown.rows.iter().filter(is_it).count(), 1, "{shown:?}");
    }
    assert!(db.client.rows("SHOW PARTITION 123456789").is_empty());
}

#[test]
fn loads_make_the_partitions_that_their_rows_need() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE days (id INT, at DATETIME NOT NULL) DUPLICATE KEY(id) AUTO PARTITION BY RANGE (date_trunc(at, 'day')) () \
                  DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")");
    db.client.ok("CREATE TABLE cities (city VARCHAR(20), id INT) DUPLICATE KEY(city) AUTO PARTITION BY LIST (city) () DISTRIBUTED BY HASH(city) BUCKETS 1");
    db.client.ok("INSERT INTO days VALUES (1, '2024-01-31 23:59:59'), (2, '2024-02-01 00:00:00')");
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO days VALUES (3, '2024-02-01 12:00:00'), (4, '2023-12-31 00:00:00')");
    let reply = Curl::stream_load(&server, &db.name, "cities")
        .header("column_separator:,")
        .header("group_commit:sync_mode")
        .body("Oslo,1\nRome,2\n\\N,3\nOslo,4\n")
        .load()
        .success();
    assert_eq!(reply.get("NumberLoadedRows"), "4");
    // Partitions that a load names are not created.
    let named = db.client.error("INSERT INTO cities PARTITION (pOslo4) VALUES ('Bergen', 5)");
    assert!(named.message.contains("no partition for this tuple"), "{named}");
    // A load that fails leaves no row.
    let failed = Curl::stream_load(&server, &db.name, "cities")
        .header("column_separator:,")
        .header("strict_mode:true")
        .body("Paris,6\nParis,x\n")
        .load();
    assert!(failed.failure().contains("too many filtered rows"), "{}", failed.text);
    db.client.ok("ALTER TABLE cities DROP PARTITION pRome4");
    db.client.ok("INSERT INTO cities VALUES ('Rome', 7)");
    let many: Vec<String> = (0..300).map(|number| format!("('c{number}', {number})")).collect();
    db.client.ok(&format!("INSERT INTO cities VALUES {}", many.join(",")));
    db.client.ok("SYNC");
    for _ in 0..2 {
        assert_eq!(db.client.rows("SELECT id FROM days PARTITION (p20240201000000) ORDER BY id"), ["2", "3"]);
        assert_eq!(
            db.client.rows("SELECT id FROM cities PARTITION (pOslo4, pRome4, pX) ORDER BY id"),
            ["1", "3", "4", "7"]
        );
        assert_eq!(db.client.value("SELECT COUNT(*) FROM cities"), "304");
        assert_eq!(db.client.table("SHOW PARTITIONS FROM days").rows.len(), 3);
        names_and_numbers_lead_to_partitions(&mut db);
        server.kill();
        server.start_again();
        db.client = server.connect_to(&db.name);
    }
    let made = db.client.table("SHOW CREATE TABLE days").rows[0][1].clone().unwrap();
    assert!(
        made.contains("AUTO PARTITION BY RANGE (date_trunc(`at`, 'day'))\n(PARTITION p20240131000000 VALUES"),
        "{made}"
    );
}
