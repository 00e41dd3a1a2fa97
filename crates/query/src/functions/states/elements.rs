//! Functions over the elements of bitmaps: their bounds, parts and counts, and arrays of them.

use crate::functions::conversion::convert::{to_integer, to_text};
use crate::functions::growth::Bytes;
use crate::functions::nested::arrays::{Lists, list_of};
use crate::functions::states::sets::{bytes_of, read_bitmap};
use crate::functions::{Body, MySqlFunction, Param, boolean, int64};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, Int64Builder, ListBuilder,
};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;
use tributary_types::DataType as Declared;
use tributary_types::state::Bitmap;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let bitmap = |name: &'static str, params: &'static [Param], body: Body| {
        MySqlFunction::new(name, params, || DataType::Binary, body).making(Declared::Bitmap)
    };
    let count =
        |name: &'static str, body: Body| MySqlFunction::new(name, &[Any, Any], int64, body).variadic();
    vec![
        bitmap("bitmap_from_array", &[Any], |args| from_array(&args[0])),
        MySqlFunction::new("bitmap_to_array", &[Any], || list_of(DataType::Int64), to_array),
        MySqlFunction::new("bitmap_min", &[Any], int64, |args| {
            bound(&args[0], |elements| elements.first().copied())
        }),
        MySqlFunction::new("bitmap_max", &[Any], int64, |args| {
            bound(&args[0], |elements| elements.last().copied())
        }),
        count("bitmap_and_count", |args| counted(args, |all, other| all.intersect(&other))),
        count("bitmap_or_count", |args| counted(args, Bitmap::union)),
        count("bitmap_xor_count", |args| counted(args, |all, other| all.symmetric_difference(&other))),
        count("bitmap_and_not_count", |args| counted(args, |all, other| all.subtract(&other))),
        MySqlFunction::new("bitmap_has_any", &[Any, Any], boolean, |args| {
            compared(args, |mut one, other| {
                one.intersect(&other);
                one.count() > 0
            })
        }),
        MySqlFunction::new("bitmap_has_all", &[Any, Any], boolean, |args| {
            compared(args, |one, mut other| {
                other.subtract(&one);
                other.count() == 0
            })
        }),
        bitmap("bitmap_remove", &[Any, Int], |args| {
            parts(args, |elements, numbers| {
                Some(
                    elements
                        .into_iter()
                        .filter(|element| i64::try_from(*element) != Ok(numbers[0]))
                        .collect(),
                )
            })
        }),
        bitmap("bitmap_subset_in_range", &[Any, Int, Int], |args| {
            parts(args, |elements, numbers| {
                let (from, to) = (u64::try_from(numbers[0].max(0)).ok()?, u64::try_from(numbers[1]).ok()?);
                Some(elements.into_iter().filter(|element| (from..to).contains(element)).collect())
            })
        }),
        bitmap("bitmap_subset_limit", &[Any, Int, Int], |args| {
            parts(args, |elements, numbers| {
                let from = u64::try_from(numbers[0].max(0)).ok()?;
                let count = usize::try_from(numbers[1]).ok()?;
                Some(elements.into_iter().filter(|element| *element >= from).take(count).collect())
            })
        }),
        bitmap("sub_bitmap", &[Any, Int, Int], |args| parts(args, sub_bitmap)),
    ]
}

/// The elements in ascending order.
fn elements(bytes: &[u8]) -> Result<Vec<u64>> {
    let text = read_bitmap(bytes)?.text();
    Ok(text.split(',').filter_map(|element| element.parse().ok()).collect())
}

/// As in `bitmap_from_string`, an array with a number below 0 or a NULL makes no bitmap.
fn from_array(array: &ArrayRef) -> Result<ArrayRef> {
    let lists = Lists::of(array, "bitmap_from_array")?;
    let texts = to_text(&lists.values)?;
    let texts = texts.as_string::<i32>();
    let element = |at: usize| texts.is_valid(at).then(|| texts.value(at).parse::<u64>().ok())?;
    let sets = (0..lists.len).map(|row| {
        let elements: Option<Vec<u64>> = lists.row(row)?.map(element).collect();
        Some(elements?.into_iter().collect::<Bitmap>().bytes())
    });
    Ok(Arc::new(sets.collect::<BinaryArray>()))
}

