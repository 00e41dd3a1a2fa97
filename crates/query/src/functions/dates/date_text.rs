//! `DATE_FORMAT` and `STR_TO_DATE`: dates written and read by MySQL's letters.

use crate::functions::dates::weeks::{Mode, week_of};
use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, Timelike};
use std::fmt::Write;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday on.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The English name of a date's month.
#[must_use]
pub fn month_name(value: NaiveDateTime) -> &'static str {
    MONTHS[value.month0() as usize % MONTHS.len()]
}

/// The English name of a date's day of the week.
#[must_use]
pub fn weekday_name(value: NaiveDateTime) -> &'static str {
    WEEKDAYS[value.weekday().num_days_from_monday() as usize % WEEKDAYS.len()]
}

/// The letters behind Doris's three names of formats; any other format is itself.
#[must_use]
pub fn letters_of(format: &str) -> &str {
    match format {
        "yyyyMMdd" => "%Y%m%d",
        "yyyy-MM-dd" => "%Y-%m-%d",
        "yyyy-MM-dd HH:mm:ss" => "%Y-%m-%d %H:%i:%s",
        other => other,
    }
}

/// `value` as `DATE_FORMAT` writes it.
#[must_use]
pub fn format(value: NaiveDateTime, format: &str) -> String {
    let format = letters_of(format);
    let mut out = String::with_capacity(format.len() + 8);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match if letter == '%' { letters.next() } else { None } {
            Some(letter) => push_part(&mut out, value, letter),
            None => out.push(letter),
        }
    }
    out
}

fn push_part(out: &mut String, value: NaiveDateTime, letter: char) {
    let week = |mode| week_of(value.date(), mode).unwrap_or((value.year(), 0));
    let (hour, minute, second) = (value.hour(), value.minute(), value.second());
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour < 12 { "AM" } else { "PM" };
    // Writing to a text cannot fail.
    let _ = match letter {
        'a' => write!(out, "{}", &weekday_name(value)[..3]),
        'b' => write!(out, "{}", &month_name(value)[..3]),
        'c' => write!(out, "{}", value.month()),
        'D' => write!(out, "{}{}", value.day(), ordinal_suffix(value.day())),
        'd' => write!(out, "{:02}", value.day()),
        'e' => write!(out, "{}", value.day()),
        'f' => write!(out, "{:06}", value.nanosecond() / 1000),
        'H' => write!(out, "{hour:02}"),
        'h' | 'I' => write!(out, "{twelve:02}"),
        'i' => write!(out, "{minute:02}"),
        'j' => write!(out, "{:03}", value.ordinal()),
        'k' => write!(out, "{hour}"),
        'l' => write!(out, "{twelve}"),
        'M' => write!(out, "{}", month_name(value)),
        'm' => write!(out, "{:02}", value.month()),
        'p' => write!(out, "{half}"),
        'r' => write!(out, "{twelve:02}:{minute:02}:{second:02} {half}"),
        'S' | 's' => write!(out, "{second:02}"),
        'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        'U' => write!(out, "{:02}", week(Mode::SUNDAY).1),
        'u' => write!(out, "{:02}", week(Mode::MONDAY).1),
        'V' => write!(out, "{:02}", week(Mode::SUNDAY_OF_YEAR).1),
        'v' => write!(out, "{:02}", week(Mode::MONDAY_OF_YEAR).1),
        'W' => write!(out, "{}", weekday_name(value)),
        'w' => write!(out, "{}", value.weekday().num_days_from_sunday()),
        'X' => write!(out, "{:04}", week(Mode::SUNDAY_OF_YEAR).0),
        'x' => write!(out, "{:04}", week(Mode::MONDAY_OF_YEAR).0),
        'Y' => write!(out, "{:04}", value.year()),
        'y' => write!(out, "{:02}", value.year().rem_euclid(100)),
        other => write!(out, "{other}"),
    };
}

const fn ordinal_suffix(day: u32) -> &'static str {
    match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    }
}

/// The parts of a date that a text contains.
#[derive(Debug, Default)]
struct Parts {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    /// Days after Monday.
    weekday: Option<u32>,
    /// The number of a week, and how it is counted.
    week: Option<(u32, Mode)>,
    week_year: Option<(i32, Mode)>,
    hour: u32,
    hour_of_twelve: bool,
    afternoon: bool,
    minute: u32,
    second: u32,
    micros: u32,
}

/// Reads `text` by a format. Blanks are skipped, text beyond the format is ignored, and a text that ends early leaves the rest of
/// its format without effect. `None` if the two differ or the date does not exist.
#[must_use]
pub fn parse(text: &str, format: &str) -> Option<NaiveDateTime> {
    let format = letters_of(format);
    if format.is_empty() {
        return None;
    }
    let mut parts = Parts::default();
    let mut rest = text.trim_start();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        match if letter == '%' { letters.next() } else { None } {
            Some(letter) => rest = parts.take(rest, letter)?,
            None => rest = rest.strip_prefix(letter)?,
        }
    }
    parts.value()
}

