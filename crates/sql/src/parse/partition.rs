//! `PARTITION BY` of CREATE TABLE, the partitions that ALTER TABLE names, and `PARTITION (p, …)` behind a table's name.

use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::ddl;
use sqlparser::tokenizer::Token;
use tributary_types::partition::{AutoPartition, TimeUnit};
use tributary_types::table::Distribution;
use tributary_types::{ErrorCode, PartitionMethod, PartitionNames, SqlError};

/// `PARTITION BY …`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBy {
    pub method: PartitionMethod,
    /// The partitions that loads create.
    pub auto: Option<AutoPartition>,
    pub columns: Vec<String>,
    pub items: Vec<PartitionItem>,
    /// How many there may be, if the session says so (`create_table_partition_max_num`).
    pub count_max: Option<usize>,
}

/// A definition of one partition or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionItem {
    One {
        name: String,
        rows: RowsSpec,
        properties: Vec<(String, String)>,
        /// `DISTRIBUTED BY …` of an added partition.
        distribution: Option<Distribution>,
    },
    /// `FROM (…) TO (…) INTERVAL n [unit]`
    Steps {
        from: Vec<ValueSpec>,
        to: Vec<ValueSpec>,
        interval: i64,
        /// In upper case.
        unit: Option<String>,
    },
}

/// The rows of a partition, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowsSpec {
    /// `VALUES LESS THAN (…)`
    LessThan(Vec<ValueSpec>),
    /// `VALUES [(…), (…))`
    Fixed { lower: Vec<ValueSpec>, upper: Vec<ValueSpec> },
    /// `VALUES IN (…)`
    In(Vec<Vec<ValueSpec>>),
    /// No VALUES: all others.
    Others,
}

/// A value in the bounds of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSpec {
    Null,
    Max,
    Text(String),
}

/// `[TEMPORARY] PARTITION[S] (p, …)` or `PARTITION p`.
pub(crate) fn names(cursor: &mut Cursor<'_>) -> Parsed<PartitionNames> {
    let is_temporary = cursor.eat("TEMPORARY");
    if cursor.eat_any(&["PARTITION", "PARTITIONS"]).is_none() {
        return if is_temporary { Err(cursor.expected("PARTITION")) } else { Ok(PartitionNames::Any) };
    }
    let one = |cursor: &mut Cursor<'_>| {
        if cursor.eat_token(&Token::Mul) {
            return Ok(None);
        }
        cursor.identifier_or_string("a partition name").map(Some)
    };
    let names = match cursor.peek() {
        Token::LParen => cursor.parenthesized(one)?,
        _ => vec![cursor.identifier_or_string("a partition name").map(Some)?],
    };
    let names: Vec<String> = names.into_iter().flatten().collect();
    Ok(match (names.is_empty(), is_temporary) {
        (true, _) => PartitionNames::Any,
        (false, false) => PartitionNames::Named(names),
        (false, true) => PartitionNames::Temporary(names),
    })
}

/// Whether `PARTITION (*)` is next.
pub(crate) fn is_star(cursor: &Cursor<'_>) -> bool {
    cursor.is("PARTITION") && *cursor.peek_nth(1) == Token::LParen && *cursor.peek_nth(2) == Token::Mul
}

/// Whether the clause is next.
pub(crate) fn begins(cursor: &Cursor<'_>) -> bool {
    cursor.is("PARTITION") || (cursor.is("AUTO") && cursor.is_nth(1, "PARTITION"))
}

/// `[AUTO] PARTITION BY RANGE|LIST (…) (…)`
pub(crate) fn by(cursor: &mut Cursor<'_>) -> Parsed<PartitionBy> {
    let is_auto = cursor.eat("AUTO");
    cursor.expect("PARTITION")?;
    cursor.expect("BY")?;
    let method = match cursor.eat_any(&["RANGE", "LIST"]) {
        Some("RANGE") => PartitionMethod::Range,
        Some(_) => PartitionMethod::List,
        None => return Err(cursor.expected("RANGE or LIST")),
    };
    let has_function = *cursor.peek() == Token::LParen && *cursor.peek_nth(2) == Token::LParen;
    let (auto, columns) = match (method, has_function) {
        (PartitionMethod::Range, true) => {
            let (unit, column) = date_trunc(cursor)?;
            (Some(AutoPartition::Range(unit)), vec![column])
        }
        (PartitionMethod::List, true) => {
            return Err(refused("internal catalog does not support functions in 'LIST' partition"));
        }
        (PartitionMethod::Range, false) if is_auto => {
            return Err(refused("Auto Range Partition need function expression"));
        }
        (_, false) => {
            let columns = cursor.parenthesized(|cursor| cursor.identifier("a column name"))?;
            (is_auto.then_some(AutoPartition::List), columns)
        }
    };
    let mut items = Vec::new();
    if auto.is_some() && *cursor.peek() != Token::LParen {
        return Ok(PartitionBy { method, auto, columns, items, count_max: None });
    }
    cursor.expect_token(&Token::LParen)?;
    while !cursor.eat_token(&Token::RParen) {
        items.push(item(cursor)?);
        if !cursor.eat_token(&Token::Comma) && *cursor.peek() != Token::RParen {
            return Err(cursor.expected("',' or ')'"));
        }
    }
    Ok(PartitionBy { method, auto, columns, items, count_max: None })
}

