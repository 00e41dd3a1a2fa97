//! Column definitions and types, as Doris writes them.

use crate::ast::ColumnSpec;
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{default_value, nested_types, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::data_type::{CHAR_BYTES_MAX, DECIMAL_PRECISION_MAX, VARCHAR_BYTES_MAX};
use tributary_types::{Aggregation, DataType, ErrorCode, SqlError};

/// DECIMAL without arguments.
const DECIMAL_DEFAULT: (u8, u8) = (38, 9);
const DATETIME_SCALE_MAX: u8 = 6;

/// Types that MySQL or Doris has and we do not, with the one to use instead.
const UNSUPPORTED: [(&str, &str); 33] = [
    ("QUANTILE_STATE", "DOUBLE"),
    ("AGG_STATE", "the values, aggregated in queries"),
    ("TIME", "VARCHAR(16) or DATETIME"),
    ("TIMEV2", "VARCHAR(16) or DATETIME"),
    ("TIMESTAMP", "DATETIME"),
    ("TIMESTAMPTZ", "DATETIME"),
    ("TIMESTAMP_NS", "DATETIME(6)"),
    ("TIMESTAMP_TZ", "DATETIME"),
    ("YEAR", "SMALLINT"),
    ("MEDIUMINT", "INT"),
    ("BIT", "BOOLEAN or BIGINT"),
    ("SERIAL", "BIGINT"),
    ("REAL", "DOUBLE"),
    ("FIXED", "DECIMAL"),
    ("DEC", "DECIMAL"),
    ("BLOB", "STRING"),
    ("TINYBLOB", "STRING"),
    ("MEDIUMBLOB", "STRING"),
    ("LONGBLOB", "STRING"),
    ("BINARY", "STRING"),
    ("VARBINARY", "STRING"),
    ("TINYTEXT", "STRING"),
    ("MEDIUMTEXT", "STRING"),
    ("LONGTEXT", "STRING"),
    ("NCHAR", "CHAR"),
    ("NVARCHAR", "VARCHAR"),
    ("CHARACTER", "CHAR or VARCHAR"),
    ("ENUM", "VARCHAR"),
    ("SET", "VARCHAR or JSON"),
    ("GEOMETRY", "STRING"),
    ("POINT", "STRING"),
    ("UUID", "CHAR(36)"),
    ("UNSIGNED", "a wider signed type"),
];

/// The default start of AUTO_INCREMENT.
const AUTO_INCREMENT_START: i64 = 1;

/// Aggregations of types that we do not have.
const AGGREGATES: [&str; 2] = ["QUANTILE_UNION", "GENERIC"];

/// `name type [KEY | SUM | …] [[GENERATED ALWAYS] AS (…)] [[NOT] NULL] [AUTO_INCREMENT[(start)]] [DEFAULT v] [COMMENT 'x']`, the
/// options in any order.
pub(crate) fn column(cursor: &mut Cursor<'_>) -> Parsed<ColumnSpec> {
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
        generated: None,
        comment: None,
    };
    while option(cursor, &mut column)? {}
    Ok(column)
}

fn option(cursor: &mut Cursor<'_>, column: &mut ColumnSpec) -> Parsed<bool> {
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
    } else {
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
    let (what, instead) = match word.as_str() {
        "PRIMARY" | "UNIQUE" => ("PRIMARY KEY or UNIQUE on a column", "use UNIQUE KEY(…) after the columns"),
        "CHARACTER" | "CHARSET" | "COLLATE" => ("a column's character set or collation", "all text is UTF-8"),
        "REFERENCES" | "CHECK" | "CONSTRAINT" => ("a constraint", "leave it out"),
        other if AGGREGATES.contains(&other) => {
            let what = format!("column '{column}': the aggregate function {other}");
            return Err(unsupported::refuse(&what, "load the values and aggregate in queries"));
        }
        _ => return Ok(()),
    };
    Err(unsupported::refuse(&format!("column '{column}': {what}"), instead))
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
        refuse_unsigned(cursor, column, &word, "a signed type")?;
        return Ok(data_type);
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
    refuse_unsigned(cursor, column, data_type.base_name(), wider)?;
    cursor.eat("SIGNED");
    Ok(data_type)
}

fn refuse_unsigned(cursor: &Cursor<'_>, column: &str, word: &str, instead: &str) -> Parsed<()> {
    if cursor.is_any(&["UNSIGNED", "ZEROFILL"]) {
        let what = format!("column '{column}': {word} UNSIGNED");
        return Err(unsupported::refuse(&what, &format!("there are no unsigned types, use {instead}")));
    }
    Ok(())
}

fn with_arguments(cursor: &mut Cursor<'_>, column: &str, word: &str) -> Parsed<DataType> {
    match word {
        "DECIMAL" | "DECIMALV3" | "DECIMALV2" | "NUMERIC" => {
            cursor.advance();
            decimal(cursor, column)
        }
        "DATETIME" | "DATETIMEV2" | "DATETIMEV1" => {
            cursor.advance();
            let scale = argument(cursor)?.unwrap_or(0);
            let limits = ("DATETIME", "digits of a second's fraction", 0, u32::from(DATETIME_SCALE_MAX));
            Ok(DataType::DateTime { scale: within(column, limits, scale)? as u8 })
        }
        "CHAR" => {
            cursor.advance();
            let bytes = argument(cursor)?.unwrap_or(1);
            Ok(DataType::Char { bytes: within(column, ("CHAR", "bytes", 1, CHAR_BYTES_MAX), bytes)? })
        }
        "VARCHAR" => {
            cursor.advance();
            varchar(cursor, column)
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
    Ok(DataType::Varchar { bytes: within(column, ("VARCHAR", "bytes", 1, VARCHAR_BYTES_MAX), bytes)? })
}

fn decimal(cursor: &mut Cursor<'_>, column: &str) -> Parsed<DataType> {
    if !cursor.eat_token(&Token::LParen) {
        refuse_unsigned(cursor, column, "DECIMAL", "DECIMAL")?;
        let (precision, scale) = DECIMAL_DEFAULT;
        return Ok(DataType::Decimal { precision, scale });
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
    refuse_unsigned(cursor, column, "DECIMAL", "DECIMAL")?;
    Ok(DataType::Decimal { precision: precision as u8, scale: scale as u8 })
}

/// Parses an optional `(n)`.
fn argument(cursor: &mut Cursor<'_>) -> Parsed<Option<u32>> {
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
