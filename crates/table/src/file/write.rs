//! Writing data files: rows are gathered into runs, each run is sorted by the key columns and encoded as a row group or several,
//! and a file is closed when it reaches the target size. Large row groups of other files are copied unchanged. In a table with
//! partitions a run is divided first, and a file has rows of one partition; a few files are open at a time, however many
//! partitions there are.
//!
//! Memory is bounded by one run of Arrow rows plus one encoded row group, or a few of them that have no more rows together. Encoding and sorting
//! happen on blocking threads. A file has its name only when it is complete and durable.

mod replace;

pub(crate) use replace::Made;

use super::distinct::distinct_columns;
use super::divide::{OfPartition, divided, gathered};
use super::encode::{Encoder, Progress, encode, encode_here};
use super::encoded::{EncodedFile, RowGroups};
use super::read::FileReader;
use super::sort::sorted;
use super::stats::FileStats;
use super::unpublished::UnpublishedFiles;
use super::{CREATED_BY, DataFile, FileFormat};
use crate::ambient::{new_uuid, now_ms};
use crate::error::{TableError, blocking};
use crate::place::root::TableRoot;
use crate::view::evolve;
use crate::view::memtable::batch_bytes;
use crate::view::schema::physical_arrow;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use object_store::ObjectStoreExt;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tributary_types::{PartitionId, Partitions, TableDef, TableSchema, Version, host};

/// A run is sorted and encoded when it has this many bytes of Arrow memory: a memtable of the
/// default size is one run, even if it grew a little while its flush waited.
const RUN_BYTES: usize = 96 * 1024 * 1024;
/// Minimum size of a run if several are gathered in parallel.
const RUN_BYTES_MIN: usize = 16 * 1024 * 1024;
/// The most rows of a row group; readers skip and share work by row groups.
const ROW_GROUP_ROWS_MAX: usize = 1024 * 1024;
/// A row group of at least this fraction of the target file size is copied from file to file.
const ROW_GROUPS_OF_FILE: u64 = 32;
/// The fewest rows of a row group that is not a run's last, however small files should be.
const ROW_GROUP_ROWS_MIN: usize = 64 * 1024;
/// A numeric column with more distinct values than this in a row group uses no dictionary for the rest of it: dictionary indexes
/// would take more than half the space of the numbers, and the lookups take longer than anything else about the column.
const DICTIONARY_NUMBERS_MAX: usize = 64 * 1024;
/// Number of files of a run's partitions that are written in parallel: disks are slow to make a file durable, and most are small.
const PARTITIONS_AT_ONCE: usize = 8;
/// Parquet's size of smaller numbers, too.
const NUMBER_BYTES_MIN: usize = 4;
/// A text column's dictionary may grow beyond the library's 1 MB: its indexes compress faster than texts, and to less. Access
/// logs take 30 % less space; a higher limit gains nothing.
const DICTIONARY_TEXT_BYTES_MAX: usize = 4 << 20;
/// In tables with one row per key single rows are queried, and reading a row decompresses its page and its dictionary in each
/// column: pages have this number of rows there, instead of the library's 20,000, and dictionaries are smaller by this factor.
const PAGE_ROWS_OF_KEYS: usize = 4096;
const DICTIONARY_PART_OF_KEYS: usize = 8;

/// The rows of one large load that bypass the memtable, into data files of their own.
///
/// Must be finished or aborted. One that is dropped, because its load was cancelled, deletes its files in a task of its own;
/// files that can't be deleted are left to [`crate::Table::sweep`].
pub struct FileWriter {
    writer: RunWriter,
    /// Writers of rows that arrived in parallel with its own, and follow them, in their order.
    beside: Vec<RunWriter>,
}

impl FileWriter {
    /// A writer that shares the memory of one with others: `side_by_side` of them write files in parallel.
    pub(crate) fn new(root: &Arc<TableRoot>, def: &TableDef, side_by_side: usize) -> Self {
        let mut writer = RunWriter::new(root, def);
        writer.run_bytes_max = (RUN_BYTES / side_by_side.max(1)).max(RUN_BYTES_MIN);
        Self { writer, beside: Vec::new() }
    }

