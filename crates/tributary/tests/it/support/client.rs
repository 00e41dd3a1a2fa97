//! A small MySQL client: text protocol, no password. It shows what drivers hide (the info text, the
//! number and state of an error) and needs no dependency.

use super::PATIENCE;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;

const CLIENT_LONG_PASSWORD: u32 = 0x1;
const CLIENT_CONNECT_WITH_DB: u32 = 0x8;
const CLIENT_PROTOCOL_41: u32 = 0x200;
const CLIENT_TRANSACTIONS: u32 = 0x2000;
const CLIENT_SECURE_CONNECTION: u32 = 0x8000;
const CLIENT_PLUGIN_AUTH: u32 = 0x8_0000;
const COM_QUERY: u8 = 3;
const UTF8MB4: u8 = 45;

/// A connection of root.
pub struct Client {
    stream: TcpStream,
}

/// What a statement without rows answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OkAnswer {
    pub affected_rows: u64,
    pub warnings: u16,
    pub info: String,
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

/// What a statement with rows answers. NULL is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// What a statement that fails answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub number: u16,
    pub state: String,
    pub message: String,
}

/// As the command line clients print it.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.number, self.state, self.message)
    }
}

#[derive(Clone, Debug)]
enum Answer {
    Ok(OkAnswer),
    Rows(Rows),
}

impl Client {
    /// Connects as root.
    pub fn connect(port: u16, database: Option<&str>) -> Self {
        Self::try_connect(port, database).unwrap_or_else(|error| panic!("connecting failed: {error}"))
    }

    /// Connects as root, or says why the server does not want it.
    pub fn try_connect(port: u16, database: Option<&str>) -> Result<Self, ServerError> {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is legal");
        stream.set_nodelay(true).expect("a TCP stream has the option");
        let mut client = Self { stream };
        let (sequence, greeting) = client.read_packet();
        if greeting.first() == Some(&0xff) {
            return Err(server_error(&greeting));
        }
        client.write_packet(sequence.wrapping_add(1), &login(database));
        client.finish_login()?;
        Ok(client)
    }

    fn finish_login(&mut self) -> Result<(), ServerError> {
        loop {
            let (sequence, packet) = self.read_packet();
            match packet.first() {
                Some(0) => return Ok(()),
                Some(0xff) => return Err(server_error(&packet)),
                // Another plugin is asked for: the answer to an empty password is empty in all of them.
                Some(0xfe) => self.write_packet(sequence.wrapping_add(1), &[]),
                _ => panic!("an unknown answer to the login: {packet:?}"),
            }
        }
    }

    /// Runs a statement that has no rows.
    pub fn ok(&mut self, sql: &str) -> OkAnswer {
        match self.query(sql) {
            Ok(Answer::Ok(answer)) => answer,
            Ok(Answer::Rows(rows)) => panic!("{sql}\nanswered rows: {rows:?}"),
            Err(error) => panic!("{sql}\n{error}"),
        }
    }

    /// Runs a statement that fails.
    pub fn error(&mut self, sql: &str) -> ServerError {
        match self.query(sql) {
            Err(error) => error,
            Ok(answer) => panic!("{sql}\nwas expected to fail and answered {answer:?}"),
        }
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
        let rows = self.table(sql).rows;
        rows.iter()
            .map(|row| {
                row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
            })
            .collect()
    }

