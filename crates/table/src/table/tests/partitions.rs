use super::files::nothing_is_left;
use crate::file::LiveFile;
use crate::log::{Written, commit_info};
use crate::options::StoreOptions;
use crate::testing::{
    Bench, Fault, column, expected, logged, publish, read_files, rows, rows_of, two_columns, visible,
};
use crate::{Publication, Table};
use deltalake_core::kernel::Action;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tributary_types::partition::{Bound, PartitionRows, PartitionValue};
use tributary_types::{
    ColumnId, DataType, DropMark, KeyModel, Live, Lsn, PartitionId, PartitionMethod, Partitioning,
    Partitions, TableDef,
};

/// [`two_columns`] in partitions of `width` ids each, from 0 on.
pub(super) fn by_ids(width: i128, count: i128) -> Arc<TableDef> {
    let mut partitions = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
    let bound = |value| vec![Bound::Value(PartitionValue::Int(value))];
    for number in 0..count {
        let rows = PartitionRows::Range { lower: bound(number * width), upper: bound((number + 1) * width) };
        partitions.add(&format!("p{number}"), rows, BTreeMap::new());
    }
    let partitioning = Partitioning::By(partitions.into());
    Arc::new(TableDef { partitioning, ..TableDef::clone(&two_columns()) })
}

/// The ids that the stored bounds say, and the partitions, of all files.
fn ranges(table: &Table) -> Vec<(u64, String, String)> {
    let mut ranges: Vec<_> = table
        .snapshot()
        .files
        .iter()
        .map(|live| {
            let stats = &live.file.stats.columns["id"];
            let partition = live.file.partition.expect("all files have a partition");
            (partition.0, stats.min.clone().unwrap(), stats.max.clone().unwrap())
        })
        .collect();
    ranges.sort();
    ranges
}

