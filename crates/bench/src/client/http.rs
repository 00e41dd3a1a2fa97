//! Stream Load: the request's head, and its JSON answer.

use super::closed_loop::{Connection, Reply};
use crate::data::Request;
use crate::data::access_log::Format;
use crate::error::BenchError;
use memchr::memmem;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use tributary_client::{Stream, Trust};

/// The header that says how rows of access logs are written.
#[must_use]
pub fn format_header(format: Format) -> &'static str {
    match format {
        Format::Csv => "column_separator: ,",
        Format::Json => "format: json",
        Format::Parquet => "format: parquet",
    }
}

/// The head of a Stream Load of root into a table of `bench`, whose rows are written as this header says.
#[must_use]
pub fn stream_load_head(table: &str, format: &str, mode: &str, length: usize) -> String {
    format!(
        "PUT /api/bench/{table}/_stream_load HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Basic cm9vdDo=\r\ngroup_commit: {mode}\r\n{format}\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

/// A connection for the measured loop, over TLS if there are certificates to trust.
///
/// # Errors
/// The server cannot be reached.
pub fn connect(
    address: SocketAddr,
    trust: Option<&Trust>,
    requests: Vec<Request>,
) -> Result<Connection, BenchError> {
    let stream = Stream::socket_to(address, None).map_err(|error| BenchError::connect(address, &error))?;
    Connection::new(Stream::with(stream, trust)?, reply, None, requests)
}

/// The body of an answer to `GET path`.
///
/// # Errors
/// The server cannot be reached or answers with another status than 200.
pub fn get(address: SocketAddr, path: &str) -> Result<String, BenchError> {
    let mut stream = TcpStream::connect(address).map_err(|error| BenchError::connect(address, &error))?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(BenchError::Refused(format!("GET {path}: {answer}"))),
    }
}

/// Looks for a whole answer to a Stream Load.
#[must_use]
pub fn reply(received: &[u8]) -> Option<Reply> {
    let head_end = memmem::find(received, b"\r\n\r\n")?;
    let (head, body) = (&received[..head_end], &received[head_end + 4..]);
    let length = head
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split_at_checked(15))
        .find(|(name, _)| name.eq_ignore_ascii_case(b"content-length:"))
        .and_then(|(_, value)| std::str::from_utf8(value).ok()?.trim().parse().ok())
        .unwrap_or(0);
    let body = body.get(..length)?;
    let is_success = memmem::find(body, b"\"Status\": \"Success\"").is_some();
    Some(match is_success {
        true => Reply::Loaded(number(body, b"\"NumberLoadedRows\": ")),
        false => Reply::Refused(text(received)),
    })
}

fn number(body: &[u8], key: &[u8]) -> u64 {
    let digits = memmem::find(body, key).map_or(&[][..], |at| &body[at + key.len()..]);
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0'))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_when_it_is_whole() {
        let body = "{\n    \"Status\": \"Success\",\n    \"NumberLoadedRows\": 15,\n}";
        let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        assert_eq!(reply(whole.as_bytes()), Some(Reply::Loaded(15)));
        assert!((0..whole.len()).all(|end| reply(&whole.as_bytes()[..end]).is_none()));
        let failed = whole.replace("Success", "Fail   ");
        assert!(matches!(reply(failed.as_bytes()), Some(Reply::Refused(_))));
    }
}
