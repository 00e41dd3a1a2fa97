//! Collects the decoded rows of one load: in memory while they are few, in data files when they become many, so that a load of
//! any size takes bounded memory.
//!
//! The memory of all loads' sinks is counted in the memory budget. When it is large, large loads go to data files earlier; only a
//! few loads write files at a time, because each holds a run of rows to sort.
//!
//! Invariant: a sink that did not finish leaves no data file, however it ends.

use crate::ddl::partitions::automatic::AutomaticError;
use crate::load::Loads;
use crate::load::auto_increment::Increment;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tributary_decode::{Block, BlockError, blocks_to_batches};
use tributary_ingest::memory::{AdmittedBody, InFlight};
use tributary_ingest::{IncrementError, LoadRows};
use tributary_table::{FileWriter, Table, TableError, UnpublishedFiles};
use tributary_types::{ErrorCode, Partitions, Retry, SqlError, TableSchema};

/// A load that holds less is not counted: its memory is that of its packet or its connection, in bytes.
const COUNTED_BYTES_MIN: u64 = 64 * 1024;
/// A load that holds less writes no data file, however crowded the memory is, in bytes: files would become many and small.
const SPILLED_BYTES_MIN: u64 = 1024 * 1024;
/// How long a load waits until fewer others write data files.
const FILES_WAIT_MAX: Duration = Duration::from_secs(60);

/// How many loads write data files at a time. Each holds up to 100 MB of rows; more of them than processors only
/// hold memory.
pub(crate) fn file_turns() -> Arc<Semaphore> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new((2 * processors).max(4)))
}

/// The rows of one load so far.
#[must_use = "finish or abort it; dropped, it deletes what it wrote in the background"]
pub(crate) struct LoadSink {
    table: Arc<Table>,
    schema: Arc<TableSchema>,
    blocks: Vec<Block>,
    bytes: u64,
    /// Bytes of rows that lanes have written to data files.
    lane_bytes: u64,
    limit_bytes: u64,
    /// Boxed, to keep small loads, which have none, small.
    writer: Option<Box<FileWriter>>,
    /// The share of the memory budget, from [`COUNTED_BYTES_MIN`] on.
    held: Option<InFlight>,
    /// The right to write data files, as long as there is a writer.
    turn: Option<Turn>,
    /// How many sinks take rows of the load side by side.
    lanes: usize,
    /// Rows are missing: writing them failed.
    is_broken: bool,
    /// Whether to create partitions for rows without one.
    makes_partitions: bool,
    /// The partitions that rows are looked up in when they are decoded, if that is known.
    pub found_in: Option<Arc<Partitions>>,
    /// The column for which the server generates missing values.
    increment: Option<Box<Increment>>,
}

/// A place among the rows that a sink has taken, as long as all of them are in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    blocks: usize,
    bytes: u64,
}

/// The right of one load to write data files, which its lanes share.
type Turn = Arc<OnceCell<OwnedSemaphorePermit>>;

/// How long a client waits before a load that the store has failed is sent again.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Reasons why rows could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkError {
    #[error("{0}")]
    Block(#[from] BlockError),
    #[error("{0}")]
    Table(#[from] TableError),
    /// Doris's text; a client retries it.
    #[error(
        "schema version not match, maybe a schema change is in process. Please retry this load manually."
    )]
    SchemaChanged,
    #[error(
        "other large loads write data files, and none of them ended within {} s; nothing of the load was kept, \
         retry it",
        FILES_WAIT_MAX.as_secs()
    )]
    Busy,
    /// The partitions that rows need can't be made.
    #[error("{0}")]
    Partitions(#[from] AutomaticError),
    #[error("{0}")]
    Increment(#[from] IncrementError),
    #[error("rows of this load could not be written before; nothing of it was kept, run it again")]
    Broken,
}

impl SinkError {
    /// Whether the load, of which nothing was stored, may be sent again.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::SchemaChanged | Self::Broken => Retry::Safe,
            Self::Busy => Retry::After(FILES_WAIT_MAX),
            Self::Table(TableError::Storage { .. } | TableError::Delta { .. }) => Retry::After(STORE_RETRY),
            Self::Block(_) | Self::Table(_) | Self::Partitions(_) | Self::Increment(_) => Retry::Never,
        }
    }
}

impl From<SinkError> for SqlError {
    fn from(error: SinkError) -> Self {
        Self::detail(ErrorCode::Unknown, error.to_string()).with_retry(error.retry())
    }
}

impl LoadSink {
    /// A sink for blocks of `schema`, which was the table's when the load began.
    pub fn new(table: Arc<Table>, schema: Arc<TableSchema>, limit_bytes: u64) -> Self {
        let makes_partitions = table.with_def(|def| {
            def.partitioning.partitions().is_some_and(|partitions| partitions.auto.is_some())
        });
        let increment = Increment::of(&table, &schema);
        Self {
            table,
            schema,
            blocks: Vec::new(),
            bytes: 0,
            lane_bytes: 0,
            limit_bytes,
            writer: None,
            held: None,
            turn: None,
            lanes: 1,
            is_broken: false,
            makes_partitions,
            found_in: None,
            increment,
        }
    }

