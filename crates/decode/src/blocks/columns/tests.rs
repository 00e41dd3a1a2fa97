use super::*;
use crate::batch_to_block;
use crate::blocks::builder::BlockBuilder;
use crate::testing::{all_types_table, batch_rows, column, rows, schema};
use arrow::array::{Array, AsArray, Int32Array, StringArray};
use std::sync::Arc;
use tributary_types::{DataType, SchemaVersion};

fn numbers(schema: &Arc<TableSchema>, range: std::ops::Range<i32>) -> Block {
    let mut builder = BlockBuilder::new(schema);
    for number in range {
        builder.push_i32(0, number);
        builder.push_text(1, &format!("n{number}"));
        builder.finish_row();
    }
    builder.finish().unwrap()
}

fn two_columns() -> Arc<TableSchema> {
    schema(vec![column(0, "a", DataType::Int), column(1, "b", DataType::String)])
}

#[test]
fn small_blocks_share_a_batch_large_ones_have_their_own_and_order_is_kept() {
    let schema = two_columns();
    let ranges = [0..1, 1..3, 3..2003, 2003..2004, 2004..2004, 2004..2500, 2500..4000];
    let blocks: Vec<Block> = ranges.into_iter().map(|range| numbers(&schema, range)).collect();
    let batches = blocks_to_batches(&schema, &blocks).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [3, 2000, 497, 1500]);
    let values: Vec<String> = rows(&schema, &blocks).into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(values, (0..4000).map(|number| format!("{number} n{number}")).collect::<Vec<_>>());
}

#[test]
fn an_array_of_an_aligned_block_uses_the_blocks_bytes() {
    let schema = two_columns();
    let block = numbers(&schema, 0..5000);
    let batch = blocks_to_batches(&schema, std::slice::from_ref(&block)).unwrap().remove(0);
    let range = block.bytes().as_ptr_range();
    let data = batch.column(0).to_data();
    assert!(range.contains(&data.buffers()[0].as_ptr()));
    assert!(range.contains(&batch.column(1).as_string::<i32>().values().as_ptr()));
}

#[test]
fn many_rows_in_small_blocks_are_split_into_batches() {
    let schema = two_columns();
    let blocks: Vec<Block> =
        (0..140).map(|index| numbers(&schema, index * 1000..(index + 1) * 1000)).collect();
    let batches = blocks_to_batches(&schema, &blocks).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [65_000, 65_000, 10_000]);
}

#[test]
fn a_block_of_another_schema_version_is_refused() {
    let schema = two_columns();
    let mut later = (*schema).clone();
    later.version = SchemaVersion(4);
    let error = blocks_to_batches(&later, &[numbers(&schema, 0..1)]).unwrap_err();
    assert_eq!(error.to_string(), "block was made for schema version 3, the schema given is version 4");
}

#[test]
fn a_block_with_other_columns_is_refused() {
    let block = numbers(&two_columns(), 0..1);
    let one = schema(vec![column(0, "a", DataType::Int)]);
    assert!(matches!(
        blocks_to_batches(&one, std::slice::from_ref(&block)),
        Err(BlockError::ColumnCount { .. })
    ));
    let wide = schema(vec![column(0, "a", DataType::BigInt), column(1, "b", DataType::String)]);
    assert!(matches!(blocks_to_batches(&wide, &[block]), Err(BlockError::ColumnType { .. })));
}

#[test]
fn no_blocks_make_no_batches() {
    assert!(blocks_to_batches(&two_columns(), &[]).unwrap().is_empty());
}

#[test]
fn a_batch_becomes_a_block_and_back_for_every_type_even_as_a_slice() {
    let table = all_types_table();
    for count in [5usize, 1500] {
        let mut builder = BlockBuilder::new(&table.schema);
        let target = crate::Target::new(&table, None).unwrap();
        let mut lines = String::from(
            "(1,2,3,4,5,6,1.5,2.5,3.25,'2024-01-02','2024-01-02 03:04:05.678','é','v','s','[1]','{}','1.2.3.4','::1',x'00ff','1:2')",
        );
        for number in 1..count {
            lines += &format!(
                ",({},2,NULL,{number},5,{number},1.5,NULL,3.25,'2024-01-02',NULL,'é{}','v',NULL,'[{number}]','[{number}]',NULL,'::{number}',0x{number:04x},'{}:30')",
                if number % 3 == 0 { "NULL" } else { "1" },
                number % 10,
                number % 24
            );
        }
        let outcome =
            crate::decode_values(lines.as_bytes(), &target, &crate::InsertOptions::default(), &mut builder)
                .unwrap();
        let crate::ValuesOutcome::Rows(decoded) = outcome else { panic!("general") };
        let batch = blocks_to_batches(&table.schema, &decoded.blocks).unwrap().remove(0);
        let block = batch_to_block(&batch, &table.schema).unwrap();
        assert_eq!(block.bytes(), decoded.blocks[0].bytes());
        let slice = batch.slice(3, count - 3);
        let block = batch_to_block(&slice, &table.schema).unwrap();
        assert_eq!(rows(&table.schema, &[block]), batch_rows(&slice));
    }
}

#[test]
fn a_batch_with_a_null_or_a_type_that_the_schema_does_not_allow_is_no_block() {
    let strict = schema(vec![column(0, "a", DataType::Int).not_null()]);
    let batch = |array: ArrayRef| RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap();
    let with_null = batch(Arc::new(Int32Array::from(vec![Some(1), None])));
    let error = batch_to_block(&with_null, &strict).unwrap_err();
    assert_eq!(error.to_string(), "column a is NOT NULL but row 1 is null");
    let text = batch(Arc::new(StringArray::from(vec!["1"])));
    assert!(matches!(batch_to_block(&text, &strict), Err(BlockError::ColumnType { .. })));
}
