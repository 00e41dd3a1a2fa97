//! Values of AUTO_INCREMENT columns for rows without one: the catalog, which reserves them, and the rows that get them.
//!
//! They are inserted before any further step, for every kind of load in the same place: where its sink takes the rows.

use crate::ddl::partitions::temporary::table_of_rows;
use crate::load::Loads;
use crate::load::sink::SinkError;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tributary_catalog::Catalog;
use tributary_decode::{Block, Unfilled};
use tributary_ingest::{IncrementError, IncrementStore};
use tributary_table::Table;
use tributary_types::{DataType, TableId, TableSchema};

pub(crate) struct CatalogIncrements(pub Arc<Catalog>);

impl fmt::Debug for CatalogIncrements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CatalogIncrements")
    }
}

#[async_trait]
impl IncrementStore for CatalogIncrements {
    async fn reserve(&self, table: TableId, start: i64, count: u64) -> Result<i64, IncrementError> {
        match self.0.reserve_increments(table, start, count).await {
            Ok(Some(first)) => Ok(first),
            Ok(None) => Err(IncrementError::Exhausted { wanted: count }),
            Err(error) => Err(IncrementError::Store(error.to_string())),
        }
    }
}

/// The column of a table whose values the server gives.
#[derive(Debug)]
pub(crate) struct Increment {
    /// [`TableSchema::as_decoded`].
    decoded: TableSchema,
    column: usize,
    start: i64,
    /// The table that counts: temporary partitions continue the sequence of their table.
    counts: TableId,
    /// The first value that was given since this was last asked for.
    pub first: Option<i64>,
}

impl Increment {
    /// The column, if the table has one.
    pub fn of(table: &Table, schema: &TableSchema) -> Option<Box<Self>> {
        let start = |column: usize| Some((column, schema.columns[column].auto_increment?));
        let (column, start) = (0..schema.columns.len()).find_map(start)?;
        let counts = table.with_def(table_of_rows);
        Some(Box::new(Self { decoded: schema.as_decoded()?, column, start, counts, first: None }))
    }

    /// Fills in the missing values of rows.
    ///
    /// # Errors
    /// The values are exhausted, or can't be reserved.
    pub async fn fill(
        &mut self,
        loads: &Loads,
        schema: &Arc<TableSchema>,
        blocks: Vec<Block>,
    ) -> Result<Vec<Block>, SinkError> {
        let Some(unfilled) = Unfilled::of(&self.decoded, &blocks, self.column)? else { return Ok(blocks) };
        let wanted = unfilled.count();
        let first = loads.increments.take(self.counts, self.start, wanted).await?;
        if schema.columns[self.column].data_type == DataType::Int {
            let most = i64::from(i32::MAX);
            let last = i64::try_from(wanted).ok().and_then(|count| first.checked_add(count - 1));
            if last.is_none_or(|last| last > most) {
                return Err(IncrementError::TooNarrow { wanted, most }.into());
            }
        }
        self.first.get_or_insert(first);
        Ok(unfilled.fill(schema, first)?)
    }
}
