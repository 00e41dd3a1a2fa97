//! Queries whose parts are computed by the nodes of a cluster: moto has the tables, and PostgreSQL the catalog.

use crate::object_storage::{csv, stream_load};
use crate::readers::Cluster;
use crate::support::certificates::Authority;
use crate::support::{Client, Curl, PATIENCE, Server, wait_until};
use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Every query over files is divided.
const ON: [(&str, &str); 2] = [("distributed_query_bytes", "1"), ("arrow_flight_sql_port", "0")];
const OFF: [(&str, &str); 1] = [("distributed_query_bytes", "0")];

const QUERIES: [&str; 12] = [
    "SELECT COUNT(*), SUM(id), MIN(name), MAX(score) FROM dt WHERE id >= 0",
    "SELECT score % 7, COUNT(*), SUM(score) FROM dt GROUP BY score % 7 ORDER BY 1",
    "SELECT COUNT(DISTINCT name) FROM dt",
    "SELECT id, name FROM dt WHERE score > 10 ORDER BY score DESC, id LIMIT 5",
    "SELECT COUNT(*), SUM(v) FROM u WHERE id > 0",
    "SELECT v, COUNT(*) FROM u GROUP BY v ORDER BY v",
    "SELECT COUNT(*), SUM(n) FROM a WHERE id > 0",
    "SELECT u.v, COUNT(*), SUM(dt.score) FROM dt JOIN u ON dt.id = u.id GROUP BY u.v ORDER BY u.v",
    "SELECT COUNT(*) FROM dt LEFT JOIN a ON dt.id = a.id WHERE a.n IS NULL",
    "SELECT COUNT(*) FROM dt WHERE id NOT IN (SELECT id FROM u)",
    "SELECT dt.id, u.v, a.n FROM dt JOIN u ON dt.id = u.id JOIN a ON a.id = u.id ORDER BY dt.id LIMIT 20",
    "SELECT UPPER(name), score * 2 FROM dt WHERE id IN (7, 8, 9) ORDER BY id",
];

/// A writer with tables of all kinds that have deleted rows, all in files.
fn writer(cluster: &Cluster, more: &[(&str, &str)]) -> Server {
    let writer = cluster.server(more).with_manual_table();
    let mut client = writer.connect_to("db");
    client.ok("CREATE TABLE u (id INT NOT NULL, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok(
        "CREATE TABLE a (id INT NOT NULL, n BIGINT SUM) AGGREGATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    for part in 0..4_u64 {
        stream_load(&writer, "dt", "off_mode", &csv(part * 2000, 2000));
        let pairs = |from: u64| {
            (from..from + 300).map(|id| format!("({id}, {})", id % 5 + part)).collect::<Vec<_>>().join(", ")
        };
        client.ok(&format!("INSERT INTO u VALUES {}", pairs(part * 100)));
        client.ok(&format!("INSERT INTO a VALUES {}", pairs(part * 50)));
        client.ok("SYNC");
    }
    client.ok("DELETE FROM dt WHERE id % 3 = 1");
    client.ok("DELETE FROM u WHERE id % 11 = 0");
    client.ok("SYNC");
    writer
}

fn divided(server: &Server) -> f64 {
    server.metric("tributary_distributed_queries_total{outcome=\"divided\"}")
}

/// The rows of a query, once it was divided: on a loaded machine a node that does not answer in time is left out for a while.
fn rows_when_divided(server: &Server, client: &mut Client, query: &str) -> Vec<String> {
    let mut rows = Vec::new();
    wait_until("a query is divided", || {
        let before = divided(server);
        rows = client.rows(query);
        divided(server) > before
    });
    rows
}

/// Waits until queries of a node are divided among that number.
fn wait_for_nodes(client: &mut Client, nodes: usize) {
    let wanted = format!("Divided among {nodes} nodes");
    wait_until("queries are divided", || {
        client.rows("EXPLAIN SELECT COUNT(*) FROM dt WHERE id >= 0").first() == Some(&wanted)
    });
}

