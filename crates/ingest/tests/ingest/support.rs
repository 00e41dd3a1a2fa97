//! A machine with its disk, and a server that runs on it.

pub use crate::gated::{GatedDisk, Held};
pub use arrow::array::{AsArray, RecordBatch};
pub use arrow::datatypes::Int32Type;
pub use futures::TryStreamExt;
pub use object_store::ObjectStore;
pub use object_store::memory::InMemory;
pub use std::collections::{BTreeMap, BTreeSet};
pub use std::path::PathBuf;
pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub use std::sync::{Arc, Mutex};
pub use std::time::Duration;
pub use tributary_decode::{
    BlockBuilder, InsertOptions, Target, ValuesOutcome, blocks_to_batches, decode_values,
};
pub use tributary_ingest::{
    Ingest, IngestError, IngestMetrics, IngestOptions, LabelStore, LoadRows, RecoveryReport, SchemaHistory,
    SourcePosition, TransactionInfo, TransactionKind, TransactionStatus, TwoPhaseTarget,
};
pub use tributary_table::{Replaced, StoreOptions, Table, TableStore};
pub use tributary_types::{
    ColumnDef, DataType, DbId, Label, Live, Portion, SchemaVersion, SourceId, TableDef, TableId,
    TableProperties, TableSchema, TxnId, UserKey,
};
pub use tributary_wal::{MemDisk, Wal, WalOptions};

pub const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Labels {
    pub kept: Mutex<BTreeMap<TxnId, TransactionInfo>>,
    pub positions: Mutex<BTreeMap<SourceId, SourcePosition>>,
    pub asked: AtomicU64,
    /// Whether storing takes for ever.
    pub stalls: AtomicBool,
}

#[async_trait::async_trait]
impl LabelStore for Labels {
    async fn record(&self, finished: &[TransactionInfo], positions: &[SourcePosition]) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.stalls.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.kept.lock().unwrap().extend(finished.iter().map(|info| (info.txn, info.clone())));
        self.positions.lock().unwrap().extend(positions.iter().map(|known| (known.source, known.clone())));
        Ok(())
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        Ok(self.kept.lock().unwrap().values().filter(|info| info.label_is_kept).cloned().collect())
    }

    async fn freed(&self) -> Result<Vec<TxnId>, String> {
        Ok(self
            .kept
            .lock()
            .unwrap()
            .values()
            .filter(|info| !info.label_is_kept)
            .map(|info| info.txn)
            .collect())
    }

    async fn positions(&self) -> Result<Vec<SourcePosition>, String> {
        Ok(self.positions.lock().unwrap().values().cloned().collect())
    }

    async fn purge(&self, _before_ms: i64) -> Result<(), String> {
        Ok(())
    }
}

pub struct NoHistory;

impl SchemaHistory for NoHistory {
    fn schema(&self, _table: TableId, _version: SchemaVersion) -> Option<Arc<TableSchema>> {
        None
    }
}

pub fn table_def(properties: TableProperties) -> Arc<TableDef> {
    let columns = vec![
        ColumnDef::new(1, "id", DataType::Int).key(),
        ColumnDef::new(2, "name", DataType::Varchar { bytes: 50 }),
    ];
    let schema = TableSchema::new(SchemaVersion(1), columns);
    Arc::new(TableDef { properties, ..TableDef::new(TableId(1), "db", "dt", schema) })
}

/// A machine: what survives when a process ends.
pub struct Machine {
    pub disk: MemDisk,
    pub gated: GatedDisk,
    pub objects: Arc<InMemory>,
    pub store: TableStore,
    pub labels: Arc<Labels>,
    pub def: Arc<TableDef>,
    pub wal_dirs: Vec<PathBuf>,
    pub retired_wal_dirs: Vec<PathBuf>,
    pub memory_limit_bytes: u64,
    pub wal_limit: Portion,
    /// Whether a lone load's thread may write the log. Not where a test holds syncs, and would hold its own thread.
    pub may_write_here: bool,
    pub load_keys_max: u64,
    pub rejected_bytes_max: u64,
}

pub struct Running {
    pub ingest: Arc<Ingest>,
    pub table: Arc<Table>,
    pub report: RecoveryReport,
}

impl Machine {
    pub fn new(properties: TableProperties) -> Self {
        let url = url::Url::parse("memory:///store/").unwrap();
        let objects = Arc::new(InMemory::new());
        let store = TableStore::with_object_store(objects.clone(), url, StoreOptions::default()).unwrap();
        let disk = MemDisk::new();
        Self {
            gated: GatedDisk::new(disk.clone()),
            disk,
            objects,
            store,
            labels: Arc::default(),
            def: table_def(properties),
            wal_dirs: vec![PathBuf::from("/wal")],
            retired_wal_dirs: Vec::new(),
            memory_limit_bytes: 1 << 30,
            wal_limit: Portion::Bytes(1 << 30),
            may_write_here: false,
            load_keys_max: 1_000_000,
            rejected_bytes_max: 1 << 30,
        }
    }

    pub async fn start(&self) -> Running {
        let table = self.store.create(&self.def).await.unwrap();
        let (ingest, report) = self.open(vec![Arc::clone(&table)]).await;
        Running { ingest, table, report }
    }

    pub async fn open(&self, tables: Vec<Arc<Table>>) -> (Arc<Ingest>, RecoveryReport) {
        self.open_with(tables, &NoHistory).await
    }