    /// Sinks for rows of this load that arrive in parallel. Together they hold as much as one does.
    pub fn lanes(&mut self, count: usize) -> Vec<Self> {
        let turn = Arc::clone(self.turn.get_or_insert_default());
        let limit_bytes = self.limit_bytes / count.max(1) as u64;
        let lane = |_| {
            let mut lane = Self::new(Arc::clone(&self.table), Arc::clone(&self.schema), limit_bytes);
            (lane.turn, lane.lanes) = (Some(Arc::clone(&turn)), self.lanes * count);
            lane
        };
        (0..count).map(lane).collect()
    }

    /// Whether rows may be numbered and stored in parallel: the server numbers rows in their order.
    pub fn takes_parts(&self) -> bool {
        self.increment.is_none()
    }

    /// The bytes that the sink takes before it writes data files.
    pub fn bytes_left(&self) -> u64 {
        if self.writer.is_some() { 0 } else { self.limit_bytes.saturating_sub(self.bytes) }
    }

    /// The bytes of all rows that the sink has taken, in memory or not.
    pub const fn taken_bytes(&self) -> u64 {
        self.bytes + self.lane_bytes
    }

    /// Takes over the rows and files of the lanes, in their order, after the rows that it has.
    ///
    /// # Errors
    /// As [`LoadSink::push`].
    pub async fn join(&mut self, loads: &Loads, lanes: Vec<Self>) -> Result<(), SinkError> {
        let (mut blocks, mut joined) = (Vec::new(), Ok(()));
        for mut lane in lanes {
            self.is_broken |= lane.is_broken;
            // The blocks are taken again below.
            let in_blocks: u64 = lane.blocks.iter().map(|block| block.len_bytes() as u64).sum();
            self.lane_bytes += lane.taken_bytes().saturating_sub(in_blocks);
            if let Some(other) = lane.writer.take() {
                self.take(std::mem::take(&mut blocks));
                // They precede the rows in the other's files.
                if joined.is_ok() && !self.is_broken && !self.blocks.is_empty() {
                    joined = self.spill().await;
                }
                match &mut self.writer {
                    Some(writer) => writer.join(*other),
                    None => self.writer = Some(other),
                }
            }
            blocks.append(&mut lane.blocks);
        }
        joined?;
        if self.is_broken {
            return Err(SinkError::Broken);
        }
        self.push(loads, blocks).await
    }

