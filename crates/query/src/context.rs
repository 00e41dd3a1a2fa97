//! One statement while it is planned: the names that the SQL planner looks up, views, and the plan.
//!
//! Not here: the meaning of names and operators (`meaning`), and running a plan.

mod plan;
mod views;

use crate::error::{external, no_database, no_table, plan_error, table_error};
use crate::facts::info_schema;
use crate::facts::show::nodes;
use crate::functions;
use crate::meaning::set_operations::SetOperations;
use crate::model::SessionView;
use crate::namespace::Namespace;
use crate::scan::numbers;
use crate::scan::provider::SnapshotProvider;
use crate::scan::table_functions::TableFunctions;
use crate::types::metadata::{declared_name, spelled};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Column, DataFusionError, Result, TableReference, plan_err};
use datafusion::datasource::{TableProvider, ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
};
pub use plan::names_hidden;
pub use views::Within;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_sql::names::{tablets, without_partitions};
use tributary_table::{Snapshot, Table};
use tributary_types::system::is_system_database;
use tributary_types::{ColumnDef, ErrorCode, HiddenColumn, PartitionNames, SqlError, TableDef, TableId};

/// Snapshots by their tables.
pub type SettledSnapshots = HashMap<TableId, Arc<Snapshot>>;

/// A statement's view of names. Each table is looked up once: a statement reads one snapshot of it.
pub struct StatementContext<'a> {
    pub state: &'a SessionState,
    pub namespace: &'a Arc<dyn Namespace>,
    pub session: &'a SessionView,
    pub store_url: ObjectStoreUrl,
    /// The statement names a hidden column, or the session shows them.
    pub with_hidden: bool,
    /// Rows that delete are shown as long as they are in memory.
    pub with_deletions: bool,
    pub functions: &'a TableFunctions,
    /// Snapshots of tables that were settled, or asked of the server that writes, for this statement.
    pub settled: &'a SettledSnapshots,
    /// Shared with the contexts of the views that the statement reads.
    pub read: Arc<Mutex<ReadTables>>,
    pub tables: Mutex<HashMap<(String, String), Arc<dyn TableSource>>>,
    pub sets: Arc<SetOperations>,
    /// `sets` and lateral views, in the form that the planner requires.
    pub relation_planners: [Arc<dyn RelationPlanner>; 2],
    pub within: Within,
    /// A view that may not be read: the one being created from the query.
    pub forbidden: Option<(String, String)>,
}

/// The tables and views that a statement reads, wherever they are named.
#[derive(Default)]
pub struct ReadTables {
    snapshots: SettledSnapshots,
    /// Tables that the plan reads and that have to be settled, or asked of the server that writes, before it runs.
    pub unsettled: Vec<Arc<Table>>,
}

impl StatementContext<'_> {
    fn source(&self, database: &str, name: &str) -> Result<Arc<dyn TableSource>> {
        let key = (database.to_owned(), name.to_owned());
        let mut tables = self.tables.lock();
        if let Some(source) = tables.get(&key) {
            return Ok(Arc::clone(source));
        }
        let known = (key.0.clone(), without_partitions(name).0.to_owned());
        let provider = self.as_it_was(&known, self.provider(database, name)?).map_err(external)?;
        let provider = self.readable_part(&known, provider).map_err(external)?;
        let source = provider_as_source(provider);
        tables.insert(key, Arc::clone(&source));
        Ok(source)
    }

    fn provider(&self, database: &str, name: &str) -> Result<Arc<dyn TableProvider>> {
        let (name, partitions) = without_partitions(name);
        if is_system_database(database) {
            not_partitioned(&partitions)?;
            let table = info_schema::table(database, name, self.namespace, self.session)?;
            return table.ok_or_else(|| external(no_table(database, name)));
        }
        let found = match self.temporary(database, name) {
            Some(own) => Some(own),
            None if self.within.is_view() => self.namespace.table_of_view(database, name),
            None => self.namespace.table(database, name).map_err(external)?,
        };
        let Some(table) = found else {
            let view = match self.within.is_view() {
                true => self.namespace.view_of_view(database, name),
                false => self.namespace.view(database, name).map_err(external)?,
            };
            let view = view.ok_or_else(|| external(self.missing(database, name)))?;
            not_partitioned(&partitions)?;
            return self.view(&view).map_err(external);
        };
        let table = self.session.own(table).map_err(external)?;
        let is_current = self.settled.contains_key(&table.id());
        if !is_current && !table.asks_writer() {
            table.check_staleness(self.session.fresh).map_err(|error| external(table_error(error)))?;
        }
        let (table, places) = match &partitions {
            named if let Some(numbers) = tablets(named) => {
                check_tablets(&table.def(), numbers).map_err(external)?;
                (table, None)
            }
            PartitionNames::Temporary(_) => {
                let def = table.def();
                let beside = self.namespace.beside(&def).map(|beside| self.session.own(beside));
                let beside = beside.transpose().map_err(external)?;
                let of_beside = beside.as_ref().map(|beside| self.snapshot_of(beside));
                let of_beside = of_beside.as_ref().map(|snapshot| &*snapshot.def);
                let places = partitions.resolve_temporary(&def, of_beside).map_err(external)?;
                (beside.unwrap_or(table), Some(places))
            }
            _ => {
                let places = partitions.resolve(&self.snapshot_of(&table).def).map_err(external)?;
                (table, places)
            }
        };
        let snapshot = self.snapshot_of(&table);
        let read = match places {
            Some(places) => {
                let read = snapshot.in_partitions(&places);
                Arc::new(read.map_err(|error| DataFusionError::External(Box::new(error)))?)
            }
            None => Arc::clone(&snapshot),
        };
        let provider = SnapshotProvider::new(&table, read, self.with_hidden, self.store_url.clone())?;
        let provider = provider.with_deletions(self.with_deletions);
        let is_current = self.settled.contains_key(&table.id());
        if !is_current && (table.asks_writer() || !snapshot.is_settled()) {
            self.read.lock().unsettled.push(table);
        }
        match mapped_sequence(&snapshot.def).filter(|_| self.with_hidden) {
            Some(column) => with_sequence(&snapshot.def, Arc::new(provider), column),
            None => Ok(Arc::new(provider)),
        }
    }

    /// The session's temporary table of that name. A view reads none.
    fn temporary(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        self.session.temporary(database, name).filter(|_| !self.within.is_view())
    }

    /// The one snapshot of the table that the statement reads, also through views.
    fn snapshot_of(&self, table: &Table) -> Arc<Snapshot> {
        if let Some(settled) = self.settled.get(&table.id()) {
            return Arc::clone(settled);
        }
        let mut read = self.read.lock();
        Arc::clone(read.snapshots.entry(table.id()).or_insert_with(|| table.snapshot()))
    }

    /// The columns of a table, as they were declared; for files, by [`tributary_sql::FILES_FUNCTION`] and their place.
    pub fn columns(&self, database: &str, name: &str) -> std::result::Result<Vec<String>, SqlError> {
        let schema = match self.functions.files(database, name) {
            Some(files) => files.schema(),
            None => self.source(database, name).map_err(|error| plan_error(&error))?.schema(),
        };
        let names = schema.fields().iter().map(|field| declared_name(field).unwrap_or_else(|| field.name()));
        Ok(names.map(str::to_owned).collect())
    }

    fn missing(&self, database: &str, name: &str) -> SqlError {
        let exists =
            is_system_database(database) || self.namespace.databases().iter().any(|known| known == database);
        if exists { no_table(database, name) } else { no_database(database) }
    }
}

