//! As much of a MySQL client as torture needs: text and prepared statements, blocking.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const CLIENT_LONG_PASSWORD: u32 = 1;
const CLIENT_CONNECT_WITH_DB: u32 = 1 << 3;
const CLIENT_PROTOCOL_41: u32 = 1 << 9;
const CLIENT_TRANSACTIONS: u32 = 1 << 13;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;
const UTF8MB4: u8 = 45;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONGLONG: u8 = 8;
const TYPE_STRING: u8 = 0xfe;
/// The longest payload of one packet; longer ones are split.
const CHUNK_BYTES: usize = 0xff_ffff;

/// Why a statement has no success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server answered with an error.
    Refused { number: u16, message: String },
    /// No whole answer came: what became of the statement is unknown.
    Gone(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// The values of a row as texts; NULL is `None`.
pub(crate) type Row = Vec<Option<String>>;

/// One connection, as root.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    id: u32,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(u64),
    Text(String),
}

impl Client {
    /// Connects and logs in without a password.
    pub fn connect(port: u16, database: Option<&str>, patience: Duration) -> Result<Self, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let mut client = Self { stream };
        let (mut sequence, mut packet) = client.read()?;
        refusal(&packet)?;
        client.write(sequence.wrapping_add(1), &login(database))?;
        loop {
            (sequence, packet) = client.read()?;
            match packet.first() {
                Some(0) => return Ok(client),
                // Another way to prove the password: an empty one is proved by nothing.
                Some(0xfe) => client.write(sequence.wrapping_add(1), &[])?,
                _ => {
                    refusal(&packet)?;
                    return Err(broken("an unknown answer to the login"));
                }
            }
        }
    }

    /// Runs a statement without rows.
    pub fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.command(COM_QUERY, sql.as_bytes())?;
        self.end_of_statement()
    }

    /// Runs a statement with rows.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.command(COM_QUERY, sql.as_bytes())?;
        let (_, first) = self.read()?;
        refusal(&first)?;
        let columns = Fields(&first).number().ok_or_else(|| broken("no count of columns"))?;
        for _ in 0..columns {
            self.read()?;
        }
        self.read()?;
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.read()?;
            if packet.len() < 9 && packet.first() == Some(&0xfe) {
                return Ok(rows);
            }
            refusal(&packet)?;
            let mut fields = Fields(&packet);
            rows.push((0..columns).map(|_| fields.text()).collect());
        }
    }

    /// Prepares a statement that has parameters and no rows.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, Failure> {
        self.command(COM_STMT_PREPARE, sql.as_bytes())?;
        let (_, head) = self.read()?;
        refusal(&head)?;
        let bytes: [u8; 4] =
            head.get(1..5).and_then(|id| id.try_into().ok()).ok_or_else(|| broken("no statement id"))?;
        let count = |at: usize| head.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        for definitions in [count(7), count(5)] {
            if definitions > 0 {
                for _ in 0..=definitions {
                    self.read()?;
                }
            }
        }
        Ok(Prepared { id: u32::from_le_bytes(bytes) })
    }

    /// Runs a prepared statement.
    pub fn execute(&mut self, statement: Prepared, values: &[Value]) -> Result<(), Failure> {
        let mut body = statement.id.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 1, 0, 0, 0]);
        body.resize(body.len() + values.len().div_ceil(8), 0);
        body.push(1);
        for value in values {
            body.extend_from_slice(match value {
                Value::Int(_) => &[TYPE_LONGLONG, 0],
                Value::Text(_) => &[TYPE_STRING, 0],
            });
        }
        for value in values {
            match value {
                Value::Int(number) => body.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) => {
                    put_number(&mut body, text.len());
                    body.extend_from_slice(text.as_bytes());
                }
            }
        }
        self.command(COM_STMT_EXECUTE, &body)?;
        self.end_of_statement()
    }

    fn end_of_statement(&mut self) -> Result<(), Failure> {
        let (_, packet) = self.read()?;
        refusal(&packet)?;
        match packet.first() {
            Some(0) => Ok(()),
            _ => Err(broken("an answer with rows where none belong")),
        }
    }

    fn command(&mut self, command: u8, body: &[u8]) -> io::Result<()> {
        let mut payload = Vec::with_capacity(body.len() + 1);
        payload.push(command);
        payload.extend_from_slice(body);
        self.write(0, &payload)
    }

    fn write(&mut self, mut sequence: u8, payload: &[u8]) -> io::Result<()> {
        let mut packets = Vec::with_capacity(payload.len() + 8);
        let mut rest = payload;
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(CHUNK_BYTES));
            packets.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
            packets.push(sequence);
            packets.extend_from_slice(chunk);
            if chunk.len() < CHUNK_BYTES {
                return self.stream.write_all(&packets);
            }
            sequence = sequence.wrapping_add(1);
            rest = after;
        }
    }

    fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut whole = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let start = whole.len();
            whole.resize(start + length, 0);
            self.stream.read_exact(&mut whole[start..])?;
            if length < CHUNK_BYTES {
                return Ok((header[3], whole));
            }
        }
    }
}

fn login(database: Option<&str>) -> Vec<u8> {
    let mut capabilities = CLIENT_LONG_PASSWORD
        | CLIENT_PROTOCOL_41
        | CLIENT_TRANSACTIONS
        | CLIENT_SECURE_CONNECTION
        | CLIENT_PLUGIN_AUTH;
    if database.is_some() {
        capabilities |= CLIENT_CONNECT_WITH_DB;
    }
    let mut packet = capabilities.to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    packet.push(UTF8MB4);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(b"root\0");
    packet.push(0);
    if let Some(database) = database {
        packet.extend_from_slice(database.as_bytes());
        packet.push(0);
    }
    packet.extend_from_slice(b"mysql_native_password\0");
    packet
}

/// An error packet as a failure.
fn refusal(packet: &[u8]) -> Result<(), Failure> {
    let Some((&0xff, rest)) = packet.split_first() else { return Ok(()) };
    let number = rest.get(..2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
    let text = String::from_utf8_lossy(rest.get(2..).unwrap_or_default()).into_owned();
    let message = text.strip_prefix('#').and_then(|text| text.get(5..)).unwrap_or(&text).to_owned();
    Err(Failure::Refused { number, message })
}

fn broken(what: &str) -> Failure {
    Failure::Gone(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()))
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    match number {
        0..0xfb => out.push(number as u8),
        0xfb..0x1_0000 => {
            out.push(0xfc);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&(number as u64).to_le_bytes());
        }
    }
}

/// What is left of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number in MySQL's variable length; `None` is NULL or the packet's end.
    fn number(&mut self) -> Option<usize> {
        let width = match self.take(1)?[0] {
            0xfb => return None,
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Some(small.into()),
        };
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.take(width)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        self.take(length).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}
