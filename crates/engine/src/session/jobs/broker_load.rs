//! `LOAD LABEL …` and `CANCEL LOAD`: the statements of jobs that continue without their sessions.

use crate::access::Privilege;
use crate::answer::Answer;
use crate::session::EngineSession;
use std::sync::Arc;
use tributary_ingest::{IngestError, PreparedLoad, TwoPhaseTarget};
use tributary_sql::{BrokerLoad, JobsBy};
use tributary_types::SqlError;
use tributary_types::pattern::like;

impl EngineSession {
    pub(in crate::session) async fn run_broker_load(&mut self, load: BrokerLoad) -> Result<Answer, SqlError> {
        self.refuse_in_transaction()?;
        let zone = self.variables.values().time_zone.name.clone();
        let db = self.database.as_deref();
        self.engine.jobs.begin_broker_load(&self.principal, db, &zone, load).await?;
        Ok(Answer::ok())
    }

    pub(in crate::session) async fn run_cancel_load(
        &mut self,
        db: Option<&str>,
        by: &JobsBy,
    ) -> Result<Answer, SqlError> {
        let aborted = self.abort_prepared(db, by).await?;
        let engine = &self.engine;
        let cancelled = engine.jobs.cancel_broker_loads(&self.principal, self.database.as_deref(), db, by);
        match self.interrupt().wait(cancelled).await? {
            // There need not be a job, too.
            Err(error) if aborted == 0 => Err(error),
            _ => Ok(Answer::ok()),
        }
    }

    /// Aborts the two-phase loads that wait for their commit and that a CANCEL LOAD means. Gives their number.
    async fn abort_prepared(&mut self, db: Option<&str>, by: &JobsBy) -> Result<u64, SqlError> {
        let engine = Arc::clone(&self.engine);
        let db = engine.gate.database(&self.principal, Privilege::Load, self.database_or(db)?)?;
        let is_meant = |load: &PreparedLoad| match by {
            JobsBy::Label(label) => load.label.as_str() == label,
            JobsBy::LabelLike(pattern) => like(load.label.as_str(), pattern),
            JobsBy::State(_) => false,
        };
        let mut aborted = 0;
        for load in engine.ingest.prepared_loads().iter().filter(|load| load.db == db && is_meant(load)) {
            let target = TwoPhaseTarget { txn: Some(load.txn), label: None };
            match engine.ingest.abort_prepared(db, &target, "User Cancel").await {
                Ok(_) => aborted += 1,
                // Its client was faster.
                Err(IngestError::TransactionState { .. } | IngestError::TransactionNotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(aborted)
    }
}
