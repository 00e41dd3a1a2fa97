//! Rows that a start has read from the log.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_table::Table;
use tributary_types::{TableId, Version};

/// The versions whose rows a start has read from the log, by table, until they are in the tables' files. The rows were visible before
/// the start, and nobody knows since when; so nothing is told meanwhile of how far the files are.
#[derive(Debug, Default)]
pub(crate) struct Replayed(Mutex<Vec<(TableId, Version)>>);

impl Replayed {
    /// Those of tables that a start has just read.
    pub fn of(tables: &[Arc<Table>]) -> Self {
        let waiting = tables.iter().filter(|table| table.unflushed_for().is_some());
        Self(Mutex::new(waiting.map(|table| (table.id(), table.snapshot().version)).collect()))
    }

    /// Whether all of them are in files, or their tables are gone.
    pub fn are_in_files(&self, tables: impl FnOnce() -> Vec<Arc<Table>>) -> bool {
        let mut waiting = self.0.lock();
        if waiting.is_empty() {
            return true;
        }
        let tables: HashMap<TableId, Arc<Table>> =
            tables().into_iter().map(|table| (table.id(), table)).collect();
        waiting.retain(|(id, version)| {
            let table = tables.get(id);
            table.is_some_and(|table| table.persisted_version() < *version && table.unflushed_for().is_some())
        });
        waiting.is_empty()
    }
}
