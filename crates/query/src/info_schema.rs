//! `information_schema`: tables about tables, made when a query names them.

mod catalog;
mod columns;
mod views;

use crate::labels;
use crate::model::SessionView;
use crate::namespace::Namespace;
use crate::rows::Grid;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::{MemTable, TableProvider};
use std::sync::Arc;

pub(crate) use catalog::default_text;

/// The names of all tables here, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = catalog::TABLES.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

/// The table of that name in any case, with its rows of now.
pub fn table(
    name: &str,
    namespace: &dyn Namespace,
    session: &SessionView,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(grid) = grid(name, namespace, session) else { return Ok(None) };
    let batch = grid.batch()?;
    let fields = batch
        .schema()
        .fields()
        .iter()
        .map(|field| {
            Field::new(field.name().to_lowercase(), field.data_type().clone(), true)
                .with_metadata(labels::spelled(field.name()))
        })
        .collect::<Vec<_>>();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?;
    Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}

/// The rows of a table here.
#[must_use]
pub fn grid(name: &str, namespace: &dyn Namespace, session: &SessionView) -> Option<Grid> {
    let lower = name.to_lowercase();
    let (_, columns) = catalog::TABLES.iter().find(|(known, _)| *known == lower)?;
    let names: Vec<&str> = columns.split_whitespace().collect();
    let mut grid = Grid::new(&names);
    catalog::fill(&lower, &mut grid, namespace, session);
    Some(grid)
}

/// Columns of a table here and their types, as DESC shows them.
#[must_use]
pub fn columns_of(table: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let lower = table.to_lowercase();
    let (_, columns) = catalog::TABLES.iter().find(|(known, _)| *known == lower)?;
    let typed = |column: &'static str| match column.strip_suffix('#') {
        Some(name) => (name, "bigint"),
        None => (column, "varchar(1024)"),
    };
    Some(columns.split_whitespace().map(typed).collect())
}
