//! Dynamic partitions: ranges of a unit of time that are made ahead of their rows and dropped when they are old.
//!
//! The properties `dynamic_partition.*` describe them. The partitions of a table at a moment are a function of both, without a
//! clock. Not this module's business: the schedule.

use super::{add_one, refused, retention, steps};
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::partition::{Bound, PartitionRows, PartitionValue};
use tributary_types::{
    ColumnDef, DataType, ErrorCode, PartitionMethod, Partitioning, Partitions, SqlError, TableDef,
};

/// The prefix of the properties' names.
pub(in crate::table) const PREFIX: &str = "dynamic_partition.";
/// The most partitions that the properties may ask for at a time; Doris's default of `max_dynamic_partition_num`.
const PARTITIONS_MAX: i64 = 500;
/// A `start` that retains all old partitions.
const START_DEFAULT: i64 = i32::MIN as i64;
const NUM_DEFAULT: i64 = -1;

const ENABLE: &str = "dynamic_partition.enable";
const TIME_UNIT: &str = "dynamic_partition.time_unit";
const TIME_ZONE: &str = "dynamic_partition.time_zone";
const START: &str = "dynamic_partition.start";
const END: &str = "dynamic_partition.end";
const NAME_PREFIX: &str = "dynamic_partition.prefix";
const BUCKETS: &str = "dynamic_partition.buckets";
const CREATE_HISTORY: &str = "dynamic_partition.create_history_partition";
const HISTORY_NUM: &str = "dynamic_partition.history_partition_num";
const HOT_NUM: &str = "dynamic_partition.hot_partition_num";
const DAY_OF_WEEK: &str = "dynamic_partition.start_day_of_week";
const DAY_OF_MONTH: &str = "dynamic_partition.start_day_of_month";
const RESERVED: &str = "dynamic_partition.reserved_history_periods";

/// The unit that partitions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "HOUR" => Self::Hour,
            "DAY" => Self::Day,
            "WEEK" => Self::Week,
            "MONTH" => Self::Month,
            "YEAR" => Self::Year,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }
}

/// The dynamic partitions of a table, from its properties.
#[derive(Clone, Debug)]
struct Dynamic {
    is_enabled: bool,
    unit: Unit,
    start: i64,
    end: i64,
    prefix: String,
    creates_history: bool,
    history_num: i64,
    /// From Monday, 1, to Sunday, 7.
    day_of_week: u32,
    day_of_month: u32,
    /// Periods whose partitions are not dropped, with their ends.
    reserved: Vec<(NaiveDateTime, NaiveDateTime)>,
}

/// A row of SHOW DYNAMIC PARTITION TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicFacts {
    pub is_enabled: bool,
    pub unit: &'static str,
    pub start: String,
    pub end: String,
    pub prefix: String,
    pub buckets: String,
    pub replication: String,
    /// The first day of weeks or months.
    pub start_of: String,
    pub reserved: String,
}

/// A table as its schedule wants it at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The definition with the moment's partitions; `None` if it has them already.
    pub def: Option<TableDef>,
    /// Why a partition could not be made.
    pub create_error: Option<String>,
}

