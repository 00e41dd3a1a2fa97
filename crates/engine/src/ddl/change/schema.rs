//! Heavy schema changes: jobs that give a table other types, keys or an order of columns, and continue without their clients.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `record` | a job's record in the catalog |
//! | `run` | a job from PENDING to its end |
//! | `start` | jobs that a stop of the server interrupted |
//! | `show` | SHOW ALTER TABLE COLUMN |
//!
//! Invariant: a table has one such job at a time, and while it has, nothing else changes its definition except loads that create
//! partitions. The change crosses the Delta log ([`tributary_ddl`]) with the job's number: before its entry a crash makes the job
//! restart, after it the start completes the catalog before any table is opened.
//!
//! Not its business: the definition that a clause describes, the conversion of files, the holding of loads.

mod record;
mod run;
mod show;
mod start;

use crate::background::{self, Jobs, UNFINISHED_MAX};
use crate::ddl::Ddl;
use crate::ddl::change::turns::TableTurn;
pub(crate) use record::Record;
use std::sync::Arc;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef, TableId};

type Job = background::Job<Record>;
/// All jobs of this kind.
pub(crate) type SchemaChanges = Jobs<Record>;

impl Ddl {
    /// Starts a job that gives the table the columns and keys of `target`. It is persisted when this returns.
    ///
    /// # Errors
    /// Too many jobs; the catalog can't be written.
    pub(crate) async fn begin_schema_change(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Table,
        target: TableDef,
    ) -> Result<(), SqlError> {
        let old = table.def();
        debug_assert!(turn.is_of(&old), "a job is begun by the holder of its table's turn");
        if old.name != target.name {
            return Err(refused(
                "RENAME can't be in one statement with changes that rewrite the table: use a statement of its own",
            ));
        }
        let unfinished = self.schema_changes.unfinished();
        if unfinished >= UNFINISHED_MAX {
            return Err(refused(format!(
                "{unfinished} schema changes wait already; wait until SHOW ALTER TABLE COLUMN says that some have ended"
            )));
        }
        let record = Record::new(target, self.unix_ms());
        let job = Arc::new(Job::new(self.schema_changes.next_id().await?, record));
        self.schema_changes.add(&job, |_| Ok(())).await?;
        self.spawn_schema_change(job);
        Ok(())
    }

    fn spawn_schema_change(self: &Arc<Self>, job: Arc<Job>) {
        let work = Arc::clone(self).run_schema_change(Arc::clone(&job));
        background::spawn(self, |ddl| &ddl.schema_changes, job, work);
    }

    fn unfinished_change(&self, table: TableId) -> Option<Arc<Job>> {
        let is_its = |job: &Arc<Job>| !job.has_ended() && job.record().table_id() == table;
        self.schema_changes.all().into_iter().find(is_its)
    }

    /// Refuses a change of a table that has a job.
    ///
    /// # Errors
    /// It has one; in Doris's words.
    pub(crate) fn refuse_while_changing(&self, def: &TableDef) -> Result<(), SqlError> {
        match self.unfinished_change(def.id) {
            None => Ok(()),
            Some(_) => Err(refused(format!(
                "Table[{}]'s state(SCHEMA_CHANGE) is not NORMAL. Do not allow doing ALTER ops",
                def.name
            ))),
        }
    }

    /// Cancels the job of a table and waits until it has ended.
    ///
    /// # Errors
    /// There is none, or it was too late.
    pub(crate) async fn cancel_schema_change(&self, def: &TableDef) -> Result<(), SqlError> {
        let none = || refused(format!("Table[{}] is not under SCHEMA_CHANGE.", def.name));
        let job = self.unfinished_change(def.id).ok_or_else(none)?;
        job.progress.halt.ask();
        job.stop.set();
        job.ended().await;
        if job.record().is_cancelled() { Ok(()) } else { Err(none()) }
    }

    /// Waits until the job of a table has ended, if it has one.
    ///
    /// # Errors
    /// It was cancelled.
    pub(crate) async fn schema_changed(&self, table: TableId) -> Result<(), SqlError> {
        let Some(job) = self.unfinished_change(table) else { return Ok(()) };
        job.ended().await;
        let record = job.record();
        match record.is_cancelled() {
            true => Err(refused(format!(
                "the change of table {} was cancelled: {}",
                record.target.name, record.message
            ))),
            false => Ok(()),
        }
    }

    /// Ends the job of a table that is dropped.
    pub(crate) async fn end_schema_change(&self, table: TableId) {
        if let Some(job) = self.unfinished_change(table) {
            job.progress.halt.at_once();
            job.stop.set();
            job.ended().await;
        }
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
