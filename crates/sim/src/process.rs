//! One life of the server: the real core, opened on the simulated disk as the engine opens it.

use crate::catalog::SimCatalog;
use crate::dice::Dice;
use crate::lying::{Lie, LyingDisk};
use crate::plan::Plan;
use crate::records::Records;
use crate::store::SimStore;
use crate::temporary::is_beside;
use async_trait::async_trait;
use object_store::path::Path;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tributary_ddl::Logs;
use tributary_ingest::{AutoIncrements, Ingest, IngestMetrics, IngestOptions, LabelStore, RecoveryReport};
use tributary_table::{StoreOptions, Table, TableError, TableStore, WriteClaim};
use tributary_types::{
    ColumnDef, DataType, DbId, Live, Portion, SchemaVersion, TableDef, TableId, TableProperties, TableSchema,
    host,
};
use tributary_wal::{Disk, MemDisk, WalOptions};
use url::Url;

/// The time from the log of one table with a change to the next, in a start that may meet a former process.
const LOOKS_NEXT: Duration = Duration::from_millis(5);

/// The only database.
pub const DB: DbId = DbId(1);

/// The machine's parts that outlive the server.
#[derive(Clone)]
pub struct Hardware {
    pub disk: MemDisk,
    /// The same disk as the server sees it.
    pub lying: LyingDisk,
    pub store: SimStore,
    pub catalog: SimCatalog,
    /// Raised by each start, as by each claim of the catalog.
    pub epoch: Arc<AtomicU64>,
}

impl Hardware {
    /// A disk with a store and a catalog on it. `lie` is the disk's lie, if it tells one.
    pub fn on(disk: MemDisk, lie: Option<Lie>, dice: &mut Dice, is_dead: &Arc<AtomicBool>) -> Self {
        let lying = LyingDisk::new(disk.clone(), lie);
        let store = SimStore::new(lying.clone(), dice.split(), Arc::clone(is_dead));
        // A separate stream, which takes nothing from the seed's.
        let of_catalog = Dice::new(dice.clone().next() ^ 0xCA7A_106D);
        let epoch = Arc::default();
        Self { store, catalog: SimCatalog::new(disk.clone(), of_catalog), disk, lying, epoch }
    }
}

/// The server.
pub struct Process {
    pub ingest: Arc<Ingest>,
    pub increments: AutoIncrements,
    pub store: TableStore,
    pub tables: Mutex<BTreeMap<TableId, Arc<Table>>>,
    pub records: Records,
    pub report: RecoveryReport,
}

/// As a table in directories does when it is opened: names that a killed process left may be in the page cache only.
fn sync_left_names(hardware: &Hardware, def: &TableDef) -> std::io::Result<()> {
    let directory = SimStore::disk_path(&Path::from(def.location.as_str()));
    hardware.disk.open_dir(&directory.join("_delta_log"))?.sync()?;
    hardware.disk.open_dir(&directory)?.sync()
}

/// The Delta logs, read as by a start.
struct LogsOnDisk<'a> {
    hardware: &'a Hardware,
    store: &'a TableStore,
    /// A former process may make a change meanwhile: a start of many tables takes its time from one to the next.
    is_slow: bool,
}

#[async_trait]
impl Logs for LogsOnDisk<'_> {
    async fn last_change(&self, def: &TableDef) -> Result<Option<u64>, TableError> {
        let left = sync_left_names(self.hardware, def);
        left.map_err(|source| TableError::Local {
            doing: "syncing names in",
            path: PathBuf::from(&def.location),
            source,
        })?;
        let last = self.store.last_schema_change(def).await;
        if self.is_slow {
            host::sleep(LOOKS_NEXT, || std::future::ready(())).await;
        }
        last
    }
}

/// Brings the catalog to the changes that the Delta logs have; others are abandoned.
async fn complete_changes(hardware: &Hardware, store: &TableStore, is_slow: bool) -> Result<(), String> {
    let changes = hardware.catalog.changes()?;
    tributary_ddl::complete(&hardware.catalog, &LogsOnDisk { hardware, store, is_slow }, changes)
        .await
        .map_err(|error| format!("{error:?}"))?;
    for job in hardware.catalog.changes()? {
        hardware.catalog.end_job(job.id)?;
    }
    Ok(())
}

/// Drops the remains of temporary partitions.
async fn drop_beside(
    hardware: &Hardware,
    ingest: &Ingest,
    tables: &mut Vec<Arc<Table>>,
) -> Result<(), String> {
    let (beside, others): (Vec<_>, Vec<_>) =
        std::mem::take(tables).into_iter().partition(|table| is_beside(&table.def()));
    *tables = others;
    for table in beside {
        hardware.catalog.drop_table(table.id())?;
        table.close().await;
        ingest.detach(table.id());
    }
    Ok(())
}

