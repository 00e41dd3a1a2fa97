//! Jobs that load from sources, and their progress. Both belong to the node that runs the job.
//!
//! Not its business: the contents of a definition or a progress; these are the caller's text.

use crate::catalog::{Catalog, Result};
use tributary_types::{Attachment, SourceId, TxnId};

/// A job's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The job is the source of its loads.
    pub id: SourceId,
    pub definition: String,
}

/// The progress of a source's loads, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionRecord {
    pub source: SourceId,
    /// The transaction of the last load.
    pub txn: TxnId,
    pub position: Attachment,
}

impl Catalog {
    /// An id for a new job. It is never assigned again, to a job or to a table.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn next_job_id(&self) -> Result<SourceId> {
        Ok(SourceId(self.next_table_id().await?.0))
    }

    /// Stores a job of a node, and replaces its earlier record.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn put_job(&self, node: &str, job: &JobRecord) -> Result<()> {
        self.store().put_job(node, job).await
    }

    /// The jobs of a node, in the order of their ids.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn jobs(&self, node: &str) -> Result<Vec<JobRecord>> {
        self.store().jobs(node).await
    }

    /// Forgets a job of a node and its position.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn delete_job(&self, node: &str, id: SourceId) -> Result<()> {
        self.store().delete_job(node, id).await
    }

    /// Keeps positions of a node's sources, each in place of the one before, in one write.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`]; then none is stored.
    pub async fn record_positions(&self, node: &str, positions: &[PositionRecord]) -> Result<()> {
        if positions.is_empty() {
            return Ok(());
        }
        self.store().put_positions(node, positions).await
    }

    /// The positions of a node's sources.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn positions(&self, node: &str) -> Result<Vec<PositionRecord>> {
        self.store().positions(node).await
    }
}
