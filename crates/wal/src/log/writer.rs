//! The work of the writer thread and, for a lone submission, of the submitting thread.

use super::Shared;
use super::pending::Submission;
use crate::core::LogCore;
use crate::entry::Appended;
use crate::error::WalError;
use crate::segment::format::FRAME_PAYLOAD_BYTES_MAX;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tributary_types::host;

/// Larger submissions are left to the writer thread: the thread that made one has worked for a while already.
const WRITTEN_HERE_BYTES_MAX: u64 = 64 * 1024;

/// Runs until the log is closed and nothing is pending. Dropping the core unlocks the directory.
pub(super) fn run(shared: &Shared) {
    while shared.pending.wait() {
        write_pending(shared);
    }
    drop(shared.core.lock().take());
}

/// Writes everything pending.
pub(super) fn write_pending(shared: &Shared) {
    if let Some(core) = shared.core.lock().as_mut() {
        let mut taken = Vec::new();
        shared.pending.take(&mut taken);
        write_guarded(core, shared, taken);
    }
}

/// Writes the submission with that ordinal on this thread if no other thread writes, nothing else is pending and the
/// last frame had one submission too. Otherwise returns `false`: it is left to the writer thread.
pub(super) fn write_alone(shared: &Shared, ordinal: u64) -> bool {
    let is_calm = || {
        if host::is_simulated() {
            host::random(|| 0) & 1 == 0
        } else {
            shared.may_write_here && shared.is_calm.load(Relaxed)
        }
    };
    if !is_calm() {
        return false;
    }
    let Some(mut core) = shared.core.try_lock() else { return false };
    let Some(core) = core.as_mut() else { return false };
    let Some(submission) = shared.pending.take_lone(ordinal, WRITTEN_HERE_BYTES_MAX) else { return false };
    write_guarded(core, shared, vec![submission]);
    true
}

/// Turns a panic into a failure of the log, which the writer thread answers to everything still pending.
fn write_guarded(core: &mut LogCore, shared: &Shared, taken: Vec<Submission>) {
    let written = catch_unwind(AssertUnwindSafe(|| write_taken(core, shared, taken)));
    if let Err(panic) = written {
        shared.fail(&panicked(shared));
        if host::is_simulated() {
            // There a panic is a finding, not the end of a process.
            resume_unwind(panic);
        }
    }
}

/// Writes submissions in as few frames as possible.
fn write_taken(core: &mut LogCore, shared: &Shared, taken: Vec<Submission>) {
    let mut rest = taken.into_iter().peekable();
    let mut frame = Vec::new();
    while rest.peek().is_some() {
        fill(&mut frame, &mut rest, shared.options.frame_bytes.min(FRAME_PAYLOAD_BYTES_MAX));
        if let Err(no_space) = write(core, shared, &mut frame) {
            // All are taken before any is answered: a submission made after an answer is not refused with it, unless its order
            // demands that.
            frame.extend(rest);
            shared.pending.take_to_refuse(&mut frame, &no_space);
            shared.pending.decided(&frame);
            answer(&mut frame, Err(no_space));
            shared.pending.refused();
            return;
        }
    }
}

/// Moves as many submissions into `frame` as fit one frame, at least one.
fn fill(
    frame: &mut Vec<Submission>,
    rest: &mut std::iter::Peekable<std::vec::IntoIter<Submission>>,
    limit: u64,
) {
    let mut bytes = 0;
    while let Some(next) = rest.next_if(|next| frame.is_empty() || bytes + next.bytes() <= limit) {
        bytes += next.bytes();
        frame.push(next);
    }
}

/// Makes a frame durable and answers its submissions.
///
/// # Errors
/// [`WalError::NoSpace`], with nothing answered. Every other error is answered.
fn write(core: &mut LogCore, shared: &Shared, frame: &mut Vec<Submission>) -> Result<(), WalError> {
    let result = match shared.pending.failure() {
        Some(failure) => Err(failure),
        None => core.write_batch(frame).inspect_err(|error| {
            if error.is_fatal() {
                shared.fail(error);
            }
        }),
    };
    shared.is_calm.store(frame.len() == 1, Relaxed);
    if let Err(no_space @ WalError::NoSpace { .. }) = result {
        return Err(no_space);
    }
    shared.pending.decided(frame);
    answer(frame, result);
    if core.asks_for_spare() {
        shared.keeper.prepare();
    }
    if core.asks_for_notice() {
        shared.keeper.announce();
    }
    Ok(())
}

fn answer(frame: &mut Vec<Submission>, result: Result<Vec<Appended>, WalError>) {
    match result {
        Ok(places) => {
            assert_eq!(frame.len(), places.len(), "each submission of a frame has its place");
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

/// The failure after a panic: which submissions were answered is unknown.
pub(super) fn panicked(shared: &Shared) -> WalError {
    WalError::Failed {
        action: "run a callback for",
        path: shared.dir.clone(),
        durable_lsn: shared.counters.end().0,
        source: Arc::new(io::Error::other("a callback has panicked")),
    }
}
