//! Every property of a job, and of its source, one by one: it works, has no effect by its nature, or is refused by name.

use super::List;
use crate::access::interrupt::Interrupt;
use crate::engine::Engine;
use crate::testing::{TestEngine, wait_until};
use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_kafka::{Connect, Settings, SourceError, Topic};
use tributary_query::SessionView;
use tributary_sql::{RoutineLoad, Statement};
use tributary_types::{Principal, SqlError, TableRef};

/// The outcome of a property.
enum Comes {
    /// These rows, sorted, and this many bad ones.
    Rows(&'static [&'static str], u64),
    /// No job is made, and the message has this text.
    Refused(&'static str),
}

use Comes::*;

const CSV: &[&str] = &["1,a", "2,b"];
const ROWS: Comes = Rows(&["1|a", "2|b"], 0);
const JSON: &[&str] = &["{\"id\":1,\"text\":\"a\"}", "{\"id\":2,\"text\":\"b\"}"];

/// A property, its value, the rest of the statement, the messages, and the outcome.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    Comes,
);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("desired_concurrent_number", "3", "", &[], CSV, ROWS),
    ("desired_concurrent_number", "0", "", &[], CSV, Refused("desired_concurrent_number should > 0")),
    ("max_batch_interval", "2", "", &[], CSV, ROWS),
    ("max_batch_interval", "0", "", &[], CSV, Refused("max_batch_interval should be 1 to 3600")),
    ("max_batch_rows", "200000", "", &[], CSV, ROWS),
    ("max_batch_rows", "10", "", &[], CSV, Refused("max_batch_rows should > 200000")),
    ("max_batch_size", "1073741824", "", &[], CSV, ROWS),
    ("max_batch_size", "10", "", &[], CSV, Refused("max_batch_size should between 100MB and 10GB")),
    ("max_error_number", "1", "", &[], &["1,a", "x"], Rows(&["1|a"], 1)),
    ("max_error_number", "x", "", &[], CSV, Refused("max_error_number should >= 0")),
    ("max_filter_ratio", "0.6", "", &[("max_error_number", "9")], &["1,a", "x"], Rows(&["1|a"], 1)),
    ("max_filter_ratio", "2", "", &[], CSV, Refused("max_filter_ratio should be between 0 and 1")),
    ("strict_mode", "true", "COLUMNS(id, text, n), WHERE n > 0", &[], CSV, Refused("Unknown column 'n'")),
    ("strict_mode", "false", "COLUMNS(text, id)", &[], &["a,1"], Rows(&["1|a"], 0)),
    ("strict_mode", "yes", "", &[], CSV, Refused("strict_mode should be true or false")),
    ("timezone", "+08:00", "COLUMNS(id, x, text = from_unixtime(0))", &[], &["1,a"], Rows(&["1|1970-01-01 08:00:00"], 0)),
    ("timezone", "Nowhere", "", &[], CSV, Refused("Nowhere")),
    ("format", "json", "", &[], JSON, ROWS),
    ("format", "parquet", "", &[], CSV, Refused("Format type is invalid. format=`parquet`")),
    ("jsonpaths", "[\\\"$.n.i\\\", \\\"$.t\\\"]", "", &[("format", "json")], &["{\"n\":{\"i\":1},\"t\":\"a\"}"], Rows(&["1|a"], 0)),
    ("json_root", "$.d", "", &[("format", "json")], &["{\"d\":{\"id\":1,\"text\":\"a\"}}"], Rows(&["1|a"], 0)),
    ("strip_outer_array", "true", "", &[("format", "json")], &["[{\"id\":1,\"text\":\"a\"},{\"id\":2,\"text\":\"b\"}]"], ROWS),
    ("num_as_string", "true", "", &[("format", "json")], &["{\"id\":1,\"text\":[1]}"], Rows(&["1|[\"1\"]"], 0)),
    ("fuzzy_parse", "true", "", &[("format", "json")], JSON, ROWS),
    ("enclose", "'", "", &[], &["1,'a,b'"], Rows(&["1|a,b"], 0)),
    ("enclose", "ab", "", &[], CSV, Refused("enclose must be single-char")),
    ("escape", "\\\\", "", &[("enclose", "'")], &["1,'a\\'b'"], Rows(&["1|a'b"], 0)),
    ("trim_double_quotes", "true", "", &[], &["\"1\",\"a\""], Rows(&["1|a"], 0)),
    ("empty_field_as_null", "true", "", &[], &["1,"], Rows(&["1|NULL"], 0)),
    ("send_batch_parallelism", "4", "", &[], CSV, ROWS),
    ("load_to_single_tablet", "false", "", &[], CSV, ROWS),
    ("load_to_single_tablet", "true", "", &[], CSV, Refused("load_to_single_tablet needs a table with RANDOM distribution")),
    ("exec_mem_limit", "2147483648", "", &[], CSV, ROWS),
    ("partial_columns", "false", "", &[], CSV, ROWS),
    ("partial_columns", "true", "", &[], CSV, Refused("Only unique key merge on write support partial update")),
    ("unique_key_update_mode", "UPSERT", "", &[], CSV, ROWS),
    ("unique_key_update_mode", "UPDATE_FIXED_COLUMNS", "", &[], CSV,
        Refused("Only unique key merge on write support partial update")),
    ("line_delimiter", ";", "", &[], CSV, Refused("line_delimiter is invalid property")),
];

