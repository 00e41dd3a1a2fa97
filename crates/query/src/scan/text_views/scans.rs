//! Scans, and filters and joins above them, with views of some texts.

use super::Columns;
use super::asked::{asked_of_views, asks_otherwise};
use crate::scan::provider::live_rows::LiveRows;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use std::sync::Arc;

/// The plan with as many of these columns as views as can be, if any can, and which they are.
pub(super) fn with_possible_views(
    plan: &Arc<dyn ExecutionPlan>,
    columns: &Columns,
) -> Result<Option<(Arc<dyn ExecutionPlan>, Columns)>> {
    if columns.is_empty() {
        return Ok(None);
    }
    if let Some(all) = with_views(plan, columns)? {
        return Ok(Some((all, columns.clone())));
    }
    let mut some: Option<(Arc<dyn ExecutionPlan>, Columns)> = None;
    for column in columns.iter().filter(|_| columns.len() > 1) {
        let mut more = some.as_ref().map_or_else(Columns::new, |(_, columns)| columns.clone());
        more.insert(*column);
        if let Some(changed) = with_views(plan, &more)? {
            some = Some((changed, more));
        }
    }
    Ok(some)
}

/// The plan with these of its columns as views; `None` if it is more than a scan, or needs a column for something else, too.
fn with_views(plan: &Arc<dyn ExecutionPlan>, columns: &Columns) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(below) = columns_below(projection.expr(), columns)? else { return Ok(None) };
        let Some(input) = with_views(projection.input(), &below)? else { return Ok(None) };
        return Ok(Some(Arc::new(ProjectionExec::try_new(projection.expr().to_vec(), input)?)));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return of_filter(filter, columns);
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        // Rows of both sides of a join meet by hashes, which need not be those of views.
        if let Partitioning::Hash(keys, _) = repartition.partitioning()
            && any_asked(keys, columns)?
        {
            return Ok(None);
        }
        let Some(input) = with_views(repartition.input(), columns)? else { return Ok(None) };
        return replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return of_join(plan, join, columns);
    }
    if let Some(union) = plan.downcast_ref::<UnionExec>() {
        let inputs = union.inputs().iter().map(|input| with_views(input, columns));
        let Some(inputs) = inputs.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
        return UnionExec::try_new(inputs).map(Some);
    }
    if let Some(live) = plan.downcast_ref::<LiveRows>() {
        let Some(below) = shown_once(live.columns(), columns) else { return Ok(None) };
        return of_live_rows(live, &below);
    }
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    match scan.downcast_to_file_source::<ParquetSource>() {
        Some((config, source)) => of_files(config, source, columns),
        None => converted(plan, columns).map(Some),
    }
}

/// The columns of a node's input that are these of its own; `None` if one is another column of its own, too.
fn shown_once(shown: &[usize], columns: &Columns) -> Option<Columns> {
    let below: Columns = columns.iter().filter_map(|column| shown.get(*column).copied()).collect();
    let is_free = shown.iter().filter(|column| below.contains(column)).count() == columns.len();
    is_free.then_some(below)
}

/// The filter with views in these of its columns.
fn of_filter(filter: &FilterExec, columns: &Columns) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let below = match filter.projection().as_ref() {
        Some(shown) => shown_once(shown, columns),
        None => Some(columns.clone()),
    };
    let Some(below) = below else { return Ok(None) };
    if asks_otherwise(filter.predicate(), &below)? {
        return Ok(None);
    }
    let Some(input) = with_views(filter.input(), &below)? else { return Ok(None) };
    let predicate = asked_of_views(filter.predicate(), &below, &input.schema())?;
    let filter = FilterExecBuilder::from(filter).with_input(input).with_predicate(predicate).build()?;
    Ok(Some(Arc::new(filter)))
}

/// The join with views in these of its columns, which it hands on and does not ask.
fn of_join(
    plan: &Arc<dyn ExecutionPlan>,
    join: &HashJoinExec,
    columns: &Columns,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let of_left = join.left().schema().fields().len();
    let sides = match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => [true, true],
        JoinType::LeftSemi | JoinType::LeftAnti => [true, false],
        JoinType::RightSemi | JoinType::RightAnti => [false, true],
        JoinType::LeftMark | JoinType::RightMark => return Ok(None),
    };
    let joined = match join.projection.as_ref() {
        Some(shown) => shown_once(shown, columns),
        None => Some(columns.clone()),
    };
    let Some(joined) = joined else { return Ok(None) };
    let first_of_right = if sides[0] { of_left } else { 0 };
    let left: Columns = joined.iter().copied().filter(|column| sides[0] && *column < of_left).collect();
    let right = joined.iter().filter(|column| sides[1] && **column >= first_of_right);
    let right: Columns = right.map(|column| column - first_of_right).collect();
    let asked = join.filter().map(JoinFilter::column_indices).unwrap_or_default();
    let is_asked = asked.iter().any(|asked| match asked.side {
        JoinSide::Left => left.contains(&asked.index),
        JoinSide::Right => right.contains(&asked.index),
        JoinSide::None => false,
    });
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
    if is_asked || any_asked(&left_keys, &left)? || any_asked(&right_keys, &right)? {
        return Ok(None);
    }
    let side = |input: &Arc<dyn ExecutionPlan>, columns: &Columns| match columns.is_empty() {
        true => Ok(Some(Arc::clone(input))),
        false => with_views(input, columns),
    };
    let (Some(left), Some(right)) = (side(join.left(), &left)?, side(join.right(), &right)?) else {
        return Ok(None);
    };
    replace_children_if_necessary(Arc::clone(plan), vec![left, right]).map(Some)
}

