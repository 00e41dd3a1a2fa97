//! The server's log, on standard error or in files.
//!
//! Lines are handed to a thread that writes them, so a reader of the log that is slow or gone delays no request and ends no
//! connection: lines that find no place in the queue, or can't be written, are dropped and counted.
//!
//! Invariant: an event is one line. Texts come from clients, and a line break in one must not begin a line of its own.
//!
//! Not here: which events are logged.

use crate::config::{LogFormat, Settings};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{EnvFilter, reload};
use tributary_engine::LineFiles;
use tributary_types::process;

const NAME: &str = "tributary.log";
/// Lines and bytes that wait for the thread.
const LINES_MAX: usize = 8192;
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The parser of statements logs warnings only.
const PARSER: &str = "sqlparser=warn";
/// How long the end of the server waits for the last lines.
const FLUSH_MAX: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    /// Answered when all lines before it were written.
    Flush(SyncSender<()>),
}

/// The way to the thread that writes.
#[derive(Clone)]
pub struct Log {
    messages: SyncSender<Message>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// Writes the last lines when it is dropped.
#[must_use]
pub struct Flush(Log);

/// Says from now on which events are logged.
type Reload = Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>;

/// The filter of the log, which may be changed.
pub struct Filter {
    text: Mutex<String>,
    reload: Reload,
}

impl Filter {
    /// Takes another filter; a text that is none changes nothing.
    pub fn set(&self, text: String) {
        let mut now = self.text.lock();
        if *now == text {
            return;
        }
        match (self.reload)(filter(&text)) {
            Ok(()) => *now = text,
            Err(error) => tracing::error!(%error, "the log's filter stays as it was"),
        }
    }
}

fn filter(text: &str) -> EnvFilter {
    // At its level debug the parser logs each literal of a statement, passwords among them.
    EnvFilter::new(text).add_directive(PARSER.parse().expect("a directive"))
}

/// Lines of the log in files, and on standard error while they can't be written.
struct Files {
    files: LineFiles,
    /// The last line did not get into them.
    failed: bool,
}

impl Files {
    fn of(settings: &Settings) -> Result<Option<Self>, String> {
        let Some(directory) = settings.log_dir.clone() else { return Ok(None) };
        let shown = directory.display().to_string();
        let files = LineFiles::new(directory, NAME, settings.log_roll_bytes, settings.log_roll_num);
        files.check().map_err(|error| {
            format!(
                "the log can't be written in {shown} (setting log_dir): {error}; choose a directory that the server may write, or leave \
                 the setting empty"
            )
        })?;
        Ok(Some(Self { files, failed: false }))
    }
}

impl Write for Files {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut left = line;
        let Err(error) = self.files.write(&mut left) else {
            self.failed = false;
            return Ok(line.len());
        };
        let mut out = io::stderr();
        if !std::mem::replace(&mut self.failed, true) {
            writeln!(out, "the log's file can't be written, so its lines are here: {error}")?;
        }
        out.write_all(left)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of this process.
///
/// # Errors
/// Its file can't be written.
pub fn start(settings: &Settings) -> Result<(Flush, Filter), String> {
    let log = match Files::of(settings)? {
        Some(files) => Log::to(files),
        None => Log::to(io::stderr()),
    };
    let text = settings.log_level.get();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(&text))
        .with_writer(log.clone())
        .with_ansi(false)
        .log_internal_errors(false);
    let reload: Reload = match settings.log_format {
        LogFormat::Json => {
            let lines = lines.json().with_filter_reloading();
            let handle = lines.reload_handle();
            lines.init();
            Box::new(move |filter| handle.reload(filter))
        }
        LogFormat::Text => {
            let lines = lines.with_filter_reloading();
            let handle = lines.reload_handle();
            lines.init();
            Box::new(move |filter| handle.reload(filter))
        }
    };
    Ok((Flush(log), Filter { text: Mutex::new(text), reload }))
}

impl Log {
    fn to(sink: impl Write + Send + 'static) -> Self {
        let (messages, received) = sync_channel(LINES_MAX);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let log = Self { messages, waiting_bytes: Arc::clone(&waiting_bytes) };
        let write = move || write_all(sink, &received, &waiting_bytes);
        // Without the thread nobody receives, and every line counts as dropped.
        drop(std::thread::Builder::new().name("log".to_owned()).spawn(write));
        log
    }

