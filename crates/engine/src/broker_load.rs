//! Broker Load: `LOAD LABEL …` as a job that goes on without its client.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `job` | a job's state and progress, and the record that the catalog keeps of it |
//! | `plan` | a parsed statement becomes files to read and how to read each |
//! | `run` | files become rows, several at a time, and the rows one transaction |
//! | `show` | SHOW LOAD |
//!
//! Invariant: a job is one transaction with the statement's label, so each row is loaded once however often the job is begun: one that
//! a crash cut off begins anew, unless its label says that it had committed. A job's record is in the catalog before the client
//! is answered.
//!
//! Not its business: grammar, where files are, how bodies are decoded, commits.

mod job;
mod plan;
mod run;
mod show;

use crate::access::Privilege;
use crate::engine::Engine;
use crate::interrupt::Stop;
use crate::load::{Load, LoadLabel};
use job::{Ended, Job, Record};
use parking_lot::Mutex;
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tributary_catalog::JobRecord;
use tributary_ingest::{Body, LoadTraits, Source, TransactionStatus};
use tributary_sql::{BrokerLoad, LoadsBy, Statement};
use tributary_types::pattern::like;
use tributary_types::{ErrorCode, GroupCommitMode, Label, Principal, SourceId, SqlError};

/// Jobs that run at a time; later ones are PENDING.
const RUNNING_MAX: usize = 2;
/// Jobs that wait or run; more are refused.
const UNFINISHED_MAX: usize = 1000;

/// All jobs, by their ids.
pub(crate) struct BrokerLoads {
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
    turns: Arc<Semaphore>,
}

impl Default for BrokerLoads {
    fn default() -> Self {
        Self { jobs: Mutex::default(), turns: Arc::new(Semaphore::new(RUNNING_MAX)) }
    }
}

impl BrokerLoads {
    fn all(&self) -> Vec<Arc<Job>> {
        self.jobs.lock().values().cloned().collect()
    }

    fn add(&self, job: &Arc<Job>) {
        self.jobs.lock().insert(job.id, Arc::clone(job));
    }
}

