//! Expands texts that an array stores in another way into an array of plain texts.
//!
//! Invariant: lengths are added up before anything is copied, and only texts that fit are copied.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use std::sync::Arc;

/// Whether [`written`] supports arrays of a type.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_plain(values),
        other => is_plain(other),
    }
}

fn is_plain(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// The texts, concatenated; `None` if one has more than `limit` bytes, bytes are not UTF-8, or they exceed the capacity of an
/// array.
pub(super) fn written(array: &ArrayRef, limit: usize) -> Option<ArrayRef> {
    let (offsets, bytes, nulls) = parts(array, limit)?;
    let array = StringArray::try_new(offsets, bytes, nulls).ok()?;
    Some(Arc::new(array))
}

/// The bytes of texts or bytes, concatenated; `None` as for [`written`], except that they may be any.
pub(super) fn bytes(array: &ArrayRef, limit: usize) -> Option<ArrayRef> {
    let (offsets, bytes, nulls) = parts(array, limit)?;
    let array = BinaryArray::try_new(offsets, bytes, nulls).ok()?;
    Some(Arc::new(array))
}

/// The parts of an array of texts or bytes.
type Parts = (OffsetBuffer<i32>, Buffer, Option<NullBuffer>);

fn parts(array: &ArrayRef, limit: usize) -> Option<Parts> {
    let nulls = array.logical_nulls();
    let DataType::Dictionary(..) = array.data_type() else {
        return of_values(array, 0..array.len(), nulls, limit);
    };
    let dictionary = array.as_any_dictionary();
    if dictionary.values().is_empty() {
        return of_values(dictionary.values(), std::iter::repeat_n(0, array.len()), nulls, limit);
    }
    of_values(dictionary.values(), dictionary.normalized_keys().into_iter(), nulls, limit)
}

/// The texts at `places` of `values`.
fn of_values(
    values: &ArrayRef,
    places: impl ExactSizeIterator<Item = usize> + Clone,
    nulls: Option<NullBuffer>,
    limit: usize,
) -> Option<Parts> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match values.data_type() {
        DataType::Utf8 => {
            let texts = values.as_string::<i32>();
            gathered(places, nulls, limit, |place| texts.value(place).as_bytes())
        }
        DataType::LargeUtf8 => {
            let texts = values.as_string::<i64>();
            gathered(places, nulls, limit, |place| texts.value(place).as_bytes())
        }
        DataType::Utf8View => {
            let texts = values.as_string_view();
            gathered(places, nulls, limit, |place| texts.value(place).as_bytes())
        }
        DataType::Binary => {
            let bytes = values.as_binary::<i32>();
            gathered(places, nulls, limit, |place| bytes.value(place))
        }
        DataType::LargeBinary => {
            let bytes = values.as_binary::<i64>();
            gathered(places, nulls, limit, |place| bytes.value(place))
        }
        DataType::BinaryView => {
            let bytes = values.as_binary_view();
            gathered(places, nulls, limit, |place| bytes.value(place))
        }
        _ => None,
    }
}

fn gathered<'a>(
    places: impl ExactSizeIterator<Item = usize> + Clone,
    nulls: Option<NullBuffer>,
    limit: usize,
    text: impl Fn(usize) -> &'a [u8],
) -> Option<Parts> {
    let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let mut offsets = Vec::with_capacity(places.len() + 1);
    let mut end = 0_usize;
    offsets.push(0);
    for (row, place) in places.clone().enumerate() {
        if is_valid(row) {
            let length = text(place).len();
            if length > limit {
                return None;
            }
            end += length;
        }
        offsets.push(i32::try_from(end).ok()?);
    }
    let mut bytes = Vec::with_capacity(end);
    for (row, place) in places.enumerate() {
        if is_valid(row) {
            bytes.extend_from_slice(text(place));
        }
    }
    Some((OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), nulls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryViewArray, DictionaryArray, StringViewArray};
    use arrow::compute::cast;
    use arrow::datatypes::Int8Type;

    const TEXTS: [Option<&str>; 5] =
        [Some("a"), None, Some("a text that is in no view"), Some(""), Some("a text that is in no view")];

    #[test]
    fn texts_of_every_storage_are_the_same() {
        let plain: ArrayRef = Arc::new(StringArray::from_iter(TEXTS));
        let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::from_iter(TEXTS));
        let views: ArrayRef = Arc::new(StringViewArray::from_iter(TEXTS));
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter(TEXTS));
        let none: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::from_iter([None::<&str>; 5]));
        for array in [&plain, &dictionary, &views, &bytes] {
            assert!(is_text(array.data_type()));
            assert_eq!(&written(array, 25).unwrap(), &plain, "{}", array.data_type());
            assert_eq!(written(&array.slice(1, 3), 25).unwrap().as_ref(), plain.slice(1, 3).as_ref());
            assert!(written(array, 24).is_none(), "{}", array.data_type());
            let large = cast(array, &DataType::LargeUtf8).unwrap();
            assert_eq!(&written(&large, 25).unwrap(), &plain);
        }
        assert_eq!(written(&none, 0).unwrap().null_count(), 5);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_left_to_the_cells() {
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&[0xff_u8][..]]));
        assert!(written(&bytes, 10).is_none());
        let plain = super::bytes(&bytes, 10).unwrap();
        assert_eq!(plain.as_binary::<i32>().value(0), [0xff]);
        assert!(super::bytes(&bytes, 0).is_none());
    }
}
