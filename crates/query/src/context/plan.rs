//! From a query's tree to its logical plan.

use super::StatementContext;
use crate::error::{external, plan_error};
use crate::functions::dates::zone;
use crate::meaning::rewrite::{self, Environment, Rewritten};
use crate::meaning::set_operations::{no_rows, query_of};
use crate::planning::{check, check_expansion, check_lists, check_nodes};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::SqlToRel;
use sqlparser::ast::{SetExpr, Statement};
use tributary_sql::SelectQuery;
use tributary_types::{HiddenColumn, SqlError};

impl StatementContext<'_> {
    /// Rewrites and plans a query. `None` for `params`: their values are not known yet.
    pub(crate) fn plan(
        &self,
        query: &SelectQuery,
        params: Option<&[ScalarValue]>,
        lenient_casts: bool,
    ) -> Result<(LogicalPlan, Rewritten), SqlError> {
        let global = |name: &str| {
            let all = self.namespace.global_variables();
            all.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
        };
        let columns = |database: &str, table: &str| self.columns(database, table);
        let environment =
            Environment { session: self.session, global: &global, columns: &columns, params, lenient_casts };
        let zone = zone::offset_of(self.session.zone(), self.session.now_unix_micros);
        check_lists(&query.ast)?;
        check_expansion(&query.ast)?;
        crate::deep::planned(self.session.stop.as_ref(), || {
            zone::within(zone, || {
                let mut rewritten = rewrite::rewrite(&query.ast, &query.text, &environment)?;
                let query = std::mem::replace(&mut rewritten.query, *query_of(SetExpr::Values(no_rows())));
                let statement = Statement::Query(Box::new(query));
                let plan = plan_statement(self, statement, rewritten.is_recursive);
                let plan = plan.map_err(|error| plan_error(&error))?;
                check_nodes(&plan)?;
                Ok((plan, rewritten))
            })
        })
    }
}

/// Plans a rewritten statement. One with recursive CTEs is planned again for as long as these turn
/// out to need wider types.
fn plan_statement(
    context: &StatementContext<'_>,
    statement: Statement,
    is_recursive: bool,
) -> datafusion::common::Result<LogicalPlan> {
    if !is_recursive {
        return SqlToRel::new(context).sql_statement_to_plan(statement);
    }
    loop {
        check().map_err(external)?;
        let planned = SqlToRel::new(context).sql_statement_to_plan(statement.clone());
        if planned.is_ok() || !context.sets.widened() {
            return planned;
        }
    }
}

/// Whether a statement names a hidden column.
pub fn names_hidden(text: &str) -> bool {
    let names = [HiddenColumn::DeleteSign, HiddenColumn::Sequence].map(HiddenColumn::name);
    let begins = |at: usize| {
        names.iter().any(|name| {
            text.as_bytes()[at..].get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    text.match_indices("__").any(|(at, _)| begins(at))
}
