//! Operators with MySQL's meaning, planned when the types of both sides are known.
//!
//! The SQL planner calls [`OperatorPlanner`] for each binary operator; [`CoercionRule`] does the same for IN and BETWEEN, which
//! the planner builds itself.

use crate::functions;
use crate::functions::conversion::choice;
use crate::functions::conversion::exprs::{cast, datetime, double};
use crate::functions::dates::zone;
use crate::functions::keeping;
use crate::functions::states::aggregates;
use crate::meaning::clocks;
use crate::meaning::coercion::{comparable, operand};
use crate::meaning::zeros::{self, one_zero};
use crate::types;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use crate::types::shown::type_text;
use arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, ExprSchema, Result, ScalarValue, TableReference, internal_err, plan_err,
};
use datafusion::logical_expr::expr::{AggregateFunction, Between, InList, InSubquery, Like};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, GetFieldAccess, LogicalPlan, LogicalPlanBuilder, Operator,
    WindowFunctionDefinition, binary_expr, lit,
};
use datafusion::optimizer::AnalyzerRule;
use sqlparser::ast::BinaryOperator as Sql;
use std::sync::Arc;
use tributary_types::DataType as Declared;

/// Plans MySQL's binary operators.
#[derive(Debug)]
pub struct OperatorPlanner;

impl ExprPlanner for OperatorPlanner {
    /// `s.f.g` of a column `s`.
    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let column = Expr::Column(Column::from((qualifier, field)));
        let value = nested_names.iter().fold(column, |value, name| keeping::field_of(value, name));
        Ok(PlannerResult::Planned(value))
    }

    /// `v['a']['b']` of a VARIANT or JSON, `a[1]` of an ARRAY and `m[k]` of a MAP: the functions that they stand for.
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let key = match &access.field_access {
            GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
            GetFieldAccess::ListIndex { key } => (**key).clone(),
            GetFieldAccess::ListRange { .. } => return Ok(PlannerResult::Original(access)),
        };
        if let Expr::ScalarFunction(call) = &access.expr
            && call.func.name() == functions::MEMBER
        {
            let mut args = call.args.clone();
            args.push(key);
            return Ok(PlannerResult::Planned(functions::named(functions::MEMBER).call(args)));
        }
        let declared =
            access.expr.to_field(schema).ok().and_then(|(_, field)| metadata::declared_type(&field));
        if !matches!(declared, Some(Declared::Variant | Declared::Json)) {
            return Ok(match access.expr.get_type(schema) {
                Ok(DataType::Map(..) | DataType::List(_)) => {
                    PlannerResult::Planned(functions::named("element_at").call(vec![access.expr, key]))
                }
                _ => PlannerResult::Original(access),
            });
        }
        if key.get_type(schema).is_ok_and(|data_type| data_type.is_numeric()) {
            return plan_err!(
                "a member of a VARIANT has a name; an element of an array in it is get_json_string(v, '$.a[0]')"
            );
        }
        Ok(PlannerResult::Planned(functions::named(functions::MEMBER).call(vec![access.expr, key])))
    }

    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let left_type = raw.left.get_type(schema);
        let right_type = raw.right.get_type(schema);
        // Types that are not known yet (a correlated column, for example) are left to DataFusion.
        let (Ok(left_type), Ok(right_type)) = (left_type, right_type) else {
            return Ok(match raw.op {
                Sql::StringConcat => PlannerResult::Planned(binary_expr(raw.left, Operator::Or, raw.right)),
                _ => PlannerResult::Original(raw),
            });
        };
        let RawBinaryExpr { op, left, right } = raw;
        let planned = match op {
            Sql::Eq | Sql::Spaceship | Sql::NotEq | Sql::Lt | Sql::LtEq | Sql::Gt | Sql::GtEq => {
                check_comparable(&op, &left_type, &right_type)?;
                let (left, right) = without_case(left, right, schema);
                let (left, right) = match op {
                    Sql::Lt | Sql::LtEq | Sql::Gt | Sql::GtEq => clocks::in_order(left, right, schema),
                    _ => clocks::alike(left, right, schema),
                };
                let (left_type, right_type) = (left.get_type(schema)?, right.get_type(schema)?);
                let (left, right) = comparable(left, right, (&left_type, &right_type));
                binary_expr(left, comparison(&op), right)
            }
            Sql::And => binary_expr(truth(left, &left_type), Operator::And, truth(right, &right_type)),
            Sql::Or | Sql::StringConcat => {
                binary_expr(truth(left, &left_type), Operator::Or, truth(right, &right_type))
            }
            Sql::Xor => binary_expr(truth(left, &left_type), Operator::NotEq, truth(right, &right_type)),
            Sql::Plus | Sql::Minus | Sql::Multiply | Sql::Divide | Sql::MyIntegerDivide | Sql::Modulo
                if left_type.is_nested() || right_type.is_nested() =>
            {
                return plan_err!("{}", undefined(&op, &left_type, &right_type));
            }
            Sql::Plus | Sql::Minus | Sql::Multiply => {
                let (left, right) = ((left, &left_type), (right, &right_type));
                calculate(left, arithmetic(&op), right, schema)
            }
            Sql::Divide => divide((left, &left_type), (right, &right_type)),
            Sql::MyIntegerDivide => whole_quotient((left, &left_type), (right, &right_type)),
            Sql::Modulo => {
                let ((left, _), (right, right_type)) =
                    (operand(left, &left_type), operand(right, &right_type));
                let right = null_if_zero(one_zero(right, &right_type), &right_type);
                binary_expr(left, Operator::Modulo, right)
            }
            Sql::BitwiseXor => functions::named("__bit_xor").call(vec![left, right]),
            Sql::BitwiseAnd if !are_integers(&left_type, &right_type) => {
                functions::named("bitand").call(vec![left, right])
            }
            Sql::BitwiseOr if !are_integers(&left_type, &right_type) => {
                functions::named("bitor").call(vec![left, right])
            }
            Sql::PGBitwiseShiftLeft => functions::named("bit_shift_left").call(vec![left, right]),
            Sql::PGBitwiseShiftRight => functions::named("bit_shift_right").call(vec![left, right]),
            _ => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        };
        Ok(PlannerResult::Planned(planned))
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(functions::named("substring").call(args)))
    }
}

