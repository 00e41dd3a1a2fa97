//! BEGIN … COMMIT over inserts of one table.
//!
//! The rows of all statements are one load: they gather in the session and become durable and
//! visible together at COMMIT. A statement that fails is undone alone.

use crate::answer::{Answer, Done};
use crate::load::info::LoadInfo;
use crate::load::lanes::Read;
use crate::load::partial_update::KnownKeys;
use crate::load::sink::{Mark, SinkError};
use crate::load::{Finished, Load, LoadCommitted, LoadLabel, LoadLimits, Outcome, Tally};
use crate::session::{EngineSession, LastInsert};
use std::sync::Arc;
use tributary_decode::{Block, Counts, Reject};
use tributary_table::Table;
use tributary_types::{ErrorCode, Label, Retry, SqlError, TableSchema, TxnId};

/// An open transaction.
pub(crate) struct ExplicitTransaction {
    label: Label,
    label_is_kept: bool,
    /// `Some` from the first INSERT on.
    load: Option<TransactionLoad>,
    /// How many INSERTs have added rows.
    pub(in crate::session) inserts: u64,
    pub(in crate::session) savepoints: Vec<(String, Savepoint)>,
    /// Going back to a savepoint was asked for and not possible: nothing of it may be stored.
    is_doomed: bool,
    /// Its own access mode; `None`: the session's.
    pub(in crate::session) only_reads: Option<bool>,
}

/// A place in a transaction.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Savepoint {
    /// How many INSERTs were before.
    inserts: u64,
    /// The rows of then; `None`: there were none, or they can't be told from later ones.
    rows: Option<(Mark, Counts, usize)>,
}

impl ExplicitTransaction {
    /// The place behind everything that was inserted.
    pub(in crate::session) fn savepoint(&self) -> Savepoint {
        let rows = self.load.as_ref().and_then(|TransactionLoad { load, read, .. }| {
            let mark = load.is_of_rows_alone().then(|| load.mark()).flatten()?;
            Some((mark, read.counts, read.rejects.len()))
        });
        Savepoint { inserts: self.inserts, rows }
    }
}

struct TransactionLoad {
    load: Load,
    txn: TxnId,
    read: Read,
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
                load: None,
                inserts: 0,
                savepoints: Vec::new(),
                is_doomed: false,
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
        (counts, rejects): (Counts, Vec<Reject>),
        known_keys: Option<Box<KnownKeys>>,
    ) -> Result<(Label, TxnId), SqlError> {
        let traits = self.traits(0);
        let Some(transaction) = &mut self.transaction else {
            return Err(SqlError::detail(ErrorCode::Unknown, "there is no transaction; send BEGIN first"));
        };
        let open = match &mut transaction.load {
            Some(open) if open.load.table().id() != table.id() => {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    "Only one table can be inserted in one transaction.",
                ));
            }
            Some(open) if open.load.schema().version != schema.version => {
                return Err(SinkError::SchemaChanged.into());
            }
            Some(open) => open,
            empty => {
                let label = transaction.label.clone();
                let label =
                    if transaction.label_is_kept { LoadLabel::Chosen(label) } else { LoadLabel::Made(label) };
                let loads = &self.engine.loads;
                let admitted = loads.admit(&self.principal, table, &traits)?;
                let load = Load::begin(loads, Arc::clone(table), schema, &traits, label, admitted)?;
                // Explicit transactions share no group, so they have a transaction.
                let txn = load.transaction().map_or(TxnId(0), |(txn, _)| txn);
                empty.insert(TransactionLoad { load, txn, read: Read::default() })
            }
        };
        open.load.must_find(known_keys);
        if let Err(error) = open.load.push(&self.engine.loads, blocks).await {
            // Some of the rows may share data files with those of earlier statements.
            self.discard_transaction("rows could not be written").await;
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("{error}; the transaction was rolled back, run it again from BEGIN"),
            ));
        }
        self.running.generated = open.load.sink().take_first_generated();
        open.read.add(counts, rejects);
        transaction.inserts += 1;
        Ok((transaction.label.clone(), open.txn))
    }

    pub(in crate::session) async fn commit(&mut self) -> Result<Answer, SqlError> {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.is_doomed) {
            self.discard_transaction("a rollback to a savepoint had failed").await;
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                "the transaction was rolled back, because its ROLLBACK TO SAVEPOINT was not possible: run it again from BEGIN",
            ));
        }
        let Some(ExplicitTransaction { label, load, .. }) = self.transaction.take() else {
            return Ok(Answer::ok());
        };
        let Some(TransactionLoad { load, read, .. }) = load else {
            let info = LoadInfo { label: Some(&label), status: "VISIBLE", ..LoadInfo::default() }.text();
            return Ok(Answer::Done(Done { info, ..Done::default() }));
        };
        let table = Arc::clone(load.table());
        // Each statement was judged on its own.
        let limits = LoadLimits {
            max_filter_ratio: 1.0,
            rejected_rows: None,
            timeout: self.insert_timeout(),
            interrupt: self.interrupt(),
            has_details: false,
        };
        let Read { counts, rejects } = read;
        let Finished { outcome, .. } =
            load.finish(&self.engine.loads, Tally { counts, rejects: &rejects }, limits).await;
        // The transaction is over: another COMMIT would be answered with OK and store nothing.
        let outcome = outcome.map_err(|error| SqlError::from(error).with_retry(Retry::Never));
        let Outcome { committed, .. } = outcome?;
        let Some(LoadCommitted { label, txn, status, .. }) = committed else {
            let info = LoadInfo { label: Some(&label), status: "VISIBLE", ..LoadInfo::default() }.text();
            return Ok(Answer::Done(Done { info, ..Done::default() }));
        };
        let info =
            LoadInfo { label: Some(&label), status: status.name(), txn: Some(txn), ..LoadInfo::default() }
                .text();
        self.running.has_inserted = true;
        self.last_insert = Some(LastInsert {
            txn,
            label,
            table: table.def(),
            status,
            loaded: counts.loaded,
            filtered: counts.filtered,
        });
        Ok(Answer::Done(Done { info, ..Done::default() }))
    }

    pub(in crate::session) async fn rollback(&mut self) -> Result<Answer, SqlError> {
        let Some(transaction) = &self.transaction else {
            return Ok(Answer::ok());
        };
        let txn = transaction.load.as_ref().map(|open| open.txn);
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
        if savepoint.inserts == 0 {
            transaction.inserts = 0;
            if let Some(open) = transaction.load.take() {
                open.load.abort("rollback to a savepoint").await;
            }
            return true;
        }
        let is_back = match (&mut transaction.load, savepoint.rows) {
            (Some(TransactionLoad { load, read, .. }), Some((mark, counts, rejects)))
                if load.is_of_rows_alone() =>
            {
                let is_back = load.sink().back_to(mark);
                if is_back {
                    read.counts = counts;
                    read.rejects.truncate(rejects);
                }
                is_back
            }
            _ => false,
        };
        match is_back {
            true => transaction.inserts = savepoint.inserts,
            false => transaction.is_doomed = true,
        }
        is_back
    }

    /// Rolls the open transaction back, if there is one.
    pub(in crate::session) async fn discard_transaction(&mut self, reason: &str) {
        if let Some(open) = self.transaction.take().and_then(|transaction| transaction.load) {
            open.load.abort(reason).await;
        }
    }
}
