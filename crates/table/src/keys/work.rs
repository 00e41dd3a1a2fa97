//! Rows that others are made of: each with its *slot*, the number of the derived row that it becomes part of.
//!
//! Invariant: rows of a slot are taken in the order of the steps, and within a step in that of its rows. Many slots are folded in
//! pieces, so that memory is bounded by a piece; [`Keys::arrange`] numbers slots so that a piece needs neighbouring rows of each
//! file. Not the business of this module: the assignment of rows to slots, and reading rows.

use super::settle::{Keys, Marks};
use crate::file::LiveFile;
use std::ops::Range;

/// Where rows are.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In the part with that place in the memtable.
    Part(usize),
    File(LiveFile),
    /// The row of defaults.
    Defaults,
}

/// Rows of one part or file.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) source: Source,
    /// In the order of the source, unless the work is arranged.
    pub(crate) rows: Vec<u32>,
    pub(crate) slots: Vec<u32>,
    /// The set of columns that each row gives; empty where rows give all columns.
    pub(crate) sets: Vec<u32>,
}

/// Rows to be folded into others.
#[derive(Debug, Default)]
pub(crate) struct Work {
    steps: Vec<Step>,
    slots: usize,
    /// Rows of each step are in the order of their slots.
    is_arranged: bool,
}

impl Work {
    pub(crate) fn new(steps: Vec<Step>, slots: usize) -> Self {
        debug_assert!(steps.iter().all(|step| step.rows.len() == step.slots.len()), "each row has its slot");
        Self { steps, slots, is_arranged: false }
    }

    /// Number of resulting rows.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn is_arranged(&self) -> bool {
        self.is_arranged
    }

    /// The rows of some slots, in the order of their sources; slots are numbered from the first of these on.
    ///
    /// # Panics
    /// If these are not all slots and the work is not arranged.
    pub(crate) fn piece(&self, slots: Range<usize>) -> Vec<Step> {
        if slots == (0..self.slots) && !self.is_arranged {
            return self.steps.clone();
        }
        assert!(self.is_arranged, "work is arranged before it is divided");
        self.steps.iter().filter_map(|step| step.piece(&slots)).collect()
    }
}

impl Step {
    fn piece(&self, slots: &Range<usize>) -> Option<Self> {
        let below = |end: usize| self.slots.partition_point(|slot| (*slot as usize) < end);
        let places = below(slots.start)..below(slots.end);
        if places.is_empty() {
            return None;
        }
        let set = |place: usize| self.sets.get(place).copied().unwrap_or_default();
        let first = slots.start as u32;
        let mut rows: Vec<(u32, u32, u32)> =
            places.map(|place| (self.rows[place], self.slots[place] - first, set(place))).collect();
        rows.sort_unstable();
        Some(Self {
            source: self.source.clone(),
            rows: rows.iter().map(|(row, ..)| *row).collect(),
            slots: rows.iter().map(|(_, slot, _)| *slot).collect(),
            sets: match self.sets.is_empty() {
                true => Vec::new(),
                false => rows.iter().map(|(.., set)| *set).collect(),
            },
        })
    }

    /// Renumbers slots, and orders rows by them.
    fn arrange(&mut self, numbers: &[u32]) {
        let sets = std::mem::take(&mut self.sets);
        let set = |place: usize| sets.get(place).copied().unwrap_or_default();
        let mut rows: Vec<(u32, u32, u32)> = (0..self.rows.len())
            .map(|place| (numbers[self.slots[place] as usize], self.rows[place], set(place)))
            .collect();
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        self.slots.clear();
        self.rows.clear();
        for &(slot, row, _) in &rows {
            self.slots.push(slot);
            self.rows.push(row);
        }
        if !sets.is_empty() {
            self.sets = rows.into_iter().map(|(.., set)| set).collect();
        }
    }
}

impl Keys {
    /// Numbers the slots of `work` in the order in which its rows are met. `first_row` is the arrival number of the row of
    /// slot 0; whatever is known by these numbers is known by the new ones afterwards.
    pub(crate) fn arrange(&mut self, work: &mut Work, first_row: u64, marks: &mut Marks) {
        const NONE: u32 = u32::MAX;
        let mut numbers = vec![NONE; work.slots];
        let mut next = 0;
        for slot in work.steps.iter().flat_map(|step| &step.slots) {
            let number = &mut numbers[*slot as usize];
            if *number == NONE {
                *number = next;
                next += 1;
            }
        }
        assert_eq!(next as usize, work.slots, "each slot has a row");
        work.steps.iter_mut().for_each(|step| step.arrange(&numbers));
        work.is_arranged = true;
        let renumbered = |row: u64| first_row + u64::from(numbers[(row - first_row) as usize]);
        for row in self.memtable.values_mut().filter(|row| **row >= first_row) {
            *row = renumbered(*row);
        }
        let derived: Vec<u64> = marks.deletions.iter().filter(|row| *row >= first_row).collect();
        if !derived.is_empty() {
            marks.deletions.remove_range(first_row..);
            marks.deletions.extend(derived.into_iter().map(renumbered));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(part: usize, rows: &[(u32, u32, u32)]) -> Step {
        Step {
            source: Source::Part(part),
            rows: rows.iter().map(|row| row.0).collect(),
            slots: rows.iter().map(|row| row.1).collect(),
            sets: rows.iter().map(|row| row.2).collect(),
        }
    }

    fn rows_of(step: &Step) -> (usize, Vec<(u32, u32, u32)>) {
        let Source::Part(part) = step.source else { panic!("parts only") };
        let rows = step.rows.iter().zip(&step.slots).zip(&step.sets);
        (part, rows.map(|((row, slot), set)| (*row, *slot, *set)).collect())
    }

    #[test]
    fn pieces_have_neighbouring_rows_of_what_is_read_first_and_every_row_once() {
        // Slots in the order of hashes, as they are assigned.
        let steps = vec![
            step(0, &[(10, 3, 0), (11, 1, 0), (12, 4, 0)]),
            step(1, &[(0, 0, 5), (1, 4, 6), (2, 2, 7), (3, 4, 8), (4, 1, 9)]),
        ];
        let mut work = Work::new(steps, 5);
        let mut keys = Keys::default();
        let mut marks = Marks::default();
        marks.deletions.extend([7, 104]);
        keys.arrange(&mut work, 100, &mut marks);
        assert_eq!(marks.deletions.iter().collect::<Vec<_>>(), [7, 102], "slot 4 is the third that is met");
        let pieces: Vec<_> = [0..2, 2..4, 4..5].into_iter().map(|slots| work.piece(slots)).collect();
        let shown: Vec<Vec<_>> = pieces.iter().map(|piece| piece.iter().map(rows_of).collect()).collect();
        assert_eq!(shown[0], [(0, vec![(10, 0, 0), (11, 1, 0)]), (1, vec![(4, 1, 9)])]);
        assert_eq!(shown[1], [(0, vec![(12, 0, 0)]), (1, vec![(0, 1, 5), (1, 0, 6), (3, 0, 8)])]);
        assert_eq!(shown[2], [(1, vec![(2, 0, 7)])]);
    }
}
