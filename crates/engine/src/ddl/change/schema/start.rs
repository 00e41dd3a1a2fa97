//! Jobs that a stop of the server interrupted.

use crate::ddl::Ddl;
use std::sync::Arc;
use tributary_types::SqlError;

impl Ddl {
    /// Resumes the jobs of the last run: unfinished ones restart.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume_schema_changes(self: &Arc<Self>) -> Result<(), SqlError> {
        for job in self.schema_changes.read_kept().await? {
            if !job.has_ended() && self.schema_changes.begins_again(&job).await {
                self.spawn_schema_change(job);
            }
        }
        Ok(())
    }
}