/// Whether values of both types have bits of their own.
fn are_integers(left: &DataType, right: &DataType) -> bool {
    left.is_integer() && right.is_integer()
}

/// Whether an expression is a column whose texts are compared without case.
fn is_caseless(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(_) => expr.to_field(schema).is_ok_and(|(_, field)| metadata::is_caseless(&field)),
        Expr::ScalarFunction(call) if call.func.name() == "__text" => {
            call.args.iter().any(|arg| is_caseless(arg, schema))
        }
        _ => false,
    }
}

/// Both sides of a comparison, in lower case if one of them is compared without case.
fn without_case(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    match is_caseless(&left, schema) || is_caseless(&right, schema) {
        true => (lower(left, schema), lower(right, schema)),
        false => (left, right),
    }
}

/// A text in lower case; any other value as it is.
fn lower(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Utf8) => datafusion::functions::string::expr_fn::lower(expr),
        _ => expr,
    }
}

/// Refuses to compare an array, a map or a struct with a value of another kind.
fn check_comparable(op: &Sql, left: &DataType, right: &DataType) -> Result<()> {
    let is_null = |data_type: &DataType| *data_type == DataType::Null;
    let is_one = left.is_nested() != right.is_nested();
    if (is_one && !is_null(left) && !is_null(right))
        || (left.is_nested() && right.is_nested() && types::common([left, right]).is_none())
    {
        return plan_err!("{}", undefined(op, left, right));
    }
    Ok(())
}

