//! Bounds of a data file's columns: taken from Parquet's own statistics when a file is closed, written to and read from Delta's
//! `stats` JSON, stored as text.
//!
//! Invariant: a bound may be wide but never cuts off a value. What JSON or text cannot carry
//! exactly (infinities, long decimals read back from JSON) has no bound.

use crate::error::TableError;
use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortOptions, sort_to_indices};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use tributary_types::{ColumnDef, DataType, TableSchema};

/// Bounds of text are cut to this many characters, as Delta writers do.
const TEXT_BOUND_CHARS: usize = 32;
/// Makes a cut upper bound larger than every text with the same beginning.
const TEXT_BOUND_END: char = char::MAX;
const TIMESTAMP_FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6f";
/// Decimals up to this survive a way through a 64-bit float.
const FLOAT_EXACT_MAX: f64 = 1e15;

/// Bounds of one column in one file, as text: numbers in decimal, dates `2024-01-31`, times
/// `2024-01-31T12:00:00.000000`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnStats {
    /// Not above any value of the column. `None`: unknown, or all values are NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// Not below any value of the column. `None`: unknown, or all values are NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// How many rows have NULL. `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_count: Option<u64>,
}

/// Bounds of a file's columns by physical name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileStats {
    pub columns: BTreeMap<String, ColumnStats>,
}

impl FileStats {
    /// The bounds of a file that was just closed, from its Parquet footer.
    pub(crate) fn of_file(
        metadata: &ParquetMetaData,
        physical: &SchemaRef,
        schema: &TableSchema,
    ) -> Result<Self, TableError> {
        let descriptor = metadata.file_metadata().schema_descr();
        let mut columns = BTreeMap::new();
        for column in &schema.columns {
            let name = &column.physical_name;
            // Parquet knows bounds of their parts only.
            if column.data_type.is_nested() {
                columns.insert(name.clone(), ColumnStats::default());
                continue;
            }
            let failed =
                || TableError::parquet(format!("reading the statistics of column '{}'", column.name));
            let converter = StatisticsConverter::try_new(name, physical, descriptor).map_err(failed())?;
            let groups = metadata.row_groups();
            let nulls = converter.row_group_null_counts(groups.iter()).map_err(failed())?;
            let mut stats = ColumnStats { null_count: total(&nulls), ..ColumnStats::default() };
            if has_bounds(column.data_type) {
                let mins = converter.row_group_mins(groups.iter()).map_err(failed())?;
                let maxes = converter.row_group_maxes(groups.iter()).map_err(failed())?;
                if every_group_has_a_bound(groups, &nulls, &mins) {
                    stats.min = extreme(&mins, false)?.and_then(|text| lower_bound(column.data_type, text));
                }
                if every_group_has_a_bound(groups, &nulls, &maxes) {
                    stats.max = extreme(&maxes, true)?.and_then(|text| upper_bound(column.data_type, text));
                }
            }
            columns.insert(name.clone(), stats);
        }
        Ok(Self { columns })
    }

    /// Delta's `stats` for the columns of `schema`, of a file with that many rows. They are not `tight` if some of the
    /// rows are deleted.
    pub(crate) fn to_delta_json(&self, rows: u64, tight: bool, schema: &TableSchema) -> String {
        let mut json = format!("{{\"numRecords\":{rows}");
        if !tight {
            json.push_str(",\"tightBounds\":false");
        }
        let known = || {
            schema
                .visible()
                .filter_map(|column| self.columns.get(&column.physical_name).map(|stats| (column, stats)))
        };
        let bound = |pick: fn(&ColumnStats) -> Option<&String>| {
            known().filter_map(move |(column, stats)| {
                pick(stats).map(|text| (column, json_value(column.data_type, text)))
            })
        };
        write_object(&mut json, "minValues", bound(|stats| stats.min.as_ref()));
        write_object(&mut json, "maxValues", bound(|stats| stats.max.as_ref()));
        let nulls = known().filter_map(|(column, stats)| Some((column, stats.null_count?.to_string())));
        write_object(&mut json, "nullCount", nulls);
        json.push('}');
        json
    }

    /// The bounds in another writer's or our own Delta `stats`.
    pub(crate) fn from_delta_json(text: &str, schema: &TableSchema) -> Self {
        let Ok(Value::Object(stats)) = serde_json::from_str::<Value>(text) else { return Self::default() };
        let part = |name: &str| match stats.get(name) {
            Some(Value::Object(values)) => values.clone(),
            _ => Map::new(),
        };
        let (mins, maxes, nulls) = (part("minValues"), part("maxValues"), part("nullCount"));
        let entry = |column: &ColumnDef| {
            let name = &column.physical_name;
            let bound = |values: &Map<String, Value>| {
                values.get(name).and_then(|value| bound_text(column.data_type, value))
            };
            let stats = ColumnStats {
                min: bound(&mins),
                max: bound(&maxes).map(|text| widen_time(column.data_type, text)),
                null_count: nulls.get(name).and_then(Value::as_u64),
            };
            (name.clone(), stats)
        };
        Self { columns: schema.columns.iter().map(entry).collect() }
    }
}