fn to_array(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut growth = Bytes::new("bitmap_to_array", args);
    for bytes in &bytes_of(&args[0])? {
        let Some(bytes) = bytes else {
            lists.append_null();
            continue;
        };
        let count = usize::try_from(read_bitmap(bytes)?.count()).unwrap_or(usize::MAX);
        growth.add(count.saturating_mul(size_of::<i64>()))?;
        for element in elements(bytes)? {
            lists.values().append_option(i64::try_from(element).ok());
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// One of the elements; NULL of an empty bitmap.
fn bound(array: &ArrayRef, of: impl Fn(&[u64]) -> Option<u64>) -> Result<ArrayRef> {
    let sets = bytes_of(array)?;
    let found = sets.iter().map(|bytes| {
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(of(&elements(bytes)?).and_then(|element| i64::try_from(element).ok()))
    });
    Ok(Arc::new(found.collect::<Result<Int64Array>>()?))
}

/// The number of elements of several bitmaps taken together; NULL where one is NULL.
fn counted(args: &[ArrayRef], combine: impl Fn(&mut Bitmap, Bitmap)) -> Result<ArrayRef> {
    let columns = args.iter().map(bytes_of).collect::<Result<Vec<_>>>()?;
    let count = |row: usize| -> Result<Option<i64>> {
        if columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let mut all = read_bitmap(columns[0].value(row))?;
        for column in &columns[1..] {
            combine(&mut all, read_bitmap(column.value(row))?);
        }
        Ok(Some(all.count() as i64))
    };
    Ok(Arc::new((0..args[0].len()).map(count).collect::<Result<Int64Array>>()?))
}

fn compared(args: &[ArrayRef], holds: impl Fn(Bitmap, Bitmap) -> bool) -> Result<ArrayRef> {
    let (one, other) = (bytes_of(&args[0])?, bytes_of(&args[1])?);
    let compare = |(one, other): (Option<&[u8]>, Option<&[u8]>)| -> Result<Option<bool>> {
        let (Some(one), Some(other)) = (one, other) else { return Ok(None) };
        Ok(Some(holds(read_bitmap(one)?, read_bitmap(other)?)))
    };
    let found = one.iter().zip(other.iter()).map(compare).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(BooleanArray::from(found)))
}

/// The bitmap of some of the elements, by the numbers in the other arguments; NULL where one is NULL.
fn parts(args: &[ArrayRef], part: impl Fn(Vec<u64>, &[i64]) -> Option<Vec<u64>>) -> Result<ArrayRef> {
    let sets = bytes_of(&args[0])?;
    let numbers = args[1..].iter().map(to_integer).collect::<Result<Vec<_>>>()?;
    let mut found = Vec::with_capacity(sets.len());
    for row in 0..sets.len() {
        let number =
            |column: &ArrayRef| column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row));
        let numbers: Option<Vec<i64>> = numbers.iter().map(number).collect();
        let (Some(numbers), true) = (numbers, sets.is_valid(row)) else {
            found.push(None);
            continue;
        };
        let part = part(elements(sets.value(row))?, &numbers);
        found.push(part.map(|part| part.into_iter().collect::<Bitmap>().bytes()));
    }
    Ok(Arc::new(found.into_iter().collect::<BinaryArray>()))
}

/// A number of elements from a position on, which counts from 0 or, negative, from the end; `None` outside of the bitmap.
fn sub_bitmap(elements: Vec<u64>, numbers: &[i64]) -> Option<Vec<u64>> {
    let count = usize::try_from(numbers[1]).ok().filter(|count| *count > 0)?;
    let from = if numbers[0] < 0 { numbers[0].checked_add(elements.len() as i64)? } else { numbers[0] };
    let from = usize::try_from(from).ok().filter(|from| *from < elements.len())?;
    Some(elements.into_iter().skip(from).take(count).collect())
}
