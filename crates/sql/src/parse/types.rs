//! Column definitions and types, as Doris writes them.

use crate::ast::ColumnSpec;
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::compat::WrittenKeys;
use crate::parse::{compat, default_value, nested_types, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::data_type::{
    CHAR_BYTES_MAX, DECIMAL_PRECISION_MAX, VARBINARY_BYTES_MAX, VARCHAR_BYTES_MAX,
};
use tributary_types::{Aggregation, DataType, ErrorCode, SqlError};

/// DECIMAL without arguments.
const DECIMAL_DEFAULT: (u8, u8) = (38, 9);
const DATETIME_SCALE_MAX: u8 = 6;

/// Types that MySQL or Doris has and we do not, with the one to use instead. Those with an own way of writing are in [`compat`].
const UNSUPPORTED: [(&str, &str); 10] = [
    ("QUANTILE_STATE", "DOUBLE"),
    ("AGG_STATE", "the values, aggregated in queries"),
    ("TIMEV2", "VARCHAR(16) or DATETIME"),
    ("TIMESTAMPTZ", "DATETIME"),
    ("TIMESTAMP_NS", "DATETIME(6)"),
    ("TIMESTAMP_TZ", "DATETIME"),
    ("SERIAL", "BIGINT"),
    ("GEOMETRY", "STRING"),
    ("POINT", "STRING"),
    ("UNSIGNED", "a wider signed type"),
];

/// The default start of AUTO_INCREMENT.
const AUTO_INCREMENT_START: i64 = 1;

/// Aggregations of types that we do not have.
const AGGREGATES: [&str; 2] = ["QUANTILE_UNION", "GENERIC"];

/// `name type [KEY | SUM | …] [[GENERATED ALWAYS] AS (…)] [[NOT] NULL] [AUTO_INCREMENT[(start)]] [DEFAULT v] [COMMENT 'x']`, the
/// options in any order.
pub(crate) fn column(cursor: &mut Cursor<'_>) -> Parsed<ColumnSpec> {
    let mut keys = WrittenKeys::default();
    let column = keyed_column(cursor, &mut keys)?;
    keys.expect_none()?;
    Ok(column)
}

/// As [`column`], with `PRIMARY KEY` and the like of a compatible parse.
pub(crate) fn keyed_column(cursor: &mut Cursor<'_>, keys: &mut WrittenKeys) -> Parsed<ColumnSpec> {
    let name = cursor.identifier("a column name")?;
    let data_type = data_type(cursor, &name)?;
    let mut column = ColumnSpec {
        name,
        data_type,
        nullable: None,
        is_key: false,
        aggregation: None,
        default: None,
        on_update: None,
        auto_increment: None,
        is_of_mysql: false,
        generated: None,
        comment: None,
    };
    while option(cursor, &mut column, keys)? {}
    if cursor.is_compatible() {
        compat::complete(cursor, &mut column)?;
    }
    Ok(column)
}

fn option(cursor: &mut Cursor<'_>, column: &mut ColumnSpec, keys: &mut WrittenKeys) -> Parsed<bool> {
    if cursor.eat("KEY") {
        column.is_key = true;
    } else if let Some(aggregation) = aggregation(cursor) {
        column.aggregation = Some(aggregation);
    } else if cursor.eat_all("NOT NULL") {
        column.nullable = Some(false);
    } else if cursor.eat("NULL") {
        column.nullable = Some(true);
    } else if cursor.eat("DEFAULT") {
        column.default = Some(default_value::default_value(cursor)?);
    } else if cursor.eat_all("ON UPDATE") {
        column.on_update = Some(default_value::current_timestamp(cursor)?);
    } else if cursor.eat("AUTO_INCREMENT") {
        column.auto_increment = Some(start_of_increment(cursor)?);
    } else if cursor.eat_all("GENERATED ALWAYS AS")
        || (cursor.is("AS") && *cursor.peek_nth(1) == Token::LParen)
    {
        cursor.eat("AS");
        column.generated = Some(generated(cursor, &column.name)?);
    } else if cursor.eat("COMMENT") {
        column.comment = Some(cursor.string("a comment in quotes")?);
    } else if !compat::column_option(cursor, &column.name, keys)? {
        refuse_option(cursor, &column.name)?;
        return Ok(false);
    }
    Ok(true)
}

/// Parses an optional `(start)`.
fn start_of_increment(cursor: &mut Cursor<'_>) -> Parsed<i64> {
    if !cursor.eat_token(&Token::LParen) {
        return Ok(AUTO_INCREMENT_START);
    }
    if *cursor.peek() == Token::Minus {
        return Err(SqlError::detail(ErrorCode::Unknown, "AUTO_INCREMENT start value can not be negative."));
    }
    let start = cursor.number("the value that AUTO_INCREMENT starts with")?;
    cursor.expect_token(&Token::RParen)?;
    Ok(start)
}

/// `(expression) [STORED]`
fn generated(cursor: &mut Cursor<'_>, column: &str) -> Parsed<String> {
    cursor.expect_token(&Token::LParen)?;
    let text = cursor.expression_text()?;
    cursor.expect_token(&Token::RParen)?;
    if cursor.is("VIRTUAL") {
        let what = format!("column '{column}': a VIRTUAL generated column");
        return Err(unsupported::refuse(&what, "generated columns are always stored, leave VIRTUAL out"));
    }
    cursor.eat("STORED");
    Ok(text)
}

fn aggregation(cursor: &mut Cursor<'_>) -> Option<Aggregation> {
    Aggregation::ALL.into_iter().find(|aggregation| cursor.eat(aggregation.name()))
}

fn refuse_option(cursor: &Cursor<'_>, column: &str) -> Parsed<()> {
    let Some(word) = cursor.word().map(str::to_ascii_uppercase) else { return Ok(()) };
    if !AGGREGATES.contains(&word.as_str()) {
        return Ok(());
    }
    let what = format!("column '{column}': the aggregate function {word}");
    Err(unsupported::refuse(&what, "load the values and aggregate in queries"))
}

/// A type; `column` names it in errors.
pub(super) fn data_type(cursor: &mut Cursor<'_>, column: &str) -> Parsed<DataType> {
    let Some(word) = cursor.word().map(str::to_ascii_uppercase) else {
        return Err(cursor.expected("a type"));
    };
    let integer = match word.as_str() {
        "BOOLEAN" | "BOOL" => Some(DataType::Boolean),
        "TINYINT" => Some(DataType::TinyInt),
        "SMALLINT" => Some(DataType::SmallInt),
        "INT" | "INTEGER" => Some(DataType::Int),
        "BIGINT" => Some(DataType::BigInt),
        "LARGEINT" => Some(DataType::LargeInt),
        _ => None,
    };
    if let Some(data_type) = integer {
        cursor.advance();
        return integer_suffix(cursor, column, data_type);
    }
    let plain = match word.as_str() {
        "FLOAT" => Some(DataType::Float),
        "DOUBLE" => Some(DataType::Double),
        "DATE" | "DATEV2" | "DATEV1" => Some(DataType::Date),
        "STRING" | "TEXT" => Some(DataType::String),
        "JSON" | "JSONB" => Some(DataType::Json),
        "VARIANT" if *cursor.peek_nth(1) != Token::Lt => Some(DataType::Variant),
        "IPV4" => Some(DataType::Ipv4),
        "IPV6" => Some(DataType::Ipv6),
        "BITMAP" => Some(DataType::Bitmap),
        "HLL" => Some(DataType::Hll),
        _ => None,
    };
    if let Some(data_type) = plain {
        cursor.advance();
        if matches!(data_type, DataType::Float | DataType::Double) {
            let data_type = compat::float_digits(cursor, column, data_type)?;
            return compat::unsigned(cursor, column, data_type, "a signed type");
        }
        return Ok(data_type);
    }
    if let Some(mapped) = compat::data_type(cursor, column, &word)? {
        return Ok(mapped);
    }
    match nested_types::nested(cursor, column)? {
        Some(nested) => Ok(nested),
        None => with_arguments(cursor, column, &word),
    }
}

/// `(display width)`, which means nothing, and UNSIGNED, which Doris does not have.
fn integer_suffix(cursor: &mut Cursor<'_>, column: &str, data_type: DataType) -> Parsed<DataType> {
    if cursor.eat_token(&Token::LParen) {
        cursor.number::<u32>("a display width")?;
        cursor.expect_token(&Token::RParen)?;
    }
    let wider = match data_type {
        DataType::TinyInt => "SMALLINT",
        DataType::SmallInt => "INT",
        DataType::Int => "BIGINT",
        _ => "LARGEINT",
    };
    compat::unsigned(cursor, column, data_type, wider)
}

fn with_arguments(cursor: &mut Cursor<'_>, column: &str, word: &str) -> Parsed<DataType> {
    match word {
        "DECIMAL" | "DECIMALV3" | "DECIMALV2" | "NUMERIC" => {
            cursor.advance();
            decimal(cursor, column)
        }
        "DATETIME" | "DATETIMEV2" | "DATETIMEV1" => {
            cursor.advance();
            Ok(DataType::DateTime { scale: datetime_scale(cursor, column)? })
        }
        "CHAR" if cursor.is_nth(1, "VARYING") => {
            cursor.advance();
            cursor.advance();
            varchar(cursor, column)
        }
        "CHAR" => {
            cursor.advance();
            let bytes = argument(cursor)?.unwrap_or(1);
            char_of(column, bytes)
        }
        "VARCHAR" => {
            cursor.advance();
            varchar(cursor, column)
        }
        "VARBINARY" => {
            cursor.advance();
            let bytes = argument(cursor)?.unwrap_or(VARBINARY_BYTES_MAX);
            varbinary_of(column, bytes)
        }
        _ => Err(unknown(cursor, column, word)),
    }
}

/// `VARCHAR`, `VARCHAR(*)` (both the longest) or `VARCHAR(n)`.
fn varchar(cursor: &mut Cursor<'_>, column: &str) -> Parsed<DataType> {
    if *cursor.peek() == Token::LParen && *cursor.peek_nth(1) == Token::Mul {
        cursor.advance();
        cursor.advance();
        cursor.expect_token(&Token::RParen)?;
        return Ok(DataType::Varchar { bytes: VARCHAR_BYTES_MAX });
    }
    let bytes = argument(cursor)?.unwrap_or(VARCHAR_BYTES_MAX);
    varchar_of(column, bytes)
}

pub(super) fn varchar_of(column: &str, bytes: u32) -> Parsed<DataType> {
    Ok(DataType::Varchar { bytes: within(column, ("VARCHAR", "bytes", 1, VARCHAR_BYTES_MAX), bytes)? })
}

pub(super) fn char_of(column: &str, bytes: u32) -> Parsed<DataType> {
    Ok(DataType::Char { bytes: within(column, ("CHAR", "bytes", 1, CHAR_BYTES_MAX), bytes)? })
}

pub(super) fn varbinary_of(column: &str, bytes: u32) -> Parsed<DataType> {
    let limits = ("VARBINARY", "bytes", 1, VARBINARY_BYTES_MAX);
    Ok(DataType::Varbinary { bytes: within(column, limits, bytes)? })
}

/// The optional `(p)` of DATETIME.
pub(super) fn datetime_scale(cursor: &mut Cursor<'_>, column: &str) -> Parsed<u8> {
    let scale = argument(cursor)?.unwrap_or(0);
    let limits = ("DATETIME", "digits of a second's fraction", 0, u32::from(DATETIME_SCALE_MAX));
    Ok(within(column, limits, scale)? as u8)
}

/// The optional `(p)` of TIME.
pub(super) fn time_scale(cursor: &mut Cursor<'_>, column: &str) -> Parsed<u8> {
    let scale = argument(cursor)?.unwrap_or(0);
    let limits = ("TIME", "digits of a second's fraction", 0, u32::from(DATETIME_SCALE_MAX));
    Ok(within(column, limits, scale)? as u8)
}

pub(super) fn decimal(cursor: &mut Cursor<'_>, column: &str) -> Parsed<DataType> {
    if !cursor.eat_token(&Token::LParen) {
        let (precision, scale) = DECIMAL_DEFAULT;
        return compat::unsigned(cursor, column, DataType::Decimal { precision, scale }, "DECIMAL");
    }
    let precision = cursor.number("the number of digits")?;
    let scale = match cursor.eat_token(&Token::Comma) {
        true => cursor.number("the number of digits after the point")?,
        false => 0,
    };
    cursor.expect_token(&Token::RParen)?;
    let limits = ("DECIMAL", "digits", 1, u32::from(DECIMAL_PRECISION_MAX));
    let precision = within(column, limits, precision)?;
    let scale = within(column, ("DECIMAL", "digits after the point", 0, precision), scale)?;
    let data_type = DataType::Decimal { precision: precision as u8, scale: scale as u8 };
    compat::unsigned(cursor, column, data_type, "DECIMAL")
}

/// Parses an optional `(n)`.
pub(super) fn argument(cursor: &mut Cursor<'_>) -> Parsed<Option<u32>> {
    if !cursor.eat_token(&Token::LParen) {
        return Ok(None);
    }
    let number = cursor.number("a number")?;
    cursor.expect_token(&Token::RParen)?;
    Ok(Some(number))
}

/// Checks an argument of a type; the limits are the type, the unit, the minimum and the maximum.
fn within(column: &str, (name, what, least, most): (&str, &str, u32, u32), value: u32) -> Parsed<u32> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(SqlError::detail(
        ErrorCode::Unknown,
        format!("column '{column}': {name} takes {least} to {most} {what}, not {value}"),
    ))
}

fn unknown(cursor: &Cursor<'_>, column: &str, word: &str) -> SqlError {
    match UNSUPPORTED.iter().find(|(name, _)| *name == word) {
        Some((name, instead)) => {
            unsupported::refuse(&format!("column '{column}': the type {name}"), &format!("use {instead}"))
        }
        None => cursor.expected("a type"),
    }
}
