//! BEGIN … COMMIT over inserts, updates and deletions.
//!
//! The rows of all statements are one load for each table: they gather in the session and become durable together at COMMIT. A
//! statement that fails is undone alone.

use crate::answer::{Answer, Done};
use crate::load::info::LoadInfo;
use crate::load::lanes::Read;
use crate::load::partial_update::{KnownKeys, is_ready_to_update};
use crate::load::sink::SinkError;
use crate::load::{Load, LoadLabel, Tally};
use crate::session::rows::transaction_load::{LoadMark, NotAdded, TransactionLoad};
use crate::session::{EngineSession, LastInsert};
use std::sync::Arc;
use tributary_decode::{Block, Counts, Reject};
use tributary_ingest::{Answered, TransactionStatus};
use tributary_query::WrittenTable;
use tributary_table::Table;
use tributary_types::{
    ErrorCode, GroupCommitMode, Label, Retry, SqlError, TableDef, TableId, TableSchema, TxnId,
};

/// An open transaction.
pub(crate) struct ExplicitTransaction {
    label: Label,
    label_is_kept: bool,
    /// One for each table that statements have brought rows for, in the order of the first ones.
    loads: Vec<TransactionLoad>,
    /// The tables with these rows, for the statement that runs.
    written: Vec<WrittenTable>,
    /// How many statements have added rows.
    pub(in crate::session) inserts: u64,
    pub(in crate::session) savepoints: Vec<(String, Savepoint)>,
    /// Going back to a savepoint was asked for and not possible: nothing of it may be stored.
    is_doomed: bool,
    /// A statement has begun it, and no BEGIN.
    pub(in crate::session) is_implicit: bool,
    /// Its own access mode; `None`: the session's.
    pub(in crate::session) only_reads: Option<bool>,
}

/// A place in a transaction.
#[derive(Clone, Debug)]
pub(in crate::session) struct Savepoint {
    /// How many statements had added rows before.
    inserts: u64,
    /// The rows of then, of the tables that had some.
    rows: Vec<LoadMark>,
}

impl ExplicitTransaction {
    /// The place behind everything that was inserted.
    pub(in crate::session) fn savepoint(&self) -> Savepoint {
        Savepoint { inserts: self.inserts, rows: self.loads.iter().map(TransactionLoad::mark).collect() }
    }

    /// Whether statements have brought rows.
    pub(in crate::session) const fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether statements have brought rows for this table.
    pub(in crate::session) fn has_rows_of(&self, table: TableId) -> bool {
        self.loads.iter().any(|open| open.table().id() == table)
    }

    /// The tables that it has written to, as the statement that runs sees them.
    pub(in crate::session) fn written(&self) -> Vec<WrittenTable> {
        self.written.clone()
    }
}

impl EngineSession {
    pub(in crate::session) async fn begin(
        &mut self,
        label: Option<String>,
        only_reads: Option<bool>,
    ) -> Result<Answer, SqlError> {
        if self.transaction.is_none() {
            let label_is_kept = label.is_some();
            let label = match label {
                Some(label) => Label::new(&label)?,
                None => Label::of_explicit_transaction(rand::random()),
            };
            self.transaction = Some(ExplicitTransaction {
                label,
                label_is_kept,
                loads: Vec::new(),
                written: Vec::new(),
                inserts: 0,
                savepoints: Vec::new(),
                is_doomed: false,
                is_implicit: false,
                only_reads,
            });
        }
        let label = self.transaction.as_ref().map(|transaction| &transaction.label);
        let info = LoadInfo { label, status: "PREPARE", ..LoadInfo::default() }.text();
        Ok(Answer::Done(Done { info, ..Done::default() }))
    }

