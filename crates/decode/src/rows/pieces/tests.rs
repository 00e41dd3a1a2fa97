use super::*;
use arrow::array::{
    BinaryViewBuilder, DictionaryArray, FixedSizeListArray, Int32Array, ListArray, ListViewArray, MapArray,
    NullArray, StringArray, StringViewArray, StructArray, UInt16Array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{Field, UInt16Type};
use std::sync::Arc;

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().enumerate().map(|(at, column)| (at.to_string(), column, true)),
    )
    .unwrap()
}

/// The rows of each piece.
fn pieces(batch: &RecordBatch) -> Vec<usize> {
    let mut pieces = Pieces::new(batch.clone());
    std::iter::from_fn(|| pieces.next().unwrap()).map(|piece| piece.num_rows()).collect()
}

fn texts(values: Vec<String>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

/// One text that all rows share.
fn shared(length: usize, rows: usize) -> ArrayRef {
    let values: ArrayRef = texts(vec!["a".repeat(length)]);
    Arc::new(DictionaryArray::<UInt16Type>::new(UInt16Array::from(vec![0; rows]), values))
}

#[test]
fn narrow_rows_are_cut_by_their_number() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..20_000));
    assert_eq!(pieces(&batch(vec![numbers])), [8192, 8192, 3616]);
    assert_eq!(pieces(&batch(vec![texts(vec![])])), [0_usize; 0]);
}

#[test]
fn wide_rows_are_cut_by_what_they_take_written_out() {
    let long = shared(300_000, 8192);
    let cut = pieces(&batch(vec![long]));
    assert_eq!((cut.iter().sum::<usize>(), cut[0]), (8192, 13));
    assert!(cut.len() > 600 && cut.iter().all(|&rows| rows <= 13), "{cut:?}");
    // A long row does not make those around it small.
    let mut values = vec!["short".to_owned(); 8192];
    values[4000] = "a".repeat(10 << 20);
    let cut = pieces(&batch(vec![texts(values)]));
    assert!(cut.contains(&1) && cut.len() < 40, "{cut:?}");
}

#[test]
fn views_that_share_bytes_count_for_each_row() {
    let mut builder = BinaryViewBuilder::new();
    let block = builder.append_block(Buffer::from_vec(vec![b'a'; 1 << 20]));
    (0..100).for_each(|_| builder.try_append_view(block, 0, 1 << 20).unwrap());
    let cut = pieces(&batch(vec![Arc::new(builder.finish())]));
    assert!(cut.iter().all(|&rows| rows <= 4) && cut.iter().sum::<usize>() == 100, "{cut:?}");
}

#[test]
fn a_row_that_is_too_long_is_named() {
    let mut pieces = Pieces::new(batch(vec![shared(100 << 20, 2), shared(90 << 20, 2), shared(80 << 20, 2)]));
    let error = pieces.next().unwrap_err();
    assert!(
        error.detail_text().contains("row 1 of a batch takes 283115532 bytes, the limit is 268435456"),
        "{error}"
    );
}

#[test]
fn nested_values_count_with_all_their_parts() {
    let bytes = |array: &dyn Array| written_bytes(array).unwrap();
    let words = texts(vec!["abc".to_owned(), "de".to_owned(), "f".to_owned()]);
    assert_eq!(bytes(&words), 6 + 12);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let list =
        ListArray::new(Arc::clone(&item), OffsetBuffer::from_lengths([1, 2]), Arc::clone(&words), None);
    assert_eq!(bytes(&list), 6 + 12 + 8);
    assert_eq!(bytes(&list.slice(1, 1)), 3 + 8 + 4);
    // Views of the same items.
    let places = |places: Vec<i32>| ScalarBuffer::from(places);
    let view =
        ListViewArray::new(item, places(vec![0, 0, 1]), places(vec![3, 3, 1]), Arc::clone(&words), None);
    assert_eq!(bytes(&view), 18 + 18 + 6 + 12);
    let null_item = Arc::new(Field::new("item", DataType::Null, true));
    let nulls = FixedSizeListArray::new(null_item, 1000, Arc::new(NullArray::new(3000)), None);
    assert_eq!(bytes(&nulls.slice(1, 2)), 2000 + 8);
    let fields = vec![Field::new("k", DataType::Utf8, false), Field::new("v", DataType::Utf8View, true)];
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a value longer than a view", "x", "y"]));
    let pairs = StructArray::new(fields.clone().into(), vec![Arc::clone(&words), views], None);
    assert_eq!(bytes(&pairs), 18 + 28 + 12 + 3);
    let entries = Arc::new(Field::new("entries", DataType::Struct(fields.into()), false));
    let map = MapArray::new(entries, OffsetBuffer::from_lengths([3]), pairs, None, false);
    assert_eq!(bytes(&map), 61 + 4);
}
