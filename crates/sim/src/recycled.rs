//! Loads of partitions that were dropped and are kept: what the model knows of them.

use crate::model::LoadId;
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::{PartitionId, TableId};

/// The loads that are certainly in each kept partition, and those of recoveries that have no answer yet.
#[derive(Debug, Default)]
pub struct Recycled {
    kept: BTreeMap<(TableId, PartitionId), Kept>,
    coming: BTreeMap<TableId, Coming>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    sure: BTreeSet<LoadId>,
    /// Loads that ran when the partition was dropped.
    unsure: BTreeSet<LoadId>,
}

#[derive(Debug)]
struct Coming {
    from: PartitionId,
    loads: BTreeSet<LoadId>,
    shown: BTreeSet<LoadId>,
}

impl Recycled {
    pub fn keep(
        &mut self,
        table: TableId,
        id: PartitionId,
        sure: BTreeSet<LoadId>,
        unsure: BTreeSet<LoadId>,
    ) {
        self.kept.insert((table, id), Kept { sure, unsure });
    }

    /// Whether the load may be in a kept partition.
    #[must_use]
    pub fn has(&self, table: TableId, id: LoadId) -> bool {
        let mut of_table = self.kept.iter().filter(|((of, _), _)| *of == table);
        of_table.any(|(_, kept)| kept.sure.contains(&id) || kept.unsure.contains(&id))
    }

    /// The loads of a partition that is about to be recovered, and those that may be.
    pub fn comes_back(&mut self, table: TableId, from: PartitionId) -> (BTreeSet<LoadId>, BTreeSet<LoadId>) {
        let Kept { sure, unsure } = self.kept.get(&(table, from)).cloned().unwrap_or_default();
        self.coming.insert(table, Coming { from, loads: sure.clone(), shown: BTreeSet::new() });
        (sure, unsure)
    }

    /// The loads of the recovery that has no answer yet.
    #[must_use]
    pub fn under_way(&self, table: TableId) -> Option<BTreeSet<LoadId>> {
        self.coming.get(&table).map(|coming| coming.loads.clone())
    }

    /// A query shows the load.
    pub fn shown(&mut self, id: LoadId) {
        for coming in self.coming.values_mut().filter(|coming| coming.loads.contains(&id)) {
            coming.shown.insert(id);
        }
    }

    #[must_use]
    pub fn was_shown(&self, table: TableId, id: LoadId) -> bool {
        self.coming.get(&table).is_some_and(|coming| coming.shown.contains(&id))
    }

    /// The recovery has ended: its loads, and one that a query has shown.
    pub fn ended(&mut self, table: TableId, done: bool) -> (BTreeSet<LoadId>, Option<LoadId>) {
        let Some(coming) = self.coming.remove(&table) else { return Default::default() };
        if done {
            self.kept.remove(&(table, coming.from));
        }
        (coming.loads, coming.shown.first().copied())
    }

    pub fn erase(&mut self, table: TableId, id: PartitionId) {
        self.kept.remove(&(table, id));
    }

    pub fn forget(&mut self, table: TableId) {
        self.coming.remove(&table);
        self.kept.retain(|(of, _), _| *of != table);
    }
}
