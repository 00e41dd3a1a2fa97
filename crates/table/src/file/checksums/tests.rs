use super::*;
use crate::error::TableError;
use crate::testing::{Bench, expected, publish, read_files, two_columns};
use crate::{StoreOptions, Table};
use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::Live;

fn metadata_of(bytes: &Bytes, policy: PageIndexPolicy) -> ParquetMetaData {
    let options = ArrowReaderOptions::new().with_page_index_policy(policy);
    ArrowReaderMetadata::load(bytes, options).unwrap().metadata().as_ref().clone()
}

fn sums(metadata: &ParquetMetaData) -> Checksums {
    Checksums::of_footer(metadata).unwrap().unwrap()
}

/// A table with one data file of several pages per column, and the file.
async fn one_file(rows: std::ops::Range<i64>) -> (Bench, Arc<Table>, PathBuf) {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, rows);
    table.flush().await.unwrap();
    let path = bench.dir.path().join("demo/events-7").join(table.snapshot().files[0].path());
    (bench, table, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_footer_has_the_checksum_of_every_page() {
    let (_bench, _table, path) = one_file(0..50_000).await;
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let metadata = metadata_of(&bytes, PageIndexPolicy::Required);
    let sums = sums(&metadata);
    let mut pages = 0;
    for (number, column) in metadata.row_group(0).columns().iter().enumerate() {
        let chunk = range_of(column);
        let slice = |range: &Range<u64>| bytes.slice(range.start as usize..range.end as usize);
        let ranges = pages_of(&chunk, &metadata.offset_index().unwrap()[0][number]);
        let found: Vec<u32> = ranges.iter().map(|range| crc32c(&slice(range))).collect();
        assert_eq!(sums.chunks[number], found);
        pages += ranges.len();
    }
    assert!(pages >= 6, "{pages}");
    assert_eq!(sums.fault(&metadata, 0, &bytes), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flipped_byte_of_a_page_is_named_with_its_place() {
    let (_bench, table, path) = one_file(1..100).await;
    let whole = std::fs::read(&path).unwrap();
    let metadata = metadata_of(&Bytes::from(whole.clone()), PageIndexPolicy::Skip);
    let columns = metadata.row_group(0).columns();
    let data = range_of(&columns[0]).start as usize..range_of(columns.last().unwrap()).end as usize;
    assert!(data.len() > 200, "{data:?}");
    for at in data.clone() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, damaged).unwrap();
        let error = read_files(&table).await.unwrap_err();
        let TableError::DamagedFile { file, reason } = &error else { panic!("byte {at}: {error}") };
        assert!(
            path.ends_with(file) || file.ends_with(path.file_name().unwrap().to_str().unwrap()),
            "{file}"
        );
        let column = columns.iter().find(|column| range_of(column).contains(&(at as u64))).unwrap();
        let name = column.column_path().string();
        assert!(
            reason.starts_with(&format!("column '{name}' of row group 0: bytes ")),
            "byte {at}: {reason}"
        );
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(read_files(&table).await.unwrap(), expected(1..100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_pages_are_checked() {
    let (_bench, _table, path) = one_file(0..50_000).await;
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let metadata = metadata_of(&bytes, PageIndexPolicy::Required);
    let sums = sums(&metadata);
    let chunk = range_of(metadata.row_group(0).column(0));
    let pages = pages_of(&chunk, &metadata.offset_index().unwrap()[0][0]);
    let page = pages.last().unwrap();
    let no_index = metadata_of(&bytes, PageIndexPolicy::Skip);
    assert!(sums.fault(&no_index, 0, &bytes).unwrap().contains("offset index"));
    let mut damaged = bytes.to_vec();
    damaged[page.end as usize - 1] ^= 1;
    let fault = |range: &Range<u64>| {
        sums.fault(&metadata, range.start, &damaged[range.start as usize..range.end as usize])
    };
    assert!(fault(page).unwrap().contains(&format!("bytes {} to {} ", page.start, page.end)));
    assert_eq!(fault(&pages[0]), None, "another page");
    assert_eq!(fault(&(page.start + 1..page.end)), None, "not a whole page");
    assert!(fault(&(page.start - 1..page.end + 1)).is_some(), "more than the page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_carries_no_damage_on_and_its_file_has_checksums() {
    let options = StoreOptions {
        target_file_bytes: Live::new(1 << 20),
        compact_min_files: 2,
        ..StoreOptions::default()
    };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    for rows in [0..30_000, 30_000..60_000, 60_000..60_010] {
        publish(&table, rows);
        table.flush().await.unwrap();
    }
    let directory = bench.dir.path().join("demo/events-7");
    let before = bench.data_files();
    for name in &before {
        let path = directory.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[40] ^= 0x10;
        std::fs::write(&path, damaged).unwrap();
        let error = table.compact().await.unwrap_err();
        assert!(matches!(&error, TableError::DamagedFile { file, .. } if file.ends_with(name)), "{error}");
        assert_eq!(bench.data_files(), before);
        std::fs::write(&path, whole).unwrap();
    }
    let report = table.compact().await.unwrap().unwrap();
    assert_eq!(report.files_before, 3);
    for file in table.snapshot().files.iter() {
        let bytes = Bytes::from(std::fs::read(directory.join(file.path())).unwrap());
        let metadata = metadata_of(&bytes, PageIndexPolicy::Required);
        assert!(metadata.num_row_groups() >= 3, "copied and gathered ones");
        assert_eq!(sums(&metadata).fault(&metadata, 0, &bytes), None);
        let last = metadata.row_groups().last().unwrap().columns().last().unwrap();
        let mut damaged = bytes.to_vec();
        damaged[range_of(last).end as usize - 1] ^= 1;
        assert!(sums(&metadata).fault(&metadata, 0, &damaged).is_some());
    }
}

#[test]
fn an_entry_is_read_back_and_one_of_other_chunks_is_not() {
    let chunks = vec![vec![2, 3, u32::MAX], Vec::new()];
    let sums = Checksums { chunks, places: Vec::new() };
    let entry = sums.to_entry();
    let bytes = STANDARD.decode(entry.value.unwrap()).unwrap();
    assert_eq!(Checksums::decode(&bytes, 2), Some(sums));
    assert_eq!(Checksums::decode(&bytes, 1), None);
    assert_eq!(Checksums::decode(&bytes, 3), None);
    assert_eq!(Checksums::decode(&bytes[..bytes.len() - 1], 2), None);
    let mut huge = bytes;
    huge[..4].fill(0xff);
    assert_eq!(Checksums::decode(&huge, 2), None, "more pages than there are bytes");
}

#[test]
fn an_entry_that_another_writer_took_over_counts_for_nothing() {
    let footer = |created_by: &str| {
        let entry = KeyValue::new(KEY.to_owned(), "AAAA".to_owned());
        let properties = WriterProperties::builder()
            .set_created_by(created_by.to_owned())
            .set_key_value_metadata(Some(vec![entry]))
            .build();
        let batch =
            RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        metadata_of(&writer.into_inner().unwrap().into(), PageIndexPolicy::Skip)
    };
    assert_eq!(Checksums::of_footer(&footer("parquet-cpp-arrow version 21.0.0")), Ok(None));
    let error = Checksums::of_footer(&footer(crate::file::CREATED_BY)).unwrap_err();
    assert!(error.contains("'tributary.crc32c'"), "{error}");
}

/// A million useless lookups would show in every query: it looks up each page range of each column.
#[test]
fn the_chunks_of_a_range_are_found_by_search() {
    let chunk_bytes = |chunk: u64| 4 + chunk * 100..4 + chunk * 100 + 90;
    let place = |chunk: usize| {
        let bytes = chunk_bytes(chunk as u64);
        Place { end_max: bytes.end, bytes, chunk, row_group: chunk / 50, column: chunk % 50 }
    };
    let sums = Checksums { chunks: Vec::new(), places: (0..10_000).map(place).collect() };
    let looked_at = |read: Range<u64>| sums.near(&read).iter().map(|place| place.chunk).collect::<Vec<_>>();
    for chunk in [0, 1, 4_999, 9_999] {
        let bytes = chunk_bytes(chunk as u64);
        assert_eq!(looked_at(bytes.clone()), [chunk]);
        assert_eq!(looked_at(bytes.start + 20..bytes.start + 21), [chunk]);
        assert_eq!(looked_at(bytes.end..bytes.end + 10), [0; 0], "between two chunks");
    }
    assert_eq!(looked_at(chunk_bytes(70).end - 1..chunk_bytes(73).start + 1), [70, 71, 72, 73]);
    assert_eq!(looked_at(0..4), [0; 0]);
    assert_eq!(looked_at(2_000_000..2_000_001), [0; 0]);
    assert_eq!(looked_at(0..2_000_000).len(), 10_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_of_a_damaged_footer_that_overlap_are_all_looked_at() {
    let (_bench, _table, path) = one_file(0..50_000).await;
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let metadata = metadata_of(&bytes, PageIndexPolicy::Required);
    let mut places = places(&metadata);
    assert_eq!(places.len(), 2);
    let all = places[0].bytes.start..places[1].bytes.end;
    places[0].bytes.end = all.end;
    places.iter_mut().for_each(|place| place.end_max = all.end);
    let sums = Checksums { places, ..sums(&metadata) };
    let last = all.end - 1..all.end;
    assert_eq!(sums.near(&last).len(), 2);
    assert!(sums.fault(&metadata, last.start, &bytes[last.start as usize..last.end as usize]).is_some());
}
