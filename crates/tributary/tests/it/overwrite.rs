//! INSERT OVERWRITE, as clients see it: all new rows or all old ones.

use crate::support::Server;

const DAYS: &str = "CREATE TABLE days (id INT, day DATE NOT NULL, v VARCHAR(20)) DUPLICATE KEY(id) \
                    PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
                    DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"60000\")";
const ROWS: &str =
    "INSERT INTO days VALUES (1, '2024-01-31', 'a'), (2, '2024-02-01', 'b'), (3, '2024-03-01', 'c')";
const ALL: &str = "SELECT id, v FROM days ORDER BY id";

#[test]
fn a_table_or_some_of_its_partitions_are_overwritten_in_one_commit_and_a_kill_changes_nothing() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok(DAYS);
    db.client.ok(ROWS);
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO days VALUES (4, '2024-01-04', 'acknowledged before')");
    db.client.ok("SET group_commit = off_mode");
    let done = db.client.ok("INSERT OVERWRITE TABLE days PARTITION (p_202401) VALUES (5, '2024-01-05', 'e')");
    assert_eq!(done.affected_rows, 1);
    assert_eq!(db.client.rows(ALL), ["2|b", "3|c", "5|e"]);
    let error = db
        .client
        .error("INSERT OVERWRITE TABLE days PARTITION (p_202401) VALUES (6, '2024-02-05', 'another')");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    assert_eq!(db.client.rows(ALL), ["2|b", "3|c", "5|e"], "nothing of it");
    db.client.ok("INSERT OVERWRITE TABLE days PARTITION (*) SELECT id + 10, day, v FROM days WHERE id = 3");
    assert_eq!(db.client.rows(ALL), ["2|b", "5|e", "13|c"]);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(ALL), ["2|b", "5|e", "13|c"]);
    client.ok(
        "INSERT OVERWRITE TABLE days WITH LABEL over (id, day) SELECT id + 20, day FROM days WHERE id > 2",
    );
    assert_eq!(client.rows("SELECT id FROM days ORDER BY id"), ["25", "33"]);
    client.ok("INSERT OVERWRITE TABLE days PARTITION (p_202401) SELECT * FROM days WHERE id < 0");
    assert_eq!(client.rows("SELECT id FROM days"), ["33"], "without rows it empties");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id FROM days"), ["33"]);
    let error = client.error("INSERT OVERWRITE TABLE days WITH LABEL over VALUES (1, '2024-01-01', 'x')");
    assert!(error.message.contains("has already been used"), "{error}");
}

#[test]
fn tables_without_partitions_and_with_keys_are_overwritten() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("CREATE TABLE s (k INT, v INT SUM) AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    for round in 1..4 {
        for table in ["u", "s"] {
            db.client.ok(&format!("INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)"));
            db.client.ok(&format!(
                "INSERT OVERWRITE TABLE {table} SELECT k + 1, v + {round} FROM {table} WHERE k < 3"
            ));
        }
        let shown = [format!("2|{}", 1 + round), format!("3|{}", 2 + round)];
        assert_eq!(db.client.rows("SELECT * FROM u ORDER BY k"), shown);
    }
    let folded = db.client.rows("SELECT * FROM s ORDER BY k");
    db.client.ok("INSERT INTO u VALUES (2, 100)");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT * FROM u ORDER BY k"), ["2|100", "3|5"]);
    assert_eq!(client.rows("SELECT * FROM s ORDER BY k"), folded);
    let error = client.error("INSERT OVERWRITE TABLE u PARTITION (p) VALUES (1, 1)");
    assert_eq!(error.number, 1747, "{error}");
    let error = client.error("INSERT OVERWRITE TABLE u PARTITION (*) VALUES (1, 1)");
    assert_eq!(error.number, 1747, "{error}");
    client.ok("SET enable_unique_key_partial_update = true");
    let error = client.error("INSERT OVERWRITE TABLE u (k, v) VALUES (1, 1)");
    assert!(error.message.contains("enable_unique_key_partial_update = false"), "{error}");
}

#[test]
fn an_overwrite_makes_partitions_only_if_the_session_says_so() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE auto (d DATE NOT NULL, id INT) DUPLICATE KEY(d) AUTO PARTITION BY RANGE (date_trunc(d, 'month')) () \
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    db.client.ok("INSERT INTO auto VALUES ('2024-01-01', 1), ('2024-02-01', 2)");
    let error = db.client.error("INSERT OVERWRITE TABLE auto VALUES ('2024-03-01', 3)");
    assert!(error.message.contains("no partition for this tuple"), "{error}");
    db.client.ok("INSERT OVERWRITE TABLE auto PARTITION (*) VALUES ('2024-02-02', 4)");
    assert_eq!(db.client.rows("SELECT id FROM auto ORDER BY id"), ["1", "4"]);
    db.client.ok("SET enable_auto_create_when_overwrite = true");
    db.client.ok("INSERT OVERWRITE TABLE auto PARTITION (*) VALUES ('2024-03-01', 3)");
    assert_eq!(db.client.rows("SELECT id FROM auto ORDER BY id"), ["1", "3", "4"]);
    db.client.ok("INSERT OVERWRITE TABLE auto VALUES ('2024-04-01', 5)");
    assert_eq!(db.client.rows("SELECT id FROM auto"), ["5"]);
    assert_eq!(db.client.table("SHOW PARTITIONS FROM auto").rows.len(), 4);
    db.client.ok("BEGIN");
    let error = db.client.error("INSERT OVERWRITE TABLE auto VALUES ('2024-04-01', 5)");
    assert!(error.message.contains("in a transaction"), "{error}");
    db.client.ok("ROLLBACK");
}