const fn has_bounds(data_type: DataType) -> bool {
    let has_none = matches!(
        data_type,
        DataType::Boolean
            | DataType::Time { .. }
            | DataType::Ipv6
            | DataType::Varbinary { .. }
            | DataType::Nested(_)
    );
    !has_none && !data_type.is_state()
}

fn total(nulls: &UInt64Array) -> Option<u64> {
    (nulls.null_count() == 0).then(|| nulls.values().iter().sum())
}

/// A row group without a bound makes the file's bound unknown, unless all its values are NULL.
fn every_group_has_a_bound(groups: &[RowGroupMetaData], nulls: &UInt64Array, bounds: &ArrayRef) -> bool {
    groups.iter().enumerate().all(|(index, group)| {
        let all_null = nulls.is_valid(index) && i64::try_from(nulls.value(index)) == Ok(group.num_rows());
        bounds.is_valid(index) || all_null
    })
}

/// The smallest or largest value that is not NULL, as text.
fn extreme(values: &ArrayRef, largest: bool) -> Result<Option<String>, TableError> {
    let failed = || TableError::arrow("comparing the statistics of row groups");
    let order = SortOptions { descending: largest, nulls_first: false };
    let first = sort_to_indices(values, Some(order), Some(1)).map_err(failed())?;
    let Some(&index) = first.values().first() else { return Ok(None) };
    if values.is_null(index as usize) {
        return Ok(None);
    }
    let format = FormatOptions::new().with_timestamp_format(Some(TIMESTAMP_FORMAT));
    let formatter = ArrayFormatter::try_new(values.as_ref(), &format).map_err(failed())?;
    Ok(Some(formatter.value(index as usize).to_string()))
}

fn lower_bound(data_type: DataType, text: String) -> Option<String> {
    if data_type.is_text() {
        return Some(text.chars().take(TEXT_BOUND_CHARS).collect());
    }
    finite(data_type, text)
}

fn upper_bound(data_type: DataType, text: String) -> Option<String> {
    if !data_type.is_text() {
        return finite(data_type, text);
    }
    match text.char_indices().nth(TEXT_BOUND_CHARS) {
        None => Some(text),
        Some((cut, next)) if next < TEXT_BOUND_END => Some(format!("{}{TEXT_BOUND_END}", &text[..cut])),
        Some(_) => None,
    }
}

fn finite(data_type: DataType, text: String) -> Option<String> {
    let floating = matches!(data_type, DataType::Float | DataType::Double);
    (!floating || text.parse::<f64>().is_ok_and(f64::is_finite)).then_some(text)
}

fn json_value(data_type: DataType, text: &str) -> String {
    let quoted = data_type.is_text() || matches!(data_type, DataType::Date | DataType::DateTime { .. });
    if quoted { Value::from(text).to_string() } else { text.to_owned() }
}

fn write_object<'a>(json: &mut String, name: &str, entries: impl Iterator<Item = (&'a ColumnDef, String)>) {
    let _ = write!(json, ",\"{name}\":{{");
    for (index, (column, value)) in entries.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(json, "{comma}{}:{value}", Value::from(column.physical_name.as_str()));
    }
    json.push('}');
}

fn bound_text(data_type: DataType, value: &Value) -> Option<String> {
    let scale = match data_type {
        DataType::Decimal { scale, .. } => Some(usize::from(scale)),
        DataType::LargeInt => Some(0),
        _ => None,
    };
    match (value, scale) {
        _ if !has_bounds(data_type) => None,
        (Value::String(text), _) => Some(text.clone()),
        (Value::Number(number), Some(scale)) if number.is_f64() => {
            let value = number.as_f64()?;
            let digits = 10_f64.powi(i32::try_from(scale).ok()?);
            ((value * digits).abs() < FLOAT_EXACT_MAX).then(|| format!("{value:.scale$}"))
        }
        (Value::Number(number), _) => Some(number.to_string()),
        _ => None,
    }
}

/// Delta writers truncate times to milliseconds, so an upper bound in whole milliseconds means the millisecond's end.
fn widen_time(data_type: DataType, text: String) -> String {
    if !matches!(data_type, DataType::DateTime { .. }) {
        return text;
    }
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 { text.to_owned() } else { format!("{seconds}.{fraction:0<3}999") }
}

#[cfg(test)]
mod tests;
