//! Rows of plans, and different values of expressions, as far as tables know them.
//!
//! Tables know the number of their rows, and bounds of whole numbers and dates, which limit the number of their different values.
//! Nothing is answered from estimates: a wrong one makes a query slower.

use super::shares::share;
use crate::scan::provider::SnapshotProvider;
use arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, JoinType, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Distinct, Expr, Filter, Join, LogicalPlan, TableScan};

/// How deep plans are looked into.
const DEPTH_MAX: usize = 100;
/// Share of the rows of a join that a condition beside its keys leaves, and of the rows of one side that have, or lack, a partner.
const JOINED: f64 = 0.5;
/// Values of one side may be this many times the values of the other, and still have them among them.
const SPREAD: f64 = 32.0;

/// How many rows a plan has.
pub(super) fn rows(plan: &LogicalPlan) -> Option<f64> {
    count(plan, Rows::Left, 0)
}

/// How many rows a plan would have without its filters.
pub(super) fn rows_in_all(plan: &LogicalPlan) -> Option<f64> {
    count(plan, Rows::All, 0)
}

/// How many different values an expression has at most, over all rows of a plan.
pub(super) fn values(plan: &LogicalPlan, expr: &Expr) -> Option<f64> {
    values_at(plan, expr, 0)
}

/// The different values of keys that are equal, one of whose numbers is each of `of`.
///
/// Usually the smaller number is that of a table's own key, which others refer to, and the larger one is only an upper bound, such as
/// 61,000 whole numbers from 19920101 to 19981231, of which 2,400 are dates.
pub(super) fn common_values(of: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = of.fold((f64::INFINITY, 1.0_f64), |(least, most), it| (least.min(it), most.max(it)));
    let least = least.min(most).max(1.0);
    least * (most / least / SPREAD).max(1.0).sqrt()
}

/// Which rows of a table count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    All,
    /// The rows that filters leave.
    Left,
}

