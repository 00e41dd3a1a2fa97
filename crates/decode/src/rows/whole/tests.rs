use super::*;
use crate::rows::loader::LoadRules;
use crate::rows::target::Wording;
use crate::testing::{batch_rows, column, table};
use crate::{Decoded, blocks_to_batches};
use arrow::array::*;
use arrow::datatypes::{DataType as ArrowType, Int32Type, i256};
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, TableDef};

/// Arrays of many types, with values that fit into few columns and into many.
fn arrays() -> Vec<ArrayRef> {
    let texts = ["", "1", "-0.50", "2024-02-29", "x".repeat(17).leak(), "{\"a\": 1}", "é", "tRue", "1e3"];
    let some = |text: &&str| Some((*text).to_owned());
    let utf8 = texts.iter().map(some).chain([None]).collect::<StringArray>();
    let micros = [0, -1, 1_499_999, 253_402_300_799_999_999, 253_402_300_800_000_000, i64::MIN];
    let micros = micros.map(Some).into_iter().chain([None]).collect::<TimestampMicrosecondArray>();
    let large = "9".repeat(38).parse::<i128>().unwrap();
    let decimals = Decimal128Array::from(vec![Some(0), Some(-155), Some(99_999_999_999), None]);
    let dictionary: DictionaryArray<Int32Type> = [Some("1"), None, Some("abcdefghij")].into_iter().collect();
    vec![
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        Arc::new(Int8Array::from(vec![Some(-128), Some(7), None])),
        Arc::new(Int16Array::from(vec![Some(-129), Some(300)])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), Some(1), None])),
        Arc::new(Int64Array::from(vec![Some(i64::MAX), Some(20_240_229), None])),
        Arc::new(UInt8Array::from(vec![Some(255), Some(0)])),
        Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])),
        Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(1)])),
        Arc::new(Float32Array::from(vec![Some(0.1), Some(f32::NAN), Some(f32::MAX), None])),
        Arc::new(Float64Array::from(vec![Some(0.1), Some(1e300), Some(-2.5), None])),
        Arc::new(decimals.clone().with_precision_and_scale(20, 1).unwrap()),
        Arc::new(decimals.with_precision_and_scale(20, 4).unwrap()),
        Arc::new(Decimal128Array::from(vec![Some(large), Some(-1)]).with_precision_and_scale(38, 0).unwrap()),
        Arc::new(Decimal256Array::from(vec![i256::from(125)]).with_precision_and_scale(50, 2).unwrap()),
        Arc::new(Date32Array::from(vec![Some(0), Some(-719_528), Some(2_932_896), Some(2_932_897), None])),
        Arc::new(Date64Array::from(vec![Some(86_400_000), None])),
        Arc::new(micros),
        Arc::new(TimestampSecondArray::from(vec![Some(1), Some(i64::MAX), None])),
        Arc::new(TimestampNanosecondArray::from(vec![Some(1_999_999_999), Some(-1), None])),
        Arc::new(utf8.iter().collect::<LargeStringArray>()),
        Arc::new(utf8.iter().collect::<StringViewArray>()),
        Arc::new(utf8),
        Arc::new(BinaryArray::from(vec![Some(&b"ab"[..]), Some(b"\xff"), None])),
        Arc::new(dictionary),
        Arc::new(NullArray::new(2)),
        Arc::new(Time64MicrosecondArray::from(vec![Some(1)])),
    ]
}

fn loaded(
    rows: &Rows<'_>,
    table: &Arc<TableDef>,
    rules: Strictness,
    whole: bool,
) -> Result<(Vec<Vec<String>>, Decoded), SqlError> {
    let target = Target::new(table, None).unwrap();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut progress = Progress::default();
    let load = if whole { load } else { row_by_row };
    load(rows, &target, rules, 0, &mut builder, &mut progress)?;
    let batches = blocks_to_batches(&table.schema, &progress.decoded.blocks).unwrap();
    Ok((batches.iter().flat_map(batch_rows).collect(), progress.decoded))
}

#[test]
fn whole_arrays_and_cells_give_the_same_rows_and_reasons() {
    let mut taken_whole = 0;
    for array in arrays() {
        // Alone, each value decides by itself whether its array is taken whole.
        let alone = (0..array.len()).map(|row| array.slice(row, 1));
        for array in alone.chain([array.clone()]) {
            for data_type in DataType::EXAMPLES {
                for (strict, nullable) in [(false, true), (false, false), (true, true)] {
                    let column = ColumnDef { nullable, ..column(0, "c", data_type) };
                    let table = table(vec![column]);
                    let wording = LoadRules { strict, ..LoadRules::default() }.worded(Wording::File);
                    let fields = [Field::Array(Arc::clone(&array))];
                    let rows = Rows { fields: &fields, count: array.len(), first_row: Some(0) };
                    let target = Target::new(&table, None).unwrap();
                    taken_whole += usize::from(whole(&rows, &target, 0).is_some());
                    let what = format!("{array:?} into {data_type}, strict: {strict}, nullable: {nullable}");
                    match (loaded(&rows, &table, wording, true), loaded(&rows, &table, wording, false)) {
                        (Ok((found, decoded)), Ok((expected, by_cells))) => {
                            assert_eq!(found, expected, "{what}");
                            assert_eq!(decoded.counts, by_cells.counts, "{what}");
                            assert_eq!(decoded.rejects, by_cells.rejects, "{what}");
                        }
                        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{what}"),
                        (one, other) => panic!("{what}: {one:?}, {other:?}"),
                    }
                }
            }
        }
    }
    assert!(taken_whole > 500, "{taken_whole}");
}

#[test]
fn what_a_load_leaves_out_is_filled_either_way() {
    let table = table(vec![column(0, "a", DataType::Int), column(1, "b", DataType::Varchar { bytes: 3 })]);
    let rules = LoadRules::default().worded(Wording::File);
    for (text, expected) in [("x", ["NULL", "x"]), ("four", ["NULL", "fou"])] {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        assert_eq!(texts.data_type(), &ArrowType::Utf8);
        let fields = [Field::Absent(Fill::Null), Field::Array(texts)];
        let rows = Rows { fields: &fields, count: 1, first_row: None };
        assert_eq!(loaded(&rows, &table, rules, true).unwrap().0, [expected]);
    }
}
