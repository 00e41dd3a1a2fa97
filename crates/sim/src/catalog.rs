//! A stand-in for the catalog: existing tables, their schemas, retained labels and progress. Every change is atomic and durable,
//! like a transaction of the real one (SQLite), and the power may go off with it.

use crate::recycle::{KeptPartition, Record};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_ingest::{
    IncrementError, IncrementStore, LabelStore, SchemaHistory, SourcePosition, TransactionInfo, following,
};
use tributary_types::{
    PartitionId, Partitions, SchemaVersion, SourceId, TableDef, TableId, TableSchema, TxnId,
};
use tributary_wal::MemDisk;

/// The catalog. Clones are the same one; it lives as long as the disk.
#[derive(Clone, Debug)]
pub struct SimCatalog {
    disk: MemDisk,
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default)]
struct Rows {
    tables: BTreeMap<TableId, Arc<TableDef>>,
    schemas: BTreeMap<(TableId, SchemaVersion), Arc<TableSchema>>,
    garbage: BTreeMap<TableId, String>,
    labels: BTreeMap<TxnId, TransactionInfo>,
    positions: BTreeMap<SourceId, SourcePosition>,
    next_table: u64,
    /// Heavy schema changes that have not ended, and what they make of their tables.
    changes: BTreeMap<u64, Arc<TableDef>>,
    next_change: u64,
    /// Replacements of partitions that have not ended, and the partitions that their tables get.
    replacements: BTreeMap<u64, (TableId, Arc<Partitions>)>,
    /// Drops and recoveries of partitions that have not ended.
    recyclings: BTreeMap<u64, Record>,
    /// Partitions that were dropped and are kept.
    recycled: BTreeMap<(TableId, PartitionId), KeptPartition>,
    /// The first values of AUTO_INCREMENT columns that were never reserved.
    increments: BTreeMap<TableId, i64>,
}

impl SimCatalog {
    #[must_use]
    pub fn new(disk: MemDisk) -> Self {
        Self { disk, rows: Arc::default() }
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

    /// Keeps a heavy schema change before it begins. Its number is never used again.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn put_change(&self, to: &Arc<TableDef>) -> Result<u64, String> {
        let id = {
            let mut rows = self.rows.lock();
            rows.next_change += 1;
            rows.next_change
        };
        self.change("put change", |rows| drop(rows.changes.insert(id, Arc::clone(to))))?;
        Ok(id)
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn end_change(&self, id: u64) -> Result<(), String> {
        self.change("end change", |rows| drop(rows.changes.remove(&id)))
    }

    /// Whether a change of the table has not ended.
    #[must_use]
    pub fn is_changing(&self, table: TableId) -> bool {
        self.rows.lock().changes.values().any(|to| to.id == table)
    }

    /// The changes that have not ended.
    #[must_use]
    pub fn changes(&self) -> Vec<(u64, Arc<TableDef>)> {
        self.rows.lock().changes.iter().map(|(id, to)| (*id, Arc::clone(to))).collect()
    }

    /// Keeps a replacement of partitions before it begins. Its number is that of no change.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn put_replacement(&self, table: TableId, partitions: &Arc<Partitions>) -> Result<u64, String> {
        let id = {
            let mut rows = self.rows.lock();
            rows.next_change += 1;
            rows.next_change
        };
        self.change("put replacement", |rows| {
            rows.replacements.insert(id, (table, Arc::clone(partitions)));
        })?;
        Ok(id)
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn end_replacement(&self, id: u64) -> Result<(), String> {
        self.change("end replacement", |rows| drop(rows.replacements.remove(&id)))
    }

    /// The replacements that have not ended.
    #[must_use]
    pub fn replacements(&self) -> Vec<(u64, TableId, Arc<Partitions>)> {
        let rows = self.rows.lock();
        rows.replacements.iter().map(|(id, (table, to))| (*id, *table, Arc::clone(to))).collect()
    }

    /// The number of a change that is no other's.
    #[must_use]
    pub fn next_change(&self) -> u64 {
        let mut rows = self.rows.lock();
        rows.next_change += 1;
        rows.next_change
    }

    /// Keeps a drop or recovery of a partition before the Delta log has it.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn put_recycling(&self, id: u64, record: &Record) -> Result<(), String> {
        self.change("put recycling", |rows| drop(rows.recyclings.insert(id, record.clone())))
    }

    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn end_recycling(&self, id: u64) -> Result<(), String> {
        self.change("end recycling", |rows| drop(rows.recyclings.remove(&id)))
    }

    /// The drops and recoveries that have not ended.
    #[must_use]
    pub fn recyclings(&self) -> Vec<(u64, Record)> {
        self.rows.lock().recyclings.iter().map(|(id, record)| (*id, record.clone())).collect()
    }

    /// The definition after a drop or recovery of a partition, with what is kept.
    ///
    /// # Errors
    /// Unless the power went off with it, nothing has changed.
    pub fn recycle(&self, def: &Arc<TableDef>, record: &Record) -> Result<(), String> {
        self.change("recycle", |rows| {
            rows.tables.insert(def.id, Arc::clone(def));
            if let Some(dropped) = &record.dropped {
                rows.recycled.insert((def.id, dropped.partition.id), dropped.clone());
            }
            if let Some(recovered) = record.recovered {
                rows.recycled.remove(&(def.id, recovered));
            }
        })
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
