//! Copy-on-write: in a table without deletion vectors, files with superseded or deleted rows are rewritten without them, in the
//! Delta entry that would otherwise have their vectors.
//!
//! The snapshot retains the old files and their deletes until the log has the entry, so an entry that fails, or that another
//! writer makes void, has changed nothing. Not the business of this module: which rows are superseded.

use crate::error::TableError;
use crate::file::{LiveFile, RowSet, publish_names};
use crate::log::LogState;
use crate::table::change::light::Replacement;
use crate::table::rewrite::commit::FileSet;
use crate::table::{Table, UniqueKeys};
use crate::view::evolve::civil_now_micros;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use tributary_types::{TableDef, Version};

impl Table {
    /// Rewrites the files whose deletes no log has, if the table has no deletion vectors, and replaces them in `files` by the new
    /// ones. `version` is that of the snapshot with the deletes. `None` if nothing has to be replaced.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Parquet`] and [`TableError::DamagedFile`]; `files` is as it was then.
    pub(in crate::table) async fn copy_changed(
        &self,
        def: &TableDef,
        version: Version,
        files: &mut FileSet,
    ) -> Result<Option<Replacement>, TableError> {
        if !def.properties.copies_on_write() {
            return Ok(None);
        }
        let is_changed = |live: &&LiveFile| live.deletes.as_ref().is_some_and(|deletes| !deletes.is_logged());
        let inputs: Vec<LiveFile> = files.values().filter(is_changed).cloned().collect();
        if inputs.is_empty() {
            return Ok(None);
        }
        let outputs = self.rewrite(&inputs, def, civil_now_micros()).await?;
        inputs.iter().for_each(|live| drop(files.remove(live.path())));
        files.extend(outputs.iter().map(|live| (live.path().to_owned(), live.clone())));
        Ok(Some(Replacement { inputs, outputs, version }))
    }

    /// Files that were replaced by copies which the log has after all, with the rows superseded in them since: the log's metadata
    /// of files cannot tell, for deletes that it never had. A copy has no row that was superseded before; it may have the
    /// superseding row, if it combines several files. `added` are the files that the log has gained since.
    pub(in crate::table) fn files_of_lost_copies(&self, added: &[LiveFile]) -> Vec<(LiveFile, RowSet)> {
        let Some(unique) = &self.unique else { return Vec::new() };
        let lost = unique.lost_copies.lock();
        let there = lost.iter().filter(|copies| is_in(copies, added));
        let inputs: HashMap<&str, &LiveFile> =
            there.flat_map(|copies| &copies.inputs).map(|live| (live.path(), live)).collect();
        let rows =
            |live: &LiveFile| live.deletes.as_ref().map(|deletes| deletes.rows().clone()).unwrap_or_default();
        let snapshot = self.snapshot();
        let shown = snapshot.files.iter().filter_map(|live| Some((live, *inputs.get(live.path())?)));
        shown.map(|(live, copied)| (live.clone(), rows(live) - rows(copied))).collect()
    }

    /// Removes from the lost copies those among these files, which the snapshot now has.
    pub(in crate::table) fn lost_copies_are_in(&self, added: &[LiveFile]) {
        if let Some(unique) = &self.unique {
            unique.lost_copies.lock().retain(|copies| !is_in(copies, added));
        }
    }

    /// Notes copies before their entry of the log is written.
    pub(in crate::table) fn copies_on_the_way(&self, copied: Option<Replacement>) -> OnTheWay<'_> {
        OnTheWay::new(self, copied, false)
    }
}

fn is_in(copies: &Replacement, files: &[LiveFile]) -> bool {
    copies.outputs.iter().any(|copy| files.iter().any(|live| live.path() == copy.path()))
}

/// Replacement files that are not in the log and the snapshot yet. If the entry fails, or its writer is gone before the answer
/// arrives, the log has them, or will have them, or not; if it does not, they may be swept.
pub(in crate::table) struct OnTheWay<'t> {
    table: &'t Table,
    copied: Option<Replacement>,
    is_logged: bool,
    _counted: Option<Counted<'t>>,
}

/// One of [`Table::copies`].
struct Counted<'t>(&'t AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The rows of partitions while these are dropped: queries see them no more, and the Delta log and the write-ahead log may have them until
/// this ends.
pub struct Departure<'t>(Counted<'t>);

impl Departure<'_> {
    /// The write-ahead log has the rows for as long as the process lives.
    pub fn stays(self) {
        self.0.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl<'t> OnTheWay<'t> {
    fn new(table: &'t Table, copied: Option<Replacement>, is_logged: bool) -> Self {
        let counted = copied.is_some().then(|| {
            table.copies.fetch_add(1, Ordering::AcqRel);
            Counted(&table.copies)
        });
        Self { table, copied, is_logged, _counted: counted }
    }

    /// Shows copied files in place of the old ones: the log has them.
    ///
    /// # Errors
    /// [`TableError::Storage`] and [`TableError::DamagedFile`]: the keys of a file could not be read. The snapshot has the old files until
    /// somebody takes the log's lock the next time.
    pub async fn arrived(mut self, state: &LogState) -> Result<(), TableError> {
        self.is_logged = true;
        let Some(copied) = &self.copied else { return Ok(()) };
        self.table.publish_copies(copied);
        self.table.swap_files(copied, state).await?;
        self.are_shown();
        Ok(())
    }

    pub(in crate::table) fn are_shown(mut self) {
        self.copied = None;
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        let Some(copied) = self.copied.take() else { return };
        self.table.publish_copies(&copied);
        let Some(unique) = &self.table.unique else { return };
        if self.is_logged {
            unique.unshown.lock().push(copied);
        } else {
            unique.lost_copies.lock().push(copied);
        }
    }
}

impl Table {
    /// Whether the Delta log may have copies in place of files that the snapshot still shows, or rows that it shows no more.
    pub(in crate::table) fn has_copies_on_the_way(&self) -> bool {
        let has_unshown =
            |unique: &UniqueKeys| !unique.unshown.lock().is_empty() || !unique.lost_copies.lock().is_empty();
        self.copies.load(Ordering::Acquire) > 0 || self.unique.as_ref().is_some_and(has_unshown)
    }

    fn publish_copies(&self, copied: &Replacement) {
        publish_names(&self.root, copied.outputs.iter().map(LiveFile::path));
    }

    /// Begins to drop partitions.
    #[must_use]
    pub fn departure(&self) -> Departure<'_> {
        self.copies.fetch_add(1, Ordering::AcqRel);
        Departure(Counted(&self.copies))
    }

    /// Notes files that the log has in place of others, until the snapshot has them.
    pub(in crate::table) fn logged_already(&self, replacement: Replacement) -> OnTheWay<'_> {
        let copied = Some(replacement).filter(|it| !it.inputs.is_empty() || !it.outputs.is_empty());
        OnTheWay::new(self, copied, true)
    }

    /// Shows what the log has and the snapshot does not, because reading keys failed when it was to be shown. Nothing may be written to the
    /// log before: an entry that was made of the snapshot would bring the old files back.
    ///
    /// # Errors
    /// As [`OnTheWay::arrived`].
    pub(in crate::table) async fn show_unshown(&self, state: &LogState) -> Result<(), TableError> {
        let Some(unique) = &self.unique else { return Ok(()) };
        loop {
            let Some(next) = unique.unshown.lock().first().cloned() else { return Ok(()) };
            self.swap_files(&next, state).await?;
            unique.unshown.lock().remove(0);
        }
    }
}
