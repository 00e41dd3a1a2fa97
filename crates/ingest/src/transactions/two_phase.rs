//! Two-phase loads: prepared, then committed or aborted, by id or by label.
//!
//! Invariant: a prepared load is in `Ingest::prepared`, or its commit or abort is under way, or it has ended; operations that
//! were begun continue when their client leaves. Not its business: how a commit is made.

use crate::error::{IngestError, wal_error};
use crate::ingest::{Ingest, discard_after, panicked};
use crate::load::stages::Stages;
use crate::load::{Answered, LoadRows};
use crate::memory::Admitted;
use crate::queue::{Core, OwnCommit, OwnTransaction, TableQueue, commit_own};
use crate::recovery::record::{self, AbortBody, Format, PrepareBody, kind};
use crate::transactions::prepared::{Prepared, PreparedLoad, PreparedLoads};
use crate::transactions::{Reservation, TwoPhaseTarget};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_table::Table;
use tributary_types::lock::Ranked;
use tributary_types::{DbId, TransactionStatus, TxnId, host};

impl Ingest {
    /// Makes a two-phase load durable and leaves it PRECOMMITTED, invisible.
    ///
    /// # Errors
    /// The same as those of [`Ingest::commit`].
    pub async fn prepare(
        &self,
        table: &Table,
        reservation: Reservation,
        mut rows: LoadRows,
    ) -> Result<Answered, IngestError> {
        let begun = host::now();
        let (queue, admitted) = match self.admit(table, &mut rows).await {
            Ok(admitted) => admitted,
            Err(error) => {
                table.discard(rows.files()).await;
                return Err(error);
            }
        };
        let ready = host::now();
        let own = OwnTransaction { label_is_kept: true, ..self.own(&reservation) };
        let (txn, label) = (reservation.txn(), reservation.label().clone());
        // Cut off half-way it would be durable, and its label free.
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let prepare = self.core.tasks.run(async move {
            let files = rows.unpublished.clone();
            let outcome = core.prepare(&all, queue.clone(), reservation, own, rows, admitted).await;
            discard_after(&outcome, &queue.table, files).await;
            outcome
        });
        let outcome = prepare.await.unwrap_or_else(|panic| Err(panicked("a pre-commit", &panic)));
        self.of_owner(outcome).await?;
        Ok(Answered {
            label,
            txn,
            version: None,
            stages: Stages::logged(begun, ready, host::now()),
            closed_by: None,
            closes_by: None,
        })
    }

    /// The two-phase loads that wait for their commit or abort, oldest first.
    #[must_use]
    pub fn prepared_loads(&self) -> Vec<PreparedLoad> {
        let keep_ms = i64::try_from(self.options.precommit_timeout.get().as_millis()).unwrap_or(i64::MAX);
        let all: Vec<_> = self.prepared.lock().values().cloned().collect();
        let load = |Prepared { queue, own, rows }: Prepared| {
            let info = self.core.transactions.by_id(own.txn)?;
            let prepared_at_ms = info.precommitted_at_ms.unwrap_or(own.prepared_at_ms);
            Some(PreparedLoad {
                table: queue.table.id(),
                db: info.db,
                table_ref: info.table_ref,
                txn: own.txn,
                label: own.label,
                client: own.client,
                prepared_at_ms,
                expires_at_ms: prepared_at_ms.saturating_add(keep_ms),
                rows: rows.rows,
                bytes: rows.bytes,
                memory_bytes: rows.memory_bytes(),
            })
        };
        let mut loads: Vec<_> = all.into_iter().filter_map(load).collect();
        loads.sort_by_key(|load| load.txn);
        loads
    }

    /// Commits a prepared load. Durable and visible on return. Continues if the client leaves.
    ///
    /// # Errors
    /// [`IngestError::TransactionNotFound`], [`IngestError::TransactionState`] with Doris's texts;
    /// [`IngestError::TableDropped`]; after any other error the load is still prepared, which is of use no more after
    /// [`IngestError::PartitionDropped`] but for its abort.
    pub async fn commit_prepared(&self, db: DbId, target: &TwoPhaseTarget) -> Result<TxnId, IngestError> {
        let (txn, prepared) = self.take_prepared(db, target, "not pre-committed.")?;
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let commit = self.core.tasks.run(async move {
            let Prepared { queue, own, rows } = prepared.clone();
            let memory = rows.memory_bytes();
            match commit_own(&mut vec![OwnCommit { queue, own, rows, owner: None }], None).await {
                Ok(_) => {
                    core.memory.leave_prepared(memory);
                    Ok(txn)
                }
                Err(error) => Err(core.put_back(&all, txn, prepared, error)),
            }
        });
        self.of_owner(commit.await.unwrap_or_else(|panic| Err(panicked("a commit", &panic)))).await
    }

