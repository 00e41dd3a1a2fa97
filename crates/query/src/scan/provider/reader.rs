//! Reading data files so that a damaged one is an error that names it, and no damage is a panic.

use crate::scan::page_cache::{BYTES_IN_MEMORY, Bound, CachedFile, PageCache, Place, Source, Views};
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::prelude::SessionConfig;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::path::Path;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tributary_table::{Checksums, TableError, footer_fault, panic_text};
use tributary_types::memory;

/// Distinguishes an error of the storage from one of the Parquet library. Both are reduced to one text; a test for each sentence
/// here fails when a library rewords it.
const STORAGE_SAYS: &str = "Object Store error: ";
/// The storage's errors for a request of bytes that the file does not have: a local disk that has none or only some of them, and
/// memory.
const NOT_IN_THE_FILE: [&str; 3] =
    ["Requested range was invalid", "Out of range of file ", "Invalid range: "];

/// Creates the readers of one scan, which check whether a footer can belong to its file before it is used, and whether pages match
/// their checksums. Footers and pages are cached across queries, because a data file never changes.
#[derive(Debug)]
pub(in crate::scan) struct CheckedReaders {
    readers: CachedParquetFileReaderFactory,
    store: Arc<dyn ObjectStore>,
    store_url: ObjectStoreUrl,
    /// The rows of data files, deleted ones included, as their footers count them.
    rows: HashMap<Path, u64>,
    cache: Arc<PageCache>,
    views: Arc<Views>,
}

impl CheckedReaders {
    /// Readers of the files of a store, of which `rows` are known.
    ///
    /// # Errors
    /// The runtime has no store of this address.
    pub(in crate::scan) fn new(
        runtime: &RuntimeEnv,
        config: &SessionConfig,
        store_url: ObjectStoreUrl,
        rows: HashMap<Path, u64>,
    ) -> Result<Self> {
        let store = runtime.object_store(&store_url)?;
        let footers = runtime.cache_manager.get_file_metadata_cache();
        let readers = CachedParquetFileReaderFactory::new(Arc::clone(&store), footers);
        let cache = PageCache::of(config);
        Ok(Self { readers, store, store_url, rows, cache, views: Arc::default() })
    }
}

impl ParquetFileReaderFactory for CheckedReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let root = self.store_url.as_str();
        let name = format!("{}{}", root.strip_prefix("file://").unwrap_or(root), file.object_meta.location);
        let rows = self.rows.get(&file.object_meta.location).copied();
        let path = file.object_meta.location.clone();
        let source = Source { store: Arc::clone(&self.store), path, size: file.object_meta.size };
        let reader = self.readers.create_reader(partition, file, metadata_size_hint, metrics)?;
        let (cache, views) = (Arc::clone(&self.cache), Arc::clone(&self.views));
        let bound = views.get(&source.path);
        let hits = MetricBuilder::new(metrics).counter(BYTES_IN_MEMORY, partition);
        Ok(Box::new(CheckedReader { reader, name, source, rows, cache, views, bound, hits }))
    }
}

struct CheckedReader {
    reader: Box<dyn AsyncFileReader + Send>,
    name: String,
    source: Source,
    /// As the table knows them.
    rows: Option<u64>,
    cache: Arc<PageCache>,
    views: Arc<Views>,
    /// The file as this reader and its siblings see it. `None` before its footer is read.
    bound: Option<Arc<Bound>>,
    hits: Count,
}

impl CheckedReader {
    /// The file, with its footer in memory.
    async fn bind(&mut self, options: Option<&ArrowReaderOptions>) -> ParquetResult<Arc<Bound>> {
        if let Some(bound) = &self.bound {
            return Ok(Arc::clone(bound));
        }
        let file = match self.cache.get(&self.source.path, self.source.size) {
            Some(file) if self.has_all_rows(&file) => file,
            _ => self.read_footer(options).await?,
        };
        let bound = self.views.bind(&self.source.path, &file);
        self.bound = Some(Arc::clone(&bound));
        Ok(bound)
    }

