mod simulation;

use crate::testing::{SEGMENT_BYTES, core, dir, entry, open, options, read, read_all, segment_path};
use crate::{Entry, LogCore, MemDisk, OsDisk, Wal, WalError};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::{Lsn, TableId, TxnId};

fn write(core: &mut LogCore, number: u64, body_bytes: usize) -> Lsn {
    core.write_batch(&[[entry(number, body_bytes)]]).unwrap()[0].end
}

fn numbers(disk: &MemDisk) -> Vec<u64> {
    read_all(disk).unwrap().0.iter().map(|(_, entry)| entry.txn.0).collect()
}

#[test]
fn entries_come_back_as_they_were_with_the_lsns_that_were_given() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let batch = vec![vec![entry(1, 0), entry(2, 10)], vec![], vec![entry(3, 9000)]];
    let places = log.write_batch(&batch).unwrap();
    assert_eq!(places.len(), 3);
    assert_eq!(places[0].end, places[1].first);
    assert_eq!(places[1].first, places[1].end);
    assert_eq!(places[2].end, log.end());
    drop(log);
    let (entries, report) = read_all(&disk).unwrap();
    let expected: Vec<Entry> = batch.into_iter().flatten().collect();
    assert_eq!(entries.iter().map(|(_, entry)| entry.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(entries[0].0, places[0].first);
    assert_eq!(entries[2].0, places[2].first);
    assert_eq!((report.entries, report.frames, report.torn), (3, 1, None));
    assert_eq!(report.end_lsn, places[2].end);
}

#[test]
fn one_batch_is_one_write_and_one_sync() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let before = disk.operations();
    log.write_batch(&(0..100).map(|n| vec![entry(n, 5)]).collect::<Vec<_>>()).unwrap();
    assert_eq!(disk.operations() - before, 2);
    assert_eq!((log.stats().fsyncs, log.stats().batches, log.stats().entries), (1, 1, 100));
}

#[test]
fn a_batch_without_entries_touches_nothing() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let end = write(&mut log, 1, 10);
    let before = disk.operations();
    let places = log.write_batch(&[Vec::new(), Vec::new()]).unwrap();
    assert_eq!(disk.operations(), before);
    assert!(places.iter().all(|place| place.first == end && place.end == end));
}

#[test]
fn a_log_grows_over_segments_and_a_frame_larger_than_a_segment_fits() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    for number in 0..20 {
        write(&mut log, number, if number == 7 { 50_000 } else { 3000 });
    }
    assert!(log.stats().segments > 5);
    drop(log);
    assert_eq!(numbers(&disk), (0..20).collect::<Vec<_>>());
}

#[test]
fn released_segments_are_recycled_from_the_oldest_and_the_active_one_stays() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let ends: Vec<Lsn> = (0..20).map(|number| write(&mut log, number, 3000)).collect();
    let before = log.stats();
    log.release(ends[9]).unwrap();
    let after = log.stats();
    assert!(after.segments < before.segments);
    assert_eq!(after.spare_segments, 2);
    assert_eq!(after.live_bytes, log.end().0 - ends[9].0);
    log.release(Lsn(u64::MAX)).unwrap();
    assert_eq!((log.stats().segments, log.stats().live_bytes), (1, 0));
    let end = log.end();
    drop(log);
    let log = core(&disk);
    assert_eq!(log.end(), end, "LSNs never go back");
}

#[test]
fn the_files_of_recycled_segments_are_used_again_and_their_old_frames_never_come_back() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    for number in 0..100 {
        let end = write(&mut log, number, 3000);
        log.release(end).unwrap();
    }
    let stats = log.stats();
    assert!(stats.bytes_total <= 4 * SEGMENT_BYTES, "{stats:?}");
    drop(log);
    let left = numbers(&disk);
    assert!(left.len() < 5 && left == (100 - left.len() as u64..100).collect::<Vec<_>>(), "{left:?}");
}

#[test]
fn a_released_log_that_is_opened_again_and_again_does_not_collect_files() {
    let disk = MemDisk::new();
    for _ in 0..10 {
        drop(core(&disk));
    }
    let log = core(&disk);
    assert_eq!((log.stats().segments, log.end()), (1, Lsn(0)));
    assert!(log.stats().bytes_total <= 2 * SEGMENT_BYTES, "{:?}", log.stats());
}

