//! The kinds of transactions and the states of their life cycle.

use serde::{Deserialize, Serialize};

/// The kind of load behind a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionKind {
    Group,
    Insert,
    StreamLoad,
    BrokerLoad,
    /// A task of a job.
    RoutineLoad,
}

impl TransactionKind {
    /// The name that is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Group => "GROUP",
            Self::Insert => "INSERT",
            Self::StreamLoad => "STREAM_LOAD",
            Self::BrokerLoad => "BROKER_LOAD",
            Self::RoutineLoad => "ROUTINE_LOAD",
        }
    }

    /// Reads [`TransactionKind::name`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Group, Self::Insert, Self::StreamLoad, Self::BrokerLoad, Self::RoutineLoad];
        all.into_iter().find(|kind| kind.name() == text)
    }

    /// The name in `LoadJobSourceType`.
    #[must_use]
    pub const fn source_type(self) -> &'static str {
        match self {
            Self::Group | Self::Insert => "INSERT_STREAMING",
            Self::StreamLoad => "BACKEND_STREAMING",
            Self::BrokerLoad => "BATCH_LOAD_JOB",
            Self::RoutineLoad => "ROUTINE_LOAD_TASK",
        }
    }
}

/// A transaction's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Prepare,
    Precommitted,
    Visible,
    Aborted,
}

impl TransactionStatus {
    /// The name in SHOW TRANSACTION and in error texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "PREPARE",
            Self::Precommitted => "PRECOMMITTED",
            Self::Visible => "VISIBLE",
            Self::Aborted => "ABORTED",
        }
    }

    /// Reads [`TransactionStatus::name`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Prepare, Self::Precommitted, Self::Visible, Self::Aborted]
            .into_iter()
            .find(|status| status.name().eq_ignore_ascii_case(text))
    }

    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Visible | Self::Aborted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_named() {
        for kind in [
            TransactionKind::Group,
            TransactionKind::Insert,
            TransactionKind::StreamLoad,
            TransactionKind::BrokerLoad,
        ] {
            assert_eq!(TransactionKind::parse(kind.name()), Some(kind));
        }
        assert_eq!(TransactionKind::parse("insert"), None);
    }
}
