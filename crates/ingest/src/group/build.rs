//! Builds the columns that a commit publishes: the loads of a group, or of a transaction of its own.
//!
//! Invariant: the rows of a version are in the order of the log, so that a replay, which reads the log from its beginning,
//! publishes the same rows in the same order. In a group, loads that the log received on arrival come first, in the order in
//! which they joined, whether they became columns earlier or do so now; then loads that are written together with the commit.
//! Rows in data files come last, in the order of the commit's list. Not its business: when, and on which thread; visibility.

use crate::error::IngestError;
use crate::group::Group;
use crate::group::appends::{Appends, Run};
use crate::group::columns::{Built, Part, add_part, columns, put_together};
use crate::load::LoadRows;
use arrow::array::RecordBatch;
use std::sync::Arc;
use tributary_types::TableSchema;

/// The parts to build, in the order of the log.
#[derive(Debug)]
pub(crate) struct ToBuild {
    pieces: Vec<Piece>,
    /// Holds the group's gathered runs.
    appends: Option<Arc<Appends>>,
}

#[derive(Debug)]
enum Piece {
    /// Neighbours that became columns while the group was open.
    Runs(Vec<Run>),
    Blocks(Vec<Part>),
}

impl ToBuild {
    /// All rows of a group whose appends are answered.
    ///
    /// # Errors
    /// Why gathering failed, if it did.
    pub fn of_group(group: &Group) -> Result<Self, IngestError> {
        let mut parts = Self { pieces: Vec::new(), appends: Some(Arc::clone(&group.appends)) };
        let mut runs = group.appends.runs()?.into_iter().peekable();
        for member in group.members.iter().filter(|member| member.is_logged) {
            while let Some(run) = runs.next_if(|run| run.first < member.load) {
                debug_assert!(run.last < member.load, "a gathered run has no member of its group within it");
                parts.add_run(run);
            }
            parts.add_blocks(&member.rows);
        }
        runs.for_each(|run| parts.add_run(run));
        for member in group.members.iter().filter(|member| !member.is_logged) {
            parts.add_blocks(&member.rows);
        }
        Ok(parts)
    }

    pub fn of_load(rows: &LoadRows) -> Self {
        let blocks = vec![(Arc::clone(&rows.schema), rows.blocks.clone())];
        Self { pieces: vec![Piece::Blocks(blocks)], appends: None }
    }

    fn add_run(&mut self, run: Run) {
        match self.pieces.last_mut() {
            Some(Piece::Runs(runs)) => runs.push(run),
            _ => self.pieces.push(Piece::Runs(vec![run])),
        }
    }

    fn add_blocks(&mut self, rows: &LoadRows) {
        if rows.blocks.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Blocks(parts)) => add_part(parts, rows),
            _ => self.pieces.push(Piece::Blocks(vec![(Arc::clone(&rows.schema), rows.blocks.clone())])),
        }
    }

    /// How many blocks are to become columns.
    pub fn blocks(&self) -> usize {
        let of_piece = |piece: &Piece| match piece {
            Piece::Runs(_) => 0,
            Piece::Blocks(parts) => parts.iter().map(|(_, blocks)| blocks.len()).sum(),
        };
        self.pieces.iter().map(of_piece).sum()
    }

    /// Columns of `schema`; `now_micros` is for the defaults of columns that a load did not know yet.
    pub fn build(&self, schema: Arc<TableSchema>, now_micros: i64) -> Result<Built, IngestError> {
        let mut batches = Vec::new();
        let mut together = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Blocks(parts) => batches.extend(columns(parts, &schema, now_micros)?),
                Piece::Runs(runs) => {
                    let run = one_run(runs, &schema, now_micros)?;
                    batches.extend_from_slice(&run.built.batches);
                    together.push(run);
                }
            }
        }
        if let Some(appends) = self.appends.as_ref().filter(|_| !together.is_empty()) {
            // The group stores them instead of the pieces, in case its commit is retried.
            appends.replace_runs(together);
        }
        Ok(Built { batches, schema })
    }
}

/// Neighbouring runs as one, in few batches.
fn one_run(runs: &[Run], schema: &Arc<TableSchema>, now_micros: i64) -> Result<Run, IngestError> {
    let mut batches: Vec<RecordBatch> = Vec::new();
    for run in runs {
        run.built.add_to(&mut batches, schema, now_micros)?;
    }
    let ends = |run: Option<&Run>| run.map(|run| (run.first, run.last)).unwrap_or_default();
    let built = Built { batches: put_together(batches)?, schema: Arc::clone(schema) };
    Ok(Run { first: ends(runs.first()).0, last: ends(runs.last()).1, built })
}
