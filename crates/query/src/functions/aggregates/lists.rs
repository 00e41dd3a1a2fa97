//! Answers made of a list of all values: `COLLECT_LIST`, `MAP_AGG`, `RETENTION`, `GROUP_ARRAY_UNION` and so on.

use crate::functions::conversion::convert::{to_real, to_truth};
use crate::functions::keeping;
use crate::functions::nested::alike::normal;
use crate::functions::nested::arrays::{Lists, element, list_of, same_list};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, ListArray, ListBuilder, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let list = || list_of(DataType::Null);
    vec![
        MySqlFunction::new("__collected", &[Any, Int], list, collected)
            .optional(1)
            .returning(same_list)
            .keeping(keeping::first),
        MySqlFunction::new("__lists_union", &[Any], list, |args| together(&args[0], true))
            .returning(|types| element(&types[0])),
        MySqlFunction::new("__lists_intersect", &[Any], list, |args| together(&args[0], false))
            .returning(|types| element(&types[0])),
        MySqlFunction::new("__retention", &[Any], || list_of(DataType::Boolean), retention).variadic(),
        MySqlFunction::new("__percentiles", &[Any, Any], || list_of(DataType::Float64), percentiles),
    ]
}

/// The first elements, as many as the second argument says; an empty array for NULL, which an aggregate over no values is.
fn collected(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "collect_list")?;
    let limits = args.get(1).map(AsArray::as_primitive::<Int64Type>);
    let (mut lengths, mut places) = (Vec::with_capacity(lists.len), Vec::new());
    for row in 0..lists.len {
        let limit = limits.filter(|limits| limits.is_valid(row)).map(|limits| limits.value(row));
        // As in Doris, a negative number is no limit.
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let before = places.len();
        places.extend(lists.row(row).into_iter().flatten().take(limit).map(|at| at as u64));
        lengths.push(places.len() - before);
    }
    list_of_places(&lists.values, lengths, places, None)
}

fn list_of_places(
    values: &ArrayRef,
    lengths: Vec<usize>,
    places: Vec<u64>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let values = take(values, &UInt64Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, nulls)?))
}

/// The elements that any array of a list of arrays has, or the elements that all have, once each in the order of their
/// appearance. NULL is an element.
fn together(array: &ArrayRef, any: bool) -> Result<ArrayRef> {
    let name = if any { "group_array_union" } else { "group_array_intersect" };
    let outer = Lists::of(array, name)?;
    let inner = Lists::of(&outer.values, name)?;
    let values = normal(Arc::clone(&inner.values));
    let compared = RowConverter::new(vec![SortField::new(values.data_type().clone())])?
        .convert_columns(std::slice::from_ref(&values))?;
    let (mut lengths, mut valid, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..outer.len {
        let arrays: Vec<_> = outer.row(row).into_iter().flatten().filter_map(|at| inner.row(at)).collect();
        valid.push(!arrays.is_empty());
        // Each value once of each array.
        let mut found: HashMap<_, usize> = HashMap::new();
        let mut order = Vec::new();
        for range in &arrays {
            let mut seen = HashSet::new();
            for at in range.clone().filter(|at| seen.insert(compared.row(*at))) {
                let count = found.entry(compared.row(at)).or_default();
                if *count == 0 {
                    order.push(at);
                }
                *count += 1;
            }
        }
        let before = places.len();
        let is_kept = |at: &usize| any || found.get(&compared.row(*at)) == Some(&arrays.len());
        places.extend(order.into_iter().filter(is_kept).map(|at| at as u64));
        lengths.push(places.len() - before);
    }
    list_of_places(&inner.values, lengths, places, Some(NullBuffer::from(valid)))
}

/// Whether the first condition was met, and each other one by a group that met the first, too. The arguments say of each
/// condition whether it was met in any row.
fn retention(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.len() > 32 {
        return exec_err!("RETENTION takes at most 32 conditions and not {}", args.len());
    }
    let met = args.iter().map(to_truth).collect::<Result<Vec<_>>>()?;
    let mut lists = ListBuilder::new(BooleanBuilder::new());
    for row in 0..args[0].len() {
        let is_met = |column: &ArrayRef| column.is_valid(row) && column.as_boolean().value(row);
        if met.iter().all(|column| column.is_null(row)) {
            lists.append_null();
            continue;
        }
        for column in &met {
            lists.values().append_value(is_met(&met[0]) && is_met(column));
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The values below which each of several shares of a list of numbers lies, between two of them if necessary.
fn percentiles(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "percentile_array")?;
    let shares = Lists::of(&args[1], "percentile_array")?;
    let (values, wanted) = (to_real(&lists.values)?, to_real(&shares.values)?);
    let (values, wanted) = (values.as_primitive::<Float64Type>(), wanted.as_primitive::<Float64Type>());
    let mut found = ListBuilder::new(Float64Builder::new());
    for row in 0..lists.len {
        let Some(shares) = shares.row(row) else {
            found.append_null();
            continue;
        };
        let range = lists.row(row).unwrap_or_default();
        let mut sorted: Vec<f64> =
            range.filter(|at| values.is_valid(*at)).map(|at| values.value(at)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        for share in shares.map(|at| wanted.is_valid(at).then(|| wanted.value(at))) {
            if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                return exec_err!("a percentile is of a share from 0 to 1 and not {share}");
            }
            found.values().append_option(share.and_then(|share| {
                let place = share * (sorted.len().checked_sub(1)? as f64);
                let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
                Some(low + (high - low) * place.fract())
            }));
        }
        found.append(true);
    }
    Ok(Arc::new(found.finish()))
}