#[test]
fn a_cluster_answers_like_one_node() {
    let cluster = Cluster::new();
    let writer = writer(&cluster, &[]);
    let alone = cluster.reader(&OFF);
    let (first, second) = (cluster.reader(&ON), cluster.reader(&ON));
    let (mut of_alone, mut of_first) = (alone.connect_to("db"), first.connect_to("db"));
    for client in [&mut of_alone, &mut of_first] {
        client.ok("SYNC");
    }
    wait_for_nodes(&mut of_first, 2);
    for query in QUERIES {
        // NOT IN is a nested loop here, which does not travel.
        let rows = match query.contains("NOT IN") {
            true => of_first.rows(query),
            false => rows_when_divided(&first, &mut of_first, query),
        };
        assert_eq!(rows, of_alone.rows(query), "{query}");
    }
    let mut of_second = second.connect_to("db");
    wait_for_nodes(&mut of_second, 2);
    of_second.ok("SYNC");
    for query in QUERIES {
        assert_eq!(of_second.rows(query), of_alone.rows(query), "{query}");
    }
    // Both saw what the writer has changed meanwhile.
    let mut client = writer.connect_to("db");
    client.ok("DELETE FROM dt WHERE id % 5 = 0");
    client.ok("UPDATE u SET v = v + 1 WHERE id < 200");
    client.ok("SYNC");
    for client in [&mut of_alone, &mut of_first] {
        client.ok("SYNC");
    }
    for query in QUERIES {
        assert_eq!(of_first.rows(query), of_alone.rows(query), "{query}");
    }
    let plan = of_first.rows("EXPLAIN ANALYZE SELECT name, COUNT(*) FROM dt GROUP BY name").join("\n");
    assert!(plan.contains("Stage 1") && plan.contains("VersionFiles: db.dt"), "{plan}");
}

#[test]
fn nodes_that_are_killed_during_queries_make_no_answer_wrong() {
    let cluster = Cluster::new();
    let _writer = writer(&cluster, &[]);
    let coordinator = cluster.reader(&ON);
    let mut others = [cluster.reader(&ON), cluster.reader(&ON)];
    let mut client = coordinator.connect_to("db");
    client.ok("SYNC");
    let query =
        "SELECT u.v, COUNT(*), SUM(dt.score) FROM dt JOIN u ON dt.id = u.id GROUP BY u.v ORDER BY u.v";
    wait_for_nodes(&mut client, 3);
    let expected = client.rows(query);
    assert!(!expected.is_empty());
    for round in 0..3 {
        let (is_over, answers) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = coordinator.connect_to("db");
                while !is_over.load(Ordering::Relaxed) {
                    let found = client.try_rows(query);
                    answers.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(found, Ok(expected.clone()), "round {round}");
                }
            });
            let wait_for = |more: u32| {
                let wanted = answers.load(Ordering::Relaxed) + more;
                wait_until("more answers", || answers.load(Ordering::Relaxed) >= wanted);
            };
            wait_for(2);
            others[round % 2].kill();
            wait_for(3);
            is_over.store(true, Ordering::Relaxed);
        });
        others[round % 2].start_again();
        wait_for_nodes(&mut client, 3);
    }
    for other in &mut others {
        other.kill();
    }
    assert_eq!(client.rows(query), expected, "it is alone");
}

