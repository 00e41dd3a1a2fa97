//! Switches of a table to other partitions: retried until earlier loads have ended, and the Delta log and the catalog written
//! until they are known to have it.
//!
//! Invariant: a record of the switch was persisted before, and is deleted once the outcome is known; otherwise the next start
//! finds out. Not its business: the partitions themselves.

use crate::ddl::change::switches::{Switching, Waiting};
use crate::ddl::tables::{Changing, table_error};
use crate::engine::Engine;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::{Halt, Switched};
use tributary_table::{Table, TableError};
use tributary_types::{ErrorCode, SourceId, SqlError, TableDef};

/// How long a switch waits for loads that started before it.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long it is waited before the catalog is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// A statement's remaining work after a successful switch.
pub(crate) enum Rest {
    Nothing,
    /// Drops the table beside if it has no partitions left.
    DropBeside(Arc<TableDef>),
    /// The table gets this definition.
    Change(Arc<Table>, Box<TableDef>),
}

impl Engine {
    /// Runs `switch` in a task of its own, so that it can't be cancelled half way, and then the rest. If it is in doubt for long,
    /// it continues alone.
    ///
    /// # Errors
    /// The switch's; it is in doubt.
    pub(crate) async fn run_switch<R: Future<Output = Result<(), SqlError>> + Send + 'static>(
        self: &Arc<Self>,
        turn: &Changing<'_>,
        table: &Table,
        switch: impl FnOnce(Arc<Self>, Arc<Halt>) -> R,
        rest: Rest,
    ) -> Result<(), SqlError> {
        let halt = Arc::new(Halt::default());
        let registered = self.switches.begin(table.id(), Arc::clone(&halt));
        let switching = Arc::clone(&registered.switching);
        let (engine, work) = (Arc::clone(self), switch(Arc::clone(self), halt));
        let name = table.def().table_ref();
        // Unwatched: awaited below.
        let task = tokio::spawn(async move {
            let switched = work.await;
            if registered.switching.is_known() {
                return switched.map(|()| rest);
            }
            match engine.end_alone(&registered.switching, switched, rest).await {
                Ok(()) => tracing::info!(table = %name, "a change that was in doubt is made"),
                Err(error) => {
                    let error = error.detail_text();
                    tracing::warn!(table = %name, error, "a change that was in doubt has failed");
                }
            }
            Ok(Rest::Nothing)
        });
        let rest = self.wait_for_switch(table, &switching, task).await?;
        self.end_with(turn, rest).await
    }

    async fn wait_for_switch(
        &self,
        table: &Table,
        switching: &Switching,
        mut task: tokio::task::JoinHandle<Result<Rest, SqlError>>,
    ) -> Result<Rest, SqlError> {
        let _waiting = Waiting(switching);
        tokio::select! {
            biased;
            ended = &mut task => return ended.map_err(panicked)?,
            reason = switching.in_doubt() => if switching.give_back() {
                return Err(in_doubt(&table.def(), &reason));
            }
        }
        task.await.map_err(panicked)?
    }

    async fn end_alone(
        self: &Arc<Self>,
        switching: &Switching,
        switched: Result<(), SqlError>,
        rest: Rest,
    ) -> Result<(), SqlError> {
        switched?;
        match self.changing_unless(&switching.halt).await {
            Some(turn) => self.end_with(&turn, rest).await,
            None => Ok(()),
        }
    }

    async fn end_with(self: &Arc<Self>, turn: &Changing<'_>, rest: Rest) -> Result<(), SqlError> {
        match rest {
            Rest::Nothing => Ok(()),
            Rest::DropBeside(def) => {
                self.drop_beside_without_partitions(turn, &def).await;
                Ok(())
            }
            Rest::Change(table, new) => self.change_table(table, *new).await.map_err(|error| {
                let reason = error.detail_text();
                let text =
                    format!("the partitions are dropped, and the rest of the statement has failed: {reason}");
                SqlError::detail(ErrorCode::Unknown, text)
            }),
        }
    }

    /// Retries the switch with the record `id` until earlier loads have ended. `None` if they have not.
    ///
    /// # Errors
    /// Nothing has changed, or it is not known whether, which is logged.
    pub(crate) async fn carry_out_switch<R: Future<Output = Result<Switched, TableError>>>(
        &self,
        table: &Table,
        id: u64,
        halt: &Arc<Halt>,
        switch: impl Fn(Arc<Halt>) -> R,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        let begun = tokio::time::Instant::now();
        let goes_on = || begun.elapsed() < WAIT_MAX && !halt.is_asked() && !self.ingest.has_prepared(table);
        let switched = loop {
            match switch(Arc::clone(halt)).await {
                Ok(Switched::NotYet) if goes_on() => self.ingest.pause().await,
                ended => break ended,
            }
        };
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

    /// Updates the catalog, which is behind the Delta log, until it succeeds or is to be left to the next start (`false`).
    pub(crate) async fn tell_catalog<E: Display, R: Future<Output = Result<(), E>>>(
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
                    halt.doubts(&error);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The answer to the statement behind a switch that is in doubt.
pub(crate) fn in_doubt(def: &TableDef, reason: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "it is not known yet whether table {} has its new partitions: {reason}. It is tried again until it is known; meanwhile loads              of the table wait and other changes of it are refused. SHOW PARTITIONS shows how it ended",
            def.table_ref()
        ),
    )
}

fn panicked(error: tokio::task::JoinError) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, error.to_string())
}
