//! Doris's array functions, where DataFusion's of that name mean something else.
//!
//! Elements are compared as values: NULL equals NULL, and a number of one type the same number of another.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::convert;
use crate::functions::keeping;
use crate::functions::nested::alike::{common_type, convert_to, normal};
use crate::types::kind::{Kind, is_text, kind};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray,
    StringArray, UInt64Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Decimal128Type, Field, Float64Type, Int64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let (int, boolean) = (crate::functions::int64, crate::functions::boolean);
    let list = || list_of(DataType::Null);
    vec![
        MySqlFunction::new("array", &[Any], list, array)
            .variadic()
            .returning(|types| list_of(common_type(&types.iter().collect::<Vec<_>>())))
            .keeping(keeping::list_of_all),
        MySqlFunction::new("array_size", &[Any], int, |args| sizes(&args[0])),
        MySqlFunction::new("element_at", &[Any, Any], crate::functions::utf8, element_at)
            .returning(element_type)
            .keeping(keeping::element),
        MySqlFunction::new("array_contains", &[Any, Any], boolean, contains),
        MySqlFunction::new("array_position", &[Any, Any], int, position),
        MySqlFunction::new("array_slice", &[Any, Int, Int], list, slice)
            .optional(1)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_remove", &[Any, Any], list, remove)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_compact", &[Any], list, compact)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_intersect", &[Any, Any], list, intersect).variadic().returning(common_list),
        MySqlFunction::new("array_sum", &[Any], crate::functions::float64, sum).returning(sum_type),
        MySqlFunction::new("reverse", &[Any], crate::functions::utf8, reverse)
            .returning(reverse_type)
            .keeping(keeping::first),
    ]
}

/// The type of lists whose elements may be NULL.
pub fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

pub fn element(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field) => field.data_type().clone(),
        _ => DataType::Null,
    }
}

pub fn same_list(types: &[DataType]) -> DataType {
    list_of(element(&types[0]))
}

fn common_list(types: &[DataType]) -> DataType {
    let elements: Vec<DataType> = types.iter().map(element).collect();
    list_of(common_type(&elements.iter().collect::<Vec<_>>()))
}

pub fn is_list(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::ListView(_)
    )
}

/// A column of lists with their elements in one array.
pub struct Lists {
    pub values: ArrayRef,
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    pub len: usize,
}

impl Lists {
    pub fn of(array: &ArrayRef, function: &str) -> Result<Self> {
        let data_type = array.data_type();
        let list = match data_type {
            DataType::Null => new_null_array(&list_of(DataType::Null), array.len()),
            data_type if is_list(data_type) => convert::safe_cast(array, &list_of(element(data_type)))?,
            other => return exec_err!("{function} takes an array and not {other}"),
        };
        let list = list.as_list::<i32>();
        Ok(Self {
            values: Arc::clone(list.values()),
            offsets: list.offsets().clone(),
            nulls: list.nulls().cloned(),
            len: list.len(),
        })
    }

    /// The places of a row's elements; `None` for a NULL.
    pub fn row(&self, row: usize) -> Option<Range<usize>> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!is_null).then(|| self.offsets[row] as usize..self.offsets[row + 1] as usize)
    }

    /// Lists of the elements at the places that `pick` names for each row.
    pub(super) fn pick(&self, pick: impl Fn(usize, Range<usize>) -> Option<Vec<usize>>) -> Result<ArrayRef> {
        let mut places = Vec::new();
        let mut lengths = Vec::with_capacity(self.len);
        let mut valid = Vec::with_capacity(self.len);
        for row in 0..self.len {
            let picked = self.row(row).and_then(|range| pick(row, range));
            valid.push(picked.is_some());
            let picked = picked.unwrap_or_default();
            lengths.push(picked.len());
            places.extend(picked.into_iter().map(|place| place as u64));
        }
        let values = take(&self.values, &UInt64Array::from(places), None)?;
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?))
    }
}

