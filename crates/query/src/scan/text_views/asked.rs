//! Predicates over texts that may be views.

use super::Columns;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, in_list,
};
use std::sync::Arc;

/// The texts that a predicate asks in ways that take both types, and that are not shown.
pub(super) fn free_texts(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    shown: &[usize],
) -> Result<Columns> {
    let mut columns = asked_plainly(predicate)?;
    columns.retain(|column| *schema.field(*column).data_type() == DataType::Utf8 && !shown.contains(column));
    Ok(columns)
}

/// The columns that a predicate asks in ways that take both types, and in no other way.
fn asked_plainly(predicate: &Arc<dyn PhysicalExpr>) -> Result<Columns> {
    let (mut plainly, mut otherwise) = (Columns::new(), Columns::new());
    predicate.apply(|expr| {
        if let Some(column) = plain(expr) {
            plainly.insert(column.index());
            return Ok(TreeNodeRecursion::Jump);
        }
        if let Some(column) = expr.downcast_ref::<Column>() {
            otherwise.insert(column.index());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    plainly.retain(|column| !otherwise.contains(column));
    Ok(plainly)
}

/// The column that an expression asks, if it is of a kind that takes both types.
fn plain(expr: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    let column = |expr: &'_ Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().is_some();
    let constant = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().is_some();
    let asked = if let Some(compare) = expr.downcast_ref::<BinaryExpr>() {
        let compares = matches!(
            compare.op(),
            Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
        );
        match (compare.left(), compare.right()) {
            (left, right) if compares && column(left) && constant(right) => left,
            (left, right) if compares && constant(left) && column(right) => right,
            _ => return None,
        }
    } else if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        like.expr().downcast_ref::<Column>().filter(|_| constant(like.pattern()))?;
        like.expr()
    } else if let Some(list) = expr.downcast_ref::<InListExpr>() {
        list.expr().downcast_ref::<Column>().filter(|_| list.list().iter().all(constant))?;
        list.expr()
    } else if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
        is_null.arg()
    } else {
        expr.downcast_ref::<IsNotNullExpr>()?.arg()
    };
    asked.downcast_ref::<Column>()
}

/// The predicate over views in place of the texts of these columns.
pub(super) fn asked_of_views(
    predicate: &Arc<dyn PhysicalExpr>,
    columns: &Columns,
    schema: &SchemaRef,
) -> Result<Arc<dyn PhysicalExpr>> {
    let asked = |expr: Arc<dyn PhysicalExpr>| {
        if !plain(&expr).is_some_and(|column| columns.contains(&column.index())) {
            return Ok(Transformed::no(expr));
        }
        let changed = match expr.downcast_ref::<InListExpr>() {
            Some(list) => {
                let values = list.list().iter().map(view_of).collect();
                in_list(Arc::clone(list.expr()), values, &list.negated(), schema)?
            }
            None => {
                let children = expr.children().into_iter().map(view_of).collect();
                Arc::clone(&expr).with_new_children(children)?
            }
        };
        Ok(Transformed::new(changed, true, TreeNodeRecursion::Jump))
    };
    Arc::clone(predicate).transform_down(asked).data()
}

/// A constant text as a view; other expressions stay.
fn view_of(expr: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    match expr.downcast_ref::<Literal>().map(Literal::value) {
        Some(ScalarValue::Utf8(text)) => Arc::new(Literal::new(ScalarValue::Utf8View(text.clone()))),
        _ => Arc::clone(expr),
    }
}

/// Whether a predicate asks one of these columns in a way that does not take views.
pub(super) fn asks_otherwise(predicate: &Arc<dyn PhysicalExpr>, columns: &Columns) -> Result<bool> {
    let plainly = asked_plainly(predicate)?;
    predicate.exists(|expr| {
        let column = expr.downcast_ref::<Column>().map(Column::index);
        Ok(column.is_some_and(|column| columns.contains(&column) && !plainly.contains(&column)))
    })
}
