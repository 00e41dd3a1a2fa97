//! Nested values of an earlier type of their column as values of its type of today.
//!
//! A STRUCT may have gained fields at its end, wherever in a type it is ([`crate::change::grows`]). Older rows, in memory, in the
//! log and in data files, have NULL there. Every reader of such rows uses this module, so that all see the same.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use std::sync::Arc;

/// Converts an array to the Arrow type `to`: fields of structs are matched by name, missing ones are NULL, additional ones are
/// dropped, and leaves are cast. An array of exactly that type is shared, not copied.
///
/// # Errors
/// [`ArrowError::CastError`] if a value does not fit.
pub fn widened(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(match (array.data_type(), to) {
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let items = widened(list.values(), item.data_type())?;
            Arc::new(ListArray::try_new(
                Arc::clone(item),
                list.offsets().clone(),
                items,
                list.nulls().cloned(),
            )?)
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let map = array.as_map();
            let DataType::Struct(pair) = entries.data_type() else { return Err(other(array, to)) };
            let [key, value] = &pair[..] else { return Err(other(array, to)) };
            let columns =
                vec![widened(map.keys(), key.data_type())?, widened(map.values(), value.data_type())?];
            let pairs = StructArray::try_new(pair.clone(), columns, None)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let values = array.as_struct();
            let column = |field: &FieldRef| match values.column_by_name(field.name()) {
                Some(column) => widened(column, field.data_type()),
                None => Ok(new_null_array(field.data_type(), values.len())),
            };
            let columns = fields.iter().map(column).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                values.nulls().cloned(),
                values.len(),
            )?)
        }
        _ if array.null_count() == array.len() => new_null_array(to, array.len()),
        _ => cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?,
    })
}

fn other(array: &ArrayRef, to: &DataType) -> ArrowError {
    ArrowError::CastError(format!("{} can't become {to}", array.data_type()))
}

/// Whether structs in values of type `to` have other fields than in `from`.
#[must_use]
pub fn has_other_fields(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => has_other_fields(from.data_type(), to.data_type()),
        (DataType::Map(from, _), DataType::Map(to, _)) => match (from.data_type(), to.data_type()) {
            // Their names do not matter: Parquet has others.
            (DataType::Struct(from), DataType::Struct(to)) => {
                from.iter().zip(to).any(|(from, to)| has_other_fields(from.data_type(), to.data_type()))
            }
            _ => false,
        },
        (DataType::Struct(from), DataType::Struct(to)) => {
            let is_other = |field: &FieldRef| match from.find(field.name()) {
                Some((_, old)) => has_other_fields(old.data_type(), field.data_type()),
                None => true,
            };
            from.len() != to.len() || to.iter().any(is_other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType as ColumnType, Nested, NestedType, StructField};
    use arrow::array::{Int32Array, StringArray};
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::util::display::array_value_to_string;

    fn of(fields: &[(&str, ColumnType)]) -> ColumnType {
        let field = |(name, data_type): &(&str, ColumnType)| StructField {
            name: (*name).to_owned(),
            data_type: *data_type,
        };
        ColumnType::Nested(Nested::new(NestedType::Struct(fields.iter().map(field).collect())))
    }

    fn structs() -> ArrayRef {
        let DataType::Struct(fields) = of(&[("f", ColumnType::Int)]).to_arrow() else { unreachable!() };
        let values = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
        let nulls = NullBuffer::from(vec![true, true, false]);
        Arc::new(StructArray::new(fields, vec![values], Some(nulls)))
    }

    fn shown(array: &ArrayRef) -> Vec<String> {
        (0..array.len()).map(|row| array_value_to_string(array, row).unwrap()).collect()
    }

    #[test]
    fn a_field_that_was_not_there_is_null_and_the_others_stay() {
        let wide = of(&[("f", ColumnType::Int), ("g", ColumnType::array(ColumnType::Date))]);
        let wide = widened(&structs(), &wide.to_arrow()).unwrap();
        assert_eq!(shown(&wide), ["{f: 1, g: }", "{f: , g: }", ""]);
        let sliced = widened(&structs().slice(1, 2), wide.data_type()).unwrap();
        assert_eq!(shown(&sliced), ["{f: , g: }", ""]);
    }

    #[test]
    fn structs_within_lists_and_maps_get_their_fields() {
        let narrow = of(&[("f", ColumnType::Int)]);
        let wide = of(&[("f", ColumnType::Int), ("g", ColumnType::String)]);
        let DataType::List(item) = ColumnType::array(narrow).to_arrow() else { unreachable!() };
        let lists = ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), structs(), None);
        let lists: ArrayRef = Arc::new(lists);
        let to = ColumnType::array(wide).to_arrow();
        assert!(has_other_fields(lists.data_type(), &to) && !has_other_fields(&to, &to));
        let of_lists = widened(&lists.slice(1, 2), &to).unwrap();
        assert_eq!(of_lists.data_type(), &to);
        assert_eq!(shown(&of_lists), ["[]", "[]"], "a NULL is shown as nothing");
        assert_eq!(of_lists.as_list::<i32>().value(1).len(), 1);

        let map = |value| ColumnType::map(ColumnType::Varchar { bytes: 9 }, value).to_arrow();
        let DataType::Map(entries, _) = map(narrow) else { unreachable!() };
        let DataType::Struct(pair) = entries.data_type() else { unreachable!() };
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let pairs = StructArray::new(pair.clone(), vec![keys, structs()], None);
        let maps: ArrayRef = Arc::new(MapArray::new(
            Arc::clone(&entries),
            OffsetBuffer::from_lengths([1, 2]),
            pairs,
            None,
            false,
        ));
        assert!(has_other_fields(maps.data_type(), &map(wide)));
        let of_maps = widened(&maps, &map(wide)).unwrap();
        assert_eq!(shown(&of_maps), ["{a: {f: 1, g: }}", "{b: {f: , g: }, c: }"]);
    }

    #[test]
    fn fields_of_a_change_that_was_taken_back_are_left_out() {
        let wide = of(&[("f", ColumnType::Int), ("g", ColumnType::String)]).to_arrow();
        let with_more = widened(&structs(), &wide).unwrap();
        assert!(has_other_fields(&wide, structs().data_type()));
        assert_eq!(&widened(&with_more, structs().data_type()).unwrap(), &structs());
        let of_other_type = of(&[("f", ColumnType::Int), ("g", ColumnType::array(ColumnType::Int))]);
        let again = widened(&with_more, &of_other_type.to_arrow()).unwrap();
        assert_eq!(shown(&again), ["{f: 1, g: }", "{f: , g: }", ""]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        assert!(matches!(widened(&texts, &DataType::Int32), Err(ArrowError::CastError(_))));
    }
}
