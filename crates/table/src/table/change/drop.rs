//! Partitions that are dropped for good while loads go on.
//!
//! The catalog's definition is without them first, with a mark ([`DropMark`]). Then the snapshot is, and an entry of the Delta log that
//! removes their files and says the mark's number; if the entry fails, the next flush has it. Until then the table notes the partitions
//! as they were before, and files of other engines are divided by these.
//!
//! Invariant: rows of marked partitions that the log has from before the entry are never visible after an opening with the mark, whatever files
//! they are in; and rows from after it always are. A mark whose number the log says is without effect.

use crate::error::TableError;
use crate::log::LogState;
use crate::table::Table;
use std::sync::Arc;
use tributary_types::Partitions;

#[cfg(doc)]
use tributary_types::DropMark;

impl Table {
    /// Whether partitions were dropped and the Delta log may have rows of them.
    #[must_use]
    pub fn is_dropping(&self) -> bool {
        self.unflushed.lock().dropping.is_some()
    }

    /// Brings the Delta log to the last drop of partitions, by a flush if it is behind.
    ///
    /// # Errors
    /// As [`Table::flush`].
    pub async fn complete_drop(&self) -> Result<(), TableError> {
        if !self.is_dropping() {
            return Ok(());
        }
        let mut state = self.lock_log().await?;
        if self.is_dropping() {
            // So that callers, who usually have nothing to complete, need no room for it.
            Box::pin(self.flush_racing(&mut state, None)).await?;
        }
        Ok(())
    }

    /// Completes the drop that the definition has a mark of, unless the log has it. For the opening of a table, before anybody sees its
    /// rows: another engine may have put those of the dropped partitions into files with others.
    pub(in crate::table) async fn complete_marked_drop(&self) -> Result<(), TableError> {
        let def = self.def();
        let Some(before) = def.partitions_before_drop() else { return Ok(()) };
        let mut state = self.lock_log().await?;
        self.forget_logged_drop(&state);
        if state.last_drop >= def.drop_mark.as_ref().map(|mark| mark.log_version) {
            return Ok(());
        }
        self.drops_from(Some(&Arc::new(before)));
        self.log_schema(&mut state, &def).await
    }

    /// Notes that partitions are dropped of which the log has rows. Returns what was noted before.
    pub(in crate::table) fn drops_from(&self, before: Option<&Arc<Partitions>>) -> Option<Arc<Partitions>> {
        let mut unflushed = self.unflushed.lock();
        let noted = unflushed.dropping.clone();
        unflushed.dropping = noted.clone().or_else(|| before.cloned());
        noted
    }

    /// Takes notice that the log has the marked drop: its entry's answer was lost.
    pub(in crate::table) fn forget_logged_drop(&self, state: &LogState) {
        let marked = self.with_def(|def| def.drop_mark.as_ref().map(|mark| mark.log_version));
        if marked.is_some() && state.last_drop >= marked {
            self.unflushed.lock().dropping = None;
        }
    }
}
