use super::*;
use crate::wire::cursor::Cursor;
use arrow::array::*;
use arrow::datatypes::{Field, Int32Type, Schema, i256};
use std::sync::Arc;
use tributary_types::DataType;

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<_> = arrays
        .iter()
        .enumerate()
        .map(|(index, array)| Field::new(format!("c{index}"), array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// The payloads of all rows.
fn encode(columns: &[Column], batch: &RecordBatch, binary: bool) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut pending = Pending::default();
    let rows = Rows::new(columns, batch, binary)?;
    let mut next = 0;
    while next < rows.count() {
        next = rows.encode(next, &mut pending, 1)?;
    }
    let mut rest = &pending.buffer[..];
    let mut payloads = Vec::new();
    while let [a, b, c, _, after @ ..] = rest {
        let (payload, after) = after.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        payloads.push(payload.to_vec());
        rest = after;
    }
    Ok(payloads)
}

/// One array as the texts that a client of the text protocol sees.
fn texts_as(column: Column, array: ArrayRef) -> Vec<Option<String>> {
    encode(&[column], &batch(vec![array]), false)
        .unwrap()
        .iter()
        .map(|payload| match payload[..] {
            [0xfb] => None,
            _ => {
                let mut fields = Cursor::new(payload);
                let text = fields.lenenc_bytes("text").unwrap();
                assert!(fields.is_empty());
                Some(String::from_utf8(text.to_vec()).unwrap())
            }
        })
        .collect()
}

fn texts(array: impl Array + 'static) -> Vec<Option<String>> {
    let array: ArrayRef = Arc::new(array);
    texts_as(Column::from_arrow("c", array.data_type()), array)
}

/// The values of the single column in the binary protocol, each without bitmap; NULL as `None`.
fn binaries(column: Column, array: ArrayRef) -> Vec<Option<Vec<u8>>> {
    encode(&[column], &batch(vec![array]), true)
        .unwrap()
        .iter()
        .map(|payload| match payload[..2] {
            [0, 0] => Some(payload[2..].to_vec()),
            [0, 4] => None,
            _ => panic!("{payload:?}"),
        })
        .collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn every_integer_and_boolean_is_printed() {
    assert_eq!(texts(BooleanArray::from(vec![true, false])), some(&["1", "0"]));
    assert_eq!(texts(Int8Array::from(vec![-128])), some(&["-128"]));
    assert_eq!(texts(Int64Array::from(vec![i64::MIN])), some(&["-9223372036854775808"]));
    assert_eq!(texts(UInt64Array::from(vec![u64::MAX])), some(&["18446744073709551615"]));
    assert_eq!(texts(UInt8Array::from(vec![255])), some(&["255"]));
}

#[test]
fn null_is_its_own_value_in_both_protocols() {
    assert_eq!(texts(Int32Array::from(vec![None, Some(1)])), [None, Some("1".into())]);
    assert_eq!(texts(StringArray::from(vec![Some(""), None])), [Some(String::new()), None]);
    assert_eq!(texts(NullArray::new(2)), [None, None]);
    let array: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1)]));
    let values = binaries(Column::new("c", DataType::Int), array);
    assert_eq!(values, [None, Some(vec![1, 0, 0, 0])]);
    let array: ArrayRef = Arc::new(NullArray::new(1));
    assert_eq!(binaries(Column::from_arrow("c", array.data_type()), array), [None]);
}

#[test]
fn the_null_bitmap_begins_at_its_third_bit_and_grows_with_the_columns() {
    let arrays: Vec<ArrayRef> = (0..8)
        .map(|index| Arc::new(Int8Array::from(vec![(index < 5).then_some(index)])) as ArrayRef)
        .collect();
    let columns: Vec<_> = (0..8).map(|_| Column::new("c", DataType::TinyInt)).collect();
    let rows = encode(&columns, &batch(arrays), true).unwrap();
    assert_eq!(rows, [vec![0, 0b1000_0000, 0b0000_0011, 0, 1, 2, 3, 4]]);
}

