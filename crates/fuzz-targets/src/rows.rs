//! Properties of decoded rows, from any source.

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use tributary_decode::{Block, Decoded, batch_to_block, blocks_to_batches};
use tributary_types::TableDef;

/// Checks a load's counts and that its blocks survive storing and becoming batches; returns the batches.
pub(crate) fn check_decoded(table: &TableDef, decoded: &Decoded) -> Vec<RecordBatch> {
    let counts = decoded.counts;
    assert_eq!(counts.total, counts.loaded + counts.filtered + counts.unselected);
    assert!(decoded.rejects.len() as u64 <= counts.filtered);
    let rows: usize = decoded.blocks.iter().map(Block::row_count).sum();
    assert_eq!(rows as u64, counts.loaded);
    for block in &decoded.blocks {
        let stored = Block::from_bytes(block.bytes().clone()).expect("a block that was built is well formed");
        assert_eq!(stored, *block);
    }
    let batches = blocks_to_batches(&table.schema, &decoded.blocks).expect("blocks fit their schema");
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
    for batch in &batches {
        check_batch(table, batch);
    }
    batches
}

/// A batch that becomes a block and a batch again is the same.
pub(crate) fn check_batch(table: &TableDef, batch: &RecordBatch) {
    let block = batch_to_block(batch, &table.schema).expect("a batch of blocks fits its schema");
    let again = blocks_to_batches(&table.schema, &[block]).expect("a block fits its schema");
    assert_eq!(again.len(), usize::from(batch.num_rows() > 0));
    for again in again {
        assert_eq!(again, *batch);
    }
}

/// The values of a batch of text columns, row by row; `None` for NULL.
pub(crate) fn texts(batch: &RecordBatch) -> Vec<Vec<Option<String>>> {
    let value = |column: &dyn Array, row| {
        (!column.is_null(row)).then(|| array_value_to_string(column, row).expect("text is shown"))
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| value(column, row)).collect())
        .collect()
}

/// Checks that two loads of a table had the same result.
pub(crate) fn assert_same(table: &TableDef, one: &Decoded, other: &Decoded) {
    assert_eq!(one.counts, other.counts);
    assert_eq!(one.rejects, other.rejects);
    if !one.blocks.iter().map(Block::bytes).eq(other.blocks.iter().map(Block::bytes)) {
        let batches = |decoded: &Decoded| blocks_to_batches(&table.schema, &decoded.blocks);
        panic!("the rows differ: {:?}\n{:?}", batches(one), batches(other));
    }
}
