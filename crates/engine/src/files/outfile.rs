//! Rows that become files of others: what `SELECT … INTO OUTFILE` and EXPORT share.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `form` | properties say how files are written |
//! | `lines` | lines of text files |
//! | `writing` | a query's rows become files, by several writers at a time |
//!
//! Invariant: files of a result that fails, is interrupted or is given up are deleted.
//!
//! Not its business: where files go and how they are encoded, which the crate `files` knows; statements.

mod form;
mod lines;
mod writing;

pub(crate) use form::{Form, file_bytes_max, form};
pub(crate) use lines::{LineFormat, Marks, RowLines};
pub(crate) use writing::{Target, Written, write};

use tributary_types::{ErrorCode, SqlError};

/// Doris's properties of a result, except those of the location.
pub(crate) const PROPERTIES: [&str; 7] = [
    "column_separator",
    "line_delimiter",
    "max_file_size",
    "success_file_name",
    "with_bom",
    "compress_type",
    "parquet.compression",
];

pub(crate) fn wrong(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
