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
    Some(counts(plan, 0)?.left)
}

/// How many rows a plan would have without its filters.
pub(super) fn rows_in_all(plan: &LogicalPlan) -> Option<f64> {
    Some(counts(plan, 0)?.all)
}

/// How many different values an expression has at most, over all rows of a plan.
pub(super) fn values(plan: &LogicalPlan, expr: &Expr) -> Option<f64> {
    values_of(plan, rows_in_all(plan)?, expr, 0)
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

/// Rows of a plan.
#[derive(Clone, Copy)]
struct Counts {
    /// Without its filters.
    all: f64,
    /// The rows that filters leave.
    left: f64,
}

impl Counts {
    fn same(rows: f64) -> Self {
        Self { all: rows, left: rows }
    }

    fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { all: of(self.all), left: of(self.left) }
    }
}

/// Counts a plan's rows. Each of its nodes is asked once, however deep joins are nested.
fn counts(plan: &LogicalPlan, depth: usize) -> Option<Counts> {
    if depth > DEPTH_MAX {
        return None;
    }
    let below = |plan: &LogicalPlan| counts(plan, depth + 1);
    match plan {
        LogicalPlan::TableScan(scan) => {
            let conditions: Vec<&Expr> = scan.filters.iter().flat_map(split_conjunction).collect();
            scanned(plan, scan, &conditions)
        }
        LogicalPlan::Filter(filter) => filtered(filter, depth),
        LogicalPlan::Projection(it) => below(&it.input),
        LogicalPlan::SubqueryAlias(it) => below(&it.input),
        LogicalPlan::Window(it) => below(&it.input),
        LogicalPlan::Repartition(it) => below(&it.input),
        LogicalPlan::Subquery(it) => below(&it.subquery),
        LogicalPlan::Sort(it) => {
            let limit = it.fetch.map_or(f64::INFINITY, |fetch| fetch as f64);
            Some(below(&it.input)?.map(|rows| rows.min(limit)))
        }
        LogicalPlan::Limit(it) => {
            let rows = below(&it.input)?;
            let limit = plan.max_rows().map_or(f64::INFINITY, |limit| limit as f64);
            Some(rows.map(|rows| rows.min(limit)))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => below(input),
        LogicalPlan::Aggregate(it) if it.group_expr.is_empty() => Some(Counts::same(1.0)),
        LogicalPlan::Aggregate(it) => {
            let rows = below(&it.input)?;
            let mut keys = it.group_expr.iter().map(|key| values_of(&it.input, rows.all, key, depth + 1));
            let groups: Option<f64> = keys.try_fold(1.0, |all, key| Some(all * key?));
            let most = groups.unwrap_or(f64::INFINITY);
            Some(rows.map(|rows| rows.min(most)))
        }
        LogicalPlan::Union(it) => {
            it.inputs.iter().map(|input| below(input)).try_fold(Counts::same(0.0), |sum, rows| {
                let rows = rows?;
                Some(Counts { all: sum.all + rows.all, left: sum.left + rows.left })
            })
        }
        LogicalPlan::EmptyRelation(it) => Some(Counts::same(f64::from(u8::from(it.produce_one_row)))),
        LogicalPlan::Values(it) => Some(Counts::same(it.values.len() as f64)),
        LogicalPlan::Join(join) => joined(join, depth),
        _ => None,
    }
}

/// A filter right above a scan has the scan's conditions, too.
fn filtered(filter: &Filter, depth: usize) -> Option<Counts> {
    let mut conditions = split_conjunction(&filter.predicate);
    if let LogicalPlan::TableScan(scan) = filter.input.as_ref() {
        let others = scan.filters.iter().flat_map(split_conjunction);
        let others: Vec<&Expr> = others.filter(|condition| !conditions.contains(condition)).collect();
        conditions.extend(others);
        return scanned(&filter.input, scan, &conditions);
    }
    let rows = counts(&filter.input, depth + 1)?;
    let share = share(&conditions, &Input { plan: &filter.input, rows: rows.all });
    Some(Counts { left: rows.left * share, ..rows })
}

fn scanned(plan: &LogicalPlan, scan: &TableScan, conditions: &[&Expr]) -> Option<Counts> {
    let rows = table_rows(scan)?;
    let limit = scan.fetch.map_or(f64::INFINITY, |fetch| fetch as f64);
    let share = share(conditions, &Input { plan, rows: rows.min(limit) });
    Some(Counts { all: rows, left: rows * share }.map(|rows| rows.min(limit)))
}

fn joined(join: &Join, depth: usize) -> Option<Counts> {
    let (left, right) = (counts(&join.left, depth + 1)?, counts(&join.right, depth + 1)?);
    let mut keys = 1.0;
    for (one, other) in &join.on {
        let one = values_of(&join.left, left.all, one, depth + 1)?;
        let other = values_of(&join.right, right.all, other, depth + 1)?;
        keys *= common_values([one, other].into_iter());
    }
    if join.on.len() > 1 {
        keys = keys.min(left.all.min(right.all));
    }
    let keys = keys.max(1.0);
    let share = if join.filter.is_some() { JOINED } else { 1.0 };
    Some(Counts {
        all: joined_in_all(join.join_type, left.all, right.all, keys),
        left: joined_rows(join.join_type, left.left, right.left, keys, share),
    })
}

/// Rows of a join without filters, its own and those of its sides.
fn joined_in_all(join_type: JoinType, left: f64, right: f64, keys: f64) -> f64 {
    match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left,
        JoinType::RightSemi | JoinType::RightAnti => right,
        _ => joined_rows(join_type, left, right, keys, 1.0),
    }
}

/// Rows of a join of which a condition beside its keys leaves this share.
fn joined_rows(join_type: JoinType, left: f64, right: f64, keys: f64, share: f64) -> f64 {
    let matched = left * right / keys * share;
    match join_type {
        JoinType::Inner => matched,
        JoinType::Left => matched.max(left),
        JoinType::Right => matched.max(right),
        JoinType::Full => matched.max(left).max(right),
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
        JoinType::LeftSemi => left.min(left * (right / keys).min(1.0) * share),
        JoinType::RightSemi => right.min(right * (left / keys).min(1.0) * share),
        JoinType::LeftAnti => left * JOINED,
        JoinType::RightAnti => right * JOINED,
    }
}

/// A plan whose rows are counted already.
pub(super) struct Input<'a> {
    pub plan: &'a LogicalPlan,
    /// Without its filters.
    pub rows: f64,
}

impl Input<'_> {
    /// How many different values an expression has at most, over all rows.
    pub fn values(&self, expr: &Expr) -> Option<f64> {
        values_of(self.plan, self.rows, expr, 0)
    }
}

/// How many different values an expression has at most, over the rows of a plan that would have `rows` without its filters.
fn values_of(plan: &LogicalPlan, rows: f64, expr: &Expr, depth: usize) -> Option<f64> {
    let rows = rows.max(1.0);
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
                if depth < DEPTH_MAX { values_of(plan, rows, &column, depth + 1) } else { None }
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
