//! Deletions of single rows, as the model knows them.
//!
//! A deletion that was answered has deleted all rows that were visible when it started. One that failed or got no answer has
//! deleted all of them or none, and may still happen as long as the server lives; the next recovery shows it, or a query without
//! the rows: from then on they must be missing. Rows that became visible while it ran are deleted or not, each by itself.

use crate::model::{LoadId, ROWS_PER_LOAD, Violation};
use crate::rows::id_of;
use std::collections::{BTreeMap, BTreeSet};
use tributary_types::TableId;

/// The number of a deletion.
pub type DeletionId = u64;

/// The known fate of a row that a deletion was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowFate {
    /// No query may show it.
    Gone,
    /// A deletion of it is not answered, or ran while the row arrived.
    Unsure,
}

/// A deletion whose outcome is unknown.
#[derive(Clone, Debug)]
struct Deletion {
    table: TableId,
    /// Rows that were visible when it began, and in no other such deletion.
    visible: Vec<i64>,
    /// A truncation came in between: rows may be missing for another reason.
    disturbed: bool,
    /// The load that replaces the rows, and its rows.
    becomes: Option<(LoadId, u64)>,
}

/// All deletions of one simulation.
#[derive(Clone, Debug, Default)]
pub struct Deletions {
    rows: BTreeMap<i64, RowFate>,
    open: BTreeMap<DeletionId, Deletion>,
    /// Keys that deletions which run look for in tables that fold.
    keys: BTreeMap<DeletionId, (TableId, BTreeSet<i64>)>,
    next: DeletionId,
}

impl Deletions {
    /// A deletion of rows is about to be sent: of some that are visible, and of others that may become so meanwhile.
    pub fn begins(
        &mut self,
        table: TableId,
        visible: Vec<i64>,
        others: &[i64],
        disturbed: bool,
    ) -> DeletionId {
        for row in visible.iter().chain(others) {
            self.rows.entry(*row).or_insert(RowFate::Unsure);
        }
        self.next += 1;
        self.open.insert(self.next, Deletion { table, visible, disturbed, becomes: None });
        self.next
    }

    /// Records that an update replaces the rows of a deletion by those of a load: together, or not at all.
    pub fn becomes(&mut self, id: DeletionId, load: LoadId, rows: u64) {
        if let Some(deletion) = self.open.get_mut(&id) {
            deletion.becomes = Some((load, rows));
        }
    }

    /// Records that a deletion of all rows of some keys of a table that folds is about to be sent: of visible rows, and of others
    /// that may become visible meanwhile. Loads that start before it [is over](Self::is_over) are among these.
    pub fn of_keys_begins(
        &mut self,
        table: TableId,
        keys: BTreeSet<i64>,
        (visible, others): (Vec<i64>, Vec<i64>),
        disturbed: bool,
    ) -> DeletionId {
        // An earlier one without an answer may fail, and this one delete a part of its rows.
        let meets = |open: &Deletion| open.table == table && has_key(&open.visible, &keys);
        self.open.values_mut().filter(|open| meets(open)).for_each(|open| open.disturbed = true);
        let visible = visible.into_iter().filter(|row| !self.knows(*row)).collect();
        let id = self.begins(table, visible, &others, disturbed);
        self.keys.insert(id, (table, keys));
        id
    }

    /// A deletion of keys was answered, or was given up.
    pub fn is_over(&mut self, id: DeletionId) {
        self.keys.remove(&id);
    }

    /// Records the start of a load: a running deletion of keys may delete rows of it.
    pub fn load_begins(&mut self, table: TableId, load: LoadId, rows: u64) {
        for (_, keys) in self.keys.values().filter(|(of, _)| *of == table) {
            for row in rows_of(load, rows).filter(|row| keys.contains(&id_of(*row, true))) {
                self.rows.entry(row).or_insert(RowFate::Unsure);
            }
        }
    }

