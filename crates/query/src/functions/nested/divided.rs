//! Arrays divided, filtered and ordered by other arrays, most of them made by a lambda: `ARRAY_SPLIT`, `ARRAY_FILTER` with
//! several arrays, `ARRAY_SORT` with a comparison; and arrays changed as a whole: `ARRAY_FLATTEN`, `ARRAY_SHUFFLE`.

use crate::functions::conversion::convert::{to_integer, to_truth};
use crate::functions::growth::Bytes;
use crate::functions::keeping;
use crate::functions::nested::arrays::{Lists, comparable, element, list_of, same_list};
use crate::functions::nested::ends::{zip, zip_type};
use crate::functions::numbers::more::mixed;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, ListArray, StructArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Elements of an array that `ARRAY_SORT` orders by a lambda: it compares each with each.
const COMPARED_MAX: usize = 1000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Real};
    let list = || list_of(DataType::Null);
    let lists = || list_of(list_of(DataType::Null));
    let parts = |types: &[DataType]| list_of(same_list(types));
    vec![
        MySqlFunction::new("__array_zip", &[Any], list, |args| zip(args, "the lambda"))
            .variadic()
            .returning(zip_type),
        MySqlFunction::new("__array_filter", &[Any, Any], list, filter)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_split", &[Any, Any], lists, |args| split(args, "array_split"))
            .returning(parts),
        MySqlFunction::new("array_reverse_split", &[Any, Any], lists, |args| {
            split(args, "array_reverse_split")
        })
        .returning(parts),
        MySqlFunction::new("__array_pairs", &[Any], list, |args| pairs(&args[0]))
            .returning(|types| list_of(pair_type(&types[0]))),
        MySqlFunction::new("__array_sort_by_pairs", &[Any, Any], list, sort_by_pairs)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("array_flatten", &[Any], list, |args| flatten(&args[0]))
            .returning(|types| flat(&types[0])),
        MySqlFunction::new("array_except_all", &[Any, Any], list, except_all)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("__array_shuffle", &[Any, Real], list, shuffle)
            .returning(same_list)
            .keeping(keeping::first),
    ]
}

/// Lists and conditions of the same lengths.
fn with_conditions(args: &[ArrayRef], function: &str) -> Result<(Lists, Lists, BooleanArray)> {
    let (lists, conditions) = (Lists::of(&args[0], function)?, Lists::of(&args[1], function)?);
    for row in 0..lists.len {
        if let (Some(list), Some(conditions)) = (lists.row(row), conditions.row(row))
            && list.len() != conditions.len()
        {
            return exec_err!(
                "{} takes as many conditions as elements; there are {} elements and {} conditions",
                function.to_uppercase(),
                list.len(),
                conditions.len()
            );
        }
    }
    let truths = match conditions.values.data_type() {
        DataType::Null => cast(&conditions.values, &DataType::Boolean)?,
        _ => to_truth(&conditions.values)?,
    };
    let truths = truths.as_boolean().clone();
    Ok((lists, conditions, truths))
}

fn is_true(truths: &BooleanArray, at: usize) -> bool {
    truths.is_valid(at) && truths.value(at)
}

/// The elements whose condition is true.
fn filter(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, conditions, truths) = with_conditions(args, "array_filter")?;
    lists.pick(|row, range| {
        let pairs = range.zip(conditions.row(row)?);
        Some(pairs.filter(|(_, condition)| is_true(&truths, *condition)).map(|(at, _)| at).collect())
    })
}

/// The parts that begin with the elements whose condition is true, or end with them.
fn split(args: &[ArrayRef], function: &str) -> Result<ArrayRef> {
    let is_before = function == "array_split";
    let (lists, conditions, truths) = with_conditions(args, function)?;
    let (mut counts, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    let mut places: Vec<u64> = Vec::new();
    for row in 0..lists.len {
        let (Some(range), Some(conditions)) = (lists.row(row), conditions.row(row)) else {
            valid.push(false);
            counts.push(0);
            continue;
        };
        valid.push(true);
        let before = lengths.len();
        let mut length = 0;
        for (at, condition) in range.zip(conditions) {
            let is_cut = is_true(&truths, condition);
            if is_before && is_cut && length > 0 {
                lengths.push(std::mem::take(&mut length));
            }
            places.push(at as u64);
            length += 1;
            if !is_before && is_cut {
                lengths.push(std::mem::take(&mut length));
            }
        }
        if length > 0 {
            lengths.push(length);
        }
        counts.push(lengths.len() - before);
    }
    let values = take(&lists.values, &UInt64Array::from(places), None)?;
    let field = |of: &DataType| Arc::new(Field::new_list_field(of.clone(), true));
    let inner =
        ListArray::try_new(field(values.data_type()), OffsetBuffer::from_lengths(lengths), values, None)?;
    let (offsets, nulls) = (OffsetBuffer::from_lengths(counts), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field(inner.data_type()), offsets, Arc::new(inner), Some(nulls))?))
}

fn pair_fields(list: &DataType) -> Fields {
    let side = |name: &str| Field::new(name, element(list), true);
    Fields::from(vec![side("col1"), side("col2")])
}

fn pair_type(list: &DataType) -> DataType {
    DataType::Struct(pair_fields(list))
}

