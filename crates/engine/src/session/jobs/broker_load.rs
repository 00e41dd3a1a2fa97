//! `LOAD LABEL …` and `CANCEL LOAD`: the statements of jobs that continue without their sessions.

use crate::answer::Answer;
use crate::session::EngineSession;
use tributary_sql::{BrokerLoad, JobsBy};
use tributary_types::SqlError;

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
        let engine = &self.engine;
        let cancelled = engine.jobs.cancel_broker_loads(&self.principal, self.database.as_deref(), db, by);
        self.interrupt().wait(cancelled).await??;
        Ok(Answer::ok())
    }
}
