//! Carries the outer references of a correlated subquery into its plan.
//!
//! The domain is the distinct combinations of the referenced columns. The resulting plan answers for each of them at once: it has
//! the columns of the subquery and those of the domain, and no outer references.

use super::{Unnest, projected, refused, shape};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ExprSchema, NullEquality, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join, JoinConstraint, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Projection, SkipType, SortExpr, Union, Window, lit,
};
use std::sync::Arc;

/// The outer columns that are referenced.
pub(super) struct Domain {
    /// Distinct combinations.
    rows: LogicalPlan,
    /// The columns outside, in the same order.
    outer: Vec<Column>,
}

/// A plan with the domain's columns.
struct Carried {
    plan: LogicalPlan,
    domain: Vec<Column>,
}

impl Domain {
    /// The combinations of `outer` in the rows of `input`.
    pub(super) fn new(input: &LogicalPlan, outer: Vec<Column>) -> Result<Self> {
        let source = shape::without_limits(input).filter(shape::is_repeatable).ok_or_else(|| {
            refused("a correlated subquery over rows that LIMIT or a random function may choose anew")
        })?;
        let columns = projected(source, columns(&outer).collect())?;
        let rows = LogicalPlan::Distinct(Distinct::All(Arc::new(columns)));
        Ok(Self { rows, outer })
    }

    fn is_asked_by(&self, plan: &LogicalPlan) -> bool {
        let asked = shape::free(plan);
        self.outer.iter().any(|column| asked.contains(column))
    }

    /// The expression with the domain's columns in the place of those outside.
    fn bind(&self, expr: Expr, domain: &[Column]) -> Result<Expr> {
        let bound = expr.transform(|part| match &part {
            Expr::OuterReferenceColumn(_, column) => {
                Ok(match self.outer.iter().position(|outer| outer == column) {
                    Some(at) => Transformed::yes(Expr::Column(domain[at].clone())),
                    None => Transformed::no(part),
                })
            }
            _ => Ok(Transformed::no(part)),
        })?;
        Ok(bound.data)
    }
}

fn columns(columns: &[Column]) -> impl Iterator<Item = Expr> + '_ {
    columns.iter().cloned().map(Expr::Column)
}

/// `exprs` as the columns of `schema`, and the domain's columns.
fn renamed(
    plan: LogicalPlan,
    exprs: impl IntoIterator<Item = Expr>,
    schema: &DFSchemaRef,
    domain: &[Column],
) -> Result<LogicalPlan> {
    let named = exprs.into_iter().zip(schema.iter()).map(|(expr, (relation, field))| {
        let (own_relation, own_name) = expr.qualified_name();
        if own_relation.as_ref() == relation && own_name == *field.name() {
            return expr;
        }
        expr.alias_qualified(relation.cloned(), field.name())
    });
    projected(plan, named.chain(columns(domain)).collect())
}

/// The columns of a plan from one place to another.
fn fields(plan: &LogicalPlan, places: std::ops::Range<usize>) -> Vec<Expr> {
    places.map(|at| Expr::Column(Column::from(plan.schema().qualified_field(at)))).collect()
}

/// Pairs whose equality says that columns are the same, where NULL is one value: plain equalities, because whether
/// NULL is equal to NULL is one property of all keys of a join.
pub(super) fn same(
    pairs: impl IntoIterator<Item = (Column, Column)>,
    left: &DFSchema,
) -> Result<Vec<(Expr, Expr)>> {
    let mut equal = Vec::new();
    for (outside, inside) in pairs {
        let field = left.field_from_column(&outside)?;
        let (is_nullable, data_type) = (field.is_nullable(), field.data_type().clone());
        let (outside, inside) = (Expr::Column(outside), Expr::Column(inside));
        if !is_nullable {
            equal.push((outside, inside));
            continue;
        }
        equal.push((outside.clone().is_null(), inside.clone().is_null()));
        if data_type != DataType::Null {
            let in_place_of_null = lit(ScalarValue::new_default(&data_type)?);
            let value = |column: Expr| coalesce(vec![column, in_place_of_null.clone()]);
            equal.push((value(outside), value(inside)));
        }
    }
    Ok(equal)
}

