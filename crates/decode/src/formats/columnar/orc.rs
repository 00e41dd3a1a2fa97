//! ORC: gathered until its end, which says where everything is, then read stripe by stripe and batch by batch.
//!
//! Times without a zone are the writer's local time; those with one are instants. UNION, LZO and encrypted columns are not
//! supported.
//!
//! Invariant: memory is bounded whatever a file says ([`BodyMemory`]): every chunk by the file's block, and blocks,
//! dictionaries and the rows of a batch together by the limit of a body ([ADR 33](../../../../../docs/adr/0033-bodies-of-columns.md)).

mod chunks;
mod column;
mod proto;
mod runs;
mod tail;
mod text;

use super::memory::{BodyMemory, MemoryRefused};
use super::{damaged, gathered, guarded};
use crate::formats::host::{LoadHost, Spool, Spooled};
use crate::rows::loader::BLOCK_ROWS_TARGET;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use column::{Column, Opening};
use std::borrow::Cow;
use std::sync::Arc;
use tail::{Stripe, Tail};
use tributary_types::SqlError;

const NAME: &str = "orc";
/// Longer rows are read in smaller batches, so that a batch has about this many bytes of the file.
const BATCH_BYTES_TARGET: u64 = 16 * 1024 * 1024;

/// The damage of a file.
#[derive(Debug)]
struct Damage {
    text: Cow<'static, str>,
}

type Outcome<T> = Result<T, Damage>;

impl Damage {
    fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into() }
    }
}

impl From<std::io::Error> for Damage {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<MemoryRefused> for Damage {
    fn from(refused: MemoryRefused) -> Self {
        Self::new(refused.to_string())
    }
}

impl From<Damage> for SqlError {
    fn from(damage: Damage) -> Self {
        damaged(NAME, damage.text)
    }
}

/// An ORC file.
pub(super) struct OrcSource {
    host: Arc<dyn LoadHost>,
    state: State,
}

enum State {
    Gathering(Box<dyn Spool>),
    Known(Box<Opened>),
    Reading(Box<Reading>),
    /// The body is empty or is not to be read any more.
    Empty,
}

struct Opened {
    file: Arc<dyn Spooled>,
    memory: Arc<BodyMemory>,
    tail: Tail,
    schema: SchemaRef,
}

struct Reading {
    file: Opened,
    /// The file's columns that batches have, and their schema.
    chosen: Vec<usize>,
    schema: SchemaRef,
    next_stripe: usize,
    columns: Vec<Column>,
    rows_left: u64,
    batch_rows: u64,
}

impl OrcSource {
    pub(super) fn new(host: &Arc<dyn LoadHost>) -> Self {
        Self { host: Arc::clone(host), state: State::Gathering(host.spool()) }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let State::Gathering(spool) = &mut self.state else { return Ok(()) };
        spool.write(chunk).map_err(|error| gathered(NAME, &error))
    }

    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        let State::Gathering(spool) = std::mem::replace(&mut self.state, State::Empty) else { return Ok(()) };
        let file = spool.finish().map_err(|error| gathered(NAME, &error))?;
        if file.len_bytes() == 0 {
            return Ok(());
        }
        let memory = BodyMemory::new(&*self.host);
        let tail = Tail::read(&file, &memory)?;
        let schema = Arc::new(Schema::new(tail.fields()?));
        self.state = State::Known(Box::new(Opened { file, memory, tail, schema }));
        Ok(())
    }

    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        match &self.state {
            State::Known(file) => Some(&file.schema),
            State::Reading(reading) => Some(&reading.file.schema),
            State::Gathering(_) | State::Empty => None,
        }
    }

    pub(super) fn choose(&mut self, columns: Vec<usize>) -> Result<(), SqlError> {
        let State::Known(file) = std::mem::replace(&mut self.state, State::Empty) else { return Ok(()) };
        let schema = file.schema.project(&columns).map_err(|error| damaged(NAME, error))?;
        self.state = State::Reading(Box::new(Reading {
            file: *file,
            chosen: columns,
            schema: Arc::new(schema),
            next_stripe: 0,
            columns: Vec::new(),
            rows_left: 0,
            batch_rows: 1,
        }));
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let State::Reading(reading) = &mut self.state else { return Ok(None) };
        guarded(NAME, || Ok(reading.next(&self.host)?))
    }

    pub(super) fn held_bytes(&self) -> usize {
        match &self.state {
            State::Gathering(spool) => spool.held_bytes(),
            State::Known(file) => file.file.held_bytes(),
            State::Reading(reading) => reading.file.file.held_bytes(),
            State::Empty => 0,
        }
    }
}

impl Reading {
    fn next(&mut self, host: &Arc<dyn LoadHost>) -> Outcome<Option<RecordBatch>> {
        while self.rows_left == 0 {
            let Some(&stripe) = self.file.tail.stripes.get(self.next_stripe) else { return Ok(None) };
            self.next_stripe += 1;
            self.open(stripe, host)?;
        }
        let rows = self.rows_left.min(self.batch_rows);
        self.rows_left -= rows;
        self.file.memory.begin_batch();
        let arrays = self.columns.iter_mut().map(|column| column.read(rows as usize));
        let arrays = arrays.collect::<Outcome<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        batch.map(Some).map_err(|error| Damage::new(error.to_string()))
    }

    fn open(&mut self, stripe: Stripe, host: &Arc<dyn LoadHost>) -> Outcome<()> {
        // Frees the last stripe's blocks before those of the next are allocated.
        self.columns.clear();
        let Opened { file, memory, tail, .. } = &self.file;
        let footer = stripe.footer(file, memory, tail.packing)?;
        let opening = Opening { tail, footer: &footer, file, memory, host };
        let columns = self.chosen.iter().map(|&column| opening.column(tail.types[0].children[column]));
        self.columns = columns.collect::<Outcome<_>>()?;
        self.rows_left = stripe.rows;
        let row_bytes = stripe.data_bytes / stripe.rows.max(1);
        self.batch_rows = (BATCH_BYTES_TARGET / row_bytes.max(1)).clamp(1, BLOCK_ROWS_TARGET as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
