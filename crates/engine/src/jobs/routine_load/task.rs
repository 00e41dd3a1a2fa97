//! A task: one batch of messages, which is one load with a transaction of its own, or one for each table that messages name.
//!
//! The loads of a batch are committed one after another, in the order of their transactions, and each names as its position the
//! progress of all tables ([`Progress`](tributary_ingest::Progress)).
//!
//! Invariant: with the last of them the position is behind the last message that was fed to the batch, and not before.

use super::ends::TaskLoad;
use super::job::{Job, Now};
use super::kept::{Definition, Position, Reason};
use super::names::Names;
use super::properties::{self, Limits};
use super::runner::{Halt, Target, task};
use crate::access::interrupt::Interrupt;
use crate::access::limits::AdmittedLoad;
use crate::jobs::ServerJobs;
use crate::load::body::reader::{Mapping, ReadError, RowReader};
use crate::load::body::time::LoadTime;
use crate::load::partial_update::KnownKeys;
use crate::load::{Finished, Load, LoadError, LoadLabel, LoadLimits, Tally};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_decode::{Counts, FieldNames};
use tributary_ingest::{Body, IngestError, LoadTraits, Source};
use tributary_kafka::{Chunk, Offsets};
use tributary_table::Table;
use tributary_types::{GroupCommitMode, Label, SqlError, TableDef, TableId};

/// A batch that has read everything there is ends at this age, at the latest.
const CAUGHT_UP_AFTER: Duration = Duration::from_secs(1);
/// How long a commit may wait for memory and the log.
const COMMIT_MAX: Duration = Duration::from_secs(600);

/// Limit on the tables of a batch: it ends then.
const PARTS_MAX: usize = 256;

/// The decoder of a job's messages, made as of now.
pub(super) fn reader(
    jobs: &Arc<ServerJobs>,
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
    let time = time(jobs, definition)?;
    let is_strict = properties::is_strict(&definition.properties);
    RowReader::new(&jobs.loads, def, &mapping, &format.body, is_strict, time)
}

/// The current time for a job, in its zone.
pub(super) fn time(jobs: &ServerJobs, definition: &Definition) -> Result<LoadTime, SqlError> {
    LoadTime::of(&jobs.loads, definition.properties.get("timezone").map(String::as_str))
}

/// Whether a job may continue after a batch.
pub(super) enum Ended {
    GoOn,
    TooManyErrors,
}

/// A batch on its way.
pub(super) struct Batch {
    id: String,
    /// In the order of their transactions.
    parts: Vec<Part>,
    /// The table names in messages, if they have any.
    names: Option<Names>,
    /// The permission of a batch whose messages name their tables.
    _admitted: Option<AdmittedLoad>,
    begun: Instant,
    interval: Duration,
    bytes_max: u64,
    rows_max: u64,
    bytes: u64,
    messages: u64,
    next: Offsets,
}

/// A table's load in a batch.
pub(super) struct Part {
    load: Load,
    reader: RowReader,
    record: TaskLoad,
    /// Bytes that were decoded.
    bytes: u64,
    /// Rows of the chunk that is sorted by tables now.
    pub rows: Vec<u8>,
}

impl Part {
    fn begin(
        jobs: &Arc<ServerJobs>,
        kept: &Definition,
        table: Arc<Table>,
        label: &str,
        admitted: AdmittedLoad,
    ) -> Result<Self, Halt> {
        let def = table.def();
        let pause = |error: SqlError| {
            let of_table = if kept.is_of_many() { format!("table {}: ", def.name) } else { String::new() };
            Halt::Pause(Reason::internal(of_table + error.detail_text()))
        };
        let reader = reader(jobs, &def, kept).map_err(pause)?;
        let label = Label::new(label).map_err(pause)?;
        let traits = LoadTraits::plain(Source::RoutineLoad, Some(GroupCommitMode::Off), Body::Unknown);
        let schema = Arc::clone(&def.schema);
        let mut load = Load::begin(&jobs.loads, table, schema, &traits, LoadLabel::Made(label), admitted)
            .map_err(|error| Halt::Retry(error.to_string()))?;
        let record = TaskLoad::begin(jobs, &load)?;
        load.is_found_in(def.partitioning.partitions());
        let rejects_new_keys = properties::rejects_new_keys(&kept.properties).map_err(pause)?;
        load.must_find(KnownKeys::of(reader.target(), rejects_new_keys));
        Ok(Self { load, reader, record, bytes: 0, rows: Vec::new() })
    }

    async fn feed(&mut self, jobs: &Arc<ServerJobs>, rows: &[u8]) -> Result<(), Halt> {
        self.bytes += rows.len() as u64;
        let fed = self.reader.feed(&jobs.loads, self.load.sink(), rows, Interrupt::NEVER).await;
        fed.map_err(unread)
    }

