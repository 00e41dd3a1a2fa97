//! `CAST(x AS type)` with MySQL's and Doris's types. A value that does not fit is NULL, as in
//! Doris outside of strict mode.

use super::ast;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, Expr};
use tributary_types::{ErrorCode, SqlError};

pub(super) fn cast(expr: Expr, to: &DataType) -> Result<Expr, SqlError> {
    use DataType as T;
    let call = |name: &str, expr| ast::call(name, vec![expr]);
    Ok(match to {
        T::Signed | T::SignedInteger | T::BigInt(_) | T::Int8(_) | T::Int64 => call("__integer", expr),
        T::Int(_) | T::Integer(_) | T::Int4(_) | T::MediumInt(_) => {
            ast::try_cast(call("__integer", expr), T::Int(None))
        }
        T::SmallInt(_) => ast::try_cast(call("__integer", expr), T::SmallInt(None)),
        T::TinyInt(_) => ast::try_cast(call("__integer", expr), T::TinyInt(None)),
        T::Unsigned | T::UnsignedInteger | T::BigIntUnsigned(_) | T::IntUnsigned(_) => {
            ast::try_cast(call("__numeric", expr), T::BigIntUnsigned(None))
        }
        T::Decimal(info) | T::Numeric(info) | T::Dec(info) => decimal(expr, info),
        T::Float(_) | T::Real | T::Float4 => ast::try_cast(call("__double", expr), T::Real),
        T::Double(_) | T::DoublePrecision | T::Float8 => call("__double", expr),
        T::Boolean | T::Bool => call("__truth", expr),
        T::Char(length)
        | T::Character(length)
        | T::Varchar(length)
        | T::CharacterVarying(length)
        | T::CharVarying(length)
        | T::Nvarchar(length) => text(expr, length.as_ref()),
        T::String(_) | T::Text | T::TinyText | T::MediumText | T::LongText | T::JSON | T::JSONB => {
            call("__text", expr)
        }
        T::Binary(_) | T::Varbinary(_) => call("__text", expr),
        T::Date | T::Date32 => call("__date", expr),
        T::Datetime(_) | T::Timestamp(..) | T::TimestampNtz(_) => call("__datetime", expr),
        T::Time(..) => call("__time", expr),
        T::Custom(name, arguments) => custom(expr, &name.to_string(), arguments)?,
        other => return Err(unsupported(other)),
    })
}

fn unsupported(to: &dyn std::fmt::Display) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, format!("CAST to {to} is not supported"))
}

fn decimal(expr: Expr, info: &ExactNumberInfo) -> Expr {
    let info = match info {
        ExactNumberInfo::None => ExactNumberInfo::PrecisionAndScale(38, 9),
        ExactNumberInfo::Precision(precision) => ExactNumberInfo::PrecisionAndScale(*precision, 0),
        exact @ ExactNumberInfo::PrecisionAndScale(..) => *exact,
    };
    ast::try_cast(expr, DataType::Decimal(info))
}

fn text(expr: Expr, length: Option<&CharacterLength>) -> Expr {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            ast::call("__char", vec![expr, ast::number(length)])
        }
        _ => ast::call("__text", vec![expr]),
    }
}

/// Doris's names that sqlparser does not know.
fn custom(expr: Expr, name: &str, arguments: &[String]) -> Result<Expr, SqlError> {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "largeint" => Ok(ast::try_cast(expr, DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, 0)))),
        "datev2" => Ok(ast::call("__date", vec![expr])),
        "datetimev2" => Ok(ast::call("__datetime", vec![expr])),
        "decimalv2" | "decimalv3" => {
            let number = |at: usize| arguments.get(at).and_then(|text| text.trim().parse::<u64>().ok());
            let (precision, scale) = (number(0).unwrap_or(38), number(1).unwrap_or(0));
            Ok(decimal(
                expr,
                &ExactNumberInfo::PrecisionAndScale(precision, i64::try_from(scale).unwrap_or(0)),
            ))
        }
        _ => Err(unsupported(&name)),
    }
}
