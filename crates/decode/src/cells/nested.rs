//! Values that consist of values: ARRAY, MAP and STRUCT.
//!
//! In a block such a value is bytes: its parts, column by column, as a [`Tree`] writes them. Loads put the parts of one value
//! into a tree, which is written into the block; when blocks become columns, all values of a column are read into one tree, which
//! becomes an Arrow array.
//!
//! Invariant: the contents of a tree are legal for its type: the numbers of elements, keys and values agree, keys are not NULL
//! and differ.
//!
//! Not its business: the effect of a fault on the row.

mod arrays;
mod bytes;
mod text;

pub(crate) use arrays::NestedCells;
pub(crate) use bytes::{column, null_buffer};

use crate::blocks::builder::ColumnBuffer;
use crate::blocks::error::BlockError;
use crate::cells::cell::{Cell, Fault, JSON_BYTES_MAX, push_cell};
use std::collections::HashSet;
use tributary_types::{DataType, Nested, NestedType, StructField};

/// How values within values are converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A part that cannot be converted is a fault of the whole; else it is NULL.
    pub(crate) strict: bool,
    pub(crate) utc_offset_seconds: i32,
}

/// Values of one type with all their parts, column by column.
#[derive(Debug)]
pub(crate) enum Tree {
    /// Values that do not consist of values.
    Leaf {
        data_type: DataType,
        values: ColumnBuffer,
    },
    List {
        lists: Lists,
        items: Box<Tree>,
    },
    Map {
        lists: Lists,
        keys: Box<Tree>,
        values: Box<Tree>,
    },
    Struct {
        len: usize,
        /// The values that are NULL, ascending.
        nulls: Vec<u32>,
        names: &'static [StructField],
        fields: Vec<Tree>,
    },
}

/// How many parts each of several values has.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lengths: Vec<u32>,
    /// The values that are NULL, ascending; they have no parts.
    nulls: Vec<u32>,
}

impl Lists {
    fn push(&mut self, parts: usize) {
        self.lengths.push(parts as u32);
    }

    fn push_null(&mut self) {
        self.nulls.push(self.lengths.len() as u32);
        self.lengths.push(0);
    }

    /// How many parts the first values have together.
    fn parts_of(&self, values: usize) -> usize {
        self.lengths[..values].iter().map(|&length| length as usize).sum()
    }

    fn truncate(&mut self, len: usize) {
        self.lengths.truncate(len);
        truncate_nulls(&mut self.nulls, len);
    }
}

fn truncate_nulls(nulls: &mut Vec<u32>, len: usize) {
    while nulls.last().is_some_and(|&place| place as usize >= len) {
        nulls.pop();
    }
}

impl Tree {
    pub(crate) fn new(data_type: DataType) -> Self {
        let DataType::Nested(nested) = data_type else {
            return Self::Leaf { data_type, values: ColumnBuffer::of_type(data_type) };
        };
        Self::of_nested(nested)
    }

    pub(crate) fn of_nested(nested: Nested) -> Self {
        let part = |data_type: DataType| Box::new(Self::new(data_type));
        match nested.kept() {
            NestedType::Array(item) => Self::List { lists: Lists::default(), items: part(*item) },
            NestedType::Map(key, value) => {
                Self::Map { lists: Lists::default(), keys: part(*key), values: part(*value) }
            }
            NestedType::Struct(names) => Self::Struct {
                len: 0,
                nulls: Vec::new(),
                names,
                fields: names.iter().map(|field| Self::new(field.data_type)).collect(),
            },
        }
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf { values, .. } => values.len(),
            Self::List { lists, .. } | Self::Map { lists, .. } => lists.lengths.len(),
            Self::Struct { len, .. } => *len,
        }
    }

    /// Removes the last values until this many are left.
    pub(crate) fn truncate(&mut self, to: usize) {
        match self {
            Self::Leaf { values, .. } => values.truncate(to),
            Self::List { lists, items } => {
                lists.truncate(to);
                items.truncate(lists.parts_of(to));
            }
            Self::Map { lists, keys, values } => {
                lists.truncate(to);
                let parts = lists.parts_of(to);
                keys.truncate(parts);
                values.truncate(parts);
            }
            Self::Struct { len, nulls, fields, .. } => {
                *len = to;
                truncate_nulls(nulls, to);
                fields.iter_mut().for_each(|field| field.truncate(to));
            }
        }
    }

    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Leaf { values, .. } => values.push_null(),
            Self::List { lists, .. } | Self::Map { lists, .. } => lists.push_null(),
            Self::Struct { len, nulls, fields, .. } => {
                nulls.push(*len as u32);
                *len += 1;
                fields.iter_mut().for_each(Self::push_null);
            }
        }
    }

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

/// The error for bytes that are not a value of their type.
fn damaged(data_type: impl std::fmt::Display) -> BlockError {
    BlockError::Damaged(format!("a value is no {data_type}"))
}

#[cfg(test)]
mod tests;
