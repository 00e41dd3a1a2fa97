//! UNION, INTERSECT, EXCEPT and VALUES with the common type of all their branches.
//!
//! DataFusion gives a set operation the types of its first branch while it plans, and nodes planned above rely on them. So the
//! rewrite of a query turns each set operation into `SELECT * FROM (…)`, and the planner of relations here plans the part in
//! brackets: the branches first, then their common types, then the operation over converted branches.
//!
//! A recursive CTE has the types of its first branch by nature. Where its second branch
//! gives wider ones the whole statement is planned again with the first branch converted to
//! those: [`SetOperations::widened`] says so.

use crate::error::external;
use crate::functions;
use crate::functions::conversion::cast::Target;
use crate::functions::conversion::exprs::widened;
use crate::planning::check;
use crate::types;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union};
use parking_lot::Mutex;
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor, Values};
use std::collections::HashMap;
use std::sync::Arc;

/// The rewrite's names for the two branches of a recursive CTE, before the CTE's number.
pub const ANCHOR: &str = "__anchor ";
pub const RECURSION: &str = "__recursion ";

/// How often the types of a recursive CTE may be widened.
const WIDENINGS_MAX: u32 = 4;

/// Plans the set operations of one statement; see the module.
#[derive(Debug, Default)]
pub struct SetOperations {
    recursions: Mutex<HashMap<String, Recursion>>,
}

#[derive(Debug, Default)]
struct Recursion {
    /// The types of the first branch as they are planned.
    types: Vec<DataType>,
    /// The types that the branches need, where they are not the first branch's own.
    wanted: Option<Vec<DataType>>,
    widenings: u32,
    is_stale: bool,
}

impl SetOperations {
    /// Whether a recursive CTE needs wider types than it was planned with, which explains the error of planning; called once
    /// after each planning.
    pub fn widened(&self) -> bool {
        let mut recursions = self.recursions.lock();
        let stale = recursions.values().any(|recursion| recursion.is_stale);
        recursions.values_mut().for_each(|recursion| recursion.is_stale = false);
        stale
    }

    /// The first branch of a recursive CTE, in the types that both need.
    fn anchor(&self, number: &str, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut recursions = self.recursions.lock();
        let recursion = recursions.entry(number.to_owned()).or_default();
        let plan = match &recursion.wanted {
            Some(types) => converted(plan, types)?,
            None => plan,
        };
        recursion.types = types_of(&plan);
        plain(plan)
    }

    /// The second branch, in the types of the first if those hold its values.
    fn recursion(&self, number: &str, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut recursions = self.recursions.lock();
        let recursion = recursions.entry(number.to_owned()).or_default();
        let given = types_of(&plan);
        if given.len() != recursion.types.len() {
            return plan_err!(
                "the branches of a recursive CTE have {} and {} columns",
                recursion.types.len(),
                given.len()
            );
        }
        let mut wanted = Vec::with_capacity(given.len());
        for (anchor, given) in recursion.types.iter().zip(&given) {
            wanted.push(settled(anchor, given)?);
        }
        if wanted == recursion.types {
            return plain(converted(plan, &wanted)?);
        }
        recursion.widenings += 1;
        recursion.is_stale = recursion.widenings <= WIDENINGS_MAX;
        recursion.wanted = Some(wanted);
        plan_err!("each round of a recursive CTE gives wider types; CAST its columns in both branches")
    }
}

/// The type of a recursive CTE's column. Decimals retain the scale of the first branch, as in MySQL; otherwise each round would
/// add digits.
fn settled(anchor: &DataType, given: &DataType) -> Result<DataType> {
    if anchor == given {
        return Ok(anchor.clone());
    }
    let Some(common) = types::common([anchor, given]) else {
        return plan_err!("the branches of a recursive CTE give {anchor} and {given}; use CAST");
    };
    let (DataType::Decimal128(_, scale), Kind::Decimal) = (&common, kind(&common)) else { return Ok(common) };
    let scale = if let DataType::Decimal128(_, scale) = anchor { *scale } else { *scale };
    Ok(DataType::Decimal128(38, scale))
}

