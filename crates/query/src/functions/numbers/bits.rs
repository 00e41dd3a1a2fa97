//! Doris's functions over the bits of integers: `BITAND`, `BIT_COUNT`, `BIT_TEST`, `BIT_SHIFT_LEFT` and so on.
//!
//! Numbers are two's complements of 64 bits; `BIT_COUNT` and `BIT_TEST` know the width of a narrower column.
//!
//! Not here: the operators `&`, `|` and `^`, and aggregates over bits.

use crate::functions::conversion::convert::to_integer;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let int = crate::functions::int64;
    vec![
        MySqlFunction::new("bitand", &[Int, Int], int, |args| Ok(pairs(args, |a, b| a & b))),
        MySqlFunction::new("bitor", &[Int, Int], int, |args| Ok(pairs(args, |a, b| a | b))),
        MySqlFunction::new("bitxor", &[Int, Int], int, |args| Ok(pairs(args, |a, b| a ^ b))),
        MySqlFunction::new("bitnot", &[Int], int, |args| {
            Ok(Arc::new(ints(&args[0]).unary::<_, Int64Type>(|a| !a)))
        }),
        MySqlFunction::new("bit_count", &[Any], int, |args| count(&args[0])),
        MySqlFunction::new("bit_test", &[Any, Int], int, test).variadic(),
        MySqlFunction::new("bit_shift_left", &[Int, Int], int, |args| {
            Ok(pairs(args, |a, by| shifted(a, by, u64::checked_shl)))
        }),
        MySqlFunction::new("bit_shift_right", &[Int, Int], int, |args| {
            Ok(pairs(args, |a, by| shifted(a, by, u64::checked_shr)))
        }),
    ]
}

fn ints(array: &ArrayRef) -> &Int64Array {
    array.as_primitive::<Int64Type>()
}

fn pairs(args: &[ArrayRef], of: impl Fn(i64, i64) -> i64) -> ArrayRef {
    let both = ints(&args[0]).iter().zip(ints(&args[1]));
    Arc::new(both.map(|(a, b)| Some(of(a?, b?))).collect::<Int64Array>())
}

/// The bits of a value of that type.
fn width(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Int8 | DataType::UInt8 | DataType::Boolean => 8,
        DataType::Int16 | DataType::UInt16 => 16,
        DataType::Int32 | DataType::UInt32 => 32,
        _ => 64,
    }
}

fn count(array: &ArrayRef) -> Result<ArrayRef> {
    let kept = u64::MAX >> (64 - width(array.data_type()));
    let values = to_integer(array)?;
    Ok(Arc::new(ints(&values).unary::<_, Int64Type>(|value| i64::from((value as u64 & kept).count_ones()))))
}

/// 1 if the bits at all positions are set; a position that the type does not have is never set.
fn test(args: &[ArrayRef]) -> Result<ArrayRef> {
    let width = i64::from(width(args[0].data_type()));
    let values = to_integer(&args[0])?;
    let values = ints(&values);
    let positions: Vec<&Int64Array> = args[1..].iter().map(ints).collect();
    let tested = (0..values.len()).map(|row| {
        if values.is_null(row) || positions.iter().any(|position| position.is_null(row)) {
            return None;
        }
        let is_set = |at: i64| (0..width).contains(&at) && values.value(row) >> at & 1 == 1;
        Some(i64::from(positions.iter().all(|position| is_set(position.value(row)))))
    });
    Ok(Arc::new(tested.collect::<Int64Array>()))
}

/// The bits moved by a number of positions; none is left after 64, and a negative number of positions gives 0.
fn shifted(value: i64, by: i64, shift: fn(u64, u32) -> Option<u64>) -> i64 {
    u32::try_from(by).ok().and_then(|by| shift(value as u64, by)).unwrap_or(0) as i64
}
