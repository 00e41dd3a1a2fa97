//! Rows of equal keys that another engine has put into the Delta log.

use super::heavy_change::{Stop, begin, wide};
use crate::file::LiveFile;
use crate::log::{Written, commit_info};
use crate::table::Publication;
use crate::testing::{Bench, Fault, copying, logged, two_columns, visible};
use crate::{DataFile, Table};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalake_core::kernel::{Action, Add};
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{
    Aggregation, ColumnDef, DataType, KeyModel, Lsn, SchemaVersion, TableDef, TableId, TableSchema,
};

const UNIQUE: KeyModel = KeyModel::Unique;

fn of_model(keys: KeyModel) -> Arc<TableDef> {
    Arc::new(TableDef { keys, ..TableDef::clone(&two_columns()) })
}

/// With a sequence in the table, a number; otherwise a sum.
fn three_columns(keys: KeyModel, third: ColumnDef) -> Arc<TableDef> {
    let mut columns = two_columns().schema.columns.clone();
    let sequence = (keys == UNIQUE).then_some(third.id);
    if keys == KeyModel::Aggregate {
        columns[1] = columns[1].clone().aggregated(Aggregation::Replace);
    }
    columns.push(third);
    let schema = TableSchema { sequence, ..TableSchema::new(SchemaVersion(1), columns) };
    let def = TableDef::new(TableId(7), "demo", "events", schema);
    Arc::new(TableDef { keys, ..def })
}

/// A row: its key, its text, and its number where the table has one.
type Row<'a> = (i64, &'a str, i64);

fn batch(def: &TableDef, rows: &[Row<'_>]) -> RecordBatch {
    let numbers = || -> ArrayRef { Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()) };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>()),
    ];
    columns.extend((columns.len()..def.schema.columns.len()).map(|_| numbers()));
    RecordBatch::try_new(def.schema.arrow(), columns).unwrap()
}

