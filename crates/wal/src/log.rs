//! The log with its threads: a writer that takes everything pending, makes it durable with one sync and answers all
//! submitters, and a keeper that prepares and recycles segment files meanwhile. A lone submission may be written by
//! the submitting thread ([`Offered::write_here`]).
//!
//! Invariant: submissions are written and answered in the order in which they were submitted, because only the
//! thread that holds the core takes them; an answer `Ok` means durable. Not its business: how much may be pending
//! (callers limit it by [`Wal::pending_bytes`]).

mod keeper;
mod pending;
mod simulated;
#[cfg(test)]
mod tests;
mod writer;

use crate::core::{LogCore, missing_space_of, stats_of};
use crate::disk::Disk;
use crate::entry::{Appended, Entry};
use crate::error::WalError;
use crate::frame::Size;
use crate::inventory::Inventory;
use crate::options::WalOptions;
use crate::recovery::{Extent, Recovered};
use crate::segment::format::FRAME_PAYLOAD_BYTES_MAX;
use crate::stats::{Counters, MissingSpace, WalStats};
use keeper::Keeper;
use parking_lot::Mutex;
use pending::{Pending, Place, Submission};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tributary_types::lock::{Rank, Ranked};
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

/// State shared by the threads and the handles.
pub(crate) struct Shared {
    pending: Pending,
    /// Held by the thread that is writing; `None` once the log has ended.
    pub(crate) core: Ranked<Option<LogCore>>,
    /// Whether the last frame had only one submission, so that there may be only one client.
    is_calm: AtomicBool,
    may_write_here: bool,
    has_failed: AtomicBool,
    keeper: Keeper,
    pub(crate) counters: Arc<Counters>,
    pub(crate) inventory: Arc<Inventory>,
    dir: PathBuf,
    options: WalOptions,
}

impl Wal {
    /// Opens a log for reading, see [`Recovered::open`].
    ///
    /// # Errors
    /// The errors of [`Recovered::open`].
    pub fn recover(disk: Arc<dyn Disk>, dir: &Path, options: WalOptions) -> Result<Recovered, WalError> {
        Recovered::open(disk, dir, options)
    }

    pub(crate) fn spawn(core: LogCore, dir: PathBuf, options: WalOptions) -> Result<Self, WalError> {
        let shared = Arc::new(Shared {
            pending: Pending::default(),
            counters: core.counters(),
            inventory: core.inventory(),
            core: Ranked::new(Rank::LogCore, Some(core)),
            is_calm: AtomicBool::new(true),
            may_write_here: options.may_write_here.unwrap_or_else(|| {
                std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1)
            }),
            has_failed: AtomicBool::new(false),
            keeper: Keeper::default(),
            dir,
            options,
        });
        if shared.inventory.announces() {
            // Segments of an earlier process.
            shared.keeper.announce();
        }
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

    /// Submits entries, which stay together and in order, and returns at once. `done` is called once they are durable,
    /// on the thread that wrote them, in the order of submissions. It must be quick and must neither wait for the log nor
    /// shut it down. A submission without entries is answered once everything before it is durable.
    ///
    /// Entries that can never be written ([`WalError::TooLarge`], [`WalError::Closed`], [`WalError::Failed`])
    /// are answered on the calling thread, before this returns. [`WalError::NoSpace`] is answered in order, together with
    /// everything that was submitted before that answer, so that nothing overtakes what found no space. Later
    /// submissions may succeed.
    pub fn submit(&self, entries: Vec<Entry>, done: Done) {
        self.offer(entries, done).hand_over();
    }

