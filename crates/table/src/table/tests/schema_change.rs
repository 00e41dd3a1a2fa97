use crate::error::TableError;
use crate::options::StoreOptions;
use crate::testing::{
    Bench, Fault, column, def_of, expected, logged, publication, publish, rows, text_rows, two_columns,
    visible, with_default,
};
use std::sync::Arc;
use tributary_types::{ColumnDef, ColumnId, DataType, DefaultValue, Live, TableDef, Version};

pub(super) fn next_version(old: &TableDef, change: impl FnOnce(&mut Vec<ColumnDef>)) -> Arc<TableDef> {
    let mut columns = old.schema.columns.clone();
    change(&mut columns);
    let mut def = def_of(old.schema.version.0 + 1, columns).as_ref().clone();
    let mut schema = def.schema.as_ref().clone();
    schema.next_column_id = ColumnId(schema.next_column_id.0.max(old.schema.next_column_id.0));
    def.schema = Arc::new(schema);
    Arc::new(def)
}

fn with_note(old: &TableDef) -> Arc<TableDef> {
    next_version(old, |columns| columns.push(column(3, "note", DataType::String, false)))
}

pub(super) fn with_score(old: &TableDef) -> Arc<TableDef> {
    next_version(old, |columns| columns.push(with_default(column(3, "score", DataType::Int, false), "7")))
}

