//! Properties of table functions: `"name" = "text"`, as arguments.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Value};
use std::collections::BTreeMap;
use tributary_types::{ErrorCode, SqlError};

/// The properties of a call, by their names in lower case.
///
/// # Errors
/// [`ErrorCode::NotSupported`] for an argument that is not a property.
pub fn of_call(function: &str, args: &[FunctionArg]) -> Result<BTreeMap<String, String>, SqlError> {
    args.iter()
        .enumerate()
        .map(|(index, arg)| {
            // The argument is not shown: it may be a key whose name was left out.
            property(arg).ok_or_else(|| {
                let place = index + 1;
                let text =
                    format!("argument {place} of {function} is not a property of {function}; write \"key\" = \"value\"");
                SqlError::detail(ErrorCode::NotSupported, text)
            })
        })
        .collect()
}

fn property(arg: &FunctionArg) -> Option<(String, String)> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, right, .. })) => {
            Some((text(left)?.to_ascii_lowercase(), text(right)?))
        }
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name.value.to_ascii_lowercase(), text(value)?))
        }
        FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some((text(name)?.to_ascii_lowercase(), text(value)?))
        }
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            Value::Number(number, _) => Some(number.clone()),
            Value::Boolean(flag) => Some(flag.to_string()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(ident.value.clone()),
        _ => None,
    }
}
