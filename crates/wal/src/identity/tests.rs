use super::*;
use crate::{Entry, OsDisk, Wal, WalOptions};
use bytes::Bytes;
use std::sync::Arc;
use tempfile::{TempDir, tempdir};
use tributary_types::{Lsn, TableId, TxnId};

fn log(dir: &Path) -> Wal {
    let options =
        WalOptions { segment_bytes: 8192, on_fatal: Some(Arc::new(|_| {})), ..WalOptions::default() };
    Wal::recover(Arc::new(OsDisk), dir, options).unwrap().start().unwrap().0
}

fn fill(log: &Wal) {
    let entry = Entry { kind: 1, table: TableId(1), txn: TxnId(1), tag: 0, body: Bytes::from(vec![7; 3000]) };
    for _ in 0..4 {
        let (sender, receiver) = std::sync::mpsc::channel();
        log.submit(vec![entry.clone()], Box::new(move |done| sender.send(done.map(|_| ())).unwrap()));
        receiver.recv().unwrap().unwrap();
    }
}

/// Releases the whole log and waits until its oldest segment is recycled.
fn release(log: &Wal) {
    let oldest = segments(log.dir()).remove(0);
    log.release(log.end_lsn());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while oldest.exists() {
        assert!(std::time::Instant::now() < until, "{} is not recycled", oldest.display());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A segment as servers wrote it before logs had ids.
fn old_segment(dir: &Path, first: u64, salt: u64) {
    fs::create_dir_all(dir).unwrap();
    let header = SegmentHeader { first: Lsn(first), salt, value: 0, log: None };
    fs::write(dir.join(crate::segment::format::segment_name(Lsn(first))), header.encode()).unwrap();
}

fn copy(from: &Path, name: &str) -> (TempDir, PathBuf) {
    let temp = tempdir().unwrap();
    let to = temp.path().join(name);
    fs::create_dir(&to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    (temp, to)
}

#[test]
fn a_log_keeps_its_id_over_starts_and_after_its_first_segment_is_gone() {
    let temp = tempdir().unwrap();
    let dir = temp.path();
    assert_eq!((is_in_use(dir), identify(dir)), (false, None));
    let first = log(dir);
    let id = identify(dir).expect("a new log has one");
    fill(&first);
    first.shutdown();
    drop(first);
    let again = log(dir);
    release(&again);
    again.shutdown();
    assert_eq!(identify(dir), Some(id));
    assert_eq!(id.to_string().parse(), Ok(id));
}

#[test]
fn logs_differ_and_a_copy_is_known_whatever_became_of_it() {
    let (temp, other) = (tempdir().unwrap(), tempdir().unwrap());
    drop((log(temp.path()), log(other.path())));
    assert_ne!(identify(temp.path()), identify(other.path()));
    let (_kept, copied) = copy(temp.path(), "copy");
    let goes_on = log(&copied);
    fill(&goes_on);
    release(&goes_on);
    goes_on.shutdown();
    assert_eq!(identify(&copied), identify(temp.path()));
}

#[test]
fn a_log_of_a_server_that_knew_no_ids_takes_that_of_its_oldest_segment_and_keeps_it() {
    let temp = tempdir().unwrap();
    let dir = temp.path().join("old");
    old_segment(&dir, 0, 77);
    let id = identify(&dir).expect("one is made out");
    let (_kept, copied) = copy(&dir, "copy");
    let started = log(&copied);
    fill(&started);
    release(&started);
    started.shutdown();
    assert_eq!(identify(&copied), Some(id), "the copy that was started is still known as one");
    old_segment(&temp.path().join("another"), 0, 78);
    assert_ne!(identify(&temp.path().join("another")), Some(id));
}

#[test]
fn an_id_that_is_damaged_is_none() {
    let header = SegmentHeader { first: Lsn(5), salt: 6, value: 7, log: Some(LogId([9; 16])) };
    let mut bytes = header.encode();
    assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
    bytes[50] ^= 1;
    assert_eq!(SegmentHeader::decode(&bytes), Ok(SegmentHeader { log: None, ..header }));
}

#[test]
fn a_segment_that_a_repair_made_of_nothing_has_no_id() {
    let temp = tempdir().unwrap();
    old_segment(temp.path(), 9, 0);
    assert_eq!((is_in_use(temp.path()), identify(temp.path())), (true, None));
}

#[test]
fn a_text_that_is_no_id_is_refused() {
    for text in ["", "12", "+0000000000000000000000000000000", "zz000000000000000000000000000000"] {
        assert!(text.parse::<LogId>().is_err(), "{text}");
    }
}
