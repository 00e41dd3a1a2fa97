//! Type changes of ARRAY, MAP and STRUCT columns that Doris allows: additional fields at the end of a STRUCT, and longer
//! VARCHARs, at any level. Both are light changes: existing values stay as they are and have NULL in the new fields.

use super::refused;
use tributary_types::nested::{Nested, NestedType, StructField};
use tributary_types::{ColumnDef, DataType, SqlError};

/// # Errors
/// Doris does not allow the change, in its words.
pub(super) fn check(column: &ColumnDef, from: Nested, to: Nested) -> Result<(), SqlError> {
    match (from.kept(), to.kept()) {
        (NestedType::Array(from), NestedType::Array(to)) => part(column, *from, *to),
        (NestedType::Map(key, value), NestedType::Map(to_key, to_value)) => {
            part(column, *key, *to_key)?;
            part(column, *value, *to_value)
        }
        (NestedType::Struct(old), NestedType::Struct(new)) => {
            if new.len() < old.len() {
                return Err(refused(format!(
                    "Cannot reduce struct fields from {from} to {to} (column '{}')",
                    column.name
                )));
            }
            fields(column, old, new)
        }
        _ => Err(within(column, DataType::Nested(from), DataType::Nested(to))),
    }
}

fn fields(column: &ColumnDef, from: &[StructField], to: &[StructField]) -> Result<(), SqlError> {
    for (from, to) in from.iter().zip(to) {
        // Names are in lower case.
        if from.name != to.name {
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
        (DataType::Nested(from), DataType::Nested(to)) => check(column, from, to),
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