/// One array of each row's values.
fn array(args: &[ArrayRef]) -> Result<ArrayRef> {
    let to = common_type(&args.iter().map(Array::data_type).collect::<Vec<_>>());
    let columns = args.iter().map(|arg| convert_to(arg, &to)).collect::<Result<Vec<_>>>()?;
    let rows = args[0].len();
    // The rows of one column follow those of the previous one.
    let all = concat(&columns.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    let places: UInt64Array = (0..rows)
        .flat_map(|row| (0..columns.len()).map(move |column| (column * rows + row) as u64))
        .collect::<Vec<_>>()
        .into();
    let field = Arc::new(Field::new_list_field(to, true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(columns.len(), rows));
    Ok(Arc::new(ListArray::try_new(field, offsets, take(&all, &places, None)?, None)?))
}

/// Columns as rows of bytes that are equal where the values are.
pub(super) fn comparable<const N: usize>(columns: [&ArrayRef; N]) -> Result<[Rows; N]> {
    let to = common_type(&columns.map(Array::data_type));
    let converter = RowConverter::new(vec![SortField::new(to.clone())])?;
    let mut rows = Vec::with_capacity(N);
    for column in columns {
        rows.push(converter.convert_columns(&[normal(convert_to(column, &to)?)])?);
    }
    rows.try_into().map_err(|_| exec_datafusion_err!("columns were lost in a comparison"))
}

fn sizes(array: &ArrayRef) -> Result<ArrayRef> {
    if let DataType::Map(..) = array.data_type() {
        let map = array.as_map();
        let sizes = (0..map.len()).map(|row| map.is_valid(row).then(|| i64::from(map.value_length(row))));
        return Ok(Arc::new(sizes.collect::<Int64Array>()));
    }
    let lists = Lists::of(array, "array_size")?;
    let sizes = (0..lists.len).map(|row| lists.row(row).map(|range| range.len() as i64));
    Ok(Arc::new(sizes.collect::<Int64Array>()))
}

fn element_type(types: &[DataType]) -> DataType {
    match &types[0] {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => fields[1].data_type().clone(),
            _ => DataType::Null,
        },
        other => element(other),
    }
}

/// The element at a place, from 1 or, negative, from the end; or a key's value in a map.
fn element_at(args: &[ArrayRef]) -> Result<ArrayRef> {
    if let DataType::Map(..) = args[0].data_type() {
        let map = args[0].as_map();
        // A text next to dates is a date.
        let is_date = matches!(kind(map.keys().data_type()), Kind::Date | Kind::DateTime);
        let wanted = match is_date && is_text(args[1].data_type()) {
            true => convert::safe_cast(&convert::to_datetime(&args[1])?, map.keys().data_type())?,
            false => Arc::clone(&args[1]),
        };
        let [keys, wanted] = comparable([map.keys(), &wanted])?;
        let offsets = map.value_offsets();
        let places: UInt64Array = (0..map.len())
            .map(|row| {
                let mut entries = offsets[row] as usize..offsets[row + 1] as usize;
                let found = map.is_valid(row).then(|| entries.find(|at| keys.row(*at) == wanted.row(row)))?;
                found.map(|at| at as u64)
            })
            .collect();
        return Ok(take(map.values(), &places, None)?);
    }
    let lists = Lists::of(&args[0], "element_at")?;
    let places = convert::to_integer(&args[1])?;
    let places = places.as_primitive::<Int64Type>();
    let places: UInt64Array = (0..lists.len)
        .map(|row| {
            let (range, place) = (lists.row(row)?, places.is_valid(row).then(|| places.value(row))?);
            let from_start = offset(place, range.len())?;
            (from_start < range.len()).then(|| (range.start + from_start) as u64)
        })
        .collect();
    Ok(take(&lists.values, &places, None)?)
}

/// Elements before the place, which counts from 1 or, negative, from the end. `None` for 0 and before the start.
fn offset(place: i64, len: usize) -> Option<usize> {
    let from_start = if place > 0 { place - 1 } else { place.checked_add(len as i64)? };
    usize::try_from(from_start).ok().filter(|_| place != 0)
}

fn contains(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_contains")?;
    let [values, wanted] = comparable([&lists.values, &args[1]])?;
    let found = (0..lists.len)
        .map(|row| lists.row(row).map(|mut range| range.any(|at| values.row(at) == wanted.row(row))));
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

/// The index of the first equal element, from 1; 0 if none is equal.
fn position(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_position")?;
    let [values, wanted] = comparable([&lists.values, &args[1]])?;
    let found = (0..lists.len).map(|row| {
        let place = lists.row(row)?.position(|at| values.row(at) == wanted.row(row));
        Some(place.map_or(0, |place| place as i64 + 1))
    });
    Ok(Arc::new(found.collect::<Int64Array>()))
}

/// `array_slice(a, from, length)`: the part that the two name, as far as there is one.
fn slice(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_slice")?;
    let int = |column: usize, row: usize| {
        let column = args[column].as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    lists.pick(|row, range| {
        let len = range.len() as i64;
        let from = int(1, row)?;
        let length = if args.len() > 2 { int(2, row)? } else { len };
        let start = match from {
            0 => return Some(Vec::new()),
            from if from > 0 => from - 1,
            from => from.saturating_add(len),
        };
        let end = start.saturating_add(length.max(0)).clamp(0, len);
        let start = start.clamp(0, len);
        Some((start..end).map(|at| range.start + at as usize).collect())
    })
}

/// All elements except the ones that equal a value.
fn remove(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_remove")?;
    let [values, unwanted] = comparable([&lists.values, &args[1]])?;
    lists.pick(|row, range| Some(range.filter(|at| values.row(*at) != unwanted.row(row)).collect()))
}

/// Each run of equal elements as one.
fn compact(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_compact")?;
    let [values] = comparable([&lists.values])?;
    lists.pick(|_, range| {
        let start = range.start;
        Some(range.filter(|at| *at == start || values.row(*at) != values.row(*at - 1)).collect())
    })
}

/// The elements that all arrays have, once each, in the order of the first.
fn intersect(args: &[ArrayRef]) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| element(arg.data_type())).collect();
    let to = common_type(&types.iter().collect::<Vec<_>>());
    let converter = RowConverter::new(vec![SortField::new(to.clone())])?;
    let mut lists = Vec::with_capacity(args.len());
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        let mut list = Lists::of(arg, "array_intersect")?;
        list.values = normal(convert_to(&list.values, &to)?);
        values.push(converter.convert_columns(std::slice::from_ref(&list.values))?);
        lists.push(list);
    }
    lists[0].pick(|row, range| {
        let mut others = Vec::with_capacity(args.len());
        for (list, values) in lists.iter().zip(&values).skip(1) {
            others.push(list.row(row)?.map(|at| values.row(at)).collect::<HashSet<_>>());
        }
        let mut seen = HashSet::new();
        let in_all = |at: &usize| {
            let value = values[0].row(*at);
            others.iter().all(|other| other.contains(&value)) && seen.insert(value)
        };
        Some(range.filter(in_all).collect())
    })
}

