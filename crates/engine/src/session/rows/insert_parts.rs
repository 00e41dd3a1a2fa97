//! The rows of an INSERT … SELECT between query and load: the parts of the query in parallel.
//!
//! Not its business: planning the query, judging the load.

use crate::access::interrupt::Interrupt;
use crate::generated::Completer;
use crate::load::Load;
use crate::load::Loads;
use crate::load::lanes::{Lane, Read, side_by_side};
use crate::load::sink::LoadSink;
use crate::session::rows::changed_rows::{Unchanged, count_unchanged};
use futures::StreamExt;
use std::sync::Arc;
use tributary_decode::{BlockBuilder, InsertOptions, Target, decode_batch};
use tributary_query::QueryResult;
use tributary_types::SqlError;

/// Reads all parts into the load.
///
/// # Errors
/// The first one of any part, or the interruption. The load can only be aborted then.
pub(in crate::session) async fn read(
    loads: &Arc<Loads>,
    parts: Vec<QueryResult>,
    (target, completer): (&Target, Option<&Completer>),
    options: &InsertOptions,
    interrupt: Interrupt<'_>,
    load: &mut Load,
    unchanged: Option<Arc<Unchanged>>,
) -> Result<Read, SqlError> {
    let run = |rows: QueryResult, lane: Lane| {
        let builder = loads.builders.take(target.schema());
        let mut part = Part {
            loads: Arc::clone(loads),
            target: target.clone(),
            completer: completer.cloned().map(Box::new),
            options: *options,
            builder,
            lane,
            rows,
            unchanged: unchanged.clone(),
        };
        async move {
            let read = part.read().await;
            (part.end(), read)
        }
    };
    let read = side_by_side::<_, _, Read, SqlError>(loads, load.sink(), interrupt, parts, run).await?;
    Ok(Read::sum(read))
}

/// The state of one part.
struct Part {
    loads: Arc<Loads>,
    target: Target,
    /// Computes values that the query does not give.
    completer: Option<Box<Completer>>,
    options: InsertOptions,
    builder: BlockBuilder,
    lane: Lane,
    rows: QueryResult,
    /// Counts the rows of an UPDATE by their last column, which belongs to no column of the table.
    unchanged: Option<Arc<Unchanged>>,
}

impl Part {
    async fn read(&mut self) -> Result<Read, SqlError> {
        let mut read = Read::default();
        loop {
            let next = tokio::select! {
                biased;
                () = self.lane.stopped() => return Err(Lane::stopped_error()),
                next = self.rows.stream.next() => next,
            };
            let Some(batch) = next else { return Ok(read) };
            let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
            let batch = count_unchanged(self.unchanged.as_deref(), batch)?;
            let mut decoded = decode_batch(&batch, &self.target, &self.options, &mut self.builder)?;
            if let Some(completer) = &self.completer {
                completer.complete_all(&mut decoded)?;
            }
            self.lane.sink.push(&self.loads, std::mem::take(&mut decoded.blocks)).await?;
            read.add_decoded(decoded);
        }
    }

    fn end(self) -> LoadSink {
        self.loads.builders.give_back(self.builder);
        self.lane.sink
    }
}
