//! `CAST(x AS type)` and `TRY_CAST` with MySQL's and Doris's types: which function converts.

use super::ast;
use crate::functions::conversion::cast::{Target, function_of_nested};
use crate::functions::dates::datetime;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, Expr, ObjectName, ObjectNamePart};
use tributary_types::{ErrorCode, SqlError};

/// The most digits of a DECIMAL.
const PRECISION_MAX: u64 = 38;

/// `lenient`: a number that does not fit is NULL and no error.
pub(super) fn cast(expr: Expr, to: &DataType, lenient: bool) -> Result<Expr, SqlError> {
    use DataType as T;
    let call = |name: &str, expr| ast::call(name, vec![expr]);
    let to_target = |target: Target, expr| ast::call(&target.function(lenient), vec![expr]);
    Ok(match to {
        T::Signed | T::SignedInteger | T::BigInt(_) | T::Int8(_) | T::Int64 => {
            to_target(Target::BigInt, expr)
        }
        T::Int(_) | T::Integer(_) | T::Int4(_) | T::MediumInt(_) => to_target(Target::Int, expr),
        T::SmallInt(_) => to_target(Target::SmallInt, expr),
        T::TinyInt(_) => to_target(Target::TinyInt, expr),
        T::Unsigned | T::UnsignedInteger | T::BigIntUnsigned(_) | T::IntUnsigned(_) => {
            to_target(Target::Unsigned, expr)
        }
        T::Decimal(info) | T::Numeric(info) | T::Dec(info) => to_target(decimal(info)?, expr),
        T::Float(_) | T::Real | T::Float4 => to_target(Target::Float, expr),
        T::Double(_) | T::DoublePrecision | T::Float8 => call("__double", expr),
        T::Boolean | T::Bool => call("__boolean", expr),
        T::Char(length)
        | T::Character(length)
        | T::Varchar(length)
        | T::CharacterVarying(length)
        | T::CharVarying(length)
        | T::Nvarchar(length) => text(expr, length.as_ref()),
        T::String(_) | T::Text | T::TinyText | T::MediumText | T::LongText => call("__text", expr),
        T::JSON | T::JSONB => call("__document", expr),
        // Bytes stay what they are; a text keeps the comparisons of texts.
        T::Binary(_) => call("__text_or_bytes", expr),
        T::Varbinary(_) => call("__bytes", expr),
        T::Date | T::Date32 => call("__date", expr),
        T::Datetime(digits) | T::Timestamp(digits, _) | T::TimestampNtz(digits) => {
            to_target(datetime(*digits)?, expr)
        }
        T::Time(digits, _) => {
            let digits = digits.unwrap_or(0);
            if digits > 6 {
                let text = format!("TIME has up to 6 digits of a second, not {digits}");
                return Err(SqlError::detail(ErrorCode::Unknown, text));
            }
            ast::call("__time_to", vec![expr, ast::number(digits)])
        }
        T::Custom(name, arguments) if is_nested(name) => {
            let written = arguments.first().map_or("", String::as_str);
            tributary_sql::parse_type(written)?;
            call(&function_of_nested(written, lenient), expr)
        }
        T::Custom(name, arguments) => {
            let name = name.to_string().to_ascii_lowercase();
            match custom(&name, arguments)? {
                Some(target) => to_target(target, expr),
                None if name == "datev2" => call("__date", expr),
                None if name == "ipv4" => call("to_ipv4_or_null", expr),
                None if name == "ipv6" => call("to_ipv6_or_null", expr),
                None if name == "variant" => call("__text", expr),
                None => return Err(unsupported(to)),
            }
        }
        other => return Err(unsupported(other)),
    })
}

/// Whether a type is an ARRAY, MAP or STRUCT, whose text is its argument.
fn is_nested(name: &ObjectName) -> bool {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|name| name.value == tributary_sql::NESTED_TYPE)
}

/// `DATE '2024-01-31'`: an invalid literal is refused, as in MySQL and Doris.
pub(super) fn typed_text(text: Expr, to: &DataType) -> Result<Expr, SqlError> {
    let is_date = matches!(to, DataType::Date | DataType::Datetime(_) | DataType::Timestamp(..));
    if let Some(written) = ast::as_text(&text)
        && is_date
        && datetime::parse(written).is_none()
    {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("date/datetime literal [{written}] is invalid"),
        ));
    }
    match (to, ast::as_text(&text)) {
        // TIMESTAMP '… .25' retains the written digits.
        (DataType::Timestamp(None, _) | DataType::Datetime(None), Some(written)) => {
            let digits = written.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len().min(6));
            let digits = u8::try_from(digits).unwrap_or(6);
            Ok(ast::call(&Target::DateTime { digits }.function(false), vec![text]))
        }
        (DataType::Time(None, _), Some(written)) => {
            let digits = written.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len().min(6));
            Ok(ast::call("__time_to", vec![text, ast::number(digits)]))
        }
        _ => cast(text, to, false),
    }
}

fn unsupported(to: &dyn std::fmt::Display) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, format!("CAST to {to} is not supported"))
}

fn decimal(info: &ExactNumberInfo) -> Result<Target, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (PRECISION_MAX, 9),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let fits = (1..=PRECISION_MAX).contains(&precision) && u64::try_from(scale).is_ok_and(|s| s <= precision);
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if fits => Ok(Target::Decimal { precision, scale }),
        _ => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "DECIMAL({precision},{scale}) is no type: the precision is 1 to {PRECISION_MAX}, the scale 0 to the precision"
            ),
        )),
    }
}

fn datetime(digits: Option<u64>) -> Result<Target, SqlError> {
    match digits.unwrap_or(0) {
        digits @ 0..=6 => Ok(Target::DateTime { digits: digits as u8 }),
        digits => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("DATETIME({digits}) is no type: a second has 0 to 6 digits"),
        )),
    }
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
fn custom(name: &str, arguments: &[String]) -> Result<Option<Target>, SqlError> {
    let number = |at: usize| arguments.get(at).and_then(|text| text.trim().parse::<u64>().ok());
    Ok(Some(match name {
        "largeint" => Target::LargeInt,
        "datetimev2" => datetime(number(0))?,
        "decimalv2" | "decimalv3" => {
            let scale = i64::try_from(number(1).unwrap_or(0)).unwrap_or(i64::MAX);
            decimal(&ExactNumberInfo::PrecisionAndScale(number(0).unwrap_or(PRECISION_MAX), scale))?
        }
        _ => return Ok(None),
    }))
}