impl Parts {
    /// Reads the part that `letter` names from the start of `text` and returns what follows it.
    fn take<'a>(&mut self, text: &'a str, letter: char) -> Option<&'a str> {
        let rest = match letter {
            'Y' => {
                let (year, rest) = number(text, 4)?;
                self.year = Some(full_year(year, text.len() - rest.len()));
                rest
            }
            'y' => {
                let (year, rest) = number(text, 2)?;
                self.year = Some(full_year(year, 2));
                rest
            }
            'm' | 'c' => store(&mut self.month, number(text, 2)?),
            'd' | 'e' => store(&mut self.day, number(text, 2)?),
            'D' => {
                let rest = store(&mut self.day, number(text, 2)?);
                rest.get(2.min(rest.len())..)?
            }
            'j' => store(&mut self.day_of_year, number(text, 3)?),
            'M' => store(&mut self.month, named(text, &MONTHS, false)?),
            'b' => store(&mut self.month, named(text, &MONTHS, true)?),
            'W' | 'a' => {
                let (day, rest) = named(text, &WEEKDAYS, letter == 'a')?;
                self.weekday = Some(day - 1);
                rest
            }
            'w' => {
                let (day, rest) = number(text, 1)?;
                self.weekday = Some(if day < 7 { (day + 6) % 7 } else { return None });
                rest
            }
            'U' | 'u' | 'V' | 'v' => {
                let (week, rest) = number(text, 2)?;
                self.week = Some((week, mode_of(letter)));
                rest
            }
            'X' | 'x' => {
                let (year, rest) = number(text, 4)?;
                self.week_year = Some((full_year(year, text.len() - rest.len()), mode_of(letter)));
                rest
            }
            'H' | 'k' => {
                let (hour, rest) = number(text, 2)?;
                self.hour = hour;
                rest
            }
            'h' | 'I' | 'l' => {
                let (hour, rest) = number(text, 2)?;
                self.hour = hour;
                self.hour_of_twelve = true;
                rest
            }
            'i' => {
                let (minute, rest) = number(text, 2)?;
                self.minute = minute;
                rest
            }
            's' | 'S' => {
                let (second, rest) = number(text, 2)?;
                self.second = second;
                rest
            }
            'f' => {
                let (fraction, rest) = number(text, 6)?;
                let digits = u32::try_from(text.len() - rest.len()).ok()?;
                self.micros = fraction * 10u32.pow(6 - digits);
                rest
            }
            'p' => {
                let (half, rest) = text.split_at_checked(2)?;
                self.afternoon = match half {
                    _ if !self.hour_of_twelve => return None,
                    half if half.eq_ignore_ascii_case("PM") => true,
                    half if half.eq_ignore_ascii_case("AM") => false,
                    _ => return None,
                };
                rest
            }
            'T' => self.take_all(text, "%H:%i:%S")?,
            'r' => self.take_all(text, "%I:%i:%S %p")?,
            '%' => text.strip_prefix('%')?,
            '.' => text.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => text.trim_start_matches(|c: char| c.is_alphabetic()),
            '#' => text.trim_start_matches(|c: char| c.is_ascii_digit()),
            _ => return None,
        };
        Some(rest)
    }

    fn take_all<'a>(&mut self, text: &'a str, format: &str) -> Option<&'a str> {
        let mut rest = text;
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            rest = match letter {
                '%' => self.take(rest, letters.next()?)?,
                ' ' => rest,
                plain => rest.strip_prefix(plain)?,
            };
        }
        Some(rest)
    }

    fn value(&self) -> Option<NaiveDateTime> {
        let hour = match (self.hour_of_twelve, self.hour) {
            (false, hour) => hour,
            (true, hour @ 1..=12) => hour % 12 + if self.afternoon { 12 } else { 0 },
            (true, _) => return None,
        };
        self.date()?.and_hms_micro_opt(hour, self.minute, self.second, self.micros)
    }

    fn date(&self) -> Option<NaiveDate> {
        if let Some(day) = self.day_of_year {
            return NaiveDate::from_yo_opt(self.year?, day);
        }
        if let (Some((week, mode)), Some(weekday)) = (self.week, self.weekday) {
            return self.day_of_week(week, mode, weekday);
        }
        NaiveDate::from_ymd_opt(self.year?, self.month?, self.day.unwrap_or(1))
    }

    /// A day by its week: weeks with a week 0 count in the plain year, those without one in their own.
    fn day_of_week(&self, week: u32, mode: Mode, weekday: u32) -> Option<NaiveDate> {
        let year = match (mode, self.week_year) {
            (Mode::SUNDAY | Mode::MONDAY, None) => self.year?,
            (Mode::SUNDAY_OF_YEAR | Mode::MONDAY_OF_YEAR, Some((year, of))) if of == mode => year,
            _ => return None,
        };
        if week > 53 || (week == 0 && !matches!(mode, Mode::SUNDAY | Mode::MONDAY)) {
            return None;
        }
        let into_week = match mode {
            Mode::SUNDAY | Mode::SUNDAY_OF_YEAR => (weekday + 1) % 7,
            _ => weekday,
        };
        let first = mode.first_day(year)?;
        let before = first.checked_sub_days(Days::new(7))?;
        before.checked_add_days(Days::new(u64::from(week * 7 + into_week)))
    }
}

