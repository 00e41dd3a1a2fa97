//! Nodes that only read and ask the server that writes for the rows that are not in files.

use crate::object_storage::{csv, stream_load, sums};
use crate::readers::Cluster;
use crate::support::programs::script;
use crate::support::{Client, Curl, Server, wait_until};
use crate::takeover::successor;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A writer that leaves rows in memory, and a reader that may ask it.
fn nodes(cluster: &Cluster, of_reader: &[(&str, &str)]) -> (Server, Server) {
    let writer = cluster.server(&[("arrow_flight_sql_port", "0"), ("flush_age_ms", "3600000")]);
    let writer = writer.with_manual_table();
    let reader = cluster.reader(of_reader);
    wait_until("the reader has heard of the writer", || asks(&mut reader.connect_to("db")));
    (writer, reader)
}

/// Whether the reader's rows are the writer's.
fn asks(client: &mut Client) -> bool {
    client.value("SELECT COUNT(*) FROM dt");
    client.rows("SHOW WARNINGS").is_empty()
}

#[track_caller]
fn assert_same(writer: &mut Client, reader: &mut Client, queries: &[&str]) {
    for query in queries {
        assert_eq!(reader.rows(query), writer.rows(query), "{query}");
    }
}

#[test]
fn a_reader_shows_rows_that_are_in_memory_of_the_writer() {
    let cluster = Cluster::new();
    let (writer, reader) = nodes(&cluster, &[]);
    let (mut client, mut of_reader) = (writer.connect_to("db"), reader.connect_to("db"));
    client.ok("CREATE TABLE u (id INT NOT NULL, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok(
        "CREATE TABLE a (id INT NOT NULL, n BIGINT SUM) AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    client.ok(
        "CREATE TABLE p (id INT NOT NULL, v INT, m ARRAY<INT>) DUPLICATE KEY(id) \
         PARTITION BY RANGE(id) (PARTITION low VALUES LESS THAN (\"10\"), PARTITION high VALUES LESS THAN (\"100\")) \
         DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    of_reader.ok("SYNC");
    let queries = [
        "SELECT COUNT(*), COUNT(DISTINCT id), SUM(score) FROM dt",
        "SELECT * FROM u ORDER BY id",
        "SELECT * FROM a ORDER BY id",
        "SELECT * FROM p ORDER BY id, v",
        "SELECT * FROM p PARTITION(low) ORDER BY id",
        "SELECT dt.id, u.v FROM dt JOIN u ON dt.id = u.id ORDER BY dt.id",
    ];
    for round in 0..4 {
        stream_load(&writer, "dt", "sync_mode", &csv(round * 100, 100));
        client.ok(&format!("INSERT INTO u VALUES (1, {round}), (2, {round}), ({}, {round})", 10 + round));
        client.ok(&format!("INSERT INTO a VALUES (1, 5), ({round}, 1)"));
        client.ok(&format!("INSERT INTO p VALUES ({round}, 0, [1, {round}]), ({}, 1, NULL)", 50 + round));
        client.ok("SYNC");
        assert_same(&mut client, &mut of_reader, &queries);
        client.ok(&format!("DELETE FROM dt WHERE id = {}", 10 + round));
        client.ok("UPDATE u SET v = v + 10 WHERE id = 2");
        client.ok("DELETE FROM u WHERE id = 10");
        assert_same(&mut client, &mut of_reader, &queries);
        assert!(of_reader.rows("SHOW WARNINGS").is_empty(), "they are the writer's rows");
        if round == 1 {
            // Files of a load that no log has yet, and rows in memory after them.
            stream_load(&writer, "dt", "off_mode", &csv(10_000, 5000));
        }
    }
    // A definition counts at once, however old the one of the catalog is.
    client.ok("ALTER TABLE u ADD COLUMN w INT DEFAULT '7'");
    client.ok("INSERT INTO u VALUES (100, 1, 2)");
    client.ok("ALTER TABLE p DROP PARTITION low FORCE");
    client.ok("SYNC");
    assert_same(
        &mut client,
        &mut of_reader,
        &["SELECT id, v, w FROM u ORDER BY id", "SELECT * FROM p ORDER BY id"],
    );
    client.ok("TRUNCATE TABLE a");
    assert_same(&mut client, &mut of_reader, &["SELECT * FROM a"]);
    stream_load(&writer, "dt", "sync_mode", &csv(60_000, 10));
    let plan = of_reader.rows("EXPLAIN SELECT COUNT(*) FROM dt WHERE id > 5").join("\n");
    assert!(plan.contains("10 rows in memory"), "{plan}");
    // What is younger than this need not be asked for.
    of_reader.ok("SET query_freshness_tolerance_ms = 3600000");
    let before = of_reader.value("SELECT COUNT(*) FROM dt");
    stream_load(&writer, "dt", "sync_mode", &csv(50_000, 10));
    assert_eq!(of_reader.value("SELECT COUNT(*) FROM dt"), before);
    of_reader.ok("SYNC");
    assert_same(&mut client, &mut of_reader, &["SELECT COUNT(*) FROM dt"]);
}

#[test]
fn a_reader_waits_for_receipts() {
    let cluster = Cluster::new();
    let (writer, reader) = nodes(&cluster, &[]);
    let mut client = writer.connect_to("db");
    client.ok("CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '1500')");
    client.ok("SET group_commit = 'async_mode'");
    let mut of_reader = reader.connect_to("db");
    let receipt = client.ok("INSERT INTO t VALUES (1)").info_value("txnId").to_owned();
    // The table is younger than the reader's last look at the catalog.
    of_reader.ok(&format!("SYNC '{receipt}'"));
    assert_eq!(of_reader.value("SELECT COUNT(*) FROM t"), "1");
    let receipt = client.ok("INSERT INTO t VALUES (2)").info_value("txnId").to_owned();
    assert_eq!(of_reader.value("SELECT COUNT(*) FROM t"), "1", "the group is open");
    of_reader.ok(&format!("SET read_after = {receipt}"));
    assert_eq!(of_reader.value("SELECT COUNT(*) FROM t"), "2");
    of_reader.ok("SET read_after = 0");
    client.ok("INSERT INTO t VALUES (3)");
    of_reader.ok("SYNC");
    assert_eq!(of_reader.value("SELECT COUNT(*) FROM t"), "3", "it was acknowledged");
    of_reader.refused("SYNC 1000000", 1210, "receipt 1000000 is of no transaction");
    client.ok("CREATE USER eve");
    of_reader.ok("SYNC");
    let mut eve = Client::connect_as("eve", reader.mysql_port()).expect("a user without a password");
    eve.refused(&format!("SYNC {receipt}"), 1210, "that you may see");
    // By HTTP, as a client has it that sends its receipt with each query.
    let answer = Curl::stream_load(&writer, "db", "t").header("group_commit: async_mode").body("4\n").load();
    let url = format!("http://127.0.0.1:{}/api/query/default_cluster/db", reader.http_port());
    let file = reader.scratch().join("statement.json");
    std::fs::write(&file, r#"{"stmt":"SELECT COUNT(*) FROM t"}"#).expect("written");
    let asked = Curl::as_user("root:", &url).header(&format!("read_after: {}", answer.get("TxnId")));
    let text = asked.argument("-X").argument("POST").file(&file).text();
    assert!(text.contains("[[4]]"), "{text}");
}

#[test]
fn a_reader_that_loses_the_writer_says_how_old_its_rows_are() {
    let cluster = Cluster::new();
    let (mut writer, reader) = nodes(&cluster, &[("max_staleness_second", "60")]);
    let mut of_reader = reader.connect_to("db");
    stream_load(&writer, "dt", "sync_mode", &csv(0, 100));
    assert_eq!(sums(&mut of_reader, "dt"), "100|100|4950");
    writer.signal("STOP");
    let asked = Instant::now();
    assert_eq!(sums(&mut of_reader, "dt"), "100|100|4950", "what was shown once stays");
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    let warnings = of_reader.rows("SHOW WARNINGS").join("\n");
    assert!(warnings.contains("the rows of 'db.dt' are ") && warnings.contains(" s old: "), "{warnings}");
    of_reader.refused("SYNC 1", 1205, "the server that writes can't be asked");
    writer.signal("CONT");
    wait_until("it answers again", || asks(&mut of_reader));
    writer.kill();
    assert_eq!(sums(&mut of_reader, "dt"), "100|100|4950");
    assert!(!asks(&mut of_reader));
    writer.start_again();
    stream_load(&writer, "dt", "sync_mode", &csv(100, 100));
    wait_until("it asks the new process", || asks(&mut of_reader));
    assert_eq!(sums(&mut of_reader, "dt"), "200|200|19900");
}

#[test]
fn a_reader_asks_the_successor_and_not_a_writer_that_wakes() {
    let cluster = Cluster::new();
    let more = [("arrow_flight_sql_port", "0"), ("flush_age_ms", "3600000")];
    let former = cluster.server(&more).with_manual_table();
    let reader = cluster.reader(&[]);
    let mut client = reader.connect_to("db");
    wait_until("the reader has heard of the writer", || asks(&mut client));
    stream_load(&former, "dt", "sync_mode", &csv(0, 100));
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "100");
    let later = successor(&cluster, &former, &more);
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "100");
    stream_load(&later, "dt", "sync_mode", &csv(100, 100));
    wait_until("the reader asks the successor", || asks(&mut client));
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "200");
    former.signal("CONT");
    let woken = Instant::now();
    for round in 2.. {
        stream_load(&later, "dt", "sync_mode", &csv(round * 100, 100));
        assert_eq!(client.value("SELECT COUNT(*) FROM dt"), ((round + 1) * 100).to_string());
        assert!(client.rows("SHOW WARNINGS").is_empty(), "it asks the successor still");
        if woken.elapsed() > Duration::from_secs(8) {
            break;
        }
    }
}

