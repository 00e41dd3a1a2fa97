//! The names that a condition leaves of all.

use crate::model::{Cell, SessionView};
use crate::namespace::{FileTable, JobKind, LiveTable, Namespace, ProcessRow, SchemaChangeRow, ServerFacts};
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_sql::FileCall;
use tributary_table::Table;
use tributary_types::privilege::Grants;
use tributary_types::{ColumnChange, SqlError, TableDef, TableId, ViewDef};

/// A namespace of which some databases, or tables of some names, are listed.
pub(super) struct Chosen {
    all: Arc<dyn Namespace>,
    databases: Option<BTreeSet<String>>,
    tables: Option<BTreeSet<String>>,
}

impl Chosen {
    pub fn of(all: Arc<dyn Namespace>) -> Self {
        Self { all, databases: None, tables: None }
    }

    pub fn only_databases(&mut self, names: BTreeSet<String>) {
        self.databases = Some(common(self.databases.take(), names));
    }

    pub fn only_tables(&mut self, names: BTreeSet<String>) {
        self.tables = Some(common(self.tables.take(), names));
    }
}

fn common(before: Option<BTreeSet<String>>, names: BTreeSet<String>) -> BTreeSet<String> {
    match before {
        Some(before) => before.intersection(&names).cloned().collect(),
        None => names,
    }
}

impl Namespace for Chosen {
    fn databases(&self) -> Vec<String> {
        let mut all = self.all.databases();
        if let Some(chosen) = &self.databases {
            all.retain(|name| chosen.contains(name));
        }
        all
    }

    fn tables(&self, database: &str) -> Vec<Arc<Table>> {
        match &self.tables {
            Some(names) => self.all.tables_called(database, names),
            None => self.all.tables(database),
        }
    }

    fn table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        self.all.table(database, name)
    }

    fn readable_columns(&self, database: &str, name: &str) -> Option<Arc<BTreeSet<String>>> {
        self.all.readable_columns(database, name)
    }

    fn grants(&self) -> Vec<(String, Grants)> {
        self.all.grants()
    }

    fn described_table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        self.all.described_table(database, name)
    }

    fn described_view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        self.all.described_view(database, name)
    }

    fn views(&self, database: &str) -> Vec<Arc<ViewDef>> {
        let mut all = self.all.views(database);
        if let Some(names) = &self.tables {
            all.retain(|view| names.contains(&view.name));
        }
        all
    }

    fn view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        self.all.view(database, name)
    }

    fn table_of_view(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        self.all.table_of_view(database, name)
    }

    fn beside(&self, def: &TableDef) -> Option<Arc<Table>> {
        self.all.beside(def)
    }

    fn view_of_view(&self, database: &str, name: &str) -> Option<Arc<ViewDef>> {
        self.all.view_of_view(database, name)
    }

    fn column_changes(&self, table: TableId) -> Vec<ColumnChange> {
        self.all.column_changes(table)
    }

    fn schema_changes(&self, database: &str) -> Vec<SchemaChangeRow> {
        self.all.schema_changes(database)
    }

    fn files<'a>(
        &'a self,
        call: &'a FileCall,
        session: &'a SessionView,
    ) -> BoxFuture<'a, Result<Arc<dyn FileTable>, SqlError>> {
        self.all.files(call, session)
    }

    fn processes(&self) -> Vec<ProcessRow> {
        self.all.processes()
    }

    fn jobs(&self, kind: JobKind) -> Vec<Vec<Cell>> {
        self.all.jobs(kind)
    }

    fn live(&self, table: LiveTable) -> Vec<Vec<Cell>> {
        self.all.live(table)
    }

    fn server_facts(&self) -> ServerFacts {
        self.all.server_facts()
    }

    fn global_variables(&self) -> Vec<(String, String)> {
        self.all.global_variables()
    }
}
