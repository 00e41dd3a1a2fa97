//! CSV: lines and fields alone, then with their conversion into typed rows.

mod data;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tributary_decode::{CsvDecoder, CsvFormat, CsvStrings, FieldDecoder, FieldNames, LoadRules, Target};
use tributary_types::TableDef;

const ROWS: u64 = 50_000;
/// Bytes that the HTTP server hands over at once.
const CHUNK_BYTES: usize = 64 * 1024;

fn format() -> CsvFormat {
    CsvFormat { column_separator: b"|".to_vec(), ..CsvFormat::default() }
}

fn decode(csv: &[u8], target: &Target) {
    let mut decoder = CsvDecoder::new(target.clone(), format(), LoadRules::default()).expect("legal options");
    for chunk in csv.chunks(CHUNK_BYTES) {
        decoder.push(chunk).expect("short lines");
        black_box(decoder.take_blocks());
    }
    decoder.finish().expect("short lines");
    black_box(decoder.take_blocks());
    let counts = decoder.counts();
    assert_eq!((counts.loaded, counts.filtered), (ROWS, 0), "every row is legal");
}

/// A table of one column that the file does not have: fields are found and dropped.
fn split_target(of: &Arc<TableDef>) -> Target {
    let mut schema = of.schema.as_ref().clone();
    schema.columns.truncate(2);
    schema.columns.remove(0);
    let names: Vec<String> = (0..of.schema.columns.len()).map(|field| format!("dropped_{field}")).collect();
    let def = TableDef { schema: Arc::new(schema), ..of.as_ref().clone() };
    Target::with_ignored_fields(&Arc::new(def), &names).expect("the column is nullable")
}

fn csv(criterion: &mut Criterion) {
    let table = data::access_log_table();
    let text = data::access_log_csv(0, ROWS);
    let (split, typed) = (split_target(&table), Target::new(&table, None).expect("every column is there"));
    let mut group = criterion.benchmark_group("csv");
    group.throughput(Throughput::BytesDecimal(text.len() as u64));
    group.bench_function("split", |bencher| bencher.iter(|| decode(&text, &split)));
    group.bench_function("typed", |bencher| bencher.iter(|| decode(&text, &typed)));
    group.bench_function("strings", |bencher| {
        bencher.iter(|| {
            let mut strings = CsvStrings::new(FieldNames::Numbered, format()).expect("a legal format");
            for chunk in text.chunks(CHUNK_BYTES) {
                strings.push(chunk).expect("short lines");
                black_box(strings.take_batches());
            }
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("csv");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("typed_rows", |bencher| bencher.iter(|| decode(&text, &typed)));
    group.finish();
}

criterion_group!(benches, csv);
criterion_main!(benches);
