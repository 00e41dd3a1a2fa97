//! The Gregorian calendar, as if it had always been in force: days since 1970-01-01 ↔ year, month, day.
//!
//! Nothing here reads a clock or knows time zones. Everything is counted in eras of 400 years that begin on 1 March, so that the
//! leap day is the last day of its year.

/// Days from the beginning of an era to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Date {
    /// The date `days` days after 1970-01-01.
    #[inline]
    #[must_use]
    pub const fn from_days(days: i64) -> Self {
        let days = days + DAYS_TO_1970;
        let era = days.div_euclid(DAYS_PER_ERA);
        let day_of_era = days.rem_euclid(DAYS_PER_ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + (month <= 2) as i64;
        Self { year, month: month as u8, day: day as u8 }
    }
}

/// Days from 1970-01-01 to a date that the calendar has.
#[inline]
#[must_use]
pub const fn days_of(year: i32, month: u32, day: u32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = ((153 * ((month + 9) % 12) + 2) / 5 + day - 1) as i32;
    era * DAYS_PER_ERA as i32 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
        - DAYS_TO_1970 as i32
}

/// How many days a month, 1 to 12, has in a year.
#[inline]
#[must_use]
pub const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn days_become_dates_before_and_after_1970() {
        for (days, year, month, day) in [
            (0, 1970, 1, 1),
            (-1, 1969, 12, 31),
            (11_016, 2000, 2, 29),
            (19_782, 2024, 2, 29),
            (-719_528, 0, 1, 1),
            (2_932_896, 9999, 12, 31),
            (2_932_897, 10_000, 1, 1),
        ] {
            assert_eq!(Date::from_days(days), Date { year, month, day });
            assert_eq!(i64::from(days_of(year as i32, month.into(), day.into())), days);
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_is_the_one_that_another_calendar_says() {
        let mut expected = NaiveDate::from_ymd_opt(0, 1, 1).unwrap();
        for days in -719_528..=2_932_896 {
            let date = Date::from_days(days);
            assert_eq!(
                (date.year, u32::from(date.month), u32::from(date.day)),
                (i64::from(expected.year()), expected.month(), expected.day())
            );
            assert_eq!(i64::from(days_of(expected.year(), expected.month(), expected.day())), days);
            expected = expected.succ_opt().unwrap();
            if expected.day() == 1 {
                let last = (expected.year() as u32, u32::from(date.month), u32::from(date.day));
                let year = if date.month == 12 { last.0 - 1 } else { last.0 };
                assert_eq!(days_in_month(year, last.1), last.2);
            }
        }
    }
}
