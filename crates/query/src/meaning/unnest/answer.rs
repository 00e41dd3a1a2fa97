//! The join for each kind of subquery, and the expression that replaces it.
//!
//! Every answer is one of TRUE, FALSE and NULL as SQL has it: NULL when no comparison decides and one is NULL.

use super::domain::{Domain, left_join, same};
use super::{Unnest, filtered, projected, refused, shape, subquery_of};
use crate::functions;
use crate::functions::conversion::exprs::cast;
use crate::meaning::coercion::comparable;
use arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality, Result, ScalarValue, TableReference};
use datafusion::functions_aggregate::expr_fn::{count, first_value, max, min};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Join, JoinConstraint, JoinType, LogicalPlan, Operator,
    Subquery, SubqueryAlias, binary_expr, lit, when,
};
use std::sync::Arc;

/// The name of a subquery's values. DataFusion adds columns of the subquery beside it under their own names.
const VALUE: &str = "__value";

/// A value against the values of a subquery.
pub(super) struct Test {
    /// A column of the rows outside.
    pub(super) expr: Expr,
    /// Has one column.
    pub(super) plan: LogicalPlan,
}

/// How a value is compared with all of a subquery's.
pub(super) struct Quantified {
    pub(super) op: Operator,
    pub(super) quantifier: SetQuantifier,
}

/// Rows to be joined to the outer rows: by pairs of an outer column and an inner one.
pub(super) struct Inner {
    pub(super) plan: LogicalPlan,
    pub(super) pairs: Vec<(Column, Column)>,
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

fn column(relation: &TableReference, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation.clone()), name))
}

impl Test {
    /// Whether the answer may be NULL.
    pub(super) fn can_be_null(&self, input: &LogicalPlan) -> Result<bool> {
        Ok(self.expr.nullable(input.schema())? || self.plan.schema().field(0).is_nullable())
    }

    fn value(&self) -> Expr {
        Expr::Column(Column::from(self.plan.schema().qualified_field(0)))
    }
}

impl Unnest {
    /// `expr` against the subquery's values, both made comparable as MySQL does.
    pub(super) fn test(&mut self, expr: Expr, subquery: Subquery, input: &mut LogicalPlan) -> Result<Test> {
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        if plan.schema().fields().len() != 1 {
            return Err(refused("a subquery of more than one column beside IN, ANY or ALL"));
        }
        let test = Test { expr, plan };
        let outside = test.expr.get_type(input.schema())?;
        let inside = test.plan.schema().field(0).data_type().clone();
        let (mut left, mut right) = comparable(test.expr.clone(), test.value(), (&outside, &inside));
        if inside == DataType::Null {
            right = cast(right, if outside == DataType::Null { DataType::Int64 } else { outside });
        } else if outside == DataType::Null {
            left = cast(left, inside);
        }
        let types = (left.get_type(input.schema())?, right.get_type(test.plan.schema())?);
        if types.0 != types.1
            && let Some(common) = comparison_coercion(&types.0, &types.1)
        {
            left = left.cast_to(&common, input.schema())?;
            right = right.cast_to(&common, test.plan.schema())?;
        }
        let plan = match right == test.value() {
            true => test.plan,
            // By a name that no other subquery within has.
            false => projected(test.plan, vec![right.alias(self.fresh().to_string())])?,
        };
        Ok(Test { expr: self.as_column(left, input)?, plan })
    }