    /// Like [`Wal::submit`], for callers that hold a lock which `done` takes too. The submission has its place in
    /// the order at once, but nothing is answered on the calling thread until the caller has released the lock and
    /// used or dropped the returned value.
    pub fn offer(&self, entries: Vec<Entry>, done: Done) -> Offered<'_> {
        self.offer_as(entries, done, false)
    }

    /// Like [`Wal::offer`], for submissions that must not overtake an earlier one of the same caller that found no space:
    /// everything offered this way before the `done` of that one has run is refused with it.
    pub fn offer_in_order(&self, entries: Vec<Entry>, done: Done) -> Offered<'_> {
        self.offer_as(entries, done, true)
    }

    fn offer_as(&self, entries: Vec<Entry>, done: Done, in_order: bool) -> Offered<'_> {
        let shared = &*self.inner.shared;
        let size = Size::of(&entries);
        let submission = Submission::new(entries, size, done);
        if !size.fits_a_frame() {
            let error = WalError::TooLarge { bytes: size.payload_bytes, limit: FRAME_PAYLOAD_BYTES_MAX };
            return Offered { shared, place: Place::Refused(submission, error) };
        }
        Offered { shared, place: shared.pending.push(submission, in_order) }
    }

    /// Appends entries; they are durable on return.
    ///
    /// # Errors
    /// [`WalError::NoSpace`], [`WalError::TooLarge`], [`WalError::Closed`]: the entries are not in the log.
    /// [`WalError::Failed`]: whether they are will be known when the log is opened again.
    pub async fn append(&self, entries: Vec<Entry>) -> Result<Appended, WalError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // The caller may have stopped waiting for the answer.
        self.submit(entries, Box::new(move |result| drop(sender.send(result))));
        // Only a panic leaves a submission without an answer: whether its entries are in the log is unknown.
        let shared = &self.inner.shared;
        receiver
            .await
            .unwrap_or_else(|_| Err(shared.pending.failure().unwrap_or_else(|| writer::panicked(shared))))
    }

    /// Declares that nothing below `lsn` is needed any longer. Segments that end at or before it are recycled soon
    /// after, by another thread. A release is not durable in itself: after a restart, segments that hold anything at
    /// or above `lsn`, or were not recycled yet, are read back whole. A value beyond the end counts as the end; a
    /// value smaller than an earlier one changes nothing.
    pub fn release(&self, lsn: Lsn) {
        let shared = &self.inner.shared;
        let released = shared.counters.release(lsn);
        if shared.inventory.can_recycle(released) {
            shared.keeper.recycle();
        }
    }

    /// Counts everything below `lsn` as not live, as a release does, but keeps it: a segment that ends there stays, and is part of cuts,
    /// until it is released.
    pub fn discount(&self, lsn: Lsn) {
        self.inner.shared.counters.discount(lsn);
    }

    /// Whether a release up to `lsn` would free a segment.
    #[must_use]
    pub fn would_free(&self, lsn: Lsn) -> bool {
        self.inner.shared.inventory.can_recycle(lsn)
    }

    /// Raises the next transaction id, which the headers of new segments record. The log itself keeps it above the ids of all
    /// entries; this is for ids without an entry. After a restart [`crate::Extent::header_value`] is greater than the transaction
    /// id of every entry that ever became durable, released or not. A value set here is durable with the next segment.
    pub fn set_header_value(&self, value: u64) {
        self.inner.shared.counters.header_value.fetch_max(value, Relaxed);
    }

    /// The log's contents and activity in numbers.
    #[must_use]
    pub fn stats(&self) -> WalStats {
        stats_of(&self.inner.shared.counters, &self.inner.shared.inventory)
    }

    /// The space for which the last frame was refused, while the disk has less than it needed; `None` if the log takes frames, as
    /// far as is known.
    #[must_use]
    pub fn missing_space(&self) -> Option<MissingSpace> {
        missing_space_of(&self.inner.shared.counters, &self.inner.shared.inventory)
    }

    /// Bytes of frames that are live: [`WalStats::live_bytes`] without the other figures.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.inner.shared.counters.live_bytes()
    }

    /// The end of the log: everything before it is durable.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        self.inner.shared.counters.end()
    }

    /// Bytes that are submitted and not yet durable.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.inner.shared.pending.pending_bytes()
    }

    /// Waits until fewer than `bytes` bytes are submitted and not yet durable, or the log takes nothing any more.
    pub async fn drained_below(&self, bytes: u64) {
        self.inner.shared.pending.drained_below(bytes).await;
    }

    /// Whether everything that was submitted is durable.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inner.shared.pending.is_idle()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// The log's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.shared.dir
    }

    /// Stops accepting entries, writes and answers what is pending, and ends the threads. On return the directory is unlocked,
    /// except on the writer thread itself (a `done` that drops the last handle), which cannot wait for its own end.
    pub fn shutdown(&self) {
        self.inner.shutdown();
    }
}

/// A callback that gets the outcome of a submission, once.
pub type Done = Box<dyn FnOnce(Result<Appended, WalError>) + Send>;

/// A submission that has its place in the log's order, or was refused. Dropping it hands it over.
#[must_use = "the submission is written or answered when this is handed over"]
pub struct Offered<'a> {
    shared: &'a Shared,
    place: Place,
}

impl Offered<'_> {
    /// Leaves the submission to the writer thread. One that can never be written is answered now.
    pub fn hand_over(mut self) {
        self.proceed();
    }

    /// Writes the submission, makes it durable and runs its `done` on the calling thread if the log is idle and
    /// likely to stay so; otherwise leaves it to the writer thread. This spares a lone client two thread switches.
    /// Callers that hold a lock which a `done` takes, or that may not wait for the disk, must not use it.
    pub fn write_here(mut self) {
        if let Place::Pending(ordinal) = self.place
            && writer::write_alone(self.shared, ordinal)
        {
            self.place = Place::HandedOver;
        }
    }

    fn proceed(&mut self) {
        match std::mem::replace(&mut self.place, Place::HandedOver) {
            Place::Pending(_) => self.shared.pending.wake_writer(),
            Place::Refused(submission, error) => submission.answer(Err(error)),
            Place::HandedOver => {}
        }
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        self.proceed();
    }
}

impl fmt::Debug for Offered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered").finish_non_exhaustive()
    }
}

impl Recovered {
    /// Like [`Recovered::into_core`], and starts the log's threads.
    ///
    /// # Errors
    /// The errors of [`Recovered::into_core`]; [`WalError::Io`] if a thread cannot be started.
    pub fn start(self) -> Result<(Wal, Extent), WalError> {
        let options = self.options().clone();
        let dir = self.dir().to_owned();
        let (core, report) = self.into_core()?;
        Ok((Wal::spawn(core, dir, options)?, report))
    }
}

impl Inner {
    fn shutdown(&self) {
        self.shared.pending.close(WalError::Closed);
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
    /// Ends the log after a failure: from now on nothing is taken.
    fn fail(&self, error: &WalError) {
        self.pending.close(error.clone());
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
