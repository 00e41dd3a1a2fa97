//! The time of one load.
//!
//! Invariant: every use of time in a load (functions in `columns`, `where` and its statement, defaults, texts with a zone) has
//! the same zone and the same moment.

use crate::load::Loads;
use crate::variables::time_zone::{self, Zone};
use tributary_decode::LoadClock;
use tributary_query::SessionView;
use tributary_types::{ErrorCode, SqlError};

/// When a load began, and in which zone.
pub(crate) struct LoadTime {
    /// For expressions.
    pub view: SessionView,
    /// For values.
    pub clock: LoadClock,
    /// For values that are instants.
    pub zone: Zone,
}

impl LoadTime {
    /// The time now in the zone that the header `timezone` names; without one in that of the server.
    ///
    /// # Errors
    /// [`ErrorCode::Unknown`] for an unknown zone.
    pub fn of(loads: &Loads, zone: Option<&str>) -> Result<Self, SqlError> {
        let name = match zone {
            None => loads.time_zone(),
            Some(name) if time_zone::is_known(name) => name.to_owned(),
            Some(name) => {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    format!(
                        "Unknown or incorrect time zone: '{name}'; use an offset like +08:00 or a name like Asia/Shanghai"
                    ),
                ));
            }
        };
        let unix_micros = loads.unix_ms() * 1000;
        let zone = Zone::named(&name);
        let utc_offset_seconds = zone.offset_seconds(unix_micros);
        let clock = LoadClock {
            now_micros: unix_micros + i64::from(utc_offset_seconds) * 1_000_000,
            utc_offset_seconds,
        };
        // Names of UTC that the functions over time do not take.
        let is_utc = ["Z", "GMT"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
        let time_zone = if is_utc { "+00:00".to_owned() } else { name };
        Ok(Self { view: SessionView { time_zone, ..SessionView::new("root@%", unix_micros) }, clock, zone })
    }
}
