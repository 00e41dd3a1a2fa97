//! A stand-in for the catalog: existing tables, their schemas, retained labels and progress. Every change is atomic and durable,
//! like a transaction of the real one (SQLite), and the power may go off with it.

use crate::dice::Dice;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_ddl::{Change, Definitions, Effect, Finished, KeptPartition, Records};
use tributary_ingest::{
    IncrementError, IncrementStore, LabelStore, SchemaHistory, SourcePosition, TransactionInfo, following,
};
use tributary_types::{PartitionId, SchemaVersion, SourceId, TableDef, TableId, TableSchema, TxnId};
use tributary_wal::MemDisk;

/// The catalog. Clones are the same one; it lives as long as the disk.
#[derive(Clone, Debug)]
pub struct SimCatalog {
    disk: MemDisk,
    rows: Arc<Mutex<Rows>>,
    /// Chance for the faults of changes' steps.
    dice: Arc<Mutex<Dice>>,
    /// One such step in this many fails, and the answer of another is lost; 0 for none.
    fails_one_in: Arc<AtomicU64>,
    faults: Arc<AtomicU64>,
    /// The power goes off with the end of one change in this many; 0 for none.
    power_off_one_in: Arc<AtomicU64>,
}

/// The rows of a catalog at one moment.
#[derive(Debug)]
pub struct CatalogRows(Rows);

impl CatalogRows {
    /// The tables, in the order of their ids.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<TableDef>> {
        self.0.tables.values().cloned().collect()
    }
}

#[derive(Clone, Debug, Default)]
struct Rows {
    tables: BTreeMap<TableId, Arc<TableDef>>,
    schemas: BTreeMap<(TableId, SchemaVersion), Arc<TableSchema>>,
    garbage: BTreeMap<TableId, String>,
    labels: BTreeMap<TxnId, TransactionInfo>,
    positions: BTreeMap<SourceId, SourcePosition>,
    next_table: u64,
    /// Changes that have not ended, by their numbers.
    changes: BTreeMap<SourceId, Record>,
    next_change: u64,
    /// The last change of each table whose end the catalog knows.
    last_changes: BTreeMap<TableId, SourceId>,
    /// Partitions that were dropped and are kept.
    recycled: BTreeMap<(TableId, PartitionId), KeptPartition>,
    /// The first values of AUTO_INCREMENT columns that were never reserved.
    increments: BTreeMap<TableId, i64>,
}

/// The record of a change, as in the real catalog.
#[derive(Clone, Debug)]
enum Record {
    /// The job of a heavy schema change.
    Job(Arc<TableDef>),
    Partitions(String),
}

impl Record {
    fn of(change: &Change) -> Self {
        match &change.effect {
            Effect::Columns(target) => Self::Job(Arc::clone(target)),
            Effect::Partitions(partitions) => {
                Self::Partitions(tributary_ddl::written(change.table, partitions).to_string())
            }
        }
    }

    fn read(&self, id: SourceId) -> Result<Change, String> {
        match self {
            Self::Job(target) => {
                Ok(Change { id, table: target.id, effect: Effect::Columns(Arc::clone(target)) })
            }
            Self::Partitions(text) => {
                let body = serde_json::from_str(text).map_err(|error| error.to_string())?;
                Change::read(id, tributary_ddl::KIND, body)
            }
        }
    }
}

impl SimCatalog {
    #[must_use]
    pub fn new(disk: MemDisk, dice: Dice) -> Self {
        Self {
            disk,
            rows: Arc::default(),
            dice: Arc::new(Mutex::new(dice)),
            fails_one_in: Arc::default(),
            faults: Arc::default(),
            power_off_one_in: Arc::default(),
        }
    }

    /// From now on one step of a change in `one_in` fails, and the answer of another is lost; 0 for none.
    pub fn fail(&self, one_in: u64) {
        self.fails_one_in.store(one_in, Ordering::Relaxed);
    }

    /// From now on the power goes off with the end of one change in `one_in`; 0 for none: if few of a seed's operations fall
    /// between two steps that belong together, chance alone would hit them too rarely.
    pub fn power_off(&self, one_in: u64) {
        self.power_off_one_in.store(one_in, Ordering::Relaxed);
    }