    fn table(&self) -> TableId {
        self.load.table().id()
    }

    /// Commits the rows with the position behind them.
    async fn commit(
        self,
        jobs: &Arc<ServerJobs>,
        job: &Job,
        position: &Position,
        counts: Counts,
    ) -> Result<(), Halt> {
        let Self { load, reader, record, bytes, .. } = self;
        let loaded = reader.counts();
        let outcome = Self::commit_load(jobs, job, (load, reader), position, counts).await;
        let error = outcome.as_ref().err().map(Halt::text);
        record.end(jobs, job, loaded, bytes, error.as_deref());
        outcome
    }

    async fn commit_load(
        jobs: &Arc<ServerJobs>,
        job: &Job,
        (load, reader): (Load, RowReader),
        position: &Position,
        counts: Counts,
    ) -> Result<(), Halt> {
        match position.written() {
            Ok(written) => load.advance(job.id, written),
            Err(error) => {
                load.abort(&error).await;
                return Err(Halt::Pause(Reason::internal(error)));
            }
        }
        // The budget of bad rows is the job's: the good ones of a batch are loaded.
        let load_limits = LoadLimits {
            max_filter_ratio: 1.0,
            rejected_rows: None,
            timeout: COMMIT_MAX,
            interrupt: Interrupt::NEVER,
            has_details: false,
        };
        let tally = Tally { counts, rejects: &reader.rejects() };
        let Finished { error_url, outcome } = load.finish(&jobs.loads, tally, load_limits).await;
        if let Some(url) = error_url {
            job.now().add_error_url(url);
        }
        match outcome {
            Ok(_) => Ok(()),
            // The same messages would fail again.
            Err(LoadError::NewKey(error)) => Err(Halt::Pause(Reason::internal(error.detail_text()))),
            // The table is looked for again, and not found.
            Err(LoadError::Ingest(error @ IngestError::TableDropped(_))) => {
                Err(Halt::Retry(error.to_string()))
            }
            Err(error) => Err(Halt::Retry(error.to_string())),
        }
    }
}

impl Part {
    async fn abort(self, jobs: &ServerJobs, job: &Job, reason: &str) {
        self.load.abort(reason).await;
        self.record.end(jobs, job, Counts::default(), self.bytes, Some(reason));
    }
}

/// The messages of a batch, for users: the job's topic, and for each partition the first offset and the one behind the last.
fn origin(job: &Job, next: &Offsets) -> String {
    let (kept, now) = (job.kept(), job.now());
    let topic = kept.source.get("kafka_topic").map_or("", String::as_str);
    let from = |partition| now.progress.offsets().get(partition).copied().unwrap_or_default();
    let moved = next.iter().filter(|(partition, next)| from(*partition) < **next);
    let offsets: Vec<String> =
        moved.map(|(partition, next)| format!("{partition}:{}..{next}", from(partition))).collect();
    format!("topic {topic} {}", offsets.join(" "))
}

impl Batch {
    pub fn begin(
        jobs: &Arc<ServerJobs>,
        job: &Job,
        target: Target,
        limits: &Limits,
        admitted: AdmittedLoad,
    ) -> Result<Self, Halt> {
        let id = task_id(rand::random());
        let (parts, names, whole) = match target {
            Target::Table(table, _) => {
                (vec![Part::begin(jobs, &job.kept(), table, &id, admitted)?], None, None)
            }
            Target::Named(principal) => (Vec::new(), Some(Names::new(principal)), Some(admitted)),
        };
        let batch = Self {
            id: id.clone(),
            parts,
            names,
            _admitted: whole,
            begun: Instant::now(),
            interval: limits.interval,
            bytes_max: limits.bytes,
            rows_max: limits.rows,
            bytes: 0,
            messages: 0,
            next: Offsets::new(),
        };
        let mut now = job.now();
        let from = now.progress.offsets().clone();
        now.task = Some(task(id, from));
        batch.note_transactions(&mut now);
        drop(now);
        Ok(batch)
    }

    fn note_transactions(&self, now: &mut Now) {
        if let Some(task) = &mut now.task {
            let txns = self.parts.iter().filter_map(|part| Some(part.load.transaction()?.0));
            task.txns = txns.collect();
        }
    }

    /// The time at which the batch ends in any case.
    pub fn deadline(&self) -> Instant {
        self.begun + self.interval
    }

    /// Whether the batch ends here.
    pub fn is_due(&self, last: &Chunk) -> bool {
        self.messages >= self.rows_max
            || self.bytes >= self.bytes_max
            || self.parts.len() >= PARTS_MAX
            || last.is_caught_up && self.begun.elapsed() >= CAUGHT_UP_AFTER.min(self.interval)
    }

