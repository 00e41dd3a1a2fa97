//! DuckDB in a Python process of its own, which lives as long as the side.

use super::{Side, SideError};
use crate::compare::{Answered, Content, Outcome};
use crate::schema::{Dialect, Schema};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const PROGRAM: &str = include_str!("duckdb.py");

/// A DuckDB in memory. One that answers out of turn, or reports itself broken, is replaced by a new one.
#[derive(Debug)]
pub struct DuckDb {
    python: PathBuf,
    process: Process,
    /// The statements that made the tables.
    loaded: Vec<String>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// How many lines were sent.
    sent: u64,
}

/// A line that the process answers.
#[derive(Deserialize)]
struct Line {
    number: u64,
    #[serde(flatten)]
    said: Said,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Error { error: String },
    Rows { contents: Vec<String>, rows: Vec<Vec<Option<String>>> },
}

impl Process {
    fn start(python: &Path) -> Result<Self, SideError> {
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
        let mut process = Self { child, to, from: BufReader::new(from), sent: 0 };
        match process.exchange(&["SELECT 1".to_owned()]) {
            Ok(Said::Rows { .. }) => Ok(process),
            Ok(Said::Error { error }) => Err(failed(error)),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn exchange(&mut self, statements: &[String]) -> io::Result<Said> {
        self.sent += 1;
        let mut line = serde_json::to_string(&(self.sent, statements))?;
        line.push('\n');
        self.to.write_all(line.as_bytes())?;
        line.clear();
        self.from.read_line(&mut line)?;
        let answer: Line =
            serde_json::from_str(&line).map_err(|error| io::Error::other(format!("{error} in {line:?}")))?;
        if answer.number != self.sent {
            let text = format!("the answer to {} where that to {} belongs", answer.number, self.sent);
            return Err(io::Error::other(text));
        }
        Ok(answer.said)
    }
}

impl DuckDb {
    /// Starts it in a Python that has the package `duckdb`.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(python: &Path) -> Result<Self, SideError> {
        Ok(Self { python: python.to_owned(), process: Process::start(python)?, loaded: Vec::new() })
    }

    /// A new process with the tables of the old one.
    fn restart(&mut self) -> Result<(), SideError> {
        self.process = Process::start(&self.python)?;
        self.fill()
    }

    fn fill(&mut self) -> Result<(), SideError> {
        let failed = |what| SideError { side: "DuckDB", what };
        match self.process.exchange(&self.loaded) {
            Ok(Said::Rows { .. }) => Ok(()),
            Ok(Said::Error { error }) => Err(failed(error)),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Whether a DuckDB that says so answers nothing any more.
fn is_broken(error: &str) -> bool {
    error.contains("INTERNAL Error") || error.contains("FATAL Error")
}

impl Drop for Process {
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
        self.loaded = schema.statements(Dialect::DuckDb);
        match self.fill() {
            Ok(()) => Ok(()),
            Err(_) => self.restart(),
        }
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        let gone = match self.process.exchange(&[sql.to_owned()]) {
            Ok(Said::Error { error }) if is_broken(&error) => error,
            Ok(Said::Error { error }) => return Outcome::Error { number: 0, text: error },
            Ok(Said::Rows { contents, rows }) => {
                let contents = contents.iter().map(|name| content(name)).collect();
                return Outcome::Rows(Answered { contents, rows });
            }
            Err(error) => error.to_string(),
        };
        // A failure to start shows at the next query, too.
        let _ = self.restart();
        Outcome::Gone(gone)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// In Python's place: answers with the number of the line, and twice where there is `noise` in it.
    const LINES: &str = r#"#!/bin/sh
number=0
while read -r line; do
    number=$((number + 1))
    case $line in *noise*) echo "{\"number\": 0, \"contents\": [], \"rows\": []}" ;; esac
    case $line in
        *fatal*) echo "{\"number\": $number, \"error\": \"FATAL Error: gone\"}" ;;
        *) echo "{\"number\": $number, \"contents\": [\"Exact\"], \"rows\": [[\"$number\"]]}" ;;
    esac
done
"#;

    #[test]
    fn a_process_that_answers_out_of_turn_or_is_broken_is_restarted() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("python");
        std::fs::write(&program, LINES).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("made executable");
        let mut side = DuckDb::start(&program).expect("started");
        let rows = |number: &str| {
            let rows = vec![vec![Some(number.to_owned())]];
            Outcome::Rows(Answered { contents: vec![Content::Exact], rows })
        };
        assert_eq!(side.ask("SELECT 1"), rows("2"));
        for query in ["SELECT noise", "SELECT fatal"] {
            assert!(matches!(side.ask(query), Outcome::Gone(_)), "{query}");
            // The new one was greeted and has got the tables.
            assert_eq!(side.ask("SELECT 1"), rows("3"), "{query}");
            assert_eq!(side.ask("SELECT 1"), rows("4"), "{query}");
        }
    }
}
