//! The functions of texts over bytes: positions and lengths count bytes.

use super::encoded::bytes_of;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, Int64Array};
use arrow::compute::kernels::length::{bit_length, length};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Bytes;
    let int = || DataType::Int32;
    vec![
        MySqlFunction::new("__byte_length", &[Bytes], int, |args| Ok(length(&args[0])?)),
        MySqlFunction::new("__bit_length", &[Bytes], int, |args| Ok(bit_length(&args[0])?)),
    ]
}

/// The values concatenated, of which one is bytes; the result is no longer than they are.
pub(super) fn concat(args: &[ArrayRef]) -> Result<ArrayRef> {
    let columns = args.iter().map(bytes_of).collect::<Result<Vec<ArrayRef>>>()?;
    let columns: Vec<&BinaryArray> = columns.iter().map(AsArray::as_binary::<i32>).collect();
    let mut joined = BinaryBuilder::new();
    let mut row_bytes = Vec::new();
    for row in 0..args[0].len() {
        if columns.iter().any(|column| column.is_null(row)) {
            joined.append_null();
            continue;
        }
        row_bytes.clear();
        columns.iter().for_each(|column| row_bytes.extend_from_slice(column.value(row)));
        joined.append_value(&row_bytes);
    }
    Ok(Arc::new(joined.finish()))
}

/// The part of `bytes` from a MySQL position, `length` bytes or to the end.
fn part_of(bytes: &[u8], position: i64, length: Option<i64>) -> &[u8] {
    let total = bytes.len() as i64;
    let start = match position {
        0 => return &[],
        position if position > 0 => position - 1,
        position => total.saturating_add(position),
    };
    if start < 0 || start >= total || length.is_some_and(|length| length <= 0) {
        return &[];
    }
    let end = length.map_or(total, |length| start.saturating_add(length).min(total));
    &bytes[start as usize..end as usize]
}

pub(super) fn substring(
    values: &BinaryArray,
    position: &Int64Array,
    length: Option<&Int64Array>,
) -> ArrayRef {
    each(values, |row, value| {
        let length = match length {
            Some(length) => Some(number(length, row)?),
            None => None,
        };
        Some(part_of(value, number(position, row)?, length))
    })
}

pub(super) fn left(values: &BinaryArray, length: &Int64Array) -> ArrayRef {
    each(values, |row, value| Some(part_of(value, 1, Some(number(length, row)?))))
}

/// The last bytes; with a negative length all from the byte of that number on.
pub(super) fn right(values: &BinaryArray, length: &Int64Array) -> ArrayRef {
    each(values, |row, value| {
        let length = number(length, row)?;
        if length < 0 {
            return Some(part_of(value, length.saturating_neg(), None));
        }
        let from = value.len() - usize::try_from(length).unwrap_or(usize::MAX).min(value.len());
        Some(&value[from..])
    })
}

fn number(numbers: &Int64Array, row: usize) -> Option<i64> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// A part of each value that is not NULL.
fn each<'a>(values: &'a BinaryArray, part: impl Fn(usize, &'a [u8]) -> Option<&'a [u8]>) -> ArrayRef {
    let parts = values.iter().enumerate().map(|(row, value)| part(row, value?));
    Arc::new(parts.collect::<BinaryArray>())
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn positions_count_bytes_from_either_end() {
        let bytes = b"\x00\xff\x80abc";
        for (position, length, expected) in [
            (1, None, &bytes[..]),
            (2, Some(2), &bytes[1..3]),
            (-3, Some(2), &bytes[3..5]),
            (-3, Some(i64::MAX), &bytes[3..]),
            (0, None, b""),
            (7, None, b""),
            (-7, Some(3), b""),
            (2, Some(0), b""),
            (2, Some(-1), b""),
            (i64::MIN, None, b""),
        ] {
            assert_eq!(part_of(bytes, position, length), expected, "{position}, {length:?}");
        }
    }
}
