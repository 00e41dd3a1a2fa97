//! Elements compared with each other or with a value: `ARRAY_CONTAINS_ALL`, `ARRAY_SORTBY`, `ARRAY_APPLY`,
//! `ARRAY_ENUMERATE_UNIQ`, `MAP_CONTAINS_VALUE` and so on. NULL equals NULL.

use crate::functions::keeping;
use crate::functions::nested::alike::common_type;
use crate::functions::nested::arrays::{Lists, comparable, list_of, same_list};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use arrow::row::{Row, Rows};
use datafusion::common::{Result, exec_err};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Whether an operator holds for an order of two values.
type Holds = fn(Ordering) -> bool;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Text};
    let (int, boolean) = (crate::functions::int64, crate::functions::boolean);
    let list = || list_of(DataType::Null);
    let ints = || list_of(DataType::Int64);
    vec![
        MySqlFunction::new("array_contains_all", &[Any, Any], boolean, contains_all),
        MySqlFunction::new("countequal", &[Any, Any], int, count_equal),
        MySqlFunction::new("__array_sortby", &[Any, Any], list, sort_by)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_apply", &[Any, Text, Any], list, apply)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_enumerate", &[Any], ints, enumerate),
        MySqlFunction::new("array_enumerate_uniq", &[Any], ints, enumerate_uniq).variadic(),
        MySqlFunction::new("map_size", &[Any], int, map_size),
        MySqlFunction::new("map_contains_key", &[Any, Any], boolean, |args| map_contains(args, true)),
        MySqlFunction::new("map_contains_value", &[Any, Any], boolean, |args| map_contains(args, false)),
    ]
}

/// Whether the second array is a run of elements of the first.
fn contains_all(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (all, run) = (Lists::of(&args[0], "array_contains_all")?, Lists::of(&args[1], "array_contains_all")?);
    let [values, wanted] = comparable([&all.values, &run.values])?;
    let found = (0..all.len).map(|row| {
        let (all, run) = (all.row(row)?, run.row(row)?);
        if run.len() > all.len() {
            return Some(false);
        }
        let starts = all.start..=all.end - run.len();
        let is_at = |start: usize| {
            run.clone().zip(start..).all(|(wanted_at, at)| wanted.row(wanted_at) == values.row(at))
        };
        Some(starts.into_iter().any(is_at))
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

fn count_equal(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "countequal")?;
    let [values, wanted] = comparable([&lists.values, &args[1]])?;
    let counts = (0..lists.len).map(|row| {
        let equal = lists.row(row)?.filter(|at| values.row(*at) == wanted.row(row));
        Some(equal.count() as i64)
    });
    Ok(Arc::new(counts.collect::<Int64Array>()))
}

/// The elements in the order of their keys, which are in a second array. Without keys they remain in their order.
fn sort_by(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, keys) = (Lists::of(&args[0], "array_sortby")?, Lists::of(&args[1], "array_sortby")?);
    for row in 0..lists.len {
        if let (Some(list), Some(keys)) = (lists.row(row), keys.row(row))
            && list.len() != keys.len()
        {
            return exec_err!(
                "ARRAY_SORTBY takes as many keys as values; there are {} values and {} keys",
                list.len(),
                keys.len()
            );
        }
    }
    let [compared] = comparable([&keys.values])?;
    lists.pick(|row, range| {
        let Some(keys) = keys.row(row) else { return Some(range.collect()) };
        let mut pairs: Vec<(usize, usize)> = keys.zip(range).collect();
        pairs.sort_by(|(one, _), (other, _)| compared.row(*one).cmp(&compared.row(*other)));
        Some(pairs.into_iter().map(|(_, at)| at).collect())
    })
}

/// The elements that compare to a value as an operator says; NULL is none of them.
fn apply(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_apply")?;
    let operators = args[1].as_string::<i32>();
    let mut known: Vec<Option<Holds>> = Vec::with_capacity(operators.len());
    for operator in operators {
        known.push(match operator {
            None => None,
            Some("=") => Some(Ordering::is_eq),
            Some("!=") => Some(Ordering::is_ne),
            Some("<") => Some(Ordering::is_lt),
            Some("<=") => Some(Ordering::is_le),
            Some(">") => Some(Ordering::is_gt),
            Some(">=") => Some(Ordering::is_ge),
            Some(other) => {
                return exec_err!(
                    "ARRAY_APPLY takes one of =, !=, <, <=, > and >= as its operator and not '{other}'"
                );
            }
        });
    }
    let value = match (args[2].data_type(), lists.values.data_type()) {
        // A text next to dates is a date.
        (DataType::Utf8, to @ (DataType::Date32 | DataType::Timestamp(..))) => {
            let times = crate::functions::conversion::convert::to_datetime(&args[2])?;
            crate::functions::conversion::convert::safe_cast(&times, to)?
        }
        _ => Arc::clone(&args[2]),
    };
    let [values, wanted] = comparable([&lists.values, &value])?;
    // Values without a type are NULL, though their arrays have no list of NULLs.
    let (no_element, no_value) = (lists.values.logical_nulls(), value.logical_nulls());
    let is_null =
        |nulls: &Option<NullBuffer>, at: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
    lists.pick(|row, range| {
        let holds = known[row].filter(|_| !is_null(&no_value, row))?;
        let fits = |at: &usize| !is_null(&no_element, *at) && holds(values.row(*at).cmp(&wanted.row(row)));
        Some(range.filter(fits).collect())
    })
}

/// Lists of numbers in the place of the elements of a column of lists.
fn numbered(lists: &Lists, number: impl Fn(usize) -> Result<Option<Vec<i64>>>) -> Result<ArrayRef> {
    let (mut lengths, mut valid) = (Vec::with_capacity(lists.len), Vec::with_capacity(lists.len));
    let mut numbers: Vec<i64> = Vec::with_capacity(lists.values.len());
    for row in 0..lists.len {
        let numbered = number(row)?;
        valid.push(numbered.is_some());
        let numbered = numbered.unwrap_or_default();
        lengths.push(numbered.len());
        numbers.extend(numbered);
    }
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(Int64Array::from(numbers)), Some(nulls))?))
}

