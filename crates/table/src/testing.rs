//! Tables, rows and a store that fails or waits on command, for the tests of this crate.

use crate::file::{EncodedFile, FileReader, LiveFile};
use crate::options::StoreOptions;
use crate::place::store::TableStore;
use crate::table::{Publication, Table};
use crate::{DurableLocal, MemPart, Snapshot, TableError};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, Semaphore};
use tributary_types::{
    ColumnDef, DataType, DefaultValue, Lsn, SchemaVersion, TableDef, TableId, TableSchema, Version,
};
use url::Url;

pub(crate) fn column(id: u32, name: &str, data_type: DataType, is_key: bool) -> ColumnDef {
    ColumnDef { nullable: !is_key, is_key, ..ColumnDef::new(id, name, data_type) }
}

pub(crate) fn with_default(column: ColumnDef, text: &str) -> ColumnDef {
    column.with_default(DefaultValue::Literal(text.to_owned()))
}

/// A table of `columns`, whose schema version is `version`.
pub(crate) fn def_of(version: u32, columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(version), columns);
    Arc::new(TableDef::new(TableId(7), "demo", "events", schema))
}

/// The table without deletion vectors.
pub(crate) fn copying(def: &Arc<TableDef>) -> Arc<TableDef> {
    let mut def = TableDef::clone(def);
    def.properties.others.insert(tributary_types::DELETION_VECTORS.to_owned(), "false".to_owned());
    Arc::new(def)
}

/// `id BIGINT NOT NULL` as key, `name VARCHAR(20)`.
pub(crate) fn two_columns() -> Arc<TableDef> {
    def_of(
        1,
        vec![
            column(1, "id", DataType::BigInt, true),
            column(2, "name", DataType::Varchar { bytes: 20 }, false),
        ],
    )
}

/// Rows `(id, "n<id>")` of [`two_columns`].
pub(crate) fn rows(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids)), Arc::new(names)];
    RecordBatch::try_new(two_columns().schema.arrow(), columns).unwrap()
}

pub(crate) fn publication(schema: &Arc<TableSchema>, version: u64, batch: RecordBatch) -> Publication {
    Publication {
        version: Version(version),
        schema: Arc::clone(schema),
        batches: vec![batch],
        files: Vec::new(),
        replaces: None,
        partitions: None,
        lsn: Lsn(version * 100),
    }
}

/// Publishes rows of [`two_columns`] as the next version.
pub(crate) fn publish(table: &Table, ids: impl IntoIterator<Item = i64>) {
    let next = table.snapshot().version.next();
    table.publish(publication(&two_columns().schema, next.0, rows(ids))).unwrap();
}

pub(crate) fn text_rows(batch: &RecordBatch) -> Vec<String> {
    let format = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|array| ArrayFormatter::try_new(array.as_ref(), &format).unwrap())
        .collect();
    let row = |index: usize| {
        columns.iter().map(|column| column.value(index).to_string()).collect::<Vec<_>>().join("|")
    };
    (0..batch.num_rows()).map(row).collect()
}

/// All rows of a file as rows of the table's schema.
pub(crate) async fn open_file(table: &Table, file: &LiveFile) -> std::result::Result<FileReader, TableError> {
    let encoded = EncodedFile::open(table.root(), file).await?;
    FileReader::new(&encoded, encoded.row_groups(), &table.def().schema, 0)
}

async fn file_rows(table: &Table, file: &LiveFile) -> std::result::Result<Vec<String>, TableError> {
    let mut reader = open_file(table, file).await?;
    let mut texts = Vec::new();
    while let Some(batch) = reader.next().await? {
        texts.extend(text_rows(&batch));
    }
    Ok(texts)
}

/// All rows of the snapshot's data files, sorted.
pub(crate) async fn read_files(table: &Table) -> std::result::Result<Vec<String>, TableError> {
    let mut texts = Vec::new();
    for live in table.snapshot().files.iter() {
        texts.extend(file_rows(table, live).await?);
    }
    texts.sort();
    Ok(texts)
}

/// All rows that a query sees, sorted.
pub(crate) async fn visible(table: &Table) -> Vec<String> {
    rows_of(table, &table.settled().await.unwrap()).await
}

