//! The session's time zone.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

/// Seconds ahead of UTC of a zone (`+08:00`, `UTC`, `SYSTEM`, `CST`, an IANA name) at a time.
/// A zone that nobody knows counts as UTC; `SET time_zone` refuses it before.
pub(crate) fn offset_seconds(zone: &str, unix_micros: i64) -> i32 {
    parse(zone).map_or(0, |zone| {
        let at = DateTime::from_timestamp_micros(unix_micros).unwrap_or_default();
        zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
    })
}

/// Whether a zone is known.
pub(crate) fn is_known(zone: &str) -> bool {
    parse(zone).is_some()
}

fn parse(zone: &str) -> Option<Tz> {
    match zone.to_ascii_uppercase().as_str() {
        "SYSTEM" | "UTC" | "GMT" | "Z" => "+00:00".parse().ok(),
        "CST" | "PRC" => "+08:00".parse().ok(),
        _ => zone.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_names_are_known() {
        assert_eq!(offset_seconds("+08:00", 0), 8 * 3600);
        assert_eq!(offset_seconds("utc", 0), 0);
        assert_eq!(offset_seconds("Asia/Shanghai", 1_700_000_000_000_000), 8 * 3600);
        assert!(!is_known("Middle/Earth"));
    }
}