/// Structs of each element with each later one.
fn pairs(array: &ArrayRef) -> Result<ArrayRef> {
    let lists = Lists::of(array, "array_sort")?;
    let mut growth = Bytes::new("array_sort", std::slice::from_ref(array));
    let (mut lengths, mut valid) = (Vec::with_capacity(lists.len), Vec::with_capacity(lists.len));
    let (mut left, mut right): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let size = lists.values.get_array_memory_size() / lists.values.len().max(1) + size_of::<u64>();
    for row in 0..lists.len {
        let range = lists.row(row);
        valid.push(range.is_some());
        let range = range.unwrap_or_default();
        if range.len() > COMPARED_MAX {
            return exec_err!(
                "ARRAY_SORT with a lambda orders at most {COMPARED_MAX} elements and not {}: use ARRAY_SORTBY with a key",
                range.len()
            );
        }
        let count = range.len() * range.len().saturating_sub(1) / 2;
        growth.add(count.saturating_mul(2 * size))?;
        lengths.push(count);
        for one in range.clone() {
            for other in one + 1..range.end {
                left.push(one as u64);
                right.push(other as u64);
            }
        }
    }
    let count = left.len();
    let side = |places: Vec<u64>| take(&lists.values, &UInt64Array::from(places), None);
    let columns = vec![side(left)?, side(right)?];
    let structs = StructArray::try_new_with_length(pair_fields(array.data_type()), columns, None, count)?;
    let field = Arc::new(Field::new_list_field(structs.data_type().clone(), true));
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(structs), Some(nulls))?))
}

/// The elements in the order that the comparisons of all pairs say: below 0 the first of a pair is before the second. NULL and 0
/// leave them as they are.
fn sort_by_pairs(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, orders) = (Lists::of(&args[0], "array_sort")?, Lists::of(&args[1], "array_sort")?);
    let numbers = to_integer(&orders.values)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    lists.pick(|row, range| {
        let orders = orders.row(row)?;
        let count = range.len();
        // The pairs of the elements before the first one of a pair come first.
        let of_pair = |one: usize, other: usize| {
            let at = orders.start + one * (2 * count - one - 1) / 2 + (other - one - 1);
            if numbers.is_valid(at) { numbers.value(at).cmp(&0) } else { Ordering::Equal }
        };
        let compare = |one: usize, other: usize| match one.cmp(&other) {
            Ordering::Less => of_pair(one, other),
            Ordering::Equal => Ordering::Equal,
            Ordering::Greater => of_pair(other, one).reverse(),
        };
        // By insertion, which ends whatever a lambda says that is no order.
        let mut sorted: Vec<usize> = Vec::with_capacity(count);
        for next in 0..count {
            let place = sorted.partition_point(|before| compare(*before, next) != Ordering::Greater);
            sorted.insert(place, next);
        }
        Some(sorted.into_iter().map(|at| range.start + at).collect())
    })
}

/// The type of an array without levels.
fn flat(data_type: &DataType) -> DataType {
    let inner = element(data_type);
    if matches!(inner, DataType::List(_)) { flat(&inner) } else { list_of(inner) }
}

/// The elements of all levels in one array.
fn flatten(array: &ArrayRef) -> Result<ArrayRef> {
    let outer = Lists::of(array, "array_flatten")?;
    if !matches!(outer.values.data_type(), DataType::List(_)) {
        return outer.pick(|_, range| Some(range.collect()));
    }
    let inner = Lists::of(&outer.values, "array_flatten")?;
    let joined = {
        let (mut lengths, mut valid) = (Vec::with_capacity(outer.len), Vec::with_capacity(outer.len));
        let mut places: Vec<u64> = Vec::new();
        for row in 0..outer.len {
            let before = places.len();
            let range = outer.row(row);
            valid.push(range.is_some());
            let parts = range.into_iter().flatten().filter_map(|at| inner.row(at));
            places.extend(parts.flatten().map(|at| at as u64));
            lengths.push(places.len() - before);
        }
        let values = take(&inner.values, &UInt64Array::from(places), None)?;
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
        Arc::new(ListArray::try_new(field, offsets, values, Some(nulls))?) as ArrayRef
    };
    flatten(&joined)
}

/// The elements without as many equal ones as the other array has.
fn except_all(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, others) =
        (Lists::of(&args[0], "array_except_all")?, Lists::of(&args[1], "array_except_all")?);
    let [values, unwanted] = comparable([&lists.values, &others.values])?;
    lists.pick(|row, range| {
        let mut left: HashMap<_, usize> = HashMap::new();
        for at in others.row(row)? {
            *left.entry(unwanted.row(at)).or_default() += 1;
        }
        let is_kept = |at: &usize| match left.get_mut(&values.row(*at)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        Some(range.filter(is_kept).collect())
    })
}

/// The elements in an order that depends on a number.
fn shuffle(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_shuffle")?;
    let seeds: &Float64Array = args[1].as_primitive::<Float64Type>();
    lists.pick(|row, range| {
        let mut bits = seeds.is_valid(row).then(|| seeds.value(row).to_bits())?;
        let mut places: Vec<usize> = range.collect();
        for at in (1..places.len()).rev() {
            bits = mixed(bits);
            places.swap(at, (bits % (at as u64 + 1)) as usize);
        }
        Some(places)
    })
}