/// Checks the value of a property, and returns it as it is stored.
pub(in crate::table) fn checked(key: &str, value: &str) -> Result<String, SqlError> {
    let whole = |wrong: &str, code| {
        let number: Option<i64> = value.trim().parse().ok();
        number.ok_or_else(|| SqlError::detail(code, format!("{wrong} {value}")))
    };
    match key {
        ENABLE | CREATE_HISTORY => {
            let name = key.trim_start_matches(PREFIX);
            let text = value.trim().to_ascii_lowercase();
            if !["true", "false"].contains(&text.as_str()) {
                return Err(refused(format!(
                    "Invalid dynamic partition {name}: {value}. Expected true or false"
                )));
            }
            return Ok(text);
        }
        TIME_UNIT => {
            let unit = Unit::named(value.trim()).ok_or_else(|| {
                let text = format!("Unsupported time unit {value}. Expect HOUR/DAY/WEEK/MONTH/YEAR.");
                SqlError::detail(ErrorCode::DynamicTimeUnit, text)
            })?;
            return Ok(unit.name().to_owned());
        }
        START => {
            let number = whole("Invalid dynamic partition start", ErrorCode::DynamicRange)?;
            if number >= 0 {
                return Err(range("Dynamic partition start must less than 0"));
            }
        }
        END => {
            if value.trim().is_empty() {
                return Err(range("Dynamic partition end is empty"));
            }
            if whole("Invalid dynamic partition end", ErrorCode::DynamicRange)? <= 0 {
                return Err(range("Dynamic partition end must greater than 0"));
            }
        }
        NAME_PREFIX => super::check_name(value).map_err(|_| {
            refused(format!("Invalid dynamic partition properties: dynamic_partition.prefix. It should be a prefix of names of partitions, and is '{value}'"))
        })?,
        BUCKETS => {
            let number = whole("Invalid dynamic partition buckets", ErrorCode::DynamicBuckets)?;
            if number <= 0 {
                return Err(SqlError::detail(
                    ErrorCode::DynamicBuckets,
                    "Dynamic partition buckets must greater than 0",
                ));
            }
        }
        HISTORY_NUM => {
            let number = whole("Invalid history partition num:", ErrorCode::Unknown)?;
            if number <= 0 && number != NUM_DEFAULT {
                return Err(refused("Dynamic history partition num must greater than 0"));
            }
        }
        HOT_NUM => {
            let number = whole("Invalid hot partition num:", ErrorCode::Unknown)?;
            if number < 0 {
                return Err(refused("Dynamic hot_partition_num must greater than 0."));
            }
        }
        DAY_OF_WEEK | DAY_OF_MONTH => {
            let most = if key == DAY_OF_WEEK { 7 } else { 28 };
            let number: Option<i64> = value.trim().parse().ok();
            if !number.is_some_and(|number| (1..=most).contains(&number)) {
                return Err(refused(format!("{key} should between 1 and {most}, and is {value}")));
            }
        }
        _ => {}
    }
    Ok(if key == RESERVED { value.to_owned() } else { value.trim().to_owned() })
}

fn range(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::DynamicRange, text)
}

/// Checks a table whose properties were set, and gives those the defaults that SHOW CREATE TABLE prints.
pub(in crate::table) fn settle(def: &mut TableDef) -> Result<(), SqlError> {
    retention::check(def)?;
    let own = &def.properties.others;
    if !own.keys().any(|key| key.starts_with(PREFIX)) {
        return Ok(());
    }
    let Some(column) = column(def) else {
        return Err(refused("Dynamic partition only support single-column range partition"));
    };
    for key in [TIME_UNIT, END, NAME_PREFIX] {
        if !own.contains_key(key) {
            return Err(refused(format!("Must assign {key} properties")));
        }
    }
    let unit = &own[TIME_UNIT];
    match column.data_type {
        DataType::DateTime { .. } => {}
        DataType::Date if unit != "HOUR" => {}
        DataType::Date => {
            return Err(refused(format!(
                "{TIME_UNIT} could not be HOUR when type of partition column {} is DATE or DATEV2",
                column.name
            )));
        }
        _ => {
            return Err(refused(format!(
                "Dynamic partition needs a partition column of DATE or DATETIME, and {} is {}",
                column.name, column.data_type
            )));
        }
    }
    let replication = own.get(super::super::properties::REPLICATION_ALLOCATION).cloned().unwrap_or_default();
    let unit = Unit::named(unit).unwrap_or(Unit::Day);
    let mut defaults = vec![
        (ENABLE, "true".to_owned()),
        (TIME_ZONE, "Etc/UTC".to_owned()),
        (START, START_DEFAULT.to_string()),
        ("dynamic_partition.replication_allocation", replication),
        (BUCKETS, "10".to_owned()),
        (CREATE_HISTORY, "false".to_owned()),
        (HISTORY_NUM, NUM_DEFAULT.to_string()),
        (HOT_NUM, "0".to_owned()),
        (RESERVED, "NULL".to_owned()),
        ("dynamic_partition.storage_policy", String::new()),
    ];
    match unit {
        Unit::Week => defaults.push((DAY_OF_WEEK, "1".to_owned())),
        Unit::Month => defaults.push((DAY_OF_MONTH, "1".to_owned())),
        _ => {}
    }
    let own = &mut def.properties.others;
    for (key, value) in defaults {
        own.entry(key.to_owned()).or_insert(value);
    }
    let Some(dynamic) = Dynamic::of(&def.properties.others)? else { return Ok(()) };
    if dynamic.creates_history && dynamic.start == START_DEFAULT && dynamic.history_num == NUM_DEFAULT {
        return Err(refused(
            "Provide start or history_partition_num property when create_history_partition=true. Otherwise set create_history_partition=false",
        ));
    }
    let count = dynamic.end - dynamic.first() + 1;
    if count > PARTITIONS_MAX {
        return Err(refused(format!("Too many dynamic partitions: {count}. Limit: {PARTITIONS_MAX}")));
    }
    Ok(())
}

