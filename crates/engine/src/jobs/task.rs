//! A task: one batch of messages, which is one load with a transaction of its own.
//!
//! Invariant: the position that the transaction names is that behind the last message that was fed to it.

use super::job::Job;
use super::kept::{Definition, Position, Reason, Statistics};
use super::properties::{self, Limits};
use super::runner::{Halt, task};
use crate::engine::Engine;
use crate::interrupt::Interrupt;
use crate::load::{Finished, Load, LoadError, LoadLabel, LoadLimits, Tally};
use crate::partial_update::KnownKeys;
use crate::stream_load::reader::{Mapping, ReadError, RowReader};
use crate::stream_load::time::LoadTime;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_decode::FieldNames;
use tributary_ingest::{Body, IngestError, LoadTraits, Source};
use tributary_kafka::{Chunk, Offsets};
use tributary_table::Table;
use tributary_types::{GroupCommitMode, Label, SqlError, TableDef};

/// A batch that has read everything there is ends at this age, at the latest.
const CAUGHT_UP_AFTER: Duration = Duration::from_secs(1);
/// How long a commit may wait for memory and the log.
const COMMIT_MAX: Duration = Duration::from_secs(600);

/// The decoder of a job's messages, made as of now.
pub(super) fn reader(
    engine: &Arc<Engine>,
    def: &Arc<TableDef>,
    definition: &Definition,
) -> Result<RowReader, SqlError> {
    let format = properties::format(definition)?;
    let columns = properties::columns(definition, def)?;
    let preceding = properties::condition(definition.clauses.preceding_filter.as_deref())?;
    let filter = properties::condition(definition.clauses.filter.as_deref())?;
    let partitions = definition.clauses.partitions();
    let mapping = Mapping {
        columns: columns.as_deref(),
        where_expr: filter.as_ref(),
        source_where: preceding.as_ref(),
        deletes: definition.clauses.deletes,
        updates: properties::updates(&definition.properties)?,
        unnamed_fields: FieldNames::Numbered,
        partitions: &partitions,
    };
    let zone = definition.properties.get("timezone").map(String::as_str);
    let time = LoadTime::of(engine, zone)?;
    let is_strict = properties::is_strict(&definition.properties);
    RowReader::new(engine, def, &mapping, &format.body, is_strict, time)
}

/// Whether a job may go on after a batch.
pub(super) enum Ended {
    GoOn,
    TooManyErrors,
}

/// A batch on its way.
pub(super) struct Batch {
    load: Load,
    reader: RowReader,
    begun: Instant,
    interval: Duration,
    bytes_max: u64,
    rows_max: u64,
    bytes: u64,
    messages: u64,
    next: Offsets,
}

impl Batch {
    pub fn begin(engine: &Arc<Engine>, job: &Job, table: Arc<Table>, limits: &Limits) -> Result<Self, Halt> {
        let (kept, def) = (job.kept(), table.def());
        let pause = |error: SqlError| Halt::Pause(Reason::internal(error.detail_text()));
        let reader = reader(engine, &def, &kept).map_err(pause)?;
        let id = task_id(rand::random());
        let label = Label::new(&id).map_err(pause)?;
        let traits = LoadTraits::plain(Source::RoutineLoad, Some(GroupCommitMode::Off), Body::Unknown);
        let schema = Arc::clone(&def.schema);
        let mut load = Load::begin(engine, table, schema, &traits, LoadLabel::Made(label))
            .map_err(|error| Halt::Retry(error.to_string()))?;
        let rejects_new_keys = properties::rejects_new_keys(&kept.properties).map_err(pause)?;
        load.must_find(KnownKeys::of(reader.target(), rejects_new_keys));
        let mut now = job.now();
        let mut begun = task(id, now.next.clone());
        begun.txn = load.transaction().map(|(txn, _)| txn);
        now.task = Some(begun);
        Ok(Self {
            load,
            reader,
            begun: Instant::now(),
            interval: limits.interval,
            bytes_max: limits.bytes,
            rows_max: limits.rows,
            bytes: 0,
            messages: 0,
            next: Offsets::new(),
        })
    }

    /// When the batch ends, whatever comes.
    pub fn deadline(&self) -> Instant {
        self.begun + self.interval
    }

