//! Records of the server that become loads of a table of its own.
//!
//! They wait in a bounded queue, and are taken as batches: one at a time, and again until it is stored or was tried too often.
//!
//! Invariant: a record that was added is [outstanding](Backlog::outstanding), in an acknowledged load, or counted as dropped.
//!
//! Not here: what the records say, and the loads.

use parking_lot::Mutex;
use prometheus::IntCounter;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// A record that waits.
pub trait BacklogRecord {
    /// The memory that it takes, in bytes, about.
    fn bytes(&self) -> usize;
}

/// Limits and counters of a [`Backlog`].
#[derive(Clone, Debug)]
pub struct BacklogOptions {
    /// Records that wait.
    pub records: usize,
    /// Bytes of records that wait; a single record may have more.
    pub bytes: usize,
    /// Bytes of a batch, about.
    pub batch_bytes: usize,
    /// How often a batch is tried.
    pub attempts: u32,
    /// Counts the records of batches that were stored.
    pub stored: IntCounter,
    /// Counts the records that were given up.
    pub dropped: IntCounter,
}

/// Records that wait to be loaded.
#[derive(Debug)]
pub struct Backlog<R> {
    options: BacklogOptions,
    is_open: AtomicBool,
    waiting: Mutex<Waiting<R>>,
    half_full: Notify,
    /// The batch that was taken last, if it is not stored.
    batch: tokio::sync::Mutex<Taken<R>>,
}

#[derive(Debug)]
struct Waiting<R> {
    records: VecDeque<R>,
    bytes: usize,
    /// Records of the batch.
    taken: usize,
}

#[derive(Debug)]
struct Taken<R> {
    records: Vec<R>,
    attempts: u32,
}

/// Records that are to be one load. Nobody else has a batch meanwhile, and it comes again unless it is [stored](Self::stored).
#[derive(Debug)]
pub struct Batch<'a, R> {
    backlog: &'a Backlog<R>,
    taken: tokio::sync::MutexGuard<'a, Taken<R>>,
}

impl<R: BacklogRecord> Backlog<R> {
    /// An empty backlog that does not ask for records yet.
    #[must_use]
    pub fn new(options: BacklogOptions) -> Self {
        Self {
            options,
            is_open: AtomicBool::new(false),
            waiting: Mutex::new(Waiting { records: VecDeque::new(), bytes: 0, taken: 0 }),
            half_full: Notify::new(),
            batch: tokio::sync::Mutex::new(Taken { records: Vec::new(), attempts: 0 }),
        }
    }

    /// Says whether records are wanted.
    pub fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    /// Whether records are wanted.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Adds a record, and returns it if there is no place for it.
    pub fn push(&self, record: R) -> Option<R> {
        let bytes = record.bytes();
        let mut waiting = self.waiting.lock();
        let has_no_place = waiting.records.len() >= self.options.records
            || waiting.bytes + bytes > self.options.bytes && waiting.bytes > 0;
        if has_no_place {
            return Some(record);
        }
        waiting.bytes += bytes;
        waiting.records.push_back(record);
        let is_half_full = waiting.records.len() == self.options.records.div_ceil(2)
            || waiting.bytes > self.options.bytes / 2;
        drop(waiting);
        if is_half_full {
            self.half_full.notify_one();
        }
        None
    }

    /// Waits until half of the places are taken. It may return too soon after that happened once.
    pub async fn half_full(&self) {
        self.half_full.notified().await;
    }

    /// Counts a record that found no place, and is not to be tried again.
    pub fn give_up(&self, record: R) {
        drop(record);
        self.options.dropped.inc();
    }

    /// Records that are neither stored nor given up.
    pub fn outstanding(&self) -> usize {
        let waiting = self.waiting.lock();
        waiting.records.len() + waiting.taken
    }

    /// Takes the batch that was not stored, or the oldest records; `None`: there are none.
    pub async fn next(&self) -> Option<Batch<'_, R>> {
        let mut taken = self.batch.lock().await;
        if taken.records.is_empty() {
            let mut waiting = self.waiting.lock();
            let mut bytes = 0;
            while bytes < self.options.batch_bytes
                && let Some(record) = waiting.records.pop_front()
            {
                bytes += record.bytes();
                taken.records.push(record);
            }
            waiting.bytes -= bytes;
            waiting.taken = taken.records.len();
        }
        (!taken.records.is_empty()).then_some(Batch { backlog: self, taken })
    }

    /// Gives up all outstanding records.
    pub async fn close(&self) {
        self.open(false);
        while let Some(mut batch) = self.next().await {
            batch.end(&self.options.dropped);
        }
    }
}

impl<R> Batch<'_, R> {
    /// The records, in their order.
    #[must_use]
    pub fn records(&self) -> &[R] {
        &self.taken.records
    }

    /// The load of the records is acknowledged.
    pub fn stored(mut self) {
        self.end(&self.backlog.options.stored);
    }

    /// The load of the records failed: they come again, or are given up after too many attempts.
    pub fn failed(mut self) {
        self.taken.attempts += 1;
        if self.taken.attempts >= self.backlog.options.attempts {
            self.end(&self.backlog.options.dropped);
        }
    }

    fn end(&mut self, counter: &IntCounter) {
        counter.inc_by(self.taken.records.len() as u64);
        self.taken.records.clear();
        self.taken.attempts = 0;
        self.backlog.waiting.lock().taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Text(&'static str);

    impl BacklogRecord for Text {
        fn bytes(&self) -> usize {
            self.0.len()
        }
    }

    fn backlog() -> Backlog<Text> {
        let counter = |name: &str| IntCounter::new(name, "a counter").expect("a name");
        Backlog::new(BacklogOptions {
            records: 3,
            bytes: 10,
            batch_bytes: 4,
            attempts: 2,
            stored: counter("stored"),
            dropped: counter("dropped"),
        })
    }

    #[tokio::test]
    async fn a_batch_comes_again_until_it_is_stored_or_given_up() {
        let backlog = backlog();
        for text in ["ab", "cd", "ef"] {
            assert_eq!(backlog.push(Text(text)), None);
        }
        assert_eq!(backlog.push(Text("gh")), Some(Text("gh")), "three records wait at most");
        let batch = backlog.next().await.expect("records wait");
        assert_eq!(batch.records(), [Text("ab"), Text("cd")], "four bytes are a batch");
        // Others may wait meanwhile, and a caller that goes away leaves the batch.
        assert_eq!(backlog.push(Text("gh")), None);
        drop(batch);
        assert_eq!(backlog.outstanding(), 4);
        backlog.next().await.expect("it is not stored").failed();
        let batch = backlog.next().await.expect("it is not stored");
        assert_eq!(batch.records(), [Text("ab"), Text("cd")]);
        batch.failed();
        assert_eq!((backlog.options.dropped.get(), backlog.outstanding()), (2, 2));
        let batch = backlog.next().await.expect("others wait");
        assert_eq!(batch.records(), [Text("ef"), Text("gh")]);
        batch.stored();
        assert_eq!((backlog.options.stored.get(), backlog.outstanding()), (2, 0));
        assert!(backlog.next().await.is_none());
    }

    #[tokio::test]
    async fn bytes_are_bounded_but_for_one_record() {
        let backlog = backlog();
        assert_eq!(backlog.push(Text("longer than ten bytes")), None);
        let rejected = backlog.push(Text("a")).expect("the bytes are taken");
        backlog.give_up(rejected);
        backlog.close().await;
        assert_eq!((backlog.options.dropped.get(), backlog.outstanding()), (2, 0));
        assert_eq!(backlog.push(Text("a")), None, "there is place again");
    }
}
