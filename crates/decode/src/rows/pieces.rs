//! Cuts batches into pieces of the size of a block.
//!
//! Rows are measured by their expanded size: a text that a dictionary contains once, or that a view refers to, counts for each of
//! its rows. Nothing is copied for that.
//!
//! Invariant: a piece has at most [`BLOCK_ROWS_TARGET`] rows and [`BLOCK_BYTES_TARGET`] bytes, or it is one row, of at most
//! [`ROW_BYTES_MAX`]. So the results of a piece take bounded memory.

use crate::cells::array_cells::run_places;
use crate::rows::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, UnionMode};
use arrow::error::ArrowError;
use std::ops::Range;
use tributary_types::{ErrorCode, SqlError};

/// The longest row, in bytes, expanded.
const ROW_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The bytes of an offset of a text or a list.
const OFFSET_BYTES: usize = size_of::<i32>();

/// The rows of a batch, piece by piece.
pub(crate) struct Pieces {
    batch: RecordBatch,
    at: usize,
}

impl Pieces {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch, at: 0 }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// If a row is too long.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let left = self.batch.num_rows() - self.at;
        if left == 0 {
            return Ok(None);
        }
        let mut rows = left.min(BLOCK_ROWS_TARGET);
        let piece = loop {
            let piece = self.batch.slice(self.at, rows);
            let bytes = batch_bytes(&piece).map_err(|error| refused(error.to_string()))?;
            if bytes <= BLOCK_BYTES_TARGET {
                break piece;
            }
            if rows == 1 {
                if bytes > ROW_BYTES_MAX {
                    let row = self.at + 1;
                    return Err(refused(format!(
                        "row {row} of a batch takes {bytes} bytes, the limit is {ROW_BYTES_MAX}; leave out its longest columns"
                    )));
                }
                break piece;
            }
            // The number that fits if all rows are alike, and half of it otherwise.
            let alike = (rows as u128 * BLOCK_BYTES_TARGET as u128 / bytes as u128) as usize;
            rows = alike.clamp(1, rows - 1);
        };
        self.at += rows;
        Ok(Some(piece))
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

/// The expanded bytes of a batch's rows.
fn batch_bytes(batch: &RecordBatch) -> Result<usize, ArrowError> {
    let mut bytes = 0_usize;
    for column in batch.columns() {
        bytes = bytes.saturating_add(written_bytes(column)?);
    }
    Ok(bytes)
}

/// The expanded bytes of all values of an array.
fn written_bytes(array: &dyn Array) -> Result<usize, ArrowError> {
    let len = array.len();
    let offsets = |of: usize| of.saturating_mul(OFFSET_BYTES);
    let all = |range: Range<usize>, values: &ArrayRef| written_bytes(&values.slice(range.start, range.len()));
    Ok(match array.data_type() {
        // In a list it takes an offset.
        DataType::Null | DataType::Boolean => len,
        DataType::FixedSizeBinary(width) => len.saturating_mul(usize::try_from(*width).unwrap_or(0).max(1)),
        DataType::Utf8 => span(array.as_string::<i32>().value_offsets()) + offsets(len),
        DataType::LargeUtf8 => span(array.as_string::<i64>().value_offsets()) + offsets(len),
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()) + offsets(len),
        DataType::LargeBinary => span(array.as_binary::<i64>().value_offsets()) + offsets(len),
        DataType::Utf8View => views(array.as_string_view().views()) + offsets(len),
        DataType::BinaryView => views(array.as_binary_view().views()) + offsets(len),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            all(range(list.value_offsets()), list.values())?.saturating_add(offsets(len))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            all(range(list.value_offsets()), list.values())?.saturating_add(offsets(len))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries = range(map.value_offsets());
            written_bytes(&map.entries().slice(entries.start, entries.len()))?.saturating_add(offsets(len))
        }
        DataType::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            let width = usize::try_from(*width).unwrap_or(0);
            let start = list.value_offset(0) as usize;
            all(start..start + width * len, list.values())?.saturating_add(offsets(len))
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let parts = list.value_offsets().iter().zip(list.value_sizes());
            parts.map(|(&start, &size)| (start as usize, size as usize)).try_fold(
                offsets(len),
                |sum, (start, size)| {
                    Ok::<_, ArrowError>(sum.saturating_add(all(start..start + size, list.values())?))
                },
            )?
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let parts = list.value_offsets().iter().zip(list.value_sizes());
            parts.map(|(&start, &size)| (start as usize, size as usize)).try_fold(
                offsets(len),
                |sum, (start, size)| {
                    Ok::<_, ArrowError>(sum.saturating_add(all(start..start + size, list.values())?))
                },
            )?
        }
        DataType::Struct(_) => {
            let mut sum = 0_usize;
            for column in array.as_struct().columns() {
                sum = sum.saturating_add(written_bytes(column)?);
            }
            sum.saturating_add(len)
        }
        DataType::Dictionary(_, values) => match values.primitive_width() {
            Some(width) => len.saturating_mul(width),
            None => dictionary_bytes(array)?,
        },
        DataType::RunEndEncoded(..) => runs_bytes(array)?,
        DataType::Union(_, mode) => {
            let union = array.as_union();
            let mut sum = len;
            for row in 0..len {
                let child = union.child(union.type_id(row));
                let place = if *mode == UnionMode::Dense { union.value_offset(row) } else { row };
                sum = sum.saturating_add(all(place..place + 1, child)?);
            }
            sum
        }
        other => len.saturating_mul(other.primitive_width().unwrap_or(size_of::<i128>())),
    })
}

