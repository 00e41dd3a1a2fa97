//! A blocking connection of root, for what happens before and after a run, and the dialogue of the
//! run itself.

use super::closed_loop::{Connection, Dialogue};
use super::packet;
use crate::data::Request;
use crate::error::BenchError;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const CAPABILITIES: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;

/// A connection.
#[derive(Debug)]
pub struct Mysql {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Mysql {
    /// Connects as root without a password.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn connect(address: SocketAddr, database: &str) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(address).map_err(|error| BenchError::connect(address, &error))?;
        stream.set_nodelay(true)?;
        let mut client = Self { stream, received: Vec::new() };
        let (sequence, greeting) = client.packet()?;
        if greeting.first() == Some(&0xff) {
            return Err(BenchError::Refused(packet::error_text(&greeting)));
        }
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend(u32::MAX.to_le_bytes());
        login.push(UTF8MB4);
        login.resize(login.len() + 23, 0);
        login.extend(b"root\0\0");
        login.extend(database.as_bytes());
        login.extend(b"\0mysql_native_password\0");
        client.stream.write_all(&packet::framed(&login, sequence.wrapping_add(1)))?;
        loop {
            let (sequence, answer) = client.packet()?;
            match answer.first() {
                Some(0) => return Ok(client),
                Some(0xfe) => client.stream.write_all(&packet::framed(&[], sequence.wrapping_add(1)))?,
                _ => return Err(BenchError::Refused(packet::error_text(&answer))),
            }
        }
    }

    fn packet(&mut self) -> Result<(u8, Vec<u8>), BenchError> {
        loop {
            if let Some((sequence, payload)) = packet::first(&self.received) {
                let packet = (sequence, payload.to_vec());
                self.received.drain(..packet.1.len() + 4);
                return Ok(packet);
            }
            let mut buffer = [0; 16 * 1024];
            let read = self.stream.read(&mut buffer)?;
            if read == 0 {
                return Err(BenchError::Refused("the server closed the connection".into()));
            }
            self.received.extend(&buffer[..read]);
        }
    }

    /// Runs a statement; its rows as texts, NULL as an empty one.
    ///
    /// # Errors
    /// The server's error.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<String>>, BenchError> {
        self.stream.write_all(&packet::query(sql.as_bytes()).0)?;
        let (_, first) = self.packet()?;
        let columns = match first.first() {
            Some(0) => return Ok(Vec::new()),
            Some(0xff) => return Err(BenchError::Statement(sql.into(), packet::error_text(&first))),
            _ => packet::length(&first).map_or(0, |(count, _)| count),
        };
        // The columns and the packet that ends them.
        for _ in 0..=columns {
            self.packet()?;
        }
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.packet()?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => return Ok(rows),
                Some(0xff) => return Err(BenchError::Statement(sql.into(), packet::error_text(&packet))),
                _ => rows.push(texts(&packet)),
            }
        }
    }

    /// Prepares a statement: its number.
    ///
    /// # Errors
    /// The server's error.
    pub fn prepare(&mut self, sql: &str) -> Result<u32, BenchError> {
        self.stream.write_all(&packet::prepare(sql))?;
        let (_, answer) = self.packet()?;
        if answer.first() != Some(&0) || answer.len() < 12 {
            return Err(BenchError::Statement(sql.into(), packet::error_text(&answer)));
        }
        let short = |at: usize| usize::from(u16::from_le_bytes([answer[at], answer[at + 1]]));
        for count in [short(7), short(5)] {
            for _ in 0..count + usize::from(count > 0) {
                self.packet()?;
            }
        }
        Ok(u32::from_le_bytes([answer[1], answer[2], answer[3], answer[4]]))
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
        Connection::new(self.stream, Dialogue::Mysql, first, requests)
    }
}

fn texts(mut row: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    while let Some((&first, rest)) = row.split_first() {
        if first == 0xfb {
            values.push(String::new());
            row = rest;
            continue;
        }
        let Some((length, rest)) = packet::length(row) else { break };
        let (value, rest) = rest.split_at(rest.len().min(length as usize));
        values.push(String::from_utf8_lossy(value).into_owned());
        row = rest;
    }
    values
}

/// Looks for a whole answer to a load: the rows that it says were loaded.
pub(super) fn answer(received: &[u8]) -> Option<Result<u64, String>> {
    let (_, payload) = packet::first(received)?;
    Some(match payload.split_first() {
        Some((0, rest)) => Ok(packet::length(rest).map_or(0, |(rows, _)| rows)),
        _ => Err(packet::error_text(payload)),
    })
}