    /// Takes over the files and rows of another writer of the same load. They follow the rows of this one, and precede rows that are
    /// appended later.
    pub fn join(&mut self, other: Self) {
        self.beside.push(other.writer);
        self.beside.extend(other.beside);
    }

    /// Divides the rows that follow as this definition of the table does, which has all partitions of the one before.
    pub fn divide_by(&mut self, def: &TableDef) {
        self.last().partitions = def.partitioning.partitions().cloned();
    }

    /// The schema that appended rows must have.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.writer.schema
    }

    /// Bytes of rows that were taken but not encoded yet.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.writer.run_bytes + self.beside.iter().map(|writer| writer.run_bytes).sum::<usize>()
    }

    /// Takes rows in the order of arrival. Nothing is durable or visible on return.
    ///
    /// # Errors
    /// [`TableError::SchemaMismatch`] leaves the writer as it was; after any other error only
    /// [`FileWriter::abort`] is of use.
    pub async fn append(&mut self, batch: RecordBatch) -> Result<(), TableError> {
        self.last().append(batch).await
    }

    /// The writer of the last rows.
    fn last(&mut self) -> &mut RunWriter {
        self.beside.last_mut().unwrap_or(&mut self.writer)
    }

    /// Closes the files. On return they are durable, but invisible and in no Delta log: put them into a commit record and publish
    /// them, or [`crate::Table::discard`] them.
    ///
    /// # Errors
    /// [`TableError::Storage`] and [`TableError::Parquet`]; then all files of this writer have been deleted.
    pub async fn finish(self) -> Result<UnpublishedFiles, TableError> {
        let Self { writer, beside } = self;
        let root = Arc::clone(&writer.root);
        if beside.is_empty() {
            return Ok(UnpublishedFiles::new(&root, writer.finish().await?));
        }
        let all = std::iter::once(writer).chain(beside).map(RunWriter::finish);
        let (mut files, mut failed) = (Vec::new(), None);
        for finished in join_all(all).await {
            match finished {
                Ok(more) => files.extend(more),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let Some(error) = failed else { return Ok(UnpublishedFiles::new(&root, files)) };
        let names: Vec<String> = files.into_iter().map(|file| file.path).collect();
        delete_files(&root, &names).await;
        Err(error)
    }

    /// Deletes everything that was written.
    pub async fn abort(self) {
        self.writer.abort().await;
        join_all(self.beside.into_iter().map(RunWriter::abort)).await;
    }
}

/// The common machinery of flush, compaction, rewriting and large loads.
pub(crate) struct RunWriter {
    root: Arc<TableRoot>,
    schema: Arc<TableSchema>,
    partitions: Option<Arc<Partitions>>,
    /// The partition of the open file.
    partition: Option<PartitionId>,
    arrow: SchemaRef,
    physical: SchemaRef,
    keys: Vec<usize>,
    properties: WriterProperties,
    codec: Codec,
    progress: Option<Progress>,
    /// Others write files in parallel with this one, which then uses one thread.
    is_one_of_several: bool,
    run: Vec<RecordBatch>,
    run_bytes: usize,
    /// Size in bytes at which a run is sorted and encoded.
    run_bytes_max: usize,
    open: Option<OpenFile>,
    files: Vec<DataFile>,
    /// Every file that was started and belongs to this writer still.
    names: Vec<String>,
    /// The last publication that rows were taken of; 0 if that is not known yet.
    version: Version,
    /// When the last file was started, as its name says it.
    named_ms: i64,
}

/// How the pages of a file are compressed.
#[derive(Clone, Copy)]
enum Codec {
    Zstd,
    /// Twice as fast, half as large again. For the small files of a run of many partitions, whose row groups a compaction
    /// re-encodes.
    Snappy,
}

struct OpenFile {
    name: String,
    /// `None` only while a blocking thread has it, or after that thread failed.
    encoder: Option<Encoder>,
    upload: BufWriter,
    /// All bytes were handed over, and the upload is being completed.
    is_closing: bool,
    size_bytes: u64,
    rows: u64,
}

impl RunWriter {
    pub(crate) fn new(root: &Arc<TableRoot>, def: &TableDef) -> Self {
        let schema = &def.schema;
        let physical = physical_arrow(schema);
        Self {
            root: Arc::clone(root),
            schema: Arc::clone(schema),
            partitions: def.partitioning.partitions().cloned(),
            partition: None,
            arrow: schema.arrow(),
            keys: schema.key_indices(),
            properties: properties(root, &physical, !def.keys.keeps_all_rows()),
            physical,
            codec: Codec::Zstd,
            progress: None,
            is_one_of_several: false,
            run: Vec::new(),
            run_bytes: 0,
            run_bytes_max: RUN_BYTES,
            open: None,
            files: Vec::new(),
            names: Vec::new(),
            version: Version(0),
            named_ms: 0,
        }
    }

    /// Declares that the following rows are of publications up to `version`.
    pub(crate) fn at(&mut self, version: Version) {
        self.version = self.version.max(version);
    }

    /// Reports encoded bytes to `progress`.
    pub(crate) fn with_progress(mut self, progress: Option<Progress>) -> Self {
        self.progress = progress;
        self
    }

    pub(crate) async fn append(&mut self, batch: RecordBatch) -> Result<(), TableError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let rows = batch.num_rows();
        let batch = evolve::assemble(&self.arrow, batch.columns().to_vec(), rows, &self.schema)?;
        let bytes = batch_bytes(&batch);
        if self.run_bytes + bytes > self.run_bytes_max {
            self.write_run().await?;
        }
        self.run_bytes += bytes;
        self.run.push(batch);
        if self.run_bytes >= self.run_bytes_max { self.write_run().await } else { Ok(()) }
    }

    /// Takes all rows of another file, after those already taken: copies its large row groups, and adds the rows of others to the
    /// run.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Parquet`], [`TableError::DamagedFile`]; after them only
    /// [`RunWriter::abort`] is of use.
    pub(crate) async fn append_file(
        &mut self,
        file: &EncodedFile,
        now_micros: i64,
    ) -> Result<(), TableError> {
        let failed = TableError::parquet("making a data file's schema");
        let schema =
            ArrowSchemaConverter::new().with_coerce_types(true).convert(&self.physical).map_err(failed)?;
        let bytes_min = match (&self.partitions, file.partition()) {
            // Whose rows are not divided yet.
            (Some(_), None) => u64::MAX,
            _ => self.copied_bytes_min(),
        };
        self.at(file.version());
        for row_groups in file.split(schema.root_schema(), bytes_min) {
            match row_groups {
                RowGroups::Whole(row_groups) => self.copy(file, row_groups).await?,
                RowGroups::Rows(row_groups) => {
                    let mut reader = FileReader::new(file, row_groups, &self.schema, now_micros)?;
                    while let Some(batch) = reader.next().await? {
                        self.append(batch).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn copy(&mut self, file: &EncodedFile, row_groups: Vec<usize>) -> Result<(), TableError> {
        // Earlier rows stay first.
        self.write_run().await?;
        self.begin_partition(file.partition()).await?;
        for number in row_groups {
            let row_group = file.encoded(number, |_| true).await?;
            let (rows, doing) = (row_group.rows(), format!("copying a row group of '{}'", file.name()));
            let copy = move |encoder: &mut Encoder| encoder.append_encoded(&row_group);
            self.open_file(&[])?.step(doing, copy).await?;
            self.end_row_group(rows).await?;
        }
        Ok(())
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
        if let Some(file) = self.open.take() {
            file.abort().await;
        }
        let Some(_allowed) = self.root.deletions.allowed() else {
            // A backup may be about to copy them; the next sweep deletes them.
            publish_names(&self.root, std::mem::take(&mut self.names).iter().map(String::as_str));
            return;
        };
        // One by one: if the caller stops waiting, this writer is dropped and continues with the rest.
        while let Some(name) = self.names.last() {
            delete_file(&self.root, name).await;
            self.names.pop();
        }
    }

    async fn write_run(&mut self) -> Result<(), TableError> {
        if self.run.is_empty() {
            return Ok(());
        }
        let (batches, bytes) = (std::mem::take(&mut self.run), std::mem::take(&mut self.run_bytes));
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let row_bytes = (bytes / rows.max(1)).max(1);
        let Some(partitions) = self.partitions.clone() else {
            return self.write_rows(batches, row_bytes).await;
        };
        let schema = Arc::clone(&self.schema);
        let divide = move || divided(batches, &partitions, &schema);
        let mut divided = blocking("dividing rows by partitions", divide).await?;
        if divided.len() == 1
            && let Some((partition, batches)) = divided.pop()
        {
            self.begin_partition(partition).await?;
            return self.write_rows(batches, row_bytes).await;
        }
        self.close_file().await?;
        let of_partition = |(partition, batches): OfPartition| {
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            (self.of_partition(partition, rows * row_bytes), batches)
        };
        let of_partitions: Vec<_> = divided.into_iter().map(of_partition).collect();
        let failed = AtomicBool::new(false);
        let written = of_partitions.into_iter().map(|(mut writer, batches)| async {
            let done = match failed.load(Ordering::Relaxed) {
                true => Ok(()),
                false => writer.write_whole(batches, row_bytes).await,
            };
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            (writer, done)
        });
        let mut written = futures::stream::iter(written).buffered(PARTITIONS_AT_ONCE);
        let (before, mut all) = (self.files.len(), Ok(()));
        while let Some((mut writer, done)) = written.next().await {
            self.files.append(&mut writer.files);
            self.names.append(&mut writer.names);
            self.named_ms = self.named_ms.max(writer.named_ms);
            all = all.and(done);
        }
        // A list of files by name has them in this order.
        self.files[before..].sort_unstable_by(|one, other| one.path.cmp(&other.path));
        all
    }

    /// Writes these rows into files of their own, and closes them.
    async fn write_whole(&mut self, batches: Vec<RecordBatch>, row_bytes: usize) -> Result<(), TableError> {
        let keys = self.keys.clone();
        let gather = move || sorted(vec![gathered(&batches)?], &keys);
        let written = match self
            .write_sorted(blocking("sorting rows of a partition", gather).await?, row_bytes)
            .await
        {
            Ok(()) => self.close_file().await,
            Err(error) => Err(error),
        };
        if let (Err(_), Some(file)) = (&written, self.open.take()) {
            file.abort().await;
        }
        written
    }

    /// A writer of some of this one's rows, all of one partition, in parallel with others. The owner of its files also owns their
    /// names; one that is dropped deletes them.
    fn of_partition(&mut self, partition: Option<PartitionId>, bytes: usize) -> Self {
        let codec = match self.copied_bytes_min() {
            least if (bytes as u64) < least => Codec::Snappy,
            _ => Codec::Zstd,
        };
        Self {
            root: Arc::clone(&self.root),
            schema: Arc::clone(&self.schema),
            partitions: None,
            partition,
            arrow: Arc::clone(&self.arrow),
            physical: Arc::clone(&self.physical),
            keys: self.keys.clone(),
            properties: match codec {
                Codec::Zstd => self.properties.clone(),
                Codec::Snappy => {
                    self.properties.clone().into_builder().set_compression(Compression::SNAPPY).build()
                }
            },
            codec,
            progress: self.progress.clone(),
            is_one_of_several: true,
            run: Vec::new(),
            run_bytes: 0,
            run_bytes_max: self.run_bytes_max,
            open: None,
            files: Vec::new(),
            names: Vec::new(),
            version: self.version,
            named_ms: self.named_ms,
        }
    }

    /// Says which partition the rows that follow are in. A file has rows of one only.
    async fn begin_partition(&mut self, partition: Option<PartitionId>) -> Result<(), TableError> {
        if self.partition != partition {
            self.close_file().await?;
            self.partition = partition;
        }
        Ok(())
    }

    async fn write_rows(&mut self, batches: Vec<RecordBatch>, row_bytes: usize) -> Result<(), TableError> {
        let keys = self.keys.clone();
        let batches = blocking("sorting rows", move || sorted(batches, &keys)).await?;
        self.write_sorted(batches, row_bytes).await
    }

    async fn write_sorted(&mut self, batches: Vec<RecordBatch>, row_bytes: usize) -> Result<(), TableError> {
        let group_rows = self.row_group_rows(batches.iter().map(RecordBatch::num_rows).sum(), row_bytes);
        let mut group = Vec::new();
        let mut rows_in_group = 0;
        for batch in batches {
            let mut start = 0;
            while start < batch.num_rows() {
                let rows = (group_rows - rows_in_group).min(batch.num_rows() - start);
                let columns = evolve::stored(batch.slice(start, rows).columns(), &self.physical)?;
                group.push(evolve::assemble(&self.physical, columns, rows, &self.schema)?);
                (start, rows_in_group) = (start + rows, rows_in_group + rows);
                if rows_in_group == group_rows {
                    self.write_row_group(std::mem::take(&mut group), rows_in_group).await?;
                    rows_in_group = 0;
                }
            }
        }
        if rows_in_group > 0 {
            self.write_row_group(group, rows_in_group).await?;
        }
        Ok(())
    }

    /// The size from which a row group is copied from file to file.
    fn copied_bytes_min(&self) -> u64 {
        (self.root.options.target_file_bytes.get() / ROW_GROUPS_OF_FILE).max(1)
    }

    /// Rows of a row group: a run's in equal parts, which are smaller where files should be small.
    fn row_group_rows(&self, rows: usize, row_bytes: usize) -> usize {
        let of_target =
            usize::try_from(self.root.options.target_file_bytes.get()).unwrap_or(usize::MAX) / row_bytes;
        let most = of_target.clamp(ROW_GROUP_ROWS_MIN, ROW_GROUP_ROWS_MAX);
        rows.div_ceil(rows.div_ceil(most).max(1))
    }

    async fn write_row_group(&mut self, batches: Vec<RecordBatch>, rows: usize) -> Result<(), TableError> {
        let (progress, is_one_of_several) = (self.progress.clone(), self.is_one_of_several);
        let (batches, distinct) = match self.open {
            Some(_) => (batches, Vec::new()),
            None => {
                blocking("sampling a row group", move || {
                    let distinct = distinct_columns(&batches);
                    Ok((batches, distinct))
                })
                .await?
            }
        };
        let file = self.open_file(&distinct)?;
        let doing = format!("encoding the data file '{}'", file.name);
        let columns = match &file.encoder {
            Some(encoder) => encoder.columns().map_err(TableError::parquet(doing.clone()))?,
            None => return Err(TableError::Worker { doing, reason: "an earlier step failed".to_owned() }),
        };
        if is_one_of_several {
            file.step(doing, move |encoder| encoder.append(encode_here(columns, batches, progress)?)).await?;
        } else {
            let columns = encode(columns, batches, progress, &doing).await?;
            file.step(doing, move |encoder| encoder.append(columns)).await?;
        }
        self.end_row_group(rows as u64).await
    }

    /// Counts a row group that the open file has, and closes the file if it is large enough.
    async fn end_row_group(&mut self, rows: u64) -> Result<(), TableError> {
        let Some(file) = &mut self.open else { return Ok(()) };
        file.rows += rows;
        if file.size_bytes >= self.root.options.target_file_bytes.get() {
            self.close_file().await
        } else {
            Ok(())
        }
    }

    /// The open file, or a new one, in which columns with nearly all values different, `distinct`, have no dictionary.
    fn open_file(&mut self, distinct: &[usize]) -> Result<&mut OpenFile, TableError> {
        let file = match self.open.take() {
            Some(file) => file,
            None => self.start_file(distinct)?,
        };
        Ok(self.open.insert(file))
    }

    fn start_file(&mut self, distinct: &[usize]) -> Result<OpenFile, TableError> {
        // Later files of a writer sort later by name, too.
        self.named_ms = now_ms().max(self.named_ms + 1);
        let name = name_of(self.named_ms, self.codec);
        let encoder = Encoder::new(&self.physical, self.properties_without(distinct))
            .map_err(TableError::parquet(format!("starting the data file '{name}'")))?;
        self.root.unpublished.lock().insert(name.clone());
        self.names.push(name.clone());
        let upload = BufWriter::new(Arc::clone(&self.root.store), Path::from(name.as_str()));
        Ok(OpenFile { name, encoder: Some(encoder), upload, is_closing: false, size_bytes: 0, rows: 0 })
    }

    /// The properties of a file in which these columns have no dictionary.
    fn properties_without(&self, columns: &[usize]) -> WriterProperties {
        if columns.is_empty() {
            return self.properties.clone();
        }
        let without = |properties: WriterPropertiesBuilder, column: &usize| {
            let path = ColumnPath::new(vec![self.physical.field(*column).name().clone()]);
            properties.set_column_dictionary_enabled(path, false)
        };
        columns.iter().fold(self.properties.clone().into_builder(), without).build()
    }

    async fn close_file(&mut self) -> Result<(), TableError> {
        let Some(file) = &mut self.open else { return Ok(()) };
        let doing = format!("closing the data file '{}'", file.name);
        let metadata = file.step(doing, Encoder::finish).await?;
        file.is_closing = true;
        let closed = file.upload.shutdown().await;
        let Some(file) = self.open.take() else { return Ok(()) };
        closed.map_err(|error| {
            let source = object_store::Error::Generic { store: "upload", source: Box::new(error) };
            TableError::storage(format!("making the data file '{}' durable", file.name))(source)
        })?;
        self.files.push(self.describe(file, &metadata)?);
        Ok(())
    }

    fn describe(&self, file: OpenFile, metadata: &ParquetMetaData) -> Result<DataFile, TableError> {
        Ok(DataFile {
            format: FileFormat,
            path: file.name,
            size_bytes: file.size_bytes,
            rows: file.rows,
            schema_version: self.schema.version,
            columns_below: self.schema.next_column_id,
            stats: FileStats::of_file(metadata, &self.physical, &self.schema)?,
            modification_time_ms: now_ms(),
            version: self.version,
            partition: self.partition,
        })
    }
}

/// A writer that was neither finished nor aborted deletes its files.
impl Drop for RunWriter {
    fn drop(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let (root, open, names) = (Arc::clone(&self.root), self.open.take(), std::mem::take(&mut self.names));
        let runtime = Handle::try_current();
        if !host::is_simulated() && runtime.is_err() {
            // The sweep finds them.
            publish_names(&root, names.iter().map(String::as_str));
            return;
        }
        let task = async move {
            if let Some(file) = open {
                file.abort().await;
            }
            delete_files(&root, &names).await;
        };
        match (host::simulated(), runtime) {
            (Some(host), _) => host.spawn(Box::pin(task)),
            (None, Ok(runtime)) => drop(runtime.spawn(task)),
            (None, Err(_)) => {}
        }
    }
}

impl OpenFile {
    /// Ends the upload. One that is being completed can't be aborted any more and is waited for: afterwards there is a
    /// file to delete.
    async fn abort(mut self) {
        let ended = match self.is_closing {
            true => self.upload.shutdown().await.map_err(|error| error.to_string()),
            false => self.upload.abort().await.map_err(|error| error.to_string()),
        };
        if let Err(error) = ended {
            tracing::warn!(file = self.name, %error, "an unfinished upload could not be aborted");
        }
    }

    /// Runs one step of the encoder and uploads its output.
    async fn step<T: Send + 'static>(
        &mut self,
        doing: String,
        work: impl FnOnce(&mut Encoder) -> parquet::errors::Result<T> + Send + 'static,
    ) -> Result<T, TableError> {
        let Some(mut encoder) = self.encoder.take() else {
            return Err(TableError::Worker { doing, reason: "an earlier step failed".to_owned() });
        };
        let (encoder, done, pieces) = blocking("encoding a data file", move || {
            let failed = TableError::parquet(doing);
            match work(&mut encoder).and_then(|done| Ok((done, encoder.take_bytes()?))) {
                Ok((done, pieces)) => Ok((encoder, done, pieces)),
                Err(error) => Err(failed(error)),
            }
        })
        .await?;
        self.encoder = Some(encoder);
        for piece in pieces {
            self.upload(piece).await?;
        }
        Ok(done)
    }

    async fn upload(&mut self, bytes: Bytes) -> Result<(), TableError> {
        self.size_bytes += bytes.len() as u64;
        self.upload
            .put(bytes)
            .await
            .map_err(TableError::storage(format!("writing the data file '{}'", self.name)))
    }
}

fn properties(root: &TableRoot, physical: &SchemaRef, gives_single_rows: bool) -> WriterProperties {
    let part = if gives_single_rows { DICTIONARY_PART_OF_KEYS } else { 1 };
    let mut properties = WriterProperties::builder()
        // Parts of lists and maps are called as Delta Lake and Parquet ask for.
        .set_coerce_types(true)
        .set_compression(Compression::ZSTD(root.zstd))
        .set_dictionary_page_size_limit(DICTIONARY_TEXT_BYTES_MAX / part)
        .set_created_by(CREATED_BY.to_owned());
    if gives_single_rows {
        properties = properties.set_data_page_row_count_limit(PAGE_ROWS_OF_KEYS);
    }
    for field in physical.fields() {
        if let Some(width) = field.data_type().primitive_width() {
            let column = ColumnPath::new(vec![field.name().clone()]);
            let bytes = DICTIONARY_NUMBERS_MAX / part * width.max(NUMBER_BYTES_MIN);
            properties = properties.set_column_dictionary_page_size_limit(column, bytes);
        }
    }
    properties.build()
}

/// A name that no data file has.
pub(crate) fn new_file_name() -> String {
    name_of(now_ms(), Codec::Zstd)
}

fn name_of(ms: i64, codec: Codec) -> String {
    let codec = match codec {
        Codec::Zstd => "zstd",
        Codec::Snappy => "snappy",
    };
    format!("part-{ms:013}-{}.{codec}.parquet", new_uuid())
}

/// Marks files as held by the snapshot, so that only the Delta log decides when they go.
pub(crate) fn publish_names<'a>(root: &TableRoot, names: impl Iterator<Item = &'a str>) {
    let mut unpublished = root.unpublished.lock();
    names.for_each(|name| {
        unpublished.remove(name);
    });
}

/// Deletes files that no log and no snapshot refers to. What cannot be deleted is logged and left
/// to the next sweep, and so is everything during a backup.
pub(crate) async fn delete_files(root: &TableRoot, names: &[String]) {
    let Some(_allowed) = root.deletions.allowed() else {
        return publish_names(root, names.iter().map(String::as_str));
    };
    for name in names {
        delete_file(root, name).await;
    }
}

async fn delete_file(root: &TableRoot, name: &str) {
    match root.store.delete(&Path::from(name)).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(file = name, %error, "a data file without use could not be deleted"),
    }
    root.unpublished.lock().remove(name);
}
