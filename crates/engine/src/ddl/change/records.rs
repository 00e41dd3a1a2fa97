//! Changes that cross the Delta log, made by statements and jobs ([`tributary_ddl`]), and their view of the catalog.
//!
//! Invariant: the record of a change is among those of this node's jobs. A heavy schema change is a job, whose record is also
//! that of its change, and is retained after its end; other records are deleted with the change.
//!
//! Not its business: the effects of changes on tables, and the lock of changes.

use super::schema;
use super::switching::WAIT_MAX;
use crate::access::names::Names;
use crate::background::Record as _;
use crate::background::record::{Envelope, Unreadable};
use crate::ddl::Ddl;
use crate::ddl::tables::table_error;
use crate::node::start_error::StartError;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_catalog::{Catalog, CatalogError, FinishedChange, JobRecord, RecycledPartition};
use tributary_ddl::{Change, Dropped, Effect, Failed, Finished, Incomplete, Records, Subject, run};
use tributary_ingest::{Halt, Switched};
use tributary_table::{Table, TableStore};
use tributary_types::{ErrorCode, SourceId, SqlError, TableDef, TableId, host};

/// The jobs of heavy schema changes: the catalog's record after their end.
pub(crate) type ChangingJobs = Mutex<BTreeMap<SourceId, schema::Record>>;

/// The catalog, for changes of this node.
pub(crate) struct CatalogRecords<'a> {
    pub catalog: &'a Catalog,
    pub node: &'a str,
    pub jobs: &'a ChangingJobs,
    /// Earlier plans are invalid; none exist before a server is open.
    pub names: Option<&'a Names>,
}

impl CatalogRecords<'_> {
    /// The record of a change that has ended; `None` if none is retained.
    fn ended(&self, change: &Change) -> Option<String> {
        let mut jobs = self.jobs.lock();
        let job = jobs.get_mut(&change.id)?;
        job.finish(host::unix_ms());
        Some(job.written())
    }

    fn finished(&self, finished: &Finished) -> FinishedChange {
        let Finished { change, table, beside } = finished.clone();
        let partitions = change.partitions();
        let recycled = |dropped: &Dropped| RecycledPartition {
            table: change.table,
            id: dropped.kept.partition.id,
            name: dropped.kept.partition.name.clone(),
            dropped_at_ms: dropped.at_ms,
            bytes: dropped.kept.bytes(),
            definition: dropped.kept.written(),
        };
        FinishedChange {
            id: change.id,
            node: self.node.to_owned(),
            record: self.ended(&change),
            table,
            beside: beside.filter(|(before, _)| self.catalog.table_by_id(before.id).is_some()),
            dropped: partitions.map(|it| it.dropped.iter().map(recycled).collect()).unwrap_or_default(),
            recovered: partitions.map(|it| it.recovered.clone()).unwrap_or_default(),
        }
    }

    /// Ends the record of a change whose table no longer exists.
    async fn end_record(&self, id: SourceId, record: Option<String>) -> Result<(), CatalogError> {
        match record {
            Some(definition) => self.catalog.put_job(self.node, &JobRecord { id, definition }).await,
            None => self.catalog.delete_job(self.node, id).await,
        }
    }
}

#[async_trait]
impl Records for CatalogRecords<'_> {
    fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.catalog.table_by_id(id)
    }

    fn last_change(&self, table: TableId) -> SourceId {
        self.catalog.last_change(table)
    }

    async fn keep(&self, change: &Change) -> Result<(), String> {
        let Effect::Partitions(partitions) = &change.effect else { return Ok(()) };
        let body = tributary_ddl::written(change.table, partitions);
        let definition = Envelope::written(tributary_ddl::KIND, Change::FORMAT, body);
        let record = JobRecord { id: change.id, definition };
        self.catalog.put_job(self.node, &record).await.map_err(|error| error.to_string())
    }

    async fn finish(&self, finished: &Finished) -> Result<(), String> {
        let change = self.finished(finished);
        let (id, record) = (change.id, change.record.clone());
        let told = match self.catalog.finish_change(change).await {
            // It goes with its table.
            Err(CatalogError::UnknownTable { .. }) => self.end_record(id, record).await,
            told => told,
        };
        told.map_err(|error| error.to_string())?;
        if let Some(names) = self.names {
            names.changed();
        }
        Ok(())
    }

    async fn forget(&self, change: &Change) -> Result<(), String> {
        match change.effect {
            // Its job starts again, or states the reason of its end.
            Effect::Columns(_) => Ok(()),
            Effect::Partitions(_) => {
                self.catalog.delete_job(self.node, change.id).await.map_err(|error| error.to_string())
            }
        }
    }
}