fn undefined(op: &Sql, left: &DataType, right: &DataType) -> String {
    let shown = |data_type: &DataType| type_text(&Field::new("", data_type.clone(), true));
    format!("'{op}' is not defined for {} and {}", shown(left), shown(right))
}

const fn comparison(op: &Sql) -> Operator {
    match op {
        Sql::Spaceship => Operator::IsNotDistinctFrom,
        Sql::NotEq => Operator::NotEq,
        Sql::Lt => Operator::Lt,
        Sql::LtEq => Operator::LtEq,
        Sql::Gt => Operator::Gt,
        Sql::GtEq => Operator::GtEq,
        _ => Operator::Eq,
    }
}

const fn arithmetic(op: &Sql) -> Operator {
    match op {
        Sql::Minus => Operator::Minus,
        Sql::Multiply => Operator::Multiply,
        _ => Operator::Plus,
    }
}

fn truth(expr: Expr, data_type: &DataType) -> Expr {
    match data_type {
        DataType::Boolean => expr,
        DataType::Null => lit(ScalarValue::Boolean(None)),
        _ => functions::named("__truth").call(vec![expr]),
    }
}

fn null_if_zero(expr: Expr, data_type: &DataType) -> Expr {
    if let Expr::Literal(scalar, _) = &expr
        && ScalarValue::new_zero(data_type).is_ok_and(|zero| zero != *scalar)
    {
        return expr;
    }
    let zero = ScalarValue::new_zero(data_type).unwrap_or(ScalarValue::Int64(Some(0)));
    datafusion::functions::core::expr_fn::nullif(expr, lit(zero))
}

/// `+`, `-` or `*`. DataFusion's operators wrap around if a BIGINT overflows; ours end the query, so they are used unless the
/// types of the operands rule an overflow out.
fn calculate(
    left: (Expr, &DataType),
    op: Operator,
    right: (Expr, &DataType),
    schema: &dyn ExprSchema,
) -> Expr {
    let safe = range_of(op, bounds(&left.0, schema, 0), bounds(&right.0, schema, 0)).is_some();
    let is_decimal = |data_type| kind(data_type) == Kind::Decimal;
    let (left_is_decimal, right_is_decimal) = (is_decimal(left.1), is_decimal(right.1));
    let (left, left_type) = operand(left.0, left.1);
    let (right, right_type) = operand(right.0, right.1);
    if [&left_type, &right_type].contains(&&DataType::Float64) {
        return binary_expr(double(left, &left_type), op, double(right, &right_type));
    }
    if left_is_decimal || right_is_decimal {
        let (left, left_type) = if right_is_decimal { exact(left, left_type) } else { (left, left_type) };
        let (right, right_type) =
            if left_is_decimal { exact(right, right_type) } else { (right, right_type) };
        let fits = fits_decimal(op, &left_type, &right_type);
        let computed = binary_expr(left, op, right);
        return if fits { computed } else { functions::named("__fitting").call(vec![computed]) };
    }
    let name = match op {
        Operator::Plus => "__add",
        Operator::Minus => "__subtract",
        _ => "__multiply",
    };
    if safe || left_type != DataType::Int64 || right_type != DataType::Int64 {
        return binary_expr(left, op, right);
    }
    functions::named(name).call(vec![left, right])
}

/// A whole number next to a DECIMAL: as the DECIMAL of just its digits.
fn exact(expr: Expr, data_type: DataType) -> (Expr, DataType) {
    let Expr::Literal(ScalarValue::Int64(Some(value)), _) = expr else { return (expr, data_type) };
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as u8 + 1;
    (lit(ScalarValue::Decimal128(Some(i128::from(value)), digits, 0)), DataType::Decimal128(digits, 0))
}

/// Whether every result of an operator on numbers of these types has no more digits than a DECIMAL.
fn fits_decimal(op: Operator, left: &DataType, right: &DataType) -> bool {
    let ((left_whole, left_scale), (right_whole, right_scale)) = (types::digits(left), types::digits(right));
    let digits = match op {
        Operator::Multiply => left_whole + left_scale + right_whole + right_scale,
        _ => left_whole.max(right_whole) + left_scale.max(right_scale) + 1,
    };
    digits <= types::DIGITS_MAX
}

