//! `information_schema`: tables about tables, made when a query names them.

mod catalog;
mod chosen;
mod columns;
mod mysql;
mod privileges;
mod provider;
mod views;

use crate::model::Grid;
use crate::model::SessionView;
use crate::namespace::Namespace;
use crate::types::metadata;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, TableProvider};
use provider::FactsTable;
use std::sync::Arc;
use tributary_types::system::{INFORMATION_SCHEMA, PERFORMANCE_SCHEMA};

pub(crate) use catalog::{default_text, is_readable, shows_keys};

/// The tables of a database of the server's and their columns, by its name in lower case.
fn tables_of(database: &str) -> &'static [(&'static str, &'static str)] {
    match database {
        INFORMATION_SCHEMA => &catalog::TABLES,
        "mysql" => &mysql::MYSQL,
        PERFORMANCE_SCHEMA => &mysql::PERFORMANCE,
        _ => &[],
    }
}

/// The names of all tables of a database of the server's, in order.
#[must_use]
pub fn names(database: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = tables_of(database).iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

/// The table of that name in any case; its rows are made when it is read.
pub fn table(
    database: &str,
    name: &str,
    namespace: &Arc<dyn Namespace>,
    session: &SessionView,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let database = database.to_lowercase();
    let Some(empty) = empty(&database, name) else { return Ok(None) };
    let schema = with_lower_names(&empty.batch()?)?.schema();
    let (namespace, session) = (Arc::clone(namespace), session.clone());
    Ok(Some(Arc::new(FactsTable { database, name: name.to_owned(), schema, namespace, session })))
}

/// The rows as a table that a query can read.
///
/// # Errors
/// Never for rows of the columns' types.
pub fn table_of(rows: &Grid) -> Result<Arc<dyn TableProvider>> {
    let batch = with_lower_names(&rows.batch()?)?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}

/// The batch with the names of columns as tables have them.
fn with_lower_names(batch: &RecordBatch) -> Result<RecordBatch> {
    let fields = batch
        .schema()
        .fields()
        .iter()
        .map(|field| {
            let lower = field.name().to_lowercase();
            let metadata = match is_of_name(&lower) {
                true => metadata::spelled(field.name()),
                false => metadata::caseless(field.name()),
            };
            Field::new(lower, field.data_type().clone(), true).with_metadata(metadata)
        })
        .collect::<Vec<_>>();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())?)
}

/// Whether a column has names of databases or tables, in which cases differ; other texts are compared without case, as in MySQL.
fn is_of_name(column: &str) -> bool {
    ["schema", "schema_name", "db_name", "table_name", "event_object_table"]
        .iter()
        .any(|ending| column.ends_with(ending))
}

/// The rows of a table here.
#[must_use]
pub fn grid(database: &str, name: &str, namespace: &dyn Namespace, session: &SessionView) -> Option<Grid> {
    let mut grid = empty(database, name)?;
    match database {
        INFORMATION_SCHEMA => catalog::fill(&name.to_lowercase(), &mut grid, namespace, session),
        _ => mysql::fill(database, &name.to_lowercase(), &mut grid, namespace, session),
    }
    Some(grid)
}

/// A table here without its rows.
fn empty(database: &str, name: &str) -> Option<Grid> {
    let lower = name.to_lowercase();
    let (_, columns) = tables_of(database).iter().find(|(known, _)| *known == lower)?;
    Some(Grid::new(&columns.split_whitespace().collect::<Vec<_>>()))
}

/// Columns of a table here and their types, as DESC shows them.
#[must_use]
pub fn columns_of(database: &str, table: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let lower = table.to_lowercase();
    let (_, columns) = tables_of(&database.to_lowercase()).iter().find(|(known, _)| *known == lower)?;
    let typed = |column: &'static str| match column.strip_suffix('#') {
        Some(name) => (name, "bigint"),
        None => (column, "varchar(1024)"),
    };
    Some(columns.split_whitespace().map(typed).collect())
}
