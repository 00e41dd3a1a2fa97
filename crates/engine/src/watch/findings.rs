//! The look of each second: the places it goes to, and its findings.
//!
//! A finding says what is not well in a sentence of its own, with its cause and the way out as far as they are known.
//!
//! Not here: whether it lasts.

use super::flood::{Flood, UsersLook};
use super::problems::ProblemKind;
use super::process::{ProcessorTime, descriptors};
use crate::access::failures::{ClientFailures, FailureKind};
use crate::access::limits::UserLoads;
use crate::follow::Complaint;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_catalog::CatalogTrouble;
use tributary_http::Health;
use tributary_ingest::{GroupQueue, Ingest, LogView, QueueState};
use tributary_table::{StoreTraffic, Table};
use tributary_traces::CollectorTrouble;
use tributary_types::{TableId, UserKey, memory};

/// A log with fewer syncs in a second, while bytes wait for them, is slow.
const SYNCS_MIN: u64 = 4;
/// Failures of a client within a minute that are worth a look.
const FAILURES_MIN: u64 = 10;
/// Rejected rows of a table within a minute that are worth a look.
const REJECTED_MIN: u64 = 10;
/// The time for which such rows, and lost lines, are a problem.
const RECENT: Duration = Duration::from_secs(60);
/// A job is behind if it has this many messages to load, and needs more than [`BEHIND_SECONDS`] for them.
const BEHIND_MESSAGES: u64 = 10_000;
const BEHIND_SECONDS: u64 = 60;
/// The time of which a job's pace is told.
const JOB_PACE: Duration = Duration::from_secs(10);
/// The clock may be set by this much without being said to have gone back.
const CLOCK_SLACK_MS: i64 = 1000;
/// Throttled requests to the store of the tables within a minute that are worth a look.
const THROTTLED_MIN: u64 = 10;
/// How long a clock that went back is a problem.
const CLOCK_SHOWN: Duration = Duration::from_secs(300);

/// How often file descriptors are counted.
const DESCRIPTORS_COUNTED: Duration = Duration::from_secs(10);

/// The matter of a finding. Two findings with the same identity are the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub kind: ProblemKind,
    pub table: Option<TableId>,
    pub subject: Option<String>,
    /// Grows when the matter makes progress: it is another finding then.
    pub progress: u64,
}

impl Identity {
    pub const fn of(kind: ProblemKind) -> Self {
        Self { kind, table: None, subject: None, progress: 0 }
    }
}

/// A thing that is not well at the moment of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub identity: Identity,
    /// Its beginning in milliseconds since 1970, if it is known better than by looks.
    pub since_ms: Option<i64>,
    pub problem: String,
    pub cause: Option<String>,
    pub way_out: Option<String>,
}

impl Finding {
    pub fn new(kind: ProblemKind, problem: impl Into<String>) -> Self {
        Self {
            identity: Identity::of(kind),
            since_ms: None,
            problem: problem.into(),
            cause: None,
            way_out: None,
        }
    }

    fn of_table(mut self, table: TableId) -> Self {
        self.identity.table = Some(table);
        self
    }

    pub fn of_subject(mut self, subject: impl Into<String>) -> Self {
        self.identity.subject = Some(subject.into());
        self
    }

    const fn progress(mut self, progress: u64) -> Self {
        self.identity.progress = progress;
        self
    }

    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub fn way_out(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }
}

/// A job of ROUTINE LOAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoutineView {
    pub db: String,
    pub name: String,
    /// `None`: it has many.
    pub table: Option<TableId>,
    /// Why it has paused by itself.
    pub paused: Option<String>,
    /// Messages that are in none of its batches, as far as the ends of the partitions are known.
    pub lag: u64,
    /// Messages that its batches have taken since its reader began.
    pub fed_messages: u64,
}

/// A table that was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongTable {
    pub table: TableId,
    pub name: String,
    /// Its first fault.
    pub fault: String,
    /// How many more there are.
    pub more: usize,
    /// When it was found first, in milliseconds since 1970.
    pub since_ms: i64,
}

