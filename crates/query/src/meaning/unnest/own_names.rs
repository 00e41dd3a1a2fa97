//! Names for the columns that a subquery compares with the rows outside.
//!
//! DataFusion turns a correlated subquery into a join, gives all its columns the join's name, and then identifies them by their
//! own names alone. If two of them had the same name, as in `EXISTS (SELECT 1 FROM u, v WHERE u.x = t.k AND v.x = t.y)`, it
//! compared `u.x` twice; and it did not find a column that an inner derived table hides. [`Unnest::with_own_names`] gives such
//! columns unique names, and shows them.

use super::{Unnest, back_to, projected, shape};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, Join, LogicalPlan, SubqueryAlias};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Unnest {
    /// The plan of a subquery in which DataFusion finds each column that is compared with the rows outside.
    pub(super) fn with_own_names(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if !has_namesakes(&plan) && !has_derived(&plan) {
            return Ok(plan);
        }
        let columns = plan.schema().columns();
        back_to(self.with_copies(plan)?.0, columns)
    }

    /// The plan, with copies of the columns that it compares; and the visible ones among them.
    fn with_copies(&mut self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Column>)> {
        if shape::free(&plan).is_empty() {
            return Ok((plan, Vec::new()));
        }
        Ok(match plan {
            LogicalPlan::Filter(filter) => {
                let (input, mut copies) = self.with_copies(Arc::unwrap_or_clone(filter.input))?;
                (self.over_copies(filter.predicate, input, &mut copies)?, copies)
            }
            LogicalPlan::Projection(projection) => {
                let (input, copies) = self.with_copies(Arc::unwrap_or_clone(projection.input))?;
                let shown = copies.iter().cloned().map(Expr::Column);
                (projected(input, projection.expr.into_iter().chain(shown).collect())?, copies)
            }
            LogicalPlan::SubqueryAlias(derived) => {
                let (input, copies) = self.with_copies(Arc::unwrap_or_clone(derived.input))?;
                let name = derived.alias;
                let copies =
                    copies.into_iter().map(|copy| Column::new(Some(name.clone()), copy.name)).collect();
                (LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), name)?), copies)
            }
            LogicalPlan::Join(join) => {
                let (left, mut copies) = self.with_copies(Arc::unwrap_or_clone(join.left))?;
                let (right, others) = self.with_copies(Arc::unwrap_or_clone(join.right))?;
                copies.extend(others);
                let joined = Join::try_new(
                    Arc::new(left),
                    Arc::new(right),
                    join.on,
                    join.filter,
                    join.join_type,
                    join.join_constraint,
                    join.null_equality,
                    join.null_aware,
                )?;
                (LogicalPlan::Join(joined), copies)
            }
            LogicalPlan::Aggregate(aggregate) => {
                let (input, _) = self.with_copies(Arc::unwrap_or_clone(aggregate.input))?;
                let Aggregate { group_expr, aggr_expr, .. } = aggregate;
                let groups = Aggregate::try_new(Arc::new(input), group_expr, aggr_expr)?;
                (LogicalPlan::Aggregate(groups), Vec::new())
            }
            other => (other, Vec::new()),
        })
    }

    /// A filter over `input` that compares copies of columns with the rows outside, which are added to `copies`.
    fn over_copies(
        &mut self,
        condition: Expr,
        input: LogicalPlan,
        copies: &mut Vec<Column>,
    ) -> Result<LogicalPlan> {
        let mut own: Vec<(Column, Column)> = Vec::new();
        let mut conditions = split_conjunction_owned(condition);
        for condition in conditions.iter_mut().filter(|condition| condition.contains_outer()) {
            let compared = std::mem::take(condition).transform(|part| {
                let Expr::Column(column) = part else { return Ok(Transformed::no(part)) };
                let copy = match own.iter().find(|(original, _)| *original == column) {
                    Some((_, copy)) => copy.clone(),
                    None => {
                        let copy = Column::new_unqualified(self.fresh().to_string());
                        own.push((column, copy.clone()));
                        copy
                    }
                };
                Ok(Transformed::yes(Expr::Column(copy)))
            })?;
            *condition = compared.data;
        }
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let shown = own.iter().map(|(original, copy)| Expr::Column(original.clone()).alias(&copy.name));
        let shown = columns.chain(shown).collect();
        copies.extend(own.into_iter().map(|(_, copy)| copy));
        super::filtered(projected(input, shown)?, conditions)
    }
}

/// Whether a column that is compared with the rows outside has the name of another one on its way out of the subquery.
fn has_namesakes(plan: &LogicalPlan) -> bool {
    let mut compared = BTreeSet::new();
    each_node(plan, &mut |node| {
        let LogicalPlan::Filter(Filter { predicate, .. }) = node else { return };
        let outside = split_conjunction(predicate).into_iter().filter(|part| part.contains_outer());
        compared.extend(outside.flat_map(Expr::column_refs).cloned());
    });
    let names: BTreeSet<&str> = compared.iter().map(Column::name).collect();
    let mut is_shared = names.len() < compared.len();
    each_node(plan, &mut |node| {
        if let LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) = node {
            is_shared |= node.expressions().iter().zip(node.schema().fields()).any(|(expr, field)| {
                let is_same = matches!(expr, Expr::Column(column) if compared.contains(column));
                names.contains(field.name().as_str()) && !is_same
            });
        }
    });
    is_shared
}

/// Whether an inner derived table compares columns, any of which it may hide.
fn has_derived(plan: &LogicalPlan) -> bool {
    let mut found = false;
    each_node(plan, &mut |node| {
        found |=
            matches!(node, LogicalPlan::SubqueryAlias(derived) if !shape::free(&derived.input).is_empty());
    });
    found
}

/// The nodes of a subquery except those of inner LATERAL tables, which compare with the table beside them.
fn each_node(plan: &LogicalPlan, visit: &mut dyn FnMut(&LogicalPlan)) {
    let _ = plan.apply(|node| {
        if let LogicalPlan::Subquery(_) = node {
            return Ok(TreeNodeRecursion::Jump);
        }
        visit(node);
        Ok(TreeNodeRecursion::Continue)
    });
}
