use crate::options::StoreOptions;
use crate::testing::{Bench, Fault, expected, logged, publish, two_columns, visible};
use tributary_types::{Lsn, Version};

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
async fn a_crash_between_file_and_log_repeats_nothing_after_replay() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: 0, ..StoreOptions::default() });
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
