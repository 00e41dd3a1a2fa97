mod notices;

use crate::testing::{dir, entry, options};
use crate::{Appended, Entry, MemDisk, OsDisk, Wal, WalError, WalOptions};
use bytes::Bytes;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use tributary_types::{Lsn, TableId};

fn start(disk: &MemDisk, options: WalOptions) -> Wal {
    Wal::recover(Arc::new(disk.clone()), &dir(), options).unwrap().start().unwrap().0
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn append(wal: &Wal, entries: Vec<Entry>) -> Result<Appended, WalError> {
    block_on(wal.append(entries))
}

fn read(path: &Path) -> Vec<(Lsn, Entry)> {
    let mut recovered = Wal::recover(Arc::new(OsDisk), path, options()).unwrap();
    crate::testing::read(&mut recovered).unwrap()
}

/// Options whose hook counts failures and lets the process live.
fn counting_failures() -> (WalOptions, Arc<AtomicU64>) {
    let failures = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&failures);
    let hook = move |_: &WalError| {
        counter.fetch_add(1, Ordering::SeqCst);
    };
    (WalOptions { on_fatal: Some(Arc::new(hook)), ..options() }, failures)
}

#[test]
fn many_submitters_on_a_real_disk_find_all_their_entries_again_in_their_order() {
    const SUBMITTERS: u64 = 8;
    const EACH: u64 = 150;
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a/wal");
    let small_frames = WalOptions { frame_bytes: 20_000, ..options() };
    let wal = Wal::recover(Arc::new(OsDisk), &path, small_frames).unwrap().start().unwrap().0;
    let order = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for submitter in 0..SUBMITTERS {
            let (wal, order) = (wal.clone(), Arc::clone(&order));
            scope.spawn(move || {
                let (sender, receiver) = mpsc::channel();
                for number in 0..EACH {
                    let one =
                        Entry { table: TableId(submitter), ..entry(number, (number as usize * 37) % 6000) };
                    let (sender, order) = (sender.clone(), Arc::clone(&order));
                    let done = move |result: Result<Appended, WalError>| {
                        order.lock().push(result.as_ref().unwrap().first);
                        sender.send(result).unwrap();
                    };
                    wal.submit(vec![one], Box::new(done));
                }
                let places: Vec<Appended> = (0..EACH).map(|_| receiver.recv().unwrap().unwrap()).collect();
                assert!(places.is_sorted_by_key(|place| place.first));
            });
        }
    });
    assert!(wal.is_idle());
    assert_eq!(wal.pending_bytes(), 0);
    assert!(order.lock().is_sorted(), "answers come in the order of the log");
    let stats = wal.stats();
    assert_eq!(stats.entries, SUBMITTERS * EACH);
    assert_eq!(wal.live_bytes(), stats.live_bytes);
    assert!(stats.segments > 3 && stats.batches == stats.fsyncs);
    wal.shutdown();
    let mut next = [0; SUBMITTERS as usize];
    for (_, one) in read(&path) {
        let submitter = &mut next[one.table.0 as usize];
        assert_eq!(one.txn.0, *submitter);
        *submitter += 1;
    }
    assert_eq!(next, [EACH; SUBMITTERS as usize]);
}

#[test]
fn a_directory_of_the_real_file_system_is_locked_until_shutdown() {
    let temp = tempfile::tempdir().unwrap();
    let wal = Wal::recover(Arc::new(OsDisk), temp.path(), options()).unwrap().start().unwrap().0;
    let error = Wal::recover(Arc::new(OsDisk), temp.path(), options()).err().unwrap();
    assert!(matches!(error, WalError::Locked { .. }), "{error}");
    wal.shutdown();
    assert!(Wal::recover(Arc::new(OsDisk), temp.path(), options()).is_ok());
}

#[test]
fn a_wait_until_the_log_is_drained_ends_when_it_is_or_when_the_log_ends() {
    let wal = start(&MemDisk::new(), options());
    append(&wal, vec![entry(1, 100)]).unwrap();
    block_on(wal.drained_below(1));
    let never = wal.clone();
    let waiting = std::thread::spawn(move || block_on(never.drained_below(0)));
    wal.shutdown();
    waiting.join().unwrap();
}

#[test]
fn shutdown_writes_and_answers_what_is_pending_and_then_refuses() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let (sender, receiver) = mpsc::channel();
    for number in 0..50 {
        let sender = sender.clone();
        wal.submit(vec![entry(number, 100)], Box::new(move |result| sender.send(result).unwrap()));
    }
    wal.shutdown();
    drop(sender);
    assert_eq!(receiver.iter().flatten().count(), 50);
    assert!(matches!(append(&wal, vec![entry(1, 1)]), Err(WalError::Closed)));
    assert_eq!(crate::testing::read_all(&disk).unwrap().0.len(), 50);
}

