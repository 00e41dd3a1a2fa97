//! A connection of root, for statements before and after a run, and the answers of the run itself.

use super::closed_loop::{Connection, Reply};
use crate::data::Request;
use crate::error::BenchError;
use std::net::SocketAddr;
use tributary_client::{Answer, Client, ClientError, Statement, Stream, Trust, affected_rows, packet};

/// A connection.
#[derive(Debug)]
pub struct Mysql(Client<Stream>);

impl Mysql {
    /// Connects as root without a password, over TLS if there are certificates to trust.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn connect(address: SocketAddr, trust: Option<&Trust>, database: &str) -> Result<Self, BenchError> {
        match Client::connect_trusting(trust, ("root", ""), address, Some(database), None) {
            Ok(client) => Ok(Self(client)),
            Err(ClientError::Refused(error)) => Err(BenchError::Refused(error.to_string())),
            Err(ClientError::Gone(error)) => Err(BenchError::connect(address, &error)),
        }
    }

    /// Runs a statement; its rows as texts, NULL as an empty one.
    ///
    /// # Errors
    /// The server's error.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<String>>, BenchError> {
        let rows = match self.0.query(sql).map_err(|error| failed(sql, error))? {
            Answer::Ok(_) => Vec::new(),
            Answer::Rows(rows) => rows.rows,
        };
        Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The server's error.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, BenchError> {
        self.0.prepare(sql).map_err(|error| failed(sql, error))
    }

    /// Hands the connection over to the measured loop, which sends the first request once and then
    /// the others in turn.
    ///
    /// # Errors
    /// The socket's.
    pub fn into_connection(
        self,
        first: Option<Request>,
        requests: Vec<Request>,
    ) -> Result<Connection, BenchError> {
        Connection::new(self.0.into_stream(), reply, first, requests)
    }
}

fn failed(sql: &str, error: ClientError) -> BenchError {
    match error {
        ClientError::Refused(error) => BenchError::Statement(sql.to_owned(), error.to_string()),
        ClientError::Gone(error) => error.into(),
    }
}

/// Looks for a whole answer to a load.
#[must_use]
pub fn reply(received: &[u8]) -> Option<Reply> {
    let (_, payload) = packet::first(received)?;
    Some(affected_rows(payload).map_or_else(|error| Reply::Refused(error.to_string()), Reply::Loaded))
}
