//! Cost of the disk and the checksum without any log: no append can be faster.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const FILE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4096;

/// One write and one fdatasync, at the next page of a file that is zero-filled (as the log's
/// segments are) or that grows.
fn fdatasync(criterion: &mut Criterion) {
    let root = std::env::var_os("TRIBUTARY_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let mut group = criterion.benchmark_group("fdatasync");
    group.measurement_time(Duration::from_secs(3));
    for (name, is_filled) in [("filled", true), ("growing", false)] {
        for bytes in [100u64, 10 << 10, 1 << 20] {
            let file = tempfile::tempfile_in(&root).expect("a directory to write in");
            if is_filled {
                fill(&file);
            }
            let (data, step) = (vec![0x5a; bytes as usize], bytes.next_multiple_of(PAGE_BYTES));
            let mut at = 0;
            group.throughput(Throughput::BytesDecimal(bytes));
            group.bench_function(format!("{name}/{bytes}B"), |bencher| {
                bencher.iter(|| {
                    if is_filled && at + step > FILE_BYTES {
                        at = 0;
                    }
                    file.write_all_at(&data, at).expect("space");
                    file.sync_data().expect("a disk that syncs");
                    at += step;
                });
            });
        }
    }
    group.finish();
}

fn fill(file: &File) {
    let zeros = vec![0; 1 << 20];
    for offset in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, offset).expect("space");
    }
    file.sync_all().expect("a disk that syncs");
}

fn checksum(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("crc32c");
    for bytes in [100usize, 10 << 10, 1 << 20] {
        let data = vec![0x5a; bytes];
        group.throughput(Throughput::BytesDecimal(bytes as u64));
        group.bench_function(format!("{bytes}B"), |bencher| {
            bencher.iter(|| black_box(crc32c::crc32c(black_box(&data))));
        });
    }
    group.finish();
}

criterion_group!(benches, fdatasync, checksum);
criterion_main!(benches);
