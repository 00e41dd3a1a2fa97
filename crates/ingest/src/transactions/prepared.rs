//! Two-phase loads that wait for their commit or abort.

use crate::load::LoadRows;
use crate::queue::{OwnTransaction, TableQueue};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::{DbId, Label, TableId, TableRef, TxnId};

/// A two-phase load that waits for its commit or abort.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub queue: Arc<TableQueue>,
    pub own: OwnTransaction,
    pub rows: LoadRows,
}

/// A two-phase load that waits for its commit or abort, as operators see it.
#[derive(Clone, Debug)]
pub struct PreparedLoad {
    pub table: TableId,
    pub db: DbId,
    pub table_ref: TableRef,
    pub txn: TxnId,
    pub label: Label,
    /// Who has sent it, if that is known.
    pub client: Option<String>,
    /// Milliseconds of Unix time.
    pub prepared_at_ms: i64,
    /// When it is aborted if nobody has committed it, in milliseconds of Unix time.
    pub expires_at_ms: i64,
    pub rows: u64,
    pub bytes: u64,
    pub memory_bytes: u64,
}

/// The loads whose commit or abort is not under way. Locked before a queue and before the transactions.
pub(crate) type PreparedLoads = HashMap<TxnId, Prepared>;