fn put(table: &Table, rows: &[Row<'_>]) {
    let (version, def) = (table.snapshot().version.next(), table.def());
    let publication = Publication {
        version,
        schema: Arc::clone(&def.schema),
        batches: vec![batch(&def, rows)],
        files: Vec::new(),
        replaces: None,
        partitions: None,
        lsn: Lsn(version.0 * 100),
    };
    table.publish(publication).unwrap();
}

/// Another engine appends files in one commit, each with a time of modification and rows.
async fn append(bench: &Bench, def: &Arc<TableDef>, files: &[(i64, &[Row<'_>])]) {
    let engine = bench.store.open(def).await.unwrap();
    let mut actions = Vec::new();
    for (modification_time_ms, rows) in files {
        let mut writer = engine.new_file_writer().unwrap();
        writer.append(batch(def, rows)).await.unwrap();
        for file in writer.finish().await.unwrap().into_files() {
            let file = DataFile { modification_time_ms: *modification_time_ms, ..file };
            let add = LiveFile::from(file).to_add(&def.schema, true);
            actions.push(Action::Add(Add { tags: None, ..add }));
        }
    }
    let version = engine.snapshot().delta_version.unsigned_abs() + 1;
    let written = engine.root().log.write(version, commit_info("WRITE", true, &[]), &actions).await;
    assert_eq!(written.unwrap(), Written::Yes);
}

/// Whether queries, the log, and queries after a start have these rows.
async fn check(bench: &Bench, table: &Table, expected: &[&str]) {
    assert_eq!(visible(table).await, expected, "queries");
    assert_eq!(table.settled().await.unwrap().rows(), expected.len() as u64, "the number of rows");
    assert_eq!(logged(table).await, expected, "the log alone");
    let again = bench.store.open(&table.def()).await.unwrap();
    assert_eq!(visible(&again).await, expected, "after opening it again");
    assert_eq!(again.snapshot().delta_version, table.snapshot().delta_version, "it has nothing to mend");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_engines_rows_of_one_key_the_last_stays_and_supersedes_what_the_log_has() {
    for def in [of_model(UNIQUE), copying(&of_model(UNIQUE))] {
        let bench = Bench::new();
        let table = bench.store.create(&def).await.unwrap();
        put(&table, &[(1, "ours", 0), (2, "ours", 0)]);
        table.flush().await.unwrap();
        append(&bench, &def, &[(5, &[(1, "a", 0), (9, "x", 0), (1, "b", 0), (9, "y", 0)])]).await;
        put(&table, &[(3, "ours", 0)]);
        table.flush().await.unwrap();
        check(&bench, &table, &["1|b", "2|ours", "3|ours", "9|y"]).await;
        // Of files of one commit the one that was written later has the later rows.
        append(&bench, &def, &[(20, &[(2, "later", 0)]), (10, &[(2, "earlier", 0), (4, "c", 0)])]).await;
        append(&bench, &def, &[(30, &[(4, "d", 0)])]).await;
        put(&table, &[(3, "again", 0)]);
        table.flush().await.unwrap();
        check(&bench, &table, &["1|b", "2|later", "3|again", "4|d", "9|y"]).await;
        // Loads follow the engine's rows.
        put(&table, &[(1, "new", 0), (9, "new", 0)]);
        table.flush().await.unwrap();
        check(&bench, &table, &["1|new", "2|later", "3|again", "4|d", "9|new"]).await;
        table.compact_from(2).await.unwrap().unwrap();
        check(&bench, &table, &["1|new", "2|later", "3|again", "4|d", "9|new"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_no_log_has_are_later_than_an_engines() {
    for def in [of_model(UNIQUE), copying(&of_model(UNIQUE))] {
        let bench = Bench::new();
        let table = bench.store.create(&def).await.unwrap();
        put(&table, &[(1, "ours", 0), (2, "ours", 0), (3, "ours", 0)]);
        table.flush().await.unwrap();
        put(&table, &[(1, "later", 0), (4, "later", 0)]);
        // The file's row of 1 is superseded, which the log does not have.
        assert_eq!(visible(&table).await, ["1|later", "2|ours", "3|ours", "4|later"]);
        append(&bench, &def, &[(5, &[(1, "a", 0), (1, "b", 0), (2, "a", 0), (4, "a", 0), (4, "b", 0)])])
            .await;
        table.flush().await.unwrap();
        check(&bench, &table, &["1|later", "2|a", "3|ours", "4|later"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_settles_what_an_engine_has_brought_while_the_server_was_away() {
    for def in [of_model(UNIQUE), copying(&of_model(UNIQUE))] {
        let bench = Bench::new();
        let table = bench.store.create(&def).await.unwrap();
        put(&table, &[(1, "ours", 0), (2, "ours", 0)]);
        table.flush().await.unwrap();
        append(&bench, &def, &[(5, &[(1, "a", 0), (1, "b", 0)]), (6, &[(1, "c", 0), (3, "c", 0)])]).await;
        let table = bench.store.open(&def).await.unwrap();
        check(&bench, &table, &["1|c", "2|ours", "3|c"]).await;
        put(&table, &[(3, "new", 0)]);
        table.flush().await.unwrap();
        check(&bench, &table, &["1|c", "2|ours", "3|new"]).await;
        // Also without a query before the next load.
        append(&bench, &def, &[(7, &[(2, "a", 0), (2, "b", 0)])]).await;
        let table = bench.store.open(&def).await.unwrap();
        put(&table, &[(3, "newer", 0)]);
        table.flush().await.unwrap();
        check(&bench, &table, &["1|c", "2|b", "3|newer"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_sequence_the_greater_one_stays() {
    let def = three_columns(UNIQUE, ColumnDef::new(3, "n", DataType::BigInt));
    let bench = Bench::new();
    let table = bench.store.create(&def).await.unwrap();
    put(&table, &[(1, "ours", 5), (2, "ours", 5), (3, "ours", 5)]);
    table.flush().await.unwrap();
    put(&table, &[(4, "ours", 5), (5, "ours", 5), (6, "ours", 5)]);
    let brought: &[Row<'_>] = &[
        (1, "less", 4),
        (2, "equal", 5),
        (3, "more", 7),
        (3, "within", 6),
        (4, "less", 4),
        (5, "equal", 5),
        (6, "more", 6),
        (7, "more", 2),
        (7, "less", 1),
    ];
    append(&bench, &def, &[(5, brought)]).await;
    table.flush().await.unwrap();
    let expected = ["1|ours|5", "2|equal|5", "3|more|7", "4|ours|5", "5|ours|5", "6|more|6", "7|more|2"];
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_folds_folds_an_engines_rows_in_the_order_of_the_log() {
    let sum = ColumnDef::new(3, "n", DataType::BigInt).aggregated(Aggregation::Sum);
    let def = three_columns(KeyModel::Aggregate, sum);
    let bench = Bench::new();
    let table = bench.store.create(&def).await.unwrap();
    put(&table, &[(1, "ours", 1), (2, "ours", 1)]);
    table.flush().await.unwrap();
    put(&table, &[(2, "later", 10)]);
    append(&bench, &def, &[(5, &[(1, "a", 100), (1, "b", 1_000), (2, "a", 100), (3, "a", 1), (3, "b", 2)])])
        .await;
    table.flush().await.unwrap();
    check(&bench, &table, &["1|b|1101", "2|later|111", "3|b|3"]).await;
    // Nothing is loaded after the start.
    append(&bench, &def, &[(7, &[(3, "d", 1_000)]), (6, &[(3, "c", 100), (4, "c", 1), (4, "d", 1)])]).await;
    let table = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&table).await, ["1|b|1101", "2|later|111", "3|d|1103", "4|d|2"]);
    assert!(table.flush_due(std::time::Instant::now()), "the log has the rows of one key still");
    table.flush().await.unwrap();
    check(&bench, &table, &["1|b|1101", "2|later|111", "3|d|1103", "4|d|2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_fails_or_whose_answer_is_lost_is_made_up_for() {
    for def in [of_model(UNIQUE), copying(&of_model(UNIQUE))] {
        for fault in [Fault::Before, Fault::After, Fault::Echo] {
            let bench = Bench::new();
            let table = bench.store.create(&def).await.unwrap();
            put(&table, &[(1, "ours", 0), (2, "ours", 0)]);
            table.flush().await.unwrap();
            append(&bench, &def, &[(5, &[(1, "a", 0), (1, "b", 0), (3, "a", 0)])]).await;
            let table = bench.store.open(&def).await.unwrap();
            bench.faults.fail_next("_delta_log/00000000000000000003.json", fault);
            bench.faults.fail_next_read("_delta_log/00000000000000000003.json");
            let shown = visible(&table).await;
            if fault == Fault::Before {
                // Queries are answered nevertheless.
                assert_eq!(shown, ["1|a", "1|b", "1|ours", "2|ours", "3|a"]);
            }
            bench.faults.none();
            put(&table, &[(3, "new", 0)]);
            table.flush().await.unwrap();
            check(&bench, &table, &["1|b", "2|ours", "3|new"]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_takes_an_engines_rows_with_it_and_a_change_keeps_them_once() {
    let def = of_model(UNIQUE);
    let bench = Bench::new();
    let table = bench.store.create(&def).await.unwrap();
    put(&table, &[(1, "ours", 0)]);
    table.flush().await.unwrap();
    append(&bench, &def, &[(5, &[(1, "a", 0), (1, "b", 0)])]).await;
    let version = table.snapshot().version.next();
    table.publish_truncate(version, Lsn(version.0 * 100)).unwrap();
    put(&table, &[(2, "ours", 0)]);
    table.flush().await.unwrap();
    check(&bench, &table, &["2|ours"]).await;
    append(&bench, &def, &[(6, &[(2, "a", 0), (2, "b", 0)])]).await;
    let mut columns = def.schema.columns.clone();
    columns.push(crate::testing::with_default(ColumnDef::new(3, "n", DataType::BigInt), "7"));
    let schema = TableSchema::new(SchemaVersion(2), columns);
    let changed = TableDef { schema: Arc::new(schema), ..TableDef::clone(&def) };
    table.alter(Arc::new(changed)).await.unwrap();
    check(&bench, &table, &["2|b|7"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_may_come_between_while_types_of_a_table_with_keys_change() {
    let def = of_model(UNIQUE);
    let bench = Bench::new();
    let table = bench.store.create(&def).await.unwrap();
    put(&table, &[(1, "ours", 0), (2, "ours", 0)]);
    table.flush().await.unwrap();
    let to = Arc::new(TableDef { keys: UNIQUE, ..TableDef::clone(&wide(Vec::new())) });
    let mut change = begin(&table, &to).await;
    table.convert_files(&mut change, &Stop::default()).await.unwrap();
    let gate = bench.faults.hold_next(&format!("{:020}.json", table.snapshot().delta_version + 1));
    let changing = {
        let table = Arc::clone(&table);
        tokio::spawn(async move { table.switch_schema(&mut change, &Stop::default()).await })
    };
    gate.arrived().await;
    append(&bench, &def, &[(5, &[(1, "a", 0), (1, "b", 0), (3, "a", 0)])]).await;
    gate.open();
    let changed = tokio::time::timeout(Duration::from_secs(60), changing).await;
    changed.expect("the change waits for nothing of its own").unwrap().unwrap();
    check(&bench, &table, &["1|b", "2|ours", "3|a"]).await;
}
