//! Queries, and statements that answer like one: results stream from the query engine to the
//! client.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use futures::StreamExt;
use std::time::Duration;
use tributary_mysql::{Column, ResultWriter};
use tributary_query::{QueryResult, ResultColumn, ScalarValue};
use tributary_sql::{Explain, FileCall, Name, SelectQuery, Show, Statement};
use tributary_types::{ErrorCode, SqlError};

impl EngineSession {
    pub(super) async fn run_query(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let has_limit = query.ast.limit_clause.is_some() || query.ast.fetch.is_some();
        let rows_max = if has_limit { u64::MAX } else { self.variables.values().sql_select_limit };
        let timeout = match self.variables.values().max_execution_time.unsigned_abs() {
            0 => self.query_timeout(),
            milliseconds => self.query_timeout().min(Duration::from_millis(milliseconds)),
        };
        let view = self.view();
        let run = async {
            let result = self.queries.query(&view, query, params).await?;
            let shows_states = self.variables.values().return_object_data_as_binary;
            let result = if shows_states { result } else { result.without_states() };
            send_some(result, rows_max, out).await
        };
        self.interrupt().or_after(timeout).wait(run).await?
    }

    /// What ends the statement that runs.
    pub(super) fn interrupt(&self) -> Interrupt<'_> {
        Interrupt::by_kill(&self.process.stop)
    }

    pub(super) fn query_timeout(&self) -> Duration {
        Duration::from_secs(self.variables.values().query_timeout.unsigned_abs())
    }

    pub(super) async fn run_explain(
        &mut self,
        explain: &Explain,
        params: &[ScalarValue],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let query = match &*explain.statement {
            Statement::Query(query) => query.clone(),
            Statement::Insert(insert) => match &insert.source {
                tributary_sql::InsertSource::Query(query) => query.clone(),
                tributary_sql::InsertSource::Values(_) => tributary_sql::parse_query("SELECT 'VALUES'")?,
            },
            _ => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "EXPLAIN shows the plan of a query or of an INSERT … SELECT only",
                ));
            }
        };
        let view = self.view();
        let run = async {
            let plan = self.queries.explain(&view, &query, params, explain.analyze, explain.verbose);
            send(plan.await?, out).await
        };
        self.interrupt().or_after(self.query_timeout()).wait(run).await?
    }

    pub(super) async fn run_describe(
        &mut self,
        table: &Name,
        all: bool,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let result = self.queries.describe_table(&self.view(), table, all).await?;
        send(result, out).await
    }

    pub(super) async fn run_describe_function(
        &mut self,
        call: &FileCall,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let view = self.view();
        let described = async { send(self.queries.describe_files(&view, call).await?, out).await };
        self.interrupt().or_after(self.query_timeout()).wait(described).await?
    }

    pub(super) async fn run_show(&mut self, show: &Show, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        match self.show_own(show).await? {
            Some(rows) => send(QueryResult::from_rows(&rows)?, out).await,
            None => send(self.queries.show(&self.view(), show).await?, out).await,
        }
    }
}

/// Sends a result as it is computed.
pub(super) async fn send(result: QueryResult, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    send_some(result, u64::MAX, out).await
}

/// Like [`send`], but sends at most `rows_max` rows.
async fn send_some(
    mut result: QueryResult,
    mut rows_max: u64,
    out: &mut ResultWriter<'_>,
) -> Result<(), SqlError> {
    let columns = columns_of(&result.columns);
    // The first batch is awaited before the header is sent: an error that comes with it is then
    // an error and not a broken result.
    let mut next =
        result.stream.next().await.transpose().map_err(|error| tributary_query::stream_error(&error))?;
    out.start(&columns).await?;
    while let Some(batch) = next {
        let rows = batch.num_rows().min(usize::try_from(rows_max).unwrap_or(usize::MAX));
        if rows > 0 {
            out.batch(&batch.slice(0, rows)).await?;
        }
        rows_max -= rows as u64;
        if rows_max == 0 {
            break;
        }
        next =
            result.stream.next().await.transpose().map_err(|error| tributary_query::stream_error(&error))?;
    }
    out.finish().await
}

/// The columns of a result as the protocol names them.
pub(crate) fn columns_of(columns: &[ResultColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| {
            let mut protocol = match column.declared {
                Some(declared) => Column::new(&column.name, declared),
                None => Column::from_arrow(&column.name, &column.data_type),
            };
            if let (Some(database), Some(table)) = (&column.database, &column.table) {
                protocol = protocol.in_table(database, table);
            }
            if let Some(original) = &column.original_name {
                protocol.org_name.clone_from(original);
            }
            if column.nullable { protocol } else { protocol.not_null() }
        })
        .collect()
}
