//! The key columns: as declared, or derived as in Doris.

use super::properties::MERGE_ON_WRITE;
use super::{aggregate, find, refused};
use crate::ast::CreateTable;
use tributary_types::data_type::VARCHAR_BYTES_MAX;
use tributary_types::{ColumnDef, DataType, ErrorCode, KeyModel, NestedType, SqlError, TableProperties};

/// The most columns that derived keys have …
const DERIVED_COLUMNS_MAX: usize = 3;
/// … and the most bytes in Doris's index.
const DERIVED_BYTES_MAX: u32 = 36;
/// With this property, a table without a key clause has no key columns.
const WITHOUT_KEYS: &str = "enable_duplicate_without_keys_by_default";

/// Sets `is_key` of the columns and returns the key model.
pub(super) fn mark(
    create: &CreateTable,
    properties: &TableProperties,
    columns: &mut [ColumnDef],
) -> Result<KeyModel, SqlError> {
    let marked: Vec<String> =
        columns.iter().filter(|column| column.is_key).map(|column| column.name.clone()).collect();
    let (model, clause) = (create.model, create.model.clause());
    let (names, declared) = match &create.keys {
        Some(names) => {
            check_marks(&marked, names, clause)?;
            (names.clone(), true)
        }
        None if model.is_aggregate() => (before_aggregated(columns), true),
        None if !marked.is_empty() => (marked, true),
        None if properties.others.get(WITHOUT_KEYS).is_some_and(|value| value == "true") => {
            (Vec::new(), false)
        }
        None => (derive(columns)?, false),
    };
    check_order(&names, columns)?;
    columns.iter_mut().enumerate().for_each(|(index, column)| column.is_key = index < names.len());
    match columns.iter().find(|column| column.is_key && !column.data_type.may_be_key()) {
        Some(column) => return Err(not_a_key_type_of(model, column)),
        None => aggregate::check(model, columns)?,
    }
    match model {
        KeyModel::Unique => Ok(model),
        _ if properties.others.contains_key(MERGE_ON_WRITE) => {
            Err(refused(format!("{MERGE_ON_WRITE} property only support unique key table")))
        }
        KeyModel::Aggregate => Ok(model),
        KeyModel::Duplicate { .. } => Ok(KeyModel::Duplicate { declared }),
    }
}

/// The columns before the first that has an aggregation.
fn before_aggregated(columns: &[ColumnDef]) -> Vec<String> {
    let keys = columns.iter().take_while(|column| column.aggregation.is_none());
    keys.map(|column| column.name.clone()).collect()
}

/// `KEY` behind a column must not contradict the key clause.
fn check_marks(marked: &[String], names: &[String], clause: &str) -> Result<(), SqlError> {
    let is_named = |mark: &String| names.iter().any(|name| name.eq_ignore_ascii_case(mark));
    match marked.iter().find(|mark| !is_named(mark)) {
        Some(mark) => {
            Err(refused(format!("column '{mark}' is marked KEY but is not in {clause}(…): add it there")))
        }
        None => Ok(()),
    }
}

/// Key columns are first and in the order of the clause.
fn check_order(names: &[String], columns: &[ColumnDef]) -> Result<(), SqlError> {
    for (index, name) in names.iter().enumerate() {
        if find(columns, name).is_none() {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("Key columns doesn't exist: column '{name}'"),
            ));
        }
        if names[..index].iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(refused(format!("Duplicate key column '{name}'")));
        }
        if !columns[index].name.eq_ignore_ascii_case(name) {
            return Err(refused(format!(
                "Key columns should be a ordered prefix of the schema. KeyColumns[{index}] (starts from zero) is {name}, \
                 but corresponding column is {} in the previous columns declaration.",
                columns[index].name
            )));
        }
    }
    Ok(())
}

/// The first columns, up to [`DERIVED_COLUMNS_MAX`] and [`DERIVED_BYTES_MAX`]; a VARCHAR or VARBINARY ends them.
pub(super) fn derive(columns: &[ColumnDef]) -> Result<Vec<String>, SqlError> {
    let mut names: Vec<String> = Vec::new();
    let mut bytes = 0;
    for column in columns {
        bytes += index_bytes(column.data_type);
        let is_full = names.len() >= DERIVED_COLUMNS_MAX || bytes > DERIVED_BYTES_MAX;
        if !column.data_type.may_be_key() || (is_full && !names.is_empty()) {
            break;
        }
        names.push(column.name.clone());
        if is_full || matches!(column.data_type, DataType::Varchar { .. } | DataType::Varbinary { .. }) {
            break;
        }
    }
    match columns.first() {
        Some(first) if names.is_empty() => Err(not_a_key_type(first)),
        _ => Ok(names),
    }
}

/// Bytes of a column in Doris's short key index.
fn index_bytes(data_type: DataType) -> u32 {
    match data_type {
        DataType::Boolean | DataType::TinyInt => 1,
        DataType::SmallInt => 2,
        DataType::Int | DataType::Float | DataType::Ipv4 => 4,
        DataType::Date => 3,
        DataType::BigInt | DataType::Double | DataType::DateTime { .. } => 8,
        DataType::LargeInt | DataType::Decimal { .. } | DataType::Ipv6 => 16,
        DataType::Char { bytes } => bytes,
        DataType::Time { .. }
        | DataType::Varchar { .. }
        | DataType::String
        | DataType::Json
        | DataType::Variant
        | DataType::Nested(_)
        | DataType::Varbinary { .. }
        | DataType::Bitmap
        | DataType::Hll => 20,
    }
}

/// The error for a key column of a type that no key has.
pub(super) fn not_a_key_type_of(model: KeyModel, column: &ColumnDef) -> SqlError {
    if model.keeps_all_rows() { not_a_key_type(column) } else { not_a_unique_key_type(column) }
}

/// Doris's texts.
fn not_a_unique_key_type(column: &ColumnDef) -> SqlError {
    let name = &column.name;
    refused(match column.data_type {
        DataType::Float | DataType::Double => {
            format!("Float or double can not used as a key, use decimal instead. (column '{name}')")
        }
        DataType::Time { .. } => format!("Time Type should not be used in key column[{name}]."),
        DataType::String => format!("String Type should not be used in key column[{name}]."),
        DataType::Variant => format!("Variant type should not be used in key column[{name}]."),
        DataType::Nested(nested) => {
            let type_name = match &*nested {
                NestedType::Array(_) => "Array",
                NestedType::Map(..) => "Map",
                NestedType::Struct(_) => "Struct",
            };
            format!(
                "{type_name} can only be used in the non-key column of the duplicate table at present. (column '{name}')"
            )
        }
        DataType::Varbinary { .. } => {
            format!(
                "Varbinary Type of more than {VARCHAR_BYTES_MAX} bytes should not be used in key column[{name}]."
            )
        }
        DataType::Bitmap | DataType::Hll => format!("Key column can not set complex type:{name}"),
        _ => format!("JsonType type should not be used in key column[{name}]."),
    })
}

fn not_a_key_type(column: &ColumnDef) -> SqlError {
    if column.data_type.is_state() {
        return refused(format!("Key column can not set complex type:{}", column.name));
    }
    let instead = match column.data_type {
        DataType::Float | DataType::Double => "use DECIMAL",
        DataType::Nested(_) => "use it as a value column",
        DataType::Varbinary { .. } => "use VARBINARY(n) with a shorter length",
        _ => "use VARCHAR",
    };
    refused(format!(
        "column '{}' of type {} cannot be a key column (without DUPLICATE KEY(…) the first columns are the key): \
         {instead}, or put another column first",
        column.name,
        column.data_type.base_name()
    ))
}