/// How deep [`bounds`] looks into an expression.
const BOUNDS_DEPTH_MAX: usize = 4;

/// The smallest and the largest value that a whole number can have.
type Bounds = (i64, i64);

fn bounds(expr: &Expr, schema: &dyn ExprSchema, depth: usize) -> Bounds {
    let of_type = |expr: &Expr| match expr.get_type(schema) {
        Ok(DataType::Boolean) => (0, 1),
        Ok(DataType::Int8) => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Ok(DataType::Int16) => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Ok(DataType::Int32) => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => (*value, *value),
        Expr::Cast(inner) if inner.field.data_type() == &DataType::Int64 => of_type(&inner.expr),
        Expr::BinaryExpr(inner) if depth < BOUNDS_DEPTH_MAX => {
            let sides = (bounds(&inner.left, schema, depth + 1), bounds(&inner.right, schema, depth + 1));
            range_of(inner.op, sides.0, sides.1).unwrap_or((i64::MIN, i64::MAX))
        }
        Expr::BinaryExpr(_) => (i64::MIN, i64::MAX),
        other => of_type(other),
    }
}

/// The bounds of a result; `None` if it can overflow, or for other operators.
fn range_of(op: Operator, left: Bounds, right: Bounds) -> Option<Bounds> {
    match op {
        Operator::Plus => Some((left.0.checked_add(right.0)?, left.1.checked_add(right.1)?)),
        Operator::Minus => Some((left.0.checked_sub(right.1)?, left.1.checked_sub(right.0)?)),
        Operator::Multiply => {
            let corners = [
                left.0.checked_mul(right.0)?,
                left.0.checked_mul(right.1)?,
                left.1.checked_mul(right.0)?,
                left.1.checked_mul(right.1)?,
            ];
            Some((*corners.iter().min()?, *corners.iter().max()?))
        }
        _ => None,
    }
}

/// `/`: whole numbers divide as doubles (1/2 is 0.5), a division by zero is NULL.
fn divide(left: (Expr, &DataType), right: (Expr, &DataType)) -> Expr {
    let ((left, left_type), (right, right_type)) = (operand(left.0, left.1), operand(right.0, right.1));
    let decimal = kind(&left_type) == Kind::Decimal || kind(&right_type) == Kind::Decimal;
    let float = kind(&left_type) == Kind::Float || kind(&right_type) == Kind::Float;
    if kind(&left_type) == Kind::Null || kind(&right_type) == Kind::Null {
        return binary_expr(left, Operator::Divide, right);
    }
    // As whole numbers, which LARGEINT is.
    let whole = |data_type: &DataType| [DataType::Int64, LARGEINT].contains(data_type);
    if decimal && !float && !(whole(&left_type) && whole(&right_type)) {
        let exact = |expr, data_type: &DataType| match data_type {
            DataType::Int64 => cast(expr, WHOLE),
            _ => expr,
        };
        return functions::named("__divide").call(vec![exact(left, &left_type), exact(right, &right_type)]);
    }
    let right = null_if_zero(one_zero(double(right, &right_type), &DataType::Float64), &DataType::Float64);
    binary_expr(double(left, &left_type), Operator::Divide, right)
}

const LARGEINT: DataType = DataType::Decimal128(38, 0);

/// BIGINT as a DECIMAL.
const WHOLE: DataType = DataType::Decimal128(19, 0);

