//! Weeks as MySQL numbers them: eight modes that differ in the first day of a week, in the first week of a year, and in
//! whether days before that week belong to week 0 or to the year before.

use chrono::{Datelike, Days, NaiveDate};

/// A way to number weeks: 0 to 7, as the second argument of `WEEK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(u8);

impl Mode {
    /// `%U` of `DATE_FORMAT`.
    pub const SUNDAY: Self = Self(0);
    /// `%u`.
    pub const MONDAY: Self = Self(1);
    /// `%V`, with its year in `%X`.
    pub const SUNDAY_OF_YEAR: Self = Self(2);
    /// `%v`, with its year in `%x`: ISO 8601.
    pub const MONDAY_OF_YEAR: Self = Self(3);

    /// The mode of that number. Doris takes all other numbers for 7.
    #[must_use]
    pub fn of(number: i64) -> Self {
        Self(u8::try_from(number).ok().filter(|number| *number < 7).unwrap_or(7))
    }

    /// The mode that `YEARWEEK` counts in: without a week 0.
    #[must_use]
    pub const fn without_week_0(self) -> Self {
        Self(self.0 | 2)
    }

    const fn starts_on_monday(self) -> bool {
        self.0 & 1 == 1
    }

    /// Week 1 is the first with four days or more in the year; else the first that starts in it.
    const fn needs_four_days(self) -> bool {
        matches!(self.0, 1 | 3 | 4 | 6)
    }

    const fn has_week_0(self) -> bool {
        matches!(self.0, 0 | 1 | 4 | 5)
    }

    /// The first day of week 1.
    pub fn first_day(self, year: i32) -> Option<NaiveDate> {
        let new_year = NaiveDate::from_ymd_opt(year, 1, 1)?;
        let into_week = self.days_into_week(new_year);
        let is_week_1 = if self.needs_four_days() { into_week <= 3 } else { into_week == 0 };
        if is_week_1 {
            new_year.checked_sub_days(Days::new(into_week))
        } else {
            new_year.checked_add_days(Days::new(7 - into_week))
        }
    }

    fn days_into_week(self, date: NaiveDate) -> u64 {
        let weekday = date.weekday();
        u64::from(if self.starts_on_monday() {
            weekday.num_days_from_monday()
        } else {
            weekday.num_days_from_sunday()
        })
    }
}

/// The year that the week of `date` belongs to, and the week's number in it.
#[must_use]
pub fn week_of(date: NaiveDate, mode: Mode) -> Option<(i32, i64)> {
    let number = |first: NaiveDate| (date - first).num_days() / 7 + 1;
    let year = date.year();
    let first = mode.first_day(year)?;
    if date < first {
        if mode.has_week_0() {
            return Some((year, 0));
        }
        return Some((year - 1, number(mode.first_day(year - 1)?)));
    }
    let next = mode.first_day(year + 1)?;
    if !mode.has_week_0() && date >= next {
        return Some((year + 1, 1));
    }
    Some((year, number(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_numbers_the_days_around_new_year_as_mysql_does() {
        let weeks = |text: &str| -> Vec<(i32, i64)> {
            let date = text.parse().unwrap();
            (0..8).map(|mode| week_of(date, Mode::of(mode)).unwrap()).collect()
        };
        // A Friday, and a Monday at the end of a year.
        assert_eq!(
            weeks("1999-01-01"),
            [(1999, 0), (1999, 0), (1998, 52), (1998, 53), (1999, 0), (1999, 0), (1998, 52), (1998, 52)]
        );
        assert_eq!(
            weeks("2018-12-31"),
            [(2018, 52), (2018, 53), (2018, 52), (2019, 1), (2018, 53), (2018, 53), (2019, 1), (2018, 53)]
        );
    }

    #[test]
    fn numbers_that_are_no_modes_count_as_7() {
        for number in [-1, 7, 8, 300, i64::MAX, i64::MIN] {
            assert_eq!(Mode::of(number), Mode(7), "{number}");
        }
    }
}
