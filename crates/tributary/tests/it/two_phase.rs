//! Two phase commit of Stream Loads: pre-commit, then commit or abort.

use crate::support::{Client, Curl, Database, LoadReply, Server};

fn prepare(server: &Server, db: &Database, label: &str) -> LoadReply {
    let reply = Curl::stream_load(server, &db.name, "dt")
        .header("column_separator:,")
        .header("two_phase_commit:true")
        .header(&format!("label:{label}"))
        .body("6,Amy,60\n7,Ross,98\n")
        .load()
        .success();
    assert_eq!(reply.get("TwoPhaseCommit"), "true", "{}", reply.text);
    assert_eq!(reply.rows(), [2, 2, 0, 0]);
    reply
}

/// `status` and `msg` of the second phase.
fn second(server: &Server, db: &Database, headers: &[&str]) -> [String; 2] {
    let url = format!("http://127.0.0.1:{}/api/{}/_stream_load_2pc", server.http_port(), db.name);
    let curl = Curl::put(&url).headers(headers);
    let reply = curl.load();
    match reply.get("status") {
        ref status if status == "Success" => assert_eq!(reply.keys(), ["status", "msg"], "{}", reply.text),
        _ => assert_eq!(reply.keys(), ["status", "msg", "retry"], "{}", reply.text),
    }
    [reply.get("status"), reply.get("msg")]
}

fn count(db: &mut Database) -> String {
    db.client.value("SELECT count(*) FROM dt")
}

#[test]
fn a_prepared_load_is_visible_after_its_commit_by_id() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let txn = prepare(&server, &db, "a").get("TxnId");
    assert_eq!(count(&mut db), "0");
    let id = format!("txn_id:{txn}");
    let committed = second(&server, &db, &[&id, "txn_operation:commit"]);
    assert_eq!(committed, ["Success".to_owned(), format!("transaction [{txn}] commit successfully.")]);
    assert_eq!(count(&mut db), "2");
    let [status, msg] = second(&server, &db, &[&id, "txn_operation:commit"]);
    assert_ne!(status, "Success");
    assert!(
        msg.contains(&format!(
            "errCode = 2, detailMessage = transaction [{txn}] is already visible, not pre-committed."
        )),
        "connectors parse this text: {msg}"
    );
    assert_eq!(count(&mut db), "2");
}

#[test]
fn a_prepared_load_can_be_committed_by_its_label() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    prepare(&server, &db, "by_label");
    let committed = second(&server, &db, &["label:by_label", "txn_operation:commit"]);
    assert_eq!(committed, ["Success", "label [by_label] commit successfully."]);
    assert_eq!(count(&mut db), "2");
}

#[test]
fn an_aborted_load_leaves_no_rows_and_frees_its_label() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let txn = prepare(&server, &db, "again").get("TxnId");
    let id = format!("txn_id:{txn}");
    let aborted = second(&server, &db, &[&id, "txn_operation:abort"]);
    assert_eq!(aborted, ["Success".to_owned(), format!("transaction [{txn}] abort successfully.")]);
    assert_eq!(count(&mut db), "0");
    let [status, msg] = second(&server, &db, &[&id, "txn_operation:commit"]);
    assert_ne!(status, "Success");
    assert!(msg.contains(&format!("transaction [{txn}] is already aborted. abort reason: ")), "{msg}");
    let again = prepare(&server, &db, "again").get("TxnId");
    assert_ne!(again, txn);
}

#[test]
fn a_label_that_waits_for_its_second_phase_is_precommitted() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    prepare(&server, &db, "waiting");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("column_separator:,")
        .header("label:waiting")
        .body("1,a,1\n")
        .load();
    assert_eq!(reply.status(), "Label Already Exists", "{}", reply.text);
    assert_eq!(reply.get("ExistingJobStatus"), "PRECOMMITTED");
    let keys = reply.keys();
    let after_status = keys.iter().position(|&key| key == "Status").expect("a status") + 1;
    assert_eq!(keys[after_status], "ExistingJobStatus");
}

