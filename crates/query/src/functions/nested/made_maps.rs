//! Maps made of arrays, structs and texts: `MAP_FROM_ARRAYS`, `MAP_FROM_ENTRIES`, `STR_TO_MAP`; and `MAP_CONTAINS_ENTRY`.
//!
//! As in `map(k, v, …)`, the last of equal keys wins and is placed last, and a key that is NULL is refused.

use crate::functions::growth::Bytes;
use crate::functions::nested::alike::normal;
use crate::functions::nested::arrays::{Lists, comparable, element};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, MapArray, StringBuilder, StructArray, UInt64Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Text};
    let texts = || map_type(DataType::Utf8, DataType::Utf8);
    vec![
        MySqlFunction::new("map_from_arrays", &[Any, Any], texts, from_arrays)
            .returning(|types| map_type(element(&types[0]), types.get(1).map_or(DataType::Null, element))),
        MySqlFunction::new("map_from_entries", &[Any], texts, |args| from_entries(&args[0], false))
            .returning(|types| of_entries(&types[0])),
        MySqlFunction::new("__map_of_all", &[Any], texts, |args| from_entries(&args[0], true))
            .returning(|types| of_entries(&types[0])),
        MySqlFunction::new("deduplicate_map", &[Any], texts, |args| deduplicate(&args[0]))
            .returning(|types| types[0].clone()),
        MySqlFunction::new("str_to_map", &[Text, Text, Text], texts, str_to_map).optional(2),
        MySqlFunction::new("map_contains_entry", &[Any, Any, Any], crate::functions::boolean, contains_entry),
    ]
}

fn or_text(data_type: DataType) -> DataType {
    if data_type == DataType::Null { DataType::Utf8 } else { data_type }
}

fn entry_fields(key: DataType, value: DataType) -> Fields {
    Fields::from(vec![Field::new("key", or_text(key), false), Field::new("value", or_text(value), true)])
}

fn map_type(key: DataType, value: DataType) -> DataType {
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry_fields(key, value)), false)), false)
}

fn of_entries(list: &DataType) -> DataType {
    match element(list) {
        DataType::Struct(fields) if fields.len() == 2 => {
            map_type(fields[0].data_type().clone(), fields[1].data_type().clone())
        }
        _ => map_type(DataType::Utf8, DataType::Utf8),
    }
}

