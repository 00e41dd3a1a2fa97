use super::*;
use crate::scan::provider::reader::CheckedReaders;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{binary, col, lit};
use datafusion::physical_plan::collect;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::PutPayload;
use object_store::memory::InMemory;

const ROWS: i64 = 25_000;
const GROUP_ROWS: usize = 10_000;
const LIMIT: u64 = 64 << 20;

/// A file in a store, and a cache.
struct Bench {
    context: SessionContext,
    cache: Arc<PageCache>,
    url: ObjectStoreUrl,
    path: Path,
    size: u64,
    rows: RecordBatch,
}

/// A text that cannot be compressed well, so that row groups have room for their first column.
fn text(n: i64) -> String {
    let number = u128::from(n.cast_unsigned() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    format!("{number:032x}")
}

fn columns() -> RecordBatch {
    let n = || 0..ROWS;
    let columns: [(&str, ArrayRef); 5] = [
        ("n", Arc::new(Int64Array::from_iter_values(n()))),
        (
            "few",
            Arc::new(n().map(|n| (n % 7 > 0).then(|| format!("value {}", n % 5))).collect::<StringArray>()),
        ),
        ("many", Arc::new(StringArray::from_iter_values(n().map(text)))),
        ("same", Arc::new(Int64Array::from_iter_values(n().map(|_| 7)))),
        ("odd", Arc::new(n().map(|n| (n % 2 > 0).then_some(n * n)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn properties() -> datafusion::parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(3_000)
        .set_write_batch_size(500)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
}

impl Bench {
    async fn new(rows: RecordBatch, properties: WriterProperties, limit: u64) -> Self {
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        Self::with_bytes(rows, writer.into_inner().unwrap(), limit).await
    }

    async fn with_bytes(rows: RecordBatch, bytes: Vec<u8>, limit: u64) -> Self {
        let (store, path, size) = (InMemory::new(), Path::from("part.parquet"), bytes.len() as u64);
        store.put(&path, PutPayload::from(bytes)).await.unwrap();
        let cache = PageCache::new(limit);
        let config = SessionConfig::new().with_extension(Arc::clone(&cache));
        let context = SessionContext::new_with_config(config);
        let url = ObjectStoreUrl::parse("memory://files").unwrap();
        context.register_object_store(url.as_ref(), Arc::new(store));
        Self { context, cache, url, path, size, rows }
    }

    fn readers(&self) -> CheckedReaders {
        let (runtime, config) = (self.context.runtime_env(), self.context.copied_config());
        CheckedReaders::new(&runtime, &config, self.url.clone(), HashMap::new()).unwrap()
    }

    fn reader(&self, readers: &CheckedReaders) -> Box<dyn AsyncFileReader> {
        readers.create_reader(0, self.file(), None, &ExecutionPlanMetricsSet::new()).unwrap()
    }

    fn file(&self) -> PartitionedFile {
        let mut file = PartitionedFile::new(self.path.as_ref(), self.size);
        file.object_meta.location = self.path.clone();
        file
    }

    /// The rows that pass, read by a plan in these pieces of the file, if they are given.
    async fn scan(
        &self,
        filter: Option<Arc<dyn PhysicalExpr>>,
        pieces: Option<Vec<PartitionedFile>>,
    ) -> RecordBatch {
        let mut source = ParquetSource::new(self.rows.schema())
            .with_parquet_file_reader_factory(Arc::new(self.readers()))
            .with_pushdown_filters(true);
        if let Some(filter) = filter {
            source = source.with_predicate(filter);
        }
        let pieces = pieces.unwrap_or_else(|| vec![self.file()]);
        let config = FileScanConfigBuilder::new(self.url.clone(), Arc::new(source))
            .with_file_groups(pieces.into_iter().map(|piece| FileGroup::new(vec![piece])).collect())
            .build();
        let plan = DataSourceExec::from_data_source(config);
        let batches = collect(plan, self.context.task_ctx()).await.unwrap();
        concat_batches(&self.rows.schema(), &batches).unwrap()
    }

    /// Some columns of the selected rows, and the bytes that were in memory.
    async fn read(&self, columns: &[usize], selection: Option<RowSelection>) -> (RecordBatch, u64) {
        let before = self.cache.figures().hit_bytes;
        let reader = self.reader(&self.readers());
        let builder = ParquetRecordBatchStreamBuilder::new(reader).await.unwrap();
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let builder = builder.with_projection(mask);
        let builder = match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        };
        let batches: Vec<RecordBatch> = builder.build().unwrap().try_collect().await.unwrap();
        let schema = Arc::new(self.rows.schema().project(columns).unwrap());
        (concat_batches(&schema, &batches).unwrap(), self.cache.figures().hit_bytes - before)
    }

    /// Reads columns until they are in memory as far as they ever will be.
    async fn warm(&self, columns: &[usize]) {
        for _ in 0..READS {
            assert_eq!(self.read(columns, None).await.0, self.rows.project(columns).unwrap());
        }
        // The turn of what was begun before.
        self.rest().await;
    }

    /// Waits until nothing is being taken in.
    async fn rest(&self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
            drop(self.cache.turn.acquire().await.unwrap());
        }
    }
}

fn every_tenth_thousand() -> RowSelection {
    let ranges = (0..ROWS as usize / 10_000).map(|number| number * 10_000 + 500..number * 10_000 + 700);
    RowSelection::from_consecutive_ranges(ranges, ROWS as usize)
}

fn selected(rows: &RecordBatch) -> RecordBatch {
    let parts: Vec<RecordBatch> =
        (0..ROWS as usize / 10_000).map(|number| rows.slice(number * 10_000 + 500, 200)).collect();
    concat_batches(&rows.schema(), &parts).unwrap()
}

#[tokio::test]
async fn what_is_read_twice_is_read_from_memory_then_and_is_the_same() {
    for properties in [
        properties().build(),
        properties().set_dictionary_enabled(false).build(),
        properties().set_writer_version(WriterVersion::PARQUET_2_0).build(),
        properties().set_compression(Compression::SNAPPY).build(),
        properties().set_compression(Compression::UNCOMPRESSED).build(),
        properties().set_offset_index_disabled(true).build(),
    ] {
        let bench = Bench::new(columns(), properties, LIMIT).await;
        let all: Vec<usize> = (0..5).collect();
        bench.warm(&[0, 2]).await;
        for chosen in [&[0, 2][..], &[1, 3, 4], &all] {
            let (rows, hits) = bench.read(chosen, None).await;
            assert_eq!(rows, bench.rows.project(chosen).unwrap());
            assert_eq!(hits > 0, chosen.contains(&0), "{chosen:?}");
        }
        bench.warm(&all).await;
        let (rows, hits) = bench.read(&all, None).await;
        assert_eq!(rows, bench.rows);
        let misses = bench.cache.figures().miss_bytes;
        let (some, some_hits) = bench.read(&all, Some(every_tenth_thousand())).await;
        assert_eq!(some, selected(&bench.rows));
        assert!(hits > 500_000 && some_hits > 0 && some_hits <= hits, "{hits} {some_hits}");
        assert_eq!(bench.cache.figures().miss_bytes, misses, "nothing is read from the file");
    }
}

#[tokio::test]
async fn plans_read_each_row_once_whatever_is_in_memory() {
    let properties = properties().set_bloom_filter_enabled(true).build();
    let bench = Bench::new(columns(), properties, LIMIT).await;
    let schema = bench.rows.schema();
    let filter = || {
        let many = col("many", &schema).unwrap();
        binary(many, Operator::Eq, lit(text(20_000)), &schema).unwrap()
    };
    let file = bench.file();
    let mut starts = Vec::new();
    for round in 0..4 {
        let mut footer = bench.reader(&bench.readers());
        let footer = footer.get_metadata(None).await.unwrap();
        let first = footer.row_groups().iter().map(|group| group.column(0).byte_range().0);
        starts.push(first.collect::<Vec<_>>());
        let mut cuts = starts[0].clone();
        cuts.push(bench.size);
        let pieces =
            cuts.windows(2).map(|cut| file.clone().with_range(cut[0].cast_signed(), cut[1].cast_signed()));
        let rows = bench.scan(None, Some(pieces.collect())).await;
        assert_eq!(rows.num_rows(), bench.rows.num_rows(), "round {round}");
        let one = bench.scan(Some(filter()), None).await;
        assert_eq!(one, bench.rows.slice(20_000, 1), "round {round}");
        bench.rest().await;
    }
    assert!(starts.iter().all(|found| *found == starts[0]), "row groups stay where they are: {starts:?}");
    assert!(bench.cache.figures().hit_bytes > 0);
}

#[tokio::test]
async fn readers_of_one_scan_have_one_view() {
    let bench = Bench::new(columns(), properties().build(), LIMIT).await;
    let readers = bench.readers();
    let mut first = bench.reader(&readers);
    let before = first.get_metadata(None).await.unwrap();
    bench.warm(&[0, 1, 2, 3, 4]).await;
    // The footer is the first reader's, and the pages are read by another one.
    let second = bench.reader(&readers);
    let of_first = ArrowReaderMetadata::try_new(before.clone(), ArrowReaderOptions::default()).unwrap();
    let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(second, of_first).build().unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    assert_eq!(concat_batches(&bench.rows.schema(), &batches).unwrap(), bench.rows);
    drop(first);
    let now = bench.reader(&readers).get_metadata(None).await.unwrap();
    assert!(!Arc::ptr_eq(&before, &now));
    // And the other way: the cache has given up what a reader has seen.
    let mut third = bench.reader(&readers);
    let in_memory = third.get_metadata(None).await.unwrap();
    assert!(bench.cache.clear() > 500_000);
    assert_eq!(bench.cache.figures().held_bytes, 0);
    let fourth = bench.reader(&readers);
    drop(third);
    let of_third = ArrowReaderMetadata::try_new(in_memory, ArrowReaderOptions::default()).unwrap();
    let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(fourth, of_third).build().unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    assert_eq!(concat_batches(&bench.rows.schema(), &batches).unwrap(), bench.rows);
}

#[tokio::test]
async fn the_cache_stays_within_its_limit_and_without_one_keeps_nothing() {
    for limit in [0, 100_000, 2_000_000] {
        let bench = Bench::new(columns(), properties().build(), limit).await;
        for _ in 0..3 {
            bench.warm(&[0, 1, 2, 3, 4]).await;
            bench.cache.files.run_pending_tasks();
            assert!(bench.cache.figures().held_bytes <= limit, "{:?}", bench.cache);
        }
        assert_eq!(bench.cache.figures().hit_bytes > 0, limit > 0, "{:?}", bench.cache);
    }
}

#[tokio::test]
async fn a_first_column_that_finds_no_room_stays_in_the_file() {
    // Its pages are longer than all of the row group in the file; behind the last row group there is room.
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let rows = RecordBatch::try_from_iter_with_nullable([("n", n, true)]).unwrap();
    let narrow = || properties().set_dictionary_enabled(false);
    let group = GROUP_ROWS as u64 * 8;
    for (properties, least, most) in [
        (narrow().build(), group / 2, group),
        (narrow().set_max_row_group_row_count(Some(ROWS as usize)).build(), ROWS as u64 * 8, ROWS as u64 * 9),
        (narrow().set_bloom_filter_enabled(true).build(), 0, 0),
    ] {
        let bench = Bench::new(rows.clone(), properties, LIMIT).await;
        assert!(bench.size < ROWS as u64 * 8);
        bench.warm(&[0]).await;
        let (rows, hits) = bench.read(&[0], None).await;
        assert_eq!(rows, bench.rows);
        assert!((least..=most).contains(&hits), "{hits}");
    }
}

#[tokio::test]
async fn pages_that_are_damaged_are_not_taken_in() {
    let rows = columns();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties().build())).unwrap();
    writer.write(&rows).unwrap();
    let mut bytes = writer.into_inner().unwrap();
    let bench = Bench::with_bytes(rows.clone(), bytes.clone(), LIMIT).await;
    let mut reader = bench.reader(&bench.readers());
    let footer = reader.get_metadata(None).await.unwrap();
    let (start, length) = footer.row_group(0).column(2).byte_range();
    let chunk = |bytes: &[u8]| Bytes::copy_from_slice(&bytes[start as usize..(start + length) as usize]);
    let whole = expand(&footer, 0, 2, chunk(&bytes)).unwrap();
    assert!(whole.bytes.len() as u64 > length && whole.pages.len() > 3);
    assert!(expand(&footer, 0, 2, chunk(&bytes).slice(..length as usize / 2)).is_err());
    assert!(expand(&footer, 0, 1, chunk(&bytes)).is_err(), "these are another column's");
    bytes[start as usize..start as usize + 8].fill(0xff);
    assert!(expand(&footer, 0, 2, chunk(&bytes)).is_err());
    let bench = Bench::with_bytes(rows, bytes, LIMIT).await;
    for _ in 0..READS {
        let reader = bench.reader(&bench.readers());
        let builder = ParquetRecordBatchStreamBuilder::new(reader).await.unwrap();
        let read: Result<Vec<RecordBatch>, _> = builder.build().unwrap().try_collect().await;
        assert!(read.is_err());
    }
    bench.rest().await;
    // The other columns are in memory.
    let (read, hits) = bench.read(&[0, 1], None).await;
    assert_eq!(read, bench.rows.project(&[0, 1]).unwrap());
    assert!(hits > 0);
}

#[tokio::test]
async fn a_full_cache_takes_in_a_fraction_of_what_is_read() {
    let cache = PageCache::new(10 << 20);
    let file = |name: &str| (Path::from(name), 1);
    let bench = Bench::new(columns(), properties().build(), LIMIT).await;
    bench.read(&[0], None).await;
    let other = bench.cache.get(&bench.path, bench.size).unwrap();
    for number in 0..(10 << 20) / other.bytes() {
        cache.files.insert(file(&format!("{number}")), Arc::clone(&other));
    }
    cache.files.run_pending_tasks();
    assert!(cache.figures().held_bytes > 9 << 20, "{cache:?}");
    let size = 1 << 20;
    assert!(matches!(cache.has_room(size, 0), Err(Later::WhenReadAgain)));
    assert!(matches!(cache.has_room(2 << 20, 0), Err(Later::Never)), "it is too large a part");
    assert!(matches!(cache.has_room(size, 5 << 20), Err(Later::Never)), "the file has enough");
    cache.credit.store(size * (EXCHANGED + 1), Ordering::Relaxed);
    assert!(cache.has_room(size, 0).is_ok());
    assert!(matches!(cache.has_room(size, 0), Err(Later::WhenReadAgain)));
    assert!(cache.clear() > 9 << 20);
    assert!(cache.has_room(size, 0).is_ok(), "it has room");
}
