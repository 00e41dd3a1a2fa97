//! Subqueries in expressions → joins, with SQL's three-valued answers.
//!
//! DataFusion plans subqueries in only some places of a query and in some shapes, and its IN, ANY and ALL ignore NULL.
//! [`UnnestRule`] runs before its rules: each subquery, wherever it occurs, becomes columns that are joined to the rows of its
//! node ([`answer`]), and so does a LATERAL derived table; outer references of a correlated subquery are first carried into its
//! plan ([`domain`]). Only shapes that DataFusion answers correctly and faster are left to it ([`shape`]), with names that it
//! cannot confuse ([`own_names`]). Subqueries that cannot be planned are refused. ADR 28 has the reasons.

mod answer;
mod domain;
mod lateral;
mod own_names;
mod shape;

use crate::error::external;
use crate::functions::dates::zone;
use answer::{Quantified, Test};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::expr::{Exists, InList, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, Operator, Projection, Sort, Subquery,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Makes joins of subqueries.
#[derive(Debug)]
pub struct UnnestRule;

impl AnalyzerRule for UnnestRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !shape::has_subquery_anywhere(&plan) {
            return Ok(plan);
        }
        let plan = zone::within(zone::of(config), || Unnest { last: 0 }.plan(plan))?;
        match shape::free(&plan).pop_first() {
            Some(column) => Err(refused(&format!("a subquery cannot reach '{}' from here", column.name))),
            None => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "unnest_subqueries"
    }
}

fn refused(what: &str) -> datafusion::common::DataFusionError {
    external(SqlError::detail(
        ErrorCode::NotSupported,
        format!("not supported yet: {what}; write it as a join or with WITH"),
    ))
}

/// One statement's rewrite.
struct Unnest {
    /// The last relation that was named.
    last: usize,
}