#[test]
fn the_header_value_is_above_all_transaction_ids_even_of_released_segments() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    for number in 0..20 {
        write(&mut log, number, 3000);
    }
    log.release(log.end()).unwrap();
    drop(log);
    let mut recovered = open(&disk).unwrap();
    let value = recovered.report().header_value;
    let left = read(&mut recovered).unwrap();
    assert_eq!(value, left[0].1.txn.0, "the newest header covers all entries before it");
    assert_eq!(recovered.report().header_value, 20);
    recovered.set_header_value(99);
    drop(recovered.into_core().unwrap());
    assert_eq!(open(&disk).unwrap().report().header_value, 99);
}

#[test]
fn a_failed_sync_ends_the_log_and_nothing_is_acknowledged_after_it() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let durable = write(&mut log, 1, 10);
    disk.fail_next_sync();
    let error = log.write_batch(&[[entry(2, 10)]]).unwrap_err();
    assert!(matches!(&error, WalError::Failed { durable_lsn, .. } if *durable_lsn == durable.0), "{error}");
    assert!(error.to_string().contains("sync /wal/wal-00000000000000000000.log"), "{error}");
    let before = disk.operations();
    assert!(log.write_batch(&[[entry(3, 10)]]).unwrap_err().is_fatal());
    assert_eq!(disk.operations(), before, "a failed log writes no more");
}

#[test]
fn what_a_failed_sync_left_in_the_page_cache_is_durable_once_it_was_recovered() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    write(&mut log, 1, 10);
    disk.fail_next_sync();
    log.write_batch(&[[entry(2, 10)]]).unwrap_err();
    disk.kill_process();
    let mut log = core(&disk);
    write(&mut log, 3, 10);
    disk.crash(0);
    assert_eq!(numbers(&disk), [1, 2, 3]);
}

#[test]
fn a_full_disk_refuses_entries_by_saying_what_is_needed_and_takes_them_when_there_is_space_again() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    disk.set_capacity(Some(SEGMENT_BYTES + 1000));
    write(&mut log, 1, 3000);
    write(&mut log, 2, 3000);
    write(&mut log, 3, 3000);
    write(&mut log, 4, 3000);
    let error = log.write_batch(&[[entry(5, 3000)]]).unwrap_err();
    let WalError::NoSpace { needed, available, .. } = &error else { panic!("{error}") };
    assert_eq!((*needed, *available), (SEGMENT_BYTES, 1000));
    assert!(error.to_string().contains("/wal") && error.to_string().contains("free disk space"), "{error}");
    let missing = log.missing_space().expect("it has just refused a frame");
    assert_eq!((missing.needed, missing.available), (SEGMENT_BYTES, 1000));
    disk.set_capacity(None);
    assert_eq!(log.missing_space(), None, "there is space again, whether or not somebody loads");
    write(&mut log, 6, 3000);
    disk.set_capacity(Some(SEGMENT_BYTES + 1000));
    assert_eq!(log.missing_space(), None, "the last frame was written");
    drop(log);
    assert_eq!(numbers(&disk), [1, 2, 3, 4, 6]);
}

#[test]
fn a_write_cut_short_by_a_full_disk_is_overwritten_and_never_read_back() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    write(&mut log, 1, 100);
    disk.fail_operation(disk.operations(), crate::Fault::NoSpace);
    let error = log.write_batch(&[[entry(2, 2000)]]).unwrap_err();
    assert!(matches!(error, WalError::NoSpace { .. }), "{error}");
    write(&mut log, 3, 100);
    drop(log);
    assert_eq!(numbers(&disk), [1, 3]);
}

#[test]
fn a_disk_that_cannot_hold_a_segment_is_refused_at_the_start() {
    let disk = MemDisk::new();
    disk.set_capacity(Some(SEGMENT_BYTES / 2));
    let error = open(&disk).unwrap().into_core().err().unwrap();
    assert!(matches!(error, WalError::NoSpace { .. }), "{error}");
    disk.set_capacity(None);
    drop(core(&disk));
}

#[test]
fn a_segment_grows_while_no_file_can_be_created_for_the_next() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    for number in 0..4 {
        write(&mut log, number, 3000);
    }
    for number in 4..6 {
        disk.fail_operation(disk.operations(), crate::Fault::Io);
        write(&mut log, number, 3000);
        assert_eq!(log.stats().segments, 1, "the frame of entry {number} fits into no segment but this");
    }
    write(&mut log, 6, 3000);
    assert_eq!(log.stats().segments, 2);
    drop(log);
    disk.crash(0);
    assert_eq!(numbers(&disk), [0, 1, 2, 3, 4, 5, 6]);
}