    fn has_all_rows(&self, file: &CachedFile) -> bool {
        let found = u64::try_from(file.footer().file_metadata().num_rows()).ok();
        self.rows.is_none_or(|rows| found == Some(rows))
    }

    async fn read_footer(&mut self, options: Option<&ArrowReaderOptions>) -> ParquetResult<Arc<CachedFile>> {
        // With the page index, even if it is not requested yet: pages can't be checked without it, and it is cached together with
        // the footer.
        let options = options.cloned().unwrap_or_default().with_page_index_policy(PageIndexPolicy::Optional);
        let read = AssertUnwindSafe(self.reader.get_metadata(Some(&options))).catch_unwind().await;
        let metadata = match read {
            Ok(read) => read.map_err(|error| self.unreadable(error))?,
            Err(panic) => return Err(self.damaged(panic_text(panic.as_ref()))),
        };
        if let Some(fault) = footer_fault(&metadata, self.source.size, self.rows) {
            return Err(self.damaged(fault));
        }
        let checksums = Checksums::of_footer(&metadata).map_err(|fault| self.damaged(fault))?;
        let file = Arc::new(CachedFile::new(metadata, checksums));
        self.cache.insert(&self.source.path, self.source.size, &file);
        Ok(file)
    }

    async fn read_pages(&mut self, asked: Vec<Range<u64>>) -> ParquetResult<Vec<Bytes>> {
        // One reader may be asked for the footer and another for the pages.
        let Bound { file, view } = &*self.bind(None).await?;
        let mut places: Vec<Place> = asked.iter().map(|range| view.place(range)).collect();
        let of_file = places.iter().filter_map(|place| match place {
            Place::File(range) => Some(range.clone()),
            Place::Memory(bytes) => {
                self.cache.count_hit(bytes.len() as u64);
                self.hits.add(bytes.len());
                None
            }
        });
        let ranges: Vec<Range<u64>> = of_file.collect();
        if !ranges.is_empty() {
            let mut read = self.read_file(file, &ranges).await?.into_iter();
            for place in places.iter_mut().filter(|place| matches!(place, Place::File(_))) {
                *place = Place::Memory(read.next().unwrap_or_default());
            }
        }
        let bytes = places.into_iter().map(|place| match place {
            Place::Memory(bytes) => bytes,
            Place::File(_) => Bytes::new(),
        });
        Ok(bytes.collect())
    }

    async fn read_file(
        &mut self,
        file: &Arc<CachedFile>,
        ranges: &[Range<u64>],
    ) -> ParquetResult<Vec<Bytes>> {
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        memory::check(bytes).map_err(|full| ParquetError::External(Box::new(full)))?;
        let pages = self.reader.get_byte_ranges(ranges.to_vec()).await?;
        let mut read = ranges.iter().zip(&pages);
        if let Some(fault) = read.find_map(|(range, bytes)| file.fault(range.start, bytes)) {
            return Err(self.damaged(fault));
        }
        self.cache.count_misses(&self.source, file, ranges);
        Ok(pages)
    }

    fn damaged(&self, reason: String) -> ParquetError {
        ParquetError::External(Box::new(TableError::DamagedFile { file: self.name.clone(), reason }))
    }

    /// Errors of the storage name the file themselves. All arrive as text.
    fn unreadable(&self, error: ParquetError) -> ParquetError {
        let text = error.to_string();
        if text.contains(STORAGE_SAYS) && !NOT_IN_THE_FILE.iter().any(|sentence| text.contains(sentence)) {
            return error;
        }
        self.damaged(text.lines().next().unwrap_or_default().to_owned())
    }
}

impl AsyncFileReader for CheckedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { Ok(self.read_pages(vec![range]).await?.pop().unwrap_or_default()) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.read_pages(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move { Ok(Arc::clone(self.bind(options).await?.view.metadata())) }.boxed()
    }
}

#[cfg(test)]
mod tests;