impl RelationPlanner for SetOperations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        // The planner comes here for everything that is named in FROM, and for each branch; it takes seconds for one SELECT of
        // thousands of columns, which it compares with each other.
        check().map_err(external)?;
        let TableFactor::Derived { lateral: false, mut subquery, alias, sample } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if let Some((part, number)) = alias.as_ref().and_then(recursive_part) {
            let plan = context.plan(derived(subquery))?;
            let plan = match part {
                ANCHOR => self.anchor(&number, plan)?,
                _ => self.recursion(&number, plan)?,
            };
            return Ok(planned(plan, None));
        }
        let is_bare =
            subquery.with.is_none() && subquery.order_by.is_none() && subquery.limit_clause.is_none();
        match subquery.body.as_mut() {
            body @ SetExpr::SetOperation { .. } if is_bare => {
                let body = std::mem::replace(body, SetExpr::Values(no_rows()));
                Ok(planned(set_operation(body, context)?, alias))
            }
            SetExpr::Values(values) if is_bare => {
                let values = std::mem::replace(values, no_rows());
                Ok(planned(values_list(values, context)?, alias))
            }
            _ => Ok(RelationPlanning::Original(Box::new(TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                sample,
            }))),
        }
    }
}

fn planned(plan: LogicalPlan, alias: Option<TableAlias>) -> RelationPlanning {
    RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias)))
}

/// VALUES without a row.
pub fn no_rows() -> Values {
    Values { explicit_row: false, value_keyword: false, rows: Vec::new() }
}

/// `(query)` without a name.
pub fn derived(subquery: Box<Query>) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery, alias: None, sample: None }
}

/// A query that is nothing but `body`.
pub fn query_of(body: SetExpr) -> Box<Query> {
    Box::new(Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    })
}

/// The branch of a recursive CTE that a derived table of that name stands for.
fn recursive_part(alias: &TableAlias) -> Option<(&'static str, String)> {
    let name = &alias.name.value;
    let part = [ANCHOR, RECURSION].into_iter().find(|part| name.starts_with(part))?;
    Some((part, name[part.len()..].to_owned()))
}

fn branch(body: SetExpr, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    match body {
        SetExpr::Query(query) => context.plan(derived(query)),
        body => context.plan(derived(query_of(body))),
    }
}

fn set_operation(body: SetExpr, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
        return branch(body, context);
    };
    let all = match set_quantifier {
        SetQuantifier::All => true,
        SetQuantifier::Distinct | SetQuantifier::None => false,
        other => return plan_err!("{op} {other} is not supported; write the columns in one order"),
    };
    match op {
        SetOperator::Union if all => {
            let mut branches = Vec::new();
            union_branches(*left, context, &mut branches)?;
            union_branches(*right, context, &mut branches)?;
            union(alike(branches, op)?)
        }
        SetOperator::Union => {
            let branches = vec![branch(*left, context)?, branch(*right, context)?];
            let all = union(alike(branches, op)?)?;
            Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(all))))
        }
        _ if all => plan_err!("INTERSECT and EXCEPT do not support ALL qualifier"),
        _ => {
            let branches = vec![branch(*left, context)?, branch(*right, context)?];
            let mut branches = alike(branches, op)?.into_iter().map(typed);
            let (Some(left), Some(right)) = (branches.next(), branches.next()) else {
                return plan_err!("{op} needs two branches");
            };
            match op {
                SetOperator::Intersect => LogicalPlanBuilder::intersect(left?, right?, false),
                _ => LogicalPlanBuilder::except(left?, right?, false),
            }
        }
    }
}

