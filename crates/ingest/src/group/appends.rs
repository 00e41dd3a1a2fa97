//! The pending work of a group's commit: entries that the log has not answered, loads that are being turned into columns.
//!
//! Invariant: a group is answered when nothing is pending; then each of its loads is durable or known to have failed,
//! and everything that was gathered is here. Not its business: which loads are gathered, and who commits.

use crate::error::IngestError;
use crate::group::columns::Built;
use tokio::sync::Notify;
use tributary_types::lock::{Rank, Ranked};

/// Loads that became columns while their group was open: all that the log was given from the first to the last.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub first: u32,
    pub last: u32,
    pub built: Built,
}

/// The data entries of a group's loads that the log does not have yet, and the columns that are not built yet.
#[derive(Debug)]
pub(crate) struct Appends {
    state: Ranked<AppendState>,
    answered: Notify,
}

#[derive(Debug, Default)]
struct AppendState {
    pending: usize,
    /// The loads below this number that the log was given are durable, unless they have failed.
    durable: u32,
    gathered: Vec<Run>,
    /// Why something that was taken out of the group could not be turned into columns.
    not_gathered: Option<IngestError>,
    /// The numbers of the loads that do not count.
    failed: Vec<u32>,
    /// The reasons, for loads that still wait for their answer.
    reasons: Vec<(u32, IngestError)>,
}

impl Default for Appends {
    fn default() -> Self {
        Self::new(AppendState::default())
    }
}

impl Appends {
    /// The appends of a group whose entries are in the log already, without those of `failed`.
    pub fn answered_without(failed: Vec<u32>) -> Self {
        Self::new(AppendState { failed, ..AppendState::default() })
    }

    fn new(state: AppendState) -> Self {
        Self { state: Ranked::new(Rank::Appends, state), answered: Notify::new() }
    }

    /// Notes that a load's entries were submitted to the log.
    pub fn submitted(&self) {
        self.state.lock().pending += 1;
    }

    /// Notes the log's answer for a load.
    ///
    /// # Panics
    /// If the log answers out of order, or more often than it was given something.
    pub fn done(&self, load: u32, outcome: Result<(), IngestError>) {
        let mut state = self.state.lock();
        match outcome {
            Ok(()) => {
                assert!(load >= state.durable, "the log makes a group's loads durable in their order");
                state.durable = load + 1;
            }
            Err(reason) => {
                state.failed.push(load);
                state.reasons.push((load, reason));
            }
        }
        self.one_less(&mut state);
    }

    /// A load of an answered group does not count after all.
    pub fn refuse(&self, load: u32, reason: IngestError) {
        let mut state = self.state.lock();
        state.failed.push(load);
        state.reasons.push((load, reason));
    }

    fn one_less(&self, state: &mut AppendState) {
        assert!(state.pending > 0, "nothing is answered that was not submitted");
        state.pending -= 1;
        if state.pending == 0 {
            self.answered.notify_waiters();
        }
    }

    /// The number below which all submitted loads are durable, if none has failed.
    pub fn durable(&self) -> Option<u32> {
        let state = self.state.lock();
        let is_sound = state.failed.is_empty() && state.durable > 0;
        is_sound.then_some(state.durable)
    }

    /// The group is not answered before [`Appends::gathered`] is called.
    pub fn begin_gathering(&self) {
        self.state.lock().pending += 1;
    }

    /// Stores the columns of loads that are no longer members.
    pub fn gathered(&self, runs: Result<Vec<Run>, IngestError>) {
        let mut state = self.state.lock();
        match runs {
            Ok(runs) => state.gathered.extend(runs),
            Err(error) => state.not_gathered = Some(error),
        }
        self.one_less(&mut state);
    }

    /// Everything that was gathered, in the order of the log.
    ///
    /// # Errors
    /// Why something was not, although it was taken out of the group.
    pub fn runs(&self) -> Result<Vec<Run>, IngestError> {
        let mut state = self.state.lock();
        if let Some(error) = &state.not_gathered {
            return Err(error.clone());
        }
        // Two threads may have gathered at the same time.
        state.gathered.sort_unstable_by_key(|run| run.first);
        Ok(state.gathered.clone())
    }

    /// Keeps the same rows in fewer batches.
    pub fn replace_runs(&self, runs: Vec<Run>) {
        self.state.lock().gathered = runs;
    }

    /// Whether every append is durable or failed.
    pub fn is_answered(&self) -> bool {
        self.state.lock().pending == 0
    }

    /// The numbers of the loads whose append failed.
    pub fn failed(&self) -> Vec<u32> {
        self.state.lock().failed.clone()
    }

    /// Why the load's append failed, if it did.
    pub fn reason(&self, load: u32) -> Option<IngestError> {
        let state = self.state.lock();
        state.reasons.iter().find(|(failed, _)| *failed == load).map(|(_, reason)| reason.clone())
    }

    /// Waits until every append is durable or failed; the numbers of the failed loads.
    pub async fn answered(&self) -> Vec<u32> {
        loop {
            let answered = self.answered.notified();
            {
                let state = self.state.lock();
                if state.pending == 0 {
                    return state.failed.clone();
                }
            }
            answered.await;
        }
    }
}