/// Maps of the pairs of places that each row has; `None` for NULL.
///
/// # Errors
/// A key is NULL.
pub fn assemble(
    keys: &ArrayRef,
    values: &ArrayRef,
    rows: &[Option<Vec<(usize, usize)>>],
    function: &str,
) -> Result<ArrayRef> {
    let typed = |array: &ArrayRef| match array.data_type() {
        DataType::Null => new_null_array(&DataType::Utf8, array.len()),
        _ => Arc::clone(array),
    };
    let (keys, values) = (normal(typed(keys)), typed(values));
    let compared = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?
        .convert_columns(std::slice::from_ref(&keys))?;
    let (mut key_places, mut value_places, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for pairs in rows {
        let pairs = pairs.as_deref().unwrap_or_default();
        if pairs.iter().any(|(key, _)| keys.is_null(*key)) {
            return exec_err!("{}: a key that is NULL is not supported", function.to_uppercase());
        }
        let mut seen = HashSet::with_capacity(pairs.len());
        let mut kept: Vec<&(usize, usize)> =
            pairs.iter().rev().filter(|(key, _)| seen.insert(compared.row(*key))).collect();
        kept.reverse();
        lengths.push(kept.len());
        key_places.extend(kept.iter().map(|(key, _)| *key as u64));
        value_places.extend(kept.iter().map(|(_, value)| *value as u64));
    }
    let columns = vec![
        take(&keys, &UInt64Array::from(key_places), None)?,
        take(&values, &UInt64Array::from(value_places), None)?,
    ];
    let fields = entry_fields(keys.data_type().clone(), values.data_type().clone());
    let entries = StructArray::try_new(fields.clone(), columns, None)?;
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    let nulls: NullBuffer = rows.iter().map(Option::is_some).collect::<Vec<bool>>().into();
    Ok(Arc::new(MapArray::try_new(field, OffsetBuffer::from_lengths(lengths), entries, Some(nulls), false)?))
}

fn from_arrays(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (keys, values) = (Lists::of(&args[0], "map_from_arrays")?, Lists::of(&args[1], "map_from_arrays")?);
    let mut rows = Vec::with_capacity(keys.len);
    for row in 0..keys.len {
        let Some((keys, values)) = keys.row(row).zip(values.row(row)) else {
            rows.push(None);
            continue;
        };
        if keys.len() != values.len() {
            return exec_err!(
                "MAP_FROM_ARRAYS takes as many keys as values; there are {} keys and {} values",
                keys.len(),
                values.len()
            );
        }
        rows.push(Some(keys.zip(values).collect()));
    }
    assemble(&keys.values, &values.values, &rows, "map_from_arrays")
}

/// The map of a list of structs. The list that an aggregate has collected is NULL without rows, which makes an empty map.
fn from_entries(array: &ArrayRef, is_collected: bool) -> Result<ArrayRef> {
    let function = if is_collected { "map_agg" } else { "map_from_entries" };
    let lists = Lists::of(array, function)?;
    let (keys, values) = match lists.values.as_struct_opt() {
        Some(entries) if entries.num_columns() == 2 => {
            (Arc::clone(entries.column(0)), Arc::clone(entries.column(1)))
        }
        _ if *lists.values.data_type() == DataType::Null => {
            (Arc::clone(&lists.values), Arc::clone(&lists.values))
        }
        _ => return exec_err!("{} takes an array of structs with two fields", function.to_uppercase()),
    };
    let pairs = |row: usize| {
        let range = lists.row(row).or_else(|| is_collected.then(std::ops::Range::default))?;
        // An entry that is NULL is none.
        Some(range.filter(|at| lists.values.is_valid(*at)).map(|at| (at, at)).collect())
    };
    let rows: Vec<_> = (0..lists.len).map(pairs).collect();
    assemble(&keys, &values, &rows, function)
}

fn deduplicate(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(maps) = array.as_map_opt() else {
        return match array.data_type() {
            DataType::Null => Ok(Arc::clone(array)),
            other => exec_err!("DEDUPLICATE_MAP takes a map and not {other}"),
        };
    };
    let offsets = maps.value_offsets();
    let pairs = |row: usize| {
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        maps.is_valid(row).then(|| range.map(|at| (at, at)).collect())
    };
    let rows: Vec<_> = (0..maps.len()).map(pairs).collect();
    let made = assemble(maps.keys(), maps.values(), &rows, "deduplicate_map")?;
    crate::functions::conversion::convert::safe_cast(&made, array.data_type())
}

/// The pairs of a text such as `a:1,b:2`; a part without the second separator has the value NULL.
fn str_to_map(args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = |column: usize, row: usize, default: &'static str| match args.get(column) {
        Some(column) => {
            let column = column.as_string::<i32>();
            column.is_valid(row).then(|| column.value(row))
        }
        None => Some(default),
    };
    let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
    let mut growth = Bytes::new("str_to_map", args);
    let mut rows = Vec::with_capacity(args[0].len());
    let mut count = 0;
    for row in 0..args[0].len() {
        let found = (texts(0, row, ""), texts(1, row, ","), texts(2, row, ":"));
        let (Some(text), Some(between), Some(within)) = found else {
            rows.push(None);
            continue;
        };
        if between.is_empty() || within.is_empty() {
            return exec_err!("STR_TO_MAP takes separators that are not empty");
        }
        let start = count;
        for part in text.split(between) {
            growth.add(part.len() + 4 * size_of::<u64>())?;
            let (key, value) =
                part.split_once(within).map_or((part, None), |(key, value)| (key, Some(value)));
            keys.append_value(key);
            values.append_option(value);
            count += 1;
        }
        rows.push(Some((start..count).map(|at| (at, at)).collect()));
    }
    let (keys, values): (ArrayRef, ArrayRef) = (Arc::new(keys.finish()), Arc::new(values.finish()));
    assemble(&keys, &values, &rows, "str_to_map")
}

/// Whether a map has a key with a value; NULL equals NULL.
fn contains_entry(args: &[ArrayRef]) -> Result<ArrayRef> {
    let Some(maps) = args[0].as_map_opt() else {
        return match args[0].data_type() {
            DataType::Null => Ok(new_null_array(&DataType::Boolean, args[0].len())),
            other => exec_err!("MAP_CONTAINS_ENTRY takes a map and not {other}"),
        };
    };
    let [keys, key] = comparable([maps.keys(), &args[1]])?;
    let [values, value] = comparable([maps.values(), &args[2]])?;
    let offsets = maps.value_offsets();
    let found = (0..maps.len()).map(|row| {
        let mut range = offsets[row] as usize..offsets[row + 1] as usize;
        let is_it = |at: usize| keys.row(at) == key.row(row) && values.row(at) == value.row(row);
        maps.is_valid(row).then(|| range.any(is_it))
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}
