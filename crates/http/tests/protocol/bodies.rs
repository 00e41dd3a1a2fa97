//! Bodies: every way to send one, every way to break one.

use crate::client::{Client, ROOT};
use crate::fake::{start, start_with};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::time::Duration;
use tributary_http::{BodyError, HttpOptions};
use tributary_types::Live;

const PATH: &str = "PUT /api/db/t/_stream_load";
const CHUNKED: &str = "Transfer-Encoding: chunked";

fn gzipped(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn expect_is_answered_100_before_the_body_and_200_after_it() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for _ in 0..2 {
        client.head(PATH, &[ROOT, "Expect: 100-continue", "Content-Length: 4"]).await;
        assert_eq!(client.answer().await.status, 100);
        client.send("1,2\n").await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.json()["NumberLoadedRows"].as_u64()), (200, Some(1)));
    }
}

#[tokio::test]
async fn a_bad_header_is_answered_before_an_expected_body_is_sent() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, "Expect: 100-continue", "Content-Length: 1000000", "format: xml"]).await;
    let answer = client.answer().await;
    answer.fails_with("[DATA_FILE_TYPE_ERROR]unknown data format, format=xml");
    assert!(answer.closes());
    client.closed().await;
}

#[tokio::test]
async fn a_chunked_body_has_no_length_and_arrives_whole() {
    let mut running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, CHUNKED]).await;
    for chunk in ["2\r\n1,\r\n", "2;x=y\r\n2\n\r\n", "0\r\n\r\n"] {
        client.send(chunk).await;
    }
    let json = client.answer().await.json();
    assert_eq!((&json["NumberLoadedRows"], &json["LoadBytes"]), (&1.into(), &4.into()));
    assert_eq!(running.seen.recv().await.unwrap().bytes, b"1,2\n");
    let load = running.fake.loads.lock().unwrap().pop().unwrap();
    assert_eq!((load.content_length, load.chunked), (None, true));
    assert_eq!(client.load("t", &[], "3,4\n").await.json()["Status"], "Success", "the connection is kept");
}

#[tokio::test]
async fn a_body_with_a_length_and_chunks_is_refused_and_the_connection_closed() {
    let running = start().await;
    for lengths in [[CHUNKED, "Content-Length: 4"], ["content-length: 4", "transfer-encoding: CHUNKED"]] {
        let mut client = Client::connect(running.address).await;
        // Lines of a body are not headers.
        let body = "Transfer-Encoding: chunked\nContent-Length: 4\n\n";
        assert_eq!(client.load("t", &[], body).await.json()["Status"], "Success");
        assert_eq!(client.load("t", &[], body).await.json()["Status"], "Success");
        client.head(PATH, &[ROOT, lengths[0], "column_separator: ,", lengths[1]]).await;
        client.send("4\r\n1,2\n\r\n0\r\n\r\n").await;
        let answer = client.answer().await;
        answer.fails_with("[INVALID_ARGUMENT]please do not set both content_length and transfer-encoding");
        client.closed().await;
    }
    assert_eq!(running.fake.loads.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn an_empty_body_is_an_empty_load() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let json = client.load("t", &[], "").await.json();
    assert_eq!((&json["Status"], &json["NumberTotalRows"]), (&"Success".into(), &0.into()));
}

#[tokio::test]
async fn a_body_shorter_than_its_length_fails_the_load() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, "Content-Length: 100"]).await;
    client.send("1,2\n").await;
    client.end_sending().await;
    let answer = client.answer().await;
    answer.fails_with(
        "[NETWORK_ERROR]receive body don't equal with body bytes, Content-Length: 100, received: 4",
    );
    assert_eq!(answer.json()["LoadBytes"], 4);
    client.closed().await;
}

#[tokio::test]
async fn a_chunked_body_without_its_end_fails_the_load() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, CHUNKED]).await;
    client.send("4\r\n1,2\n\r\n").await;
    client.end_sending().await;
    client.answer().await.fails_with("[CANCELLED]sender is gone after 4 bytes of the body");
}

