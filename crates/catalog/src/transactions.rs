//! Records of finished transactions: for labels that are in use, and for SHOW.

use tributary_types::{
    Attachment, DbId, Label, TableId, TableRef, TransactionKind, TransactionStatus, TxnId,
};

/// The record of a transaction. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnRecord {
    pub txn_id: TxnId,
    pub db_id: DbId,
    pub table_id: TableId,
    /// The names at the time.
    pub table: TableRef,
    pub label: Label,
    /// A client chose the label: it stays used until the record is purged, unless it was aborted.
    pub label_is_kept: bool,
    pub kind: TransactionKind,
    pub status: TransactionStatus,
    pub loads: u32,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    pub precommitted_at_ms: Option<i64>,
    pub finished_at_ms: Option<i64>,
    /// Why it was aborted; empty otherwise.
    pub reason: String,
    pub attachment: Option<Attachment>,
}

/// The status of a stored name. COMMITTED, which earlier catalogs distinguished from VISIBLE, is equivalent.
pub(crate) fn status_of(name: &str) -> Option<TransactionStatus> {
    if name == "COMMITTED" { Some(TransactionStatus::Visible) } else { TransactionStatus::parse(name) }
}
