//! Measures the log from end to end: submissions of several clients at once, one frame, one fdatasync, every answer; and a lone
//! submission that the submitting thread writes itself. Uses the disk of `TRIBUTARY_BENCH_DIR` (else the directory for temporary
//! files), and a simulated disk that costs a copy and no wait.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tributary_types::{TableId, TxnId};
use tributary_wal::{Appended, Disk, Entry, MemDisk, OsDisk, Wal, WalError, WalOptions};

/// Submissions at once and the bytes of each one's body.
const SHAPES: [(usize, usize); 9] = [
    (1, 100),
    (ALONE, 100),
    (30, 100),
    (500, 100),
    (1, 10 << 10),
    (30, 10 << 10),
    (500, 10 << 10),
    (1, 1 << 20),
    (30, 1 << 20),
];

/// One submission, written by the submitting thread.
const ALONE: usize = 0;

fn open(disk: Arc<dyn Disk>, dir: &std::path::Path) -> Wal {
    let mut recovered = Wal::recover(disk, dir, WalOptions::default()).expect("a directory to write in");
    while recovered.next().expect("an empty log").is_some() {}
    recovered.start().expect("a log").0
}

/// Submits `bodies` copies of `body`, waits until all are durable and gives their space back.
fn round(wal: &Wal, bodies: usize, body: &Bytes) {
    let (sender, receiver) = mpsc::channel();
    for number in 0..bodies.max(1) {
        let sender = sender.clone();
        let entry =
            Entry { kind: 1, table: TableId(1), txn: TxnId(1), tag: number as u32, body: body.clone() };
        let done = move |result: Result<Appended, WalError>| {
            sender.send(result.expect("space").end).expect("somebody waits");
        };
        let offered = wal.offer(vec![entry], Box::new(done));
        if bodies == ALONE { offered.write_here() } else { offered.hand_over() }
    }
    drop(sender);
    let last = receiver.iter().max().expect("at least one submission");
    wal.release(last);
}

fn rounds(wal: &Wal, bodies: usize, body: &Bytes, count: u64) -> Duration {
    let began = Instant::now();
    (0..count).for_each(|_| round(wal, bodies, body));
    began.elapsed()
}

fn appends(name: &str, disk: &Arc<dyn Disk>, dir: &std::path::Path, criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("wal_append/{name}"));
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    for (bodies, bytes) in SHAPES {
        let log_dir = dir.join(format!("{bodies}x{bytes}"));
        let wal = open(Arc::clone(disk), &log_dir);
        let body = Bytes::from(vec![0x5a; bytes]);
        group.throughput(Throughput::ElementsAndBytes {
            elements: bodies.max(1) as u64,
            bytes: (bodies.max(1) * bytes) as u64,
        });
        let name = if bodies == ALONE { format!("alone/{bytes}B") } else { format!("{bodies}x{bytes}B") };
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| rounds(&wal, bodies, &body, count));
        });
        wal.shutdown();
        drop(std::fs::remove_dir_all(log_dir));
    }
    group.finish();
}

fn append(criterion: &mut Criterion) {
    let root = std::env::var_os("TRIBUTARY_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(root).expect("a directory to write in");
    appends("disk", &(Arc::new(OsDisk) as Arc<dyn Disk>), dir.path(), criterion);
    appends("memory", &(Arc::new(MemDisk::new()) as Arc<dyn Disk>), "/wal".as_ref(), criterion);
}

criterion_group!(benches, append);
criterion_main!(benches);
