//! INSERT … SELECT over `information_schema.rejected_rows`: the rows that it reads are marked with its transaction, by the same commit.
//!
//! The rows are determined first, and the statement's query runs over just these, without its condition: the marked rows are those
//! read, whatever happens meanwhile. Not its business: which queries are such ones, which the parser says, and how marks are kept.

use crate::access::interrupt::Interrupt;
use crate::load::replays::{RejectId, ReplayClaim};
use crate::session::EngineSession;
use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use futures::StreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_query::QueryEngine;
use tributary_sql::SelectQuery;
use tributary_types::{ErrorCode, SqlError};

/// A query over rejected rows, and the rows.
pub(in crate::session) struct Replay {
    pub query: SelectQuery,
    /// Queries that see these rejected rows and no others.
    pub queries: QueryEngine,
    pub claim: ReplayClaim,
}

impl EngineSession {
    /// Takes a query apart if it is one over rejected rows.
    ///
    /// # Errors
    /// Those of the query; another statement brings some of the rows again at the moment.
    pub(in crate::session) async fn replay(
        &mut self,
        query: &SelectQuery,
    ) -> Result<Option<Replay>, SqlError> {
        let Some(replay) = query.replay() else { return Ok(None) };
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_query_timeout());
        let view = self.view();
        let mut rows = BTreeSet::new();
        for mut part in interrupt.wait(self.queries.query_in_parts(&view, &replay.rows, &[])).await?? {
            while let Some(batch) = interrupt.wait(part.stream.next()).await? {
                let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
                let (txns, loads) = (numbers(batch.column(0))?, numbers(batch.column(1))?);
                let rejects = numbers(batch.column(2))?;
                // Rows that were only counted have no number.
                let kept = (0..batch.num_rows()).filter(|&row| rejects.is_valid(row));
                rows.extend(kept.map(|row| RejectId {
                    txn: txns.value(row),
                    load: loads.value(row),
                    reject: rejects.value(row),
                }));
            }
        }
        let claim = self.engine.loads.replays.claim(rows)?;
        let queries = self.engine.queries.over_rejects(&self.principal, Arc::clone(&claim.rows));
        Ok(Some(Replay { query: replay.values, queries, claim }))
    }
}

fn numbers(column: &ArrayRef) -> Result<UInt64Array, SqlError> {
    let numbers = cast(column, &DataType::UInt64);
    let numbers = numbers.map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
    Ok(UInt64Array::from(numbers.to_data()))
}
