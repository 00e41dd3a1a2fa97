//! A job's files become the rows of its load.

use super::job::{Ended, Job, Progress, Record, State};
use super::plan::{Part, Plan};
use super::refused;
use crate::access::interrupt::Interrupt;
use crate::jobs::ServerJobs;
use crate::load::body::reader::{Mapping, ReadError, RowReader};
use crate::load::body::time::LoadTime;
use crate::load::lanes::{Lane, Read, side_by_side};
use crate::load::partial_update::Updates;
use crate::load::sink::LoadSink;
use crate::load::{Finished, Load, LoadError, LoadLimits, Outcome, Tally};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tributary_decode::{Counts, FieldNames, Reject};
use tributary_files::{FoundFile, Place};
use tributary_http::{BodyError, LoadBody};
use tributary_types::{ErrorCode, SqlError, TableDef};

/// The most names of files that are shown as the source of rejected rows.
const ORIGINS_SHOWN: usize = 5;

/// How long a commit may wait.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(600);

/// A file that waits for its turn.
struct Waiting {
    part: Arc<Part>,
    place: Arc<Place>,
    file: FoundFile,
}

impl ServerJobs {
    /// Runs a job to its end, or until the server stops.
    pub(super) async fn run_broker_load(self: Arc<Self>, job: Arc<Job>, plan: Plan, load: Load) {
        let read = self.load_files(&job, &plan, load).await;
        if let Some(ended) = read {
            // The label says what became of the job, if its record can't.
            let details = Some(job.progress.details());
            let end = |record: &mut Record| {
                record.end(ended);
                record.details = details;
            };
            self.broker_loads.end(&job, end).await;
        }
        job.announce();
    }

    /// Reads and commits; `None` if the server stops.
    async fn load_files(self: &Arc<Self>, job: &Arc<Job>, plan: &Plan, mut load: Load) -> Option<Ended> {
        let by_cancel = Interrupt::by_kill(&job.stop);
        // A job that waits for its limits takes no turn from others.
        let record = job.record();
        let principal = self.gate.principal(&record.user, &record.host);
        let admitted = by_cancel.wait(self.loads.limits.wait_for_load(&principal, Some(&plan.table))).await;
        let turn = match admitted {
            Ok(admitted) => {
                load.admit(admitted.with_right(self.loads.right(&principal, &plan.table, None)));
                self.broker_loads.turn(job).await
            }
            Err(interrupted) => Err(interrupted),
        };
        let read = match &turn {
            Ok(_) => self.read_files(job, plan, &mut load, by_cancel.or_after(plan.timeout)).await,
            Err(interrupted) => Err((*interrupted).into()),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                load.abort(error.detail_text()).await;
                return (!job.is_paused()).then(|| self.given_up(&error));
            }
        };
        let limits = LoadLimits {
            max_filter_ratio: plan.max_filter_ratio,
            rejected_rows: None,
            timeout: COMMIT_WAIT_MAX,
            // Rows read by now are committed.
            interrupt: Interrupt::NEVER,
            has_details: false,
        };
        let tally = Tally { counts: read.counts, rejects: &read.rejects };
        let Finished { error_url, outcome } = load.finish(&self.loads, tally, limits).await;
        let mut ended = match outcome {
            Ok(Outcome { committed, .. }) => {
                Ended::committed(committed.map(|committed| committed.txn), 0, None, self.unix_ms())
            }
            Err(LoadError::Filtered) => {
                Ended::failed("ETL_QUALITY_UNSATISFIED", "quality not good enough to cancel", self.unix_ms())
            }
            Err(error) => Ended::failed("LOAD_RUN_FAIL", SqlError::from(error).detail_text(), self.unix_ms()),
        };
        ended.counts = read.counts;
        ended.url = error_url;
        ended.first_error = read.rejects.first().map(|reject| reject.reason.clone()).unwrap_or_default();
        Some(ended)
    }

    fn given_up(&self, error: &SqlError) -> Ended {
        let now = self.unix_ms();
        match error.code {
            ErrorCode::QueryInterrupted => Ended::failed("USER_CANCEL", "user cancel", now),
            ErrorCode::ExecuteTimeout => {
                Ended::failed("TIMEOUT", "load timeout; PROPERTIES (\"timeout\") allows more", now)
            }
            _ => Ended::failed("LOAD_RUN_FAIL", error.detail_text(), now),
        }
    }

    async fn read_files(
        self: &Arc<Self>,
        job: &Arc<Job>,
        plan: &Plan,
        load: &mut Load,
        interrupt: Interrupt<'_>,
    ) -> Result<Read, SqlError> {
        job.change(|record| record.begin(State::Etl, self.unix_ms()));
        let mut files = VecDeque::new();
        for part in &plan.parts {
            for place in &part.places {
                let found = interrupt.wait(place.find()).await??;
                let waiting = |file| Waiting { part: Arc::clone(part), place: Arc::clone(place), file };
                files.extend(found.into_iter().map(waiting));
            }
        }
        let bytes = files.iter().filter_map(|waiting| waiting.file.size_bytes).sum();
        job.progress.file_bytes.store(bytes, Ordering::Relaxed);
        job.progress.files.store(files.len() as u64, Ordering::Relaxed);
        job.change(|record| record.begin(State::Loading, self.unix_ms()));
        load.set_origin(origin(&files));
        let lanes = plan.parallel.clamp(1, files.len().max(1));
        let has_many = files.len() > 1;
        let files = Arc::new(Mutex::new(files));
        let run = |(), lane: Lane| {
            let lane = Files {
                jobs: Arc::clone(self),
                job: Arc::clone(job),
                def: Arc::clone(&plan.def),
                updates: plan.updates,
                strict: plan.strict,
                zone: plan.zone.clone(),
                waiting: Arc::clone(&files),
                lane,
            };
            lane.run()
        };
        let read =
            side_by_side::<_, _, Read, SqlError>(&self.loads, load.sink(), interrupt, vec![(); lanes], run)
                .await?;
        let mut read = Read::sum(read);
        if has_many {
            // They were counted over all files.
            read.rejects.iter_mut().for_each(|reject| reject.row = None);
        }
        Ok(read)
    }
}

