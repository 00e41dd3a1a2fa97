//! Arrow's lists, maps and structs as cells of a load.

use super::Rules;
use crate::blocks::nested::Tree;
use crate::cells::array_cells::ArrayCells;
use crate::cells::cell::{self, Cell, Fault};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

/// An array of nested values whose parts give cells.
///
/// The array may be a slice of a larger one, whose lists share their items: the parts are those of its rows alone, and offsets
/// count from `first`.
pub(crate) enum NestedCells {
    List { of: ListArray, first: usize, items: Box<ArrayCells> },
    Map { of: MapArray, first: usize, keys: Box<ArrayCells>, values: Box<ArrayCells> },
    Struct { of: StructArray, fields: Vec<ArrayCells> },
}

impl std::fmt::Debug for NestedCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::List { .. } => "lists",
            Self::Map { .. } => "maps",
            Self::Struct { .. } => "structs",
        })
    }
}

impl NestedCells {
    /// Wraps an array; `None` if its values do not consist of values.
    pub(crate) fn new(array: &ArrayRef, utc_offset_seconds: i32) -> Result<Option<Self>, ArrowError> {
        let cells = |array: &ArrayRef| ArrayCells::new(array, utc_offset_seconds);
        let boxed = |array: &ArrayRef| cells(array).map(Box::new);
        Ok(Some(match array.data_type() {
            DataType::List(_) => {
                let of = array.as_list::<i32>().clone();
                let all = parts(of.value_offsets());
                Self::List { items: boxed(&of.values().slice(all.start, all.len()))?, first: all.start, of }
            }
            DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item) => {
                let list = arrow::compute::cast(array, &DataType::List(Arc::clone(item)))?;
                return Self::new(&list, utc_offset_seconds);
            }
            DataType::Map(..) => {
                let of = array.as_map().clone();
                let all = parts(of.value_offsets());
                let sliced = |array: &ArrayRef| boxed(&array.slice(all.start, all.len()));
                let (keys, values) = (sliced(of.keys())?, sliced(of.values())?);
                Self::Map { keys, values, first: all.start, of }
            }
            DataType::Struct(_) => {
                let of = array.as_struct().clone();
                let fields = of.columns().iter().map(cells).collect::<Result<_, _>>()?;
                Self::Struct { of, fields }
            }
            _ => return Ok(None),
        }))
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::List { of, .. } => of.is_null(row),
            Self::Map { of, .. } => of.is_null(row),
            Self::Struct { of, .. } => of.is_null(row),
        }
    }

    /// The value as Doris prints it: `[1, null, "a"]`, `{"a":1, "b":2}`.
    pub(crate) fn show(&self, row: usize, out: &mut String) {
        match self {
            Self::List { of, first, items } => {
                out.push('[');
                for (at, item) in within(of.value_offsets(), row, *first).enumerate() {
                    comma(at, out);
                    show_part(&items.cell(item), out);
                }
                out.push(']');
            }
            Self::Map { of, first, keys, values } => {
                out.push('{');
                for (at, entry) in within(of.value_offsets(), row, *first).enumerate() {
                    comma(at, out);
                    show_part(&keys.cell(entry), out);
                    out.push(':');
                    show_part(&values.cell(entry), out);
                }
                out.push('}');
            }
            Self::Struct { of, fields } => {
                out.push('{');
                for (at, (name, field)) in of.column_names().into_iter().zip(fields).enumerate() {
                    comma(at, out);
                    out.push('"');
                    out.push_str(name);
                    out.push_str("\":");
                    show_part(&field.cell(row), out);
                }
                out.push('}');
            }
        }
    }
}

fn comma(at: usize, out: &mut String) {
    if at > 0 {
        out.push_str(", ");
    }
}

fn show_part(cell: &Cell<'_>, out: &mut String) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Nested(cells, row) => cells.show(*row, out),
        Cell::Text(_) | Cell::Date(_) | Cell::DateTime(_) | Cell::Hex(_) => {
            out.push('"');
            out.push_str(&String::from_utf8_lossy(&cell::text(cell).unwrap_or_default()));
            out.push('"');
        }
        other => out.push_str(&String::from_utf8_lossy(&cell::text(other).unwrap_or_default())),
    }
}

fn range(offsets: &[i32], row: usize) -> Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// The parts of a row, counted from the first part of all rows.
fn within(offsets: &[i32], row: usize, first: usize) -> Range<usize> {
    let range = range(offsets, row);
    range.start - first..range.end - first
}

/// The parts of all rows.
fn parts(offsets: &[i32]) -> Range<usize> {
    offsets[0] as usize..offsets[offsets.len() - 1] as usize
}

impl Tree {
    /// Pushes a value of Arrow's. The fields of a struct are found by name, or, if one is not there, taken in order.
    pub(super) fn push_cells(&mut self, cells: &NestedCells, row: usize, rules: Rules) -> Result<(), Fault> {
        match (self, cells) {
            (Self::List { lists, items }, NestedCells::List { of, first, items: cells }) => {
                let range = within(of.value_offsets(), row, *first);
                lists.push(range.len());
                for item in range {
                    items.push_part(cells.cell(item), rules)?;
                }
                Ok(())
            }
            (tree @ Self::Map { .. }, NestedCells::Map { of, first, keys, values }) => {
                let range = within(of.value_offsets(), row, *first);
                tree.push_entries(
                    range.len(),
                    rules,
                    |tree, entry| tree.push(keys.cell(range.start + entry), rules),
                    |tree, entry| tree.push(values.cell(range.start + entry), rules),
                )
            }
            (Self::Struct { len, names, fields, .. }, NestedCells::Struct { of, fields: cells }) => {
                let place =
                    |name: &str| of.column_names().iter().position(|known| known.eq_ignore_ascii_case(name));
                let places: Option<Vec<usize>> = names.iter().map(|field| place(&field.name)).collect();
                let places = match places {
                    Some(places) => places,
                    None if cells.len() == fields.len() => (0..cells.len()).collect(),
                    None => return Err(Fault::Bad),
                };
                for (field, place) in fields.iter_mut().zip(places) {
                    field.push_part(cells[place].cell(row), rules)?;
                }
                *len += 1;
                Ok(())
            }
            _ => Err(Fault::Bad),
        }
    }
}