/// A comparison of tables with their logs that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerifyFailure {
    /// The table whose files can't be read. `None`: a log can't.
    pub table: Option<String>,
    pub text: String,
    /// When it failed first, in milliseconds since 1970.
    pub since_ms: i64,
}

/// The server at the moment of a look.
pub(crate) struct Looked<'a> {
    pub ingest: &'a Ingest,
    pub tables: HashMap<TableId, &'a Arc<Table>>,
    pub queues: Vec<GroupQueue>,
    pub logs: Vec<LogView>,
    /// Rejected rows of stored loads since the start.
    pub rejected: HashMap<TableId, u64>,
    pub health: Health,
    /// The process that has taken over what this one owned.
    pub taken_over: Option<Arc<str>>,
    /// The rows of a node that only reads are old, or stay as they are.
    pub behind: Option<Complaint>,
    /// The catalog's database can't be reached.
    pub catalog_away: Option<CatalogTrouble>,
    pub failures: Vec<ClientFailures>,
    /// Loads since the start, of users that have some of late.
    pub users: Vec<UserLoads>,
    /// Finds `'u'@'h'` of a user.
    pub user_name: &'a dyn Fn(UserKey) -> Option<String>,
    /// Loads that wait for memory, or for their turn at a log.
    pub waiting_loads: u64,
    pub jobs: Vec<RoutineView>,
    /// Tables that were found wrong.
    pub wrong: Vec<WrongTable>,
    /// The tables can't be compared with their logs.
    pub not_verified: Option<VerifyFailure>,
    /// Lines of the log and records of the audit log that were lost since the start.
    pub lost_lines: u64,
    /// Requests to the store of the tables since the start, if it is far away.
    pub traffic: Option<StoreTraffic>,
    /// The collector of traces did not take the last ones.
    pub collector: Option<CollectorTrouble>,
}

impl Looked<'_> {
    fn table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.get(&id).copied()
    }

    fn name(&self, id: TableId) -> String {
        self.table(id).map_or_else(|| format!("table {id}"), |table| table.def().table_ref().to_string())
    }
}

/// Counters of earlier looks, with which the current ones are compared.
#[derive(Debug, Default)]
pub(super) struct Memory {
    syncs: HashMap<PathBuf, u64>,
    last: Option<(Instant, i64)>,
    /// When the clock went back last, and by how many milliseconds.
    went_back: Option<(Instant, i64)>,
    rejected: VecDeque<(Instant, HashMap<TableId, u64>)>,
    lost_lines: VecDeque<(Instant, u64)>,
    refused: VecDeque<(Instant, u64)>,
    throttled: VecDeque<(Instant, u64)>,
    flood: Flood,
    /// Messages that batches of jobs had taken at the looks within [`JOB_PACE`], by the jobs' names.
    jobs: HashMap<String, VecDeque<(Instant, u64)>>,
    /// Open file descriptors, and how many there may be, as they were counted last.
    descriptors: Option<(Instant, Option<(u64, u64)>)>,
}

impl Memory {
    /// Everything that is not well.
    pub fn find(&mut self, looked: &Looked<'_>, (now, now_ms): (Instant, i64)) -> Vec<Finding> {
        let mut found = Vec::new();
        found.extend(of_health(&looked.health));
        found.extend(looked.taken_over.as_deref().map(of_owner));
        found.extend(looked.behind.as_ref().map(of_reader));
        found.extend(looked.catalog_away.as_ref().map(of_catalog));
        found.extend(looked.collector.as_ref().map(of_collector));
        found.extend(looked.logs.iter().flat_map(|log| self.of_log(looked, log, now)));
        found.extend(looked.queues.iter().filter_map(|queue| of_queue(looked, queue)));
        found.extend(looked.tables.values().filter_map(|table| of_table(table)));
        found.extend(of_flushes(looked.ingest));
        found.extend(of_memory(looked.ingest));
        found.extend(looked.failures.iter().filter(|failures| failures.count >= FAILURES_MIN).map(of_client));
        found.extend(self.of_users(looked, now));
        found.extend(self.of_rejects(looked, now));
        found.extend(self.of_jobs(&looked.jobs, now));
        found.extend(looked.wrong.iter().map(of_wrong_table));
        found.extend(looked.not_verified.as_ref().map(of_verify_failure));
        found.extend(self.of_clock(now, now_ms));
        found.extend(self.descriptors(now).and_then(of_descriptors));
        found.extend(self.of_lost_lines(looked.lost_lines, now));
        found.extend(self.of_process_memory(memory::refused(), now));
        found.extend(self.of_store(looked.traffic, now));
        self.last = Some((now, now_ms));
        found
    }