impl Process {
    /// Opens tables and logs. `is_dead` becomes true when the log has failed, where a server ends itself.
    ///
    /// # Errors
    /// The reason why the server did not start.
    pub async fn start(
        hardware: &Hardware,
        plan: &Plan,
        salt: u64,
        is_dead: &Arc<AtomicBool>,
    ) -> Result<Self, String> {
        hardware.epoch.fetch_add(1, Ordering::Relaxed);
        let store = table_store(hardware, plan)?;
        complete_changes(hardware, &store, plan.wakes).await?;
        let mut tables = Vec::new();
        for def in hardware.catalog.tables() {
            sync_left_names(hardware, &def).map_err(|error| error.to_string())?;
            let table = store.open(&def).await.map_err(|error| error.to_string())?;
            hardware.catalog.recycled(def.id).iter().for_each(|(_, kept)| table.keep_files(&kept.files));
            tables.push(table);
        }
        let dead = Arc::clone(is_dead);
        let options = IngestOptions {
            retired_wal_dirs: Vec::new(),
            wal_dirs: (0..plan.wal_dirs).map(|number| PathBuf::from(format!("/wal-{number}"))).collect(),
            wal_limit: Live::new(Portion::Bytes(1 << 30)),
            wal: WalOptions {
                segment_bytes: plan.segment_bytes,
                max_spare_segments: plan.max_spares,
                frame_bytes: plan.frame_bytes,
                on_fatal: Some(Arc::new(move |_| dead.store(true, Ordering::Relaxed))),
                salt_seed: Some(salt),
                ..WalOptions::default()
            },
            memory_limit_bytes: Live::new(plan.memory_bytes),
            keys_dir: PathBuf::from("/keys"),
            load_keys_max: Live::new(1_000_000),
            rejected_dir: PathBuf::from("/rejected"),
            rejected_keep: Live::new(Duration::from_secs(1_000_000)),
            rejected_bytes_max: Live::new(1 << 30),
            label_keep: Live::new(Duration::from_secs(1_000_000)),
            precommit_timeout: Live::new(Duration::from_secs(1_000_000)),
            ownership: tributary_ingest::Ownership::default(),
            sweep_interval: Live::new(Duration::from_secs(3600)),
        };
        let metrics = IngestMetrics::new(&prometheus::Registry::new()).map_err(|error| error.to_string())?;
        let (ingest, report) = Ingest::open(
            options,
            Arc::new(hardware.lying.clone()),
            Arc::new(metrics),
            Arc::new(hardware.catalog.clone()) as Arc<dyn LabelStore>,
            &hardware.catalog,
            tables.clone(),
        )
        .await
        .map_err(|error| error.to_string())?;
        drop_beside(hardware, &ingest, &mut tables).await?;
        for table in &tables {
            // The opening has completed the drop; what fails is done by the next change.
            drop(tributary_ddl::end_drop(&hardware.catalog, table).await);
        }
        for (table, location) in hardware.catalog.garbage() {
            store.remove(&location).await.map_err(|error| error.to_string())?;
            hardware.catalog.clear_garbage(table)?;
        }
        let tables = Mutex::new(tables.into_iter().map(|table| (table.id(), table)).collect());
        let increments = AutoIncrements::new(Arc::new(hardware.catalog.clone()));
        Ok(Self { ingest, increments, store, tables, records: Records::default(), report })
    }

    pub fn table(&self, id: TableId) -> Option<Arc<Table>> {
        self.tables.lock().get(&id).cloned()
    }
}

/// The options of the server's storage root.
#[must_use]
pub fn process_options(hardware: &Hardware, plan: &Plan) -> StoreOptions {
    StoreOptions {
        node: "sim".to_owned(),
        epoch: hardware.epoch.load(Ordering::Relaxed),
        claim: plan.wakes.then(|| WriteClaim { id: "sim".to_owned(), is_takeover: true }),
        flush_bytes: Live::new(plan.flush_bytes),
        flush_age_ms: Live::new(plan.flush_age_ms),
        target_file_bytes: Live::new(64 << 10),
        checkpoint_every: Live::new(plan.checkpoint_every),
        keep_removed_files_ms: Live::new(plan.keep_removed_ms),
        keep_log_ms: Live::new(plan.keep_removed_ms),
        compact_min_files: plan.compact_min_files,
        ..StoreOptions::default()
    }
}

/// The storage root.
///
/// # Errors
/// Never with the options that a plan can have.
pub fn table_store(hardware: &Hardware, plan: &Plan) -> Result<TableStore, String> {
    store_with(hardware, process_options(hardware, plan))
}

/// The storage root as somebody sees it who reads the tables of another.
///
/// # Errors
/// Never with the options that a plan can have.
pub fn follower(hardware: &Hardware, options: StoreOptions) -> Result<TableStore, String> {
    store_with(hardware, StoreOptions { max_staleness: Some(Live::new(Duration::ZERO)), ..options })
}

fn store_with(hardware: &Hardware, options: StoreOptions) -> Result<TableStore, String> {
    let url = Url::parse("sim:///").map_err(|error| error.to_string())?;
    TableStore::with_object_store(Arc::new(hardware.store.clone()), url, options)
        .map_err(|error| error.to_string())
}

/// A new table: `id BIGINT` as key and `text VARCHAR`.
#[must_use]
pub fn table_def(id: TableId, interval_ms: u64, group_bytes: u64) -> Arc<TableDef> {
    let columns = vec![
        ColumnDef::new(1, "id", DataType::BigInt).key().not_null(),
        ColumnDef::new(2, "text", DataType::Varchar { bytes: 65_533 }),
    ];
    let properties = TableProperties {
        group_commit_interval_ms: interval_ms,
        group_commit_data_bytes: group_bytes,
        ..TableProperties::default()
    };
    let schema = TableSchema::new(SchemaVersion(1), columns);
    Arc::new(TableDef { properties, ..TableDef::new(id, "db", &format!("t{id}"), schema) })
}
