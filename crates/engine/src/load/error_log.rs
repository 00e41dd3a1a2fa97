//! Reasons of rejected rows → a file that `ErrorURL` names.

mod files;

use crate::load::Loads;
use std::sync::Arc;
use std::time::SystemTime;
use tributary_decode::Reject;
use tributary_types::{DbId, Label};

pub(crate) use files::ErrorLog;

impl Loads {
    /// Writes the reasons and gives their URL, which is remembered for the load's label if it is `named`; `None` without rejects or
    /// if the disk refuses, which is logged and fails no load.
    pub(crate) async fn write_error_log(
        &self,
        rejects: &[Reject],
        named: Option<(DbId, Label)>,
    ) -> Option<String> {
        if rejects.is_empty() {
            return None;
        }
        let log = Arc::clone(&self.error_log);
        let rows: Vec<(String, String)> =
            rejects.iter().map(|reject| (reject.reason.clone(), reject.source_line.clone())).collect();
        let written = tokio::task::spawn_blocking(move || log.write(rand::random(), rows)).await;
        match written {
            Ok(Ok(file)) => {
                let url = tributary_http::error_url(&self.options.host, self.ports().webserver, &file);
                if let Some((db, label)) = named {
                    self.load_records.rejected(db, label, url.clone());
                }
                Some(url)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the reasons of rejected rows can't be written");
                None
            }
            Err(panic) => {
                tracing::error!(%panic, "writing the reasons of rejected rows panicked");
                None
            }
        }
    }

    /// Deletes error logs that are older than the setting says.
    pub(crate) async fn purge_error_logs(&self) {
        let log = Arc::clone(&self.error_log);
        let keep = self.options.error_log_keep.get();
        let purged = tokio::task::spawn_blocking(move || log.purge(SystemTime::now(), keep)).await;
        if let Ok(Err(error)) = purged {
            tracing::warn!(%error, "old error logs can't be deleted now");
        }
    }
}
