//! Tables with unique keys: for each key the row with the greatest sequence, among these the latest one, and no other; and no row
//! if that one deletes.
//!
//! The order of loads is known only if clients can tell it. Of two loads with the same key the later one wins, if it started when
//! the other was visible, or when the other, an async one, was acknowledged and both go through groups. If the order is unknown,
//! one of them wins, and the other one never after: a load that was visible when another's row was shown for a key has lost that
//! key for ever, in every later query and after every recovery.
//!
//! A row of an INSERT IGNORE wins only if its key had no row: none of a load that was visible when its own began, unless a row that
//! deletes may have come between.

use crate::model::{Fate, Kind, Load, LoadId, ROWS_PER_LOAD, Violation};
use crate::partial::{Column, gives, ignores};
use crate::rows::{deletes, id_of, sequence_of};
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::TableId;

/// Loads that have lost a key of a table, per column. In a table whose rows give all columns that is [`Column::Text`].
pub type Lost = BTreeMap<(TableId, i64, Column), BTreeSet<LoadId>>;

/// The known winners and losers.
#[derive(Clone, Debug, Default)]
pub struct Winners {
    tables: BTreeMap<TableId, Rules>,
    lost: Lost,
}

/// The rule that decides between the rows of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    has_sequence: bool,
    /// Rows may delete, and others are superseded as a whole.
    supersedes: bool,
    /// Rows may update some columns.
    is_partial: bool,
}

/// The row by which a load contends for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contender {
    row: i64,
    /// NULL in a table without sequences.
    sequence: Option<i64>,
    deletes: bool,
    /// It leaves an existing row as it is.
    ignores: bool,
}

impl Winners {
    /// The table has unique keys.
    pub fn make_unique(&mut self, table: TableId, has_sequence: bool) {
        self.tables.insert(table, Rules { has_sequence, supersedes: true, is_partial: false });
    }

    /// The table has unique keys, and rows that update some columns.
    pub fn make_partial(&mut self, table: TableId) {
        self.tables.insert(table, Rules { has_sequence: false, supersedes: true, is_partial: true });
    }

    /// Whether rows of the table may update some columns.
    #[must_use]
    pub fn is_partial(&self, table: TableId) -> bool {
        self.tables.get(&table).is_some_and(|rules| rules.is_partial)
    }

    /// The table folds rows of equal keys, whose last value stays of some columns.
    pub fn make_aggregate(&mut self, table: TableId) {
        self.tables.insert(table, Rules::default());
    }