    /// The bounds for a snapshot that was taken between now and `now`.
    #[must_use]
    pub fn until(&self, now: &Self) -> Self {
        let fate = |row: &i64| *self.rows.get(row).unwrap_or(&RowFate::Unsure);
        let rows = now.rows.keys().map(|row| (*row, fate(row))).collect();
        Self { rows, ..self.clone() }
    }

    /// It was answered with success.
    pub fn done(&mut self, id: DeletionId) {
        let deletion = self.open.remove(&id);
        for row in deletion.into_iter().flat_map(|deletion| deletion.visible) {
            self.rows.insert(row, RowFate::Gone);
        }
    }

    /// Records that a truncation of the table starts, or that it is dropped.
    pub fn disturb(&mut self, table: TableId) {
        self.open.values_mut().filter(|open| open.table == table).for_each(|open| open.disturbed = true);
    }

    /// Records that rows of these loads leave the reach of deletions, and may come back: whether a running deletion deletes them
    /// is unknown.
    pub fn go_away(&mut self, table: TableId, goes: impl Fn(LoadId) -> bool) {
        for open in self.open.values_mut().filter(|open| open.table == table) {
            open.visible.retain(|row| !goes((row / ROWS_PER_LOAD) as LoadId));
        }
    }

    /// Whether a deletion was ever sent for the row.
    #[must_use]
    pub fn knows(&self, row: i64) -> bool {
        self.rows.contains_key(&row)
    }

    /// Whether all rows of a load may be deleted, so that its presence is unknown.
    #[must_use]
    pub fn hides(&self, load: LoadId, rows: u64) -> bool {
        rows_of(load, rows).all(|row| self.knows(row))
    }

