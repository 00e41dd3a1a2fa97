use super::delete::delete;
use crate::options::StoreOptions;
use crate::testing::{
    Bench, Fault, column, def_of, logged, publication, publish, rows, two_columns, visible, with_default,
};
use crate::{LiveFile, Recast, SchemaChange, Table, TableError, Watch};
use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_types::{ColumnDef, DataType, KeyModel, Live, TableDef};

/// Converts as Arrow does; a value that can't be is an error.
struct Casts;

impl Recast for Casts {
    fn recast(&self, array: &ArrayRef, _: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, String> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, &to.data_type.to_arrow(), &options).map_err(|error| error.to_string())
    }
}

#[derive(Default)]
pub(super) struct Stop(AtomicBool);

impl Watch for Stop {
    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn leaves_doubt(&self) -> bool {
        false
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// `id LARGEINT NOT NULL` as key, `name VARCHAR(20)`, and `more` columns behind.
pub(super) fn wide(more: Vec<ColumnDef>) -> Arc<TableDef> {
    let columns = [
        column(1, "id", DataType::LargeInt, true),
        column(2, "name", DataType::Varchar { bytes: 20 }, false),
    ];
    def_of(2, columns.into_iter().chain(more).collect())
}

/// The columns in the other order, the name as the key: it sorts rows as texts.
fn by_name() -> Arc<TableDef> {
    let name = ColumnDef { is_key: true, ..column(2, "name", DataType::Varchar { bytes: 20 }, false) };
    let id = ColumnDef { is_key: true, ..column(1, "id", DataType::BigInt, true) };
    def_of(2, vec![name, id])
}

pub(super) async fn begin(table: &Table, to: &Arc<TableDef>) -> SchemaChange {
    table.begin_schema_change(77, Arc::clone(to), Arc::new(Casts)).await.unwrap()
}

/// Four files of ids 0 to 399, the rest in the memtable.
async fn filled(def: &Arc<TableDef>) -> (Bench, Arc<Table>) {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let table = bench.store.create(def).await.unwrap();
    for start in [0, 100, 200, 300] {
        put(&table, start..start + 100);
        table.flush().await.unwrap();
    }
    put(&table, 400..410);
    (bench, table)
}

fn put(table: &Table, ids: std::ops::Range<i64>) {
    // Backwards, so that a flush has something to sort.
    publish(table, ids.rev());
}

fn texts(ids: impl IntoIterator<Item = i64>, text: impl Fn(i64) -> String) -> Vec<String> {
    let mut texts: Vec<_> = ids.into_iter().map(text).collect();
    texts.sort();
    texts
}

fn kept(ids: std::ops::Range<i64>, gone: &[i64]) -> Vec<i64> {
    ids.filter(|id| !gone.contains(id)).collect()
}

async fn check(bench: &Bench, table: &Table, def: &Arc<TableDef>, rows: &[String]) {
    assert_eq!(visible(table).await, rows);
    assert_eq!(logged(table).await, rows);
    assert_eq!(bench.store.last_schema_change(def).await.unwrap(), Some(77));
    let again = bench.store.open(def).await.unwrap();
    assert_eq!(visible(&again).await, rows, "after opening it again");
    table.sweep().await.unwrap();
    let used = table.snapshot().files.len();
    let files = bench.data_files().into_iter().filter(|name| name.starts_with("part-"));
    assert_eq!(files.count(), used, "nothing of the change is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_change_while_rows_come_and_go() {
    let (bench, table) = filled(&two_columns()).await;
    delete(&table, [5, 150]).await.unwrap();
    let more = with_default(column(3, "seven", DataType::Int, false), "7");
    let to = wide(vec![more]);
    let mut change = begin(&table, &to).await;
    assert!(change.rewrites() && table.is_changing());
    assert!(table.convert_files(&mut change, &Stop::default()).await.unwrap() > 0);
    put(&table, 410..420);
    delete(&table, [6, 151, 399, 405, 415]).await.unwrap();
    assert!(table.convert_files(&mut change, &Stop::default()).await.unwrap() > 0);
    put(&table, 420..430);
    assert!(table.compact().await.unwrap().is_none(), "files stay what they are meanwhile");
    let def = table.switch_schema(&mut change, &Stop::default()).await.unwrap();
    assert_eq!(def.schema, to.schema);
    assert!(!table.is_changing());
    let ids = kept(0..430, &[5, 150, 6, 151, 399, 405, 415]);
    let rows = texts(ids, |id| format!("{id}|n{id}|7"));
    check(&bench, &table, &def, &rows).await;
    // The table works like any other.
    table.compact_from(2).await.unwrap().unwrap();
    assert_eq!(visible(&table).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_keys_sort_the_rows_and_deletions_follow_them() {
    let (bench, table) = filled(&two_columns()).await;
    delete(&table, [7]).await.unwrap();
    let to = by_name();
    let mut change = begin(&table, &to).await;
    table.convert_files(&mut change, &Stop::default()).await.unwrap();
    delete(&table, [8, 99, 100, 311]).await.unwrap();
    let def = table.switch_schema(&mut change, &Stop::default()).await.unwrap();
    let rows = texts(kept(0..410, &[7, 8, 99, 100, 311]), |id| format!("n{id}|{id}"));
    check(&bench, &table, &def, &rows).await;
    let first = table.snapshot().files.iter().map(LiveFile::path).min().unwrap().to_owned();
    let sorted = bench.names_in_file(&table, &first).await;
    assert!(sorted.is_sorted(), "{sorted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_touches_no_value_writes_no_file() {
    let (bench, table) = filled(&two_columns()).await;
    let mut name = column(2, "name", DataType::String, false);
    name.comment = "longer".to_owned();
    let to = def_of(2, vec![column(1, "id", DataType::BigInt, true), name]);
    let mut change = begin(&table, &to).await;
    assert!(!change.rewrites());
    table.convert_files(&mut change, &Stop::default()).await.unwrap();
    let before = bench.data_files();
    table.switch_schema(&mut change, &Stop::default()).await.unwrap();
    assert_eq!(bench.data_files(), before);
    check(&bench, &table, &to, &texts(0..410, |id| format!("{id}|n{id}"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_can_not_be_converted_and_a_stop_leave_the_table_as_it_was() {
    let (bench, table) = filled(&two_columns()).await;
    let to =
        def_of(2, vec![column(1, "id", DataType::BigInt, true), column(2, "name", DataType::Int, false)]);
    let files = bench.data_files();
    let mut change = begin(&table, &to).await;
    assert!(matches!(
        table.begin_schema_change(78, Arc::clone(&to), Arc::new(Casts)).await,
        Err(TableError::Changing { .. })
    ));
    let error = table.convert_files(&mut change, &Stop::default()).await.unwrap_err();
    assert!(matches!(&error, TableError::Unconvertible { reason, .. } if reason.contains("n0")), "{error}");
    table.abandon(change).await;

    let mut change = begin(&table, &wide(Vec::new())).await;
    table.convert_files(&mut change, &Stop::default()).await.unwrap();
    let stop = Stop(AtomicBool::new(true));
    put(&table, 410..420);
    assert!(matches!(table.switch_schema(&mut change, &stop).await, Err(TableError::Stopped { .. })));
    table.abandon(change).await;
    assert!(!table.is_changing());
    let kept = bench.data_files();
    assert!(files.iter().all(|file| kept.contains(file)));
    assert_eq!(kept.len(), files.len() + 2, "those of two flushes");
    assert_eq!(bench.store.last_schema_change(&table.def()).await.unwrap(), None);
    assert_eq!(visible(&table).await, texts(0..420, |id| format!("{id}|n{id}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_whose_answer_was_lost_is_found() {
    for (fault, unreadable) in
        [(Fault::After, false), (Fault::Echo, false), (Fault::Before, false), (Fault::After, true)]
    {
        let (bench, table) = filled(&two_columns()).await;
        table.flush().await.unwrap();
        let to = wide(Vec::new());
        let mut change = begin(&table, &to).await;
        table.convert_files(&mut change, &Stop::default()).await.unwrap();
        bench.faults.fail_next("00000000000000000006.json", fault);
        if unreadable {
            bench.faults.fail_next_read("00000000000000000006.json");
        }
        // Cancelling is too late now: until the contents of the log are known, no load could be accepted.
        let cancelled = Stop(AtomicBool::new(true));
        table.switch_schema(&mut change, &cancelled).await.unwrap();
        check(&bench, &table, &to, &texts(0..410, |id| format!("{id}|n{id}"))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_writer_brings_is_converted_too() {
    let (bench, table) = filled(&two_columns()).await;
    table.flush().await.unwrap();
    let to = wide(Vec::new());
    let mut change = begin(&table, &to).await;
    table.convert_files(&mut change, &Stop::default()).await.unwrap();
    let other = bench.store.open(&two_columns()).await.unwrap();
    delete(&other, [3, 303]).await.unwrap();
    let next = other.snapshot().version.next().0;
    other.publish(publication(&two_columns().schema, next, rows(500..510))).unwrap();
    other.flush().await.unwrap();
    let def = table.switch_schema(&mut change, &Stop::default()).await.unwrap();
    let ids = kept(0..410, &[3, 303]).into_iter().chain(500..510);
    check(&bench, &table, &def, &texts(ids, |id| format!("{id}|n{id}"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_unique_keys_are_superseded_before_meanwhile_and_after() {
    let unique = |def: Arc<TableDef>| Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&def) });
    for sorts in [false, true] {
        let (bench, table) = filled(&unique(two_columns())).await;
        put(&table, 50..120);
        let to = match sorts {
            false => unique(wide(Vec::new())),
            true => unique(by_name()),
        };
        let mut change = begin(&table, &to).await;
        table.convert_files(&mut change, &Stop::default()).await.unwrap();
        put(&table, 90..250);
        table.convert_files(&mut change, &Stop::default()).await.unwrap();
        put(&table, 200..300);
        let def = table.switch_schema(&mut change, &Stop::default()).await.unwrap();
        let text = |id: i64| if sorts { format!("n{id}|{id}") } else { format!("{id}|n{id}") };
        check(&bench, &table, &def, &texts(0..410, text)).await;
        // Rows of the new schema supersede those of converted files.
        let next = table.snapshot().version.next();
        let ids = crate::view::evolve::adapt(
            &rows(0..410),
            &two_columns().schema,
            &def.schema,
            &def.schema.arrow(),
            0,
        );
        table.publish(publication(&def.schema, next.0, ids.unwrap())).unwrap();
        assert_eq!(visible(&table).await, texts(0..410, text));
        assert_eq!(table.settled().await.unwrap().rows(), 410);
    }
}
