//! The MySQL client for tests: an unexpected answer panics with its text.

use super::PATIENCE;
use std::io;
use std::net::TcpStream;
use std::ops::Deref;
use tributary_client::{Answer, ClientError, Rows};

pub use tributary_client::ServerError;

/// A connection of root, or of another user without a password.
pub struct Client(tributary_client::Client);

/// The answer of a statement that returns no rows.
#[derive(Clone, Debug)]
pub struct OkAnswer(tributary_client::OkAnswer);

impl Deref for OkAnswer {
    type Target = tributary_client::OkAnswer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl OkAnswer {
    /// A value of the info text, which is written like `{'label':'…', 'status':'…', 'txnId':'…'}`.
    pub fn info_value(&self, key: &str) -> &str {
        let start = format!("'{key}':'");
        let Some((_, rest)) = self.info.split_once(&start) else {
            panic!("there is no {key} in the info text {:?}", self.info);
        };
        rest.split('\'').next().unwrap_or_default()
    }

    /// The label of the info text.
    pub fn label(&self) -> &str {
        self.info_value("label")
    }
}

impl Client {
    /// Connects as root.
    pub fn connect(port: u16, database: Option<&str>) -> Self {
        Self::try_connect(port, database).unwrap_or_else(|error| panic!("connecting failed: {error}"))
    }

    /// Connects as root, or says why the server does not want it.
    pub fn try_connect(port: u16, database: Option<&str>) -> Result<Self, ServerError> {
        let address = ("127.0.0.1", port);
        answered(tributary_client::Client::connect(address, database, Some(PATIENCE))).map(Self)
    }

    /// Connects as a user without a password, or returns why the server refuses it.
    pub fn connect_as(user: &str, port: u16) -> Result<Self, ServerError> {
        let address = ("127.0.0.1", port);
        answered(tributary_client::Client::connect_as(user, address, None, Some(PATIENCE))).map(Self)
    }

    /// Runs a statement that has no rows.
    pub fn ok(&mut self, sql: &str) -> OkAnswer {
        match self.query(sql) {
            Ok(Answer::Ok(answer)) => OkAnswer(answer),
            Ok(Answer::Rows(rows)) => panic!("{sql}\nanswered rows: {rows:?}"),
            Err(error) => panic!("{sql}\n{error}"),
        }
    }

    /// Runs a statement, whatever it answers.
    pub fn try_query(&mut self, sql: &str) -> Result<(), ServerError> {
        self.query(sql).map(drop)
    }

    /// The rows of a statement, as [`Client::rows`] has them, or why it is refused.
    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<String>, ServerError> {
        self.query(sql).map(|answer| match answer {
            Answer::Rows(rows) => joined(&rows),
            Answer::Ok(_) => Vec::new(),
        })
    }

    /// Runs a statement that fails.
    pub fn error(&mut self, sql: &str) -> ServerError {
        match self.query(sql) {
            Err(error) => error,
            Ok(answer) => panic!("{sql}\nwas expected to fail and answered {answer:?}"),
        }
    }

    /// Runs a statement that is refused with this number and a text that has this one.
    pub fn refused(&mut self, sql: &str, number: u16, text: &str) {
        let error = self.error(sql);
        assert_eq!(error.number, number, "{sql}: {error}");
        assert!(error.message.contains(text), "{sql}: {error}");
    }

    /// Runs a statement with rows.
    pub fn table(&mut self, sql: &str) -> Rows {
        match self.query(sql) {
            Ok(Answer::Rows(rows)) => rows,
            Ok(Answer::Ok(answer)) => panic!("{sql}\nanswered no rows but {answer:?}"),
            Err(error) => panic!("{sql}\n{error}"),
        }
    }

    /// The rows of a statement, each as its values separated by `|`, NULL as `NULL`.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        joined(&self.table(sql))
    }

    /// The only value of the only row.
    pub fn value(&mut self, sql: &str) -> String {
        let mut rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}");
        rows.remove(0)
    }

    /// Runs a statement that returns no rows while the server may end at any moment; `None` if no answer arrived.
    pub fn try_send(&mut self, sql: &str) -> Option<OkAnswer> {
        self.0.run(sql).ok().map(OkAnswer)
    }

    /// Sends a statement and does not wait for its answer.
    pub fn send(&mut self, sql: &str) {
        self.0.send(sql).expect("the server reads");
    }

    /// Reads the answer of a statement that has no rows.
    pub fn answered_ok(&mut self) {
        match answered(self.0.answer()) {
            Ok(Answer::Ok(_)) => {}
            Ok(Answer::Rows(rows)) => panic!("the answer has rows: {rows:?}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads the rows of a statement that was sent; values are separated by `|`.
    pub fn answered_rows(&mut self) -> Vec<String> {
        match answered(self.0.answer()) {
            Ok(Answer::Rows(rows)) => joined(&rows),
            Ok(Answer::Ok(ok)) => panic!("the answer has no rows: {ok:?}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads the answer of a statement that fails.
    pub fn answered_error(&mut self) -> ServerError {
        match answered(self.0.answer()) {
            Err(error) => error,
            Ok(answer) => panic!("an error was expected and {answer:?} came"),
        }
    }

    /// Runs a statement of any bytes. `Ok` is whatever the server answered, an error of its too.
    pub fn try_bytes(&mut self, statement: &[u8]) -> io::Result<Result<(), ServerError>> {
        match self.0.query(statement) {
            Ok(_) => Ok(Ok(())),
            Err(ClientError::Refused(error)) => Ok(Err(error)),
            Err(ClientError::Gone(error)) => Err(error),
        }
    }

    /// The socket of a connection that is logged in.
    pub fn into_stream(self) -> TcpStream {
        self.0.into_stream()
    }

    fn query(&mut self, sql: &str) -> Result<Answer, ServerError> {
        answered(self.0.query(sql))
    }
}

/// Each row as its values separated by `|`.
fn joined(rows: &Rows) -> Vec<String> {
    let text = |row: &Vec<Option<String>>| {
        row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
    };
    rows.rows.iter().map(text).collect()
}

/// The outcome of a statement, if an answer arrived.
fn answered<T>(outcome: Result<T, ClientError>) -> Result<T, ServerError> {
    match outcome {
        Ok(answer) => Ok(answer),
        Err(ClientError::Refused(error)) => Err(error),
        Err(ClientError::Gone(error)) => panic!("no answer came: {error}"),
    }
}
