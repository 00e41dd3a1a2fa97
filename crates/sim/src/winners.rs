//! Tables with unique keys: of each key the row that came last, and no other.
//!
//! The order of loads is known only where clients can tell it. Of two loads with the same key the later one wins, if it
//! began when the other was visible, or when the other, an async one, was acknowledged and both go through groups. Where nobody can
//! tell, one of them wins, and the other one never after: a load that was visible when another's row was shown for a
//! key has lost that key for ever, in every later query and after every recovery.

use crate::model::{Kind, Load, LoadId, ROWS_PER_LOAD, Violation};
use crate::rows::id_of;
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::TableId;

/// Loads that have lost a key of a table.
pub type Lost = BTreeMap<(TableId, i64), BTreeSet<LoadId>>;

/// What is known of winners and losers.
#[derive(Debug, Default)]
pub struct Winners {
    tables: BTreeSet<TableId>,
    lost: Lost,
}

impl Winners {
    /// The table has unique keys.
    pub fn make_unique(&mut self, table: TableId) {
        self.tables.insert(table);
    }

    /// Whether the table has unique keys.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        self.tables.contains(&table)
    }

    /// Who has lost until now.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Checks the rows that a snapshot of a table shows, each with how often it came, where the loads `visible` are there
    /// and those of `lost` had lost before it was taken.
    ///
    /// # Errors
    /// The promise that they break.
    pub fn check(
        &mut self,
        loads: &BTreeMap<LoadId, Load>,
        table: TableId,
        visible: &BTreeSet<LoadId>,
        lost: &Lost,
        rows: impl Iterator<Item = (i64, u32)>,
        where_: &str,
    ) -> Result<(), Violation> {
        let violation = |text: String| Err(Violation(format!("{where_} {text}")));
        let mut shown: BTreeMap<i64, LoadId> = BTreeMap::new();
        let mut there = visible.clone();
        for (row, times) in rows {
            let (key, id) = (id_of(row, true), (row / ROWS_PER_LOAD) as LoadId);
            if let Some(other) = shown.insert(key, id) {
                return violation(format!("shows key {key} of load {id} and of load {other}"));
            }
            if times > 1 {
                return violation(format!("shows row {row} of key {key} {times} times"));
            }
            if last_rows(id, loads[&id].rows).get(&key) != Some(&row) {
                return violation(format!(
                    "shows row {row} of key {key}, after which load {id} has another one"
                ));
            }
            there.insert(id);
        }
        for id in &there {
            let load = &loads[id];
            for key in last_rows(*id, load.rows).into_keys() {
                let Some(winner) = shown.get(&key) else {
                    return violation(format!("lacks key {key}, which load {id} has: {load:?}"));
                };
                if winner != id && is_before(&loads[winner], load) {
                    return violation(format!(
                        "shows load {winner} for key {key}, but load {id} came after it: {:?}, {load:?}",
                        loads[winner]
                    ));
                }
            }
        }
        for (key, winner) in &shown {
            if lost.get(&(table, *key)).is_some_and(|lost| lost.contains(winner)) {
                return violation(format!(
                    "shows load {winner} for key {key}, which another one had superseded"
                ));
            }
            let losers = there.iter().filter(|id| *id != winner);
            let lost = self.lost.entry((table, *key)).or_default();
            lost.extend(losers.filter(|id| last_rows(**id, loads[id].rows).contains_key(key)));
        }
        Ok(())
    }
}

/// The last row of each key in a load.
fn last_rows(load: LoadId, rows: u64) -> BTreeMap<i64, i64> {
    let first = load as i64 * ROWS_PER_LOAD;
    (first..first + rows as i64).map(|row| (id_of(row, true), row)).collect()
}

/// Whether a client could tell that `first` came before `second`.
fn is_before(first: &Load, second: &Load) -> bool {
    let in_group = |load: &Load| matches!(load.kind, Kind::Async | Kind::Sync);
    let is_promised = first.kind == Kind::Async && in_group(second);
    let since = [first.place.visible_at(), first.place.acknowledged_at().filter(|_| is_promised)];
    since.into_iter().flatten().any(|at| at < second.place.begun_at())
}

#[cfg(test)]
mod tests {
    use crate::model::{Kind, LoadId, Model, ROWS_PER_LOAD, Shown};
    use crate::rows::id_of;
    use tributary_types::{Label, TableId, TxnId};

    const TABLE: TableId = TableId(1);

    fn model() -> Model {
        let mut model = Model::default();
        model.make_unique(TABLE);
        model
    }

    fn visible(model: &mut Model, kind: Kind) -> LoadId {
        let id = model.begin(TABLE, kind, 30, None);
        model.acknowledged(id, TxnId(id), &Label::of_group(u128::from(id))).unwrap();
        id
    }

    /// All keys as those loads have them, the later ones over the earlier ones.
    fn shown(loads: &[LoadId]) -> Shown {
        let mut keys = std::collections::BTreeMap::new();
        for load in loads {
            let first = *load as i64 * ROWS_PER_LOAD;
            keys.extend((first..first + 30).map(|row| (id_of(row, true), row)));
        }
        let mut shown = Shown::default();
        keys.into_values().for_each(|row| shown.add(row));
        shown
    }

    #[test]
    fn the_later_load_wins_where_a_client_can_tell() {
        let mut model = model();
        let [first, second] = [Kind::Sync, Kind::Off].map(|kind| visible(&mut model, kind));
        let expected = model.expected(TABLE);
        model.winners_shown(&expected, &shown(&[first, second])).unwrap();
        let error = model.winners_shown(&expected, &shown(&[second, first])).unwrap_err();
        assert!(error.0.contains("came after it"), "{error}");
        let error = model.winners_shown(&expected, &shown(&[first])).unwrap_err();
        assert!(error.0.contains("came after it") || error.0.contains("lacks key"), "{error}");
        assert!(model.winners_recovered(TABLE, &Shown::default()).is_err(), "nothing is lost");
    }

    #[test]
    fn who_has_lost_a_key_never_wins_it_again() {
        let mut model = model();
        let [first, second] = [Kind::Sync, Kind::Sync].map(|kind| model.begin(TABLE, kind, 30, None));
        for id in [first, second] {
            model.acknowledged(id, TxnId(id), &Label::of_group(u128::from(id))).unwrap();
        }
        let expected = model.expected(TABLE);
        model.winners_shown(&expected, &shown(&[second, first])).expect("they overlapped");
        let error = model.winners_recovered(TABLE, &shown(&[first, second])).unwrap_err();
        assert!(error.0.contains("another one had superseded"), "{error}");
    }

    #[test]
    fn a_key_is_shown_once_and_by_its_last_row() {
        let mut model = model();
        let load = visible(&mut model, Kind::Off);
        let expected = model.expected(TABLE);
        let mut twice = shown(&[load]);
        twice.add(load as i64 * ROWS_PER_LOAD);
        twice.add(load as i64 * ROWS_PER_LOAD + 1);
        assert!(model.winners_shown(&expected, &twice).is_err());
        let mut stranger = shown(&[load]);
        stranger.add(99 * ROWS_PER_LOAD);
        assert!(model.winners_shown(&expected, &stranger).is_err());
    }
}
