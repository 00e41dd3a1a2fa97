//! The rewrite of one expression whose parts are rewritten already.

use super::{Rewriter, ast, casts, dates, row_values, subscripts};
use crate::functions;
use datafusion::common::ScalarValue;
use sqlparser::ast::{
    BinaryOperator, CastKind, CeilFloorKind, Expr, Ident, LambdaFunction, OneOrManyWithParens,
    TrimWhereField, UnaryOperator, Value, ValueWithSpan,
};
use tributary_types::{ErrorCode, SqlError};

/// Chains of AND or OR that are longer than this are made into a balanced tree.
const CHAIN_MAX: usize = 16;
/// The most digits of a number that is written without an exponent.
const DIGITS_MAX: usize = 38;
/// One more than the largest BIGINT, as [`number`] writes it: with a minus it is the smallest one.
const AFTER_BIGINT: &str = "9223372036854775808.";

impl Rewriter<'_> {
    pub(super) fn expression(&self, expr: Expr) -> Result<Expr, SqlError> {
        Ok(match expr {
            Expr::Identifier(name) if name.value.starts_with('@') => self.variable(&name.value)?,
            Expr::Identifier(name) => match bits_of_name(&name) {
                Some(bits) => self::bits(bits)?,
                None => Expr::Identifier(lower(name)),
            },
            Expr::CompoundIdentifier(parts) => self.compound(parts)?,
            Expr::Value(value) => self.value(value)?,
            Expr::Function(function) => {
                let is_cut = self.cuts(&function);
                let value = self.function(function)?;
                match is_cut {
                    Some(bytes) => ast::call("__first_bytes", vec![value, ast::number(bytes)]),
                    None => value,
                }
            }
            Expr::Cast { kind, expr, data_type, .. } => {
                let lenient =
                    self.environment.lenient_casts || matches!(kind, CastKind::TryCast | CastKind::SafeCast);
                casts::cast(*expr, &data_type, lenient)?
            }
            Expr::Convert { is_try, expr, data_type: Some(data_type), .. } => {
                casts::cast(*expr, &data_type, self.environment.lenient_casts || is_try)?
            }
            Expr::Convert { expr, .. } => ast::call("__text", vec![*expr]),
            Expr::TypedString(typed) => casts::typed_text(Expr::Value(typed.value), &typed.data_type)?,
            Expr::Prefixed { value, .. } => *value,
            Expr::Collate { expr, .. } => *expr,
            Expr::BinaryOp { left, op, right } => binary(*left, op, *right)?,
            Expr::UnaryOp { op, expr } => unary(op, *expr),
            Expr::Extract { field, expr, .. } => dates::part(&field.to_string(), *expr)?,
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                let (pattern, escape_char) = escaped(as_text(*pattern), escape_char.map(single_quoted));
                let (expr, pattern) = (Box::new(as_text(*expr)), Box::new(pattern));
                Expr::Like { negated, any, expr, pattern, escape_char }
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                let found = ast::call("regexp_like", vec![as_text(*expr), as_text(*pattern)]);
                if negated { not(found) } else { found }
            }
            Expr::InList { expr, list, negated } if row_values::of(&expr).is_some() => {
                row_values::in_list(row_values::of(&expr).unwrap_or_default(), &list, negated)?
            }
            Expr::InSubquery { expr, subquery, negated } if row_values::of(&expr).is_some() => {
                row_values::in_subquery(row_values::of(&expr).unwrap_or_default(), &subquery, negated)?
            }
            Expr::IsTrue(expr) => Expr::IsTrue(Box::new(ast::truth(*expr))),
            Expr::IsNotTrue(expr) => Expr::IsNotTrue(Box::new(ast::truth(*expr))),
            Expr::IsFalse(expr) => Expr::IsFalse(Box::new(ast::truth(*expr))),
            Expr::IsNotFalse(expr) => Expr::IsNotFalse(Box::new(ast::truth(*expr))),
            Expr::IsUnknown(expr) => Expr::IsNull(expr),
            Expr::IsNotUnknown(expr) => Expr::IsNotNull(expr),
            Expr::Case { operand, conditions, else_result, .. } => {
                let name = if operand.is_some() { "__case_of" } else { "__case" };
                let is_condition = operand.is_none();
                let mut args: Vec<Expr> = operand.into_iter().map(|operand| *operand).collect();
                for when in conditions {
                    let condition = if is_condition { ast::truth(when.condition) } else { when.condition };
                    args.extend([condition, when.result]);
                }
                args.extend(else_result.map(|otherwise| *otherwise));
                ast::call(name, args)
            }
            Expr::Position { expr, r#in } => ast::call("locate", vec![*expr, *r#in]),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![*expr, substring_from.map_or_else(|| ast::number(1), |from| *from)];
                args.extend(substring_for.map(|length| *length));
                ast::call("substring", args)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "trim",
                };
                let mut args = vec![*expr];
                args.extend(trim_what.map(|what| *what));
                args.extend(trim_characters.into_iter().flatten());
                ast::call(name, args)
            }
            Expr::CompoundFieldAccess { root, access_chain } => subscripts::written_out(*root, access_chain)?,
            Expr::Array(array) if !array.elem.is_empty() => ast::call("array", array.elem),
            Expr::Lambda(lambda) => self::lambda(lambda),
            Expr::Ceil { expr, field } => round_to("ceil", *expr, &field),
            Expr::Floor { expr, field } => round_to("floor", *expr, &field),
            Expr::MatchAgainst { .. } => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "MATCH … AGAINST is not supported; use LIKE or REGEXP",
                ));
            }
            other => other,
        })
    }

    fn compound(&self, mut parts: Vec<Ident>) -> Result<Expr, SqlError> {
        if parts[0].value.starts_with("@@") {
            let name: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            return self.variable(&name.join("."));
        }
        if parts.len() == 4 && parts[0].value.eq_ignore_ascii_case("internal") {
            parts.remove(0);
        }
        if let Some(last) = parts.pop() {
            parts.push(lower(last));
        }
        Ok(Expr::CompoundIdentifier(parts))
    }

    /// `@@name`, `@@session.name`, `@@global.name` or `@name` as a literal.
    fn variable(&self, written: &str) -> Result<Expr, SqlError> {
        let session = self.environment.session;
        let Some(system) = written.strip_prefix("@@") else {
            let name = written.trim_start_matches('@').to_lowercase();
            return Ok(session
                .user_variables
                .get(&name)
                .map_or_else(ast::null, |value| variable_value(value)));
        };
        let lower = system.to_lowercase();
        let (scope, name) = lower.split_once('.').unwrap_or(("session", &lower));
        let own = || session.variables.get(name).cloned();
        let value = match scope {
            "global" => (self.environment.global)(name).or_else(own),
            _ => own().or_else(|| (self.environment.global)(name)),
        };
        match value {
            Some(value) => Ok(system_value(&value)),
            None => {
                Err(SqlError::new(ErrorCode::UnknownVariable, format!("Unknown system variable '{name}'")))
            }
        }
    }

    /// The bytes at which `group_concat_max_len` cuts a text, if it is smaller than by default.
    fn cuts(&self, function: &sqlparser::ast::Function) -> Option<i64> {
        let name = function.name.0.last().and_then(|part| part.as_ident())?;
        let is_concat = name.value.eq_ignore_ascii_case("group_concat");
        let bytes = self.environment.session.variables.get("group_concat_max_len").filter(|_| is_concat)?;
        bytes.parse().ok().filter(|bytes| *bytes < tributary_types::GROUP_CONCAT_BYTES)
    }

    /// The value of a `?`.
    pub(super) fn parameter(&self, placeholder: &ValueWithSpan) -> Result<&ScalarValue, SqlError> {
        let at = self.placeholders.iter().position(|place| *place == placeholder.span.start);
        let value = at.and_then(|at| self.environment.params?.get(at));
        value.ok_or_else(|| SqlError::detail(ErrorCode::Unknown, "a parameter has no value"))
    }

    fn value(&self, value: ValueWithSpan) -> Result<Expr, SqlError> {
        Ok(match &value.value {
            Value::Placeholder(_) if self.environment.params.is_none() => ast::null(),
            Value::Placeholder(_) => ast::literal(self.parameter(&value)?),
            Value::Number(digits, _) => number(digits)?,
            Value::DoubleQuotedString(text)
            | Value::NationalStringLiteral(text)
            | Value::EscapedStringLiteral(text) => ast::text(text.clone()),
            Value::SingleQuotedByteStringLiteral(bits) | Value::DoubleQuotedByteStringLiteral(bits) => {
                self::bits(bits)?
            }
            Value::HexStringLiteral(hex) => ast::call("unhex", vec![ast::text(hex.clone())]),
            _ => Expr::Value(value),
        })
    }
}

