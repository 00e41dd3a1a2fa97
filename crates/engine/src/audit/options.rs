//! Settings of the audit log.
//!
//! Not here: their names and defaults, which are the server's.

use crate::line_files::LineFiles;
use std::path::PathBuf;

/// `audit_plugin_max_sql_length` of Doris.
pub(crate) const TEXT_BYTES_DEFAULT: usize = 4096;

/// The effect on a request whose record finds no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It runs, and the missing record is counted.
    #[default]
    Drop,
    /// It does not run; the client may retry it.
    Refuse,
}

/// Settings of the audit log.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The directory of the file; `None`: no file.
    pub directory: Option<PathBuf>,
    /// A file that would become larger is renamed, and another one begun.
    pub file_bytes: u64,
    /// Number of files, with the one that is written.
    pub files: u64,
    /// Records that wait to be written; with [`WhenFull::Refuse`], including those of running requests.
    pub queue_records: usize,
    pub when_full: WhenFull,
    /// Whether the table is written from the start.
    pub has_table: bool,
    /// Days whose records the table retains.
    pub table_days: u64,
}

impl AuditOptions {
    /// The files, if there are some.
    pub(super) fn line_files(&self) -> Option<LineFiles> {
        let directory = self.directory.clone()?;
        Some(LineFiles::new(directory, "audit.log", self.file_bytes, self.files))
    }
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            directory: None,
            file_bytes: 64 << 20,
            files: 10,
            queue_records: 16_384,
            when_full: WhenFull::Drop,
            has_table: false,
            table_days: 30,
        }
    }
}