/// The branches of a chain of UNION ALL, left to right.
fn union_branches(
    body: SetExpr,
    context: &mut dyn RelationPlannerContext,
    into: &mut Vec<LogicalPlan>,
) -> Result<()> {
    match body {
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: SetQuantifier::All, left, right } => {
            union_branches(*left, context, into)?;
            union_branches(*right, context, into)
        }
        body => {
            into.push(branch(body, context)?);
            Ok(())
        }
    }
}

fn union(branches: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    let branches = branches.into_iter().map(Arc::new).collect();
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(branches)?))
}

fn types_of(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

/// The branches with their columns in the common types.
fn alike(branches: Vec<LogicalPlan>, op: SetOperator) -> Result<Vec<LogicalPlan>> {
    let types: Vec<Vec<DataType>> = branches.iter().map(types_of).collect();
    let width = types.first().map_or(0, Vec::len);
    if let Some(other) = types.iter().find(|other| other.len() != width) {
        return plan_err!(
            "The used SELECT statements have a different number of columns: {width} and {} in {op}",
            other.len()
        );
    }
    let mut common = Vec::with_capacity(width);
    for column in 0..width {
        let given: Vec<&DataType> = types.iter().map(|branch| &branch[column]).collect();
        match types::common(given.iter().copied()) {
            Some(data_type) => common.push(data_type),
            None => {
                let given: Vec<String> = given.iter().map(ToString::to_string).collect();
                return plan_err!(
                    "no type holds column {} of {op} in all branches, which give {}; use CAST",
                    column + 1,
                    given.join(", ")
                );
            }
        }
    }
    let digits: Vec<Digits> = (0..width).map(|column| digits_of(&branches, column)).collect();
    branches
        .into_iter()
        .map(|branch| converted(branch, &common).and_then(|branch| with_digits(branch, &digits)))
        .collect()
}

/// How many digits of a second the DATETIMEs of a column are to have.
#[derive(Clone, Copy, PartialEq)]
enum Digits {
    /// The common number: all branches have the same.
    AsTheyAre,
    /// The largest number among the branches.
    Most(u8),
    /// The number of a branch is unknown.
    Unknown,
}

fn digits_of(branches: &[LogicalPlan], column: usize) -> Digits {
    let of = |branch: &LogicalPlan| match branch.schema().field(column) {
        field if kind(field.data_type()) == Kind::DateTime => metadata::digits(field),
        _ => Some(0),
    };
    let digits: Vec<Option<u8>> = branches.iter().map(of).collect();
    match digits.iter().copied().collect::<Option<Vec<u8>>>() {
        _ if digits.iter().all(|of_one| *of_one == digits[0]) => Digits::AsTheyAre,
        Some(known) => known.into_iter().max().map_or(Digits::Unknown, Digits::Most),
        None => Digits::Unknown,
    }
}

/// The plan with that many digits of a second in its DATETIMEs.
fn with_digits(plan: LogicalPlan, digits: &[Digits]) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let of = |field: &DataType, digits: Digits| match kind(field) {
        Kind::DateTime => digits,
        _ => Digits::AsTheyAre,
    };
    let mut fields = schema.fields().iter().zip(digits);
    if fields.all(|(field, digits)| of(field.data_type(), *digits) == Digits::AsTheyAre) {
        return Ok(plan);
    }
    let columns = schema.iter().zip(digits).map(|((qualifier, field), digits)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let shown = match of(field.data_type(), *digits) {
            Digits::AsTheyAre => return column,
            Digits::Most(digits) => Target::DateTime { digits }.call(column),
            Digits::Unknown => functions::named("__plain").call(vec![column]),
        };
        shown.alias_qualified(qualifier.cloned(), field.name())
    });
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The plan with its columns in those types, under the names they have.
fn converted(plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    if schema.fields().iter().zip(types).all(|(field, data_type)| field.data_type() == data_type) {
        return Ok(plan);
    }
    let columns = schema.iter().zip(types).map(|((qualifier, field), data_type)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if field.data_type() == data_type {
            return column;
        }
        widened(column, field.data_type(), data_type).alias_qualified(qualifier.cloned(), field.name())
    });
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The plan without the metadata of its columns' origin, which has to be equal in both branches of a recursive CTE.
fn plain(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    if schema.fields().iter().all(|field| field.metadata().is_empty()) {
        return Ok(plan);
    }
    let columns = schema.iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let plain = functions::named("__plain").call(vec![column]);
        plain.alias_qualified(qualifier.cloned(), field.name())
    });
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Columns of nothing but NULLs as texts: they cannot be compared without a type.
fn typed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let types: Vec<DataType> = types_of(&plan)
        .into_iter()
        .map(|data_type| if data_type == DataType::Null { DataType::Utf8 } else { data_type })
        .collect();
    converted(plan, &types)
}

