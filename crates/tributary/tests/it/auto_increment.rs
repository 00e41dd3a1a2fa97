//! AUTO_INCREMENT: rows without a value get one that no row was given before, in every kind of load and through kills.

use crate::support::programs::python;
use crate::support::{Client, Curl, LoadReply, Server};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread;

const PROPERTIES: &str =
    "DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\")";

fn create(client: &mut Client, keys: &str) {
    client.ok(&format!(
        "CREATE TABLE a (id BIGINT NOT NULL AUTO_INCREMENT, name VARCHAR(20), v INT DEFAULT \"7\") {keys} {PROPERTIES}"
    ));
}

fn load(server: &Server, database: &str, headers: &[&str], body: &str) -> LoadReply {
    let request = Curl::stream_load(server, database, "a").header("column_separator:,");
    request.headers(headers).body(body).load()
}

#[test]
fn temporary_partitions_go_on_counting_where_their_table_is() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(&format!(
        "CREATE TABLE a (id BIGINT NOT NULL AUTO_INCREMENT, day DATE NOT NULL) DUPLICATE KEY(id) \
         PARTITION BY RANGE(day) (PARTITION old VALUES LESS THAN ('2024-02-01'), PARTITION new VALUES LESS THAN ('2024-03-01')) \
         {PROPERTIES}"
    ));
    db.client.ok("INSERT INTO a (day) VALUES ('2024-01-05'), ('2024-02-05')");
    db.client.ok("ALTER TABLE a ADD TEMPORARY PARTITION old2 VALUES LESS THAN ('2024-02-01')");
    db.client.ok("INSERT INTO a TEMPORARY PARTITION (old2) (day) VALUES ('2024-01-06'), ('2024-01-07')");
    db.client.ok("INSERT INTO a (day) VALUES ('2024-02-06')");
    db.client.ok("ALTER TABLE a REPLACE PARTITION (old) WITH TEMPORARY PARTITION (old2)");
    db.client.ok("INSERT INTO a (day) VALUES ('2024-01-08'), ('2024-02-07')");
    assert_eq!(db.client.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM a"), ["6|6"]);
}

