//! `tributary sql`: statements from a shell, an argument, a file or standard input, and their rows in several forms.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `target`, `session` | the connection, and the end of a running statement |
//! | `statements` | text → statements |
//! | `output`, `parquet` | rows → texts, a Parquet file |
//! | `shell` | lines, history and completion |

mod output;
mod parquet;
mod session;
mod shell;
mod statements;
mod target;

use crate::password::Login;
use clap::{ArgAction, Args};
pub use output::Form;
use session::Session;
use statements::Statement;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use target::Target;
use tributary_client::{Answer, ClientError};

/// Runs SQL statements: a shell, or those of arguments, files and standard input
#[derive(Args, Clone, Debug)]
pub struct Sql {
    /// The server's MySQL port and the database, as `mysql://user@host:9030/db`
    #[arg(long, value_name = "URL", default_value = "mysql://127.0.0.1:9030")]
    url: String,
    #[command(flatten)]
    login: Login,
    /// Runs these statements and ends; may be repeated
    #[arg(short, long, value_name = "SQL", action = ArgAction::Append)]
    execute: Vec<String>,
    /// Runs the statements of a file and ends; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "execute")]
    file: Option<PathBuf>,
    /// The form of rows
    #[arg(long, value_name = "FORM", default_value = "table")]
    output: Form,
    /// Writes the rows to a file
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Goes on with the next statement after an error
    #[arg(long)]
    keep_going: bool,
    /// Says on standard error how long each statement took
    #[arg(long)]
    timing: bool,
}

const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
const AWAY: u8 = 3;
const NEEDS_FILE: &str = "--output parquet needs --out FILE";

/// Why a statement is not done.
enum Trouble {
    Statement,
    Output(io::Error),
}

impl Sql {
    /// The run of one statement.
    pub(crate) fn of(url: String, login: Login, statement: String) -> Self {
        Self {
            url,
            login,
            execute: vec![statement],
            file: None,
            output: Form::Table,
            out: None,
            keep_going: false,
            timing: false,
        }
    }

    /// Runs the statements or the shell. The exit codes are in docs/command-line.md.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let (code, text) = match self.try_run() {
            Ok(code) => return code,
            Err(error) => error,
        };
        eprintln!("tributary sql: {text}");
        ExitCode::from(code)
    }

    fn try_run(&self) -> Result<ExitCode, (u8, String)> {
        let mut target = Target::parse(&self.url).map_err(|text| (USAGE, text))?;
        let (user, password) = self.login.resolve(target.user.as_deref()).map_err(|text| (USAGE, text))?;
        (target.user, target.password) = (Some(user), password);
        if let Some(path) = &self.out {
            // Results are added to it, one statement's after the other's.
            File::create(path).map_err(|error| (USAGE, format!("{}: {error}", path.display())))?;
        }
        if self.output == Form::Parquet && self.out.is_none() {
            return Err((USAGE, NEEDS_FILE.to_owned()));
        }
        let is_shell = self.execute.is_empty() && self.file.is_none() && io::stdin().is_terminal();
        let text = if is_shell { String::new() } else { self.text().map_err(|error| (USAGE, error))? };
        let mut session = Session::open(target, is_shell).map_err(|error| match error {
            ClientError::Refused(error) => (FAILED, error.to_string()),
            ClientError::Gone(error) => (AWAY, format!("{}: {error}", self.url)),
        })?;
        if is_shell {
            return shell::run(self, &mut session).map(|()| ExitCode::SUCCESS).map_err(|text| (FAILED, text));
        }
        let mut code = ExitCode::SUCCESS;
        for statement in statements::split_all(&text) {
            match self.run_one(&mut session, &statement, self.output, self.timing) {
                Ok(()) => {}
                Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(ExitCode::from(FAILED));
                }
                Err(Trouble::Output(error)) => return Err((FAILED, error.to_string())),
                Err(Trouble::Statement) => {
                    code = ExitCode::from(FAILED);
                    if !self.keep_going {
                        break;
                    }
                }
            }
        }
        Ok(code)
    }

    /// The statements to run.
    fn text(&self) -> Result<String, String> {
        if !self.execute.is_empty() {
            return Ok(self.execute.join(";\n"));
        }
        match self.file.as_deref().filter(|path| path.as_os_str() != "-") {
            Some(path) => {
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
            }
            None => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|error| format!("standard input: {error}"))?;
                Ok(text)
            }
        }
    }

    /// Runs a statement and writes its rows, or its error to standard error.
    fn run_one(
        &self,
        session: &mut Session,
        statement: &Statement,
        form: Form,
        with_time: bool,
    ) -> Result<(), Trouble> {
        let started = Instant::now();
        let answer = match session.run(&statement.text) {
            Ok(answer) => answer,
            Err(ClientError::Refused(error)) => {
                eprintln!("{error}");
                return Err(Trouble::Statement);
            }
            Err(ClientError::Gone(error)) => {
                eprintln!(
                    "ERROR 2013 (HY000): the connection is lost, and the outcome of the statement unknown: {error}"
                );
                return Err(Trouble::Statement);
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        let told = match &answer {
            Answer::Ok(ok) => {
                let info = if ok.info.is_empty() { String::new() } else { format!(", {}", ok.info) };
                format!("{} rows affected, {} warnings{info}", ok.affected_rows, ok.warnings)
            }
            Answer::Rows(rows) => format!("{} rows", rows.rows.len()),
        };
        if let Answer::Rows(rows) = &answer {
            let form = if statement.is_vertical { Form::Vertical } else { form };
            self.write(rows, form).map_err(Trouble::Output)?;
        }
        if with_time {
            eprintln!("{told} ({seconds:.3} s)");
        }
        Ok(())
    }

    fn write(&self, rows: &tributary_client::Rows, form: Form) -> io::Result<()> {
        match &self.out {
            Some(path) => {
                let file = File::options().append(true).open(path)?;
                if form == Form::Parquet && file.metadata()?.len() > 0 {
                    return Err(io::Error::other("a Parquet file has the rows of one statement"));
                }
                let mut out = BufWriter::new(file);
                output::write(&mut out, rows, form)?;
                out.flush()
            }
            None if form == Form::Parquet => Err(io::Error::other(NEEDS_FILE)),
            None => {
                // Not locked: a lock stays on its thread, and a Parquet file may be written by several.
                let mut out = BufWriter::new(io::stdout());
                output::write(&mut out, rows, form)?;
                out.flush()
            }
        }
    }
}
