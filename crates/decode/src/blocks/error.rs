//! Errors of a block or its use.

use arrow::error::ArrowError;
use std::fmt;
use tributary_types::{ErrorCode, SchemaVersion, SqlError};

/// Damage in a block's bytes, or a block used with a schema that it was not made for.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    #[error("block ends early: {what} needs bytes up to {end}, the block has {len}")]
    Truncated { what: &'static str, end: usize, len: usize },
    #[error("block has unknown format {0}; this version reads formats 1 (packed) and 2 (aligned)")]
    UnknownFormat(u8),
    #[error("block is damaged: {0}")]
    Damaged(String),
    #[error("block was made for schema version {found}, the schema given is version {expected}")]
    SchemaVersion { found: SchemaVersion, expected: SchemaVersion },
    #[error("block has {found} columns, the schema has {expected}")]
    ColumnCount { found: usize, expected: usize },
    #[error("column {column}: {found} where the schema needs {expected}")]
    ColumnType { column: String, found: String, expected: String },
    #[error("column {column} is NOT NULL but row {row} is null")]
    UnexpectedNull { column: String, row: usize },
    #[error(
        "column {column} was added as NOT NULL without a default, so older rows have no value for it; \
         give the column a default"
    )]
    NoValue { column: String },
    #[error("default of column {column}: {reason}")]
    BadDefault { column: String, reason: String },
    #[error("a block holds at most {limit} rows, got {rows}; split the rows")]
    TooManyRows { rows: usize, limit: usize },
    #[error(
        "{text_bytes} bytes of text in column {column} of one block, the limit is {limit}; split the rows"
    )]
    TooMuchText { column: String, text_bytes: usize, limit: usize },
    /// The type of its column has changed.
    #[error("{0}")]
    Value(#[from] BadValue),
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
}

impl From<BlockError> for SqlError {
    fn from(error: BlockError) -> Self {
        Self::detail(ErrorCode::Unknown, error.to_string())
    }
}

/// A value that the column's new type can't represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// Its place in the array.
    pub row: usize,
    /// As a reason shows it.
    pub value: String,
    pub column: String,
    pub from: String,
    pub to: String,
    pub reason: &'static str,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, column, from, to, reason, .. } = self;
        write!(f, "the value '{value}' of column '{column}' can't be converted from {from} to {to}: {reason}")
    }
}

impl std::error::Error for BadValue {}
