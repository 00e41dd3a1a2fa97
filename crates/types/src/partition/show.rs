//! Partitions as texts.

use super::{AutoPartition, Bound, Partition, PartitionMethod, PartitionRows, PartitionValue, Partitions};
use crate::calendar::Date;
use crate::data_type::DataType;
use crate::table::{ColumnDef, TableSchema};
use std::fmt::Write;

const MICROS_PER_SECOND: i128 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400 * MICROS_PER_SECOND;

impl PartitionValue {
    /// The value as literals of its type are written, without quotes; NULL is `NULL`.
    #[must_use]
    pub fn show(&self, data_type: DataType) -> String {
        match (self, data_type) {
            (Self::Null, _) => "NULL".to_owned(),
            (Self::Text(text), _) => text.clone(),
            (Self::Int(days), DataType::Date) => date(*days),
            (Self::Int(micros), DataType::DateTime { scale }) => datetime(*micros, scale),
            (Self::Int(value), DataType::Boolean) => (*value != 0).to_string(),
            (Self::Int(value), _) => value.to_string(),
        }
    }
}

fn date(days: i128) -> String {
    let Date { year, month, day } = Date::from_days(i64::try_from(days).unwrap_or_default());
    format!("{year:04}-{month:02}-{day:02}")
}

fn datetime(micros: i128, scale: u8) -> String {
    let seconds = micros.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND;
    let mut text = date(micros.div_euclid(MICROS_PER_DAY));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Writing to a String cannot fail.
    let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
    if scale > 0 {
        let fraction = format!("{:06}", micros.rem_euclid(MICROS_PER_SECOND));
        let _ = write!(text, ".{}", &fraction[..usize::from(scale.min(6))]);
    }
    text
}

impl Bound {
    /// The bound as literals of its type are written, without quotes.
    #[must_use]
    pub fn show(&self, data_type: DataType) -> String {
        match self {
            Self::Min => min_text(data_type).to_owned(),
            Self::Value(value) => value.show(data_type),
            Self::Max => "MAXVALUE".to_owned(),
        }
    }

    /// The bound at a value: the least value of a type represents everything below, as in Doris.
    #[must_use]
    pub fn of(value: PartitionValue, data_type: DataType) -> Self {
        if value.show(data_type) == min_text(data_type) { Self::Min } else { Self::Value(value) }
    }
}

/// The least value of a type, as Doris prints it.
const fn min_text(data_type: DataType) -> &'static str {
    match data_type {
        DataType::TinyInt => "-128",
        DataType::SmallInt => "-32768",
        DataType::Int => "-2147483648",
        DataType::BigInt => "-9223372036854775808",
        DataType::LargeInt => "-170141183460469231731687303715884105728",
        DataType::Date => "0000-01-01",
        DataType::DateTime { scale } => match scale {
            0 => "0000-01-01 00:00:00",
            1 => "0000-01-01 00:00:00.0",
            2 => "0000-01-01 00:00:00.00",
            3 => "0000-01-01 00:00:00.000",
            4 => "0000-01-01 00:00:00.0000",
            5 => "0000-01-01 00:00:00.00000",
            _ => "0000-01-01 00:00:00.000000",
        },
        _ => "",
    }
}

/// The type as range texts name it.
const fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Date => "DATEV2",
        DataType::DateTime { .. } => "DATETIMEV2",
        other => other.base_name(),
    }
}

fn key<T>(values: &[T], columns: &[&ColumnDef], show: impl Fn(&T, DataType) -> String) -> String {
    let types: Vec<_> = columns.iter().map(|column| type_name(column.data_type)).collect();
    let keys: Vec<_> =
        values.iter().zip(columns).map(|(value, column)| show(value, column.data_type)).collect();
    format!("types: [{}]; keys: [{}]; ", types.join(", "), keys.join(", "))
}

/// A range as Doris prints it.
#[must_use]
pub(super) fn range(lower: &[Bound], upper: &[Bound], columns: &[&ColumnDef]) -> String {
    format!("[{}..{})", key(lower, columns, Bound::show), key(upper, columns, Bound::show))
}

