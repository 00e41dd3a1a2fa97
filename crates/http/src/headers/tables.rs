//! Headers that only tables of a kind can obey.

use super::{HeaderError, Headers};
use crate::request::{MergeHeaders, MergeType, TableHeaders};
use tributary_types::PartitionNames;

/// Which tables the load needs. The headers `refused` are among those that are not obeyed.
///
/// # Errors
/// A header that is illegal whatever the table.
pub(super) fn table_headers(
    headers: Headers<'_>,
    refused: Option<&MergeHeaders>,
    is_json: bool,
) -> Result<TableHeaders, HeaderError> {
    Ok(TableHeaders {
        partitions: partitions_header(headers)?,
        unique: unique_table_header(headers, refused, is_json)?,
    })
}

/// The partitions that a header names.
fn partitions_header(headers: Headers<'_>) -> Result<PartitionNames, HeaderError> {
    let names = |text: &str| {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    match (headers.text("partitions")?, headers.text("temporary_partitions")?) {
        (Some(_), Some(_)) => {
            Err(HeaderError::invalid("Can not specify both partitions and temporary partitions"))
        }
        (Some(text), None) => Ok(PartitionNames::Named(names(text))),
        (None, Some(text)) => Ok(PartitionNames::Temporary(names(text))),
        (None, None) => Ok(PartitionNames::Any),
    }
}

/// What the load says of its rows.
///
/// # Errors
/// See [`merge_type`].
pub(super) fn merge_headers(headers: Headers<'_>) -> Result<MergeHeaders, HeaderError> {
    let names = headers.text("hidden_columns")?.unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(MergeHeaders {
        merge_type: merge_type(headers)?,
        delete: headers.owned("delete")?,
        hidden_columns: names.map(str::to_owned).collect(),
        sequence_col: headers.owned("function_column.sequence_col")?,
    })
}

/// What the rows do.
///
/// # Errors
/// An unknown type, or a condition in `delete` that does not fit it.
fn merge_type(headers: Headers<'_>) -> Result<MergeType, HeaderError> {
    let merge_type = match headers.text("merge_type")? {
        None => MergeType::Append,
        Some(text) if text.eq_ignore_ascii_case("append") => MergeType::Append,
        Some(text) if text.eq_ignore_ascii_case("delete") => MergeType::Delete,
        Some(text) if text.eq_ignore_ascii_case("merge") => MergeType::Merge,
        Some(text) => return Err(HeaderError::invalid(format!("Invalid merge type {text}"))),
    };
    match (merge_type, headers.text("delete")?) {
        (MergeType::Merge, None) => {
            Err(HeaderError::invalid("Excepted DELETE ON clause when merge type is MERGE."))
        }
        (MergeType::Append | MergeType::Delete, Some(_)) => {
            Err(HeaderError::invalid("Not support DELETE ON clause when merge type is not MERGE."))
        }
        (merge_type, _) => Ok(merge_type),
    }
}

/// The first header that asks for what only a Unique table can do.
fn unique_table_header(
    headers: Headers<'_>,
    refused: Option<&MergeHeaders>,
    is_json: bool,
) -> Result<Option<&'static str>, HeaderError> {
    let mode = headers.text("unique_key_update_mode")?.unwrap_or("UPSERT").to_ascii_uppercase();
    match mode.as_str() {
        "UPSERT" | "UPDATE_FIXED_COLUMNS" => {}
        "UPDATE_FLEXIBLE_COLUMNS" if is_json => {}
        "UPDATE_FLEXIBLE_COLUMNS" => {
            return Err(HeaderError::invalid(
                "flexible partial update only support json format as input file currently",
            ));
        }
        _ => {
            return Err(HeaderError::invalid(format!(
                "Invalid unique_key_partial_mode {mode}, must be one of 'UPSERT', 'UPDATE_FIXED_COLUMNS' or \
                 'UPDATE_FLEXIBLE_COLUMNS'"
            )));
        }
    }
    let rejects_new_keys = rejects_new_keys(headers)?;
    let asked = [
        ("merge_type", refused.is_some_and(|it| it.merge_type != MergeType::Append)),
        ("unique_key_update_mode", mode != "UPSERT"),
        ("partial_columns", headers.flag("partial_columns")?),
        ("hidden_columns", refused.is_some_and(|it| !it.hidden_columns.is_empty())),
        ("function_column.sequence_col", refused.is_some_and(|it| it.sequence_col.is_some())),
        ("negative", headers.flag("negative")?),
        ("partial_update_new_key_behavior", rejects_new_keys),
    ];
    Ok(asked.into_iter().find_map(|(name, asked)| asked.then_some(name)))
}

/// Whether rows with new keys are to fail a partial update.
fn rejects_new_keys(headers: Headers<'_>) -> Result<bool, HeaderError> {
    let Some(text) = headers.text("partial_update_new_key_behavior")? else { return Ok(false) };
    let text = text.to_ascii_uppercase();
    match text.as_str() {
        "APPEND" => Ok(false),
        "ERROR" => Ok(true),
        _ => Err(HeaderError::invalid(format!(
            "Invalid partial_update_new_key_behavior {text}, must be one of {{'APPEND', 'ERROR'}}"
        ))),
    }
}