#[test]
fn every_door_gives_values_to_rows_without_and_keeps_those_of_others() {
    let server = Server::shared();
    let mut db = server.database();
    create(&mut db.client, "DUPLICATE KEY(id)");
    let name = db.name.clone();
    db.client.ok("INSERT INTO a (name) VALUES ('omitted'), ('omitted')");
    db.client.ok("INSERT INTO a VALUES (NULL, 'null', 1), (1000000000, 'given', 2), (DEFAULT, 'default', 3)");
    db.client.ok("INSERT INTO a (name, v) SELECT CONCAT('of ', name), v + 1 FROM a WHERE v < 3");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO a (name) VALUES ('begun')");
    db.client.ok("INSERT INTO a (name) VALUES ('begun')");
    db.client.ok("COMMIT");
    load(&server, &name, &["columns:name,v"], "csv,1\ncsv,2\n").success();
    load(&server, &name, &[], "\\N,csv null,1\n1000000001,csv given,2\n").success();
    load(&server, &name, &["columns:name,x,v=x*2", "group_commit:async_mode"], "computed,4\n").success();
    let json = r#"[{"name":"json"},{"name":"json","id":null},{"name":"json given","id":1000000002}]"#;
    load(&server, &name, &["format:json", "strip_outer_array:true"], json).success();
    let sql = format!(
        "sql:insert into {name}.a (name) select c1 from http_stream('format' = 'csv', 'column_separator' = ',')"
    );
    let url = format!("http://127.0.0.1:{}/api/_http_stream", server.http_port());
    Curl::put(&url).header(&sql).body("streamed\n").load().success();
    db.client.ok("SET group_commit = async_mode");
    db.client.ok("INSERT INTO a (name) VALUES ('async'), ('async')");
    db.client.ok("SYNC");
    db.client.ok("SET group_commit = off_mode");
    let given = db.client.rows("SELECT name FROM a WHERE id >= 1000000000 ORDER BY id");
    assert_eq!(given, ["given", "csv given", "json given"]);
    let rows = db.client.rows(
        "SELECT name, COUNT(*), COUNT(DISTINCT id) FROM a WHERE id < 1000000000 GROUP BY name ORDER BY name",
    );
    assert_eq!(
        rows,
        [
            "async|2|2",
            "begun|2|2",
            "computed|1|1",
            "csv|2|2",
            "csv null|1|1",
            "default|1|1",
            "json|2|2",
            "null|1|1",
            "of given|1|1",
            "of null|1|1",
            "omitted|2|2",
            "streamed|1|1",
        ]
    );
    let all = db.client.rows("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) FROM a");
    assert_eq!(all, ["20|20|1"]);
    assert_eq!(
        db.client.rows("SELECT id FROM a WHERE name = 'omitted' ORDER BY id"),
        ["1", "2"],
        "they ascend"
    );
    let last = db.client.ok("INSERT INTO a (name) VALUES ('last'), ('after it')").last_insert_id;
    assert_eq!(db.client.value("SELECT LAST_INSERT_ID()"), last.to_string(), "unlike in Doris, as in MySQL");
    assert_eq!(db.client.value("SELECT name FROM a WHERE id = LAST_INSERT_ID()"), "last");
    let columns = db.client.rows("DESC a");
    assert_eq!(columns[0], "id|bigint|No|true|NULL|AUTO_INCREMENT");
    assert!(db.client.value("SELECT EXTRA FROM information_schema.columns WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'id'") == "AUTO_INCREMENT");
    db.client.ok("CREATE TABLE b LIKE a");
    db.client.ok("INSERT INTO b (name) VALUES ('first')");
    assert_eq!(db.client.value("SELECT id FROM b"), "1", "a copy begins anew");
    db.client.ok("TRUNCATE TABLE b");
    db.client.ok("INSERT INTO b (name) VALUES ('second')");
    assert_eq!(db.client.value("SELECT id FROM b"), "2", "an emptied table does not");
    let refused = db.client.error("INSERT INTO a VALUES ('x', 'bad', 1)");
    assert!(refused.message.contains("column(id) value is incorrect"), "{refused}");
}

#[test]
fn rows_of_keys_that_are_there_keep_their_values() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE a (k VARCHAR(9) NOT NULL, id BIGINT NOT NULL AUTO_INCREMENT(50), v INT) UNIQUE KEY(k)
         DISTRIBUTED BY HASH(k) BUCKETS 1",
    );
    db.client.ok("INSERT INTO a (k, v) VALUES ('x', 1), ('y', 1)");
    assert_eq!(db.client.rows("SELECT * FROM a ORDER BY k"), ["x|50|1", "y|51|1"]);
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO a (k, v) VALUES ('y', 2), ('z', 2)");
    db.client.ok("SET enable_unique_key_partial_update = false");
    let rows = db.client.rows("SELECT k, id <= 51, v FROM a ORDER BY k");
    assert_eq!(rows, ["x|1|1", "y|1|2", "z|0|2"], "a new key has a new value, others keep theirs");
    db.client.ok("UPDATE a SET v = 9 WHERE k = 'x'");
    assert_eq!(db.client.rows("SELECT id, v FROM a WHERE k = 'x'"), ["50|9"]);
    db.client.ok("DELETE FROM a WHERE k = 'x'");
    db.client.ok("INSERT INTO a (k) VALUES ('x')");
    assert_eq!(db.client.value("SELECT id > 51 FROM a WHERE k = 'x'"), "1", "whole rows have new ones");
    // A key that the server gives: rows that leave it out are new ones, also to a partial update.
    db.client.ok("CREATE TABLE b (id BIGINT NOT NULL AUTO_INCREMENT, v INT, w INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("SET enable_unique_key_partial_update = true");
    db.client.ok("INSERT INTO b (v, w) VALUES (1, 1), (2, 2)");
    db.client.ok("INSERT INTO b (id, w) VALUES (1, 5)");
    assert_eq!(db.client.rows("SELECT * FROM b ORDER BY id"), ["1|1|5", "2|2|2"]);
    let error = db.client.error("INSERT INTO b (w) VALUES (3)");
    assert!(error.message.contains("Partial update should include all key columns, missing: id"), "{error}");
}

