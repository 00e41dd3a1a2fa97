//! Jobs for SHOW ALTER TABLE COLUMN.

use super::record::State;
use crate::ddl::Ddl;
use std::sync::atomic::Ordering;
use tributary_query::SchemaChangeRow;

impl Ddl {
    /// The jobs of a database, oldest first.
    pub(crate) fn schema_change_rows(&self, db: &str) -> Vec<SchemaChangeRow> {
        let row = |job: &super::Job| {
            let record = job.record();
            let files = job.progress.files.lock();
            let progress = files.as_ref().filter(|_| record.state == State::Running);
            let progress = progress.map(|(converted, files)| {
                let converted = converted.load(Ordering::Relaxed);
                format!("{converted}/{}", files.max(&converted))
            });
            SchemaChangeRow {
                job: job.id,
                table: record.target.id,
                version: record.target.schema.version,
                created_ms: record.created_ms,
                finished_ms: record.finished_ms,
                txn: record.txn,
                state: record.state.name(),
                message: record.message.clone(),
                progress,
            }
        };
        self.schema_changes.of_db(db).iter().map(|job| row(job)).collect()
    }
}
