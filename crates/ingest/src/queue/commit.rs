//! Commits closed groups: builds, submits, publishes, answers.
//!
//! Invariant: versions are given out and commits submitted under one lock, and the log answers in the order of submission, so
//! publications happen in the order of versions. A version whose commit found no space is never used again. Async
//! rows are never dropped once the log has them. Not its business: when a group closes, and whose turn it is.

use super::TableQueue;
use super::entries::data_entries;
use super::flight::Flight;
use super::state::Closed;
use crate::error::{IngestError, wal_error};
use crate::group::build::ToBuild;
use crate::group::columns::Built;
use crate::group::finished::FinishedGroup;
use crate::group::member::Member;
use crate::group::{CloseReason, Group};
use crate::keys::AnsweredAs;
use crate::load::stages::{CommitTimes, Committed};
use crate::queue::dropped::Checked;
use crate::recovery::record::{self, CommitBody, Format, kind};
use crate::tasks;
use std::sync::Arc;
use tributary_table::{Publication, TableError};
use tributary_types::{Lsn, TableSchema, TransactionKind, Version, host, process};
use tributary_wal::log::Done;
use tributary_wal::{Appended, Entry, WalError};

/// Groups above this size are turned into columns on a thread of their own.
const INLINE_BUILD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The loads of a larger group are freed by a task of their own.
const DROPPED_HERE_MAX: usize = 1024;

impl Group {
    /// Whether the commit takes neither waiting nor long work.
    pub(super) fn commits_quickly(&self) -> bool {
        self.bytes <= INLINE_BUILD_BYTES_MAX && self.appends.is_answered()
    }
}

impl TableQueue {
    /// Commits a group whose appends are answered, on the caller's thread.
    pub(super) fn commit_here(self: &Arc<Self>, mut closed: Closed) {
        let failed = closed.group.appends.failed();
        closed.group.exclude(&failed);
        let built = ToBuild::of_group(&closed.group).and_then(|parts| self.build_now(&parts));
        self.submit_or_fail(closed, failed, built);
    }

    pub(super) async fn commit_group(self: &Arc<Self>, mut closed: Closed) {
        let failed = closed.group.appends.answered().await;
        closed.group.exclude(&failed);
        let built = match ToBuild::of_group(&closed.group) {
            Ok(parts) => self.build(parts, closed.group.bytes).await,
            Err(error) => Err(error),
        };
        self.submit_or_fail(closed, failed, built);
    }

    fn submit_or_fail(self: &Arc<Self>, closed: Closed, failed: Vec<u32>, built: Result<Built, IngestError>) {
        match built {
            Ok(built) => self.submit_checked(closed, failed, built),
            Err(error) => self.fail_group(closed.group, &error),
        }
    }

    /// Turns blocks into columns of the table's present schema.
    pub(super) async fn build(self: &Arc<Self>, parts: ToBuild, bytes: u64) -> Result<Built, IngestError> {
        if bytes <= INLINE_BUILD_BYTES_MAX || host::is_simulated() {
            return self.build_now(&parts);
        }
        let queue = Arc::clone(self);
        tokio::task::spawn_blocking(move || queue.build_now(&parts))
            .await
            .unwrap_or_else(|gone| Err(IngestError::Bug(format!("building columns: {gone}"))))
    }

    pub(crate) fn build_now(&self, parts: &ToBuild) -> Result<Built, IngestError> {
        self.core.metrics.blocks_built.inc_by(parts.blocks() as u64);
        self.build_guarded(|schema, now_micros| parts.build(schema, now_micros))
    }

    pub(super) fn build_guarded<T>(
        &self,
        build: impl FnOnce(Arc<TableSchema>, i64) -> Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        let schema = Arc::clone(&self.table.def().schema);
        let now_micros = host::unix_ms() * 1000;
        // If a committer died, its table would have none.
        tasks::guarded(|| build(schema, now_micros)).unwrap_or_else(|panic| {
            Err(IngestError::Bug(format!(
                "building columns of table {}: {panic}",
                self.table.def().table_ref()
            )))
        })
    }

    /// Submits entries decided under `state`, so that versions are in the log in order. Answers on this thread are given when the
    /// lock is free, because they take it.
    pub(super) fn submit<G>(&self, state: G, entries: Vec<Entry>, done: Done) {
        let offered = self.space.wal.offer(entries, done);
        drop(state);
        offered.hand_over();
    }