#[test]
fn who_knows_no_token_computes_nothing_on_a_node() {
    let cluster = Cluster::new();
    let _writer = writer(&cluster, &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let of_authority = Authority::new(directory.path()).settings();
    let of_authority = of_authority.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let tls: Vec<(&str, &str)> = ON.into_iter().chain(of_authority).collect();
    let (first, second) = (cluster.reader(&tls), cluster.reader(&tls));
    let mut client = first.connect_to("db");
    client.ok("SYNC");
    wait_for_nodes(&mut client, 2);
    // By TLS.
    assert_eq!(rows_when_divided(&first, &mut client, "SELECT COUNT(*) FROM dt WHERE id >= 0"), ["5333"]);
    for token in ["Node", "Node 00ff", "Bearer x"] {
        let url = format!("http://127.0.0.1:{}/worker.WorkerService/GetWorkerInfo", second.flight_port());
        let call = Curl::anonymous(&url).argument("--http2-prior-knowledge").argument("--include");
        let call = call.argument("-X").argument("POST").header("content-type: application/grpc");
        let head = call.header(&format!("authorization: {token}")).text();
        assert!(head.contains("grpc-status: 16"), "{token}: {head}");
    }
    let shown = client.rows("SELECT * FROM information_schema.nodes").join("\n");
    assert!(shown.lines().all(|row| !row.split('|').any(|cell| cell.len() == 64)), "{shown}");
}

/// Some thousand million pairs.
const PAIRS: &str =
    "FROM spread x JOIN spread y ON x.score % 7 = y.score % 7 JOIN spread z ON z.score % 7 = x.score % 7";

/// Parts of others' queries that a node computes.
fn parts(server: &Server) -> f64 {
    server.metric("tributary_distributed_parts_running ")
}

/// A table of a file for each of many partitions, which no compaction merges: however the bytes are divided, each node has rows of some.
fn make_spread_table(writer: &Server) {
    const PARTITIONS: u64 = 32;
    const ROWS: u64 = 250;
    let partition = |part| format!("PARTITION p{part} VALUES LESS THAN ('{}')", (part + 1) * ROWS);
    let partitions = (0..PARTITIONS).map(partition).collect::<Vec<_>>().join(", ");
    writer.connect_to("db").ok(&format!(
        "CREATE TABLE spread (id INT NOT NULL, name VARCHAR(20), score INT) DUPLICATE KEY(id) \
         PARTITION BY RANGE(id) ({partitions}) DISTRIBUTED BY HASH(id) BUCKETS 1"
    ));
    stream_load(writer, "spread", "off_mode", &csv(0, PARTITIONS * ROWS));
}

/// Sends a query that has no end, as far as a test can tell, and waits until a part of it runs on the other node.
fn send_divided(client: &mut Client, second: &Server, sql: &str) {
    client.send(sql);
    wait_until("a part of it runs on the other node", || parts(second) > 0.0);
}

/// Time that a process has had a processor, in ticks of a hundredth of a second.
fn ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process_id())).expect("/proc");
    let (_, after_name) = stat.rsplit_once(") ").expect("a name");
    let fields: Vec<&str> = after_name.split(' ').collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().expect("ticks")).sum()
}

#[test]
fn a_killed_query_that_is_divided_ends_on_all_nodes() {
    let cluster = Cluster::new();
    let writer = writer(&cluster, &[]);
    make_spread_table(&writer);
    let (first, second) = (cluster.reader(&ON), cluster.reader(&ON));
    let mut client = first.connect_to("db");
    client.ok("SYNC");
    wait_for_nodes(&mut client, 2);
    let id = client.value("SELECT CONNECTION_ID()");
    let query = format!("SELECT COUNT(*), SUM(x.score * y.score) {PAIRS}");
    send_divided(&mut client, &second, &query);
    let mut other = first.connect_to("db");
    let begun = Instant::now();
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(client.answered_error().number, 1317);
    wait_until("no part of it is left", || parts(&second) == 0.0);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let (rested, before) = (Instant::now(), ticks(&second));
    // A hundredth of a second each. One that went on computing would take most of them.
    wait_until("the other node rests", || {
        let passed = rested.elapsed().as_millis() / 10;
        passed > 100 && u128::from(ticks(&second) - before) < passed / 4
    });
    assert_eq!(client.value("SELECT 1"), "1");
}

