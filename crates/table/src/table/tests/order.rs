//! Rows stay in the order of the write-ahead log: all of them in a table without a key, and those with the same key in others.

use crate::options::StoreOptions;
use crate::table::{Publication, Table};
use crate::testing::{Bench, column, def_of, open_file, publication};
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::sync::Arc;
use tributary_types::{DataType, Live, Lsn, TableDef, Version};

/// `key BIGINT`, `place BIGINT`.
fn def_with(is_keyed: bool) -> Arc<TableDef> {
    let columns =
        vec![column(1, "key", DataType::BigInt, is_keyed), column(2, "place", DataType::BigInt, false)];
    def_of(1, columns)
}

/// Rows of three keys in turn, whose places in the log are those.
fn rows(def: &TableDef, places: std::ops::Range<i64>) -> RecordBatch {
    let int64 = |numbers: Vec<i64>| Arc::new(arrow::array::Int64Array::from(numbers)) as ArrayRef;
    let keys = int64(places.clone().map(|place| 2 - place % 3).collect());
    RecordBatch::try_new(def.schema.arrow(), vec![keys, int64(places.collect())]).unwrap()
}

fn publish(table: &Table, places: std::ops::Range<i64>) {
    let (def, next) = (table.def(), table.snapshot().version.next());
    table.publish(publication(&def.schema, next.0, rows(&def, places))).unwrap();
}

/// All rows: data files by version, then the memtable.
async fn in_order(table: &Table) -> Vec<(i64, i64)> {
    let snapshot = table.snapshot();
    let mut files: Vec<_> = snapshot.files.iter().collect();
    files.sort_by_key(|live| live.version());
    let mut batches = Vec::new();
    for live in files {
        let mut reader = open_file(table, live).await.unwrap();
        while let Some(batch) = reader.next().await.unwrap() {
            batches.push(batch);
        }
    }
    batches.extend(snapshot.memtable.iter().map(|part| part.batch.clone()));
    let columns = |batch: &RecordBatch| {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().to_vec();
        column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
    };
    batches.iter().flat_map(columns).collect()
}

async fn check(table: &Table, is_keyed: bool, rows: i64) {
    let found = in_order(table).await;
    assert_eq!(found.len() as i64, rows);
    let places = |key: Option<i64>| {
        let of_key = found.iter().filter(|row| key.is_none_or(|key| row.0 == key));
        of_key.map(|row| row.1).collect::<Vec<_>>()
    };
    let lists =
        if is_keyed { vec![places(Some(0)), places(Some(1)), places(Some(2))] } else { vec![places(None)] };
    for list in lists {
        let wrong = list.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(wrong, None, "of {rows} rows, keyed: {is_keyed}");
    }
}

async fn table_with(is_keyed: bool, target_file_bytes: u64) -> (Bench, Arc<Table>) {
    let options = StoreOptions {
        compact_min_files: 3,
        target_file_bytes: Live::new(target_file_bytes),
        checkpoint_every: Live::new(4),
        ..StoreOptions::default()
    };
    let bench = Bench::with(options);
    let table = bench.store.create(&def_with(is_keyed)).await.unwrap();
    (bench, table)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_publications_keep_their_order_through_flushes_compactions_and_a_restart() {
    for is_keyed in [false, true] {
        let (bench, table) = table_with(is_keyed, 128 << 20).await;
        let mut compactions = 0;
        let mut rows = 0;
        for number in 1..=240 {
            publish(&table, rows..rows + number % 7 + 1);
            rows += number % 7 + 1;
            if number % 23 == 0 {
                table.flush().await.unwrap().unwrap();
                check(&table, is_keyed, rows).await;
                compactions += i32::from(table.compact().await.unwrap().is_some());
            }
            if number % 29 == 0 {
                check(&table, is_keyed, rows).await;
            }
        }
        assert!(compactions >= 3, "{compactions}");
        table.flush().await.unwrap().unwrap();
        let again = bench.store.open(&def_with(is_keyed)).await.unwrap();
        check(&again, is_keyed, rows).await;
        assert!(again.compact_from(2).await.unwrap().is_some());
        check(&again, is_keyed, rows).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_keeps_small_row_groups_between_the_large_ones_that_it_copies() {
    for is_keyed in [false, true] {
        let (_bench, table) = table_with(is_keyed, 1 << 20).await;
        let mut rows = 0;
        for count in [30_000, 10, 12, 40_000, 10, 30_000, 9] {
            publish(&table, rows..rows + count);
            rows += count;
            table.flush().await.unwrap().unwrap();
        }
        let report = table.compact().await.unwrap().unwrap();
        assert_eq!((report.files_before, report.rows as i64), (7, rows));
        check(&table, is_keyed, rows).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_one_load_keep_their_order_after_a_restart() {
    let (bench, table) = table_with(false, 100_000).await;
    let mut writer = table.new_file_writer().unwrap();
    for start in (0..400_000).step_by(10_000) {
        writer.append(rows(&table.def(), start..start + 10_000)).await.unwrap();
    }
    let files = writer.finish().await.unwrap().into_files();
    assert!(files.len() > 1, "{files:?}");
    let schema = table.def().schema.clone();
    let load = Publication {
        version: Version(1),
        schema,
        batches: Vec::new(),
        files,
        replaces: None,
        partitions: None,
        lsn: Lsn(1),
    };
    table.publish(load).unwrap();
    check(&table, false, 400_000).await;
    table.flush().await.unwrap();
    let again = bench.store.open(&def_with(false)).await.unwrap();
    check(&again, false, 400_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_has_the_version_of_its_last_rows_also_from_the_log_and_from_a_checkpoint() {
    for checkpoint_every in [1, 100] {
        let options = StoreOptions {
            checkpoint_every: Live::new(checkpoint_every),
            compact_min_files: 2,
            ..StoreOptions::default()
        };
        let bench = Bench::with(options);
        let table = bench.store.create(&def_with(true)).await.unwrap();
        publish(&table, 0..5);
        publish(&table, 5..9);
        let mut writer = table.new_file_writer().unwrap();
        writer.append(rows(&table.def(), 9..12)).await.unwrap();
        let files = writer.finish().await.unwrap().into_files();
        assert_eq!(files[0].version, Version(0), "nobody knows yet");
        let schema = table.def().schema.clone();
        let load = Publication {
            version: Version(3),
            schema,
            batches: Vec::new(),
            files,
            replaces: None,
            partitions: None,
            lsn: Lsn(3),
        };
        table.publish(load).unwrap();
        publish(&table, 12..14);
        table.flush().await.unwrap();
        let versions = |table: &Table| {
            let snapshot = table.snapshot();
            let mut versions: Vec<_> = snapshot.files.iter().map(|live| live.version().0).collect();
            versions.sort_unstable();
            versions
        };
        assert_eq!(versions(&table), [3, 4]);
        assert_eq!(versions(&bench.store.open(&def_with(true)).await.unwrap()), [3, 4]);
        table.compact().await.unwrap().unwrap();
        assert_eq!(versions(&table), [4]);
        assert_eq!(versions(&bench.store.open(&def_with(true)).await.unwrap()), [4]);
    }
}