impl Unnest {
    /// `plan` for each row of the domain, and the domain's columns in it.
    pub(super) fn carry(&mut self, plan: LogicalPlan, domain: &Domain) -> Result<(LogicalPlan, Vec<Column>)> {
        let carried = self.carried(plan, domain)?;
        Ok((carried.plan, carried.domain))
    }

    fn instance(&mut self, domain: &Domain) -> Result<Carried> {
        let names = self.names(domain);
        let shown = fields(&domain.rows, 0..names.len()).into_iter().zip(&names);
        let shown = shown.map(|(column, name)| column.alias(name)).collect();
        let plan = projected(domain.rows.clone(), shown)?;
        Ok(Carried { plan, domain: names.into_iter().map(Column::new_unqualified).collect() })
    }

    /// New names for the columns of a domain: no two columns of a plan may be called alike.
    fn names(&mut self, domain: &Domain) -> Vec<String> {
        let prefix = self.fresh();
        (0..domain.outer.len()).map(|at| format!("{prefix}_{at}")).collect()
    }

    fn carried(&mut self, plan: LogicalPlan, domain: &Domain) -> Result<Carried> {
        if !domain.is_asked_by(&plan) {
            let rows = self.instance(domain)?;
            let plan = LogicalPlanBuilder::from(plan).cross_join(rows.plan)?.build()?;
            return Ok(Carried { plan, domain: rows.domain });
        }
        match plan {
            LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
                let input = self.carried(Arc::unwrap_or_clone(input), domain)?;
                let exprs = expr.into_iter().map(|expr| domain.bind(expr, &input.domain));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                let plan = renamed(input.plan, exprs, &schema, &input.domain)?;
                Ok(Carried { plan, domain: input.domain })
            }
            LogicalPlan::Filter(filter) => {
                let input = self.carried(Arc::unwrap_or_clone(filter.input), domain)?;
                let predicate = domain.bind(filter.predicate, &input.domain)?;
                let plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input.plan))?);
                Ok(Carried { plan, ..input })
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.carried(Arc::unwrap_or_clone(alias.input), domain)?;
                let shown = fields(&input.plan, 0..alias.schema.fields().len());
                let plan = renamed(input.plan, shown, &alias.schema, &input.domain)?;
                Ok(Carried { plan, domain: input.domain })
            }
            // Without a limit the order of a subquery's rows says nothing.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.carried(Arc::unwrap_or_clone(sort.input), domain)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let schema = Arc::clone(input.schema());
                let input = self.carried(Arc::unwrap_or_clone(input), domain)?;
                let shown = fields(&input.plan, 0..schema.fields().len());
                let plan = renamed(input.plan, shown, &schema, &input.domain)?;
                let plan = LogicalPlan::Distinct(Distinct::All(Arc::new(plan)));
                Ok(Carried { plan, domain: input.domain })
            }
            LogicalPlan::Aggregate(aggregate) => self.carried_aggregate(aggregate, domain),
            LogicalPlan::Limit(limit) => self.carried_limit(limit, domain),
            LogicalPlan::Join(join) => self.carried_join(join, domain),
            LogicalPlan::Union(union) => self.carried_union(union, domain),
            LogicalPlan::Window(window) => self.carried_window(window, domain),
            other => Err(refused(&format!("a correlated subquery with {}", other.display()))),
        }
    }

    /// Groups for each row of the domain. An aggregate without GROUP BY answers for those too that have no row.
    fn carried_aggregate(&mut self, aggregate: Aggregate, domain: &Domain) -> Result<Carried> {
        if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
            return Err(refused("a correlated subquery with ROLLUP, CUBE or GROUPING SETS"));
        }
        if aggregate.aggr_expr.iter().any(is_about_outside) {
            return Err(refused("an aggregate of columns outside of its subquery"));
        }
        let schema = Arc::clone(&aggregate.schema);
        let input = self.carried(Arc::unwrap_or_clone(aggregate.input), domain)?;
        let bind = |exprs: Vec<Expr>| {
            exprs.into_iter().map(|expr| domain.bind(expr, &input.domain)).collect::<Result<Vec<_>>>()
        };
        let group_by = bind(aggregate.group_expr)?;
        let mut aggregates = bind(aggregate.aggr_expr)?;
        let (plan, domain) = if group_by.is_empty() {
            let rows = self.instance(domain)?;
            let mark = self.fresh().to_string();
            let shown = fields(&input.plan, 0..input.plan.schema().fields().len());
            let marked = projected(input.plan, shown.into_iter().chain([lit(true).alias(&mark)]).collect())?;
            let on = same(rows.domain.iter().cloned().zip(input.domain.iter().cloned()), rows.plan.schema())?;
            let joined = left_join(rows.plan, marked, on)?;
            let is_row = Expr::IsNotNull(Box::new(Expr::Column(Column::new_unqualified(mark))));
            for expr in &mut aggregates {
                *expr = only_where(std::mem::take(expr), &is_row)?;
            }
            (joined, rows.domain)
        } else {
            (input.plan, input.domain)
        };
        let groups = group_by.len();
        let by = group_by.into_iter().chain(columns(&domain)).collect();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), by, aggregates)?);
        let all = plan.schema().fields().len();
        let mut shown = fields(&plan, 0..groups);
        shown.extend(fields(&plan, groups + domain.len()..all));
        let plan = renamed(plan, shown, &schema, &domain)?;
        Ok(Carried { plan, domain })
    }

    /// The first rows for each row of the domain, by their numbers in the order.
    fn carried_limit(&mut self, limit: Limit, domain: &Domain) -> Result<Carried> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Err(refused("a correlated subquery whose LIMIT is no number"));
        };
        let below = Arc::unwrap_or_clone(limit.input);
        let (below, by) = match below {
            // The limit of a projection is the projection of the limit.
            LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
                let limited = LogicalPlan::Limit(Limit { skip: limit.skip, fetch: limit.fetch, input });
                let projection = Projection::try_new_with_schema(expr, Arc::new(limited), schema)?;
                return self.carried(LogicalPlan::Projection(projection), domain);
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (Arc::unwrap_or_clone(sort.input), sort.expr),
            other => (other, Vec::new()),
        };
        let schema = Arc::clone(below.schema());
        let input = self.carried(below, domain)?;
        let by = by.into_iter().map(|SortExpr { expr, asc, nulls_first }| {
            Ok(SortExpr { expr: domain.bind(expr, &input.domain)?, asc, nulls_first })
        });
        let by = by.collect::<Result<Vec<_>>>()?;
        let number = Expr::from(WindowFunction::new(row_number_udwf(), Vec::new()))
            .partition_by(columns(&input.domain).collect());
        let number = if by.is_empty() { number.build()? } else { number.order_by(by).build()? };
        let numbered = LogicalPlan::Window(Window::try_new(vec![number], Arc::new(input.plan))?);
        let last = numbered.schema().fields().len() - 1;
        let number = fields(&numbered, last..last + 1).remove(0);
        let mut wanted = number.clone().gt(lit(skip as u64));
        if let Some(fetch) = fetch {
            wanted = wanted.and(number.lt_eq(lit(skip.saturating_add(fetch) as u64)));
        }
        let kept = LogicalPlan::Filter(Filter::try_new(wanted, Arc::new(numbered))?);
        let shown = fields(&kept, 0..schema.fields().len());
        let plan = renamed(kept, shown, &schema, &input.domain)?;
        Ok(Carried { plan, domain: input.domain })
    }

    /// Both sides answer for each row of the domain, and rows of the same meet.
    fn carried_join(&mut self, join: Join, domain: &Domain) -> Result<Carried> {
        use JoinType::{Inner, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
        let keeps_left = match join.join_type {
            Inner | Left | LeftSemi | LeftAnti => true,
            Right | RightSemi | RightAnti => false,
            _ => return Err(refused("a correlated subquery with a FULL join")),
        };
        let (asks_left, asks_right) = (domain.is_asked_by(&join.left), domain.is_asked_by(&join.right));
        let (left, right) = (Arc::unwrap_or_clone(join.left), Arc::unwrap_or_clone(join.right));
        let schema = join.schema;
        let widths = (left.schema().fields().len(), right.schema().fields().len());
        // The outer side must have the domain; the other one only if it has references.
        let is_inner = join.join_type == Inner;
        let carries_left = if is_inner { asks_left || !asks_right } else { keeps_left || asks_left };
        let carries_right = if is_inner { asks_right } else { !keeps_left || asks_right };
        let (left, left_domain) = if carries_left { self.carry(left, domain)? } else { (left, Vec::new()) };
        let (right, right_domain) =
            if carries_right { self.carry(right, domain)? } else { (right, Vec::new()) };
        let keeps_left = if is_inner { carries_left } else { keeps_left };
        let kept = if keeps_left { left_domain.clone() } else { right_domain.clone() };
        let mut filter: Vec<Expr> = match join.filter {
            Some(filter) => vec![domain.bind(filter, &kept)?],
            None => Vec::new(),
        };
        let on = join
            .on
            .into_iter()
            .map(|(left, right)| Ok((domain.bind(left, &kept)?, domain.bind(right, &kept)?)));
        let on = on.collect::<Result<Vec<_>>>()?;
        if !left_domain.is_empty() && !right_domain.is_empty() {
            let pairs = left_domain.iter().cloned().zip(right_domain.iter().cloned());
            filter.extend(same(pairs, left.schema())?.into_iter().map(|(left, right)| left.eq(right)));
        }
        let plan = LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            datafusion::logical_expr::utils::conjunction(filter),
            join.join_type,
            JoinConstraint::On,
            join.null_equality,
            join.null_aware,
        )?);
        let shown = match join.join_type {
            LeftSemi | LeftAnti => fields(&plan, 0..widths.0),
            RightSemi | RightAnti => fields(&plan, 0..widths.1),
            _ => {
                let start = widths.0 + left_domain.len();
                let mut shown = fields(&plan, 0..widths.0);
                shown.extend(fields(&plan, start..start + widths.1));
                shown
            }
        };
        let plan = renamed(plan, shown, &schema, &kept)?;
        Ok(Carried { plan, domain: kept })
    }

    fn carried_union(&mut self, union: Union, domain: &Domain) -> Result<Carried> {
        let width = union.schema.fields().len();
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in union.inputs {
            let carried = self.carried(Arc::unwrap_or_clone(input), domain)?;
            let shown = fields(&carried.plan, 0..width).into_iter();
            let own = columns(&carried.domain).enumerate();
            let own = own.map(|(at, column)| column.alias(format!("__domain_{at}")));
            inputs.push(Arc::new(projected(carried.plan, shown.chain(own).collect())?));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let names = self.names(domain);
        let shown = fields(&plan, 0..width).into_iter().zip(union.schema.iter());
        let shown =
            shown.map(|(expr, (relation, field))| expr.alias_qualified(relation.cloned(), field.name()));
        let own = fields(&plan, width..width + names.len()).into_iter().zip(&names);
        let own = own.map(|(column, name)| column.alias(name));
        let exprs = shown.chain(own).collect();
        let domain = names.iter().map(Column::new_unqualified).collect();
        Ok(Carried { plan: projected(plan, exprs)?, domain })
    }

    fn carried_window(&mut self, window: Window, domain: &Domain) -> Result<Carried> {
        let width = window.input.schema().fields().len();
        let input = self.carried(Arc::unwrap_or_clone(window.input), domain)?;
        let exprs = window.window_expr.into_iter().map(|expr| {
            let expr = domain.bind(expr, &input.domain)?;
            let done = expr.transform(|part| match part {
                Expr::WindowFunction(mut function) => {
                    function.params.partition_by.extend(columns(&input.domain));
                    Ok(Transformed::yes(Expr::WindowFunction(function)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(done.data)
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlan::Window(Window::try_new(exprs, Arc::new(input.plan))?);
        let mut shown = fields(&plan, 0..width);
        shown.extend(fields(&plan, width + input.domain.len()..plan.schema().fields().len()));
        let plan = renamed(plan, shown, &window.schema, &input.domain)?;
        Ok(Carried { plan, domain: input.domain })
    }
}

/// All rows of `left`, with those of `right` for which all pairs are equal.
pub(super) fn left_join(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan> {
    let filter = on.is_empty().then(|| lit(true));
    Ok(LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        JoinType::Left,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?))
}

/// Whether an aggregate has columns outside of the subquery and none inside: it would belong to the outer query.
fn is_about_outside(aggregate: &Expr) -> bool {
    aggregate.contains_outer() && aggregate.column_refs().is_empty()
}

/// An aggregate over the rows for which `condition` is true.
fn only_where(expr: Expr, condition: &Expr) -> Result<Expr> {
    let done = expr.transform(|part| match part {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let own = params.filter.take();
            let filter = own.map_or_else(|| condition.clone(), |own| condition.clone().and(*own));
            params.filter = Some(Box::new(filter));
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}
