//! Statements that change rows: in given partitions, and concurrently with loads and each other.

use crate::support::{Client, Curl, HttpServer, MariaDb, Page, Server, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_client::Value;

/// The models of tables, with their keys, properties and the aggregation of a value.
const MODELS: [(&str, &str, &str, &str); 4] = [
    ("dup", "DUPLICATE KEY(k, day)", "", ""),
    ("mow", "UNIQUE KEY(k, day)", ", \"enable_unique_key_merge_on_write\" = \"true\"", ""),
    ("mor", "UNIQUE KEY(k, day)", ", \"enable_unique_key_merge_on_write\" = \"false\"", ""),
    ("agg", "AGGREGATE KEY(k, day)", "", "REPLACE"),
];
/// Rows by day; days below 10 are in `p1`, others in `p2`.
const ROWS: &str = "VALUES (1, 1, 1), (2, 2, 2), (1, 11, 1), (2, 12, 2)";
const ALL: [&str; 4] = ["1|1|1", "1|11|1", "2|2|2", "2|12|2"];

fn create(client: &mut Client) {
    for (name, keys, properties, aggregation) in MODELS {
        client.ok(&format!(
            "CREATE TABLE {name} (k INT, day INT, v INT {aggregation}) {keys} PARTITION BY RANGE(day) \
             (PARTITION p1 VALUES LESS THAN ('10'), PARTITION p2 VALUES LESS THAN ('20')) \
             DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"20\"{properties})"
        ));
    }
}

fn refill(client: &mut Client, name: &str) {
    client.ok(&format!("TRUNCATE TABLE {name}"));
    client.ok(&format!("INSERT INTO {name} {ROWS}"));
}

fn rows(client: &mut Client, name: &str) -> Vec<String> {
    client.rows(&format!("SELECT k, day, v FROM {name} ORDER BY k, day"))
}

#[test]
fn a_clause_partition_holds_in_every_model_and_through_every_door() {
    let server = Server::start();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET group_commit = off_mode");
    create(client);
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
    prepared.query("SET group_commit = off_mode").expect("a variable");
    for (name, ..) in MODELS {
        // DELETE, from a text and prepared, with and without an alias and other tables.
        for sql in [
            format!("DELETE FROM {name} PARTITION (p1) WHERE k = 1"),
            format!("DELETE FROM {name} PARTITION p1 WHERE k = 1"),
            format!("DELETE FROM {name} PARTITIONS (p1) WHERE k = 1"),
        ] {
            refill(client, name);
            client.ok(&sql);
            assert_eq!(rows(client, name), ["1|11|1", "2|2|2", "2|12|2"], "{sql}");
        }
        refill(client, name);
        let delete = format!("DELETE FROM {name} PARTITION (p2) WHERE k = ?");
        let statement = prepared.prepare(&delete).expect("prepared");
        prepared.execute(statement, &[Value::BigInt(1)]).expect("executed");
        assert_eq!(rows(client, name), ["1|1|1", "2|2|2", "2|12|2"], "{delete}");
        if name != "agg" {
            for sql in [
                format!("DELETE FROM {name} t PARTITION (p1) WHERE t.v = 1"),
                format!("DELETE FROM {name} t PARTITION (p1) USING (SELECT 1 AS one) o WHERE t.v = o.one"),
                format!(
                    "DELETE FROM {name} PARTITION (p1) USING dup d WHERE {name}.v = 1 AND d.k = {name}.k"
                ),
            ] {
                if name == "dup" && sql.contains("dup d") {
                    continue;
                }
                refill(client, name);
                client.ok(&sql);
                assert_eq!(rows(client, name), ["1|11|1", "2|2|2", "2|12|2"], "{sql}");
            }
        }
        // INSERT takes no row of another partition.
        refill(client, name);
        for sql in [
            format!("INSERT INTO {name} PARTITION (p1) VALUES (3, 13, 3)"),
            format!("INSERT INTO {name} PARTITION (p1) VALUES (1 + 2, 13, 3)"),
            format!("INSERT INTO {name} PARTITION (p1) SELECT 3, 13, 3"),
            format!("INSERT INTO {name} PARTITION (p1) SELECT k + 2, day + 1, v FROM {name} PARTITION (p2)"),
        ] {
            let error = client.error(&sql);
            assert!(error.message.contains("no partition for this tuple"), "{sql}: {error}");
        }
        let insert = format!("INSERT INTO {name} PARTITION (p1) VALUES (?, ?, ?)");
        let statement = prepared.prepare(&insert).expect("prepared");
        let row = [3, 13, 3].map(Value::BigInt);
        assert!(prepared.execute(statement, &row).is_err(), "{insert}");
        assert_eq!(rows(client, name), ALL, "{name}");
        // SELECT reads, OVERWRITE and TRUNCATE empty, the named partition alone.
        assert_eq!(client.rows(&format!("SELECT k FROM {name} PARTITION (p2) ORDER BY k")), ["1", "2"]);
        client.ok(&format!("INSERT OVERWRITE TABLE {name} PARTITION (p1) SELECT 9, 9, 9"));
        assert_eq!(rows(client, name), ["1|11|1", "2|12|2", "9|9|9"], "{name}");
        client.ok(&format!("TRUNCATE TABLE {name} PARTITION (p2)"));
        assert_eq!(rows(client, name), ["9|9|9"], "{name}");
        // Loads by HTTP and LOAD DATA.
        refill(client, name);
        let reply = Curl::stream_load(&server, &db.name, name)
            .header("column_separator:,")
            .header("partitions:p1")
            .header("max_filter_ratio:0.5")
            .body("3,3,3\n3,13,3\n")
            .load()
            .success();
        assert_eq!(reply.rows(), [2, 1, 1, 0], "{name}: {}", reply.text);
        let sql = format!(
            "insert into {}.{name} partition (p1) select * from http_stream('format' = 'csv', 'column_separator' = ',')",
            db.name
        );
        let reply = Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
            .header(&format!("sql:{sql}"))
            .header("max_filter_ratio:0.5")
            .body("4,4,4\n4,14,4\n")
            .load();
        assert_eq!(reply.rows()[1..3], [1, 1], "{name}: {}", reply.text);
        let file = server.scratch().join(format!("{name}.csv"));
        std::fs::write(&file, "5,5,5\n5,15,5\n").unwrap();
        MariaDb::new(&server).option(&db.name).shows(&format!(
            "LOAD DATA LOCAL INFILE '{}' INTO TABLE {name} PARTITION (p1) FIELDS TERMINATED BY ',' \
             PROPERTIES (\"max_filter_ratio\" = \"0.5\");",
            file.display()
        ));
        let expected = ["1|1|1", "1|11|1", "2|2|2", "2|12|2", "3|3|3", "4|4|4", "5|5|5"];
        assert_eq!(rows(client, name), expected, "{name}");
    }
}

/// A server that holds the end of a file until it is released, and the FROM of statements that wait for it.
struct Held {
    web: HttpServer,
    ends: Arc<AtomicBool>,
}

impl Held {
    fn new(ids: &[u32]) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let body: String = ids.iter().map(|id| format!("{id},x\n")).collect();
        let page = Page::Held(body.into_bytes(), Arc::clone(&ends));
        Self { web: HttpServer::start(&[("/ids.csv", page)]), ends }
    }

    fn source(&self) -> String {
        format!("HTTP(\"uri\" = \"{}/ids.csv\", \"column_separator\" = \",\") h", self.web.url)
    }

    fn release(&self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

const WIDE: &str =
    "CREATE TABLE u (k INT, v INT, w INT, g INT AS (w + 1)) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1
    PROPERTIES (\"group_commit_interval_ms\" = \"20\"";

fn load(server: &Server, db: &str, body: &str, headers: &[&str]) {
    let curl = Curl::stream_load(server, db, "u").header("column_separator:,").header("columns:k,v,w");
    curl.headers(headers).body(body).load().success();
}

#[test]
fn an_update_keeps_what_is_loaded_beside_it_and_brings_no_deleted_row_back() {
    let server = Server::start();
    for merge_on_write in ["true", "false"] {
        let mut db = server.database();
        db.client.ok(&format!("{WIDE}, \"enable_unique_key_merge_on_write\" = \"{merge_on_write}\")"));
        db.client.ok("SET group_commit = off_mode");
        db.client.ok("INSERT INTO u (k, v, w) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1)");
        let held = Held::new(&[1, 2]);
        let mut updater = server.connect_to(&db.name);
        updater.ok("SET group_commit = off_mode");
        updater.send(&format!("UPDATE u SET v = 2 FROM {} WHERE u.k = CAST(h.c1 AS INT)", held.source()));
        wait_until("the UPDATE has begun to read", || held.web.requests() >= 1);
        // Column g is computed from w, so the UPDATE gives w too; a table without g is below.
        let deleter = std::thread::spawn({
            let mut client = server.connect_to(&db.name);
            move || client.ok("DELETE FROM u WHERE k = 2")
        });
        wait_until("the DELETE has begun", || {
            db.client.rows("SHOW FULL PROCESSLIST").iter().any(|row| row.contains("DELETE FROM u"))
        });
        assert!(!deleter.is_finished(), "it waits for its turn");
        held.release();
        updater.answered_ok();
        deleter.join().expect("it is deleted");
        let rows = db.client.rows("SELECT k, v, w, g FROM u ORDER BY k");
        assert_eq!(rows, ["1|2|1|2", "3|1|1|2"], "merge on write: {merge_on_write}");
    }
}

#[test]
fn an_update_loads_keys_and_assigned_columns_and_no_others() {
    let server = Server::start();
    for merge_on_write in ["true", "false"] {
        let mut db = server.database();
        let table = WIDE.replace(", g INT AS (w + 1)", "");
        db.client.ok(&format!("{table}, \"enable_unique_key_merge_on_write\" = \"{merge_on_write}\")"));
        db.client.ok("SET group_commit = off_mode");
        db.client.ok("INSERT INTO u (k, v, w) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1)");
        let held = Held::new(&[1, 2]);
        let mut updater = server.connect_to(&db.name);
        updater.ok("SET group_commit = off_mode");
        updater.send(&format!("UPDATE u SET v = v + 1 FROM {} WHERE u.k = CAST(h.c1 AS INT)", held.source()));
        wait_until("the UPDATE has begun to read", || held.web.requests() >= 1);
        load(&server, &db.name, "1,1,9\n", &[]);
        held.release();
        updater.answered_ok();
        let rows = db.client.rows("SELECT k, v, w FROM u ORDER BY k");
        assert_eq!(rows, ["1|2|9", "2|2|1", "3|1|1"], "merge on write: {merge_on_write}");

        // A row that a load deletes meanwhile is not restored, and nothing is changed.
        let held = Held::new(&[1, 3]);
        updater.send(&format!("UPDATE u SET v = 7 FROM {} WHERE u.k = CAST(h.c1 AS INT)", held.source()));
        wait_until("the UPDATE has begun to read", || held.web.requests() >= 1);
        load(&server, &db.name, "3,1,1\n", &["merge_type:DELETE"]);
        held.release();
        let error = updater.answered_error();
        assert!(error.message.contains("was deleted while the UPDATE ran"), "{error}");
        assert_eq!(db.client.rows("SELECT k, v, w FROM u ORDER BY k"), ["1|2|9", "2|2|1"]);
        // Many columns at once, and all of them.
        assert_eq!(db.client.ok("UPDATE u SET v = w, w = v WHERE k = 1").affected_rows, 1);
        assert_eq!(db.client.rows("SELECT k, v, w FROM u ORDER BY k"), ["1|9|2", "2|2|1"]);
    }
}