/// Docs name the bound: a frozen node is noticed after 20 s, and asked for 3 s whether it is there.
const NOTICED: Duration = Duration::from_secs(23);

#[test]
fn a_frozen_node_delays_a_query_and_does_not_hinder_it() {
    let cluster = Cluster::new();
    let _writer = writer(&cluster, &[]);
    let (first, second) = (cluster.reader(&ON), cluster.reader(&ON));
    let third = cluster.reader(&ON);
    let mut client = first.connect_to("db");
    client.ok("SYNC");
    wait_for_nodes(&mut client, 3);
    let query =
        "SELECT u.v, COUNT(*), SUM(dt.score) FROM dt JOIN u ON dt.id = u.id GROUP BY u.v ORDER BY u.v";
    let expected = rows_when_divided(&first, &mut client, query);
    let repeated = || first.metric("tributary_distributed_queries_total{outcome=\"repeated\"}");
    let before = repeated();
    second.signal("STOP");
    let begun = Instant::now();
    assert_eq!(client.rows(query), expected);
    // The machine may be loaded: the query itself may take some seconds.
    assert!(begun.elapsed() < NOTICED + Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(repeated(), before + 1.0, "the rest of the nodes computes it");
    // It is left out, and then not heard of any more.
    let begun = Instant::now();
    assert_eq!(client.rows(query), expected);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    second.signal("CONT");
    wait_for_nodes(&mut client, 3);
    assert_eq!(rows_when_divided(&first, &mut client, query), expected);
    drop(third);
}

#[test]
fn a_query_whose_node_is_killed_after_the_first_rows_fails_in_our_words() {
    let cluster = Cluster::new();
    let writer = writer(&cluster, &[]);
    make_spread_table(&writer);
    let (first, mut second) = (cluster.reader(&ON), cluster.reader(&ON));
    let mut client = first.connect_to("db");
    client.ok("SYNC");
    wait_for_nodes(&mut client, 2);
    let query = format!("SELECT x.id, REPEAT(y.name, 1000), z.score {PAIRS}");
    send_divided(&mut client, &second, &query);
    let mut answer = client.into_stream();
    // Rows, and not only the names of their columns.
    read_past(&mut answer, |bytes, _| bytes > 100_000);
    let failed = |server: &Server| server.metric("tributary_distributed_queries_total{outcome=\"failed\"}");
    let failed_before = failed(&first);
    let port = second.flight_port();
    second.kill();
    let wanted =
        format!("the node 127.0.0.1:{port}, which computed a part of the query, does not answer any more");
    let error = read_past(&mut answer, |_, tail| tail.contains("Run the query again"));
    assert!(error.contains(&wanted), "{error}");
    // The number is before the state.
    assert!(error.contains("\u{4}#HY000"), "{error}");
    assert_eq!(failed(&first), failed_before + 1.0);
    let mut client = first.connect_to("db");
    assert_eq!(client.value("SELECT COUNT(*) FROM dt WHERE id >= 0"), "5333", "the others answer");
}

/// Reads an answer until the number of bytes and the last ones are as wanted, and returns these. Answers may be longer than memory.
///
/// # Panics
/// If that takes two minutes.
fn read_past(answer: &mut TcpStream, is_wanted: impl Fn(usize, &str) -> bool) -> String {
    const TAIL_BYTES: usize = 4096;
    answer.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let (begun, mut bytes, mut tail, mut chunk) = (Instant::now(), 0, Vec::new(), vec![0; 1 << 16]);
    loop {
        assert!(begun.elapsed() < PATIENCE, "after {bytes} bytes: {}", String::from_utf8_lossy(&tail));
        let read = answer.read(&mut chunk).expect("the server answers");
        assert!(read > 0, "the answer ended after {bytes} bytes: {}", String::from_utf8_lossy(&tail));
        bytes += read;
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        let text = String::from_utf8_lossy(&tail);
        if is_wanted(bytes, &text) {
            return text.into_owned();
        }
    }
}
