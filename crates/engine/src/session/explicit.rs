//! BEGIN … COMMIT over inserts of one table.
//!
//! The rows of all statements are one load: they gather in the session and become durable and
//! visible together at COMMIT. A statement that fails is undone alone.

use super::{EngineSession, LastInsert};
use crate::answer::LoadInfo;
use crate::sink::LoadSink;
use std::sync::Arc;
use tributary_decode::{Block, Counts};
use tributary_ingest::{Reservation, TransactionKind, TransactionStatus};
use tributary_mysql::{OkInfo, ResultWriter};
use tributary_table::Table;
use tributary_types::{ErrorCode, Label, SqlError, TableSchema, TxnId};

/// An open transaction.
pub(crate) struct ExplicitTransaction {
    label: Label,
    label_is_kept: bool,
    /// From the first INSERT on.
    load: Option<TransactionLoad>,
}

struct TransactionLoad {
    table: Arc<Table>,
    schema: Arc<TableSchema>,
    reservation: Reservation,
    sink: LoadSink,
    counts: Counts,
}

impl EngineSession {
    pub(super) async fn begin(
        &mut self,
        label: Option<String>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        if self.transaction.is_none() {
            let label_is_kept = label.is_some();
            let label = match label {
                Some(label) => Label::new(&label)?,
                None => Label::of_explicit_transaction(rand::random()),
            };
            self.transaction = Some(ExplicitTransaction { label, label_is_kept, load: None });
        }
        let label = self.transaction.as_ref().map(|transaction| &transaction.label);
        let info = LoadInfo { label, status: "PREPARE", ..LoadInfo::default() }.text();
        out.ok(OkInfo { info: &info, ..OkInfo::default() }).await
    }

    /// Adds an INSERT's rows to the open transaction; gives its label and id.
    pub(super) async fn add_to_transaction(
        &mut self,
        table: &Arc<Table>,
        schema: Arc<TableSchema>,
        blocks: Vec<Block>,
        counts: Counts,
    ) -> Result<(Label, TxnId), SqlError> {
        let limit = self.engine.options.large_load_bytes;
        let Some(transaction) = &mut self.transaction else {
            return Err(SqlError::detail(ErrorCode::Unknown, "there is no transaction; send BEGIN first"));
        };
        let load = match &mut transaction.load {
            Some(load) if load.table.id() != table.id() => {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    "Only one table can be inserted in one transaction.",
                ));
            }
            Some(load) if load.schema.version != schema.version => {
                return Err(crate::sink::SinkError::SchemaChanged.into());
            }
            Some(load) => load,
            empty => {
                let reservation = self.engine.ingest.begin(
                    &table.def(),
                    transaction.label.clone(),
                    transaction.label_is_kept,
                    TransactionKind::Insert,
                )?;
                empty.insert(TransactionLoad {
                    table: Arc::clone(table),
                    schema: Arc::clone(&schema),
                    reservation,
                    sink: LoadSink::new(Arc::clone(table), schema, limit),
                    counts: Counts::default(),
                })
            }
        };
        load.sink.push(blocks).await?;
        load.counts = load.counts.plus(counts);
        Ok((load.reservation.label().clone(), load.reservation.txn()))
    }

    pub(super) async fn commit(&mut self, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let Some(ExplicitTransaction { label, load, .. }) = self.transaction.take() else {
            return out.ok(OkInfo::default()).await;
        };
        let Some(load) = load else {
            let info = LoadInfo { label: Some(&label), status: "VISIBLE", ..LoadInfo::default() }.text();
            return out.ok(OkInfo { info: &info, ..OkInfo::default() }).await;
        };
        let rows = load.sink.finish().await?;
        let committed = self.engine.ingest.commit(&load.table, load.reservation, rows).await?;
        self.last_insert = Some(LastInsert {
            txn: committed.txn,
            label: committed.label.clone(),
            table: load.table.def(),
            status: TransactionStatus::Visible,
            loaded: load.counts.loaded,
            filtered: load.counts.filtered,
        });
        let info = LoadInfo {
            label: Some(&committed.label),
            status: "VISIBLE",
            txn: Some(committed.txn),
            ..LoadInfo::default()
        };
        out.ok(OkInfo { info: &info.text(), ..OkInfo::default() }).await
    }

    pub(super) async fn rollback(&mut self, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let Some(transaction) = &self.transaction else {
            return out.ok(OkInfo::default()).await;
        };
        let txn = transaction.load.as_ref().map(|load| load.reservation.txn());
        let info =
            LoadInfo { label: Some(&transaction.label), status: "ABORTED", txn, ..LoadInfo::default() }
                .text();
        self.discard_transaction("user rollback").await;
        out.ok(OkInfo { info: &info, ..OkInfo::default() }).await
    }

    /// Rolls the open transaction back, if there is one.
    pub(super) async fn discard_transaction(&mut self, reason: &str) {
        if let Some(load) = self.transaction.take().and_then(|transaction| transaction.load) {
            load.reservation.abort(reason);
            load.sink.abort().await;
        }
    }
}
