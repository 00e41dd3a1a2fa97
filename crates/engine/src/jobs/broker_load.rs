//! Broker Load: `LOAD LABEL …` as a job that continues without its client.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `job` | a job's state and progress, and its record in the catalog |
//! | `path` | columns whose values are in the files' paths |
//! | `plan` | a parsed statement becomes files to read and how to read each |
//! | `run` | files become rows, several at a time, and the rows one transaction |
//! | `show` | SHOW LOAD |
//!
//! Invariant: a job is one transaction with the statement's label, so each row is loaded once however often the job is started:
//! an interrupted one restarts, unless its label says that it had committed. A job's record is in the catalog before the client
//! is answered.
//!
//! Not its business: grammar, where files are, how bodies are decoded, commits.

mod job;
mod path;
mod plan;
mod run;
mod show;

use crate::access::Privilege;
use crate::access::limits::AdmittedLoad;
use crate::background::{self, Jobs, UNFINISHED_MAX};
use crate::jobs::ServerJobs;
use crate::load::partial_update::{KnownKeys, Updates};
use crate::load::{Load, LoadLabel};
pub(crate) use job::Record;
use job::{Ended, Job};
use plan::Plan;
use std::sync::Arc;
use tributary_ingest::{Body, LoadTraits, Source, TransactionStatus};
use tributary_sql::{BrokerLoad, JobsBy, Statement};
use tributary_types::{ErrorCode, GroupCommitMode, Label, Principal, SqlError};

#[cfg(test)]
pub(crate) use job::Record as BrokerLoadRecord;

/// All jobs of this kind.
pub(crate) type BrokerLoads = Jobs<Record>;

impl ServerJobs {
    /// Starts a job. It is persisted and its label is taken when this returns.
    ///
    /// # Errors
    /// A statement that can't be run, whatever the files are; a label that was used; too many jobs.
    pub(crate) async fn begin_broker_load(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
        zone: &str,
        load: BrokerLoad,
    ) -> Result<(), SqlError> {
        let db = load.db.clone().or_else(|| session_db.map(str::to_owned));
        let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        let unfinished = self.broker_loads.unfinished();
        if unfinished >= UNFINISHED_MAX {
            return Err(refused(format!(
                "{unfinished} jobs of LOAD LABEL wait already; wait until SHOW LOAD says that some have ended"
            )));
        }
        let label = Label::new(&load.label)?;
        let plan = Plan::new(self, principal, &db, zone, &load).await?;
        let begun = self.begin_job_load(principal, &plan, label.clone())?;
        let record = Record::new(&db, &label, principal, zone, self.unix_ms(), &load);
        let kept = async {
            let job = Arc::new(Job::new(self.broker_loads.next_id().await?, record));
            // The label's transaction has said that it is free.
            self.broker_loads.add(&job, |_| Ok(())).await?;
            Ok::<_, SqlError>(job)
        };
        let job = match kept.await {
            Ok(job) => job,
            Err(error) => {
                begun.abort("the job could not be kept").await;
                return Err(error);
            }
        };
        self.spawn_broker_load(job, plan, begun);
        Ok(())
    }

    /// The load of a job, with its label. Limits admit it before it reads files.
    fn begin_job_load(&self, principal: &Principal, plan: &Plan, label: Label) -> Result<Load, SqlError> {
        let traits = LoadTraits {
            has_label: true,
            ..LoadTraits::plain(Source::BrokerLoad, Some(GroupCommitMode::Off), Body::Unknown)
        };
        let (table, schema) = (Arc::clone(&plan.table), Arc::clone(&plan.def.schema));
        let (label, later) = (LoadLabel::Chosen(label), AdmittedLoad::later(principal));
        let mut load = Load::begin(&self.loads, table, schema, &traits, label, later)?;
        load.is_found_in(plan.def.partitioning.partitions());
        if plan.updates == Updates::Named {
            load.must_find(KnownKeys::of_table(&plan.def));
        }
        Ok(load)
    }

    /// Resumes the unfinished jobs of the last run.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume_broker_loads(self: &Arc<Self>) -> Result<(), SqlError> {
        for job in self.broker_loads.read_kept().await? {
            if !job.has_ended() {
                self.resume_job_of_files(job).await;
            }
        }
        Ok(())
    }

    fn spawn_broker_load(self: &Arc<Self>, job: Arc<Job>, plan: Plan, load: Load) {
        let work = Arc::clone(self).run_broker_load(Arc::clone(&job), plan, load);
        background::spawn(self, |jobs| &jobs.broker_loads, job, work);
    }

    async fn resume_job_of_files(self: &Arc<Self>, job: Arc<Job>) {
        let ended = match self.begin_again(&job).await {
            Ok(Again::Begun(plan, load)) => {
                return self.spawn_broker_load(job, *plan, load);
            }
            Ok(Again::Committed(ended)) => ended,
            Ok(Again::GivenUp) => return,
            Err(error) => Ended::failed("LOAD_RUN_FAIL", error.detail_text(), self.unix_ms()),
        };
        self.broker_loads.end(&job, |record| record.end(ended)).await;
    }

    /// Prepares the restart of an interrupted job, unless it had committed.
    async fn begin_again(self: &Arc<Self>, job: &Job) -> Result<Again, SqlError> {
        let Record { db, label, user, host, zone, statement, .. } = job.record();
        let principal = self.gate.principal(&user, &host);
        let db_id = self.gate.database(&principal, Privilege::Connect, &db)?;
        let known = self.ingest.transactions().by_label(db_id, &label);
        if let Some(info) = known.filter(|info| info.status == TransactionStatus::Visible) {
            let ended = Ended::committed(Some(info.txn), info.rows, None, self.unix_ms());
            return Ok(Again::Committed(ended));
        }
        if !self.broker_loads.begins_again(job).await {
            return Ok(Again::GivenUp);
        }
        let Statement::BrokerLoad(load) = tributary_sql::parse(&statement)? else {
            return Err(refused("its statement is no LOAD LABEL"));
        };
        let plan = Plan::new(self, &principal, &db, &zone, &load).await?;
        let label = Label::new(&label)?;
        let load = self.begin_job_load(&principal, &plan, label)?;
        Ok(Again::Begun(Box::new(plan), load))
    }

    /// The newest job with that label.
    pub(crate) fn broker_load_of(&self, db: &str, label: &str) -> Option<Arc<Job>> {
        self.broker_loads.of_db(db).into_iter().rev().find(|job| job.record().label == label)
    }

    /// Cancels jobs; ended ones are unchanged.
    ///
    /// # Errors
    /// No job that has not ended is meant.
    pub(crate) async fn cancel_broker_loads(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        db: Option<&str>,
        by: &JobsBy,
    ) -> Result<(), SqlError> {
        let db = db
            .or(session_db)
            .ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        self.gate.database(principal, Privilege::Load, db)?;
        let meant = self.broker_loads.meant(db, by);
        if meant.is_empty() {
            return Err(refused("Load job does not exist"));
        }
        if Jobs::cancel(&meant).await == 0 {
            return Err(refused("There is no uncompleted job which label is it, or whose state is it"));
        }
        Ok(())
    }
}

/// The fate of a job that a crash or a stop of the server interrupted.
enum Again {
    Begun(Box<Plan>, Load),
    Committed(Ended),
    /// It may be the cause of the server's crashes.
    GivenUp,
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
