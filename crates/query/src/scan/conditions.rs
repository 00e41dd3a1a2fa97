//! Conditions of a filter, each of which is asked about as many rows as is cheap.
//!
//! DataFusion asks the conditions of `a AND b AND c` one after the other, and if few rows are left, it copies them with all columns
//! and puts the answers back bit by bit. For a comparison of numbers that takes longer than comparing all of them. Here
//! comparisons of numbers come first, for all rows, and the others are asked about the rows that are left, with the columns that
//! they need.
//!
//! Invariant: a row passes if it passes all conditions. NULL is false here, so only whole filters are changed.

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::scan::home_rule::home_rule;
use crate::workarounds::physical::node_rule::Changed;
use crate::workarounds::physical::only_where::Rule;

/// A condition other than a comparison of numbers is asked only about the rows that are left if they are at most this fraction.
const SHARE_LEFT: usize = 2;

/// The rule that asks conditions of filters in another way. Comes after all rules that look into filters.
pub fn conditions_apart() -> Rule {
    home_rule("ConditionsApart", |plan| {
        let is_window =
            |plan: &Arc<dyn ExecutionPlan>| plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>();
        let has_window = plan.exists(|plan| Ok(is_window(plan)))?;
        plan.transform_up(|plan| apart(plan, has_window)).data()
    })
}

fn apart(plan: Arc<dyn ExecutionPlan>, has_window: bool) -> Changed {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
    let Ok(Some(all)) = AllOf::of(filter.predicate(), &filter.input().schema()) else {
        return Ok(Transformed::no(plan));
    };
    let apart = FilterExecBuilder::from(filter).with_predicate(all).build()?;
    // A window that is executed asks its input again which columns have one value, and DataFusion finds them in the conditions.
    let equal = |filter: &FilterExec| filter.properties().equivalence_properties().eq_group().to_vec();
    if has_window && equal(filter) != equal(&apart) {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(Arc::new(apart)))
}

/// Conditions that all must hold.
#[derive(Debug)]
pub struct AllOf {
    /// As one expression.
    filter: Arc<dyn PhysicalExpr>,
    /// Comparisons of numbers first.
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    /// The positions of its columns.
    columns: Vec<usize>,
    /// The schema of these columns.
    schema: SchemaRef,
    /// Over these columns.
    expr: Arc<dyn PhysicalExpr>,
    is_cheap: bool,
}

impl AllOf {
    /// The conditions of a filter. `None`: there is only one, or they have to be asked in their order.
    ///
    /// # Errors
    /// The filter asks columns that the schema does not have.
    pub fn of(filter: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let conditions = split_conjunction(filter);
        if conditions.len() < 2 || is_volatile(filter) {
            return Ok(None);
        }
        let conditions = conditions.into_iter().map(|condition| Condition::of(condition, schema));
        let (cheap, others): (Vec<_>, Vec<_>) =
            conditions.collect::<Result<Vec<_>>>()?.into_iter().partition(|condition| condition.is_cheap);
        let conditions = cheap.into_iter().chain(others).collect();
        Ok(Some(Arc::new(Self { filter: Arc::clone(filter), conditions })))
    }
}

impl Condition {
    fn of(condition: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Self> {
        let mut columns: Vec<usize> = collect_columns(condition).iter().map(Column::index).collect();
        columns.sort_unstable();
        columns.dedup();
        let of_columns = Arc::new(schema.project(&columns)?);
        let is_cheap = is_of_numbers(condition, schema);
        // By positions: names may repeat.
        let expr = at_positions(condition, &columns, &of_columns)?;
        Ok(Self { columns, schema: of_columns, expr, is_cheap })
    }

    fn answers(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let answers = self.expr.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(match as_boolean_array(&answers)? {
            some_unknown if some_unknown.null_count() > 0 => {
                prep_null_mask_filter(some_unknown).values().clone()
            }
            known => known.values().clone(),
        })
    }

    /// The rows of `left` that pass; `None`: all rows are left.
    fn passing(&self, batch: &RecordBatch, left: Option<&BooleanBuffer>) -> Result<BooleanBuffer> {
        let columns: Vec<ArrayRef> =
            self.columns.iter().map(|column| Arc::clone(batch.column(*column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let Some(left) = left else { return self.answers(&batch) };
        if self.is_cheap || left.count_set_bits() * SHARE_LEFT > batch.num_rows() {
            return Ok(&self.answers(&batch)? & left);
        }
        let fewer = filter_record_batch(&batch, &BooleanArray::new(left.clone(), None))?;
        let answers = self.answers(&fewer)?;
        let mut passing = BooleanBufferBuilder::new(left.len());
        passing.append_n(left.len(), false);
        for (row, passes) in left.set_indices().zip(&answers) {
            if passes {
                passing.set_bit(row, true);
            }
        }
        Ok(passing.finish())
    }
}

/// The condition over these columns of its schema only.
fn at_positions(
    condition: &Arc<dyn PhysicalExpr>,
    columns: &[usize],
    schema: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = |expr: Arc<dyn PhysicalExpr>| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let position = columns.binary_search(&column.index()).unwrap_or(usize::MAX);
        Ok(Transformed::yes(Arc::new(Column::new(schema.field(position).name(), position)) as _))
    };
    Arc::clone(condition).transform_up(moved).data()
}

/// Whether a condition only compares columns of fixed width with each other and with constants.
fn is_of_numbers(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if expr.downcast_ref::<Literal>().is_some() {
        return true;
    }
    if expr.downcast_ref::<Column>().is_some() {
        let fixed = |data_type: DataType| data_type.is_primitive() || data_type == DataType::Boolean;
        return expr.data_type(schema).is_ok_and(fixed);
    }
    let is_comparison = match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) => binary.op().supports_propagation() || binary.op().is_logic_operator(),
        None => {
            expr.downcast_ref::<IsNullExpr>().is_some()
                || expr.downcast_ref::<IsNotNullExpr>().is_some()
                || expr.downcast_ref::<NotExpr>().is_some()
        }
    };
    is_comparison && expr.children().into_iter().all(|child| is_of_numbers(child, schema))
}

impl PhysicalExpr for AllOf {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut left: Option<BooleanBuffer> = None;
        for condition in &self.conditions {
            let passing = condition.passing(batch, left.as_ref())?;
            if passing.count_set_bits() == 0 {
                return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(false))));
            }
            left = Some(passing);
        }
        let all = || BooleanBuffer::new_set(batch.num_rows());
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(left.unwrap_or_else(all), None))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        // Over other columns it is asked in DataFusion's way.
        Ok(children.pop().unwrap_or_else(|| Arc::clone(&self.filter)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(f)
    }
}

impl fmt::Display for AllOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl PartialEq for AllOf {
    fn eq(&self, other: &Self) -> bool {
        self.filter.eq(&other.filter)
    }
}

impl Eq for AllOf {}

impl Hash for AllOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

#[cfg(test)]
mod tests;
