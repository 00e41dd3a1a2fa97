//! `tributary load`: files → chunks → Stream Loads, each row once, whatever happens to this program, the connection or the server.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `shape`, `guess` | a file's format, and the headers that tell the server |
//! | `source`, `split` | unpacked bytes, cut at row ends |
//! | `journal` | chunks, their names and outcomes on disk |
//! | `run` | sends chunks until their outcomes are known |
//! | `verdict` | the server's answers |
//! | `progress` | the bar |

mod guess;
mod journal;
mod progress;
mod run;
mod shape;
mod source;
mod split;
mod verdict;

use crate::http::{Address, Answer, Pace, Server, escaped};
use crate::password::Login;
use clap::{ArgAction, Args, ValueEnum};
use guess::Given;
use journal::{Input, Journal, Naming};
pub use progress::Progress;
pub(crate) use progress::parse_time;
use progress::{parse_size, size};
use run::{Choices, Run, Totals};
pub use shape::Format;
use shape::{Packing, Shape, unescaped};
use signal_hook::consts::{SIGINT, SIGTERM};
use source::Source;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Bytes of a file from which its shape is guessed.
const SAMPLE_BYTES: usize = 256 << 10;
/// A packed file up to this share of a chunk is sent as it is.
const AS_IT_IS_SHARE: u64 = 8;

/// Loads files into a table, each row once, and resumes where it was interrupted
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// Files to load: CSV, JSON, Parquet, ORC or Arrow, also packed with gzip or zstd; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The table, as `database.table`
    #[arg(short, long, value_name = "DB.TABLE")]
    table: String,
    /// The server's HTTP port
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8030")]
    url: String,
    #[command(flatten)]
    login: Login,
    /// The format, instead of a guess
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Separator of the fields of CSV, such as `,`, `\t` or `\x01`, instead of a guess
    #[arg(long, value_name = "TEXT")]
    separator: Option<String>,
    /// End of the lines of CSV
    #[arg(long, value_name = "TEXT")]
    line_delimiter: Option<String>,
    /// The quote around fields of CSV, or `none`, instead of a guess
    #[arg(long, value_name = "SIGN")]
    enclose: Option<String>,
    /// The sign before a quote that is data
    #[arg(long, value_name = "SIGN")]
    escape: Option<char>,
    /// Whether the first line of CSV has the columns' names, instead of a guess
    #[arg(long, value_name = "KIND")]
    first_line: Option<FirstLine>,
    /// A header of Stream Load, such as `columns:a,b,c=a+b`; may be repeated
    #[arg(short = 'H', long, value_name = "NAME:VALUE", action = ArgAction::Append)]
    header: Vec<String>,
    /// The highest share of rejected rows in a chunk
    #[arg(long, value_name = "SHARE")]
    max_filter_ratio: Option<f64>,
    /// Whether chunks share groups with other loads. `off` gives each chunk its own transaction, known by its label; the others need a
    /// Tributary server, which knows chunks by idempotency keys
    #[arg(long, value_name = "MODE", default_value = "off")]
    group_commit: GroupCommit,
    /// Bytes of a chunk, such as `32M`
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = parse_size)]
    chunk_size: u64,
    /// Chunks under way at a time. With more than one, chunks arrive in any order
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// The most bytes to send in a second, such as `5M`
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    rate: Option<u64>,
    /// How long the server may be away, such as `10m` or `2h`; 0 waits for ever
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    give_up_after: Duration,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_time)]
    timeout: Duration,
    /// How long the server remembers labels and keys (Doris: `label_keep_max_second`)
    #[arg(long, value_name = "TIME", default_value = "3d", value_parser = parse_time)]
    names_kept: Duration,
    /// A file to which the reasons for rejected rows are added
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,
    /// The journal's file; beside the first file if it is not given
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Forgets an earlier load of the same files, and loads them again from the beginning
    #[arg(long)]
    restart: bool,
    /// Sends chunks again whose outcome the server no longer remembers: their rows may be stored twice
    #[arg(long)]
    force: bool,
    /// Shows the guess, the columns, the first rows and the number of chunks, and loads nothing
    #[arg(long)]
    dry_run: bool,
    /// How progress is shown
    #[arg(long, value_name = "KIND", default_value = "auto")]
    progress: Progress,
}

