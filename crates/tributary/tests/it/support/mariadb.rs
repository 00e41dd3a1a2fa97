//! The MariaDB command line client, unmodified, as a user types into it.

use super::Server;
use super::programs::{Finished, missing};
use std::io::Write;
use std::process::{Command, Stdio};

/// A command line client of one server.
pub struct MariaDb<'a> {
    server: &'a Server,
    user: &'a str,
    options: Vec<&'a str>,
}

impl<'a> MariaDb<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self { server, user: "root", options: Vec::new() }
    }

    pub fn user(mut self, user: &'a str) -> Self {
        self.user = user;
        self
    }

    /// Adds an option such as `--password=x`.
    pub fn option(mut self, option: &'a str) -> Self {
        self.options.push(option);
        self
    }

    /// Runs statements in one session and prints as for a person: each statement, its result as a
    /// table, `Query OK` with the info text below. It stops at the first error.
    pub fn run(&self, statements: &str) -> Finished {
        let mut command = Command::new("mariadb");
        // --no-defaults must be first. Three times -v is what a terminal would show.
        command.args(["--no-defaults", "-v", "-v", "-v", "--host=127.0.0.1", "--protocol=tcp"]);
        command.arg(format!("--port={}", self.server.mysql_port())).arg(format!("--user={}", self.user));
        command.args(["--default-character-set=utf8mb4", "--skip-ssl"]).args(&self.options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| missing("mariadb", &error.to_string()));
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // A client that was refused reads nothing and closes the pipe.
        let _ = stdin.write_all(statements.as_bytes());
        drop(stdin);
        Finished::of("mariadb", &child.wait_with_output().expect("the client's output"))
    }

    /// The output of [`Self::run`] on success.
    pub fn shows(&self, statements: &str) -> String {
        self.run(statements).success()
    }
}

/// The info texts below each `Query OK` of an output.
pub fn infos(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.starts_with("{'label'")).collect()
}

/// The value of a key in an info text.
pub fn info_value<'a>(info: &'a str, key: &str) -> &'a str {
    let start = format!("'{key}':'");
    let Some((_, rest)) = info.split_once(&start) else { panic!("there is no {key} in {info}") };
    rest.split('\'').next().unwrap_or_default()
}

/// The times that the client prints differ; `(0.05 sec)` becomes `(TIME)`.
pub fn without_times(output: &str) -> String {
    let mut text = String::new();
    let mut rest = output;
    while let Some((before, after)) = rest.split_once('(') {
        text.push_str(before);
        match after.split_once(" sec)") {
            Some((time, behind)) if time.parse::<f64>().is_ok() => {
                text.push_str("(TIME)");
                rest = behind;
            }
            _ => {
                text.push('(');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}