fn store<'a>(place: &mut Option<u32>, (value, rest): (u32, &'a str)) -> &'a str {
    *place = Some(value);
    rest
}

const fn mode_of(letter: char) -> Mode {
    match letter {
        'U' => Mode::SUNDAY,
        'u' => Mode::MONDAY,
        'V' | 'X' => Mode::SUNDAY_OF_YEAR,
        _ => Mode::MONDAY_OF_YEAR,
    }
}

/// The leading digits of `text`, at most `width` of them.
fn number(text: &str, width: usize) -> Option<(u32, &str)> {
    let digits = text.bytes().take(width).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// The number, from 1, of the leading name of `text`, in any case.
fn named<'a>(text: &'a str, names: &[&str], short: bool) -> Option<(u32, &'a str)> {
    names.iter().zip(1..).find_map(|(name, number)| {
        let name = if short { &name[..3] } else { name };
        let (start, rest) = text.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some((number, rest))
    })
}

const fn full_year(year: u32, digits: usize) -> i32 {
    (match year {
        0..=69 if digits <= 2 => year + 2000,
        70..=99 if digits <= 2 => year + 1900,
        _ => year,
    }) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: &str) -> Option<String> {
        parse(text, format).map(|value| value.format("%F %T%.f").to_string())
    }

    #[test]
    fn every_letter_is_read() {
        for (text, format, expected) in [
            ("2024-03-05 14:06:07.5", "%Y-%m-%d %H:%i:%s.%f", "2024-03-05 14:06:07.500"),
            ("5/3/24", "%e/%c/%y", "2024-03-05 00:00:00"),
            ("March 1st, 1999", "%M %D, %Y", "1999-03-01 00:00:00"),
            ("oct 5 2023 3:45:00 pm", "%b %d %Y %h:%i:%s %p", "2023-10-05 15:45:00"),
            ("2023-01-01 12:00:00 AM", "%Y-%m-%d %r", "2023-01-01 00:00:00"),
            ("2024 366", "%Y %j", "2024-12-31 00:00:00"),
            ("200442 Monday", "%X%V %W", "2004-10-18 00:00:00"),
            ("2004 42 1", "%x %v %w", "2004-10-11 00:00:00"),
            ("2024 00 Mon", "%Y %U %a", "2024-01-01 00:00:00"),
            ("20240305", "yyyyMMdd", "2024-03-05 00:00:00"),
            ("2024-03-05 (GMT)", "%Y-%m-%d", "2024-03-05 00:00:00"),
            ("2024-03-05", "%Y-%m-%d %H:%i:%s", "2024-03-05 00:00:00"),
        ] {
            assert_eq!(read(text, format).as_deref(), Some(expected), "{text} as {format}");
        }
    }

    #[test]
    fn texts_that_do_not_fit_their_format_are_no_dates() {
        for (text, format) in [
            ("2024-02-30", "%Y-%m-%d"),
            ("2023/01/01", "%Y-%m-%d"),
            ("2024-13-01", "%Y-%m-%d"),
            ("2024-01-01 13:00:00 PM", "%Y-%m-%d %h:%i:%s %p"),
            ("2024-01-01 10 PM", "%Y-%m-%d %H %p"),
            ("2024-01-01 24", "%Y-%m-%d %H"),
            ("200442", "%X%V"),
            ("200442 Monday", "%x%V %W"),
            ("2024-01-01", ""),
            ("é", "%p"),
            ("", "%Y"),
        ] {
            assert_eq!(read(text, format), None, "{text} as {format}");
        }
    }

    #[test]
    fn weeks_of_a_format_agree_with_their_years() {
        let date = |text: &str| NaiveDate::parse_from_str(text, "%F").unwrap().and_hms_opt(0, 0, 0).unwrap();
        assert_eq!(format(date("1999-01-01"), "%X-%V %x-%v %U %u"), "1998-52 1998-53 00 00");
        assert_eq!(format(date("2018-12-31"), "%X-%V %x-%v %U %u"), "2018-52 2019-01 52 53");
        assert_eq!(format(date("0099-01-01"), "%Y %y %X"), "0099 99 0098");
        assert_eq!(format(date("2024-01-01"), "100% %q%%%"), "100 q%%");
    }
}