/// The names of files, as many as are shown.
fn origin(files: &VecDeque<Waiting>) -> String {
    let names: Vec<_> = files.iter().take(ORIGINS_SHOWN).map(|waiting| waiting.file.name.as_str()).collect();
    let names = names.join(", ");
    match files.len().saturating_sub(ORIGINS_SHOWN) {
        0 => names,
        others => format!("{names} and {others} others"),
    }
}

/// One of several tasks that take files from a list.
struct Files {
    jobs: Arc<ServerJobs>,
    job: Arc<Job>,
    def: Arc<TableDef>,
    updates: Updates,
    strict: bool,
    zone: String,
    waiting: Arc<Mutex<VecDeque<Waiting>>>,
    lane: Lane,
}

impl Files {
    async fn run(mut self) -> (LoadSink, Result<Read, SqlError>) {
        let read = self.read().await;
        (self.lane.sink, read)
    }

    async fn read(&mut self) -> Result<Read, SqlError> {
        let mut all = Read::default();
        loop {
            let next = self.waiting.lock().pop_front();
            let Some(waiting) = next else { return Ok(all) };
            let (counts, rejects) = self.read_file(&waiting).await?;
            all.add(counts, rejects);
            self.progress().files_read.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn progress(&self) -> &Progress {
        &self.job.progress
    }

    async fn read_file(&mut self, waiting: &Waiting) -> Result<(Counts, Vec<Reject>), SqlError> {
        let Waiting { part, place, file } = waiting;
        let named = |error: SqlError| {
            SqlError::detail(error.code, format!("the file '{}': {}", file.name, error.detail_text()))
        };
        let mapped = part.mapping(&self.def, &file.name)?;
        let mapping = Mapping {
            columns: mapped.columns.as_deref(),
            where_expr: mapped.filter.as_ref(),
            source_where: mapped.preceding_filter.as_ref(),
            deletes: part.deletes,
            updates: self.updates,
            unnamed_fields: FieldNames::Numbered,
            partitions: &part.partitions,
        };
        let time = LoadTime::of(&self.jobs.loads, Some(&self.zone))?;
        let mut reader =
            RowReader::new(&self.jobs.loads, &self.def, &mapping, &part.body, self.strict, time)?
                .in_parallel();
        let job = Arc::clone(&self.job);
        let count = move |chunk: &bytes::Bytes| {
            job.progress.bytes_read.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        };
        let chunks = place.open(file).inspect_ok(count).map_err(|error| error.to_string());
        let limit_bytes = self.jobs.loads.spool_room().limit_of(&part.body);
        let mut body =
            LoadBody::from_stream(chunks.boxed(), limit_bytes).decompress(part.compression(&file.name));
        let mut rows = 0;
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.lane.stopped() => return Err(Lane::stopped_error()),
                chunk = body.next() => chunk,
            };
            let chunk = match chunk {
                None => break,
                Some(Ok(chunk)) => chunk,
                // It names the file.
                Some(Err(BodyError::Unreadable { what })) => return Err(refused(what)),
                Some(Err(error)) => return Err(named(refused(error.to_string()))),
            };
            let fed = reader.feed(&self.jobs.loads, &mut self.lane.sink, &chunk, Interrupt::NEVER).await;
            fed.map_err(|error| in_file(error, named))?;
            let so_far = reader.counts().total;
            self.progress().rows_read.fetch_add(so_far - rows, Ordering::Relaxed);
            rows = so_far;
        }
        let ended = reader.end(&self.jobs.loads, &mut self.lane.sink, Interrupt::NEVER).await;
        ended.map_err(|error| in_file(error, named))?;
        let counts = reader.counts();
        self.progress().rows_read.fetch_add(counts.total - rows, Ordering::Relaxed);
        let rejects = reader.rejects();
        let with_file = |mut reject: Reject| {
            reject.reason.push_str(&format!(", file={}", file.name));
            reject
        };
        Ok((counts, rejects.iter().cloned().map(with_file).collect()))
    }
}

/// The error of a file's rows names the file; one of the table's does not.
fn in_file(error: ReadError, named: impl Fn(SqlError) -> SqlError) -> SqlError {
    match error {
        ReadError::Rows(error) => named(error),
        other => other.into(),
    }
}
