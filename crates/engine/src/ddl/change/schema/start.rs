//! Jobs that a stop of the server interrupted.

use super::record::Record;
use crate::background::Record as _;
use crate::engine::Engine;
use crate::node::start_error::StartError;
use std::sync::Arc;
use tributary_catalog::{Catalog, JobRecord};
use tributary_table::{TableStore, changed_def};
use tributary_types::{SqlError, host};

/// Updates the catalog to the Delta logs, before any table is opened: for jobs that were interrupted between the two.
///
/// # Errors
/// A log or the catalog can't be read or written.
pub(crate) async fn complete(catalog: &Catalog, store: &TableStore, node: &str) -> Result<(), StartError> {
    for JobRecord { id, definition } in catalog.jobs(node).await? {
        let Some(mut record) = Record::read(&definition).filter(|record| record.finished_ms.is_none()) else {
            continue;
        };
        let Some(current) = catalog.table_by_id(record.table_id()) else { continue };
        let new = changed_def(&record.target, &current);
        if store.last_schema_change(&new).await? != Some(id.0) {
            continue;
        }
        if new != *current {
            tracing::info!(job = id.0, table = %new.table_ref(), "a schema change that was cut off is completed");
            catalog.replace_table_def(&current, new).await?;
        }
        record.finish(host::unix_ms());
        catalog.put_job(node, &JobRecord { id, definition: record.written() }).await?;
    }
    Ok(())
}

impl Engine {
    /// Resumes the jobs of the last run: unfinished ones restart.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume_schema_changes(self: &Arc<Self>) -> Result<(), SqlError> {
        for job in self.schema_changes.read_kept().await? {
            if !job.has_ended() && self.schema_changes.begins_again(&job).await {
                self.spawn_schema_change(job);
            }
        }
        Ok(())
    }
}
