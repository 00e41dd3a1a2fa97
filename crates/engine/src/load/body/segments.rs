//! Segments of a large body of lines that are decoded in parallel while the rest arrives.
//!
//! A segment is decoded by a thread of its own if a thread is idle, and by the load's task if all are busy: how many segments are under
//! way follows the other large loads. The sink gets the rows in the order of the body.
//!
//! Invariants: the rows, counts and rejected rows are those of one decoder; memory is bounded by [`UNDER_WAY_MAX`] segments and
//! their rows.
//!
//! Not here: bodies that are decoded from their end ([`super::parts`]).

use super::parts::{THREADS_MAX, Thread};
use super::reader::ReadError;
use super::rows::{RowFork, Rows, Tallies};
use crate::access::interrupt::Interrupt;
use crate::load::Loads;
use crate::load::sink::LoadSink;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};
use tributary_decode::{Block, BlockBuilder, LineFork, REJECTS_KEPT_MAX};
use tributary_types::{ErrorCode, SqlError};

/// A body whose first bytes were more than these is large, in bytes.
pub(super) const LARGE_BODY_BYTES: usize = 4 << 20;
/// The bytes of a segment, or a little more: a few milliseconds of decoding.
const SEGMENT_BYTES: usize = 2 << 20;
/// Segments whose rows the sink has not got.
const UNDER_WAY_MAX: usize = THREADS_MAX as usize;

/// The rest of a body that was forked.
pub(super) struct Segments {
    fork: RowFork,
    /// The beginning of the next segment, as far as it has arrived.
    next: Vec<u8>,
    /// The bytes of it that are whole lines.
    whole: usize,
    under_way: VecDeque<JoinHandle<Decoding>>,
    /// Buffers for later segments.
    spare: Vec<Vec<u8>>,
    /// Rejected rows of the body's beginning that are kept.
    rejects_before: usize,
    /// Those of the rows that the sink has got.
    tallies: Tallies,
}

/// Where a load's rows go.
pub(super) struct Giving<'a> {
    pub loads: &'a Arc<Loads>,
    pub sink: &'a mut LoadSink,
    pub interrupt: Interrupt<'a>,
}

/// A decoded segment.
struct Decoding {
    blocks: Result<Vec<Block>, SqlError>,
    tallies: Tallies,
    segment: Vec<u8>,
    builder: BlockBuilder,
}

impl Segments {
    /// The rest of a body of whose beginning `rejects_before` rejected rows are kept.
    pub fn new(mut fork: RowFork, rejects_before: usize) -> Self {
        let mut next = Vec::with_capacity(SEGMENT_BYTES + SEGMENT_BYTES / 4);
        next.append(&mut fork.lines.rest);
        let (under_way, spare, tallies) = (VecDeque::new(), Vec::new(), Tallies::default());
        Self { fork, next, whole: 0, under_way, spare, rejects_before, tallies }
    }

    /// Takes a chunk of the body.
    ///
    /// # Errors
    /// Those of any segment before.
    pub async fn feed(&mut self, to: &mut Giving<'_>, chunk: &[u8]) -> Result<(), ReadError> {
        if let Some(whole) = self.fork.lines.whole_lines(chunk) {
            self.whole = self.next.len() + whole;
        }
        self.next.extend_from_slice(chunk);
        if self.next.len() < SEGMENT_BYTES {
            return Ok(());
        }
        let whole = match self.whole {
            0 if LineFork::is_too_long(self.next.len()) => self.next.len(),
            0 => return Ok(()),
            whole => whole,
        };
        let mut segment = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.next.capacity()));
        segment.extend_from_slice(&self.next[whole..]);
        std::mem::swap(&mut segment, &mut self.next);
        segment.truncate(whole);
        self.whole = 0;
        self.decode(to, segment).await
    }

    /// Decodes the last lines, and gives the sink all rows.
    ///
    /// # Errors
    /// Those of any segment.
    pub async fn end(&mut self, to: &mut Giving<'_>) -> Result<(), ReadError> {
        let last = std::mem::take(&mut self.next);
        self.decode(to, last).await?;
        self.settle(to).await
    }

    /// Gives the sink the rows of all segments, and frees their memory.
    ///
    /// # Errors
    /// Those of any segment.
    pub async fn settle(&mut self, to: &mut Giving<'_>) -> Result<(), ReadError> {
        while self.give(to).await? {}
        self.spare.clear();
        Ok(())
    }

    /// Has a segment decoded, after all before it.
    async fn decode(&mut self, to: &mut Giving<'_>, segment: Vec<u8>) -> Result<(), ReadError> {
        to.interrupt.check()?;
        while self.under_way.front().is_some_and(JoinHandle::is_finished) {
            self.give(to).await?;
        }
        let builder = to.loads.builders.take(self.fork.schema());
        let rejects = (self.rejects_before + self.tallies.rejects_kept()).min(REJECTS_KEPT_MAX);
        let rows = self.fork.rows(builder, rejects)?;
        loop {
            if self.under_way.len() < UNDER_WAY_MAX
                && let Some(thread) = to.loads.decode_threads.take_one()
            {
                self.under_way.push_back(spawn_blocking(move || decoded(rows, segment, Some(thread))));
                return Ok(());
            }
            if !self.give(to).await? {
                let done = decoded(rows, segment, None);
                return self.take(to, done).await;
            }
        }
    }

    /// Waits for the first segment under way, and gives its rows to the sink. `false`: none is under way.
    async fn give(&mut self, to: &mut Giving<'_>) -> Result<bool, ReadError> {
        let Some(first) = self.under_way.pop_front() else { return Ok(false) };
        let done = first.await.map_err(|panic| {
            SqlError::new(ErrorCode::Unknown, format!("internal error: decoding a body failed: {panic}"))
        })?;
        self.take(to, done).await?;
        Ok(true)
    }

    async fn take(&mut self, to: &mut Giving<'_>, done: Decoding) -> Result<(), ReadError> {
        let Decoding { blocks, tallies, mut segment, builder } = done;
        to.loads.builders.give_back(builder);
        segment.clear();
        self.spare.push(segment);
        let blocks = blocks?;
        self.tallies.add(tallies);
        if !blocks.is_empty() {
            to.sink.push(to.loads, blocks).await?;
        }
        Ok(to.interrupt.check()?)
    }

    /// The counts and rejected rows of what the sink has got.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Bytes of the body in memory, and of rows that the sink has not got.
    pub fn held_bytes(&self) -> usize {
        let spare: usize = self.spare.iter().map(Vec::capacity).sum();
        self.next.capacity() + spare + 2 * SEGMENT_BYTES * self.under_way.len()
    }
}

/// Decodes a segment; `thread` is the right to do so beside others.
fn decoded(mut rows: Rows, segment: Vec<u8>, _thread: Option<Thread>) -> Decoding {
    let blocks = all_blocks(&mut rows, &segment);
    Decoding { blocks, tallies: rows.tallies(), segment, builder: rows.take_builder() }
}

fn all_blocks(rows: &mut Rows, segment: &[u8]) -> Result<Vec<Block>, SqlError> {
    let mut blocks = rows.push(segment)?;
    blocks.append(&mut rows.finish()?);
    while let Some(mut more) = rows.resume()? {
        blocks.append(&mut more);
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests;
