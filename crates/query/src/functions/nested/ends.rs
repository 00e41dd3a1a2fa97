//! Arrays made or changed at their ends: `ARRAY_PUSHBACK`, `ARRAY_POPFRONT`, `ARRAY_WITH_CONSTANT`, `ARRAY_RANGE`, `ARRAY_ZIP`.

use crate::functions::conversion::convert::to_datetime;
use crate::functions::dates::datetime;
use crate::functions::growth::Bytes;
use crate::functions::keeping;
use crate::functions::nested::alike::{common_type, convert_to};
use crate::functions::nested::arrays::{Lists, element, list_of, same_list};
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::{DATETIME, Kind, kind};
use arrow::array::{
    Array, ArrayRef, AsArray, Int64Builder, ListArray, ListBuilder, StructArray, TimestampMicrosecondBuilder,
    UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, TimestampMicrosecondType};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// Elements of an array that a function makes of a number.
const ELEMENTS_MAX: i64 = 1_000_000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, DateTime, Int, Text};
    let list = || list_of(DataType::Null);
    vec![
        MySqlFunction::new("array_pushback", &[Any, Any], list, |args| push(args, "array_pushback"))
            .returning(pushed_type)
            .keeping(keeping::first),
        MySqlFunction::new("array_pushfront", &[Any, Any], list, |args| push(args, "array_pushfront"))
            .returning(pushed_type)
            .keeping(keeping::first),
        MySqlFunction::new("array_popback", &[Any], list, |args| {
            Lists::of(&args[0], "array_popback")?
                .pick(|_, range| Some((range.start..range.end.saturating_sub(1).max(range.start)).collect()))
        })
        .returning(same_list)
        .keeping(keeping::first),
        MySqlFunction::new("array_popfront", &[Any], list, |args| {
            Lists::of(&args[0], "array_popfront")?.pick(|_, range| Some(range.skip(1).collect()))
        })
        .returning(same_list)
        .keeping(keeping::first),
        MySqlFunction::new("array_with_constant", &[Int, Any], list, with_constant)
            .returning(|types| list_of(types.get(1).cloned().unwrap_or(DataType::Null)))
            .keeping(|fields| keeping::list_of_first(fields.get(1..)?)),
        MySqlFunction::new("array_range", &[Any, Any, Int], list, range).optional(2).returning(range_type),
        MySqlFunction::new("__array_range_of_times", &[DateTime, DateTime, Int, Text], times, range_of_times),
        MySqlFunction::new("array_zip", &[Any], list, |args| zip(args, "ARRAY_ZIP"))
            .variadic()
            .returning(zip_type),
    ]
}

fn times() -> DataType {
    list_of(DATETIME)
}

fn pushed_type(types: &[DataType]) -> DataType {
    match types {
        [list, pushed] => list_of(common_type(&[&element(list), pushed])),
        _ => list_of(DataType::Null),
    }
}

fn push(args: &[ArrayRef], function: &str) -> Result<ArrayRef> {
    let mut lists = Lists::of(&args[0], function)?;
    let to = common_type(&[lists.values.data_type(), args[1].data_type()]);
    let behind = lists.values.len();
    let (elements, pushed) = (convert_to(&lists.values, &to)?, convert_to(&args[1], &to)?);
    lists.values = concat(&[elements.as_ref(), pushed.as_ref()])?;
    let is_back = function == "array_pushback";
    lists.pick(|row, range| {
        let pushed = std::iter::once(behind + row);
        Some(if is_back { range.chain(pushed).collect() } else { pushed.chain(range).collect() })
    })
}

/// The bytes of the value in a row.
fn size(array: &ArrayRef, row: usize) -> usize {
    match array.as_string_opt::<i32>() {
        Some(texts) if texts.is_valid(row) => texts.value(row).len(),
        Some(_) => 0,
        None => array.get_array_memory_size() / array.len().max(1),
    }
}

/// An array of copies of a value; empty for no number.
fn with_constant(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (counts, values) = (args[0].as_primitive::<Int64Type>(), &args[1]);
    let mut growth = Bytes::new("array_with_constant", args);
    let (mut lengths, mut places) = (Vec::with_capacity(counts.len()), Vec::new());
    for row in 0..counts.len() {
        let count = if counts.is_valid(row) { counts.value(row) } else { 0 };
        let Some(length) = usize::try_from(count).ok().filter(|_| count <= ELEMENTS_MAX) else {
            return exec_err!("ARRAY_WITH_CONSTANT makes 0 to {ELEMENTS_MAX} elements and not {count}");
        };
        growth.add(length.saturating_mul(size(values, row) + size_of::<u64>()))?;
        lengths.push(length);
        places.extend(std::iter::repeat_n(row as u64, length));
    }
    let elements = take(values, &UInt64Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), elements, None)?))
}

fn is_of_times(types: &[DataType]) -> bool {
    types.len() == 2 && types.iter().any(|of| matches!(kind(of), Kind::Date | Kind::DateTime | Kind::Text))
}

fn range_type(types: &[DataType]) -> DataType {
    if is_of_times(types) { times() } else { list_of(DataType::Int64) }
}

