//! The compressed protocol as seen by a client that speaks it byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[allow(dead_code, reason = "other tests use the rest")]
mod fake;

use client::{COMPRESS, Client, Login, compressed_packet, deflate, err_code, frame, is_ok};
use fake::{Server, start, start_with};
use std::time::Duration;
use tributary_mysql::ServeOptions;

async fn connect(server: &Server) -> Client {
    Client::connect(server.address, Login { extra: COMPRESS, ..Login::default() }).await.unwrap()
}

#[tokio::test]
async fn a_client_that_asks_for_compression_gets_it_from_its_first_command_on() {
    let server = start().await;
    let mut client = connect(&server).await;
    client.query_ok("affect 7").await;
    assert_eq!(client.compressed_sequences(), [1]);
    assert_eq!(client.query("three").await.len(), 3);
    assert_eq!(client.compressed_sequences(), [1]);
    client.send(b"\x01").await;
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn commands_are_read_wherever_compressed_packets_and_segments_end() {
    let server = start().await;
    let mut client = connect(&server).await;
    let command = frame(format!("\x03length {}", "x".repeat(500)).as_bytes(), 0);
    let (begin, end) = command.split_at(3);
    let (middle, end) = end.split_at(100);
    let pieces =
        [compressed_packet(0, 0, begin), deflate(middle, 1), compressed_packet(2, 0, b""), deflate(end, 3)];
    client.send_raw(&pieces.concat()).await;
    assert_eq!(client.read_ok().await.affected_rows, 507);
    assert_eq!(client.compressed_sequences(), [4]);
    for byte in pieces.concat() {
        client.send_raw(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.read_ok().await.affected_rows, 507);
    // Several commands in one compressed packet and several packets in one segment.
    let both = [frame(b"\x03affect 1", 0), frame(b"\x03affect 2", 0)].concat();
    client.send_raw(&[deflate(&both, 0), deflate(&frame(b"\x03affect 3", 0), 0)].concat()).await;
    for expected in 1..=3 {
        assert_eq!(client.read_ok().await.affected_rows, expected);
    }
}

#[tokio::test]
async fn a_statement_and_a_value_of_seventeen_megabytes_pass_in_several_compressed_packets() {
    let server = start().await;
    let mut client = connect(&server).await;
    let sql = format!("length {}", "x".repeat(17 << 20));
    client.send(&[&[3], sql.as_bytes()].concat()).await;
    assert_eq!(client.read_ok().await.affected_rows, sql.len() as u64);
    assert_eq!(client.compressed_sequences(), [2]);
    let rows = client.query("repeat 17825792").await;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].len() == 9 + (17 << 20) && rows[0][9..].iter().all(|byte| *byte == b'x'));
    let sequences = client.compressed_sequences();
    let expected: Vec<u8> = (1..=sequences.len() as u8).collect();
    assert_eq!(sequences, expected);
    assert!(client.ping().await);
}

#[tokio::test]
async fn max_allowed_packet_counts_decompressed_bytes() {
    let server = start_with(ServeOptions { max_allowed_packet: 1 << 20, ..ServeOptions::default() }).await;
    let mut client = connect(&server).await;
    let bomb = deflate(&frame(&vec![0; 2 << 20], 0), 0);
    assert!(bomb.len() < 4000);
    client.send_raw(&bomb).await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1153);
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn an_invalid_compressed_packet_is_reported_and_ends_the_connection() {
    let server = start().await;
    let ping = frame(b"\x0e", 0);
    for (bytes, code) in [
        (compressed_packet(0, 5, b"no zlib"), 1157),
        (compressed_packet(0, 6, &deflate(&ping, 0)[7..]), 1157),
        (compressed_packet(3, 0, &ping), 1156),
    ] {
        let mut client = connect(&server).await;
        client.send_raw(&bytes).await;
        assert_eq!(err_code(&client.read().await.unwrap().1), code);
        assert!(client.read().await.is_none());
    }
}

#[tokio::test]
async fn a_user_is_changed_inside_compressed_packets() {
    let server = start().await;
    let mut client = connect(&server).await;
    assert!(is_ok(&client.change_user("alice", "secret").await));
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn a_compressed_packet_that_stops_half_way_ends_its_connection_after_the_timeout() {
    let options = ServeOptions { stall_timeout: Duration::from_millis(30), ..ServeOptions::default() };
    let server = start_with(options).await;
    let whole = deflate(&frame(format!("\x03length {}", "x".repeat(500)).as_bytes(), 0), 0);
    for length in [3, 7, whole.len() - 1] {
        let mut client = connect(&server).await;
        client.send_raw(&whole[..length]).await;
        assert!(client.read().await.is_none());
    }
}

#[tokio::test]
async fn a_client_that_takes_no_compressed_rows_stops_its_statement() {
    let options = ServeOptions { write_timeout: Duration::from_millis(50), ..ServeOptions::default() };
    let server = start_with(options).await;
    let mut client = connect(&server).await;
    client.send(b"\x03endless").await;
    server.fake.until("endless ended 1317").await;
    server.fake.until("close").await;
}

#[tokio::test]
async fn a_stopping_server_informs_a_compressed_client() {
    let server = start().await;
    let mut client = connect(&server).await;
    assert!(client.ping().await);
    server.shutdown.cancel();
    assert_eq!(err_code(&client.read().await.unwrap().1), 1053);
    assert_eq!(client.compressed_sequences(), [1, 1]);
}
