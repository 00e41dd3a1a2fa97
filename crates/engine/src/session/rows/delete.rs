//! DELETE: the query engine finds the rows, the table deletes them.
//!
//! A statement deletes the rows that were visible when it began, as a whole or not at all, and is durable when it is answered.
//! Rows that were acknowledged and wait for their group's commit stay, as in Doris.

use crate::access::Privilege;
use crate::answer::{Answer, Done};
use crate::ddl::tables::table_error;
use crate::session::EngineSession;
use futures::TryFutureExt;
use std::sync::Arc;
use tributary_query::ScalarValue;
use tributary_sql::{Delete, check_deletion_by_keys};
use tributary_table::{Snapshot, TableError};
use tributary_types::{ErrorCode, SqlError};

/// Why rows were not deleted.
enum Failed {
    Table(TableError),
    Query(SqlError),
}

impl From<TableError> for Failed {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl EngineSession {
    pub(in crate::session) async fn run_delete(
        &mut self,
        delete: &Delete,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let table = self.table(Privilege::Load, delete.table.db.as_deref(), &delete.table.table)?;
        let places = delete.partitions.resolve(&table.def())?;
        if table.with_def(|def| def.keys.is_unique()) {
            return self.delete_by_keys(table, delete, params).await;
        }
        if table.with_def(|def| def.keys.is_aggregate()) {
            check_deletion_by_keys(&table.def(), delete)?;
        }
        self.change_at_once("DELETE", &table)?;
        let Some(condition) = &delete.condition else {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                "delete command must contain filter; TRUNCATE TABLE removes all rows",
            ));
        };
        // An UPDATE would have to find its rows again.
        let _turn = self.turn_to_change(&table).await?;
        if places.is_some() {
            self.interrupt().wait(table.divide()).await?.map_err(table_error)?;
        }
        let view = self.view();
        let interrupt = self.interrupt().or_after(self.query_timeout());
        let (queries, view, table) = (&self.queries, &view, &table);
        let find = |snapshot: Arc<Snapshot>| {
            let places = places.clone();
            let found = async move {
                let snapshot = match places {
                    Some(places) => Arc::new(snapshot.in_partitions(&places).map_err(table_error)?),
                    None => snapshot,
                };
                let found = queries.rows_to_delete(view, delete, params, table, &snapshot);
                interrupt.wait(found).await?
            };
            found.map_err(Failed::Query)
        };
        match table.delete(condition, find).await {
            Ok(report) => Ok(Answer::Done(Done { affected_rows: report.rows, ..Done::default() })),
            Err(Failed::Table(error)) => Err(table_error(error)),
            Err(Failed::Query(error)) => Err(error),
        }
    }
}
