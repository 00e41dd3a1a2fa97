//! A table as a transaction sees it before its commit: with the transaction's own rows.
//!
//! They are published onto a private copy of the table, by the rules and the code of any publication. Not the business of this
//! module: which rows a transaction has, and their commit.

use crate::error::TableError;
use crate::log::LogState;
use crate::table::delta_versions::DeltaVersions;
use crate::table::publish::publication::Publication;
use crate::table::stuck::Failures;
use crate::table::{Table, Unflushed, UniqueKeys};
use crate::view::snapshot::Snapshot;
use arc_swap::ArcSwap;
use arrow::array::RecordBatch;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{Lsn, TableSchema};

/// A private copy of a table, to which rows are added that no other reader sees. It has the snapshot of its creation, and is
/// neither flushed nor changed otherwise.
pub struct OwnRows {
    table: Arc<Table>,
    base: Arc<Snapshot>,
}

impl OwnRows {
    /// A copy with the rows that were published before the call.
    ///
    /// # Errors
    /// Those of [`Table::settled`].
    pub async fn over(table: &Table) -> Result<Self, TableError> {
        let (base, unique) = match &table.unique {
            None => (table.snapshot(), None),
            Some(unique) => {
                let _folding = unique.folding.read().await;
                if unique.in_doubt.load(Ordering::Acquire) {
                    table.end_doubt(&mut *table.lock_log().await?).await?;
                }
                table.settle_others_if_possible().await;
                let mut keys = unique.keys.lock().await;
                let (base, epoch) = table.settle_in_epoch(&mut keys).await?;
                let copy = UniqueKeys {
                    keys: tokio::sync::Mutex::new(keys.copy_of(epoch)),
                    next_row: AtomicU64::new(unique.next_row.load(Ordering::Relaxed)),
                    ..UniqueKeys::default()
                };
                (base, Some(copy))
            }
        };
        let unflushed = Unflushed { settled_parts: base.memtable.len(), ..Unflushed::default() };
        let copy = Table {
            root: Arc::clone(&table.root),
            id: table.id,
            snapshot: ArcSwap::new(Arc::clone(&base)),
            unflushed: Ranked::new(Rank::Unflushed, unflushed),
            rewriter: tokio::sync::Mutex::new(LogState::of_no_log()),
            unique,
            persisted: AtomicU64::new(table.persisted_version().0),
            delta_versions: parking_lot::Mutex::new(DeltaVersions::at_open(base.version, base.delta_version)),
            // Nothing may be written for it.
            closed: AtomicBool::new(true),
            changing: AtomicBool::new(false),
            keeps_all_files: AtomicBool::new(false),
            updates: AtomicUsize::new(0),
            copies: AtomicUsize::new(0),
            bounds: parking_lot::Mutex::default(),
            followed: None,
            failures: Failures::default(),
            sender: parking_lot::Mutex::default(),
        };
        Ok(Self { table: Arc::new(copy), base })
    }

    /// The copy, for readers.
    #[must_use]
    pub const fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the table has the rows and the definition still that it had when it was copied.
    #[must_use]
    pub fn is_current(&self, table: &Table) -> bool {
        let now = table.snapshot.load();
        now.version == self.base.version
            && Arc::ptr_eq(&now.def, &self.base.def)
            && Arc::ptr_eq(&now.files, &self.base.files)
    }

    /// Adds rows, which follow all others.
    ///
    /// # Errors
    /// [`TableError::SchemaMismatch`]: the rows can't be adapted to the table's schema.
    pub fn add(&self, schema: &Arc<TableSchema>, batches: Vec<RecordBatch>) -> Result<(), TableError> {
        self.table.publish(Publication {
            version: self.table.snapshot().version.next(),
            schema: Arc::clone(schema),
            batches,
            files: Vec::new(),
            replaces: None,
            partitions: None,
            lsn: Lsn(0),
        })
    }
}

impl fmt::Debug for OwnRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnRows").field("table", &self.table.id).field("version", &self.base.version).finish()
    }
}
