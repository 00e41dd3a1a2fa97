//! Scalar subqueries of queries that are divided: they are computed first, and the query is divided with their values.
//!
//! The value of a step in one part of a plan does not reach the others, so a plan with such a step does not travel. The values take
//! the places of subqueries in the optimized query, where conversions are written out already: what a constant means in a
//! comparison is not asked again.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use std::sync::Arc;

/// The scalar subqueries of an optimized query that refer to nothing outside of them.
///
/// # Errors
/// Never.
pub(super) fn scalars(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !found.iter().any(|known| Arc::ptr_eq(&known.subquery, &subquery.subquery))
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// The query with values instead of these scalar subqueries.
///
/// # Errors
/// Never.
pub(super) fn with_values(
    plan: &LogicalPlan,
    subqueries: &[Subquery],
    values: &[Expr],
) -> Result<LogicalPlan> {
    let value_of = |expr: Expr| {
        let place = match &expr {
            Expr::ScalarSubquery(asked) => {
                subqueries.iter().position(|known| Arc::ptr_eq(&known.subquery, &asked.subquery))
            }
            _ => None,
        };
        Ok(match place {
            Some(place) => Transformed::yes(values[place].clone()),
            None => Transformed::no(expr),
        })
    };
    let plan = plan.clone().transform_down(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(value_of)?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(plan.data)
}

/// The value of a subquery with these rows, as a constant.
///
/// # Errors
/// There are several rows, or the value is of another type than the subquery.
pub(super) fn value(subquery: &Subquery, rows: &[RecordBatch]) -> Result<Expr> {
    let field = subquery.subquery.schema().field(0);
    let mut rows = rows.iter().filter(|batch| batch.num_rows() > 0);
    let value = match (rows.next(), rows.next()) {
        (None, _) => ScalarValue::try_from(field.data_type())?,
        (Some(batch), None) if batch.num_rows() == 1 => ScalarValue::try_from_array(batch.column(0), 0)?,
        _ => return exec_err!("a subquery that is one value has more rows"),
    };
    let value =
        if value.data_type() == *field.data_type() { value } else { value.cast_to(field.data_type())? };
    let metadata = Some(FieldMetadata::new_from_field(field)).filter(|metadata| !metadata.is_empty());
    Ok(Expr::Literal(value, metadata))
}
