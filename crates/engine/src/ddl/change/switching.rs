//! Switches of a table to other partitions: retried until earlier loads have ended, and the Delta log and the catalog written
//! until they are known to have it.
//!
//! Not its business: the partitions themselves, and the steps of a change ([`super::records`]).

use crate::ddl::change::switches::{Switching, Waiting};
use crate::ddl::tables::Changing;
use crate::engine::Engine;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::Halt;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef};

/// How long a switch waits for loads that started before it.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(20);

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
}

/// The answer to the statement behind a switch that is in doubt.
pub(crate) fn in_doubt(def: &TableDef, reason: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "it is not known yet whether table {} has its new partitions: {reason}. It is tried again until it is known; meanwhile loads of the table wait and other changes of it are refused. SHOW PARTITIONS shows how it ended",
            def.table_ref()
        ),
    )
}

/// The error of a change of partitions that waited for loads too long.
pub(crate) fn loads_go_on(table: &Table) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "loads of table {} have not ended for {} s: COMMIT or abort two-phase loads that wait, and try again",
            table.def().name,
            WAIT_MAX.as_secs()
        ),
    )
}

fn panicked(error: tokio::task::JoinError) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, error.to_string())
}
