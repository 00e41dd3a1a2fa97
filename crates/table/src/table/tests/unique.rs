use crate::options::StoreOptions;
use crate::table::Publication;
use crate::testing::{
    Bench, Fault, column, copying, logged, rows_of, text_rows, two_columns, visible, with_default,
};
use crate::{DataFile, Table, TableError};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tributary_types::{
    DataType, KeyModel, Live, Lsn, SchemaVersion, TableDef, TableId, TableSchema, Version,
};

mod kept;

fn keyed(version: u32, columns: Vec<tributary_types::ColumnDef>) -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(version), columns);
    let def = TableDef::new(TableId(7), "demo", "events", schema);
    Arc::new(TableDef { keys: KeyModel::Unique, ..def })
}

fn def() -> Arc<TableDef> {
    keyed(1, two_columns().schema.columns.clone())
}

/// The expected contents: the last value of each key.
#[derive(Clone, Debug, Default)]
struct Winners(BTreeMap<i64, String>);

impl Winners {
    fn put(&mut self, rows: &[(i64, String)]) {
        self.0.extend(rows.iter().cloned());
    }

    fn texts(&self) -> Vec<String> {
        let mut texts: Vec<_> = self.0.iter().map(|(id, name)| format!("{id}|{name}")).collect();
        texts.sort();
        texts
    }
}

fn batch(rows: &[(i64, String)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    let names: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1.as_str())).collect::<StringArray>());
    RecordBatch::try_new(def().schema.arrow(), vec![ids, names]).unwrap()
}

