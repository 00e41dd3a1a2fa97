//! The three modes of Group Commit.

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

impl fmt::Display for GroupCommitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
