//! As much of PostgreSQL's protocol, version 3, as the loads need: a login without a password, statements as
//! text, and the messages of a prepared statement and of COPY.

use crate::Outcome;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tributary_bench::closed_loop::Reply;

const VERSION: i32 = 196_608;
/// Authentication is over.
const TRUSTED: [u8; 4] = [0; 4];

/// A connection of the user `postgres` to the database `postgres`.
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// Until then, an error is the last message.
    is_logged_in: bool,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut connection = Self { stream: BufReader::new(stream), is_logged_in: false };
        let login = [&VERSION.to_be_bytes(), &b"user\0postgres\0database\0postgres\0\0"[..]].concat();
        connection.send(&sized(&login))?;
        connection.rows()?;
        connection.is_logged_in = true;
        Ok(connection)
    }

    /// Runs statements; the first column of the rows of the last one that has some.
    pub fn query(&mut self, sql: &str) -> Outcome<Vec<String>> {
        self.send(&query(sql))?;
        self.rows()
    }

    /// Prepares a statement under the name that [`execution`] uses.
    pub fn prepare(&mut self, sql: &str) -> Outcome<()> {
        let parse = [NAME, sql.as_bytes(), b"\0\0\0"].concat();
        self.send(&[message(b'P', &parse), message(b'S', b"")].concat())?;
        self.rows().map(drop)
    }

    /// The socket, which has no answers left to read.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    fn message(&mut self) -> Outcome<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }

    /// Reads until the server is ready for the next statement.
    fn rows(&mut self) -> Outcome<Vec<String>> {
        let (mut rows, mut refusal) = (Vec::new(), None);
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return refusal.map_or(Ok(rows), Err),
                b'E' if self.is_logged_in => refusal = Some(refusal_text(&body).into()),
                b'E' => return Err(refusal_text(&body).into()),
                b'R' if body[..] != TRUSTED => return Err("the server wants a password".into()),
                b'D' => rows.push(first_column(&body).ok_or("a row without a value")?),
                _ => (),
            }
        }
    }
}

/// The name of the one prepared statement of a connection, with its end.
const NAME: &[u8] = b"load\0";

/// A text of statements.
pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

/// One execution of the prepared statement with values in their binary forms.
pub fn execution(values: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(values.len()).expect("a load has at most 65,535 parameters");
    // The unnamed portal; one format code, binary, for all parameters.
    let mut bind = [b"\0", NAME, &[0, 1, 0, 1], &count.to_be_bytes()].concat();
    for value in values {
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend(value);
    }
    // No format codes for results, as there are none.
    bind.extend([0, 0]);
    [message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', b"")].concat()
}

/// COPY with all its data. The server reads the data when it has begun the statement.
pub fn copy(sql: &str, data: &[u8]) -> Vec<u8> {
    [query(sql), message(b'd', data), message(b'c', b"")].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &sized(body)[..]].concat()
}

fn sized(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// Looks for a whole answer to a load: everything up to the server's being ready again.
pub fn reply(received: &[u8]) -> Option<Reply> {
    let (mut rest, mut found) = (received, None);
    loop {
        let (&[kind, length @ ..], behind) = rest.split_first_chunk::<5>()?;
        let (body, next) =
            behind.split_at_checked((u32::from_be_bytes(length) as usize).saturating_sub(4))?;
        match kind {
            b'Z' => return Some(found.unwrap_or_else(|| Reply::Refused("an answer without an end".into()))),
            b'E' => found = Some(Reply::Refused(refusal_text(body))),
            b'C' if found.is_none() => found = Some(Reply::Loaded(loaded(body))),
            _ => (),
        }
        rest = next;
    }
}

/// The number at the end of `INSERT 0 100` or `COPY 100`.
fn loaded(tag: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(tag);
    text.trim_end_matches('\0').rsplit(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// The severity, SQLSTATE and message of an error.
fn refusal_text(body: &[u8]) -> String {
    let fields =
        body.split(|&byte| byte == 0).filter(|field| matches!(field.first(), Some(b'S' | b'C' | b'M')));
    fields.map(|field| String::from_utf8_lossy(&field[1..])).collect::<Vec<_>>().join(" ")
}

fn first_column(row: &[u8]) -> Option<String> {
    let (length, rest) = row.get(2..)?.split_first_chunk::<4>()?;
    let value = rest.get(..u32::from_be_bytes(*length) as usize)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &[u8] = b"Z\0\0\0\x05I";

    #[test]
    fn a_reply_counts_when_the_server_is_ready_again() {
        let whole = [&message(b'2', b"")[..], &message(b'C', b"INSERT 0 100\0"), READY].concat();
        assert_eq!(reply(&whole), Some(Reply::Loaded(100)));
        assert!((0..whole.len()).all(|end| reply(&whole[..end]).is_none()));
        let copied = [&message(b'G', b"\0\0\0")[..], &message(b'C', b"COPY 7\0"), READY].concat();
        assert_eq!(reply(&copied), Some(Reply::Loaded(7)));
        let refused = [&message(b'E', b"SERROR\0VERROR\0C22001\0Mtoo long\0\0")[..], READY].concat();
        assert_eq!(reply(&refused), Some(Reply::Refused("ERROR 22001 too long".to_owned())));
    }

    #[test]
    fn an_execution_binds_values_with_their_lengths() {
        let expected =
            b"B\0\0\0\x1b\0load\0\0\x01\0\x01\0\x02\0\0\0\x01a\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(execution(&[b"a".to_vec(), Vec::new()]), expected);
    }
}