    /// Checks the visible rows of a load, of which at least one exists.
    ///
    /// # Errors
    /// A deleted row that is shown, or one that is missing though it was not deleted.
    pub fn check(
        &self,
        load: LoadId,
        rows: u64,
        shown: &BTreeMap<i64, u32>,
        where_: &str,
    ) -> Result<(), Violation> {
        for row in rows_of(load, rows) {
            match (self.rows.get(&row), shown.contains_key(&row)) {
                (Some(RowFate::Gone), true) => {
                    return Err(Violation(format!(
                        "{where_} shows row {row} of load {load}, which was deleted"
                    )));
                }
                (None, false) => {
                    return Err(Violation(format!(
                        "{where_} lacks row {row} of load {load}, which nobody deleted"
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that each unsettled deletion is visible as a whole or not at all. Deletions that a truncation disturbed after
    /// `self` was taken are in `disturbed`.
    ///
    /// # Errors
    /// A deletion of which only a part is visible, or an update without the rows that it brings.
    pub fn check_whole(
        &self,
        table: TableId,
        shows: impl Fn(i64) -> bool,
        now: &Self,
        where_: &str,
    ) -> Result<(), Violation> {
        for (id, open) in self.open.iter().filter(|(_, open)| open.table == table && !open.disturbed) {
            if now.open.get(id).is_some_and(|now| now.disturbed) {
                continue;
            }
            let there = open.visible.iter().find(|row| shows(**row));
            let gone = open.visible.iter().find(|row| !shows(**row));
            if let (Some(there), Some(gone)) = (there, gone) {
                return Err(Violation(format!(
                    "{where_} shows row {there} and not row {gone}, which one deletion deletes"
                )));
            }
            let Some((load, rows)) = open.becomes else { continue };
            if open.visible.is_empty() || rows_of(load, rows).any(|row| now.knows(row)) {
                continue;
            }
            let is_shown = rows_of(load, rows).any(&shows);
            if let Some(old) = there.filter(|_| is_shown) {
                return Err(Violation(format!(
                    "{where_} shows row {old} and load {load}, which replaces it"
                )));
            }
            if let Some(old) = gone.filter(|_| !is_shown) {
                return Err(Violation(format!(
                    "{where_} shows neither row {old} nor load {load}, which replaces it"
                )));
            }
        }
        Ok(())
    }

    /// Records that a snapshot of the table showed these rows; `before` is the knowledge when it was taken. A deletion that it
    /// shows has happened for good.
    pub fn shown(&mut self, table: TableId, shows: impl Fn(i64) -> bool, before: &Self) {
        let is_seen = |(id, open): (&DeletionId, &Deletion)| {
            let was_open = before.open.contains_key(id) && open.table == table && !open.disturbed;
            (was_open && !open.visible.is_empty() && !open.visible.iter().any(|row| shows(*row)))
                .then_some(*id)
        };
        let seen: Vec<DeletionId> = self.open.iter().filter_map(is_seen).collect();
        seen.into_iter().for_each(|id| self.done(id));
    }

    /// Records the rows of the table that a recovery showed: nothing is uncertain after it.
    pub fn settle(&mut self, table: TableId, loads: &BTreeSet<LoadId>, shows: impl Fn(i64) -> bool) {
        self.open.retain(|_, open| open.table != table);
        self.keys.retain(|_, (of, _)| *of != table);
        self.rows.retain(|row, fate| {
            if *fate == RowFate::Unsure && loads.contains(&((row / ROWS_PER_LOAD) as LoadId)) {
                *fate = RowFate::Gone;
                return !shows(*row);
            }
            true
        });
    }
}

fn has_key(rows: &[i64], keys: &BTreeSet<i64>) -> bool {
    rows.iter().any(|row| keys.contains(&id_of(*row, true)))
}

fn rows_of(load: LoadId, rows: u64) -> impl Iterator<Item = i64> {
    let first = load as i64 * ROWS_PER_LOAD;
    first..first + rows as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);

    fn shown(rows: &[i64]) -> BTreeMap<i64, u32> {
        rows.iter().map(|row| (*row, 1)).collect()
    }

    #[test]
    fn an_answered_deletion_deletes_what_was_visible_and_nothing_else() {
        let mut deletions = Deletions::default();
        deletions.check(1, 3, &shown(&[1000, 1001, 1002]), "").unwrap();
        assert!(deletions.check(1, 3, &shown(&[1000, 1002]), "").is_err(), "nobody deleted 1001");
        let id = deletions.begins(TABLE, vec![1001], &[2000], false);
        deletions.check(1, 3, &shown(&[1000, 1002]), "").unwrap();
        deletions.check(1, 3, &shown(&[1000, 1001, 1002]), "").unwrap();
        deletions.done(id);
        assert!(deletions.check(1, 3, &shown(&[1000, 1001, 1002]), "").is_err(), "1001 is gone");
        deletions.check(2, 1, &shown(&[2000]), "").expect("it came while the deletion ran");
        assert!(deletions.hides(2, 1) && !deletions.hides(1, 3));
    }

    #[test]
    fn a_deletion_without_an_answer_is_there_as_a_whole_or_not_at_all_until_a_recovery_tells() {
        let mut deletions = Deletions::default();
        deletions.begins(TABLE, vec![1000, 2000], &[], false);
        let whole = |rows: &'static [i64]| move |row: i64| rows.contains(&row);
        let check = |rows| deletions.check_whole(TABLE, whole(rows), &deletions, "");
        check(&[]).unwrap();
        check(&[1000, 2000]).unwrap();
        assert!(check(&[1000]).is_err());
        let mut seen = deletions.clone();
        seen.shown(TABLE, whole(&[1000, 2000]), &deletions);
        seen.check(1, 1, &shown(&[1000]), "").expect("it was not seen to have happened");
        seen.shown(TABLE, whole(&[]), &deletions);
        assert!(seen.check(1, 1, &shown(&[1000]), "").is_err(), "what was seen to be gone stays gone");
        let mut disturbed = deletions.clone();
        disturbed.disturb(TABLE);
        deletions.check_whole(TABLE, whole(&[1000]), &disturbed, "").unwrap();
        let mut alive = deletions.clone();
        alive.settle(TABLE, &BTreeSet::from([1, 2]), whole(&[1000, 2000]));
        assert!(alive.check(1, 1, &shown(&[]), "").is_err(), "it was shown after a recovery");
        deletions.settle(TABLE, &BTreeSet::from([1, 2]), whole(&[]));
        assert!(deletions.check(1, 1, &shown(&[1000]), "").is_err(), "it was gone after a recovery");
    }

    #[test]
    fn an_update_without_an_answer_shows_its_old_rows_or_its_new_ones() {
        let mut deletions = Deletions::default();
        let id = deletions.begins(TABLE, vec![1000, 2000], &[], false);
        deletions.becomes(id, 7, 2);
        let check = |deletions: &Deletions, rows: &'static [i64]| {
            deletions.check_whole(TABLE, |row| rows.contains(&row), deletions, "")
        };
        check(&deletions, &[1000, 2000]).unwrap();
        check(&deletions, &[7000, 7001]).unwrap();
        assert!(check(&deletions, &[]).is_err(), "rows are lost");
        assert!(check(&deletions, &[1000, 2000, 7000, 7001]).is_err(), "rows are there twice");
        deletions.begins(TABLE, vec![7000, 7001], &[], false);
        check(&deletions, &[]).expect("the new rows may be deleted");
    }

    #[test]
    fn a_deletion_of_keys_deletes_them_in_loads_that_were_visible_and_perhaps_in_those_that_come_meanwhile() {
        let key = id_of(1000, true);
        let of_key = |load: LoadId| rows_of(load, 30).filter(move |row| id_of(*row, true) == key);
        let mut deletions = Deletions::default();
        let before = deletions.clone();
        let id = deletions.of_keys_begins(
            TABLE,
            BTreeSet::from([key]),
            (of_key(1).collect(), of_key(2).collect()),
            false,
        );
        deletions.load_begins(TABLE, 3, 30);
        deletions.is_over(id);
        deletions.load_begins(TABLE, 4, 30);
        deletions.done(id);
        for load in 1..=4 {
            let all: Vec<i64> = rows_of(load, 30).collect();
            let without: Vec<i64> = all.iter().copied().filter(|row| id_of(*row, true) != key).collect();
            let others: Vec<i64> = all.iter().copied().filter(|row| id_of(*row, true) == key).collect();
            let check =
                |deletions: &Deletions, rows: &[i64]| deletions.check(load, 30, &shown(rows), "").is_ok();
            assert_eq!(check(&deletions, &all), load != 1, "load {load}");
            assert_eq!(check(&deletions, &without), load != 4, "load {load}");
            assert!(!check(&deletions, &others), "no other keys of load {load}");
            let then = before.until(&deletions);
            assert!(check(&then, &all), "a snapshot from before shows all of load {load}");
            assert_eq!(check(&then, &without), load != 4, "a later one need not");
        }
        let again = (of_key(1).collect(), Vec::new());
        let again = deletions.of_keys_begins(TABLE, BTreeSet::from([key]), again, false);
        deletions.check_whole(TABLE, |_| true, &deletions, "").expect("its rows are gone already");
        deletions.is_over(again);
    }

    #[test]
    fn of_two_deletions_of_a_key_the_first_may_come_to_a_part() {
        let rows: Vec<i64> = rows_of(1, 30).collect();
        let keys: BTreeSet<i64> = rows.iter().map(|row| id_of(*row, true)).collect();
        let one = BTreeSet::from([id_of(1000, true)]);
        let mut deletions = Deletions::default();
        let first = deletions.of_keys_begins(TABLE, keys, (rows, Vec::new()), false);
        deletions.is_over(first);
        let without_one = |row: i64| !one.contains(&id_of(row, true));
        assert!(deletions.check_whole(TABLE, without_one, &deletions, "").is_err());
        deletions.of_keys_begins(TABLE, one.clone(), (Vec::new(), Vec::new()), false);
        deletions.check_whole(TABLE, without_one, &deletions, "").unwrap();
    }
}