#[test]
fn decimals_of_every_width_are_printed_with_their_scale() {
    let decimal = Decimal128Array::from(vec![12345]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(texts(decimal.clone()), some(&["123.45"]));
    assert_eq!(
        binaries(Column::from_arrow("c", decimal.data_type()), Arc::new(decimal)),
        [Some(b"\x06123.45".to_vec())]
    );
    let wide = Decimal256Array::from(vec![i256::from_i128(-12345)]).with_precision_and_scale(60, 2).unwrap();
    assert_eq!(texts(wide), some(&["-123.45"]));
    let narrow = Decimal64Array::from(vec![5]).with_precision_and_scale(10, 3).unwrap();
    assert_eq!(texts(narrow), some(&["0.005"]));
    let large =
        Decimal128Array::from(vec![i128::from(i64::MAX) * 1000]).with_precision_and_scale(38, 0).unwrap();
    assert_eq!(
        texts_as(Column::new("c", DataType::LargeInt), Arc::new(large)),
        some(&["9223372036854775807000"])
    );
}

#[test]
fn dates_and_times_of_every_unit_are_printed() {
    assert_eq!(texts(Date32Array::from(vec![19_782])), some(&["2024-02-29"]));
    assert_eq!(texts(Date64Array::from(vec![19_782 * 86_400_000])), some(&["2024-02-29"]));
    let second = 1_709_251_199;
    assert_eq!(texts(TimestampSecondArray::from(vec![second])), some(&["2024-02-29 23:59:59"]));
    assert_eq!(
        texts(TimestampMillisecondArray::from(vec![second * 1000 + 7])),
        some(&["2024-02-29 23:59:59.007000"])
    );
    assert_eq!(
        texts(TimestampNanosecondArray::from(vec![second * 1_000_000_000])),
        some(&["2024-02-29 23:59:59"])
    );
    let zoned = TimestampSecondArray::from(vec![second]).with_timezone("+08:00");
    assert_eq!(texts(zoned), some(&["2024-03-01 07:59:59"]));
    let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![second * 1_000_000 + 123_456]));
    let scaled = |scale| texts_as(Column::new("c", DataType::DateTime { scale }), Arc::clone(&array));
    assert_eq!(scaled(0), some(&["2024-02-29 23:59:59"]));
    assert_eq!(scaled(3), some(&["2024-02-29 23:59:59.123"]));
    assert_eq!(scaled(6), some(&["2024-02-29 23:59:59.123456"]));
    assert_eq!(texts(Time32SecondArray::from(vec![3661])), some(&["01:01:01"]));
    assert_eq!(texts(Time64NanosecondArray::from(vec![3_661_000_001_000])), some(&["01:01:01.000001"]));
}

#[test]
fn text_of_every_layout_and_length_is_the_same_text() {
    let long = "é".repeat(40_000);
    let values = vec![Some("abc"), None, Some(long.as_str())];
    let expected = [Some(String::from("abc")), None, Some(long.clone())];
    assert_eq!(texts(StringArray::from(values.clone())), expected);
    assert_eq!(texts(LargeStringArray::from(values.clone())), expected);
    assert_eq!(texts(StringViewArray::from(values.clone())), expected);
    assert_eq!(texts(values.into_iter().collect::<DictionaryArray<Int32Type>>()), expected);
    assert_eq!(texts(BinaryArray::from_vec(vec![b"xyz"])), some(&["xyz"]));
}

#[test]
fn types_that_mysql_has_not_are_printed_as_text_in_both_protocols() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None]);
    assert_eq!(texts(list.clone()), [Some("[1, NULL]".into()), None]);
    let column = Column::from_arrow("c", list.data_type());
    assert_eq!(binaries(column, Arc::new(list)), [Some(b"\x09[1, NULL]".to_vec()), None]);
    let duration = DurationSecondArray::from(vec![90]);
    assert_eq!(texts(duration), some(&["PT90S"]));
}