fn count(plan: &LogicalPlan, which: Rows, depth: usize) -> Option<f64> {
    if depth > DEPTH_MAX {
        return None;
    }
    let below = |plan: &LogicalPlan| count(plan, which, depth + 1);
    match plan {
        LogicalPlan::TableScan(scan) => {
            let conditions: Vec<&Expr> = scan.filters.iter().flat_map(split_conjunction).collect();
            scanned(plan, scan, &conditions, which)
        }
        LogicalPlan::Filter(filter) => filtered(filter, which, depth),
        LogicalPlan::Projection(it) => below(&it.input),
        LogicalPlan::SubqueryAlias(it) => below(&it.input),
        LogicalPlan::Window(it) => below(&it.input),
        LogicalPlan::Repartition(it) => below(&it.input),
        LogicalPlan::Subquery(it) => below(&it.subquery),
        LogicalPlan::Sort(it) => {
            let rows = below(&it.input)?;
            Some(it.fetch.map_or(rows, |fetch| rows.min(fetch as f64)))
        }
        LogicalPlan::Limit(it) => {
            let rows = below(&it.input)?;
            Some(plan.max_rows().map_or(rows, |limit| rows.min(limit as f64)))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => below(input),
        LogicalPlan::Aggregate(it) if it.group_expr.is_empty() => Some(1.0),
        LogicalPlan::Aggregate(it) => {
            let mut keys = it.group_expr.iter().map(|key| values_at(&it.input, key, depth + 1));
            let groups: Option<f64> = keys.try_fold(1.0, |all, key| Some(all * key?));
            let rows = below(&it.input)?;
            Some(groups.map_or(rows, |groups| groups.min(rows)))
        }
        LogicalPlan::Union(it) => {
            it.inputs.iter().map(|input| below(input)).try_fold(0.0_f64, |sum, rows| Some(sum + rows?))
        }
        LogicalPlan::EmptyRelation(it) => Some(f64::from(u8::from(it.produce_one_row))),
        LogicalPlan::Values(it) => Some(it.values.len() as f64),
        LogicalPlan::Join(join) => joined(join, which, depth),
        _ => None,
    }
}

/// A filter right above a scan has the scan's conditions, too.
fn filtered(filter: &Filter, which: Rows, depth: usize) -> Option<f64> {
    let mut conditions = split_conjunction(&filter.predicate);
    if let LogicalPlan::TableScan(scan) = filter.input.as_ref() {
        let others = scan.filters.iter().flat_map(split_conjunction);
        let others: Vec<&Expr> = others.filter(|condition| !conditions.contains(condition)).collect();
        conditions.extend(others);
        return scanned(&filter.input, scan, &conditions, which);
    }
    let rows = count(&filter.input, which, depth + 1)?;
    Some(match which {
        Rows::All => rows,
        Rows::Left => rows * share(&conditions, &filter.input),
    })
}

fn scanned(plan: &LogicalPlan, scan: &TableScan, conditions: &[&Expr], which: Rows) -> Option<f64> {
    let rows = table_rows(scan)?;
    let rows = match which {
        Rows::All => rows,
        Rows::Left => rows * share(conditions, plan),
    };
    Some(scan.fetch.map_or(rows, |fetch| rows.min(fetch as f64)))
}

fn joined(join: &Join, which: Rows, depth: usize) -> Option<f64> {
    let (left, right) = (count(&join.left, which, depth + 1)?, count(&join.right, which, depth + 1)?);
    let all = |plan: &LogicalPlan| count(plan, Rows::All, depth + 1);
    let mut keys = 1.0;
    for (one, other) in &join.on {
        let (one, other) =
            (values_at(&join.left, one, depth + 1)?, values_at(&join.right, other, depth + 1)?);
        keys *= common_values([one, other].into_iter());
    }
    if join.on.len() > 1 {
        keys = keys.min(all(&join.left)?.min(all(&join.right)?));
    }
    let share = if join.filter.is_some() && which == Rows::Left { JOINED } else { 1.0 };
    let matched = left * right / keys.max(1.0) * share;
    Some(match join.join_type {
        JoinType::Inner => matched,
        JoinType::Left => matched.max(left),
        JoinType::Right => matched.max(right),
        JoinType::Full => matched.max(left).max(right),
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
        JoinType::LeftSemi | JoinType::LeftAnti if which == Rows::All => left,
        JoinType::RightSemi | JoinType::RightAnti if which == Rows::All => right,
        JoinType::LeftSemi => left.min(left * (right / keys.max(1.0)).min(1.0) * share),
        JoinType::RightSemi => right.min(right * (left / keys.max(1.0)).min(1.0) * share),
        JoinType::LeftAnti => left * JOINED,
        JoinType::RightAnti => right * JOINED,
    })
}

fn values_at(plan: &LogicalPlan, expr: &Expr, depth: usize) -> Option<f64> {
    let rows = count(plan, Rows::All, depth)?.max(1.0);
    let values = match expr {
        Expr::Column(column) => match origin(plan, column, depth) {
            Some((scan, name)) => Facts::of(scan, &name).map_or(rows, |facts| facts.values),
            None => rows,
        },
        Expr::Literal(..) => 1.0,
        _ => {
            let columns = expr.column_refs();
            let mut each = columns.iter().map(|column| {
                let column = Expr::Column((*column).clone());
                if depth < DEPTH_MAX { values_at(plan, &column, depth + 1) } else { None }
            });
            each.try_fold(1.0_f64, |all, column| Some(all * column?))?
        }
    };
    Some(values.clamp(1.0, rows))
}

/// The table that a column of a plan is from, and the column's name there.
pub(super) fn origin<'a>(
    plan: &'a LogicalPlan,
    column: &Column,
    depth: usize,
) -> Option<(&'a TableScan, String)> {
    if depth > DEPTH_MAX {
        return None;
    }
    let through = |input: &'a LogicalPlan, expr: &Expr| match unnamed(expr) {
        Expr::Column(column) => origin(input, column, depth + 1),
        _ => None,
    };
    match plan {
        LogicalPlan::TableScan(scan) => Some((scan, column.name.clone())),
        LogicalPlan::Filter(it) => origin(&it.input, column, depth + 1),
        LogicalPlan::Sort(it) => origin(&it.input, column, depth + 1),
        LogicalPlan::Limit(it) => origin(&it.input, column, depth + 1),
        LogicalPlan::Repartition(it) => origin(&it.input, column, depth + 1),
        LogicalPlan::Distinct(Distinct::All(input)) => origin(input, column, depth + 1),
        LogicalPlan::SubqueryAlias(it) => {
            let at = it.schema.maybe_index_of_column(column)?;
            let below = Column::from(it.input.schema().qualified_field(at));
            origin(&it.input, &below, depth + 1)
        }
        LogicalPlan::Projection(it) => {
            through(&it.input, it.expr.get(it.schema.maybe_index_of_column(column)?)?)
        }
        LogicalPlan::Aggregate(it) => {
            through(&it.input, it.group_expr.get(it.schema.maybe_index_of_column(column)?)?)
        }
        LogicalPlan::Join(join) => {
            let side = [&join.left, &join.right].into_iter().find(|side| side.schema().has_column(column));
            origin(side?, column, depth + 1)
        }
        _ => None,
    }
}