/// `VALUES ROW(…), ROW(…)`, with MySQL's names `column_0`, `column_1` and so on.
fn values_list(values: Values, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let nothing = DFSchema::empty();
    let mut rows = Vec::with_capacity(values.rows.len());
    let mut types: Vec<DataType> = Vec::new();
    for row in values.rows {
        let row = row.content.into_iter().map(|value| context.sql_to_expr(value, &nothing));
        let row = row.collect::<Result<Vec<Expr>>>()?;
        let given = row.iter().map(|value| value.get_type(&nothing)).collect::<Result<Vec<_>>>()?;
        if types.is_empty() {
            types.clone_from(&given);
        }
        if given.len() != types.len() {
            return plan_err!("the rows of VALUES have {} and {} values", types.len(), given.len());
        }
        for (so_far, given) in types.iter_mut().zip(&given) {
            let Some(common) = types::common([&*so_far, given]) else {
                return plan_err!("no type holds {so_far} and {given} in a column of VALUES; use CAST");
            };
            *so_far = common;
        }
        rows.push((row, given));
    }
    let rows = rows.into_iter().map(|(row, given)| {
        let cells = row.into_iter().zip(&given).zip(&types);
        cells.map(|((value, given), to)| widened(value, given, to)).collect::<Vec<Expr>>()
    });
    let rows: Vec<Vec<Expr>> = rows.collect();
    let mut says_more = false;
    for value in rows.iter().flatten() {
        says_more |= !value.metadata(&nothing)?.is_empty();
    }
    let plan = if says_more {
        // The planner requires equal metadata, such as a DATETIME's digits, in all rows.
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().enumerate();
            let named = cells.map(|(index, value)| value.alias(format!("column_{index}")));
            LogicalPlanBuilder::empty(true).project(named)?.build()
        });
        let mut rows = rows.collect::<Result<Vec<_>>>()?;
        return if rows.len() == 1 { Ok(rows.remove(0)) } else { union(rows) };
    } else {
        LogicalPlanBuilder::values(rows)?.build()?
    };
    let names = plan.schema().columns().into_iter().enumerate();
    let renamed: Vec<Expr> =
        names.map(|(index, column)| Expr::Column(column).alias(format!("column_{index}"))).collect();
    LogicalPlanBuilder::from(plan).project(renamed)?.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_column_widens_once_and_keeps_the_digits_after_the_point() {
        let decimal = |precision, scale| DataType::Decimal128(precision, scale);
        for (anchor, given, expected) in [
            (DataType::Int8, DataType::Int64, DataType::Int64),
            (DataType::Int64, decimal(22, 1), decimal(38, 1)),
            (decimal(2, 1), decimal(3, 1), decimal(38, 1)),
            (decimal(38, 1), decimal(38, 2), decimal(38, 1)),
            (DataType::Null, DataType::Int64, DataType::Int64),
            (DataType::Date32, crate::types::kind::DATETIME, crate::types::kind::DATETIME),
            (DataType::Int64, DataType::Utf8, DataType::Utf8),
        ] {
            assert_eq!(settled(&anchor, &given).unwrap(), expected, "{anchor} and {given}");
        }
    }
}