#[test]
fn integers_have_the_announced_width_in_the_binary_protocol() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![-2]));
    let value = |data_type| binaries(Column::new("c", data_type), Arc::clone(&array)).remove(0).unwrap();
    assert_eq!(value(DataType::TinyInt), [0xfe]);
    assert_eq!(value(DataType::SmallInt), [0xfe, 0xff]);
    assert_eq!(value(DataType::BigInt), (-2_i64).to_le_bytes());
    assert_eq!(value(DataType::Double), (-2.0_f64).to_le_bytes());
    assert_eq!(value(DataType::String), b"\x02-2");
    let array: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    assert_eq!(binaries(Column::new("c", DataType::Boolean), array), [Some(vec![1])]);
    let array: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    assert_eq!(binaries(Column::from_arrow("c", array.data_type()), array), [Some(vec![0xff; 8])]);
}

#[test]
fn a_value_that_does_not_fit_is_an_error_that_names_column_and_limit() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![300]));
    let error = encode(&[Column::new("age", DataType::TinyInt)], &batch(vec![array]), true).unwrap_err();
    assert_eq!(
        error.message,
        "column 'age' of type Int64 cannot be sent as MYSQL_TYPE_TINY: 300 is not in -128 to 127"
    );
    let array: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let error = encode(&[Column::new("age", DataType::Int)], &batch(vec![array.clone()]), true).unwrap_err();
    assert!(error.message.ends_with("the types differ"), "{error}");
    assert!(encode(&[], &batch(vec![array]), false).is_err());
}

#[test]
fn floats_keep_their_width_in_the_binary_protocol() {
    let array: ArrayRef = Arc::new(Float32Array::from(vec![1.5]));
    assert_eq!(
        binaries(Column::new("c", DataType::Float), Arc::clone(&array)),
        [Some(1.5_f32.to_le_bytes().to_vec())]
    );
    assert_eq!(binaries(Column::new("c", DataType::Double), array), [Some(1.5_f64.to_le_bytes().to_vec())]);
}

#[test]
fn encoding_stops_at_the_limit_and_continues_with_the_next_row() {
    let array: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(100); 10]));
    let column = [Column::new("c", DataType::String)];
    let batch = batch(vec![array]);
    let rows = Rows::new(&column, &batch, false).unwrap();
    let mut pending = Pending::default();
    assert_eq!(rows.encode(0, &mut pending, 250).unwrap(), 3);
    assert_eq!(rows.encode(3, &mut pending, 250).unwrap(), 4);
    assert_eq!(rows.encode(4, &mut pending, 10_000).unwrap(), 10);
}

#[test]
fn texts_of_times_are_texts_or_parts_of_a_duration() {
    let times = ["00:00:00", "10:11:12", "-34:05:06.5", "838:59:59", "00:00:00.000001"];
    let array: ArrayRef = Arc::new(StringArray::from(times.to_vec()));
    assert_eq!(texts_as(Column::clock("t", None), Arc::clone(&array)), some(&times));
    let expected: [&[u8]; 5] = [
        &[0],
        &[8, 0, 0, 0, 0, 0, 10, 11, 12],
        &[12, 1, 1, 0, 0, 0, 10, 5, 6, 0x20, 0xa1, 7, 0],
        &[8, 0, 34, 0, 0, 0, 22, 59, 59],
        &[12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ];
    let expected: Vec<Option<Vec<u8>>> = expected.iter().map(|bytes| Some(bytes.to_vec())).collect();
    assert_eq!(binaries(Column::clock("t", None), array), expected);
    let bad: ArrayRef = Arc::new(StringArray::from(vec!["10:11"]));
    assert!(encode(&[Column::clock("t", None)], &batch(vec![bad]), true).is_err());
}
