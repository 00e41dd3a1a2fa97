//! The time of a load between its rows and its answer, in stages.
//!
//! Invariant: stages follow one another without a gap, so together they are the whole time. Not here: what a load does before its
//! rows are decoded, which the doors of the server measure.

use crate::group::CloseReason;
use std::time::{Duration, Instant};
use tributary_types::Version;

/// Durations of the stages of an acknowledged load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Waiting for memory, for the user's turn at the log, and for a schema change.
    pub admit: Duration,
    /// In the open group; zero for a load that is acknowledged before its group closes, or is in none.
    pub wait: Duration,
    /// From the closed group to a commit that the log is given: behind commits of earlier groups, turning rows into columns.
    pub build: Duration,
    /// Until the log has made the load, or its commit, durable.
    pub log: Duration,
    /// Until the rows are visible and the load's task knows it; zero for a load that is acknowledged before.
    pub publish: Duration,
}

impl Stages {
    /// Stages of a load that is acknowledged `now`, once the log has its rows.
    pub(crate) fn logged(begun: Instant, admitted: Instant, now: Instant) -> Self {
        Self {
            admit: admitted.saturating_duration_since(begun),
            log: now.saturating_duration_since(admitted),
            ..Self::default()
        }
    }

    /// Stages of a load that is acknowledged `now`, once it is visible.
    pub(crate) fn committed(begun: Instant, admitted: Instant, commit: &CommitTimes, now: Instant) -> Self {
        let closed = commit.closed.unwrap_or(admitted).max(admitted);
        let submitted = commit.submitted.max(closed);
        let durable = commit.durable.max(submitted);
        Self {
            admit: admitted.saturating_duration_since(begun),
            wait: closed.saturating_duration_since(admitted),
            build: submitted.saturating_duration_since(closed),
            log: durable.saturating_duration_since(submitted),
            publish: now.saturating_duration_since(durable),
        }
    }

    /// All stages together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.admit + self.wait + self.build + self.log + self.publish
    }
}

/// The moments of a load of a group until it is acknowledged. Clocks are read seldom: a load of one row notices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    /// When it joined its group.
    pub admitted: Instant,
    /// Those of its commit, if it has waited for it.
    pub commit: Option<CommitTimes>,
}

impl Moments {
    /// The stages of a load that began to wait for memory at `begun` and is acknowledged `now`.
    pub fn stages(&self, begun: Instant, now: Instant) -> Stages {
        match &self.commit {
            Some(commit) => Stages::committed(begun, self.admitted, commit, now),
            None => Stages::logged(begun, self.admitted, now),
        }
    }
}

/// The moments of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitTimes {
    /// When its group closed; `None` for a transaction that is no group.
    pub closed: Option<Instant>,
    /// When the log was given it.
    pub submitted: Instant,
    /// When the log had it.
    pub durable: Instant,
}

/// A commit, as the loads learn of it that waited for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub version: Version,
    pub times: CommitTimes,
    pub closed_by: Option<CloseReason>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_one_another_whatever_the_clock_says() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let times = CommitTimes { closed: Some(at(30)), submitted: at(34), durable: at(40) };
        let stages = Stages::committed(begun, at(10), &times, at(50));
        let ms = [stages.admit, stages.wait, stages.build, stages.log].map(|part| part.as_millis());
        assert_eq!(ms, [10, 20, 4, 6]);
        // A group whose load was the last to join may have closed before the load looked at the clock.
        let times = CommitTimes { closed: Some(at(5)), submitted: at(7), durable: at(40) };
        let stages = Stages::committed(begun, at(10), &times, at(50));
        let ms = [stages.admit, stages.wait, stages.build, stages.log].map(|part| part.as_millis());
        assert_eq!(ms, [10, 0, 0, 30]);
    }
}