pub(super) fn sum_type(types: &[DataType]) -> DataType {
    match element(&types[0]) {
        data_type if data_type.is_integer() || data_type == DataType::Boolean => DataType::Int64,
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, scale),
        _ => DataType::Float64,
    }
}

/// The sum of the elements that are not NULL; NULL if all are.
fn sum(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_sum")?;
    let to = sum_type(&[args[0].data_type().clone()]);
    let values = convert_to(&lists.values, &to)?;
    let overflow = || exec_datafusion_err!("array_sum: the sum does not fit into {to}");
    match to {
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            let sums = (0..lists.len).map(|row| {
                let add = |sum: Option<i64>, at| match (sum, values.is_valid(at)) {
                    (sum, false) => Ok(sum),
                    (None, true) => Ok(Some(values.value(at))),
                    (Some(sum), true) => sum.checked_add(values.value(at)).map(Some).ok_or_else(overflow),
                };
                lists.row(row).map_or(Ok(None), |mut range| range.try_fold(None, add))
            });
            Ok(Arc::new(sums.collect::<Result<Int64Array>>()?))
        }
        DataType::Decimal128(precision, scale) => {
            let values = values.as_primitive::<Decimal128Type>();
            let sums = (0..lists.len).map(|row| {
                let add = |sum: Option<i128>, at| match (sum, values.is_valid(at)) {
                    (sum, false) => Ok(sum),
                    (None, true) => Ok(Some(values.value(at))),
                    (Some(sum), true) => sum.checked_add(values.value(at)).map(Some).ok_or_else(overflow),
                };
                lists.row(row).map_or(Ok(None), |mut range| range.try_fold(None, add))
            });
            let sums = sums.collect::<Result<Decimal128Array>>()?;
            sums.validate_decimal_precision(precision).map_err(|_| overflow())?;
            Ok(Arc::new(sums.with_precision_and_scale(precision, scale)?))
        }
        _ => {
            let values = values.as_primitive::<Float64Type>();
            let sums = (0..lists.len).map(|row| {
                let known = lists.row(row)?.filter(|at| values.is_valid(*at)).map(|at| values.value(at));
                known.reduce(|sum, value| sum + value)
            });
            Ok(Arc::new(sums.collect::<Float64Array>()))
        }
    }
}

fn reverse_type(types: &[DataType]) -> DataType {
    if is_list(&types[0]) { same_list(types) } else { DataType::Utf8 }
}

/// A text's characters, or an array's elements, from the last to the first.
fn reverse(args: &[ArrayRef]) -> Result<ArrayRef> {
    if is_list(args[0].data_type()) {
        return Lists::of(&args[0], "reverse")?.pick(|_, range| Some(range.rev().collect()));
    }
    let text = convert::to_text(&args[0])?;
    let reversed =
        text.as_string::<i32>().iter().map(|text| text.map(|text| text.chars().rev().collect::<String>()));
    Ok(Arc::new(reversed.collect::<StringArray>()))
}
