//! Loads: requests, answers, refusals.

use crate::client::{Client, ROOT};
use crate::fake::{GROUP_LABEL, start};
use tributary_decode::{BodyFormat, CsvFormat, CsvHeader};
use tributary_http::TwoPhaseOp;
use tributary_types::{GroupCommitMode, TxnId};

#[tokio::test]
async fn a_stream_load_reaches_the_service_and_answers_on_both_ports() {
    let running = start().await;
    for address in [running.address, running.second_address] {
        let mut client = Client::connect(address).await;
        let headers = ["group_commit:async_mode", "column_separator:,", "format: csv_with_names"];
        let answer = client.load("d%74", &headers, "id,name,score\n6,Amy,60\n").await;
        assert_eq!(answer.status, 200);
        assert!(!answer.closes());
        let json = answer.json();
        assert_eq!(json["Label"], GROUP_LABEL);
        assert_eq!(json["GroupCommit"], true);
        assert_eq!(json["NumberLoadedRows"], 2);
        assert_eq!(json["LoadBytes"], 23);
        let load = running.fake.loads.lock().unwrap().pop().unwrap();
        assert_eq!((load.db.as_str(), load.table.as_str(), load.user.as_str()), ("db", "dt", "root"));
        assert_eq!(load.group_commit, Some(GroupCommitMode::Async));
        let format =
            CsvFormat { header: CsvHeader::Names, column_separator: b",".to_vec(), ..CsvFormat::default() };
        assert_eq!(load.format, BodyFormat::Csv(format));
        assert_eq!((load.content_length, load.chunked), (Some(23), false));
    }
}

#[tokio::test]
async fn an_answer_repeats_label_comment_and_two_phase_commit_of_its_request() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("t", &["label: l1", "comment: nightly", "two_phase_commit: true"], "1\n").await;
    let keys: Vec<String> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys[..5], ["TxnId", "Label", "Comment", "TwoPhaseCommit", "Status"]);
    let json = answer.json();
    assert_eq!((&json["Label"], &json["Comment"]), (&"l1".into(), &"nightly".into()));
    assert_eq!(json["TwoPhaseCommit"], "true");
    assert!(answer.body.starts_with("{\n    \"TxnId\": 7009,\n    \"Label\": \"l1\",\n"), "{}", answer.body);
    assert!(answer.body.ends_with("\n}\n"));
}

#[tokio::test]
async fn without_credentials_or_with_wrong_ones_the_answer_is_401_with_the_document() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head("PUT /api/db/t/_stream_load", &["Content-Length: 2"]).await;
    client.send("1\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"tributary\""));
    answer.fails_with("[NOT_AUTHORIZED]no valid Basic authorization");
    assert!(answer.body.starts_with("{\n    \"TxnId\": -1,\n"));

    let wrong = "Authorization: Basic cm9vdDpudWxs";
    client.head("PUT /api/db/t/_stream_load", &[wrong, "Content-Length: 2"]).await;
    client.send("1\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 401);
    answer.fails_with("[NOT_AUTHORIZED]Access denied for user 'root'@'127.0.0.1' (using password: YES)");

    client.head("PUT /api/db/_stream_load_2pc", &[wrong]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.json()["status"].as_str()), (401, Some("Fail")));
    client.head("GET /api/backends?is_alive=true", &[wrong]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.json()["code"].as_u64()), (401, Some(401)));
    assert!(running.fake.loads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_bad_header_is_answered_200_and_the_connection_stays_open() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (header, message) in [
        ("group_commit: abc", "[INVALID_ARGUMENT]group_commit can only be [async_mode, sync_mode, off_mode]"),
        ("format: xml", "[DATA_FILE_TYPE_ERROR]unknown data format, format=xml"),
        ("strict_mode: yes", "[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type"),
        ("timeout: 0", "[INVALID_ARGUMENT]Invalid timeout: 0. Timeout should between 1 and 259200 seconds"),
        ("enclose: ab", "[INVALID_ARGUMENT]enclose must be single-char, actually is ab"),
    ] {
        let answer = client.load("t", &[header], vec![b'x'; 100_000]).await;
        assert_eq!((answer.status, answer.closes()), (200, false), "{header}");
        answer.fails_with(message);
    }
    assert!(running.fake.loads.lock().unwrap().is_empty());
    assert_eq!(client.load("t", &[], "1\n").await.json()["Status"], "Success");
}

#[tokio::test]
async fn a_put_without_a_length_is_refused() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.head("PUT /api/db/t/_stream_load", &[ROOT]).await;
    client.answer().await.fails_with(
        "[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set content_length or \
         transfer-encoding=chunked",
    );
}

