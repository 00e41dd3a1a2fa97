//! Serialises statements that change rows of a table after reading them: each sees the changes of the previous one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tributary_types::TableId;

/// The turns of all tables.
#[derive(Default)]
pub(crate) struct RowChanges(Mutex<HashMap<TableId, Weak<tokio::sync::Mutex<()>>>>);

impl RowChanges {
    /// The lock of a statement that changes rows of the table, held until its own rows are committed.
    pub(crate) fn turn_of(&self, table: TableId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock();
        if let Some(turn) = turns.get(&table).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(table, Arc::downgrade(&turn));
        turn
    }
}
