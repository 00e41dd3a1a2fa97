//! The writer thread.

use super::Shared;
use super::queue::Submission;
use crate::core::LogCore;
use crate::entry::Appended;
use crate::error::WalError;
use crate::segment::format::FRAME_PAYLOAD_BYTES_MAX;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Lives until the queue is closed and empty, or the log has failed. Dropping the core unlocks the directory.
pub(super) fn run(mut core: LogCore, shared: &Shared) {
    let ended = catch_unwind(AssertUnwindSafe(|| write_until_closed(&mut core, shared)));
    if ended.is_err() {
        shared.fail(&panicked(shared));
        refuse_the_rest(shared);
    }
}

fn write_until_closed(core: &mut LogCore, shared: &Shared) {
    let mut taken = Vec::new();
    while shared.queue.take(&mut taken) {
        write_taken(core, shared, &mut taken);
    }
}

/// Writes what was taken from the queue, in as few frames as possible.
pub(super) fn write_taken(core: &mut LogCore, shared: &Shared, taken: &mut Vec<Submission>) {
    let mut rest = taken.drain(..).peekable();
    let mut frame = Vec::new();
    while rest.peek().is_some() {
        fill(&mut frame, &mut rest, shared.options.frame_bytes.min(FRAME_PAYLOAD_BYTES_MAX));
        write(core, shared, &mut frame);
    }
}

/// Moves as many submissions into `frame` as go into one frame; at least one.
fn fill(
    frame: &mut Vec<Submission>,
    rest: &mut std::iter::Peekable<std::vec::Drain<'_, Submission>>,
    limit: u64,
) {
    let mut bytes = 0;
    while let Some(next) = rest.next_if(|next| frame.is_empty() || bytes + next.bytes() <= limit) {
        bytes += next.bytes();
        frame.push(next);
    }
}

/// Makes a frame durable and tells everyone who waits for it.
fn write(core: &mut LogCore, shared: &Shared, frame: &mut Vec<Submission>) {
    let result = match shared.queue.failure() {
        Some(failure) => Err(failure),
        None => core.write_batch(frame).inspect_err(|error| {
            if error.is_fatal() {
                shared.fail(error);
            }
        }),
    };
    shared.queue.settled(frame);
    answer(frame, result);
    if core.asks_for_spare() {
        shared.keeper.prepare();
    }
}

fn answer(frame: &mut Vec<Submission>, result: Result<Vec<Appended>, WalError>) {
    match result {
        Ok(places) => {
            for (submission, place) in frame.drain(..).zip(places) {
                submission.answer(Ok(place));
            }
        }
        Err(error) => {
            for submission in frame.drain(..) {
                submission.answer(Err(error.clone()));
            }
        }
    }
}

/// After the end of the writer: what is still pending is answered with the failure.
fn refuse_the_rest(shared: &Shared) {
    let mut taken = Vec::new();
    shared.queue.take(&mut taken);
    shared.queue.settled(&taken);
    let reason = shared.queue.closed_reason();
    answer(&mut taken, Err(reason));
}

/// Who was told what is unknown after a panic, so the log has failed.
pub(super) fn panicked(shared: &Shared) -> WalError {
    WalError::Failed {
        action: "run a callback for",
        path: shared.dir.clone(),
        durable_lsn: shared.counters.end().0,
        source: Arc::new(io::Error::other("the writer thread has panicked")),
    }
}
