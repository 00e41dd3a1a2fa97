//! In which order the rows of a table must be.
//!
//! Rows are in the order of the commits that made them visible, and within a commit in the order of the log. A client can rely on
//! less, because it does not know the log, and exactly that is checked:
//!
//! - rows of a load lie together, in the order in which they were sent;
//! - two loads that were once seen in one order are in that order in every later query and after every recovery, and rows that
//!   are seen later for the first time come after rows seen before;
//! - a load that started when another was visible comes after that one;
//! - a load that started when an async load was acknowledged comes after that one, if it goes through a group too.

use crate::model::{Kind, Load, LoadId, ROWS_PER_LOAD, Violation};
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::TableId;

/// The known position of a load among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// When it was sent; for a two-phase load, its commit.
    begun: u64,
    acknowledged: Option<u64>,
    visible: Option<u64>,
    /// Its rank among the loads whose order was seen.
    rank: Option<u64>,
}

impl Place {
    #[must_use]
    pub fn begins(now: u64) -> Self {
        Self { begun: now, ..Self::default() }
    }

    pub fn acknowledged(&mut self, now: u64) {
        self.acknowledged.get_or_insert(now);
    }

    /// When it was sent.
    #[must_use]
    pub const fn begun_at(&self) -> u64 {
        self.begun
    }

    #[must_use]
    pub const fn acknowledged_at(&self) -> Option<u64> {
        self.acknowledged
    }

    /// Since when every query shows it.
    #[must_use]
    pub const fn visible_at(&self) -> Option<u64> {
        self.visible
    }

    /// Every later query shows it.
    pub fn visible(&mut self, now: u64) {
        self.visible.get_or_insert(now);
    }
}

/// The order of events, and of the loads that were seen.
#[derive(Clone, Debug, Default)]
pub struct Order {
    now: u64,
    last_rank: u64,
    /// Tables of which a snapshot had data files: a load that is new in their memtable may have been in the files before, and be
    /// back because the power went off before the flush was complete.
    with_files: BTreeSet<TableId>,
}

impl Order {
    /// Advances to a later time than any before.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A snapshot of the table has data files.
    pub fn has_files(&mut self, table: TableId) {
        self.with_files.insert(table);
    }

    /// Checks rows of one table in the order in which they lie.
    ///
    /// # Errors
    /// The promise that they break.
    pub fn check(
        &mut self,
        loads: &mut BTreeMap<LoadId, Load>,
        table: TableId,
        rows: &[i64],
    ) -> Result<(), Violation> {
        let where_ = &format!("table {table}");
        let order = loads_of(rows, where_)?;
        if let Some(stranger) = order.iter().find(|id| !loads.contains_key(id)) {
            return Err(Violation(format!("{where_} has rows of load {stranger}, which nobody sent")));
        }
        self.check_ranks(loads, table, &order)?;
        check_times(loads, where_, &order)
    }

    fn check_ranks(
        &mut self,
        loads: &mut BTreeMap<LoadId, Load>,
        table: TableId,
        order: &[LoadId],
    ) -> Result<(), Violation> {
        let mut before: Option<(LoadId, u64)> = None;
        let had_files = self.with_files.contains(&table);
        let last_seen = order.iter().rposition(|id| loads[id].place.rank.is_some());
        for (index, id) in order.iter().enumerate() {
            if had_files && loads[id].place.rank.is_none() && last_seen.is_some_and(|last| index < last) {
                continue;
            }
            let place = &mut loads.get_mut(id).expect("strangers were looked for").place;
            let rank = *place.rank.get_or_insert_with(|| {
                self.last_rank += 1;
                self.last_rank
            });
            if let Some((other, _)) = before.filter(|(_, other)| *other > rank) {
                return Err(Violation(format!(
                    "table {table} has load {id} behind load {other}, but it was seen before it"
                )));
            }
            before = Some((*id, rank));
        }
        Ok(())
    }
}

/// The loads in the order of their rows.
fn loads_of(rows: &[i64], where_: &str) -> Result<Vec<LoadId>, Violation> {
    let load_of = |row: i64| (row / ROWS_PER_LOAD) as LoadId;
    let mut order: Vec<LoadId> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| rows[before]);
        if before == Some(row - 1) && order.last() == Some(&load_of(*row)) {
            continue;
        }
        if row % ROWS_PER_LOAD != 0 {
            return Err(Violation(format!(
                "{where_} has row {row} behind {before:?}, not behind the row before it"
            )));
        }
        order.push(load_of(*row));
    }
    Ok(order)
}

