//! Partitions that loads create for their rows, in tables with AUTO PARTITION.
//!
//! They are created before any of the rows is processed further, and remain if the load fails.

use crate::ddl::Ddl;
use arrow::array::RecordBatch;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_decode::{Block, BlockError, blocks_to_batches};
use tributary_table::Table;
use tributary_types::{ColumnDef, Partitioning, Partitions, TableDef, TableSchema};

/// Limit on the partitions of a table in which loads create some; Doris's default of `max_auto_partition_num`.
const PARTITIONS_MAX: usize = 2000;

/// Why partitions could not be made for rows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AutomaticError {
    #[error("{0}")]
    Block(#[from] BlockError),
    #[error("{0}")]
    Refused(String),
}

impl Ddl {
    /// Makes the partitions that rows of a load need and that the table does not have.
    ///
    /// # Errors
    /// There would be too many, or one would overlap another; and the errors of changing the table.
    pub(crate) async fn make_partitions(
        &self,
        table: &Arc<Table>,
        schema: &Arc<TableSchema>,
        blocks: &[Block],
    ) -> Result<(), AutomaticError> {
        let batches = blocks_to_batches(schema, blocks)?;
        if with_partitions(&table.def(), schema, &batches)?.is_none() {
            return Ok(());
        }
        let turn = self.wait_for_turn(&table.def()).await;
        // Another load may have made them.
        let Some(new) = with_partitions(&table.def(), schema, &batches)? else { return Ok(()) };
        let changed = Box::pin(self.change_table(&turn, Arc::clone(table), new)).await;
        changed.map_err(|error| AutomaticError::Refused(error.detail_text().to_owned()))
    }
}

/// The table with partitions for all rows; `None` if it has them.
fn with_partitions(
    def: &TableDef,
    schema: &TableSchema,
    batches: &[RecordBatch],
) -> Result<Option<TableDef>, AutomaticError> {
    let Some(partitions) = def.partitioning.partitions() else { return Ok(None) };
    let columns: Vec<&ColumnDef> = partitions.columns_of(schema);
    let mut made: Option<Partitions> = None;
    for batch in batches {
        let of_rows = made.as_ref().unwrap_or(partitions).of_rows(batch, schema);
        for (row, _) in of_rows.into_iter().enumerate().filter(|(_, place)| place.is_none()) {
            let known = made.as_ref().unwrap_or(partitions);
            let values = known.values_of(batch, schema, row);
            if known.find(&values).is_some() {
                continue;
            }
            let Some((name, rows)) = known.made_for(&values, &columns) else { continue };
            if known.list.len() >= PARTITIONS_MAX {
                return Err(AutomaticError::Refused(
                    "create partition failed. partition numbers will exceed limit variable max_auto_partition_num"
                        .to_owned(),
                ));
            }
            if let Some(text) = known.conflict(&rows, &columns) {
                return Err(AutomaticError::Refused(format!("create partition failed. {text}")));
            }
            made.get_or_insert_with(|| Partitions::clone(partitions)).add(&name, rows, BTreeMap::new());
        }
    }
    Ok(made.map(|made| TableDef { partitioning: Partitioning::By(Arc::new(made)), ..def.clone() }))
}