    fn descriptors(&mut self, now: Instant) -> Option<(u64, u64)> {
        let is_old = |at: Instant| now.saturating_duration_since(at) >= DESCRIPTORS_COUNTED;
        if self.descriptors.is_none_or(|(at, _)| is_old(at)) {
            self.descriptors = Some((now, descriptors()));
        }
        self.descriptors.and_then(|(_, found)| found)
    }

    fn of_log(&mut self, looked: &Looked<'_>, log: &LogView, now: Instant) -> Vec<Finding> {
        let dir = log.dir.display().to_string();
        let mut found = Vec::new();
        let before = self.syncs.insert(log.dir.clone(), log.stats.fsyncs);
        let time = self.last.map(|(then, _)| now.saturating_duration_since(then));
        if let (Some(before), Some(time)) = (before, time) {
            let syncs = log.stats.fsyncs.saturating_sub(before);
            if log.pending_bytes > 0 && (syncs as f64) < SYNCS_MIN as f64 * time.as_secs_f64() {
                let waiting = match log.waiting_loads {
                    0 => String::new(),
                    loads => format!(", and {loads} loads wait for their turn"),
                };
                let finding = Finding::new(
                    ProblemKind::SlowLog,
                    format!(
                        "The write-ahead log in {dir} is slow: {} bytes wait for its disk{waiting}.",
                        log.pending_bytes
                    ),
                );
                found.push(
                    finding
                        .of_subject(&dir)
                        .cause(format!("Its disk answered {syncs} syncs in the last {:.1} s.", time.as_secs_f64()))
                        .way_out(
                            "Look for other users of the disk, move the log to a faster one (group_commit_wal_dirs), or let clients \
                             send fewer bytes.",
                        ),
                );
            }
        }
        let (available, live) = (log.available_bytes, log.stats.live_bytes);
        if available < live / 3 {
            let holder = log.holder.as_ref().map(|holder| {
                format!("Its oldest entries are needed by {}: {}.", looked.name(holder.table), holder.why)
            });
            let text = format!(
                "The write-ahead log in {dir} is nearly full: {live} bytes are in use, {available} are left for loads."
            );
            found.push(Finding {
                cause: holder,
                ..Finding::new(ProblemKind::LogFull, text).of_subject(&dir).way_out(
                    "See the flushes of that table (SHOW TABLE STATUS), end its two-phase loads (information_schema.prepared_loads), \
                     or raise group_commit_wal_max_disk_limit.",
                )
            });
        }
        found
    }

    fn of_users(&mut self, looked: &Looked<'_>, now: Instant) -> Option<Finding> {
        let (users, waiting) = (looked.users.clone(), looked.waiting_loads);
        self.flood
            .look(UsersLook { at: now, users, processors: ProcessorTime::now(), waiting }, looked.user_name)
    }

    fn of_jobs(&mut self, jobs: &[RoutineView], now: Instant) -> Vec<Finding> {
        let name = |job: &RoutineView| format!("{}.{}", job.db, job.name);
        self.jobs.retain(|known, _| jobs.iter().any(|job| name(job) == *known));
        let found = jobs.iter().filter_map(|job| {
            let earlier = self.jobs.entry(name(job)).or_default();
            earlier.retain(|(at, _)| now.saturating_duration_since(*at) <= JOB_PACE);
            let rate = earlier.front().map(|(at, messages)| {
                let seconds = now.saturating_duration_since(*at).as_secs_f64().max(1.0);
                (job.fed_messages.saturating_sub(*messages) as f64 / seconds) as u64
            });
            earlier.push_back((now, job.fed_messages));
            of_job(job, rate)
        });
        found.collect()
    }

