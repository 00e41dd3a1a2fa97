//! Decoders of bodies, whatever the format.

use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::reject::{Counts, Reject};
use crate::formats::fork::LineFork;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::borrow::Cow;
use tributary_types::SqlError;

/// The minimum bytes of a row carried to the next chunk that are counted: shorter ones are part of a connection's memory.
const COUNTED_BYTES_MIN: usize = 64 * 1024;

/// The counted bytes of an incomplete row.
pub(crate) fn held_bytes(carry: &Vec<u8>) -> usize {
    if carry.capacity() < COUNTED_BYTES_MIN { 0 } else { carry.capacity() }
}

/// Turns the bytes of one body into blocks of one table's rows.
///
/// The blocks, counts and reasons do not depend on where the body is cut into chunks. After an error the
/// load must be given up.
pub trait BodyDecoder: Send {
    /// Decodes the rows that `chunk` completes.
    ///
    /// # Errors
    /// If the body can't be read any further: a line that is too long, an expression that fails.
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError>;

    /// Decodes the rest at the body's end, and completes the last block.
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn finish(&mut self) -> Result<(), SqlError>;

    /// Continues after [`BodyDecoder::push`] or [`BodyDecoder::finish`]: decodes the next rows, and returns whether there were
    /// any. Call it, and take the blocks, until there are none, so that a format that arrives in large pieces, or as a whole,
    /// need not hold all of their rows.
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn resume(&mut self) -> Result<bool, SqlError> {
        Ok(false)
    }

    /// Divides a complete body, in place of [`BodyDecoder::finish`], into at most `count` decoders of consecutive rows, in the
    /// order of the rows. They may decode in parallel; [`BodyDecoder::resume`] is all that they need. There are none if the format
    /// has no parts, or if the rows take less than `bytes_min` bytes: then `finish` follows.
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Box<dyn BodyDecoder>>, SqlError> {
        let _ = (count, bytes_min);
        Ok(Vec::new())
    }

    /// Whether memory was refused to one of the parts. One decoder needs less than all of them: give up their rows, and call
    /// [`BodyDecoder::finish`].
    fn parts_lacked_memory(&self) -> bool {
        false
    }

    /// Gives up the rows behind the last complete line to other decoders, which may decode them in parallel;
    /// [`BodyDecoder::finish`] must follow. `None`, and nothing has changed: rows must be read one after another, or nothing but the
    /// beginning of the body was read.
    fn fork(&mut self) -> Option<LineFork> {
        None
    }

    /// Bytes of the body held in memory, except its blocks and a row.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The blocks that are complete.
    fn take_blocks(&mut self) -> Vec<Block>;

    /// The rows so far.
    fn counts(&self) -> Counts;

    /// The first rejected rows, at most [`crate::REJECTS_KEPT_MAX`].
    fn rejects(&self) -> Cow<'_, [Reject]>;

    /// Takes the buffers for a later load. The decoder can decode no more.
    fn take_builder(&mut self) -> BlockBuilder;
}

/// Turns the bytes of one body into nullable columns, one for each field: the source of values that are computed.
/// They are text, unless the body has types. Makes the same promises as [`BodyDecoder`].
pub trait FieldDecoder: Send {
    /// Reads the rows that `chunk` completes.
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError>;

    /// Reads the rest at the body's end, and completes the last batch.
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn finish(&mut self) -> Result<(), SqlError>;

    /// See [`BodyDecoder::resume`].
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn resume(&mut self) -> Result<bool, SqlError> {
        Ok(false)
    }

    /// See [`BodyDecoder::divide`].
    ///
    /// # Errors
    /// See [`BodyDecoder::push`].
    fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Box<dyn FieldDecoder>>, SqlError> {
        let _ = (count, bytes_min);
        Ok(Vec::new())
    }

    /// See [`BodyDecoder::parts_lacked_memory`].
    fn parts_lacked_memory(&self) -> bool {
        false
    }

    /// See [`BodyDecoder::held_bytes`].
    fn held_bytes(&self) -> usize {
        0
    }

    /// The fields, which must be known by now: they are once there is a batch.
    ///
    /// # Errors
    /// Doris's text for a body without a line.
    fn schema(&self) -> Result<SchemaRef, SqlError>;

    /// The batches that are complete.
    fn take_batches(&mut self) -> Vec<RecordBatch>;

    /// The rows so far; `loaded` are those in batches.
    fn counts(&self) -> Counts;

    /// The first rejected rows, at most [`crate::REJECTS_KEPT_MAX`].
    fn rejects(&self) -> &[Reject];
}

/// How the fields of a body are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldNames<'a> {
    /// By these names; a row with more or fewer fields is rejected (Stream Load).
    Given(&'a [String]),
    /// `c1`, `c2`, … as many as in the first row; later rows may have fewer (NULL) or more (ignored), as in a table function.
    Numbered,
    /// The body's own names, and [`FieldNames::Numbered`] if it has none. Rows may have fewer or more fields, as there.
    OfBody,
}