/// The list in Doris's documentation.
const PROPERTIES: [&str; 22] = [
    "desired_concurrent_number",
    "max_batch_interval",
    "max_batch_rows",
    "max_batch_size",
    "max_error_number",
    "max_filter_ratio",
    "strict_mode",
    "timezone",
    "format",
    "jsonpaths",
    "json_root",
    "strip_outer_array",
    "num_as_string",
    "fuzzy_parse",
    "send_batch_parallelism",
    "load_to_single_tablet",
    "partial_columns",
    "unique_key_update_mode",
    "enclose",
    "escape",
    "exec_mem_limit",
    "trim_double_quotes",
];

/// A list for each topic.
#[derive(Debug)]
struct Topics(BTreeMap<String, List>);

impl Connect for Topics {
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Topic>, SourceError> {
        Ok(Box::new(self.0[&settings.topic].clone()))
    }
}

fn root() -> Principal {
    Principal::new("root", "%", 0)
}

/// The job `j<number>` of a case into the table of its number.
async fn create(engine: &Arc<Engine>, number: usize, case: &Case) -> Result<(), SqlError> {
    let (name, value, clauses, more, ..) = case;
    let mut properties = vec![format!("\"{name}\" = \"{value}\"")];
    properties.extend(more.iter().map(|(name, value)| format!("\"{name}\" = \"{value}\"")));
    if *name != "max_batch_interval" {
        properties.push("\"max_batch_interval\" = \"1\"".to_owned());
    }
    let is_json = *name == "format" || more.contains(&("format", "json"));
    let separator = if is_json { "" } else { "COLUMNS TERMINATED BY ',' " };
    let sql = format!(
        "CREATE ROUTINE LOAD j{number} ON t{number} {separator}{clauses} PROPERTIES ({}) FROM KAFKA (\"kafka_broker_list\" = \"h:1\", \
         \"kafka_topic\" = \"{number}\", \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\")",
        properties.join(", ")
    );
    let Statement::RoutineLoad(statement) = tributary_sql::parse(&sql)? else { panic!("{sql}") };
    let RoutineLoad::Create(statement) = *statement else { panic!("{sql}") };
    engine.jobs.create_job(&root(), Some("d"), *statement).await
}

async fn rows(engine: &Engine, number: usize) -> Vec<String> {
    let query = tributary_sql::parse_query(&format!("SELECT id, text FROM d.t{number} ORDER BY id"))
        .expect("a query");
    let result =
        engine.queries.of(&root()).query(&SessionView::new("root", 0), &query, &[]).await.expect("it runs");
    let batches: Vec<_> = result.stream.try_collect().await.expect("it runs");
    let value = |column: &arrow::array::ArrayRef, row| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => array_value_to_string(column, row).expect("it is shown"),
    };
    let line = |batch: &arrow::array::RecordBatch, row| {
        batch.columns().iter().map(|column| value(column, row)).collect::<Vec<_>>().join("|")
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|row| line(batch, row)).collect::<Vec<_>>())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_property_of_a_job_works_or_is_refused_by_name() {
    let test = TestEngine::open(|_| ()).await;
    test.table().await;
    let lists: BTreeMap<String, List> =
        (0..CASES.len()).map(|number| (number.to_string(), List::default())).collect();
    for (number, (_, _, _, _, messages, _)) in CASES.iter().enumerate() {
        messages.iter().for_each(|message| lists[&number.to_string()].say(0, (*message).to_owned()));
    }
    test.engine.jobs.routine.connect_by(Arc::new(Topics(lists)));
    for (number, case) in CASES.iter().enumerate() {
        {
            let sql = format!(
                "CREATE TABLE t{number} (id INT NOT NULL, text STRING) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
            );
            let Ok(Statement::CreateTable(create)) = tributary_sql::parse(&sql) else { panic!("{sql}") };
            let name = TableRef { db: "d".to_owned(), table: format!("t{number}") };
            test.engine.ddl.create_table(Interrupt::NEVER, &create, &name).await.expect("a new table");
        }
        match (create(&test.engine, number, case).await, &case.5) {
            (Ok(()), Rows(..)) => {}
            (Err(error), Refused(text)) => assert!(error.to_string().contains(text), "{}: {error}", case.0),
            (outcome, _) => panic!("{} = {}: {outcome:?}", case.0, case.1),
        }
    }
    for (number, (name, value, _, _, _, comes)) in CASES.iter().enumerate() {
        let Rows(expected, errors) = comes else { continue };
        let job = test.engine.jobs.routine.find("d", &format!("j{number}")).expect("it was made");
        let all = expected.len() as u64 + errors;
        wait_until(&format!("{name} = {value} has its rows"), || job.now().statistics.total_rows >= all)
            .await;
        assert_eq!(rows(&test.engine, number).await, *expected, "{name} = {value}");
        assert_eq!(job.now().statistics.error_rows, *errors, "{name} = {value}");
        assert!(job.kept().state.is_active(), "{name} = {value}");
    }
    test.engine.shutdown().await;
}

#[test]
fn every_property_of_a_job_is_tried_and_described() {
    let page = include_str!("../../../../../../docs/sql.md");
    for property in PROPERTIES {
        assert!(CASES.iter().any(|(name, ..)| *name == property), "{property} is not tried");
        assert!(
            page.contains(&format!("`{property}`")) || page.contains(&format!("\"{property}\"")),
            "{property} is not described"
        );
    }
}
