//! Arrow's lists, maps and structs as values of a column that has exactly their type.

use super::Tree;
use crate::blocks::block::Kind;
use crate::blocks::builder::ColumnBuffer;
use arrow::array::{Array, ArrayRef, AsArray};
use std::ops::Range;

impl Tree {
    /// Pushes values of an array of exactly the tree's type.
    pub(crate) fn extend(&mut self, array: &ArrayRef, rows: Range<usize>) {
        match self {
            Self::Leaf { values, .. } => extend_leaf(values, array, rows),
            Self::List { lists, items } => {
                let list = array.as_list::<i32>();
                for row in rows {
                    if list.is_null(row) {
                        lists.push_null();
                        continue;
                    }
                    let range = range(list.value_offsets(), row);
                    lists.push(range.len());
                    items.extend(list.values(), range);
                }
            }
            Self::Map { lists, keys, values } => {
                let map = array.as_map();
                for row in rows {
                    if map.is_null(row) {
                        lists.push_null();
                        continue;
                    }
                    let range = range(map.value_offsets(), row);
                    lists.push(range.len());
                    keys.extend(map.keys(), range.clone());
                    values.extend(map.values(), range);
                }
            }
            Self::Struct { len, nulls, fields, .. } => {
                let array = array.as_struct();
                nulls.extend(
                    rows.clone()
                        .filter(|&row| array.is_null(row))
                        .map(|row| (*len + row - rows.start) as u32),
                );
                *len += rows.len();
                for (field, column) in fields.iter_mut().zip(array.columns()) {
                    field.extend(column, rows.clone());
                }
            }
        }
    }
}

fn extend_leaf(values: &mut ColumnBuffer, array: &ArrayRef, rows: Range<usize>) {
    match values.kind() {
        Kind::Text => {
            let texts = array.as_string::<i32>();
            for row in rows {
                if texts.is_null(row) {
                    values.push_null();
                } else {
                    values.push_text(texts.value(row).as_bytes());
                }
            }
        }
        Kind::Bits => {
            let bits = array.as_boolean();
            for row in rows {
                if bits.is_null(row) {
                    values.push_null();
                } else {
                    values.push_fixed([u8::from(bits.value(row))]);
                }
            }
        }
        kind => {
            let data = array.slice(rows.start, rows.len()).to_data();
            let first = values.len();
            let start = data.offset() * kind.width();
            values.extend_stored(&data.buffers()[0].as_slice()[start..start + data.len() * kind.width()]);
            if let Some(nulls) = data.nulls() {
                let places = (0..data.len()).filter(|&row| nulls.is_null(row));
                places.for_each(|row| values.mark_null((first + row) as u32));
            }
        }
    }
}

fn range(offsets: &[i32], row: usize) -> Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}
