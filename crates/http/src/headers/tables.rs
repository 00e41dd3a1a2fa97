//! Headers that only tables of a kind can obey.

use super::{HeaderError, Headers};
use crate::request::{MergeHeaders, MergeType, TableHeaders, UpdateHeaders, UpdateMode};
use tributary_types::PartitionNames;

/// Determines the kind of table that the load needs. It does not obey the headers in `refused`.
///
/// # Errors
/// A header that is illegal whatever the table.
pub(super) fn table_headers(
    headers: Headers<'_>,
    refused: Option<(&MergeHeaders, UpdateHeaders)>,
) -> Result<TableHeaders, HeaderError> {
    Ok(TableHeaders {
        partitions: partitions_header(headers)?,
        unique: unique_table_header(headers, refused)?,
        to_single_tablet: headers.flag("load_to_single_tablet")?,
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

/// Reads the merge headers.
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
        negative: headers.flag("negative")?,
    })
}

/// Reads the effect of rows.
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

/// Reads the columns that the load updates.
///
/// # Errors
/// An unknown mode, one that the body's format does not have, or an unknown behaviour.
pub(super) fn update_headers(headers: Headers<'_>, is_json: bool) -> Result<UpdateHeaders, HeaderError> {
    let by_flag = if headers.flag("partial_columns")? { UpdateMode::Fixed } else { UpdateMode::Upsert };
    let mode = match headers.text("unique_key_update_mode")? {
        None => by_flag,
        Some(text) => match text.to_ascii_uppercase().as_str() {
            "UPSERT" => UpdateMode::Upsert,
            "UPDATE_FIXED_COLUMNS" => UpdateMode::Fixed,
            "UPDATE_FLEXIBLE_COLUMNS" if is_json => UpdateMode::Flexible,
            "UPDATE_FLEXIBLE_COLUMNS" => {
                return Err(HeaderError::invalid(
                    "flexible partial update only support json format as input file currently",
                ));
            }
            mode => {
                return Err(HeaderError::invalid(format!(
                    "Invalid unique_key_partial_mode {mode}, must be one of 'UPSERT', 'UPDATE_FIXED_COLUMNS' or \
                     'UPDATE_FLEXIBLE_COLUMNS'"
                )));
            }
        },
    };
    if mode == UpdateMode::Flexible {
        check_flexible(headers)?;
    }
    Ok(UpdateHeaders { mode, rejects_new_keys: rejects_new_keys(headers)? })
}

/// Refuses what rows that say themselves which columns they give can't be loaded with.
fn check_flexible(headers: Headers<'_>) -> Result<(), HeaderError> {
    const FORBIDDEN: [&str; 7] = [
        "columns",
        "jsonpaths",
        "hidden_columns",
        "function_column.sequence_col",
        "merge_type",
        "delete",
        "where",
    ];
    if headers.flag("fuzzy_parse")? {
        let text = "Don't support flexible partial update when 'fuzzy_parse' is enabled";
        return Err(HeaderError::invalid(text));
    }
    for name in FORBIDDEN {
        if headers.text(name)?.is_some() {
            return Err(HeaderError::invalid(format!(
                "Don't support flexible partial update when '{name}' is specified"
            )));
        }
    }
    Ok(())
}

/// The first header that no table supports, or no load of this kind.
fn unique_table_header(
    headers: Headers<'_>,
    refused: Option<(&MergeHeaders, UpdateHeaders)>,
) -> Result<Option<&'static str>, HeaderError> {
    let is_refused = |asks: &dyn Fn(&MergeHeaders, UpdateHeaders) -> bool| {
        refused.is_some_and(|(merge, update)| asks(merge, update))
    };
    let has_mode = headers.text("unique_key_update_mode")?.is_some();
    let asked = [
        ("merge_type", is_refused(&|merge, _| merge.merge_type != MergeType::Append)),
        ("unique_key_update_mode", is_refused(&|_, update| has_mode && update.mode != UpdateMode::Upsert)),
        ("partial_columns", is_refused(&|_, update| !has_mode && update.mode != UpdateMode::Upsert)),
        ("hidden_columns", is_refused(&|merge, _| !merge.hidden_columns.is_empty())),
        ("function_column.sequence_col", is_refused(&|merge, _| merge.sequence_col.is_some())),
        ("negative", is_refused(&|merge, _| merge.negative)),
        ("partial_update_new_key_behavior", is_refused(&|_, update| update.rejects_new_keys)),
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
