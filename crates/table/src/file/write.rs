//! Writing data files: rows are gathered into runs, each run is sorted by the key columns and
//! encoded as a row group, and a file is closed when it reaches the target size.
//!
//! Memory is bounded by one run of Arrow rows plus one encoded row group. Encoding and sorting
//! happen on blocking threads. A file has its name only when it is complete and durable.

use super::DataFile;
use super::sort::sorted;
use super::stats::FileStats;
use crate::error::{TableError, blocking};
use crate::evolve;
use crate::memtable::batch_bytes;
use crate::root::TableRoot;
use crate::schema::{now_ms, physical_arrow};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tributary_types::{TableSchema, host};
use uuid::Uuid;

/// A run is sorted and encoded when it has this many bytes of Arrow memory: a memtable of the
/// default size is one run, also if it grew a little while its flush waited.
const RUN_BYTES: usize = 96 * 1024 * 1024;
/// Rows that are encoded between two looks at the file's size.
const ENCODE_ROWS: usize = 64 * 1024;

/// The rows of one large load on their way into data files of their own, past the memtable.
///
/// Finish or abort it: a writer that is dropped leaves files that nothing refers to, which
/// [`crate::Table::sweep`] deletes later.
pub struct FileWriter {
    writer: RunWriter,
}

impl FileWriter {
    pub(crate) fn new(root: &Arc<TableRoot>, schema: &Arc<TableSchema>) -> Self {
        Self { writer: RunWriter::new(root, schema) }
    }

    /// The schema that appended rows must have.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.writer.schema
    }

    /// Takes rows in the order of arrival. Nothing is durable or visible on return.
    ///
    /// # Errors
    /// [`TableError::SchemaMismatch`] leaves the writer as it was; after any other error only
    /// [`FileWriter::abort`] is of use.
    pub async fn append(&mut self, batch: RecordBatch) -> Result<(), TableError> {
        self.writer.append(batch).await
    }

    /// Closes the files. On return they are durable, but visible to nobody and in no Delta log:
    /// put them into a commit record and publish them, or [`crate::Table::discard`] them.
    ///
    /// # Errors
    /// Of storage and encoding; then all files of this writer have been deleted.
    pub async fn finish(self) -> Result<Vec<DataFile>, TableError> {
        self.writer.finish().await
    }

    /// Deletes everything that was written.
    pub async fn abort(self) {
        self.writer.abort().await;
    }
}

/// The common machinery of flush, compaction, rewriting and large loads.
pub(crate) struct RunWriter {
    root: Arc<TableRoot>,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    physical: SchemaRef,
    keys: Vec<usize>,
    properties: WriterProperties,
    run: Vec<RecordBatch>,
    run_bytes: usize,
    open: Option<OpenFile>,
    files: Vec<DataFile>,
    /// Every file that was started and belongs to this writer still.
    names: Vec<String>,
}

struct OpenFile {
    name: String,
    /// `None` only while a blocking thread has it, or after that thread failed.
    encoder: Option<ArrowWriter<Vec<u8>>>,
    upload: BufWriter,
    size_bytes: u64,
    rows: u64,
}

/// What one step of encoding gave.
struct Encoded {
    encoder: ArrowWriter<Vec<u8>>,
    bytes: Bytes,
    /// Of the whole file so far, with an estimate for the row group in the making.
    file_bytes: usize,
}

impl RunWriter {
    pub(crate) fn new(root: &Arc<TableRoot>, schema: &Arc<TableSchema>) -> Self {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(root.zstd))
            .set_created_by(concat!("tributary version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Self {
            root: Arc::clone(root),
            schema: Arc::clone(schema),
            arrow: schema.arrow(),
            physical: physical_arrow(schema),
            keys: schema.key_indices(),
            properties,
            run: Vec::new(),
            run_bytes: 0,
            open: None,
            files: Vec::new(),
            names: Vec::new(),
        }
    }

