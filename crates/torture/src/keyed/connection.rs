//! A client's connection, through one of the four ways into the server: a load with its name goes out, its answer comes back.

use super::books::{Door, Loaded};
use crate::books::Mode;
use crate::doors::{Doors, ROOT};
use crate::http;
use crate::load::{COLUMNS, DATABASE, Load};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::TcpStream;
use std::time::Duration;
use tributary_client::{Client, ClientError, OkAnswer, Statement};

/// The name of a load, by which the server knows it when it is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Key(String),
    Channel { channel: String, offset: u64, next: u64 },
}

impl Name {
    fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Key(key) => vec![("Idempotency-Key", key.clone())],
            Self::Channel { channel, offset, next } => vec![
                ("channel", channel.clone()),
                ("channel_offset", offset.to_string()),
                ("channel_next_offset", next.to_string()),
            ],
        }
    }

    /// Pairs of a name and a value in quotes.
    fn pairs(&self) -> String {
        match self {
            Self::Key(key) => format!("idempotency_key='{key}'"),
            Self::Channel { channel, offset, next } => {
                format!("channel='{channel}', channel_offset='{offset}', channel_next_offset='{next}'")
            }
        }
    }

    fn comment(&self) -> String {
        format!("/* {} */", self.pairs())
    }

    fn set(&self) -> String {
        match self {
            Self::Key(_) => format!("SET {}", self.pairs()),
            Self::Channel { channel, offset, next } => {
                format!("SET channel='{channel}', channel_offset={offset}, channel_next_offset={next}")
            }
        }
    }
}

/// A load to be sent, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending<'a> {
    pub load: Load,
    pub name: &'a Name,
    pub mode: Mode,
    /// A statement has its name in the session's variables, and not in a comment.
    pub by_variables: bool,
}

/// A complete answer to a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Loaded(Loaded),
    Refused(String),
}

/// A connection through one of the ways. After an error it is of no use any more.
#[derive(Debug)]
pub(super) enum Connection {
    Http(http::Client),
    Sql(Box<Session>),
}

/// A session of MySQL's protocol.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    /// The client's socket.
    socket: TcpStream,
    mode: Option<Mode>,
    /// Prepared INSERTs by table and rows.
    prepared: HashMap<(usize, u32), Statement>,
}

impl Connection {
    /// Connects to the port of the way's protocol.
    pub fn to(door: Door, (mysql_port, http_port): (u16, u16), patience: Duration) -> io::Result<Self> {
        if matches!(door, Door::StreamLoad | Door::HttpStream) {
            return http::Client::connect(&Doors::open(mysql_port, http_port), ROOT, patience)
                .map(Self::Http);
        }
        let stream = TcpStream::connect(("127.0.0.1", mysql_port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let socket = stream.try_clone()?;
        let client = Client::over(stream, Some(DATABASE)).map_err(gone)?;
        Ok(Self::Sql(Box::new(Session { client, socket, mode: None, prepared: HashMap::new() })))
    }

    /// The client's port, by which the proxy knows the connection.
    pub fn local_port(&self) -> io::Result<u16> {
        match self {
            Self::Http(client) => client.local_port(),
            Self::Sql(session) => Ok(session.socket.local_addr()?.port()),
        }
    }

    /// Changes how long the next answers are waited for.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Http(client) => client.set_patience(patience),
            Self::Sql(session) => session.socket.set_read_timeout(Some(patience)),
        }
    }

    /// Sends a load and waits for its answer.
    pub fn send(&mut self, door: Door, sending: &Sending<'_>) -> io::Result<Answered> {
        match self {
            Self::Http(client) if door == Door::HttpStream => http_stream(client, sending),
            Self::Http(client) => stream_load(client, sending),
            Self::Sql(session) => match session.insert(door, sending) {
                Ok(answer) => Ok(of_sql(&answer)),
                Err(ClientError::Refused(error)) => Ok(Answered::Refused(error.message)),
                Err(ClientError::Gone(error)) => Err(error),
            },
        }
    }
}

impl Session {
    fn insert(&mut self, door: Door, sending: &Sending<'_>) -> Result<OkAnswer, ClientError> {
        let Sending { load, name, mode, by_variables } = sending;
        if self.mode != Some(*mode) {
            self.client.run(&format!("SET group_commit = {}", mode.setting()))?;
            self.mode = Some(*mode);
        }
        if door == Door::Text {
            if !by_variables {
                return self.client.run(&format!("{} {}", name.comment(), load.insert()));
            }
            self.client.run(&name.set())?;
            return self.client.run(&load.insert());
        }
        let statement = match self.prepared.get(&(load.table, load.rows)) {
            Some(statement) => *statement,
            None => {
                let rows = vec!["(?, ?, ?, ?, ?, ?)"; load.rows as usize].join(", ");
                let sql = format!("INSERT INTO {} ({COLUMNS}) VALUES {rows}", load.table_name());
                let statement = self.client.prepare(&sql)?;
                self.prepared.insert((load.table, load.rows), statement);
                statement
            }
        };
        let values = crate::writers::values(load);
        self.client.run(&name.set())?;
        self.client.execute(statement, &values)
    }
}

