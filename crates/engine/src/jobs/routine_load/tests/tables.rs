//! Jobs whose messages name their tables.

use super::List;
use crate::access::interrupt::Interrupt;
use crate::access::{Access, Object, Privilege};
use crate::engine::Engine;
use crate::jobs::routine_load::job::Job;
use crate::jobs::routine_load::kept::JobState;
use crate::testing::{TestEngine, wait_until};
use arrow::util::display::array_value_to_string;
use std::sync::Arc;
use tributary_sql::{Name, RoutineLoad, Show, Statement};
use tributary_types::{ErrorCode, Principal, SqlError, TableRef};

fn root() -> Principal {
    Principal::new("root", "%", 0)
}

fn named(name: &str) -> Name {
    Name { db: Some("d".to_owned()), table: name.to_owned() }
}

async fn table(engine: &Arc<Engine>, name: &str, columns: &str) {
    engine.ddl.create_database(Interrupt::NEVER, "d", true).await.expect("it is there then");
    let sql = format!("CREATE TABLE {name} ({columns}) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let Ok(Statement::CreateTable(create)) = tributary_sql::parse(&sql) else { panic!("{sql}") };
    let name = TableRef { db: "d".to_owned(), table: name.to_owned() };
    engine.ddl.create_table(Interrupt::NEVER, &create, &name).await.expect("a new table");
}

const PLAIN: &str = "id INT NOT NULL, text STRING";

async fn drop_table(engine: &Arc<Engine>, name: &str) {
    let name = TableRef { db: "d".to_owned(), table: name.to_owned() };
    engine.ddl.drop_table_called(Interrupt::NEVER, &name, true, true).await.expect("it was there");
}

fn rows(engine: &Engine, name: &str) -> u64 {
    engine.names().find("d", name).map_or(0, |table| table.snapshot().rows())
}

/// A job of messages of CSV, or with the clauses and properties.
async fn create(
    engine: &Arc<Engine>,
    list: &List,
    clauses: &str,
    properties: &str,
) -> Result<Arc<Job>, SqlError> {
    engine.jobs.routine.connect_by(Arc::new(list.clone()));
    let sql = format!(
        "CREATE ROUTINE LOAD d.j {clauses} PROPERTIES (\"max_batch_interval\" = \"1\"{properties}) FROM KAFKA \
         (\"kafka_broker_list\" = \"h:1\", \"kafka_topic\" = \"t\", \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\")"
    );
    let Statement::RoutineLoad(statement) = tributary_sql::parse(&sql)? else { panic!("{sql}") };
    let RoutineLoad::Create(statement) = *statement else { panic!("{sql}") };
    engine.jobs.create_job(&root(), None, *statement).await?;
    Ok(engine.jobs.routine.find("d", "j").expect("it was made"))
}

const CSV: &str = "COLUMNS TERMINATED BY ','";

#[tokio::test(flavor = "multi_thread")]
async fn each_message_goes_to_its_table_once_whatever_fails_between_two_commits() {
    let test = TestEngine::open(|_| ()).await;
    let engine = &test.engine;
    for name in ["a", "b", "c"] {
        table(engine, name, PLAIN).await;
    }
    let list = List::default();
    let say = |from: i32, to: i32| {
        for number in from..to {
            list.say(number % 2, format!("{}|{number},row", ["a", "b", "c"][number as usize % 3]));
        }
    };
    say(0, 300);
    list.inside.lock().fails_after = Some(77);
    let job = create(engine, &list, CSV, "").await.expect("a new job");
    let all = || ["a", "b", "c"].map(|name| rows(engine, name));
    wait_until("all rows are there", || all().iter().sum::<u64>() >= 300).await;
    assert_eq!(all(), [100; 3]);
    assert_eq!(list.inside.lock().readers, 2, "the first one failed");
    // Stopped in the middle of a batch, it resumes after each table's loaded rows.
    for round in 0..4 {
        let given = list.inside.lock().given;
        say(300 + round * 60, 360 + round * 60);
        wait_until("some were read", || list.inside.lock().given >= given + 15 * round as u64).await;
        engine.jobs.pause_job(&root(), None, &named("j")).await.expect("it runs");
        engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    }
    wait_until("all rows are there", || all().iter().sum::<u64>() >= 540).await;
    assert_eq!(all(), [180; 3]);
    engine.jobs.stop_job(&root(), None, &named("j")).await.expect("it runs");
    let statistics = job.now().statistics;
    assert_eq!((statistics.loaded_rows, statistics.total_rows, statistics.error_rows), (540, 540, 0));
    assert!(statistics.committed_tasks > 0);
    test.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_goes_away_between_two_commits_of_a_batch_doubles_nothing_in_the_others() {
    let test = TestEngine::open(|_| ()).await;
    let engine = &test.engine;
    table(engine, "a", PLAIN).await;
    table(engine, "b", PLAIN).await;
    let list = List::default();
    for number in 0..10 {
        list.say(0, format!("{}|{number},row", ["a", "b"][number as usize % 2]));
    }
    let job = create(engine, &list, CSV, ", \"max_error_number\" = \"6\"").await.expect("a new job");
    // The batch is open for a second, and its last table is dropped before it is committed.
    wait_until("all were read", || list.inside.lock().given >= 10).await;
    drop_table(engine, "b").await;
    wait_until("b's messages are bad ones", || job.now().statistics.error_rows == 5).await;
    assert_eq!((rows(engine, "a"), job.now().aborted_tasks), (5, 1));
    assert!(!job.now().progress.is_uneven());
    // No table has had a row of the last batch, and still nothing is read again.
    engine.jobs.pause_job(&root(), None, &named("j")).await.expect("it runs");
    let progress = job.progress(&engine.jobs);
    assert_eq!(progress.offsets().values().copied().collect::<Vec<_>>(), [110]);
    job.remember(&engine.jobs);
    assert_eq!(job.now().statistics.error_rows, 5);
    table(engine, "b", PLAIN).await;
    engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    for number in 10..14 {
        list.say(0, format!("{}|{number},row", ["a", "b"][number as usize % 2]));
    }
    wait_until("the new b has the new ones", || rows(engine, "b") >= 2 && rows(engine, "a") >= 7).await;
    wait_until("they are counted", || job.now().statistics.loaded_rows >= 9).await;
    assert_eq!((rows(engine, "a"), rows(engine, "b"), job.now().statistics.loaded_rows), (7, 2, 9));
    test.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_for_no_table_use_up_the_budget_and_are_left_behind() {
    let test = TestEngine::open(|_| ()).await;
    let engine = &test.engine;
    table(engine, "a", PLAIN).await;
    let list = List::default();
    for message in [
        "a|{\"id\": 1}",
        "{\"id\": 2}",
        "nothing|{\"id\": 3}",
        "a|{\"id\": \"x\"}",
        "a|{\"id\": 5}",
        "|{\"id\": 6}",
    ] {
        list.say(0, message.to_owned());
    }
    let job = create(engine, &list, "", ", \"format\" = \"json\"").await.expect("a new job");
    wait_until("the job is paused", || job.kept().state == JobState::Paused).await;
    assert_eq!(job.kept().reason.as_ref().map(|reason| reason.code), Some(102));
    assert_eq!((rows(engine, "a"), job.now().statistics.error_rows), (2, 4));
    assert_eq!(job.now().error_urls.len(), 2, "of a's rows and of those of no table");
    engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    list.say(0, "a|{\"id\": 7}".to_owned());
    wait_until("the good one behind them is there", || rows(engine, "a") >= 3).await;
    assert_eq!((rows(engine, "a"), job.kept().state.is_active()), (3, true));
    // Bad ones alone, twice: the catalog has the position.
    for _ in 0..2 {
        list.say(0, "nothing|{}".to_owned());
        wait_until("the job is paused", || job.kept().state == JobState::Paused).await;
        engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    }
    assert_eq!(job.now().statistics.error_rows, 6);
    let progress: Vec<i64> = job.progress(&engine.jobs).offsets().values().copied().collect();
    assert_eq!(progress, [109]);
    let generation = job.kept().generation;
    assert_eq!(generation, 3, "a generation for each batch without rows");
    test.engine.shutdown().await;
}

/// Denies loads into `secret`.
struct NoSecrets;

impl Access for NoSecrets {
    fn check(&self, _: &Principal, privilege: Privilege, object: Object<'_>) -> Result<(), SqlError> {
        match object {
            Object::Table { table: "secret", .. } if privilege == Privilege::Load => {
                Err(SqlError::new(ErrorCode::TableAccessDenied, "LOAD command denied for table 'd: secret'"))
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_the_maker_may_not_load_into_pauses_the_job_and_names_itself() {
    let test = TestEngine::open_with(|_| (), Arc::new(NoSecrets)).await;
    let engine = &test.engine;
    table(engine, "a", PLAIN).await;
    table(engine, "secret", PLAIN).await;
    let list = List::default();
    list.say(0, "a|1,x".to_owned());
    list.say(0, "secret|2,x".to_owned());
    let job = create(engine, &list, CSV, ", \"max_error_number\" = \"9\"").await.expect("a new job");
    wait_until("the job is paused", || job.kept().state == JobState::Paused).await;
    let reason = job.kept().reason.clone().expect("there is one").text;
    assert!(reason.contains("denied") && reason.contains("secret"), "{reason}");
    assert_eq!(rows(engine, "secret"), 0);
    test.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_many_tables_is_shown_as_one_and_what_it_cannot_do_is_refused_by_name() {
    let test = TestEngine::open(|_| ()).await;
    let engine = &test.engine;
    table(engine, "a", "id INT NOT NULL, n INT").await;
    table(engine, "u", "id INT NOT NULL, n INT").await;
    let list = List::default();
    list.say(0, "a|1,10".to_owned());
    list.say(0, "a|2,3\n3,30".to_owned());
    list.say(0, "u|4,40".to_owned());
    for (clauses, properties, text) in [
        ("COLUMNS(id, n)", "", "Multi-table load does not support setting columns info"),
        ("", ", \"partial_columns\" = \"true\"", "Partial update is not supported in multi-table load."),
        (
            "",
            ", \"format\" = \"json\", \"unique_key_update_mode\" = \"UPDATE_FLEXIBLE_COLUMNS\"",
            "Partial update is not supported in multi-table load.",
        ),
        ("", ", \"format\" = \"orc\"", "Format type is invalid. format=`orc`"),
        ("", ", \"strict_mode\" = \"perhaps\"", "strict_mode should be true or false"),
        ("", ", \"timezone\" = \"Nowhere\"", "Nowhere"),
    ] {
        let refused = create(engine, &list, clauses, properties).await.map(|_| ());
        let error = refused.expect_err(clauses).to_string();
        assert!(error.contains(text), "{clauses}{properties}: {error}");
    }
    let clauses = format!("{CSV}, WHERE n > 5");
    let job = create(engine, &list, &clauses, "").await.expect("a new job");
    wait_until("all are there", || job.now().statistics.total_rows >= 4).await;
    assert_eq!((rows(engine, "a"), rows(engine, "u"), job.now().statistics.unselected_rows), (2, 1, 1));
    let show = Show::RoutineLoad { history: false, job: Some(named("j")), db: None };
    let grid = engine.jobs.show_jobs(&root(), None, &show).expect("it is shown");
    let batch = grid.batch().expect("texts");
    let column = |name: &str| {
        let column = batch.column_by_name(name).expect("one of Doris's");
        array_value_to_string(column, 0).expect("a text")
    };
    assert_eq!((column("TableName"), column("IsMultiTable")), (String::new(), "true".to_owned()));
    assert_eq!(column("Progress"), "{\"0\":\"102\"}");
    let statement = engine.jobs.show_jobs(&root(), None, &Show::CreateRoutineLoad { job: named("j") });
    let statement = format!("{:?}", statement.expect("it is shown"));
    assert!(statement.contains("CREATE ROUTINE LOAD j\\nWITH APPEND"), "{statement}");

    // A table without such a column stops all of it, by name; another condition lets it continue.
    table(engine, "other", PLAIN).await;
    list.say(0, "other|9,x".to_owned());
    wait_until("the job is paused", || job.kept().state == JobState::Paused).await;
    let reason = job.kept().reason.clone().expect("there is one").text;
    assert!(reason.starts_with("table other: "), "{reason}");
    drop_table(engine, "other").await;
    let properties = vec![("max_error_number".to_owned(), "1".to_owned())];
    engine.jobs.alter_job(&root(), None, &named("j"), &properties, &[]).await.expect("it is paused");
    engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    wait_until("it goes on", || job.now().statistics.error_rows == 1).await;
    assert!(job.kept().state.is_active());
    // Setting the position loads the rows again, in all tables.
    engine.jobs.pause_job(&root(), None, &named("j")).await.expect("it runs");
    let source = [("kafka_partitions", "0"), ("kafka_offsets", "100")];
    let source = source.map(|(name, value)| (name.to_owned(), value.to_owned()));
    engine.jobs.alter_job(&root(), None, &named("j"), &[], &source).await.expect("it is paused");
    assert_eq!(job.now().statistics.error_rows, 1, "what was done stays done");
    let budget = vec![("max_error_number".to_owned(), "5".to_owned())];
    engine.jobs.alter_job(&root(), None, &named("j"), &budget, &[]).await.expect("it is paused");
    engine.jobs.resume_job(&root(), None, &named("j")).await.expect("it is paused");
    wait_until("they came again", || rows(engine, "a") >= 4 && rows(engine, "u") >= 2).await;
    assert_eq!((rows(engine, "a"), rows(engine, "u")), (4, 2));
    test.engine.shutdown().await;
}