/// The numbers of the elements, from 1.
fn enumerate(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_enumerate")?;
    numbered(&lists, |row| Ok(lists.row(row).map(|range| (1..=range.len() as i64).collect())))
}

/// How often each element, or the elements of several arrays together, has been in the array up to its place.
fn enumerate_uniq(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = args.iter().map(|arg| Lists::of(arg, "array_enumerate_uniq")).collect::<Result<Vec<_>>>()?;
    let mut compared: Vec<Rows> = Vec::with_capacity(lists.len());
    for list in &lists {
        let [rows] = comparable([&list.values])?;
        compared.push(rows);
    }
    numbered(&lists[0], |row| {
        let Some(ranges) = lists.iter().map(|list| list.row(row)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let length = ranges[0].len();
        if let Some(other) = ranges.iter().find(|range| range.len() != length) {
            return exec_err!(
                "ARRAY_ENUMERATE_UNIQ takes arrays of one length and not of {length} and {}",
                other.len()
            );
        }
        let mut counts: HashMap<Vec<Row<'_>>, i64> = HashMap::with_capacity(length);
        let count = |at: usize| {
            let element =
                ranges.iter().zip(&compared).map(|(range, rows)| rows.row(range.start + at)).collect();
            let count = counts.entry(element).or_default();
            *count += 1;
            *count
        };
        Ok(Some((0..length).map(count).collect()))
    })
}

fn map_size(args: &[ArrayRef]) -> Result<ArrayRef> {
    let Some(maps) = args[0].as_map_opt() else { return none_of(&args[0], "map_size", &DataType::Int64) };
    let sizes = (0..maps.len()).map(|row| maps.is_valid(row).then(|| i64::from(maps.value_length(row))));
    Ok(Arc::new(sizes.collect::<Int64Array>()))
}

/// NULLs for values that have no type.
fn none_of(array: &ArrayRef, function: &str, to: &DataType) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Null => Ok(arrow::array::new_null_array(to, array.len())),
        other => exec_err!("{function} takes a map and not {other}"),
    }
}

fn map_contains(args: &[ArrayRef], is_key: bool) -> Result<ArrayRef> {
    let function = if is_key { "map_contains_key" } else { "map_contains_value" };
    let Some(maps) = args[0].as_map_opt() else { return none_of(&args[0], function, &DataType::Boolean) };
    let side = if is_key { maps.keys() } else { maps.values() };
    let wanted = match common_type(&[side.data_type(), args[1].data_type()]) {
        // A text next to another value is read as one.
        DataType::Utf8 if *side.data_type() != DataType::Utf8 => {
            super::alike::convert_to(&args[1], side.data_type())?
        }
        _ => Arc::clone(&args[1]),
    };
    let [values, compared] = comparable([side, &wanted])?;
    let offsets = maps.value_offsets();
    let found = (0..maps.len()).map(|row| {
        // A text that is no such value is not in the map.
        if !maps.is_valid(row) {
            return None;
        }
        if wanted.is_null(row) && args[1].is_valid(row) {
            return Some(false);
        }
        let mut entries = offsets[row] as usize..offsets[row + 1] as usize;
        Some(entries.any(|at| values.row(at) == compared.row(row)))
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}
