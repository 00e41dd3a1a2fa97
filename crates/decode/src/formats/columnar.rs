//! Columnar bodies: Parquet, ORC, and Arrow's IPC streams and files.
//!
//! [`source`] turns bytes into Arrow batches, a [`Mapping`] finds the columns of the file by their names, and
//! [`crate::rows::whole`] turns whole arrays into columns of the table. A batch with a value that does not fit is converted to
//! the common cells of all loads, row by row, with the same judgements and texts.
//!
//! Invariant: a body never holds more decoded rows than one batch, and the blocks that were not taken yet. Sizes that a file
//! claims are checked and charged before anything is allocated for them ([`memory`]), and a panic of a library on a damaged file
//! becomes an error of the load.
//!
//! Not its business: compression of the body, expressions, where a body is gathered ([`crate::LoadHost`]).

mod fields;
mod ipc;
mod mapping;
mod memory;
mod orc;
mod parquet;
mod source;
mod zone;

pub(crate) use fields::ColumnarFields;

use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::reject::{Counts, Reject};
use crate::formats::body::BodyDecoder;
use crate::formats::host::LoadHost;
use crate::rows::loader::{LoadRules, Progress};
use crate::rows::pieces::Pieces;
use crate::rows::target::{Target, Wording};
use crate::rows::whole::{self, Rows};
use arrow::array::RecordBatch;
use mapping::Mapping;
use source::{Part, Source};
use std::borrow::Cow;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// How a body of columns is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnarFormat {
    Parquet,
    Orc,
    /// IPC streams, concatenated, or an IPC file (Feather 2).
    Arrow,
}

impl ColumnarFormat {
    /// Its name in the property `format`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Orc => "orc",
            Self::Arrow => "arrow",
        }
    }
}

/// Decodes the columns of a file into blocks.
pub struct ColumnarDecoder {
    target: Target,
    rules: LoadRules,
    host: Arc<dyn LoadHost>,
    source: Source,
    mapping: Option<Mapping>,
    pending: Pending,
    /// The number of the next row in the body, from 0.
    row: u64,
    builder: BlockBuilder,
    progress: Progress,
}

/// A batch, which is taken piece by piece.
#[derive(Default)]
struct Pending(Option<Pieces>);

impl Pending {
    /// The next piece of this batch or of the next one that has rows; `None` if the body has no more yet.
    fn next(
        &mut self,
        mut more: impl FnMut() -> Result<Option<RecordBatch>, SqlError>,
    ) -> Result<Option<RecordBatch>, SqlError> {
        loop {
            if let Some(pieces) = &mut self.0 {
                if let Some(piece) = pieces.next()? {
                    return Ok(Some(piece));
                }
                // Before the next one is read.
                self.0 = None;
            }
            let Some(batch) = more()? else { return Ok(None) };
            self.0 = Some(Pieces::new(batch));
        }
    }
}

impl ColumnarDecoder {
    /// A decoder whose fields are the target's, with the buffers of an earlier load, of whatever table.
    pub fn new(
        target: Target,
        format: ColumnarFormat,
        rules: LoadRules,
        mut builder: BlockBuilder,
        host: Arc<dyn LoadHost>,
    ) -> Self {
        builder.reset(target.schema());
        let source = Source::new(format, &host);
        Self {
            target,
            rules,
            host,
            source,
            mapping: None,
            pending: Pending::default(),
            row: 0,
            builder,
            progress: Progress::default(),
        }
    }

    /// Maps the columns of the file, once they are known.
    fn map(&mut self) -> Result<(), SqlError> {
        if self.mapping.is_none()
            && let Some(schema) = self.source.schema()
        {
            let mapping = Mapping::of_target(schema, &self.target)?;
            self.source.choose(mapping.chosen())?;
            self.mapping = Some(mapping);
        }
        Ok(())
    }

    /// A decoder of a part of the file.
    fn part(&self, Part { first_row, source }: Part) -> Box<dyn BodyDecoder> {
        Box::new(Self {
            target: self.target.clone(),
            rules: self.rules,
            host: Arc::clone(&self.host),
            source,
            mapping: self.mapping.clone(),
            pending: Pending::default(),
            row: first_row,
            builder: BlockBuilder::new(self.target.schema()),
            progress: Progress::default(),
        })
    }

    /// Decodes the next piece; whether there was one.
    fn advance(&mut self) -> Result<bool, SqlError> {
        self.map()?;
        let (source, host) = (&mut self.source, &*self.host);
        let piece = self.pending.next(|| source.next())?;
        let (Some(batch), Some(mapping)) = (piece, &self.mapping) else { return Ok(false) };
        let first = self.row;
        self.row += batch.num_rows() as u64;
        let rules = self.rules.worded(Wording::File);
        let now = self.rules.clock.now_micros;
        guarded("file's", || {
            let batch = zone::localized(&batch, host)?;
            let rows =
                Rows { fields: &mapping.fields(&batch), count: batch.num_rows(), first_row: Some(first) };
            whole::load(&rows, &self.target, rules, now, &mut self.builder, &mut self.progress)
        })?;
        Ok(true)
    }
}

impl BodyDecoder for ColumnarDecoder {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.source.push(chunk)?;
        self.advance()?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.source.finish()?;
        self.advance()?;
        Ok(())
    }

    fn resume(&mut self) -> Result<bool, SqlError> {
        self.advance()
    }

    fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Box<dyn BodyDecoder>>, SqlError> {
        if !self.source.has_parts() {
            return Ok(Vec::new());
        }
        self.source.finish()?;
        self.map()?;
        let parts = self.source.divide(&*self.host, count, bytes_min);
        Ok(parts.into_iter().map(|part| self.part(part)).collect())
    }

    fn parts_lacked_memory(&self) -> bool {
        self.source.parts_lacked_memory()
    }

    fn held_bytes(&self) -> usize {
        self.source.held_bytes()
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.progress.decoded.blocks)
    }

    fn counts(&self) -> Counts {
        self.progress.decoded.counts
    }

    fn rejects(&self) -> Cow<'_, [Reject]> {
        Cow::Borrowed(&self.progress.decoded.rejects)
    }

    fn take_builder(&mut self) -> BlockBuilder {
        self.builder.take()
    }
}

/// The error of a file that can't be read.
fn damaged(format: &str, what: impl std::fmt::Display) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("the {format} body can't be read: {what}"))
}

/// The error of a body for which there is no space.
fn gathered(format: &str, error: &std::io::Error) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!("the {format} body is read from its end, and can't be kept until then: {error}"),
    )
}

/// Runs a library on untrusted bytes: a panic counts as damage, too.
fn guarded<T>(format: &str, work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    // Whatever is left in a wrong state is not used again: the load fails.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let what = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Err(damaged(format, format_args!("the file is damaged ({what})")))
    })
}

#[cfg(test)]
mod tests;
