//! Changes of tables that their Delta logs have: the catalog gets them together with the end of their records.
//!
//! Invariant: the store is never in a state with both a change and its unfinished record. So an existing record belongs to a
//! change that the store does not have. As a second safeguard, a table has the number of its last change: numbers grow, and a
//! change that is not newer is never made again.

use crate::catalog::{Catalog, Result};
use crate::changes::{Shared, replaced, uncancelled};
use crate::recycled::RecycledPartition;
use crate::store::Operation;
use std::sync::Arc;
use tributary_types::{PartitionId, SourceId, TableDef, TableId};

/// A change of a table that its Delta log has.
#[derive(Clone, Debug)]
pub struct FinishedChange {
    /// Its number, which is that of its record and greater than that of every earlier change of the table.
    pub id: SourceId,
    /// The node of the record.
    pub node: String,
    /// The resulting record. `None`: it is deleted.
    pub record: Option<String>,
    /// The definition before the change, and after it.
    pub table: (Arc<TableDef>, TableDef),
    /// A table that changes with it.
    pub beside: Option<(Arc<TableDef>, TableDef)>,
    /// Partitions of the table that are dropped and retained.
    pub dropped: Vec<RecycledPartition>,
    /// Retained partitions of the table that are restored.
    pub recovered: Vec<PartitionId>,
}

impl Catalog {
    /// The number of the last [finished change](Catalog::finish_change) of a present or recycled table; 0 if it has had none.
    #[must_use]
    pub fn last_change(&self, table: TableId) -> SourceId {
        self.state().last_changes.get(&table).copied().unwrap_or_default()
    }

    /// Replaces the definitions and ends the record of a change, in one step, which may be repeated. A change that is not newer than
    /// the last one of its table ends its record only.
    ///
    /// # Errors
    /// The errors of [`Catalog::replace_table_def`]; then nothing has changed, except that [`crate::CatalogError::Store`] may be
    /// returned after the store has made the change.
    pub async fn finish_change(&self, change: FinishedChange) -> Result<()> {
        uncancelled(self.shared().finish_change(change)).await
    }
}

impl Shared {
    async fn finish_change(self: Arc<Self>, finished: FinishedChange) -> Result<()> {
        let FinishedChange { id, node, record, table, beside, dropped, recovered } = finished;
        let share = |(before, after)| (before, Arc::new(after));
        let tables: Vec<(Arc<TableDef>, Arc<TableDef>)> =
            [Some(table), beside].into_iter().flatten().map(share).collect();
        let dropped: Vec<_> = dropped.into_iter().map(Arc::new).collect();
        self.change(|state| {
            let is_known = state.last_changes.get(&tables[0].0.id).is_some_and(|last| *last >= id);
            let new = if is_known { &[][..] } else { &tables[..] };
            let after = new.iter().map(|(before, after)| {
                let made_at_ms = replaced(state, before, after)?;
                Ok((Arc::clone(after), made_at_ms))
            });
            let operation = Operation::FinishChange {
                change: id,
                node: node.clone(),
                record: record.clone(),
                tables: after.collect::<Result<_>>()?,
                dropped: if is_known { Vec::new() } else { dropped.clone() },
                recovered: if is_known { Vec::new() } else { recovered.clone() },
            };
            Ok((operation, ()))
        })
        .await
    }
}