/// The kind of a CSV file's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FirstLine {
    /// Names of columns
    Names,
    /// A row
    Row,
}

/// A mode of Group Commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GroupCommit {
    /// No group
    #[value(alias = "off_mode")]
    Off,
    /// Answers when the rows are visible
    #[value(alias = "sync_mode")]
    Sync,
    /// Answers when the rows are durable
    #[value(alias = "async_mode")]
    Async,
}

/// How a load ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Loaded,
    /// Chunks had more bad rows than allowed.
    Rejected,
    /// The server was away for too long.
    Away(String),
    /// The server, or this program for the rows' sake, refused.
    Refused(String),
    /// A file or the journal can't be read or written.
    Failed(String),
    Interrupted,
}

impl Ending {
    fn code(&self) -> u8 {
        match self {
            Self::Loaded => 0,
            Self::Rejected => 2,
            Self::Away(_) => 3,
            Self::Refused(_) => 4,
            Self::Failed(_) => 5,
            Self::Interrupted => 130,
        }
    }
}

/// An error of the command line.
pub(crate) const USAGE: u8 = 1;

/// Why nothing was sent.
enum Trouble {
    Usage(String),
    Ended(Ending),
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Usage(text)
    }
}

impl Load {
    /// Loads the files. The exit codes are in docs/command-line.md.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let ending = match self.load() {
            Ok(ending) | Err(Trouble::Ended(ending)) => ending,
            Err(Trouble::Usage(text)) => {
                eprintln!("tributary load: {text}");
                return ExitCode::from(USAGE);
            }
        };
        match &ending {
            Ending::Loaded => {}
            Ending::Rejected => {
                eprintln!("tributary load: chunks have more rejected rows than --max-filter-ratio allows");
            }
            Ending::Away(text) => eprintln!("tributary load: gave up: {text}"),
            Ending::Refused(text) => eprintln!("tributary load: refused: {text}"),
            Ending::Failed(text) => eprintln!("tributary load: {text}"),
            Ending::Interrupted => eprintln!("tributary load: interrupted"),
        }
        ExitCode::from(ending.code())
    }

    fn load(&self) -> Result<Ending, Trouble> {
        let (database, table) = self
            .table
            .split_once('.')
            .ok_or_else(|| format!("--table {}: give database.table", self.table))?;
        let headers = self.headers()?;
        let given = self.given()?;
        let address = Address::parse(&self.url)?;
        let (user, password) = self.login.resolve(address.user.as_deref())?;
        let server = Server { address, user, password, patience: self.timeout.max(Duration::from_secs(1)) };
        let is_stream = self.files.iter().any(|path| path == Path::new("-"));
        if is_stream && self.files.len() > 1 {
            return Err("standard input can't be loaded together with files".to_owned().into());
        }
        if self.dry_run {
            return self.show(&server, (database, table), &given).map(|()| Ending::Loaded);
        }
        let naming = if self.group_commit == GroupCommit::Off { Naming::Label } else { Naming::Key };
        let path = (!is_stream).then(|| self.journal_path());
        let mut stream = None;
        let journal = match &path {
            Some(path) => self.journal(path, naming, &server, (database, table), &given)?,
            None => {
                let mut source =
                    Source::over(io::stdin()).map_err(|error| failed("standard input", &error))?;
                let columns = self.columns(&server, database, table)?;
                let shape = self.shape(Path::new("-"), &mut source, columns.as_deref(), &given)?;
                stream = Some((source, shape));
                Journal::create(None, &self.table, naming, Vec::new())
                    .map_err(|error| failed("the journal", &error))?
            }
        };
        if naming == Naming::Key {
            self.require_keys(&server, database, table)?;
        }
        if journal.is_complete() && path.is_some() {
            println!(
                "All of it was loaded before, by the journal {}. --restart loads it again.",
                shown(path.as_deref())
            );
            return Ok(Ending::Loaded);
        }
        let choices = Choices {
            headers,
            chunk_bytes: usize::try_from(self.chunk_size).unwrap_or(usize::MAX),
            parallel: self.parallel.into(),
            give_up_after: Some(self.give_up_after).filter(|time| !time.is_zero()),
            names_kept: self.names_kept,
            force: self.force,
            rejected: self.rejected.clone(),
            progress: self.progress,
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second signal ends the program at once: the journal is on disk.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .map_err(|error| failed("signals", &error))?;
        }
        let started = Instant::now();
        let run = Run::new(&server, Pace::new(self.rate), &choices, journal, (database, table), interrupted)
            .map_err(|error| failed(&shown(self.rejected.as_deref()), &error))?;
        let (ending, totals, _journal) = run.load(stream);
        summary(&totals, started.elapsed());
        if ending != Ending::Loaded && path.is_some() {
            eprintln!("The same command resumes from {}.", shown(path.as_deref()));
        }
        Ok(ending)
    }

    fn journal_path(&self) -> PathBuf {
        self.journal.clone().unwrap_or_else(|| {
            let mut name = self.files[0].clone().into_os_string();
            name.push(format!(".{}.journal", self.table.replace('/', "_")));
            name.into()
        })
    }

    /// Opens the journal of an earlier run, or begins one.
    fn journal(
        &self,
        path: &Path,
        naming: Naming,
        server: &Server,
        (database, table): (&str, &str),
        given: &Given,
    ) -> Result<Journal, Trouble> {
        let of_journal = |error: io::Error| failed(&path.display().to_string(), &error);
        if self.restart {
            // Opened first: another run may be using it.
            if let Some(_journal) = Journal::open(path).map_err(of_journal)? {
                std::fs::remove_file(path).map_err(of_journal)?;
            }
        }
        let Some(journal) = Journal::open(path).map_err(of_journal)? else {
            let columns = self.columns(server, database, table)?;
            let mut inputs = Vec::new();
            for path in &self.files {
                let of_file = |error: io::Error| failed(&path.display().to_string(), &error);
                let mut source = Source::open(path).map_err(of_file)?;
                let shape = self.shape(path, &mut source, columns.as_deref(), given)?;
                inputs.push(Input::of(path, shape).map_err(of_file)?);
            }
            return Journal::create(Some(path), &self.table, naming, inputs).map_err(of_journal);
        };
        let head = &journal.head;
        let refuse = |what: String| {
            let text = format!(
                "{what} (journal {}). --restart forgets it and loads from the beginning.",
                path.display()
            );
            Err(Trouble::Ended(Ending::Refused(text)))
        };
        if head.table != self.table {
            return refuse(format!("the journal is of table {}", head.table));
        }
        if head.naming != naming {
            return refuse("the load began with another --group-commit".to_owned());
        }
        if head.files.len() != self.files.len() {
            return refuse(format!("the load began with {} files", head.files.len()));
        }
        for (path, input) in self.files.iter().zip(&head.files) {
            let now = Input::of(path, input.shape.clone())
                .map_err(|error| failed(&path.display().to_string(), &error))?;
            if !now.is_same_file(input) {
                return refuse(format!("{} has changed since the load began", path.display()));
            }
            let shape = &input.shape;
            let is_other = given.format.is_some_and(|format| format != shape.format)
                || given.separator.as_ref().is_some_and(|separator| *separator != shape.separator)
                || given.line_delimiter.as_ref().is_some_and(|delimiter| *delimiter != shape.line_delimiter)
                || given.enclose.is_some_and(|enclose| enclose != shape.enclose)
                || given.escape.is_some_and(|escape| Some(escape) != shape.escape)
                || given.first_line_is_names.is_some_and(|is_names| is_names != shape.header.is_some());
            if is_other {
                return refuse(format!("the load began with `{}`", shape.options()));
            }
        }
        if !journal.is_complete() && !journal.chunks.is_empty() {
            let done = journal.chunks.iter().filter(|(_, state)| state.is_done).count();
            eprintln!(
                "Resuming from {}: {done} of {} chunks are stored.",
                path.display(),
                journal.chunks.len()
            );
        }
        Ok(journal)
    }

    fn shape(
        &self,
        path: &Path,
        source: &mut Source,
        columns: Option<&[String]>,
        given: &Given,
    ) -> Result<Shape, Trouble> {
        let packing = source.packing;
        let sample =
            source.peek(SAMPLE_BYTES).map_err(|error| failed(&path.display().to_string(), &error))?;
        let mut shape = guess::shape(path, packing, sample, columns, given);
        let is_file = path != Path::new("-");
        let packed_bytes = std::fs::metadata(path).map_or(u64::MAX, |about| about.len());
        if is_file && packing == Packing::Gz && packed_bytes <= self.chunk_size / AS_IT_IS_SHARE {
            shape.whole = true;
        }
        if shape.whole && (!is_file || packing == Packing::Zst) {
            let text = format!(
                "{}: {:?} is sent as a whole, which needs a file that is not packed with zstd",
                path.display(),
                shape.format
            );
            return Err(Trouble::Usage(text));
        }
        Ok(shape)
    }

    fn given(&self) -> Result<Given, String> {
        let one = |text: &str| match text.as_bytes() {
            [byte] if byte.is_ascii() => Ok(*byte),
            _ => Err(format!("{text:?} is not one ASCII sign")),
        };
        Ok(Given {
            format: self.format,
            separator: self.separator.as_deref().map(unescaped).transpose()?,
            line_delimiter: self.line_delimiter.as_deref().map(unescaped).transpose()?,
            enclose: match self.enclose.as_deref() {
                None => None,
                Some("none" | "") => Some(None),
                Some(text) => Some(Some(one(text)?)),
            },
            escape: self.escape.map(|sign| one(&sign.to_string())).transpose()?,
            first_line_is_names: self.first_line.map(|kind| kind == FirstLine::Names),
        })
    }

    fn headers(&self) -> Result<Vec<(String, String)>, String> {
        // These would make the chunks' names or their shape another than the journal's.
        const OWN: [&str; 11] = [
            "label",
            "idempotency-key",
            "channel",
            "group_commit",
            "format",
            "column_separator",
            "line_delimiter",
            "enclose",
            "escape",
            "two_phase_commit",
            "compress_type",
        ];
        let mut headers = Vec::new();
        for header in &self.header {
            let (name, value) =
                header.split_once(':').ok_or_else(|| format!("--header {header}: give name:value"))?;
            if OWN.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(format!("the header {name} is set by this program; see its options"));
            }
            if header.contains(['\r', '\n']) || name.is_empty() || name.contains(' ') {
                return Err(format!("--header {header:?} is no header"));
            }
            headers.push((name.to_owned(), value.trim_start().to_owned()));
        }
        if let Some(ratio) = self.max_filter_ratio {
            if !(0.0..=1.0).contains(&ratio) {
                return Err(format!("--max-filter-ratio {ratio} is not between 0 and 1"));
            }
            headers.push(("max_filter_ratio".to_owned(), ratio.to_string()));
        }
        let mode = match self.group_commit {
            GroupCommit::Off => "off_mode",
            GroupCommit::Sync => "sync_mode",
            GroupCommit::Async => "async_mode",
        };
        headers.push(("group_commit".to_owned(), mode.to_owned()));
        Ok(headers)
    }

    /// A server that ignores idempotency keys would store repeated chunks twice.
    fn require_keys(&self, server: &Server, database: &str, table: &str) -> Result<(), Trouble> {
        let path = format!("/api/{}/{}/_load_state?idempotency_key=none", escaped(database), escaped(table));
        let answer = self.reach(server, &path)?;
        match verdict::of_state(&answer) {
            Some(_) => Ok(()),
            None => {
                let text: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
                Err(Trouble::Ended(Ending::Refused(format!(
                    "the server knows no idempotency keys, so chunks in groups could not be resumed: leave out --group-commit \
                     (HTTP {}: {text})",
                    answer.status
                ))))
            }
        }
    }

    /// Asks the server, which may be away for some time.
    fn reach(&self, server: &Server, path: &str) -> Result<Answer, Trouble> {
        let started = Instant::now();
        loop {
            let failure = match server.get(path) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure.to_string(),
            };
            if !self.give_up_after.is_zero() && started.elapsed() >= self.give_up_after {
                return Err(Trouble::Ended(Ending::Away(failure)));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The table's columns, if the server tells them.
    fn columns(&self, server: &Server, database: &str, table: &str) -> Result<Option<Vec<String>>, Trouble> {
        let answer = self.reach(server, &schema_path(database, table))?;
        Ok(columns(&answer))
    }

    fn show(&self, server: &Server, (database, table): (&str, &str), given: &Given) -> Result<(), Trouble> {
        let columns = server.get(&schema_path(database, table)).ok().and_then(|answer| columns(&answer));
        match &columns {
            Some(columns) => println!("{database}.{table}: {}", columns.join(", ")),
            None => println!(
                "{database}.{table}: its columns are not known, because the server does not tell them"
            ),
        }
        for path in &self.files {
            let is_stream = path == Path::new("-");
            let opened = if is_stream { Source::over(io::stdin()) } else { Source::open(path) };
            let mut source = opened.map_err(|error| failed(&path.display().to_string(), &error))?;
            let shape = self.shape(path, &mut source, columns.as_deref(), given)?;
            println!("\n{}", path.display());
            println!("  guess: {}", shape.options());
            match source.packing {
                Packing::None => {}
                Packing::Gz => println!("  packed with gzip"),
                Packing::Zst => println!("  packed with zstd"),
            }
            if let Some(names) = &shape.header {
                println!("  columns: {}", names.join(", "));
                let unknown = |name: &&String| {
                    columns
                        .as_ref()
                        .is_some_and(|all| !all.iter().any(|column| column.eq_ignore_ascii_case(name)))
                };
                let unknown: Vec<_> = names.iter().filter(unknown).map(String::as_str).collect();
                if !unknown.is_empty() {
                    println!("  not in the table: {}", unknown.join(", "));
                }
            }
            let bytes = std::fs::metadata(path).map(|about| about.len()).unwrap_or_default();
            match (shape.whole, is_stream, source.packing) {
                (true, ..) => println!("  1 chunk of {}, as it is", size(bytes)),
                (false, false, Packing::None) => {
                    println!(
                        "  {} in about {} chunks of {}",
                        size(bytes),
                        bytes.div_ceil(self.chunk_size),
                        size(self.chunk_size)
                    );
                }
                _ => println!(
                    "  chunks of {} of the unpacked bytes; how many is known at the end",
                    size(self.chunk_size)
                ),
            }
            let sample =
                source.peek(SAMPLE_BYTES).map_err(|error| failed(&path.display().to_string(), &error))?;
            if shape.format == Format::Csv {
                for row in
                    guess::rows(&shape, sample).iter().skip(usize::from(shape.header.is_some())).take(5)
                {
                    println!("  | {}", row.join(" | "));
                }
            } else if shape.format.can_be_cut() {
                for line in String::from_utf8_lossy(sample).lines().take(5) {
                    println!("  | {}", line.chars().take(200).collect::<String>());
                }
            }
        }
        Ok(())
    }
}

fn failed(what: &str, error: &io::Error) -> Trouble {
    Trouble::Ended(Ending::Failed(format!("{what}: {error}")))
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

fn schema_path(database: &str, table: &str) -> String {
    format!("/api/{}/{}/_schema", escaped(database), escaped(table))
}

/// The columns in an answer about a table.
fn columns(answer: &Answer) -> Option<Vec<String>> {
    let json = answer.json()?;
    let properties = json.get("data")?.get("properties")?.as_array()?;
    let names: Vec<_> =
        properties.iter().filter_map(|column| column.get("name")?.as_str().map(str::to_owned)).collect();
    (!names.is_empty()).then_some(names)
}

fn summary(totals: &Totals, time: Duration) {
    let seconds = time.as_secs_f64().max(0.001);
    println!(
        "{} rows loaded, {} rejected, {} in {} chunks, {seconds:.1} s, {}/s",
        totals.rows,
        totals.filtered,
        size(totals.bytes),
        totals.chunks,
        size((totals.bytes as f64 / seconds) as u64)
    );
    if totals.uncounted > 0 {
        println!(
            "The rows of {} further chunks are stored and not counted: their answers were lost.",
            totals.uncounted
        );
    }
    if !totals.failed.is_empty() {
        println!("{} chunks are not loaded.", totals.failed.len());
    }
}
