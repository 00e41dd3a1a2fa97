//! The answer of a statement, independent of the protocol.
//!
//! Invariant: an answer contains everything that a protocol needs to write it; only the rows of a query are still being computed.
//!
//! Not here: statements, and the encoding of answers.

use crate::access::interrupt::Interrupt;
use crate::access::limits::AdmittedQuery;
use crate::access::processes::Process;
use arrow::array::RecordBatch;
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tributary_query::{Grid, QueryResult, ResultColumn};
use tributary_types::SqlError;

/// The outcome of a statement.
#[must_use = "whoever sent the statement waits for it"]
pub(crate) enum Answer {
    Done(Done),
    Rows(Box<Rows>),
    /// The client has to send the file of this name; the statement continues when it arrives.
    NeedsFile(String),
}

/// The counts of a statement without rows.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub affected_rows: u64,
    pub warnings: u16,
    /// The first value that AUTO_INCREMENT gave; 0 for none.
    pub last_insert_id: u64,
    /// For example a load's label, status and transaction; empty for none.
    pub info: String,
}

impl Answer {
    /// Done, without counts.
    pub fn ok() -> Self {
        Self::Done(Done::default())
    }

    /// All rows of a result.
    pub fn rows(result: QueryResult) -> Self {
        let (remaining, process, limit) = (u64::MAX, None, None);
        Self::Rows(Box::new(Rows {
            result,
            remaining,
            process,
            limit,
            warnings: 0,
            _admitted: AdmittedQuery::default(),
        }))
    }

    /// The rows of a grid.
    ///
    /// # Errors
    /// Its rows and columns don't match.
    pub fn grid(grid: &Grid) -> Result<Self, SqlError> {
        Ok(Self::rows(QueryResult::from_rows(grid)?))
    }
}

/// The rows of a query, computed as they are taken. Dropping them ends the query.
pub(crate) struct Rows {
    result: QueryResult,
    /// The number of rows that may still be taken.
    remaining: u64,
    /// The connection whose KILL ends the query.
    process: Option<Arc<Process>>,
    limit: Option<(Instant, Duration)>,
    /// The number of warnings that the statement has left.
    warnings: u16,
    /// Counts the query among those of its user.
    _admitted: AdmittedQuery,
}

impl Rows {
    /// At most `rows_max` rows of a query that `interrupt`, which belongs to `process`, ends.
    pub fn of_query(
        result: QueryResult,
        rows_max: u64,
        process: Arc<Process>,
        interrupt: Interrupt<'_>,
        admitted: AdmittedQuery,
    ) -> Self {
        let limit = interrupt.limit();
        Self { result, remaining: rows_max, process: Some(process), limit, warnings: 0, _admitted: admitted }
    }

    pub fn columns(&self) -> &[ResultColumn] {
        &self.result.columns
    }

    pub const fn warnings(&self) -> u16 {
        self.warnings
    }

    /// Adds to the number of warnings.
    pub const fn warn(&mut self, added: u16) {
        self.warnings = self.warnings.saturating_add(added);
    }

    /// The interrupt of the statement while its rows are computed and written.
    pub fn interrupt(&self) -> Interrupt<'_> {
        Interrupt::of(self.process.as_ref().map(|process| &process.stop), self.limit)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The query fails, or is interrupted.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let Self { result, process, limit, .. } = self;
        let interrupt = Interrupt::of(process.as_ref().map(|process| &process.stop), *limit);
        let Some(batch) = interrupt.wait(result.stream.next()).await? else { return Ok(None) };
        let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
        let rows = batch.num_rows().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        self.remaining -= rows as u64;
        Ok(Some(if rows < batch.num_rows() { batch.slice(0, rows) } else { batch }))
    }
}
