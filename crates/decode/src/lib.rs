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

mod blocks;
mod cells;
mod complete;
mod evolve;
mod formats;
mod rows;
#[cfg(test)]
mod testing;

pub use blocks::batch_block::batch_to_block;
pub use blocks::block::Block;
pub use blocks::builder::BlockBuilder;
pub use blocks::columns::{blocks_to_batches, column_overhead_bytes};
pub use blocks::error::{BadValue, BlockError};
pub use cells::reject::{Counts, REJECTS_KEPT_MAX, Reject, RejectCode};
pub use complete::computed::{Compute, complete};
pub use complete::unfilled::Unfilled;
pub use evolve::adapt::adapt;
pub use evolve::recast::recast;
pub use formats::body::{BodyDecoder, FieldDecoder, FieldNames};
pub use formats::columnar::{ColumnarDecoder, ColumnarFormat};
pub use formats::csv::{CsvDecoder, CsvFormat, CsvHeader, CsvStrings};
pub use formats::fork::LineFork;
pub use formats::format::{BodyFormat, Compression, FormatError, LoadFormat, decode_separator};
pub use formats::host::{LoadHost, MemoryAccount, PlainHost, Spool, Spooled};
pub use formats::json::{JsonDecoder, JsonFormat, JsonPath, JsonPaths, JsonStrings};
pub use formats::params::{BoundParams, ParamType, PreparedValues, prepare_values};
pub use formats::values::{InsertHead, ValuesOutcome, decode_values, scan_insert_head, with_hex_literals};
pub use rows::any::decode_batch;
pub use rows::literal::{check_literal, default_text};
pub use rows::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded, InsertOptions, LoadClock, LoadRules};
pub use rows::target::{Strictness, Target, Wording};
