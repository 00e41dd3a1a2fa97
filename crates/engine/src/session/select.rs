//! Queries, and statements that answer like one: with rows, as the query engine computes them.

use super::EngineSession;
use super::compat::Warning;
use crate::access::interrupt::Interrupt;
use crate::access::limits::AdmittedQuery;
use crate::access::processes::Process;
use crate::answer::{Answer, Rows};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tributary_query::{Nested, QueryResult, ResultColumn, ScalarValue, SessionView, Stop, begins};
use tributary_sql::{Explain, FileCall, Name, SelectQuery, Show, Statement};
use tributary_types::{ErrorCode, SqlError, UserProperty};

/// KILL and the time limit of a statement, for its planning, which does not wait.
#[derive(Debug)]
struct PlanningStop {
    process: Arc<Process>,
    limit: Option<(Instant, Duration)>,
}

impl Stop for PlanningStop {
    fn reason(&self) -> Option<SqlError> {
        Interrupt::of(Some(&self.process.stop), self.limit).check().err().map(SqlError::from)
    }
}

impl EngineSession {
    pub(super) async fn run_query(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let has_limit = query.ast.limit_clause.is_some() || query.ast.fetch.is_some();
        let rows_max = if has_limit { u64::MAX } else { self.variables.values().sql_select_limit };
        let timeout = match self.variables.values().max_execution_time.unsigned_abs() {
            0 => self.query_timeout(),
            milliseconds => self.query_timeout().min(Duration::from_millis(milliseconds)),
        };
        let called = self.run_waiting_calls(query, params).await?;
        let (query, params) = called.as_ref().map_or((query, params), |(query, params)| (query, params));
        let admitted = self.admit_query()?;
        let view = SessionView { stop: Some(self.planning_stop(timeout)), ..self.view() };
        let interrupt = self.interrupt().or_after(timeout);
        let nested = if self.door.has_nested_values() { Nested::Kept } else { Nested::Shown };
        let mut result = interrupt.wait(self.queries.query_with(&view, query, params, nested)).await??;
        if let Some(follower) = self.engine.follower()
            && !interrupt.wait(begins(&mut result)).await?
        {
            // The writer has deleted a file that it replaced long ago: the newest state of the tables has others.
            follower.look().await;
            result = interrupt.wait(self.queries.query_with(&view, query, params, nested)).await??;
        }
        let shows_states = self.variables.values().return_object_data_as_binary;
        let result = if shows_states { result } else { result.without_states() };
        let answer = self.rows(result, rows_max, interrupt, admitted);
        let notes = std::mem::take(&mut *view.notes.lock());
        Ok(self.with_warnings(answer, notes.into_iter().map(Warning::of)))
    }

    /// Rows that are computed while they are taken, at most `rows_max` of them, and until `interrupt` ends that.
    fn rows(
        &self,
        mut result: QueryResult,
        rows_max: u64,
        interrupt: Interrupt<'_>,
        admitted: AdmittedQuery,
    ) -> Answer {
        self.mark_keys(&mut result.columns);
        let process = Arc::clone(&self.process);
        Answer::Rows(Box::new(Rows::of_query(result, rows_max, process, interrupt, admitted)))
    }

    /// Leaves columns of keys marked as such for clients that see primary keys.
    pub(super) fn mark_keys(&self, columns: &mut [ResultColumn]) {
        if self.variables.values().mysql_ddl != "compat" {
            columns.iter_mut().for_each(|column| column.is_key = false);
        }
    }

    /// Admits a query of the session's user.
    pub(super) fn admit_query(&self) -> Result<AdmittedQuery, SqlError> {
        Ok(self.engine.limits().admit_query(&self.principal)?)
    }

    /// The value of a session's limit in seconds, which the user's limit may lower.
    pub(super) fn seconds(&self, own: i64, limit: UserProperty) -> Duration {
        let own = own.unsigned_abs();
        let limit = self.engine.limits().value(&self.principal, limit);
        Duration::from_secs(limit.map_or(own, |limit| own.min(limit)))
    }

    /// The early end of the planning of the running statement.
    pub(super) fn planning_stop(&self, timeout: Duration) -> Arc<dyn Stop> {
        let limit = Interrupt::after(timeout).limit();
        Arc::new(PlanningStop { process: Arc::clone(&self.process), limit })
    }

    /// The interrupt of the running statement.
    pub(super) fn interrupt(&self) -> Interrupt<'_> {
        Interrupt::by_kill(&self.process.stop)
    }

    pub(super) fn query_timeout(&self) -> Duration {
        self.seconds(self.variables.values().query_timeout, UserProperty::QueryTimeout)
    }

    pub(super) async fn run_explain(
        &mut self,
        explain: &Explain,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
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
        let admitted = self.admit_query()?;
        let view = self.view();
        let interrupt = self.interrupt().or_after(self.query_timeout());
        let plan = self.queries.explain(&view, &query, params, explain.analyze, explain.form);
        let plan = interrupt.wait(plan).await??;
        Ok(self.rows(plan, u64::MAX, interrupt, admitted))
    }

    pub(super) async fn run_describe(&mut self, table: &Name, all: bool) -> Result<Answer, SqlError> {
        Ok(Answer::rows(self.queries.describe_table(&self.view(), table, all).await?))
    }

    pub(super) async fn run_describe_function(&mut self, call: &FileCall) -> Result<Answer, SqlError> {
        let view = self.view();
        let interrupt = self.interrupt().or_after(self.query_timeout());
        let described = interrupt.wait(self.queries.describe_files(&view, call)).await??;
        Ok(self.rows(described, u64::MAX, interrupt, AdmittedQuery::default()))
    }

    pub(super) async fn run_show(&mut self, show: &Show) -> Result<Answer, SqlError> {
        match self.show_own(show).await? {
            Some(rows) => Answer::grid(&rows),
            None => Ok(Answer::rows(self.queries.show(&self.view(), show).await?)),
        }
    }
}
