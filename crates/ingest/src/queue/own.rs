//! Transactions that are not groups: loads of their own, prepared loads, truncations.
//!
//! Invariant: as for groups, versions are given out and commits submitted under one lock. Not its business: labels, and who
//! remembers prepared loads.

use super::TableQueue;
use super::commit::die;
use super::entries::data_entries;
use super::flight::Flight;
use super::pins::Why;
use super::state::State;
use crate::error::{IngestError, wal_error};
use crate::group::build::ToBuild;
use crate::group::columns::Built;
use crate::keys::AnsweredAs;
use crate::load::LoadRows;
use crate::load::facts::LoadFacts;
use crate::load::stages::{CommitTimes, Committed};
use crate::memory::Admitted;
use crate::queue::dropped::Checked;
use crate::recovery::record::{self, CommitBody, CutBody, Format, PrepareBody, TruncateBody, kind};
use crate::transactions::Reservation;
use std::sync::Arc;
use tokio::sync::oneshot;
use tributary_table::{Publication, UnpublishedFiles};
use tributary_types::lock::RankedGuard;
use tributary_types::{Attachment, Label, Lsn, Partitions, SourceId, TransactionKind, TxnId, Version, host};
use tributary_wal::{Appended, WalError};

/// The identity of a transaction of its own.
#[derive(Clone, Debug)]
pub(crate) struct OwnTransaction {
    pub txn: TxnId,
    pub label: Label,
    pub label_is_kept: bool,
    pub kind: TransactionKind,
    pub prepared_at_ms: i64,
    pub source: Option<SourceId>,
    pub attachment: Option<Attachment>,
    /// The client of a two-phase load.
    pub client: Option<String>,
}

/// A separate transaction of one table on its way to the log.
pub(crate) struct OwnCommit {
    pub queue: Arc<TableQueue>,
    pub own: OwnTransaction,
    pub rows: LoadRows,
    /// The owner of the label, until the entry is handed to the log: from then on the log's answer decides the label's fate.
    pub owner: Option<Reservation>,
}

type Answer = Result<Vec<(TxnId, Committed)>, IngestError>;

/// Commits a separate transaction, of rows that were just admitted, or of a prepared load's rows, which the log already has; or
/// one for each of several tables. These are in one frame of the log, so that they are durable together or not at all. Durable
/// and visible on return.
///
/// # Errors
/// Nothing of any of them was stored if the error says so. Commits that were not handed to the log are left.
pub(crate) async fn commit_own(commits: &mut Vec<OwnCommit>, admitted: Option<Admitted>) -> Answer {
    // Several queues are locked in one order.
    commits.sort_by_key(|commit| commit.queue.table.id());
    let space = Arc::clone(&commits[0].queue.space);
    if let Some(other) = commits.iter().find(|commit| !Arc::ptr_eq(&commit.queue.space, &space)) {
        let [one, other] = [&commits[0], other].map(|commit| commit.queue.table.def().table_ref());
        return Err(IngestError::SeveralLogs { one, other });
    }
    let blocks_are_logged = admitted.is_none();
    let (sender, answer) = oneshot::channel();
    let mut sender = Some(sender);
    while sender.is_some() {
        let (mut all_built, mut bytes) = (Vec::with_capacity(commits.len()), 0);
        for OwnCommit { queue, rows, .. } in commits.iter() {
            queue.released().await;
            all_built.push(queue.build(ToBuild::of_load(rows), rows.memory_bytes()).await?);
            bytes += rows.memory_bytes();
        }
        // Until it is submitted, or waits for something else.
        let bytes = if blocks_are_logged { 0 } else { bytes };
        let _turn = space.turn(commits[0].rows.user, bytes).await;
        for OwnCommit { queue, rows, .. } in commits.iter() {
            rows.refuse_if_revoked(&queue.table)?;
        }
        // Else they are built again when their tables have new schemas.
        submit_own(commits, blocks_are_logged, all_built, &mut sender)?;
    }
    drop(admitted);
    answer.await.unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
}

/// Locks the queues of all commits when no row of theirs lacks one of its table's partitions, which are returned, too.
fn lock_all<'a>(
    queues: &'a [Arc<TableQueue>],
    commits: &[OwnCommit],
    all_built: &[Built],
) -> Result<(Vec<RankedGuard<'a, State>>, Vec<Checked>), IngestError> {
    loop {
        let mut all_checked = Vec::with_capacity(commits.len());
        for (commit, built) in commits.iter().zip(all_built) {
            let checked = Checked::of(&commit.queue.table);
            checked.own(&commit.queue, built, &commit.rows)?;
            all_checked.push(checked);
        }
        let mut states: Vec<RankedGuard<'a, State>> = Vec::with_capacity(queues.len());
        for queue in queues {
            let state = match states.last() {
                None => queue.state.lock(),
                Some(before) => queue.state.lock_after(before),
            };
            states.push(state);
        }
        if all_checked.iter().zip(queues).all(|(checked, queue)| checked.holds(&queue.table)) {
            return Ok((states, all_checked));
        }
    }
}

