//! Cells of values that consist of values, ARRAY, MAP and STRUCT, as trees, which blocks store.
//!
//! Invariant: the contents of a tree are legal for its type: the numbers of elements, keys and values agree, keys are not NULL
//! and differ.
//!
//! Not its business: the effect of a fault on the row; the bytes of a tree ([`crate::blocks::nested`]).

mod arrays;
mod text;

pub(crate) use arrays::NestedCells;

use crate::blocks::builder::ColumnBuffer;
use crate::blocks::nested::Tree;
use crate::cells::cell::{Cell, Fault, JSON_BYTES_MAX, push_cell};
use std::collections::HashSet;
use tributary_types::Nested;

/// How values within values are converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A part that cannot be converted is a fault of the whole; else it is NULL.
    pub(crate) strict: bool,
    pub(crate) utc_offset_seconds: i32,
}

impl Tree {
    /// Converts a value and pushes it. After a fault parts of it remain, which [`Tree::truncate`] removes.
    pub(crate) fn push(&mut self, cell: Cell<'_>, rules: Rules) -> Result<(), Fault> {
        match (self, cell) {
            (_, Cell::Null) => Err(Fault::Null),
            (Self::Leaf { data_type, values }, cell) => {
                push_cell(values, *data_type, cell, rules.strict, rules.utc_offset_seconds)
            }
            // Each part takes many times its text.
            (_, Cell::Text(text) | Cell::Document(text)) if text.len() > JSON_BYTES_MAX => {
                Err(Fault::TooLongString { limit: JSON_BYTES_MAX, actual: text.len() })
            }
            (tree, Cell::Text(text)) => tree.push_text(text, text::Form::Text, rules),
            (tree, Cell::Document(text)) => tree.push_text(text, text::Form::Json, rules),
            (tree, Cell::Nested(cells, row)) => tree.push_cells(cells, row, rules),
            _ => Err(Fault::Bad),
        }
    }

    /// [`Tree::push`] of a part: NULL where it cannot be converted and the rules allow it.
    fn push_part(&mut self, cell: Cell<'_>, rules: Rules) -> Result<(), Fault> {
        let before = self.len();
        let pushed = self.push(cell, rules);
        self.settle(before, pushed, rules)
    }

    fn settle(&mut self, before: usize, pushed: Result<(), Fault>, rules: Rules) -> Result<(), Fault> {
        let Err(fault) = pushed else { return Ok(()) };
        let always_rejects = matches!(fault, Fault::TooLongString { .. } | Fault::LargeIntRange);
        if always_rejects || (rules.strict && fault != Fault::Null) {
            return Err(fault);
        }
        self.truncate(before);
        self.push_null();
        Ok(())
    }

    /// Pushes a map of entries: the last of equal keys wins. `push_key` and `push_value` push those of an entry.
    fn push_entries(
        &mut self,
        count: usize,
        rules: Rules,
        mut push_key: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
        mut push_value: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Self::Map { lists, keys, values } = self else { return Err(Fault::Bad) };
        let start = keys.len();
        for entry in 0..count {
            // A key that is illegal for its type cannot be NULL instead.
            push_key(keys, entry).map_err(|fault| if fault == Fault::Null { Fault::Bad } else { fault })?;
        }
        let kept = last_of_equal(keys, start, count);
        if kept.len() < count {
            keys.truncate(start);
            kept.iter().try_for_each(|&entry| push_key(keys, entry))?;
        }
        for &entry in &kept {
            let before = values.len();
            let pushed = push_value(values, entry);
            values.settle(before, pushed, rules)?;
        }
        lists.push(kept.len());
        Ok(())
    }
}

/// Which of the last `count` keys, from `start` on, have no later equal.
fn last_of_equal(keys: &Tree, start: usize, count: usize) -> Vec<usize> {
    let Tree::Leaf { values, .. } = keys else { return (0..count).collect() };
    let mut seen = HashSet::with_capacity(count);
    let mut kept: Vec<usize> =
        (0..count).rev().filter(|entry| seen.insert(values.stored(start + entry))).collect();
    kept.reverse();
    kept
}

/// Converts a value, which is written into a column of a block.
#[cold]
pub(crate) fn push_nested(
    buffer: &mut ColumnBuffer,
    nested: Nested,
    cell: Cell<'_>,
    rules: Rules,
) -> Result<(), Fault> {
    let mut tree = buffer.take_scratch().unwrap_or_else(|| Box::new(Tree::of_nested(nested)));
    tree.truncate(0);
    let pushed = tree.push(cell, rules);
    if pushed.is_ok() {
        buffer.push_written(|out| tree.write(out));
    }
    buffer.keep_scratch(tree);
    pushed
}

#[cfg(test)]
mod tests;
