//! JSON lines of flat objects into typed columns, compared with `arrow-json`.
//!
//! Both get the same lines in the same chunks, for the same columns. Ours converts texts as loads do and writes
//! blocks; `arrow-json` gets the easier half of it: times stay texts there.

mod data;

use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tributary_decode::{BodyDecoder, JsonDecoder, JsonFormat, LoadRules, Target};

const ROWS: u64 = 50_000;
/// Bytes that the HTTP server hands over at once.
const CHUNK_BYTES: usize = 64 * 1024;

fn decode(json: &[u8], target: &Target, format: &JsonFormat) {
    let mut decoder = JsonDecoder::new(target.clone(), format, LoadRules::default()).expect("a legal format");
    for chunk in json.chunks(CHUNK_BYTES) {
        decoder.push(chunk).expect("short lines");
        black_box(decoder.take_blocks());
    }
    decoder.finish().expect("short lines");
    black_box(decoder.take_blocks());
    let counts = decoder.counts();
    assert_eq!((counts.loaded, counts.filtered), (ROWS, 0), "every row is legal");
}

fn decode_arrow(json: &[u8], schema: &Arc<Schema>) {
    let builder = arrow_json::ReaderBuilder::new(Arc::clone(schema)).with_batch_size(8192);
    let mut decoder = builder.build_decoder().expect("a legal schema");
    let mut rows = 0;
    for chunk in json.chunks(CHUNK_BYTES) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let read = decoder.decode(rest).expect("legal JSON");
            rest = &rest[read..];
            if !rest.is_empty() {
                rows += decoder.flush().expect("legal values").map_or(0, |batch| black_box(batch).num_rows());
            }
        }
    }
    rows += decoder.flush().expect("legal values").map_or(0, |batch| black_box(batch).num_rows());
    assert_eq!(rows as u64, ROWS);
}

fn arrow_schema(target: &Target, keeps_times: bool) -> Arc<Schema> {
    let schema = target.schema().arrow();
    let field = |field: &Arc<Field>| match field.data_type() {
        ArrowType::Timestamp(..) if !keeps_times => {
            Field::new(field.name(), ArrowType::Utf8, field.is_nullable())
        }
        other => Field::new(field.name(), other.clone(), field.is_nullable()),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn json(criterion: &mut Criterion) {
    let table = data::access_log_table();
    let target = Target::new(&table, None).expect("every column is there");
    let lines = data::access_log_json(0, ROWS);
    let array = [b"[", lines.trim_ascii_end(), b"]"].concat();
    let array = String::from_utf8(array).expect("UTF-8").replace("}\n{", "},{").into_bytes();
    let by_line = JsonFormat::default();
    let stripped = JsonFormat { read_by_line: false, strip_outer_array: true, ..JsonFormat::default() };
    let mut group = criterion.benchmark_group("json");
    group.throughput(Throughput::BytesDecimal(lines.len() as u64));
    group.bench_function("lines", |bencher| bencher.iter(|| decode(&lines, &target, &by_line)));
    group.bench_function("array", |bencher| bencher.iter(|| decode(&array, &target, &stripped)));
    for (name, keeps_times) in [("arrow_json", true), ("arrow_json_times_as_text", false)] {
        let schema = arrow_schema(&target, keeps_times);
        group.bench_function(name, |bencher| bencher.iter(|| decode_arrow(&lines, &schema)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("json");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("rows", |bencher| bencher.iter(|| decode(&lines, &target, &by_line)));
    group.finish();
}

criterion_group!(benches, json);
criterion_main!(benches);
