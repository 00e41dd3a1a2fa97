use crate::Table;
use crate::options::StoreOptions;
use crate::testing::{
    Bench, Fault, column, def_of, expected, logged, publish, two_columns, visible, with_default,
};
use std::sync::Arc;
use tributary_types::{DataType, Live, Lsn, TableDef, Version};

/// How the answer to a commit that is in the log gets lost.
const LOST: [Fault; 2] = [Fault::After, Fault::Echo];

/// A table with two data files, whose next Delta version is 3. Removed files may be swept at once.
async fn two_files() -> (Bench, Arc<Table>) {
    let options =
        StoreOptions { compact_min_files: 2, keep_removed_files_ms: Live::new(0), ..StoreOptions::default() };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 0..2 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    (bench, table)
}

/// [`two_columns`] and a column whose default existing rows must get.
fn with_a_default() -> Arc<TableDef> {
    let mut columns = two_columns().schema.columns.clone();
    columns.push(with_default(column(3, "score", DataType::Int, false), "7"));
    def_of(2, columns)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_cannot_write_its_file_keeps_the_memtable_and_leaves_no_file() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    bench.faults.fail_next(".parquet", Fault::Before);
    let error = table.flush().await.unwrap_err();
    assert!(error.to_string().contains("the test said so"), "{error}");
    assert_eq!(table.memtable_rows(), 1);
    assert_eq!(bench.data_files(), Vec::<String>::new());
    publish(&table, [2]);
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));
    assert_eq!(table.flush().await.unwrap().unwrap().version, Version(2));
    assert_eq!(logged(&table).await, expected([1, 2]));
    assert_eq!(table.oldest_unflushed_lsn(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_cannot_log_its_file_keeps_the_rows_visible_and_the_wal_pinned() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    bench.faults.fail_next("00000000000000000001.json", Fault::Before);
    table.flush().await.unwrap_err();
    assert_eq!(visible(&table).await, expected([1]));
    assert_eq!(table.persisted_version(), Version(0));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));
    publish(&table, [2]);
    table.flush().await.unwrap().unwrap();
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(logged(&table).await, expected([1, 2]));
    assert_eq!(bench.data_files().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_found_and_not_repeated() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    bench.faults.fail_next("00000000000000000001.json", Fault::After);
    let report = table.flush().await.unwrap().unwrap();
    assert_eq!((report.version, report.delta_version), (Version(1), 1));
    assert_eq!(table.persisted_version(), Version(1));
    publish(&table, [2]);
    assert_eq!(table.flush().await.unwrap().unwrap().delta_version, 2);
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(logged(&table).await, expected([1, 2]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_whose_commit_looks_taken_by_itself_is_found_and_not_repeated() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    bench.faults.fail_next("00000000000000000001.json", Fault::Echo);
    let report = table.flush().await.unwrap().unwrap();
    assert_eq!((report.version, report.delta_version), (Version(1), 1));
    publish(&table, [2]);
    assert_eq!(table.flush().await.unwrap().unwrap().delta_version, 2);
    assert_eq!(logged(&table).await, expected([1, 2]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_whose_creation_was_not_answered_is_there() {
    for fault in LOST {
        let bench = Bench::new();
        bench.faults.fail_next("00000000000000000000.json", fault);
        let table = bench.store.create(&two_columns()).await.unwrap();
        publish(&table, [1]);
        assert_eq!(table.flush().await.unwrap().unwrap().delta_version, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_whose_commit_was_not_answered_keeps_its_files() {
    for fault in LOST {
        let (bench, table) = two_files().await;
        bench.faults.fail_next("00000000000000000003.json", fault);
        let report = table.compact().await.unwrap().unwrap();
        assert_eq!((report.files_before, report.files_after, report.delta_version), (2, 1, 3), "{fault:?}");
        assert_eq!(visible(&table).await, expected(0..2));
        assert_eq!(logged(&table).await, expected(0..2));
        table.sweep().await.unwrap();
        assert_eq!(bench.data_files().len(), 1);
        publish(&table, [2]);
        assert_eq!(table.flush().await.unwrap().unwrap().delta_version, 4);
        let again = bench.store.open(&two_columns()).await.unwrap();
        assert_eq!(visible(&again).await, expected(0..3));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewrite_for_a_default_whose_commit_was_not_answered_keeps_its_files() {
    for fault in LOST {
        let (bench, table) = two_files().await;
        bench.faults.fail_next("00000000000000000003.json", fault);
        table.alter(with_a_default()).await.unwrap();
        let rows = vec!["0|n0|7".to_owned(), "1|n1|7".to_owned()];
        assert_eq!(visible(&table).await, rows, "{fault:?}");
        assert_eq!(logged(&table).await, rows);
        assert_eq!(table.snapshot().delta_version, 3);
        table.sweep().await.unwrap();
        assert_eq!(visible(&bench.store.open(&with_a_default()).await.unwrap()).await, rows);
    }
}

/// It is unknown whether the entry is in the log, so nothing that it may refer to is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_can_not_read_its_commit_back_deletes_nothing_and_is_taken_in_later() {
    for fault in LOST {
        let (bench, table) = two_files().await;
        bench.faults.fail_next("00000000000000000003.json", fault);
        bench.faults.fail_next_read("00000000000000000003.json");
        let error = table.compact().await.unwrap_err();
        assert!(error.to_string().contains("writing version 3"), "{error}");
        assert_eq!(visible(&table).await, expected(0..2));
        table.sweep().await.unwrap();
        assert_eq!(visible(&table).await, expected(0..2), "queries read the inputs still");
        assert_eq!(visible(&bench.store.open(&two_columns()).await.unwrap()).await, expected(0..2));
        publish(&table, [2]);
        assert_eq!(table.flush().await.unwrap().unwrap().delta_version, 4);
        assert_eq!(visible(&table).await, expected(0..3));
        assert_eq!(logged(&table).await, expected(0..3));
        assert_eq!(table.snapshot().files.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_file_and_log_repeats_nothing_after_replay() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    bench.faults.fail_next("00000000000000000001.json", Fault::Before);
    table.flush().await.unwrap_err();
    assert_eq!(bench.data_files().len(), 1);
    drop(table);

    let table = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!((table.persisted_version(), visible(&table).await), (Version(0), expected([])));
    publish(&table, [1]);
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected([1]));
    let swept = table.sweep().await.unwrap();
    assert_eq!(swept.files, 1);
    assert_eq!(bench.data_files().len(), 1);
    assert_eq!(visible(&table).await, expected([1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_is_cancelled_before_its_commit_loses_nothing() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    let gate = bench.faults.hold_next("00000000000000000001.json");
    {
        let flush = table.flush();
        tokio::pin!(flush);
        tokio::select! {
            _ = &mut flush => panic!("the gate is closed"),
            () = gate.arrived() => {}
        }
    }
    gate.open();
    publish(&table, [2]);
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected([1, 2]));
    assert_eq!(visible(&table).await, expected([1, 2]));
    assert_eq!(table.oldest_unflushed_lsn(), None);
}
