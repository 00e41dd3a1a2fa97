//! Labels that jobs or prepared loads have.

use super::ServerJobs;
use crate::access::Privilege;
use tributary_ingest::{TransactionStatus, TwoPhaseTarget};
use tributary_sql::JobsBy;
use tributary_types::{DbId, ErrorCode, Principal, SqlError};

impl ServerJobs {
    /// Cancels the load of a label: a job of LOAD LABEL, or a two-phase load that waits.
    ///
    /// # Errors
    /// No privilege, no such label, a load that has ended, or one that only its client can end.
    pub(crate) async fn cancel_label(
        &self,
        principal: &Principal,
        db: &str,
        label: &str,
    ) -> Result<(), SqlError> {
        let id = self.gate.database(principal, Privilege::Load, db)?;
        if self.broker_load_of(db, label).is_some_and(|job| !job.has_ended()) {
            let by = JobsBy::Label(label.to_owned());
            return self.cancel_broker_loads(principal, None, Some(db), &by).await;
        }
        let Some(info) = self.ingest.transactions().by_label(id, label) else {
            return Err(refused(format!("transaction with label {label} does not exist")));
        };
        match info.status {
            TransactionStatus::Precommitted => {
                let target = TwoPhaseTarget { txn: Some(info.txn), label: None };
                self.ingest.abort_prepared(id, &target, "user cancel").await?;
                Ok(())
            }
            TransactionStatus::Prepare => Err(refused(format!(
                "transaction [{}] of label {label} is being loaded, and ends with its client's connection or its timeout",
                info.txn
            ))),
            TransactionStatus::Visible | TransactionStatus::Aborted => Err(refused(format!(
                "transaction [{}] is already {}",
                info.txn,
                info.status.name().to_ascii_lowercase()
            ))),
        }
    }

    /// The address of the reasons for the rejected rows of the newest load with this label.
    pub(crate) fn reasons_url(&self, id: DbId, db: &str, label: &str) -> Option<String> {
        let kept = || self.broker_load_of(db, label)?.record().url;
        self.loads.load_records.reasons_of(id, label).or_else(kept)
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