    fn of_rejects(&mut self, looked: &Looked<'_>, now: Instant) -> Vec<Finding> {
        self.rejected.retain(|(at, _)| now.saturating_duration_since(*at) <= RECENT);
        let earlier = self.rejected.front().map(|(_, counts)| counts.clone());
        self.rejected.push_back((now, looked.rejected.clone()));
        let Some(earlier) = earlier else { return Vec::new() };
        let rejected = looked.rejected.iter().filter_map(|(&table, &count)| {
            let rows = count - earlier.get(&table).copied().unwrap_or(0).min(count);
            (rows >= REJECTED_MIN).then(|| {
                let name = looked.name(table);
                Finding::new(
                    ProblemKind::RowsRejected,
                    format!("{rows} rows of loads into {name} were rejected in the last minute; the other rows were loaded."),
                )
                .of_table(table)
                .way_out(format!(
                    "SELECT LABEL, SOURCE, COLUMN_NAME, CODE, REASON, RAW_ROW FROM information_schema.rejected_rows WHERE \
                     TABLE_SCHEMA = '{}' AND TABLE_NAME = '{}' ORDER BY TIME DESC LIMIT 20",
                    looked.table(table).map_or_else(String::new, |table| table.def().db.clone()),
                    looked.table(table).map_or_else(String::new, |table| table.def().name.clone()),
                ))
            })
        });
        rejected.collect()
    }

    fn of_clock(&mut self, now: Instant, now_ms: i64) -> Option<Finding> {
        if let Some((then, then_ms)) = self.last {
            let passed = i64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(i64::MAX);
            let back = then_ms.saturating_add(passed) - now_ms;
            if back > CLOCK_SLACK_MS {
                self.went_back = Some((now, back));
            }
        }
        let (at, back) = self.went_back.filter(|(at, _)| now.saturating_duration_since(*at) < CLOCK_SHOWN)?;
        let ago = now.saturating_duration_since(at).as_secs();
        let text = format!("The clock went back by {:.1} s, {ago} s ago.", back as f64 / 1000.0);
        Some(Finding::new(ProblemKind::ClockWentBack, text).cause("It was set, or corrected in one step.").way_out(
            "Times of loads and files of that moment are out of order; use a time service that corrects gradually.",
        ))
    }

    fn of_process_memory(&mut self, refused: u64, now: Instant) -> Option<Finding> {
        let times = recent_growth(&mut self.refused, refused, now);
        (times > 0).then(|| {
            let text = format!(
                "The process had no memory for its work {times} times in the last minute: it may have {} MiB.",
                memory::limit() >> 20
            );
            Finding::new(ProblemKind::MemoryFull, text)
                .cause("Queries, or loads that arrive at once, need more than mem_limit leaves. Those queries spilled to disk or failed.")
                .way_out(
                    "Look at the running statements in SHOW FULL PROCESSLIST; lower exec_mem_limit, or a user's, or raise mem_limit.",
                )
        })
    }

    fn of_store(&mut self, traffic: Option<StoreTraffic>, now: Instant) -> Option<Finding> {
        let times = recent_growth(&mut self.throttled, traffic?.throttled, now);
        (times >= THROTTLED_MIN).then(|| {
            Finding::new(
                ProblemKind::StoreThrottles,
                format!("The store of the tables throttled {times} requests in the last minute."),
            )
            .cause("It answers 503 (SlowDown) or 429: this server, or others, send it more requests than it serves.")
            .way_out(
                "The requests are sent again, so flushes, large loads and queries are slower and do not fail. Flush less often \
                 (flush_age_ms, flush_bytes), give table_cache_limit more space, or ask the store for more requests.",
            )
        })
    }

