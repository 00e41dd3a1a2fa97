//! Loads of dropped partitions that are retained: the model's knowledge of them.

use crate::model::LoadId;
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::{PartitionId, TableId};

/// The loads that are certainly in each retained partition, and the loads of recoveries without an answer.
#[derive(Clone, Debug, Default)]
pub struct Recycled {
    kept: BTreeMap<(TableId, PartitionId), Kept>,
    coming: BTreeMap<TableId, Coming>,
    /// How many recoveries have begun.
    recoveries: u64,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    sure: BTreeSet<LoadId>,
    /// Loads that ran when the partition was dropped.
    unsure: BTreeSet<LoadId>,
}

#[derive(Clone, Debug)]
struct Coming {
    number: u64,
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

    /// Whether the load may be in a retained partition.
    #[must_use]
    pub fn has(&self, table: TableId, id: LoadId) -> bool {
        let mut of_table = self.kept.iter().filter(|((of, _), _)| *of == table);
        of_table.any(|(_, kept)| kept.sure.contains(&id) || kept.unsure.contains(&id))
    }

    /// The loads of a partition that is about to be recovered, and its possible loads.
    pub fn comes_back(&mut self, table: TableId, from: PartitionId) -> (BTreeSet<LoadId>, BTreeSet<LoadId>) {
        let Kept { sure, unsure } = self.kept.get(&(table, from)).cloned().unwrap_or_default();
        self.recoveries += 1;
        let coming = Coming { number: self.recoveries, from, loads: sure.clone(), shown: BTreeSet::new() };
        self.coming.insert(table, coming);
        (sure, unsure)
    }

    /// The loads of the recovery that has no answer yet.
    #[must_use]
    pub fn under_way(&self, table: TableId) -> Option<BTreeSet<LoadId>> {
        self.coming.get(&table).map(|coming| coming.loads.clone())
    }

    /// The number of the recovery that has no answer yet.
    #[must_use]
    pub fn number(&self, table: TableId) -> Option<u64> {
        self.coming.get(&table).map(|coming| coming.number)
    }

    /// Records that a query shows the load and started during this recovery. A query from before may show the rows of the time
    /// before the partition was dropped.
    pub fn shown(&mut self, id: LoadId, recovery: Option<u64>) {
        let is_of_it = |coming: &&mut Coming| Some(coming.number) == recovery && coming.loads.contains(&id);
        for coming in self.coming.values_mut().filter(is_of_it) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Model, Shown};
    use tributary_types::{Label, TxnId};

    const TABLE: TableId = TableId(1);
    const PARTITION: PartitionId = PartitionId(7);

    fn shown(rows: &[i64]) -> Shown {
        let mut shown = Shown::default();
        rows.iter().for_each(|row| shown.add(*row));
        shown
    }

    fn label(name: &str) -> Label {
        Label::new(name).unwrap()
    }

    #[test]
    fn a_load_that_was_refused_while_its_partition_went_does_not_come_back_with_it() {
        let after = |rows: &[i64]| {
            let mut model = Model::default();
            let load = model.begin(TABLE, Kind::Sync, 1, Some(label("refused")));
            model.recycling_begins(TABLE, PARTITION, |_| true);
            model.refused(load).unwrap();
            model.wiped(TABLE, true).unwrap();
            model.recovery_begins(TABLE, PARTITION);
            model.recovery_ends(TABLE, true).unwrap();
            assert_eq!(model.label_in_use(&label("refused")), Some(false));
            model.recovered(TABLE, &shown(rows))
        };
        after(&[]).unwrap();
        assert!(after(&[1000]).is_err(), "its client was told that nothing was kept");
    }

    #[test]
    fn a_load_that_began_while_its_partition_went_may_come_back_with_it() {
        let after = |of_partition: bool, rows: &[i64]| {
            let mut model = Model::default();
            model.recycling_begins(TABLE, PARTITION, move |_| of_partition);
            let load = model.begin(TABLE, Kind::Async, 1, Some(label("late")));
            model.acknowledged(load, TxnId(1), &label("late")).unwrap();
            model.wiped(TABLE, true).unwrap();
            model.recovered(TABLE, &shown(&[])).unwrap();
            model.recovery_begins(TABLE, PARTITION);
            model.recovery_ends(TABLE, true).unwrap();
            model.recovered(TABLE, &shown(rows))
        };
        after(true, &[1000]).unwrap();
        after(true, &[]).unwrap();
        after(false, &[]).unwrap();
        assert!(after(false, &[1000]).is_err(), "it was of another partition, and gone");
    }

    #[test]
    fn a_recovery_that_failed_was_shown_by_no_query_that_began_while_it_was_under_way() {
        let after = |began_before: bool| {
            let mut model = Model::default();
            let load = model.begin(TABLE, Kind::Sync, 1, Some(label("kept")));
            model.acknowledged(load, TxnId(1), &label("kept")).unwrap();
            let before = model.expected(TABLE);
            model.recycling_begins(TABLE, PARTITION, |_| true);
            model.wiped(TABLE, true).unwrap();
            model.recovery_begins(TABLE, PARTITION);
            let expected = if began_before { before } else { model.expected(TABLE) };
            model.shown(&expected, &shown(&[1000])).unwrap();
            model.recovery_ends(TABLE, false)
        };
        after(true).unwrap();
        assert!(after(false).is_err());
    }

    #[test]
    fn whether_a_deletion_met_rows_that_went_with_their_partition_is_known_when_they_are_back() {
        let after = |rows: &[i64]| {
            let mut model = Model::default();
            for (load, name) in [(1, "first"), (2, "second")] {
                assert_eq!(model.begin(TABLE, Kind::Sync, 2, Some(label(name))), load);
                model.acknowledged(load, TxnId(load), &label(name)).unwrap();
            }
            let (deletion, _) = model.delete_begins(TABLE, &[1000, 2000]).unwrap();
            // The second load's partition is dropped.
            model.recycling_begins(TABLE, PARTITION, |load| load == 2);
            model.wiped(TABLE, true).unwrap();
            model.deleted(deletion);
            model.recovered(TABLE, &shown(&[1001])).unwrap();
            model.recovery_begins(TABLE, PARTITION);
            model.recovery_ends(TABLE, true).unwrap();
            model.recovered(TABLE, &shown(rows))?;
            // Then it is known.
            assert!(model.recovered(TABLE, &shown(&[1001, 2001])).is_ok() != rows.contains(&2000));
            Ok::<_, crate::model::Violation>(())
        };
        after(&[1001, 2000, 2001]).unwrap();
        after(&[1001, 2001]).unwrap();
        assert!(after(&[1000, 1001, 2001]).is_err(), "it stayed where the deletion looked for it");
        assert!(after(&[1001, 2000]).is_err(), "nobody deleted 2001");
        assert!(after(&[1001]).is_err(), "the load came back");
    }
}
