//! The encoding of rows in blocks: any bytes as a block of any of the tables.
//!
//! Accepted bytes must become batches or an error, and decoded rows must survive being stored and decoded again.

use crate::rows;
use crate::tables;
use arrow::array::RecordBatch;
use bytes::Bytes;
use tributary_decode::{Block, blocks_to_batches};

/// The first byte chooses the table, the others are the block (its schema version is set to fit).
pub fn block(data: &[u8]) {
    let Some((&choice, stored)) = data.split_first() else { return };
    let table = tables::pick(choice);
    let version = table.schema.version.0;
    let mut stored = stored.to_vec();
    // Random versions would only test the check of the version.
    match stored.first() {
        Some(1) if stored.len() > 1 && choice & 0x80 == 0 => stored[1] = version as u8,
        Some(2) if stored.len() > 8 && choice & 0x80 == 0 => {
            stored[4..8].copy_from_slice(&version.to_le_bytes());
        }
        _ => {}
    }
    let Ok(block) = Block::from_bytes(Bytes::from(stored)) else { return };
    assert_eq!(Block::from_bytes(block.bytes().clone()).expect("it was taken before"), block);
    // A column that is all NULL takes a byte, however many rows: not for a fuzzer's memory.
    if block.row_count() > 1 << 16 {
        return;
    }
    let Ok(batches) = blocks_to_batches(&table.schema, std::slice::from_ref(&block)) else { return };
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), block.row_count());
    for batch in &batches {
        rows::check_batch(&table, batch);
    }
    let twice = blocks_to_batches(&table.schema, &[block.clone(), block.clone()]);
    let twice = twice.expect("what one block gives, two give");
    assert_eq!(twice.iter().map(RecordBatch::num_rows).sum::<usize>(), 2 * block.row_count());
}