/// The column that decides, if the table is divided by ranges of one.
pub(super) fn column(def: &TableDef) -> Option<&ColumnDef> {
    let partitions = def.partitioning.partitions().filter(|it| it.method == PartitionMethod::Range)?;
    match partitions.columns_of(&def.schema).as_slice() {
        [column] => Some(column),
        _ => None,
    }
}

/// Refuses to add or drop a partition by hand where that is done by the clock.
pub(super) fn refuse_by_hand(def: &TableDef) -> Result<(), SqlError> {
    if def.properties.others.get(ENABLE).is_none_or(|enabled| enabled != "true") {
        return Ok(());
    }
    Err(refused(
        "Cannot add/drop partition on a Dynamic Partition Table, Use command `ALTER TABLE tbl_name SET (\"dynamic_partition.enable\" = \"false\")` firstly.",
    ))
}

/// The table with dynamic partitions off.
#[must_use]
pub fn without_dynamic_partitions(mut def: TableDef) -> TableDef {
    if let Some(enabled) = def.properties.others.get_mut(ENABLE) {
        "false".clone_into(enabled);
    }
    def
}

/// The time zone in which the table's partitions begin, if dynamic partitions are on or it limits the number of old ones.
#[must_use]
pub fn dynamic_time_zone(def: &TableDef) -> Option<&str> {
    let own = &def.properties.others;
    let is_enabled = own.get(ENABLE).is_some_and(|enabled| enabled == "true");
    (is_enabled || retention::count(def).is_some()).then_some(())?;
    Some(own.get(TIME_ZONE).map_or("UTC", String::as_str))
}

/// The table's dynamic partitions; `None` if its properties do not declare any.
#[must_use]
pub fn dynamic_facts(def: &TableDef) -> Option<DynamicFacts> {
    let own = &def.properties.others;
    let dynamic = Dynamic::of(own).ok()??;
    let text = |key: &str| own.get(key).cloned().unwrap_or_default();
    Some(DynamicFacts {
        is_enabled: dynamic.is_enabled,
        unit: dynamic.unit.name(),
        start: text(START),
        end: text(END),
        prefix: dynamic.prefix,
        buckets: text(BUCKETS),
        replication: text("dynamic_partition.replication_allocation"),
        start_of: match dynamic.unit {
            Unit::Week => ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]
                [dynamic.day_of_week as usize - 1]
                .to_owned(),
            Unit::Month => format!("{}th", dynamic.day_of_month),
            _ => "N/A".to_owned(),
        },
        reserved: text(RESERVED),
    })
}

