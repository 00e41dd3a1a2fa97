//! One load in a group.

use crate::load::{LOAD_OVERHEAD_BYTES, LoadRows};

/// Loads of at most this size are gathered.
const SMALL_BYTES_MAX: u64 = 2048;

/// A load in a group.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its number in the group; the tag of its entries.
    pub load: u32,
    pub rows: LoadRows,
    /// The log has (or is getting) its blocks; otherwise they are written with the commit.
    pub is_logged: bool,
    /// Acknowledged as soon as the log has it.
    pub is_async: bool,
}

impl Member {
    /// Whether it may be turned into columns with others before the group's end: once the log has it, its blocks have no other
    /// use.
    pub fn is_small(&self) -> bool {
        self.is_async && self.is_logged && self.rows.bytes <= SMALL_BYTES_MAX && !self.rows.blocks.is_empty()
    }

    /// Bytes of the budget that its rows do not need as columns. `None`: they would need more than they have.
    pub fn spares_bytes(&self, overhead: u64) -> Option<u64> {
        LOAD_OVERHEAD_BYTES.checked_sub(self.rows.rows * overhead)
    }
}