    pub async fn open_with(
        &self,
        tables: Vec<Arc<Table>>,
        history: &dyn SchemaHistory,
    ) -> (Arc<Ingest>, RecoveryReport) {
        Ingest::open(
            IngestOptions {
                wal_dirs: self.wal_dirs.clone(),
                retired_wal_dirs: self.retired_wal_dirs.clone(),
                wal_limit: Live::new(self.wal_limit),
                wal: WalOptions {
                    segment_bytes: 1 << 20,
                    on_fatal: Some(Arc::new(|_| {})),
                    may_write_here: Some(self.may_write_here),
                    ..WalOptions::default()
                },
                memory_limit_bytes: Live::new(self.memory_limit_bytes),
                keys_dir: "/keys".into(),
                load_keys_max: Live::new(self.load_keys_max),
                rejected_dir: "/rejected".into(),
                rejected_keep: Live::new(LONG),
                rejected_bytes_max: Live::new(self.rejected_bytes_max),
                label_keep: Live::new(LONG),
                precommit_timeout: Live::new(LONG),
                ownership: tributary_ingest::Ownership::default(),
                sweep_interval: Live::new(LONG),
            },
            Arc::new(self.gated.clone()),
            Arc::new(IngestMetrics::new(&prometheus::Registry::new()).unwrap()),
            Arc::clone(&self.labels) as Arc<dyn LabelStore>,
            history,
            tables,
        )
        .await
        .unwrap()
    }

    /// No sync of the log ends before this is dropped.
    pub fn hold_syncs(&self) -> Held {
        self.gated.hold()
    }

    /// How many data files there are, published or not.
    pub async fn data_files(&self) -> usize {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        all.iter().filter(|object| object.location.as_ref().ends_with(".parquet")).count()
    }

    /// Ends the process; nothing unsynced survives.
    pub fn power_off(&self, running: Running, seed: u64) {
        self.disk.crash(seed);
        drop(running);
    }
}

impl Running {
    pub fn rows(&self, values: &str) -> LoadRows {
        let def = self.table.def();
        let target = Target::new(&def, None).unwrap();
        let mut builder = BlockBuilder::new(&def.schema);
        match decode_values(values.as_bytes(), &target, &InsertOptions::default(), &mut builder).unwrap() {
            ValuesOutcome::Rows(decoded) => LoadRows {
                partitions: def.partitioning.partitions().cloned(),
                ..LoadRows::of_blocks(Arc::clone(&def.schema), decoded.blocks)
            },
            ValuesOutcome::General => panic!("{values} are literals"),
        }
    }

    pub async fn group(
        &self,
        is_async: bool,
        values: &str,
    ) -> Result<tributary_ingest::Answered, IngestError> {
        self.ingest.load_into_group(&self.table, is_async, self.rows(values), LONG).await
    }

    pub fn begin(&self, label: &str) -> Result<tributary_ingest::Reservation, IngestError> {
        self.ingest.begin(&self.table.def(), Label::new(label).unwrap(), true, TransactionKind::StreamLoad)
    }

    /// Rows that can't become columns: they are said to be of a later schema than they are.
    pub fn bad_rows(&self, values: &str) -> LoadRows {
        let rows = self.rows(values);
        let mut schema = TableSchema::clone(&rows.schema);
        schema.version = SchemaVersion(7);
        LoadRows { schema: Arc::new(schema), ..rows }
    }

    /// Rows in data files that were written ahead.
    pub async fn file_rows(&self, values: &str) -> LoadRows {
        self.written(self.rows(values)).await
    }

    /// Rows that were decoded, in data files.
    pub async fn written(&self, rows: LoadRows) -> LoadRows {
        let mut writer = self.table.new_file_writer().unwrap();
        for batch in blocks_to_batches(&rows.schema, &rows.blocks).unwrap() {
            writer.append(batch).await.unwrap();
        }
        LoadRows::of_files(rows.schema, writer.finish().await.unwrap())
    }

    /// A load on a task of its own, as a client's is.
    pub fn load(&self, is_async: bool, rows: LoadRows) -> Task<tributary_ingest::Answered> {
        let (ingest, table) = (Arc::clone(&self.ingest), Arc::clone(&self.table));
        tokio::spawn(async move { ingest.load_into_group(&table, is_async, rows, LONG).await })
    }

    pub async fn prepare(&self, label: &str, values: &str) -> TwoPhaseTarget {
        let reservation = self.begin(label).unwrap();
        let prepared = self.ingest.prepare(&self.table, reservation, self.rows(values)).await.unwrap();
        TwoPhaseTarget { txn: Some(prepared.txn), label: None }
    }

    pub fn status(&self, label: &str) -> TransactionStatus {
        self.ingest.transactions().by_label(DbId(1), label).unwrap().status
    }

    pub fn wal(&self) -> &Wal {
        &self.ingest.wal_spaces()[0].wal
    }

    /// Waits until the log has been given something that it has not made durable.
    pub async fn log_is_busy(&self) {
        until("the log is busy", || !self.wal().is_idle()).await;
    }

    /// The visible ids of the memtable, sorted.
    pub fn ids(&self) -> Vec<i32> {
        let mut ids = self.ids_in_order();
        ids.sort_unstable();
        ids
    }

    /// The visible ids of the memtable, in its order.
    pub fn ids_in_order(&self) -> Vec<i32> {
        let snapshot = self.table.snapshot();
        let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
        snapshot.memtable.iter().flat_map(|part| of(&part.live_batch().unwrap())).collect()
    }
}

pub type Task<T> = tokio::task::JoinHandle<Result<T, IngestError>>;

pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    in_time(what, wait).await;
}

pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap_or_else(|_| panic!("{what} in 20 s"))
}

/// The client leaves: its request is not polled any more.
pub async fn leave<T>(client: tokio::task::JoinHandle<T>) {
    client.abort();
    drop(client.await);
}

pub fn properties(interval_ms: u64) -> TableProperties {
    TableProperties { group_commit_interval_ms: interval_ms, ..TableProperties::default() }
}