#[test]
fn a_prepared_load_survives_a_crash_and_can_still_be_committed() {
    let mut server = Server::start();
    let db = server.database().with_dt("");
    let kept = prepare(&server, &db, "kept").get("TxnId");
    let dropped = prepare(&server, &db, "dropped").get("TxnId");
    server.kill();
    server.start_again();
    assert_eq!(server.connect_to(&db.name).value("SELECT count(*) FROM dt"), "0");
    let committed = second(&server, &db, &[&format!("txn_id:{kept}"), "txn_operation:commit"]);
    assert_eq!(committed[0], "Success", "{committed:?}");
    let aborted = second(&server, &db, &[&format!("txn_id:{dropped}"), "txn_operation:abort"]);
    assert_eq!(aborted[0], "Success", "{aborted:?}");
    assert_eq!(server.connect_to(&db.name).value("SELECT count(*) FROM dt"), "2");
}

#[test]
fn a_second_phase_that_names_nothing_or_nonsense_is_refused() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    for (headers, status, msg) in [
        (vec!["txn_operation:commit"], "FAILED", "No transaction id or label selected."),
        (vec!["txn_id:1"], "FAILED", "No transaction operation('commit' or 'abort') selected."),
        (
            vec!["txn_id:1", "txn_operation:hold"],
            "Fail",
            "[INVALID_ARGUMENT]transaction operation should be 'commit' or 'abort'",
        ),
        (
            vec!["txn_id:seven", "txn_operation:commit"],
            "Fail",
            "[INVALID_ARGUMENT]convert txn_id [seven] failed, reason=invalid digit found in string",
        ),
    ] {
        assert_eq!(second(&server, &db, &headers), [status, msg], "{headers:?}");
    }
    let [status, msg] = second(&server, &db, &["txn_id:999999999", "txn_operation:commit"]);
    assert_eq!(status, "Fail");
    assert!(msg.ends_with("errCode = 2, detailMessage = transaction [999999999] not found."), "{msg}");
}

#[test]
fn prepared_loads_are_listed_with_their_clients_and_cancelled_by_a_pattern_also_after_a_crash() {
    let mut server = Server::start();
    let db = server.database().with_dt("");
    let name = db.name.clone();
    for label in ["job_1", "job_2", "other"] {
        prepare(&server, &db, label);
    }
    drop(db);
    let listed = "SELECT LABEL, CLIENT, LOADED_ROWS, TIMESTAMPDIFF(SECOND, PREPARED_AT, EXPIRES_AT), AGE_SECONDS < 3600 \
                  FROM information_schema.prepared_loads ORDER BY 1";
    let row = |label: &str| format!("{label}|root@127.0.0.1|2|3600|1");
    for _ in 0..2 {
        let mut client = server.connect_to(&name);
        assert_eq!(client.rows(listed), ["job_1", "job_2", "other"].map(row));
        server.kill();
        server.start_again();
    }
    let mut client = server.connect_to(&name);
    let refused = client.error("CANCEL LOAD WHERE LABEL LIKE 'nothing%'");
    assert!(refused.message.contains("Load job does not exist"), "{refused}");
    client.ok("CREATE USER amy");
    client.ok(&format!("GRANT SELECT_PRIV ON {name}.* TO amy"));
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("amy may log in");
    amy.error(&format!("CANCEL LOAD FROM {name} WHERE LABEL LIKE 'job%'"));
    client.ok("CANCEL LOAD WHERE LABEL LIKE 'job%'");
    assert_eq!(client.rows(listed), ["other"].map(row));
    client.ok(&format!("CANCEL LOAD FROM {name} WHERE LABEL = 'other'"));
    assert!(client.rows(listed).is_empty());
    assert_eq!(client.value("SELECT COUNT(*) FROM dt"), "0");
    let again = client.value("SELECT COUNT(*) FROM information_schema.wal WHERE HELD_BY_TXN_ID > 0");
    assert_eq!(again, "0", "nothing holds the log");
}