fn range(partition: u64, min: &str, max: &str) -> (u64, String, String) {
    (partition, min.to_owned(), max.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_writes_a_file_for_each_partition_which_a_restart_knows_again() {
    let bench = Bench::new();
    let def = by_ids(10, 5);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [25, 3, 11]);
    publish(&table, [4, 29, 40]);
    let all = visible(&table).await;
    let report = table.flush().await.unwrap().unwrap();
    assert_eq!((report.rows, report.files), (6, 4));
    let files = vec![range(1, "3", "4"), range(2, "11", "11"), range(3, "25", "29"), range(5, "40", "40")];
    assert_eq!(ranges(&table), files);
    assert_eq!(visible(&table).await, all);
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(ranges(&again), files);
    assert_eq!(again.snapshot().files, table.snapshot().files);
    assert_eq!(visible(&again).await, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_puts_files_of_one_partition_together_and_of_no_two() {
    let bench = Bench::with(StoreOptions { compact_min_files: 3, ..StoreOptions::default() });
    let table = bench.store.create(&by_ids(100, 3)).await.unwrap();
    for round in 0..4 {
        // The third partition has rows in two of the rounds only.
        let third = (round < 2).then_some(200 + round);
        publish(&table, [round, 100 + round].into_iter().chain(third));
        table.flush().await.unwrap();
    }
    assert_eq!(table.snapshot().files.len(), 10);
    let before = visible(&table).await;
    let report = table.compact().await.unwrap().unwrap();
    assert_eq!((report.files_before, report.files_after), (8, 2));
    assert_eq!(
        ranges(&table),
        [range(1, "0", "3"), range(2, "100", "103"), range(3, "200", "200"), range(3, "201", "201")]
    );
    assert_eq!(visible(&table).await, before);
    assert_eq!(table.compact().await.unwrap(), None);
    assert_eq!(table.compact_from(2).await.unwrap().unwrap().files_after, 1);
    assert_eq!(visible(&table).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_files_of_many_partitions_are_packed_quickly_and_those_of_a_compaction_well() {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    let packed = |how: &str| {
        let files = table.snapshot();
        files.files.iter().all(|live| live.path().ends_with(&format!(".{how}.parquet")))
    };
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap().unwrap();
    assert!(packed("snappy"));
    publish(&table, [2, 12, 22]);
    table.flush().await.unwrap().unwrap();
    assert_eq!(table.compact().await.unwrap().unwrap().files_after, 3);
    assert!(packed("zstd"));
    assert_eq!(read_files(&table).await.unwrap(), expected([1, 2, 11, 12, 21, 22]));
    publish(&table, [13, 14]);
    let before = table.snapshot().files.len();
    table.flush().await.unwrap().unwrap();
    assert!(table.snapshot().files.len() == before + 1 && packed("zstd"), "a run of one partition");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_of_some_partitions_sees_their_rows_wherever_they_are() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    publish(&table, [2, 12, 22]);
    let snapshot = table.snapshot();
    let second = snapshot.in_partitions(&[false, true, false]).unwrap();
    assert_eq!(rows_of(&table, &second).await, expected([11, 12]));
    assert_eq!(second.rows(), 2);
    let others = snapshot.in_partitions(&[true, false, true]).unwrap();
    assert_eq!(rows_of(&table, &others).await, expected([1, 2, 21, 22]));
    let facts = snapshot.partition_facts();
    assert_eq!(facts.iter().map(|it| (it.rows, it.version.0)).collect::<Vec<_>>(), [(2, 2); 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_load_over_many_partitions_has_a_file_for_each_run_of_each_and_one_writer() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(1, 1000)).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows((0..1000).rev())).await.unwrap();
    writer.append(rows(0..1000)).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    assert_eq!(files.len(), 1000);
    assert!(files.iter().all(|file| file.rows == 2), "both batches are one run");
    let partitions: BTreeSet<_> = files.iter().map(|file| file.partition).collect();
    assert_eq!(partitions.len(), 1000);
    let schema = Arc::clone(&table.def().schema);
    let version = table.snapshot().version.next();
    table
        .publish(Publication {
            version,
            schema,
            batches: Vec::new(),
            files,
            replaces: None,
            partitions: None,
            lsn: Lsn(1),
        })
        .unwrap();
    assert_eq!(read_files(&table).await.unwrap(), expected((0..1000).chain(0..1000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_partitions_are_made_side_by_side_and_none_stays_if_one_fails() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 20)).await.unwrap();
    publish(&table, (0..20).map(|partition| partition * 10));
    let gate = bench.faults.hold_next(".parquet");
    let flush = {
        let table = table.clone();
        tokio::spawn(async move { table.flush().await })
    };
    gate.arrived().await;
    // One waits; others need not wait for it.
    tokio::time::timeout(Duration::from_secs(30), async {
        while bench.data_files().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("three files beside one that waits");
    bench.faults.fail_next(".parquet", Fault::Before);
    gate.open();
    let error = flush.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("the test said so"), "{error}");
    assert_eq!((bench.data_files(), table.memtable_rows()), (Vec::<String>::new(), 20));
    assert!(table.root().unpublished.lock().is_empty());
    assert_eq!(table.flush().await.unwrap().unwrap().files, 20);
    assert_eq!(logged(&table).await, expected((0..20).map(|partition| partition * 10)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_dropped_among_its_partitions_deletes_all_files() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 20)).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(0..200)).await.unwrap();
    let gate = bench.faults.hold_next(".parquet");
    {
        let finish = writer.finish();
        tokio::pin!(finish);
        tokio::select! {
            _ = &mut finish => panic!("the gate is closed"),
            () = gate.arrived() => {}
        }
    }
    gate.open();
    nothing_is_left(&bench, &table).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_unique_keys_supersede_each_other_within_their_partitions() {
    let bench = Bench::new();
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&by_ids(10, 2)) });
    let table = bench.store.create(&def).await.unwrap();
    for _ in 0..3 {
        publish(&table, [1, 2, 11]);
        publish(&table, [2, 12]);
        table.flush().await.unwrap();
    }
    assert_eq!(visible(&table).await, expected([1, 2, 11, 12]));
    assert!(ranges(&table).iter().all(|(partition, ..)| *partition <= 2));
    table.compact_from(2).await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 2, 11, 12]));
    publish(&table, [1]);
    let first = table.settled().await.unwrap().in_partitions(&[true, false]).unwrap();
    assert_eq!(rows_of(&table, &first).await, expected([1, 2]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_outlive_an_added_column_that_rewrites_all_files() {
    let bench = Bench::new();
    let def = by_ids(10, 2);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    let mut columns = def.schema.columns.clone();
    columns.push(crate::testing::with_default(column(3, "n", DataType::Int, false), "5"));
    let schema = crate::testing::def_of(2, columns).schema.clone();
    table.alter(Arc::new(TableDef { schema, ..TableDef::clone(&def) })).await.unwrap();
    assert_eq!(ranges(&table), [range(1, "1", "1"), range(2, "11", "11")]);
    assert_eq!(visible(&table).await, ["11|n11|5", "1|n1|5"]);
    assert_eq!(table.snapshot().files[0].file.partition, Some(PartitionId(1)));
}

fn cut_of(table: &Table, id: u64) -> Partitions {
    table.def().partitioning.partitions().unwrap().only(&[PartitionId(id)])
}

fn cut(table: &Table, id: u64) {
    let version = table.snapshot().version.next();
    table.publish_cut(version, Lsn(version.0 * 100), &cut_of(table, id)).unwrap();
}

pub(super) fn without(def: &TableDef, id: u64) -> Arc<TableDef> {
    let mut partitions = Partitions::clone(def.partitioning.partitions().unwrap());
    partitions.remove(&[PartitionId(id)]);
    Arc::new(TableDef { partitioning: Partitioning::By(partitions.into()), ..def.clone() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_partition_loses_what_came_before_and_keeps_what_comes_after() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    publish(&table, [2, 12, 22]);
    cut(&table, 2);
    assert_eq!(visible(&table).await, expected([1, 2, 21, 22]));
    assert_eq!(logged(&table).await, expected([1, 11, 21]), "until the next flush");
    publish(&table, [13]);
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 2, 13, 21, 22]));
    assert_eq!(logged(&table).await, expected([1, 2, 13, 21, 22]));
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(visible(&again).await, expected([1, 2, 13, 21, 22]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_is_under_way_shows_nothing_of_a_partition_that_was_emptied() {
    let bench = Bench::new();
    let table = bench.store.create(&by_ids(10, 3)).await.unwrap();
    publish(&table, [1, 11, 21]);
    let held = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    held.arrived().await;
    cut(&table, 2);
    publish(&table, [12]);
    held.open();
    flush.await.unwrap().unwrap();
    assert_eq!(visible(&table).await, expected([1, 12, 21]));
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 12, 21]));
    assert_eq!(logged(&table).await, expected([1, 12, 21]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_partition_takes_its_rows_with_it_in_one_entry_and_late_ones_too() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    publish(&table, [2, 12]);
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows([14, 24])).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    let before = table.snapshot().delta_version;
    let dropped = without(&def, 2);
    table.alter(Arc::clone(&dropped)).await.unwrap();
    assert_eq!(table.snapshot().delta_version, before + 1);
    assert_eq!(logged(&table).await, expected([1, 21]));
    assert_eq!(visible(&table).await, expected([1, 2, 21]));
    // Loads that were decoded before.
    publish(&table, [3, 13]);
    let schema = Arc::clone(&def.schema);
    let version = table.snapshot().version.next();
    table
        .publish(Publication {
            version,
            schema,
            batches: Vec::new(),
            files,
            replaces: None,
            partitions: None,
            lsn: Lsn(900),
        })
        .unwrap();
    assert_eq!(visible(&table).await, expected([1, 2, 3, 21, 24]));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected([1, 2, 3, 21, 24]));
    let again = bench.store.open(&dropped).await.unwrap();
    assert_eq!(visible(&again).await, expected([1, 2, 3, 21, 24]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_completes_a_drop_that_only_the_catalog_knows() {
    let bench = Bench::new();
    let def = by_ids(10, 2);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    let again = bench.store.open(&without(&def, 2)).await.unwrap();
    assert_eq!(visible(&again).await, expected([1]));
    assert!(again.flush_due(std::time::Instant::now()));
    again.flush().await.unwrap();
    assert_eq!(logged(&again).await, expected([1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_an_emptied_partition_begins_anew() {
    let bench = Bench::new();
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&by_ids(10, 2)) });
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11]);
    assert_eq!(visible(&table).await, expected([1, 11]), "settled");
    publish(&table, [12, 2]);
    cut(&table, 2);
    assert_eq!(visible(&table).await, expected([1, 2]));
    publish(&table, [11]);
    assert_eq!(visible(&table).await, expected([1, 2, 11]));
    table.flush().await.unwrap();
    cut(&table, 2);
    publish(&table, [11, 1]);
    assert_eq!(visible(&table).await, expected([1, 2, 11]));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected([1, 2, 11]));
}

async fn ids(table: &Table) -> Vec<i64> {
    let id = |row: String| row.split('|').next().and_then(|id| id.parse().ok());
    visible(table).await.into_iter().filter_map(id).collect()
}

/// Another engine puts all rows of the Delta table into one file, and these ones into another. Both are of no partition.
pub(super) async fn others_optimize(bench: &Bench, def: &TableDef, brought: impl IntoIterator<Item = i64>) {
    let partitioning = two_columns().partitioning.clone();
    let engine = bench.store.open(&Arc::new(TableDef { partitioning, ..def.clone() })).await.unwrap();
    let mut added = Vec::new();
    for ids in [ids(&engine).await, brought.into_iter().collect()] {
        let mut writer = engine.new_file_writer().unwrap();
        writer.append(rows(ids)).await.unwrap();
        added.extend(writer.finish().await.unwrap().into_files());
    }
    let snapshot = engine.snapshot();
    let removed = snapshot.files.iter().map(|live| Action::Remove(live.to_remove(false, 0)));
    let added = added.into_iter().map(|file| LiveFile::from(file).to_add(&two_columns().schema, false));
    let actions: Vec<Action> = removed.chain(added.map(Action::Add)).collect();
    let version = snapshot.delta_version.unsigned_abs() + 1;
    let written = engine.root().log.write(version, commit_info("OPTIMIZE", false, &[]), &actions).await;
    assert_eq!(written.unwrap(), Written::Yes);
}

/// Whether all files are of partitions, and the snapshot and the log have these ids.
async fn has_divided(table: &Table, ids: &[i64]) {
    assert_eq!(visible(table).await, expected(ids.iter().copied()));
    assert_eq!(logged(table).await, expected(ids.iter().copied()));
    assert!(table.snapshot().files.iter().all(|live| live.file.partition.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_other_engines_are_divided_before_a_partition_is_emptied_or_dropped() {
    let bench = Bench::new();
    let def = by_ids(10, 4);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21, 31]);
    publish(&table, [2, 12, 22, 32]);
    table.flush().await.unwrap();
    others_optimize(&bench, &def, [3, 13]).await;
    table.divide().await.unwrap();
    has_divided(&table, &[1, 2, 3, 11, 12, 13, 21, 22, 31, 32]).await;
    assert_eq!(table.snapshot().files.len(), 4);
    cut(&table, 2);
    assert_eq!(visible(&table).await, expected([1, 2, 3, 21, 22, 31, 32]));
    table.flush().await.unwrap();
    has_divided(&table, &[1, 2, 3, 21, 22, 31, 32]).await;
    others_optimize(&bench, &def, []).await;
    table.alter(without(&def, 3)).await.unwrap();
    has_divided(&table, &[1, 2, 3, 31, 32]).await;
    let again = bench.store.open(&without(&def, 3)).await.unwrap();
    has_divided(&again, &[1, 2, 3, 31, 32]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_engines_commit_before_a_cut_is_in_the_log_is_cut_too() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    cut(&table, 2);
    publish(&table, [12, 22]);
    // The engine still sees all rows.
    others_optimize(&bench, &def, []).await;
    table.flush().await.unwrap();
    has_divided(&table, &[1, 12, 21, 22]).await;
    // What it brings later is not cut.
    others_optimize(&bench, &def, [13]).await;
    publish(&table, [2]);
    table.flush().await.unwrap();
    table.divide().await.unwrap();
    has_divided(&table, &[1, 2, 12, 13, 21, 22]).await;
    publish(&table, [3]);
    table.flush().await.unwrap();
    has_divided(&table, &[1, 2, 3, 12, 13, 21, 22]).await;
    let again = bench.store.open(&def).await.unwrap();
    has_divided(&again, &[1, 2, 3, 12, 13, 21, 22]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_other_engines_without_a_partition_are_divided_once() {
    let bench = Bench::new();
    let def = by_ids(10, 2);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    others_optimize(&bench, &def, [99]).await;
    table.divide().await.unwrap();
    let divided = table.snapshot();
    assert_eq!(divided.files.len(), 3);
    table.divide().await.unwrap();
    assert_eq!(table.snapshot().delta_version, divided.delta_version, "the file of 99 stays as it is");
    cut(&table, 2);
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 99]));
    let mut with = Partitions::clone(table.def().partitioning.partitions().unwrap());
    let bound = |value| vec![Bound::Value(PartitionValue::Int(value))];
    with.add("p9", PartitionRows::Range { lower: bound(90), upper: bound(100) }, BTreeMap::new());
    let with = TableDef { partitioning: Partitioning::By(with.into()), ..TableDef::clone(&def) };
    table.alter(Arc::new(with)).await.unwrap();
    table.divide().await.unwrap();
    has_divided(&table, &[1, 99]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_divides_a_single_file_of_another_engine() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    others_optimize(&bench, &def, []).await;
    publish(&table, [2]);
    table.flush().await.unwrap();
    assert!(table.snapshot().in_partitions(&[true, false, false]).is_err());
    table.compact().await.unwrap();
    has_divided(&table, &[1, 2, 11, 21]).await;
    let first = table.snapshot().in_partitions(&[true, false, false]).unwrap();
    assert_eq!(first.rows(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_in_files_of_other_engines_are_divided_with_what_superseded_them() {
    let bench = Bench::new();
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&by_ids(10, 3)) });
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    // A later row of 1, before the engine's file is known.
    publish(&table, [1, 12]);
    others_optimize(&bench, &def, []).await;
    table.divide().await.unwrap();
    cut(&table, 2);
    table.flush().await.unwrap();
    has_divided(&table, &[1, 21]).await;
    has_divided(&bench.store.open(&def).await.unwrap(), &[1, 21]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_other_engines_are_settled_before_a_compaction_copies_them() {
    let bench = Bench::new();
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&two_columns()) });
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 2]);
    table.flush().await.unwrap();
    publish(&table, [1, 3]);
    // The first row of 1 is superseded, which the log does not have.
    assert_eq!(visible(&table).await, expected([1, 2, 3]));
    others_optimize(&bench, &def, [9]).await;
    let mut state = table.lock_log().await.unwrap();
    table.take_in_others(&mut state).await.unwrap();
    drop(state);
    table.compact_from(2).await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 2, 3, 9]));
    table.flush().await.unwrap();
    table.compact_from(2).await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 2, 3, 9]));
    assert_eq!(logged(&table).await, expected([1, 2, 3, 9]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_an_engine_brings_twice_are_divided_once() {
    let bench = Bench::new();
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..TableDef::clone(&by_ids(10, 3)) });
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11]);
    table.flush().await.unwrap();
    others_optimize(&bench, &def, [2, 12, 12]).await;
    let mut state = table.lock_log().await.unwrap();
    table.take_in_others(&mut state).await.unwrap();
    drop(state);
    assert_eq!(visible(&table).await, expected([1, 2, 11, 12]));
    // One more row of 2, and of 12, in another file.
    others_optimize(&bench, &def, [2, 12]).await;
    table.divide().await.unwrap();
    has_divided(&table, &[1, 2, 11, 12]).await;
    cut(&table, 2);
    table.flush().await.unwrap();
    has_divided(&table, &[1, 2]).await;
    has_divided(&bench.store.open(&def).await.unwrap(), &[1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_engine_commits_before_the_entry_of_a_drop_is_dropped_too() {
    for keys in [two_columns().keys, KeyModel::Unique] {
        let bench = Bench::new();
        let def = Arc::new(TableDef { keys, ..TableDef::clone(&by_ids(10, 3)) });
        let table = bench.store.create(&def).await.unwrap();
        publish(&table, [1, 11, 21]);
        table.flush().await.unwrap();
        let gate = bench.faults.hold_next(&format!("{:020}.json", table.snapshot().delta_version + 1));
        let altering = {
            let (table, def) = (Arc::clone(&table), without(&def, 3));
            tokio::spawn(async move { table.alter(def).await })
        };
        gate.arrived().await;
        others_optimize(&bench, &def, [12, 22]).await;
        gate.open();
        altering.await.unwrap().unwrap();
        has_divided(&table, &[1, 11, 12]).await;
        let again = bench.store.open(&without(&def, 3)).await.unwrap();
        has_divided(&again, &[1, 11, 12]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_engine_commits_before_a_drop_is_logged_by_a_flush_is_dropped_too() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    bench.faults.fail_next("_delta_log/", Fault::Before);
    table.alter(without(&def, 3)).await.unwrap();
    assert_eq!(visible(&table).await, expected([1, 11]));
    assert_eq!(logged(&table).await, expected([1, 11, 21]), "the entry has failed");
    others_optimize(&bench, &def, [2, 22]).await;
    publish(&table, [12]);
    table.flush().await.unwrap();
    has_divided(&table, &[1, 2, 11, 12]).await;
    // The next statement that asks for it finds nothing to divide.
    table.divide().await.unwrap();
    has_divided(&bench.store.open(&without(&def, 3)).await.unwrap(), &[1, 2, 11, 12]).await;
}

/// The definition without a partition, with the mark of its drop.
fn marked(table: &Table, id: u64) -> Arc<TableDef> {
    let def = table.def();
    let partitions = def.partitioning.partitions().unwrap();
    let dropped = partitions.only(&[PartitionId(id)]).list;
    let log_version = table.snapshot().delta_version.unsigned_abs();
    let drop_mark = Some(Arc::new(DropMark { log_version, partitions: dropped }));
    Arc::new(TableDef { drop_mark, ..TableDef::clone(&without(&def, id)) })
}

/// The definition without the mark, which the table gets.
async fn unmark(table: &Table) -> Arc<TableDef> {
    let def = Arc::new(TableDef { drop_mark: None, ..TableDef::clone(&table.def()) });
    table.alter(Arc::clone(&def)).await.unwrap();
    def
}

/// The table with one more partition of ten ids.
async fn add(table: &Table, lower: i128) {
    let mut with = Partitions::clone(table.def().partitioning.partitions().unwrap());
    let bound = |value| vec![Bound::Value(PartitionValue::Int(value))];
    with.add(
        "again",
        PartitionRows::Range { lower: bound(lower), upper: bound(lower + 10) },
        BTreeMap::new(),
    );
    let def = TableDef { partitioning: Partitioning::By(with.into()), ..TableDef::clone(&table.def()) };
    table.alter(Arc::new(def)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_engine_rewrites_before_a_start_completes_a_drop_is_dropped_too() {
    for (keys, checkpoint_every) in
        [(two_columns().keys, 100), (KeyModel::Unique, 100), (KeyModel::Unique, 1)]
    {
        let bench = Bench::with(StoreOptions {
            checkpoint_every: Live::new(checkpoint_every),
            ..StoreOptions::default()
        });
        let def = Arc::new(TableDef { keys, ..TableDef::clone(&by_ids(10, 3)) });
        let table = bench.store.create(&def).await.unwrap();
        publish(&table, [1, 11, 21]);
        table.flush().await.unwrap();
        let marked = marked(&table, 3);
        drop(table);
        // The catalog has lost a partition, the server has ended before the entry, and an engine comes first.
        others_optimize(&bench, &def, [2, 22]).await;
        let again = bench.store.open(&marked).await.unwrap();
        has_divided(&again, &[1, 2, 11]).await;
        publish(&again, [12]);
        again.flush().await.unwrap();
        drop(again);
        // The mark is still there, and what comes later is not of the dropped partition.
        others_optimize(&bench, &def, [23]).await;
        let again = bench.store.open(&marked).await.unwrap();
        assert_eq!(visible(&again).await, expected([1, 2, 11, 12, 23]));
        let unmarked = unmark(&again).await;
        add(&again, 20).await;
        publish(&again, [24]);
        again.flush().await.unwrap();
        again.divide().await.unwrap();
        has_divided(&again, &[1, 2, 11, 12, 23, 24]).await;
        assert_eq!(unmarked.drop_mark, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_completes_a_drop_of_which_no_engine_knows() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    let marked = marked(&table, 3);
    drop(table);
    has_divided(&bench.store.open(&marked).await.unwrap(), &[1, 11]).await;
    let again = bench.store.open(&marked).await.unwrap();
    let version = again.snapshot().delta_version;
    assert_eq!(bench.store.open(&marked).await.unwrap().snapshot().delta_version, version, "it is done once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_of_a_drop_says_its_number() {
    for fails in [false, true] {
        let bench = Bench::new();
        let def = by_ids(10, 3);
        let table = bench.store.create(&def).await.unwrap();
        publish(&table, [1, 11, 21]);
        table.flush().await.unwrap();
        let marked = marked(&table, 3);
        if fails {
            bench.faults.fail_next("_delta_log/", Fault::Before);
        }
        table.alter(Arc::clone(&marked)).await.unwrap();
        assert_eq!(table.is_dropping(), fails);
        if fails {
            others_optimize(&bench, &def, [2, 22]).await;
        } else {
            others_optimize(&bench, &without(&def, 3), [2]).await;
        }
        table.complete_drop().await.unwrap();
        assert!(!table.is_dropping());
        table.divide().await.unwrap();
        assert_eq!(visible(&table).await, expected([1, 2, 11]));
        drop(table);
        others_optimize(&bench, &def, [22]).await;
        let again = bench.store.open(&marked).await.unwrap();
        assert_eq!(visible(&again).await, expected([1, 2, 11, 22]), "22 came after the drop");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_takes_the_place_of_a_dropped_one_waits_for_the_drop_in_the_log() {
    let bench = Bench::new();
    let def = by_ids(10, 3);
    let table = bench.store.create(&def).await.unwrap();
    publish(&table, [1, 11, 21]);
    table.flush().await.unwrap();
    bench.faults.fail_next("_delta_log/", Fault::Before);
    table.alter(marked(&table, 3)).await.unwrap();
    others_optimize(&bench, &def, [2, 22]).await;
    unmark(&table).await;
    add(&table, 20).await;
    publish(&table, [23]);
    table.flush().await.unwrap();
    has_divided(&table, &[1, 2, 11, 23]).await;
}
