//! BEGIN … COMMIT over inserts of one table.
//!
//! The rows of all statements are one load: they gather in the session and become durable and
//! visible together at COMMIT. A statement that fails is undone alone.

use crate::answer::{Answer, Done};
use crate::load::info::LoadInfo;
use crate::load::lanes::Read;
use crate::load::partial_update::KnownKeys;
use crate::load::sink::SinkError;
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
    /// Names, and how many INSERTs were before.
    pub(in crate::session) savepoints: Vec<(String, u64)>,
}

struct TransactionLoad {
    load: Load,
    txn: TxnId,
    read: Read,
}

impl EngineSession {
    pub(in crate::session) async fn begin(&mut self, label: Option<String>) -> Result<Answer, SqlError> {
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

    /// Takes all rows of the open transaction back, which goes on.
    pub(in crate::session) async fn take_back_inserts(&mut self, reason: &str) {
        let Some(transaction) = &mut self.transaction else { return };
        transaction.inserts = 0;
        if let Some(open) = transaction.load.take() {
            open.load.abort(reason).await;
        }
    }

    /// Rolls the open transaction back, if there is one.
    pub(in crate::session) async fn discard_transaction(&mut self, reason: &str) {
        if let Some(open) = self.transaction.take().and_then(|transaction| transaction.load) {
            open.load.abort(reason).await;
        }
    }
}