/// Whether expressions ask one of these columns.
fn any_asked(exprs: &[Arc<dyn PhysicalExpr>], columns: &Columns) -> Result<bool> {
    for expr in exprs {
        if expr.exists(|expr| {
            Ok(expr.downcast_ref::<Column>().is_some_and(|column| columns.contains(&column.index())))
        })? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The live rows with views in these columns of the scan.
pub(super) fn of_live_rows(live: &LiveRows, columns: &Columns) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    for filter in live.filters() {
        if asks_otherwise(filter, columns)? {
            return Ok(None);
        }
    }
    let Some(input) = with_views(live.scan(), columns)? else { return Ok(None) };
    let schema = input.schema();
    let filters = live.filters().iter().map(|filter| asked_of_views(filter, columns, &schema));
    Ok(Some(Arc::new(live.over(input, filters.collect::<Result<_>>()?)?)))
}

/// The input's columns from which a projection takes these of its own; `None` if it calculates one, or takes one for another column,
/// too.
fn columns_below(exprs: &[ProjectionExpr], columns: &Columns) -> Result<Option<Columns>> {
    let taken = columns.iter().map(|column| exprs.get(*column)?.expr.downcast_ref::<Column>());
    let Some(below) = taken.map(|taken| taken.map(Column::index)).collect::<Option<Columns>>() else {
        return Ok(None);
    };
    let others = exprs.iter().enumerate().filter(|(at, _)| !columns.contains(at));
    let others: Vec<_> = others.map(|(_, other)| Arc::clone(&other.expr)).collect();
    let is_free = below.len() == columns.len() && !any_asked(&others, &below)?;
    Ok(is_free.then_some(below))
}

/// The schema with views in these columns.
fn retyped(schema: &Schema, columns: &Columns) -> SchemaRef {
    let field = |(at, field): (usize, &FieldRef)| match columns.contains(&at) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        false => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().enumerate().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The scan of data files whose reader makes views.
fn of_files(
    config: &FileScanConfig,
    source: &ParquetSource,
    columns: &Columns,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = source.projection() else { return Ok(None) };
    let exprs: Vec<ProjectionExpr> = projection.iter().cloned().collect();
    let Some(below) = columns_below(&exprs, columns)? else { return Ok(None) };
    let table = source.table_schema();
    if below.iter().any(|column| *column >= table.file_schema().fields().len())
        || !config.output_ordering.is_empty()
    {
        return Ok(None);
    }
    let file = retyped(table.file_schema(), &below);
    let retyped = TableSchema::builder(file)
        .with_table_partition_cols(table.table_partition_cols().iter().cloned().collect::<Vec<_>>())
        .with_virtual_columns(table.virtual_columns().iter().cloned().collect::<Vec<_>>())
        .build();
    let schema = Arc::clone(retyped.table_schema());
    let mut changed =
        ParquetSource::new(retyped).with_table_parquet_options(source.table_parquet_options().clone());
    if let Some(readers) = source.parquet_file_reader_factory() {
        changed = changed.with_parquet_file_reader_factory(Arc::clone(readers));
    }
    if let Some(predicate) = source.filter() {
        // By it, parts of files are skipped.
        if asks_otherwise(&predicate, &below)? {
            return Ok(None);
        }
        changed = changed.with_predicate(asked_of_views(&predicate, &below, &schema)?);
    }
    // A new source shows all columns.
    let Some(changed) = changed.try_pushdown_projection(projection)? else { return Ok(None) };
    let config = FileScanConfigBuilder::from(config.clone()).with_source(changed).build();
    Ok(Some(DataSourceExec::from_data_source(config)))
}

/// Rows in memory with views in these columns.
fn converted(plan: &Arc<dyn ExecutionPlan>, columns: &Columns) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let column = |(at, field): (usize, &FieldRef)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let expr: Arc<dyn PhysicalExpr> = match columns.contains(&at) {
            true => Arc::new(CastExpr::new(column, DataType::Utf8View, None)),
            false => column,
        };
        ProjectionExpr { expr, alias: field.name().clone() }
    };
    let exprs: Vec<ProjectionExpr> = schema.fields().iter().enumerate().map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(plan))?))
}
