//! The log with its threads: a writer that takes all that is pending, makes it durable at once and tells
//! everyone who waits, and a keeper that prepares and recycles segment files beside it. A lone submission may be
//! written by the thread that brings it ([`Offered::write_here`]).
//!
//! Invariant: submissions are written and answered in the order in which they were submitted, because whoever
//! takes them from the queue has the core; an answer `Ok` means durable. Not its business: how much may be
//! pending ([`Wal::pending_bytes`] tells those who decide).

mod keeper;
mod queue;
mod simulated;
#[cfg(test)]
mod tests;
mod writer;

use crate::core::{LogCore, stats_of};
use crate::disk::Disk;
use crate::entry::{Appended, Entry};
use crate::error::WalError;
use crate::frame::Size;
use crate::inventory::Inventory;
use crate::options::WalOptions;
use crate::recovery::Recovered;
use crate::segment::format::FRAME_PAYLOAD_BYTES_MAX;
use crate::stats::{Counters, WalStats};
use keeper::Keeper;
use parking_lot::Mutex;
use queue::{Queue, Stands, Submission};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tributary_types::{Lsn, host};

/// A log that is open for writing. Clones are the same log; when the last one is dropped it shuts down.
#[derive(Clone)]
pub struct Wal {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
    writer: std::thread::ThreadId,
}

struct Threads {
    writer: JoinHandle<()>,
    keeper: JoinHandle<()>,
}

/// What the threads and the handles share.
struct Shared {
    queue: Queue,
    /// Of whoever writes. None when the log has ended.
    core: Mutex<Option<LogCore>>,
    /// The last frame had one submission only: there may be only one client.
    is_calm: AtomicBool,
    may_write_here: bool,
    has_failed: AtomicBool,
    keeper: Keeper,
    counters: Arc<Counters>,
    inventory: Arc<Inventory>,
    dir: PathBuf,
    options: WalOptions,
}

impl Wal {
    /// Opens the directory (creating it if need be), locks it and reads the heads of its segments. The result
    /// is to be read and then started.
    ///
    /// # Errors
    /// [`WalError::Locked`], [`WalError::Damaged`], [`WalError::UnknownFormat`], [`WalError::BadOption`],
    /// [`WalError::Io`].
    pub fn recover(disk: Arc<dyn Disk>, dir: &Path, options: WalOptions) -> Result<Recovered, WalError> {
        Recovered::open(disk, dir, options)
    }

    pub(crate) fn spawn(core: LogCore, dir: PathBuf, options: WalOptions) -> Result<Self, WalError> {
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            counters: core.counters(),
            inventory: core.inventory(),
            core: Mutex::new(Some(core)),
            is_calm: AtomicBool::new(true),
            may_write_here: options.may_write_here.unwrap_or_else(|| {
                std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1)
            }),
            has_failed: AtomicBool::new(false),
            keeper: Keeper::default(),
            dir,
            options,
        });
        if let Some(host) = host::simulated() {
            simulated::spawn(&*host, &shared);
            let writer = std::thread::current().id();
            return Ok(Self { inner: Arc::new(Inner { shared, threads: Mutex::new(None), writer }) });
        }
        let keeper = spawn_thread("wal-keeper", &shared, keeper::run)?;
        let writer =
            spawn_thread("wal-writer", &shared, writer::run).inspect_err(|_| shared.keeper.stop())?;
        let id = writer.thread().id();
        let threads = Mutex::new(Some(Threads { writer, keeper }));
        Ok(Self { inner: Arc::new(Inner { shared, threads, writer: id }) })
    }

    /// Hands over entries, which are kept together and in order, and returns at once. `done` is called when
    /// they are durable, by whoever wrote them, in the order of submissions: it must be quick, must not wait for
    /// the log, nor shut it down. A submission without entries is answered when everything before it is durable.
    ///
    /// Entries that can never be written ([`WalError::TooLarge`], [`WalError::Closed`], [`WalError::Failed`])
    /// are answered on the calling thread, before this returns. [`WalError::NoSpace`] comes in order, for everything
    /// that was submitted before it is answered: nothing overtakes what found no space. Later submissions are tried
    /// again. After an error of one submission others may succeed.
    pub fn submit(&self, entries: Vec<Entry>, done: Done) {
        self.offer(entries, done).hand_over();
    }

    /// Like [`Wal::submit`], for callers that hold a lock which `done` takes too: the submission has its place in
    /// the order, and nothing is answered on the calling thread before the caller says so, with the lock free.
    pub fn offer(&self, entries: Vec<Entry>, done: Done) -> Offered<'_> {
        let shared = &*self.inner.shared;
        let size = Size::of(&entries);
        let submission = Submission::new(entries, size, done);
        if !size.fits_a_frame() {
            let error = WalError::TooLarge { bytes: size.payload_bytes, limit: FRAME_PAYLOAD_BYTES_MAX };
            return Offered { shared, stands: Stands::Refused(submission, error) };
        }
        Offered { shared, stands: shared.queue.push(submission) }
    }

    /// Appends entries; they are durable on return.
    ///
    /// # Errors
    /// [`WalError::NoSpace`], [`WalError::TooLarge`], [`WalError::Closed`]: the entries are not in the log.
    /// [`WalError::Failed`]: whether they are will be known when the log is opened again.
    pub async fn append(&self, entries: Vec<Entry>) -> Result<Appended, WalError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // A caller that went away does not wait for the answer.
        self.submit(entries, Box::new(move |result| drop(sender.send(result))));
        // Only after a panic nobody is answered: whether the entries are in the log is unknown.
        let shared = &self.inner.shared;
        receiver
            .await
            .unwrap_or_else(|_| Err(shared.queue.failure().unwrap_or_else(|| writer::panicked(shared))))
    }

    /// Everything below `lsn` is no longer needed. Segments that end at or before it are recycled soon after,
    /// by another thread. Not durable in itself: after a restart everything comes again that is in a segment
    /// that holds anything at or above `lsn`, or that was not recycled yet. Values beyond the end count as the
    /// end; smaller values than before change nothing.
    pub fn release(&self, lsn: Lsn) {
        let shared = &self.inner.shared;
        let released = shared.counters.release(lsn);
        if shared.inventory.can_recycle(released) {
            shared.keeper.recycle();
        }
    }

    /// Raises the value that new segments have in their headers: the next transaction id. It is always greater
    /// than the transaction ids of all entries in older segments, without any call; this is for ids that no
    /// entry has. After a restart [`crate::Extent::header_value`] is greater than the transaction id of
    /// every entry that ever became durable, released or not. A value set here is durable with the next segment.
    pub fn set_header_value(&self, value: u64) {
        self.inner.shared.counters.header_value.fetch_max(value, Relaxed);
    }

    /// What the log holds and has done.
    #[must_use]
    pub fn stats(&self) -> WalStats {
        stats_of(&self.inner.shared.counters, &self.inner.shared.inventory)
    }

    /// Bytes of frames that are not released yet, as in [`Wal::stats`], for two looks at a number.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.inner.shared.counters.live_bytes()
    }

    /// The end of the log: everything before it is durable.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        self.inner.shared.counters.end()
    }

    /// Bytes that were submitted and are not durable yet.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.inner.shared.queue.pending_bytes()
    }

    /// Whether nothing is submitted that is not durable yet.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inner.shared.queue.is_idle()
    }

    /// The log's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.shared.dir
    }

    /// Takes no more entries, writes what is pending and answers it, and ends the threads. On return the
    /// directory is unlocked. (When a `done` drops the last handle on the writer thread, that does not wait for
    /// the end.)
    pub fn shutdown(&self) {
        self.inner.shutdown();
    }
}