    /// The only value of the only row.
    pub fn value(&mut self, sql: &str) -> String {
        let mut rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}");
        rows.remove(0)
    }

    /// Runs a statement without rows while the server may end at any moment; `None` if no answer came.
    pub fn try_send(&mut self, sql: &str) -> Option<OkAnswer> {
        self.write_command(sql).ok()?;
        let (_, packet) = self.try_read_packet().ok()?;
        match packet.first() {
            Some(0) => Some(ok_answer(&packet)),
            _ => None,
        }
    }

    /// Sends a statement and does not wait for its answer.
    pub fn send(&mut self, sql: &str) {
        self.write_command(sql).expect("the server reads");
    }

    /// Reads the answer of a statement that has no rows.
    pub fn answered_ok(&mut self) {
        let (_, packet) = self.read_packet();
        if packet.first() == Some(&0xff) {
            panic!("{}", server_error(&packet));
        }
    }

    /// Runs a statement of any bytes. `Ok` is whatever the server answered, an error of its too.
    pub fn try_bytes(&mut self, statement: &[u8]) -> io::Result<Result<(), ServerError>> {
        let mut command = vec![COM_QUERY];
        command.extend_from_slice(statement);
        self.try_write_packet(0, &command)?;
        let (_, first) = self.try_read_packet()?;
        Ok(match first.first() {
            Some(0) => Ok(()),
            Some(0xff) => Err(server_error(&first)),
            _ => self.read_rows(&first).map(drop),
        })
    }

    /// The socket of a connection that is logged in.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn write_command(&mut self, sql: &str) -> io::Result<()> {
        let mut command = vec![COM_QUERY];
        command.extend_from_slice(sql.as_bytes());
        self.try_write_packet(0, &command)
    }

    fn query(&mut self, sql: &str) -> Result<Answer, ServerError> {
        self.write_command(sql).expect("the server reads");
        let (_, first) = self.read_packet();
        match first.first() {
            Some(0) => Ok(Answer::Ok(ok_answer(&first))),
            Some(0xff) => Err(server_error(&first)),
            _ => self.read_rows(&first).map(Answer::Rows),
        }
    }

    fn read_rows(&mut self, first: &[u8]) -> Result<Rows, ServerError> {
        let count = Bytes(first).length().expect("a count of columns");
        let columns = (0..count).map(|_| column_name(&self.read_packet().1)).collect();
        assert!(is_eof(&self.read_packet().1), "an EOF packet ends the column definitions");
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.read_packet();
            if is_eof(&packet) {
                return Ok(Rows { columns, rows });
            }
            if packet.first() == Some(&0xff) {
                return Err(server_error(&packet));
            }
            let mut bytes = Bytes(&packet);
            rows.push((0..count).map(|_| bytes.text()).collect());
        }
    }

    fn read_packet(&mut self) -> (u8, Vec<u8>) {
        self.try_read_packet().expect("the server answers")
    }

    fn try_read_packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut whole = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            let start = whole.len();
            whole.resize(start + length, 0);
            self.stream.read_exact(&mut whole[start..])?;
            if length < 0xff_ffff {
                return Ok((header[3], whole));
            }
        }
    }

    fn write_packet(&mut self, sequence: u8, payload: &[u8]) {
        self.try_write_packet(sequence, payload).expect("the server reads");
    }

    fn try_write_packet(&mut self, sequence: u8, payload: &[u8]) -> io::Result<()> {
        assert!(payload.len() < 0xff_ffff, "longer statements are for other clients");
        let length = u32::try_from(payload.len()).expect("checked above").to_le_bytes();
        let mut packet = vec![length[0], length[1], length[2], sequence];
        packet.extend_from_slice(payload);
        self.stream.write_all(&packet)
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
    packet.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
    packet.push(UTF8MB4);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(b"root\0");
    packet.push(0); // no password
    if let Some(database) = database {
        packet.extend_from_slice(database.as_bytes());
        packet.push(0);
    }
    packet.extend_from_slice(b"mysql_native_password\0");
    packet
}

fn is_eof(packet: &[u8]) -> bool {
    packet.len() < 9 && packet.first() == Some(&0xfe)
}

fn ok_answer(packet: &[u8]) -> OkAnswer {
    let mut bytes = Bytes(&packet[1..]);
    let affected_rows = bytes.length().unwrap_or_default();
    let _last_insert_id = bytes.length();
    let _status = bytes.take(2);
    let warnings = u16::from_le_bytes(bytes.take(2).try_into().expect("two bytes"));
    // MySQL's servers send the text with its length, which is what its clients read.
    let info = bytes.text().unwrap_or_default();
    OkAnswer { affected_rows, warnings, info }
}

fn server_error(packet: &[u8]) -> ServerError {
    let number = u16::from_le_bytes(packet[1..3].try_into().expect("two bytes"));
    let text = String::from_utf8_lossy(&packet[3..]).into_owned();
    match text.strip_prefix('#') {
        Some(rest) => ServerError { number, state: rest[..5].to_owned(), message: rest[5..].to_owned() },
        None => ServerError { number, state: String::new(), message: text },
    }
}

fn column_name(packet: &[u8]) -> String {
    let mut bytes = Bytes(packet);
    for _catalog_schema_and_two_tables in 0..4 {
        bytes.text();
    }
    bytes.text().expect("a column has a name")
}

/// Bytes of a packet that are still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    /// A number in MySQL's variable length; `None` is NULL or the packet's end.
    fn length(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        let width = match first {
            0xfb => return None,
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Some(u64::from(small)),
        };
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.take(width));
        Some(u64::from_le_bytes(number))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.length()?).expect("a length that fits");
        Some(String::from_utf8(self.take(length).to_vec()).expect("text is UTF-8"))
    }
}
