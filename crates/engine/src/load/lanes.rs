//! Rows of one load that arrive in parallel: tasks that each have a lane of the load's sink, so that many rows become sorted data
//! files in as many tasks.
//!
//! Invariant: however it ends, no task is left, and every row that was read is either in the load or given up.
//!
//! Not its business: the source of rows.

use crate::access::interrupt::{Interrupt, Interrupted};
use crate::load::Loads;
use crate::load::sink::{LoadSink, SinkError};
use std::future::Future;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tributary_decode::{Counts, Decoded, Reject};
use tributary_types::{ErrorCode, SqlError};

/// The result of reading the rows of a lane, or of all.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub counts: Counts,
    /// The first ones.
    pub rejects: Vec<Reject>,
}

impl Read {
    /// Adds later counts.
    pub fn add(&mut self, counts: Counts, rejects: impl IntoIterator<Item = Reject>) {
        Reject::append(&mut self.rejects, self.counts.total, rejects);
        self.counts = self.counts.plus(counts);
    }

    /// The sum of several, in their order.
    pub fn sum(all: Vec<Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, read| {
            sum.add(read.counts, read.rejects);
            sum
        })
    }

    /// Adds decoded rows, whose blocks the sink has.
    pub fn add_decoded(&mut self, decoded: Decoded) {
        self.add(decoded.counts, decoded.rejects);
    }
}

/// One of several tasks of a load.
pub(crate) struct Lane {
    pub sink: LoadSink,
    stop: CancellationToken,
}

impl Lane {
    /// Waits for a request to end the lane although there are more rows. Use it where nothing is half done.
    pub fn stopped(&self) -> WaitForCancellationFuture<'_> {
        self.stop.cancelled()
    }

    /// Returns an error if the lane was requested to end although there are more rows.
    pub fn check_stopped(&self) -> Result<(), Interrupted> {
        if self.stop.is_cancelled() { Err(Interrupted::Killed) } else { Ok(()) }
    }

    /// The error of a lane that was stopped; it is never shown.
    pub fn stopped_error() -> SqlError {
        Interrupted::Killed.into()
    }
}

/// Runs a task for each of `work` and takes over the lanes, in the order of `work`. Returns the results in that order.
///
/// # Errors
/// The first one of any task, or the interruption: all rows of the lanes are given up. Or the sink's, which can only be aborted then.
pub(crate) async fn side_by_side<W, F, R, E>(
    loads: &Loads,
    sink: &mut LoadSink,
    interrupt: Interrupt<'_>,
    work: Vec<W>,
    mut run: impl FnMut(W, Lane) -> F,
) -> Result<Vec<R>, E>
where
    F: Future<Output = (LoadSink, Result<R, E>)> + Send + 'static,
    R: Send + 'static,
    E: From<Interrupted> + From<SinkError> + From<SqlError> + Send + 'static,
{
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut done: Vec<Option<(LoadSink, R)>> = work.iter().map(|_| None).collect();
    let lanes = sink.lanes(work.len());
    for (number, (work, sink)) in work.into_iter().zip(lanes).enumerate() {
        let task = run(work, Lane { sink, stop: stop.clone() });
        tasks.spawn(async move { (number, task.await) });
    }
    let mut failed = None;
    while !tasks.is_empty() {
        let ended = match &failed {
            // A write to a data file is never cut off: the others end where they wait for rows.
            Some(_) => Ok(tasks.join_next().await),
            None => interrupt.wait(tasks.join_next()).await,
        };
        let error = match ended {
            Ok(None) => break,
            Ok(Some(Ok((number, (sink, Ok(read)))))) => {
                done[number] = Some((sink, read));
                continue;
            }
            Ok(Some(Ok((_, (sink, Err(error)))))) => {
                sink.abort().await;
                error
            }
            Ok(Some(Err(panic))) => {
                let text = format!("internal error: a task of the load ended: {panic}");
                SqlError::new(ErrorCode::Unknown, text).into()
            }
            Err(interrupted) => interrupted.into(),
        };
        failed.get_or_insert(error);
        stop.cancel();
    }
    let (lanes, results): (Vec<_>, Vec<_>) = done.into_iter().flatten().unzip();
    if let Some(error) = failed {
        for lane in lanes {
            lane.abort().await;
        }
        return Err(error);
    }
    sink.join(loads, lanes).await?;
    Ok(results)
}
