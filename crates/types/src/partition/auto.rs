//! Partitions that loads create for their rows: ranges of a unit of time, or one partition per combination of values.

use super::{Bound, PartitionRows, PartitionValue, Partitions, ValueRef};
use crate::calendar::{Date, days_of};
use crate::data_type::DataType;
use crate::table::ColumnDef;
use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Limit on the characters of a name made of texts.
const NAME_CHARS_MAX: usize = 50;

/// The partitions that loads create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AutoPartition {
    /// The unit of time that a value is in.
    Range(TimeUnit),
    /// The values themselves.
    List,
}

/// A unit of `date_trunc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
}

impl TimeUnit {
    pub const ALL: [Self; 8] = [
        Self::Year,
        Self::Quarter,
        Self::Month,
        Self::Week,
        Self::Day,
        Self::Hour,
        Self::Minute,
        Self::Second,
    ];

    /// The unit's word, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Quarter => "quarter",
            Self::Month => "month",
            Self::Week => "week",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
        }
    }

    /// The unit with that name in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// Whether it divides days.
    #[must_use]
    pub const fn is_below_day(self) -> bool {
        matches!(self, Self::Hour | Self::Minute | Self::Second)
    }

    /// The beginnings of the unit that contains the moment and of the next one, in µs since 1970-01-01.
    fn around(self, micros: i64) -> (i64, i64) {
        let step = match self {
            Self::Hour => 3_600 * MICROS_PER_SECOND,
            Self::Minute => 60 * MICROS_PER_SECOND,
            Self::Second => MICROS_PER_SECOND,
            _ => {
                let (first, next) = self.days_around(micros.div_euclid(MICROS_PER_DAY));
                return (first * MICROS_PER_DAY, next * MICROS_PER_DAY);
            }
        };
        let first = micros.div_euclid(step) * step;
        (first, first + step)
    }

    fn days_around(self, day: i64) -> (i64, i64) {
        let Date { year, month, .. } = Date::from_days(day);
        let (year, month) = (year as i32, u32::from(month));
        let first_of = |year: i32, month: u32| match month {
            13 => i64::from(days_of(year + 1, 1, 1)),
            month => i64::from(days_of(year, month, 1)),
        };
        match self {
            Self::Year => (first_of(year, 1), first_of(year + 1, 1)),
            Self::Quarter => {
                let first = (month - 1) / 3 * 3 + 1;
                (first_of(year, first), first_of(year, first + 3))
            }
            Self::Month => (first_of(year, month), first_of(year, month + 1)),
            Self::Week => {
                // 1970-01-01 was a Thursday.
                let monday = day - (day + 3).rem_euclid(7);
                (monday, monday + 7)
            }
            _ => (day, day + 1),
        }
    }
}

impl Partitions {
    /// The name and the rows of the partition that a load creates for a row with these values and without a partition. `None` if
    /// the table has named partitions only.
    #[must_use]
    pub fn made_for(
        &self,
        values: &[ValueRef<'_>],
        columns: &[&ColumnDef],
    ) -> Option<(String, PartitionRows)> {
        let (name, rows) = match self.auto? {
            AutoPartition::Range(unit) => made_range(unit, *values.first()?, columns.first()?.data_type)?,
            AutoPartition::List => {
                let tuple: Vec<_> = values.iter().map(|value| value.to_value()).collect();
                (name_of(&tuple, columns), PartitionRows::Values(vec![tuple]))
            }
        };
        let is_taken = self.index_of(&name).is_some();
        let name = if is_taken { format!("{name}_{}", self.next_id) } else { name };
        Some((name, rows))
    }
}

fn made_range(unit: TimeUnit, value: ValueRef<'_>, data_type: DataType) -> Option<(String, PartitionRows)> {
    let ValueRef::Int(value) = value else { return None };
    let value = i64::try_from(value).ok()?;
    let is_date = data_type == DataType::Date;
    let (first, next) = unit.around(if is_date { value * MICROS_PER_DAY } else { value });
    let bound = |micros: i64| {
        let value = if is_date { micros.div_euclid(MICROS_PER_DAY) } else { micros };
        vec![Bound::of(PartitionValue::Int(value.into()), data_type)]
    };
    Some((range_name(unit, first), PartitionRows::Range { lower: bound(first), upper: bound(next) }))
}

/// Doris's name for the partition of the unit of time that contains the moment, in µs since 1970-01-01.
#[must_use]
pub fn range_name(unit: TimeUnit, micros: i64) -> String {
    let (first, _) = unit.around(micros);
    let Date { year, month, day } = Date::from_days(first.div_euclid(MICROS_PER_DAY));
    let seconds = first.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("p{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

fn name_of(tuple: &[PartitionValue], columns: &[&ColumnDef]) -> String {
    let texts = tuple.iter().zip(columns).map(|(value, column)| match value {
        PartitionValue::Null => None,
        value => Some(value.show(column.data_type)),
    });
    list_name(texts, columns.iter().any(|column| column.data_type.is_text()))
}

/// Doris's name for the partition of these values, given as they are shown; `has_texts`: some of them are texts.
#[must_use]
pub fn list_name<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>, has_texts: bool) -> String {
    let mut name = String::from("p");
    for (number, value) in values.into_iter().enumerate() {
        let Some(text) = value else {
            name.push('X');
            continue;
        };
        let text = text.as_ref();
        if number == 0 && text.starts_with('-') {
            name.push('_');
        }
        for ch in text.chars() {
            match ch {
                ch if ch.is_ascii_alphanumeric() => name.push(ch),
                ch => name.push_str(&format!("{:x}", ch as u32)),
            }
        }
        name.push_str(&text.chars().count().to_string());
    }
    if name.len() > NAME_CHARS_MAX && has_texts {
        let hash =
            name.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        return format!("{}_{hash:x}", &name[..NAME_CHARS_MAX]);
    }
    name
}