/// All rows of a snapshot, sorted.
pub(crate) async fn rows_of(table: &Table, snapshot: &Snapshot) -> Vec<String> {
    let in_memory = |part: &Arc<MemPart>| text_rows(&part.live_batch().unwrap());
    let mut texts: Vec<_> = snapshot.memtable.iter().flat_map(in_memory).collect();
    for live in snapshot.files.iter() {
        texts.extend(file_rows(table, live).await.unwrap());
    }
    texts.sort();
    texts
}

/// All rows that the Delta log has, sorted, by the log alone.
pub(crate) async fn logged(table: &Table) -> Vec<String> {
    let snapshot = table.snapshot();
    let state = table.root().log.load(&snapshot.def).await.unwrap();
    let mut texts = Vec::new();
    for live in state.live.values() {
        texts.extend(file_rows(table, live).await.unwrap());
    }
    texts.sort();
    texts
}

pub(crate) fn expected(ids: impl IntoIterator<Item = i64>) -> Vec<String> {
    let mut texts: Vec<_> = ids.into_iter().map(|id| format!("{id}|n{id}")).collect();
    texts.sort();
    texts
}

/// A fault of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and nothing is written.
    Before,
    /// It is written, but the answer is an error.
    After,
    /// It is written, but the answer says that the name is taken, as a client of an object store reports when it repeats a
    /// conditional put after a lost answer.
    Echo,
    /// It is written, and no answer arrives.
    Silence,
}

/// A local store whose next write to a name that contains some text fails or waits, and whose next read may fail.
#[derive(Clone, Debug)]
pub(crate) struct FaultStore {
    inner: DurableLocal,
    faults: Arc<Mutex<Vec<(String, Fault)>>>,
    failing_reads: Arc<Mutex<Vec<String>>>,
    read_bytes: Arc<AtomicU64>,
    aborted_uploads: Arc<AtomicUsize>,
    gate: Arc<Mutex<Option<Gate>>>,
    /// Told of each write that gets no answer.
    pub(crate) silent: Arc<Notify>,
    /// Others delete what is to be deleted a moment before.
    pub(crate) is_cleared_by_others: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
struct Gate {
    text: String,
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

/// Holds a write back until it is opened.
#[derive(Debug)]
pub(crate) struct GateKey {
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl GateKey {
    /// Waits until a write is at the gate.
    pub(crate) async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(self) {
        self.open.add_permits(1);
    }
}

impl FaultStore {
    pub(crate) fn new() -> Self {
        Self {
            inner: DurableLocal::default(),
            faults: Arc::default(),
            failing_reads: Arc::default(),
            read_bytes: Arc::default(),
            aborted_uploads: Arc::default(),
            gate: Arc::default(),
            silent: Arc::default(),
            is_cleared_by_others: Arc::default(),
        }
    }

    /// The next write to a name with `text` in it fails.
    pub(crate) fn fail_next(&self, text: &str, fault: Fault) {
        self.faults.lock().push((text.to_owned(), fault));
    }

    /// The next read of a name with `text` in it fails.
    pub(crate) fn fail_next_read(&self, text: &str) {
        self.failing_reads.lock().push(text.to_owned());
    }

    /// Nothing fails any more.
    pub(crate) fn none(&self) {
        self.faults.lock().clear();
        self.failing_reads.lock().clear();
    }

    /// The next write to a name with `text` in it waits.
    pub(crate) fn hold_next(&self, text: &str) -> GateKey {
        let gate = Gate {
            text: text.to_owned(),
            arrived: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
        };
        *self.gate.lock() = Some(gate.clone());
        GateKey { arrived: gate.arrived, open: gate.open }
    }

    fn fault_of(&self, location: &Path) -> Option<Fault> {
        let mut faults = self.faults.lock();
        let index = faults.iter().position(|(text, _)| location.as_ref().contains(text))?;
        Some(faults.remove(index).1)
    }

    /// How many multipart uploads were aborted, as a store of objects wants it.
    pub(crate) fn aborted_uploads(&self) -> usize {
        self.aborted_uploads.load(Ordering::Relaxed)
    }

    /// How many bytes were read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    fn fails_read(&self, location: &Path) -> bool {
        let mut failing = self.failing_reads.lock();
        let found = failing.iter().position(|text| location.as_ref().contains(text));
        found.map(|index| failing.remove(index)).is_some()
    }

