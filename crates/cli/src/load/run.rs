//! A load under way: one thread cuts files into chunks, others send them, each until its outcome is known.
//!
//! *Invariant:* a chunk whose outcome is unknown is sent again only under its own name, and only after the server was asked for it, so
//! no row is stored twice.

use crate::http::{self, Body, Pace, Server, escaped};
use crate::load::journal::{Chunk, Journal, Naming, State, hash, now};
use crate::load::progress::{Display, Progress};
use crate::load::shape::Shape;
use crate::load::source::Source;
use crate::load::verdict::{self, Known, Verdict};
use crate::load::{Ending, split};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(15);
/// Attempts of a chunk that a server refuses without saying whether it would do so again.
const ATTEMPTS_MAX: u32 = 4;
/// Chunks with too many bad rows after which the rest is not tried: the shape is wrong, or the data.
const FAILED_MAX: usize = 10;

/// The choices of a run that may differ from those of the run before it.
pub(crate) struct Choices {
    pub headers: Vec<(String, String)>,
    pub chunk_bytes: usize,
    pub parallel: usize,
    /// How long the server may be away; `None` is for ever.
    pub give_up_after: Option<Duration>,
    /// For how long the server remembers names.
    pub names_kept: Duration,
    pub force: bool,
    pub rejected: Option<PathBuf>,
    pub progress: Progress,
}

/// Sums of a load, those of earlier runs included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub rows: u64,
    pub filtered: u64,
    /// Bytes of the files whose rows are stored.
    pub bytes: u64,
    /// Bytes of all files; unknown for standard input.
    pub bytes_all: Option<u64>,
    pub chunks: u64,
    /// Chunks whose name alone told that they are stored: their rows are not in the sums.
    pub uncounted: u64,
    pub failed: Vec<String>,
    pub trouble: Option<String>,
}

/// The run's parts that its threads share.
pub(crate) struct Run<'a> {
    pub server: &'a Server,
    pub pace: Pace,
    pub choices: &'a Choices,
    /// Set by Ctrl-C.
    pub interrupted: Arc<AtomicBool>,
    journal: Mutex<Journal>,
    totals: Mutex<Totals>,
    display: Mutex<Display>,
    ending: Mutex<Option<Ending>>,
    /// When the server answered for the last time.
    contact: Mutex<Instant>,
    rejected: Mutex<Option<File>>,
    database: String,
    table: String,
}

struct Job {
    chunk: Chunk,
    state: State,
    shape: Shape,
    body: Body,
    source_bytes: u64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    pub fn new(
        server: &'a Server,
        pace: Pace,
        choices: &'a Choices,
        journal: Journal,
        table: (&str, &str),
        interrupted: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let is_stream = journal.head.files.is_empty();
        let mut totals = Totals::default();
        if !is_stream {
            totals.bytes_all = Some(journal.head.files.iter().map(|input| input.bytes).sum());
        }
        for index in 0..journal.chunks.len() {
            let (chunk, state) = &journal.chunks[index];
            if state.is_done {
                totals.add(source_bytes(&journal, chunk), state.rows, state.filtered);
            }
        }
        let display = Display::new(choices.progress, totals.bytes);
        let rejected = match &choices.rejected {
            Some(path) => Some(File::options().create(true).append(true).open(path)?),
            None => None,
        };
        Ok(Self {
            server,
            pace,
            choices,
            interrupted,
            journal: Mutex::new(journal),
            totals: Mutex::new(totals),
            display: Mutex::new(display),
            ending: Mutex::default(),
            contact: Mutex::new(Instant::now()),
            rejected: Mutex::new(rejected),
            database: escaped(table.0),
            table: escaped(table.1),
        })
    }

