//! LIKE, WHERE, ORDER BY and LIMIT of SHOW, over rows in memory.

use super::Facts;
use crate::error::plan_error;
use crate::model::SessionView;
use crate::model::{Cell, Grid};
use sqlparser::ast::{Expr, visit_expressions};
use std::ops::ControlFlow;
use tributary_sql::{ShowFilter, ShowTail};
use tributary_types::pattern::like;
use tributary_types::{ErrorCode, SqlError};

/// Refuses a condition on other columns.
///
/// # Errors
/// It names one.
pub(super) fn check_columns(filter: Option<&ShowFilter>, known: &[&str]) -> Result<(), SqlError> {
    let Some(ShowFilter::Where(condition)) = filter else { return Ok(()) };
    let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let found = visit_expressions(&**condition, |part| match part {
        Expr::Identifier(name) if !is_known(&name.value) => ControlFlow::Break(()),
        Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("Only the columns of {} are supported.", known.join("/")),
        )),
    }
}

impl Facts<'_> {
    /// Keeps the rows that the filter wants; LIKE looks at the column of that number.
    pub(super) fn filtered(
        &self,
        session: &SessionView,
        mut grid: Grid,
        filter: Option<&ShowFilter>,
        column: usize,
    ) -> Result<Grid, SqlError> {
        match filter {
            None => {}
            Some(ShowFilter::Like(pattern)) => {
                grid.retain(|row| matches!(&row[column], Cell::Text(text) if like(text, pattern)));
            }
            Some(ShowFilter::Where(condition)) => {
                let batch = grid.batch().map_err(|error| plan_error(&error.into()))?;
                let kept = self.conditions.holds(session, &batch, condition)?;
                let mut index = 0;
                grid.retain(|_| {
                    index += 1;
                    kept.value(index - 1)
                });
            }
        }
        Ok(grid)
    }

    /// The rows of a SHOW, filtered, sorted and cut as the statement says; LIKE looks at the column of that number.
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
        let mut grid = self.filtered(session, grid, tail.filter.as_ref(), column)?;
        for (name, descending) in tail.order_by.iter().rev() {
            let Some(at) = grid.names().iter().position(|known| known.eq_ignore_ascii_case(name)) else {
                return Err(SqlError::detail(
                    ErrorCode::UnknownColumn,
                    format!("Unknown column '{name}' in 'order clause'"),
                ));
            };
            grid.sort(at, *descending);
        }
        let offset = usize::try_from(tail.offset).unwrap_or(usize::MAX);
        let limit = tail.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        grid.slice(offset, limit);
        Ok(grid)
    }
}
