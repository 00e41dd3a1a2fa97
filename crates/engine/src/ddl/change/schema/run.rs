//! A job from PENDING to its end.

use super::Job;
use super::record::{Record, State};
use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::change::records::ChangingJobs;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tributary_ddl::{Change, Columns, Effect, Failed};
use tributary_ingest::{Halt, Switched};
use tributary_table::{Table, TableError};
use tributary_types::{ErrorCode, SourceId, SqlError, TableDef};

impl Ddl {
    /// Runs a job to its end, or until the server stops.
    pub(super) async fn run_schema_change(self: Arc<Self>, job: Arc<Job>) {
        let halt = &job.progress.halt;
        let ended = {
            let work = self.change_schema(&job, halt);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    ended = &mut work => break ended,
                    // It may be cancelled first, and the server be stopped while it is in doubt.
                    _ = Interrupt::by_kill(&job.stop).wait(std::future::pending::<()>()) => {
                        job.stop.clear();
                        if job.is_paused() {
                            halt.at_once();
                        }
                    }
                }
            }
        };
        let now = self.unix_ms();
        match ended {
            Ok(record) => {
                tracing::info!(job = job.id, "a schema change is finished");
                job.end(record);
            }
            Err(_) if job.is_paused() => job.announce(),
            Err(error) => {
                let message = error.detail_text().to_owned();
                tracing::warn!(job = job.id, message, "a schema change is cancelled");
                self.schema_changes.end(&job, |record| record.cancel(message, now)).await;
            }
        }
    }

    /// Returns the record of the finished job, which the catalog has.
    async fn change_schema(&self, job: &Job, halt: &Arc<Halt>) -> Result<Record, SqlError> {
        let record = job.record();
        let turn = self.schema_changes.turn_unless(|| halt.is_asked()).await;
        let _turn = turn.ok_or_else(cancelled)?;
        let id = record.table_id();
        let Some(table) = self.table_to_change(id) else { return Err(dropped(&record.target)) };
        let txn = self.ingest.next_transaction();
        self.schema_changes
            .change(job, |record| (record.state, record.txn) = (State::WaitingTxn, Some(txn)))
            .await?;
        let failed = |error| failure(error, halt);
        self.ingest.wait_for_prepared(&table, halt).await.map_err(failed)?;
        self.schema_changes.change(job, |record| record.state = State::Running).await?;
        let target = Arc::new(record.target);
        let id = SourceId(job.id);
        let jobs = Mutex::new([(id, job.record())].into());
        let begun = self.ingest.begin_schema_change(&table, job.id, target).await;
        let mut change = begun.map_err(failed)?;
        let files = table.files_to_convert(&change);
        *job.progress.files.lock() = Some((Arc::clone(&change.converted), files));
        loop {
            let switched = self.convert_and_switch(&table, &mut change, halt, &jobs).await;
            match switched {
                Ok(Switched::Yes(_)) => {
                    return Ok(jobs.into_inner().remove(&id).unwrap_or_else(|| job.record()));
                }
                Ok(Switched::NotYet) => self.ingest.pause().await,
                Err(error @ TableError::Unsure { .. }) => return Err(failed(error)),
                Err(error) => {
                    table.abandon(change).await;
                    return Err(failed(error));
                }
            }
        }
    }

    async fn convert_and_switch(
        &self,
        table: &Arc<Table>,
        change: &mut tributary_table::SchemaChange,
        halt: &Arc<Halt>,
        jobs: &ChangingJobs,
    ) -> Result<Switched, TableError> {
        self.ingest.convert(table, change, halt).await?;
        let stopped = || TableError::Stopped { table: table.def().name.clone() };
        let def = table.def();
        let turn = tokio::select! {
            biased;
            turn = self.wait_for_turn(&def) => turn,
            () = is_asked(halt) => return Err(stopped()),
        };
        let running = turn.begin_switch(Arc::clone(halt));
        let effect = Effect::Columns(Arc::new(change.result(&table.def())));
        let job = Change { id: SourceId(change.id()), table: table.id(), effect };
        let subject = Columns { ingest: &self.ingest, table, change: tokio::sync::Mutex::new(change) };
        let records = self.records(jobs);
        let switched = running.run(tributary_ddl::run(&records, &subject, job, halt, &|| false)).await;
        self.definitions_changed();
        switched.map_err(|error| match error {
            Failed::Table(error) => error,
            Failed::NotRecorded(reason) => TableError::Unsure { table: table.def().name.clone(), reason },
        })
    }
}

/// Looks until the change is to end.
async fn is_asked(halt: &Halt) {
    while !halt.is_asked() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn cancelled() -> SqlError {
    SqlError::detail(ErrorCode::Unknown, "user cancelled")
}

fn dropped(def: &TableDef) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("table {} does not exist", def.table_ref()))
}

fn failure(error: TableError, halt: &Halt) -> SqlError {
    match error {
        TableError::Stopped { .. } if halt.is_asked() => cancelled(),
        error => SqlError::detail(ErrorCode::Unknown, error.to_string()),
    }
}