impl Partition {
    /// The bounds or values as SHOW PARTITIONS prints them; `columns` are the partition columns.
    #[must_use]
    pub fn range_text(&self, columns: &[&ColumnDef]) -> String {
        match &self.rows {
            PartitionRows::Range { lower, upper } => range(lower, upper, columns),
            PartitionRows::Values(tuples) => {
                let keys: Vec<_> =
                    tuples.iter().map(|tuple| key(tuple, columns, PartitionValue::show)).collect();
                format!("[{}]", keys.join(", "))
            }
            PartitionRows::Others => String::new(),
        }
    }

    /// The partition as CREATE TABLE has it.
    #[must_use]
    pub fn clause(&self, columns: &[&ColumnDef]) -> String {
        let quote = |text: String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let bounds = |bounds: &[Bound]| {
            let texts = bounds.iter().zip(columns).map(|(bound, column)| match bound {
                Bound::Max => "MAXVALUE".to_owned(),
                bound => format!("'{}'", bound.show(column.data_type)),
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        let value = |(value, column): (&PartitionValue, &&ColumnDef)| match value {
            PartitionValue::Null => "NULL".to_owned(),
            value => quote(value.show(column.data_type)),
        };
        let name = plain_name(&self.name);
        match &self.rows {
            PartitionRows::Range { lower, upper } => {
                format!("PARTITION {name} VALUES [({}), ({}))", bounds(lower), bounds(upper))
            }
            PartitionRows::Values(tuples) => {
                let tuple = |tuple: &Vec<PartitionValue>| {
                    let values: Vec<_> = tuple.iter().zip(columns).map(value).collect();
                    // NULL alone is not a value but an unknown one.
                    let is_bare = values.len() == 1 && tuple[0] != PartitionValue::Null;
                    if is_bare { values.concat() } else { format!("({})", values.join(",")) }
                };
                let texts: Vec<_> = tuples.iter().map(tuple).collect();
                format!("PARTITION {name} VALUES IN ({})", texts.join(","))
            }
            PartitionRows::Others => format!("PARTITION {name}"),
        }
    }
}

fn plain_name(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

impl Partitions {
    /// The columns that decide, in order.
    #[must_use]
    pub fn columns_of<'s>(&self, schema: &'s TableSchema) -> Vec<&'s ColumnDef> {
        let positions = self.columns.iter().filter_map(|id| schema.index_of_id(*id));
        positions.map(|position| &schema.columns[position]).collect()
    }

    /// The clause of CREATE TABLE, without a line break at its end.
    #[must_use]
    pub fn clause(&self, schema: &TableSchema) -> String {
        let columns = self.columns_of(schema);
        let names: Vec<_> =
            columns.iter().map(|column| format!("`{}`", column.name.replace('`', "``"))).collect();
        let list: Vec<_> = self.list.iter().map(|partition| partition.clause(&columns)).collect();
        let method = match self.method {
            PartitionMethod::Range => "RANGE",
            PartitionMethod::List => "LIST",
        };
        let (names, list) = (names.join(", "), list.join(",\n"));
        match self.auto {
            None => format!("PARTITION BY {method}({names})\n({list})"),
            Some(AutoPartition::List) => format!("AUTO PARTITION BY LIST ({names})\n({list})"),
            Some(AutoPartition::Range(unit)) => {
                format!("AUTO PARTITION BY RANGE (date_trunc({names}, '{}'))\n({list})", unit.name())
            }
        }
    }

    /// Why such a partition can't be added for a row without one: it overlaps an existing partition.
    #[must_use]
    pub fn conflict(&self, rows: &PartitionRows, columns: &[&ColumnDef]) -> Option<String> {
        match rows {
            PartitionRows::Range { lower, upper } => self.intersection(lower, upper, columns),
            _ => None,
        }
    }

    /// Why such a range can't be one more partition: it has rows that another has.
    #[must_use]
    pub fn intersection(&self, lower: &[Bound], upper: &[Bound], columns: &[&ColumnDef]) -> Option<String> {
        self.list.iter().find_map(|partition| match &partition.rows {
            PartitionRows::Range { lower: low, upper: up }
                if lower < up.as_slice() && low.as_slice() < upper =>
            {
                Some(format!(
                    "Range {} is intersected with range: {}",
                    range(low, up, columns),
                    range(lower, upper, columns)
                ))
            }
            _ => None,
        })
    }
}
