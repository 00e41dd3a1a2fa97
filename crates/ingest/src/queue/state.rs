//! A table's groups between their first load and their commit, as a state machine under one lock.
//!
//! Invariant: there is at most one committer, the holder of the [`CommitTurn`]; groups are committed in the order in which they
//! were opened; versions are assigned in the order in which commits are submitted. Not its business: the contents of commits, and
//! the log.

use super::TableQueue;
use super::pins::Pins;
use super::turn::CommitTurn;
use crate::error::IngestError;
use crate::group::{CloseReason, Group};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tributary_table::Table;
use tributary_types::{Lsn, SchemaVersion, Version, host};

/// The treatment of closed groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There are none, and the turn is free.
    Idle,
    /// The turn is taken, and its holder continues until there are none left.
    Committing,
    /// The turn is taken, and its holder waits before continuing: a group found no space, and none may overtake it.
    ShortOfSpace,
    /// The table is dropped: nothing joins and nothing is committed any more.
    Dropped,
}

/// Events of closed groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// One more.
    Closed,
    /// The holder of the turn finds none left.
    Exhausted,
    /// One could not be written for want of space.
    NoSpace,
    /// There may be space again.
    Retry,
    TableDropped,
}

impl Stage {
    /// The stage after an event.
    pub const fn after(self, event: Event) -> Self {
        match (self, event) {
            (Self::Dropped, _) | (_, Event::TableDropped) => Self::Dropped,
            (_, Event::NoSpace) => Self::ShortOfSpace,
            (Self::ShortOfSpace, Event::Retry) => Self::Committing,
            (Self::ShortOfSpace, _) => Self::ShortOfSpace,
            (Self::Idle | Self::Committing, Event::Closed | Event::Retry) => Self::Committing,
            (Self::Idle | Self::Committing, Event::Exhausted) => Self::Idle,
        }
    }

    /// Whether somebody has the turn, who was given it when the stage was [`Stage::Idle`].
    const fn has_committer(self) -> bool {
        matches!(self, Self::Committing | Self::ShortOfSpace)
    }
}

/// A group that takes no more loads.
#[derive(Debug)]
pub(super) struct Closed {
    pub group: Group,
    pub reason: CloseReason,
    pub at: Instant,
}

impl Closed {
    /// A group that closes now.
    pub fn now(group: Group, reason: CloseReason) -> Self {
        Self { group, reason, at: host::now() }
    }
}

/// The next step of the holder of the turn.
#[expect(clippy::large_enum_variant, reason = "one is made for each group and moved once")]
pub(super) enum Next {
    Commit(Closed),
    /// Until there may be space.
    Wait,
    /// The turn is over.
    Nothing,
}

#[derive(Debug)]
pub(super) struct State {
    pub open: Option<Group>,
    /// In the order in which they were opened, which is that of their transactions.
    closed: VecDeque<Closed>,
    /// When the last group was due, if that is why it closed.
    pub last_deadline: Option<Instant>,
    /// Why the last group closed.
    pub last_closed_by: Option<CloseReason>,
    stage: Stage,
    /// Commits that the log has not answered yet.
    in_flight: usize,
    pub pins: Pins,
    next_version: Version,
    /// The beginning of the last commit that the log has answered.
    answered: Lsn,
    /// The table's schema is being changed: nothing begins.
    pub is_held: bool,
    /// Loads of Group Commit wait then, too.
    pub lets_wait: bool,
    /// Rows of earlier schemas have other types than the table's columns.
    pub schema_floor: SchemaVersion,
}

impl State {
    pub fn new(next_version: Version) -> Self {
        Self {
            open: None,
            closed: VecDeque::new(),
            last_deadline: None,
            last_closed_by: None,
            stage: Stage::Idle,
            in_flight: 0,
            pins: Pins::default(),
            next_version,
            answered: Lsn(0),
            is_held: false,
            lets_wait: false,
            schema_floor: SchemaVersion(0),
        }
    }

    /// Closes the open group. It must be committed by the holder of the turn, new or existing.
    pub fn close(&mut self, queue: &Arc<TableQueue>, reason: CloseReason) -> Option<CommitTurn> {
        let group = self.open.take()?;
        self.last_closed_by = Some(reason);
        self.last_deadline = group.deadline.filter(|_| reason == CloseReason::Interval);
        self.closed.push_back(Closed::now(group, reason));
        self.step(queue, Event::Closed)
    }

    /// Closes a group that waits for nothing but a free log if it is free now.
    pub fn close_if_free(&mut self, queue: &Arc<TableQueue>) -> Option<CommitTurn> {
        let waits = self.open.as_ref().is_some_and(|group| group.deadline.is_none());
        if waits && self.is_free() { self.close(queue, CloseReason::LogFree) } else { None }
    }

    /// Whether no commit is under way: none is being built, written or waiting for space.
    fn is_free(&self) -> bool {
        self.in_flight == 0 && self.stage == Stage::Idle
    }

