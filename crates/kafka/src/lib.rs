//! Messages of a topic's partitions, each from an offset on, as bytes that a decoder of bodies reads.
//!
//! [`Topic`] and [`Reader`] are what a job needs of a source; [`Broker`] is Kafka, by librdkafka. The reader's owner stores the
//! offsets: nothing is ever committed to the broker, and a reader begins exactly at the given offset, or fails.
//!
//! Not its business: threads, rows, and what becomes of an offset.

#[cfg(feature = "broker")]
mod broker;
mod chunk;
#[cfg(feature = "broker")]
mod log;
#[cfg(feature = "broker")]
mod properties;
mod source;

#[cfg(feature = "broker")]
pub use broker::Broker;
pub use chunk::{CHUNK_BYTES, Chunk, Framing, Place, Shape};
pub use source::{Connect, Extent, Offsets, Reader, Settings, SourceError, Topic};
