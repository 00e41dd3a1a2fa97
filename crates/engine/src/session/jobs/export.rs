//! `EXPORT` and `CANCEL EXPORT`: the statements of jobs that continue without their sessions.

use crate::answer::Answer;
use crate::session::EngineSession;
use std::sync::Arc;
use tributary_sql::{Export, JobsBy};
use tributary_types::SqlError;

impl EngineSession {
    pub(in crate::session) async fn run_export(&mut self, export: Export) -> Result<Answer, SqlError> {
        self.refuse_in_transaction()?;
        let zone = self.variables.values().time_zone.name.clone();
        let (engine, db) = (Arc::clone(&self.engine), self.database.clone());
        engine.jobs.begin_export(&self.principal, db.as_deref(), &zone, export).await?;
        Ok(Answer::ok())
    }

    pub(in crate::session) async fn run_cancel_export(
        &mut self,
        db: Option<&str>,
        by: &JobsBy,
    ) -> Result<Answer, SqlError> {
        let engine = &self.engine;
        let cancelled = engine.jobs.cancel_exports(&self.principal, self.database.as_deref(), db, by);
        self.interrupt().wait(cancelled).await??;
        Ok(Answer::ok())
    }
}
