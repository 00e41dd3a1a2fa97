//! `INSERT INTO t [(cols)] VALUES (…), (…)` scanned by hand.
//!
//! One pass over the statement's bytes: a literal is recognised, converted and pushed into its column's buffer before the next
//! one is read. `[…]` and `{…}` of literals are the texts of their values. Anything other than a plain literal (an expression,
//! `DEFAULT`, a hint that MySQL executes, a following statement) makes the scanner give up, and the general parser takes over.
//!
//! Invariant: [`ValuesOutcome::General`] and errors leave nothing in the builder.
//!
//! Not its business: judging whether rejected rows fail the statement.

mod head;
mod introduced;
mod scan;

pub use head::{InsertHead, scan_insert_head};
pub use introduced::with_hex_literals;
pub(crate) use scan::Scanner;

use crate::blocks::builder::BlockBuilder;
use crate::cells::reject::Unshown;
use crate::rows::loader::{Decoded, InsertOptions, Loader, Progress};
use crate::rows::target::Target;
use tributary_types::{DataType, ErrorCode, NestedType, SqlError};

/// The outcome of scanning a VALUES list.
#[derive(Clone, Debug)]
pub enum ValuesOutcome {
    Rows(Decoded),
    /// Something other than literals: the statement is for the general parser.
    General,
}

/// Decodes the rows behind `VALUES` (the keyword itself may be included). `builder` may be any
/// builder; it is made one for the target's schema.
///
/// # Errors
/// 1058 if a row's value count differs from the columns', 1105 if `()` leaves out a column without
/// default, 1064 if the text is not UTF-8.
pub fn decode_values(
    sql_from_values: &[u8],
    target: &Target,
    options: &InsertOptions,
    builder: &mut BlockBuilder,
) -> Result<ValuesOutcome, SqlError> {
    check_utf8(sql_from_values)?;
    builder.reset(target.schema());
    let mut progress = Progress::default();
    let mut loader = Loader::new(target, builder, options.rules(), options.clock.now_micros, &mut progress);
    match scan_rows(sql_from_values, &mut loader) {
        Ok(Some(())) => loader.end_block(),
        Ok(None) => {
            loader.abandon();
            return Ok(ValuesOutcome::General);
        }
        Err(error) => {
            loader.abandon();
            return Err(error);
        }
    }
    Ok(ValuesOutcome::Rows(progress.decoded))
}

/// Checks that a statement is text, once for all its literals.
pub(crate) fn check_utf8(sql: &[u8]) -> Result<(), SqlError> {
    std::str::from_utf8(sql).map(|_| ()).map_err(|error| {
        SqlError::detail(
            ErrorCode::Syntax,
            format!("the statement is not valid UTF-8 at byte {}; send it as utf8mb4", error.valid_up_to()),
        )
    })
}

/// The error for a row with more or fewer values than columns; rows count from 1.
pub(crate) fn count_mismatch(row: u64) -> SqlError {
    SqlError::detail(
        ErrorCode::ColumnCountMismatch,
        format!("Column count doesn't match value count at row {row}"),
    )
}

/// All rows up to the statement's end; `None` if the general parser must take it.
fn scan_rows(sql: &[u8], loader: &mut Loader<'_>) -> Result<Option<()>, SqlError> {
    let mut scanner = Scanner::new(sql);
    let mut scratch = Vec::new();
    if scanner.begin_values().is_none() {
        return Ok(None);
    }
    for row in 1.. {
        let start = scanner.at();
        if scan_row(&mut scanner, loader, &mut scratch, row)?.is_none() {
            return Ok(None);
        }
        loader.end_row(Unshown(&sql[start..scanner.at()]));
        match scanner.another_row() {
            Some(true) => {}
            Some(false) => break,
            None => return Ok(None),
        }
    }
    Ok(Some(()))
}

/// One row from its `(` to its `)`.
#[inline]
fn scan_row(
    scanner: &mut Scanner<'_>,
    loader: &mut Loader<'_>,
    scratch: &mut Vec<u8>,
    row: u64,
) -> Result<Option<()>, SqlError> {
    if scanner.open_row().is_none() {
        return Ok(None);
    }
    if scanner.close_empty_row() {
        return put_default_row(loader).map(Some);
    }
    let fields = loader.target.field_count();
    let mut field = 0;
    loop {
        // The most common literals are put without an intermediate form.
        if let Some(text) = scanner.plain_text() {
            if field < fields {
                loader.put_text(field, text);
            }
        } else if let Some(number) = scanner.plain_number() {
            if field < fields {
                loader.put_number(field, number);
            }
        } else if scanner.begins_nested() {
            let Some(column) = loader.target.column_of(field) else { return Ok(None) };
            if !column.data_type.is_nested()
                || scanner.nested(scratch, !has_integers(column.data_type)).is_none()
            {
                return Ok(None);
            }
            loader.put_text(field, scratch);
        } else {
            let Some(cell) = scanner.literal(scratch) else { return Ok(None) };
            if field < fields {
                loader.put(field, cell);
            }
        }
        let Some(is_last) = scanner.after_literal() else { return Ok(None) };
        field += 1;
        if is_last {
            break;
        }
    }
    if field == fields { Ok(Some(())) } else { Err(count_mismatch(row)) }
}

/// Whether values of a type contain integers: a number with a point is invalid as a text, and is truncated as a number.
fn has_integers(data_type: DataType) -> bool {
    match data_type {
        DataType::Nested(nested) => match nested.kept() {
            NestedType::Array(item) => has_integers(*item),
            NestedType::Map(key, value) => has_integers(*key) || has_integers(*value),
            NestedType::Struct(fields) => fields.iter().any(|field| has_integers(field.data_type)),
        },
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::LargeInt => {
            true
        }
        _ => false,
    }
}

/// `()`: every column's default.
pub(crate) fn put_default_row(loader: &mut Loader<'_>) -> Result<(), SqlError> {
    if loader.target.has_column_list {
        let text = "value list should not be empty if columns are specified";
        return Err(SqlError::detail(ErrorCode::Syntax, text));
    }
    (0..loader.target.field_count()).try_for_each(|field| loader.put_default(field))
}

#[cfg(test)]
mod tests;
