//! SHOW JOBS, `jobs("type" = "insert")` and `tasks("type" = "insert")`, in Doris's columns, and `information_schema.jobs`.

use super::record::{Outcome, Record};
use super::{Job, ServerJobs};
use crate::node::clock::date_time;
use std::sync::Arc;
use tributary_query::{Cell, Grid, SCHEDULED_COLUMNS};
use tributary_sql::without_secrets;
use tributary_types::Principal;

impl ServerJobs {
    /// The jobs of a user, or of all users for who administers the server.
    pub(crate) fn show_scheduled(&self, principal: &Principal) -> Grid {
        let mut grid = Grid::new(&SCHEDULED_COLUMNS);
        self.scheduled_rows(principal).into_iter().for_each(|row| grid.push(row));
        grid
    }

    fn shown_scheduled(&self, principal: &Principal) -> Vec<(Arc<Job>, Record)> {
        let all = self.scheduled.all().into_iter().map(|job| {
            let record = job.record();
            (job, record)
        });
        all.filter(|(_, record)| self.shows_scheduled(principal, record)).collect()
    }

    pub(crate) fn scheduled_rows(&self, principal: &Principal) -> Vec<Vec<Cell>> {
        let row = |(job, record): (Arc<Job>, Record)| {
            let kind = if record.times.every_ms.is_some() { "RECURRING" } else { "ONE_TIME" };
            vec![
                job.id.to_string().into(),
                record.name.into(),
                record.user.into(),
                kind.into(),
                record.strategy.into(),
                record.state.name().into(),
                without_secrets(&record.statement).into_owned().into(),
                date_time(record.created_ms).into(),
                record.succeeded.to_string().into(),
                record.failed.to_string().into(),
                record.cancelled.to_string().into(),
                record.comment.into(),
            ]
        };
        self.shown_scheduled(principal).into_iter().map(row).collect()
    }

    /// The last runs of the jobs.
    pub(crate) fn scheduled_run_rows(&self, principal: &Principal) -> Vec<Vec<Cell>> {
        let mut rows = Vec::new();
        for (job, record) in self.shown_scheduled(principal) {
            let row = |planned_ms: i64, status: &str, error: Cell, times: [Option<i64>; 2], loaded: Cell| {
                vec![
                    planned_ms.to_string().into(),
                    job.id.to_string().into(),
                    record.name.as_str().into(),
                    job.label(planned_ms).into(),
                    status.into(),
                    error,
                    date_time(planned_ms).into(),
                    times[0].map(date_time).into(),
                    times[1].map(date_time).into(),
                    Cell::Null,
                    loaded,
                    record.user.as_str().into(),
                ]
            };
            for run in &record.runs {
                let (status, error, loaded) = match &run.outcome {
                    Outcome::Loaded(rows) => ("SUCCESS", Cell::Null, rows.to_string().into()),
                    Outcome::Failed(text) => ("FAILED", text.as_str().into(), Cell::Null),
                    Outcome::Cancelled => ("CANCELED", Cell::Null, Cell::Null),
                };
                rows.push(row(
                    run.planned_ms,
                    status,
                    error,
                    [Some(run.begun_ms), Some(run.ended_ms)],
                    loaded,
                ));
            }
            if let Some(planned_ms) = record.current_ms {
                rows.push(row(planned_ms, "RUNNING", Cell::Null, [None, None], Cell::Null));
            }
        }
        rows
    }

    /// The jobs in the columns of `information_schema.jobs`, whose progress is the number of their runs.
    pub(in crate::jobs) fn scheduled_overview(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let of_db = self.shown_scheduled(principal).into_iter().filter(|(_, record)| record.label_db == db);
        let row = |(job, record): (Arc<Job>, Record)| {
            let error = record.runs.last().and_then(|run| match &run.outcome {
                Outcome::Failed(text) => Some(text.clone()),
                _ => None,
            });
            let (runs, ended_ms) = (record.succeeded + record.failed + record.cancelled, record.ended_ms());
            vec![
                job.id.into(),
                "INSERT".into(),
                record.label_db.into(),
                record.table.into(),
                record.name.into(),
                record.state.name().into(),
                format!("{runs} runs").into(),
                date_time(record.created_ms).into(),
                ended_ms.map(date_time).into(),
                record.user.into(),
                error.into(),
            ]
        };
        of_db.map(row).collect()
    }
}
