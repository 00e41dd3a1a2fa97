//! Many cells, each run several times, each run on a fresh server unless one is already running; or the same cells on two
//! binaries alternately.

use crate::cell::{Cell, Measured};
use crate::client::closed_loop::Limit;
use crate::error::BenchError;
use crate::server::{Address, Server};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tributary_client::Trust;

/// Settings of a server that a test starts itself.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    pub directory: &'a Path,
    pub settings: &'a [(String, String)],
}

/// The server to measure.
#[derive(Clone, Debug)]
pub enum Target {
    Start { program: PathBuf, directory: PathBuf, settings: Vec<(String, String)>, trust: Option<Trust> },
    Running(Address, Option<Trust>),
}

impl Target {
    /// The same with another binary, and without TLS; a server that is running already stays as it is.
    #[must_use]
    pub fn with_program(&self, binary: PathBuf) -> Self {
        match self.clone() {
            Self::Start { directory, settings, .. } => {
                Self::Start { program: binary, directory, settings, trust: None }
            }
            running @ Self::Running(..) => running,
        }
    }

    /// The same with more settings; a server that is running already stays as it is.
    #[must_use]
    pub fn with_settings(&self, added: &[(String, String)]) -> Self {
        match self.clone() {
            Self::Start { program, directory, mut settings, trust } => {
                settings.extend_from_slice(added);
                Self::Start { program, directory, settings, trust }
            }
            running @ Self::Running(..) => running,
        }
    }

    /// A server of a test's own, which the test may restart, with an empty table for the cell.
    ///
    /// # Errors
    /// The target is a running server; the server does not start.
    pub fn own_server(&self, test: &str, cell: &Cell) -> Result<(Server, Own<'_>), BenchError> {
        let Self::Start { directory, settings, .. } = self else {
            return Err(BenchError::Argument(format!("{test} starts its own server: leave out --host")));
        };
        let server = self.server()?;
        cell.create_table(&server)?;
        Ok((server, Own { directory, settings }))
    }

    /// The settings of a server that the benchmark starts.
    #[must_use]
    pub fn settings(&self) -> &[(String, String)] {
        match self {
            Self::Start { settings, .. } => settings,
            Self::Running(..) => &[],
        }
    }

    /// # Errors
    /// The server does not start.
    pub fn server(&self) -> Result<Server, BenchError> {
        let (mut server, trust) = match self {
            Self::Start { program, directory, settings, trust } => {
                (Server::start(program, directory, settings)?, trust)
            }
            Self::Running(address, trust) => (Server::running(*address), trust),
        };
        server.trust.clone_from(trust);
        Ok(server)
    }
}

/// How cells are run.
#[derive(Clone, Debug)]
pub struct Suite {
    pub target: Target,
    pub limit: Limit,
    pub runs: usize,
    /// Refused loads are sent again instead of ending the run.
    pub sends_again: bool,
}

/// A cell's runs.
#[derive(Clone, Debug, Serialize)]
pub struct CellResult {
    pub name: String,
    #[serde(flatten)]
    pub cell: Cell,
    /// Doris's figure, in rows per second.
    pub published_rows_per_second: Option<f64>,
    /// In the order of rows per second.
    pub runs: Vec<Measured>,
}

impl CellResult {
    /// The run of the median rows per second; of two in the middle the lower one.
    #[must_use]
    pub fn median(&self) -> &Measured {
        &self.runs[(self.runs.len() - 1) / 2]
    }
}

/// Two runs of a cell, one right after the other.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub before: Measured,
    pub now: Measured,
}

/// A cell's pairs, in the order of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Turns {
    pub name: String,
    #[serde(flatten)]
    pub cell: Cell,
    pub pairs: Vec<Pair>,
}

impl Suite {
    /// Runs all cells, round by round, so that a disturbance of the machine hits one run of many
    /// cells and not many runs of one.
    ///
    /// # Errors
    /// See [`Cell::measure`].
    pub fn run(&self, cells: &[Cell]) -> Result<Vec<CellResult>, BenchError> {
        let mut runs: Vec<Vec<Measured>> = vec![Vec::new(); cells.len()];
        for round in 0..self.runs {
            for (number, cell) in cells.iter().enumerate() {
                let head = format!("{}/{} run {}/{} {cell}", number + 1, cells.len(), round + 1, self.runs);
                runs[number].push(self.run_once(&self.target, cell, &head)?);
            }
        }
        let result = |(cell, mut runs): (&Cell, Vec<Measured>)| {
            runs.sort_by(|a, b| a.rows_per_second.total_cmp(&b.rows_per_second));
            CellResult {
                name: cell.to_string(),
                cell: *cell,
                published_rows_per_second: cell.published(),
                runs,
            }
        };
        Ok(cells.iter().zip(runs).map(result).collect())
    }

    /// Runs all cells on the target and on another one. The two runs of a pair follow each other at once, and every other round
    /// starts with the other target, so that a machine whose speed changes by the minute treats both alike.
    ///
    /// # Errors
    /// See [`Cell::measure`].
    pub fn run_by_turns(&self, before: &Target, cells: &[Cell]) -> Result<Vec<Turns>, BenchError> {
        let named = |cell: &Cell| Turns { name: cell.to_string(), cell: *cell, pairs: Vec::new() };
        let mut turns: Vec<Turns> = cells.iter().map(named).collect();
        for round in 0..self.runs {
            for (number, cell) in cells.iter().enumerate() {
                let head = |which: &str| {
                    format!("{}/{} run {}/{} {cell}, {which}", number + 1, cells.len(), round + 1, self.runs)
                };
                let run_before = || self.run_once(before, cell, &head("before"));
                let run_now = || self.run_once(&self.target, cell, &head("now"));
                let pair = if round % 2 == 0 {
                    let before = run_before()?;
                    Pair { before, now: run_now()? }
                } else {
                    let now = run_now()?;
                    Pair { before: run_before()?, now }
                };
                turns[number].pairs.push(pair);
            }
        }
        Ok(turns)
    }

    fn run_once(&self, target: &Target, cell: &Cell, head: &str) -> Result<Measured, BenchError> {
        let server = target.server()?;
        let show = |elapsed, rows| progress(head, elapsed, rows);
        let measured = cell.measure(&server, self.limit, self.sends_again, &show)?;
        eprintln!(
            "{}{head}: {:.0} rows/s, p50 {:.2} ms, p99 {:.2} ms",
            clear(),
            measured.rows_per_second,
            measured.p50_ms,
            measured.p99_ms
        );
        Ok(measured)
    }
}

fn clear() -> &'static str {
    if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" }
}

fn progress(head: &str, elapsed: Duration, rows: u64) {
    let mut out = std::io::stderr();
    if !out.is_terminal() {
        return;
    }
    let seconds = elapsed.as_secs_f64();
    // A closed terminal is no reason to stop measuring.
    drop(write!(out, "{}{head}: {seconds:.1} s, {rows} rows, {:.0} rows/s", clear(), rows as f64 / seconds));
}