    /// Loads all files, or standard input with the given shape. Returns how it ended.
    pub fn load(&self, stream: Option<(Source, Shape)>) -> (Ending, Totals, Journal) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut is_told = false;
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(50));
                    let mut display = held(&self.display);
                    if self.interrupted.load(Ordering::Relaxed) && !std::mem::replace(&mut is_told, true) {
                        display.note("Stopping: chunks under way are finished. Ctrl-C again leaves at once; both can be resumed.");
                    }
                    display.show(&held(&self.totals).clone());
                }
            });
            std::thread::scope(|senders| {
                let (sender, receiver) = sync_channel(0);
                let receiver = Arc::new(Mutex::new(receiver));
                for _ in 0..self.choices.parallel {
                    let receiver = Arc::clone(&receiver);
                    senders.spawn(move || self.send_all(&receiver));
                }
                drop(receiver);
                if let Err(error) = self.cut_all(stream, &sender) {
                    self.end(Ending::Failed(error));
                }
            });
            is_over.store(true, Ordering::Relaxed);
        });
        held(&self.display).end();
        let totals = held(&self.totals).clone();
        let journal = std::mem::replace(&mut *held(&self.journal), Journal::nothing());
        let ending = held(&self.ending).take().unwrap_or_else(|| match () {
            () if self.interrupted.load(Ordering::Relaxed) && !journal.is_complete() => Ending::Interrupted,
            () if !totals.failed.is_empty() => Ending::Rejected,
            () => Ending::Loaded,
        });
        (ending, totals, journal)
    }

    fn is_stopping(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || held(&self.ending).is_some()
    }

    fn end(&self, ending: Ending) {
        held(&self.ending).get_or_insert(ending);
    }

    fn cut_all(&self, stream: Option<(Source, Shape)>, jobs: &SyncSender<Job>) -> Result<(), String> {
        if let Some((source, shape)) = stream {
            return self
                .cut(0, source, &shape, None, jobs)
                .map_err(|error| format!("standard input: {error}"));
        }
        let inputs = held(&self.journal).head.files.clone();
        for (file, input) in inputs.iter().enumerate() {
            if self.is_stopping() {
                break;
            }
            let outcome = if input.shape.whole {
                self.take_whole(file, &input.path, &input.shape, jobs)
            } else {
                Source::open(&input.path)
                    .and_then(|source| self.cut(file, source, &input.shape, Some(input.bytes), jobs))
            };
            outcome.map_err(|error| format!("{}: {error}", input.path.display()))?;
        }
        Ok(())
    }

    /// Chunks of a file that were stored before, and whether there are no others.
    fn known(&self, file: usize) -> (Vec<(Chunk, State)>, bool) {
        let journal = held(&self.journal);
        let known = journal.chunks.iter().filter(|(chunk, _)| chunk.file == file).cloned().collect();
        (known, journal.ended.get(file).copied().unwrap_or_default())
    }

    fn take_whole(&self, file: usize, path: &Path, shape: &Shape, jobs: &SyncSender<Job>) -> io::Result<()> {
        let (known, _) = self.known(file);
        let (chunk, state) = match known.into_iter().next() {
            Some(known) => known,
            None => {
                let mut journal = held(&self.journal);
                let (bytes, ends) = (journal.head.files[file].bytes, String::new());
                let chunk = journal.plan(file, 0, bytes, bytes, ends)?;
                journal.end(file)?;
                (chunk, State::default())
            }
        };
        if !state.is_done {
            let body = Body::File(path.to_owned(), chunk.bytes);
            let job = Job { source_bytes: chunk.bytes, chunk, state, shape: shape.clone(), body };
            drop(jobs.send(job));
        }
        Ok(())
    }

    fn cut(
        &self,
        file: usize,
        mut source: Source,
        shape: &Shape,
        size: Option<u64>,
        jobs: &SyncSender<Job>,
    ) -> io::Result<()> {
        let (known, is_ended) = self.known(file);
        if known.is_empty() {
            source.skip_head(shape)?;
        }
        let mut source_end = 0;
        let mut next = source.offset();
        for (chunk, state) in known {
            next = chunk.offset + chunk.bytes;
            let source_bytes =
                chunk.source_end.saturating_sub(std::mem::replace(&mut source_end, chunk.source_end));
            if state.is_done {
                continue;
            }
            if self.is_stopping() {
                return Ok(());
            }
            source.skip_to(chunk.offset)?;
            let length = usize::try_from(chunk.bytes).map_err(io::Error::other)?;
            let bytes = source.take(length)?;
            if hash(&bytes) != chunk.hash {
                return Err(io::Error::other(format!("the bytes from offset {} have changed", chunk.offset)));
            }
            let body = Body::Bytes(split::body(shape, bytes));
            drop(jobs.send(Job { chunk, state, shape: shape.clone(), body, source_bytes }));
        }
        if is_ended {
            return Ok(());
        }
        source.skip_to(next)?;
        while !self.is_stopping() {
            let offset = source.offset();
            let Some(bytes) = source.next(shape, self.choices.chunk_bytes)? else {
                return held(&self.journal).end(file);
            };
            let length = bytes.len() as u64;
            let hash = hash(&bytes);
            let body = split::body(shape, bytes);
            if body == b"[]" {
                continue;
            }
            // Unpacking reads ahead; no chunk ends behind its file.
            let end = source.source_offset().max(source_end).min(size.unwrap_or(u64::MAX));
            let source_bytes = end - std::mem::replace(&mut source_end, end);
            let chunk = held(&self.journal).plan(file, offset, end, length, hash)?;
            let job = Job {
                chunk,
                state: State::default(),
                shape: shape.clone(),
                body: Body::Bytes(body),
                source_bytes,
            };
            if jobs.send(job).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn send_all(&self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            let job = held(jobs).recv();
            let Ok(job) = job else { return };
            // After the end, chunks are taken and dropped, so that the cutting thread never waits to hand one over.
            if held(&self.ending).is_some() {
                continue;
            }
            if let Err(error) = self.deliver(&job) {
                self.end(Ending::Failed(format!("the journal: {error}")));
            }
        }
    }

    /// Sends a chunk until its outcome is known or the run ends.
    fn deliver(&self, job: &Job) -> io::Result<()> {
        let number = job.chunk.number;
        let mut is_unknown = job.state.sent_at.is_some();
        let mut backoff = BACKOFF_MIN;
        let mut attempts = 0;
        while held(&self.ending).is_none() {
            if is_unknown {
                match self.ask(&job.chunk.name) {
                    Ok(Known::Stored) => {
                        held(&self.journal).done(number, None, None)?;
                        held(&self.totals).add(job.source_bytes, None, None);
                        return Ok(());
                    }
                    Ok(Known::Running) => {
                        if !self.pause(Duration::from_millis(500), None) {
                            return Ok(());
                        }
                        continue;
                    }
                    Ok(Known::Nothing) => {
                        let sent_at = held(&self.journal).state(number).sent_at.unwrap_or_else(now);
                        let age = Duration::from_secs(now().saturating_sub(sent_at));
                        if age >= self.choices.names_kept && !self.choices.force {
                            self.end(Ending::Refused(expired(&job.chunk, age)));
                            return Ok(());
                        }
                    }
                    Err(trouble) => {
                        if !self.pause(longer(&mut backoff), Some(trouble)) {
                            return Ok(());
                        }
                        continue;
                    }
                }
            }
            let verdict = match self.send(job) {
                Ok(answer) => {
                    self.heard();
                    verdict::of_load(&answer)
                }
                Err(http::Failure::Away(error)) => Verdict::Later {
                    message: http::Failure::Away(error).to_string(),
                    after_ms: None,
                    is_busy: true,
                },
                Err(lost) => Verdict::Unknown(lost.to_string()),
            };
            let (trouble, wait) = match verdict {
                Verdict::Done { rows, filtered, error_url } => {
                    held(&self.journal).done(number, rows, filtered)?;
                    held(&self.totals).add(job.source_bytes, rows, filtered);
                    if filtered.is_some_and(|count| count > 0) {
                        self.fetch_rejected(error_url.as_deref());
                    }
                    return Ok(());
                }
                Verdict::Rejected { message, filtered, error_url } => {
                    held(&self.journal).failed(number, &message)?;
                    self.fetch_rejected(error_url.as_deref());
                    self.failed(&job.chunk, &message, filtered, error_url.as_deref());
                    return Ok(());
                }
                Verdict::Refused(message) => {
                    self.end(Ending::Refused(message));
                    return Ok(());
                }
                Verdict::Later { message, after_ms, is_busy } => {
                    attempts += u32::from(!is_busy);
                    if attempts >= ATTEMPTS_MAX {
                        self.end(Ending::Refused(message));
                        return Ok(());
                    }
                    (message, after_ms.map(Duration::from_millis))
                }
                Verdict::Exists => {
                    is_unknown = true;
                    if !self.pause(BACKOFF_MIN, None) {
                        return Ok(());
                    }
                    continue;
                }
                Verdict::Unknown(message) => {
                    is_unknown = true;
                    (message, None)
                }
            };
            let wait = wait.unwrap_or_else(|| longer(&mut backoff));
            if !self.pause(wait, Some(trouble)) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn send(&self, job: &Job) -> Result<http::Answer, http::Failure> {
        let name = match self.naming() {
            Naming::Label => "label",
            Naming::Key => "Idempotency-Key",
        };
        let mut headers = vec![(name.to_owned(), job.chunk.name.clone())];
        // A header of the user replaces the guess.
        let is_given =
            |name: &str| self.choices.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        headers.extend(job.shape.headers().into_iter().filter(|(name, _)| !is_given(name)));
        headers.extend(self.choices.headers.iter().cloned());
        let path = format!("/api/{}/{}/_stream_load", self.database, self.table);
        let number = job.chunk.number;
        let mut before = || held(&self.journal).sent(number);
        self.server.request("PUT", &path, &headers, Some(&job.body), &self.pace, &mut before)
    }

    fn naming(&self) -> Naming {
        held(&self.journal).head.naming
    }

    /// Asks what became of a name.
    fn ask(&self, name: &str) -> Result<Known, String> {
        let path = match self.naming() {
            Naming::Label => format!("/api/{}/get_load_state?label={}", self.database, escaped(name)),
            Naming::Key => {
                format!("/api/{}/{}/_load_state?idempotency_key={}", self.database, self.table, escaped(name))
            }
        };
        let answer = self.server.get(&path).map_err(|failure| failure.to_string())?;
        let Some(known) = verdict::of_state(&answer) else {
            let text: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
            return Err(format!(
                "the server does not say what became of {name}: HTTP {} {text}",
                answer.status
            ));
        };
        self.heard();
        Ok(known)
    }

    fn heard(&self) {
        *held(&self.contact) = Instant::now();
        held(&self.totals).trouble = None;
    }

    /// Waits before the next attempt. Returns false if there is to be none.
    fn pause(&self, time: Duration, trouble: Option<String>) -> bool {
        if let Some(trouble) = trouble {
            let away = held(&self.contact).elapsed();
            if self.choices.give_up_after.is_some_and(|limit| away >= limit) {
                self.end(Ending::Away(trouble));
                return false;
            }
            let mut totals = held(&self.totals);
            let is_new = totals.trouble.is_none();
            totals.trouble = Some(format!("retrying for {} s: {trouble}", away.as_secs()));
            drop(totals);
            if is_new {
                held(&self.display).note(&format!("{trouble}; retrying"));
            }
        }
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.is_stopping() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
        !self.is_stopping()
    }

    fn failed(&self, chunk: &Chunk, message: &str, filtered: u64, error_url: Option<&str>) {
        let place =
            format!("chunk {} (bytes {} to {})", chunk.number, chunk.offset, chunk.offset + chunk.bytes);
        let reasons = error_url.map(|url| format!("; reasons: {url}")).unwrap_or_default();
        let text = format!("{place}: {filtered} rejected rows, nothing of it is loaded: {message}{reasons}");
        held(&self.display).note(&text);
        let mut totals = held(&self.totals);
        totals.failed.push(text);
        totals.filtered += filtered;
        if totals.failed.len() >= FAILED_MAX {
            drop(totals);
            self.end(Ending::Rejected);
        }
    }

    fn fetch_rejected(&self, url: Option<&str>) {
        let (Some(url), mut rejected) = (url, held(&self.rejected)) else { return };
        let Some(file) = rejected.as_mut() else { return };
        let written = match self.server.fetch(url) {
            Ok(answer) if answer.status == 200 => file
                .write_all(&answer.body)
                .and_then(|()| if answer.body.ends_with(b"\n") { Ok(()) } else { file.write_all(b"\n") }),
            Ok(answer) => Err(io::Error::other(format!("HTTP {}", answer.status))),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        };
        if let Err(error) = written {
            held(&self.display).note(&format!("rejected rows of {url}: {error}"));
        }
    }
}

impl Totals {
    fn add(&mut self, source_bytes: u64, rows: Option<u64>, filtered: Option<u64>) {
        self.bytes += source_bytes;
        self.chunks += 1;
        self.rows += rows.unwrap_or_default();
        self.filtered += filtered.unwrap_or_default();
        self.uncounted += u64::from(rows.is_none());
    }
}

/// Bytes of its file that a stored chunk stands for.
fn source_bytes(journal: &Journal, chunk: &Chunk) -> u64 {
    let before =
        journal.chunks.iter().filter(|(other, _)| other.file == chunk.file && other.number < chunk.number);
    chunk.source_end - before.map(|(other, _)| other.source_end).max().unwrap_or_default()
}

/// A backoff's time, which is twice as long the next time.
fn longer(backoff: &mut Duration) -> Duration {
    let longer = (*backoff * 2).min(BACKOFF_MAX);
    std::mem::replace(backoff, longer)
}

fn expired(chunk: &Chunk, age: Duration) -> String {
    format!(
        "chunk {} was sent {} hours ago, its outcome is unknown, and the server no longer remembers its name {}. Look whether the rows \
         of bytes {} to {} are there; --force sends them again.",
        chunk.number,
        age.as_secs() / 3600,
        chunk.name,
        chunk.offset,
        chunk.offset + chunk.bytes
    )
}
