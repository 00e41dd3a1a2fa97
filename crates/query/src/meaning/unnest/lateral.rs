//! LATERAL: a derived table that references columns of the tables before it.

use super::domain::same;
use super::{Unnest, back_to, shape};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Join, JoinType, LogicalPlan, Subquery, SubqueryAlias};
use std::sync::Arc;

/// The subquery on the right side of a join, and its name, if it is a LATERAL one.
fn lateral_of(join: &Join) -> Option<(&Subquery, Option<&SubqueryAlias>)> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return None;
    }
    match join.right.as_ref() {
        LogicalPlan::Subquery(subquery) => Some((subquery, None)),
        LogicalPlan::SubqueryAlias(derived) => match derived.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some((subquery, Some(derived))),
            _ => None,
        },
        _ => None,
    }
}

impl Unnest {
    /// A join with a LATERAL derived table, as one without outer references: with the subquery's rows for each combination of the
    /// referenced values. DataFusion itself joins those whose only references are plain conditions.
    pub(super) fn lateral(&mut self, mut join: Join) -> Result<LogicalPlan> {
        let Some((subquery, derived)) = lateral_of(&join) else { return Ok(LogicalPlan::Join(join)) };
        let named = |plan: LogicalPlan| match derived {
            Some(derived) => {
                SubqueryAlias::try_new(Arc::new(plan), derived.alias.clone()).map(LogicalPlan::SubqueryAlias)
            }
            None => Ok(plan),
        };
        let plan = subquery.subquery.as_ref().clone();
        if shape::is_plain(subquery, join.left.schema()) {
            let plan = Arc::new(self.with_own_names(plan)?);
            let subquery = Subquery { subquery: plan, ..subquery.clone() };
            join.right = Arc::new(named(LogicalPlan::Subquery(subquery))?);
            return Ok(LogicalPlan::Join(join));
        }
        let columns = join.schema.columns();
        let inner = self.correlated(plan, &join.left)?;
        let relation = derived.map(|derived| derived.alias.clone());
        let pairs = inner.pairs.into_iter();
        let pairs = pairs.map(|(outside, inside)| (outside, Column::new(relation.clone(), inside.name)));
        let mut on = same(pairs, join.left.schema())?;
        let right = Arc::new(named(inner.plan)?);
        on.append(&mut join.on);
        let joined = Join::try_new(
            join.left,
            right,
            on,
            join.filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        back_to(LogicalPlan::Join(joined), columns)
    }
}