/// The unfinished changes of this node, and the jobs among them.
fn unfinished(records: &[JobRecord]) -> Result<(Vec<Change>, ChangingJobs), Unreadable> {
    let (mut changes, mut jobs) = (Vec::new(), BTreeMap::new());
    for record in records {
        let id = record.id;
        let envelope = Envelope::read(record)?;
        if Change::has_kind(&envelope.kind) {
            let unreadable = |reason| Unreadable { id: id.0, kind: envelope.kind.clone(), reason };
            changes.push(Change::read(id, &envelope.kind, envelope.body).map_err(unreadable)?);
        } else if envelope.kind == schema::Record::KIND {
            let job: schema::Record = envelope.body_of(id)?;
            if job.finished_ms().is_none() {
                let effect = Effect::Columns(Arc::new(job.target.clone()));
                changes.push(Change { id, table: job.target.id, effect });
                jobs.insert(id, job);
            }
        }
    }
    Ok((changes, Mutex::new(jobs)))
}

/// Brings the catalog to the changes that the Delta logs have, before any table is opened.
///
/// # Errors
/// If a record can't be read, or a log or the catalog can't be read or written.
pub(crate) async fn complete(catalog: &Catalog, store: &TableStore, node: &str) -> Result<(), StartError> {
    let (changes, jobs) = unfinished(&catalog.jobs(node).await?)?;
    let records = CatalogRecords { catalog, node, jobs: &jobs, names: None };
    tributary_ddl::complete(&records, store, changes).await.map_err(|error| match error {
        Incomplete::Log(error) => StartError::Table(error),
        Incomplete::Catalog(reason) => {
            CatalogError::Store { action: "complete a change that was cut off", source: reason.into() }.into()
        }
    })
}

impl Ddl {
    /// Makes a change of partitions, retried until earlier work has ended. `None` if it has not.
    ///
    /// # Errors
    /// Nothing has changed, or it is not known whether, which is logged.
    pub(crate) async fn make_change(
        &self,
        table: &Table,
        subject: &dyn Subject,
        change: Change,
        halt: &Arc<Halt>,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        let begun = tokio::time::Instant::now();
        let goes_on = || begun.elapsed() < WAIT_MAX && !halt.is_asked() && !self.ingest.has_prepared(table);
        let jobs = ChangingJobs::default();
        let records = self.records(&jobs);
        let switched = run(&records, subject, change, halt, &goes_on).await;
        self.names.changed();
        match switched {
            Ok(Switched::Yes(def)) => {
                debug_assert!(
                    self.catalog.table_by_id(table.id()).is_none_or(|kept| *kept == *table.def()),
                    "after a change catalog and table say the same"
                );
                Ok(Some(def))
            }
            Ok(Switched::NotYet) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The catalog, for a change that these jobs make.
    pub(crate) fn records<'a>(&'a self, jobs: &'a ChangingJobs) -> CatalogRecords<'a> {
        CatalogRecords { catalog: &self.catalog, node: &self.node, jobs, names: Some(&self.names) }
    }
}

fn failed(error: Failed) -> SqlError {
    match error {
        Failed::Table(error) => table_error(error),
        Failed::NotRecorded(reason) => {
            let text = format!(
                "nothing was changed, because the catalog can't keep a record of the change: {reason}"
            );
            SqlError::detail(ErrorCode::Unknown, text)
        }
    }
}