    fn line(&self, text: &[u8]) {
        let line = one_line(text).into_owned();
        let bytes = line.len();
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX
            || self.messages.try_send(Message::Line(line)).is_err()
        {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            process::log_line_dropped();
        }
    }

    /// Waits until the lines so far were written, but not for long.
    fn flush(&self) {
        let began = Instant::now();
        let (done, is_done) = sync_channel(1);
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(again)) = self.messages.try_send(message) {
            if began.elapsed() > FLUSH_MAX {
                return;
            }
            message = again;
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = is_done.recv_timeout(FLUSH_MAX.saturating_sub(began.elapsed()));
    }
}

fn write_all(mut sink: impl Write, received: &Receiver<Message>, waiting_bytes: &AtomicUsize) {
    for message in received {
        match message {
            Message::Line(line) => {
                if sink.write_all(&line).is_err() {
                    process::log_line_dropped();
                }
                waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
            Message::Flush(done) => {
                let _ = sink.flush();
                let _ = done.send(());
            }
        }
    }
}

/// The text of an event with its control characters escaped, but for the line break at its end.
fn one_line(text: &[u8]) -> Cow<'_, [u8]> {
    let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    if !body.iter().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = Vec::with_capacity(text.len() + 16);
    for byte in body {
        match is_control(byte) {
            true => escaped.extend(byte.escape_ascii()),
            false => escaped.push(*byte),
        }
    }
    escaped.push(b'\n');
    Cow::Owned(escaped)
}

/// An event is written in one call.
impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.line(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        self.0.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// Takes lines while it is open, and fails for each while it is broken.
    #[derive(Clone, Default)]
    struct Sink(Arc<(Mutex<State>, Condvar)>);

    #[derive(Default)]
    struct State {
        is_open: bool,
        is_broken: bool,
        written: Vec<u8>,
    }

    impl Sink {
        fn change(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.0.lock().expect("no panic"));
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.0.lock().expect("no panic").written.clone()).expect("text")
        }
    }

    impl Write for Sink {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let state = self.0.0.lock().expect("no panic");
            let mut state = self.0.1.wait_while(state, |state| !state.is_open).expect("no panic");
            if state.is_broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            state.written.extend(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// One test, because the count is of the whole process.
    #[test]
    fn lines_are_written_in_order_and_those_that_cannot_be_are_counted() {
        let (sink, dropped) = (Sink::default(), process::log_lines_dropped);
        let mut log = Log::to(sink.clone());
        // Nobody reads.
        for number in 0..LINES_MAX + 100 {
            log.write_all(format!("{number}\n").as_bytes()).expect("it never fails");
        }
        let without_place = dropped();
        assert!((99..=100).contains(&without_place), "{without_place}");
        sink.change(|state| state.is_open = true);
        log.flush();
        let text = sink.text();
        assert!(text.starts_with("0\n1\n2\n"), "{text:.20}");
        assert_eq!(text.lines().count() as u64, LINES_MAX as u64 + 100 - without_place);
        sink.change(|state| state.is_broken = true);
        log.write_all(b"lost\n").expect("it never fails");
        log.flush();
        assert_eq!(dropped(), without_place + 1);
        sink.change(|state| (state.is_broken, state.is_open) = (false, false));
        let large = vec![b'x'; BYTES_MAX / 2];
        (0..4).for_each(|_| log.write_all(&large).expect("it never fails"));
        assert_eq!(dropped(), without_place + 3, "no more than {BYTES_MAX} bytes wait");
        sink.change(|state| state.is_open = true);
        log.flush();
        log.write_all(b"a\nb\x1b[31m \"c\"\t\xc3\xa4\n").expect("it never fails");
        Log::flush(&log);
        assert!(sink.text().ends_with("a\\nb\\x1b[31m \"c\"\tä\n"), "one line");
    }
}
