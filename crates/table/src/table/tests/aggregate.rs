use super::delete::{delete, find};
use crate::options::StoreOptions;
use crate::table::Publication;
use crate::testing::{Bench, Fault, copying, logged, rows_of, visible, with_default};
use crate::{DataFile, Snapshot, Table, TableError};
use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{
    Aggregation, ColumnDef, DataType, KeyModel, Live, Lsn, SchemaVersion, TableDef, TableId, TableSchema,
    Version,
};

const TEXT: DataType = DataType::Varchar { bytes: 20 };

fn columns() -> Vec<ColumnDef> {
    vec![
        ColumnDef::new(1, "id", DataType::BigInt).key(),
        ColumnDef::new(2, "sum", DataType::BigInt).aggregated(Aggregation::Sum),
        ColumnDef::new(3, "min", DataType::Int).aggregated(Aggregation::Min),
        ColumnDef::new(4, "max", TEXT).aggregated(Aggregation::Max),
        ColumnDef::new(5, "last", TEXT).aggregated(Aggregation::Replace),
        ColumnDef::new(6, "given", TEXT).aggregated(Aggregation::ReplaceIfNotNull),
    ]
}

fn keyed(version: u32, columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(version), columns);
    let def = TableDef::new(TableId(7), "demo", "events", schema);
    Arc::new(TableDef { keys: KeyModel::Aggregate, ..def })
}

fn def() -> Arc<TableDef> {
    keyed(1, columns())
}

/// A row: its key and a number from which its values are derived.
type Row = (i64, i64);

fn sum_of((_, n): Row) -> Option<i64> {
    (n % 7 != 0).then_some(n)
}

fn min_of((_, n): Row) -> Option<i32> {
    (n % 3 != 0).then_some((n * 31 % 101) as i32)
}

fn max_of((_, n): Row) -> Option<String> {
    (n % 4 != 0).then(|| format!("t{}", n * 17 % 97))
}

fn last_of((_, n): Row) -> Option<String> {
    (n % 5 != 0).then(|| format!("l{n}"))
}

fn given_of((_, n): Row) -> Option<String> {
    (n % 2 != 0).then(|| format!("g{n}"))
}

#[derive(Clone, Debug, Default)]
struct Folded {
    sum: Option<i64>,
    min: Option<i32>,
    max: Option<String>,
    last: Option<String>,
    given: Option<String>,
}

/// The expected contents.
#[derive(Clone, Debug, Default)]
struct Expected(BTreeMap<i64, Folded>);

impl Expected {
    fn put(&mut self, rows: &[Row]) {
        for &row in rows {
            let folded = self.0.entry(row.0).or_default();
            folded.sum = match (folded.sum, sum_of(row)) {
                (Some(known), Some(new)) => Some(known + new),
                (known, new) => known.or(new),
            };
            folded.min = folded.min.into_iter().chain(min_of(row)).min();
            folded.max = folded.max.take().into_iter().chain(max_of(row)).max();
            folded.last = last_of(row);
            folded.given = given_of(row).or(folded.given.take());
        }
    }

    fn delete(&mut self, ids: impl IntoIterator<Item = i64>) {
        ids.into_iter().for_each(|id| drop(self.0.remove(&id)));
    }

    fn texts(&self) -> Vec<String> {
        fn text<T: ToString>(value: Option<&T>) -> String {
            value.map_or("NULL".to_owned(), ToString::to_string)
        }
        let row = |(id, folded): (&i64, &Folded)| {
            let Folded { sum, min, max, last, given } = folded;
            let texts = [text(sum.as_ref()), text(min.as_ref()), text(max.as_ref()), text(last.as_ref())];
            format!("{id}|{}|{}", texts.join("|"), text(given.as_ref()))
        };
        let mut texts: Vec<String> = self.0.iter().map(row).collect();
        texts.sort();
        texts
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let texts = |of: fn(Row) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(*row)).collect::<StringArray>())
    };
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>());
    let sums: ArrayRef = Arc::new(rows.iter().map(|row| sum_of(*row)).collect::<Int64Array>());
    let mins: ArrayRef = Arc::new(rows.iter().map(|row| min_of(*row)).collect::<Int32Array>());
    let columns = vec![ids, sums, mins, texts(max_of), texts(last_of), texts(given_of)];
    RecordBatch::try_new(def().schema.arrow(), columns).unwrap()
}

fn put(table: &Table, rows: &[Row], files: Vec<DataFile>) {
    let version = table.snapshot().version.next();
    let publication = Publication {
        version,
        schema: Arc::clone(&def().schema),
        batches: if rows.is_empty() { Vec::new() } else { vec![batch(rows)] },
        files,
        replaces: None,
        partitions: None,
        lsn: Lsn(version.0 * 100),
    };
    table.publish(publication).unwrap();
}

