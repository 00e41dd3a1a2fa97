//! SHOW and DESC: facts as results, and the conditions of such statements.

use super::QueryEngine;
use crate::facts::show::{Conditions, Facts};
use crate::model::{Grid, QueryResult, SessionView};
use arrow::array::{BooleanArray, RecordBatch};
use sqlparser::ast::Expr;
use tributary_sql::{Name, Show, ShowTail};
use tributary_types::SqlError;

impl QueryEngine {
    /// Answers a SHOW statement, with the columns of Doris.
    ///
    /// # Errors
    /// Unknown databases, tables and columns; [`tributary_types::ErrorCode::NotSupported`] for what only the
    /// session knows.
    pub async fn show(&self, session: &SessionView, show: &Show) -> Result<QueryResult, SqlError> {
        QueryResult::from_rows(&self.facts().show(session, show)?)
    }

    /// Answers `DESC t` and, with `all`, `DESC t ALL`.
    ///
    /// # Errors
    /// No database selected, or no such table.
    pub async fn describe_table(
        &self,
        session: &SessionView,
        table: &Name,
        all: bool,
    ) -> Result<QueryResult, SqlError> {
        QueryResult::from_rows(&self.facts().describe(session, table, all)?)
    }

    /// Filters, sorts and cuts the rows of a SHOW as the statement says; LIKE looks at the column of that number.
    ///
    /// # Errors
    /// Unknown columns, and conditions that can't be computed.
    pub fn tailed(
        &self,
        session: &SessionView,
        grid: Grid,
        tail: &ShowTail,
        column: usize,
    ) -> Result<Grid, SqlError> {
        self.facts().tailed(session, grid, tail, column)
    }

    fn facts(&self) -> Facts<'_> {
        Facts { namespace: self.namespace.as_ref(), conditions: self }
    }
}

impl Conditions for QueryEngine {
    fn holds(
        &self,
        session: &SessionView,
        batch: &RecordBatch,
        condition: &Expr,
    ) -> Result<BooleanArray, SqlError> {
        self.compile_source_filter(session, batch.schema_ref(), condition)?.evaluate(batch)
    }
}
