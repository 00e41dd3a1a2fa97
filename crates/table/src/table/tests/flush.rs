use crate::error::TableError;
use crate::log::commit_info;
use crate::options::{StoreOptions, WriteClaim};
use crate::testing::{
    Bench, Fault, column, def_of, expected, logged, open_file, publication, publish, rows, two_columns,
    visible,
};
use crate::{LiveFile, Table, TableStore};
use deltalake_core::kernel::Action;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tributary_types::{DataType, Live, Lsn, TableDef, TableId, Version};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn published_rows_are_visible_at_once_and_survive_a_flush_and_a_restart() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    assert_eq!(table.persisted_version(), Version(0));
    publish(&table, [3, 1]);
    publish(&table, [2]);
    assert_eq!(visible(&table).await, expected(1..=3));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));

    let report = table.flush().await.unwrap().unwrap();
    assert_eq!((report.version, report.delta_version, report.rows, report.files), (Version(2), 1, 3, 1));
    assert_eq!(table.oldest_unflushed_lsn(), None);
    assert_eq!(table.memtable_bytes(), 0);
    assert_eq!(visible(&table).await, expected(1..=3));
    assert_eq!(table.flush().await.unwrap(), None);

    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.persisted_version(), Version(2));
    assert_eq!(again.snapshot().version, Version(2));
    assert_eq!(again.snapshot().delta_version, 1);
    assert_eq!(again.snapshot().files, table.snapshot().files);
    assert_eq!(visible(&again).await, expected(1..=3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_sorted_by_the_key_columns() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [5, 3]);
    publish(&table, [4, 1, 2]);
    table.flush().await.unwrap();
    let mut reader = open_file(&table, &table.snapshot().files[0]).await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), rows(1..=5));
    assert!(reader.next().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_must_grow_and_may_have_gaps() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let given = |version| table.publish(publication(&two_columns().schema, version, rows([version as i64])));
    given(2).unwrap();
    given(5).unwrap();
    for version in [1, 5] {
        let error = given(version).unwrap_err();
        assert!(matches!(error, TableError::OutOfOrder { .. }), "{error}");
    }
    assert!(table.publish_truncate(Version(5), Lsn(500)).is_err());
    assert_eq!(visible(&table).await, expected([2, 5]));
    assert_eq!(table.flush().await.unwrap().unwrap().version, Version(5));
    assert_eq!(bench.store.open(&two_columns()).await.unwrap().snapshot().version, Version(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_another_schema_are_never_published() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let narrow = rows([1]).project(&[0]).unwrap();
    let error = table.publish(publication(&two_columns().schema, 1, narrow)).unwrap_err();
    assert!(error.to_string().contains("table 'events' do not fit its schema version 1"), "{error}");
    assert_eq!(table.snapshot().version, Version(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publications_go_on_while_a_flush_writes_its_file() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    let gate = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    gate.arrived().await;
    publish(&table, [2]);
    publish(&table, [3]);
    assert_eq!(visible(&table).await, expected(1..=3));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));
    gate.open();
    assert_eq!(flush.await.unwrap().unwrap().unwrap().version, Version(1));
    assert_eq!(visible(&table).await, expected(1..=3));
    assert_eq!(logged(&table).await, expected([1]));
    assert_eq!(table.persisted_version(), Version(1));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(200)));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected(1..=3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncation_removes_files_and_memtable_and_later_rows_stay() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    publish(&table, [2]);
    table.publish_truncate(Version(3), Lsn(300)).unwrap();
    assert_eq!(visible(&table).await, expected([]));
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(200)));
    publish(&table, [4]);
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, expected([4]));
    assert_eq!(logged(&table).await, expected([4]));
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!((again.persisted_version(), visible(&again).await), (Version(4), expected([4])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_during_a_flush_wins_over_the_rows_that_the_flush_writes() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    let gate = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    gate.arrived().await;
    table.publish_truncate(Version(2), Lsn(200)).unwrap();
    publish(&table, [3]);
    gate.open();
    flush.await.unwrap().unwrap();
    assert_eq!(visible(&table).await, expected([3]));
    assert_eq!(table.persisted_version(), Version(1));
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, expected([3]));
    assert_eq!(logged(&table).await, expected([3]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_without_rows_counts_as_a_version_and_is_persisted() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, []);
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)));
    let report = table.flush().await.unwrap().unwrap();
    assert_eq!((report.version, report.files), (Version(1), 0));
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.persisted_version(), Version(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_is_due_by_bytes_or_by_age() {
    let options = StoreOptions {
        flush_bytes: Live::new(1000),
        flush_age_ms: Live::new(60_000),
        ..StoreOptions::default()
    };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    let now = Instant::now();
    assert!(!table.flush_due(now + Duration::from_secs(3600)));
    publish(&table, [1]);
    assert!(!table.flush_due(now));
    assert!(table.flush_due(Instant::now() + Duration::from_secs(60)));
    publish(&table, 0..1000);
    assert!(table.flush_due(now));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_store_leaves_only_named_files_and_removal_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = TableStore::local(&dir.path().join("new/root"), StoreOptions::default()).unwrap();
    let table = store.create(&two_columns()).await.unwrap();
    publish(&table, 0..100);
    table.flush().await.unwrap();
    let location = dir.path().join("new/root/demo/events-7");
    let names: Vec<_> = std::fs::read_dir(&location)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| !name.contains('#')), "{names:?}");
    assert_eq!(
        store.url(&two_columns()),
        url::Url::from_directory_path(location.canonicalize().unwrap()).unwrap().to_string()
    );
    table.close().await;
    assert!(matches!(table.flush().await, Err(TableError::Closed { .. })));
    store.remove("demo/events-7").await.unwrap();
    assert!(!location.exists());
    store.remove("demo/events-7").await.unwrap();
    assert!(store.remove("").await.is_err());
    assert!(store.remove("demo/../..").await.is_err());
    assert!(matches!(store.open(&two_columns()).await, Err(TableError::NotFound { .. })));
}