    /// Whether the batch ends here.
    pub fn is_due(&self, last: &Chunk) -> bool {
        self.messages >= self.rows_max
            || self.bytes >= self.bytes_max
            || last.is_caught_up && self.begun.elapsed() >= CAUGHT_UP_AFTER.min(self.interval)
    }

    /// Decodes messages into the batch.
    pub async fn feed(&mut self, engine: &Arc<Engine>, chunk: &Chunk) -> Result<(), Halt> {
        self.moved(chunk);
        self.bytes += chunk.bytes.len() as u64;
        self.messages += chunk.messages;
        let fed = self.reader.feed(engine, self.load.sink(), &chunk.bytes, Interrupt::NEVER).await;
        fed.map_err(unread)
    }

    /// There is no message up to where the chunk leads.
    pub fn moved(&mut self, chunk: &Chunk) {
        self.next.extend(chunk.next.iter().map(|(partition, next)| (*partition, *next)));
    }

    /// Commits rows and position, durable and visible on return.
    pub async fn commit(mut self, engine: &Arc<Engine>, job: &Job, limits: &Limits) -> Result<Ended, Halt> {
        if let Err(error) = self.reader.end(engine, self.load.sink(), Interrupt::NEVER).await {
            let halt = unread(error);
            self.abort(&halt.text()).await;
            return Err(halt);
        }
        let (counts, rejects) = (self.reader.counts(), self.reader.rejects());
        let position = {
            let now = job.now();
            let before = now.statistics;
            let mut offsets = now.next.clone();
            offsets.extend(self.next.iter().map(|(partition, next)| (*partition, *next)));
            Position {
                generation: job.kept().generation,
                offsets,
                statistics: Statistics {
                    received_bytes: before.received_bytes + self.bytes,
                    total_rows: before.total_rows + counts.total,
                    loaded_rows: before.loaded_rows + counts.loaded,
                    error_rows: before.error_rows + counts.filtered,
                    unselected_rows: before.unselected_rows + counts.unselected,
                    committed_tasks: before.committed_tasks + 1,
                    task_ms: before.task_ms + self.begun.elapsed().as_millis() as u64,
                },
            }
        };
        match position.written() {
            Ok(written) => self.load.advance(job.id, written),
            Err(error) => {
                self.abort(&error).await;
                return Err(Halt::Pause(Reason::internal(error)));
            }
        }
        // The budget of bad rows is the job's: the good ones of a batch are loaded.
        let load_limits =
            LoadLimits { max_filter_ratio: 1.0, timeout: COMMIT_MAX, interrupt: Interrupt::NEVER };
        let Self { load, .. } = self;
        let Finished { error_url, outcome } =
            load.finish(engine, Tally { counts, rejects: &rejects }, load_limits).await;
        if let Some(url) = error_url {
            job.now().add_error_url(url);
        }
        match outcome {
            Ok(_) => {
                let may_go_on = job.now().committed(position, counts, limits);
                Ok(if may_go_on { Ended::GoOn } else { Ended::TooManyErrors })
            }
            // The same messages would fail again.
            Err(LoadError::NewKey(error)) => Err(Halt::Pause(Reason::internal(error.detail_text()))),
            // The table is looked for again, and not found.
            Err(LoadError::Ingest(error @ IngestError::TableDropped(_))) => {
                Err(Halt::Retry(error.to_string()))
            }
            Err(error) => Err(Halt::Retry(error.to_string())),
        }
    }

    /// Gives the batch up: nothing of it is kept, and its messages are read again.
    pub async fn abort(self, reason: &str) {
        self.load.abort(reason).await;
    }
}

fn unread(error: ReadError) -> Halt {
    match error {
        // The same messages would fail again.
        ReadError::Rows(error) => Halt::Pause(Reason::internal(error.detail_text())),
        ReadError::Sink(error) => Halt::Retry(error.to_string()),
        ReadError::Interrupted(_) => Halt::Stopped,
    }
}

/// As Doris writes ids of tasks, which are their labels, too.
fn task_id(random: u128) -> String {
    format!("{:016x}-{:016x}", (random >> 64) as u64, random as u64)
}
