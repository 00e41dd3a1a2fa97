//! Completes changes that a crash or a stop interrupted between the Delta log and the catalog.

use crate::change::{Change, Effect};
use crate::run::{Finished, Records};
use async_trait::async_trait;
use std::sync::Arc;
use tributary_table::{TableError, TableStore};
use tributary_types::TableDef;

/// The Delta logs, as seen by a start.
#[async_trait]
pub trait Logs: Send + Sync {
    /// The number of the last change that the table's log has.
    ///
    /// # Errors
    /// If it can't be read.
    async fn last_change(&self, def: &TableDef) -> Result<Option<u64>, TableError>;
}

#[async_trait]
impl Logs for TableStore {
    async fn last_change(&self, def: &TableDef) -> Result<Option<u64>, TableError> {
        self.last_schema_change(def).await
    }
}

/// The reason why a change could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum Incomplete {
    /// The catalog can't be written.
    #[error("the catalog has failed: {0}")]
    Catalog(String),
    #[error("{0}")]
    Log(TableError),
}

/// Brings the catalog to the changes that the Delta logs have, before any table is opened: `changes` are the ones whose records
/// have not ended. Others are abandoned.
///
/// # Errors
/// If a log or the catalog can't be read or written. It can be retried.
pub async fn complete(
    records: &dyn Records,
    logs: &dyn Logs,
    changes: Vec<Change>,
) -> Result<(), Incomplete> {
    for change in changes {
        match finished(records, logs, change).await? {
            Ok(finished) => {
                let (before, after) = &finished.table;
                if **before != *after {
                    tracing::info!(change = finished.change.id.0, table = %after.table_ref(), "a change that was cut off is completed");
                }
                records.finish(&finished).await.map_err(Incomplete::Catalog)?;
            }
            Err(nothing) => records.forget(&nothing).await.map_err(Incomplete::Catalog)?,
        }
    }
    Ok(())
}

/// The end of a change; an inner error means that it was abandoned.
async fn finished(
    records: &dyn Records,
    logs: &dyn Logs,
    change: Change,
) -> Result<Result<Finished, Change>, Incomplete> {
    let Some(current) = records.table(change.table) else { return Ok(Err(change)) };
    let is_in_log = logs.last_change(&current).await.map_err(Incomplete::Log)? == Some(change.id.0);
    let is_known = records.last_change(change.table) >= change.id || change.is_older_than(&current);
    let has_been = matches!(change.effect, Effect::Columns(_)) && is_known;
    if !is_in_log && !has_been {
        return Ok(Err(change));
    }
    let after = if is_known { TableDef::clone(&current) } else { change.definition(&current) };
    let beside = change.beside().filter(|_| !is_known).and_then(|beside| records.table(beside.table));
    let beside = beside.map(|def| {
        let left = change.definition_beside(&def);
        (def, left)
    });
    Ok(Ok(Finished { table: (Arc::clone(&current), after), beside, change }))
}
