//! Jobs that load from a source for as long as they run: `ROUTINE LOAD`.
//!
//! A job is persisted in the catalog, with its state. While it is active it has one runner ([`runner`]), which loads one batch
//! after another, each a transaction of its own ([`task`]). The job's position is part of those transactions
//! (`docs/adr/0038-positions-of-sources.md`), so a runner can be abandoned at any time and another one continues after the loaded
//! rows.
//!
//! Invariant: a job has at most one runner, and a statement's changes are in the catalog before the runner is notified.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `kept` | the data of a job in the catalog and in transactions |
//! | `properties` | the meaning of a statement's properties |
//! | `job` | a job in memory |
//! | `runner`, `task` | reading the source, loading batches, going on after errors |
//! | `names` | messages that name their tables |
//! | `show` | SHOW and `information_schema` |
//!
//! Not its business: protocols, grammar, the source's client.

mod ends;
mod job;
mod kept;
mod names;
mod properties;
mod runner;
mod show;
mod task;
#[cfg(test)]
mod tests;

use crate::access::{Object, Privilege, Resource};
use crate::background::record::Envelope;
use crate::jobs::ServerJobs;
use crate::load::partial_update::Updates;
use crate::watch::RoutineView;
use job::Job;
pub(crate) use kept::Definition;
use kept::{Clauses, JobState, Reason};
use parking_lot::RwLock;
use properties::{Beginning, wrong};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_catalog::JobRecord;
use tributary_ingest::Progress;
use tributary_kafka::{Connect, Offsets, SourceError};
use tributary_sql::{CreateRoutineLoad, Name};
use tributary_table::Table;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, Principal, SourceId, SqlError, TableRef};

/// The most jobs that have not ended, as in Doris.
const JOBS_MAX: usize = 100;

/// All jobs of this node.
#[derive(Debug)]
pub(crate) struct RoutineLoads {
    node: String,
    connect: RwLock<Arc<dyn Connect>>,
    all: RwLock<BTreeMap<SourceId, Arc<Job>>>,
    /// Held by a statement that changes a job.
    changing: tokio::sync::Mutex<()>,
}