    /// Decodes messages into the batch.
    pub async fn feed(&mut self, jobs: &Arc<ServerJobs>, job: &Job, chunk: &Chunk) -> Result<(), Halt> {
        self.moved(chunk);
        self.bytes += chunk.bytes.len() as u64;
        self.messages += chunk.messages;
        let Some(names) = &mut self.names else {
            for part in &mut self.parts {
                part.feed(jobs, &chunk.bytes).await?;
            }
            return Ok(());
        };
        let (kept, id) = (job.kept(), &self.id);
        let progress = job.now().progress.clone();
        let begin = |table: Arc<Table>| {
            let label = format!("{id}_{}", table.id());
            let principal = jobs.gate.principal(&kept.user, &kept.host);
            let right = jobs.loads.right(&principal, &table, None);
            let admitted = jobs.loads.limits.part_of_load(&principal, &table).with_right(right);
            Part::begin(jobs, &kept, table, &label, admitted)
        };
        let before = self.parts.len();
        names.sort(jobs, &kept.db, &progress, chunk, &mut self.parts, begin)?;
        if self.parts.len() > before {
            self.note_transactions(&mut job.now());
        }
        for part in &mut self.parts {
            let mut rows = std::mem::take(&mut part.rows);
            if !rows.is_empty() {
                part.feed(jobs, &rows).await?;
                rows.clear();
                part.rows = rows;
            }
        }
        Ok(())
    }

    /// Notes that there are no messages up to the end of the chunk.
    pub fn moved(&mut self, chunk: &Chunk) {
        self.next.extend(chunk.next.iter().map(|(partition, next)| (*partition, *next)));
    }

    /// Commits rows and position, durable and visible on return. Of several tables some may have their rows when it fails: then the
    /// durable position says so.
    pub async fn commit(mut self, jobs: &Arc<ServerJobs>, job: &Job, limits: &Limits) -> Result<Ended, Halt> {
        if let Err(halt) = self.end(jobs).await {
            self.abort(jobs, job, &halt.text()).await;
            return Err(halt);
        }
        let generation = job.kept().generation;
        let (stray, rejects) = self.names.take().map(Names::into_stray).unwrap_or_default();
        if let Some(url) = Box::pin(jobs.loads.write_error_log(&rejects, None)).await {
            job.now().add_error_url(url);
        }
        let task_ms = self.begun.elapsed().as_millis() as u64;
        let origin = origin(job, &self.next);
        let mut may_go_on = true;
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut part) = parts.next() {
            let is_last = parts.len() == 0;
            let counts = part.reader.counts();
            let (progress, mut statistics) = {
                let now = job.now();
                (
                    now.progress.after(part.table(), &self.next, is_last),
                    now.statistics.plus(counts, part.bytes),
                )
            };
            let mut counted = counts;
            if is_last {
                // Messages for no table are read again until the position is behind them.
                statistics = statistics.plus(stray.counts, stray.bytes).with_task(task_ms);
                counted = counts.plus(stray.counts);
            }
            let position = Position::new(generation, progress.clone(), statistics);
            part.load.set_origin(origin.clone());
            if let Err(halt) = part.commit(jobs, job, &position, counts).await {
                for part in parts {
                    part.abort(jobs, job, &halt.text()).await;
                }
                return Err(halt);
            }
            may_go_on &= job.now().committed(progress, statistics, counted, limits);
            if is_last {
                job.now().task = None;
                return Ok(if may_go_on { Ended::GoOn } else { Ended::TooManyErrors });
            }
        }
        // No table has a row: the catalog stores the position then.
        let (mut progress, before) = {
            let now = job.now();
            (now.progress.clone(), now.statistics)
        };
        progress.pass(&self.next);
        let statistics = before.plus(stray.counts, stray.bytes).with_task(task_ms);
        let moved = progress.clone();
        let changed = jobs.change_job(job, |kept| kept.begin_generation(moved, Some(statistics))).await;
        changed.map_err(|error| Halt::Retry(error.to_string()))?;
        let mut now = job.now();
        now.task = None;
        let may_go_on = now.committed(progress, statistics, stray.counts, limits);
        Ok(if may_go_on { Ended::GoOn } else { Ended::TooManyErrors })
    }

    /// Decodes the rest.
    async fn end(&mut self, jobs: &Arc<ServerJobs>) -> Result<(), Halt> {
        for part in &mut self.parts {
            part.reader.end(&jobs.loads, part.load.sink(), Interrupt::NEVER).await.map_err(unread)?;
        }
        Ok(())
    }

    /// Abandons the batch: nothing of it is stored, and its messages are read again.
    pub async fn abort(self, jobs: &ServerJobs, job: &Job, reason: &str) {
        for part in self.parts {
            part.abort(jobs, job, reason).await;
        }
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
