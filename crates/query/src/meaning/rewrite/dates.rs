//! Calls and operators over dates: intervals, parts of a date, and the current time.

use super::{Rewriter, ast};
use crate::functions::conversion::cast::Target;
use crate::functions::dates::{datetime, spans};
use chrono::{DateTime, NaiveDateTime, TimeZone};
use sqlparser::ast::{BinaryOperator, Expr, Interval};
use tributary_types::{ErrorCode, SqlError};

/// `base + INTERVAL value unit`.
pub(super) fn add(base: Expr, interval: Interval, negative: bool) -> Result<Expr, SqlError> {
    let (count, unit) = count_and_unit(interval)?;
    add_unit(base, count, &unit, negative)
}

/// The value and the unit of an interval; of several units in the smallest one.
pub(super) fn count_and_unit(interval: Interval) -> Result<(Expr, String), SqlError> {
    let Some(unit) = interval.leading_field.filter(|_| interval.last_field.is_none()) else {
        return Err(SqlError::detail(ErrorCode::Unknown, "INTERVAL needs one unit, as in INTERVAL 1 DAY"));
    };
    let unit = unit.to_string();
    if let Some(smallest) = spans::smallest(&unit) {
        let count = ast::call("__span", vec![*interval.value, ast::text(&unit)]);
        return Ok((count, smallest.to_owned()));
    }
    Ok((*interval.value, unit))
}

pub(super) fn add_unit(base: Expr, count: Expr, unit: &str, negative: bool) -> Result<Expr, SqlError> {
    let Some(known) = datetime::unit(unit) else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "INTERVAL does not know the unit '{unit}'; use MICROSECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"
            ),
        ));
    };
    let whole_days = match known {
        datetime::Unit::Micros(size) => size % datetime::DAY_MICROS == 0,
        datetime::Unit::Months(_) => true,
    };
    let count = if negative {
        ast::binary(ast::number(0), BinaryOperator::Minus, ast::call("__integer", vec![count]))
    } else {
        count
    };
    let name = if whole_days { "__day_add" } else { "__date_add" };
    let base = match ast::as_text(&base) {
        Some(text) if whole_days && datetime::is_date_only(text) => ast::call("__date", vec![base]),
        _ => base,
    };
    Ok(ast::call(name, vec![base, count, ast::text(unit)]))
}

/// `EXTRACT(unit FROM x)`, `YEAR(x)` and so on.
pub(super) fn part(name: &str, expr: Expr) -> Result<Expr, SqlError> {
    if spans::smallest(name).is_some() {
        return Ok(ast::call("__parts", vec![expr, ast::text(name)]));
    }
    let lower = name.to_ascii_lowercase();
    let single = lower.strip_suffix('s').unwrap_or(&lower);
    let known = match single {
        "dayofmonth" => "day",
        "to_day" => "to_days",
        "dow" => "dayofweek",
        "doy" => "dayofyear",
        "year" | "quarter" | "month" | "week" | "weekofyear" | "yearweek" | "day" | "dayofweek"
        | "weekday" | "dayofyear" | "hour" | "minute" | "second" | "microsecond" => single,
        _ => {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("EXTRACT does not know the unit '{name}'"),
            ));
        }
    };
    if matches!(known, "week" | "yearweek") {
        return Ok(ast::call(known, vec![expr]));
    }
    let of_clock = matches!(known, "hour" | "minute" | "second" | "microsecond");
    let function = match of_clock {
        true if is_time(&expr) => "__time_part",
        true => "__clock_part",
        false => "__part",
    };
    Ok(ast::call(function, vec![expr, ast::text(known)]))
}

/// Whether an expression that was rewritten is a TIME: its text is that of an hour, and not of a day.
fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_time(inner),
        Expr::Function(function) => {
            let name = function.name.to_string();
            ["__time", "__time_to", "maketime", "sec_to_time", "timediff"].contains(&name.trim_matches('`'))
        }
        _ => false,
    }
}

/// Whether a format of `STR_TO_DATE` reads no part of the day.
pub(super) fn is_date_format(format: &str) -> bool {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' && letters.next().is_some_and(|letter| "HhIiklfprSsT".contains(letter)) {
            return false;
        }
    }
    !format.contains("HH")
}

impl Rewriter<'_> {
    /// The statement's start in the session's time zone.
    fn local_now(&self) -> Result<NaiveDateTime, SqlError> {
        let name = self.environment.session.zone();
        let zone: arrow::array::timezone::Tz = name.parse().map_err(|_| {
            SqlError::new(ErrorCode::Unknown, format!("Unknown or incorrect time zone: '{name}'"))
        })?;
        Ok(zone.from_utc_datetime(&self.utc_now()).naive_local())
    }

    fn utc_now(&self) -> NaiveDateTime {
        DateTime::from_timestamp_micros(self.environment.session.now_unix_micros)
            .unwrap_or_default()
            .naive_utc()
    }

    /// The clock's functions as literals; `None` for any other name.
    pub(super) fn clock(&self, name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
        let digits =
            args.first().and_then(ast::as_number).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let at = |value: NaiveDateTime| {
            let step = 10i64.pow(6 - u32::min(digits, 6));
            let micros = datetime::to_micros(value).div_euclid(step) * step;
            let digits = u8::try_from(u32::min(digits, 6)).unwrap_or(6);
            let to = Target::DateTime { digits }.function(false);
            ast::call(&to, vec![ast::text(datetime::to_text(micros))])
        };
        let day = |value: NaiveDateTime| ast::call("__date", vec![ast::text(value.date().to_string())]);
        let time =
            |value: NaiveDateTime| ast::call("__time", vec![ast::text(value.format("%H:%M:%S").to_string())]);
        Ok(Some(match name {
            "now" | "current_timestamp" | "sysdate" | "localtime" | "localtimestamp" => at(self.local_now()?),
            "utc_timestamp" => at(self.utc_now()),
            "curdate" | "current_date" => day(self.local_now()?),
            "utc_date" => day(self.utc_now()),
            "curtime" | "current_time" => time(self.local_now()?),
            "utc_time" => time(self.utc_now()),
            "unix_timestamp" if args.is_empty() => {
                ast::number(self.environment.session.now_unix_micros.div_euclid(1_000_000))
            }
            _ => return Ok(None),
        }))
    }
}
