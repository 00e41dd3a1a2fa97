//! `TOPN`, `TOPN_ARRAY`, `TOPN_WEIGHTED` and `COUNT_BY_ENUM`: answers made of counted values.

use crate::functions::aggregates::counts::Counted;
use crate::functions::conversion::convert::to_text;
use crate::functions::nested::arrays::{element, list_of};
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, exec_err};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::sync::Arc;

/// The most values that a call of `TOPN` may ask for.
const TOP_MAX: i64 = 1000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let text = crate::functions::utf8;
    vec![
        MySqlFunction::new("__topn", &[Any, Int], text, topn),
        MySqlFunction::new("__topn_array", &[Any, Int], || list_of(DataType::Null), topn_array)
            .returning(|types| list_of(value_type(&types[0]))),
        MySqlFunction::new("__count_by_enum", &[Int, Any], text, count_by_enum).variadic(),
    ]
}

/// The type of the values that a list counts.
fn value_type(counts: &DataType) -> DataType {
    match element(counts) {
        DataType::Struct(fields) if !fields.is_empty() => fields[0].data_type().clone(),
        _ => DataType::Null,
    }
}

/// The places of the values of a row with the greatest counts; of equal counts the lesser value is first.
fn top(counted: &Counted, counts: &ArrayRef, row: usize) -> Result<Option<Vec<usize>>> {
    let counts = counts.as_primitive::<Int64Type>();
    let (Some(range), true) = (counted.row(row), counts.is_valid(row)) else { return Ok(None) };
    let count = counts.value(row);
    if !(1..=TOP_MAX).contains(&count) {
        return exec_err!("TOPN takes a number of values from 1 to {TOP_MAX} and not {count}");
    }
    let mut places: Vec<usize> = range.collect();
    places.sort_by_key(|at| Reverse(counted.counts.value(*at)));
    places.truncate(count as usize);
    // Nothing was counted in a group without values.
    Ok((!places.is_empty()).then_some(places))
}

/// The most frequent values with their counts, as an object in JSON.
fn topn(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counted = Counted::of(&args[0], "topn")?;
    let texts = to_text(&counted.values)?;
    let texts = texts.as_string::<i32>();
    growth::texts("topn", args, |row| {
        let Some(places) = top(&counted, &args[1], row)? else { return Ok(None) };
        let pair = |at: &usize| format!("{}:{}", json!(texts.value(*at)), counted.counts.value(*at));
        Ok(Some(format!("{{{}}}", places.iter().map(pair).collect::<Vec<_>>().join(","))))
    })
}

/// The most frequent values.
fn topn_array(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counted = Counted::of(&args[0], "topn_array")?;
    let (mut lengths, mut valid, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..args[0].len() {
        let found = top(&counted, &args[1], row)?;
        valid.push(found.is_some());
        let found = found.unwrap_or_default();
        lengths.push(found.len());
        places.extend(found.into_iter().map(|at| at as u64));
    }
    let values = take(&counted.values, &UInt64Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?))
}

/// The counts of each column's values as an array in JSON; the first argument is the number of rows.
fn count_by_enum(args: &[ArrayRef]) -> Result<ArrayRef> {
    let rows = args[0].as_primitive::<Int64Type>();
    let mut columns: Vec<(Counted, StringArray)> = Vec::with_capacity(args.len());
    for arg in &args[1..] {
        let counted = Counted::of(arg, "count_by_enum")?;
        let texts = to_text(&counted.values)?.as_string::<i32>().clone();
        columns.push((counted, texts));
    }
    growth::texts("count_by_enum", args, |row| {
        let all = if rows.is_valid(row) { rows.value(row) } else { 0 };
        let shown = columns.iter().map(|(counted, texts)| {
            let mut found = Map::new();
            let mut with_value = 0;
            for at in counted.row(row).into_iter().flatten() {
                with_value += counted.counts.value(at);
                found.insert(texts.value(at).to_owned(), counted.counts.value(at).into());
            }
            let object = Value::Object(found);
            format!(r#"{{"cbe":{object},"notnull":{with_value},"null":{},"all":{all}}}"#, all - with_value)
        });
        Ok(Some(format!("[{}]", shown.collect::<Vec<_>>().join(","))))
    })
}
