//! Switches of a table to other partitions: tried until what was under way before has ended, and the catalog told until it has
//! heard.
//!
//! Invariant: a record of the switch was kept before, and is forgotten when it is known how it ended; else the next start finds out.
//! Not its business: what the partitions are.

use super::Engine;
use super::ddl::table_error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tributary_catalog::CatalogError;
use tributary_ingest::{Halt, Switched};
use tributary_table::{Table, TableError};
use tributary_types::{SourceId, SqlError, TableDef};

/// How long loads that were there before a switch are waited for.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a catalog or a Delta log that can't be written is tried again.
const TRY_MAX: Duration = Duration::from_secs(60);
/// How long it is waited before the catalog is tried again.
const PAUSE: Duration = Duration::from_millis(200);

impl Engine {
    /// Tries the switch that the record `id` is of, until what was under way before has ended. `None`: it has not.
    ///
    /// # Errors
    /// Nothing has changed, or it is not known whether, which is logged.
    pub(super) async fn carry_out_switch<R: Future<Output = Result<Switched, TableError>>>(
        &self,
        table: &Table,
        id: u64,
        switch: impl Fn(Arc<Halt>) -> R,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        let halt = Arc::new(Halt::default());
        let timer = {
            let halt = Arc::clone(&halt);
            tokio::spawn(async move {
                tokio::time::sleep(TRY_MAX).await;
                halt.at_once();
            })
        };
        let begun = tokio::time::Instant::now();
        let switched = loop {
            match switch(Arc::clone(&halt)).await {
                Ok(Switched::NotYet) if begun.elapsed() < WAIT_MAX && !self.ingest.has_prepared(table) => {
                    self.ingest.pause().await;
                }
                ended => break ended,
            }
        };
        timer.abort();
        self.names().changed();
        if let Err(TableError::Unsure { reason, .. }) = &switched {
            tracing::error!(table = %table.def().table_ref(), reason, "whether a table has other partitions is not known; the next start finds out");
        } else if let Err(error) = self.catalog.delete_job(&self.facts.node, SourceId(id)).await {
            tracing::warn!(%error, "the record of a change of partitions stays until the next start");
        }
        match switched {
            Ok(Switched::Yes(def)) => Ok(Some(def)),
            Ok(Switched::NotYet) => Ok(None),
            Err(error) => Err(table_error(error)),
        }
    }

    /// Tells the catalog, which the Delta log is ahead of, until it has heard or that is to be left to the next start (`false`).
    pub(super) async fn tell_catalog<R: Future<Output = Result<(), CatalogError>>>(
        &self,
        new: &TableDef,
        halt: &Halt,
        tell: impl Fn() -> R,
    ) -> bool {
        loop {
            match tell().await {
                Ok(()) => {
                    self.names().changed();
                    return true;
                }
                Err(error) if halt.is_at_once() => {
                    tracing::error!(table = new.name, %error, "the catalog lags behind a change of partitions; the next start completes it");
                    return false;
                }
                Err(error) => {
                    tracing::error!(table = new.name, %error, "the catalog can't be told of a change of partitions; it is tried again, and loads wait");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}