    /// Submits a group's commit once none of its waiting loads lacks a partition.
    fn submit_checked(self: &Arc<Self>, mut closed: Closed, mut excluded: Vec<u32>, mut built: Built) {
        loop {
            let (checked, found) = match self.refuse_dropped(&mut closed.group, &mut excluded, &mut built) {
                Ok(checked) => checked,
                Err(error) => return self.fail_group(closed.group, &error),
            };
            match self.submit_group(closed, excluded, built, (&checked, found)) {
                Some(again) => (closed, excluded, built) = again,
                None => return,
            }
        }
    }

    /// Submits a group's commit, like [`TableQueue::submit`], and after those of groups that find no space. A lone load, with
    /// which no other waits, may be written here. Returns everything if the table's partitions are no longer the checked ones.
    fn submit_group(
        self: &Arc<Self>,
        closed: Closed,
        excluded: Vec<u32>,
        built: Built,
        (checked, have_partitions): (&Checked, bool),
    ) -> Option<(Closed, Vec<u32>, Built)> {
        let Closed { group, reason, at } = closed;
        let files: Vec<_> =
            group.members.iter().flat_map(|member| member.rows.files().iter().cloned()).collect();
        let table = self.table.id();
        let mut entries: Vec<Entry> = group
            .members
            .iter()
            .filter(|member| !member.is_logged)
            .flat_map(|member| {
                data_entries(kind::DATA_HELD, table, group.txn, member.load, &member.rows.blocks)
            })
            .collect();
        let waiting = group.members.iter().filter(|member| !member.is_async);
        entries.extend(waiting.flat_map(|member| {
            let load = (table, group.txn, member.load);
            member.rows.facts.entries(load, &group.label, AnsweredAs::GroupSync)
        }));
        let body = |version: Version| CommitBody {
            format: Format::default(),
            version,
            db: self.table.def().db_id,
            label: group.label.clone(),
            label_is_kept: false,
            is_group: true,
            kind: Some(TransactionKind::Group),
            loads: group.loads() as u32,
            rows: group.rows,
            bytes: group.bytes,
            prepared_at_ms: group.prepared_at_ms,
            committed_at_ms: host::unix_ms(),
            files: files.clone(),
            excluded: excluded.clone(),
            replaces: None,
            source: None,
            attachment: None,
        };
        let mut state = self.state.lock();
        if let Err(dropped) = state.refuse_if_dropped(&self.table) {
            drop(state);
            self.fail_group(group, &dropped);
            return None;
        }
        if !checked.holds(&self.table) {
            drop(state);
            return Some((Closed { group, reason, at }, excluded, built));
        }
        if state.is_short_of_space() {
            // Another group has found no space meanwhile, and goes first.
            state.put_back(Closed { group, reason, at });
            return None;
        }
        let flight = Flight::begin(self, &mut state, group.txn);
        let version = flight.version();
        entries.push(record::json(kind::COMMIT, table, group.txn, &body(version)));
        let is_lone = group.loads() == 1 && !group.waiters.is_empty();
        let publication = Publication {
            version,
            schema: built.schema,
            batches: built.batches,
            files,
            replaces: None,
            partitions: checked.partitions().filter(|_| have_partitions).cloned(),
            lsn: group.low,
        };
        group.members.iter().for_each(|member| member.rows.is_submitted());
        let submitted = host::now();
        let done = move |result: Result<Appended, WalError>| match result {
            Ok(place) => {
                let times = CommitTimes { closed: Some(at), submitted, durable: host::now() };
                flight.group_is_durable(Some(place.first), group, &excluded, (reason, times), publication);
            }
            Err(error) => flight.group_is_refused(Closed { group, reason, at }, error),
        };
        let offered = self.space.wal.offer_in_order(entries, Box::new(done));
        drop(state);
        if is_lone {
            offered.write_here();
        }
        None
    }

    /// Makes durable rows visible.
    pub(super) fn publish(&self, publication: Publication) {
        if let Err(error) = self.table.publish(publication) {
            die(&error);
        }
    }