pub(super) fn delta_config(table: &crate::Table) -> impl Future<Output = (String, String)> {
    let root = Arc::clone(table.root());
    let def = table.def();
    async move {
        let state = root.log.load(&def).await.unwrap();
        (serde_json::to_string(&state.protocol).unwrap(), serde_json::to_string(&state.metadata).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_without_default_is_null_in_old_rows_and_no_file_is_rewritten() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    publish(&table, [2]);
    let files = bench.data_files();
    let def = with_note(&two_columns());
    table.alter(Arc::clone(&def)).await.unwrap();
    assert_eq!(visible(&table).await, ["1|n1|NULL", "2|n2|NULL"]);
    assert_eq!(bench.data_files(), files);
    // A load that was decoded before the change is adapted.
    publish(&table, [3]);
    table.flush().await.unwrap();
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&again).await, ["1|n1|NULL", "2|n2|NULL", "3|n3|NULL"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_with_a_default_has_it_in_every_old_row_also_for_other_readers() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    publish(&table, [2]);
    let def = with_score(&two_columns());
    table.alter(Arc::clone(&def)).await.unwrap();
    publish(&table, [3]);
    let all = ["1|n1|7", "2|n2|7", "3|n3|7"];
    assert_eq!(visible(&table).await, all);
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, all);
    assert!(
        table
            .snapshot()
            .files
            .iter()
            .all(|live| live.file.stats.columns["score"].min.as_deref() == Some("7"))
    );
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(
        (again.persisted_version(), visible(&again).await),
        (Version(3), all.map(str::to_owned).to_vec())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_load_of_the_old_schema_is_rewritten_by_the_next_flush() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows([1])).await.unwrap();
    table.alter(with_score(&two_columns())).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    let mut load = publication(&two_columns().schema, 1, rows([]));
    load.files = files;
    table.publish(load).unwrap();
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, ["1|n1|7"]);
    assert_eq!(logged(&table).await, ["1|n1|7"]);
    assert_eq!(table.snapshot().files.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_a_flush_rewrote_stays_until_the_delta_log_has_its_rows() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows([1])).await.unwrap();
    table.alter(with_score(&two_columns())).await.unwrap();
    let mut load = publication(&two_columns().schema, 1, rows([]));
    load.files = writer.finish().await.unwrap().into_files();
    let of_load = load.files[0].path.clone();
    table.publish(load).unwrap();
    bench.faults.fail_next("_delta_log/0", Fault::Before);
    table.flush().await.unwrap_err();
    assert_eq!(visible(&table).await, ["1|n1|7"]);
    assert!(table.snapshot().files.iter().all(|live| live.path() != of_load));
    // The write-ahead log still has the load, and a replay needs its file.
    table.sweep().await.unwrap();
    assert!(bench.data_files().contains(&of_load));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, ["1|n1|7"]);
    table.sweep().await.unwrap();
    assert!(!bench.data_files().contains(&of_load));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renamed_column_keeps_its_values_and_its_physical_name() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    publish(&table, [2]);
    let (protocol, _) = delta_config(&table).await;
    assert!(protocol.contains(r#""minReaderVersion":1"#), "{protocol}");
    let def = next_version(&two_columns(), |columns| columns[1].name = "title".to_owned());
    table.alter(Arc::clone(&def)).await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(table.snapshot().schema.field(1).name(), "title");
    table.flush().await.unwrap();
    let (protocol, metadata) = delta_config(&table).await;
    assert!(protocol.contains(r#""readerFeatures":["columnMapping"]"#), "{protocol}");
    assert!(metadata.contains(r#""delta.columnMapping.mode":"name""#), "{metadata}");
    assert!(metadata.contains(r#"\"delta.columnMapping.physicalName\":\"name\""#), "{metadata}");
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&again).await, expected([1, 2]));
    let stats = &again.snapshot().files[0].file.stats.columns;
    assert_eq!(stats["name"].min.as_deref(), Some("n1"), "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_columns_values_never_come_back_under_the_same_name() {
    let bench = Bench::new();
    let first = with_note(&two_columns());
    let table = bench.store.create(&first).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    let dropped = next_version(&first, |columns| drop(columns.remove(1)));
    table.alter(Arc::clone(&dropped)).await.unwrap();
    assert_eq!(visible(&table).await, ["1|NULL"]);

    let mut name = column(4, "name", DataType::Varchar { bytes: 20 }, false);
    let reused = next_version(&dropped, |columns| columns.push(name.clone()));
    let error = table.alter(reused).await.unwrap_err();
    assert!(matches!(error, TableError::PhysicalNameReused { .. }), "{error}");
    assert_eq!(visible(&table).await, ["1|NULL"]);

    name.physical_name = "name_4".to_owned();
    let def = next_version(&dropped, |columns| columns.push(name));
    table.alter(Arc::clone(&def)).await.unwrap();
    publish(&table, [2]);
    assert_eq!(visible(&table).await, ["1|NULL|NULL", "2|NULL|NULL"]);
    table.flush().await.unwrap();
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&again).await, ["1|NULL|NULL", "2|NULL|NULL"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_datetime_column_raises_the_protocol_only_when_it_is_there() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut at = column(3, "at", DataType::DateTime { scale: 3 }, false);
    at.default = Some(DefaultValue::CurrentTimestamp { scale: 3 });
    publish(&table, [1]);
    let def = next_version(&two_columns(), |columns| columns.push(at));
    table.alter(Arc::clone(&def)).await.unwrap();
    let (protocol, _) = delta_config(&table).await;
    assert!(protocol.contains("timestampNtz") && protocol.contains("invariants"), "{protocol}");
    assert!(!visible(&table).await[0].ends_with("NULL"));
    let renamed = next_version(&def, |columns| columns[2].name = "when".to_owned());
    table.alter(renamed).await.unwrap();
    let (protocol, _) = delta_config(&table).await;
    assert!(protocol.contains("columnMapping") && protocol.contains("timestampNtz"), "{protocol}");
    assert_eq!(logged(&table).await, visible(&table).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_a_table_completes_a_change_that_a_crash_cut_short() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    drop(table);
    let def = with_score(&two_columns());
    let table = bench.store.open(&def).await.unwrap();
    assert_eq!(logged(&table).await, ["1|n1|7"]);
    assert_eq!(visible(&table).await, ["1|n1|7"]);
    // And back: the catalog never heard of the change that the log has.
    let table = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(visible(&table).await, expected([1]));
    let other = next_version(&two_columns(), |columns| {
        let mut score = with_default(column(3, "score", DataType::Int, false), "8");
        score.physical_name = "score".to_owned();
        columns.push(score);
    });
    table.alter(other).await.unwrap();
    assert_eq!(visible(&table).await, ["1|n1|8"]);
    assert_eq!(logged(&table).await, ["1|n1|8"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_could_not_be_logged_is_logged_by_the_next_flush() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    bench.faults.fail_next("00000000000000000001.json", Fault::Before);
    let def = with_note(&two_columns());
    table.alter(def).await.unwrap();
    assert_eq!(table.def().schema.columns.len(), 3);
    assert!(table.flush_due(std::time::Instant::now()));
    table.flush().await.unwrap().unwrap();
    let (_, metadata) = delta_config(&table).await;
    assert!(metadata.contains("note"), "{metadata}");
    assert!(!table.flush_due(std::time::Instant::now()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewrite_that_fails_changes_nothing() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    bench.faults.fail_next(".parquet", Fault::Before);
    table.alter(with_score(&two_columns())).await.unwrap_err();
    assert_eq!(visible(&table).await, expected([1]));
    assert_eq!(table.def().schema.columns.len(), 2);
    table.alter(with_score(&two_columns())).await.unwrap();
    assert_eq!(visible(&table).await, ["1|n1|7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rename_does_not_wait_for_a_running_flush() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    let gate = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    gate.arrived().await;
    let def = next_version(&two_columns(), |columns| columns[1].name = "title".to_owned());
    let alter = tokio::spawn({
        let (table, def) = (Arc::clone(&table), Arc::clone(&def));
        async move { table.alter(def).await }
    });
    while table.def().schema.version != def.schema.version {
        tokio::task::yield_now().await;
    }
    publish(&table, [2]);
    assert_eq!(text_rows(&table.snapshot().memtable[0].batch), ["1|n1"]);
    gate.open();
    flush.await.unwrap().unwrap();
    alter.await.unwrap().unwrap();
    assert_eq!(visible(&table).await, expected([1, 2]));
    table.flush().await.unwrap();
    let (_, metadata) = delta_config(&table).await;
    assert!(metadata.contains("title"), "{metadata}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_rows_cannot_follow_are_refused() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    let refused = |change: &dyn Fn(&mut Vec<ColumnDef>)| {
        let def = next_version(&two_columns(), change);
        let table = Arc::clone(&table);
        async move { table.alter(def).await.unwrap_err().to_string() }
    };
    let wider = refused(&|columns| columns[0].data_type = DataType::Int).await;
    assert!(wider.contains("cannot change from bigint to int"), "{wider}");
    let bare = refused(&|columns| columns.push(column(3, "k", DataType::Int, true))).await;
    assert!(bare.contains("add a DEFAULT"), "{bare}");
    let bad = refused(&|columns| columns.push(with_default(column(3, "k", DataType::Int, false), "x"))).await;
    assert!(bad.contains("the default 'x' of column 'k' is not a int"), "{bad}");
    assert_eq!(visible(&table).await, expected([1]));
}
