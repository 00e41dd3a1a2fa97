//! The logs and the tables as a backup copies them: as they are at one moment.
//!
//! Invariant: a copy of a [`Moment`], taken while its [`KeptLogs`] exist and the store keeps its files, together with the catalog
//! as it was then, is what a server that was killed at that moment would have left: every load that was acknowledged before is in
//! it, none that began later, and a start recovers it like after any crash.
//!
//! Not its business: the catalog, and where the copies go.

use crate::error::IngestError;
use crate::ingest::Ingest;
use std::path::{Path, PathBuf};
use tributary_table::TableCut;
use tributary_wal::{Cut, Wal};

/// No log is released, and no file of idempotency keys or rejected rows is removed, as long as this exists.
#[derive(Debug)]
#[must_use]
pub struct KeptLogs<'a> {
    _releasing: tokio::sync::RwLockWriteGuard<'a, ()>,
}

/// The logs and tables at one moment.
#[derive(Clone)]
pub struct Moment {
    /// In the order of the logs' directories in the options; retired logs come last.
    pub logs: Vec<Cut>,
    /// In the order of the tables' ids.
    pub tables: Vec<TableCut>,
}

impl Ingest {
    /// Waits for a release that is under way and admits no other until the value is dropped.
    pub async fn keep_logs(&self) -> KeptLogs<'_> {
        KeptLogs { _releasing: self.releasing.write().await }
    }

    /// The logs and tables at one moment, at which `seen` is called. Loads wait meanwhile, for microseconds. Blocks the thread
    /// while a frame is written.
    ///
    /// # Errors
    /// [`IngestError::ShuttingDown`] if a log has ended.
    pub fn moment(&self, _kept: &KeptLogs<'_>, seen: impl FnOnce()) -> Result<Moment, IngestError> {
        let logs: Vec<&Wal> = self.spaces.iter().map(|space| &space.wal).collect();
        let moment = tributary_wal::at_rest(&logs, |logs| {
            let tables = self.tables_at_rest();
            seen();
            Moment { logs, tables }
        });
        moment.ok_or(IngestError::ShuttingDown)
    }

    /// The tables as they are about now: not at one moment.
    #[must_use]
    pub fn cuts(&self) -> Vec<TableCut> {
        self.tables().iter().map(|table| table.cut()).collect()
    }

    /// The tables while no log writes. Their Delta logs may be written, so they are looked at until none was.
    fn tables_at_rest(&self) -> Vec<TableCut> {
        let tables = self.tables();
        loop {
            let cuts: Vec<TableCut> = tables.iter().map(|table| table.cut()).collect();
            if tables.iter().zip(&cuts).all(|(table, cut)| table.is_at(cut)) {
                return cuts;
            }
        }
    }

    /// The directories of the logs, in the order of [`Moment::logs`].
    #[must_use]
    pub fn log_dirs(&self) -> Vec<PathBuf> {
        self.spaces.iter().map(|space| space.dir.clone()).collect()
    }

    /// The directory of the files of idempotency keys.
    #[must_use]
    pub fn keys_dir(&self) -> &Path {
        &self.options.keys_dir
    }

    /// The directory of the files of rejected rows.
    #[must_use]
    pub fn rejected_dir(&self) -> &Path {
        &self.options.rejected_dir
    }
}
