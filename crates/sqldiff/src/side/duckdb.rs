//! DuckDB in a Python process of its own, which lives as long as the side.

use super::{Side, SideError};
use crate::compare::{Answered, Content, Outcome};
use crate::schema::{Dialect, Schema};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const PROGRAM: &str = include_str!("duckdb.py");

/// A DuckDB in memory.
#[derive(Debug)]
pub struct DuckDb {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// A line that the process answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Error { error: String },
    Rows { contents: Vec<String>, rows: Vec<Vec<Option<String>>> },
}

impl DuckDb {
    /// Starts it in a Python that has the package `duckdb`.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(python: &Path) -> Result<Self, SideError> {
        let failed = |what: String| SideError { side: "DuckDB", what };
        let mut child = Command::new(python)
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("starting {}: {error}", python.display())))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("no pipes".to_owned()));
        };
        let mut side = Self { child, to, from: BufReader::new(from) };
        match side.ask("SELECT 1") {
            Outcome::Rows(_) => Ok(side),
            outcome => Err(failed(format!("{outcome:?}"))),
        }
    }

    fn exchange(&mut self, statements: &[String]) -> io::Result<Line> {
        let mut line = serde_json::to_string(statements)?;
        line.push('\n');
        self.to.write_all(line.as_bytes())?;
        line.clear();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|error| io::Error::other(format!("{error} in {line:?}")))
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Side for DuckDb {
    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn load(&mut self, schema: &Schema) -> Result<(), SideError> {
        let failed = |what| SideError { side: "DuckDB", what };
        match self.exchange(&schema.statements(Dialect::DuckDb)) {
            Ok(Line::Rows { .. }) => Ok(()),
            Ok(Line::Error { error }) => Err(failed(error)),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        match self.exchange(&[sql.to_owned()]) {
            Ok(Line::Error { error }) => Outcome::Error { number: 0, text: error },
            Ok(Line::Rows { contents, rows }) => {
                let contents = contents.iter().map(|name| content(name)).collect();
                Outcome::Rows(Answered { contents, rows })
            }
            Err(error) => Outcome::Gone(error.to_string()),
        }
    }
}

fn content(name: &str) -> Content {
    match name {
        "Double" => Content::Double,
        "Single" => Content::Single,
        "Time" => Content::Time,
        "Text" => Content::Text,
        _ => Content::Exact,
    }
}