    /// The expression as a column of `input`: it is computed once.
    fn as_column(&mut self, expr: Expr, input: &mut LogicalPlan) -> Result<Expr> {
        if let Expr::Column(_) = expr {
            return Ok(expr);
        }
        let name = self.fresh().to_string();
        let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        columns.push(expr.alias(&name));
        *input = projected(std::mem::take(input), columns)?;
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// The subquery for each combination of its outer references in `input`'s rows.
    pub(super) fn correlated(&mut self, plan: LogicalPlan, input: &LogicalPlan) -> Result<Inner> {
        let asked = shape::free(&plan).into_iter().filter(|column| input.schema().has_column(column));
        let asked: Vec<Column> = asked.collect();
        if asked.is_empty() {
            return Ok(Inner { plan, pairs: Vec::new() });
        }
        let domain = Domain::new(input, asked.clone())?;
        let (plan, own) = self.carry(plan, &domain)?;
        Ok(Inner { plan, pairs: asked.into_iter().zip(own).collect() })
    }

    /// As [`Self::correlated`], with the subquery's values as the column [`VALUE`].
    fn correlated_values(&mut self, test: Test, input: &LogicalPlan) -> Result<Inner> {
        let value = test.value().alias(VALUE);
        let Inner { plan, pairs } = self.correlated(test.plan, input)?;
        let shown = pairs.iter().map(|(_, inside)| Expr::Column(inside.clone()));
        Ok(Inner { plan: projected(plan, shown.chain([value]).collect())?, pairs })
    }

    /// Joins `inner` to the rows of `input`, also on a value of these; its columns are those of the returned relation.
    fn attach(
        &mut self,
        inner: Inner,
        value: Option<(Expr, &str)>,
        input: &mut LogicalPlan,
    ) -> Result<TableReference> {
        let name = self.fresh();
        let plan = SubqueryAlias::try_new(Arc::new(inner.plan), name.clone())?;
        let pairs = inner.pairs.into_iter();
        let pairs = pairs.map(|(outside, inside)| (outside, Column::new(Some(name.clone()), inside.name)));
        let mut on = same(pairs, input.schema())?;
        on.extend(value.map(|(outside, inside)| (outside, column(&name, inside))));
        *input = left_join(std::mem::take(input), LogicalPlan::SubqueryAlias(plan), on)?;
        Ok(name)
    }

    /// As [`Self::attach`], one row with `aggregates` for each combination.
    fn attach_groups(
        &mut self,
        inner: Inner,
        aggregates: Vec<Expr>,
        input: &mut LogicalPlan,
    ) -> Result<TableReference> {
        let by = inner.pairs.iter().map(|(_, inside)| Expr::Column(inside.clone())).collect();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(inner.plan), by, aggregates)?);
        self.attach(Inner { plan, pairs: inner.pairs }, None, input)
    }

    pub(super) fn exists(
        &mut self,
        subquery: Subquery,
        negated: bool,
        input: &mut LogicalPlan,
    ) -> Result<Expr> {
        let inner = self.correlated(Arc::unwrap_or_clone(subquery.subquery), input)?;
        let found = self.attach_groups(inner, vec![count(lit(1i64)).alias("n")], input)?;
        let any = Box::new(column(&found, "n").gt(lit(0i64)));
        Ok(if negated { Expr::IsNotTrue(any) } else { Expr::IsTrue(any) })
    }

    /// The one value of a subquery. More rows are an error if the value is used.
    pub(super) fn scalar(
        &mut self,
        subquery: Subquery,
        input: &mut LogicalPlan,
        joins_scalars: bool,
    ) -> Result<Expr> {
        if subquery.subquery.schema().fields().len() != 1 {
            return Err(refused("a subquery of more than one column as a value"));
        }
        let is_kept = shape::free(&subquery.subquery).is_empty()
            || (joins_scalars && shape::is_plain_aggregate(&subquery, input.schema()));
        if is_kept {
            let subquery = self.left_to_datafusion(may_be_missing(subquery)?)?;
            return Ok(Expr::ScalarSubquery(subquery));
        }
        let is_one_row = subquery.subquery.max_rows().is_some_and(|rows| rows <= 1);
        let mut inner = self.correlated(Arc::unwrap_or_clone(subquery.subquery), input)?;
        let value = Expr::Column(Column::from(inner.plan.schema().qualified_field(0)));
        if is_one_row {
            let shown = inner.pairs.iter().map(|(_, inside)| Expr::Column(inside.clone()));
            inner.plan = projected(inner.plan, shown.chain([value.alias("v")]).collect())?;
            let found = self.attach(inner, None, input)?;
            return Ok(column(&found, "v"));
        }
        let aggregates = vec![first_value(value, Vec::new()).alias("v"), count(lit(1i64)).alias("n")];
        let found = self.attach_groups(inner, aggregates, input)?;
        Ok(functions::named("__single").call(vec![column(&found, "v"), column(&found, "n")]))
    }

    /// IN, or NOT IN.
    pub(super) fn membership(&mut self, test: Test, negated: bool, input: &mut LogicalPlan) -> Result<Expr> {
        let can_be_null = test.can_be_null(input)?;
        let outside = test.expr.clone();
        let inner = self.correlated_values(test, input)?;
        let key = Expr::Column(Column::new_unqualified(VALUE));
        let facts = if can_be_null {
            if !shape::is_repeatable(&inner.plan) {
                return Err(refused(
                    "IN with a subquery whose LIMIT or random function may choose rows anew",
                ));
            }
            let aggregates = vec![count(lit(1i64)).alias("n"), count(key.clone()).alias("c")];
            let inner = Inner { plan: inner.plan.clone(), pairs: inner.pairs.clone() };
            Some(self.attach_groups(inner, aggregates, input)?)
        } else {
            None
        };
        let values = filtered(inner.plan, vec![key.clone().is_not_null()])?;
        let values = LogicalPlan::Distinct(Distinct::All(Arc::new(values)));
        let values = Inner { plan: values, pairs: inner.pairs };
        let found = self.attach(values, Some((outside.clone(), VALUE)), input)?;
        let is_found = column(&found, VALUE).is_not_null();
        let Some(facts) = facts else {
            return Ok(if negated { Expr::Not(Box::new(is_found)) } else { is_found });
        };
        when(is_found, lit(!negated))
            .when(none(&facts), lit(negated))
            .when(some_are_null(&facts, outside), unknown())
            .otherwise(lit(negated))
    }

    /// ANY or ALL with another operator: the least and the greatest value decide.
    pub(super) fn quantified(
        &mut self,
        test: Test,
        Quantified { op, quantifier }: Quantified,
        input: &mut LogicalPlan,
    ) -> Result<Expr> {
        let outside = test.expr.clone();
        let inner = self.correlated_values(test, input)?;
        let key = Expr::Column(Column::new_unqualified(VALUE));
        let aggregates = vec![
            count(lit(1i64)).alias("n"),
            count(key.clone()).alias("c"),
            min(key.clone()).alias("lo"),
            max(key).alias("hi"),
        ];
        let facts = self.attach_groups(inner, aggregates, input)?;
        let against = |bound: &str| binary_expr(outside.clone(), op, column(&facts, bound));
        let all = quantifier == SetQuantifier::All;
        let decided = match (op, all) {
            (Operator::Lt | Operator::LtEq, true) | (Operator::Gt | Operator::GtEq, false) => against("lo"),
            (Operator::Gt | Operator::GtEq, true) | (Operator::Lt | Operator::LtEq, false) => against("hi"),
            (Operator::Eq, true) => against("lo").and(against("hi")),
            (Operator::NotEq, false) => against("lo").or(against("hi")),
            _ => return Err(refused(&format!("{op} {quantifier}"))),
        };
        let decides = if all { Expr::IsFalse(Box::new(decided)) } else { Expr::IsTrue(Box::new(decided)) };
        when(none(&facts), lit(all))
            .when(decides, lit(!all))
            .when(some_are_null(&facts, outside), unknown())
            .otherwise(lit(all))
    }

    /// Retains the rows whose value is, or is not, among the subquery's. A value that is neither is NULL, or NULL counts as no
    /// match.
    pub(super) fn semi_join(&mut self, test: Test, negated: bool, input: &mut LogicalPlan) -> Result<()> {
        let name = self.fresh();
        let value = test.value().alias(VALUE);
        let values = SubqueryAlias::try_new(Arc::new(projected(test.plan, vec![value])?), name.clone())?;
        *input = LogicalPlan::Join(Join::try_new(
            Arc::new(std::mem::take(input)),
            Arc::new(LogicalPlan::SubqueryAlias(values)),
            vec![(test.expr, column(&name, VALUE))],
            None,
            if negated { JoinType::LeftAnti } else { JoinType::LeftSemi },
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?);
        Ok(())
    }
}

/// The subquery with a value that is known to be NULL for a missing row.
fn may_be_missing(subquery: Subquery) -> Result<Subquery> {
    let (relation, field) = subquery.subquery.schema().qualified_field(0);
    if field.is_nullable() {
        return Ok(subquery);
    }
    let value =
        functions::named("__single").call(vec![Expr::Column(Column::from((relation, field))), lit(1i64)]);
    let value = value.alias_qualified(relation.cloned(), field.name());
    Ok(subquery_of(projected(Arc::unwrap_or_clone(subquery.subquery), vec![value])?))
}

/// Whether the subquery has no rows to compare with.
fn none(facts: &TableReference) -> Expr {
    Expr::IsNotTrue(Box::new(column(facts, "n").gt(lit(0i64))))
}

/// Whether a comparison with one of the rows is NULL.
fn some_are_null(facts: &TableReference, outside: Expr) -> Expr {
    column(facts, "c").lt(column(facts, "n")).or(outside.is_null())
}