#[test]
fn every_acknowledged_row_is_shown_by_readers_at_once() {
    let cluster = Cluster::new();
    let writer =
        cluster.server(&[("arrow_flight_sql_port", "0"), ("flush_age_ms", "300")]).with_manual_table();
    let readers = [cluster.reader(&[]), cluster.reader(&[])];
    for reader in &readers {
        wait_until("it asks the writer", || asks(&mut reader.connect_to("db")));
    }
    let acknowledged = AtomicU64::new(0);
    let is_done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let loads = scope.spawn(|| {
            for round in 0..60 {
                stream_load(&writer, "dt", "sync_mode", &csv(round * 20, 20));
                acknowledged.fetch_add(20, Ordering::SeqCst);
            }
            is_done.store(1, Ordering::SeqCst);
        });
        for reader in readers.iter().cycle().take(6) {
            let (acknowledged, is_done) = (&acknowledged, &is_done);
            scope.spawn(move || {
                let mut client = reader.connect_to("db");
                let mut before = 0;
                while is_done.load(Ordering::SeqCst) == 0 {
                    let expected = acknowledged.load(Ordering::SeqCst);
                    let found = client.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM dt").remove(0);
                    let (rows, ids) = found.split_once('|').expect("two columns");
                    let count: u64 = rows.parse().expect("a number");
                    assert_eq!(rows, ids, "no row is there twice");
                    assert!(count >= expected.max(before), "{count} rows, and {expected} were acknowledged");
                    assert_eq!(count % 20, 0, "a load is there whole");
                    before = count;
                }
            });
        }
        loads.join().expect("the loads succeed");
    });
    assert_eq!(sums(&mut readers[0].connect_to("db"), "dt"), "1200|1200|719400");
}

#[test]
fn the_measurement_of_a_readers_lag_finds_each_row_by_one_question() {
    let finished = script("reader-lag", &["--seconds", "2", "--rounds", "1"]);
    assert!(finished.is_success, "{finished:?}");
    let questions = "most questions of the reader until it had a row that was acknowledged: 1\n";
    assert!(finished.stdout.contains(questions), "{finished:?}");
}
