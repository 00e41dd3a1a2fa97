//! Limits of users: their names and values.
//!
//! Not here: what counts against a limit, and what becomes of a request beyond it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A property of a user, which limits what the user takes of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserProperty {
    /// Open connections of MySQL's protocol.
    MaxUserConnections,
    /// Queries that run at a time.
    MaxConcurrentQueries,
    /// Loads that run at a time.
    MaxConcurrentLoads,
    MaxLoadRequestsPerSecond,
    MaxLoadRowsPerSecond,
    MaxLoadBytesPerSecond,
    /// Memory of one query, in bytes.
    ExecMemLimit,
    /// The most that the session variable of this name is worth, in seconds.
    QueryTimeout,
    /// As for queries.
    InsertTimeout,
}

impl UserProperty {
    pub const ALL: [Self; 9] = [
        Self::MaxUserConnections,
        Self::MaxConcurrentQueries,
        Self::MaxConcurrentLoads,
        Self::MaxLoadRequestsPerSecond,
        Self::MaxLoadRowsPerSecond,
        Self::MaxLoadBytesPerSecond,
        Self::ExecMemLimit,
        Self::QueryTimeout,
        Self::InsertTimeout,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxUserConnections => "max_user_connections",
            Self::MaxConcurrentQueries => "max_concurrent_queries",
            Self::MaxConcurrentLoads => "max_concurrent_loads",
            Self::MaxLoadRequestsPerSecond => "max_load_requests_per_second",
            Self::MaxLoadRowsPerSecond => "max_load_rows_per_second",
            Self::MaxLoadBytesPerSecond => "max_load_bytes_per_second",
            Self::ExecMemLimit => "exec_mem_limit",
            Self::QueryTimeout => "query_timeout",
            Self::InsertTimeout => "insert_timeout",
        }
    }

    /// The property of that name, without regard to case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|property| property.name().eq_ignore_ascii_case(name))
    }
}

/// The limits of a user. A property without a value limits nothing; no value is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserLimits(BTreeMap<UserProperty, u64>);

impl UserLimits {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn get(&self, property: UserProperty) -> Option<u64> {
        self.0.get(&property).copied()
    }

    /// Sets a limit, or removes it.
    pub fn set(&mut self, property: UserProperty, value: Option<u64>) {
        match value {
            Some(value) => self.0.insert(property, value),
            None => self.0.remove(&property),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_found_by_its_name_and_goes_when_it_has_no_value() {
        let mut limits = UserLimits::default();
        for (property, value) in UserProperty::ALL.into_iter().zip(1..) {
            assert_eq!(UserProperty::named(&property.name().to_uppercase()), Some(property));
            limits.set(property, Some(value));
        }
        for (property, value) in UserProperty::ALL.into_iter().zip(1..) {
            assert_eq!(limits.get(property), Some(value));
            limits.set(property, None);
        }
        assert!(limits.is_empty());
        assert_eq!(UserProperty::named("max_flights"), None);
    }
}
