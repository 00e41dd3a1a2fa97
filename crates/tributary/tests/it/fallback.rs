//! Loads that ask for Group Commit and can't have it: they are transactions of their own and say why.

use crate::support::{Curl, OkAnswer, Server, is_group_label};

const FALLBACK: &str = "group_commit_fallback";

fn assert_fell_back(answer: &OkAnswer, reason: &str) {
    assert!(!is_group_label(answer.label()), "{answer:?}");
    assert_eq!(answer.info_value("status"), "VISIBLE", "{answer:?}");
    assert_eq!(answer.info_value(FALLBACK), reason, "{answer:?}");
}

#[test]
fn an_insert_with_a_label_keeps_the_label_and_says_why_it_is_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("SET group_commit = async_mode");
    let insert = db.client.ok("INSERT INTO dt WITH LABEL my_label VALUES (1, 'a', 1)");
    assert_eq!(insert.label(), "my_label");
    assert_fell_back(&insert, "a label is specified");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
    let again = db.client.error("INSERT INTO dt WITH LABEL my_label VALUES (1, 'a', 1)");
    assert_eq!(again.number, 1105);
    let text =
        format!("Label [my_label] has already been used, relate to txn [{}]", insert.info_value("txnId"));
    assert!(again.message.contains(&text), "{again}");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1");
}

#[test]
fn an_insert_of_an_expression_says_why_it_is_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("SET group_commit = async_mode");
    let insert = db.client.ok("INSERT INTO dt VALUES (1 + 100, concat('a', 'b'), 7)");
    assert_fell_back(&insert, "VALUES contains an expression");
    assert_eq!(db.client.rows("SELECT * FROM dt"), ["101|ab|7"]);
}

#[test]
fn an_insert_from_a_query_says_why_it_is_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)");
    db.client.ok("SET group_commit = async_mode");
    let insert = db.client.ok("INSERT INTO dt SELECT id + 10, name, score FROM dt");
    assert_eq!(insert.affected_rows, 2);
    assert_fell_back(&insert, "the rows come from a query");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["1", "2", "11", "12"]);
}

#[test]
fn a_table_without_light_schema_change_says_why_it_is_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("\"light_schema_change\" = \"false\"");
    db.client.ok("SET group_commit = async_mode");
    let insert = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert_fell_back(&insert, "the table has light_schema_change = false");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("group_commit:async_mode")
        .header("column_separator:,")
        .body("2,b,2\n")
        .load()
        .success();
    assert_eq!(
        reply.get("GroupCommitFallback"),
        "the table has light_schema_change = false",
        "{}",
        reply.text
    );
    assert!(!reply.has("GroupCommit"), "{}", reply.text);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2");
}

#[test]
fn inserts_between_begin_and_commit_are_one_transaction() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let mut other = server.connect_to(&db.name);
    db.client.ok("SET group_commit = async_mode");
    let begin = db.client.ok("BEGIN");
    assert!(begin.label().starts_with("txn_insert_"), "{begin:?}");
    assert_eq!((begin.info_value("status"), begin.info_value("txnId")), ("PREPARE", ""));
    let one = db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let two = db.client.ok("INSERT INTO dt VALUES (2, 'b', 2), (3, 'c', 3)");
    assert_eq!((one.label(), two.label()), (begin.label(), begin.label()));
    assert_eq!(one.info_value("status"), "PREPARE");
    assert_eq!(other.value("SELECT count(*) FROM dt"), "0");
    let commit = db.client.ok("COMMIT");
    assert_eq!((commit.label(), commit.info_value("status")), (begin.label(), "VISIBLE"));
    assert_eq!(other.value("SELECT count(*) FROM dt"), "3");
}

#[test]
fn rollback_leaves_nothing_of_the_transaction() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    let rollback = db.client.ok("ROLLBACK");
    assert_eq!(rollback.info_value("status"), "ABORTED");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "0");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO dt VALUES (2, 'b', 2)");
    drop(db.client);
    let mut later = server.connect_to(&db.name);
    later.ok("SYNC");
    assert_eq!(later.value("SELECT count(*) FROM dt"), "0", "a closed connection rolls back");
}

#[test]
fn a_failed_statement_in_a_transaction_is_undone_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    db.client.ok("BEGIN");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    db.client.error("INSERT INTO dt VALUES (2, 'b', 2), (NULL, 'c', 3)");
    db.client.ok("INSERT INTO dt VALUES (4, 'd', 4)");
    let export =
        db.client.error("EXPORT TABLE dt TO 's3://b/p_' WITH S3('s3.endpoint' = 'http://127.0.0.1:1')");
    assert!(
        export.message.contains(
            "This is in a transaction, only insert, update, delete, commit, rollback is acceptable"
        ),
        "{export}"
    );
    db.client.ok("COMMIT");
    assert_eq!(db.client.rows("SELECT id FROM dt ORDER BY id"), ["1", "4"]);
}

