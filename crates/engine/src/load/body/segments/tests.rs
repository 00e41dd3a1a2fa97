//! Whole loads of lines, in parallel on every machine, compared with the same loads by one decoder.

use super::*;
use crate::load::body::reader::RowReader;
use crate::load::body::testing::reader;
use crate::testing::{TestEngine, wait_until};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use std::fmt::Write as _;
use std::time::Duration;
use tributary_decode::{BodyFormat, Counts, CsvFormat, CsvHeader, JsonFormat, blocks_to_batches};
use tributary_table::Table;
use tributary_types::Live;

const MIB: u64 = 1 << 20;
const ROWS: usize = 250_000;
/// Each row of this many has no id.
const REJECTED: usize = 50_000;
const CHUNK_BYTES: usize = 70_001;

/// An engine with this many threads that decode.
async fn engine(threads: u32) -> TestEngine {
    let test = TestEngine::open(|options| options.ingest.memory_limit_bytes = Live::new(1 << 30)).await;
    let decode_threads = test.engine.loads.decode_threads.semaphore();
    decode_threads.forget_permits(usize::MAX);
    decode_threads.add_permits(threads as usize);
    test
}

fn idle_threads(test: &TestEngine) -> usize {
    test.engine.loads.decode_threads.semaphore().available_permits()
}

fn csv() -> BodyFormat {
    BodyFormat::Csv(CsvFormat { column_separator: b",".to_vec(), ..CsvFormat::default() })
}

/// About 10 MB; one line is longer than a segment, and its text too long for the column.
fn csv_body() -> Vec<u8> {
    let mut body = String::new();
    for row in 0..ROWS {
        match row {
            row if row % REJECTED == REJECTED - 1 => writeln!(body, "\\N,the text of row {row}"),
            150_000 => writeln!(body, "{row},{}", "long ".repeat(600_000)),
            row => writeln!(body, "{row},the text of row {row} and more of it"),
        }
        .expect("a string takes it");
    }
    body.into_bytes()
}

fn json_body() -> Vec<u8> {
    let mut body = String::new();
    for row in 0..ROWS {
        let written = if row % REJECTED == REJECTED - 1 {
            writeln!(body, "{{\"text\": \"of row {row}\"}}")
        } else {
            writeln!(body, "{{\"id\": {row}, \"text\": \"of row {row}\"}}")
        };
        written.expect("a string takes it");
    }
    body.into_bytes()
}

/// The rows, counts and rejected rows of a body.
struct Outcome {
    rows: RecordBatch,
    counts: Counts,
    rejects: Vec<String>,
}

/// Feeds a body, and calls `between` after each chunk.
async fn load(
    test: &TestEngine,
    (table, mut reader): (&Arc<Table>, RowReader),
    body: &[u8],
    mut between: impl FnMut(&RowReader),
) -> Outcome {
    let schema = Arc::clone(&table.def().schema);
    let mut sink = LoadSink::new(Arc::clone(table), Arc::clone(&schema), 256 * MIB);
    for chunk in body.chunks(CHUNK_BYTES) {
        let fed = reader.feed(&test.engine.loads, &mut sink, chunk, Interrupt::NEVER).await;
        assert!(fed.is_ok());
        between(&reader);
    }
    assert!(reader.end(&test.engine.loads, &mut sink, Interrupt::NEVER).await.is_ok());
    let rows = sink.take_small().expect("it fits into memory");
    let batches = blocks_to_batches(&schema, &rows.blocks).expect("the blocks are whole");
    let rows = concat_batches(&batches[0].schema(), &batches).expect("batches of one schema");
    let rejects = reader.rejects().iter().map(|reject| format!("{reject} {:?}", reject.row)).collect();
    Outcome { rows, counts: reader.counts(), rejects }
}