fn span<O: Copy + Into<i64>>(offsets: &[O]) -> usize {
    match (offsets.first(), offsets.last()) {
        (Some(&first), Some(&last)) => usize::try_from(last.into() - first.into()).unwrap_or(0),
        _ => 0,
    }
}

fn range<O: Copy + Into<i64>>(offsets: &[O]) -> Range<usize> {
    let start = offsets.first().map_or(0, |&first| usize::try_from(first.into()).unwrap_or(0));
    start..start + span(offsets)
}

/// The lengths of views are their lowest 32 bits.
fn views(views: &[u128]) -> usize {
    views.iter().map(|&view| view as u32 as usize).sum()
}

fn dictionary_bytes(array: &dyn Array) -> Result<usize, ArrowError> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    let mut sum = array.len().saturating_mul(OFFSET_BYTES);
    if values.is_empty() {
        return Ok(sum);
    }
    let keys = dictionary.normalized_keys();
    let nulls = dictionary.keys().nulls();
    let present =
        keys.into_iter().enumerate().filter(|(row, _)| nulls.is_none_or(|nulls| nulls.is_valid(*row)));
    for (_, key) in present {
        sum = sum.saturating_add(value_bytes(values, key)?);
    }
    Ok(sum)
}

/// The bytes of one value; lengths of texts are read without a slice.
fn value_bytes(values: &ArrayRef, at: usize) -> Result<usize, ArrowError> {
    Ok(match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value_length(at) as usize,
        DataType::LargeUtf8 => values.as_string::<i64>().value_length(at) as usize,
        DataType::Binary => values.as_binary::<i32>().value_length(at) as usize,
        DataType::LargeBinary => values.as_binary::<i64>().value_length(at) as usize,
        DataType::Utf8View => values.as_string_view().views()[at] as u32 as usize,
        DataType::BinaryView => values.as_binary_view().views()[at] as u32 as usize,
        _ => written_bytes(&values.slice(at, 1))?,
    })
}

fn runs_bytes(array: &dyn Array) -> Result<usize, ArrowError> {
    let DataType::RunEndEncoded(_, values) = array.data_type() else { return Ok(0) };
    if let Some(width) = values.data_type().primitive_width() {
        return Ok(array.len().saturating_mul(width));
    }
    let (values, places) = run_places(array)?;
    let mut sum = array.len().saturating_mul(OFFSET_BYTES);
    for place in places {
        sum = sum.saturating_add(value_bytes(&values, place)?);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