/// A number as MySQL reads it: with an exponent a DOUBLE, otherwise exact. Beyond BIGINT it is a DECIMAL, which has 38 digits.
fn number(written: &str) -> Result<Expr, SqlError> {
    if written.contains(['e', 'E']) {
        return Ok(ast::call("__double", vec![ast::text(written)]));
    }
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let whole = whole.trim_start_matches('0');
    if whole.len() > DIGITS_MAX {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "the number {written} has more than {DIGITS_MAX} digits before the point;                  write it with an exponent, as a DOUBLE, or as text"
            ),
        ));
    }
    if whole.len() + fraction.len() > DIGITS_MAX {
        let fraction = &fraction[..DIGITS_MAX - whole.len()];
        return Ok(ast::number(format!("{whole}.{fraction}")));
    }
    // The point stops the planner from reading it as an unsigned integer, whose sums wrap around.
    let is_large = fraction.is_empty() && whole.parse::<i64>().is_err() && !whole.is_empty();
    Ok(ast::number(if is_large { format!("{whole}.") } else { written.to_owned() }))
}

/// `b'101'`, the number of these bits, of which a BIGINT has 63 without its sign.
fn bits(written: &str) -> Result<Expr, SqlError> {
    match i64::from_str_radix(if written.is_empty() { "0" } else { written }, 2) {
        Ok(number) if !written.starts_with(['-', '+']) => Ok(ast::number(number)),
        _ => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("b'{written}' is not a number of at most 63 bits, each 0 or 1"),
        )),
    }
}