    /// The next step of the holder of the turn.
    pub fn next(&mut self, queue: &Arc<TableQueue>) -> Next {
        match self.stage {
            Stage::ShortOfSpace => return Next::Wait,
            Stage::Dropped => return Next::Nothing,
            Stage::Idle | Stage::Committing => {}
        }
        if self.closed.is_empty() {
            drop(self.step(queue, Event::Exhausted));
            // Nothing of the last one may be on its way: it has failed, or was answered already.
            if let Some(turn) = self.close_if_free(queue) {
                turn.leave_to_caller();
            }
        }
        self.closed.pop_front().map_or(Next::Nothing, Next::Commit)
    }

    /// There may be space again.
    pub fn retry(&mut self, queue: &Arc<TableQueue>) {
        drop(self.step(queue, Event::Retry));
    }

    /// Closed groups that wait for their commit, oldest first.
    pub fn closed(&self) -> impl ExactSizeIterator<Item = &Closed> {
        self.closed.iter()
    }

    /// Commits that the log has not answered yet.
    pub fn commits_in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether commits wait for space.
    pub fn is_short_of_space(&self) -> bool {
        self.stage == Stage::ShortOfSpace
    }

    /// Postpones a group's commit, but still before those of groups that were opened after it.
    pub fn put_back(&mut self, closed: Closed) {
        let place = self.closed.partition_point(|other| other.group.txn < closed.group.txn);
        self.closed.insert(place, closed);
    }

    /// The log has no space for a group.
    pub fn found_no_space(&mut self, queue: &Arc<TableQueue>, closed: Closed) -> Option<CommitTurn> {
        self.put_back(closed);
        self.step(queue, Event::NoSpace)
    }

    /// The only place where the stage changes. The caller that makes an idle queue commit gets the turn.
    fn step(&mut self, queue: &Arc<TableQueue>, event: Event) -> Option<CommitTurn> {
        let before = self.stage;
        self.stage = before.after(event);
        (!before.has_committer() && self.stage.has_committer()).then(|| CommitTurn::new(queue))
    }

    /// Gives a commit its version. It is in flight until [`State::ended`].
    pub fn begin_commit(&mut self) -> Version {
        let version = self.next_version;
        self.next_version = version.next();
        self.in_flight += 1;
        version
    }

    /// A commit is in flight no longer; the log made it durable at `first`, if it did.
    ///
    /// # Panics
    /// If the log answers out of order.
    pub fn ended(&mut self, first: Option<Lsn>) {
        assert!(self.in_flight > 0, "a commit ends once");
        self.in_flight -= 1;
        if let Some(first) = first {
            assert!(first >= self.answered, "the log answers a table's commits in their order");
            self.answered = first;
        }
    }

    /// Sets the version that the next commit gets, after recovery.
    pub fn continue_after(&mut self, version: Version) {
        self.next_version = self.next_version.max(version.next());
    }

    pub fn refuse_if_dropped(&self, table: &Table) -> Result<(), IngestError> {
        if self.is_dropped() { Err(IngestError::TableDropped(table.def().table_ref())) } else { Ok(()) }
    }

    /// Refuses rows that would have to be converted.
    pub fn refuse_old(&self, rows: SchemaVersion) -> Result<(), IngestError> {
        if rows < self.schema_floor { Err(IngestError::OldSchema) } else { Ok(()) }
    }

    pub fn is_dropped(&self) -> bool {
        self.stage == Stage::Dropped
    }

    /// Nothing joins any more; the groups that will never be committed.
    pub fn drop_table(&mut self, queue: &Arc<TableQueue>) -> Vec<Group> {
        drop(self.step(queue, Event::TableDropped));
        self.pins.unpin_all();
        self.open.take().into_iter().chain(self.closed.drain(..).map(|closed| closed.group)).collect()
    }

    /// Groups that are not being committed yet.
    pub fn groups(&self) -> usize {
        self.open.iter().count() + self.closed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_queue_commits_what_is_closed_and_rests_when_nothing_is_left() {
        assert_eq!(Stage::Idle.after(Event::Closed), Stage::Committing);
        assert_eq!(Stage::Committing.after(Event::Closed), Stage::Committing);
        assert_eq!(Stage::Committing.after(Event::Exhausted), Stage::Idle);
    }

    #[test]
    fn a_queue_that_is_short_of_space_goes_on_only_when_it_tries_again() {
        for stage in [Stage::Idle, Stage::Committing, Stage::ShortOfSpace] {
            assert_eq!(stage.after(Event::NoSpace), Stage::ShortOfSpace);
        }
        for event in [Event::Closed, Event::Exhausted, Event::NoSpace] {
            assert_eq!(Stage::ShortOfSpace.after(event), Stage::ShortOfSpace);
        }
        assert_eq!(Stage::ShortOfSpace.after(Event::Retry), Stage::Committing);
    }

    #[test]
    fn a_dropped_table_stays_dropped() {
        for stage in [Stage::Idle, Stage::Committing, Stage::ShortOfSpace, Stage::Dropped] {
            assert_eq!(stage.after(Event::TableDropped), Stage::Dropped);
        }
        for event in [Event::Closed, Event::Exhausted, Event::NoSpace, Event::Retry] {
            assert_eq!(Stage::Dropped.after(event), Stage::Dropped);
        }
    }
}
