//! Statements over HTTP.

use crate::client::{Answer, Client, ROOT};
use crate::fake::{Running, start};
use serde_json::json;
use tokio::io::AsyncReadExt;

const PATH: &str = "POST /api/query/default_cluster/d";

/// Sends a request, whose answer is not read.
async fn send(running: &Running, headers: &[&str], body: &str) -> Client {
    let mut client = Client::connect(running.address).await;
    let length = format!("Content-Length: {}", body.len());
    client.head(PATH, &[&[ROOT, &length], headers].concat()).await;
    client.send(body).await;
    client
}

async fn ask(running: &Running, headers: &[&str], body: &str) -> Answer {
    send(running, headers, body).await.answer().await
}

#[tokio::test]
async fn rows_counts_and_errors_have_doris_s_shape() {
    let running = start().await;
    let rows = ask(&running, &[], r#"{"stmt":"rows"}"#).await;
    let mut json = rows.json();
    assert!(json["data"]["time"].take().is_u64(), "{rows:?}");
    let data = json!({
        "type": "result_set", "meta": [{"name": "id", "type": "INT"}], "data": [[1, "a"], [2, null]],
        "status": {}, "time": null,
    });
    assert_eq!(json, json!({"msg": "success", "code": 0, "data": data, "count": 0}));
    assert!(
        rows.body.starts_with(r#"{"msg":"success","code":0,"data":{"type":"result_set","meta":"#),
        "{rows:?}"
    );
    let done = ask(&running, &["read_after: 7"], r#"{"stmt":"done","limit":5}"#).await.json();
    let status = json!({"affected_rows": 3, "warnings": 1, "info": "Some(\"d\") Some(5) Some(TxnId(7))"});
    assert_eq!((&done["data"]["type"], &done["data"]["status"]), (&json!("exec_status"), &status), "{done}");
    let failed = ask(&running, &[], r#"{"stmt":"other"}"#).await;
    let error = json!({"number": 1064, "sqlstate": "42000", "retry": "never"});
    let expected =
        json!({"msg": "Error", "code": 1, "data": "no such statement", "count": 0, "error": error});
    assert_eq!((failed.status, failed.json()), (200, expected));
}

#[tokio::test]
async fn bad_requests_are_refused_with_what_to_send() {
    let running = start().await;
    let empty = ask(&running, &[], "").await;
    assert_eq!(
        (empty.status, empty.body.as_str()),
        (400, r#"{"msg":"Bad Request","code":403,"data":"Missing statement request body","count":0}"#)
    );
    let text = ask(&running, &[], "SELECT 1").await;
    assert_eq!(text.status, 400);
    assert!(text.body.contains("the body is not {"), "{text:?}");
    let receipt = ask(&running, &["read_after: soon"], r#"{"stmt":"rows"}"#).await;
    assert!(receipt.status == 400 && receipt.body.contains("is not a receipt"), "{receipt:?}");
    let long = format!(r#"{{"stmt":"{}"}}"#, "x".repeat(4 << 20));
    let long = ask(&running, &[], &long).await;
    assert!(long.status == 413 && long.body.contains("send rows with a Stream Load"), "{long:?}");
    let mut client = Client::connect(running.address).await;
    client.head(PATH, &["Content-Length: 0"]).await;
    let stranger = client.answer().await;
    assert_eq!((stranger.status, stranger.json()["code"].as_u64()), (401, Some(401)));
    client.head("GET /api/query/default_cluster/d", &[ROOT]).await;
    let wrong = client.answer().await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn an_error_between_rows_breaks_the_document_and_the_connection() {
    let running = start().await;
    let mut client = send(&running, &[], r#"{"stmt":"break"}"#).await;
    let mut all = Vec::new();
    // A reset is an end, too.
    let _ = client.stream.read_to_end(&mut all).await;
    let text = String::from_utf8_lossy(&all);
    assert!(!text.contains(r#""count":0"#), "{text}");
    assert!(!text.ends_with("0\r\n\r\n"), "no end of the body: {text}");
}

#[tokio::test]
async fn a_statement_learns_that_its_client_has_left() {
    let running = start().await;
    let client = send(&running, &[], r#"{"stmt":"wait"}"#).await;
    drop(client);
    running.fake.left.notified().await;
}
