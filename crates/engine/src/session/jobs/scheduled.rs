//! Statements about jobs that run an INSERT at given times, and the INSERT of a job.

use crate::answer::Answer;
use crate::session::EngineSession;
use std::sync::Arc;
use tributary_sql::{CreateJob, InsertSource, JobStatement, Statement};
use tributary_types::{ErrorCode, SqlError};

impl EngineSession {
    pub(in crate::session) async fn run_job(&mut self, statement: &JobStatement) -> Result<Answer, SqlError> {
        self.refuse_in_transaction()?;
        if let JobStatement::Create(create) = statement {
            return self.create_job(create).await;
        }
        let engine = Arc::clone(&self.engine);
        let (jobs, who) = (&engine.jobs, &self.principal);
        match statement {
            JobStatement::Create(_) => {}
            JobStatement::Pause { name } => jobs.pause_scheduled(who, name).await?,
            JobStatement::Resume { name } => jobs.resume_scheduled(who, name).await?,
            JobStatement::Drop { name, if_exists } => jobs.drop_scheduled(who, name, *if_exists).await?,
        }
        Ok(Answer::ok())
    }

    async fn create_job(&mut self, create: &CreateJob) -> Result<Answer, SqlError> {
        let insert = &create.insert;
        // Names that there are not are refused now and not by the first run.
        self.table(crate::access::Privilege::Load, insert.table.db.as_deref(), &insert.table.table)?;
        if let InsertSource::Query(query) = &insert.source {
            self.queries.describe(&self.view(), query).await?;
        }
        let zone = self.variables.values().time_zone.name.clone();
        let (engine, db) = (Arc::clone(&self.engine), self.database.clone());
        engine.jobs.create_scheduled(&self.principal, db.as_deref(), &zone, create).await?;
        Ok(Answer::ok())
    }

    /// Runs the statement of a job with the label of a run, so that it loads its rows once however often it is repeated.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) async fn run_insert_of_job(&mut self, text: &str, label: String) -> Result<Answer, SqlError> {
        let (statement, notes) = self.parse(text)?;
        self.parsed(statement.kind(), statement.change());
        let Statement::Insert(mut insert) = statement else { return Err(no_insert()) };
        // What replaces all rows may be repeated.
        if !insert.overwrite {
            insert.label = Some(label);
        }
        let answer = Box::pin(self.run(Statement::Insert(insert), &[])).await?;
        Ok(self.with_notes(answer, notes))
    }
}

fn no_insert() -> SqlError {
    SqlError::detail(ErrorCode::Unknown, "the statement of a job is no INSERT")
}
