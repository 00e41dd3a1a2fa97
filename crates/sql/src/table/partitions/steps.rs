//! `FROM (…) TO (…) INTERVAL n [unit]`: ranges of equal length, named by their lower bound; numeric ones by both bounds.

use super::{PARTITIONS_MAX, refused, too_many, value};
use crate::parse::ValueSpec;
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use tributary_types::partition::{Bound, PartitionValue};
use tributary_types::{ColumnDef, DataType, SqlError};

/// The most ranges of one series; Doris's default of `max_multi_partition_num`.
const STEPS_MAX: usize = 4096;
const PREFIX: &str = "p_";

/// A partition's name and bounds.
type Step = (String, Bound, Bound);

/// The ranges, at most `room` of them.
pub(super) fn ranges(
    from: &[ValueSpec],
    to: &[ValueSpec],
    interval: i64,
    unit: Option<&str>,
    columns: &[&ColumnDef],
    room: usize,
) -> Result<Vec<Step>, SqlError> {
    let ([ValueSpec::Text(from)], [ValueSpec::Text(to)], [column]) = (from, to, columns) else {
        return Err(refused(format!(
            "partition column number in multi partition clause must be one but start column size is {}, end column size is {}.",
            from.len(),
            to.len()
        )));
    };
    if interval <= 0 {
        return Err(refused("Multi partition time interval must be larger than zero."));
    }
    let steps = match (column.data_type, unit) {
        (DataType::Date | DataType::DateTime { .. }, Some(unit)) => times(from, to, interval, unit, column)?,
        (DataType::Date | DataType::DateTime { .. }, None) | (_, Some(_)) => return Err(illegal()),
        (_, None) => numbers(from, to, interval, column)?,
    };
    if steps.len() > room {
        return Err(too_many(PARTITIONS_MAX - room + steps.len(), PARTITIONS_MAX));
    }
    Ok(steps)
}

fn illegal() -> SqlError {
    refused("Multi build partition start or end time style is illegal.")
}

fn too_long() -> SqlError {
    refused(format!("The number of Multi partitions too much, should not exceed:{STEPS_MAX}"))
}

fn numbers(from: &str, to: &str, interval: i64, column: &ColumnDef) -> Result<Vec<Step>, SqlError> {
    let (PartitionValue::Int(mut start), PartitionValue::Int(end)) =
        (value::parsed(from, column)?, value::parsed(to, column)?)
    else {
        return Err(illegal());
    };
    if start >= end {
        return Err(refused("Multi build partition start number should less than end number."));
    }
    let bound = |value: i128| Bound::of(PartitionValue::Int(value), column.data_type);
    let mut steps = Vec::new();
    while start < end {
        if steps.len() == STEPS_MAX {
            return Err(too_long());
        }
        let next = start.saturating_add(interval.into()).min(end);
        // A partition's name has no sign.
        let name = format!("{PREFIX}{start}_{next}").replace('-', "_");
        steps.push((name, bound(start), bound(next)));
        start = next;
    }
    Ok(steps)
}

fn times(from: &str, to: &str, interval: i64, unit: &str, column: &ColumnDef) -> Result<Vec<Step>, SqlError> {
    let (Some(mut start), Some(end)) = (value::moment(from), value::moment(to)) else {
        return Err(illegal());
    };
    if unit == "HOUR" && column.data_type == DataType::Date {
        return Err(refused("Multi partition by HOUR needs a column of DATETIME"));
    }
    if start >= end {
        return Err(refused("Multi build partition start time should less than end time."));
    }
    let bound = |moment: NaiveDateTime| {
        let value = match column.data_type {
            DataType::Date => value::days(moment).into(),
            _ => moment.and_utc().timestamp_micros().into(),
        };
        Bound::of(PartitionValue::Int(value), column.data_type)
    };
    let mut steps = Vec::new();
    while start < end {
        if steps.len() == STEPS_MAX {
            return Err(too_long());
        }
        let next = after(start, interval, unit).ok_or_else(illegal)?.min(end);
        steps.push((format!("{PREFIX}{}", name(start, unit)), bound(start), bound(next)));
        start = next;
    }
    Ok(steps)
}

/// The beginning of the range after that of `start`: a first day of the unit, wherever the first range begins.
fn after(start: NaiveDateTime, interval: i64, unit: &str) -> Option<NaiveDateTime> {
    let count = u32::try_from(interval).ok()?;
    let day = start.date();
    let next = match unit {
        "YEAR" => NaiveDate::from_ymd_opt(day.year().checked_add(i32::try_from(interval).ok()?)?, 1, 1)?,
        "MONTH" => day.with_day(1)?.checked_add_months(Months::new(count))?,
        "WEEK" => {
            let weeks = day.checked_add_days(Days::new(u64::from(count) * 7))?;
            weeks.checked_sub_days(Days::new(weeks.weekday().num_days_from_monday().into()))?
        }
        "DAY" => day.checked_add_days(Days::new(count.into()))?,
        "HOUR" => return start.checked_add_signed(TimeDelta::try_hours(interval)?),
        _ => return None,
    };
    Some(next.and_time(NaiveTime::default()))
}

/// The name of the range that begins at `start`, without the prefix.
pub(super) fn name(start: NaiveDateTime, unit: &str) -> String {
    match unit {
        "YEAR" => start.format("%Y").to_string(),
        "MONTH" => start.format("%Y%m").to_string(),
        // Weeks begin on Sunday here, and the first one contains 1 January, as in Doris.
        "WEEK" => {
            let first =
                start.date().with_ordinal(1).map_or(0, |first| first.weekday().num_days_from_sunday());
            let week = ((start.ordinal0() + first) / 7 + 1).min(53);
            format!("{:04}_{week:02}", start.year())
        }
        "HOUR" => start.format("%Y%m%d%H").to_string(),
        _ => start.format("%Y%m%d").to_string(),
    }
}
