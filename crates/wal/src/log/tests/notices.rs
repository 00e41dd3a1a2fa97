//! Notices of closed segments.

use super::*;
use crate::ClosedSegment;
use std::time::{Duration, Instant};
use tributary_types::lock::{Rank, Ranked};

/// A log with a hook for closed segments, and the announced segments.
fn start_told(disk: &MemDisk, hook: impl Fn(&ClosedSegment) + Send + Sync + 'static) -> Wal {
    start(disk, WalOptions { on_segment_closed: Some(Arc::new(hook)), ..options() })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_closed_segment_is_announced_once_in_order_without_a_lock_and_before_it_is_recycled() {
    let disk = MemDisk::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    // Has the first rank: taking it under any other ranked lock would panic.
    let lock = Ranked::new(Rank::Prepared, ());
    let hook = {
        let (disk, told) = (disk.clone(), Arc::clone(&told));
        move |segment: &ClosedSegment| {
            drop(lock.lock());
            let bytes = disk.contents(&segment.path).unwrap();
            assert!(bytes.starts_with(b"TRIBWAL"), "it still is a segment");
            assert!(segment.used_bytes() <= bytes.len() as u64);
            told.lock().push(segment.clone());
        }
    };
    let wal = start_told(&disk, hook);
    for number in 0..40 {
        let place = append(&wal, vec![entry(number, 5000)]).unwrap();
        wal.release(place.end);
    }
    wait_until("all but the active segment are recycled", || wal.stats().segments == 1);
    let told = told.lock();
    assert!(told.len() > 10, "{told:?}");
    assert_eq!(told[0].first, Lsn(0));
    assert!(told.windows(2).all(|pair| pair[0].end == pair[1].first), "{told:?}");
    assert!(told.last().unwrap().end <= wal.end_lsn());
}

#[test]
fn a_slow_notice_of_a_closed_segment_delays_no_entry_and_the_segment_stays() {
    let disk = MemDisk::new();
    let (entered, has_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let wal = start_told(&disk, move |segment| {
        entered.send(segment.path.clone()).unwrap();
        // Closed when the test ends.
        let _ = may_go_on.lock().recv();
    });
    let mut end = Lsn(0);
    for number in 0..40 {
        end = append(&wal, vec![entry(number, 5000)]).unwrap().end;
        wal.release(end);
    }
    let held = has_entered.recv().unwrap();
    assert!(disk.contents(&held).is_ok() && wal.stats().segments > 10, "{:?}", wal.stats());
    drop(go_on);
    wait_until("the released segments are recycled", || wal.stats().segments == 1);
    assert_eq!(wal.end_lsn(), end);
}

#[test]
fn segments_that_an_earlier_process_closed_are_announced_at_the_start() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    for number in 0..10 {
        append(&wal, vec![entry(number, 5000)]).unwrap();
    }
    let end = wal.end_lsn();
    wal.shutdown();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let wal = start_told(&disk, move |segment| telling.lock().push((segment.first, segment.end)));
    wait_until("the last one is told", || told.lock().last().is_some_and(|last| last.1 == end));
    let told = told.lock();
    assert_eq!(told[0].0, Lsn(0));
    assert!(told.windows(2).all(|pair| pair[0].1 == pair[1].0), "{told:?}");
    assert_eq!(told.len(), wal.stats().segments - 1);
}

#[test]
fn a_notice_that_panics_does_not_end_the_keeper() {
    let disk = MemDisk::new();
    let wal = start_told(&disk, |_| panic!("as planned"));
    for number in 0..10 {
        let end = append(&wal, vec![entry(number, 5000)]).unwrap().end;
        wal.release(end);
    }
    wait_until("the released segments are recycled", || wal.stats().segments == 1);
}