/// Checks that no load comes before one that existed when it started.
fn check_times(loads: &BTreeMap<LoadId, Load>, where_: &str, order: &[LoadId]) -> Result<(), Violation> {
    // For the loads behind: when the first became visible, when the first async one was acknowledged.
    let (mut visible, mut acknowledged) = (None, None);
    for id in order.iter().rev() {
        let load = &loads[id];
        let in_group = matches!(load.kind, Kind::Async | Kind::Sync);
        let earlier = [visible, acknowledged.filter(|_| in_group)].into_iter().flatten().min();
        if let Some((_, other)) = earlier.filter(|(at, _)| *at < load.place.begun) {
            return Err(Violation(format!(
                "{where_} has load {id} before load {other}, which was there when it began: {load:?}, {:?}",
                loads[&other]
            )));
        }
        let first = |a: Option<(u64, LoadId)>, b: Option<u64>| match (a, b.map(|at| (at, *id))) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        visible = first(visible, load.place.visible);
        acknowledged = first(acknowledged, load.place.acknowledged.filter(|_| load.kind == Kind::Async));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use tributary_types::{Label, TableId, TxnId};

    const TABLE: TableId = TableId(1);

    fn sent(model: &mut Model, kind: Kind) -> LoadId {
        model.begin(TABLE, kind, 2, None)
    }

    fn answered(model: &mut Model, id: LoadId) {
        model.acknowledged(id, TxnId(id), &Label::of_group(u128::from(id))).unwrap();
    }

    fn rows(loads: &[LoadId]) -> Vec<i64> {
        loads.iter().flat_map(|id| [0, 1].map(|row| *id as i64 * ROWS_PER_LOAD + row)).collect()
    }

    #[test]
    fn what_was_seen_in_one_order_is_never_seen_in_another() {
        let mut model = Model::default();
        let [a, b, c] = [Kind::Sync, Kind::Sync, Kind::Off].map(|kind| sent(&mut model, kind));
        model.in_order(TABLE, &rows(&[b, a])).unwrap();
        model.in_order(TABLE, &rows(&[b, a, c])).unwrap();
        model.in_order(TABLE, &rows(&[b, c])).unwrap();
        assert!(model.in_order(TABLE, &rows(&[a, b])).is_err());
        let d = sent(&mut model, Kind::Off);
        assert!(model.in_order(TABLE, &rows(&[b, d, c])).is_err(), "what is new lies behind what was seen");
    }

    #[test]
    fn a_load_that_was_in_a_data_file_may_come_back_before_those_that_were_seen() {
        let mut model = Model::default();
        let [a, b] = [Kind::Async, Kind::Off].map(|kind| sent(&mut model, kind));
        model.in_order(TABLE, &rows(&[b])).unwrap();
        assert!(model.in_order(TABLE, &rows(&[a, b])).is_err(), "no data file had it");
        let mut model = Model::default();
        let [a, b, c] = [Kind::Async, Kind::Off, Kind::Off].map(|kind| sent(&mut model, kind));
        model.has_files(TABLE);
        model.in_order(TABLE, &rows(&[b, c])).unwrap();
        model.in_order(TABLE, &rows(&[a, b, c])).unwrap();
        assert!(model.in_order(TABLE, &rows(&[a, c, b])).is_err(), "these two were seen");
    }

    #[test]
    fn a_load_lies_behind_those_that_were_there_when_it_began() {
        let mut model = Model::default();
        let first = sent(&mut model, Kind::Async);
        answered(&mut model, first);
        let own = sent(&mut model, Kind::Off);
        model.in_order(TABLE, &rows(&[own, first])).expect("acknowledged is not visible");
        let mut model = Model::default();
        let first = sent(&mut model, Kind::Async);
        answered(&mut model, first);
        let sync = sent(&mut model, Kind::Sync);
        assert!(model.in_order(TABLE, &rows(&[sync, first])).is_err(), "both go through groups");
        let mut model = Model::default();
        let first = sent(&mut model, Kind::Off);
        answered(&mut model, first);
        let second = sent(&mut model, Kind::Off);
        assert!(model.in_order(TABLE, &rows(&[second, first])).is_err());
    }

    #[test]
    fn rows_of_a_load_lie_together_as_they_were_sent() {
        let mut model = Model::default();
        let [a, b] = [Kind::Sync, Kind::Sync].map(|kind| sent(&mut model, kind));
        let mixed = [rows(&[a])[0], rows(&[b])[0], rows(&[a])[1], rows(&[b])[1]];
        assert!(model.in_order(TABLE, &mixed).is_err());
        let turned: Vec<i64> = rows(&[a]).into_iter().rev().collect();
        assert!(model.in_order(TABLE, &turned).is_err());
    }
}