impl Engine {
    /// Begins a job. It is kept and its label is taken when this returns.
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
        self.purge_broker_loads().await;
        let unfinished = self.broker_loads.all().iter().filter(|job| !job.state().is_final()).count();
        if unfinished >= UNFINISHED_MAX {
            return Err(refused(format!(
                "{unfinished} jobs of LOAD LABEL wait already; wait until SHOW LOAD says that some have ended"
            )));
        }
        let label = Label::new(&load.label)?;
        let plan = Plan::new(self, principal, &db, zone, &load)?;
        let begun = self.begin_job_load(&plan, label.clone())?;
        let id = match self.catalog.next_job_id().await {
            Ok(id) => id,
            Err(error) => {
                begun.abort("the job could not be kept").await;
                return Err(refused(error.to_string()));
            }
        };
        let record = Record::new(&db, &label, principal, zone, self.unix_ms(), &load);
        let job = Arc::new(Job::new(id.0, record));
        if let Err(error) = self.keep_job(&job).await {
            begun.abort("the job could not be kept").await;
            return Err(error);
        }
        self.broker_loads.add(&job);
        tokio::spawn(Arc::clone(self).run_broker_load(job, plan, begun));
        Ok(())
    }

    /// The load of a job, with its label.
    fn begin_job_load(&self, plan: &Plan, label: Label) -> Result<Load, SqlError> {
        let traits = LoadTraits {
            has_label: true,
            ..LoadTraits::plain(Source::BrokerLoad, Some(GroupCommitMode::Off), Body::Unknown)
        };
        let (table, schema) = (Arc::clone(&plan.table), Arc::clone(&plan.def.schema));
        Ok(Load::begin(self, table, schema, &traits, LoadLabel::Chosen(label))?)
    }

    /// Takes the jobs of the last run up again: those that had not ended.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume_broker_loads(self: &Arc<Self>) -> Result<(), SqlError> {
        let kept = self.catalog.jobs(self.node_id()).await.map_err(|error| refused(error.to_string()))?;
        for JobRecord { id, definition } in kept {
            // Jobs of other kinds have records of their own.
            let Some(record) = Record::parse(&definition) else { continue };
            let job = Arc::new(Job::new(id.0, record));
            self.broker_loads.add(&job);
            if !job.state().is_final() {
                self.resume(job).await;
            }
        }
        Ok(())
    }

    async fn resume(self: &Arc<Self>, job: Arc<Job>) {
        match self.begin_again(&job) {
            Ok(Some((plan, load))) => {
                tokio::spawn(Arc::clone(self).run_broker_load(job, plan, load));
                return;
            }
            Ok(None) => {}
            Err(error) => {
                job.end(Ended::failed("LOAD_RUN_FAIL", error.detail_text(), self.unix_ms()));
            }
        }
        if let Err(error) = self.keep_job(&job).await {
            tracing::warn!(job = job.id, %error, "the end of a load could not be kept; the next start finds it again");
        }
        job.announce();
    }

    /// What a job that was cut off needs to begin anew; `None` if it had committed.
    fn begin_again(self: &Arc<Self>, job: &Job) -> Result<Option<(Plan, Load)>, SqlError> {
        let Record { db, label, user, host, zone, statement, .. } = job.record();
        let principal = self.principal(&user, &host);
        let db_id = self.database(&principal, Privilege::Load, &db)?;
        let known = self.ingest.transactions().by_label(db_id, &label);
        if let Some(info) = known.filter(|info| info.status == TransactionStatus::Visible) {
            job.progress.all_read();
            job.end(Ended::committed(Some(info.txn), info.rows, None, self.unix_ms()));
            return Ok(None);
        }
        let Statement::BrokerLoad(load) = tributary_sql::parse(&statement)? else {
            return Err(refused("its statement is no LOAD LABEL"));
        };
        let plan = Plan::new(self, &principal, &db, &zone, &load)?;
        let label = Label::new(&label)?;
        let load = self.begin_job_load(&plan, label)?;
        Ok(Some((plan, load)))
    }

    /// Cancels jobs; those that have ended stay as they are.
    ///
    /// # Errors
    /// No job that has not ended is meant.
    pub(crate) async fn cancel_broker_loads(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        db: Option<&str>,
        by: &LoadsBy,
    ) -> Result<(), SqlError> {
        let db = db
            .or(session_db)
            .ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        self.database(principal, Privilege::Load, db)?;
        let jobs = self.broker_loads.all();
        let is_meant = |job: &&Arc<Job>| {
            let record = job.record();
            record.db == db
                && match by {
                    LoadsBy::Label(label) => record.label == *label,
                    LoadsBy::LabelLike(pattern) => like(&record.label, pattern),
                    LoadsBy::State(state) => job.state().name().eq_ignore_ascii_case(state),
                }
        };
        let meant: Vec<_> = jobs.iter().filter(is_meant).collect();
        if meant.is_empty() {
            return Err(refused("Load job does not exist"));
        }
        let running: Vec<_> = meant.into_iter().filter(|job| !job.state().is_final()).collect();
        if running.is_empty() {
            return Err(refused("There is no uncompleted job which label is it, or whose state is it"));
        }
        for job in running {
            job.stop.set();
            job.ended().await;
        }
        Ok(())
    }

    /// Forgets jobs whose end is as long ago as labels are kept.
    async fn purge_broker_loads(&self) {
        let keep_ms = i64::try_from(self.options.ingest.label_keep.as_millis()).unwrap_or(i64::MAX);
        let before = self.unix_ms().saturating_sub(keep_ms);
        for job in self.broker_loads.all() {
            if job.record().finished_ms.is_none_or(|at| at >= before) {
                continue;
            }
            match self.catalog.delete_job(self.node_id(), SourceId(job.id)).await {
                Ok(()) => drop(self.broker_loads.jobs.lock().remove(&job.id)),
                Err(error) => tracing::warn!(job = job.id, %error, "an old load could not be forgotten"),
            }
        }
    }

    /// Ends all jobs that run, for the next start to take up.
    pub(crate) async fn pause_broker_loads(&self) {
        let jobs = self.broker_loads.all();
        for job in jobs.iter().filter(|job| !job.state().is_final()) {
            job.pause();
        }
        for job in &jobs {
            job.ended().await;
        }
    }

    async fn keep_job(&self, job: &Job) -> Result<(), SqlError> {
        let record = JobRecord { id: SourceId(job.id), definition: job.record().text() };
        self.catalog.put_job(self.node_id(), &record).await.map_err(|error| refused(error.to_string()))
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