/// A refusal that ends a connection, like one at the login, is an error of its own kind.
fn gone(error: ClientError) -> io::Error {
    match error {
        ClientError::Gone(error) => error,
        ClientError::Refused(error) => io::Error::other(error.to_string()),
    }
}

fn headers<'a>(own: &'a [(&'static str, String)], mode: Mode) -> Vec<(&'a str, &'a str)> {
    let own = own.iter().map(|(name, value)| (*name, value.as_str()));
    own.chain([("group_commit", mode.setting())]).collect()
}

fn stream_load(client: &mut http::Client, sending: &Sending<'_>) -> io::Result<Answered> {
    let own = sending.name.headers();
    let load = sending.load;
    client
        .load(load.table_name(), &headers(&own, sending.mode), &load.csv())
        .map(|answer| of_http(&answer, sending.mode))
}

fn http_stream(client: &mut http::Client, sending: &Sending<'_>) -> io::Result<Answered> {
    let load = sending.load;
    let mut own = sending.name.headers();
    let sql = format!(
        "insert into {DATABASE}.{} ({COLUMNS}) select c1, c2, c3, c4, c5, c6 from \
         http_stream('column_separator'=',', 'format'='CSV')",
        load.table_name()
    );
    own.push(("sql", sql));
    let headers = headers(&own, sending.mode);
    client.ask("PUT", "/api/_http_stream", &headers, &load.csv()).map(|answer| of_http(&answer, sending.mode))
}

fn of_http(answer: &http::Answer, mode: Mode) -> Answered {
    let status = answer.text("Status");
    if !matches!(status.as_str(), "Success" | "Publish Timeout") {
        return Answered::Refused(format!("{status}: {}", answer.text("Message")));
    }
    Answered::Loaded(Loaded {
        txn: answer.number("TxnId"),
        label: hash(&answer.text("Label")),
        rows: answer.number("NumberLoadedRows"),
        rejected: answer.number("NumberFilteredRows") + answer.number("NumberUnselectedRows"),
        is_repeated: answer.text("Repeated") == "true",
        is_visible: status == "Success" && mode != Mode::Async,
    })
}

fn of_sql(answer: &OkAnswer) -> Answered {
    Answered::Loaded(Loaded {
        txn: info(answer, "txnId").parse().unwrap_or_default(),
        label: hash(info(answer, "label")),
        rows: answer.affected_rows,
        rejected: answer.warnings.into(),
        is_repeated: info(answer, "repeated") == "true",
        is_visible: info(answer, "status") == "VISIBLE",
    })
}

/// A value of an INSERT's info text, `{'label':'…', 'status':'…', 'txnId':'…'}`; empty if it is missing.
fn info<'a>(answer: &'a OkAnswer, name: &str) -> &'a str {
    let find = || answer.info.split_once(&format!("'{name}':'"))?.1.split_once('\'');
    find().map_or("", |(value, _)| value)
}

pub(super) fn hash(text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_an_insert_is_read() {
        let text = "{'label':'l', 'status':'PREPARE', 'txnId':'12', 'repeated':'true'}";
        let answer = OkAnswer { affected_rows: 3, last_insert_id: 0, warnings: 0, info: text.to_owned() };
        let Answered::Loaded(loaded) = of_sql(&answer) else { panic!("loaded") };
        assert_eq!((loaded.txn, loaded.label, loaded.rows), (12, hash("l"), 3));
        assert!(loaded.is_repeated && !loaded.is_visible);
    }

    #[test]
    fn a_name_is_in_headers_comments_and_variables() {
        let name = Name::Channel { channel: "c 1".to_owned(), offset: 4, next: 6 };
        assert_eq!(name.comment(), "/* channel='c 1', channel_offset='4', channel_next_offset='6' */");
        assert_eq!(name.set(), "SET channel='c 1', channel_offset=4, channel_next_offset=6");
        assert_eq!(name.headers().len(), 3);
        assert_eq!(Name::Key("k".to_owned()).set(), "SET idempotency_key='k'");
    }
}
