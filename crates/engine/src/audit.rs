//! The audit log: a record of each request and login that has ended, as lines of a file and as rows for a table.
//!
//! Requests leave what is known about them in a [queue](queue::Queue); one thread makes [records](record::Record) of it, without
//! secrets, and hands them on. So a request pays for a copy of its facts only, and nothing at all while nobody wants records.
//!
//! Invariant: a request that leaves no record is counted, as dropped or as refused.
//!
//! Not here: who asked for what (that is where requests end), and the table, which is written like any other.

pub(crate) mod entry;
mod metrics;
pub(crate) mod options;
mod queue;
pub(crate) mod record;
mod writer;

use entry::Entry;
use metrics::AuditMetrics;
use options::{AuditOptions, WhenFull};
use parking_lot::Mutex;
use prometheus::Registry;
use queue::{Place, Queue};
use record::Record;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tributary_ingest::{Backlog, BacklogOptions};
use tributary_types::{ErrorCode, SqlError};

/// Bytes of records that wait for the table.
const ROWS_BYTES: usize = 32 << 20;
/// Bytes of the records of one load of the table.
const BATCH_BYTES: usize = 4 << 20;
/// How often a load of the table is tried.
const ATTEMPTS: u32 = 60;

/// The audit log of a server.
#[derive(Debug)]
pub(crate) struct Audit {
    shared: Arc<Shared>,
    /// Whether there is a file.
    has_file: bool,
    when_full: WhenFull,
    is_on: AtomicBool,
    /// Whether executions of prepared statements are recorded in all sessions.
    has_prepared: AtomicBool,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// State that the thread shares.
#[derive(Debug)]
struct Shared {
    options: AuditOptions,
    queue: Queue,
    /// Records for the table.
    rows: Arc<Backlog<Record>>,
    /// The longest statement in a record, in bytes.
    text_bytes_max: AtomicUsize,
    metrics: AuditMetrics,
}

/// The right of a request to leave a record.
#[derive(Debug)]
pub(crate) struct Admission {
    _place: Place,
}

impl Audit {
    /// An audit log with these options. Its thread runs if there is a file.
    ///
    /// # Errors
    /// The file can't be written, or a metric is registered twice.
    pub fn open(options: AuditOptions, registry: &Registry) -> Result<Self, AuditError> {
        if let (Some(files), Some(path)) = (options.line_files(), &options.directory) {
            files.check().map_err(|source| AuditError::Directory { path: path.clone(), source })?;
        }
        let (has_file, when_full) = (options.directory.is_some(), options.when_full);
        let metrics = AuditMetrics::new(registry)?;
        let shared = Arc::new(Shared {
            queue: Queue::new(options.queue_records),
            rows: Arc::new(Backlog::new(BacklogOptions {
                records: options.queue_records,
                bytes: ROWS_BYTES,
                batch_bytes: BATCH_BYTES,
                attempts: ATTEMPTS,
                stored: metrics.table_rows.clone(),
                dropped: metrics.dropped_from_table.clone(),
            })),
            text_bytes_max: AtomicUsize::new(options::TEXT_BYTES_DEFAULT),
            metrics,
            options,
        });
        let audit = Self {
            shared,
            has_file,
            when_full,
            is_on: AtomicBool::new(false),
            has_prepared: AtomicBool::new(false),
            writer: Mutex::default(),
        };
        if has_file {
            audit.begin();
        }
        Ok(audit)
    }

    /// Applies global variables: whether there are rows for the table, the longest statement of a record, and whether executions
    /// of prepared statements are recorded in all sessions.
    pub fn set(&self, has_table: bool, text_bytes_max: usize, has_prepared: bool) {
        self.shared.text_bytes_max.store(text_bytes_max, Ordering::Relaxed);
        self.has_prepared.store(has_prepared, Ordering::Relaxed);
        self.shared.rows.open(has_table);
        if has_table {
            self.begin();
        } else if !self.has_file {
            self.is_on.store(false, Ordering::Release);
        }
    }

    /// Begins to take records.
    fn begin(&self) {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("audit".to_owned());
            match thread.spawn(move || writer::run(&shared)) {
                Ok(thread) => *writer = Some(thread),
                // Without it the queue fills up, and the records that find no place are counted.
                Err(error) => tracing::error!(%error, "no thread for the audit log"),
            }
        }
        self.is_on.store(true, Ordering::Release);
    }

    /// Whether records are wanted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Whether executions of prepared statements are recorded whatever the session says.
    pub fn has_prepared(&self) -> bool {
        self.has_prepared.load(Ordering::Relaxed)
    }

    /// The longest statement in a record, in bytes.
    pub fn text_bytes_max(&self) -> usize {
        self.shared.text_bytes_max.load(Ordering::Relaxed)
    }

    /// Admits a request before it runs. `None`: it needs no admission.
    ///
    /// # Errors
    /// Its record would find no place, and requests without a record are to be refused.
    #[inline]
    pub fn admit(&self) -> Result<Option<Admission>, SqlError> {
        if self.when_full == WhenFull::Drop || !self.is_on() {
            return Ok(None);
        }
        self.reserve().map(Some)
    }

    fn reserve(&self) -> Result<Admission, SqlError> {
        match self.shared.queue.reserve() {
            Some(place) => Ok(Admission { _place: place }),
            None => {
                self.shared.metrics.refused.inc();
                Err(refusal())
            }
        }
    }

    /// Takes what is known about a request that has ended.
    pub fn push(&self, entry: Entry, admission: Option<Admission>) {
        if !self.shared.queue.push(entry, admission) {
            self.shared.metrics.dropped_from_queue.inc();
        }
    }

    /// The records for the table.
    pub fn rows(&self) -> &Arc<Backlog<Record>> {
        &self.shared.rows
    }

    /// Records that were lost since the start.
    pub fn lost(&self) -> u64 {
        let metrics = &self.shared.metrics;
        [&metrics.dropped_from_queue, &metrics.dropped_from_file, &metrics.dropped_from_table]
            .map(prometheus::core::GenericCounter::get)
            .iter()
            .sum()
    }

    /// Writes everything that waits, and ends the thread. Later records are dropped and counted.
    pub fn close(&self) {
        self.shared.queue.close();
        let writer = self.writer.lock().take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the thread of the audit log has panicked");
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

fn refusal() -> SqlError {
    SqlError::detail(
        ErrorCode::Busy,
        "the audit log can't take more records now, and nothing runs without one (setting audit_when_full); retry later",
    )
}

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error(
        "the audit log can't be written in {} (setting audit_log_dir): {source}; choose a directory that the server may write, or \
         leave the setting empty",
        path.display()
    )]
    Directory { path: std::path::PathBuf, source: io::Error },
    #[error("{0}")]
    Metrics(#[from] prometheus::Error),
}

#[cfg(test)]
mod tests;
