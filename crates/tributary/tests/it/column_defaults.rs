//! `ALTER TABLE … ALTER COLUMN c SET DEFAULT` and `DROP DEFAULT`: for rows that are loaded from now on.

use crate::support::{Server, wait_until};

#[test]
fn a_new_default_is_of_later_rows_and_changes_none_that_exist() {
    let mut server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok(
        "CREATE TABLE t (id INT, a INT DEFAULT '1', b VARCHAR(10)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES (\"group_commit_interval_ms\" = \"20\")",
    );
    client.ok("SET group_commit = off_mode");
    client.ok("INSERT INTO t (id) VALUES (1)");
    // Columns that rows of data files and of memory do not have.
    client.ok("ALTER TABLE t ADD COLUMN late INT DEFAULT '7'");
    client.ok("ALTER TABLE t ADD COLUMN none INT");
    client.ok("INSERT INTO t (id) VALUES (2)");
    client.ok("ALTER TABLE t ALTER COLUMN a SET DEFAULT 2, ALTER b SET DEFAULT 'x'");
    client.ok("ALTER TABLE t ALTER late SET DEFAULT 8");
    client.ok("ALTER TABLE t ALTER COLUMN none SET DEFAULT 9");
    client.ok("INSERT INTO t (id) VALUES (3)");
    client.ok("ALTER TABLE t ALTER COLUMN a DROP DEFAULT");
    client.ok("ALTER TABLE t ALTER COLUMN late DROP DEFAULT");
    client.ok("INSERT INTO t (id) VALUES (4)");
    client.ok("INSERT INTO t (id, b) VALUES (5, DEFAULT)");
    let expected = ["1|1|NULL|7|NULL", "2|1|NULL|7|NULL", "3|2|x|8|9", "4|NULL|x|NULL|9", "5|NULL|x|NULL|9"];
    let rows = "SELECT id, a, b, late, none FROM t ORDER BY id";
    assert_eq!(client.rows(rows), expected);
    let described = client.rows("DESC t");
    let defaults: Vec<&str> = described.iter().map(|row| row.split('|').nth(4).unwrap_or_default()).collect();
    assert_eq!(defaults, ["NULL", "NULL", "x", "NULL", "9"]);
    let shown = client.rows("SHOW CREATE TABLE t").concat();
    assert!(shown.contains("`none` int NULL DEFAULT \"9\""), "{shown}");
    // Rows from before are as they were after a replay of the log, a flush and a compaction.
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(rows), expected);
    client.ok("SET group_commit = off_mode");
    for id in 6..9 {
        client.ok(&format!("INSERT INTO t (id) VALUES ({id})"));
        client.ok("DELETE FROM t WHERE id > 5");
        assert_eq!(client.rows(rows), expected);
    }
    wait_until("the rows are as they were", || client.rows(rows) == expected);
}

#[test]
fn defaults_that_do_not_fit_and_columns_without_any_are_refused() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("CREATE TABLE t (id INT NOT NULL, n BIGINT NOT NULL AUTO_INCREMENT, v INT, g INT AS (v + 1), \
         at DATETIME DEFAULT CURRENT_TIMESTAMP) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("CREATE TABLE agg (id INT, v INT SUM) AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    for (sql, code, text) in [
        ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 'x'", 1105, "Invalid default value"),
        ("ALTER TABLE t ALTER COLUMN id SET DEFAULT NULL", 1105, "null default value to non nullable"),
        ("ALTER TABLE t ALTER COLUMN n SET DEFAULT 1", 1105, "AUTO_INCREMENT"),
        ("ALTER TABLE t ALTER COLUMN g SET DEFAULT 1", 1105, "is generated"),
        ("ALTER TABLE agg ALTER COLUMN v SET DEFAULT 1", 1105, "has an aggregation"),
        ("ALTER TABLE t ALTER COLUMN w SET DEFAULT 1", 1054, "Unknown column 'w'"),
        ("ALTER TABLE t ALTER COLUMN v SET NOT NULL", 1064, "SET DEFAULT or DROP DEFAULT"),
        ("ALTER TABLE t ALTER INDEX i INVISIBLE", 1235, "ALTER INDEX"),
    ] {
        let error = client.error(sql);
        assert_eq!(error.number, code, "{sql}: {error}");
        assert!(error.message.contains(text), "{sql}: {error}");
    }
    client.ok("SET group_commit = off_mode");
    client.ok("ALTER TABLE t ALTER COLUMN id SET DEFAULT 5, ALTER COLUMN at DROP DEFAULT");
    client.ok("INSERT INTO t (v) VALUES (1)");
    assert_eq!(client.rows("SELECT id, v, g, at FROM t"), ["5|1|2|NULL"]);
    client.ok("ALTER TABLE t ALTER COLUMN id DROP DEFAULT");
    let error = client.error("INSERT INTO t (v) VALUES (1)");
    assert!(error.message.contains("id"), "{error}");
}
