//! What Doris allows when the type of a column of ARRAY, MAP or STRUCT changes: further fields at the end and longer texts within. Neither is
//! made yet, and both are refused by name.

use super::refused;
use tributary_types::nested::{Nested, NestedType, StructField};
use tributary_types::{ColumnDef, DataType, ErrorCode, SqlError};

/// # Errors
/// The change is none that Doris allows, in its words; or it is not supported.
pub(super) fn check(column: &ColumnDef, from: Nested, to: Nested) -> Result<(), SqlError> {
    parts(column, from, to)?;
    Err(SqlError::detail(
        ErrorCode::NotSupported,
        format!(
            "changing column '{}' from {} to {} is not supported yet: create a new table and INSERT … SELECT",
            column.name,
            DataType::Nested(from),
            DataType::Nested(to)
        ),
    ))
}

fn parts(column: &ColumnDef, from: Nested, to: Nested) -> Result<(), SqlError> {
    match (from.kept(), to.kept()) {
        (NestedType::Array(from), NestedType::Array(to)) => part(column, *from, *to),
        (NestedType::Map(key, value), NestedType::Map(to_key, to_value)) => {
            part(column, *key, *to_key)?;
            part(column, *value, *to_value)
        }
        (NestedType::Struct(from), NestedType::Struct(to)) => fields(column, from, to),
        _ => Err(within(column, DataType::Nested(from), DataType::Nested(to))),
    }
}

fn fields(column: &ColumnDef, from: &[StructField], to: &[StructField]) -> Result<(), SqlError> {
    if to.len() < from.len() {
        return Err(refused(format!(
            "Cannot reduce struct fields from {} to {} (column '{}')",
            from.len(),
            to.len(),
            column.name
        )));
    }
    for (from, to) in from.iter().zip(to) {
        if !from.name.eq_ignore_ascii_case(&to.name) {
            return Err(refused(format!(
                "Cannot rename struct field from '{}' to '{}' (column '{}')",
                from.name, to.name, column.name
            )));
        }
        part(column, from.data_type, to.data_type)?;
    }
    Ok(())
}

fn part(column: &ColumnDef, from: DataType, to: DataType) -> Result<(), SqlError> {
    match (from, to) {
        (from, to) if from == to => Ok(()),
        (DataType::Nested(from), DataType::Nested(to)) => parts(column, from, to),
        (DataType::Varchar { bytes: old }, DataType::Varchar { bytes: new }) if old > new => {
            Err(refused(format!(
                "Shorten type length is prohibited, srcType={from}, dstType={to} (column '{}')",
                column.name
            )))
        }
        (DataType::Varchar { .. }, DataType::Varchar { .. }) => Ok(()),
        _ => Err(within(column, from, to)),
    }
}

fn within(column: &ColumnDef, from: DataType, to: DataType) -> SqlError {
    refused(format!("Cannot change {from} to {to} in nested types (column '{}')", column.name))
}
