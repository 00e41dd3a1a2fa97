//! SHOW EXPORT, in Doris's columns.

use super::record::{Record, State};
use super::{Job, no_database};
use crate::access::{Object, Privilege};
use crate::jobs::ServerJobs;
use crate::node::clock::date_time;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_query::{Cell, Grid};
use tributary_types::{Principal, SqlError};

const COLUMNS: [&str; 12] = [
    "JobId#",
    "Label",
    "State",
    "Progress",
    "TaskInfo",
    "Path",
    "CreateTime",
    "StartTime",
    "FinishTime",
    "Timeout#",
    "ErrorMsg",
    "OutfileInfo",
];

impl ServerJobs {
    /// The jobs of a database.
    ///
    /// # Errors
    /// No database, or no privilege.
    pub(crate) fn show_exports(&self, principal: &Principal, db: Option<&str>) -> Result<Grid, SqlError> {
        let db = db.ok_or_else(no_database)?;
        self.gate.database(principal, Privilege::Show, db)?;
        let mut grid = Grid::new(&COLUMNS);
        self.shown_exports(principal, db).into_iter().for_each(|(job, record)| grid.push(row(&job, record)));
        Ok(grid)
    }

    /// The jobs of tables that the principal may read.
    fn shown_exports(&self, principal: &Principal, db: &str) -> Vec<(Arc<Job>, Record)> {
        let all = self.exports.of_db(db).into_iter().map(|job| {
            let record = job.record();
            (job, record)
        });
        let may_read =
            |table: &str| self.gate.allows(principal, Privilege::Select, Object::Table { db, table });
        all.filter(|(_, record)| may_read(&record.table)).collect()
    }

    /// The jobs in the columns of `information_schema.jobs`.
    pub(in crate::jobs) fn export_overview(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let row = |(job, record): (Arc<Job>, Record)| {
            let percent = percent(&job, &record);
            vec![
                job.id.into(),
                "EXPORT".into(),
                record.db.into(),
                record.table.into(),
                record.label.into(),
                record.state.name().into(),
                format!("{percent}%").into(),
                date_time(record.created_ms).into(),
                record.finished_ms.map(date_time).into(),
                record.user.into(),
                Some(record.error).filter(|text| !text.is_empty()).into(),
            ]
        };
        self.shown_exports(principal, db).into_iter().map(row).collect()
    }
}

fn percent(job: &Job, record: &Record) -> u64 {
    match record.state {
        State::Finished => 100,
        State::Exporting => {
            let rows = job.progress.rows.load(Ordering::Relaxed);
            // Only a finished export is complete.
            (rows * 100).checked_div(job.progress.rows_max.load(Ordering::Relaxed)).unwrap_or(0).min(99)
        }
        State::Pending | State::Cancelled => 0,
    }
}

fn row(job: &Job, record: Record) -> Vec<Cell> {
    let time = |at: Option<i64>| Cell::from(at.map(date_time));
    let progress = percent(job, &record);
    let outfile_info = (record.state == State::Finished).then(|| outfile_info(&record));
    vec![
        job.id.into(),
        record.label.into(),
        record.state.name().into(),
        format!("{progress}%").into(),
        record.task_info.into(),
        record.path.into(),
        time(Some(record.created_ms)),
        time(record.started_ms),
        time(record.finished_ms),
        record.timeout_seconds.into(),
        Cell::from(Some(record.error).filter(|text| !text.is_empty())),
        outfile_info.into(),
    ]
}

/// A list per writer, with Doris's information about an OUTFILE.
fn outfile_info(record: &Record) -> String {
    let url = format!("{}{}_*", record.path, record.id);
    let writers = record.written.iter().map(|written| {
        json!([{
            "fileNumber": written.count.to_string(),
            "totalRows": written.rows.to_string(),
            "fileSize": format!("{}bytes", written.bytes),
            "url": url,
        }])
    });
    serde_json::Value::Array(writers.collect()).to_string()
}