/// A commit that the log has not answered, with everything that its answer needs.
struct Submitted {
    flight: Flight,
    publication: Publication,
    txn: TxnId,
    low: Lsn,
    memory: u64,
    rows: u64,
    bytes: u64,
    unpublished: Option<Arc<UnpublishedFiles>>,
    facts: LoadFacts,
}

/// Hands the commits to the log; takes `sender` if it does. Otherwise loads of a table are held, or its schema has changed.
fn submit_own(
    commits: &mut Vec<OwnCommit>,
    blocks_are_logged: bool,
    all_built: Vec<Built>,
    sender: &mut Option<oneshot::Sender<Answer>>,
) -> Result<(), IngestError> {
    let queues: Vec<_> = commits.iter().map(|commit| Arc::clone(&commit.queue)).collect();
    let (mut states, all_checked) = lock_all(&queues, commits, &all_built)?;
    for (state, OwnCommit { queue, rows, .. }) in states.iter().zip(commits.iter()) {
        state.refuse_if_dropped(&queue.table)?;
        if !state.is_held && !rows.files().is_empty() {
            state.refuse_old(rows.schema.version)?;
        }
    }
    let is_outdated = |(state, built): (&RankedGuard<'_, State>, &Built)| {
        state.is_held || built.schema.version < state.schema_floor
    };
    if states.iter().zip(&all_built).any(is_outdated) {
        return Ok(());
    }
    let Some(sender) = sender.take() else { return Ok(()) };
    let (mut entries, mut all) = (Vec::new(), Vec::with_capacity(commits.len()));
    let each = commits.drain(..).zip(all_built).zip(all_checked).zip(&mut states);
    for (((OwnCommit { queue, own, rows, owner }, built), checked), state) in each {
        let table = queue.table.id();
        let low = state.pins.pin_on(own.txn, queue.space.wal.end_lsn(), Why::Running);
        let flight = Flight::begin(&queue, state, own.txn);
        let version = flight.version();
        if !blocks_are_logged {
            entries.extend(data_entries(kind::DATA_HELD, table, own.txn, 0, &rows.blocks));
            entries.extend(rows.facts.entries((table, own.txn, 0), &own.label, AnsweredAs::Own));
        }
        let body = queue.own_commit_body(&own, &rows, version);
        entries.push(record::json(kind::COMMIT, table, own.txn, &body));
        let memory = rows.memory_bytes();
        queue.core.memory.enter_group(memory);
        let publication = Publication {
            version,
            schema: built.schema,
            batches: built.batches,
            files: rows.files().to_vec(),
            replaces: rows.replaces.clone(),
            partitions: checked.into_partitions(),
            lsn: low,
        };
        if let Some(reservation) = owner {
            reservation.hand_over();
        }
        rows.is_submitted();
        let LoadRows { rows, bytes, unpublished, facts, .. } = rows;
        let txn = own.txn;
        all.push(Submitted { flight, publication, txn, low, memory, rows, bytes, unpublished, facts });
    }
    let submitted = host::now();
    let done = move |result: Result<Appended, WalError>| {
        let outcome = match result {
            Ok(place) => {
                let times = CommitTimes { closed: None, submitted, durable: host::now() };
                Ok(all_durable(all, place, times))
            }
            Err(error) => {
                let error = wal_error(error);
                all.into_iter().for_each(|one| one.refused(&error, blocks_are_logged));
                Err(error)
            }
        };
        drop(sender.send(outcome));
    };
    queues[0].submit(states, entries, Box::new(done));
    Ok(())
}

/// Makes the rows of commits visible that are durable at `place`.
fn all_durable(all: Vec<Submitted>, place: Appended, times: CommitTimes) -> Vec<(TxnId, Committed)> {
    let publish = |one: Submitted| {
        let Submitted { flight, publication, txn, memory, rows, bytes, facts, .. } = one;
        let (queue, version) = (Arc::clone(flight.queue()), publication.version);
        queue.publish(publication);
        facts.are_stored();
        (flight, queue, txn, version, memory, (1, rows, bytes))
    };
    let published: Vec<_> = all.into_iter().map(publish).collect();
    let end = |(flight, queue, txn, version, memory, counts): (Flight, Arc<TableQueue>, _, _, _, _)| {
        queue.core.memory.published(memory);
        queue.core.memory.leave_group(memory);
        queue.core.transactions.visible(txn, version, host::unix_ms(), counts);
        flight.published(Some(place.first));
        (txn, Committed { version, times, closed_by: None })
    };
    published.into_iter().map(end).collect()
}

