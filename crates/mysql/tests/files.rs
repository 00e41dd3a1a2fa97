//! Files requested from the client, by a client that speaks the protocol byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[allow(dead_code, reason = "other tests use the rest")]
mod fake;

use client::{COMPRESS, Client, Login, deflate, err_code, frame, is_err};
use fake::{Server, start, start_with};
use std::time::Duration;
use tributary_mysql::{CapabilityFlags, ServeOptions};

const LOCAL_FILES: CapabilityFlags = CapabilityFlags::CLIENT_LOCAL_FILES;

async fn connect(server: &Server, extra: CapabilityFlags) -> Client {
    let login = Login { extra: LOCAL_FILES.union(extra), ..Login::default() };
    Client::connect(server.address, login).await.unwrap()
}

/// The packets of a file, which follow the server's request, with the empty one that ends it.
fn packets(pieces: &[&[u8]]) -> Vec<u8> {
    let pieces = pieces.iter().copied().chain([&b""[..]]).enumerate();
    pieces.flat_map(|(number, piece)| frame(piece, number as u8 + 2)).collect()
}

/// Sends the statement; the server requests the file.
async fn asked(client: &mut Client, sql: &str) {
    client.send(&[b"\x03", sql.as_bytes()].concat()).await;
    assert_eq!(client.read().await.unwrap(), (1, b"\xfbrows.csv".to_vec()));
}

#[tokio::test]
async fn a_file_arrives_whole_however_it_is_cut_and_its_answer_continues_the_numbering() {
    let server = start().await;
    let mut client = connect(&server, CapabilityFlags::empty()).await;
    let files: [&[&[u8]]; 3] = [&[], &[b"1,2\n"], &[b"1,2", b"\n3", b",4\n"]];
    for pieces in files {
        let sent = packets(pieces);
        for step in [sent.len(), 1, 3] {
            asked(&mut client, "file all").await;
            for bytes in sent.chunks(step) {
                client.send_raw(bytes).await;
            }
            let (sequence, answer) = client.read().await.unwrap();
            let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
            assert_eq!((sequence, answer[0], answer[1]), (pieces.len() as u8 + 3, 0, bytes as u8));
            assert_eq!(client.query_ok("affect 7").await.affected_rows, 7, "the next command is one");
        }
    }
}

#[tokio::test]
async fn a_file_of_many_packets_wraps_their_numbers() {
    let server = start().await;
    let mut client = connect(&server, CapabilityFlags::empty()).await;
    asked(&mut client, "file all").await;
    let sent: Vec<u8> = (0..1000_u32).flat_map(|number| frame(&[b'x'; 100], (number + 2) as u8)).collect();
    client.send_raw(&sent).await;
    client.send_raw(&frame(b"", (1000_u32 + 2) as u8)).await;
    assert_eq!(client.read_ok().await.affected_rows, 100_000);
    assert!(client.ping().await);
}

#[tokio::test]
async fn a_compressed_file_arrives_whole() {
    let server = start().await;
    let mut client = connect(&server, COMPRESS).await;
    asked(&mut client, "file all").await;
    let first = client.compressed_sequences().last().unwrap() + 1;
    client.send_raw(&deflate(&packets(&[&[b'x'; 5000], b"y"]), first)).await;
    assert_eq!(client.read_ok().await.affected_rows, 5001);
    assert_eq!(client.compressed_sequences(), [first + 1]);
    assert!(client.ping().await);
}

#[tokio::test]
async fn a_statement_that_fails_is_answered_when_the_client_has_sent_all() {
    let server = start().await;
    let mut client = connect(&server, CapabilityFlags::empty()).await;
    asked(&mut client, "file 1").await;
    client.send_raw(&packets(&[b"a", b"b", b"c"])).await;
    let (sequence, answer) = client.read().await.unwrap();
    assert!(is_err(&answer) && String::from_utf8_lossy(&answer).contains("enough"));
    assert_eq!(sequence, 6);
    assert!(client.ping().await);
}

#[tokio::test]
async fn a_client_that_sends_no_files_is_refused_before_it_is_asked() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03file all").await;
    let (_, answer) = client.read().await.unwrap();
    assert!(is_err(&answer));
    assert_eq!(err_code(&answer), 1148);
    assert!(client.ping().await);
}

#[tokio::test]
async fn a_file_that_breaks_off_ends_its_statement_and_its_connection() {
    let mut server =
        start_with(ServeOptions { stall_timeout: Duration::from_millis(50), ..ServeOptions::default() })
            .await;
    let mut gone = connect(&server, CapabilityFlags::empty()).await;
    asked(&mut gone, "file all").await;
    gone.send_raw(&frame(b"half", 2)).await;
    drop(gone);
    server.fake.until("the client's file did not arrive whole: the client closed the connection").await;
    let mut silent = connect(&server, CapabilityFlags::empty()).await;
    asked(&mut silent, "file all").await;
    assert!(silent.read().await.is_none(), "a client that says nothing more is given up");
    let mut jumping = connect(&server, CapabilityFlags::empty()).await;
    asked(&mut jumping, "file all").await;
    jumping.send_raw(&frame(b"x", 9)).await;
    while let Some((_, answer)) = jumping.read().await {
        assert!(is_err(&answer), "never taken for a success");
    }
    server.shutdown.cancel();
    server.stopped().await;
}