#[tokio::test]
async fn a_malformed_chunk_fails_the_load() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, CHUNKED]).await;
    client.send("4\r\n1,2\n\r\nnonsense\r\n").await;
    let json = client.answer().await.json();
    let message = json["Message"].as_str().unwrap();
    assert!(message.starts_with("[NETWORK_ERROR]malformed chunked body after 4 bytes: "), "{message}");
}

#[tokio::test]
async fn a_sender_that_goes_away_ends_the_body_with_an_error() {
    let mut running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, CHUNKED]).await;
    client.send("4\r\n1,2\n\r\n").await;
    drop(client);
    let seen = running.seen.recv().await.unwrap();
    assert_eq!((seen.total, seen.error), (4, Some(BodyError::SenderGone { received: 4 })));
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let options = HttpOptions { body_idle_timeout: Duration::from_millis(50), ..HttpOptions::default() };
    let running = start_with(options).await;
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &[ROOT, "Content-Length: 100"]).await;
    client.send("1,2\n").await;
    let answer = client.answer().await;
    answer.fails_with(
        "[TIMEOUT]no data from the sender for 50 ms after 4 bytes of the body; the load was given up",
    );
    assert!(answer.closes());
}

#[tokio::test]
async fn gzip_is_undone_for_either_header_and_several_members() {
    let mut running = start().await;
    let mut client = Client::connect(running.address).await;
    let body = [gzipped(b"1,2\n"), gzipped(b"3,4\n")].concat();
    for header in ["compress_type: gz", "Content-Encoding: gzip"] {
        let json = client.load("t", &[header], &body).await.json();
        assert_eq!(
            (&json["NumberLoadedRows"], &json["LoadBytes"]),
            (&2.into(), &body.len().into()),
            "{header}"
        );
        assert_eq!(running.seen.recv().await.unwrap().bytes, b"1,2\n3,4\n");
    }
}

#[tokio::test]
async fn broken_gzip_fails_the_load_and_keeps_the_connection() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let whole = gzipped(&[b'x'; 1000]);
    for (body, what) in
        [(&b"1,2\n3,4\n5,6\n"[..], "invalid gzip header"), (&whole[..20], "the stream ends early")]
    {
        let answer = client.load("t", &["compress_type: gz"], body).await;
        answer.fails_with(&format!(
            "[DATA_QUALITY_ERROR]broken gzip body after {} bytes: {what}; send whole gzip members, or no compress_type \
             and no Content-Encoding",
            body.len()
        ));
        assert!(!answer.closes());
    }
    assert_eq!(client.load("t", &[], "1\n").await.json()["Status"], "Success");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_declared_chunked_or_compressed() {
    let running =
        start_with(HttpOptions { streaming_load_max_mb: Live::new(1), ..HttpOptions::default() }).await;
    let message = |bytes: u64| {
        format!(
            "[EXCEEDED_LIMIT]body size {bytes} exceed BE's conf `streaming_load_max_mb` 1. increase it if you are sure \
             this load is reasonable"
        )
    };
    let mut client = Client::connect(running.address).await;
    let large = vec![b'x'; 1_048_577];
    client.load("t", &[], &large).await.fails_with(&message(1_048_577));

    client.head(PATH, &[ROOT, CHUNKED]).await;
    client.send("200000\r\n").await;
    client.send([&large[..], &large[..]].concat()[..0x20_0000].to_vec()).await;
    client.send("\r\n0\r\n\r\n").await;
    let answer = client.answer().await;
    assert!(
        answer.json()["Message"].as_str().unwrap().starts_with("[EXCEEDED_LIMIT]body size "),
        "{answer:?}"
    );

    let mut client = Client::connect(running.address).await;
    let answer = client.load("t", &["compress_type: gz"], gzipped(&[large.clone(), large].concat())).await;
    assert!(
        answer.json()["Message"].as_str().unwrap().starts_with("[EXCEEDED_LIMIT]body size "),
        "{answer:?}"
    );
}