    pub(crate) async fn append(&mut self, batch: RecordBatch) -> Result<(), TableError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let rows = batch.num_rows();
        let batch = evolve::assemble(&self.arrow, batch.columns().to_vec(), rows, &self.schema)?;
        let bytes = batch_bytes(&batch);
        if self.run_bytes + bytes > RUN_BYTES {
            self.write_run().await?;
        }
        self.run_bytes += bytes;
        self.run.push(batch);
        if self.run_bytes >= RUN_BYTES { self.write_run().await } else { Ok(()) }
    }

    pub(crate) async fn finish(mut self) -> Result<Vec<DataFile>, TableError> {
        let closed = match self.write_run().await {
            Ok(()) => self.close_file().await,
            Err(error) => Err(error),
        };
        match closed {
            Ok(()) => {
                self.names.clear();
                Ok(std::mem::take(&mut self.files))
            }
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    pub(crate) async fn abort(mut self) {
        if let Some(mut file) = self.open.take()
            && let Err(error) = file.upload.abort().await
        {
            tracing::warn!(file = file.name, %error, "an unfinished upload could not be aborted");
        }
        let names = std::mem::take(&mut self.names);
        delete_files(&self.root, &names).await;
    }

    async fn write_run(&mut self) -> Result<(), TableError> {
        if self.run.is_empty() {
            return Ok(());
        }
        let (keys, batches) = (self.keys.clone(), std::mem::take(&mut self.run));
        self.run_bytes = 0;
        let mut step = Vec::new();
        let mut step_rows = 0;
        for batch in blocking("sorting rows", move || sorted(batches, &keys)).await? {
            let mut start = 0;
            while start < batch.num_rows() {
                let rows = (ENCODE_ROWS - step_rows).min(batch.num_rows() - start);
                let columns = batch.slice(start, rows).columns().to_vec();
                step.push(evolve::assemble(&self.physical, columns, rows, &self.schema)?);
                (start, step_rows) = (start + rows, step_rows + rows);
                if step_rows == ENCODE_ROWS {
                    self.encode(std::mem::take(&mut step), step_rows).await?;
                    step_rows = 0;
                }
            }
        }
        if step_rows > 0 {
            self.encode(step, step_rows).await?;
        }
        self.end_row_group().await
    }

    async fn encode(&mut self, batches: Vec<RecordBatch>, rows: usize) -> Result<(), TableError> {
        if self.open.is_none() {
            self.open = Some(self.start_file()?);
        }
        let write = move |encoder: &mut ArrowWriter<Vec<u8>>| {
            batches.iter().try_for_each(|batch| encoder.write(batch))
        };
        let file_bytes = self.step(write).await?;
        if let Some(file) = &mut self.open {
            file.rows += rows as u64;
        }
        if file_bytes as u64 >= self.root.options.target_file_bytes {
            self.close_file().await
        } else {
            Ok(())
        }
    }

    async fn end_row_group(&mut self) -> Result<(), TableError> {
        if self.open.is_some() {
            self.step(ArrowWriter::flush).await?;
        }
        Ok(())
    }

    fn start_file(&mut self) -> Result<OpenFile, TableError> {
        let name = new_name();
        let options =
            ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
        let encoder = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&self.physical), options)
            .map_err(TableError::parquet(format!("starting the data file '{name}'")))?;
        self.root.unpublished.lock().insert(name.clone());
        self.names.push(name.clone());
        let upload = BufWriter::new(Arc::clone(&self.root.store), Path::from(name.as_str()));
        Ok(OpenFile { name, encoder: Some(encoder), upload, size_bytes: 0, rows: 0 })
    }

    /// Runs one step of the open file's encoder and uploads what it gave. Returns the file's
    /// estimated size in bytes.
    async fn step<T>(
        &mut self,
        work: impl FnOnce(&mut ArrowWriter<Vec<u8>>) -> parquet::errors::Result<T> + Send + 'static,
    ) -> Result<usize, TableError> {
        let Some(file) = &mut self.open else { return Ok(0) };
        let doing = format!("encoding the data file '{}'", file.name);
        let Some(mut encoder) = file.encoder.take() else {
            return Err(TableError::Worker { doing, reason: "an earlier step failed".to_owned() });
        };
        let encoded = blocking("encoding a data file", move || {
            work(&mut encoder).map_err(TableError::parquet(doing))?;
            let file_bytes = encoder.bytes_written() + encoder.in_progress_size();
            let bytes = Bytes::from(std::mem::take(encoder.inner_mut()));
            Ok(Encoded { encoder, bytes, file_bytes })
        })
        .await?;
        file.encoder = Some(encoded.encoder);
        file.upload(encoded.bytes).await?;
        Ok(encoded.file_bytes)
    }

    async fn close_file(&mut self) -> Result<(), TableError> {
        let Some(mut file) = self.open.take() else { return Ok(()) };
        let doing = format!("closing the data file '{}'", file.name);
        let Some(mut encoder) = file.encoder.take() else {
            return Err(TableError::Worker { doing, reason: "an earlier step failed".to_owned() });
        };
        let (bytes, metadata) = blocking("closing a data file", move || {
            let metadata = encoder.finish().map_err(TableError::parquet(doing))?;
            Ok((Bytes::from(std::mem::take(encoder.inner_mut())), metadata))
        })
        .await?;
        file.upload(bytes).await?;
        file.upload.shutdown().await.map_err(|error| {
            let source = object_store::Error::Generic { store: "upload", source: Box::new(error) };
            TableError::storage(format!("making the data file '{}' durable", file.name))(source)
        })?;
        self.files.push(self.describe(file, &metadata)?);
        Ok(())
    }

    fn describe(&self, file: OpenFile, metadata: &ParquetMetaData) -> Result<DataFile, TableError> {
        Ok(DataFile {
            path: file.name,
            size_bytes: file.size_bytes,
            rows: file.rows,
            schema_version: self.schema.version,
            columns_below: self.schema.next_column_id,
            stats: FileStats::of_file(metadata, &self.physical, &self.schema)?,
            modification_time_ms: now_ms(),
        })
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.names.is_empty() {
            let mut unpublished = self.root.unpublished.lock();
            self.names.iter().for_each(|name| {
                unpublished.remove(name);
            });
        }
    }
}

impl OpenFile {
    async fn upload(&mut self, bytes: Bytes) -> Result<(), TableError> {
        self.size_bytes += bytes.len() as u64;
        self.upload
            .put(bytes)
            .await
            .map_err(TableError::storage(format!("writing the data file '{}'", self.name)))
    }
}

/// Names sort by the time of writing.
fn new_name() -> String {
    format!("part-{:013}-{}.zstd.parquet", now_ms(), new_uuid())
}

/// A random UUID; in a simulation the seed's.
pub(crate) fn new_uuid() -> Uuid {
    Uuid::from_u128(host::random(|| Uuid::new_v4().as_u128()))
}

/// Marks files as held by the snapshot, so that only the Delta log decides when they go.
pub(crate) fn publish_names<'a>(root: &TableRoot, names: impl Iterator<Item = &'a str>) {
    let mut unpublished = root.unpublished.lock();
    names.for_each(|name| {
        unpublished.remove(name);
    });
}

/// Deletes files that no log and no snapshot refers to. What cannot be deleted is logged and left
/// to the next sweep.
pub(crate) async fn delete_files(root: &TableRoot, names: &[String]) {
    for name in names {
        match root.store.delete(&Path::from(name.as_str())).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(file = name, %error, "a data file without use could not be deleted"),
        }
        root.unpublished.lock().remove(name);
    }
}
