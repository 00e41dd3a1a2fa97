//! Blocks into Arrow columns: what happens to the rows when a group closes; and reading a stored
//! block back, as recovery does.

mod data;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tributary_decode::{
    Block, BlockBuilder, Decoded, InsertOptions, Target, ValuesOutcome, blocks_to_batches, decode_values,
};
use tributary_types::TableDef;

fn decoded(table: &Arc<TableDef>, sql: &str) -> Decoded {
    let target = Target::new(table, None).expect("every column is there");
    let mut builder = BlockBuilder::new(&table.schema);
    match decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut builder) {
        Ok(ValuesOutcome::Rows(decoded)) => decoded,
        other => panic!("{other:?}"),
    }
}

/// `blocks` copies of the load, as of that many clients.
fn loads(table: &Arc<TableDef>, sql: &str, blocks: usize) -> Vec<Block> {
    vec![decoded(table, sql).blocks; blocks].concat()
}

fn columns(name: &str, table: &Arc<TableDef>, blocks: &[Block], criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blocks_to_columns");
    group.throughput(Throughput::Elements(blocks.iter().map(|block| block.row_count() as u64).sum()));
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(blocks_to_batches(&table.schema, blocks).expect("well-formed blocks")));
    });
    group.finish();
}

fn group_close(criterion: &mut Criterion) {
    let (small, lineitem) = (data::small_table(), data::lineitem_table());
    let (one, hundred) = (data::lineitem_values(1), data::lineitem_values(100));
    columns("small/10000x1", &small, &loads(&small, &data::small_values(1), 10_000), criterion);
    columns("lineitem/1x1", &lineitem, &loads(&lineitem, &one, 1), criterion);
    columns("lineitem/500x1", &lineitem, &loads(&lineitem, &one, 500), criterion);
    columns("lineitem/10000x1", &lineitem, &loads(&lineitem, &one, 10_000), criterion);
    columns("lineitem/100x100", &lineitem, &loads(&lineitem, &hundred, 100), criterion);
    columns("lineitem/4x8000", &lineitem, &loads(&lineitem, &data::lineitem_values(8000), 4), criterion);
}

fn read_back(criterion: &mut Criterion) {
    let lineitem = data::lineitem_table();
    let mut group = criterion.benchmark_group("block_from_bytes");
    for rows in [1, 100, 8000] {
        let block = loads(&lineitem, &data::lineitem_values(rows), 1).remove(0);
        group.throughput(Throughput::BytesDecimal(block.len_bytes() as u64));
        group.bench_function(format!("lineitem/{rows}"), |bencher| {
            bencher.iter(|| Block::from_bytes(black_box(block.bytes().clone())).expect("well formed"));
        });
    }
    group.finish();
}

criterion_group!(benches, group_close, read_back);
criterion_main!(benches);
