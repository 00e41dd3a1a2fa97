//! Two-phase loads that wait for their commit or abort.

use crate::load::LoadRows;
use crate::queue::{OwnTransaction, TableQueue};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::TxnId;

/// A two-phase load that waits for its commit or abort.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub queue: Arc<TableQueue>,
    pub own: OwnTransaction,
    pub rows: LoadRows,
}

/// The loads whose commit or abort is not under way. Locked before a queue and before the transactions.
pub(crate) type PreparedLoads = HashMap<TxnId, Prepared>;
