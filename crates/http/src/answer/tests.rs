use super::*;
use tributary_types::ErrorCode;

fn times() -> LoadTimes {
    let ms = Duration::from_millis;
    LoadTimes {
        load: ms(35),
        begin_txn: ms(2),
        stream_load_put: ms(5),
        read_data: ms(0),
        write_data: ms(26),
        receive_data: ms(1),
        commit_and_publish: ms(9),
        stages: None,
    }
}

fn group() -> LoadAnswer {
    LoadAnswer {
        group_commit: true,
        total_rows: 2,
        loaded_rows: 2,
        load_bytes: 19,
        times: times(),
        ..LoadAnswer::success(TxnId(7009), "group_commit_c84d2099208436ab_96e33fda01eddba8")
    }
}

const ERROR_URL: &str =
    "http://127.0.0.1:8040/api/_load_error_log?file=__shard_2/error_log_insert_stmt_1-2_1_2";

#[track_caller]
fn assert_golden(answer: &LoadAnswer, golden: &str) {
    assert_eq!(String::from_utf8(answer.to_json()).unwrap(), golden);
}

#[test]
fn a_load_of_a_group_answers_as_the_manual_shows() {
    assert_golden(&group(), include_str!("golden/group_commit.json"));
}

#[test]
fn an_async_load_answered_as_sync_names_the_mode_and_the_reason() {
    let answer = LoadAnswer {
        answered_mode: Some(GroupCommitMode::Sync),
        fallback_reason: Some("the body's size is unknown (chunked)".to_owned()),
        ..group()
    };
    assert_golden(&answer, include_str!("golden/group_commit_answered_as_sync.json"));
}

#[test]
fn a_load_of_its_own_shows_two_phase_commit_as_text_and_the_reason_of_a_fallback_last() {
    let answer = LoadAnswer {
        comment: "nightly \"run\"".to_owned(),
        two_phase_commit: true,
        total_rows: 1000,
        loaded_rows: 950,
        filtered_rows: 50,
        load_bytes: 5000,
        times: times(),
        error_url: Some(ERROR_URL.to_owned()),
        first_error_msg: Some(String::new()),
        fallback_reason: Some("two phase commit was asked for".to_owned()),
        ..LoadAnswer::success(TxnId(18036), "my_label")
    };
    assert_golden(&answer, include_str!("golden/off_mode.json"));
}

#[test]
fn a_failure_shows_no_loaded_row_and_its_first_error() {
    let answer = LoadAnswer {
        txn_id: Some(TxnId(8)),
        label: "f10f4b0a-6d2e-4c5f-9d3c-8f2f6c9f3a11".to_owned(),
        total_rows: 1000,
        loaded_rows: 950,
        filtered_rows: 50,
        load_bytes: 5000,
        times: times(),
        error_url: Some(ERROR_URL.to_owned()),
        first_error_msg: Some(
            "column(k1) value is incorrect while strict mode is true, src value is x".to_owned(),
        ),
        ..LoadAnswer::too_many_filtered_rows()
    };
    assert_golden(&answer, include_str!("golden/failure.json"));
}

#[test]
fn a_used_label_names_its_transaction_in_the_text_that_connectors_parse() {
    let answer = LoadAnswer::label_already_exists("my_label", TxnId(8), "VISIBLE");
    assert_golden(&answer, include_str!("golden/label_already_exists.json"));
    for (status, existing) in [
        ("PREPARE", ExistingJob::Running),
        ("PRECOMMITTED", ExistingJob::Precommitted),
        ("COMMITTED", ExistingJob::Finished),
    ] {
        let answer = LoadAnswer::label_already_exists("l", TxnId(1), status);
        assert_eq!(answer.status, LoadStatus::LabelAlreadyExists { existing });
    }
}

#[test]
fn an_error_of_planning_has_the_prefix_once() {
    let expected = "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Unknown table 't'";
    for error in [
        SqlError::detail(ErrorCode::UnknownTable, "Unknown table 't'"),
        SqlError::new(ErrorCode::UnknownTable, "Unknown table 't'"),
    ] {
        assert_eq!(LoadAnswer::from_sql_error(&error).message, expected);
    }
}