#[test]
fn a_stream_load_with_a_label_keeps_it_and_says_why_it_is_alone() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let load = || {
        Curl::stream_load(&server, &db.name, "dt")
            .header("group_commit:async_mode")
            .header("label:my_label")
            .header("column_separator:,")
            .body("6,Amy,60\n")
            .load()
    };
    let reply = load().success();
    assert_eq!(reply.label(), "my_label");
    assert!(!reply.has("GroupCommit"), "{}", reply.text);
    assert_eq!(reply.get("TwoPhaseCommit"), "false");
    assert_eq!(reply.get("GroupCommitFallback"), "a label is specified");
    assert!(reply.keys().ends_with(&["GroupCommitFallback", "StagesUs"]), "{}", reply.text);
    let again = load();
    assert_eq!(again.status(), "Label Already Exists", "{}", again.text);
    assert_eq!(again.get("ExistingJobStatus"), "FINISHED");
    assert_eq!(again.get("TxnId"), "-1");
    assert_eq!(
        again.message(),
        format!(
            "[LABEL_ALREADY_EXISTS]errCode = 2, detailMessage = Label [my_label] has already been used, relate to txn [{}], status [VISIBLE].",
            reply.get("TxnId")
        )
    );
    assert_eq!(db.client.rows("SELECT * FROM dt"), ["6|Amy|60"]);
}

#[test]
fn a_stream_load_with_two_phases_says_why_it_is_alone() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("group_commit:sync_mode")
        .header("two_phase_commit:true")
        .header("column_separator:,")
        .body("6,Amy,60\n")
        .load()
        .success();
    assert_eq!(reply.get("TwoPhaseCommit"), "true");
    assert_eq!(reply.get("GroupCommitFallback"), "two_phase_commit is set");
}

/// Data files below the server's tables.
fn data_files(server: &Server) -> usize {
    let files =
        crate::support::curl::shell(&server.data(), "find tables -name '*.parquet' | wc -l").success();
    files.trim().parse().expect("a number")
}

#[test]
fn a_large_insert_whose_label_is_used_leaves_no_data_file() {
    let server = Server::with_settings(&[("large_load_bytes", "1000"), ("flush_age_ms", "3600000")]);
    let mut db = server.database().with_dt("");
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, 'a name', 1)")).collect();
    db.client.ok(&format!("INSERT INTO dt VALUES {}", rows.join(", ")));
    db.client.ok("INSERT INTO dt WITH LABEL once SELECT id + 500, name, score FROM dt");
    let files = data_files(&server);
    assert!(files > 0, "its rows are in data files");
    let again = db.client.error("INSERT INTO dt WITH LABEL once SELECT id + 1000, name, score FROM dt");
    assert!(again.message.contains("Label [once] has already been used"), "{again}");
    assert_eq!(data_files(&server), files);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "1000");
}

#[test]
fn an_async_stream_load_that_goes_to_data_files_is_answered_when_it_is_visible() {
    let server = Server::with_settings(&[("large_load_bytes", "1000")]);
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"200\"");
    let rows: String = (0..500).map(|id| format!("{id},a name,1\n")).collect();
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("group_commit:async_mode")
        .header("column_separator:,")
        .body(&rows)
        .load()
        .success();
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "500", "the log does not have them");
    assert_eq!(
        reply.get("GroupCommitFallback"),
        "switched to sync_mode: the load is larger than large_load_bytes",
        "{}",
        reply.text
    );
    assert_eq!(reply.get("GroupCommitMode"), "sync_mode", "{}", reply.text);
}

#[test]
fn a_load_that_requires_more_than_it_would_get_is_refused_and_nothing_is_kept() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let load = |mode: &str, required: &str, more: &str| {
        Curl::stream_load(&server, &db.name, "dt")
            .header("column_separator: ,")
            .header(&format!("group_commit: {mode}"))
            .header(&format!("group_commit_require: {required}"))
            .header(more)
            .body("1,a,1\n")
            .load()
    };
    for (mode, required, more, because) in [
        (
            "async_mode",
            "visible",
            "comment: x",
            "the mode is async_mode, which answers before its group is committed",
        ),
        ("async_mode", "grouped", "label: l", "a label is specified"),
        ("off_mode", "grouped", "comment: x", "the mode is off_mode"),
    ] {
        let refused = load(mode, required, more).failure();
        assert!(refused.starts_with("[INVALID_ARGUMENT]"), "{refused}");
        assert!(
            refused.contains(&format!("group_commit_require = {required}, which it would not be: {because}")),
            "{refused}"
        );
    }
    let wrong = load("sync_mode", "fast", "comment: x").failure();
    assert!(wrong.contains("can only be [durable, visible, grouped]"), "{wrong}");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "0");
    for (mode, required) in [
        ("sync_mode", "visible"),
        ("sync_mode", "grouped"),
        ("off_mode", "visible"),
        ("async_mode", "durable"),
    ] {
        load(mode, required, "comment: x").success();
    }
    db.client.ok("SYNC");
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "4");
    db.client.ok("SET group_commit = async_mode, group_commit_require = 'grouped'");
    let error = db.client.error("INSERT INTO dt VALUES (1 + 1, 'a', 1)");
    assert!(error.message.contains("which it would not be: VALUES contains an expression"), "{error}");
    db.client.ok("INSERT INTO dt VALUES (2, 'a', 1)");
    db.client.ok("SET group_commit_require = ''");
    db.client.ok("INSERT INTO dt VALUES (1 + 1, 'a', 1)");
}
