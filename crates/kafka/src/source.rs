//! A job's view of a source of messages.

use crate::chunk::{Chunk, Shape};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// The next offset of each partition.
pub type Offsets = BTreeMap<i32, i64>;

/// A topic's address and the properties of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `host:port`, divided by commas.
    pub brokers: String,
    pub topic: String,
    /// Properties of the client, by its own names.
    pub properties: Vec<(String, String)>,
}

/// The offsets that a partition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The offset of the oldest message, if there is one.
    pub first: i64,
    /// The offset of the next message to arrive.
    pub end: i64,
}

/// Why a source can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A setting is wrong, or there is no such topic or partition: waiting does not help.
    #[error("{0}")]
    Wrong(String),
    /// The source has no messages at an offset, or not the same ones as before.
    #[error("{0}")]
    OutOfRange(String),
    /// It can't be reached now.
    #[error("{0}")]
    Unreachable(String),
}

/// Makes connections.
pub trait Connect: Send + Sync + Debug {
    /// A connection. Nothing need be sent yet.
    ///
    /// # Errors
    /// [`SourceError::Wrong`] for a setting that is not known or not allowed.
    fn connect(&self, settings: &Settings) -> Result<Box<dyn Topic>, SourceError>;
}

/// A topic. Its methods wait for the source.
pub trait Topic: Send + Sync {
    /// The ids of the partitions that there are now, in their order.
    ///
    /// # Errors
    /// [`SourceError::Wrong`] for an unknown topic, [`SourceError::Unreachable`] with the reason as far as it is known.
    fn partitions(&self) -> Result<Vec<i32>, SourceError>;

    /// The offsets that a partition has.
    ///
    /// # Errors
    /// See [`Topic::partitions`].
    fn extent(&self, partition: i32) -> Result<Extent, SourceError>;

    /// The offset of the first message at that time (ms since 1970) or later; the end if there is none.
    ///
    /// # Errors
    /// See [`Topic::partitions`].
    fn offset_at(&self, partition: i32, unix_ms: i64) -> Result<i64, SourceError>;

    /// Reads partitions from these offsets on, and no others.
    ///
    /// # Errors
    /// [`SourceError::OutOfRange`] if a partition does not have its offset, else as [`Topic::partitions`].
    fn read(self: Box<Self>, from: &Offsets, shape: Shape) -> Result<Box<dyn Reader>, SourceError>;
}

/// Reads messages as they arrive.
pub trait Reader: Send {
    /// The next messages, after `wait` at the latest; then the chunk may be empty.
    ///
    /// # Errors
    /// This reader can't read the source any further. A temporarily unavailable source is not an error.
    fn next(&mut self, wait: Duration) -> Result<Chunk, SourceError>;

    /// Partitions that were added, if that is known by now. Waits for the source.
    ///
    /// # Errors
    /// See [`Topic::partitions`].
    fn partitions(&self) -> Result<Vec<i32>, SourceError>;

    /// The offsets after the last message of each partition that it reads, as they are now. Waits for the source.
    ///
    /// # Errors
    /// See [`Topic::partitions`].
    fn ends(&self) -> Result<Offsets, SourceError>;
}

/// Checks that a partition has an offset to continue from.
///
/// # Errors
/// [`SourceError::OutOfRange`] with the available offsets.
pub(crate) fn check(topic: &str, partition: i32, offset: i64, extent: Extent) -> Result<(), SourceError> {
    let Extent { first, end } = extent;
    if (first..=end).contains(&offset) {
        return Ok(());
    }
    let why = if offset < first {
        "older messages were deleted before they were loaded"
    } else {
        "the topic is shorter than it was, as if it had been made anew"
    };
    Err(SourceError::OutOfRange(format!(
        "partition {partition} of topic '{topic}' has the offsets {first} to {end} and not {offset}: {why}; ALTER ROUTINE LOAD \
         with kafka_partitions and kafka_offsets says where to go on"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_one_that_there_is_or_the_next() {
        let extent = Extent { first: 5, end: 9 };
        assert_eq!(check("t", 0, 5, extent), Ok(()));
        assert_eq!(check("t", 0, 9, extent), Ok(()));
        let deleted = check("t", 0, 4, extent).unwrap_err().to_string();
        assert!(deleted.contains("offsets 5 to 9 and not 4") && deleted.contains("deleted"), "{deleted}");
        let shorter = check("t", 0, 10, extent).unwrap_err().to_string();
        assert!(shorter.contains("made anew"), "{shorter}");
    }
}
