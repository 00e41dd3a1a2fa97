//! Arrays for table functions: the positions of elements, and arrays that are never empty.

use crate::functions::nested::arrays::{Lists, list_of, same_list};
use crate::functions::{MySqlFunction, Param, keeping};
use arrow::array::{ArrayRef, Int32Array, ListArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    vec![
        MySqlFunction::new("__positions", &[Any], || list_of(DataType::Int32), positions).variadic(),
        MySqlFunction::new("__never_empty", &[Any], || list_of(DataType::Null), |args| never_empty(&args[0]))
            .returning(same_list)
            .keeping(keeping::first),
    ]
}

/// The positions, from 0, in the longest of a row's arrays; NULL if all are NULL.
fn positions(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = args.iter().map(|array| Lists::of(array, "posexplode")).collect::<Result<Vec<_>>>()?;
    let longest = |row: usize| lists.iter().filter_map(|list| Some(list.row(row)?.len())).max();
    let lengths: Vec<Option<usize>> = (0..args[0].len()).map(longest).collect();
    let values = lengths.iter().flat_map(|length| 0..length.unwrap_or(0) as i32);
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(values));
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect::<Vec<bool>>().into();
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let field = Arc::new(Field::new_list_field(DataType::Int32, true));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(nulls))?))
}

/// The arrays, with one of a NULL in the place of empty ones and NULLs.
fn never_empty(array: &ArrayRef) -> Result<ArrayRef> {
    let lists = Lists::of(array, "explode")?;
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(lists.len));
    for row in 0..lists.len {
        let range = lists.row(row).unwrap_or_default();
        lengths.push(range.len().max(1));
        match range.is_empty() {
            true => places.push(None),
            false => places.extend(range.map(|place| Some(place as u64))),
        }
    }
    let values = take(&lists.values, &UInt64Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, None)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int32Type;

    fn lists() -> ArrayRef {
        let rows = vec![Some(vec![Some(5), None]), Some(vec![]), None];
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
    }

    #[test]
    fn positions_count_the_longest_array_of_a_row() {
        let other: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1)]),
            Some(vec![None, None, None]),
            None,
        ]));
        let found = positions(&[lists(), other]).unwrap();
        let found = found.as_list::<i32>();
        let row = |row: usize| found.value(row).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!((row(0), row(1), found.is_null(2)), (vec![0, 1], vec![0, 1, 2], true));
    }

    #[test]
    fn an_empty_array_gets_a_null() {
        let found = never_empty(&lists()).unwrap();
        let found = found.as_list::<i32>();
        let row = |row: usize| found.value(row).as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
        assert_eq!((row(0), row(1), row(2)), (vec![Some(5), None], vec![None], vec![None]));
    }
}