/// Computes the table with the partitions that its properties want at `now`, which is in the table's time zone.
#[must_use]
pub fn scheduled(def: &TableDef, now: NaiveDateTime) -> Scheduled {
    let mut scheduled = made_and_dropped(def, now);
    if let Some(kept) = retention::kept(scheduled.def.as_ref().unwrap_or(def), now) {
        scheduled.def = Some(kept);
    }
    scheduled
}

/// Applies the properties of dynamic partitions.
fn made_and_dropped(def: &TableDef, now: NaiveDateTime) -> Scheduled {
    let mut scheduled = Scheduled { def: None, create_error: None };
    let dynamic = Dynamic::of(&def.properties.others).ok().flatten().filter(|dynamic| dynamic.is_enabled);
    let (Some(dynamic), Some(partitions), Some(column)) =
        (dynamic, def.partitioning.partitions(), column(def))
    else {
        return scheduled;
    };
    let mut wanted = Partitions::clone(partitions);
    for number in dynamic.first()..=dynamic.end {
        if let Err(error) = dynamic.make(&mut wanted, column, now, number) {
            scheduled.create_error = Some(error.detail_text().to_owned());
        }
    }
    wanted.remove(&dynamic.old(partitions, column, now));
    if wanted != **partitions {
        let partitioning = Partitioning::By(Arc::new(wanted));
        scheduled.def = Some(TableDef { partitioning, ..def.clone() });
    }
    scheduled
}

impl Dynamic {
    fn of(own: &BTreeMap<String, String>) -> Result<Option<Self>, SqlError> {
        let (Some(unit), Some(prefix)) = (own.get(TIME_UNIT), own.get(NAME_PREFIX)) else { return Ok(None) };
        let Some(unit) = Unit::named(unit) else { return Ok(None) };
        let number = |key: &str, default: i64| {
            own.get(key).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
        };
        let is_true = |key: &str| own.get(key).is_some_and(|text| text == "true");
        Ok(Some(Self {
            is_enabled: is_true(ENABLE),
            unit,
            start: number(START, START_DEFAULT).max(START_DEFAULT),
            end: number(END, 0),
            prefix: prefix.clone(),
            creates_history: is_true(CREATE_HISTORY),
            history_num: number(HISTORY_NUM, NUM_DEFAULT),
            day_of_week: number(DAY_OF_WEEK, 1).clamp(1, 7) as u32,
            day_of_month: number(DAY_OF_MONTH, 1).clamp(1, 28) as u32,
            reserved: reserved(own.get(RESERVED).map_or("NULL", String::as_str), unit)?,
        }))
    }

    /// The first partition that is made, by its distance from the present one.
    fn first(&self) -> i64 {
        match (self.creates_history, self.history_num) {
            (false, _) => 0,
            (true, NUM_DEFAULT) => self.start,
            (true, history) => self.start.max(-history),
        }
    }

    /// The beginning of the partition at this distance from the present one.
    fn border(&self, now: NaiveDateTime, number: i64) -> Option<NaiveDateTime> {
        let day = now.date();
        let (back, count) = (number < 0, u32::try_from(number.unsigned_abs()).ok()?);
        let days = |day: NaiveDate, count: u64| {
            if back { day.checked_sub_days(Days::new(count)) } else { day.checked_add_days(Days::new(count)) }
        };
        let months = |day: NaiveDate, count: u32| {
            if back {
                day.checked_sub_months(Months::new(count))
            } else {
                day.checked_add_months(Months::new(count))
            }
        };
        let first = match self.unit {
            Unit::Hour => {
                let hour = now.date().and_hms_opt(now.hour(), 0, 0)?;
                return hour.checked_add_signed(TimeDelta::try_hours(number)?);
            }
            Unit::Day => days(day, count.into())?,
            Unit::Week => {
                let past = (day.weekday().number_from_monday() + 7 - self.day_of_week) % 7;
                days(day.checked_sub_days(Days::new(past.into()))?, u64::from(count) * 7)?
            }
            Unit::Month => {
                let first = day.with_day(self.day_of_month)?;
                let is_before = day.day() < self.day_of_month;
                let first = if is_before { first.checked_sub_months(Months::new(1))? } else { first };
                months(first, count)?
            }
            Unit::Year => {
                NaiveDate::from_ymd_opt(day.year().checked_add(i32::try_from(number).ok()?)?, 1, 1)?
            }
        };
        (0..=9999).contains(&first.year()).then(|| first.and_time(NaiveTime::default()))
    }