    /// The number of steps of changes that failed, or seemed to.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    fn happens(&self, one_in: &AtomicU64) -> bool {
        let one_in = one_in.load(Ordering::Relaxed);
        one_in > 0 && self.dice.lock().one_in(one_in)
    }

    /// A step of a change, which may fail, and whose answer may be lost.
    fn step(&self, what: &'static str, step: impl FnOnce(&mut Rows)) -> Result<(), String> {
        let fault = |text: &str| {
            self.faults.fetch_add(1, Ordering::Relaxed);
            Err(text.to_owned())
        };
        if self.happens(&self.fails_one_in) {
            return fault("the catalog is busy");
        }
        self.change(what, step)?;
        if self.happens(&self.fails_one_in) { fault("the catalog's answer is lost") } else { Ok(()) }
    }

    fn change(&self, what: &'static str, change: impl FnOnce(&mut Rows)) -> Result<(), String> {
        match self.disk.atomic_change(what) {
            Ok(()) => {
                change(&mut self.rows.lock());
                Ok(())
            }
            Err((error, happened)) => {
                if happened {
                    change(&mut self.rows.lock());
                }
                Err(error.to_string())
            }
        }
    }

    /// The rows as they are now.
    #[must_use]
    pub fn copy(&self) -> CatalogRows {
        CatalogRows(self.rows.lock().clone())
    }

    /// Replaces all rows, as an operator would who restores a backup.
    pub fn put_back(&self, rows: CatalogRows) {
        *self.rows.lock() = rows.0;
    }

    /// The power goes off shortly after this, sometimes.
    pub fn power_off_soon(&self) {
        if self.happens(&self.power_off_one_in) {
            let within = self.dice.lock().pick(&[6, 30]);
            let within = self.dice.lock().below(within);
            self.disk.power_off_at(self.disk.operations() + within);
        }
    }

    /// An id that no table has had.
    #[must_use]
    pub fn next_table_id(&self) -> TableId {
        let mut rows = self.rows.lock();
        rows.next_table += 1;
        TableId(rows.next_table)
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn put_table(&self, def: &Arc<TableDef>) -> Result<(), String> {
        self.change("put table", |rows| {
            rows.schemas.insert((def.id, def.schema.version), Arc::clone(&def.schema));
            rows.tables.insert(def.id, Arc::clone(def));
        })
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn drop_table(&self, table: TableId) -> Result<(), String> {
        self.change("drop table", |rows| {
            rows.recycled.retain(|(of, _), _| *of != table);
            if let Some(def) = rows.tables.remove(&table) {
                rows.garbage.insert(table, def.location.clone());
            }
        })
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn clear_garbage(&self, table: TableId) -> Result<(), String> {
        self.change("clear garbage", |rows| drop(rows.garbage.remove(&table)))
    }

    /// A number for a change that no other has.
    #[must_use]
    pub fn next_change(&self) -> SourceId {
        let mut rows = self.rows.lock();
        rows.next_change += 1;
        SourceId(rows.next_change)
    }

    /// Records the job of a heavy schema change before it starts.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn put_job(&self, change: &Change) -> Result<(), String> {
        self.change("put job", |rows| drop(rows.changes.insert(change.id, Record::of(change))))
    }

    /// Ends the job of an abandoned heavy schema change.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn end_job(&self, id: SourceId) -> Result<(), String> {
        self.change("end job", |rows| drop(rows.changes.remove(&id)))
    }

    /// Whether the table has an unfinished heavy change.
    #[must_use]
    pub fn is_changing(&self, table: TableId) -> bool {
        let is_its = |record: &Record| matches!(record, Record::Job(target) if target.id == table);
        self.rows.lock().changes.values().any(is_its)
    }

    /// The changes that have not ended.
    ///
    /// # Errors
    /// If a record can't be read.
    pub fn changes(&self) -> Result<Vec<Change>, String> {
        self.rows.lock().changes.iter().map(|(id, record)| record.read(*id)).collect()
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn erase(&self, table: TableId, id: PartitionId) -> Result<(), String> {
        self.change("erase", |rows| drop(rows.recycled.remove(&(table, id))))
    }

    /// The dropped partitions of a table that are retained.
    #[must_use]
    pub fn recycled(&self, table: TableId) -> Vec<(PartitionId, KeptPartition)> {
        let rows = self.rows.lock();
        let of_table = rows.recycled.iter().filter(|((of, _), _)| *of == table);
        of_table.map(|((_, id), kept)| (*id, kept.clone())).collect()
    }

    #[must_use]
    pub fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.rows.lock().tables.get(&id).cloned()
    }

    /// Locations of dropped tables.
    #[must_use]
    pub fn garbage(&self) -> Vec<(TableId, String)> {
        self.rows.lock().garbage.iter().map(|(id, location)| (*id, location.clone())).collect()
    }

    #[must_use]
    pub fn tables(&self) -> Vec<Arc<TableDef>> {
        self.rows.lock().tables.values().cloned().collect()
    }
}

