//! SHOW LOAD, in Doris's columns.

use super::job::{Job, Record, State};
use crate::access::Privilege;
use crate::jobs::ServerJobs;
use crate::node::clock::date_time;
use std::sync::Arc;
use tributary_query::{Cell, Grid};
use tributary_types::{Principal, SqlError};

const COLUMNS: [&str; 20] = [
    "JobId",
    "Label",
    "State",
    "Progress",
    "Type",
    "EtlInfo",
    "TaskInfo",
    "ErrorMsg",
    "CreateTime",
    "EtlStartTime",
    "EtlFinishTime",
    "LoadStartTime",
    "LoadFinishTime",
    "URL",
    "JobDetails",
    "TransactionId",
    "ErrorTablets",
    "User",
    "Comment",
    "FirstErrorMsg",
];

impl ServerJobs {
    /// The jobs of a database, oldest first.
    ///
    /// # Errors
    /// No such database, or no privilege.
    pub(crate) fn show_loads(&self, principal: &Principal, db: &str) -> Result<Grid, SqlError> {
        self.gate.database(principal, Privilege::Show, db)?;
        let mut grid = Grid::new(&COLUMNS);
        for job in self.shown_loads(principal, db) {
            grid.push(row(&job, job.record()));
        }
        Ok(grid)
    }

    /// The jobs of a database that load into tables into which `principal` may load.
    fn shown_loads(&self, principal: &Principal, db: &str) -> Vec<Arc<Job>> {
        let mut all = self.broker_loads.of_db(db);
        all.retain(|job| self.check_label(principal, db, &job.record().label).is_ok());
        all
    }

    /// Checks that `principal` may load into the table of a label's transaction.
    ///
    /// # Errors
    /// As [`check_transaction`](crate::access::gate::Gate::check_transaction).
    pub(crate) fn check_label(&self, principal: &Principal, db: &str, label: &str) -> Result<(), SqlError> {
        let id = self.catalog.database_id(db);
        let info = id.and_then(|id| self.ingest.transactions().by_label(id, label));
        self.gate.check_transaction(principal, db, info.map(|info| info.table_ref).as_ref())
    }

    /// The same for `information_schema`, each with the database.
    pub(crate) fn load_job_rows(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let with_db = |mut row: Vec<Cell>| {
            row.push(db.into());
            row
        };
        self.shown_loads(principal, db).iter().map(|job| with_db(row(job, job.record()))).collect()
    }
}

impl ServerJobs {
    /// Jobs of all kinds in the columns of `information_schema.jobs`, but for schema changes.
    pub(crate) fn all_job_rows(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let mut rows: Vec<_> = self.shown_loads(principal, db).iter().map(|job| overview(job)).collect();
        rows.extend(self.routine_overview(principal, db));
        rows.extend(self.export_overview(principal, db));
        rows.extend(self.scheduled_overview(principal, db));
        rows
    }
}

fn overview(job: &Job) -> Vec<Cell> {
    let record = job.record();
    let percent = match record.state {
        State::Finished => 100,
        State::Loading => job.progress.percent().min(99),
        _ => 0,
    };
    vec![
        job.id.into(),
        "LOAD".into(),
        record.db.into(),
        // A load may be into several tables.
        Cell::Null,
        record.label.into(),
        record.state.name().into(),
        format!("{percent}%").into(),
        date_time(record.created_ms).into(),
        record.finished_ms.map(date_time).into(),
        record.user.into(),
        Some(record.error).filter(|text| !text.is_empty()).into(),
    ]
}

fn row(job: &Job, record: Record) -> Vec<Cell> {
    let time = |at: Option<i64>| Cell::from(at.map(date_time));
    let text = |text: String| Cell::from(Some(text).filter(|text| !text.is_empty()));
    let is_read = matches!(record.state, State::Loading | State::Finished);
    let progress = match record.state {
        State::Pending | State::Cancelled => "ETL:N/A; LOAD:N/A".to_owned(),
        State::Etl => "ETL:0%; LOAD:0%".to_owned(),
        // Only a committed load is complete.
        State::Loading => format!("ETL:100%; LOAD:{}%", job.progress.percent().min(99)),
        State::Finished => "ETL:100%; LOAD:100%".to_owned(),
    };
    let etl_info = record.state.is_final().then(|| {
        format!(
            "unselected.rows={}; dpp.abnorm.ALL={}; dpp.norm.ALL={}",
            record.unselected, record.filtered, record.loaded
        )
    });
    vec![
        job.id.to_string().into(),
        record.label.into(),
        record.state.name().into(),
        progress.into(),
        "BROKER".into(),
        etl_info.into(),
        record.task_info.into(),
        text(record.error),
        time(Some(record.created_ms)),
        time(record.etl_started_ms),
        time(record.loading_started_ms.filter(|_| is_read)),
        time(record.loading_started_ms),
        time(record.finished_ms),
        record.url.into(),
        record.details.unwrap_or_else(|| job.progress.details()).into(),
        record.txn.unwrap_or_default().to_string().into(),
        "{}".into(),
        record.user.into(),
        record.comment.into(),
        text(record.first_error),
    ]
}
