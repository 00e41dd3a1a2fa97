//! EXPORT: writes the rows of a table to files, as a job that continues without its client.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `record` | a job's record in the catalog |
//! | `plan` | a parsed statement becomes a query and where its rows go |
//! | `run` | the query's rows are written |
//! | `show` | SHOW EXPORT |
//!
//! Invariant: the files of a job that has not FINISHED are deleted before it restarts or ends, or its message says that some may
//! remain.
//!
//! Not its business: grammar, how files are written.

mod plan;
mod record;
mod run;
mod show;

use crate::access::Privilege;
use crate::background::{self, Jobs, UNFINISHED_MAX};
use crate::jobs::ServerJobs;
use plan::Plan;
pub(crate) use record::Record;
use record::State;
use std::sync::Arc;
use tributary_sql::{Export, JobsBy, Statement};
use tributary_types::{ErrorCode, Label, Principal, SqlError};

type Job = background::Job<Record>;
/// All jobs of this kind.
pub(crate) type Exports = Jobs<Record>;

impl ServerJobs {
    /// Starts a job. It is persisted and its label is taken when this returns.
    ///
    /// # Errors
    /// A statement that can't be run, whatever the rows are; a label that a job has which was not cancelled; too many jobs.
    pub(crate) async fn begin_export(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
        zone: &str,
        export: Export,
    ) -> Result<(), SqlError> {
        let table = export.table.resolve(session_db)?;
        self.gate.database(principal, Privilege::Connect, &table.db)?;
        let unfinished = self.exports.unfinished();
        if unfinished >= UNFINISHED_MAX {
            return Err(refused(format!(
                "{unfinished} jobs of EXPORT wait already; wait until SHOW EXPORT says that some have ended"
            )));
        }
        let plan = Plan::new(self, principal, &table, zone, &export)?;
        // Names that there are not are refused now and not by the job.
        plan.query(self, principal, " LIMIT 0").await?;
        let label = match &plan.label {
            Some(label) => Label::new(label)?.as_str().to_owned(),
            None => format!("export_{:016x}_{:016x}", rand::random::<u64>(), rand::random::<u64>()),
        };
        let record = Record::new(&table, label, principal, zone, self.unix_ms(), &export, &plan);
        let job = Arc::new(Job::new(self.exports.next_id().await?, record));
        let new = job.record();
        let is_free = |others: &[Record]| {
            let uses = |other: &&Record| {
                other.db == new.db && other.label == new.label && other.state != State::Cancelled
            };
            match others.iter().find(uses) {
                None => Ok(()),
                Some(other) => Err(refused(format!(
                    "Label [{}] has already been used, by a job of EXPORT that is {}",
                    other.label,
                    other.state.name()
                ))),
            }
        };
        self.exports.add(&job, is_free).await?;
        self.spawn_export(job, plan);
        Ok(())
    }

    /// Resumes the unfinished jobs of the last run.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume_exports(self: &Arc<Self>) -> Result<(), SqlError> {
        for job in self.exports.read_kept().await? {
            if job.has_ended() || !self.exports.begins_again(&job).await {
                continue;
            }
            match self.plan_again(&job.record()) {
                Ok(plan) => self.spawn_export(job, plan),
                Err(error) => {
                    let message = format!(
                        "type:RUN_FAIL; msg:it was cut off by a stop of the server and can't be begun anew: {}; some of its files may be left",
                        error.detail_text()
                    );
                    let now = self.unix_ms();
                    self.exports.end(&job, |record| record.cancel(message, now)).await;
                }
            }
        }
        Ok(())
    }

    fn spawn_export(self: &Arc<Self>, job: Arc<Job>, plan: Plan) {
        let work = Arc::clone(self).run_export(Arc::clone(&job), plan);
        background::spawn(self, |jobs| &jobs.exports, job, work);
    }

    fn plan_again(&self, record: &Record) -> Result<Plan, SqlError> {
        let principal = self.gate.principal(&record.user, &record.host);
        let Statement::Export(export) = tributary_sql::parse(&record.statement)? else {
            return Err(refused("its statement is no EXPORT"));
        };
        Plan::new(self, &principal, &record.table_ref(), &record.zone, &export)
    }

    /// Cancels jobs; ended ones are unchanged.
    ///
    /// # Errors
    /// No job that has not ended is meant.
    pub(crate) async fn cancel_exports(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        db: Option<&str>,
        by: &JobsBy,
    ) -> Result<(), SqlError> {
        let db = db.or(session_db).ok_or_else(no_database)?;
        self.gate.database(principal, Privilege::Select, db)?;
        let meant = self.exports.meant(db, by);
        if meant.is_empty() {
            return Err(refused("Export job(s) do not exist"));
        }
        if Jobs::cancel(&meant).await == 0 {
            return Err(refused("All export job(s) are at final state (CANCELLED/FINISHED)"));
        }
        Ok(())
    }
}

fn no_database() -> SqlError {
    SqlError::new(ErrorCode::NoDbSelected, "No database selected")
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
