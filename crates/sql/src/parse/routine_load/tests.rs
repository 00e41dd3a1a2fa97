use super::*;
use crate::parse::parse;

fn statement(sql: &str) -> RoutineLoad {
    match parse(sql).unwrap() {
        Statement::RoutineLoad(statement) => *statement,
        other => panic!("{sql}: {other:?}"),
    }
}

fn job(db: Option<&str>, name: &str) -> Name {
    Name { db: db.map(str::to_owned), table: name.to_owned() }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_job_is_made_with_every_clause_in_any_order_and_expressions_stay_as_they_are_written() {
    let sql = "CREATE ROUTINE LOAD d.j ON t WITH APPEND
        COLUMNS TERMINATED BY \",\",
        COLUMNS(k, tmp, v = concat(tmp, 'it''s, \\'é'), `w` = k*2 ),
        PRECEDING FILTER tmp <> 'x',
        WHERE k > 1 and
          v is not null
        PROPERTIES(\"format\" = \"csv\", \"max_batch_rows\" = \"300000\")
        FROM KAFKA (\"kafka_broker_list\" = \"h:9092\", \"kafka_topic\" = \"t\") COMMENT \"why\";";
    let RoutineLoad::Create(create) = statement(sql) else { panic!("{sql}") };
    assert_eq!((create.job, create.table), (job(Some("d"), "j"), Some("t".to_owned())));
    let column = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let expected = RoutineLoadClauses {
        column_separator: Some(",".to_owned()),
        columns: Some(vec![
            column("k", None),
            column("tmp", None),
            column("v", Some("concat(tmp, 'it''s, \\'é')")),
            column("w", Some("k*2")),
        ]),
        preceding_filter: Some("tmp <> 'x'".to_owned()),
        filter: Some("k > 1 and\n          v is not null".to_owned()),
        ..RoutineLoadClauses::default()
    };
    assert_eq!(create.clauses, expected);
    assert_eq!(create.properties, pairs(&[("format", "csv"), ("max_batch_rows", "300000")]));
    assert_eq!(create.source, pairs(&[("kafka_broker_list", "h:9092"), ("kafka_topic", "t")]));
    assert_eq!(create.comment, "why");
    let of_many =
        "create routine load d.j with delete columns terminated by '|' from kafka (\"kafka_topic\" = \"t\")";
    let RoutineLoad::Create(create) = statement(of_many) else { panic!("{of_many}") };
    assert_eq!((create.table, create.clauses.deletes), (None, Some(Deletes::All)));
}

#[test]
fn jobs_are_altered_paused_resumed_stopped_and_shown() {
    let alter =
        "alter routine load for j properties(\"format\" = \"json\") from kafka (\"kafka_offsets\" = \"7\")";
    let expected = RoutineLoad::Alter {
        job: job(None, "j"),
        properties: pairs(&[("format", "json")]),
        source: pairs(&[("kafka_offsets", "7")]),
    };
    assert_eq!(statement(alter), expected);
    assert_eq!(statement("PAUSE ROUTINE LOAD FOR d.j"), RoutineLoad::Pause(job(Some("d"), "j")));
    assert_eq!(statement("pause all routine load"), RoutineLoad::PauseAll);
    assert_eq!(statement("resume routine load for j;"), RoutineLoad::Resume(job(None, "j")));
    assert_eq!(statement("RESUME ALL ROUTINE LOAD"), RoutineLoad::ResumeAll);
    assert_eq!(statement("stop routine load for j"), RoutineLoad::Stop(job(None, "j")));
    for (sql, expected) in [
        ("show routine load", Show::RoutineLoad { history: false, job: None, db: None }),
        (
            "show all routine load from d",
            Show::RoutineLoad { history: true, job: None, db: Some("d".into()) },
        ),
        (
            "SHOW ROUTINE LOAD FOR d.j",
            Show::RoutineLoad { history: false, job: Some(job(Some("d"), "j")), db: None },
        ),
        ("show routine load task where JobName = \"j\"", Show::RoutineLoadTask { job: job(None, "j") }),
        ("show create routine load for j", Show::CreateRoutineLoad { job: job(None, "j") }),
    ] {
        assert_eq!(parse(sql).unwrap(), Statement::Show(Box::new(expected)), "{sql}");
    }
}

#[test]
fn what_a_job_cannot_do_is_refused_by_name() {
    let from = "FROM KAFKA (\"kafka_topic\" = \"t\")";
    for (sql, what) in [
        (
            format!("create routine load j on t temporary partition(p) {from}"),
            "CREATE ROUTINE LOAD … TEMPORARY PARTITION",
        ),
        ("create routine load j on t from pulsar (\"a\" = \"b\")".to_owned(), "ROUTINE LOAD FROM PULSAR"),
        ("alter routine load for j set target table = \"u\"".to_owned(), "ALTER ROUTINE LOAD … SET TARGET"),
    ] {
        let error = parse(&sql).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("is not supported yet"), "{sql}: {error}");
    }
}

#[test]
fn rows_delete_have_a_sequence_and_belong_to_partitions() {
    let from = "FROM KAFKA (\"kafka_topic\" = \"t\")";
    let clauses = |text: &str| match statement(&format!("CREATE ROUTINE LOAD j ON t {text} {from}")) {
        RoutineLoad::Create(create) => create.clauses,
        other => panic!("{other:?}"),
    };
    let merge = clauses(
        "WITH MERGE COLUMNS(a, b), PARTITION(p1, p2), WHERE a > 1, DELETE ON b = 1 OR a = 2, ORDER BY s",
    );
    assert_eq!(merge.deletes, Some(Deletes::If("b = 1 OR a = 2".into())));
    assert_eq!(merge.partitions, ["p1", "p2"]);
    assert_eq!(merge.sequence.as_deref(), Some("s"));
    assert_eq!(clauses("WITH DELETE").deletes, Some(Deletes::All));
    assert_eq!(clauses("WITH APPEND").deletes, None);
    for (text, what) in [
        ("WITH MERGE", "Excepted DELETE ON clause when merge type is MERGE."),
        ("DELETE ON a = 1", "Not support DELETE ON clause when merge type is not MERGE."),
        ("WITH DELETE DELETE ON a = 1", "Not support DELETE ON clause when merge type is not MERGE."),
        ("WITH COLUMNS(a)", "APPEND, MERGE or DELETE"),
    ] {
        let error = parse(&format!("CREATE ROUTINE LOAD j ON t {text} {from}")).unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}
