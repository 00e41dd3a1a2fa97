//! Maps columns of a file to fields of a load.
//!
//! A field is the file's column of its name, else the first that has it in other case.

use crate::rows::target::{Fill, Target};
use crate::rows::whole::Field;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// The origins of a target's fields.
#[derive(Clone)]
pub(super) struct Mapping {
    fields: Vec<Origin>,
    /// The file's columns that are read, ascending.
    chosen: Vec<usize>,
}

#[derive(Clone)]
enum Origin {
    /// The table does not have the field.
    Nowhere,
    /// A column of the batch.
    Column(usize),
    /// The file does not have the field.
    Absent(Fill),
}

impl Mapping {
    /// Finds the target's fields. Without a column list a column that the file does not have takes its default.
    ///
    /// # Errors
    /// A field requested by name is not in the file, a column without a default is missing, or all are; or a column is nested.
    pub(super) fn of_target(schema: &Schema, target: &Target) -> Result<Self, SqlError> {
        let names = target.field_names();
        let mut fields = Vec::with_capacity(names.len());
        for (field, name) in names.iter().enumerate() {
            fields.push(match (target.column_of(field), find(schema, name)) {
                (Some(column), Some(at)) => {
                    if !column.data_type.is_nested() {
                        check_flat(schema, at)?;
                    }
                    Origin::Column(at)
                }
                (_, None) if target.has_column_list => return Err(unknown(schema, name)),
                (None, _) => Origin::Nowhere,
                (Some(column), None) => match target.fill_if_absent(column)? {
                    Fill::Missing => return Err(missing(schema, target.name_of(column))),
                    fill => Origin::Absent(fill),
                },
            });
        }
        let columns = fields.iter().filter_map(|origin| match origin {
            Origin::Column(at) => Some(*at),
            Origin::Nowhere | Origin::Absent(_) => None,
        });
        let chosen = ascending(columns);
        if chosen.is_empty() && !target.has_column_list {
            let wanted = names.join(", ");
            return Err(refused(format!(
                "none of the table's columns ({wanted}) is in the file, which has {}",
                listed(schema)
            )));
        }
        for origin in &mut fields {
            if let Origin::Column(at) = origin {
                *at = place(&chosen, *at);
            }
        }
        Ok(Self { fields, chosen })
    }

    /// The file's columns that are needed.
    pub(super) fn chosen(&self) -> Vec<usize> {
        self.chosen.clone()
    }

    /// The fields of a batch that has the chosen columns.
    pub(super) fn fields(&self, batch: &RecordBatch) -> Vec<Field> {
        self.fields
            .iter()
            .map(|origin| match origin {
                Origin::Nowhere => Field::Ignored,
                Origin::Column(at) => Field::Array(Arc::clone(batch.column(*at))),
                Origin::Absent(fill) => Field::Absent(fill.clone()),
            })
            .collect()
    }
}

/// The file's columns of these names, in their order.
///
/// # Errors
/// As [`Mapping::of_target`].
pub(super) fn named(schema: &Schema, names: &[String]) -> Result<Vec<usize>, SqlError> {
    names.iter().map(|name| find(schema, name).ok_or_else(|| unknown(schema, name))).collect()
}

/// Sorted, each once.
pub(super) fn ascending(columns: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut columns: Vec<usize> = columns.into_iter().collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The index of a chosen column in batches.
pub(super) fn place(chosen: &[usize], column: usize) -> usize {
    chosen.binary_search(&column).expect("the column was chosen")
}

fn find(schema: &Schema, name: &str) -> Option<usize> {
    let fields = schema.fields();
    let exact = fields.iter().position(|field| field.name() == name);
    exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
}

fn check_flat(schema: &Schema, at: usize) -> Result<(), SqlError> {
    let field = schema.field(at);
    if !is_nested(field.data_type()) {
        return Ok(());
    }
    // Doris's words.
    Err(refused(format!(
        "Parquet/orc doesn't support complex types in broker/stream load, please use tvf(table value function) to \
         insert complex types. Column '{}' of the file is {}",
        field.name(),
        field.data_type()
    )))
}

/// Whether values consist of values.
pub(super) fn is_nested(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_nested(values),
        DataType::RunEndEncoded(_, values) => is_nested(values.data_type()),
        other => other.is_nested(),
    }
}

fn unknown(schema: &Schema, name: &str) -> SqlError {
    refused(format!("column '{name}' is not in the file, which has {}", listed(schema)))
}

fn missing(schema: &Schema, name: &str) -> SqlError {
    refused(format!("Column has no default value, column={name}, and the file has only {}", listed(schema)))
}

fn listed(schema: &Schema) -> String {
    const SHOWN_MAX: usize = 50;
    let mut names: Vec<&str> =
        schema.fields().iter().map(|field| field.name().as_str()).take(SHOWN_MAX).collect();
    if schema.fields().len() > SHOWN_MAX {
        names.push("…");
    }
    if names.is_empty() { "no columns".to_owned() } else { names.join(", ") }
}

fn refused(text: String) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
