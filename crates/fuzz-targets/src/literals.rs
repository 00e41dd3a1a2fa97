//! Literals as the general parser understands them, and their plainest writing.

use sqlparser::ast::{DataType, Expr, UnaryOperator, Value};
use std::fmt::Write;

/// Writes `expr` in the plainest form; `None` if it is more than a literal.
fn write_literal(out: &mut String, expr: &Expr) -> Option<()> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => number(out, "", expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(out, "-", expr),
        Expr::TypedString(typed) => {
            let is_time =
                matches!(typed.data_type, DataType::Date | DataType::Timestamp(..) | DataType::Datetime(_));
            if is_time { value(out, &typed.value.value) } else { None }
        }
        Expr::Value(found) => value(out, &found.value),
        Expr::Prefixed { prefix, value: of } if prefix.value.eq_ignore_ascii_case("_binary") => {
            let Expr::Value(found) = &**of else { return None };
            match found.value {
                Value::SingleQuotedString(_) | Value::HexStringLiteral(_) => value(out, &found.value),
                _ => None,
            }
        }
        _ => None,
    }
}

fn number(out: &mut String, sign: &str, expr: &Expr) -> Option<()> {
    let Expr::Value(found) = expr else { return None };
    let Value::Number(..) = found.value else { return None };
    out.push_str(sign);
    value(out, &found.value)
}

fn value(out: &mut String, value: &Value) -> Option<()> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Boolean(value) => out.push_str(if *value { "TRUE" } else { "FALSE" }),
        Value::Number(text, false) => out.push_str(text),
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => push_text(out, text),
        Value::HexStringLiteral(digits) if digits.is_empty() => out.push_str("x''"),
        Value::HexStringLiteral(digits) => write!(out, "0x{digits}").ok()?,
        _ => return None,
    }
    Some(())
}

/// A text in single quotes.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('\'');
    out.push_str(&text.replace('\\', "\\\\").replace('\'', "''"));
    out.push('\'');
}

/// The rows as a VALUES list; `None` if one of them has more than literals.
pub(crate) fn values_list(rows: &[Vec<tributary_sql::Value>]) -> Option<String> {
    let mut out = String::from("VALUES ");
    for (row, cells) in rows.iter().enumerate() {
        out.push_str(if row == 0 { "(" } else { ", (" });
        for (cell, value) in cells.iter().enumerate() {
            if cell > 0 {
                out.push_str(", ");
            }
            let tributary_sql::Value::Expr(expr) = value else { return None };
            write_literal(&mut out, expr)?;
        }
        out.push(')');
    }
    Some(out)
}
