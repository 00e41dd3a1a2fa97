//! The kinds of changes, and their execution by tables.

use crate::run::{Step, Subject};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::Mutex;
use tributary_ingest::{Ingest, PartitionSwitch, Recycling, Switched};
use tributary_table::{KeptFile, SchemaChange, Table, TableError};
use tributary_types::{PartitionId, Partitions, TableDef};

/// Other columns, keys or types: a heavy schema change whose files are converted.
pub struct Columns<'a> {
    pub ingest: &'a Ingest,
    pub table: &'a Arc<Table>,
    pub change: Mutex<&'a mut SchemaChange>,
}

#[async_trait]
impl Subject for Columns<'_> {
    fn def(&self) -> Arc<TableDef> {
        self.table.def()
    }

    async fn switch(&self, step: &Step<'_>) -> Result<Switched, TableError> {
        let mut change = self.change.lock().await;
        self.ingest.switch_schema(self.table, &mut change, step.halt(), |after| step.tell(after)).await
    }

    async fn pause(&self) {
        self.ingest.pause().await;
    }
}

/// Partitions that replace others with the rows of a companion table.
pub struct Replaced<'a> {
    pub ingest: &'a Ingest,
    pub table: &'a Table,
    pub beside: &'a Table,
    pub switch: &'a PartitionSwitch,
}

#[async_trait]
impl Subject for Replaced<'_> {
    fn def(&self) -> Arc<TableDef> {
        self.table.def()
    }

    fn beside(&self) -> Option<Arc<TableDef>> {
        Some(self.beside.def())
    }

    async fn switch(&self, step: &Step<'_>) -> Result<Switched, TableError> {
        let Self { ingest, table, beside, switch } = *self;
        ingest.replace_partitions(table, beside, switch, step.halt(), |after| step.tell(after)).await
    }

    async fn follow(&self, beside: Arc<TableDef>) -> Result<(), String> {
        match self.beside.alter(beside).await {
            // It goes with its table.
            Ok(()) | Err(TableError::Closed { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn pause(&self) {
        self.ingest.pause().await;
    }
}

/// Partitions that are dropped and retained, or one that is restored.
pub struct Recycled<'a> {
    pub ingest: &'a Ingest,
    pub table: &'a Table,
    pub id: u64,
    /// All partitions of the table after it.
    pub partitions: &'a Arc<Partitions>,
    /// The partition that is restored, and its files.
    pub recovered: Option<(PartitionId, &'a [KeptFile])>,
}

#[async_trait]
impl Subject for Recycled<'_> {
    fn def(&self) -> Arc<TableDef> {
        self.table.def()
    }

    async fn switch(&self, step: &Step<'_>) -> Result<Switched, TableError> {
        let Self { id, partitions, recovered, .. } = *self;
        let recycling = Recycling { id, partitions, leaving: step.leaving(), recovered };
        self.ingest.recycle_partitions(self.table, recycling, step.halt(), |after| step.tell(after)).await
    }

    async fn pause(&self) {
        self.ingest.pause().await;
    }
}
