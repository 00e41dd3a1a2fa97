use super::delete::{delete, find};
use super::heavy_change::Stop;
use super::partitions::{by_ids, others_optimize, without};
use crate::options::StoreOptions;
use crate::testing::{Bench, Fault, expected, logged, publish, visible};
use crate::{CopiedFiles, KeptFile, Leaving, Table, TableError, Watch};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{KeyModel, Live, PartitionId, Partitions, TableDef};

/// The recorded files, if recording is possible.
#[derive(Default)]
struct Kept {
    files: Mutex<Vec<KeptFile>>,
    is_full: bool,
}

impl Leaving for Kept {
    fn record(&self, files: Vec<KeptFile>) -> BoxFuture<'_, Result<(), String>> {
        let recorded = if self.is_full { Err("no space".to_owned()) } else { Ok(()) };
        *self.files.lock() = files;
        Box::pin(std::future::ready(recorded))
    }
}

fn partitions(def: &TableDef) -> Arc<Partitions> {
    Arc::clone(def.partitioning.partitions().unwrap())
}

/// Drops the second partition.
async fn drop_second(table: &Table, id: u64) -> (Arc<TableDef>, Vec<KeptFile>) {
    let kept = Kept::default();
    let left = partitions(&without(&table.def(), 2));
    let none = CopiedFiles::default();
    let def = table.switch_partitions(id, &left, &none, Some(&kept), &Stop::default()).await.unwrap();
    (def, kept.files.into_inner())
}

