//! The errors of queries, in the words that clients see.

use arrow::datatypes::{Decimal128Type, DecimalType};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::parquet::errors::ParquetError;
use regex::{Captures, Regex};
use std::sync::LazyLock;
use tributary_table::TableError;
use tributary_types::memory::{self, MemoryFull};
use tributary_types::{ErrorCode, SqlError};

/// Name of the limit of one query's memory, in errors about it.
pub(crate) const MEMORY_PROPERTY: &str = "exec_mem_limit";

/// An error of planning as a client sees it.
#[must_use]
pub fn plan_error(error: &DataFusionError) -> SqlError {
    to_sql(error)
}

/// An error that a result's stream ended with, as a client sees it.
#[must_use]
pub fn stream_error(error: &DataFusionError) -> SqlError {
    to_sql(error)
}

/// The error of a table that can't be read.
pub(crate) fn table_error(error: TableError) -> SqlError {
    let is_old = matches!(error, TableError::TooOld { .. } | TableError::NotShown { .. });
    SqlError::detail(if is_old { ErrorCode::Busy } else { ErrorCode::Unknown }, error.to_string())
}

/// Whether a query failed because a file was not there.
#[must_use]
pub fn is_of_missing_file(error: &DataFusionError) -> bool {
    // Some readers pass the storage's error on as text.
    let text = error.to_string();
    text.contains("Object at location ") && text.contains(" not found")
}

/// A subquery used as one value gave more rows.
pub(crate) fn too_many_rows() -> SqlError {
    SqlError::detail(ErrorCode::SubqueryRows, "Subquery returns more than 1 row")
}

/// A DECIMAL has too many digits.
pub(crate) fn decimal_out_of_range() -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "DECIMAL value is out of range: it has more than {} digits; calculate with CAST(… AS DOUBLE)",
            Decimal128Type::MAX_PRECISION
        ),
    )
}

/// The error of a calculation whose result is out of range. Of whole numbers, only quotients get here: other calculations are
/// checked, and say so themselves.
fn overflow(error: &DataFusionError) -> Option<SqlError> {
    let text = match error {
        DataFusionError::ArrowError(arrow, _) => match arrow.as_ref() {
            ArrowError::ArithmeticOverflow(text) => text,
            _ => return None,
        },
        // Of means.
        DataFusionError::Execution(text) if text.starts_with("Arithmetic Overflow in") => text,
        _ => return None,
    };
    Some(match text.rsplit_once(": ") {
        Some((_, calculation)) if calculation.contains(" / ") => bigint_out_of_range(calculation),
        _ => decimal_out_of_range(),
    })
}

/// A calculation's BIGINT is out of range.
pub(crate) fn bigint_out_of_range(calculation: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "BIGINT value is out of range in '{calculation}'; calculate with CAST(… AS LARGEINT) or AS DOUBLE"
        ),
    )
}

/// Carries a [`SqlError`] through DataFusion unchanged.
pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn to_sql(error: &DataFusionError) -> SqlError {
    let detail = |text: String| SqlError::detail(ErrorCode::Unknown, text);
    let root = error.find_root();
    if let Some(error) = data_file_error(root).or_else(|| overflow(root)) {
        return error;
    }
    match root {
        DataFusionError::External(inner) => match inner.downcast_ref::<SqlError>() {
            Some(own) => own.clone(),
            None => detail(inner.to_string()),
        },
        DataFusionError::SchemaError(schema, _) => schema_error(schema),
        DataFusionError::ResourcesExhausted(text) if text.contains(MEMORY_PROPERTY) => detail(format!(
            "the query needs more memory than its user's queries may take: {}. SET PROPERTY FOR the user raises it; or make \
             the query smaller",
            first_line(text)
        )),
        DataFusionError::ResourcesExhausted(text) if text.contains(memory::SETTING) => {
            SqlError::detail(ErrorCode::Busy, first_line(text))
        }
        DataFusionError::ResourcesExhausted(text) => detail(format!(
            "the query needs more memory than the server's queries may take: {}. \
             Raise exec_mem_limit or make the query smaller",
            first_line(text)
        )),
        DataFusionError::Plan(text) => planner_error(text),
        DataFusionError::Execution(text)
            if text.starts_with("Scalar subquery returned more than one row") =>
        {
            too_many_rows()
        }
        DataFusionError::Execution(text) => detail(first_line(text).to_owned()),
        DataFusionError::NotImplemented(text) => {
            SqlError::detail(ErrorCode::NotSupported, format!("not supported yet: {}", first_line(text)))
        }
        other => detail(first_line(&other.strip_backtrace()).to_owned()),
    }
}

/// The error that a data file's reader reports in its own words.
fn data_file_error(error: &DataFusionError) -> Option<SqlError> {
    let DataFusionError::ParquetError(parquet) = error else { return None };
    let ParquetError::External(inner) = parquet.as_ref() else { return None };
    match inner.downcast_ref::<MemoryFull>() {
        Some(full) => Some(SqlError::from(*full)),
        None => inner.is::<TableError>().then(|| SqlError::detail(ErrorCode::Unknown, inner.to_string())),
    }
}

fn schema_error(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, .. } => SqlError::detail(
            ErrorCode::UnknownColumn,
            format!("Unknown column '{}' in 'table list'", field.name),
        ),
        SchemaError::AmbiguousReference { field } => SqlError::detail(
            ErrorCode::NonUnique,
            format!("Column '{}' in field list is ambiguous", field.name),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::detail(ErrorCode::DuplicateColumn, format!("Duplicate column name '{name}'"))
        }
    }
}

/// DataFusion's texts that have a counterpart in Doris.
fn planner_error(text: &str) -> SqlError {
    let line = first_line(text);
    if let Some(rest) = line.strip_prefix("Invalid function '")
        && let Some((name, _)) = rest.split_once('\'')
    {
        return SqlError::detail(ErrorCode::UnknownFunction, format!("Can not found function '{name}'"));
    }
    SqlError::detail(ErrorCode::Unknown, in_sql_words(line))
}

/// The text with the names that SQL has for Arrow's types.
fn in_sql_words(text: &str) -> String {
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"\b(Utf8View|LargeUtf8|Utf8|U?Int(?:8|16|32|64)|Float(?:32|64)|Boolean|Date32|Timestamp\([^)]*\)|Decimal128)";
        Regex::new(names).expect("the pattern is one")
    });
    let word = |found: &Captures<'_>| match &found[1] {
        "Utf8View" | "LargeUtf8" | "Utf8" => "text",
        "Int8" => "tinyint",
        "Int16" => "smallint",
        "Int32" => "int",
        "Int64" => "bigint",
        unsigned if unsigned.starts_with('U') => "bigint unsigned",
        "Float32" => "float",
        "Float64" => "double",
        "Boolean" => "boolean",
        "Date32" => "date",
        "Decimal128" => "decimal",
        _ => "datetime",
    };
    TYPE.replace_all(text, word).replace("List(", "array(")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// The error for a table that does not exist.
#[must_use]
pub fn no_table(database: &str, name: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::NoSuchTable,
        format!("Table [{name}] does not exist in database [{database}]."),
    )
}

/// The error for a database that does not exist.
#[must_use]
pub fn no_database(database: &str) -> SqlError {
    SqlError::detail(ErrorCode::UnknownDatabase, format!("Database [{database}] does not exist."))
}