#[tokio::test]
async fn a_used_label_is_reported_before_a_header_that_is_checked_after_it() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("t", &["label: used", "merge_type: bad"], "1\n").await;
    let json = answer.json();
    assert_eq!((&json["Status"], &json["TxnId"]), (&"Label Already Exists".into(), &(-1).into()));
    assert_eq!(json["ExistingJobStatus"], "FINISHED");
    let answer = client.load("t", &["label: used", "format: xml"], "1\n").await;
    answer.fails_with("[DATA_FILE_TYPE_ERROR]unknown data format, format=xml");
    let answer = client.load("t", &["label: free", "merge_type: bad"], "1\n").await;
    answer.fails_with("[INVALID_ARGUMENT]Invalid merge type bad");
}

#[tokio::test]
async fn a_path_without_names_is_refused_by_its_name() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("", &[], "1\n").await;
    answer.fails_with("[INVALID_ARGUMENT]No table selected.");
    client.head("PUT /api//t/_stream_load", &[ROOT, "Content-Length: 0"]).await;
    client.answer().await.fails_with("[INVALID_ARGUMENT]No database selected.");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_own_load_alone() {
    let running = start().await;
    let mut other = Client::connect(running.address).await;
    other.load("t", &[], "1\n").await;
    let mut client = Client::connect(running.address).await;
    let answer = client.load("panics", &[], "1\n").await;
    assert_eq!(answer.status, 200);
    assert!(answer.json()["Message"].as_str().unwrap().starts_with("[INTERNAL_ERROR]"));
    assert_eq!(other.load("t", &[], "1\n").await.json()["Status"], "Success");
}

#[tokio::test]
async fn an_http_stream_brings_its_statement() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let sql = "insert into db.dt select * from http_stream('column_separator'=',', 'format' = 'CSV')";
    let sql_header = format!("sql:{sql}");
    let headers = [ROOT, "group_commit:sync_mode", &sql_header, "Content-Length: 19"];
    client.head("PUT /api/_http_stream", &headers).await;
    client.send("6,Amy,60\n7,Ross,98\n").await;
    let json = client.answer().await.json();
    assert_eq!((&json["Status"], &json["NumberLoadedRows"]), (&"Success".into(), &2.into()));
    let request = running.fake.streams.lock().unwrap().pop().unwrap();
    assert_eq!((request.sql.as_str(), request.group_commit), (sql, Some(GroupCommitMode::Sync)));
}

#[tokio::test]
async fn a_second_phase_answers_with_what_it_was_given() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (path, headers, message) in [
        ("db/_stream_load_2pc", "txn_id: 18036", "transaction [18036] commit successfully."),
        ("db/t/_stream_load_2pc", "label: l", "label [l] commit successfully."),
        ("db/_stream_load_2pc", "label: l\r\ntxn_id: 7", "label [l] transaction [7] commit successfully."),
    ] {
        let path = format!("PUT /api/{path}");
        client.head(&path, &[ROOT, "txn_operation: commit", headers]).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.body),
            (200, format!("{{\n    \"status\": \"Success\",\n    \"msg\": \"{message}\"\n}}\n"))
        );
    }
    let (user, db, op, target) = running.fake.phases.lock().unwrap()[0].clone();
    assert_eq!((user.as_str(), db.as_str(), op), ("root", "db", TwoPhaseOp::Commit));
    assert_eq!((target.txn_id, target.label), (Some(TxnId(18036)), None));
}

#[tokio::test]
async fn a_second_phase_that_cannot_be_says_why() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (headers, status, message) in [
        ("txn_operation: commit", "FAILED", "No transaction id or label selected."),
        (
            "txn_id: 1\r\ntxn_operation: undo",
            "Fail",
            "[INVALID_ARGUMENT]transaction operation should be 'commit' or 'abort'",
        ),
        (
            "txn_id: 404\r\ntxn_operation: abort",
            "Fail",
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = transaction [404] not found.",
        ),
    ] {
        client.head("PUT /api/db/_stream_load_2pc", &[ROOT, headers]).await;
        let json = client.answer().await.json();
        assert_eq!((json["status"].as_str(), json["msg"].as_str()), (Some(status), Some(message)));
        assert_eq!((&json["retry"], json.get("retry_after_ms")), (&"never".into(), None));
    }
    client.head("PUT /api/db/_stream_load_2pc", &[ROOT, "txn_id: 503", "txn_operation: commit"]).await;
    let busy = client.answer().await;
    let json = busy.json();
    assert_eq!((&json["retry"], &json["retry_after_ms"]), (&"after_ms".into(), &"1000".into()), "{json}");
    assert_eq!(busy.header("retry-after"), Some("1"));
}
