//! Switches of a table to other partitions: retried until earlier loads have ended, and the Delta log and the catalog written
//! until they are known to have it.
//!
//! Not its business: the partitions themselves, and the steps of a change ([`super::records`]).

use crate::ddl::Ddl;
use crate::ddl::change::turns::TableTurn;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
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

impl Ddl {
    /// Runs `switch` and then the rest in a task of its own, which has the table's turn, so that it can't be cancelled half way. If
    /// it is in doubt for long, it continues alone.
    ///
    /// # Errors
    /// The errors of the switch and of the rest; it is in doubt.
    pub(crate) async fn run_switch<R: Future<Output = Result<(), SqlError>> + Send + 'static>(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Table,
        switch: impl FnOnce(Arc<Self>, Arc<Halt>) -> R,
        rest: Rest,
    ) -> Result<(), SqlError> {
        debug_assert!(table.with_def(|def| turn.is_of(def)), "a switch has the turn of its table");
        let halt = Arc::new(Halt::default());
        let running = turn.begin_switch(Arc::clone(&halt));
        let (ddl, work) = (Arc::clone(self), switch(Arc::clone(self), Arc::clone(&halt)));
        let (its_turn, name) = (turn.clone(), table.def().table_ref());
        let (answer, mut answered) = oneshot::channel();
        // Unwatched: awaited below if it panics.
        let task = tokio::spawn(async move {
            let ended = match running.run(work).await {
                Ok(()) => ddl.end_with(&its_turn, &halt, rest).await,
                failed => failed,
            };
            drop((running, its_turn));
            match answer.send(ended) {
                Ok(()) => {}
                Err(Ok(())) => tracing::info!(table = %name, "a change that was in doubt is made"),
                Err(Err(error)) => {
                    let error = error.detail_text();
                    tracing::warn!(table = %name, error, "a change that was in doubt has failed");
                }
            }
        });
        let reason = tokio::select! {
            biased;
            ended = &mut answered => return match ended {
                Ok(ended) => ended,
                Err(_) => task.await.map_err(panicked),
            },
            reason = turn.in_doubt() => reason,
        };
        answered.close();
        // It may have ended in this moment.
        answered.try_recv().unwrap_or_else(|_| Err(in_doubt(&table.def(), &reason)))
    }

    /// Does the rest, unless the table is dropped by force or the server stops.
    async fn end_with(self: &Arc<Self>, turn: &TableTurn, halt: &Halt, rest: Rest) -> Result<(), SqlError> {
        let ended = match rest {
            Rest::Nothing => return Ok(()),
            Rest::DropBeside(def) => {
                if !halt.is_at_once() {
                    self.drop_beside_without_partitions(&def).await;
                }
                return Ok(());
            }
            Rest::Change(..) if halt.is_at_once() => {
                Err(SqlError::detail(ErrorCode::Unknown, "the server stops, or the table is dropped"))
            }
            Rest::Change(table, new) => self.change_table(turn, table, *new).await,
        };
        ended.map_err(|error| {
            let reason = error.detail_text();
            let text =
                format!("the partitions are dropped, and the rest of the statement has failed: {reason}");
            SqlError::detail(ErrorCode::Unknown, text)
        })
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
