//! Values that consist of values, ARRAY, MAP and STRUCT, as trees of their parts.
//!
//! In a block such a value is bytes: its parts, column by column, as a [`Tree`] writes them. Loads put the parts of one value
//! into a tree, which is written into the block; when blocks become columns, all values of a column are read into one tree, which
//! becomes an Arrow array.
//!
//! Invariant: the numbers of elements, keys and values of a tree agree.
//!
//! Not its business: the conversion of values ([`crate::cells::nested`]).

mod arrays;
mod bytes;

pub(crate) use bytes::{column, null_buffer};

use crate::blocks::builder::ColumnBuffer;
use crate::blocks::error::BlockError;
use tributary_types::{DataType, Nested, NestedType, StructField};

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
    pub(crate) fn push(&mut self, parts: usize) {
        self.lengths.push(parts as u32);
    }

    pub(crate) fn push_null(&mut self) {
        self.nulls.push(self.lengths.len() as u32);
        self.lengths.push(0);
    }

    /// How many parts the first values have together.
    pub(crate) fn parts_of(&self, values: usize) -> usize {
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
}

/// The error for bytes that are not a value of their type.
fn damaged(data_type: impl std::fmt::Display) -> BlockError {
    BlockError::Damaged(format!("a value is no {data_type}"))
}
