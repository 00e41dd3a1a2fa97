//! Partitions that are dropped for good while loads go on: `DROP PARTITION … FORCE`.
//!
//! Unlike a [`Change`](crate::Change) such a drop is in the catalog before it is in the Delta log. Its steps:
//!
//! 1. the catalog has a definition without the partitions and with a mark of them ([`marked`]);
//! 2. the table has that definition, and the log gets an entry that removes the partitions' files and says the mark's number; if it
//!    fails, the next flush has it;
//! 3. once the log has it, the mark is removed ([`end_drop`]). If the server ends before, the next start completes what is left when it
//!    opens the table.
//!
//! Partitions are added to a definition with a mark, or dropped, only after its drop was completed ([`complete_drop`]): so the rows of a
//! partition that takes the place of a dropped one are never taken for rows of that.

use crate::complete::Incomplete;
use async_trait::async_trait;
use std::sync::Arc;
use tributary_table::Table;
use tributary_types::{DropMark, Partitions, TableDef, TableId};

/// The catalog from the view of a drop.
#[async_trait]
pub trait Definitions: Send + Sync {
    /// The table's definition; `None` if the table no longer exists.
    fn table(&self, id: TableId) -> Option<Arc<TableDef>>;

    /// Replaces the definition of a table if it is `before`. Returns it as the catalog has it.
    ///
    /// # Errors
    /// The reason, in words. Nothing has changed, or the answer was lost.
    async fn replace(&self, before: &TableDef, after: TableDef) -> Result<Arc<TableDef>, String>;
}

/// The table's next definition, with the mark that belongs to it: of the partitions that it drops; without any, the one that the table
/// has.
#[must_use]
pub fn marked(table: &Table, new: TableDef, dropped: Option<&Partitions>) -> TableDef {
    let drop_mark = match dropped {
        Some(dropped) => {
            let log_version = u64::try_from(table.snapshot().delta_version).unwrap_or(0);
            Some(Arc::new(DropMark { log_version, partitions: dropped.list.clone() }))
        }
        None => table.with_def(|def| def.drop_mark.clone()),
    };
    TableDef { drop_mark, ..new }
}

/// Removes the mark of a drop that the Delta log has. Otherwise it stays, until the table's partitions change again or is opened again.
///
/// # Errors
/// The catalog has failed. It can be repeated.
pub async fn end_drop(definitions: &dyn Definitions, table: &Table) -> Result<(), Incomplete> {
    if table.is_dropping() { Ok(()) } else { unmark(definitions, table).await }
}

/// Completes the last drop in the Delta log, and removes its mark.
///
/// # Errors
/// The log or the catalog has failed. It can be repeated.
pub async fn complete_drop(definitions: &dyn Definitions, table: &Table) -> Result<(), Incomplete> {
    table.complete_drop().await.map_err(Incomplete::Log)?;
    unmark(definitions, table).await
}

async fn unmark(definitions: &dyn Definitions, table: &Table) -> Result<(), Incomplete> {
    let def = table.def();
    if def.drop_mark.is_none() {
        return Ok(());
    }
    let unmarked = TableDef { drop_mark: None, ..TableDef::clone(&def) };
    let unmarked = match definitions.table(def.id) {
        // The answer was lost.
        Some(kept) if *kept == unmarked => kept,
        _ => definitions.replace(&def, unmarked).await.map_err(Incomplete::Catalog)?,
    };
    table.alter(unmarked).await.map_err(Incomplete::Log)
}
