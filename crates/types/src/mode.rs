//! The three modes of Group Commit, and what a client may require of them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// When a load is answered, and whether it may share a transaction with other loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GroupCommitMode {
    /// The load is its own transaction: durable and visible when the answer arrives.
    #[default]
    #[serde(rename = "off_mode")]
    Off,
    /// The load joins a group and is answered when the group is durable and visible.
    #[serde(rename = "sync_mode")]
    Sync,
    /// The load joins a group and is answered when the write-ahead log has it; it becomes
    /// visible when the group commits.
    #[serde(rename = "async_mode")]
    Async,
}

impl GroupCommitMode {
    /// Reads a mode as users write it, in any case. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Off, Self::Sync, Self::Async].into_iter().find(|mode| text.eq_ignore_ascii_case(mode.as_str()))
    }

    /// The name in SQL, HTTP headers and properties.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off_mode",
            Self::Sync => "sync_mode",
            Self::Async => "async_mode",
        }
    }
}

/// The least that a client wants of a load: it is refused rather than given less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// It is durable when the answer arrives, as each load is.
    Durable,
    /// It is visible when the answer arrives.
    Visible,
    /// It joins a group.
    Grouped,
}

impl Requirement {
    pub const ALL: [Self; 3] = [Self::Durable, Self::Visible, Self::Grouped];

    /// Reads a requirement as users write it, in any case. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| text.eq_ignore_ascii_case(one.as_str()))
    }

    /// The name in SQL and in HTTP headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Visible => "visible",
            Self::Grouped => "grouped",
        }
    }
}

/// The treatment of a load whose rows can't all be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RejectPolicy {
    /// The load fails, unless its `max_filter_ratio` allows as many rejected rows.
    #[default]
    Fail,
    /// The good rows are loaded, however many others there are, and those are kept in `information_schema.rejected_rows`.
    Keep,
}

impl RejectPolicy {
    pub const ALL: [Self; 2] = [Self::Fail, Self::Keep];

    /// Whether rejected rows may fail a load.
    #[must_use]
    pub const fn is_fail(&self) -> bool {
        matches!(self, Self::Fail)
    }

    /// Reads a policy as users write it, in any case. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| text.eq_ignore_ascii_case(one.as_str()))
    }

    /// The name in SQL and in HTTP headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Keep => "keep",
        }
    }
}

impl fmt::Display for GroupCommitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