    async fn pass_gate(&self, location: &Path) {
        let gate = {
            let mut gate = self.gate.lock();
            if gate.as_ref().is_some_and(|gate| location.as_ref().contains(&gate.text)) {
                gate.take()
            } else {
                None
            }
        };
        if let Some(gate) = gate {
            gate.arrived.add_permits(1);
            gate.open.acquire().await.unwrap().forget();
        }
    }
}

fn broken() -> Error {
    Error::Generic { store: "FaultStore", source: "the test said so".into() }
}

fn taken(location: &Path) -> Error {
    Error::AlreadyExists { path: location.to_string(), source: "the test said so".into() }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultStore")
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.pass_gate(location).await;
        match self.fault_of(location) {
            Some(Fault::Before) => Err(broken()),
            Some(Fault::After) => self.inner.put_opts(location, payload, opts).await.and(Err(broken())),
            Some(Fault::Echo) => self.inner.put_opts(location, payload, opts).await.and(Err(taken(location))),
            Some(Fault::Silence) => {
                self.inner.put_opts(location, payload, opts).await?;
                self.silent.notify_one();
                std::future::pending().await
            }
            None => self.inner.put_opts(location, payload, opts).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.pass_gate(location).await;
        match self.fault_of(location) {
            Some(_) => Err(broken()),
            None => {
                let inner = self.inner.put_multipart_opts(location, opts).await?;
                Ok(Box::new(CountedUpload { inner, aborted: Arc::clone(&self.aborted_uploads) }))
            }
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.fails_read(location) {
            return Err(broken());
        }
        let is_read = !options.head;
        let got = self.inner.get_opts(location, options).await?;
        if is_read {
            self.read_bytes.fetch_add(got.range.end - got.range.start, Ordering::Relaxed);
        }
        Ok(got)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.fails_read(location) {
            return Err(broken());
        }
        let read = self.inner.get_ranges(location, ranges).await?;
        self.read_bytes.fetch_add(read.iter().map(|bytes| bytes.len() as u64).sum(), Ordering::Relaxed);
        Ok(read)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let deleted = self.inner.delete_stream(locations);
        if !self.is_cleared_by_others.load(Ordering::Relaxed) {
            return deleted;
        }
        let gone =
            |path: Path| Error::NotFound { path: path.to_string(), source: "others were faster".into() };
        deleted.map(move |outcome| outcome.and_then(|path| Err(gone(path)))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn MultipartUpload>,
    aborted: Arc<AtomicUsize>,
}

#[async_trait]
impl MultipartUpload for CountedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.aborted.fetch_add(1, Ordering::Relaxed);
        self.inner.abort().await
    }
}

/// A storage root in a temporary directory, on a store with faults.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    /// The directory of key files.
    pub(crate) keys: tempfile::TempDir,
    pub(crate) faults: FaultStore,
    pub(crate) store: TableStore,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(StoreOptions::default())
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let faults = FaultStore::new();
        let url = Url::from_directory_path(dir.path().canonicalize().unwrap()).unwrap();
        let keys = tempfile::tempdir().unwrap();
        let options = StoreOptions { keys_directory: Some(keys.path().to_owned()), ..options };
        let store = TableStore::with_object_store(Arc::new(faults.clone()), url, options).unwrap();
        Self { dir, keys, faults, store }
    }

    /// Whether the table has deletion vectors, or declares that it may.
    pub(crate) fn has_vectors(&self) -> bool {
        let log = std::fs::read_dir(self.dir.path().join("demo/events-7/_delta_log")).unwrap();
        let entries = log.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
        let is_told = entries.into_iter().any(|text| text.contains("deletionVector"));
        is_told || self.data_files().iter().any(|name| name.starts_with("deletion_vector_"))
    }

    pub(crate) fn kept_keys(&self) -> Vec<std::path::PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.keys.path().join("demo/events-7")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The first column of a data file's rows, in their order.
    pub(crate) async fn names_in_file(&self, table: &Table, path: &str) -> Vec<String> {
        let live = table.snapshot().files.iter().find(|live| live.path() == path).cloned().unwrap();
        let mut reader = open_file(table, &live).await.unwrap();
        let mut names = Vec::new();
        while let Some(batch) = reader.next().await.unwrap() {
            names.extend(text_rows(&batch).into_iter().map(|row| row.split('|').next().unwrap().to_owned()));
        }
        names
    }

    /// Names of the table's data files on disk, sorted.
    pub(crate) fn data_files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.dir.path().join("demo/events-7")) else { return Vec::new() };
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "_delta_log")
            .collect();
        names.sort();
        names
    }
}
