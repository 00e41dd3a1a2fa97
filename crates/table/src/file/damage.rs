//! Telling a data file that is damaged from one that is not.
//!
//! The Parquet library trusts a footer: it adds and subtracts its numbers, and panics if that overflows. Not its business: damage
//! within pages, which their checksums reveal.

use crate::error::TableError;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`, which reads `file` and changes nothing else; its panic is an error that names the file.
pub(crate) fn guarded<T>(file: &str, work: impl FnOnce() -> Result<T, TableError>) -> Result<T, TableError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(TableError::damaged_file(file)(panic_text(panic.as_ref()))))
}

/// The text of a panic of the Parquet library about the file that it reads.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    format!("it can't be decoded ({text})")
}

impl TableError {
    pub(crate) fn damaged_file<E: Display>(file: &str) -> impl FnOnce(E) -> Self {
        move |reason| Self::DamagedFile { file: file.to_owned(), reason: reason.to_string() }
    }

    /// An error of the Parquet library about the bytes of a file.
    pub(crate) fn unreadable_file(file: &str) -> impl FnOnce(ParquetError) -> Self {
        move |error| match error {
            ParquetError::NYI(_) => Self::parquet(format!("reading the data file {file}"))(error),
            error => Self::damaged_file(file)(error),
        }
    }
}

/// Why a footer can't be that of a file of `file_bytes` bytes and, if that is known, of `rows` rows.
#[must_use]
pub fn footer_fault(metadata: &ParquetMetaData, file_bytes: u64, rows: Option<u64>) -> Option<String> {
    let mut found: u64 = 0;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let Ok(count) = u64::try_from(group.num_rows()) else {
            return Some(format!("its footer says that row group {number} has {} rows", group.num_rows()));
        };
        found = found.saturating_add(count);
        for column in group.columns() {
            if let Some(fault) = column_fault(column, group.num_rows(), file_bytes) {
                let name = column.column_path().string();
                return Some(format!("its footer says of column '{name}' in row group {number}: {fault}"));
            }
        }
    }
    let said = metadata.file_metadata().num_rows();
    if u64::try_from(said) != Ok(found) {
        return Some(format!("its footer says that it has {said} rows, and {found} in its row groups"));
    }
    rows.filter(|&rows| rows != found)
        .map(|rows| format!("its footer says that it has {found} rows, and the table's log says {rows}"))
}

fn column_fault(column: &ColumnChunkMetaData, rows: i64, file_bytes: u64) -> Option<String> {
    let first = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let places = [
        ("pages", Some(first), Some(column.compressed_size())),
        ("data pages", Some(column.data_page_offset()), Some(0)),
        ("column index", column.column_index_offset(), column.column_index_length().map(i64::from)),
        ("offset index", column.offset_index_offset(), column.offset_index_length().map(i64::from)),
        (
            "bloom filter",
            column.bloom_filter_offset(),
            Some(column.bloom_filter_length().unwrap_or(0).into()),
        ),
    ];
    for (what, offset, bytes) in places {
        let (Some(offset), Some(bytes)) = (offset, bytes) else { continue };
        if !is_within(offset, bytes, file_bytes) {
            return Some(format!(
                "{bytes} bytes of {what} at byte {offset}, in a file of {file_bytes} bytes"
            ));
        }
    }
    if column.uncompressed_size() < 0 {
        return Some(format!("{} bytes", column.uncompressed_size()));
    }
    let is_flat = column.column_descr().max_rep_level() == 0;
    (is_flat && column.num_values() != rows)
        .then(|| format!("{} values for {rows} rows", column.num_values()))
}

fn is_within(offset: i64, bytes: i64, file_bytes: u64) -> bool {
    let (Ok(offset), Ok(bytes)) = (u64::try_from(offset), u64::try_from(bytes)) else { return false };
    offset.checked_add(bytes).is_some_and(|end| end <= file_bytes)
}

#[cfg(test)]
mod tests;
