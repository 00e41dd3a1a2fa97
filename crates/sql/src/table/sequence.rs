//! The undeclared columns of tables with UNIQUE KEY: the delete sign, the sequence, and the set of columns that a row gives.

use super::{find, refused};
use std::collections::BTreeMap;
use tributary_types::{ColumnDef, ColumnId, DataType, FLEXIBLE_UPDATES, HiddenColumn, KeyModel, SqlError};

/// The column whose greatest value decides which row of a key stays.
pub const SEQUENCE_COL: &str = "function_column.sequence_col";
/// The type of a hidden column that does so.
pub const SEQUENCE_TYPE: &str = "function_column.sequence_type";

/// Digits of a second that a sequence of DATETIMEs has.
const SEQUENCE_DIGITS: u8 = 6;

/// Adds the hidden columns that the table needs. Returns the id of the column that decides, if one does.
///
/// # Errors
/// Doris's rules for sequences that the properties break.
pub(super) fn add_hidden(
    keys: KeyModel,
    properties: &mut BTreeMap<String, String>,
    columns: &mut Vec<ColumnDef>,
) -> Result<Option<ColumnId>, SqlError> {
    let is_flexible = properties.get(FLEXIBLE_UPDATES).is_some_and(|value| value == "true");
    if is_flexible && !keys.is_unique() {
        return Err(refused(format!("{FLEXIBLE_UPDATES} property only support unique key table")));
    }
    let (named, typed) = (properties.get(SEQUENCE_COL).cloned(), properties.get(SEQUENCE_TYPE).cloned());
    if !keys.is_unique() {
        return match named.or(typed) {
            Some(_) => Err(refused("sequence column only support UNIQUE_KEYS")),
            None => Ok(None),
        };
    }
    let mut next_id = super::FIRST_COLUMN_ID.0 + columns.len() as u32;
    let mut hide = |columns: &mut Vec<ColumnDef>, what, data_type| {
        columns.push(ColumnDef::hidden(next_id, what, data_type));
        next_id += 1;
        ColumnId(next_id - 1)
    };
    let (named, hidden_type) = match (named, typed) {
        (Some(_), Some(_)) => {
            return Err(refused("The sequence_col and sequence_type cannot be set at the same time"));
        }
        (Some(name), None) => {
            let Some(column) = find(columns, &name) else {
                return Err(refused(format!("The specified sequence column[{name}] not exists")));
            };
            if !may_be_sequence(column.data_type) {
                return Err(refused("Sequence type only support integer types and date types"));
            }
            properties.insert(SEQUENCE_COL.to_owned(), column.name.clone());
            (Some(column.id), None)
        }
        (None, Some(text)) => {
            let Some(data_type) = sequence_type(&text) else {
                return Err(refused("sequence type only support integer types and date types"));
            };
            properties.insert(SEQUENCE_TYPE.to_owned(), text.trim().to_ascii_lowercase());
            (None, Some(data_type))
        }
        (None, None) => (None, None),
    };
    hide(columns, HiddenColumn::DeleteSign, DataType::TinyInt);
    let sequence = match hidden_type {
        Some(data_type) => Some(hide(columns, HiddenColumn::Sequence, data_type)),
        None => named,
    };
    if is_flexible {
        hide(columns, HiddenColumn::Given, DataType::String);
    }
    Ok(sequence)
}

fn may_be_sequence(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::TinyInt
            | DataType::SmallInt
            | DataType::Int
            | DataType::BigInt
            | DataType::LargeInt
            | DataType::Date
            | DataType::DateTime { .. }
    )
}

fn sequence_type(text: &str) -> Option<DataType> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "tinyint" => DataType::TinyInt,
        "smallint" => DataType::SmallInt,
        "int" | "integer" => DataType::Int,
        "bigint" => DataType::BigInt,
        "largeint" => DataType::LargeInt,
        "date" | "datev2" => DataType::Date,
        "datetime" | "datetimev2" => DataType::DateTime { scale: SEQUENCE_DIGITS },
        _ => return None,
    })
}
