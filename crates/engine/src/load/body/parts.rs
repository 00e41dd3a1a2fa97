//! Parts of one body that are decoded in parallel, each into a lane of the load's sink: a lane decodes, sorts and encodes its own rows.
//!
//! A server has a limited number of threads for this, which large loads share; a load that gets less than two decodes as usual.
//!
//! Invariant: the rows of the load are in the order of the body.
//!
//! Not here: the division of a body ([`tributary_decode::BodyDecoder::divide`]).

use super::reader::ReadError;
use super::rows::{Rows, Tallies};
use crate::access::interrupt::Interrupt;
use crate::load::Loads;
use crate::load::lanes::{Lane, side_by_side};
use crate::load::sink::LoadSink;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tributary_decode::Block;
use tributary_types::{ErrorCode, SqlError};

/// The most threads of one load.
pub(super) const THREADS_MAX: u32 = 4;

/// The threads that decode parts of bodies, one per processor.
#[derive(Debug)]
pub(crate) struct DecodeThreads(Arc<Semaphore>);

/// One of them.
pub(super) struct Thread(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

/// Threads of one load.
pub(super) struct Threads(OwnedSemaphorePermit);

impl DecodeThreads {
    pub fn new() -> Self {
        let processors = available_parallelism().map_or(1, std::num::NonZero::get);
        Self(Arc::new(Semaphore::new(processors)))
    }

    /// Takes as many threads as there are for one load, at least two.
    pub(super) fn take(&self) -> Option<Threads> {
        let take = |count| Arc::clone(&self.0).try_acquire_many_owned(count).ok();
        (2..=THREADS_MAX).rev().find_map(take).map(Threads)
    }

    /// Takes a thread for a segment of a body.
    pub(super) fn take_one(&self) -> Option<Thread> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(Thread)
    }

    /// Whether several threads are idle.
    pub(super) fn are_idle(&self) -> bool {
        self.0.available_permits() >= 2
    }
}

#[cfg(test)]
impl DecodeThreads {
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.0
    }

    /// Has threads for one load, on every machine.
    pub fn add_for_test(&self) {
        self.0.add_permits(THREADS_MAX as usize);
    }
}

impl Threads {
    pub fn count(&self) -> usize {
        self.0.num_permits()
    }
}

/// Reads all parts into the sink.
///
/// # Errors
/// The first one of any part, or the interruption. No rows of the parts are left then.
pub(super) async fn read_parts(
    loads: &Arc<Loads>,
    sink: &mut LoadSink,
    parts: Vec<Rows>,
    interrupt: Interrupt<'_>,
) -> Result<Tallies, ReadError> {
    let run = |rows: Rows, mut lane: Lane| {
        let loads = Arc::clone(loads);
        async move {
            let read = read_part(&loads, &mut lane, rows).await;
            (lane.sink, read)
        }
    };
    let mut all = Tallies::default();
    for part in side_by_side(loads, sink, interrupt, parts, run).await? {
        all.add(part);
    }
    Ok(all)
}

async fn read_part(loads: &Loads, lane: &mut Lane, mut rows: Rows) -> Result<Tallies, ReadError> {
    loop {
        lane.check_stopped()?;
        // Not on a thread of the runtime: other requests go on while all parts decode.
        let decode = move || {
            let blocks = rows.resume();
            (rows, blocks)
        };
        let (back, blocks): (Rows, Result<Option<Vec<Block>>, SqlError>) =
            spawn_blocking(decode).await.map_err(|panic| {
                SqlError::new(ErrorCode::Unknown, format!("internal error: decoding a body failed: {panic}"))
            })?;
        rows = back;
        match blocks? {
            None => return Ok(rows.tallies()),
            Some(blocks) if blocks.is_empty() => {}
            Some(blocks) => lane.sink.push(loads, blocks).await?,
        }
    }
}

#[cfg(test)]
mod tests;