/// Adds the partition again that `before` has in second place.
async fn recover(
    table: &Table,
    id: u64,
    before: &TableDef,
    files: &[KeptFile],
) -> (Arc<TableDef>, PartitionId) {
    let mut with = Partitions::clone(&partitions(&table.def()));
    let partition = with.next_id;
    with.add("again", partitions(before).list[1].rows.clone(), BTreeMap::new());
    let copies = table.kept_files(files, partition).await.unwrap();
    let def = table.switch_partitions(id, &Arc::new(with), &copies, None, &Stop::default()).await.unwrap();
    table.let_files_go(files);
    (def, partition)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_leaves_files_of_a_dropped_partition_alone_until_they_are_let_go() {
    for keys in [KeyModel::Unique, KeyModel::Duplicate { declared: true }] {
        let bench =
            Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
        let before = Arc::new(TableDef { keys, ..TableDef::clone(&by_ids(10, 3)) });
        let table = bench.store.create(&before).await.unwrap();
        publish(&table, [1, 11, 12, 13, 21]);
        table.flush().await.unwrap();
        // A file with deleted rows, and a row in memory.
        let mut all = vec![1, 2, 11, 13, 14, 21];
        if table.keeps_all_rows() {
            delete(&table, [12]).await.unwrap();
            publish(&table, [14]);
        } else {
            publish(&table, [14, 12]);
            all.push(12);
        }
        let all = expected(all);
        let (def, files) = drop_second(&table, 1).await;
        assert_eq!(files.len(), 2, "what was in memory is in a file, too");
        assert_eq!((visible(&table).await, logged(&table).await), (expected([1, 21]), expected([1, 21])));
        table.sweep().await.unwrap();
        // A restart registers them.
        let table = bench.store.open(&def).await.unwrap();
        table.keep_files(&files);
        publish(&table, [2]);
        table.flush().await.unwrap();
        table.sweep().await.unwrap();
        let (def, partition) = recover(&table, 2, &before, &files).await;
        table.sweep().await.unwrap();
        let again = bench.store.open(&def).await.unwrap();
        assert_eq!((visible(&table).await, logged(&table).await), (all.clone(), all.clone()));
        assert_eq!(visible(&again).await, all);
        let in_it =
            again.snapshot().files.iter().filter(|live| live.file.partition == Some(partition)).count();
        assert_eq!(in_it, 2);
        // A row of a key supersedes the recovered one.
        if !again.keeps_all_rows() {
            publish(&again, [13, 15]);
            assert_eq!(visible(&again).await, expected([1, 2, 11, 12, 13, 14, 15, 21]));
            continue;
        }
        let left = Arc::new({
            let mut left = Partitions::clone(&partitions(&def));
            left.remove(&[partition]);
            left
        });
        let kept = Kept::default();
        let none = CopiedFiles::default();
        again.switch_partitions(3, &left, &none, Some(&kept), &Stop::default()).await.unwrap();
        again.sweep().await.unwrap();
        let kept = kept.files.into_inner();
        assert!(kept.iter().all(|kept| bench.data_files().contains(&kept.file.path)));
        again.let_files_go(&kept);
        again.sweep().await.unwrap();
        assert!(kept.iter().all(|kept| !bench.data_files().contains(&kept.file.path)), "nobody keeps them");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_stays_if_its_files_can_not_be_recorded() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    publish(&table, [1, 11]);
    let full = Kept { is_full: true, ..Kept::default() };
    let left = partitions(&without(&table.def(), 2));
    let none = CopiedFiles::default();
    let error = table.switch_partitions(1, &left, &none, Some(&full), &Stop::default()).await.unwrap_err();
    assert!(matches!(&error, TableError::NotRecorded { reason, .. } if reason == "no space"), "{error}");
    assert_eq!((visible(&table).await, logged(&table).await), (expected([1, 11]), expected([1, 11])));
    assert_eq!(partitions(&table.def()).list.len(), 3);
    assert_eq!(kept_names(&table, &full), 0, "compaction and sweep have them again");
}

/// How many of the recorded files are pinned.
fn kept_names(table: &Table, kept: &Kept) -> usize {
    let (unpublished, files) = (table.root().unpublished.lock(), kept.files.lock());
    files.iter().filter(|kept| unpublished.contains(&kept.file.path)).count()
}

/// Leaves the contents of the log to the next start.
struct Leaves;

impl Watch for Leaves {
    fn is_stopped(&self) -> bool {
        true
    }

    fn leaves_doubt(&self) -> bool {
        true
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_stay_as_long_as_it_is_not_known_whether_their_partition_is_dropped() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    let kept = Kept::default();
    let left = partitions(&without(&table.def(), 2));
    bench.faults.fail_next("00000000000000000002.json", Fault::After);
    bench.faults.fail_next_read("00000000000000000002.json");
    let none = CopiedFiles::default();
    let error = table.switch_partitions(1, &left, &none, Some(&kept), &Leaves).await.unwrap_err();
    assert!(matches!(error, TableError::Unsure { .. }), "{error}");
    assert_eq!(kept_names(&table, &kept), 1, "the next start may find the partition dropped, and recover it");
}

/// Waits until the contents of the log are known.
#[derive(Default)]
struct Doubting(Mutex<Vec<String>>);

impl Watch for Doubting {
    fn is_stopped(&self) -> bool {
        false
    }

    fn leaves_doubt(&self) -> bool {
        false
    }

    fn doubts(&self, reason: &str) {
        self.0.lock().push(reason.to_owned());
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_is_dropped_once_it_is_known_what_the_log_has() {
    const ENTRY: &str = "00000000000000000002.json";
    for fault in [Fault::Before, Fault::After, Fault::Echo] {
        let bench = Bench::new();
        let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
        publish(&table, [1, 11]);
        table.flush().await.unwrap();
        let left = partitions(&without(&table.def(), 2));
        bench.faults.fail_next(ENTRY, fault);
        // The entry can't be read back, and then the next attempt fails as well.
        (0..2).for_each(|_| bench.faults.fail_next_read(ENTRY));
        let (kept, doubting) = (Kept::default(), Doubting::default());
        let none = CopiedFiles::default();
        let def = table.switch_partitions(1, &left, &none, Some(&kept), &doubting).await.unwrap();
        assert!(doubting.0.lock().iter().all(|reason| reason.contains("version 2")), "{fault:?}");
        assert!(!doubting.0.lock().is_empty(), "{fault:?}");
        bench.faults.none();
        publish(&table, [21]);
        table.flush().await.unwrap();
        let again = bench.store.open(&def).await.unwrap();
        assert_eq!((visible(&table).await, logged(&table).await), (expected([1, 21]), expected([1, 21])));
        assert_eq!(visible(&again).await, expected([1, 21]), "{fault:?}");
        assert_eq!(bench.store.last_schema_change(&def).await.unwrap(), Some(1), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_deleted_in_a_partition_that_was_dropped_and_recovered_while_they_were_searched_for() {
    let bench = Bench::new();
    let before = by_ids(10, 3);
    let table = bench.store.create(&before).await.unwrap();
    publish(&table, [1, 11, 12]);
    table.flush().await.unwrap();
    let (ids, back) = (BTreeSet::from([11]), Mutex::new(None));
    let (of_table, before, ids, is_back) = (&table, &before, &ids, &back);
    let deletion = of_table.delete("id IN (…)", |view| async move {
        let found = find(of_table, &view, ids).await;
        if is_back.lock().is_none() {
            let (_, files) = drop_second(of_table, 1).await;
            *is_back.lock() = Some(recover(of_table, 2, before, &files).await);
        }
        found
    });
    assert_eq!(deletion.await.unwrap().rows, 1);
    let (def, partition) = back.into_inner().unwrap();
    let of_partitions = |table: &Table| -> BTreeSet<_> {
        table.snapshot().files.iter().filter_map(|live| live.file.partition).collect()
    };
    let again = bench.store.open(&def).await.unwrap();
    for table in [&table, &again] {
        assert_eq!(visible(table).await, expected([1, 12]));
        assert_eq!(of_partitions(table), BTreeSet::from([PartitionId(1), partition]));
    }
}

/// Partitions of a table beside that have moved: no load may find them there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_go_from_memory_also_if_the_log_can_not_be_written() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    let left = without(&table.def(), 2);
    bench.faults.fail_next("00000000000000000002.json", Fault::Before);
    table.alter(Arc::clone(&left)).await.unwrap();
    assert_eq!((visible(&table).await, table.def()), (expected([1]), Arc::clone(&left)));
    let again = bench.store.open(&left).await.unwrap();
    assert_eq!(visible(&again).await, expected([1]), "after a kill");
    drop(again);
    publish(&table, [2]);
    table.flush().await.unwrap();
    assert_eq!((visible(&table).await, logged(&table).await), (expected([1, 2]), expected([1, 2])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_is_swept_of_a_table_of_which_it_is_not_known_what_is_kept() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let before = by_ids(10, 3);
    let table = bench.store.create(&before).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    let (def, files) = drop_second(&table, 1).await;
    table.close().await;
    let again = bench.store.open(&def).await.unwrap();
    again.keep_all_files();
    again.sweep().await.unwrap();
    recover(&again, 2, &before, &files).await;
    assert_eq!(visible(&again).await, expected([1, 11, 21]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_may_come_between_while_a_partition_of_a_table_with_keys_is_dropped() {
    let bench = Bench::new();
    let before = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&by_ids(10, 3)) });
    let table = bench.store.create(&before).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    let gate = bench.faults.hold_next(&format!("{:020}.json", table.snapshot().delta_version + 1));
    let dropping = {
        let table = Arc::clone(&table);
        tokio::spawn(async move { drop_second(&table, 1).await })
    };
    gate.arrived().await;
    others_optimize(&bench, &before, [2, 12]).await;
    gate.open();
    let dropped = tokio::time::timeout(Duration::from_secs(60), dropping).await;
    let (def, files) = dropped.expect("the change waits for nothing of its own").unwrap();
    assert_eq!((visible(&table).await, logged(&table).await), (expected([1, 2, 21]), expected([1, 2, 21])));
    let (_, partition) = recover(&table, 2, &before, &files).await;
    assert!(def.partitioning.partitions().unwrap().by_id(partition).is_none());
    assert_eq!(visible(&table).await, expected([1, 2, 11, 12, 21]));
}
