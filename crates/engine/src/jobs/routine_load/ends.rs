//! The end of a task's load, for metrics and the audit log.
//!
//! Not here: what follows for the job.

use super::job::Job;
use super::runner::Halt;
use crate::access::finished::{Door, Failure, FinishedRequest, LoadFacts, Stated};
use crate::audit::Admission;
use crate::jobs::ServerJobs;
use crate::load::Load;
use std::time::Instant;
use tributary_decode::Counts;
use tributary_types::ErrorCode;

/// A load of a task, as its record names it.
pub(super) struct TaskLoad {
    begun: Instant,
    table: String,
    txn: Option<u64>,
    label: Option<String>,
    admission: Option<Admission>,
}

impl TaskLoad {
    /// A load that begins.
    ///
    /// # Errors
    /// It could leave no record, and nothing runs without one.
    pub fn begin(jobs: &ServerJobs, load: &Load) -> Result<Self, Halt> {
        let admission = jobs.requests.admit().map_err(|error| Halt::Retry(error.detail_text().to_owned()))?;
        let transaction = load.transaction();
        Ok(Self {
            begun: Instant::now(),
            table: load.table().with_def(|def| def.name.clone()),
            txn: transaction.map(|(txn, _)| txn.0),
            label: transaction.map(|(_, label)| label.as_str().to_owned()),
            admission,
        })
    }

    /// Records the end of the load.
    pub fn end(self, jobs: &ServerJobs, job: &Job, counts: Counts, bytes: u64, error: Option<&str>) {
        let kept = job.kept();
        let words = format!("ROUTINE LOAD {}.{}", kept.db, kept.name);
        let principal = jobs.gate.principal(&kept.user, &kept.host);
        let request = FinishedRequest {
            db: Some(&kept.db),
            load: LoadFacts {
                table: Some(&self.table),
                format: None,
                txn: self.txn,
                label: self.label.as_deref(),
            },
            affected_rows: if error.is_some() { 0 } else { counts.loaded },
            received_bytes: bytes,
            error: error.map(|text| Failure { code: ErrorCode::Unknown.number(), text }),
            ..FinishedRequest::new(
                &principal,
                Door::Task,
                Stated::Plain(&words, "LOAD"),
                self.begun.elapsed(),
            )
        };
        jobs.requests.finished(&request, self.admission);
    }
}
