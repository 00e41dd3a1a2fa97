//! The last finished groups of the server, for those who look.
//!
//! Invariant: a bounded number of them is kept, in the order in which they finished. Nothing depends on them.

use crate::group::{CloseReason, Group};
use crate::load::stages::CommitTimes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tributary_types::{Label, TableId, TxnId, Version, host};

/// Finished groups that are kept.
pub const FINISHED_GROUPS_KEPT: usize = 2048;

/// A group that was committed, or failed.
#[derive(Clone, Debug)]
pub struct FinishedGroup {
    pub table: TableId,
    pub txn: TxnId,
    pub label: Label,
    /// The version that shows its rows; `None` if it failed.
    pub version: Option<Version>,
    pub closed_by: Option<CloseReason>,
    pub loads: u64,
    /// Loads that waited for the commit.
    pub waited: u64,
    pub rows: u64,
    pub bytes: u64,
    /// When it was opened, in milliseconds of Unix time.
    pub opened_at_ms: i64,
    /// When it finished, in milliseconds of Unix time.
    pub finished_at_ms: i64,
    /// How long it took loads.
    pub open: Duration,
    /// From its close until the log was given its commit.
    pub build: Duration,
    /// Until its commit was durable.
    pub log: Duration,
    /// Until it was visible.
    pub publish: Duration,
    /// Why it failed.
    pub error: Option<String>,
    /// It failed, and the next start of the server commits its acknowledged rows.
    pub is_stranded: bool,
}

impl FinishedGroup {
    /// The group's facts, before its loads are answered.
    pub(crate) fn of(table: TableId, group: &Group) -> Self {
        Self {
            table,
            txn: group.txn,
            label: group.label.clone(),
            version: None,
            closed_by: None,
            loads: group.loads() as u64,
            waited: group.waiters.len() as u64,
            rows: group.rows,
            bytes: group.bytes,
            opened_at_ms: group.prepared_at_ms,
            finished_at_ms: host::unix_ms(),
            open: Duration::ZERO,
            build: Duration::ZERO,
            log: Duration::ZERO,
            publish: Duration::ZERO,
            error: None,
            is_stranded: false,
        }
    }

    /// `VISIBLE`, `FAILED`, or `STRANDED`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match (self.version, self.is_stranded) {
            (Some(_), _) => "VISIBLE",
            (None, true) => "STRANDED",
            (None, false) => "FAILED",
        }
    }

    /// The group as committed; `opened` is when its first load joined it.
    pub(crate) fn committed(
        self,
        version: Version,
        closed_by: CloseReason,
        opened: Instant,
        times: &CommitTimes,
    ) -> Self {
        let closed = times.closed.unwrap_or(times.submitted);
        Self {
            version: Some(version),
            closed_by: Some(closed_by),
            open: closed.saturating_duration_since(opened),
            build: times.submitted.saturating_duration_since(closed),
            log: times.durable.saturating_duration_since(times.submitted),
            publish: host::now().saturating_duration_since(times.durable),
            ..self
        }
    }
}

/// The last finished groups.
#[derive(Debug, Default)]
pub(crate) struct FinishedGroups(Mutex<VecDeque<FinishedGroup>>);

impl FinishedGroups {
    pub fn add(&self, group: FinishedGroup) {
        let mut groups = self.0.lock();
        // The one that goes is freed without the lock.
        let _oldest = (groups.len() >= FINISHED_GROUPS_KEPT).then(|| groups.pop_front());
        groups.push_back(group);
        drop(groups);
    }

    pub fn all(&self) -> Vec<FinishedGroup> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::Lsn;

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let groups = FinishedGroups::default();
        for txn in 1..=FINISHED_GROUPS_KEPT as u64 + 10 {
            let group = Group::new(TxnId(txn), Label::of_group(1), 0, Lsn(0));
            groups.add(FinishedGroup::of(TableId(1), &group));
        }
        let all = groups.all();
        assert_eq!(all.len(), FINISHED_GROUPS_KEPT);
        assert_eq!(all.first().unwrap().txn, TxnId(11));
        let failed = all[0].clone();
        assert_eq!(failed.status(), "FAILED");
        assert_eq!(FinishedGroup { is_stranded: true, ..failed }.status(), "STRANDED");
    }
}