/// Puts the numbers that hexadecimal literals are beside an arithmetic operator in their place: elsewhere they are texts.
pub(super) fn numbers_of_hex(expr: &mut Expr) {
    use BinaryOperator as Op;
    let Expr::BinaryOp { left, op, right } = expr else { return };
    let is_arithmetic = matches!(
        op,
        Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::MyIntegerDivide
            | Op::Modulo
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::PGBitwiseShiftLeft
            | Op::PGBitwiseShiftRight
    );
    for side in [left, right] {
        let Expr::Value(value) = side.as_mut() else { continue };
        if let Value::HexStringLiteral(digits) = &value.value
            && is_arithmetic
            && let Ok(number) = u64::from_str_radix(digits, 16)
        {
            value.value = Value::Number(number.to_string(), false);
        }
    }
}

/// The bits of `0b101`, which the parser takes for a name.
fn bits_of_name(name: &Ident) -> Option<&str> {
    let bits = name.value.strip_prefix("0b").filter(|_| name.quote_style.is_none())?;
    (!bits.is_empty() && bits.bytes().all(|bit| matches!(bit, b'0' | b'1'))).then_some(bits)
}

fn lower(mut name: Ident) -> Ident {
    name.value = name.value.to_lowercase();
    name.quote_style = None;
    name
}

/// A lambda with its parameters in lower case. `column -> '$.a'` is not a lambda but MySQL's `JSON_EXTRACT(column, '$.a')`.
fn lambda(mut lambda: LambdaFunction) -> Expr {
    match &mut lambda.params {
        OneOrManyWithParens::One(param) => {
            if ast::as_text(&lambda.body).is_some_and(|path| path.trim_start().starts_with('$')) {
                let column = Expr::Identifier(lower(param.name.clone()));
                return ast::call("json_extract", vec![column, *lambda.body]);
            }
            param.name = lower(param.name.clone());
        }
        OneOrManyWithParens::Many(params) => {
            params.iter_mut().for_each(|param| param.name = lower(param.name.clone()));
        }
    }
    Expr::Lambda(lambda)
}

/// A user variable: a number if it looks like one.
fn variable_value(value: &str) -> Expr {
    if is_number(value) { ast::number(value) } else { ast::text(value) }
}