    /// Adds an INSERT's rows to the open transaction; returns its label and id.
    pub(in crate::session) async fn add_to_transaction(
        &mut self,
        table: &Arc<Table>,
        schema: Arc<TableSchema>,
        blocks: Vec<Block>,
        read: (Counts, Vec<Reject>),
        known_keys: Option<Box<KnownKeys>>,
    ) -> Result<(Label, TxnId), SqlError> {
        let traits = self.traits(0);
        let Some(transaction) = &mut self.transaction else {
            return Err(SqlError::detail(ErrorCode::Unknown, "there is no transaction; send BEGIN first"));
        };
        let place = transaction.loads.iter().position(|open| open.table().id() == table.id());
        if let Some(place) = place
            && transaction.loads[place].load.schema().version != schema.version
        {
            return Err(SinkError::SchemaChanged.into());
        }
        if place.is_none() {
            let loads = &self.engine.loads;
            if let Some(first) = transaction.loads.first() {
                loads.ingest.check_share_log(first.table(), table)?;
            }
            let label = match (transaction.loads.is_empty(), transaction.label_is_kept) {
                (true, true) => LoadLabel::Chosen(transaction.label.clone()),
                (true, false) => LoadLabel::Made(transaction.label.clone()),
                // A label has one transaction. This one is committed with it.
                (false, _) => LoadLabel::Made(Label::of_explicit_transaction(rand::random())),
            };
            let admitted = loads.admit(&self.principal, table, &traits)?;
            let load = Load::begin(loads, Arc::clone(table), schema, &traits, label, admitted)?;
            transaction.loads.push(TransactionLoad::new(load));
        }
        let at = place.unwrap_or(transaction.loads.len() - 1);
        let open = &mut transaction.loads[at];
        match open.add(&self.engine.loads, blocks, read, known_keys).await {
            Ok(()) => {}
            Err(NotAdded::Undone(error)) => {
                if place.is_none()
                    && let Some(open) = transaction.loads.pop()
                {
                    open.load.abort(error.detail_text()).await;
                }
                return Err(error);
            }
            Err(NotAdded::Broken(error)) => {
                self.discard_transaction("rows could not be written").await;
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    format!("{error}; the transaction was rolled back, run it again from BEGIN"),
                ));
            }
        }
        self.running.generated = open.load.sink().take_first_generated();
        transaction.inserts += 1;
        Ok((transaction.label.clone(), open.txn))
    }

    /// Lets the statement that runs see the rows of the open transaction, as they and the table are now.
    pub(in crate::session) async fn see_own_rows(&mut self) {
        let Some(transaction) = &mut self.transaction else { return };
        transaction.written.clear();
        for open in &mut transaction.loads {
            let written = open.refresh().await;
            transaction.written.push(written);
        }
    }

    /// Whether a plan of an INSERT must be made again for the open transaction, which may bring partial updates later: its rows
    /// are of one schema.
    pub(in crate::session) fn must_be_ready_to_update(&self, def: &TableDef) -> bool {
        let is_of_transaction = self.transaction.is_some() || !self.commits_each();
        is_of_transaction && def.keys.is_unique() && !is_ready_to_update(def)
    }

    pub(in crate::session) async fn commit(&mut self) -> Result<Answer, SqlError> {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.is_doomed) {
            self.discard_transaction("a rollback to a savepoint had failed").await;
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                "the transaction was rolled back, because its ROLLBACK TO SAVEPOINT was not possible: run it again from BEGIN",
            ));
        }
        let Some(ExplicitTransaction { label, loads, .. }) = self.transaction.take() else {
            return Ok(Answer::ok());
        };
        let Some((first, last)) = loads.first().zip(loads.last()) else {
            let info = LoadInfo { label: Some(&label), status: "VISIBLE", ..LoadInfo::default() }.text();
            return Ok(Answer::Done(Done { info, ..Done::default() }));
        };
        let (txn, table, counts) = (first.txn, last.table().def(), last.read.counts);
        // The transaction is over: another COMMIT would be answered with OK and store nothing.
        let committed =
            Box::pin(self.commit_loads(loads)).await.map_err(|error| error.with_retry(Retry::Never));
        let Some(Answered { label: last_label, txn: last_txn, .. }) = committed?.pop() else {
            let info = LoadInfo { label: Some(&label), status: "VISIBLE", ..LoadInfo::default() }.text();
            return Ok(Answer::Done(Done { info, ..Done::default() }));
        };
        let status = TransactionStatus::Visible;
        let info =
            LoadInfo { label: Some(&label), status: status.name(), txn: Some(txn), ..LoadInfo::default() }
                .text();
        self.running.has_inserted = true;
        self.last_insert = Some(LastInsert {
            txn: last_txn,
            label: last_label,
            table,
            status,
            loaded: counts.loaded,
            filtered: counts.filtered,
        });
        Ok(Answer::Done(Done { info, ..Done::default() }))
    }

    /// Commits the loads of a transaction, all or none.
    async fn commit_loads(&mut self, mut loads: Vec<TransactionLoad>) -> Result<Vec<Answered>, SqlError> {
        let mut with_keys: Vec<&mut TransactionLoad> =
            loads.iter_mut().filter(|open| open.requires_keys()).collect();
        with_keys.sort_by_key(|open| open.table().id());
        // Of two that want the same turns, one gets all of them.
        let (mut turns, mut checked) = (Vec::with_capacity(with_keys.len()), Ok(()));
        for open in with_keys {
            let table = Arc::clone(open.table());
            match self.turn_to_change(&table).await {
                Ok(turn) => turns.push(turn),
                Err(error) => checked = Err(error),
            }
            if checked.is_ok() {
                checked = open.check_again().await;
            }
        }
        let loads_of = Arc::clone(&self.engine.loads);
        let (mut ready, mut loads) = (Vec::with_capacity(loads.len()), loads.into_iter());
        while checked.is_ok()
            && let Some(TransactionLoad { load, read, .. }) = loads.next()
        {
            // Each statement was judged on its own.
            let Read { counts, rejects } = read;
            match load.into_rows(&loads_of, Tally { counts, rejects: &rejects }).await {
                Ok(rows) => ready.extend(rows),
                Err(error) => checked = Err(error.into()),
            }
        }
        if let Err(error) = checked {
            for open in loads {
                open.load.abort(error.detail_text()).await;
            }
            for (table, reservation, rows) in ready {
                table.discard(rows.files()).await;
                reservation.abort(error.detail_text());
            }
            return Err(error);
        }
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        let ingest = &loads_of.ingest;
        let tables: Vec<Arc<Table>> = ready.iter().map(|(table, ..)| Arc::clone(table)).collect();
        let ready = ready
            .into_iter()
            .zip(&tables)
            .map(|((_, reservation, rows), table)| (&**table, reservation, rows));
        let commit = ingest.commit_together(ready.collect());
        match self.interrupt().wait(commit).await {
            Ok(answered) => Ok(answered?),
            Err(interrupted) => {
                ingest.metrics().load_failed(GroupCommitMode::Off);
                Err(interrupted.into())
            }
        }
    }

    pub(in crate::session) async fn rollback(&mut self) -> Result<Answer, SqlError> {
        let Some(transaction) = &self.transaction else {
            return Ok(Answer::ok());
        };
        let txn = transaction.loads.first().map(|open| open.txn);
        let info =
            LoadInfo { label: Some(&transaction.label), status: "ABORTED", txn, ..LoadInfo::default() }
                .text();
        self.discard_transaction("user rollback").await;
        Ok(Answer::Done(Done { info, ..Done::default() }))
    }

    /// Takes the rows behind a savepoint of the open transaction back, which goes on. `false`: that is not possible, and the
    /// transaction can only be rolled back.
    pub(in crate::session) async fn back_to(&mut self, savepoint: Savepoint) -> bool {
        let Some(transaction) = &mut self.transaction else { return true };
        if transaction.inserts == savepoint.inserts {
            return true;
        }
        transaction.written.clear();
        for later in transaction.loads.split_off(savepoint.rows.len().min(transaction.loads.len())) {
            later.load.abort("rollback to a savepoint").await;
        }
        let is_back = transaction.loads.iter_mut().zip(savepoint.rows).all(|(open, mark)| open.back_to(mark));
        match is_back {
            true => transaction.inserts = savepoint.inserts,
            false => transaction.is_doomed = true,
        }
        is_back
    }

    /// Rolls the open transaction back, if there is one.
    pub(in crate::session) async fn discard_transaction(&mut self, reason: &str) {
        for open in self.transaction.take().into_iter().flat_map(|transaction| transaction.loads) {
            open.load.abort(reason).await;
        }
    }
}
