//! Labels of loads: the catalog as the place where they and the positions of sources survive the log, and the statements about them.

use crate::access::Privilege;
use crate::load::Loads;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tributary_catalog::{Catalog, CatalogError, PositionRecord, TxnRecord};
use tributary_ingest::{LabelStore, SchemaHistory, SourcePosition, TransactionInfo};
use tributary_types::{ErrorCode, Principal, SchemaVersion, SqlError, TableId, TableSchema, TxnId, Version};

/// Limit on the labels that one server retains; the oldest are forgotten first.
const KEPT_LABELS_MAX: u64 = 1_000_000;

pub(crate) struct CatalogLabels {
    pub catalog: Arc<Catalog>,
    /// The id of the node whose transactions they are.
    pub node: String,
}

impl fmt::Debug for CatalogLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CatalogLabels")
    }
}

#[async_trait]
impl LabelStore for CatalogLabels {
    async fn record(&self, finished: &[TransactionInfo], positions: &[SourcePosition]) -> Result<(), String> {
        let text = |error: CatalogError| error.to_string();
        let records: Vec<TxnRecord> = finished.iter().map(record).collect();
        self.catalog.record_transactions(&self.node, &records).await.map_err(text)?;
        let position = |known: &SourcePosition| PositionRecord {
            source: known.source,
            txn: known.txn,
            position: known.position.clone(),
        };
        let positions: Vec<PositionRecord> = positions.iter().map(position).collect();
        self.catalog.record_positions(&self.node, &positions).await.map_err(text)
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        let records = self.catalog.kept_transactions(&self.node).await.map_err(|error| error.to_string())?;
        Ok(records.into_iter().map(info).collect())
    }

    async fn freed(&self) -> Result<Vec<TxnId>, String> {
        self.catalog.freed_transactions(&self.node).await.map_err(|error| error.to_string())
    }

    async fn positions(&self) -> Result<Vec<SourcePosition>, String> {
        let kept = self.catalog.positions(&self.node).await.map_err(|error| error.to_string())?;
        let position = |PositionRecord { source, txn, position }| SourcePosition { source, txn, position };
        Ok(kept.into_iter().map(position).collect())
    }

    async fn purge(&self, before_ms: i64) -> Result<(), String> {
        let purged = self.catalog.purge_transactions(&self.node, before_ms, KEPT_LABELS_MAX).await;
        purged.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// The schemas that the catalog's tables ever had.
pub(crate) struct CatalogSchemas(pub Arc<Catalog>);

impl SchemaHistory for CatalogSchemas {
    fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>> {
        self.0.schema(table, version)
    }
}

impl Loads {
    /// Frees labels of finished loads: one, or all of the database. A label that nothing has is free already.
    ///
    /// # Errors
    /// The load of that label has not ended; no privilege; labels can't be stored.
    pub(crate) async fn clean_labels(
        &self,
        principal: &Principal,
        db: &str,
        label: Option<&str>,
    ) -> Result<(), SqlError> {
        let id = self.gate.database(principal, Privilege::Load, db)?;
        let known = label.and_then(|label| self.ingest.transactions().by_label(id, label));
        if let Some(running) = known.filter(|info| info.label_is_kept && !info.status.is_final()) {
            return Err(refused(format!(
                "Label [{}] is that of txn [{}], which is {} and has not ended; labels of finished loads can be cleaned",
                running.label,
                running.txn,
                running.status.name()
            )));
        }
        self.ingest.clean_labels(id, label).await?;
        Ok(())
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

fn record(info: &TransactionInfo) -> TxnRecord {
    TxnRecord {
        txn_id: info.txn,
        db_id: info.db,
        table_id: info.table,
        table: info.table_ref.clone(),
        label: info.label.clone(),
        label_is_kept: info.label_is_kept,
        kind: info.kind,
        status: info.status,
        loads: info.loads,
        rows: info.rows,
        bytes: info.bytes,
        prepared_at_ms: info.prepared_at_ms,
        precommitted_at_ms: info.precommitted_at_ms,
        finished_at_ms: info.finished_at_ms,
        reason: info.reason.clone(),
        attachment: info.attachment.clone(),
    }
}

fn info(record: TxnRecord) -> TransactionInfo {
    TransactionInfo {
        txn: record.txn_id,
        db: record.db_id,
        table: record.table_id,
        table_ref: record.table,
        label: record.label,
        label_is_kept: record.label_is_kept,
        kind: record.kind,
        status: record.status,
        prepared_at_ms: record.prepared_at_ms,
        precommitted_at_ms: record.precommitted_at_ms,
        finished_at_ms: record.finished_at_ms,
        reason: record.reason,
        source: None,
        attachment: record.attachment,
        loads: record.loads,
        rows: record.rows,
        bytes: record.bytes,
        // Of what it made, the log tells as long as it has its rows.
        version: Version(0),
    }
}
