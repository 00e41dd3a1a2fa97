//! Publishing: the swap of the snapshot, while the memtable grows.

mod rows;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use object_store::memory::InMemory;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_table::{Publication, StoreOptions, Table, TableStore};
use tributary_types::{Lsn, Version};

/// Rows of a publication, and publications until the memtable is emptied.
const SHAPES: [(usize, u64); 4] = [(1, 2000), (30, 2000), (500, 2000), (8000, 100)];

fn publications(table: &Table, batch: &arrow::array::RecordBatch, count: u64) -> Duration {
    let schema = Arc::clone(&table.def().schema);
    let first = table.snapshot().version.0 + 1;
    let began = Instant::now();
    for version in first..first + count {
        let publication = Publication {
            version: Version(version),
            schema: Arc::clone(&schema),
            batches: vec![batch.clone()],
            files: Vec::new(),
            replaces: None,
            partitions: None,
            lsn: Lsn(version),
        };
        table.publish(publication).expect("the next version");
    }
    let took = began.elapsed();
    table.publish_truncate(Version(first + count), Lsn(first + count)).expect("the next version");
    took
}

fn publish(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let url = url::Url::parse("memory:///bench/").expect("a URL");
    let store = TableStore::with_object_store(Arc::new(InMemory::new()), url, StoreOptions::default())
        .expect("legal options");
    let def = rows::table();
    let table = runtime.block_on(store.create(&def)).expect("a table");
    let mut group = criterion.benchmark_group("publish");
    group.sample_size(20);
    for (size, count) in SHAPES {
        let batch = rows::batch(0, size);
        group.throughput(Throughput::Elements(count * size as u64));
        group.bench_function(format!("{count}x{size}rows"), |bencher| {
            bencher
                .iter_custom(|iterations| (0..iterations).map(|_| publications(&table, &batch, count)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, publish);
criterion_main!(benches);
