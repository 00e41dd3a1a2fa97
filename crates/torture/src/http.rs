//! As much of an HTTP client as torture needs: one request after another over one connection.

use crate::doors::{Doors, Login, to_http};
use crate::load::DATABASE;
use base64::Engine;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;
use tributary_client::Stream;

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// One connection of a user. After an error it is of no use any more.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<Stream>,
    is_over: bool,
    doors: Doors,
    login: Login,
    patience: Duration,
}

/// The JSON of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer(Value);

impl Answer {
    /// A value as text; empty if it is missing.
    pub fn text(&self, key: &str) -> String {
        match self.0.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// A value as a number; 0 if it is missing or none.
    pub fn number(&self, key: &str) -> u64 {
        self.0.get(key).and_then(Value::as_u64).unwrap_or_default()
    }

    /// The document within the answer.
    pub fn data(&self) -> Self {
        Self(self.0.get("data").cloned().unwrap_or_default())
    }
}

impl Client {
    /// Connects as a kind of client.
    pub fn connect(doors: &Doors, user: &str, patience: Duration) -> io::Result<Self> {
        Self::connect_as(doors, doors.login(user), patience)
    }

    /// The same with any user and password.
    pub fn connect_as(doors: &Doors, login: Login, patience: Duration) -> io::Result<Self> {
        let stream = BufReader::new(to_http(doors, patience)?);
        Ok(Self { stream, is_over: false, doors: doors.clone(), login, patience })
    }

    /// The client's port, by which the other end knows the connection.
    pub fn local_port(&self) -> io::Result<u16> {
        Ok(self.stream.get_ref().socket().local_addr()?.port())
    }

    /// Changes how long the next answers are waited for.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.patience = patience;
        self.stream.get_ref().socket().set_read_timeout(Some(patience))
    }

    /// A Stream Load of lines with `,` between the columns.
    pub fn load(&mut self, table: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
        self.load_with(table, &[&[("columns", crate::load::COLUMNS)], headers].concat(), body)
    }

    /// The same with other columns.
    pub fn load_with(&mut self, table: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
        let path = format!("/api/{DATABASE}/{table}/_stream_load");
        self.ask("PUT", &path, &[&[("column_separator", ",")], headers].concat(), body)
    }

    /// The second phase of the load with that label: `commit` or `abort`.
    pub fn second_phase(&mut self, label: &str, operation: &str) -> io::Result<Answer> {
        let path = format!("/api/{DATABASE}/_stream_load_2pc");
        self.ask("PUT", &path, &[("label", label), ("txn_operation", operation)], "")
    }

    /// The state of a label: `UNKNOWN`, `PREPARE`, `PRECOMMITTED`, `VISIBLE` or `ABORTED`.
    pub fn label_state(&mut self, label: &str) -> io::Result<String> {
        let path = format!("/api/{DATABASE}/get_load_state?label={label}");
        Ok(self.ask("GET", &path, &[], "")?.text("data"))
    }

    /// Sends a request and reads its answer.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        if self.is_over {
            *self = Self::connect_as(&self.doors, self.login.clone(), self.patience)?;
        }
        let credentials =
            base64::prelude::BASE64_STANDARD.encode(format!("{}:{}", self.login.user, self.login.password));
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {credentials}\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "content-length" => length = value.trim().parse::<u64>().ok(),
                "connection" => self.is_over = value.trim() == "close",
                _ => {}
            }
        }
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let length = length.filter(|&length| length <= ANSWER_BYTES_MAX);
        let length = length.ok_or_else(|| invalid(format!("{status}: an answer without a length")))?;
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body)?;
        let text = String::from_utf8_lossy(&body);
        serde_json::from_str(&text).map(Answer).map_err(|error| invalid(format!("{status}: {error}: {text}")))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
