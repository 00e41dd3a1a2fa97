//! The rules of AUTO_INCREMENT, in Doris's words.

use super::refused;
use crate::ast::ColumnSpec;
use tributary_types::{ColumnDef, DataType, ErrorCode, KeyModel, SqlError};

/// The start of the column's values, if the server generates them.
pub(super) fn of_column(spec: &ColumnSpec, nullable: bool) -> Result<Option<i64>, SqlError> {
    let Some(start) = spec.auto_increment else { return Ok(None) };
    let wrong = |code, text: &str| Err(SqlError::detail(code, format!("{text} (column '{}')", spec.name)));
    if nullable {
        return wrong(ErrorCode::AutoIncrementNullable, "the auto increment column should be NOT NULL.");
    }
    if spec.default.is_some() {
        return wrong(ErrorCode::AutoIncrementDefault, "the auto increment column can't have default value.");
    }
    let is_int_of_mysql = spec.is_of_mysql && spec.data_type == DataType::Int;
    if spec.data_type != DataType::BigInt && !is_int_of_mysql {
        return wrong(ErrorCode::AutoIncrementType, "the auto increment must be BIGINT type.");
    }
    Ok(Some(start))
}

/// Whether a new table may have the columns that do.
pub(super) fn check(model: KeyModel, columns: &[ColumnDef]) -> Result<(), SqlError> {
    let mut increments = columns.iter().filter(|column| column.auto_increment.is_some());
    let Some(column) = increments.next() else { return Ok(()) };
    if model.is_aggregate() {
        return Err(SqlError::detail(
            ErrorCode::AutoIncrementModel,
            format!(
                "the auto increment is only supported in duplicate table and unique table. (column '{}')",
                column.name
            ),
        ));
    }
    match increments.next() {
        Some(second) => Err(SqlError::detail(
            ErrorCode::AutoIncrementTwice,
            format!(
                "there can be at most one auto increment column in OlapTable. (columns '{}' and '{}')",
                column.name, second.name
            ),
        )),
        None => Ok(()),
    }
}

/// Refuses the column as a partition column: its values are generated only once it is known that a row has a partition.
pub(super) fn check_partition_column(column: &ColumnDef) -> Result<(), SqlError> {
    match column.auto_increment {
        Some(_) => Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "AUTO_INCREMENT of the partition column '{}' is not supported: divide the table by another column",
                column.name
            ),
        )),
        None => Ok(()),
    }
}

/// Refuses adding such a column.
pub(super) fn check_added(spec: &ColumnSpec) -> Result<(), SqlError> {
    match spec.auto_increment {
        Some(_) => Err(refused(format!("Can not add auto-increment column {}", spec.name))),
        None => Ok(()),
    }
}

/// Checks MODIFY COLUMN. The start value no longer matters.
pub(super) fn check_modified(old: &ColumnDef, spec: &ColumnSpec) -> Result<(), SqlError> {
    if spec.auto_increment.is_some() != old.auto_increment.is_some() {
        return Err(refused(format!("Can't modify the column[{}]'s auto-increment attribute.", old.name)));
    }
    of_column(spec, spec.nullable.unwrap_or(true)).map(|_| ())
}
