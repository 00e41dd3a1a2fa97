//! Decode: the bytes of a load become column blocks, with a reason for each rejected row.
//!
//! A load arrives as `VALUES` text, as binary parameters of a prepared statement, as CSV, as JSON, as Parquet, or as Arrow
//! batches. Each has a module that walks its input once and puts cells into a [`BlockBuilder`]; [`Target`] maps cells to columns
//! and fills the others. The body of a file is read by the [`BodyDecoder`] of its [`LoadFormat`]. The result is a list of
//! [`Block`]s: contiguous bytes that the write-ahead log stores as they are and that become Arrow batches when their group
//! closes.
//!
//! Invariant: a block contains only values that are legal for its schema version: right type, within length, no NULL in a NOT
//! NULL column, valid UTF-8 and JSON. Only values that the server generates are missing until [`complete`] or [`Unfilled`] has
//! inserted them. A bad row leaves no trace.
//!
//! Not its business: groups, transactions, files, protocols, expressions.

mod adapt;
mod any;
mod batch_block;
mod block;
mod body;
mod builder;
mod cell;
mod columnar;
mod columns;
mod computed;
mod convert;
mod csv;
mod error;
mod format;
mod host;
mod json;
mod literal;
mod loader;
mod nested;
mod params;
mod partition;
mod pieces;
mod recast;
mod reject;
mod target;
#[cfg(test)]
mod testing;
mod text_batches;
mod unfilled;
mod values;
mod whole;

pub use adapt::adapt;
pub use any::decode_batch;
pub use batch_block::batch_to_block;
pub use block::Block;
pub use body::{BodyDecoder, FieldDecoder, FieldNames};
pub use builder::BlockBuilder;
pub use columnar::{ColumnarDecoder, ColumnarFormat};
pub use columns::{blocks_to_batches, column_overhead_bytes};
pub use computed::{Compute, complete};
pub use csv::{CsvDecoder, CsvFormat, CsvHeader, CsvStrings};
pub use error::BlockError;
pub use format::{BodyFormat, Compression, FormatError, LoadFormat, decode_separator};
pub use host::{LoadHost, MemoryAccount, PlainHost, Spool, Spooled};
pub use json::{JsonDecoder, JsonFormat, JsonPath, JsonPaths, JsonStrings};
pub use literal::{check_literal, default_text};
pub use loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded, InsertOptions, LoadClock, LoadRules};
pub use params::{BoundParams, ParamType, PreparedValues, prepare_values};
pub use recast::{BadValue, recast};
pub use reject::{Counts, REJECTS_KEPT_MAX, Reject};
pub use target::{Strictness, Target, Wording};
pub use unfilled::Unfilled;
pub use values::{InsertHead, ValuesOutcome, decode_values, scan_insert_head};