#[tokio::test]
async fn a_table_is_removed_although_another_process_removes_it_too() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, 0..100);
    table.flush().await.unwrap();
    table.close().await;
    bench.faults.is_cleared_by_others.store(true, Ordering::Relaxed);
    bench.store.remove("demo/events-7").await.unwrap();
    assert!(bench.data_files().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_a_table_twice_opens_it_and_never_takes_anothers_place() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    let again = bench.store.create(&two_columns()).await.unwrap();
    assert_eq!(visible(&again).await, expected([1]));
    let mut other = two_columns().as_ref().clone();
    other.id = TableId(8);
    let error = bench.store.create(&Arc::new(other)).await.err().unwrap();
    assert!(error.to_string().contains("holds table 7, not table 8"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_written_every_so_many_commits_and_the_table_opens_from_it() {
    let bench = Bench::with(StoreOptions { checkpoint_every: Live::new(3), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 1..=4 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    let log = bench.dir.path().join("demo/events-7/_delta_log");
    assert!(log.join("00000000000000000003.checkpoint.parquet").exists());
    // The protocol, the metadata, the table's version, three files.
    assert_eq!(table.rewriter.lock().await.checkpoint_actions, 6);
    std::fs::remove_file(log.join("00000000000000000001.json")).unwrap();
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.persisted_version(), Version(4));
    assert_eq!(visible(&again).await, expected(1..=4));
    assert_eq!(again.snapshot().files, table.snapshot().files);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_larger_a_checkpoint_is_the_more_entries_come_before_the_next() {
    let bench = Bench::with(StoreOptions { checkpoint_every: Live::new(2), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let log = bench.dir.path().join("demo/events-7/_delta_log");
    let is_written = |version: u64| log.join(format!("{version:020}.checkpoint.parquet")).exists();
    let mut next = 1;
    let mut flush = async |times: u64| {
        for id in next..next + times as i64 {
            publish(&table, [id]);
            table.flush().await.unwrap();
        }
        next += times as i64;
    };
    flush(2).await;
    assert!(is_written(2));
    table.rewriter.lock().await.checkpoint_actions = 450;
    flush(3).await;
    assert!(!is_written(4) && !is_written(5));
    flush(1).await;
    assert!(is_written(6), "a hundredth of 450 is 4");
    flush(2).await;
    assert!(is_written(8), "the last had few");
    table.rewriter.lock().await.checkpoint_actions = 1_000_000_000;
    flush(99).await;
    assert!((9..=107).all(|version| !is_written(version)));
    flush(1).await;
    assert!(is_written(108), "readers read no more than a hundred entries");
}

fn truncate(table: &Table) {
    let version = table.snapshot().version.next();
    table.publish_truncate(version, Lsn(version.0 * 100)).unwrap();
}

/// The properties of the table in its log, and how many removed files the log records.
async fn properties_and_tombstones(table: &Table) -> (HashMap<String, String>, usize) {
    let log = &table.root().log;
    let state = log.open(&table.def()).await.unwrap();
    let properties = state.metadata.configuration().iter();
    let properties = properties.map(|(name, value)| (name.clone(), value.clone())).collect();
    (properties, log.files_in_use(0).await.unwrap().len() - state.live.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entries_of_the_log_are_removed_and_checkpoints_forget_removed_files() {
    let options = StoreOptions {
        checkpoint_every: Live::new(1),
        keep_removed_files_ms: Live::new(0),
        keep_log_ms: Live::new(0),
        ..StoreOptions::default()
    };
    let bench = Bench::with(options.clone());
    let table = bench.store.create(&two_columns()).await.unwrap();
    let log = bench.dir.path().join("demo/events-7/_delta_log");
    let entry = |version: u64| log.join(format!("{version:020}.json"));
    for id in 1..=3 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    assert!(!entry(0).exists() && !entry(1).exists(), "a checkpoint after them has them");
    assert!(entry(3).exists(), "the newest stays");
    truncate(&table);
    publish(&table, [5]);
    table.flush().await.unwrap();
    let (properties, tombstones) = properties_and_tombstones(&table).await;
    assert_eq!(properties["delta.deletedFileRetentionDuration"], "interval 0 seconds");
    assert_eq!(properties["delta.logRetentionDuration"], "interval 0 seconds");
    assert_eq!(properties["delta.isolationLevel"], "WriteSerializable");
    assert_eq!(tombstones, 0, "files that may be deleted are in no checkpoint");
    // The settings change: the next entry says so, and what may still be read stays.
    options.keep_removed_files_ms.set(60_000);
    options.keep_log_ms.set(90_500);
    truncate(&table);
    publish(&table, [6]);
    table.flush().await.unwrap();
    let (properties, tombstones) = properties_and_tombstones(&table).await;
    assert_eq!(properties["delta.deletedFileRetentionDuration"], "interval 60 seconds");
    assert_eq!(properties["delta.logRetentionDuration"], "interval 91 seconds");
    assert_eq!(tombstones, 1);
    let newest = u64::try_from(table.snapshot().delta_version).unwrap();
    for id in 7..=9 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    assert!(entry(newest).exists(), "it is younger than 91 s");
    assert_eq!(visible(&table).await, expected(6..=9));
    assert_eq!(logged(&table).await, visible(&table).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_checkpoint_does_not_fail_the_flush() {
    let bench = Bench::with(StoreOptions { checkpoint_every: Live::new(1), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    bench.faults.fail_next("checkpoint", Fault::Before);
    publish(&table, [1]);
    table.flush().await.unwrap().unwrap();
    publish(&table, [2]);
    table.flush().await.unwrap().unwrap();
    assert!(
        bench.dir.path().join("demo/events-7/_delta_log/00000000000000000002.checkpoint.parquet").exists()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writers_commit_is_taken_in_and_never_overwritten() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let stale = bench.store.open(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    // Another engine adds a file.
    let mut writer = stale.new_file_writer().unwrap();
    writer.append(rows([10])).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    let add = Action::Add(LiveFile::from(files[0].clone()).to_add(&two_columns().schema, true));
    stale.root().log.write(2, commit_info("WRITE", true, &[]), &[add]).await.unwrap();

    publish(&table, [2]);
    let report = table.flush().await.unwrap().unwrap();
    assert_eq!(report.delta_version, 3);
    assert_eq!(visible(&table).await, expected([1, 2, 10]));
    assert_eq!(logged(&table).await, expected([1, 2, 10]));
    assert_eq!(stale.persisted_version(), Version(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_moves_to_another_node_has_its_versions_there() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    publish(&table, [2]);
    table.flush().await.unwrap();
    let options = StoreOptions { node: "elsewhere".to_owned(), epoch: 1, ..StoreOptions::default() };
    let url = bench.store.root_url().clone();
    let there = TableStore::with_object_store(bench.store.object_store(), url, options).unwrap();
    let moved = there.open(&two_columns()).await.unwrap();
    assert_eq!((moved.persisted_version(), moved.snapshot().version), (Version(2), Version(2)));
    publish(&moved, [3]);
    moved.flush().await.unwrap();
    let entry = bench.dir.path().join("demo/events-7/_delta_log/00000000000000000002.json");
    let entry = std::fs::read_to_string(entry).unwrap();
    assert!(entry.contains("\"tributary.writer\":\"elsewhere\""), "{entry}");
    assert!(entry.contains("\"tributary.epoch\":1"), "{entry}");
    assert_eq!(bench.store.open(&two_columns()).await.unwrap().persisted_version(), Version(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_was_taken_over_writes_nothing_more() {
    let bench = Bench::new();
    let store = |epoch, is_takeover| {
        let claim = Some(WriteClaim { id: "c".to_owned(), is_takeover });
        let options =
            StoreOptions { epoch, claim, checkpoint_every: Live::new(3), ..StoreOptions::default() };
        let url = bench.store.root_url().clone();
        TableStore::with_object_store(bench.store.object_store(), url, options).unwrap()
    };
    let def = two_columns();
    let former = store(1, false).create(&def).await.unwrap();
    publish(&former, [1]);
    former.flush().await.unwrap();
    // The former writer is frozen here, and the later one has its write-ahead log.
    publish(&former, [2]);
    let later = store(2, true).open(&def).await.unwrap();
    assert_eq!(later.persisted_version(), Version(1));
    publish(&later, [2]);
    for attempt in [former.flush().await.map(drop), former.sweep().await.map(drop)] {
        let refused = attempt.unwrap_err();
        assert!(matches!(refused, TableError::TakenOver { epoch: 1, sealed_at: 2, .. }), "{refused}");
    }
    // In entries, and then in a checkpoint.
    for id in 3..=7 {
        publish(&later, [id]);
        later.flush().await.unwrap();
        assert!(matches!(former.flush().await.unwrap_err(), TableError::TakenOver { .. }));
    }
    assert_eq!(logged(&later).await, expected(1..=7));
    // The next one has the claim from a process that gave it up. It needs no seal, and the earlier one still counts.
    let last = store(3, false).open(&def).await.unwrap();
    publish(&last, [8]);
    assert_eq!(last.flush().await.unwrap().unwrap().delta_version, later.snapshot().delta_version + 1);
    assert!(matches!(former.flush().await.unwrap_err(), TableError::TakenOver { .. }));
    assert!(matches!(store(1, true).open(&def).await, Err(TableError::TakenOver { .. })));
    // Another catalog's epochs are others.
    let claim = Some(WriteClaim { id: "other".to_owned(), is_takeover: true });
    let options = StoreOptions { epoch: 1, claim, ..StoreOptions::default() };
    let url = bench.store.root_url().clone();
    let moved = TableStore::with_object_store(bench.store.object_store(), url, options).unwrap();
    assert_eq!(moved.open(&def).await.unwrap().persisted_version(), Version(8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_former_writer_wrote_before_the_seal_is_read() {
    let bench = Bench::new();
    let def = two_columns();
    let former = bench.store.create(&def).await.unwrap();
    let claim = Some(WriteClaim { id: "c".to_owned(), is_takeover: true });
    let options = StoreOptions { epoch: 2, claim, ..StoreOptions::default() };
    let url = bench.store.root_url().clone();
    let store = TableStore::with_object_store(bench.store.object_store(), url, options).unwrap();
    let root = store.root(&def.location).unwrap();
    let mut state = root.log.open(&def).await.unwrap();
    for id in [1, 2] {
        publish(&former, [id]);
        former.flush().await.unwrap();
    }
    root.log.seal(&mut state, &def).await.unwrap();
    assert_eq!((state.version, state.app_version, state.sealed_at), (3, Version(2), 2));
    root.log.seal(&mut state, &def).await.unwrap();
    assert_eq!(state.version, 3, "it is sealed once");
}

/// As it was written before: the application id was the node's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_writer_makes_no_change_once_a_start_has_looked_for_one() {
    let bench = Bench::new();
    let store = |epoch, is_takeover| {
        let claim = Some(WriteClaim { id: "c".to_owned(), is_takeover });
        let options = StoreOptions { epoch, claim, ..StoreOptions::default() };
        let url = bench.store.root_url().clone();
        TableStore::with_object_store(bench.store.object_store(), url, options).unwrap()
    };
    let def = two_columns();
    let former = store(1, false).create(&def).await.unwrap();
    publish(&former, [1]);
    former.flush().await.unwrap();
    // The former writer is frozen here. The start looks before it opens any table, and then tells the catalog.
    let next = store(2, true);
    assert_eq!(next.last_schema_change(&def).await.unwrap(), None);
    let changed = TableDef { name: "changed".to_owned(), ..TableDef::clone(&def) };
    publish(&former, [2]);
    let refused = former.flush().await.unwrap_err();
    assert!(matches!(refused, TableError::TakenOver { epoch: 1, sealed_at: 2, .. }), "{refused}");
    drop(former.alter(Arc::new(changed)).await);
    let later = next.open(&def).await.unwrap();
    assert_eq!(
        (later.snapshot().delta_version, later.persisted_version()),
        (2, Version(1)),
        "it is sealed once"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_application_id_is_the_nodes_repeats_nothing() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 1..=3 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    drop(table);
    let log = bench.dir.path().join("demo/events-7/_delta_log");
    for version in 1..=3 {
        let path = log.join(format!("{version:020}.json"));
        let entry = std::fs::read_to_string(&path).unwrap();
        assert!(entry.contains("\"appId\":\"tributary-7\""), "{entry}");
        std::fs::write(path, entry.replace("\"tributary-7\"", "\"tributary-node-1\"")).unwrap();
    }
    let table = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!((table.persisted_version(), table.snapshot().version), (Version(3), Version(3)));
    // The former id counts until the table's own exists, and never holds that back.
    publish(&table, [4]);
    assert_eq!(table.flush().await.unwrap().unwrap().version, Version(4));
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.persisted_version(), Version(4));
    assert_eq!(visible(&again).await, expected(1..=4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_comes_back_from_a_file_as_it_was() {
    use arrow::array::{ArrayRef, RecordBatch, StringArray};
    let types = [
        (DataType::Int, "1", "-2147483648"),
        (DataType::Boolean, "true", "false"),
        (DataType::TinyInt, "127", "-128"),
        (DataType::SmallInt, "32767", "-32768"),
        (DataType::BigInt, "9223372036854775807", "-9223372036854775808"),
        (DataType::LargeInt, "99999999999999999999999999999999999999", "-1"),
        (DataType::Float, "1.5", "-0.1"),
        (DataType::Double, "1e300", "-0.1"),
        (DataType::Decimal { precision: 20, scale: 5 }, "123456789012345.12345", "-0.00001"),
        (DataType::Date, "9999-12-31", "0001-01-01"),
        (DataType::DateTime { scale: 6 }, "2024-02-29T23:59:59.123456", "0001-01-01T00:00:00"),
        (DataType::Char { bytes: 4 }, "ab", ""),
        (DataType::Varchar { bytes: 100 }, "héé", "x"),
        (DataType::String, "long text that is more than thirty-two characters", "日本"),
        (DataType::Json, "{\"a\":1}", "[]"),
    ];
    let columns = types
        .iter()
        .enumerate()
        .map(|(index, (data_type, ..))| {
            column(index as u32 + 1, &format!("c{index}"), *data_type, index == 0)
        })
        .collect();
    let def = def_of(1, columns);
    let arrays: Vec<ArrayRef> = types
        .iter()
        .enumerate()
        .map(|(index, (data_type, first, second))| {
            let third = if index == 0 { Some("5") } else { None };
            let text = StringArray::from(vec![Some(*first), Some(*second), third]);
            arrow::compute::cast(&text, &data_type.to_arrow()).unwrap()
        })
        .collect();
    let batch = RecordBatch::try_new(def.schema.arrow(), arrays).unwrap();
    let bench = Bench::new();
    let table = bench.store.create(&def).await.unwrap();
    table.publish(publication(&def.schema, 1, batch)).unwrap();
    let before = visible(&table).await;
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, before);
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&again).await, before);
    let stats = &table.snapshot().files[0].file.stats.columns;
    let bounds = |name: &str| (stats[name].min.clone().unwrap(), stats[name].max.clone().unwrap());
    assert_eq!(bounds("c5"), ("-1".to_owned(), "9".repeat(38)));
    assert_eq!(
        bounds("c10"),
        ("0001-01-01T00:00:00.000000".to_owned(), "2024-02-29T23:59:59.123456".to_owned())
    );
    assert_eq!(bounds("c0"), ("-2147483648".to_owned(), "5".to_owned()));
    assert_eq!(stats["c1"].null_count, Some(1));
    assert_eq!(stats["c1"].min, None);
    let max = again.bounds_of(&again.snapshot()).max_values(&def.schema.columns[8]).unwrap();
    assert_eq!(max.data_type(), &def.schema.columns[8].data_type.to_arrow());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_file_without_statistics_are_counted() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, 0..100);
    table.flush().await.unwrap();
    let entry = bench.dir.path().join("demo/events-7/_delta_log/00000000000000000001.json");
    let bare: Vec<String> = std::fs::read_to_string(&entry)
        .unwrap()
        .lines()
        .map(|line| {
            let mut action: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(add) = action.get_mut("add") {
                add["stats"] = serde_json::Value::Null;
            }
            action.to_string()
        })
        .collect();
    std::fs::write(&entry, bare.join("\n")).unwrap();
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.snapshot().rows(), 100);
    assert!(again.snapshot().files[0].file.stats.columns.values().all(|stats| stats.max.is_none()));
}