impl Rows {
    fn finish(&mut self, Finished { change, table, beside }: &Finished) {
        self.changes.remove(&change.id);
        let last = self.last_changes.entry(change.table).or_default();
        if !self.tables.contains_key(&change.table) || *last >= change.id {
            return;
        }
        *last = change.id;
        for (_, after) in [Some(table), beside.as_ref()].into_iter().flatten() {
            let after = Arc::new(after.clone());
            if self.tables.contains_key(&after.id) {
                self.schemas.insert((after.id, after.schema.version), Arc::clone(&after.schema));
                self.tables.insert(after.id, after);
            }
        }
        let Some(partitions) = change.partitions() else { return };
        for dropped in &partitions.dropped {
            self.recycled.insert((change.table, dropped.kept.partition.id), dropped.kept.clone());
        }
        for recovered in &partitions.recovered {
            self.recycled.remove(&(change.table, *recovered));
        }
    }
}

#[async_trait]
impl Records for SimCatalog {
    fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.rows.lock().tables.get(&id).cloned()
    }

    fn last_change(&self, table: TableId) -> SourceId {
        self.rows.lock().last_changes.get(&table).copied().unwrap_or_default()
    }

    async fn keep(&self, change: &Change) -> Result<(), String> {
        match change.effect {
            // It is a job, which is recorded since its start.
            Effect::Columns(_) => Ok(()),
            Effect::Partitions(_) => {
                self.step("keep change", |rows| drop(rows.changes.insert(change.id, Record::of(change))))
            }
        }
    }

    async fn finish(&self, finished: &Finished) -> Result<(), String> {
        if self.happens(&self.power_off_one_in) {
            self.disk.power_off_at(self.disk.operations());
        }
        let (before, _) = &finished.table;
        let is_new = self.last_change(before.id) < finished.change.id;
        if is_new && self.table(before.id).is_some_and(|now| now != *before) {
            return Err(format!("table {} was changed meanwhile", before.id));
        }
        self.step("finish change", |rows| rows.finish(finished))
    }

    async fn forget(&self, change: &Change) -> Result<(), String> {
        match change.effect {
            Effect::Columns(_) => Ok(()),
            Effect::Partitions(_) => self.step("forget change", |rows| drop(rows.changes.remove(&change.id))),
        }
    }
}

#[async_trait]
impl Definitions for SimCatalog {
    fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.rows.lock().tables.get(&id).cloned()
    }

    async fn replace(&self, before: &TableDef, after: TableDef) -> Result<Arc<TableDef>, String> {
        if self.rows.lock().tables.get(&before.id).is_none_or(|now| **now != *before) {
            return Err(format!("table {} was changed meanwhile", before.id));
        }
        let after = Arc::new(after);
        self.step("replace table", |rows| drop(rows.tables.insert(after.id, Arc::clone(&after))))?;
        Ok(after)
    }
}

#[async_trait]
impl LabelStore for SimCatalog {
    async fn record(&self, finished: &[TransactionInfo], positions: &[SourcePosition]) -> Result<(), String> {
        self.change("record labels", |rows| {
            rows.labels.extend(finished.iter().map(|info| (info.txn, info.clone())));
            rows.positions.extend(positions.iter().map(|known| (known.source, known.clone())));
        })
    }

    async fn positions(&self) -> Result<Vec<SourcePosition>, String> {
        Ok(self.rows.lock().positions.values().cloned().collect())
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        Ok(self.rows.lock().labels.values().filter(|info| info.label_is_kept).cloned().collect())
    }

    async fn freed(&self) -> Result<Vec<TxnId>, String> {
        let rows = self.rows.lock();
        Ok(rows.labels.values().filter(|info| !info.label_is_kept).map(|info| info.txn).collect())
    }

    async fn purge(&self, before_ms: i64) -> Result<(), String> {
        self.change("purge labels", |rows| {
            rows.labels.retain(|_, info| info.finished_at_ms.is_none_or(|at| at >= before_ms));
        })
    }
}

#[async_trait]
impl IncrementStore for SimCatalog {
    async fn reserve(&self, table: TableId, start: i64, count: u64) -> Result<i64, IncrementError> {
        let next = self.rows.lock().increments.get(&table).copied();
        let (first, end) = following(next, start, count)?;
        let reserved = self.change("reserve values", |rows| {
            rows.increments.insert(table, end);
        });
        reserved.map_err(IncrementError::Store)?;
        Ok(first)
    }
}

impl SchemaHistory for SimCatalog {
    fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>> {
        self.rows.lock().schemas.get(&(table, version)).cloned()
    }
}
