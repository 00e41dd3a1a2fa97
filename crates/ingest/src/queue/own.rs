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
use crate::load::stages::{CommitTimes, Committed};
use crate::memory::Admitted;
use crate::recovery::record::{self, CommitBody, CutBody, Format, PrepareBody, TruncateBody, kind};
use crate::transactions::Reservation;
use std::sync::Arc;
use tokio::sync::oneshot;
use tributary_table::Publication;
use tributary_types::lock::RankedGuard;
use tributary_types::{Attachment, Label, Partitions, SourceId, TransactionKind, TxnId, Version, host};
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

impl TableQueue {
    /// Commits a separate transaction, of rows that were just admitted, or of a prepared load's rows, which the log already has.
    /// Durable and visible on return. `owner` is taken when the entry is handed to the log: from then on the log's answer decides
    /// the label's fate.
    pub async fn commit_own(
        self: &Arc<Self>,
        own: OwnTransaction,
        rows: LoadRows,
        admitted: Option<Admitted>,
        owner: &mut Option<Reservation>,
    ) -> Result<Committed, IngestError> {
        let blocks_are_logged = admitted.is_none();
        let (sender, answer) = oneshot::channel();
        loop {
            self.released().await;
            let built = self.build(ToBuild::of_load(&rows), rows.memory_bytes()).await?;
            // Until it is submitted, or waits for something else.
            let bytes = if blocks_are_logged { 0 } else { rows.memory_bytes() };
            let _turn = self.space.turn(rows.user, bytes).await;
            rows.refuse_if_revoked(&self.table)?;
            let (state, checked) = self.lock_with_partitions(|checked| checked.own(self, &built, &rows))?;
            state.refuse_if_dropped(&self.table)?;
            if state.is_held || built.schema.version < state.schema_floor {
                // They are built again when the table has its new schema.
                continue;
            }
            let partitions = checked.into_partitions();
            self.submit_own(state, own, (rows, blocks_are_logged), (built, partitions), sender, owner)?;
            drop(admitted);
            break;
        }
        answer
            .await
            .unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
    }

    fn submit_own(
        self: &Arc<Self>,
        mut state: RankedGuard<'_, State>,
        own: OwnTransaction,
        (rows, blocks_are_logged): (LoadRows, bool),
        (built, partitions): (Built, Option<Arc<Partitions>>),
        sender: oneshot::Sender<Result<Committed, IngestError>>,
        owner: &mut Option<Reservation>,
    ) -> Result<(), IngestError> {
        let table = self.table.id();
        state.refuse_if_dropped(&self.table)?;
        if !rows.files().is_empty() {
            state.refuse_old(rows.schema.version)?;
        }
        let low = state.pins.pin_on(own.txn, self.space.wal.end_lsn(), Why::Running);
        let flight = Flight::begin(self, &mut state, own.txn);
        let version = flight.version();
        let mut entries = if blocks_are_logged {
            Vec::new()
        } else {
            data_entries(kind::DATA_HELD, table, own.txn, 0, &rows.blocks)
        };
        if !blocks_are_logged {
            entries.extend(rows.facts.entries((table, own.txn, 0), &own.label, AnsweredAs::Own));
        }
        entries.push(record::json(kind::COMMIT, table, own.txn, &self.own_commit_body(&own, &rows, version)));
        let memory = rows.memory_bytes();
        self.core.memory.enter_group(memory);
        let publication = Publication {
            version,
            schema: built.schema,
            batches: built.batches,
            files: rows.files().to_vec(),
            replaces: rows.replaces.clone(),
            partitions,
            lsn: low,
        };
        if let Some(reservation) = owner.take() {
            reservation.hand_over();
        }
        rows.is_submitted();
        let LoadRows { rows, bytes, unpublished, facts, .. } = rows;
        let submitted = host::now();
        let done = move |result: Result<Appended, WalError>| {
            let queue = Arc::clone(flight.queue());
            let outcome = match result {
                Ok(place) => {
                    let times = CommitTimes { closed: None, submitted, durable: host::now() };
                    queue.publish(publication);
                    facts.are_stored();
                    queue.core.memory.published(memory);
                    queue.core.memory.leave_group(memory);
                    let counts = (1, rows, bytes);
                    queue.core.transactions.visible(own.txn, version, host::unix_ms(), counts);
                    flight.published(Some(place.first));
                    Ok(Committed { version, times, closed_by: None })
                }
                Err(error) => {
                    queue.core.memory.leave_group(memory);
                    let error = wal_error(error);
                    facts.are_settled(Some(&error));
                    if blocks_are_logged {
                        flight.stays_prepared(low);
                    } else {
                        flight.unpin();
                        if let Some(files) = unpublished.filter(|_| error.says_nothing_was_kept()) {
                            files.are_refused();
                        }
                    }
                    Err(error)
                }
            };
            drop(sender.send(outcome));
        };
        self.submit(state, entries, Box::new(done));
        Ok(())
    }

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