/// Compares a load by several threads with one by the load's task.
async fn assert_same(format: &BodyFormat, body: &[u8]) {
    let test = engine(THREADS_MAX).await;
    let table = test.table().await;
    let whole = load(&test, (&table, reader(&test, &table, format)), body, |_| ()).await;
    let mut was_divided = false;
    let side_by_side = load(&test, (&table, reader(&test, &table, format).in_parallel()), body, |reader| {
        was_divided |= reader.is_in_segments();
    })
    .await;
    assert!(was_divided);
    assert_eq!(side_by_side.counts, whole.counts);
    assert_eq!(side_by_side.counts.total, ROWS as u64);
    assert_eq!(side_by_side.rejects, whole.rejects);
    assert!(side_by_side.rejects.len() >= ROWS / REJECTED, "{:?}", side_by_side.rejects);
    assert!(side_by_side.rows == whole.rows, "the rows are in the order of the body");
    assert_eq!(idle_threads(&test), THREADS_MAX as usize);
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_csv_are_the_same_rows_whoever_decodes_them() {
    assert_same(&csv(), &csv_body()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_json_are_the_same_rows_whoever_decodes_them() {
    assert_same(&BodyFormat::Json(JsonFormat::default()), &json_body()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_is_not_looked_for_in_later_segments() {
    let format = CsvFormat {
        header: CsvHeader::NamesAndTypes,
        column_separator: b",".to_vec(),
        ..CsvFormat::default()
    };
    let mut body = b"id,text\nINT,STRING\n".to_vec();
    body.append(&mut csv_body());
    assert_same(&BodyFormat::Csv(format), &body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_whose_threads_others_take_goes_on_by_itself() {
    let test = engine(2).await;
    let table = test.table().await;
    let body = csv_body();
    let whole = load(&test, (&table, reader(&test, &table, &csv())), &body, |_| ()).await;
    let threads = Arc::clone(test.engine.loads.decode_threads.semaphore());
    let mut taken = None;
    let alone = load(&test, (&table, reader(&test, &table, &csv()).in_parallel()), &body, |reader| {
        if reader.is_in_segments() && taken.is_none() {
            taken = Some(Arc::clone(&threads).try_acquire_many_owned(2).expect("no segment is whole yet"));
        }
    })
    .await;
    assert!(taken.is_some());
    assert_eq!((alone.counts, alone.rejects), (whole.counts, whole.rejects));
    assert!(alone.rows == whole.rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn enclosed_fields_are_decoded_by_one() {
    let test = engine(THREADS_MAX).await;
    let table = test.table().await;
    let format = CsvFormat { column_separator: b",".to_vec(), enclose: Some(b'"'), ..CsvFormat::default() };
    let reader = reader(&test, &table, &BodyFormat::Csv(format)).in_parallel();
    let loaded = load(&test, (&table, reader), &csv_body(), |reader| assert!(!reader.is_in_segments())).await;
    assert_eq!(loaded.counts.total, ROWS as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_is_refused_and_threads_are_given_back() {
    let test = engine(THREADS_MAX).await;
    let table = test.table().await;
    let mut reader = reader(&test, &table, &csv()).in_parallel();
    let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&table.def().schema), 256 * MIB);
    let loads = &test.engine.loads;
    let start = b"1,a\n".repeat(2 * LARGE_BODY_BYTES / 4);
    assert!(reader.feed(loads, &mut sink, &start, Interrupt::NEVER).await.is_ok());
    let endless = vec![b'x'; 16 << 20];
    let mut refused = None;
    for _ in 0..9 {
        if let Err(error) = reader.feed(loads, &mut sink, &endless, Interrupt::NEVER).await {
            refused = Some(error);
            break;
        }
    }
    if refused.is_none() {
        refused = reader.end(loads, &mut sink, Interrupt::NEVER).await.err();
    }
    let Some(ReadError::Rows(error)) = refused else { panic!("the line is too long") };
    assert!(
        error.detail_text().starts_with("a line of the csv data has more than"),
        "{}",
        error.detail_text()
    );
    drop((reader, sink));
    wait_until("threads and memory are given back", || {
        (idle_threads(&test), test.engine.ingest.memory().in_flight()) == (THREADS_MAX as usize, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_whose_time_is_over_ends_its_segments() {
    let test = engine(THREADS_MAX).await;
    let table = test.table().await;
    let mut reader = reader(&test, &table, &csv()).in_parallel();
    let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&table.def().schema), 256 * MIB);
    let loads = &test.engine.loads;
    let body = csv_body();
    let mut chunks = body.chunks(CHUNK_BYTES);
    while !reader.is_in_segments() {
        let chunk = chunks.next().expect("the body is large");
        assert!(reader.feed(loads, &mut sink, chunk, Interrupt::NEVER).await.is_ok());
    }
    let over = Interrupt::after(Duration::from_millis(1));
    let mut ended = Ok(());
    for chunk in chunks {
        ended = reader.feed(loads, &mut sink, chunk, over).await;
        if ended.is_err() {
            break;
        }
    }
    assert!(matches!(ended, Err(ReadError::Interrupted(_))));
    drop((reader, sink));
    wait_until("threads and memory are given back", || {
        (idle_threads(&test), test.engine.ingest.memory().in_flight()) == (THREADS_MAX as usize, 0)
    })
    .await;
}
