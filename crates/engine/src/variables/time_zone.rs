//! The session's time zone.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

/// A time zone; parsed once, when it is set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Zone {
    #[default]
    Utc,
    Other(Tz),
}

impl Zone {
    /// The zone called `+08:00`, `UTC`, `SYSTEM`, `CST` or by an IANA name. An unknown zone counts as UTC; `SET time_zone`
    /// refuses it before.
    pub fn named(name: &str) -> Self {
        if matches!(name, "UTC" | "SYSTEM") { Self::Utc } else { parse(name).map_or(Self::Utc, Self::Other) }
    }

    /// Seconds ahead of UTC at a time.
    pub fn offset_seconds(self, unix_micros: i64) -> i32 {
        let Self::Other(zone) = self else { return 0 };
        let at = DateTime::from_timestamp_micros(unix_micros).unwrap_or_default();
        zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
    }
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
        assert_eq!(Zone::named("+08:00").offset_seconds(0), 8 * 3600);
        assert_eq!(Zone::named("utc").offset_seconds(0), 0);
        assert_eq!(Zone::named("Asia/Shanghai").offset_seconds(1_700_000_000_000_000), 8 * 3600);
        assert!(!is_known("Middle/Earth"));
    }
}