/// Called once with the outcome of a submission.
pub type Done = Box<dyn FnOnce(Result<Appended, WalError>) + Send>;

/// A submission that has its place in the log's order, or was refused. Dropped, it is handed over.
#[must_use = "the submission is written or answered when this is handed over"]
pub struct Offered<'a> {
    shared: &'a Shared,
    stands: Stands,
}

impl Offered<'_> {
    /// Leaves the submission to the writer thread. One that can never be written is answered now.
    pub fn hand_over(mut self) {
        self.go_on();
    }

    /// Writes the submission and makes it durable on the calling thread, with its `done`, if the log is
    /// otherwise idle and seems to stay so; else leaves it to the writer thread. Spares a lone client two changes
    /// of thread; who holds a lock that a `done` takes, or may not wait for the disk, must not call it.
    pub fn write_here(mut self) {
        if let Stands::Queued(number) = self.stands
            && writer::write_alone(self.shared, number)
        {
            self.stands = Stands::HandedOver;
        }
    }

    fn go_on(&mut self) {
        match std::mem::replace(&mut self.stands, Stands::HandedOver) {
            Stands::Queued(_) => self.shared.queue.wake_writer(),
            Stands::Refused(submission, error) => submission.answer(Err(error)),
            Stands::HandedOver => {}
        }
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        self.go_on();
    }
}

impl fmt::Debug for Offered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered").finish_non_exhaustive()
    }
}

impl Inner {
    fn shutdown(&self) {
        self.shared.queue.close(WalError::Closed);
        self.shared.keeper.stop();
        if std::thread::current().id() == self.writer {
            return;
        }
        let mut threads = self.threads.lock();
        if let Some(Threads { writer, keeper }) = threads.take() {
            for thread in [keeper, writer] {
                if thread.join().is_err() {
                    tracing::error!("a thread of the write-ahead log has panicked");
                }
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Shared {
    /// The log has failed: nothing is taken any more.
    fn fail(&self, error: &WalError) {
        self.queue.close(error.clone());
        if !self.has_failed.swap(true, Relaxed) {
            self.options.fail(error);
        }
    }
}

fn spawn_thread(
    name: &str,
    shared: &Arc<Shared>,
    run: impl FnOnce(&Shared) + Send + 'static,
) -> Result<JoinHandle<()>, WalError> {
    let with = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&with))
        .map_err(|error| WalError::io("start a thread for", &shared.dir, error))
}
