//! VALUES text into blocks: everything that this crate does to an INSERT's rows.

mod data;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tributary_decode::{BlockBuilder, InsertOptions, Target, ValuesOutcome, decode_values, scan_insert_head};
use tributary_types::TableDef;

fn rows_of(table: &Arc<TableDef>, name: &str, sql: &str, rows: u64, criterion: &mut Criterion) {
    let target = Target::new(table, None).expect("every column is there");
    let options = InsertOptions::default();
    let mut builder = BlockBuilder::new(&table.schema);
    let mut decode = || match decode_values(sql.as_bytes(), &target, &options, &mut builder) {
        Ok(ValuesOutcome::Rows(decoded)) => decoded,
        other => panic!("{other:?}"),
    };
    let counts = decode().counts;
    assert_eq!((counts.loaded, counts.filtered), (rows, 0), "every row is legal");
    let mut group = criterion.benchmark_group("values");
    group.throughput(Throughput::BytesDecimal(sql.len() as u64));
    group.bench_function(name, |bencher| bencher.iter(|| black_box(decode())));
    group.finish();
}

fn values(criterion: &mut Criterion) {
    let (small, lineitem) = (data::small_table(), data::lineitem_table());
    for rows in [1, 1000] {
        rows_of(&small, &format!("small/{rows}"), &data::small_values(rows), rows, criterion);
    }
    for rows in [1, 100, 1000] {
        rows_of(&lineitem, &format!("lineitem/{rows}"), &data::lineitem_values(rows), rows, criterion);
    }
}

/// The part of a statement before its rows.
fn head(criterion: &mut Criterion) {
    let sql = "INSERT INTO `bench`.`small` (`id`, `name`, `score`) VALUES (1, 'a', 2)";
    assert!(scan_insert_head(sql.as_bytes()).is_some());
    criterion.bench_function("values/head", |bencher| {
        bencher.iter(|| scan_insert_head(black_box(sql.as_bytes())));
    });
}

criterion_group!(benches, values, head);
criterion_main!(benches);