/// Rows in data files, as a large load writes them.
async fn written(table: &Table, rows: &[Row]) -> Vec<DataFile> {
    let mut writer = table.new_file_writer().unwrap();
    for part in rows.chunks(50) {
        writer.append(batch(part)).await.unwrap();
    }
    writer.finish().await.unwrap().into_files()
}

fn some(ids: impl IntoIterator<Item = i64>, number: i64) -> Vec<Row> {
    ids.into_iter().map(|id| (id, id * 3 + number)).collect()
}

async fn check(bench: &Bench, table: &Table, expected: &Expected) {
    assert_eq!(visible(table).await, expected.texts());
    assert_eq!(table.settled().await.unwrap().rows(), expected.0.len() as u64);
    table.flush().await.unwrap();
    assert_eq!(logged(table).await, expected.texts(), "the log alone");
    let again = bench.store.open(&def()).await.unwrap();
    assert_eq!(visible(&again).await, expected.texts(), "after opening it again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_key_are_folded_within_a_load_among_loads_and_files() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    for round in 0..5 {
        for (number, ids) in [(1, vec![1, 2, 3, 2]), (2, (0..90).collect()), (3, vec![50, 1, 1])] {
            let rows = some(ids, number * 11 + round);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            if round % 2 == 0 {
                assert_eq!(visible(&table).await, expected.texts(), "round {round}");
            }
        }
        check(&bench, &table, &expected).await;
    }
    assert!(table.snapshot().files.iter().any(|live| live.deletes.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_folded_leaves_no_raw_rows_in_memory() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    for round in 0..20 {
        let rows = some((0..500).map(|row| row % 5), round);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
    }
    assert_eq!(table.settled().await.unwrap().memtable_rows(), 5);
    let held: usize = table.snapshot().memtable.iter().map(|part| part.batch.num_rows()).sum();
    assert_eq!(held, 5);
    assert_eq!(table.oldest_unflushed_lsn(), Some(Lsn(100)), "the log must keep them nevertheless");
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_large_load_are_folded_with_others_and_each_other() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    for (number, ids, flushed) in [(1, 0..100, true), (2, 50..150, false)] {
        let rows = some(ids, number);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        if flushed {
            table.flush().await.unwrap();
        }
    }
    let large = [some(20..120, 3), some(30..40, 4), some(300..400, 4)].concat();
    let in_memory = some([119, 200], 5);
    put(&table, &in_memory, written(&table, &large).await);
    expected.put(&in_memory);
    expected.put(&large);
    let last = some([25, 35, 60, 149, 310], 6);
    put(&table, &last, Vec::new());
    expected.put(&last);
    assert_eq!(visible(&table).await, expected.texts());
    let held: usize = table.snapshot().memtable.iter().map(|part| part.batch.num_rows()).sum();
    assert!(held < 300, "keys that only the file has stay in the file: {held} rows");
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_while_a_flush_or_a_compaction_writes_is_folded_with_what_it_writes() {
    for compacts in [false, true] {
        let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
        let table = bench.store.create(&def()).await.unwrap();
        let mut expected = Expected::default();
        for (number, ids) in [(1, 0..50), (2, 40..90), (3, 10..20)] {
            let rows = some(ids, number);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            if compacts || number < 3 {
                table.flush().await.unwrap();
            }
        }
        let frozen = expected.clone();
        let gate = bench.faults.hold_next(".parquet");
        let work = tokio::spawn({
            let table = Arc::clone(&table);
            async move {
                if compacts {
                    assert!(table.compact().await.unwrap().is_some());
                } else {
                    table.flush().await.unwrap();
                }
            }
        });
        gate.arrived().await;
        for (number, ids, flushed) in [(4, 0..10, true), (5, 5..30, true), (6, 8..60, false)] {
            let rows = some(ids, number);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            assert_eq!(visible(&table).await, expected.texts());
            if flushed && compacts {
                table.flush().await.unwrap();
            }
        }
        let rows = some([7, 70], 7);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        gate.open();
        work.await.unwrap();
        if !compacts {
            assert_eq!(logged(&table).await, frozen.texts(), "the log is at the version that was frozen");
        }
        assert_eq!(visible(&table).await, expected.texts());
        check(&bench, &table, &expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_fails_or_whose_answer_is_lost_folds_nothing_twice() {
    for (name, fault) in [
        (".parquet", Fault::Before),
        ("deletion_vector_", Fault::Before),
        ("00000000000000000002.json", Fault::Before),
        ("00000000000000000002.json", Fault::After),
        ("00000000000000000002.json", Fault::Echo),
        ("00000000000000000002.json", Fault::Silence),
    ] {
        for (copies, unreadable) in [(false, false), (false, true), (true, false), (true, true)] {
            let bench = Bench::new();
            let table = bench.store.create(&if copies { copying(&def()) } else { def() }).await.unwrap();
            let mut expected = Expected::default();
            for (number, ids, flushed) in [(1, 0..20, true), (2, 5..25, false)] {
                let rows = some(ids, number);
                put(&table, &rows, Vec::new());
                expected.put(&rows);
                if flushed {
                    table.flush().await.unwrap();
                }
            }
            bench.faults.fail_next(name, fault);
            if unreadable {
                bench.faults.fail_next_read("00000000000000000002.json");
            }
            tokio::select! {
                flushed = table.flush() => drop(flushed),
                // The flushing task is cancelled before the answer.
                () = bench.faults.silent.notified() => {}
            }
            let rows = some([0, 24, 30], 3);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            bench.faults.none();
            assert_eq!(visible(&table).await, expected.texts(), "{name} {fault:?} {copies}");
            check(&bench, &table, &expected).await;
            table.compact().await.unwrap();
            check(&bench, &table, &expected).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_files_that_no_log_has_take_their_place_although_whoever_flushed_is_gone() {
    for fault in [Fault::After, Fault::Echo, Fault::Silence] {
        for is_first_logged in [false, true] {
            let bench = Bench::new();
            let table = bench.store.create(&copying(&def())).await.unwrap();
            let mut expected = Expected::default();
            if is_first_logged {
                let rows = some(0..15, 7);
                put(&table, &rows, Vec::new());
                expected.put(&rows);
                table.flush().await.unwrap();
            }
            let entry = format!("{:020}.json", 1 + u64::from(is_first_logged));
            // The second entry has copies of the files of both flushes before it, in one file.
            for (number, ids, fault) in [(1, 0..20, Fault::Before), (2, 5..25, fault)] {
                let rows = some(ids, number);
                put(&table, &rows, Vec::new());
                expected.put(&rows);
                bench.faults.fail_next(&entry, fault);
                bench.faults.fail_next_read(&entry);
                tokio::select! {
                    flushed = table.flush() => drop(flushed.unwrap_err()),
                    () = bench.faults.silent.notified() => {}
                }
                bench.faults.none();
            }
            let rows = some([0, 24, 30], 3);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            check(&bench, &table, &expected).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_that_fails_midway_is_done_whole_the_next_time() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    for (number, ids) in [(1, 0..40), (2, 30..50)] {
        let rows = some(ids, number);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        table.flush().await.unwrap();
    }
    for (number, ids) in [(3, 0..60), (4, 45..60)] {
        let rows = some(ids, number);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        bench.faults.fail_next_read(".parquet");
        table.settled().await.unwrap_err();
        bench.faults.none();
    }
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_column_is_folded_from_its_default_on() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let rows = some(0..10, 1);
    put(&table, &rows, Vec::new());
    table.flush().await.unwrap();
    put(&table, &some(5..15, 2), Vec::new());
    visible(&table).await;
    put(&table, &some(8..12, 3), Vec::new());
    let mut expected = Expected::default();
    [some(0..10, 1), some(5..15, 2), some(8..12, 3)].iter().for_each(|rows| expected.put(rows));
    let count = with_default(ColumnDef::new(7, "count", DataType::Int), "0").aggregated(Aggregation::Sum);
    let altered = keyed(2, columns().into_iter().chain([count]).collect());
    table.alter(Arc::clone(&altered)).await.unwrap();
    put(&table, &some(9..11, 4), Vec::new());
    expected.put(&some(9..11, 4));
    let with_count: Vec<String> = expected.texts().into_iter().map(|text| text + "|0").collect();
    assert_eq!(visible(&table).await, with_count);
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, with_count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_was_settled_stays_as_it_is() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    put(&table, &some(0..10, 1), Vec::new());
    table.flush().await.unwrap();
    put(&table, &some(5..15, 2), Vec::new());
    let before = table.settled().await.unwrap();
    let texts = rows_of(&table, &before).await;
    put(&table, &some(0..20, 3), Vec::new());
    table.settled().await.unwrap();
    table.flush().await.unwrap();
    assert_eq!(rows_of(&table, &before).await, texts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_while_a_flush_writes_leaves_what_comes_after_it() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    put(&table, &some(0..50, 1), Vec::new());
    let gate = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    gate.arrived().await;
    let version = table.snapshot().version.next();
    truncate(&table, version).unwrap();
    let mut expected = Expected::default();
    for number in 2..4 {
        let rows = some(0..10, number);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        assert_eq!(visible(&table).await, expected.texts());
    }
    gate.open();
    flush.await.unwrap().unwrap();
    let rows = some(5..15, 4);
    put(&table, &rows, Vec::new());
    expected.put(&rows);
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_keys_begin_anew() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    for round in 0..3 {
        for (number, ids) in [(1, 0..30), (2, 20..50)] {
            let rows = some(ids, number * 11 + round);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
        }
        let gone: Vec<i64> = (0..60).filter(|id| id % 4 == round).collect();
        let report = delete(&table, gone.clone()).await.unwrap();
        assert_eq!(report.rows, gone.iter().filter(|id| expected.0.contains_key(id)).count() as u64);
        expected.delete(gone);
        check(&bench, &table, &expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_folds_rows_that_a_deletion_is_looking_for() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut expected = Expected::default();
    let rows = some(0..20, 1);
    put(&table, &rows, Vec::new());
    expected.put(&rows);
    let ids: BTreeSet<i64> = (5..10).collect();
    let later = some(3..8, 2);
    let look = |view: Arc<Snapshot>| {
        let (table, ids, later) = (&table, &ids, &later);
        async move {
            let found = find(table, &view, ids).await;
            put(table, later, Vec::new());
            let settled = tokio::time::timeout(Duration::from_millis(50), table.settled()).await;
            assert!(settled.is_err(), "who reads what came meanwhile waits");
            found
        }
    };
    table.delete("", look).await.unwrap();
    expected.delete(5..10);
    expected.put(&later);
    check(&bench, &table, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_whose_answer_was_lost_is_there_as_a_whole_or_not_at_all() {
    for (fault, happened) in [(Fault::Before, false), (Fault::After, true), (Fault::Echo, true)] {
        let bench = Bench::new();
        let table = bench.store.create(&def()).await.unwrap();
        let mut expected = Expected::default();
        let rows = some(0..20, 1);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        bench.faults.fail_next("00000000000000000002.json", fault);
        bench.faults.fail_next_read("00000000000000000002.json");
        delete(&table, 5..10).await.unwrap_err();
        if happened {
            expected.delete(5..10);
        }
        // Folded with the rows that the deletion left, and with nothing else.
        let rows = some(3..8, 2);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        assert_eq!(visible(&table).await, expected.texts(), "{fault:?}");
        check(&bench, &table, &expected).await;
    }
}

/// A publication, for a replay. `None`: a truncation.
type Entry = (Version, Option<(Vec<Row>, Vec<DataFile>)>);

/// Numbers that look random, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn rows(&mut self, count: u64, keys: u64) -> Vec<Row> {
        (0..count).map(|_| (self.below(keys) as i64, self.below(10_000) as i64)).collect()
    }
}

fn truncate(table: &Table, version: Version) -> Result<(), TableError> {
    table.publish_truncate(version, Lsn(version.0 * 100))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_in_whatever_order_each_row_is_folded_once() {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let options = match seed / 2 % 3 {
            0 => StoreOptions::default(),
            1 => StoreOptions { settled_piece_rows: 5, ..StoreOptions::default() },
            _ => StoreOptions {
                settled_piece_bytes: 3000,
                flush_bytes: Live::new(100),
                ..StoreOptions::default()
            },
        };
        let options = StoreOptions { compact_min_files: 2, checkpoint_every: Live::new(5), ..options };
        let bench = Bench::with(options);
        let def = || if seed % 2 == 0 { def() } else { copying(&def()) };
        let mut table = bench.store.create(&def()).await.unwrap();
        let mut expected = Expected::default();
        // The publications that a replay after a crash repeats: since the last version that the log has.
        let mut history: Vec<Entry> = Vec::new();
        let keys = 1 + dice.below(60);
        for step in 0..60 {
            match dice.below(29) {
                0..=10 => {
                    let count = 1 + dice.below(20);
                    let rows = dice.rows(count, keys);
                    put(&table, &rows, Vec::new());
                    expected.put(&rows);
                    history.push((table.snapshot().version, Some((rows, Vec::new()))));
                }
                11 | 12 => {
                    let (rows, large) = (dice.rows(3, keys), dice.rows(30, keys * 2));
                    let files = written(&table, &large).await;
                    put(&table, &rows, files.clone());
                    expected.put(&rows);
                    expected.put(&large);
                    history.push((table.snapshot().version, Some((rows, files))));
                }
                13 if dice.below(4) == 0 => {
                    let version = table.snapshot().version.next();
                    truncate(&table, version).unwrap();
                    expected = Expected::default();
                    history.push((version, None));
                }
                14..=16 => {
                    if dice.below(4) == 0 {
                        let fault = [Fault::Before, Fault::After, Fault::Echo][dice.below(3) as usize];
                        bench.faults.fail_next([".json", ".parquet"][dice.below(2) as usize], fault);
                    }
                    drop(table.flush().await);
                    bench.faults.none();
                }
                17 | 18 => {
                    if dice.below(4) == 0 {
                        bench.faults.fail_next(".json", [Fault::After, Fault::Echo][dice.below(2) as usize]);
                        bench.faults.fail_next_read(".json");
                    }
                    drop(table.compact().await);
                    bench.faults.none();
                }
                24..=26 => {
                    let ids: Vec<i64> = (0..keys as i64).filter(|_| dice.below(4) == 0).collect();
                    if dice.below(2) == 0 {
                        let fault = [Fault::Before, Fault::After, Fault::Echo][dice.below(3) as usize];
                        bench.faults.fail_next(".json", fault);
                        bench.faults.fail_next_read(".json");
                    }
                    let deleted = delete(&table, ids.clone()).await;
                    bench.faults.none();
                    let mut without = expected.clone();
                    without.delete(ids);
                    if deleted.is_err() {
                        let rows = dice.rows(5, keys);
                        put(&table, &rows, Vec::new());
                        history.push((table.snapshot().version, Some((rows.clone(), Vec::new()))));
                        expected.put(&rows);
                        without.put(&rows);
                    }
                    let shown = visible(&table).await;
                    if deleted.is_ok() || shown == without.texts() {
                        expected = without;
                    }
                    assert_eq!(shown, expected.texts(), "seed {seed}, step {step}");
                }
                19..=23 => assert_eq!(visible(&table).await, expected.texts(), "seed {seed}, step {step}"),
                _ => {
                    table = bench.store.open(&def()).await.unwrap();
                    let persisted = table.persisted_version();
                    for (version, entry) in history.iter().filter(|entry| entry.0 > persisted) {
                        assert_eq!(table.snapshot().version.next(), *version, "seed {seed}, step {step}");
                        match entry {
                            Some((rows, files)) => put(&table, rows, files.clone()),
                            None => truncate(&table, *version).unwrap(),
                        }
                    }
                }
            }
        }
        table.flush().await.unwrap();
        assert_eq!(visible(&table).await, expected.texts(), "seed {seed}");
        assert_eq!(logged(&table).await, expected.texts(), "seed {seed}");
        assert!(seed % 2 == 0 || !bench.has_vectors(), "seed {seed}");
    }
}

/// The log has copies of files without some rows, and their keys can't be read when they are published.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_the_log_has_and_that_could_not_be_shown_are_shown_before_anything_else_is_written() {
    for work in ["flush", "compact", "delete"] {
        let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
        let table = bench.store.create(&copying(&def())).await.unwrap();
        let mut expected = Expected::default();
        for (number, ids) in [(1, 0..20), (2, 100..120)] {
            let rows = some(ids, number);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            table.flush().await.unwrap();
        }
        if work == "flush" {
            let rows = some(10..15, 3);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
        }
        let entry = format!("{:020}.json", table.snapshot().delta_version + 1);
        let gate = bench.faults.hold_next(&entry);
        let working = tokio::spawn({
            let table = Arc::clone(&table);
            async move {
                match work {
                    "flush" => table.flush().await.map(drop),
                    "compact" => table.compact().await.map(drop),
                    _ => delete(&table, 5..10).await.map(drop),
                }
            }
        });
        gate.arrived().await;
        if work == "compact" {
            // Rows that arrive meanwhile supersede rows of the new file, which is searched for them.
            let rows = some(3..8, 4);
            put(&table, &rows, Vec::new());
            expected.put(&rows);
            table.settled().await.unwrap();
        }
        std::fs::remove_dir_all(bench.keys.path().join("demo")).unwrap();
        bench.faults.fail_next_read(".parquet");
        gate.open();
        working.await.unwrap().unwrap_err();
        bench.faults.none();
        if work == "delete" {
            expected.delete(5..10);
        }
        let rows = some(0..8, 5);
        put(&table, &rows, Vec::new());
        expected.put(&rows);
        check(&bench, &table, &expected).await;
        table.compact().await.unwrap();
        check(&bench, &table, &expected).await;
    }
}
