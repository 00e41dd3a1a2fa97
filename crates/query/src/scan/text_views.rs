//! Texts of scans are read as views where only filters, groups and first rows take them.
//!
//! A view of a text is its length, its first bytes and where the rest is. The reader need not copy a page's texts one after the
//! other, and a comparison often reads no more than the view. Functions of ours take texts and no views, so the views must not get
//! far:
//!
//! | file | its part |
//! | --- | --- |
//! | `asked` | predicates that take both: comparisons with constants, `LIKE`, lists of constants and `IS NULL`, which are DataFusion's own |
//! | `scans` | scans, filters and joins with views of some columns |
//! | `groups` | groups by texts, and first rows of an order: what comes out are texts again |
//!
//! A filter's columns that are not shown above it are read as views, too: see [`below_filter`].

mod asked;
mod groups;
mod scans;

use crate::scan::provider::live_rows::LiveRows;
use crate::workarounds::physical::node_rule::{Changed, place_of};
use crate::workarounds::physical::only_where::Rule;
use arrow::datatypes::{DataType, Schema};
use asked::{asked_of_views, free_texts};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use scans::{of_live_rows, with_possible_views};
use std::collections::BTreeSet;
use std::sync::Arc;

/// DataFusion's rule before which plans are changed: later ones give a scan an order of row groups, which a new scan would lack.
const BEFORE: &str = "PushdownSort";

/// Positions of columns.
type Columns = BTreeSet<usize>;

/// The rules with one that reads texts as views where only filters, groups and first rows take them.
///
/// # Panics
/// If DataFusion has no rule of the name that it is put before.
pub fn with_text_views(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.insert(place_of(&rules, BEFORE), Arc::new(TextViews));
    rules
}

#[derive(Debug)]
struct TextViews;

impl PhysicalOptimizerRule for TextViews {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        groups::with_views(plan.transform_up(below_filter).data()?, true)
    }

    fn name(&self) -> &'static str {
        "TextViews"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an expression makes texts of a column of views, or views of one of texts, and nothing else.
pub fn is_only_of_views(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else { return false };
    let Some(column) = cast.expr().downcast_ref::<Column>() else { return false };
    let from = schema.fields().get(column.index()).map(|field| field.data_type());
    let pair = (from, cast.cast_type());
    matches!(pair, (Some(DataType::Utf8), DataType::Utf8View) | (Some(DataType::Utf8View), DataType::Utf8))
}

/// A filter that is asked of views, as far as it does not show them.
fn below_filter(plan: Arc<dyn ExecutionPlan>) -> Changed {
    if let Some(live) = plan.downcast_ref::<LiveRows>() {
        let Some(filter) = conjunction_opt(live.filters().iter().cloned()) else {
            return Ok(Transformed::no(plan));
        };
        let columns = free_texts(&filter, &live.scan().schema(), live.columns())?;
        let changed = if columns.is_empty() { None } else { of_live_rows(live, &columns)? };
        return Ok(changed.map_or_else(|| Transformed::no(plan), Transformed::yes));
    }
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
    let Some(shown) = filter.projection().as_ref() else { return Ok(Transformed::no(plan)) };
    let columns = free_texts(filter.predicate(), &filter.input().schema(), shown)?;
    let Some((input, columns)) = with_possible_views(filter.input(), &columns)? else {
        return Ok(Transformed::no(plan));
    };
    let predicate = asked_of_views(filter.predicate(), &columns, &input.schema())?;
    // The projection is one of positions, which stay.
    let filter = FilterExecBuilder::from(filter).with_input(input).with_predicate(predicate).build()?;
    Ok(Transformed::yes(Arc::new(filter)))
}

#[cfg(test)]
mod tests;