    fn of_lost_lines(&mut self, lost: u64, now: Instant) -> Option<Finding> {
        let lines = recent_growth(&mut self.lost_lines, lost, now);
        (lines > 0).then(|| {
            Finding::new(
                ProblemKind::LinesDropped,
                format!("{lines} lines of the server's log or records of its audit log were lost in the last minute."),
            )
            .cause("Standard error, the audit file or the audit table did not take them in time.")
            .way_out("See tributary_log_lines_dropped_total and tributary_audit_dropped_total for the place.")
        })
    }
}

/// How much a count has grown within [`RECENT`].
fn recent_growth(earlier: &mut VecDeque<(Instant, u64)>, count: u64, now: Instant) -> u64 {
    earlier.retain(|(at, _)| now.saturating_duration_since(*at) <= RECENT);
    let before = earlier.front().map_or(count, |(_, before)| *before);
    earlier.push_back((now, count));
    count.saturating_sub(before)
}

fn of_health(health: &Health) -> Vec<Finding> {
    let ended = health.failures.iter().map(|text| {
        Finding::new(ProblemKind::WorkEnded, sentence(text)).of_subject(text).way_out("Restart the server.")
    });
    let obstacles = health.obstacles.iter().map(|text| {
        // What follows may change from look to look.
        let subject = text.split(|letter: char| letter == ':' || letter.is_ascii_digit()).next();
        let subject = subject.unwrap_or_default().trim_end();
        Finding::new(ProblemKind::NotReady, sentence(text)).of_subject(subject).way_out(
            "Loads are refused, or will be; acknowledged rows are safe. The server tries again by itself.",
        )
    });
    ended.chain(obstacles).collect()
}

fn of_owner(reason: &str) -> Finding {
    Finding::new(ProblemKind::TakenOver, "Another process of this server has taken over its catalog and tables.".to_owned())
        .cause(reason)
        .way_out(
            "Stop this process: it takes no loads, and its queries show the tables as they were before. Loads whose answer was that they \
             may be in its log: look in the tables before sending them again.",
        )
}

fn of_reader(complaint: &Complaint) -> Finding {
    let finding = Finding::new(ProblemKind::ReaderBehind, sentence(&complaint.text));
    let finding = match &complaint.cause {
        Some(cause) => finding.cause(cause),
        None => finding.cause("The server that writes was not heard of, or has not moved its rows to files."),
    };
    finding.way_out(
        "Look at the server that writes, at PostgreSQL and at the store of the tables. Queries of rows that are older than \
         max_staleness_second are refused until then.",
    )
}

fn of_catalog(trouble: &CatalogTrouble) -> Finding {
    Finding::new(ProblemKind::CatalogAway, "The catalog's database can't be reached.".to_owned())
        .cause(&trouble.reason)
        .way_out(
            "Loads and queries of known tables go on; changes of databases, tables and users fail until it is back. The server \
             connects again by itself. The write-ahead log keeps labels meanwhile, and grows.",
        )
}

fn of_collector(trouble: &CollectorTrouble) -> Finding {
    let found =
        Finding::new(ProblemKind::CollectorFails, "The collector of traces (otlp_endpoint) does not take them.")
            .cause(&trouble.text)
            .way_out(
                "Traces of requests are lost meanwhile, and counted by tributary_traces_dropped_total; requests are not delayed. See \
                 whether the collector runs, listens for OTLP over HTTP, and accepts otlp_headers.",
            );
    Finding { since_ms: Some(trouble.since_ms), ..found }
}

