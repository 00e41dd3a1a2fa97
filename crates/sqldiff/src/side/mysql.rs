//! The two sides that speak MySQL's protocol.

use super::{Side, SideError};
use crate::compare::{Answered, Content, Outcome};
use crate::schema::{Dialect, Schema};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tributary_client::{Answer, Client, ClientError, ColumnKind, Rows, Value};

/// A query that takes longer counts as not answered.
const PATIENCE: Duration = Duration::from_secs(120);

/// Texts compare byte by byte and blanks at the end count, as in Doris; divisions have digits enough
/// to be compared with doubles. A fraction of a second that a type has no digits for is rounded. Nothing is cut off `GROUP_CONCAT`.
const MARIADB_SETTINGS: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, sql_mode = 'TIME_ROUND_FRACTIONAL', \
    div_precision_increment = 20, group_concat_max_len = 1000000, time_zone = '+00:00'";

/// The server under test.
#[derive(Debug)]
pub struct Ours {
    address: String,
    database: String,
    client: Option<Client<TcpStream>>,
}

/// A MariaDB behind a socket.
#[derive(Debug)]
pub struct MariaDb {
    socket: PathBuf,
    database: String,
    client: Option<Client<UnixStream>>,
}

impl Ours {
    #[must_use]
    pub fn new(address: &str, database: &str) -> Self {
        Self { address: address.to_owned(), database: database.to_owned(), client: None }
    }

    fn client(&mut self) -> Result<&mut Client, ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let mut client = Client::connect(&self.address, None, Some(PATIENCE))?;
                client.run(&format!("CREATE DATABASE IF NOT EXISTS {}", self.database))?;
                client.run(&format!("USE {}", self.database))?;
                client
            }
        };
        Ok(self.client.insert(client))
    }

    fn try_prepared(&mut self, sql: &str, values: &[Value]) -> Result<Answer, ClientError> {
        let client = self.client()?;
        let statement = client.prepare(sql)?;
        let answer = client.execute_query(statement, values);
        client.close(statement)?;
        answer
    }
}

impl MariaDb {
    #[must_use]
    pub fn new(socket: &Path, database: &str) -> Self {
        Self { socket: socket.to_owned(), database: database.to_owned(), client: None }
    }

    fn client(&mut self) -> Result<&mut Client<UnixStream>, ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let stream = UnixStream::connect(&self.socket)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                let mut client = Client::over(stream, None)?;
                client.run(MARIADB_SETTINGS)?;
                client.run(&format!("CREATE DATABASE IF NOT EXISTS {}", self.database))?;
                client.run(&format!("USE {}", self.database))?;
                client
            }
        };
        Ok(self.client.insert(client))
    }
}

/// The outcome of a failed statement; a connection that may be out of sync is dropped.
fn failed<S>(error: ClientError, client: &mut Option<Client<S>>) -> Outcome {
    match error {
        // A bug of the server that it survives; it closes the connection after it has said so.
        ClientError::Refused(error) if error.message.contains("internal error") => {
            *client = None;
            Outcome::Gone(error.message)
        }
        ClientError::Refused(error) => Outcome::Error { number: error.number, text: error.message },
        ClientError::Gone(error) => {
            *client = None;
            Outcome::Gone(error.to_string())
        }
    }
}

fn run_all<S: Read + Write>(client: &mut Client<S>, statements: &[String]) -> Result<(), String> {
    for statement in statements {
        client.query(statement).map_err(|error| format!("{error}, after {statement}"))?;
    }
    Ok(())
}

fn answered(answer: Answer) -> Outcome {
    match answer {
        Answer::Rows(Rows { kinds, rows, .. }) => {
            Outcome::Rows(Answered { contents: kinds.into_iter().map(content).collect(), rows })
        }
        Answer::Ok(_) => Outcome::Gone("no rows where some belong".to_owned()),
    }
}

/// By the numbers of MySQL's protocol.
fn content(kind: ColumnKind) -> Content {
    match kind.code {
        0..=3 | 8 | 9 | 13 | 246 => Content::Exact,
        4 => Content::Single,
        5 => Content::Double,
        7 | 10 | 11 | 12 => Content::Time,
        _ => Content::Text,
    }
}

impl Side for Ours {
    fn dialect(&self) -> Dialect {
        Dialect::Ours
    }

    fn load(&mut self, schema: &Schema) -> Result<(), SideError> {
        let statements = schema.statements(Dialect::Ours);
        let mut load = || {
            let client = self.client().map_err(|error| error.to_string());
            let loaded = client.and_then(|client| run_all(client, &statements));
            loaded.inspect_err(|_| self.client = None)
        };
        // The server may have closed a connection that was idle, or on which something went wrong.
        load().or_else(|_| load()).map_err(|what| SideError { side: "the server", what })
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        match self.client().and_then(|client| client.query(sql)) {
            Ok(answer) => answered(answer),
            Err(error) => failed(error, &mut self.client),
        }
    }

    fn ask_prepared(&mut self, sql: &str, values: &[Value]) -> Outcome {
        match self.try_prepared(sql, values) {
            Ok(answer) => answered(answer),
            Err(error) => failed(error, &mut self.client),
        }
    }
}

impl Side for MariaDb {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn load(&mut self, schema: &Schema) -> Result<(), SideError> {
        let statements = schema.statements(Dialect::MariaDb);
        let client = self.client().map_err(|error| error.to_string());
        let loaded = client.and_then(|client| run_all(client, &statements));
        loaded.map_err(|what| {
            self.client = None;
            SideError { side: "MariaDB", what }
        })
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        match self.client().and_then(|client| client.query(sql)) {
            Ok(answer) => answered(answer),
            Err(error) => failed(error, &mut self.client),
        }
    }
}
