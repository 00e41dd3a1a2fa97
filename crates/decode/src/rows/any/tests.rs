use super::*;
use crate::testing::{all_types_table, column, lines, table};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date64Array, Decimal256Array, DictionaryArray, Float64Array,
    Int8Array, Int64Array, LargeStringArray, NullArray, StringArray, StringViewArray, Time64MicrosecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::{Int32Type, i256};
use std::sync::Arc;
use tributary_types::DataType;

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let named = arrays.into_iter().enumerate().map(|(index, array)| (format!("a{index}"), array, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// One array into one column.
fn one(data_type: DataType, array: ArrayRef) -> Vec<String> {
    let table = table(vec![column(0, "c", data_type)]);
    let target = Target::new(&table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut options = InsertOptions::default();
    options.clock.utc_offset_seconds = 3600;
    let decoded = decode_batch(&batch(vec![array]), &target, &options, &mut builder).unwrap();
    assert_eq!(decoded.rejects, []);
    lines(&table, &decoded)
}

#[test]
fn arrays_of_any_type_go_into_columns() {
    let varchar = DataType::Varchar { bytes: 30 };
    let cases: Vec<(DataType, ArrayRef, &[&str])> = vec![
        (DataType::Int, Arc::new(Int64Array::from(vec![Some(1), None])), &["1", "NULL"]),
        (DataType::BigInt, Arc::new(Int8Array::from(vec![-1])), &["-1"]),
        (DataType::LargeInt, Arc::new(UInt64Array::from(vec![u64::MAX])), &["18446744073709551615"]),
        (DataType::Int, Arc::new(StringArray::from(vec!["12"])), &["12"]),
        (
            varchar,
            Arc::new(StringViewArray::from(vec![Some("a text longer than twelve"), None])),
            &["a text longer than twelve", "NULL"],
        ),
        (varchar, Arc::new(LargeStringArray::from(vec!["x"])), &["x"]),
        (varchar, Arc::new(BinaryArray::from(vec![&b"bytes"[..]])), &["bytes"]),
        (
            varchar,
            Arc::new(["u", "v", "u"].into_iter().collect::<DictionaryArray<Int32Type>>()),
            &["u", "v", "u"],
        ),
        (varchar, Arc::new(NullArray::new(1)), &["NULL"]),
        (DataType::Boolean, Arc::new(BooleanArray::from(vec![true])), &["true"]),
        (DataType::Decimal { precision: 5, scale: 1 }, Arc::new(Float64Array::from(vec![1.25])), &["1.3"]),
        (
            DataType::Decimal { precision: 5, scale: 1 },
            Arc::new(Decimal256Array::from(vec![i256::from(125)]).with_precision_and_scale(50, 2).unwrap()),
            &["1.3"],
        ),
        (DataType::Date, Arc::new(Date64Array::from(vec![86_400_000])), &["1970-01-02"]),
        (
            DataType::DateTime { scale: 0 },
            Arc::new(TimestampSecondArray::from(vec![59])),
            &["1970-01-01T00:00:59"],
        ),
        (
            DataType::DateTime { scale: 6 },
            Arc::new(TimestampNanosecondArray::from(vec![1_000_001_500]).with_timezone("UTC")),
            &["1970-01-01T01:00:01.000001"],
        ),
        (varchar, Arc::new(Time64MicrosecondArray::from(vec![3_723_000_000])), &["01:02:03"]),
    ];
    for (data_type, array, expected) in cases {
        assert_eq!(one(data_type, Arc::clone(&array)), expected, "{:?} as {data_type}", array.data_type());
    }
}

#[test]
fn a_batch_with_the_tables_own_types_comes_out_as_it_was() {
    let table = all_types_table();
    let texts = DataType::EXAMPLES.into_iter().map(|data_type| crate::testing::sample(data_type, 41));
    let fields: Vec<String> = texts.collect();
    let mut decoder = crate::CsvDecoder::new(
        Target::new(&table, None).unwrap(),
        crate::CsvFormat::default(),
        crate::LoadRules::default(),
    )
    .unwrap();
    for _ in 0..20_000 {
        decoder.push((fields.join("\t") + "\n").as_bytes()).unwrap();
    }
    decoder.finish().unwrap();
    let batches = crate::blocks_to_batches(&table.schema, &decoder.take_blocks()).unwrap();
    let batch = arrow::compute::concat_batches(&table.schema.arrow(), &batches).unwrap();
    let target = Target::new(&table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let decoded = decode_batch(&batch, &target, &InsertOptions::default(), &mut builder).unwrap();
    assert_eq!(decoded.blocks.len(), 3);
    let again = crate::blocks_to_batches(&table.schema, &decoded.blocks).unwrap();
    assert_eq!(arrow::compute::concat_batches(&table.schema.arrow(), &again).unwrap(), batch);
}

#[test]
fn bad_rows_are_rejected_and_the_others_loaded() {
    let table = table(vec![column(0, "n", DataType::TinyInt).not_null()]);
    let target = Target::new(&table, None).unwrap();
    let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1000), None, Some(4)]));
    let mut builder = BlockBuilder::new(&table.schema);
    let decoded =
        decode_batch(&batch(vec![array]), &target, &InsertOptions::default(), &mut builder).unwrap();
    assert_eq!(lines(&table, &decoded), ["1", "4"]);
    assert_eq!(decoded.counts.filtered, 2);
    assert_eq!(
        decoded.first_reason(),
        Some("column(n) value is incorrect while strict mode is true, src value is 1000")
    );
}

#[test]
fn a_batch_with_another_number_of_columns_is_1058() {
    let table = table(vec![column(0, "n", DataType::TinyInt)]);
    let target = Target::new(&table, None).unwrap();
    let array: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let two = batch(vec![Arc::clone(&array), array]);
    let mut builder = BlockBuilder::new(&table.schema);
    let error = decode_batch(&two, &target, &InsertOptions::default(), &mut builder).unwrap_err();
    assert_eq!(error.code, ErrorCode::ColumnCountMismatch);
}