fn of_queue(looked: &Looked<'_>, queue: &GroupQueue) -> Option<Finding> {
    if queue.state == QueueState::Stranded {
        let name = looked.name(queue.table);
        let text = format!("A group of {name} failed after its rows were acknowledged.");
        return Some(
            Finding::new(ProblemKind::GroupStranded, text)
                .of_table(queue.table)
                .cause("information_schema.group_commits has its error.")
                .way_out("Restart the server: it commits these rows. Do not send them again."),
        );
    }
    let is_due = |open: &tributary_ingest::OpenGroup| open.closes_in.is_some_and(|time| time.is_zero());
    let is_due = queue.open.as_ref().is_some_and(is_due);
    if queue.closed_groups == 0 && queue.commits_in_flight == 0 && !is_due {
        return None;
    }
    let (cause, way_out) = match queue.state {
        QueueState::ShortOfSpace => (
            "The write-ahead log has no space for its group.",
            "See the holder of the log's oldest entries in information_schema.wal.",
        ),
        QueueState::Held => (
            "A schema change, REPLACE PARTITION or DROP PARTITION holds the table.",
            "SHOW ALTER TABLE COLUMN shows the change; loads go on when it ends.",
        ),
        _ => (
            "Its commit waits for the disk of the write-ahead log, or for processors.",
            "See SLOW_LOG among the problems, and the stages in information_schema.group_commits.",
        ),
    };
    let rows = queue.closed_rows + queue.open.as_ref().map_or(0, |open| open.rows);
    let name = looked.name(queue.table);
    let text = format!("Loads into {name} do not become visible: {rows} rows wait.");
    let version = looked.table(queue.table).map_or(0, |table| table.snapshot().version.0);
    let finding = Finding::new(ProblemKind::TableLags, text).of_table(queue.table).progress(version);
    Some(finding.cause(cause).way_out(way_out))
}

fn of_table(table: &Arc<Table>) -> Option<Finding> {
    let trouble = table.is_troubled().then(|| table.trouble()).flatten()?;
    let def = table.def();
    let text = format!("Work on {} fails again and again.", def.table_ref());
    let finding = Finding::new(ProblemKind::TableInTrouble, text).of_table(def.id).cause(sentence(&trouble));
    Some(finding.way_out(
        "Its rows stay in memory and in the write-ahead log; the work is tried again every 30 s at most.",
    ))
}

fn of_flushes(ingest: &Ingest) -> Option<Finding> {
    let metrics = ingest.metrics();
    let running = metrics.flushes_running.get();
    (running > 0).then(|| {
        let text = format!("{running} flushes are under way and none has ended for a while.");
        let ended = metrics.flushes.get() + metrics.flushes_failed.get();
        Finding::new(ProblemKind::FlushStuck, text)
            .progress(ended)
            .cause("The store of the tables' files is slow or does not answer, or the memtables are large.")
            .way_out("Look at the disk or the network of the store; a call ends after store_timeout_ms.")
    })
}

fn of_memory(ingest: &Ingest) -> Option<Finding> {
    let memory = ingest.memory();
    let bodies = memory.waiting_bodies() as u64;
    let loads = memory.waiting_loads() as u64;
    (bodies + loads > 0).then(|| {
        let text = format!("{} loads wait for memory.", bodies + loads);
        let cause = format!(
            "{} of {} bytes (group_commit_queue_mem_limit) are in use: {} in groups and memtables, {} in loads on their way.",
            memory.used() + memory.in_flight(),
            memory.limit(),
            memory.used(),
            memory.in_flight()
        );
        Finding::new(ProblemKind::LoadsWaitForMemory, text).cause(cause).way_out(
            "Flushes free memory: see FLUSH_STUCK and TABLE_IN_TROUBLE among the problems. Otherwise limit the loads of the users that \
             send most (SET PROPERTY FOR), or raise group_commit_queue_mem_limit.",
        )
    })
}

