//! Changes of definitions: databases, tables, users, views, partitions, and the recycle bin.
//!
//! Invariant: only this folder takes turns of tables ([`change::turns`]) and writes definitions to the catalog.
//!
//! Not here: rows on their way in, sessions, protocols.

pub(crate) mod bin;
pub(crate) mod change;
pub(crate) mod partitions;
mod renames;
pub(crate) mod tables;
pub(crate) mod unfinished;
mod views;

use crate::access::gate::Gate;
use crate::access::names::Names;
use crate::background::JobParts;
use crate::generated::GeneratedColumns;
use crate::node::options::EngineOptions;
use crate::variables::Variables;
use change::schema::SchemaChanges;
use change::turns::Turns;
use parking_lot::RwLock;
use partitions::dynamic::DynamicTables;
use std::sync::Arc;
use tributary_catalog::Catalog;
use tributary_ingest::{AutoIncrements, Ingest};
use tributary_table::{Table, TableStore};
use tributary_types::host::unix_ms;
use tributary_types::{SqlError, TableId};

/// The parts that changes use, and the changes under way.
pub(crate) struct Ddl {
    catalog: Arc<Catalog>,
    store: Arc<TableStore>,
    ingest: Arc<Ingest>,
    names: Arc<Names>,
    gate: Arc<Gate>,
    globals: Arc<RwLock<Variables>>,
    options: Arc<EngineOptions>,
    /// This node's id.
    node: String,
    /// Values of AUTO_INCREMENT columns.
    increments: Arc<AutoIncrements>,
    generated: Arc<GeneratedColumns>,
    schema_changes: SchemaChanges,
    /// How tables with dynamic partitions were when they were last looked at.
    dynamic_tables: DynamicTables,
    /// Held while the names and the catalog change together.
    changing: tokio::sync::Mutex<()>,
    pub(crate) turns: Turns,
}

/// The parts of [`Ddl`].
pub(crate) struct DdlParts {
    pub catalog: Arc<Catalog>,
    pub store: Arc<TableStore>,
    pub ingest: Arc<Ingest>,
    pub names: Arc<Names>,
    pub gate: Arc<Gate>,
    pub globals: Arc<RwLock<Variables>>,
    pub options: Arc<EngineOptions>,
    pub background: JobParts,
    pub increments: Arc<AutoIncrements>,
    pub generated: Arc<GeneratedColumns>,
}

impl Ddl {
    pub fn store(&self) -> &TableStore {
        &self.store
    }

    pub fn new(parts: DdlParts) -> Self {
        let DdlParts {
            catalog,
            store,
            ingest,
            names,
            gate,
            globals,
            options,
            background,
            increments,
            generated,
        } = parts;
        Self {
            schema_changes: SchemaChanges::new(background.clone()),
            catalog,
            store,
            ingest,
            names,
            gate,
            globals,
            options,
            node: background.node,
            increments,
            generated,
            dynamic_tables: DynamicTables::default(),
            changing: tokio::sync::Mutex::new(()),
            turns: Turns::default(),
        }
    }

    fn unix_ms(&self) -> i64 {
        unix_ms()
    }

    /// The server's time zone.
    fn time_zone(&self) -> String {
        self.globals.read().values().time_zone.name.clone()
    }

    fn table_called(&self, db: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        self.gate.table_called(db, name)
    }

    fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.gate.table_by_id(id)
    }

    /// Forgets jobs that ended before the time (ms since 1970).
    pub(crate) async fn purge_jobs(&self, before_ms: i64) {
        self.schema_changes.purge(before_ms).await;
    }

    /// Stops running work; the next start resumes it.
    pub(crate) async fn pause(&self) {
        self.schema_changes.pause().await;
    }
}
