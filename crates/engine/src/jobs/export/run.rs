//! A job's rows become files.

use super::Job;
use super::plan::Plan;
use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::files::outfile::{Target, Written, write};
use crate::jobs::ServerJobs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{ErrorCode, Principal, SqlError};

impl ServerJobs {
    /// Runs a job to its end, or until the server stops.
    pub(super) async fn run_export(self: Arc<Self>, job: Arc<Job>, plan: Plan) {
        let record = job.record();
        let principal = self.gate.principal(&record.user, &record.host);
        let Plan { timeout, .. } = plan;
        // A job that waits for its limits takes no turn from others.
        let by_cancel = Interrupt::by_kill(&job.stop);
        let admitted = by_cancel.wait(self.loads.limits.wait_for_query(&principal)).await;
        let turn = match &admitted {
            Ok(_) => self.exports.turn(&job).await,
            Err(interrupted) => Err(*interrupted),
        };
        let written = match &turn {
            Ok(_) => {
                let interrupt = Interrupt::by_kill(&job.stop).or_after(timeout);
                self.write_export(&job, plan, &principal, interrupt).await
            }
            Err(interrupted) => Err((*interrupted).into()),
        };
        let now = self.unix_ms();
        match written {
            Ok(written) => self.exports.end(&job, |record| record.finish(&written, now)).await,
            Err(_) if job.is_paused() => job.announce(),
            Err(error) => self.exports.end(&job, |record| record.cancel(message(&error), now)).await,
        }
    }

    async fn write_export(
        &self,
        job: &Job,
        plan: Plan,
        principal: &Principal,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<Written>, SqlError> {
        let record = job.record();
        if record.started_ms.is_some() {
            // Files left by an interrupted run.
            interrupt.wait(plan.output.delete_all(&format!("{}_", record.id))).await??;
        }
        self.exports.change(job, |record| record.begin(self.unix_ms())).await?;
        let table = self.gate.table(principal, Privilege::Select, None, Some(&record.db), &record.table);
        if let (true, Ok(table)) = (plan.is_whole, table) {
            job.progress.rows_max.store(table.snapshot().rows(), Ordering::Relaxed);
        }
        let result = interrupt.wait(plan.query(self, principal, "")).await??;
        let Plan { output, form, file_bytes_max, parallelism, .. } = plan;
        let target = Arc::new(Target::new(output, form, file_bytes_max, record.id));
        write(&target, result, parallelism, None, interrupt, &job.progress.rows).await
    }
}

/// Why it was cancelled, as Doris words it.
fn message(error: &SqlError) -> String {
    match error.code {
        ErrorCode::QueryInterrupted => "type:USER_CANCEL; msg:user cancel".to_owned(),
        ErrorCode::ExecuteTimeout => {
            "type:TIMEOUT; msg:timeout; PROPERTIES (\"timeout\") allows more".to_owned()
        }
        _ => format!("type:RUN_FAIL; msg:{}", error.detail_text()),
    }
}