    /// The first value that the server has generated since this was last asked for.
    pub fn take_first_generated(&mut self) -> Option<i64> {
        self.increment.as_mut()?.first.take()
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Holds the charge of the load's body until the load's rows are admitted or given up.
    pub fn hold_body(&mut self, loads: &Loads, body: AdmittedBody) {
        self.held = Some(InFlight::of_body(loads.ingest.memory(), body));
    }

    /// Takes rows; writes them to data files if they are too many for memory.
    ///
    /// # Errors
    /// The rows can't be written. Then [`LoadSink::take_files`] fails, too: no load is committed in part.
    pub async fn push(&mut self, loads: &Loads, blocks: Vec<Block>) -> Result<(), SinkError> {
        if self.makes_partitions || self.increment.is_some() {
            return Box::pin(self.push_completed(loads, blocks)).await;
        }
        if self.take(blocks) {
            return Ok(());
        }
        // Boxed: a small load, which never gets here, should not carry space for its states.
        Box::pin(self.counted(loads)).await
    }

    /// [`LoadSink::push`], once the rows have all values, and the partitions that they need exist.
    async fn push_completed(&mut self, loads: &Loads, blocks: Vec<Block>) -> Result<(), SinkError> {
        let blocks = match &mut self.increment {
            Some(increment) => increment.fill(loads, &self.schema, blocks).await?,
            None => blocks,
        };
        if self.makes_partitions {
            loads.ddl.make_partitions(&self.table, &self.schema, &blocks).await?;
        }
        if self.take(blocks) { Ok(()) } else { self.counted(loads).await }
    }

    /// The rows that it has; `None` if some are in data files.
    pub fn blocks(&self) -> Option<&[Block]> {
        self.mark().is_some().then_some(self.blocks.as_slice())
    }

    /// The place behind the rows that it has; `None` if some are in data files.
    pub fn mark(&self) -> Option<Mark> {
        let is_in_memory = self.writer.is_none() && !self.is_broken && self.lane_bytes == 0;
        is_in_memory.then_some(Mark { blocks: self.blocks.len(), bytes: self.bytes })
    }

    /// Gives up the rows behind a mark. `false`: they are in data files, and nothing has changed.
    pub fn back_to(&mut self, mark: Mark) -> bool {
        if self.mark().is_none() || mark.blocks > self.blocks.len() {
            return false;
        }
        self.blocks.truncate(mark.blocks);
        self.bytes = mark.bytes;
        let held_bytes = self.held_bytes();
        if let Some(held) = &mut self.held {
            held.set(held_bytes);
        }
        true
    }

    /// Takes rows into memory. Whether they are too few to be counted.
    fn take(&mut self, blocks: Vec<Block>) -> bool {
        // A group with a load of another schema would fail, with all others in it.
        let is_of_schema = |block: &Block| block.schema_version() == self.schema.version;
        debug_assert!(
            blocks.iter().all(is_of_schema),
            "a load's rows are of the one schema that it began with"
        );
        self.bytes += blocks.iter().map(|block| block.len_bytes() as u64).sum::<u64>();
        if self.blocks.is_empty() {
            self.blocks = blocks;
        } else {
            self.blocks.extend(blocks);
        }
        self.writer.is_none() && self.bytes <= self.limit_bytes.min(COUNTED_BYTES_MIN)
    }

    /// Counts the held memory, and writes the rows to data files if it is too much.
    async fn counted(&mut self, loads: &Loads) -> Result<(), SinkError> {
        let memory = loads.ingest.memory();
        let held_bytes = self.held_bytes();
        self.held.get_or_insert_with(|| InFlight::new(memory)).set(held_bytes);
        let is_large = self.bytes > self.limit_bytes;
        if self.writer.is_none() && !is_large && !(self.bytes > SPILLED_BYTES_MIN && memory.is_crowded()) {
            return Ok(());
        }
        let own = Arc::clone(self.turn.get_or_insert_default());
        own.get_or_try_init(|| turn(loads)).await?;
        self.spill().await?;
        let held_bytes = self.held_bytes();
        if let Some(held) = &mut self.held {
            held.set(held_bytes);
        }
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        let in_blocks: u64 = self.blocks.iter().map(|block| block.len_bytes() as u64).sum();
        in_blocks + self.writer.as_ref().map_or(0, |writer| writer.held_bytes() as u64)
    }

    async fn spill(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(SinkError::Broken);
        }
        let def = self.table.def();
        if def.schema.version != self.schema.version {
            return Err(SinkError::SchemaChanged);
        }
        let blocks = std::mem::take(&mut self.blocks);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Box::new(self.table.new_file_writer_of(self.lanes)?)),
        };
        // Partitions may be new since it was made.
        writer.divide_by(&def);
        for batch in blocks_to_batches(&self.schema, &blocks)? {
            writer.append(batch).await?;
        }
        self.is_broken = false;
        Ok(())
    }

    /// The load's rows, ready to be committed, if none of them is in a data file; the sink is empty then, and the rows
    /// own what it has counted in the memory budget.
    pub fn take_small(&mut self) -> Option<LoadRows> {
        if self.writer.is_some() || self.is_broken {
            return None;
        }
        let blocks = std::mem::take(&mut self.blocks);
        Some(LoadRows {
            in_flight: self.held.take().map(Arc::new),
            partitions: self.found_in.clone(),
            ..LoadRows::of_blocks(Arc::clone(&self.schema), blocks)
        })
    }

    /// Takes the rows of a load with data files, ready to be committed. The files are durable; the sink returns its memory and
    /// its right to write files.
    ///
    /// # Errors
    /// Rows can't be written; no data file is left.
    pub async fn take_files(&mut self) -> Result<LoadRows, SinkError> {
        let files = self.finish_files().await?;
        // The load waits for its group or its commit from here on, and should not keep others from their files.
        (self.held, self.turn) = (None, None);
        Ok(LoadRows::of_files(Arc::clone(&self.schema), files))
    }

    /// The rows as data files, however few they are. The files are durable.
    ///
    /// # Errors
    /// As [`LoadSink::take_files`].
    pub async fn into_files(mut self) -> Result<UnpublishedFiles, SinkError> {
        self.finish_files().await
    }

    async fn finish_files(&mut self) -> Result<UnpublishedFiles, SinkError> {
        if let Err(error) = self.spill().await {
            if let Some(writer) = self.writer.take() {
                writer.abort().await;
            }
            return Err(error);
        }
        let Some(writer) = self.writer.take() else { return Err(SinkError::Broken) };
        Ok(writer.finish().await?)
    }

    /// Gives up. On return the data files that were written are deleted.
    pub async fn abort(mut self) {
        if let Some(writer) = self.writer.take() {
            Box::pin(writer.abort()).await;
        }
    }
}

async fn turn(loads: &Loads) -> Result<OwnedSemaphorePermit, SinkError> {
    let turn = Arc::clone(&loads.file_turns).acquire_owned();
    match tokio::time::timeout(FILES_WAIT_MAX, turn).await {
        Ok(Ok(turn)) => Ok(turn),
        // It is never closed.
        Ok(Err(_)) | Err(_) => Err(SinkError::Busy),
    }
}

impl Drop for LoadSink {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        match tokio::runtime::Handle::try_current() {
            // Unwatched: its panic leaves files to the sweep, as its error does.
            Ok(runtime) => drop(runtime.spawn(writer.abort())),
            // The process ends; the sweep of a later start finds the files.
            Err(_) => tracing::debug!("data files of a load that did not end are left to the sweep"),
        }
    }
}

#[cfg(test)]
mod tests;
