use super::*;
use crate::blocks::builder::BlockBuilder;
use crate::blocks::columns::blocks_to_batches;
use crate::testing::{batch_rows, column, schema};
use std::sync::Arc;
use tributary_types::{DataType, DefaultValue};

fn old() -> (Arc<TableSchema>, RecordBatch) {
    let schema = schema(vec![
        column(0, "id", DataType::Int),
        column(1, "gone", DataType::Int),
        column(2, "name", DataType::Varchar { bytes: 4 }),
    ]);
    let mut builder = BlockBuilder::new(&schema);
    for (id, name) in [(1, Some("one")), (2, None)] {
        builder.push_i32(0, id);
        builder.push_i32(1, 99);
        match name {
            Some(name) => builder.push_text(2, name),
            None => builder.push_null(2),
        }
        builder.finish_row();
    }
    let block = builder.finish().unwrap();
    let batch = blocks_to_batches(&schema, &[block]).unwrap().remove(0);
    (schema, batch)
}

#[test]
fn dropped_columns_go_renamed_and_widened_stay_and_added_ones_get_default_or_null() {
    let (from, batch) = old();
    let to = schema(vec![
        column(3, "gone", DataType::Decimal { precision: 5, scale: 1 })
            .with_default(DefaultValue::Literal("2.5".into())),
        column(2, "title", DataType::Varchar { bytes: 40 }),
        column(0, "id", DataType::Int),
        column(4, "note", DataType::String),
        column(5, "at", DataType::DateTime { scale: 0 })
            .with_default(DefaultValue::CurrentTimestamp { scale: 0 })
            .not_null(),
        column(6, "day", DataType::Date).with_default(DefaultValue::CurrentDate),
    ]);
    let now = 1_714_566_896_500_000;
    let adapted = adapt(&batch, &from, &to, now).unwrap();
    assert_eq!(adapted.schema(), to.arrow());
    let time = "2024-05-01T12:34:56|2024-05-01";
    let lines: Vec<String> = batch_rows(&adapted).iter().map(|row| row.join("|")).collect();
    assert_eq!(lines, [format!("2.5|one|1|NULL|{time}"), format!("2.5|NULL|2|NULL|{time}")]);
}

#[test]
fn a_column_added_as_not_null_without_default_is_an_error_that_says_so() {
    let (from, batch) = old();
    let to = schema(vec![column(0, "id", DataType::Int), column(9, "must", DataType::Int).not_null()]);
    let error = adapt(&batch, &from, &to, 0).unwrap_err();
    assert!(error.to_string().contains("column must was added as NOT NULL without a default"), "{error}");
}

#[test]
fn values_of_a_changed_type_are_converted() {
    let (from, batch) = old();
    let to = schema(vec![column(0, "id", DataType::BigInt)]);
    let wide = adapt(&batch, &from, &to, 0).unwrap();
    assert_eq!(wide.column(0).data_type(), &DataType::BigInt.to_arrow());
    assert_eq!(wide.num_rows(), batch.num_rows());
}

#[test]
fn a_batch_that_is_not_of_its_schema_is_an_error_not_a_guess() {
    let (_, batch) = old();
    let from = schema(batch.schema().fields().iter().map(|_| column(0, "id", DataType::Double)).collect());
    let to = schema(vec![column(0, "id", DataType::BigInt)]);
    assert!(matches!(adapt(&batch, &from, &to, 0), Err(BlockError::ColumnType { .. })));
}

#[test]
fn an_empty_batch_stays_empty() {
    let (from, batch) = old();
    assert_eq!(adapt(&batch.slice(0, 0), &from, &from, 0).unwrap().num_rows(), 0);
}