impl Submitted {
    /// The log has nothing of the commit, or it is unknown whether it has.
    fn refused(self, error: &IngestError, blocks_are_logged: bool) {
        let Self { flight, low, memory, unpublished, facts, .. } = self;
        flight.queue().core.memory.leave_group(memory);
        facts.are_settled(Some(error));
        if blocks_are_logged {
            flight.stays_prepared(low);
        } else {
            flight.unpin();
            if let Some(files) = unpublished.filter(|_| error.says_nothing_was_kept()) {
                files.are_refused();
            }
        }
    }
}

impl TableQueue {
    fn own_commit_body(&self, own: &OwnTransaction, rows: &LoadRows, version: Version) -> CommitBody {
        CommitBody {
            format: Format::of_commit(rows.replaces.is_some()),
            version,
            db: self.table.def().db_id,
            label: own.label.clone(),
            label_is_kept: own.label_is_kept,
            is_group: false,
            kind: Some(own.kind),
            loads: 1,
            rows: rows.rows,
            bytes: rows.bytes,
            prepared_at_ms: own.prepared_at_ms,
            committed_at_ms: host::unix_ms(),
            files: rows.files().to_vec(),
            excluded: Vec::new(),
            replaces: rows.replaces.clone(),
            source: own.source,
            attachment: own.attachment.clone(),
        }
    }

    /// Makes a two-phase load durable. It stays invisible until it is committed.
    pub async fn prepare(
        self: &Arc<Self>,
        txn: TxnId,
        body: PrepareBody,
        rows: &LoadRows,
    ) -> Result<(), IngestError> {
        let table = self.table.id();
        let mut entries = data_entries(kind::DATA_HELD, table, txn, 0, &rows.blocks);
        entries.extend(rows.facts.entries((table, txn, 0), &body.label, AnsweredAs::Own));
        entries.push(record::json(kind::PREPARE, table, txn, &body));
        let turn = loop {
            self.released().await;
            let turn = self.space.turn(rows.user, rows.memory_bytes()).await;
            rows.refuse_if_revoked(&self.table)?;
            let (mut state, _) = self.lock_with_partitions(|checked| checked.load(self, rows))?;
            state.refuse_if_dropped(&self.table)?;
            if !state.is_held {
                // Its commit may happen when it is too late to report a value that can't be converted.
                state.refuse_old(rows.schema.version)?;
                state.pins.pin(txn, self.space.wal.end_lsn(), Why::Prepared);
                break turn;
            }
        };
        rows.is_submitted();
        drop(turn);
        let result = self.space.wal.append(entries).await.map(|_| ()).map_err(wal_error);
        if let Err(error) = &result {
            self.unpin(txn);
            if error.says_nothing_was_kept() {
                rows.is_refused();
            }
        }
        result
    }

    /// Empties the table, or some of its partitions. Durable and visible on return.
    pub async fn truncate(
        self: &Arc<Self>,
        txn: TxnId,
        cut: Option<Partitions>,
    ) -> Result<Version, IngestError> {
        let (sender, answer) = oneshot::channel();
        loop {
            self.released().await;
            let mut state = self.state.lock();
            state.refuse_if_dropped(&self.table)?;
            if state.is_held {
                continue;
            }
            let low = self.space.wal.end_lsn();
            state.pins.pin(txn, low, Why::Running);
            let flight = Flight::begin(self, &mut state, txn);
            let version = flight.version();
            let (id, format) = (self.table.id(), Format::default());
            let entry = match cut.clone() {
                None => record::json(kind::TRUNCATE, id, txn, &TruncateBody { format, version }),
                Some(partitions) => {
                    record::json(kind::CUT, id, txn, &CutBody { format, version, partitions })
                }
            };
            let done = move |result: Result<Appended, WalError>| {
                let outcome = match result {
                    Ok(place) => {
                        let table = &flight.queue().table;
                        let published = match &cut {
                            None => table.publish_truncate(version, low),
                            Some(partitions) => table.publish_cut(version, low, partitions),
                        };
                        if let Err(error) = published {
                            die(&error);
                        }
                        flight.published(Some(place.first));
                        Ok(version)
                    }
                    Err(error) => {
                        flight.unpin();
                        Err(wal_error(error))
                    }
                };
                drop(sender.send(outcome));
            };
            self.submit(state, vec![entry], Box::new(done));
            break;
        }
        answer
            .await
            .unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
    }
}
