//! Connections: refused bodies, slow clients, limits, shutdown.

use crate::client::{Client, ROOT};
use crate::fake::{start, start_with};
use std::time::Duration;
use tributary_http::HttpOptions;
use tributary_types::Live;

#[tokio::test]
async fn a_refused_body_is_drained_and_the_connection_kept() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("no_such", &[], vec![b'x'; 4 * 1024 * 1024]).await;
    answer.fails_with("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Unknown table 'no_such'");
    assert!(!answer.closes());
    assert_eq!(client.load("t", &[], "1\n").await.json()["Status"], "Success");
}

#[tokio::test]
async fn a_client_that_sends_a_huge_refused_body_before_it_reads_gets_the_answer() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("no_such", &[], vec![b'x'; 48 * 1024 * 1024]).await;
    answer.fails_with("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Unknown table 'no_such'");
    assert!(answer.closes());
    client.closed().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let one = |label: &str| {
        format!(
            "PUT /api/db/t/_stream_load HTTP/1.1\r\nHost: localhost\r\n{ROOT}\r\nlabel: {label}\r\nContent-Length: 2\r\n\r\n1\n"
        )
    };
    client.send([one("a"), one("b"), one("c")].concat()).await;
    for label in ["a", "b", "c"] {
        assert_eq!(client.answer().await.json()["Label"], label);
    }
}

#[tokio::test]
async fn a_head_that_never_arrives_closes_the_connection() {
    let options =
        HttpOptions { head_timeout: Live::new(Duration::from_millis(500)), ..HttpOptions::default() };
    let running = start_with(options).await;
    let mut client = Client::connect(running.address).await;
    client.send("PUT /api/db/t/_stream_load HTTP/1.1\r\nHost:").await;
    client.closed().await;
    let mut silent = Client::connect(running.address).await;
    silent.closed().await;
    let mut second = Client::connect(running.address).await;
    second.load("t", &[], "1\n").await;
    // One that came later and is silent is closed: the time for a head is over, and the second one is idle, not late.
    Client::connect(running.address).await.closed().await;
    second.load("t", &[], "1\n").await;
    second.send("PUT /api/db/t/_stream_load HTTP/1.1\r\nHost:").await;
    second.closed().await;
}

#[tokio::test]
async fn a_connection_without_another_request_is_closed_in_the_end() {
    let options = HttpOptions { idle_timeout: Duration::from_millis(50), ..HttpOptions::default() };
    let running =
        start_with(HttpOptions { head_timeout: Live::new(Duration::from_secs(1)), ..options }).await;
    let mut client = Client::connect(running.address).await;
    client.load("t", &[], "1\n").await;
    client.closed().await;
}

#[tokio::test]
async fn clients_that_only_begin_shut_nobody_out() {
    let options = HttpOptions {
        max_connections: Live::new(4),
        max_connections_of_address: Live::new(4),
        ..HttpOptions::default()
    };
    let running = start_with(options).await;
    let mut halves = Vec::new();
    for _ in 0..4 {
        let mut half = Client::connect(running.address).await;
        half.send("GET / HTTP/1.1\r\n").await;
        halves.push(half);
    }
    let mut idle = Client::connect(running.address).await;
    assert_eq!(idle.ask("GET /").await.status, 200);
    let mut client = Client::connect(running.second_address).await;
    assert_eq!(client.load("t", &[], "1\n").await.json()["Status"], "Success");
    // The oldest two have made room.
    halves[0].closed().await;
    halves[1].closed().await;
    assert_eq!(client.load("t", &[], "1\n").await.json()["Status"], "Success");
}

