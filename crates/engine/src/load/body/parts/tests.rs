//! Whole loads of Parquet bodies, in parallel on every machine.

use super::*;
use crate::load::body::reader::RowReader;
use crate::load::body::testing::reader;
use crate::testing::{TestEngine, wait_until};
use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use tributary_decode::{BodyFormat, ColumnarFormat};
use tributary_files::{Output, PageCompression, Properties};
use tributary_table::Table;
use tributary_types::{Egress, Live};

/// Three parts.
const ROWS: i32 = 200_000;
/// This many rows have no id.
const REJECTED: i32 = 8;
const MIB: u64 = 1 << 20;

/// An engine that has threads for the parts of one load.
async fn engine(file_bytes: u64) -> TestEngine {
    let test = TestEngine::open(|options| options.store.target_file_bytes = Live::new(file_bytes)).await;
    let threads = &test.engine.loads.decode_threads.0;
    threads.forget_permits(usize::MAX);
    threads.add_permits(THREADS_MAX as usize);
    test
}

fn idle_threads(test: &TestEngine) -> usize {
    test.engine.loads.decode_threads.0.available_permits()
}

/// A file of the table's columns in one row group.
async fn file() -> Vec<u8> {
    let every = ROWS / REJECTED;
    let ids: Int32Array = (0..ROWS).map(|row| (row % every != every - 1).then_some(row)).collect();
    let texts: StringArray =
        (0..ROWS).map(|row| (row % 13 > 0).then(|| format!("the text of row {row}"))).collect();
    let columns = [("id", Arc::new(ids) as ArrayRef), ("text", Arc::new(texts) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let uri = format!("file://{}/", directory.path().display());
    let nowhere = Arc::new(Egress::parse("").expect("no networks"));
    let output = Output::open(&uri, &mut Properties::default(), Some(directory.path()), &nowhere);
    let output = output.expect("it may be written to");
    let file = output.parquet_file("rows.parquet", &batch.schema(), PageCompression::Snappy);
    let mut file = file.expect("its columns can be written");
    file.append_rows(&batch).await.expect("written");
    file.finish().await.expect("written");
    std::fs::read(directory.path().join("rows.parquet")).expect("it was written")
}

async fn read(
    test: &TestEngine,
    table: &Arc<Table>,
    body: &[u8],
    interrupt: Interrupt<'_>,
) -> (RowReader, LoadSink, Result<(), ReadError>) {
    let mut reader = reader(test, table, &BodyFormat::Columnar(ColumnarFormat::Parquet));
    let mut sink = LoadSink::new(Arc::clone(table), Arc::clone(&table.def().schema), MIB);
    reader.feed(&test.engine.loads, &mut sink, body, Interrupt::NEVER).await.ok().expect("it is gathered");
    let ended = reader.end(&test.engine.loads, &mut sink, interrupt).await;
    (reader, sink, ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_large_body_fill_files_of_their_own_and_count_together() {
    let test = engine(64 * MIB).await;
    let table = test.table().await;
    let (reader, mut sink, ended) = read(&test, &table, &file().await, Interrupt::NEVER).await;
    assert!(ended.is_ok());
    let counts = reader.counts();
    assert_eq!((counts.total, counts.filtered), (ROWS as u64, REJECTED as u64));
    let lines: Vec<String> = reader.rejects().iter().map(|reject| reject.source_line.clone()).collect();
    let every = (ROWS / REJECTED) as usize;
    assert_eq!(lines.len(), REJECTED as usize);
    for (number, line) in lines.iter().enumerate() {
        let row = (number + 1) * every;
        let text = match (row - 1) % 13 {
            0 => "NULL".to_owned(),
            _ => format!("the text of row {}", row - 1),
        };
        assert_eq!(*line, format!("row {row}: NULL {text}"));
    }
    let rows = sink.take_files().await.expect("written");
    assert_eq!((rows.rows, rows.files().len()), ((ROWS - REJECTED) as u64, 3));
    table.discard(rows.files()).await;
    drop((reader, sink, rows));
    assert_eq!((idle_threads(&test), test.data_files()), (THREADS_MAX as usize, 0));
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_last_part_leaves_nothing_of_the_others() {
    // Each run of rows fills a file.
    let test = engine(1).await;
    let table = test.table().await;
    let mut body = file().await;
    // Texts of the last rows: they are most of the file, and its end.
    let place = body.len() / 10 * 9;
    body[place..place + 1000].fill(0xff);
    let (reader, mut sink, ended) = read(&test, &table, &body, Interrupt::NEVER).await;
    match ended {
        Err(ReadError::Rows(error)) => {
            let text = error.detail_text();
            assert!(text.starts_with("the parquet body can't be read: "), "{text}");
        }
        _ => panic!("it is damaged"),
    }
    assert_eq!((idle_threads(&test), test.data_files()), (THREADS_MAX as usize, 0));
    assert!(sink.take_small().expect("no file").is_empty());
    drop((reader, sink));
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_whose_time_is_over_ends_all_parts() {
    let test = engine(1).await;
    let table = test.table().await;
    let body = file().await;
    let (reader, sink, ended) =
        read(&test, &table, &body, Interrupt::after(std::time::Duration::from_millis(1))).await;
    assert!(matches!(ended, Err(ReadError::Interrupted(_))));
    assert_eq!((idle_threads(&test), test.data_files()), (THREADS_MAX as usize, 0));
    drop((reader, sink));
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_is_dropped_leaves_no_part_behind() {
    let test = engine(1).await;
    let table = test.table().await;
    let body = file().await;
    let dropped = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        read(&test, &table, &body, Interrupt::NEVER),
    );
    // It may end before, on a fast machine.
    drop(dropped.await);
    wait_until("files, memory and threads are given back", || {
        let memory = test.engine.ingest.memory().in_flight();
        (test.data_files(), memory, idle_threads(&test)) == (0, 0, THREADS_MAX as usize)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_finds_no_two_threads_is_decoded_by_one() {
    let test = engine(64 * MIB).await;
    let table = test.table().await;
    let others =
        test.engine.loads.decode_threads.0.acquire_many(THREADS_MAX - 1).await.expect("never closed");
    let (reader, mut sink, ended) = read(&test, &table, &file().await, Interrupt::NEVER).await;
    assert!(ended.is_ok());
    assert_eq!(reader.counts().loaded, (ROWS - REJECTED) as u64);
    let rows = sink.take_files().await.expect("written");
    assert_eq!(rows.files().len(), 1);
    drop(others);
}