/// The column that is the sequence of a table whose `function_column.sequence_col` names it.
fn mapped_sequence(def: &TableDef) -> Option<&ColumnDef> {
    let column = &def.schema.columns[def.schema.sequence_index()?];
    column.hidden.is_none().then_some(column)
}

/// The table with the hidden column that Doris has for its sequence.
fn with_sequence(
    def: &TableDef,
    provider: Arc<dyn TableProvider>,
    column: &ColumnDef,
) -> Result<Arc<dyn TableProvider>> {
    let table = TableReference::partial(def.db.as_str(), def.name.as_str());
    let of = |name: &str| Expr::Column(Column::new(Some(table.clone()), name));
    let mut columns: Vec<Expr> =
        provider.schema().fields().iter().map(|field| of(field.name().as_str())).collect();
    let name = HiddenColumn::Sequence.name();
    let metadata = Some(spelled(name).into());
    columns.push(of(&column.name.to_lowercase()).alias_with_metadata(name.to_lowercase(), metadata));
    let plan = LogicalPlanBuilder::scan(table.clone(), provider_as_source(provider), None)?;
    Ok(Arc::new(ViewTable::new(plan.project(columns)?.build()?, None)))
}

/// Checks that the numbers of tablets are that of the only one that a table has, which is all of it.
fn check_tablets(def: &TableDef, numbers: &[String]) -> std::result::Result<(), SqlError> {
    let own = def.id.to_string();
    match numbers.iter().find(|number| **number != own) {
        None => Ok(()),
        Some(other) => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("tablet {other} is none of table {}: its only one is {own}", def.name),
        )),
    }
}

/// The error for partitions of an object without partitions.
fn not_partitioned(partitions: &PartitionNames) -> Result<()> {
    if partitions.is_any() {
        return Ok(());
    }
    let text = "PARTITION () clause on non partitioned table";
    Err(external(SqlError::new(ErrorCode::NotPartitioned, text)))
}

impl ContextProvider for StatementContext<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        match name {
            TableReference::Bare { table } => match &self.session.database {
                Some(database) => self.source(database, &table),
                None => Err(external(SqlError::new(ErrorCode::NoDbSelected, "No database selected"))),
            },
            TableReference::Partial { schema, table } | TableReference::Full { schema, table, .. } => {
                self.source(&schema, &table)
            }
        }
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        if let Some(provider) = self.functions.get(name, &args) {
            return Ok(provider_as_source(Arc::clone(provider)));
        }
        if let Some(numbers) = numbers::called(name, &args)? {
            return Ok(provider_as_source(numbers));
        }
        match nodes::called(name, &**self.namespace).map_err(external)? {
            Some(rows) => Ok(provider_as_source(info_schema::table_of(&rows)?)),
            None => plan_err!("Can not find table function '{name}'"),
        }
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: arrow::datatypes::SchemaRef,
    ) -> Result<Arc<dyn TableSource>> {
        let table = datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        functions::scalar(name, self.state.scalar_functions())
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        functions::aggregate(name, self.state.aggregate_functions())
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }
}