fn of_client(failures: &ClientFailures) -> Finding {
    let ClientFailures { client, count, newest } = failures;
    let host = &client.host;
    let user = client.user.as_deref().unwrap_or_default();
    let table = client.table.as_ref().map_or_else(String::new, |table| format!(" into {table}"));
    let (kind, text, way_out) = match client.kind {
        FailureKind::Limit => (
            ProblemKind::LimitReached,
            format!("{count} requests of '{user}' from {host} were refused by a limit in the last minute."),
            "The client sends more than it may. Nothing of these requests was done; raise the limit, or let the client wait as it is told.",
        ),
        FailureKind::Login => (
            ProblemKind::LoginsFail,
            format!("{count} logins from {host} failed in the last minute."),
            "Mend the client's password, or keep the address out. Its guesses are slowed.",
        ),
        FailureKind::Load => (
            ProblemKind::LoadsFail,
            format!(
                "{count} loads{table} of '{user}' from {host} failed in the last minute; nothing of them was kept."
            ),
            "Mend the rows, or let their table keep bad rows aside (property rejected_rows = keep).",
        ),
    };
    let subject = match client.kind {
        FailureKind::Login => host.clone(),
        FailureKind::Limit | FailureKind::Load => format!("'{user}' from {host}{table}"),
    };
    let finding = Finding::new(kind, text).of_subject(subject).way_out(way_out);
    if newest.is_empty() { finding } else { finding.cause(format!("The newest error: {newest}")) }
}

fn of_wrong_table(wrong: &WrongTable) -> Finding {
    let WrongTable { table, name, fault, more, since_ms } = wrong;
    let others = if *more == 0 { String::new() } else { format!(" (and {more} more faults)") };
    let finding = Finding::new(ProblemKind::TableWrong, format!("Table {name} does not have the rows that it should have."))
        .cause(sentence(&format!("{fault}{others}")))
        .way_out(format!(
            "Keep the directories of the log and of the table as they are; VERIFY TABLE {name} FULL says everything. Restore damaged \
             files from a copy, or restart the server, which reads the log again."
        ));
    Finding { since_ms: Some(*since_ms), ..finding.of_table(*table) }
}

fn of_verify_failure(failure: &VerifyFailure) -> Finding {
    let VerifyFailure { table, text, since_ms } = failure;
    let (problem, way_out) = match table {
        Some(table) => (
            format!("The tables can't be compared with their logs: the files of {table} can't be read."),
            "Mend the disk or the connection to the store; it is tried again within ten minutes, and by VERIFY. Restore files that \
             are gone from a backup.",
        ),
        None => (
            "The tables can't be compared with their logs: a log can't be read.".to_owned(),
            "The server still has the rows in memory. End it by SIGTERM, not by a kill: it writes them to data files. If the next \
             start refuses the log, `tributary wal inspect` shows the damage, and `tributary wal repair` goes on without it: what is \
             in data files is not lost.",
        ),
    };
    let finding = Finding::new(ProblemKind::VerifyFails, problem).cause(sentence(text)).way_out(way_out);
    Finding { since_ms: Some(*since_ms), ..finding }
}

/// `rate`: the messages that it has taken per second of late; `None`: it was not looked at before.
fn of_job(job: &RoutineView, rate: Option<u64>) -> Option<Finding> {
    let RoutineView { db, name, paused, lag, .. } = job;
    let shown = format!("{db}.{name}");
    let finding = match paused {
        Some(reason) => {
            Finding::new(ProblemKind::JobPaused, format!("The routine load {shown} has paused by itself."))
                .cause(sentence(reason))
                .way_out(format!("Mend the cause, then RESUME ROUTINE LOAD FOR {shown}."))
        }
        None if *lag >= BEHIND_MESSAGES && rate.is_some_and(|rate| lag / BEHIND_SECONDS > rate) => {
            let text = format!("The routine load {shown} is {lag} messages behind its topic.");
            Finding::new(ProblemKind::JobBehind, text)
                .cause(format!("It has taken {} messages a second in the last {} s.", rate.unwrap_or_default(), JOB_PACE.as_secs()))
                .way_out(
                    "Raise max_batch_rows and max_batch_size of the job, see whether a limit of its user or its table holds it back \
                     (SHOW PROPERTY FOR), or what its table waits for.",
                )
        }
        None => return None,
    };
    let finding = finding.of_subject(shown);
    Some(match job.table {
        Some(table) => finding.of_table(table),
        None => finding,
    })
}