/// Set for the child process of a test that needs limits of its own.
const IS_CHILD: &str = "TRIBUTARY_TEST_IS_CHILD";

#[test]
fn a_log_stays_usable_without_a_free_file_descriptor() {
    if let Some(dir) = std::env::var_os(IS_CHILD) {
        let open = || Wal::recover(Arc::new(OsDisk), std::path::Path::new(&dir), options()).unwrap();
        let mut log = open().into_core().unwrap().0;
        log.prepare_spare().unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        for number in 0..30 {
            let end = write(&mut log, number, 3000);
            log.release(end).unwrap();
        }
        assert!(taken.len() > 10);
        drop((taken, log));
        assert_eq!(read(&mut open()).unwrap().last().unwrap().1.txn, TxnId(29));
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let child = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg("core::tests::a_log_stays_usable_without_a_free_file_descriptor")
        .env(IS_CHILD, temp.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn options_that_cannot_work_are_refused_by_name() {
    let disk = Arc::new(MemDisk::new());
    let small = crate::WalOptions { segment_bytes: 100, ..options() };
    let error = Wal::recover(disk, &dir(), small).err().unwrap();
    assert_eq!(
        error.to_string(),
        "write-ahead log option segment_bytes = 100: a segment has at least 8192 bytes"
    );
}

/// The golden files: one header and one frame with two entries, in hexadecimal with remarks. With and without log id.
const GOLDEN: &str = include_str!("../segment/golden/segment-v1-log-id.hex");
const GOLDEN_WITHOUT_ID: &str = include_str!("../segment/golden/segment-v1.hex");

fn golden_bytes(golden: &str, header_bytes: usize) -> Vec<u8> {
    let digits: String = golden
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .flat_map(|line| line.chars().filter(char::is_ascii_hexdigit))
        .collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
    // The remarks leave out the zeros between the segment header and the first frame.
    let frame = bytes.split_off(header_bytes);
    bytes.resize(4096, 0);
    bytes.extend(frame);
    bytes
}

fn golden_entries() -> Vec<Entry> {
    vec![
        Entry { kind: 1, table: TableId(10), txn: TxnId(1000), tag: 1, body: Bytes::from_static(b"hello") },
        Entry {
            kind: 2,
            table: TableId(0x0102_0304_0506_0708),
            txn: TxnId(1001),
            tag: 2,
            body: Bytes::new(),
        },
    ]
}

#[test]
fn the_format_is_the_one_of_the_golden_file() {
    let disk = MemDisk::new();
    let mut recovered = open(&disk).unwrap();
    recovered.set_header_value(77);
    let mut log = recovered.into_core().unwrap().0;
    log.write_batch(&[golden_entries()]).unwrap();
    let golden = golden_bytes(GOLDEN, 64);
    let written = disk.contents(&segment_path(0)).unwrap();
    let hex: Vec<String> = written[..golden.len()].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        written[..golden.len()],
        golden,
        "written: {} … {}",
        hex[..64].join(" "),
        hex[4096..].join(" ")
    );
    assert!(written[golden.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_golden_files_are_read_and_the_older_one_gets_the_same_log_id() {
    for golden in [golden_bytes(GOLDEN, 64), golden_bytes(GOLDEN_WITHOUT_ID, 44)] {
        let disk = MemDisk::new();
        disk.put(&segment_path(0), golden);
        let mut recovered = open(&disk).unwrap();
        assert_eq!(recovered.report().header_value, 77);
        let entries: Vec<Entry> = read(&mut recovered).unwrap().into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries, golden_entries());
        let log = recovered.into_core().unwrap().0;
        let next = disk.contents(&segment_path(log.end().0)).unwrap();
        assert_eq!(next[44..64], golden_bytes(GOLDEN, 64)[44..64], "the next segment has the log's id");
    }
}

#[test]
fn a_large_body_is_read_into_memory_of_its_own() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    log.write_batch(&[[entry(1, 3), entry(2, 100_000)]]).unwrap();
    drop(log);
    let body = read_all(&disk).unwrap().0.pop().unwrap().1.body;
    assert!(body.is_unique(), "it does not keep its frame alive");
    assert_eq!(body.as_ptr().align_offset(8), 0);
}

#[test]
fn a_spare_file_that_is_too_short_is_thrown_away() {
    let disk = MemDisk::new();
    let path: PathBuf = dir().join("spare-0000000003.wal");
    disk.put(&path, vec![0; 10]);
    drop(core(&disk));
    assert!(disk.contents(&path).is_err());
}
