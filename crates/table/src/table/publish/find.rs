//! Finding the rows of single keys without reading data files.

use crate::error::{TableError, blocking};
use crate::file::{LiveFile, RowSet};
use crate::keys::hash::KeyHasher;
use crate::keys::{FileKeys, KeyReader};
use crate::place::root::TableRoot;
use crate::table::Table;
use crate::view::snapshot::Snapshot;
use arrow::array::ArrayRef;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::TableSchema;

/// Finds rows by their whole keys, in a table with one row for each key.
#[derive(Clone)]
pub struct KeyFinder {
    root: Arc<TableRoot>,
    schema: Arc<TableSchema>,
}

impl fmt::Debug for KeyFinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFinder").field("location", &self.root.log.location()).finish_non_exhaustive()
    }
}

impl Table {
    /// Creates a finder for the files of a snapshot. `None` if the table retains all rows, or if key files are not on this
    /// machine.
    #[must_use]
    pub fn key_finder(&self, snapshot: &Snapshot) -> Option<KeyFinder> {
        self.unique.as_ref()?;
        self.root.keys_directory()?;
        Some(KeyFinder { root: Arc::clone(&self.root), schema: Arc::clone(&snapshot.def.schema) })
    }
}

impl KeyFinder {
    /// The positions of the live rows with these keys in each of the files, or `None` where that is not known: any row may have
    /// one then. `keys` has the key columns in the order of the schema, in each one value for each key.
    ///
    /// # Errors
    /// [`TableError::Arrow`] for columns of other types.
    pub async fn find(
        &self,
        files: &[LiveFile],
        keys: &[ArrayRef],
    ) -> Result<Vec<Option<RowSet>>, TableError> {
        let mut hashes = KeyHasher::new(&self.schema)?.of_columns(keys)?;
        hashes.sort_unstable();
        hashes.dedup();
        let fingerprint = KeyReader::fingerprint(&self.schema);
        let paths: Vec<_> =
            files.iter().map(|live| (live.clone(), self.root.keys_path(live.path()))).collect();
        blocking("looking for keys", move || {
            let find = |(live, path): &(LiveFile, Option<PathBuf>)| {
                let kept = FileKeys::kept(path.as_ref()?, fingerprint, live.file.rows)?;
                let mut rows = RowSet::new();
                kept.find(hashes.iter().copied(), |_, keyed| rows.extend([u64::from(keyed.row)])).ok()?;
                Some(match &live.deletes {
                    Some(deletes) => rows - deletes.rows(),
                    None => rows,
                })
            };
            Ok(paths.iter().map(find).collect())
        })
        .await
    }
}