    /// Answers those who wait with the error. Acknowledged rows stay in the log: the next start commits
    /// them.
    pub(super) fn fail_group(&self, group: Group, error: &IngestError) {
        let is_stranded = {
            let mut state = self.state.lock();
            let is_stranded = group.is_acknowledged() && state.pins.strand(group.txn);
            if !is_stranded {
                state.pins.unpin(group.txn);
            }
            is_stranded
        };
        let table = self.table.def().table_ref();
        if is_stranded {
            // Not aborted: who reads that would send the rows again.
            tracing::error!(%table, label = %group.label, txn = %group.txn, %error, "group failed; its acknowledged rows are in the write-ahead log, the next start of the server commits them");
        } else {
            tracing::error!(%table, label = %group.label, %error, "group failed");
            self.core.transactions.aborted(group.txn, host::unix_ms(), error.to_string());
        }
        let finished = FinishedGroup::of(self.table.id(), &group);
        self.core.finished.add(FinishedGroup { error: Some(error.to_string()), is_stranded, ..finished });
        self.core.memory.leave_group(group.memory_bytes);
        self.core.metrics.groups_failed.inc();
        self.published.notify_waiters();
        for (load, waiter) in group.waiters {
            drop(waiter.send(Err(group.appends.reason(load).unwrap_or_else(|| error.clone()))));
        }
    }
}

impl Flight {
    fn group_is_durable(
        self,
        first: Option<Lsn>,
        group: Group,
        excluded: &[u32],
        (reason, times): (CloseReason, CommitTimes),
        publication: Publication,
    ) {
        let version = publication.version;
        let queue = Arc::clone(self.queue());
        let core = &queue.core;
        queue.publish(publication);
        group.members.iter().for_each(|member| member.rows.facts.are_stored());
        core.memory.published(group.bytes);
        core.memory.leave_group(group.memory_bytes);
        if queue.table.flush_due(host::now()) {
            core.memory.want_flush();
        }
        let finished = FinishedGroup::of(queue.table.id(), &group);
        core.finished.add(finished.committed(version, reason, group.opened, &times));
        let loads = group.loads() as u32;
        let counts = (loads, group.rows, group.bytes);
        core.transactions.visible(group.txn, version, host::unix_ms(), counts);
        core.metrics.group_committed(reason, loads, group.rows);
        self.published(first);
        let members = answer_waiters(group, excluded, Committed { version, times, closed_by: Some(reason) });
        if members.len() > DROPPED_HERE_MAX {
            // Not on the log's thread, which others wait for.
            core.tasks.spawn(async move { drop(members) });
        }
    }

    /// Nothing was written. A full disk is waited out, because async rows are in the log already.
    fn group_is_refused(self, closed: Closed, error: WalError) {
        let queue = Arc::clone(self.queue());
        let is_for_space = matches!(error, WalError::NoSpace { .. });
        let error = wal_error(error);
        if error.says_nothing_was_kept() {
            closed.group.members.iter().for_each(|member| member.rows.is_refused());
        }
        if !is_for_space {
            drop(self);
            queue.fail_group(closed.group, &error);
            return;
        }
        tracing::warn!(table = %queue.table.def().table_ref(), label = %closed.group.label, %error, "commit waits for space");
        if let Some(group) = self.found_no_space(closed) {
            queue.fail_group(group, &IngestError::TableDropped(queue.table.def().table_ref()));
        }
    }
}

/// Ends the process: rows are durable but can't be shown, so any answer would be wrong. The next
/// start replays them.
pub(super) fn die(error: &TableError) -> ! {
    assert!(!host::is_simulated(), "committed rows can't be published: {error}");
    tracing::error!(%error, "committed rows can't be published; restart the server to replay them");
    process::abort(&format!("committed rows can't be published: {error}; restart the server to replay them"))
}

/// Answers the waiting loads; those in `excluded` learn why the log does not have their rows. Returns the rest of the group.
fn answer_waiters(group: Group, excluded: &[u32], committed: Committed) -> Vec<Member> {
    for (load, waiter) in group.waiters {
        let refused = if excluded.contains(&load) { group.appends.reason(load) } else { None };
        // A client that went away needs no answer.
        drop(waiter.send(refused.map_or(Ok(committed), Err)));
    }
    group.members
}