impl RoutineLoads {
    pub fn new(node: String, connect: Arc<dyn Connect>) -> Self {
        Self {
            node,
            connect: RwLock::new(connect),
            all: RwLock::default(),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    fn all(&self) -> Vec<Arc<Job>> {
        self.all.read().values().cloned().collect()
    }

    /// The jobs that have not ended.
    pub fn views(&self) -> Vec<RoutineView> {
        let running = self.all().into_iter().filter(|job| !job.kept().state.is_final());
        running.map(|job| job.view()).collect()
    }

    /// The jobs of a database, oldest first.
    fn of_db(&self, db: &str) -> Vec<Arc<Job>> {
        self.all().into_iter().filter(|job| job.kept().db == db).collect()
    }

    /// The newest job of that name: one that has not ended, if there is one.
    fn find(&self, db: &str, name: &str) -> Option<Arc<Job>> {
        let named = self.of_db(db).into_iter().filter(|job| job.kept().name == name);
        named.max_by_key(|job| (!job.kept().state.is_final(), job.id))
    }

    #[cfg(test)]
    fn connect_by(&self, connect: Arc<dyn Connect>) {
        *self.connect.write() = connect;
    }
}

impl ServerJobs {
    /// Reads the jobs and starts the active ones.
    ///
    /// # Errors
    /// The catalog or a record can't be read.
    pub(crate) async fn start_jobs(self: &Arc<Self>) -> Result<(), SqlError> {
        for record in self.catalog.jobs(&self.routine.node).await? {
            let (id, envelope) = (record.id, Envelope::read(&record)?);
            if envelope.kind != Definition::KIND {
                continue;
            }
            let mut kept: Definition = envelope.body_of(id)?;
            if kept.state == JobState::Running {
                kept.state = JobState::NeedSchedule;
            }
            let job = Arc::new(Job::new(id, kept));
            job.remember(self);
            self.routine.all.write().insert(id, Arc::clone(&job));
            self.run_job(&job).await;
        }
        Ok(())
    }

    /// Ends all runners; the jobs resume at the next start.
    pub(crate) async fn stop_jobs(&self) {
        let all = self.routine.all();
        all.iter().for_each(|job| job.stop.stop());
        for job in all {
            job.stop.ended().await;
        }
    }

    /// Forgets jobs that ended before the time (ms since 1970).
    pub(crate) async fn purge_jobs(&self, before_ms: i64) {
        for job in self.routine.all() {
            let is_old = job.kept().ended_at_ms.is_some_and(|ended| ended < before_ms);
            if !is_old {
                continue;
            }
            self.ingest.transactions().forget_source(job.id);
            match self.catalog.delete_job(&self.routine.node, job.id).await {
                Ok(()) => drop(self.routine.all.write().remove(&job.id)),
                Err(error) => tracing::warn!(job = %job.id, %error, "an ended job can't be forgotten now"),
            }
        }
    }

    /// Keeps a changed definition: in the catalog, then in memory.
    async fn change_job(&self, job: &Job, change: impl FnOnce(&mut Definition)) -> Result<(), SqlError> {
        let mut kept = Definition::clone(&job.kept());
        change(&mut kept);
        let record = JobRecord { id: job.id, definition: kept.written() };
        self.catalog.put_job(&self.routine.node, &record).await?;
        job.keep(kept);
        Ok(())
    }

    pub(crate) async fn create_job(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
        create: CreateRoutineLoad,
    ) -> Result<(), SqlError> {
        let TableRef { db, table: name } = create.job.resolve(session_db)?;
        let target = match &create.table {
            Some(table) => {
                let table = self.gate.table(principal, Privilege::Load, None, Some(&db), table)?;
                let def = table.def();
                Some((table, def))
            }
            None => {
                self.gate.check(principal, Privilege::Load, Object::Database(&db))?;
                None
            }
        };
        self.gate.check(principal, Privilege::Usage, Object::Resource(Resource::Kafka))?;
        let unknown = || SqlError::new(ErrorCode::UnknownDatabase, format!("Unknown database '{db}'"));
        let db_id = self.catalog.database_id(&db).ok_or_else(unknown)?;
        let _changing = self.routine.changing.lock().await;
        if self.routine.find(&db, &name).is_some_and(|job| !job.kept().state.is_final()) {
            return Err(wrong(format!("Name {name} already used in db {db}")));
        }
        let live = self.routine.all().iter().filter(|job| !job.kept().state.is_final()).count();
        if live >= JOBS_MAX {
            return Err(wrong(format!(
                "There are more than {JOBS_MAX} routine load jobs are running; stop some first"
            )));
        }
        let clauses = Clauses::from(create.clauses);
        let mut definition = Definition {
            format: Definition::format_of(&clauses, target.is_none()),
            name,
            db,
            db_id,
            table: target.as_ref().map(|(_, def)| def.id),
            user: principal.user().to_owned(),
            host: principal.host().to_owned(),
            comment: create.comment,
            clauses,
            properties: properties::by_name(&create.properties)?,
            source: properties::by_name(&create.source)?,
            state: JobState::NeedSchedule,
            reason: None,
            created_at_ms: unix_ms(),
            paused_at_ms: None,
            ended_at_ms: None,
            generation: 1,
            start: Offsets::new(),
            ahead: Vec::new(),
            statistics: None,
        };
        properties::check(&definition, target.as_ref().map(|(_, def)| &**def))?;
        // Errors are found now, and not by a runner that is not observed.
        if let Some((table, _)) = &target {
            self.ready_for_job(table, &definition).await?;
            task::reader(self, &table.def(), &definition)?;
        } else {
            task::time(self, &definition)?;
        }
        definition.start = self.beginning(&definition).await?;
        let id = self.catalog.next_job_id().await?;
        let job = Arc::new(Job::new(id, definition));
        self.change_job(&job, |_| ()).await?;
        self.routine.all.write().insert(id, Arc::clone(&job));
        self.run_job(&job).await;
        Ok(())
    }

    /// Gives the table what rows of partial updates need, if the job's are such.
    async fn ready_for_job(&self, table: &Arc<Table>, definition: &Definition) -> Result<(), SqlError> {
        let names_columns = definition.clauses.columns.is_some();
        if names_columns && properties::updates(&definition.properties)? == Updates::Named {
            self.loads.ready_for_partial(table).await?;
        }
        Ok(())
    }

    /// Queries the source for the job's start.
    async fn beginning(&self, definition: &Definition) -> Result<Offsets, SqlError> {
        let beginning = Beginning::of(&definition.source)?;
        let settings = properties::settings(&definition.source)?;
        let connect = Arc::clone(&self.routine.connect.read());
        let asked = tokio::task::spawn_blocking(move || beginning.resolve(&*connect.connect(&settings)?));
        match asked.await {
            Ok(asked) => asked.map_err(|error| match error {
                SourceError::Unreachable(text) => {
                    wrong(format!("Failed to get all partitions of kafka topic: {text}"))
                }
                SourceError::Wrong(text) | SourceError::OutOfRange(text) => wrong(text),
            }),
            Err(panic) => Err(wrong(format!("asking the source failed: {panic}"))),
        }
    }

    /// The job that a statement names and may change.
    fn job(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        name: &Name,
    ) -> Result<Arc<Job>, SqlError> {
        let TableRef { db, table: name } = name.resolve(session_db)?;
        let unknown = || wrong(format!("There is no operable routine load job with name {name}"));
        let job = self.routine.find(&db, &name).ok_or_else(unknown)?;
        self.may_load(principal, &job)?;
        Ok(job)
    }

    fn may_load(&self, principal: &Principal, job: &Job) -> Result<(), SqlError> {
        let kept = job.kept();
        match kept.table.and_then(|table| self.catalog.table_by_id(table)) {
            Some(def) => {
                let object = Object::Table { db: &def.db, table: &def.name };
                self.gate.check(principal, Privilege::Load, object)
            }
            None => self.gate.check(principal, Privilege::Load, Object::Database(&kept.db)),
        }
    }

    /// The jobs of the session's database that are not paused, or that are.
    fn jobs_in(&self, principal: &Principal, session_db: Option<&str>) -> Result<Vec<Arc<Job>>, SqlError> {
        let db = session_db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        let jobs = self.routine.of_db(db).into_iter();
        Ok(jobs.filter(|job| self.may_load(principal, job).is_ok()).collect())
    }

    pub(crate) async fn pause_job(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        name: &Name,
    ) -> Result<(), SqlError> {
        let job = self.job(principal, session_db, name)?;
        let _changing = self.routine.changing.lock().await;
        self.pause_routine_load(principal, &job).await
    }

    pub(crate) async fn pause_jobs(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
    ) -> Result<(), SqlError> {
        let _changing = self.routine.changing.lock().await;
        for job in self.jobs_in(principal, session_db)? {
            if job.kept().state.is_active() {
                self.pause_routine_load(principal, &job).await?;
            }
        }
        Ok(())
    }

    async fn pause_routine_load(&self, principal: &Principal, job: &Job) -> Result<(), SqlError> {
        transform(job, JobState::Paused)?;
        if job.kept().state == JobState::Paused {
            return Ok(());
        }
        self.end_runner(job, JobState::Paused, Reason::paused_by(principal.user())).await
    }

    /// Changes the job's state, and waits until its runner has ended.
    async fn end_runner(&self, job: &Job, state: JobState, reason: Reason) -> Result<(), SqlError> {
        job.stop.stop();
        job.stop.ended().await;
        let now_ms = unix_ms();
        self.change_job(job, |kept| {
            kept.state = state;
            kept.reason = Some(reason);
            if state.is_final() {
                kept.ended_at_ms = Some(now_ms);
            } else {
                kept.paused_at_ms = Some(now_ms);
            }
        })
        .await
    }

    pub(crate) async fn resume_job(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
        name: &Name,
    ) -> Result<(), SqlError> {
        let job = self.job(principal, session_db, name)?;
        let _changing = self.routine.changing.lock().await;
        self.resume_routine_load(&job).await
    }

    pub(crate) async fn resume_jobs(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
    ) -> Result<(), SqlError> {
        let _changing = self.routine.changing.lock().await;
        for job in self.jobs_in(principal, session_db)? {
            if job.kept().state == JobState::Paused {
                self.resume_routine_load(&job).await?;
            }
        }
        Ok(())
    }

    async fn resume_routine_load(self: &Arc<Self>, job: &Arc<Job>) -> Result<(), SqlError> {
        transform(job, JobState::NeedSchedule)?;
        if job.kept().state.is_active() {
            return Ok(());
        }
        self.change_job(job, |kept| {
            kept.state = JobState::NeedSchedule;
            kept.reason = None;
            kept.paused_at_ms = None;
        })
        .await?;
        job.forgive();
        self.run_job(job).await;
        Ok(())
    }

    pub(crate) async fn stop_job(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        name: &Name,
    ) -> Result<(), SqlError> {
        let job = self.job(principal, session_db, name)?;
        let _changing = self.routine.changing.lock().await;
        transform(&job, JobState::Stopped)?;
        self.end_runner(&job, JobState::Stopped, Reason::stopped_by(principal.user())).await
    }

    pub(crate) async fn alter_job(
        self: &Arc<Self>,
        principal: &Principal,
        session_db: Option<&str>,
        name: &Name,
        properties: &[(String, String)],
        source: &[(String, String)],
    ) -> Result<(), SqlError> {
        let job = self.job(principal, session_db, name)?;
        let _changing = self.routine.changing.lock().await;
        let kept = job.kept();
        if kept.state != JobState::Paused {
            return Err(wrong("Only supports modification of PAUSED jobs"));
        }
        let dropped = || wrong(format!("the table of job {} was dropped", kept.name));
        let table = kept.table.map(|table| self.gate.table_by_id(table).ok_or_else(dropped)).transpose()?;
        let (changed, source) = (properties::by_name(properties)?, properties::by_name(source)?);
        let mut altered = Definition::clone(&kept);
        altered.properties.extend(changed);
        altered.source.extend(source.clone());
        properties::check(&altered, table.as_ref().map(|table| table.def()).as_deref())?;
        if let Some(table) = &table {
            self.ready_for_job(table, &altered).await?;
            task::reader(self, &table.def(), &altered)?;
        } else {
            task::time(self, &altered)?;
        }
        let is_elsewhere = ["kafka_broker_list", "kafka_topic"].iter().any(|name| source.contains_key(*name));
        let begin = Beginning::of(&source)?;
        if begin.is_given() || is_elsewhere {
            let is_other = source.contains_key("kafka_topic");
            let mut progress = if is_other { Progress::default() } else { job.progress(self) };
            if begin.is_given() || progress.offsets().is_empty() {
                progress.go_to(self.beginning(&altered).await?);
            }
            let statistics = altered.is_of_many().then(|| job.now().statistics);
            altered.begin_generation(progress, statistics);
        }
        self.change_job(&job, |kept| *kept = altered).await?;
        job.remember(self);
        Ok(())
    }
}

/// Whether a job may get into a state.
fn transform(job: &Job, to: JobState) -> Result<(), SqlError> {
    let from = job.kept().state;
    if from.is_final() {
        return Err(wrong(format!("Could not transform {} to {}", from.name(), to.name())));
    }
    Ok(())
}