#[test]
fn what_is_offered_and_can_never_be_written_is_answered_when_the_caller_says_so() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let lock = Arc::new(Mutex::new(Vec::new()));
    let large = Bytes::from(vec![0; 1 << 20]);
    let too_large = vec![Entry { body: large, ..entry(1, 0) }; 1025];
    let offer = |entries| {
        let answers = Arc::clone(&lock);
        wal.offer(entries, Box::new(move |result| answers.lock().push(result)))
    };
    let held = lock.lock();
    let refused = offer(too_large);
    wal.shutdown();
    let closed = offer(vec![entry(2, 10)]);
    drop(held);
    refused.write_here();
    closed.hand_over();
    let answers = std::mem::take(&mut *lock.lock());
    assert!(matches!(answers[..], [Err(WalError::TooLarge { .. }), Err(WalError::Closed)]), "{answers:?}");
}

#[test]
fn a_lone_submission_is_written_by_the_thread_that_brings_it() {
    let disk = MemDisk::new();
    let wal = start(&disk, WalOptions { may_write_here: Some(true), ..options() });
    let (sender, receiver) = mpsc::channel();
    let by = |number| {
        let sender = sender.clone();
        let done = move |result: Result<Appended, WalError>| {
            result.unwrap();
            sender.send((number, std::thread::current().id())).unwrap();
        };
        wal.offer(vec![entry(number, 10)], Box::new(done))
    };
    let here = std::thread::current().id();
    // The writer thread may be awake because it has only begun, and take one or the other.
    let alone = (1..1000)
        .find(|&number| {
            by(number).write_here();
            receiver.recv().unwrap() == (number, here)
        })
        .expect("the writer thread sleeps in the end");
    // Two pending submissions are left to the writer thread, in their order, and so is everything after them.
    let held = wal.inner.shared.core.lock();
    let (second, third) = (by(alone + 1), by(alone + 2));
    third.write_here();
    drop((held, second));
    by(alone + 3).hand_over();
    let answered: Vec<_> = (0..3).map(|_| receiver.recv().unwrap()).collect();
    assert!(answered.iter().map(|(number, _)| *number).eq(alone + 1..alone + 4));
    assert!(answered.iter().all(|(_, thread)| *thread != here));
    let numbers = |disk| -> Vec<u64> {
        crate::testing::read_all(disk).unwrap().0.iter().map(|(_, entry)| entry.txn.0).collect()
    };
    wal.shutdown();
    assert!(numbers(&disk).into_iter().eq(1..alone + 4));
}

#[test]
fn a_callback_that_panics_on_the_callers_thread_fails_the_log_too() {
    let disk = MemDisk::new();
    let (options, failures) = counting_failures();
    let wal = start(&disk, WalOptions { may_write_here: Some(true), ..options });
    let here = std::thread::current().id();
    let (sender, receiver) = mpsc::channel();
    let mut by = std::thread::current().id();
    for number in 1.. {
        let sender = sender.clone();
        let done = move |_: Result<Appended, WalError>| {
            let by = std::thread::current().id();
            sender.send(by).unwrap();
            assert!(by != here, "on purpose");
        };
        wal.offer(vec![entry(number, 10)], Box::new(done)).write_here();
        by = receiver.recv().unwrap();
        if by == here {
            break;
        }
    }
    assert_eq!(by, here);
    assert_eq!(failures.load(Ordering::SeqCst), 1);
    assert!(append(&wal, vec![entry(2, 10)]).unwrap_err().is_fatal());
    wal.shutdown();
}

#[test]
fn dropping_the_last_handle_shuts_the_log_down() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let (sender, receiver) = mpsc::channel();
    wal.submit(vec![entry(1, 1)], Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    drop(wal);
    assert!(receiver.recv().unwrap());
    assert_eq!(crate::testing::read_all(&disk).unwrap().0.len(), 1);
}

#[test]
fn a_failed_sync_fails_all_waiters_and_calls_the_hook_once() {
    let disk = MemDisk::new();
    let (options, failures) = counting_failures();
    let wal = start(&disk, options);
    append(&wal, vec![entry(1, 10)]).unwrap();
    // Preparing a spare segment syncs too, and its failure is another story.
    while wal.stats().spare_segments == 0 {
        std::thread::yield_now();
    }
    disk.fail_next_sync();
    let (sender, receiver) = mpsc::channel();
    for number in 0..20 {
        let sender = sender.clone();
        wal.submit(vec![entry(number, 10)], Box::new(move |result| sender.send(result).unwrap()));
    }
    for _ in 0..20 {
        assert!(receiver.recv().unwrap().unwrap_err().is_fatal());
    }
    assert!(append(&wal, vec![entry(2, 10)]).unwrap_err().is_fatal());
    wal.shutdown();
    assert_eq!(failures.load(Ordering::SeqCst), 1);
    assert!(wal.is_idle());
}

#[test]
fn a_callback_that_panics_fails_the_log_instead_of_leaving_waiters_alone() {
    let disk = MemDisk::new();
    let (options, failures) = counting_failures();
    let wal = start(&disk, options);
    wal.submit(vec![entry(1, 10)], Box::new(|_| panic!("on purpose")));
    wal.inner.shutdown();
    assert_eq!(failures.load(Ordering::SeqCst), 1);
    assert!(append(&wal, vec![entry(2, 10)]).unwrap_err().is_fatal());
}