/// `(date_trunc(column, 'unit'))`
fn date_trunc(cursor: &mut Cursor<'_>) -> Parsed<(TimeUnit, String)> {
    let start = cursor.offset();
    cursor.expect_token(&Token::LParen)?;
    let function = cursor.identifier("date_trunc")?;
    cursor.expect_token(&Token::LParen)?;
    let argument = |cursor: &mut Cursor<'_>| match cursor.peek() {
        Token::Word(_) => cursor.identifier("a column name").map(|name| (Some(name), None)),
        _ => cursor.string("a column and a unit in quotes").map(|unit| (None, Some(unit))),
    };
    let first = argument(cursor)?;
    cursor.expect_token(&Token::Comma)?;
    let second = argument(cursor)?;
    cursor.expect_token(&Token::RParen)?;
    let text = cursor.sql().get(start + 1..cursor.offset()).unwrap_or_default().trim().to_owned();
    cursor.expect_token(&Token::RParen)?;
    let illegal = || refused(format!("partition expr {text} is illegal!"));
    let (((Some(column), _), (_, Some(unit))) | ((_, Some(unit)), (Some(column), _))) = (first, second)
    else {
        return Err(illegal());
    };
    let unit = TimeUnit::named(&unit).filter(|_| function.eq_ignore_ascii_case("date_trunc"));
    Ok((unit.ok_or_else(illegal)?, column))
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

fn item(cursor: &mut Cursor<'_>) -> Parsed<PartitionItem> {
    if cursor.is("FROM") {
        return steps(cursor);
    }
    cursor.expect("PARTITION").map_err(|_| cursor.expected("PARTITION or FROM"))?;
    cursor.eat_all("IF NOT EXISTS");
    let name = cursor.identifier_or_string("a partition name")?;
    one(cursor, name)
}

/// Parses the rest after the name of a partition.
pub(crate) fn one(cursor: &mut Cursor<'_>, name: String) -> Parsed<PartitionItem> {
    let rows = if cursor.eat("VALUES") { rows(cursor)? } else { RowsSpec::Others };
    let properties = if *cursor.peek() == Token::LParen { ddl::properties(cursor)? } else { Vec::new() };
    Ok(PartitionItem::One { name, rows, properties, distribution: None })
}

/// `FROM (…) TO (…) INTERVAL n [unit]`
pub(crate) fn steps(cursor: &mut Cursor<'_>) -> Parsed<PartitionItem> {
    cursor.expect("FROM")?;
    let from = cursor.parenthesized(value)?;
    cursor.expect("TO")?;
    let to = cursor.parenthesized(value)?;
    cursor.expect("INTERVAL")?;
    let is_negative = cursor.eat_token(&Token::Minus);
    let interval: i64 = cursor.number("a whole number")?;
    let unit = cursor.word().map(str::to_ascii_uppercase);
    let unit = unit.filter(|unit| {
        ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"].contains(&unit.as_str())
    });
    if unit.is_some() {
        cursor.advance();
    }
    let interval = if is_negative { -interval } else { interval };
    Ok(PartitionItem::Steps { from, to, interval, unit })
}

fn rows(cursor: &mut Cursor<'_>) -> Parsed<RowsSpec> {
    if cursor.eat_all("LESS THAN") {
        if cursor.eat("MAXVALUE") {
            return Ok(RowsSpec::LessThan(vec![ValueSpec::Max]));
        }
        return cursor.parenthesized(value).map(RowsSpec::LessThan);
    }
    if cursor.eat("IN") {
        return cursor.parenthesized(tuple).map(RowsSpec::In);
    }
    if !cursor.eat_token(&Token::LBracket) {
        return Err(cursor.expected("LESS THAN, IN or '['"));
    }
    let lower = cursor.parenthesized(value)?;
    cursor.expect_token(&Token::Comma)?;
    let upper = cursor.parenthesized(value)?;
    cursor.expect_token(&Token::RParen)?;
    Ok(RowsSpec::Fixed { lower, upper })
}

/// The values of a row in a list: `(v, …)`, or `v` where one column decides.
fn tuple(cursor: &mut Cursor<'_>) -> Parsed<Vec<ValueSpec>> {
    if *cursor.peek() == Token::LParen {
        return cursor.parenthesized(value);
    }
    value(cursor).map(|value| vec![value])
}

fn value(cursor: &mut Cursor<'_>) -> Parsed<ValueSpec> {
    if cursor.eat("MAXVALUE") {
        return Ok(ValueSpec::Max);
    }
    if cursor.eat("NULL") {
        return Ok(ValueSpec::Null);
    }
    if let Some(word) = cursor.eat_any(&["TRUE", "FALSE"]) {
        return Ok(ValueSpec::Text(word.to_owned()));
    }
    let is_negative = cursor.eat_token(&Token::Minus);
    if let Token::Number(digits, _) = cursor.peek() {
        let digits = digits.clone();
        cursor.advance();
        return Ok(ValueSpec::Text(if is_negative { format!("-{digits}") } else { digits }));
    }
    if is_negative {
        return Err(cursor.expected("a number"));
    }
    cursor.string("a value in quotes, a number, NULL or MAXVALUE").map(ValueSpec::Text)
}
