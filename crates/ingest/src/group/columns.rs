//! Turns blocks into columns.
//!
//! Invariant: rows keep their order, and all columns are of the one schema that [`Built`] names. Not its business: which rows,
//! when, and on which thread.

use crate::error::IngestError;
use crate::load::LoadRows;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use std::sync::Arc;
use tributary_decode::{Block, adapt, blocks_to_batches};
use tributary_types::TableSchema;

/// Small batches are merged into batches of about this many rows.
const BATCH_ROWS: usize = 65_536;

/// Rows as columns.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub batches: Vec<RecordBatch>,
    /// The table's schema when they were built; the table adapts them if it has changed since.
    pub schema: Arc<TableSchema>,
}

impl Built {
    /// Adds these rows to `batches` as rows of `schema`; `now_micros` is for the defaults of columns that they do not
    /// have yet.
    pub fn add_to(
        &self,
        batches: &mut Vec<RecordBatch>,
        schema: &TableSchema,
        now_micros: i64,
    ) -> Result<(), IngestError> {
        adapt_into(batches, &self.batches, &self.schema, schema, now_micros)
    }
}

/// Blocks and the schema that they were decoded for.
pub(crate) type Part = (Arc<TableSchema>, Vec<Block>);

/// Adds the blocks of a load behind those before it.
pub(crate) fn add_part(parts: &mut Vec<Part>, rows: &LoadRows) {
    match parts.last_mut() {
        Some((schema, blocks)) if schema.version == rows.schema.version => {
            blocks.extend_from_slice(&rows.blocks);
        }
        _ => parts.push((Arc::clone(&rows.schema), rows.blocks.clone())),
    }
}

/// Builds columns of `schema` from blocks of it or of earlier schemas, in the order of the blocks.
pub(crate) fn columns(
    parts: &[Part],
    schema: &TableSchema,
    now_micros: i64,
) -> Result<Vec<RecordBatch>, IngestError> {
    let mut batches = Vec::new();
    for same in parts.chunk_by(|a, b| a.0.version == b.0.version) {
        let from = &same[0].0;
        let gathered: Vec<Block>;
        let blocks = match same {
            [(_, blocks)] => blocks,
            several => {
                gathered = several.iter().flat_map(|(_, blocks)| blocks.iter().cloned()).collect();
                &gathered
            }
        };
        let of_run = blocks_to_batches(from, blocks).map_err(bad)?;
        adapt_into(&mut batches, &of_run, from, schema, now_micros)?;
    }
    Ok(batches)
}

/// Adds batches of the schema `from` as batches of `to`.
fn adapt_into(
    batches: &mut Vec<RecordBatch>,
    added: &[RecordBatch],
    from: &TableSchema,
    to: &TableSchema,
    now_micros: i64,
) -> Result<(), IngestError> {
    if from.version == to.version {
        batches.extend_from_slice(added);
        return Ok(());
    }
    for batch in added {
        batches.push(adapt(batch, from, to, now_micros).map_err(bad)?);
    }
    Ok(())
}

/// Fewer, larger batches of the same rows, in their order: each is a step of every query.
pub(crate) fn put_together(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, IngestError> {
    let mut together = Vec::new();
    let mut rest = &batches[..];
    while let Some(first) = rest.first() {
        let mut rows = 0;
        let fits = |batch: &&RecordBatch| {
            rows += batch.num_rows();
            rows <= BATCH_ROWS
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (some, others) = rest.split_at(count);
        together.push(match some {
            [one] => one.clone(),
            several => concat_batches(first.schema_ref(), several).map_err(bad)?,
        });
        rest = others;
    }
    Ok(together)
}

fn bad(error: impl ToString) -> IngestError {
    IngestError::BadBlock(error.to_string())
}
