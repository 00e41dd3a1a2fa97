//! The rows of a body, or of a part of it, between its decoder and a sink: generated columns are computed, and `where` is applied.
//!
//! Invariant: the counts and rejects of a body's parts add up to those of the whole body.
//!
//! Not here: the source of bytes, and the sink.

use crate::generated::Completer;
use crate::load::body::plan_error;
use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use std::sync::Arc;
use tributary_decode::{
    Block, BlockBuilder, BodyDecoder, Counts, LineFork, Reject, batch_to_block, blocks_to_batches,
};
use tributary_query::RowFilter;
use tributary_types::{SqlError, TableDef, TableSchema};

/// Decodes rows and makes them complete.
pub(super) struct Rows {
    decoder: Box<dyn BodyDecoder>,
    filter: Option<RowFilter>,
    computes: Option<Box<Computes>>,
    def: Arc<TableDef>,
    unselected: u64,
}

/// Values that are computed from decoded rows, and their counts.
struct Computes {
    completer: Box<Completer>,
    filtered: u64,
    rejects: Vec<Reject>,
}

/// The counts of rows, and the first rejected ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    pub counts: Counts,
    rejects: Vec<Reject>,
    /// Those whose generated values do not fit.
    computed_rejects: Vec<Reject>,
}

/// Makes [`Rows`] of later lines of a body that was forked.
pub(super) struct RowFork {
    pub lines: LineFork,
    filter: Option<RowFilter>,
    completer: Option<Box<Completer>>,
    def: Arc<TableDef>,
}

impl RowFork {
    /// See [`LineFork::decoder`].
    pub fn rows(&self, builder: BlockBuilder, rejects_before: usize) -> Result<Rows, SqlError> {
        let decoder = self.lines.decoder(builder, rejects_before)?;
        Ok(Rows::new(decoder, self.filter.clone(), self.completer.clone(), &self.def))
    }

    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.def.schema
    }
}

impl Tallies {
    /// The rejected rows of the decoder that are kept.
    pub fn rejects_kept(&self) -> usize {
        self.rejects.len()
    }

    /// Adds those of later rows.
    pub fn add(&mut self, later: Self) {
        Reject::append(&mut self.rejects, self.counts.total, later.rejects);
        Reject::append(&mut self.computed_rejects, 0, later.computed_rejects);
        self.counts = self.counts.plus(later.counts);
    }

    pub fn into_rejects(self) -> Vec<Reject> {
        let mut rejects = self.rejects;
        Reject::append(&mut rejects, 0, self.computed_rejects);
        rejects
    }
}

impl Computes {
    fn new(completer: Box<Completer>) -> Self {
        Self { completer, filtered: 0, rejects: Vec::new() }
    }

    fn complete(&mut self, blocks: &[Block]) -> Result<Vec<Block>, SqlError> {
        let complete = self.completer.complete(blocks)?;
        self.filtered += complete.counts.filtered;
        Reject::append(&mut self.rejects, 0, complete.rejects.into_iter().map(Reject::unnumbered));
        Ok(complete.blocks)
    }
}

impl Rows {
    pub fn new(
        decoder: Box<dyn BodyDecoder>,
        filter: Option<RowFilter>,
        completer: Option<Box<Completer>>,
        def: &Arc<TableDef>,
    ) -> Self {
        let computes = completer.map(Computes::new).map(Box::new);
        Self { decoder, filter, computes, def: Arc::clone(def), unselected: 0 }
    }

    /// See [`BodyDecoder::divide`].
    pub fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Self>, SqlError> {
        let completer = || self.computes.as_ref().map(|computes| computes.completer.clone());
        let part = |decoder| Self::new(decoder, self.filter.clone(), completer(), &self.def);
        Ok(self.decoder.divide(count, bytes_min)?.into_iter().map(part).collect())
    }

    /// See [`BodyDecoder::fork`].
    pub fn fork(&mut self) -> Option<RowFork> {
        let lines = self.decoder.fork()?;
        let completer = self.computes.as_ref().map(|computes| computes.completer.clone());
        Some(RowFork { lines, filter: self.filter.clone(), completer, def: Arc::clone(&self.def) })
    }

    /// See [`BodyDecoder::parts_lacked_memory`].
    pub fn parts_lacked_memory(&self) -> bool {
        self.decoder.parts_lacked_memory()
    }

    /// The rows that a chunk completes, in blocks.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Block>, SqlError> {
        self.decoder.push(chunk)?;
        self.select()
    }

    /// The rows that were not complete yet.
    pub fn finish(&mut self) -> Result<Vec<Block>, SqlError> {
        self.decoder.finish()?;
        self.select()
    }

    /// More rows of the data read so far, in blocks; `None` if there are none. Call it until then.
    pub fn resume(&mut self) -> Result<Option<Vec<Block>>, SqlError> {
        if self.decoder.resume()? { self.select().map(Some) } else { Ok(None) }
    }

    /// Takes the complete blocks, without the rows for which `where` is not true.
    fn select(&mut self) -> Result<Vec<Block>, SqlError> {
        let mut blocks = self.decoder.take_blocks();
        if let Some(computes) = &mut self.computes {
            blocks = computes.complete(&blocks)?;
        }
        let Some(filter) = &self.filter else { return Ok(blocks) };
        let mut selected = Vec::new();
        for batch in blocks_to_batches(&self.def.schema, &blocks)? {
            let mask: BooleanArray = filter.evaluate(&batch)?;
            let kept = filter_record_batch(&batch, &mask).map_err(|error| plan_error(error.to_string()))?;
            self.unselected += (batch.num_rows() - kept.num_rows()) as u64;
            if kept.num_rows() > 0 {
                selected.push(batch_to_block(&kept, &self.def.schema)?);
            }
        }
        Ok(selected)
    }

    /// Bytes of the body held in memory, except its rows.
    pub fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    pub fn counts(&self) -> Counts {
        let counts = self.decoder.counts();
        let filtered = self.computes.as_ref().map_or(0, |computes| computes.filtered);
        Counts {
            loaded: counts.loaded - self.unselected - filtered,
            unselected: counts.unselected + self.unselected,
            filtered: counts.filtered + filtered,
            ..counts
        }
    }

    pub fn tallies(&self) -> Tallies {
        Tallies {
            counts: self.counts(),
            rejects: self.decoder.rejects().into_owned(),
            computed_rejects: self
                .computes
                .as_ref()
                .map_or_else(Vec::new, |computes| computes.rejects.clone()),
        }
    }

    /// See [`BodyDecoder::take_builder`].
    pub fn take_builder(&mut self) -> BlockBuilder {
        self.decoder.take_builder()
    }
}
