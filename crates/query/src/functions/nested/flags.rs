//! Arrays of conditions, which a lambda makes of elements: `ARRAY_COUNT`, `ARRAY_EXISTS`, `ARRAY_FIRST_INDEX`, `ARRAY_MATCH_ANY`
//! and so on.
//!
//! Not here: lambdas. The rewrite of a query applies them before these functions see the array.

use crate::functions::conversion::convert::to_truth;
use crate::functions::nested::arrays::{Lists, list_of};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    let (int, boolean) = (crate::functions::int64, crate::functions::boolean);
    vec![
        MySqlFunction::new("array_count", &[Any], int, |args| {
            let (lists, flags) = flags(&args[0], "array_count")?;
            let counts = (0..lists.len).map(|row| {
                Some(
                    lists.row(row).map_or(0, |range| range.filter(|at| is(&flags, *at, true)).count() as i64),
                )
            });
            Ok(Arc::new(counts.collect::<Int64Array>()))
        }),
        MySqlFunction::new("array_exists", &[Any], || list_of(DataType::Boolean), exists),
        MySqlFunction::new("__array_first_index", &[Any], int, |args| {
            index(&args[0], "array_first_index", |mut range, flags| range.find(|at| is(flags, *at, true)))
        }),
        MySqlFunction::new("__array_last_index", &[Any], int, |args| {
            index(&args[0], "array_last_index", |range, flags| range.rev().find(|at| is(flags, *at, true)))
        }),
        MySqlFunction::new("__array_match_any", &[Any], boolean, |args| {
            matches(&args[0], "array_match_any", true)
        }),
        MySqlFunction::new("__array_match_all", &[Any], boolean, |args| {
            matches(&args[0], "array_match_all", false)
        }),
    ]
}

/// The lists and which of their elements count as true.
fn flags(array: &ArrayRef, function: &str) -> Result<(Lists, BooleanArray)> {
    let lists = Lists::of(array, function)?;
    let flags = match lists.values.data_type() {
        DataType::Null => cast(&lists.values, &DataType::Boolean)?,
        _ => to_truth(&lists.values)?,
    };
    let flags = flags.as_boolean().clone();
    Ok((lists, flags))
}

fn is(flags: &BooleanArray, at: usize, wanted: bool) -> bool {
    flags.is_valid(at) && flags.value(at) == wanted
}

/// The conditions as BOOLEANs.
fn exists(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (mut lists, flags) = flags(&args[0], "array_exists")?;
    lists.values = Arc::new(flags);
    lists.pick(|_, range| Some(range.collect()))
}

/// The position of the element that `find` finds, from 1; 0 if it finds none.
fn index(
    array: &ArrayRef,
    function: &str,
    find: impl Fn(Range<usize>, &BooleanArray) -> Option<usize>,
) -> Result<ArrayRef> {
    let (lists, flags) = flags(array, function)?;
    let found = (0..lists.len).map(|row| {
        let range = lists.row(row)?;
        Some(find(range.clone(), &flags).map_or(0, |at| (at - range.start) as i64 + 1))
    });
    Ok(Arc::new(found.collect::<Int64Array>()))
}

/// Whether a condition is true for one element, or for all; NULL if that depends on a condition that is NULL.
fn matches(array: &ArrayRef, function: &str, any: bool) -> Result<ArrayRef> {
    let (lists, flags) = flags(array, function)?;
    let found = (0..lists.len).map(|row| {
        let range = lists.row(row)?;
        if range.clone().any(|at| is(&flags, at, any)) {
            return Some(any);
        }
        (!range.into_iter().any(|at| flags.is_null(at))).then_some(!any)
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}