    /// Whether nothing may be left to see of a load into the table.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        self.tables.get(&table).is_some_and(|rules| rules.supersedes)
    }

    /// The losers until now.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Checks the rows whose values a snapshot of a table shows in a column, each with its number of occurrences, given that the
    /// loads `visible` are present except for rows deleted since, and that the loads of `lost` had lost before it was taken.
    ///
    /// # Errors
    /// The promise that they break.
    pub fn check(
        &mut self,
        loads: &BTreeMap<LoadId, Load>,
        (table, column): (TableId, Column),
        (visible, is_gone): (&BTreeSet<LoadId>, &dyn Fn(i64) -> bool),
        lost: &Lost,
        rows: impl Iterator<Item = (i64, u32)>,
        where_: &str,
    ) -> Result<(), Violation> {
        let violation = |text: String| Err(Violation(format!("{where_} {text}")));
        let rules = self.tables.get(&table).copied().unwrap_or_default();
        let contenders = |id: LoadId| {
            let mut all = contenders(id, loads[&id].rows, rules, column);
            all.retain(|_, contender| !is_gone(contender.row));
            all
        };
        let mut shown: BTreeMap<i64, LoadId> = BTreeMap::new();
        let mut there: BTreeMap<LoadId, BTreeMap<i64, Contender>> =
            visible.iter().map(|id| (*id, contenders(*id))).collect();
        for (row, times) in rows {
            let (key, id) = (id_of(row, true), (row / ROWS_PER_LOAD) as LoadId);
            if let Some(other) = shown.insert(key, id) {
                return violation(format!("shows key {key} of load {id} and of load {other}"));
            }
            if times > 1 {
                return violation(format!("shows row {row} of key {key} {times} times"));
            }
            match there.entry(id).or_insert_with(|| contenders(id)).get(&key) {
                Some(contender) if contender.row == row && !contender.deletes => {}
                other => {
                    return violation(format!(
                        "shows row {row} of key {key}, for which load {id} has {other:?}"
                    ));
                }
            }
        }
        // Loads that were never visible may have deleted the missing rows.
        let may_be_there = loads.iter().filter(|(_, load)| load.table == table && load.fate != Fate::Never);
        let hidden: Vec<(LoadId, BTreeMap<i64, Contender>)> = may_be_there
            .map(|(id, _)| (*id, contenders(*id)))
            .filter(|(_, rows)| rows.values().any(|contender| contender.deletes))
            .collect();
        for (id, rows) in &there {
            let load = &loads[id];
            for (key, own) in rows {
                let beats = |winner: LoadId, of_winner: &Contender| {
                    winner == *id
                        || own.ignores
                        || of_winner.sequence > own.sequence
                        || (of_winner.sequence == own.sequence && !is_before(&loads[&winner], load))
                };
                let Some(winner) = shown.get(key) else {
                    let has_deleted = |(other, rows): &(LoadId, BTreeMap<i64, Contender>)| {
                        rows.get(key).is_some_and(|it| it.deletes && beats(*other, it))
                    };
                    let is_explained =
                        hidden.iter().any(has_deleted) || own.ignores && may_have_row(loads, *id, *key);
                    if !is_explained {
                        return violation(format!(
                            "lacks key {key}, which load {id} has: {own:?} of {load:?}"
                        ));
                    }
                    continue;
                };
                let of_winner = there[winner][key];
                // A row that deletes may have come between.
                let has_deleted = |(other, rows): &(LoadId, BTreeMap<i64, Contender>)| {
                    let may_be_between =
                        !is_before(&loads[other], load) && !is_before(&loads[winner], &loads[other]);
                    may_be_between && rows.get(key).is_some_and(|it| it.deletes)
                };
                let had_row = winner != id && !own.deletes && is_before(load, &loads[winner]);
                if of_winner.ignores && had_row && !hidden.iter().any(has_deleted) {
                    return violation(format!(
                        "shows load {winner}, an INSERT IGNORE, for key {key}, which had a row of load {id}: \
                         {of_winner:?} of {:?}, {own:?} of {load:?}",
                        loads[winner]
                    ));
                }
                if !beats(*winner, &of_winner) {
                    return violation(format!(
                        "shows load {winner} for key {key}, but load {id} came after it or has a greater sequence: \
                         {of_winner:?} of {:?}, {own:?} of {load:?}",
                        loads[winner]
                    ));
                }
            }
        }
        for (id, rows) in &there {
            for (key, contender) in rows {
                let has_lost = shown.get(key).is_some_and(|winner| winner == id)
                    && lost.get(&(table, *key, column)).is_some_and(|lost| lost.contains(id));
                if has_lost {
                    return violation(format!(
                        "shows load {id} for key {key}, which another one had superseded"
                    ));
                }
                // A row that deletes may be what hides the key.
                let hides = contender.deletes && !shown.contains_key(key);
                if shown.get(key) != Some(id) && !hides {
                    self.lost.entry((table, *key, column)).or_default().insert(*id);
                }
            }
        }
        Ok(())
    }
}

/// The rows by which a load contends for its keys in a column.
fn contenders(load: LoadId, rows: u64, rules: Rules, column: Column) -> BTreeMap<i64, Contender> {
    let mut best: BTreeMap<i64, Contender> = BTreeMap::new();
    for row in rows_of(load, rows) {
        let sequence = sequence_of(row).filter(|_| rules.has_sequence);
        let deletes = rules.supersedes && deletes(row);
        let ignores = rules.is_partial && !deletes && ignores(row);
        let mut contender = Contender { row, sequence, deletes, ignores };
        if let Some(earlier) = best.get(&id_of(row, true)).filter(|_| ignores) {
            if !earlier.deletes {
                continue;
            }
            // It comes after a row that deletes.
            contender.ignores = false;
        }
        if rules.is_partial && !contender.deletes && !gives(row, column) {
            continue;
        }
        match best.get(&id_of(row, true)) {
            Some(known) if known.sequence > sequence => {}
            _ => drop(best.insert(id_of(row, true), contender)),
        }
    }
    best
}

/// Whether another load's row of the key, perhaps one that gives other columns, may have been there before.
fn may_have_row(loads: &BTreeMap<LoadId, Load>, id: LoadId, key: i64) -> bool {
    let load = &loads[&id];
    loads.iter().any(|(other, of_other)| {
        *other != id
            && of_other.table == load.table
            && of_other.fate != Fate::Never
            && !is_before(load, of_other)
            && rows_of(*other, of_other.rows).any(|row| id_of(row, true) == key)
    })
}

/// The numbers of a load's rows.
fn rows_of(load: LoadId, rows: u64) -> std::ops::Range<i64> {
    let first = load as i64 * ROWS_PER_LOAD;
    first..first + rows as i64
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
    use crate::rows::{deletes, id_of};
    use tributary_types::{Label, TableId, TxnId};

    const TABLE: TableId = TableId(1);

    fn model() -> Model {
        let mut model = Model::default();
        model.make_unique(TABLE, false);
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
        keys.into_values().filter(|row| !deletes(*row)).for_each(|row| shown.add(row));
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
