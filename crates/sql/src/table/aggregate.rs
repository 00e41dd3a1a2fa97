//! Aggregations of value columns: which tables allow them, and of which types.

use super::refused;
use tributary_types::{Aggregation, ColumnDef, DataType, DefaultValue, KeyModel, SqlError, TableDef};

/// Checks the aggregations of a new table, whose key columns are known, and completes them.
///
/// # Errors
/// Doris's rules that the columns break.
pub(super) fn check(model: KeyModel, columns: &mut [ColumnDef]) -> Result<(), SqlError> {
    for column in columns {
        match (model, column.aggregation) {
            (_, Some(_)) if column.is_key => {
                return Err(refused(format!("Key column {} can not set aggregation type", column.name)));
            }
            // Doris does not refuse it either: the last row replaces earlier ones.
            (KeyModel::Unique, _) => column.aggregation = None,
            (KeyModel::Duplicate { .. }, Some(aggregation)) => {
                return Err(refused(format!(
                    "column '{}': the aggregation {} needs a table with AGGREGATE KEY",
                    column.name,
                    aggregation.name()
                )));
            }
            (KeyModel::Duplicate { .. }, None) => {}
            (KeyModel::Aggregate, _) => check_column(column)?,
        }
    }
    Ok(())
}

/// Checks a column of a table with AGGREGATE KEY, and completes its default.
fn check_column(column: &mut ColumnDef) -> Result<(), SqlError> {
    if column.is_key {
        return Ok(());
    }
    let Some(aggregation) = column.aggregation else {
        if column.data_type.is_state() {
            return Err(refused(format!("complex type have to use aggregate function: {}", column.name)));
        }
        return Err(refused("should set aggregation type to non-key column in aggregate key table"));
    };
    if let DataType::Nested(nested) = column.data_type
        && !aggregation.replaces()
    {
        return Err(refused(format!(
            "{} column can't support aggregation {}",
            nested.base_name(),
            aggregation.name()
        )));
    }
    if !aggregation.takes(column.data_type) {
        return Err(not_of_type(aggregation, column));
    }
    if aggregation == Aggregation::ReplaceIfNotNull {
        if !column.nullable {
            return Err(refused(format!(
                "REPLACE_IF_NOT_NULL column must be nullable, maybe should use REPLACE, column:{}",
                column.name
            )));
        }
        column.default.get_or_insert(DefaultValue::Null);
    }
    Ok(())
}

/// The error for an aggregation that the column's type does not have.
pub(super) fn not_of_type(aggregation: Aggregation, column: &ColumnDef) -> SqlError {
    refused(format!(
        "Aggregate type {} is not compatible with primitive type {}",
        aggregation.name(),
        column.data_type
    ))
}

/// Checks the aggregation of a column that a table gets.
///
/// # Errors
/// Doris's rules that it breaks.
pub(super) fn check_added(def: &TableDef, column: &mut ColumnDef) -> Result<(), SqlError> {
    if column.is_key {
        return Ok(());
    }
    let model = match (def.keys, column.aggregation) {
        (KeyModel::Aggregate, _) | (_, None) => {
            return if def.keys.is_aggregate() { check_added_value(column) } else { Ok(()) };
        }
        (KeyModel::Unique, Some(_)) => "Unique",
        (KeyModel::Duplicate { .. }, Some(_)) => "Duplicate",
    };
    Err(refused(format!(
        "Can not assign aggregation method on column in {model} data model table: {}",
        column.name
    )))
}

fn check_added_value(column: &mut ColumnDef) -> Result<(), SqlError> {
    check_column(column)?;
    let is_zero = match &column.default {
        None | Some(DefaultValue::Null) => true,
        Some(DefaultValue::Literal(text)) => text.trim().parse::<f64>().is_ok_and(|value| value == 0.0),
        Some(_) => false,
    };
    if column.aggregation == Some(Aggregation::Sum) && !is_zero {
        return Err(refused(format!(
            "The default value of '{}' with SUM aggregation function must be zero",
            column.name
        )));
    }
    Ok(())
}