    /// Adds a partition, unless others have some of its range.
    fn make(
        &self,
        partitions: &mut Partitions,
        column: &ColumnDef,
        now: NaiveDateTime,
        number: i64,
    ) -> Result<(), SqlError> {
        let (Some(first), Some(next)) = (self.border(now, number), self.border(now, number + 1)) else {
            return Ok(());
        };
        let (lower, upper) = (vec![bound(first, column)], vec![bound(next, column)]);
        if partitions.intersection(&lower, &upper, &[column]).is_some() {
            return Ok(());
        }
        let name = format!("{}{}", self.prefix, steps::name(first, self.unit.name()));
        add_one(partitions, &name, PartitionRows::Range { lower, upper }, BTreeMap::new(), &[column])
    }

    /// The partitions that are too old.
    fn old(
        &self,
        partitions: &Partitions,
        column: &ColumnDef,
        now: NaiveDateTime,
    ) -> Vec<tributary_types::PartitionId> {
        if self.start == START_DEFAULT {
            return Vec::new();
        }
        let Some(kept) = self.border(now, self.start).map(|first| bound(first, column)) else {
            return Vec::new();
        };
        let is_reserved = |low: &Bound, up: &Bound| {
            self.reserved.iter().any(|(from, to)| *low < bound(*to, column) && bound(*from, column) < *up)
        };
        let is_old = |rows: &PartitionRows| match rows {
            PartitionRows::Range { lower, upper } => upper[0] <= kept && !is_reserved(&lower[0], &upper[0]),
            _ => false,
        };
        let old = partitions.list.iter().filter(|partition| is_old(&partition.rows));
        old.map(|partition| partition.id).collect()
    }
}

pub(super) fn bound(at: NaiveDateTime, column: &ColumnDef) -> Bound {
    let value = match column.data_type {
        DataType::Date => super::value::days(at).into(),
        _ => at.and_utc().timestamp_micros().into(),
    };
    Bound::of(PartitionValue::Int(value), column.data_type)
}

/// `[from,to],[from,to]`, each with its last day or hour; `NULL` if there are none.
fn reserved(text: &str, unit: Unit) -> Result<Vec<(NaiveDateTime, NaiveDateTime)>, SqlError> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("NULL") {
        return Ok(Vec::new());
    }
    let wrong = || {
        refused(format!(
            "Invalid \"{RESERVED}\" value {text}. It must be like \"[yyyy-MM-dd,yyyy-MM-dd],[...,...]\" while time_unit is DAY/WEEK/MONTH or \"[yyyy-MM-dd HH:mm:ss,yyyy-MM-dd HH:mm:ss],[...,...]\" while time_unit is HOUR."
        ))
    };
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(wrong)?;
    let mut periods = Vec::new();
    for period in inner.split("],[") {
        let (from, to) = period.split_once(',').ok_or_else(wrong)?;
        let moment = |text: &str| {
            let is_long = text.trim().len() > 10;
            super::value::moment(text).filter(|_| is_long == (unit == Unit::Hour)).ok_or_else(wrong)
        };
        let (from, to) = (moment(from)?, moment(to)?);
        if from > to {
            return Err(refused(format!(
                "The first date is larger than the second date, [{from},{to}] is invalid."
            )));
        }
        let whole = if unit == Unit::Hour { TimeDelta::hours(1) } else { TimeDelta::days(1) };
        periods.push((from, to + whole));
    }
    Ok(periods)
}

#[cfg(test)]
mod tests;