/// `DIV`: the quotient without its fraction.
fn whole_quotient(left: (Expr, &DataType), right: (Expr, &DataType)) -> Expr {
    let ((left, left_type), (right, right_type)) = (operand(left.0, left.1), operand(right.0, right.1));
    let both = |wanted: &[Kind]| wanted.contains(&kind(&left_type)) && wanted.contains(&kind(&right_type));
    if both(&[Kind::Integer]) {
        return binary_expr(left, Operator::Divide, null_if_zero(right, &right_type));
    }
    if both(&[Kind::Integer, Kind::Decimal]) {
        let exact = |expr, data_type: &DataType| match data_type {
            DataType::Int64 => cast(expr, WHOLE),
            _ => expr,
        };
        return functions::named("__quotient").call(vec![exact(left, &left_type), exact(right, &right_type)]);
    }
    functions::named("__integer").call(vec![divide((left, &left_type), (right, &right_type))])
}

/// Gives IN and BETWEEN the conversions of `=` and `<=`, and plans the choices of [`choice`].
#[derive(Debug)]
pub struct CoercionRule;

impl AnalyzerRule for CoercionRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        zone::within(zone::of(config), || {
            plan.transform_up_with_subqueries(coerce_plan).map(|done| done.data)
        })
    }

    fn name(&self) -> &str {
        "mysql_coercion"
    }
}