#[tokio::test]
async fn probes_are_answered_while_requests_are_served_on_all_connections() {
    let options = HttpOptions {
        max_connections: Live::new(2),
        max_connections_beyond: 2,
        place_timeout: Duration::from_millis(100),
        ..HttpOptions::default()
    };
    let running = start_with(options).await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(running.address).await;
        client.head("PUT /api/db/gated/_stream_load", &[ROOT, "Content-Length: 2"]).await;
        busy.push(client);
    }
    while running.fake.loads.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    for path in ["/api/health", "/api/ready", "/metrics"] {
        let mut probe = Client::connect(running.address).await;
        probe.head(&format!("GET {path}"), &[]).await;
        let answer = probe.answer().await;
        assert!(answer.status == 200 && answer.closes(), "{path}: {answer:?}");
    }
    let mut load = Client::connect(running.address).await;
    let answer = load.load("t", &[], "1\n").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
    answer.fails_with(
        "[SERVICE_UNAVAILABLE]too many connections: requests are being served on all 2 (http_max_connections), or on all 3072 of \
         this address (http_max_connections_per_address); try it again later",
    );
    load.closed().await;
    let mut other = Client::connect(running.address).await;
    other.head("GET /api/backends", &[ROOT]).await;
    let answer = other.answer().await;
    assert_eq!((answer.status, &answer.json()["code"]), (503, &503.into()));
    running.fake.gate.add_permits(2);
    for client in &mut busy {
        client.send("1\n").await;
        assert_eq!(client.answer().await.json()["Status"], "Success");
    }
}

#[tokio::test]
async fn long_heads_share_a_bounded_memory() {
    let options = HttpOptions { max_heads_bytes: 256 * 1024, ..HttpOptions::default() };
    let running = start_with(options).await;
    let mut long = Client::connect(running.address).await;
    let header = format!("x: {}", "y".repeat(200_000));
    long.send(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}")).await;
    // It is being read while the next one asks for memory.
    let mut refused = 0;
    while refused == 0 {
        let mut another = Client::connect(running.address).await;
        another.head("GET /metrics", &[&header]).await;
        refused = usize::from(another.ended().await);
    }
    let mut short = Client::connect(running.address).await;
    assert_eq!(short.ask("GET /metrics").await.status, 200, "short heads need none of it");
    long.send("\r\n\r\n").await;
    assert_eq!(long.answer().await.status, 200);
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_431_and_a_length_that_is_no_number_400() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let long = format!("sql: {}", "x".repeat(300_000));
    client.head("PUT /api/_http_stream", &[ROOT, &long]).await;
    assert_eq!(client.answer().await.status, 431);
    let mut client = Client::connect(running.address).await;
    client.head("PUT /api/db/t/_stream_load", &[ROOT, "Content-Length: ten"]).await;
    assert_eq!(client.answer().await.status, 400);
}

#[tokio::test]
async fn one_connection_more_than_the_limit_waits_for_another_to_end_on_any_port() {
    let running = start_with(HttpOptions { max_connections: Live::new(1), ..HttpOptions::default() }).await;
    let mut first = Client::connect(running.address).await;
    first.load("t", &[], "1\n").await;
    let mut second = Client::connect(running.second_address).await;
    let waiting = tokio::spawn(async move { second.load("t", &[], "1\n").await });
    first.load("t", &[], "1\n").await;
    assert_eq!(running.fake.loads.lock().unwrap().len(), 2, "the second connection waits");
    drop(first);
    assert_eq!(waiting.await.unwrap().json()["Status"], "Success");
}

#[tokio::test]
async fn shutdown_finishes_loads_in_flight_and_closes_idle_connections() {
    let running = start().await;
    let mut idle = Client::connect(running.address).await;
    idle.load("t", &[], "1\n").await;
    let mut busy = Client::connect(running.address).await;
    busy.head("PUT /api/db/t/_stream_load", &[ROOT, "Expect: 100-continue", "Content-Length: 2"]).await;
    assert_eq!(busy.answer().await.status, 100, "the load has begun");
    running.shutdown.cancel();
    idle.closed().await;
    busy.send("1\n").await;
    assert_eq!(busy.answer().await.json()["Status"], "Success");
    running.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_cuts_off_loads_that_outlive_its_grace_and_no_body_ends_as_if_whole() {
    for length in ["Content-Length: 4", "Transfer-Encoding: chunked"] {
        let options = HttpOptions { shutdown_grace: Duration::from_millis(20), ..HttpOptions::default() };
        let mut running = start_with(options).await;
        let mut client = Client::connect(running.address).await;
        client.head("PUT /api/db/t/_stream_load", &[ROOT, "Expect: 100-continue", length]).await;
        assert_eq!(client.answer().await.status, 100);
        client.send("2\r\n").await;
        running.shutdown.cancel();
        running.server.await.unwrap().unwrap();
        let seen = running.seen.recv().await.unwrap();
        assert!(seen.error.is_some(), "the load was told that its body will not come: {length}");
        client.closed().await;
    }
}