    /// Aborts a prepared load; its label is free afterwards. Continues if the client leaves.
    ///
    /// # Errors
    /// Like [`Ingest::commit_prepared`].
    pub async fn abort_prepared(
        &self,
        db: DbId,
        target: &TwoPhaseTarget,
        reason: &str,
    ) -> Result<TxnId, IngestError> {
        let (txn, prepared) = self.take_prepared(db, target, "could not abort.")?;
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let reason = reason.to_owned();
        let abort = self.core.tasks.run(async move {
            let Prepared { queue, own, rows } = &prepared;
            let body =
                AbortBody { format: Format::default(), db, label: own.label.clone(), reason: reason.clone() };
            let entry = record::json(kind::ABORT, queue.table.id(), txn, &body);
            if let Err(error) = queue.space.wal.append(vec![entry]).await {
                return Err(core.put_back(&all, txn, prepared, wal_error(error)));
            }
            queue.unpin(txn);
            core.end_prepared(txn, rows, reason);
            queue.table.discard(rows.files()).await;
            Ok(txn)
        });
        abort.await.unwrap_or_else(|panic| Err(panicked("an abort", &panic)))
    }

    /// Takes a load that waits for its commit or abort. It can't be found until it is put back.
    fn take_prepared(
        &self,
        db: DbId,
        target: &TwoPhaseTarget,
        not: &str,
    ) -> Result<(TxnId, Prepared), IngestError> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(IngestError::ShuttingDown);
        }
        let txn = self.find_prepared(db, target, not)?;
        let prepared = self.prepared.lock().remove(&txn).ok_or_else(|| self.state_error(txn, not))?;
        Ok((txn, prepared))
    }

    fn find_prepared(&self, db: DbId, target: &TwoPhaseTarget, not: &str) -> Result<TxnId, IngestError> {
        let info = match (target.txn, &target.label) {
            (Some(txn), _) => self.core.transactions.by_id(txn).filter(|info| info.db == db),
            (None, Some(label)) => self.core.transactions.by_label(db, label.as_str()),
            (None, None) => None,
        };
        let named = target.txn.map(|txn| txn.to_string()).or(target.label.as_ref().map(ToString::to_string));
        let Some(info) = info else {
            return Err(IngestError::TransactionNotFound(named.unwrap_or_default()));
        };
        if target.label.as_ref().is_some_and(|label| *label != info.label) {
            return Err(IngestError::TransactionNotFound(named.unwrap_or_default()));
        }
        if info.status == TransactionStatus::Precommitted {
            Ok(info.txn)
        } else {
            Err(self.state_error(info.txn, not))
        }
    }

    fn state_error(&self, txn: TxnId, not: &str) -> IngestError {
        let Some(info) = self.core.transactions.by_id(txn) else {
            return IngestError::TransactionNotFound(txn.to_string());
        };
        let (status, reason) = match info.status {
            TransactionStatus::Aborted => ("aborted", format!(". abort reason: {}", info.reason)),
            TransactionStatus::Visible => ("visible", format!(", {not}")),
            TransactionStatus::Prepare => ("prepare", format!(", {not}")),
            TransactionStatus::Precommitted => {
                ("precommitted", ", its commit or abort is under way.".to_owned())
            }
        };
        IngestError::TransactionState { txn, status, reason }
    }
}

impl Core {
    /// Makes a load durable and retains it for its commit or abort. Its transaction gets the outcome.
    async fn prepare(
        &self,
        all: &Ranked<PreparedLoads>,
        queue: Arc<TableQueue>,
        reservation: Reservation,
        own: OwnTransaction,
        rows: LoadRows,
        admitted: Admitted,
    ) -> Result<(), IngestError> {
        let memory = rows.memory_bytes();
        if let Err(error) = self.memory.prepare(memory) {
            reservation.abort(error.to_string());
            return Err(error);
        }
        drop(admitted);
        let (txn, _) = reservation.hand_over();
        let body = PrepareBody {
            format: Format::default(),
            db: queue.table.def().db_id,
            label: own.label.clone(),
            rows: rows.rows,
            bytes: rows.bytes,
            prepared_at_ms: own.prepared_at_ms,
            files: rows.files().to_vec(),
            source: own.source,
            attachment: own.attachment.clone(),
            client: own.client.clone(),
        };
        let outcome = queue.prepare(txn, body, &rows).await;
        // Dropping the table first marks the queue, and then looks for prepared loads.
        let mut all = all.lock();
        let outcome = outcome.and_then(|()| queue.refuse_if_dropped());
        match &outcome {
            Ok(()) => {
                self.transactions.precommitted(txn, host::unix_ms(), rows.rows, rows.bytes);
                // The user who commits it needs a right of its own then.
                let rows = LoadRows { right: None, ..rows };
                all.insert(txn, Prepared { queue, own, rows });
            }
            Err(error) => self.end_prepared(txn, &rows, error.to_string()),
        }
        outcome
    }

    /// A commit or abort has failed: the load waits again, unless its table was dropped.
    fn put_back(
        &self,
        all: &Ranked<PreparedLoads>,
        txn: TxnId,
        prepared: Prepared,
        error: IngestError,
    ) -> IngestError {
        let mut all = all.lock();
        if let Err(dropped) = prepared.queue.refuse_if_dropped() {
            self.end_prepared(txn, &prepared.rows, "the table was dropped".into());
            return dropped;
        }
        all.insert(txn, prepared);
        error
    }

    /// A prepared load will never be visible.
    pub(crate) fn end_prepared(&self, txn: TxnId, rows: &LoadRows, reason: String) {
        self.memory.leave_prepared(rows.memory_bytes());
        self.transactions.aborted(txn, host::unix_ms(), reason);
    }
}
