//! Errors of the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of the log. Cheap to clone: one failure answers many waiters.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WalError {
    /// Another process (or another log of this process) has the directory open.
    #[error(
        "the write-ahead log {} is in use by another server (its file LOCK is locked); \
         stop that server, or give this one another directory", dir.display()
    )]
    Locked { dir: PathBuf },

    /// Bytes that were acknowledged cannot be read back.
    #[error(
        "the write-ahead log is damaged: {} at byte {offset}: {reason}. Entries from there on were \
         acknowledged, and those that no data file has yet would be lost. Restore the directory from a \
         copy (or repair the disk) and start again; `tributary wal inspect` lists what is there, and \
         `tributary wal repair` goes on without what is damaged, with a backup", file.display()
    )]
    Damaged { file: PathBuf, offset: u64, reason: String },

    /// A segment written by a newer server.
    #[error(
        "{} has write-ahead log format {found}, this server reads format {supported}; start the \
         server version that wrote it", file.display()
    )]
    UnknownFormat { file: PathBuf, found: u32, supported: u32 },

    /// There is no space for these entries. They are not in the log and never will be; later ones may succeed.
    #[error(
        "no space for the write-ahead log in {}: {needed} bytes needed, {available} available; free disk \
         space, or let tables flush so that old segments are reused", dir.display()
    )]
    NoSpace { dir: PathBuf, needed: u64, available: u64 },

    /// One submission is larger than a frame can be.
    #[error(
        "{bytes} bytes in one submission to the write-ahead log, at most {limit} are possible; \
         split the load"
    )]
    TooLarge { bytes: u64, limit: u64 },

    /// A write or an fsync failed. Nothing has been or will be acknowledged since: the contents of the disk are unknown until the
    /// log is opened again.
    #[error(
        "the write-ahead log has failed and takes no more: {action} {}: {source}. Nothing after LSN {durable_lsn} \
         is acknowledged. Check the disk (dmesg, SMART), then restart the server: it replays the log",
        path.display()
    )]
    Failed { action: &'static str, path: PathBuf, durable_lsn: u64, source: Arc<io::Error> },

    /// An operation outside the append path failed; the log is not open.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },

    /// The log was shut down before these entries were submitted.
    #[error("the write-ahead log is shut down; entries are no longer taken")]
    Closed,

    /// An option has a value that cannot work.
    #[error("write-ahead log option {option} = {value}: {remedy}")]
    BadOption { option: &'static str, value: u64, remedy: &'static str },
}

impl WalError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn damaged(file: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_owned(), offset, reason: reason.into() }
    }

    /// Whether the log is unusable from now on.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// Whether the error says that the disk (or a quota) is full.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
