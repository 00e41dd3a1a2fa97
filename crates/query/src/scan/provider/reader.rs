//! Reading data files so that a damaged one is an error that names it, and no damage is a panic.

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
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

/// Creates readers that check whether a footer can belong to its file before it is used, and whether pages match their checksums.
/// Footers are cached across queries, because a data file never changes.
#[derive(Debug)]
pub(super) struct CheckedReaders {
    readers: CachedParquetFileReaderFactory,
    store_url: ObjectStoreUrl,
    /// The rows of data files, deleted ones included, as their footers count them.
    rows: HashMap<Path, u64>,
}

impl CheckedReaders {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        footers: Arc<FileMetadataCache>,
        store_url: ObjectStoreUrl,
        rows: HashMap<Path, u64>,
    ) -> Self {
        Self { readers: CachedParquetFileReaderFactory::new(store, footers), store_url, rows }
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
        let file_bytes = file.object_meta.size;
        let reader = self.readers.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(CheckedReader { reader, name, file_bytes, rows, footer: None }))
    }
}

struct CheckedReader {
    reader: Box<dyn AsyncFileReader + Send>,
    name: String,
    file_bytes: u64,
    /// As the table knows them.
    rows: Option<u64>,
    /// With the page index and the checksums, which files of other writers may lack. `None` before it is read.
    footer: Option<(Arc<ParquetMetaData>, Option<Checksums>)>,
}

impl CheckedReader {
    async fn read_footer(
        &mut self,
        options: Option<&ArrowReaderOptions>,
    ) -> ParquetResult<Arc<ParquetMetaData>> {
        // With the page index, even if it is not requested yet: pages can't be checked without it, and it is cached together with
        // the footer.
        let options = options.cloned().unwrap_or_default().with_page_index_policy(PageIndexPolicy::Optional);
        let read = AssertUnwindSafe(self.reader.get_metadata(Some(&options))).catch_unwind().await;
        let metadata = match read {
            Ok(read) => read.map_err(|error| self.unreadable(error))?,
            Err(panic) => return Err(self.damaged(panic_text(panic.as_ref()))),
        };
        if let Some(fault) = footer_fault(&metadata, self.file_bytes, self.rows) {
            return Err(self.damaged(fault));
        }
        let checksums = Checksums::of_footer(&metadata).map_err(|fault| self.damaged(fault))?;
        self.footer = Some((Arc::clone(&metadata), checksums));
        Ok(metadata)
    }

    async fn read_pages(&mut self, ranges: Vec<Range<u64>>) -> ParquetResult<Vec<Bytes>> {
        // One reader may be asked for the footer and another for the pages.
        if self.footer.is_none() {
            self.read_footer(None).await?;
        }
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        memory::check(bytes).map_err(|full| ParquetError::External(Box::new(full)))?;
        let pages = self.reader.get_byte_ranges(ranges.clone()).await?;
        if let Some((metadata, Some(checksums))) = &self.footer {
            let mut read = ranges.iter().zip(&pages);
            if let Some(fault) = read.find_map(|(range, bytes)| checksums.fault(metadata, range.start, bytes))
            {
                return Err(self.damaged(fault));
            }
        }
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
        self.read_footer(options).boxed()
    }
}

#[cfg(test)]
mod tests;