/// The numbers from a first one, or 0, to before a last one; NULL for negative numbers and steps that are not above 0.
fn range(args: &[ArrayRef]) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    if is_of_times(&types) {
        let (from, to) = (to_datetime(&args[0])?, to_datetime(&args[1])?);
        let days = Arc::new(arrow::array::Int64Array::from(vec![1; from.len()]));
        let unit = Arc::new(arrow::array::StringArray::from(vec!["DAY"; from.len()]));
        return range_of_times(&[from, to, days, unit]);
    }
    let columns =
        args.iter().map(crate::functions::conversion::convert::to_integer).collect::<Result<Vec<_>>>()?;
    let int = |column: usize, row: usize| {
        let column = columns[column].as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    let bounds = |row: usize| {
        Some(match columns.len() {
            1 => (0, int(0, row)?, 1),
            2 => (int(0, row)?, int(1, row)?, 1),
            _ => (int(0, row)?, int(1, row)?, int(2, row)?),
        })
    };
    let mut growth = Bytes::new("array_range", args);
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in 0..args[0].len() {
        let Some((from, to, step)) =
            bounds(row).filter(|(from, to, step)| *from >= 0 && *to >= 0 && *step > 0)
        else {
            lists.append_null();
            continue;
        };
        // Neither is negative.
        let count = if to > from { (to - from - 1) / step + 1 } else { 0 };
        check_count("ARRAY_RANGE", count)?;
        growth.add(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<i64>()))?;
        lists.values().append_values_from(from, step, count);
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// Appends numbers at equal distances.
trait AppendNumbers {
    fn append_values_from(&mut self, from: i64, step: i64, count: i64);
}

impl AppendNumbers for Int64Builder {
    fn append_values_from(&mut self, from: i64, step: i64, count: i64) {
        (0..count).for_each(|at| self.append_value(from + at * step));
    }
}

fn check_count(function: &str, count: i64) -> Result<()> {
    if count > ELEMENTS_MAX {
        return exec_err!(
            "{function} makes at most {ELEMENTS_MAX} elements and not {count}: use a longer step"
        );
    }
    Ok(())
}

/// The times from a first one to before a last one; NULL for steps that are not above 0.
fn range_of_times(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (from, to) = (
        args[0].as_primitive::<TimestampMicrosecondType>(),
        args[1].as_primitive::<TimestampMicrosecondType>(),
    );
    let (steps, units) = (args[2].as_primitive::<Int64Type>(), args[3].as_string::<i32>());
    let mut growth = Bytes::new("array_range", args);
    let mut lists = ListBuilder::new(TimestampMicrosecondBuilder::new());
    for row in 0..from.len() {
        let is_null = from.is_null(row) || to.is_null(row) || steps.is_null(row) || units.is_null(row);
        if is_null || steps.value(row) <= 0 {
            lists.append_null();
            continue;
        }
        let unit = datetime::unit(units.value(row)).ok_or_else(|| {
            exec_datafusion_err!("ARRAY_RANGE does not know the unit '{}'", units.value(row))
        })?;
        let mut count = 0_i64;
        // Counted from the first time, whose day of the month the others have as far as theirs has it.
        while let Some(at) = count
            .checked_mul(steps.value(row))
            .and_then(|units| datetime::add(from.value(row), units, unit))
            .filter(|at| *at < to.value(row))
        {
            count += 1;
            check_count("ARRAY_RANGE", count)?;
            growth.add(size_of::<i64>())?;
            lists.values().append_value(at);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn zip_fields(types: &[DataType]) -> Fields {
    types.iter().zip(1..).map(|(of, at)| Field::new(format!("col{at}"), element(of), true)).collect()
}

pub(super) fn zip_type(types: &[DataType]) -> DataType {
    list_of(DataType::Struct(zip_fields(types)))
}

/// Structs of the elements at the same places of the arrays.
pub(super) fn zip(args: &[ArrayRef], function: &str) -> Result<ArrayRef> {
    let lists = args.iter().map(|arg| Lists::of(arg, "array_zip")).collect::<Result<Vec<_>>>()?;
    let rows = args[0].len();
    let (mut lengths, mut valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut places: Vec<Vec<u64>> = vec![Vec::new(); lists.len()];
    for row in 0..rows {
        let ranges: Option<Vec<_>> = lists.iter().map(|list| list.row(row)).collect();
        valid.push(ranges.is_some());
        let ranges = ranges.unwrap_or_default();
        let length = ranges.first().map_or(0, ExactSizeIterator::len);
        if let Some(other) = ranges.iter().find(|range| range.len() != length) {
            return exec_err!(
                "{function} takes arrays of one length and not of {length} and {}",
                other.len()
            );
        }
        lengths.push(length);
        for (places, range) in places.iter_mut().zip(ranges) {
            places.extend(range.map(|at| at as u64));
        }
    }
    let count = lengths.iter().sum();
    let mut columns = Vec::with_capacity(lists.len());
    for (list, places) in lists.iter().zip(places) {
        columns.push(take(&list.values, &UInt64Array::from(places), None)?);
    }
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    let structs = StructArray::try_new_with_length(zip_fields(&types), columns, None, count)?;
    let field = Arc::new(Field::new_list_field(structs.data_type().clone(), true));
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(structs), Some(nulls))?))
}
