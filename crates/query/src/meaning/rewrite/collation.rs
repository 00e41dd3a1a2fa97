//! Comparisons in a collation that the statement names: with one of the `_ci` kind, texts are compared in lower case. With the variable
//! `like_ignores_case`, patterns that name none are, too.
//!
//! Not here: ORDER BY, GROUP BY, DISTINCT and joins by names, which compare bytes whatever is named, and accents, which always count.

use super::{ast, exprs};
use sqlparser::ast::{DataType, Expr, Value};
use tributary_types::{ErrorCode, SqlError};

/// Makes a comparison one of lower-case texts if a side of it names such a collation, or, with `by_default`, if it is one with a pattern
/// and no side says otherwise.
pub(super) fn without_case(expr: &mut Expr, by_default: bool) -> Result<(), SqlError> {
    let ignores_one = |text: &Expr, pattern: &Expr| {
        let by_default = by_default && !tells_cases(text) && !tells_cases(pattern);
        by_default || ignores_case(text) || ignores_case(pattern)
    };
    match expr {
        Expr::BinaryOp { left, op, right } if ast::is_comparison(op) => lower_if_any([left, right]),
        Expr::Like { expr, pattern, escape_char, .. } => {
            if !ignores_one(expr, pattern) {
                return Ok(());
            }
            lower(expr);
            lower(pattern);
            if let Some(escape) = escape_char
                && let Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) = &mut escape.value
            {
                *text = text.to_lowercase();
            }
        }
        Expr::RLike { expr: text, pattern, negated, .. } => {
            if !ignores_one(text, pattern) {
                return Ok(());
            }
            let args = vec![take(text), take(pattern), ast::text("i")];
            let (found, negated) = (ast::call("regexp_like", args), *negated);
            *expr = if negated { exprs::not(found) } else { found };
        }
        Expr::InList { expr, list, .. } if ignores_case(expr) || list.iter().any(ignores_case) => {
            lower(expr);
            list.iter_mut().for_each(lower);
        }
        Expr::Between { expr, low, high, .. } => lower_if_any([expr, low, high]),
        Expr::Case { operand: Some(operand), conditions, .. }
            if ignores_case(operand) || conditions.iter().any(|when| ignores_case(&when.condition)) =>
        {
            lower(operand);
            conditions.iter_mut().for_each(|when| lower(&mut when.condition));
        }
        Expr::InSubquery { expr, .. } if ignores_case(expr) => {
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                "COLLATE … IN (SELECT …) is not supported; write LOWER(x) IN (SELECT LOWER(y) …)",
            ));
        }
        _ => {}
    }
    Ok(())
}

/// Whether the value has a collation that does not tell cases apart.
fn ignores_case(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => ignores_case(inner),
        Expr::Collate { collation, .. } => {
            collation.to_string().trim_matches(['\'', '"', '`']).to_ascii_lowercase().ends_with("_ci")
        }
        _ => false,
    }
}

/// Whether the value says that cases differ: by another collation, or by BINARY.
fn tells_cases(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => tells_cases(inner),
        Expr::Collate { .. } => !ignores_case(expr),
        Expr::Cast { data_type: DataType::Binary(_) | DataType::Varbinary(_), .. } => true,
        _ => false,
    }
}

fn lower_if_any<const N: usize>(sides: [&mut Box<Expr>; N]) {
    if sides.iter().any(|side| ignores_case(side)) {
        sides.into_iter().for_each(|side| lower(side));
    }
}

fn lower(expr: &mut Expr) {
    let inner = match take(expr) {
        Expr::Collate { expr, .. } => *expr,
        other => other,
    };
    // A pattern stays a constant.
    *expr = match ast::as_text(&inner) {
        Some(text) => ast::text(text.to_lowercase()),
        None => ast::call("lower", vec![inner]),
    };
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, ast::null())
}
