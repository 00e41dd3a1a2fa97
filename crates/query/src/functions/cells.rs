//! Single values of arguments whose types the signature has settled.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::Int64Type;

/// The text of a row; `None`: NULL.
pub(super) fn value(array: &ArrayRef, row: usize) -> Option<&str> {
    let array = array.as_string::<i32>();
    array.is_valid(row).then(|| array.value(row))
}

/// The whole number of a row; `None`: NULL.
pub(super) fn int(array: &ArrayRef, row: usize) -> Option<i64> {
    let array = array.as_primitive::<Int64Type>();
    array.is_valid(row).then(|| array.value(row))
}
