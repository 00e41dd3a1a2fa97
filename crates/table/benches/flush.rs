//! Flush of a memtable of the default size: sort, Parquet with Zstd 1, files and Delta commit durable. On the
//! disk of `TRIBUTARY_BENCH_DIR` (else the directory for temporary files).

mod rows;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tributary_table::{Publication, StoreOptions, Table, TableStore};
use tributary_types::{Lsn, Version};

const MEMTABLE_BYTES: u64 = 64 << 20;
/// Rows of a group.
const GROUP_ROWS: usize = 5000;

/// Publishes groups until the memtable has the size at which a flush is due; returns its rows.
fn fill(table: &Table) -> u64 {
    let schema = Arc::clone(&table.def().schema);
    let mut place = 0;
    while table.memtable_bytes() < MEMTABLE_BYTES {
        let version = table.snapshot().version.next();
        let publication = Publication {
            version,
            schema: Arc::clone(&schema),
            batches: vec![rows::batch(place, GROUP_ROWS)],
            files: Vec::new(),
            replaces: None,
            partitions: None,
            lsn: Lsn(version.0),
        };
        table.publish(publication).expect("the next version");
        place += 1;
    }
    table.memtable_rows()
}

/// Fills the memtable and flushes it; the time is that of the flush.
fn flush_once(runtime: &Runtime, table: &Table) -> Duration {
    fill(table);
    let began = Instant::now();
    let report = runtime.block_on(table.flush()).expect("space").expect("rows");
    let took = began.elapsed();
    assert_eq!(table.memtable_rows(), 0, "{report:?}");
    // The files are not needed any more: later flushes should not carry a longer and longer list.
    let version = Version(table.snapshot().version.0 + 1);
    table.publish_truncate(version, Lsn(version.0)).expect("the next version");
    took
}

fn flush(criterion: &mut Criterion) {
    let root = std::env::var_os("TRIBUTARY_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(root).expect("a directory to write in");
    let runtime = Runtime::new().expect("threads");
    let store = TableStore::local(dir.path(), StoreOptions::default()).expect("a directory to write in");
    let table = runtime.block_on(store.create(&rows::table())).expect("a table");
    let rows = fill(&table);
    let bytes = table.memtable_bytes();
    let mut group = criterion.benchmark_group("flush");
    group.sample_size(10).throughput(Throughput::ElementsAndBytes { elements: rows, bytes });
    group.bench_function("64MB_memtable", |bencher| {
        bencher.iter_custom(|iterations| (0..iterations).map(|_| flush_once(&runtime, &table)).sum());
    });
    group.finish();
}

criterion_group!(benches, flush);
criterion_main!(benches);