fn unnamed(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unnamed(&alias.expr),
        Expr::Cast(cast) => unnamed(&cast.expr),
        other => other,
    }
}

fn table_rows(scan: &TableScan) -> Option<f64> {
    let provider = source_as_provider(&scan.source).ok()?;
    if let Some(snapshot) = provider.downcast_ref::<SnapshotProvider>() {
        return Some(snapshot.rows() as f64);
    }
    provider.statistics()?.num_rows.get_value().map(|rows| *rows as f64)
}

/// A column, as far as its table knows it.
pub(super) struct Facts {
    /// Its smallest and its largest value.
    pub range: Option<(f64, f64)>,
    /// Between two of its values there are finitely many others.
    pub is_whole: bool,
    /// The number of different values, at most.
    pub values: f64,
    /// `values` follows from more than the number of rows.
    pub is_known: bool,
}

impl Facts {
    pub fn of(scan: &TableScan, name: &str) -> Option<Self> {
        let schema = scan.source.schema();
        let (at, field) = schema.column_with_name(name)?;
        let provider = source_as_provider(&scan.source).ok()?;
        let statistics: ColumnStatistics = match provider.downcast_ref::<SnapshotProvider>() {
            Some(snapshot) => snapshot.estimate(at),
            None => provider.statistics()?.column_statistics.get(at)?.clone(),
        };
        let data_type = field.data_type();
        let is_whole = data_type.is_integer() || matches!(data_type, DataType::Date32 | DataType::Boolean);
        let bound = |value: &Precision<ScalarValue>| value.get_value().and_then(number);
        let range = bound(&statistics.min_value).zip(bound(&statistics.max_value));
        let rows = table_rows(scan)?;
        let in_range = range.filter(|_| is_whole).map(|(min, max)| max - min + 1.0);
        let counted = statistics.distinct_count.get_value().map(|count| *count as f64);
        let known = counted.or(in_range);
        Some(Self {
            range,
            is_whole,
            values: known.map_or(rows, |it| it.min(rows)),
            is_known: known.is_some(),
        })
    }
}

/// A value as a number, as far as it lies on a line: of dates the day, of times the microsecond.
pub(super) fn number(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Boolean(it) => it.map(|it| f64::from(u8::from(it))),
        ScalarValue::Int8(it) => it.map(f64::from),
        ScalarValue::Int16(it) => it.map(f64::from),
        ScalarValue::Int32(it) | ScalarValue::Date32(it) => it.map(f64::from),
        ScalarValue::Int64(it) | ScalarValue::TimestampMicrosecond(it, _) => it.map(|it| it as f64),
        ScalarValue::UInt8(it) => it.map(f64::from),
        ScalarValue::UInt16(it) => it.map(f64::from),
        ScalarValue::UInt32(it) => it.map(f64::from),
        ScalarValue::UInt64(it) => it.map(|it| it as f64),
        ScalarValue::Float32(it) => it.map(f64::from),
        ScalarValue::Float64(it) => *it,
        ScalarValue::Decimal128(it, _, scale) => it.map(|it| it as f64 / 10_f64.powi(i32::from(*scale))),
        _ => None,
    }
}