#[test]
fn a_value_is_given_once_over_kills_and_in_large_loads() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300"), ("large_load_bytes", "30000")]);
    let db = server.database();
    let name = db.name.clone();
    let mut client = db.client;
    create(&mut client, "UNIQUE KEY(id)");
    let mut rows = 0;
    let mut before: BTreeSet<String> = BTreeSet::new();
    for round in 0..4 {
        let mut body = String::new();
        for row in 0..3000 {
            writeln!(body, "large {row},{round}").expect("a String takes all");
        }
        let writers: Vec<_> = ["async_mode", "sync_mode"]
            .into_iter()
            .map(|mode| {
                let mut client = server.connect_to(&name);
                thread::spawn(move || {
                    client.ok(&format!("SET group_commit = {mode}"));
                    (0..20).for_each(|row| {
                        drop(client.ok(&format!("INSERT INTO a (name, v) VALUES ('{mode}', {row})")));
                    });
                })
            })
            .collect();
        load(&server, &name, &["columns:name,v"], &body).success();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        rows += 3040;
        server.kill();
        server.start_again();
        client = server.connect_to(&name);
        // With unique keys a value that was given twice would have superseded a row.
        assert_eq!(client.value("SELECT COUNT(*) FROM a"), rows.to_string(), "round {round}");
        let ids: BTreeSet<String> =
            client.rows("SELECT CONCAT(id, ' ', name, ' ', v) FROM a").into_iter().collect();
        assert!(
            ids.is_superset(&before),
            "rows have the values that they had before the kill, round {round}"
        );
        before = ids;
    }
    let ids = client.rows("SELECT id FROM a ORDER BY id");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let directory = crate::delta::delta_table(&server);
    python("delta_checks.py", &["deleted", &directory, &ids.join(",")]);
}

/// Frameworks compare the type of a key with the one that they have declared.
#[test]
fn a_compatible_session_keeps_an_int_that_counts() {
    let mut server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.refused("CREATE TABLE a (id INT NOT NULL AUTO_INCREMENT) UNIQUE KEY(id)", 5095, "must be BIGINT");
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    client.ok("CREATE TABLE b (id SMALLINT AUTO_INCREMENT PRIMARY KEY, v INT)");
    client.ok("CREATE TABLE c (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT)");
    assert_eq!(client.rows("SHOW COLUMNS FROM a")[0], "id|int|NO|PRI|NULL|auto_increment");
    assert_eq!(client.rows("SHOW COLUMNS FROM b")[0], "id|bigint|NO|PRI|NULL|auto_increment");
    assert_eq!(client.rows("SHOW COLUMNS FROM c")[0], "id|bigint|NO|PRI|NULL|auto_increment");
    client.ok("ALTER TABLE a MODIFY id INT AUTO_INCREMENT");
    let first = client.ok("INSERT INTO a (v) VALUES (1), (2)").last_insert_id;
    client.ok("INSERT INTO a VALUES (NULL, 3), (1000000, 4), (DEFAULT, 5)");
    client.ok("INSERT INTO a (v) SELECT v + 10 FROM a");
    let rows = "SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), SUM(id = 1000000) FROM a";
    assert_eq!(client.value(rows), format!("10|10|{first}|1"));
    // The last values of the type, and no further.
    client.ok("CREATE TABLE few (id INT AUTO_INCREMENT(2147483646) PRIMARY KEY, v INT)");
    client.ok("INSERT INTO few (v) VALUES (1)");
    client.ok("INSERT INTO few (v) VALUES (2)");
    let error = client.error("INSERT INTO few (v) VALUES (3)");
    assert!(error.message.contains("has not 1 values left up to 2147483647"), "{error}");
    client.ok("INSERT INTO few VALUES (5, 4)");
    let few = ["5|4", "2147483646|1", "2147483647|2"];
    assert_eq!(client.rows("SELECT * FROM few ORDER BY id"), few);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT * FROM few ORDER BY id"), few);
    client.ok("INSERT INTO a (v) VALUES (6)");
    assert_eq!(client.value("SELECT COUNT(*), COUNT(DISTINCT id) FROM a"), "11|11");
}