/// A system variable: switches are 1 and 0, as in MySQL.
fn system_value(value: &str) -> Expr {
    match value {
        on if on.eq_ignore_ascii_case("ON") || on.eq_ignore_ascii_case("true") => ast::number(1),
        off if off.eq_ignore_ascii_case("OFF") || off.eq_ignore_ascii_case("false") => ast::number(0),
        other => variable_value(other),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn as_text(expr: Expr) -> Expr {
    if ast::as_text(&expr).is_some() { expr } else { ast::call("__text", vec![expr]) }
}

/// Bytes as they are, anything else as text.
pub(super) fn as_bytes(expr: Expr) -> Expr {
    if ast::as_text(&expr).is_some() { expr } else { ast::call("__text_or_bytes", vec![expr]) }
}

pub(super) fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}

/// A pattern and its escape character, which is a backslash if it can be. Without any (`ESCAPE ''`), backslashes are themselves.
fn escaped(pattern: Expr, escape: Option<ValueWithSpan>) -> (Expr, Option<ValueWithSpan>) {
    let Some(ValueWithSpan { value: Value::SingleQuotedString(mark), .. }) = &escape else {
        return (pattern, escape);
    };
    let mut marks = mark.chars();
    let (mark, is_one) = (marks.next(), marks.next().is_none());
    match (ast::as_text(&pattern), mark) {
        (Some(text), mark) if is_one && mark != Some('\\') => {
            (ast::text(functions::by_backslash(text, mark)), None)
        }
        (None, None) => (ast::call("replace", vec![pattern, ast::text("\\"), ast::text("\\\\")]), None),
        (None, Some(mark)) if is_one && mark != '\\' => {
            (ast::call("__by_backslash", vec![pattern, ast::text(mark)]), None)
        }
        _ => (pattern, escape),
    }
}

fn single_quoted(mut value: ValueWithSpan) -> ValueWithSpan {
    if let Value::DoubleQuotedString(text) = value.value {
        value.value = Value::SingleQuotedString(text);
    }
    value
}

fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    match op {
        UnaryOperator::Not | UnaryOperator::BangNot => not(ast::truth(expr)),
        UnaryOperator::Plus => expr,
        UnaryOperator::BitwiseNot => ast::call("bitnot", vec![expr]),
        UnaryOperator::Minus if ast::as_number(&expr) == Some(AFTER_BIGINT) => {
            Expr::UnaryOp { op, expr: Box::new(ast::number(AFTER_BIGINT.trim_end_matches('.'))) }
        }
        UnaryOperator::Minus if ast::as_number(&expr).is_none() => ast::call("__negate", vec![expr]),
        other => Expr::UnaryOp { op: other, expr: Box::new(expr) },
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Result<Expr, SqlError> {
    use BinaryOperator as Op;
    Ok(match (op, left, right) {
        (Op::Plus, left, Expr::Interval(interval)) => dates::add(left, interval, false)?,
        (Op::Plus, Expr::Interval(interval), right) => dates::add(right, interval, false)?,
        (Op::Minus, left, Expr::Interval(interval)) => dates::add(left, interval, true)?,
        (Op::Arrow, left, right) => ast::call("json_extract", vec![left, right]),
        (Op::LongArrow, left, right) => ast::call("get_json_string", vec![left, right]),
        (op, left, right) if row_values::of(&left).is_some() || row_values::of(&right).is_some() => {
            let row = |expr: &Expr| row_values::of(expr).map_or_else(|| vec![expr.clone()], <[Expr]>::to_vec);
            row_values::compare(&row(&left), &op, &row(&right))?
        }
        (op, left, right) => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) },
    })
}

fn round_to(name: &str, expr: Expr, field: &CeilFloorKind) -> Expr {
    let digits = match field {
        CeilFloorKind::Scale(digits) => Expr::Value(digits.clone()),
        CeilFloorKind::DateTimeField(_) => ast::number(0),
    };
    rounded(name, expr, digits)
}

/// `__round(x, digits)` and so on; by another name if the digits are not a constant, because the scale of the result's type is
/// then unknown.
pub(super) fn rounded(name: &str, expr: Expr, digits: Expr) -> Expr {
    let by = if is_constant_number(&digits) { "" } else { "_by" };
    ast::call(&format!("__{name}{by}"), vec![expr, digits])
}

fn is_constant_number(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } | Expr::Nested(expr) => is_constant_number(expr),
        other => ast::as_number(other).is_some(),
    }
}

/// Turns a long left-deep chain of one logical operator into a tree of logarithmic depth.
pub(super) fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op, .. } = expr else { return };
    if !matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat) {
        return;
    }
    let op = op.clone();
    if chain_length(expr, &op) <= CHAIN_MAX {
        return;
    }
    let mut operands = Vec::new();
    let mut rest = std::mem::replace(expr, ast::null());
    loop {
        match rest {
            Expr::BinaryOp { left, op: inner, right } if inner == op => {
                operands.push(*right);
                rest = *left;
            }
            other => {
                operands.push(other);
                break;
            }
        }
    }
    operands.reverse();
    *expr = tree(operands, &op);
}

fn chain_length(expr: &Expr, op: &BinaryOperator) -> usize {
    let mut length = 0;
    let mut here = expr;
    while let Expr::BinaryOp { left, op: inner, .. } = here
        && inner == op
    {
        length += 1;
        here = left;
    }
    length
}

pub(super) fn tree(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    match operands.len() {
        0 => ast::null(),
        1 => operands.remove(0),
        count => {
            let right = operands.split_off(count / 2);
            Expr::BinaryOp {
                left: Box::new(tree(operands, op)),
                op: op.clone(),
                right: Box::new(tree(right, op)),
            }
        }
    }
}
