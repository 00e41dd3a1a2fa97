//! Rows as entries of the log.

use crate::recovery::record;
use tributary_decode::Block;
use tributary_types::{TableId, TxnId};
use tributary_wal::Entry;

/// One entry for each block of a load.
pub(super) fn data_entries(kind: u8, table: TableId, txn: TxnId, load: u32, blocks: &[Block]) -> Vec<Entry> {
    blocks.iter().map(|block| record::data(kind, table, txn, load, block)).collect()
}