impl Unnest {
    /// A name that no other relation of the plan has.
    fn fresh(&mut self) -> TableReference {
        self.last += 1;
        TableReference::bare(format!("__subquery_{}", self.last))
    }

    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = plan.map_children(|input| self.plan(input).map(Transformed::yes))?.data;
        let plan = match plan {
            LogicalPlan::Join(join) => self.lateral(join)?,
            other => other,
        };
        if !shape::has_subquery(&plan) {
            return Ok(plan);
        }
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Sort(sort) => self.sort(sort),
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => self.expressions(plan),
            LogicalPlan::Window(_) => {
                let columns = plan.schema().columns();
                back_to(self.expressions(plan)?, columns)
            }
            other => Err(refused(&format!("a subquery in {}", other.display()))),
        }
    }

    /// A node of one input whose columns are its expressions.
    fn expressions(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut input = shape::only_input(&plan)?;
        let names = NamePreserver::new(&plan);
        let joins_scalars = matches!(plan, LogicalPlan::Projection(_));
        let expressions = plan.expressions().into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(name.restore(self.expression(expr, &mut input, joins_scalars)?))
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        plan.with_new_exprs(expressions, vec![input])
    }

    /// The conditions without subqueries come first: the subqueries then run for fewer rows.
    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let columns = filter.input.schema().columns();
        let conditions = split_conjunction_owned(filter.predicate);
        let (asking, plain): (Vec<_>, Vec<_>) = conditions.into_iter().partition(shape::asks);
        let mut input = filtered(Arc::unwrap_or_clone(filter.input), plain)?;
        let mut kept = Vec::new();
        for condition in asking {
            kept.extend(self.condition(condition, &mut input)?);
        }
        back_to(filtered(input, kept)?, columns)
    }

    /// One of the conditions of a filter: only rows for which it is true stay. `None`: those have been joined.
    fn condition(&mut self, condition: Expr, input: &mut LogicalPlan) -> Result<Option<Expr>> {
        match condition {
            Expr::Not(inner) => match *inner {
                Expr::Exists(Exists { subquery, negated }) => {
                    self.exists_condition(subquery, !negated, input)
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    self.in_condition(*expr, subquery, !negated, input)
                }
                inner => self.expression(Expr::Not(Box::new(inner)), input, true).map(Some),
            },
            Expr::Exists(Exists { subquery, negated }) => self.exists_condition(subquery, negated, input),
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                self.in_condition(*expr, subquery, negated, input)
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => match (op, quantifier) {
                (Operator::Eq, SetQuantifier::Any) => self.in_condition(*expr, subquery, false, input),
                (Operator::NotEq, SetQuantifier::All) => self.in_condition(*expr, subquery, true, input),
                (op, quantifier) => {
                    let comparison = SetComparison { expr, subquery, op, quantifier };
                    self.expression(Expr::SetComparison(comparison), input, true).map(Some)
                }
            },
            other => self.expression(other, input, true).map(Some),
        }
    }

    fn exists_condition(
        &mut self,
        subquery: Subquery,
        negated: bool,
        input: &mut LogicalPlan,
    ) -> Result<Option<Expr>> {
        let subquery = self.inside(subquery)?;
        if shape::is_plain(&subquery, input.schema()) {
            let subquery = self.left_to_datafusion(subquery)?;
            return Ok(Some(Expr::Exists(Exists { subquery, negated })));
        }
        self.exists(subquery, negated, input).map(Some)
    }

    fn in_condition(
        &mut self,
        expr: Expr,
        subquery: Subquery,
        negated: bool,
        input: &mut LogicalPlan,
    ) -> Result<Option<Expr>> {
        let expr = self.expression(expr, input, false)?;
        let subquery = self.inside(subquery)?;
        let test = self.test(expr, subquery, input)?;
        let is_correlated = !shape::free(&test.plan).is_empty();
        if negated && (is_correlated || test.can_be_null(input)?) {
            return self.membership(test, true, input).map(Some);
        }
        if !is_correlated {
            self.semi_join(test, negated, input)?;
            return Ok(None);
        }
        let subquery = subquery_of(test.plan);
        if shape::is_plain(&subquery, input.schema()) {
            let (expr, subquery) = (Box::new(test.expr), self.left_to_datafusion(subquery)?);
            return Ok(Some(Expr::InSubquery(InSubquery { expr, subquery, negated })));
        }
        let test = Test { plan: Arc::unwrap_or_clone(subquery.subquery), ..test };
        self.membership(test, negated, input).map(Some)
    }

    /// `expr` over `input`, which gets columns in place of its subqueries. `joins_scalars`: DataFusion turns correlated values in
    /// this node into joins.
    fn expression(&mut self, expr: Expr, input: &mut LogicalPlan, joins_scalars: bool) -> Result<Expr> {
        let done = expr.transform_up(|expr| {
            let expr = match expr {
                Expr::Exists(Exists { subquery, negated }) => {
                    let subquery = self.inside(subquery)?;
                    self.exists(subquery, negated, input)?
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let subquery = self.inside(subquery)?;
                    let test = self.test(*expr, subquery, input)?;
                    self.membership(test, negated, input)?
                }
                // `x IN ((SELECT …))`.
                Expr::InList(InList { expr, mut list, negated }) if shape::is_one_subquery(&list) => {
                    let Some(Expr::ScalarSubquery(subquery)) = list.pop() else {
                        return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
                    };
                    let test = self.test(*expr, subquery, input)?;
                    self.membership(test, negated, input)?
                }
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                    let subquery = self.inside(subquery)?;
                    let test = self.test(*expr, subquery, input)?;
                    match (op, quantifier) {
                        (Operator::Eq, SetQuantifier::Any) => self.membership(test, false, input)?,
                        (Operator::NotEq, SetQuantifier::All) => self.membership(test, true, input)?,
                        (op, quantifier) => self.quantified(test, Quantified { op, quantifier }, input)?,
                    }
                }
                Expr::ScalarSubquery(subquery) => {
                    let subquery = self.inside(subquery)?;
                    self.scalar(subquery, input, joins_scalars)?
                }
                other => return Ok(Transformed::no(other)),
            };
            Ok(Transformed::yes(expr))
        })?;
        Ok(done.data)
    }

    /// A correlated subquery that DataFusion turns into a join.
    fn left_to_datafusion(&mut self, subquery: Subquery) -> Result<Subquery> {
        let plan = self.with_own_names(Arc::unwrap_or_clone(subquery.subquery))?;
        Ok(Subquery { subquery: Arc::new(plan), ..subquery })
    }

    /// The subquery, with joins in place of its inner subqueries.
    fn inside(&mut self, subquery: Subquery) -> Result<Subquery> {
        if subquery.subquery.schema().fields().is_empty() {
            return Ok(subquery);
        }
        Ok(subquery_of(self.plan(Arc::unwrap_or_clone(subquery.subquery))?))
    }

    /// A condition of an inner join is a filter over it; one of another join is about the columns of one side.
    fn join(&mut self, join: Join) -> Result<LogicalPlan> {
        let columns = join.schema.columns();
        let conditions = join.filter.map(split_conjunction_owned).unwrap_or_default();
        let (asking, mut kept): (Vec<_>, Vec<_>) = conditions.into_iter().partition(shape::asks);
        let mut sides = [Arc::unwrap_or_clone(join.left), Arc::unwrap_or_clone(join.right)];
        let mut above = Vec::new();
        for condition in asking {
            if join.join_type == JoinType::Inner {
                above.push(condition);
                continue;
            }
            let Some(side) = shape::side_of(&condition, [sides[0].schema(), sides[1].schema()])? else {
                return Err(refused(
                    "a subquery in the ON of an outer join that depends on columns of both sides",
                ));
            };
            kept.push(self.expression(condition, &mut sides[side], false)?);
        }
        let [left, right] = sides.map(Arc::new);
        let joined = LogicalPlan::Join(Join::try_new(
            left,
            right,
            join.on,
            conjunction(kept),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?);
        let joined = match conjunction(above) {
            Some(condition) => self.filter(Filter::try_new(condition, Arc::new(joined))?)?,
            None => joined,
        };
        back_to(joined, columns)
    }

    /// Sorts by a subquery's value for each row, which may depend on columns that are not selected.
    fn sort(&mut self, sort: Sort) -> Result<LogicalPlan> {
        let columns = sort.input.schema().columns();
        let exprs = sort.expr.iter().map(|by| &by.expr);
        let mut input = shape::with_asked(Arc::unwrap_or_clone(sort.input), exprs)?;
        let mut by = sort.expr;
        for part in &mut by {
            let expr = std::mem::take(&mut part.expr);
            part.expr = self.expression(expr, &mut input, false)?;
        }
        back_to(LogicalPlan::Sort(Sort { expr: by, input: Arc::new(input), fetch: sort.fetch }), columns)
    }
}

/// The rows for which all conditions are true.
fn filtered(input: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(conditions) {
        Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(input))?)),
        None => Ok(input),
    }
}

/// The plan with these columns and no others.
fn back_to(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    projected(plan, columns.into_iter().map(Expr::Column).collect())
}

fn projected(plan: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?))
}

fn subquery_of(plan: LogicalPlan) -> Subquery {
    Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: Arc::new(plan),
        spans: datafusion::common::Spans::new(),
    }
}