fn of_descriptors((open, most): (u64, u64)) -> Option<Finding> {
    (open > most - most / 5).then(|| {
        Finding::new(
            ProblemKind::FewFileDescriptors,
            format!("{open} of {most} file descriptors are in use."),
        )
        .way_out("Raise the limit of open files (LimitNOFILE, ulimit -n), or close idle connections.")
    })
}

/// A text as a sentence: it begins with a capital and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obstacle_whose_numbers_change_is_the_same_one() {
        let of =
            |obstacle: &str| of_health(&Health { obstacles: vec![obstacle.to_owned()], ..Health::default() });
        let findings = [
            of("the rows that this node has are 20 s old"),
            of("the rows that this node has are 21 s old: the store did not answer"),
        ];
        assert_eq!(findings[0][0].identity, findings[1][0].identity);
        assert_ne!(
            findings[0][0].identity,
            of("the disk of the tables is full: 5 bytes are free")[0].identity
        );
        assert_eq!(
            findings[1][0].problem,
            "The rows that this node has are 21 s old: the store did not answer."
        );
    }

    #[test]
    fn a_clock_that_goes_back_is_said_for_five_minutes() {
        let mut memory = Memory::default();
        let start = Instant::now();
        let mut look = |second: u64, clock_ms: i64| {
            let now = start + Duration::from_secs(second);
            let found = memory.of_clock(now, clock_ms);
            memory.last = Some((now, clock_ms));
            found.map(|found| found.problem)
        };
        assert_eq!(look(0, 100_000), None);
        assert_eq!(look(1, 101_000), None);
        assert_eq!(look(2, 101_500), None, "half a second is a correction");
        assert_eq!(look(3, 72_500).as_deref(), Some("The clock went back by 30.0 s, 0 s ago."));
        assert_eq!(look(63, 132_500).as_deref(), Some("The clock went back by 30.0 s, 60 s ago."));
        assert_eq!(look(303, 372_500), None);
    }

    #[test]
    fn lost_lines_are_said_for_a_minute() {
        let mut memory = Memory::default();
        let start = Instant::now();
        let mut look =
            |second: u64, lost| memory.of_lost_lines(lost, start + Duration::from_secs(second)).is_some();
        assert!(!look(0, 7), "lines of before the first look");
        assert!(look(1, 8) && look(60, 8));
        assert!(!look(62, 8));
    }

    #[test]
    fn a_job_is_behind_if_it_needs_more_than_a_minute() {
        let job = |lag| RoutineView {
            db: "d".to_owned(),
            name: "j".to_owned(),
            table: None,
            paused: None,
            lag,
            fed_messages: 0,
        };
        assert_eq!(of_job(&job(9_999), Some(0)), None);
        assert_eq!(of_job(&job(60_000), Some(1_000)), None);
        assert_eq!(of_job(&job(600_000), None), None, "how fast it is is not known yet");
        let found = of_job(&job(600_000), Some(1_000)).expect("it is behind");
        assert_eq!(found.problem, "The routine load d.j is 600000 messages behind its topic.");
        let paused = RoutineView { paused: Some("no broker".to_owned()), ..job(0) };
        assert_eq!(of_job(&paused, None).and_then(|found| found.cause).as_deref(), Some("No broker."));
    }

    #[test]
    fn a_job_that_was_fast_once_is_behind_when_it_is_slow_now() {
        let mut memory = Memory::default();
        let start = Instant::now();
        let mut look = |second: u64, fed_messages: u64| {
            let job = RoutineView {
                db: "d".to_owned(),
                name: "j".to_owned(),
                table: None,
                paused: None,
                lag: 600_000,
                fed_messages,
            };
            !memory.of_jobs(&[job], start + Duration::from_secs(second)).is_empty()
        };
        assert!(!look(0, 50_000_000) && !look(1, 50_050_000), "it takes 50,000 messages a second");
        assert!(!look(5, 50_250_000));
        assert!(look(12, 50_250_010), "it takes nothing");
    }

    #[test]
    fn descriptors_are_few_beyond_four_fifths() {
        assert!(of_descriptors((80, 100)).is_none() && of_descriptors((81, 100)).is_some());
    }
}
