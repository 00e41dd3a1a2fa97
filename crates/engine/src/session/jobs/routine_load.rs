//! Statements that create and change jobs.

use crate::answer::Answer;
use crate::session::EngineSession;
use std::sync::Arc;
use tributary_sql::RoutineLoad;
use tributary_types::{ErrorCode, SqlError};

impl EngineSession {
    pub(in crate::session) async fn run_routine_load(
        &mut self,
        statement: RoutineLoad,
    ) -> Result<Answer, SqlError> {
        if self.transaction.is_some() {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                "This is in a transaction, only insert, update, delete, commit, rollback is acceptable",
            ));
        }
        let (engine, principal, db) =
            (Arc::clone(&self.engine), self.principal.clone(), self.database.clone());
        // Unwatched: awaited below. A statement that has begun is carried out even if its client goes away.
        let done = tokio::spawn(async move {
            let (principal, db) = (&principal, db.as_deref());
            match statement {
                RoutineLoad::Create(create) => engine.jobs.create_job(principal, db, *create).await,
                RoutineLoad::Alter { job, properties, source } => {
                    engine.jobs.alter_job(principal, db, &job, &properties, &source).await
                }
                RoutineLoad::Pause(job) => engine.jobs.pause_job(principal, db, &job).await,
                RoutineLoad::PauseAll => engine.jobs.pause_jobs(principal, db).await,
                RoutineLoad::Resume(job) => engine.jobs.resume_job(principal, db, &job).await,
                RoutineLoad::ResumeAll => engine.jobs.resume_jobs(principal, db).await,
                RoutineLoad::Stop(job) => engine.jobs.stop_job(principal, db, &job).await,
            }
        });
        match done.await {
            Ok(done) => done?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return Err(SqlError::new(ErrorCode::Unknown, "the server is shutting down")),
        }
        Ok(Answer::ok())
    }
}