fn coerce_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let coerced = |expr: Expr| {
        let name = names.save(&expr);
        let done = expr.transform_up(|expr| coerce_expr(expr, &schema))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    };
    let done = plan.map_expressions(|expr| match expr {
        // Its parts are columns above, not the set.
        Expr::GroupingSet(_) => expr.map_children(coerced),
        expr => coerced(expr),
    })?;
    done.transform_data(joined_alike)?.transform_data(|plan| match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = sort.input.schema().as_ref();
            let are_clocks = clocks::order(sort.expr.iter_mut().map(|key| &mut key.expr), schema);
            let changed = zeros::order(&mut sort.expr, schema) || are_clocks;
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// The pairs of columns that a join compares, converted as `=` would.
fn joined_alike(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
        let (Ok(left_type), Ok(right_type)) = types else { continue };
        if left_type != right_type {
            let pair = comparable(left.clone(), right.clone(), (&left_type, &right_type));
            changed |= pair.0 != *left || pair.1 != *right;
            (*left, *right) = pair;
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}

/// An aggregate: counts of elements are of an array, the least TIME is no text, and values that are equal are one.
fn coerce_aggregate(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let params = &mut call.params;
    if let Some(count) = count_of_elements(call.func.name(), params.distinct, &params.args, schema) {
        (call.func, params.distinct) = (count, false);
        return Transformed::yes(Expr::AggregateFunction(call));
    }
    if let Some((best, args)) = clocks::best(call.func.name(), &params.args, schema) {
        // The least of different values is the least of all.
        (call.func, params.args, params.distinct) = (best, args, false);
        return Transformed::yes(Expr::AggregateFunction(call));
    }
    let mut changed = clocks::order(params.order_by.iter_mut().map(|key| &mut key.expr), schema);
    changed |= zeros::order(&mut call.params.order_by, schema);
    if call.params.distinct {
        changed |= zeros::unify(&mut call.params.args, schema);
    }
    Transformed::new_transformed(Expr::AggregateFunction(call), changed)
}

/// One expression; expressions of unknown type are unchanged. Nothing is duplicated: nested copies would grow exponentially.
pub fn coerce_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Between(Between { expr, negated, low, high }) => {
            let (expr, bounds, are_clocks) = clocks::bounded(*expr, vec![*low, *high], schema);
            let (expr, bounds, changed) = alike(expr, bounds, schema);
            let changed = changed || are_clocks;
            let mut bounds = bounds.into_iter();
            let (Some(low), Some(high)) = (bounds.next(), bounds.next()) else {
                return internal_err!("BETWEEN without two bounds");
            };
            let between = Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) };
            Ok(Transformed::new_transformed(Expr::Between(between), changed))
        }
        Expr::InList(list) => Ok(coerce_list(list, schema)),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let rows = Arc::clone(&subquery.subquery);
            let (Ok(of), [field]) = (expr.get_type(schema), rows.schema().fields().as_ref()) else {
                return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })));
            };
            let column = Expr::Column(rows.schema().columns().remove(0));
            let (expr, converted) = comparable(*expr, column.clone(), (&of, field.data_type()));
            let changed = converted != column;
            let subquery = if changed {
                let one = vec![converted.alias(field.name())];
                let plan = LogicalPlanBuilder::from(Arc::clone(&rows)).project(one)?.build()?;
                subquery.with_plan(Arc::new(plan))
            } else {
                subquery
            };
            let within = InSubquery { expr: Box::new(expr), subquery, negated };
            Ok(Transformed::new_transformed(Expr::InSubquery(within), true))
        }
        Expr::AggregateFunction(call) => Ok(coerce_aggregate(call, schema)),
        Expr::WindowFunction(mut call) => {
            let params = &mut call.params;
            let count = count_of_elements(call.fun.name(), params.distinct, &params.args, schema);
            if let Some(count) = count {
                call.fun = WindowFunctionDefinition::AggregateUDF(count);
                params.distinct = false;
            }
            let are_clocks = clocks::order(params.order_by.iter_mut().map(|key| &mut key.expr), schema);
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let changed = are_clocks | zeros::unify(params.partition_by.iter_mut().chain(keys), schema);
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
        }
        // Values that are compared as one.
        Expr::ScalarFunction(mut call) if call.func.name() == "__tuple" => {
            let changed = zeros::unify(&mut call.args, schema);
            Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
        }
        // The text of a TIME would be read as a date.
        Expr::ScalarFunction(call)
            if call.func.name() == "__clock_part" && clocks::is_column(&call.args[0], schema) =>
        {
            Ok(Transformed::yes(functions::named("__time_part").call(call.args)))
        }
        Expr::ScalarFunction(call) if call.func.name() == "get_field" => {
            let member = match call.args.as_slice() {
                [of, Expr::Literal(name, _)] => {
                    let (_, of) = of.to_field(schema)?;
                    name.try_as_str().flatten().map(|name| keeping::member(&of, name, call.args.clone()))
                }
                _ => None,
            };
            Ok(member.map_or_else(|| Transformed::no(Expr::ScalarFunction(call)), Transformed::yes))
        }
        Expr::Like(like) if !like.case_insensitive && is_caseless(&like.expr, schema) => {
            Ok(Transformed::yes(Expr::Like(Like { case_insensitive: true, ..like })))
        }
        Expr::ScalarFunction(call) => {
            let alike = |operand, values: Vec<Expr>| {
                let (operand, values) = match is_caseless(&operand, schema) {
                    true => {
                        let values = values.into_iter().map(|value| lower(value, schema));
                        (lower(operand, schema), values.collect())
                    }
                    false => (operand, values),
                };
                let (values, _) = texts_among_texts(&operand, values, schema);
                let (operand, values, _) = clocks::all_alike(operand, values, schema);
                let (operand, values, _) = alike(operand, values, schema);
                let (operand, values, _) = zeros::looked_up(operand, values, schema);
                (operand, values)
            };
            let field_of = |expr: &Expr| expr.to_field(schema).map(|(_, field)| field);
            let planned = choice::plan(&call, field_of, alike)?;
            Ok(planned.map_or_else(|| Transformed::no(Expr::ScalarFunction(call)), Transformed::yes))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn coerce_list(InList { expr, list, negated }: InList, schema: &DFSchema) -> Transformed<Expr> {
    let (list, mut became_texts) = texts_among_texts(&expr, list, schema);
    let (mut expr, mut list) = (*expr, list);
    if is_caseless(&expr, schema) {
        expr = lower(expr, schema);
        list = list.into_iter().map(|item| lower(item, schema)).collect();
        became_texts = true;
    }
    let (expr, list, are_clocks) = clocks::all_alike(expr, list, schema);
    let (expr, list, changed) = alike(expr, list, schema);
    let (expr, list, has_zeros) = zeros::looked_up(expr, list, schema);
    Transformed::new_transformed(
        Expr::InList(InList { expr: Box::new(expr), list, negated }),
        became_texts || are_clocks || changed || has_zeros,
    )
}

/// The aggregate that COUNT(DISTINCT …) means for a BITMAP or an HLL: how many elements its values have together.
fn count_of_elements(
    name: &str,
    distinct: bool,
    args: &[Expr],
    schema: &DFSchema,
) -> Option<Arc<AggregateUDF>> {
    let ("count", true, [value]) = (name, distinct, args) else { return None };
    let (_, field) = value.to_field(schema).ok()?;
    match metadata::declared_type(&field)? {
        Declared::Bitmap => aggregates::get("bitmap_union_count"),
        Declared::Hll => aggregates::get("hll_union_agg"),
        _ => None,
    }
}

/// `t IN (1, 'abc')` of a text is a comparison of texts, as in Doris: as a number, 'abc' would have no value, and equal nothing.
/// Other values in such a list become texts.
fn texts_among_texts(expr: &Expr, list: Vec<Expr>, schema: &DFSchema) -> (Vec<Expr>, bool) {
    let kind_of = |expr: &Expr| expr.get_type(schema).ok().map(|data_type| kind(&data_type));
    let kinds: Option<Vec<Kind>> = list.iter().map(kind_of).collect();
    let Some(kinds) = kinds else { return (list, false) };
    let is_other = |kind: &Kind| !matches!(kind, Kind::Text | Kind::Null);
    if kind_of(expr) != Some(Kind::Text) || !kinds.contains(&Kind::Text) || !kinds.iter().any(is_other) {
        return (list, false);
    }
    let text = |(item, kind)| {
        if is_other(&kind) { functions::named("__text").call(vec![item]) } else { item }
    };
    (list.into_iter().zip(kinds).map(text).collect(), true)
}

/// A value and those it is compared with, all of one kind. Constants are converted to the value's
/// kind if that is possible, because a filter on the bare column can prune files; else all become
/// dates, or numbers.
fn alike(expr: Expr, others: Vec<Expr>, schema: &DFSchema) -> (Expr, Vec<Expr>, bool) {
    let types: Result<Vec<DataType>> = others.iter().map(|other| other.get_type(schema)).collect();
    let (Ok(of), Ok(types)) = (expr.get_type(schema), types) else { return (expr, others, false) };
    match types::comparison(std::iter::once(&of).chain(&types)) {
        Some(DataType::Float64) => {
            let others = others.into_iter().zip(&types).map(|(other, data_type)| double(other, data_type));
            return (double(expr, &of), others.collect(), true);
        }
        Some(wide @ DataType::Decimal256(..)) => {
            let others = others.into_iter().map(|other| cast(other, wide.clone()));
            return (cast(expr, wide.clone()), others.collect(), true);
        }
        _ => {}
    }
    let fits = |other: &DataType| kind(other) == kind(&of) || kind(other) == Kind::Null;
    if types.iter().all(fits) {
        return (expr, others, false);
    }
    let converted: Vec<(Expr, Expr)> = others
        .iter()
        .zip(&types)
        .map(|(other, data_type)| comparable(expr.clone(), other.clone(), (&of, data_type)))
        .collect();
    if converted.iter().all(|(left, _)| *left == expr) {
        return (expr, converted.into_iter().map(|(_, right)| right).collect(), true);
    }
    let is_date = |data_type: &DataType| matches!(kind(data_type), Kind::Date | Kind::DateTime);
    let has_dates = is_date(&of) || types.iter().any(is_date);
    let convert = |expr: Expr, data_type: &DataType| match has_dates {
        true => datetime(expr, data_type),
        false if kind(&of) == Kind::Boolean && kind(data_type) == Kind::Text => {
            functions::named("__flag").call(vec![expr])
        }
        false => functions::named("__double").call(vec![expr]),
    };
    let others = others.into_iter().zip(&types).map(|(other, data_type)| convert(other, data_type));
    (convert(expr, &of), others.collect(), true)
}
