//! Loads become columns: a group's at its commit, many small ones before, while their group is open.
//!
//! Invariant: the columns are of one schema, the one that [`Built`] names. Not its business: when, and on
//! which thread; what is visible.

use crate::error::IngestError;
use crate::group::{Appends, Group, Member};
use crate::load::LoadRows;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use std::sync::Arc;
use tributary_decode::{Block, adapt, blocks_to_batches};
use tributary_types::TableSchema;

/// What was gathered is put together to batches of about as many rows.
const BATCH_ROWS: usize = 65_536;

/// A group, or a transaction of its own, as columns.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub batches: Vec<RecordBatch>,
    /// The table's schema when they were built; the table adapts them if it has changed since.
    pub schema: Arc<TableSchema>,
}

/// Blocks and the schema that they were decoded for.
pub(crate) type Part = (Arc<TableSchema>, Vec<Block>);

/// What is to be built.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Of a group, of which some loads may have been gathered.
    appends: Option<Arc<Appends>>,
    blocks: Vec<Part>,
}

impl Parts {
    /// All rows of a group whose appends are settled.
    pub fn of_group(group: &Group) -> Self {
        Self { appends: Some(Arc::clone(&group.appends)), blocks: blocks_of(&group.members) }
    }

    pub fn of_load(rows: &LoadRows) -> Self {
        Self { appends: None, blocks: vec![(Arc::clone(&rows.schema), rows.blocks.clone())] }
    }

    /// Columns of `schema`; `now_micros` is for the defaults of columns that a load did not know yet.
    pub fn build(&self, schema: Arc<TableSchema>, now_micros: i64) -> Result<Built, IngestError> {
        let mut batches = self.gathered(&schema, now_micros)?;
        batches.extend(columns(&self.blocks, &schema, now_micros)?);
        Ok(Built { batches, schema })
    }

    /// What was gathered, put together; the group keeps it instead of the pieces, in case its commit is tried again.
    fn gathered(&self, schema: &Arc<TableSchema>, now_micros: i64) -> Result<Vec<RecordBatch>, IngestError> {
        let Some(appends) = &self.appends else { return Ok(Vec::new()) };
        let gathered = appends.all_gathered();
        if gathered.is_empty() {
            return Ok(Vec::new());
        }
        let mut batches = Vec::new();
        for built in gathered {
            let built = built?;
            adapt_into(&mut batches, &built.batches, &built.schema, schema, now_micros)?;
        }
        let batches = put_together(batches)?;
        appends.put_together(Built { batches: batches.clone(), schema: Arc::clone(schema) });
        Ok(batches)
    }
}

/// Small loads that are durable and leave their group's members, to be turned into columns while it is open.
/// The group is not settled before [`Gathering::done`], or before this is dropped, which fails the group.
#[derive(Debug)]
#[must_use]
pub(crate) struct Gathering {
    appends: Option<Arc<Appends>>,
    members: Vec<Member>,
    spared_bytes: u64,
}

impl Gathering {
    pub fn new(appends: Arc<Appends>, members: Vec<Member>, spared_bytes: u64) -> Self {
        Self { appends: Some(appends), members, spared_bytes }
    }

    pub fn parts(&self) -> Parts {
        Parts { appends: None, blocks: blocks_of(&self.members) }
    }

    /// Bytes of the budget that the loads take no longer.
    pub fn spared_bytes(&self) -> u64 {
        self.spared_bytes
    }

    pub fn done(mut self, built: Result<Built, IngestError>) {
        if let Some(appends) = self.appends.take() {
            appends.gathered(built);
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if let Some(appends) = self.appends.take() {
            appends.gathered(Err(IngestError::Bug("loads were taken out of a group and not built".into())));
        }
    }
}

fn blocks_of(members: &[Member]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for Member { rows, .. } in members {
        match parts.last_mut() {
            Some((schema, blocks)) if schema.version == rows.schema.version => {
                blocks.extend_from_slice(&rows.blocks)
            }
            _ => parts.push((Arc::clone(&rows.schema), rows.blocks.clone())),
        }
    }
    parts
}

/// Columns of `schema` from blocks of it or of earlier schemas, in the order of the blocks.
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
fn put_together(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, IngestError> {
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