#[test]
fn a_full_disk_fails_submissions_one_by_one_and_the_log_stays_usable() {
    let disk = MemDisk::new();
    let (options, failures) = counting_failures();
    let wal = start(&disk, WalOptions { reserve_bytes: 1 << 20, ..options });
    disk.set_capacity(Some(1 << 20));
    append(&wal, vec![entry(1, 3000)]).unwrap();
    let error = append(&wal, vec![entry(2, 30_000)]).unwrap_err();
    assert!(matches!(error, WalError::NoSpace { .. }), "{error}");
    append(&wal, vec![entry(3, 3000)]).unwrap();
    disk.set_capacity(None);
    append(&wal, vec![entry(4, 30_000)]).unwrap();
    wal.shutdown();
    let numbers: Vec<u64> =
        crate::testing::read_all(&disk).unwrap().0.iter().map(|(_, entry)| entry.txn.0).collect();
    assert_eq!(numbers, [1, 3, 4]);
    assert_eq!(failures.load(Ordering::SeqCst), 0);
}

#[test]
fn what_is_offered_in_order_does_not_overtake_a_refusal_that_is_being_answered() {
    let disk = MemDisk::new();
    let (options, _) = counting_failures();
    let wal = start(&disk, WalOptions { reserve_bytes: 1 << 20, ..options });
    disk.set_capacity(Some(1 << 20));
    append(&wal, vec![entry(1, 3000)]).unwrap();
    let (sender, receiver) = mpsc::channel();
    let answer = |number: u64| {
        let sender = sender.clone();
        Box::new(move |result: Result<Appended, WalError>| sender.send((number, result.is_ok())).unwrap())
    };
    let (again, refused, behind, beside) = (wal.clone(), answer(2), answer(3), answer(4));
    let done = move |result| {
        refused(result);
        // As another thread could at this moment: both would find space.
        again.offer_in_order(vec![entry(3, 10)], behind).hand_over();
        again.offer(vec![entry(4, 10)], beside).hand_over();
    };
    wal.submit(vec![entry(2, 30_000)], Box::new(done));
    let answers: Vec<_> = (0..3).map(|_| receiver.recv().unwrap()).collect();
    assert_eq!(answers, [(2, false), (3, false), (4, true)]);
    wal.offer_in_order(vec![entry(5, 10)], answer(5)).hand_over();
    assert_eq!(receiver.recv().unwrap(), (5, true), "the refusal is over");
    wal.shutdown();
}

#[test]
fn an_empty_submission_is_a_barrier() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let (sender, receiver) = mpsc::channel();
    let first = sender.clone();
    wal.submit(vec![entry(1, 10)], Box::new(move |result| first.send(result.unwrap().end).unwrap()));
    wal.submit(Vec::new(), Box::new(move |result| sender.send(result.unwrap().end).unwrap()));
    let end = receiver.recv().unwrap();
    assert_eq!(receiver.recv().unwrap(), end);
    assert_eq!(wal.end_lsn(), end);
}

#[test]
fn released_segments_are_recycled_by_the_keeper() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let mut end = Lsn(0);
    for number in 0..40 {
        end = append(&wal, vec![entry(number, 3000)]).unwrap().end;
    }
    wal.release(end);
    while wal.stats().segments > 1 {
        std::thread::yield_now();
    }
    assert_eq!(wal.stats().live_bytes, 0);
    wal.shutdown();
}

#[test]
fn a_callback_may_submit_again_and_sees_its_own_entries_as_settled() {
    let disk = MemDisk::new();
    let wal = start(&disk, options());
    let (sender, receiver) = mpsc::channel();
    let again = wal.clone();
    let done = move |result: Result<Appended, WalError>| {
        assert!(result.is_ok() && again.is_idle());
        again.submit(vec![entry(2, 10)], Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    };
    wal.submit(vec![entry(1, 10)], Box::new(done));
    assert!(receiver.recv().unwrap());
}

/// Set for the child process of a test that ends its process.
const IS_CHILD: &str = "TRIBUTARY_TEST_IS_CHILD";

#[test]
fn a_failed_sync_ends_the_process_before_anyone_is_answered() {
    if std::env::var_os(IS_CHILD).is_some() {
        let disk = MemDisk::new();
        let wal = start(&disk, options());
        append(&wal, vec![entry(1, 10)]).unwrap();
        while wal.stats().spare_segments == 0 {
            std::thread::yield_now();
        }
        disk.fail_next_sync();
        let answer = append(&wal, vec![entry(2, 10)]);
        println!("ANSWERED {answer:?}");
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "log::tests::a_failed_sync_ends_the_process_before_anyone_is_answered",
            "--nocapture",
        ])
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    let (out, said) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(6), "{out}{said}");
    assert!(!out.contains("ANSWERED"), "{out}");
    assert!(said.contains("tributary: the write-ahead log has failed and takes no more"), "{said}");
}
