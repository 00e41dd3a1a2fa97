//! Queries whose parts are computed by several engines, which have the data files in common and nothing else.

use crate::common::{Server, rows};
use futures::StreamExt;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::body::Body;
use tributary_query::{Nodes, OUTCOMES, Peer, QueryEngine, QueryOptions, QueryResult, stream_error};
use tributary_types::ErrorCode;

/// An engine that is called over a socket, until it is dropped.
struct Worker {
    nodes: Arc<Nodes>,
    peer: Peer,
    _calls: JoinSet<()>,
}

impl Worker {
    async fn of(engine: &QueryEngine) -> Self {
        let nodes = Arc::clone(engine.nodes());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let peer =
            Peer { host: "127.0.0.1".to_owned(), port, token: format!("token {port}"), certificate: None };
        let (mut calls, answering, token) =
            (JoinSet::new(), Arc::clone(&nodes), format!("Node token {port}"));
        calls.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (nodes, token) = (Arc::clone(&answering), token.clone());
                connections.spawn(async move {
                    let service = service_fn(move |call: hyper::Request<hyper::body::Incoming>| {
                        assert_eq!(call.headers()["authorization"], token);
                        let reply = nodes.answer(call.map(Body::new));
                        async move { Ok::<_, Infallible>(reply.await) }
                    });
                    let connection = http2::Builder::new(TokioExecutor::new());
                    drop(connection.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { nodes, peer, _calls: calls }
    }
}

/// A server, and other engines that compute parts of its queries.
struct Cluster {
    server: Server,
    /// The same tables, on one node.
    alone: QueryEngine,
    others: Vec<QueryEngine>,
    workers: Vec<Worker>,
}

impl Cluster {
    async fn new(partitions: usize, others: usize) -> Self {
        let options = QueryOptions {
            target_partitions: partitions,
            distributed_bytes_min: 1,
            ..QueryOptions::default()
        };
        let server = Server::with_options(options.clone());
        let alone = server.another(QueryOptions { distributed_bytes_min: 0, ..options.clone() });
        let mut workers = vec![Worker::of(&server.engine).await];
        let others: Vec<_> = (0..others).map(|_| server.stranger(options.clone())).collect();
        for other in &others {
            workers.push(Worker::of(other).await);
        }
        let cluster = Self { server, alone, others, workers };
        cluster.hear();
        cluster
    }

    fn hear(&self) {
        for own in &self.workers {
            let others = self.workers.iter().filter(|other| other.peer != own.peer);
            own.nodes.hear(Some(&own.peer), others.map(|other| other.peer.clone()).collect());
        }
    }

    fn count(&self, outcome: &str) -> u64 {
        let place = OUTCOMES.iter().position(|known| *known == outcome).unwrap();
        self.server.engine.nodes().counts()[place]
    }

    async fn run(&mut self, statements: &[&str]) {
        for statement in statements {
            self.server.run(statement).await.unwrap();
        }
    }

    /// The rows of one node, as they come or sorted.
    async fn expected(&self, sql: &str) -> Vec<Vec<String>> {
        let query = tributary_sql::parse_query(sql).unwrap();
        let result = self.alone.query(&self.server.session, &query, &[]).await.unwrap();
        sorted(sql, rows(&crate::common::collect(result).await.unwrap().1))
    }

    /// Compares the rows of a query that is divided with those of one node. Returns why it was not divided.
    async fn compare(&mut self, sql: &str) -> Option<String> {
        let before = self.count("divided");
        let found = sorted(sql, self.server.query(sql, &[]).await.unwrap());
        assert_eq!(found, self.expected(sql).await, "{sql}");
        if self.count("divided") > before {
            return None;
        }
        Some(format!("{sql}\n{}", self.explained(sql).await))
    }

    /// Compares the rows of a query that must be divided.
    async fn check(&mut self, sql: &str) {
        assert_eq!(self.compare(sql).await, None);
    }

    /// A divided query of some ten million rows, of which the first are there.
    async fn endless(&mut self) -> QueryResult {
        let sql =
            "SELECT a.id, b.s, c.x FROM t a JOIN t b ON a.k % 5 = b.k % 5 JOIN t c ON c.k % 5 = a.k % 5";
        let before = self.count("divided");
        let query = tributary_sql::parse_query(sql).unwrap();
        let mut result = self.server.engine.query(&self.server.session, &query, &[]).await.unwrap();
        assert_eq!(self.count("divided"), before + 1, "{}", self.explained(sql).await);
        assert!(result.stream.next().await.unwrap().unwrap().num_rows() > 0);
        result
    }

    /// Waits until the number of parts that others compute for the server is as wanted.
    async fn wait_for_parts(&self, is_wanted: impl Fn(usize) -> bool) {
        let since = Instant::now();
        let parts = || self.workers[1..].iter().map(|worker| worker.nodes.running_parts()).sum();
        while !is_wanted(parts()) {
            assert!(since.elapsed() < Duration::from_secs(60), "{} parts run", parts());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn explained(&mut self, sql: &str) -> String {
        let (_, batches) = self.server.run(&format!("EXPLAIN {sql}")).await.unwrap().unwrap();
        rows(&batches).concat().join("\n")
    }
}

/// The data files that each task of a divided scan reads, from the lines of EXPLAIN.
fn files_of_tasks(plan: &str) -> Vec<BTreeSet<&str>> {
    let tasks = plan.lines().filter(|line| line.contains(": DataSourceExec: file_groups="));
    let is_file = |word: &&str| word.ends_with(".parquet");
    tasks.map(|line| line.split([' ', ',', '[', ']', ':']).filter(is_file).collect()).collect()
}

fn sorted(sql: &str, mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    // An order in parentheses is that of a subquery or a window.
    if !sql.rsplit(')').next().is_some_and(|end| end.contains("ORDER BY")) {
        rows.sort();
    }
    rows
}

/// A table of rows that stay, one of unique keys, and one of names, in files, with deleted rows.
async fn loaded(partitions: usize, others: usize) -> Cluster {
    let mut cluster = Cluster::new(partitions, others).await;
    cluster
        .run(&[
            "CREATE TABLE t (id BIGINT, k INT, x DOUBLE, m DECIMAL(12, 2), s VARCHAR(20), at DATETIME(3)) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM",
            "CREATE TABLE u (id BIGINT, v INT) UNIQUE KEY(id) DISTRIBUTED BY HASH(id)",
            "CREATE TABLE d (k INT, name VARCHAR(20)) DUPLICATE KEY(k) DISTRIBUTED BY RANDOM",
        ])
        .await;
    for part in 0..4 {
        let from = part * 500;
        let rows = format!(
            "SELECT number + {from}, number % 10, number + 0.25, number % 13 + 0.5, \
             IF(number % 7 = 0, NULL, CONCAT('text ', number % 11)), \
             CAST(DATE_ADD('2024-01-01 10:00:00.123', INTERVAL number % 28 DAY) AS DATETIME(3)) FROM numbers(\"number\" = \"500\")"
        );
        let keys =
            format!("SELECT number * {}, number + {part} FROM numbers(\"number\" = \"400\")", part + 1);
        cluster
            .run(&[&format!("INSERT INTO t {rows}"), "FLUSH t", &format!("INSERT INTO u {keys}"), "FLUSH u"])
            .await;
    }
    cluster
        .run(&[
            "INSERT INTO d VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (3, NULL), (20, 'twenty')",
            "FLUSH d",
            "DELETE FROM t WHERE id % 3 = 1",
        ])
        .await;
    cluster
}

const DIVIDED: [&str; 37] = [
    "SELECT COUNT(*), SUM(id), SUM(k), MIN(s), MAX(at), AVG(m) FROM t",
    "SELECT COUNT(*) FROM t WHERE id > 100 AND id < 1900",
    "SELECT k, COUNT(*), SUM(m), COUNT(DISTINCT s) FROM t GROUP BY k ORDER BY k",
    "SELECT s, k, COUNT(*) FROM t WHERE x > 3 GROUP BY s, k",
    "SELECT id, s, at FROM t ORDER BY id LIMIT 17",
    "SELECT id FROM t WHERE s IS NULL",
    "SELECT DISTINCT k FROM t",
    "SELECT COUNT(*), SUM(v) FROM u WHERE v >= 0",
    "SELECT v, COUNT(*) FROM u GROUP BY v HAVING COUNT(*) > 2 ORDER BY v",
    "SELECT d.name, COUNT(*), SUM(t.m) FROM t JOIN d ON t.k = d.k GROUP BY d.name",
    "SELECT d.k, COUNT(t.id) FROM d LEFT JOIN t ON t.k = d.k GROUP BY d.k ORDER BY d.k",
    "SELECT t.k, COUNT(*) FROM t JOIN u ON t.id = u.id GROUP BY t.k ORDER BY t.k",
    "SELECT COUNT(*) FROM t WHERE id IN (SELECT id FROM u WHERE v > 3)",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
    "SELECT COUNT(*) FROM (SELECT k, COUNT(*) c FROM t GROUP BY k) g WHERE c > 100",
    "SELECT t.id, u.v, d.name FROM t JOIN u ON t.id = u.id JOIN d ON t.k = d.k WHERE u.v > 5",
    "SELECT UPPER(s), LENGTH(s), CONCAT(s, '!'), id + 1, m * 2 FROM t WHERE id < 50",
    "SELECT id FROM t WHERE m > (SELECT AVG(m) FROM t)",
    "SELECT k, SUM(m) FROM t GROUP BY k HAVING SUM(m) > (SELECT SUM(m) * 0.09 FROM t) ORDER BY k",
    "SELECT k, SUM(CASE WHEN id % 2 = 0 THEN 1 ELSE 0 END), MAX(IFNULL(s, 'none')) FROM t GROUP BY k",
    "SELECT id, s FROM t WHERE k < 5 ORDER BY id",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM t",
    "SELECT id, k, RANK() OVER (PARTITION BY k ORDER BY m, id), DENSE_RANK() OVER (PARTITION BY k ORDER BY m) FROM t",
    "SELECT id, SUM(m) OVER (PARTITION BY k), COUNT(s) OVER (PARTITION BY k) FROM t",
    "SELECT id, SUM(m) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT id, LAG(id, 2, 7) OVER (PARTITION BY k ORDER BY id), LEAD(s) OVER (PARTITION BY k ORDER BY id) FROM t",
    "SELECT k, SUM(c) OVER (ORDER BY k) FROM (SELECT k, COUNT(*) c FROM t GROUP BY k) g",
    "SELECT id, v, n FROM (SELECT id, v, ROW_NUMBER() OVER (PARTITION BY v % 9 ORDER BY id) n FROM u) r WHERE n <= 2",
    "SELECT k FROM t WHERE id < 500 UNION ALL SELECT k FROM t WHERE id > 1200",
    "SELECT k FROM t WHERE id < 500 UNION SELECT k FROM t WHERE id > 1200",
    "SELECT k FROM t UNION ALL SELECT k FROM d",
    "SELECT s, COUNT(*) FROM (SELECT s, k FROM t UNION ALL SELECT name, k FROM d) x GROUP BY s",
    "SELECT k, id FROM t WHERE id < 9 UNION SELECT v, id FROM u ORDER BY 2, 1",
    "SELECT COUNT(*), SUM(n) FROM (SELECT k + 1 n FROM t WHERE id < 900 UNION ALL SELECT v + 1 FROM u) x",
    "(SELECT id FROM t ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 4)",
    "SELECT id, s FROM t WHERE k = 3 ORDER BY m DESC, id LIMIT 5 OFFSET 3",
    "SELECT id FROM (SELECT id FROM t ORDER BY id LIMIT 100 OFFSET 50) p ORDER BY id DESC LIMIT 7 OFFSET 2",
];

/// Groups of two branches by the same key, which are put together part by part: parts with the same keys would be on several nodes.
const INTERLEAVED: &str =
    "SELECT k, COUNT(*) FROM t GROUP BY k UNION ALL SELECT k, COUNT(*) FROM t WHERE id > 900 GROUP BY k";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_one_node_however_many_parts_there_are() {
    for (partitions, others) in [(1, 1), (2, 2), (6, 2)] {
        let mut cluster = loaded(partitions, others).await;
        let mut whole = Vec::new();
        for query in DIVIDED {
            whole.extend(cluster.compare(query).await);
        }
        assert!(whole.is_empty(), "{}", whole.join("\n"));
        assert_eq!(cluster.count("given_up"), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_groups_are_divided_evenly_among_nodes_and_each_is_read_by_one() {
    let mut cluster = Cluster::new(2, 1).await;
    cluster.run(&["CREATE TABLE r (id BIGINT, s VARCHAR(40)) DUPLICATE KEY(id) DISTRIBUTED BY RANDOM"]).await;
    // Files of one row group.
    for part in 0..4 {
        let rows = format!(
            "SELECT number * 4 + {part}, CONCAT('text ', number) FROM numbers(\"number\" = \"3000\")"
        );
        cluster.run(&[&format!("INSERT INTO r {rows}"), "FLUSH r"]).await;
    }
    let query = "SELECT id % 7, COUNT(*), MAX(s) FROM r GROUP BY id % 7";
    let plan = cluster.explained(query).await;
    let tasks = files_of_tasks(&plan);
    assert_eq!(tasks.iter().map(BTreeSet::len).collect::<Vec<_>>(), [2, 2], "{plan}");
    assert!(tasks[0].is_disjoint(&tasks[1]), "{plan}");
    assert_eq!(cluster.explained(query).await, plan);
    cluster.check(query).await;
    cluster.run(&["DELETE FROM r WHERE id % 3 = 1"]).await;
    cluster.check(query).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_keep_pages_of_parts_in_memory() {
    let mut cluster = loaded(2, 1).await;
    let since = Instant::now();
    // Pages that were read twice are taken in in the background.
    while cluster.others[0].page_cache().hit_bytes == 0 {
        cluster.check("SELECT SUM(x), COUNT(s) FROM t").await;
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", cluster.others[0].page_cache());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_zone_counts_on_all_nodes() {
    let mut cluster = loaded(2, 1).await;
    cluster.server.session.time_zone = "+08:00".to_owned();
    cluster.check("SELECT COUNT(*), MAX(at) FROM t WHERE at > '2024-01-03 00:00:00+02:00'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_in_no_file_are_read_by_one_node() {
    for (partitions, others) in [(1, 1), (2, 2)] {
        let mut cluster = loaded(partitions, others).await;
        // New rows, and newer ones of keys that are in files and in memory.
        for part in 0..3 {
            let rows = format!(
                "SELECT number + {}, number % 10, number + 0.5, number % 13 + 0.5, CONCAT('new ', number % 5), NULL \
                 FROM numbers(\"number\" = \"200\")",
                2000 + part * 200
            );
            let keys =
                format!("SELECT number * {}, number + 100 FROM numbers(\"number\" = \"300\")", part * 3 + 1);
            cluster.run(&[&format!("INSERT INTO t {rows}"), &format!("INSERT INTO u {keys}")]).await;
        }
        cluster
            .run(&[
                "INSERT INTO d VALUES (4, 'four')",
                "CREATE TABLE n (k INT, v INT) DUPLICATE KEY(k) DISTRIBUTED BY RANDOM",
                "INSERT INTO n VALUES (1, 1), (2, 2), (2, 3)",
            ])
            .await;
        let mut whole = Vec::new();
        for query in DIVIDED {
            whole.extend(cluster.compare(query).await);
        }
        // One table has all its rows in memory.
        for query in [
            "SELECT t.k, COUNT(*), SUM(n.v) FROM t JOIN n ON t.k = n.k GROUP BY t.k",
            "SELECT n.k, COUNT(t.id) FROM n LEFT JOIN t ON t.k = n.k GROUP BY n.k",
            "SELECT k FROM n UNION ALL SELECT k FROM t",
        ] {
            whole.extend(cluster.compare(query).await);
        }
        assert!(whole.is_empty(), "{}", whole.join("\n"));
        assert_eq!(cluster.count("given_up"), 0);
        let plan = cluster.explained("SELECT k, COUNT(*) FROM t GROUP BY k").await;
        assert!(
            plan.contains("VersionFiles: db.t, version 5, files 4, with deleted rows 4, rows in no file 600"),
            "{plan}"
        );
        // Their part is read by one task, and the files by all.
        assert_eq!(plan.matches("rows-in-no-file").count(), 1, "{plan}");
        assert!(!plan.contains("DistributedUnionExec"), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_travel_keeps_a_query_on_its_node() {
    let mut cluster = loaded(2, 1).await;
    // Texts of another length than those of `t`.
    cluster
        .run(&[
            "CREATE TABLE w (x VARCHAR(30)) DUPLICATE KEY(x) DISTRIBUTED BY RANDOM",
            "INSERT INTO w VALUES ('text 3'), ('other')",
            "FLUSH w",
        ])
        .await;
    for (query, outcome, reason) in [
        (
            "SELECT id, LAG(s) IGNORE NULLS OVER (ORDER BY id) FROM t",
            "plan",
            "the details of BoundedWindowAggExec",
        ),
        ("SELECT id, COUNT(*) FILTER (WHERE id > 9) OVER (PARTITION BY k) FROM t", "plan", "the details of"),
        ("SELECT s FROM t UNION ALL SELECT x FROM w", "plan", "would not arrive as it is"),
        (INTERLEAVED, "step", "InterleaveExec is a step that does not travel"),
        ("SELECT k, 1 FROM t UNION ALL SELECT k, 2 FROM d", "step", "Unknown is a step that does not travel"),
        ("SELECT COUNT(*) FROM t WHERE id NOT IN (SELECT id FROM u WHERE v > 3)", "step", "does not travel"),
        ("SELECT COUNT(*) FROM t a JOIN t b ON a.id < b.id", "step", "is a step that does not travel"),
        ("SELECT COUNT(*) FROM t WHERE RAND() >= 0", "function", "depends on where it is computed"),
    ] {
        let before = cluster.count(outcome);
        assert_eq!(
            sorted(query, cluster.server.query(query, &[]).await.unwrap()),
            cluster.expected(query).await
        );
        assert_eq!(cluster.count(outcome), before + 1, "{query}");
        let plan = cluster.explained(query).await;
        let first = plan.lines().next().unwrap();
        assert!(first.starts_with("On this node alone: ") && first.contains(reason), "{plan}");
    }
    assert_eq!(cluster.count("divided"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_are_read_from_the_end_are_those_of_one_node() {
    let mut cluster = loaded(2, 1).await;
    // One sort serves both orders, so one of the two is read from the end. Aggregates are written with the frame that follows from that.
    for (query, reason) in [
        (
            "SELECT id, SUM(m) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING), \
             COUNT(s) OVER (PARTITION BY k ORDER BY id DESC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
            None,
        ),
        (
            "SELECT id, COUNT(s) OVER (PARTITION BY k ORDER BY id ROWS UNBOUNDED PRECEDING), \
             COUNT(s) OVER (PARTITION BY k ORDER BY id DESC ROWS UNBOUNDED PRECEDING) FROM t",
            None,
        ),
        (
            "SELECT id, LAG(id) OVER (ORDER BY id), LAG(s) OVER (ORDER BY id DESC) FROM t",
            Some("the details of BoundedWindowAggExec"),
        ),
        (
            "SELECT id, FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY id), \
             FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY id DESC) FROM t",
            Some("the details of WindowAggExec"),
        ),
    ] {
        let plan = cluster.explained(query).await;
        let sorts = plan.matches("Sort by ").count() + plan.matches("SortExec: ").count();
        assert_eq!(sorts, 1, "{plan}");
        match (cluster.compare(query).await, reason) {
            (None, None) => {}
            (Some(stays), Some(reason)) => assert!(stays.contains(reason), "{stays}"),
            (stays, _) => panic!("{query}: {stays:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_costs_no_answer() {
    let mut cluster = loaded(2, 2).await;
    let query = "SELECT k, COUNT(*), SUM(m) FROM t GROUP BY k ORDER BY k";
    cluster.check(query).await;
    // It is still heard of.
    drop(cluster.workers.pop());
    for _ in 0..4 {
        cluster.check(query).await;
    }
    assert!(cluster.count("repeated") <= 1);
    drop(cluster.workers.pop());
    for _ in 0..4 {
        assert_eq!(cluster.server.query(query, &[]).await.unwrap(), cluster.expected(query).await);
    }
    assert_eq!(cluster.count("alone") + cluster.count("given_up"), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_waits_for_a_node_of_which_its_own_has_not_heard_yet() {
    let mut cluster = loaded(2, 2).await;
    // Stages send their rows to each other's nodes.
    let query = "SELECT t.k, COUNT(*) FROM t JOIN u ON t.id = u.id GROUP BY t.k ORDER BY t.k";
    let late: Vec<_> =
        cluster.workers[1..].iter().map(|own| (Arc::clone(&own.nodes), own.peer.clone())).collect();
    late.iter().for_each(|(nodes, own)| nodes.hear(Some(own), Vec::new()));
    let all: Vec<Peer> = cluster.workers.iter().map(|worker| worker.peer.clone()).collect();
    // A part that waits for another node's rows does not end before its node has heard of that one.
    let heard = tokio::spawn(async move {
        while late.iter().all(|(nodes, _)| nodes.running_parts() == 0) {
            tokio::task::yield_now().await;
        }
        for (nodes, own) in &late {
            nodes.hear(Some(own), all.iter().filter(|other| *other != own).cloned().collect());
        }
    });
    cluster.check(query).await;
    heard.await.unwrap();
    assert_eq!((cluster.count("repeated"), cluster.count("failed")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_a_query_whose_rows_nobody_takes_end() {
    let mut cluster = loaded(2, 2).await;
    let rows = cluster.endless().await;
    cluster.wait_for_parts(|parts| parts > 0).await;
    drop(rows);
    cluster.wait_for_parts(|parts| parts == 0).await;
    // The place is free again, too.
    for _ in 0..9 {
        drop(cluster.endless().await);
    }
    cluster.wait_for_parts(|parts| parts == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_lost_after_the_first_rows_is_named_in_our_words() {
    let mut cluster = loaded(2, 1).await;
    let mut rows = cluster.endless().await;
    let lost = cluster.workers.pop().unwrap();
    let address = format!("127.0.0.1:{}", lost.peer.port);
    drop(lost);
    let error = loop {
        match rows.stream.next().await.expect("an error before the end") {
            Ok(_) => {}
            Err(error) => break stream_error(&error),
        }
    };
    assert_eq!(error.code, ErrorCode::Busy, "{error}");
    let wanted = format!(
        "the node {address}, which computed a part of the query, does not answer any more, and rows were sent already. Run the query \
         again: it is then computed without this node"
    );
    assert_eq!(error.detail_text(), wanted);
    assert_eq!(cluster.count("failed"), 1);
    // It is left out at once.
    let query = "SELECT k, COUNT(*) FROM t GROUP BY k ORDER BY k";
    assert_eq!(cluster.server.query(query, &[]).await.unwrap(), cluster.expected(query).await);
    assert_eq!((cluster.count("repeated"), cluster.count("alone")), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_a_divided_query_is_that_of_one_node() {
    let cluster = loaded(2, 1).await;
    let query = "SELECT SUM(CAST(id AS TINYINT)) FROM t";
    let error = cluster.server.query(query, &[]).await.unwrap_err();
    let parsed = tributary_sql::parse_query(query).unwrap();
    let alone = cluster.alone.query(&cluster.server.session, &parsed, &[]).await;
    let alone = crate::common::collect(alone.unwrap()).await.unwrap_err();
    assert_eq!((error.code, error.message), (alone.code, alone.message));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_shows_stages_and_their_figures() {
    let mut cluster = loaded(2, 2).await;
    let plan = cluster.explained("SELECT k, COUNT(*) FROM t GROUP BY k").await;
    assert!(plan.starts_with("Divided among 3 nodes\n"), "{plan}");
    assert!(plan.contains("Stage 1") && plan.contains("VersionFiles: db.t, version"), "{plan}");
    let run = cluster.explained("ANALYZE SELECT k, COUNT(*) FROM t GROUP BY k").await;
    assert!(run.contains("output_rows"), "{run}");
}
