//! A table as it is at one moment, to be copied while it goes on.
//!
//! Not its business: the write-ahead log of that moment, and the copying.

use crate::table::Table;
use crate::view::snapshot::Snapshot;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::{TableDef, TableId, Version};

/// A table at one moment: all that its copy needs beside the write-ahead log of that moment.
#[derive(Clone)]
pub struct TableCut {
    pub id: TableId,
    snapshot: Arc<Snapshot>,
    persisted: Version,
    /// Files of large loads, prepared ones among them, of dropped partitions that can be recovered, and files that left the
    /// snapshot before the Delta log had them. Some may still be written.
    beside: HashSet<String>,
    has_copies_on_the_way: bool,
}

impl TableCut {
    /// The version of the Delta log.
    #[must_use]
    pub fn delta_version(&self) -> i64 {
        self.snapshot.delta_version
    }

    /// The table's location below the storage root.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.snapshot.def.location
    }

    /// The table's definition.
    #[must_use]
    pub fn def(&self) -> Arc<TableDef> {
        Arc::clone(&self.snapshot.def)
    }

    /// The last version that queries see.
    #[must_use]
    pub fn version(&self) -> Version {
        self.snapshot.version
    }

    /// A version up to which the Delta log has all rows; it may have later ones.
    #[must_use]
    pub fn persisted(&self) -> Version {
        self.persisted
    }

    /// Whether the Delta log may have copies of files, without rows that were deleted, that queries do not see yet, or rows of
    /// partitions that they see no more: the number of its rows says nothing about theirs.
    #[must_use]
    pub const fn has_copies_on_the_way(&self) -> bool {
        self.has_copies_on_the_way
    }

    /// Rows that queries see. In a table whose rows supersede others there may be more, until they are settled.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.snapshot.rows()
    }

    /// Data files and deletion vectors that the version of the Delta log may lack, and perhaps files that are without use or not
    /// written yet.
    #[must_use]
    pub fn files(&self) -> HashSet<String> {
        let mut files = self.beside.clone();
        for live in self.snapshot.files.iter() {
            files.extend(live.deletes.as_ref().and_then(|deletes| deletes.path()));
            files.insert(live.path().to_owned());
        }
        files
    }
}

impl Table {
    /// The table at this moment. The caller keeps the write-ahead log at rest, so that nothing is published meanwhile. The Delta
    /// log may change, so the caller asks afterwards whether the table [is still there](Table::is_at).
    #[must_use]
    pub fn cut(&self) -> TableCut {
        let mut beside: HashSet<String> = {
            let unflushed = self.unflushed.lock();
            unflushed.left.iter().map(|left| left.path.clone()).collect()
        };
        beside.extend(self.root.unpublished.lock().iter().cloned());
        let persisted = self.persisted_version();
        let had_copies = self.has_copies_on_the_way();
        let snapshot = self.snapshot.load_full();
        let has_copies_on_the_way = had_copies || self.has_copies_on_the_way();
        TableCut { id: self.id, snapshot, persisted, beside, has_copies_on_the_way }
    }

    /// Whether the table's Delta log is where it was at the cut.
    #[must_use]
    pub fn is_at(&self, cut: &TableCut) -> bool {
        self.snapshot.load().delta_version == cut.delta_version()
    }
}