fn put(table: &Table, rows: &[(i64, String)], files: Vec<DataFile>) {
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

fn some(ids: impl IntoIterator<Item = i64>, name: &str) -> Vec<(i64, String)> {
    ids.into_iter().map(|id| (id, name.to_owned())).collect()
}

async fn check(bench: &Bench, table: &Table, winners: &Winners) {
    assert_eq!(visible(table).await, winners.texts());
    assert_eq!(table.settled().await.unwrap().rows(), winners.0.len() as u64);
    table.flush().await.unwrap();
    assert_eq!(logged(table).await, winners.texts(), "the log alone");
    let again = bench.store.open(&def()).await.unwrap();
    assert_eq!(visible(&again).await, winners.texts(), "after opening it again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_ends_while_loads_never_do() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let flushes = 3;
    let done = AtomicUsize::new(0);
    let loads = thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let begin = Instant::now();
            for load in 0.. {
                if done.load(Ordering::SeqCst) == flushes {
                    return load;
                }
                assert!(begin.elapsed() < Duration::from_secs(120), "a flush waits for the end of loads");
                put(&table, &some([load % 10, load % 7], &load.to_string()), Vec::new());
            }
            unreachable!("it loads until all flushes are done")
        });
        let flushing = async {
            while done.load(Ordering::SeqCst) < flushes {
                if let Some(report) = table.flush().await.unwrap() {
                    assert!(report.version <= table.snapshot().version);
                    assert_eq!(table.persisted_version(), report.version);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        tokio::task::block_in_place(|| Handle::current().block_on(flushing));
        loading.join().unwrap()
    });
    assert!(table.oldest_unflushed_lsn().is_none_or(|lsn| lsn.0 > table.persisted_version().0 * 100));
    let mut winners = Winners::default();
    (0..loads).for_each(|load| winners.put(&some([load % 10, load % 7], &load.to_string())));
    check(&bench, &table, &winners).await;
    assert_eq!(table.oldest_unflushed_lsn(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_row_of_a_key_stays_within_a_load_among_loads_and_files() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    let loads = [
        some([1, 2, 3, 2], "a"),
        [some([2, 4], "b"), some([2], "c")].concat(),
        some(3..100, "d"),
        some([50, 1], "e"),
    ];
    for (index, rows) in loads.iter().enumerate() {
        put(&table, rows, Vec::new());
        winners.put(rows);
        assert_eq!(visible(&table).await, winners.texts(), "load {index}");
    }
    check(&bench, &table, &winners).await;
    for round in 0..4 {
        let rows = some((0..120).filter(|id| id % (round + 2) == 0), &format!("round {round}"));
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        check(&bench, &table, &winners).await;
    }
    assert!(table.snapshot().files.iter().any(|live| live.deletes.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_needs_to_read_between_flushes() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for round in 0..5 {
        for load in 0..30 {
            let rows = some([load, round, load * round], &format!("{round} {load}"));
            put(&table, &rows, Vec::new());
            winners.put(&rows);
        }
        assert!(table.snapshot().memtable.len() < 12, "parts are merged before they are settled");
        table.flush().await.unwrap();
        assert_eq!(logged(&table).await, winners.texts());
    }
    check(&bench, &table, &winners).await;
}

/// Rows in data files, as a large load writes them.
async fn written(table: &Table, rows: &[(i64, String)]) -> Vec<DataFile> {
    let mut writer = table.new_file_writer().unwrap();
    for part in rows.chunks(50) {
        writer.append(batch(part)).await.unwrap();
    }
    writer.finish().await.unwrap().into_files()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_large_load_supersede_others_and_each_other_and_are_superseded() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    let mut add = |rows: &[(i64, String)]| winners.put(rows);
    let first = some(0..100, "first");
    put(&table, &first, Vec::new());
    add(&first);
    table.flush().await.unwrap();
    let second = some(50..150, "second");
    put(&table, &second, Vec::new());
    add(&second);
    let large = [some(20..120, "large"), some(30..40, "large again")].concat();
    let in_memory = some([119, 200], "beside it");
    put(&table, &in_memory, written(&table, &large).await);
    add(&in_memory);
    add(&large);
    let last = some([25, 35, 60, 149], "last");
    put(&table, &last, Vec::new());
    add(&last);
    check(&bench, &table, &winners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_while_a_flush_writes_supersedes_rows_in_its_files() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for (flush, text) in [(true, "one"), (false, "two")] {
        let rows = some(0..50, text);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        if flush {
            table.flush().await.unwrap();
        }
    }
    let frozen = winners.clone();
    let gate = bench.faults.hold_next(".parquet");
    let flush = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.flush().await }
    });
    gate.arrived().await;
    for (ids, text) in [(0..10, "three"), (5..30, "four"), (48..60, "five")] {
        let rows = some(ids, text);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        assert_eq!(visible(&table).await, winners.texts());
    }
    let rows = some([7, 70], "unread");
    put(&table, &rows, Vec::new());
    winners.put(&rows);
    gate.open();
    flush.await.unwrap().unwrap();
    assert_eq!(logged(&table).await, frozen.texts(), "the log is at the version that was frozen");
    assert_eq!(visible(&table).await, winners.texts());
    check(&bench, &table, &winners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_carries_over_what_was_superseded_meanwhile() {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for (ids, text) in [(0..50, "one"), (40..90, "two"), (10..20, "three")] {
        let rows = some(ids, text);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        table.flush().await.unwrap();
    }
    let gate = bench.faults.hold_next(".parquet");
    let compaction = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.compact().await }
    });
    gate.arrived().await;
    for (ids, text, flushed) in [(30..45, "four", true), (0..5, "five", true), (60..65, "six", false)] {
        let rows = some(ids, text);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        assert_eq!(visible(&table).await, winners.texts());
        if flushed {
            table.flush().await.unwrap();
        }
    }
    gate.open();
    let report = compaction.await.unwrap().unwrap().unwrap();
    assert_eq!((report.files_before, report.files_after), (3, 1));
    assert_eq!(visible(&table).await, winners.texts());
    check(&bench, &table, &winners).await;
    table.compact().await.unwrap();
    check(&bench, &table, &winners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_takes_keys_and_files_with_it() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    put(&table, &some(0..10, "one"), Vec::new());
    table.flush().await.unwrap();
    put(&table, &some(5..15, "two"), Vec::new());
    visible(&table).await;
    let version = table.snapshot().version.next();
    table.publish_truncate(version, Lsn(version.0 * 100)).unwrap();
    let mut winners = Winners::default();
    let rows = some([7, 7, 20], "three");
    put(&table, &rows, Vec::new());
    winners.put(&rows);
    check(&bench, &table, &winners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_with_a_default_comes_to_each_key_once() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for (ids, text) in [(0..10, "one"), (5..15, "two")] {
        let rows = some(ids, text);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        table.flush().await.unwrap();
    }
    let rows = some(3..7, "three");
    put(&table, &rows, Vec::new());
    winners.put(&rows);
    let mut columns = two_columns().schema.columns.clone();
    columns.push(with_default(column(3, "score", DataType::Int, false), "7"));
    let gate = bench.faults.hold_next(".parquet");
    let altered = keyed(2, columns);
    let altering = tokio::spawn({
        let (table, altered) = (Arc::clone(&table), Arc::clone(&altered));
        async move { table.alter(altered).await }
    });
    gate.arrived().await;
    let rows = some([0, 14, 99], "four");
    put(&table, &rows, Vec::new());
    winners.put(&rows);
    gate.open();
    altering.await.unwrap().unwrap();
    let with_score: Vec<String> = winners.texts().into_iter().map(|text| text + "|7").collect();
    assert_eq!(visible(&table).await, with_score);
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, with_score);
    assert_eq!(visible(&bench.store.open(&altered).await.unwrap()).await, with_score);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_fails_or_whose_answer_is_lost_changes_no_winner() {
    for (name, fault) in [
        (".parquet", Fault::Before),
        ("deletion_vector_", Fault::Before),
        ("00000000000000000002.json", Fault::Before),
        ("00000000000000000002.json", Fault::After),
        ("00000000000000000002.json", Fault::Echo),
    ] {
        let bench = Bench::new();
        let table = bench.store.create(&def()).await.unwrap();
        let mut winners = Winners::default();
        for (ids, text, flushed) in [(0..20, "one", true), (5..25, "two", false)] {
            let rows = some(ids, text);
            put(&table, &rows, Vec::new());
            winners.put(&rows);
            if flushed {
                table.flush().await.unwrap();
            }
        }
        bench.faults.fail_next(name, fault);
        assert_eq!(table.flush().await.is_err(), fault == Fault::Before, "{name} {fault:?}");
        let rows = some([0, 24, 30], "three");
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        assert_eq!(visible(&table).await, winners.texts(), "{name} {fault:?}");
        check(&bench, &table, &winners).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_was_settled_stays_as_it_is() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    put(&table, &some(0..10, "one"), Vec::new());
    table.flush().await.unwrap();
    put(&table, &some(5..15, "two"), Vec::new());
    let before = table.settled().await.unwrap();
    let texts = rows_of(&table, &before).await;
    put(&table, &some(0..20, "three"), Vec::new());
    table.settled().await.unwrap();
    table.flush().await.unwrap();
    assert_eq!(rows_of(&table, &before).await, texts);
    assert!(!before.memtable.is_empty() && text_rows(&before.memtable[0].batch).len() == 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_deleted_by_their_keys_alone() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let nothing = || async { Ok::<_, TableError>(crate::FoundRows::new()) };
    let error = table.delete("", |_| nothing()).await.unwrap_err();
    assert!(error.to_string().contains("are deleted by their keys"), "{error}");
}

/// A publication, for a replay.
type Entry = (Version, Vec<(i64, String)>, Vec<DataFile>);

/// Numbers that look random, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_in_whatever_order_the_last_row_of_a_key_stays() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let bench = Bench::with(StoreOptions {
            compact_min_files: 2,
            checkpoint_every: Live::new(5),
            ..StoreOptions::default()
        });
        let def = || if seed % 2 == 0 { def() } else { copying(&def()) };
        let mut table = bench.store.create(&def()).await.unwrap();
        let mut winners = Winners::default();
        // The publications that a replay after a crash repeats: since the last version that the log has.
        let mut history: Vec<Entry> = Vec::new();
        let keys = 1 + dice.below(60);
        for step in 0..60 {
            match dice.below(12) {
                0..=5 => {
                    let count = 1 + dice.below(20);
                    let rows: Vec<_> =
                        (0..count).map(|row| (dice.below(keys) as i64, format!("{step}.{row}"))).collect();
                    put(&table, &rows, Vec::new());
                    winners.put(&rows);
                    history.push((table.snapshot().version, rows, Vec::new()));
                }
                6 => {
                    let rows: Vec<_> =
                        (0..30).map(|row| (dice.below(keys) as i64, format!("{step}.{row}"))).collect();
                    let files = written(&table, &rows).await;
                    put(&table, &[], files.clone());
                    winners.put(&rows);
                    history.push((table.snapshot().version, Vec::new(), files));
                }
                7 | 8 => drop(table.flush().await.unwrap()),
                9 => drop(table.compact().await.unwrap()),
                10 => assert_eq!(visible(&table).await, winners.texts(), "seed {seed}, step {step}"),
                _ => {
                    table = bench.store.open(&def()).await.unwrap();
                    let persisted = table.persisted_version();
                    for (version, rows, files) in history.iter().filter(|entry| entry.0 > persisted) {
                        assert_eq!(table.snapshot().version.next(), *version, "seed {seed}, step {step}");
                        put(&table, rows, files.clone());
                    }
                }
            }
        }
        check(&bench, &table, &winners).await;
        assert!(seed % 2 == 0 || !bench.has_vectors(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_no_log_has_stay_for_queries_from_before_the_flush_that_has_copied_them() {
    let bench =
        Bench::with(StoreOptions { keep_removed_files_ms: Live::new(600_000), ..StoreOptions::default() });
    let table = bench.store.create(&copying(&def())).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(batch(&some(0..10, "first"))).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    // Like a two-phase load that was prepared long ago.
    let path = bench.dir.path().join("demo/events-7").join(&files[0].path);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).unwrap();
    put(&table, &[], files);
    put(&table, &some(0..5, "second"), Vec::new());
    let before = table.settled().await.unwrap();
    let rows = rows_of(&table, &before).await;
    table.flush().await.unwrap();
    assert!(table.snapshot().files.iter().all(|live| live.path() != before.files[0].path()), "it was copied");
    assert_eq!(table.sweep().await.unwrap().files, 0);
    assert_eq!(rows_of(&table, &before).await, rows);
}

/// It is unknown whether the entry is in the log, and what it has deleted from earlier files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_can_not_read_its_commit_back_neither_loses_nor_doubles_a_key() {
    let defs = [def(), copying(&def())];
    for (fault, def) in
        [Fault::After, Fault::Echo].into_iter().flat_map(|fault| defs.iter().map(move |def| (fault, def)))
    {
        let bench = Bench::new();
        let table = bench.store.create(def).await.unwrap();
        let mut winners = Winners::default();
        let first = some(0..40, "first");
        put(&table, &first, Vec::new());
        winners.put(&first);
        table.flush().await.unwrap();
        let second = some(20..60, "second");
        put(&table, &second, Vec::new());
        winners.put(&second);
        bench.faults.fail_next("00000000000000000002.json", fault);
        bench.faults.fail_next_read("00000000000000000002.json");
        table.flush().await.unwrap_err();
        assert_eq!(visible(&table).await, winners.texts(), "{fault:?}");
        table.sweep().await.unwrap();
        let third = some([10, 30, 50, 70], "third");
        put(&table, &third, Vec::new());
        winners.put(&third);
        check(&bench, &table, &winners).await;
        table.compact().await.unwrap();
        check(&bench, &table, &winners).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_that_fails_midway_is_done_whole_the_next_time() {
    let bench = Bench::new();
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for name in ["first", "second"] {
        let rows = some(0..40, name);
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        table.flush().await.unwrap();
    }
    let table = bench.store.open(&def()).await.unwrap();
    for (index, rows) in [some(30..50, "third"), some(45..60, "fourth")].iter().enumerate() {
        put(&table, rows, Vec::new());
        winners.put(rows);
        if index == 0 {
            bench.kept_keys().iter().for_each(|path| std::fs::remove_file(path).unwrap());
            bench.faults.fail_next_read(".parquet");
            table.settled().await.unwrap_err();
        }
    }
    check(&bench, &table, &winners).await;
}
