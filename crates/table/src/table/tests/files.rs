use crate::options::StoreOptions;
use crate::table::Publication;
use crate::testing::{Bench, Fault, GateKey, expected, logged, publish, rows, two_columns, visible};
use crate::{CompactReport, DataFile, Table, TableError};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::file::metadata::ParquetMetaDataReader;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tributary_types::{Live, Lsn, Version};

fn publish_files(table: &Table, version: u64, files: Vec<DataFile>) {
    let publication = Publication {
        version: Version(version),
        schema: two_columns().schema.clone(),
        batches: Vec::new(),
        files,
        replaces: None,
        partitions: None,
        lsn: Lsn(version * 100),
    };
    table.publish(publication).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_load_goes_to_files_of_the_target_size_past_the_memtable() {
    let bench =
        Bench::with(StoreOptions { target_file_bytes: Live::new(100_000), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    for start in (0..400_000).step_by(10_000) {
        writer.append(rows(start..start + 10_000)).await.unwrap();
    }
    let files = writer.finish().await.unwrap().into_files();
    assert!(files.len() > 1, "{files:?}");
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 400_000);
    assert_eq!(visible(&table).await.len(), 0);
    assert_eq!(table.flush().await.unwrap(), None);

    // The commit record of the write-ahead log has the files; a restart publishes them again.
    let record = serde_json::to_string(&files).unwrap();
    publish_files(&table, 1, files);
    assert_eq!(table.snapshot().rows(), 400_000);
    assert_eq!(table.memtable_bytes(), 0);
    let table = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(table.persisted_version(), Version(0));
    publish_files(&table, 1, serde_json::from_str(&record).unwrap());
    table.flush().await.unwrap().unwrap();
    let table = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(table.persisted_version(), Version(1));
    assert_eq!(visible(&table).await, expected(0..400_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_or_discarded_load_leaves_no_file() {
    let bench = Bench::with(StoreOptions { target_file_bytes: Live::new(1000), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(0..200_000)).await.unwrap();
    writer.abort().await;
    assert_eq!(bench.data_files(), Vec::<String>::new());
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(0..200_000)).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    assert_eq!(bench.data_files().len(), files.len());
    table.discard(&files).await;
    assert_eq!(bench.data_files(), Vec::<String>::new());
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows([1])).await.unwrap();
    bench.faults.fail_next(".parquet", Fault::Before);
    writer.finish().await.unwrap_err();
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

/// Waits until nothing of a dropped writer is left.
pub(super) async fn nothing_is_left(bench: &Bench, table: &Table) {
    let is_left = || !bench.data_files().is_empty() || !table.root().unpublished.lock().is_empty();
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while is_left() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("left: {:?}", bench.data_files()));
}

/// Enough bytes for a run, which hardly get fewer when they are encoded.
fn large_rows() -> RecordBatch {
    let mut state = 1_u64;
    let base: String = (0..2_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'0' + (state >> 58) as u8)
        })
        .collect();
    let texts: StringArray = (0..110).map(|row| Some(&base[row * 1000..][..1_000_000])).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..110)), Arc::new(texts)];
    RecordBatch::try_new(two_columns().schema.arrow(), columns).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_dropped_deletes_its_files_at_once() {
    let bench = Bench::with(StoreOptions { target_file_bytes: Live::new(1000), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(large_rows()).await.unwrap();
    writer.append(rows([1])).await.unwrap();
    assert_eq!(bench.data_files().len(), 1);
    drop(writer);
    nothing_is_left(&bench, &table).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_dropped_aborts_its_upload() {
    let bench =
        Bench::with(StoreOptions { target_file_bytes: Live::new(1 << 40), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(large_rows()).await.unwrap();
    assert_eq!(bench.data_files().len(), 1, "a staged file");
    drop(writer);
    nothing_is_left(&bench, &table).await;
    assert_eq!(bench.faults.aborted_uploads(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_dropped_while_it_closes_a_file_deletes_it() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(0..1000)).await.unwrap();
    let gate = bench.faults.hold_next(".parquet");
    {
        let finish = writer.finish();
        tokio::pin!(finish);
        tokio::select! {
            _ = &mut finish => panic!("the gate is closed"),
            () = gate.arrived() => {}
        }
    }
    assert!(!table.root().unpublished.lock().is_empty());
    gate.open();
    nothing_is_left(&bench, &table).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_spares_files_that_wait_for_their_publication() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows([1])).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    assert_eq!(table.sweep().await.unwrap().files, 0);
    let restarted = bench.store.open(&two_columns()).await.unwrap();
    restarted.pin(&files);
    assert_eq!(restarted.sweep().await.unwrap().files, 0);
    publish_files(&restarted, 1, files);
    assert_eq!(restarted.sweep().await.unwrap().files, 0);
    assert_eq!(visible(&restarted).await, expected([1]));
    restarted.publish_truncate(Version(2), Lsn(200)).unwrap();
    restarted.flush().await.unwrap();
    assert_eq!(restarted.sweep().await.unwrap().files, 1);
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_spares_files_that_another_writer_has_logged() {
    let bench = Bench::with(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    let other = bench.store.open(&two_columns()).await.unwrap();
    publish(&other, [1]);
    other.flush().await.unwrap();
    assert_eq!(table.sweep().await.unwrap().files, 0);
    assert_eq!(visible(&other).await, expected([1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_files_stay_for_readers_of_older_versions() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, [1]);
    table.flush().await.unwrap();
    table.publish_truncate(Version(2), Lsn(200)).unwrap();
    table.flush().await.unwrap();
    assert_eq!(table.sweep().await.unwrap().files, 0);
    assert_eq!(bench.data_files().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_turns_many_small_files_into_one_with_the_same_rows() {
    let bench = Bench::with(StoreOptions { compact_min_files: 8, ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 0..7 {
        publish(&table, [id * 2 + 1, id * 2]);
        table.flush().await.unwrap();
    }
    assert_eq!(table.compact().await.unwrap(), None);
    publish(&table, [14]);
    table.flush().await.unwrap();
    publish(&table, [15]);
    let report = table.compact().await.unwrap().unwrap();
    assert_eq!((report.files_before, report.files_after, report.rows), (8, 1, 15));
    assert_eq!(visible(&table).await, expected(0..16));
    assert_eq!(logged(&table).await, expected(0..15));
    table.flush().await.unwrap();
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.snapshot().files.len(), 2);
    assert_eq!(visible(&again).await, expected(0..16));
}

/// A compaction of two data files that waits before it writes its own.
struct Held {
    bench: Bench,
    table: Arc<Table>,
    gate: GateKey,
    compaction: JoinHandle<Result<Option<CompactReport>, TableError>>,
}

async fn held_compaction() -> Held {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 0..2 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    let gate = bench.faults.hold_next(".parquet");
    let compaction = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.compact().await }
    });
    gate.arrived().await;
    Held { bench, table, gate, compaction }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_during_a_compaction_keeps_its_rows() {
    let Held { bench: _bench, table, gate, compaction } = held_compaction().await;
    publish(&table, [2]);
    table.flush().await.unwrap().unwrap();
    gate.open();
    assert_eq!(compaction.await.unwrap().unwrap().unwrap().rows, 2);
    assert_eq!(visible(&table).await, expected(0..3));
    assert_eq!(logged(&table).await, expected(0..3));
    assert_eq!(table.snapshot().files.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_during_a_compaction_wins() {
    let Held { bench: _bench, table, gate, compaction } = held_compaction().await;
    table.publish_truncate(Version(3), Lsn(300)).unwrap();
    gate.open();
    compaction.await.unwrap().unwrap();
    assert_eq!(visible(&table).await, expected([]));
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_whose_input_another_writer_removed_changes_nothing() {
    let Held { bench, table, gate, compaction } = held_compaction().await;
    let other = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(other.compact().await.unwrap().unwrap().rows, 2);
    gate.open();
    assert_eq!(compaction.await.unwrap().unwrap(), None);
    assert_eq!(visible(&table).await, expected([0, 1]));
    assert_eq!(logged(&table).await, expected([0, 1]));
    assert_eq!(bench.data_files().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_no_log_has_stay_for_queries_from_before_a_truncation() {
    let options = StoreOptions { keep_removed_files_ms: Live::new(600_000), ..StoreOptions::default() };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(0..10)).await.unwrap();
    let files = writer.finish().await.unwrap().into_files();
    // Like a two-phase load that was prepared long ago.
    let path = bench.dir.path().join("demo/events-7").join(&files[0].path);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).unwrap();
    publish_files(&table, 1, files);
    let before = table.snapshot();
    table.publish_truncate(Version(2), Lsn(200)).unwrap();
    assert_eq!(table.sweep().await.unwrap().files, 0);
    let mut reader = crate::testing::open_file(&table, &before.files[0]).await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap().num_rows(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_distinct_values_have_no_dictionary() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    let names = |rows: i64, different: i64| -> RecordBatch {
        let names: StringArray = (0..rows).map(|row| Some(format!("n{}", row % different))).collect();
        let ids = Int64Array::from_iter_values(0..rows);
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(names)];
        RecordBatch::try_new(two_columns().schema.arrow(), columns).unwrap()
    };
    for (rows, different, expected) in [(10_000, 10_000, [false, false]), (10_000, 100, [false, true])] {
        let mut writer = table.new_file_writer().unwrap();
        writer.append(names(rows, different)).await.unwrap();
        let files = writer.finish().await.unwrap().into_files();
        let file = std::fs::File::open(bench.dir.path().join("demo/events-7").join(&files[0].path)).unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let columns = footer.row_group(0).columns().iter();
        let found: Vec<bool> = columns.map(|column| column.dictionary_page_offset().is_some()).collect();
        assert_eq!(found, expected, "{different} names in {rows} rows");
        table.discard(&files).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compactions_entry_has_the_metadata_and_a_flushs_has_none() {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in [1, 2] {
        publish(&table, [id]);
        table.flush().await.unwrap().unwrap();
    }
    assert!(table.compact().await.unwrap().is_some());
    let kinds = |version: u64| {
        let entry = bench.dir.path().join(format!("demo/events-7/_delta_log/{version:020}.json"));
        let entry = std::fs::read_to_string(entry).expect("an entry");
        let actions =
            entry.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let kinds = actions.map(|action| action.as_object().expect("an action").keys().next().cloned());
        kinds.map(|kind| kind.expect("a kind")).collect::<Vec<_>>()
    };
    assert_eq!(kinds(2), ["commitInfo", "add", "txn"]);
    assert_eq!(kinds(3), ["commitInfo", "remove", "remove", "metaData", "add"]);
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(visible(&again).await, expected([1, 2]));
}
