//! The versions of the Delta table that publications arrived in.
//!
//! Not here: how it gets there.

use std::collections::VecDeque;
use tributary_types::Version;

/// Flushes that are remembered of a table, each in 16 bytes.
const FLUSHES_REMEMBERED_MAX: usize = 1024;

/// Versions of the table with the Delta versions that brought the log to them, oldest first.
#[derive(Debug)]
pub(super) struct DeltaVersions(VecDeque<(Version, i64)>);

impl DeltaVersions {
    /// The log as it is opened.
    pub fn at_open(version: Version, delta_version: i64) -> Self {
        Self(VecDeque::from([(version, delta_version)]))
    }

    /// The log has everything up to `version` now.
    pub fn reach(&mut self, version: Version, delta_version: i64) {
        if self.0.back().is_some_and(|(last, _)| *last >= version) {
            return;
        }
        if self.0.len() == FLUSHES_REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((version, delta_version));
    }

    /// The first known Delta version with the publication of `version`.
    pub fn with(&self, version: Version) -> Option<i64> {
        let place = self.0.partition_point(|(reached, _)| *reached < version);
        self.0.get(place).map(|(_, delta_version)| *delta_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_in_the_first_delta_version_that_reached_it() {
        let mut versions = DeltaVersions::at_open(Version(5), 3);
        versions.reach(Version(7), 4);
        versions.reach(Version(7), 6);
        versions.reach(Version(9), 8);
        let found: Vec<_> = (4..=10).map(|version| versions.with(Version(version))).collect();
        assert_eq!(found, [Some(3), Some(3), Some(4), Some(4), Some(8), Some(8), None]);
    }

    #[test]
    fn forgotten_flushes_leave_a_later_delta_version() {
        let mut versions = DeltaVersions::at_open(Version(0), 0);
        for version in 1..=FLUSHES_REMEMBERED_MAX as u64 + 1 {
            versions.reach(Version(version), version as i64 * 10);
        }
        assert_eq!(versions.0.len(), FLUSHES_REMEMBERED_MAX);
        assert_eq!(versions.with(Version(1)), Some(20), "it is there, too");
        assert_eq!(versions.with(Version(5)), Some(50));
    }
}
