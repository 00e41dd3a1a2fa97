//! Connections to the server under torture, by MySQL's protocol.
//!
//! `tributary-client` logs in as root without a password and without TLS. So the login is done here, and the client gets a stream
//! that is logged in and answers its own login.

use crate::doors::{Doors, Login};
use crate::stream::Stream;
use crate::writers::PATIENCE;
use sha1::{Digest, Sha1};
use std::io::{self, Read, Write};
use tributary_client::{ClientError, affected_rows, packet};

/// `LONG_PASSWORD`, `PROTOCOL_41`, `TRANSACTIONS`, `SECURE_CONNECTION`, `PLUGIN_AUTH`.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const CONNECT_WITH_DB: u32 = 0x8;
const TLS: u32 = 0x800;
const PAYLOAD_BYTES_MAX: u32 = 1 << 30;
const UTF8MB4: u8 = 45;
const PLUGIN: &[u8] = b"mysql_native_password\0";
/// The payload of an OK packet.
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A connection that is logged in.
pub(crate) type Client = tributary_client::Client<LoggedIn>;

/// Connects as a kind of client. An answer that does not arrive in time counts as a broken connection.
pub(crate) fn connect(doors: &Doors, user: &str, database: Option<&str>) -> Result<Client, ClientError> {
    connect_as(doors, &doors.login(user), database)
}

/// The same with any user and password.
pub(crate) fn connect_as(
    doors: &Doors,
    login: &Login,
    database: Option<&str>,
) -> Result<Client, ClientError> {
    let mut socket = Stream::connect(doors.mysql_port, PATIENCE)?;
    let (mut sequence, greeting) = packet::read(&mut socket)?;
    if greeting.first() == Some(&0xff) {
        affected_rows(&greeting)?;
    }
    let nonce = nonce(&greeting).ok_or_else(|| broken("a greeting of another form"))?;
    let mut capabilities = CAPABILITIES | if database.is_some() { CONNECT_WITH_DB } else { 0 };
    if doors.tls.is_some() {
        capabilities |= TLS;
        sequence += 1;
        socket.write_all(&packet::framed(&head(capabilities), sequence))?;
    }
    let mut stream = Stream::with(socket, doors.tls.as_ref())?;
    let mut payload = head(capabilities);
    payload.extend(login.user.as_bytes());
    payload.push(0);
    let proof = proof(&login.password, &nonce);
    payload.push(proof.len() as u8);
    payload.extend(proof);
    if let Some(database) = database {
        payload.extend(database.as_bytes());
        payload.push(0);
    }
    payload.extend(PLUGIN);
    stream.write_all(&packet::framed(&payload, sequence + 1))?;
    let (_, answer) = packet::read(&mut stream)?;
    affected_rows(&answer)?;
    let greeting = packet::framed(b"\x0a", 0);
    Client::over(LoggedIn { stream, pretended: greeting, is_asked: false }, None)
}

/// The beginning of a client's answer to the greeting, and a request for TLS.
fn head(capabilities: u32) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend(PAYLOAD_BYTES_MAX.to_le_bytes());
    payload.push(UTF8MB4);
    payload.extend([0; 23]);
    payload
}

/// The bytes of a greeting that a password is proved for.
fn nonce(greeting: &[u8]) -> Option<[u8; 20]> {
    let version = greeting.iter().skip(1).position(|byte| *byte == 0)? + 2;
    let rest = greeting.get(version + 4..)?;
    // Between them are capabilities, a collation, a state and ten bytes that are reserved.
    let (first, second) = (rest.get(..8)?, rest.get(8 + 19..8 + 19 + 12)?);
    [first, second].concat().try_into().ok()
}

/// The answer of `mysql_native_password`; an empty password is proved by nothing.
fn proof(password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// A stream whose login is done. The client's own login gets an answer without leaving the process.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    stream: Stream,
    /// Bytes that the client reads before those of the server.
    pretended: Vec<u8>,
    /// The client has sent its login.
    is_asked: bool,
}

impl Read for LoggedIn {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.pretended.is_empty() {
            return self.stream.read(buffer);
        }
        let bytes = buffer.len().min(self.pretended.len());
        buffer[..bytes].copy_from_slice(&self.pretended[..bytes]);
        self.pretended.drain(..bytes);
        Ok(bytes)
    }
}

impl Write for LoggedIn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_asked {
            return self.stream.write(bytes);
        }
        self.is_asked = true;
        self.pretended.extend(packet::framed(OK, 2));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_has_twenty_bytes_to_prove_a_password_for() {
        let mut greeting = b"\x0a5.7.99\0\x01\x02\x03\x04abcdefgh\0".to_vec();
        greeting.extend([0; 18]);
        greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
        assert_eq!(nonce(&greeting).as_ref(), Some(b"abcdefghijklmnopqrst"));
        assert_eq!(nonce(b"\x0a5.7"), None);
    }

    #[test]
    fn an_empty_password_is_proved_by_nothing() {
        let nonce = [7; 20];
        assert_eq!(proof("", &nonce), b"");
        assert_eq!(proof("secret", &nonce).len(), 20);
        assert_ne!(proof("secret", &nonce), proof("Secret", &nonce));
    }
}
