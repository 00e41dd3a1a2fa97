//! A client that speaks the protocol byte by byte.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tributary_mysql::CapabilityFlags;

pub const DEPRECATE_EOF: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
pub const COMPRESS: CapabilityFlags = CapabilityFlags::CLIENT_COMPRESS;
const CHUNK_MAX: usize = 0xff_ffff;

pub struct Client {
    stream: BufReader<TcpStream>,
    compressed: Option<Inflated>,
    pub id: u32,
    nonce: Vec<u8>,
    deprecate_eof: bool,
}

/// The contents of compressed packets.
#[derive(Default)]
struct Inflated {
    bytes: Vec<u8>,
    read: usize,
    /// The sequence number of each compressed packet.
    sequences: Vec<u8>,
}

/// How a client logs in.
#[derive(Clone, Copy)]
pub struct Login {
    pub user: &'static str,
    pub password: &'static str,
    pub database: Option<&'static str>,
    pub plugin: &'static str,
    pub extra: CapabilityFlags,
}

impl Default for Login {
    fn default() -> Self {
        let plugin = "mysql_native_password";
        Self { user: "root", password: "", database: None, plugin, extra: CapabilityFlags::empty() }
    }
}

#[derive(Debug)]
pub struct Ok {
    pub affected_rows: u64,
    pub status: u16,
}

/// A payload as packets.
pub fn frame(payload: &[u8], mut sequence: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = payload;
    loop {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK_MAX));
        out.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(chunk);
        sequence = sequence.wrapping_add(1);
        if chunk.len() < CHUNK_MAX {
            return out;
        }
        rest = after;
    }
}

/// Packets in one compressed packet.
pub fn deflate(packets: &[u8], sequence: u8) -> Vec<u8> {
    let mut payload = Vec::with_capacity(packets.len() + 100);
    Compress::new(Compression::default(), true)
        .compress_vec(packets, &mut payload, FlushCompress::Finish)
        .unwrap();
    compressed_packet(sequence, packets.len(), &payload)
}

/// A compressed packet whose header announces that length; 0: the payload is stored.
pub fn compressed_packet(sequence: u8, inflated_length: usize, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend_from_slice(&(inflated_length as u32).to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    out
}

pub fn is_err(payload: &[u8]) -> bool {
    payload.first() == Some(&0xff)
}

pub fn is_ok(payload: &[u8]) -> bool {
    payload.first() == Some(&0)
}

pub fn err_code(payload: &[u8]) -> u16 {
    assert!(is_err(payload), "not an error: {:?}", String::from_utf8_lossy(payload));
    u16::from_le_bytes([payload[1], payload[2]])
}

fn scramble(nonce: &[u8], password: &str) -> Vec<u8> {
    scramble_native(nonce, password.as_bytes()).map(|hash| hash.to_vec()).unwrap_or_default()
}

impl Client {
    pub async fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            compressed: None,
            id: 0,
            nonce: Vec::new(),
            deprecate_eof: false,
        }
    }

    /// Connected, greeted, not logged in.
    pub async fn greeted(address: SocketAddr) -> Self {
        let mut client = Self::raw(address).await;
        let (sequence, greeting) = client.read().await.unwrap();
        assert_eq!((sequence, greeting[0]), (0, 10));
        let after_version = greeting.iter().position(|byte| *byte == 0).unwrap() + 1;
        assert_eq!(&greeting[1..after_version - 1], b"5.7.99");
        let fields = &greeting[after_version..];
        client.id = u32::from_le_bytes(fields[..4].try_into().unwrap());
        client.nonce = [&fields[4..12], &fields[31..43]].concat();
        client
    }

    /// Logs in; `Err` is the server's error packet.
    pub async fn connect(address: SocketAddr, login: Login) -> Result<Self, Vec<u8>> {
        let mut client = Self::greeted(address).await;
        client.deprecate_eof = login.extra.contains(DEPRECATE_EOF);
        let response = client.handshake_response(login);
        client.send_raw(&frame(&response, 1)).await;
        let (sequence, mut answer) = client.read().await.unwrap();
        if answer[0] == 0xfe {
            answer = client.switch(&answer, sequence, login.password).await;
        }
        if is_err(&answer) {
            return Err(answer);
        }
        assert!(is_ok(&answer));
        client.compressed = login.extra.contains(COMPRESS).then(Inflated::default);
        Ok(client)
    }

    fn handshake_response(&self, login: Login) -> Vec<u8> {
        let mut capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_CONNECT_ATTRS
            | CapabilityFlags::CLIENT_MULTI_STATEMENTS
            | login.extra;
        capabilities.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, login.database.is_some());
        let mut response = capabilities.bits().to_le_bytes().to_vec();
        response.extend_from_slice(&[0, 0, 0, 1, 45]);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(login.user.as_bytes());
        response.push(0);
        // The proof of another plugin: any bytes, of any non-zero length unless the password is empty.
        let proof = match login.plugin {
            "mysql_native_password" => scramble(&self.nonce, login.password),
            _ => vec![7; if login.password.is_empty() { 0 } else { 32 }],
        };
        response.push(proof.len() as u8);
        response.extend_from_slice(&proof);
        for text in login.database.into_iter().chain([login.plugin]) {
            response.extend_from_slice(text.as_bytes());
            response.push(0);
        }
        response.extend_from_slice(b"\x11\x0c_client_name\x03raw");
        response
    }

    async fn switch(&mut self, request: &[u8], sequence: u8, password: &str) -> Vec<u8> {
        let (name, nonce) = request[1..].split_at(22);
        assert_eq!(name, b"mysql_native_password\0");
        self.nonce = nonce[..20].to_vec();
        let proof = scramble(&self.nonce, password);
        let packet = frame(&proof, sequence + 1);
        let stored = self.compressed.is_some().then(|| compressed_packet(sequence + 1, 0, &packet));
        self.send_raw(&stored.unwrap_or(packet)).await;
        let (next, answer) = self.read().await.unwrap();
        assert_eq!(next, sequence + 2);
        answer
    }

    /// `COM_CHANGE_USER`, as a client that has answered the latest challenge.
    pub async fn change_user(&mut self, user: &str, password: &str) -> Vec<u8> {
        let mut packet = vec![0x11];
        packet.extend_from_slice(user.as_bytes());
        let proof = scramble(&self.nonce, password);
        packet.extend_from_slice(&[0, proof.len() as u8]);
        packet.extend_from_slice(&proof);
        packet.extend_from_slice(b"\0\x2d\0mysql_native_password\0\0");
        self.send(&packet).await;
        let (sequence, answer) = self.read().await.unwrap();
        if answer[0] == 0xfe { self.switch(&answer, sequence, password).await } else { answer }
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    pub async fn finish_sending(&mut self) {
        self.stream.get_mut().shutdown().await.unwrap();
    }

    pub async fn send(&mut self, payload: &[u8]) {
        let packets = frame(payload, 0);
        if self.compressed.is_none() {
            return self.send_raw(&packets).await;
        }
        let pieces = packets.chunks(CHUNK_MAX).enumerate();
        let wire: Vec<u8> = pieces.flat_map(|(sequence, piece)| deflate(piece, sequence as u8)).collect();
        self.send_raw(&wire).await;
    }

    /// The sequence numbers of the compressed packets that arrived since the last call.
    pub fn compressed_sequences(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.compressed.as_mut().expect("the client asked for compression").sequences)
    }

    /// False at the end of the stream.
    async fn read_exact(&mut self, into: &mut [u8]) -> bool {
        let Some(inflated) = &mut self.compressed else {
            return self.stream.read_exact(into).await.is_ok();
        };
        while inflated.bytes.len() - inflated.read < into.len() {
            let mut header = [0; 7];
            if self.stream.read_exact(&mut header).await.is_err() {
                return false;
            }
            let length =
                |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) as usize;
            let mut payload = vec![0; length(0)];
            self.stream.read_exact(&mut payload).await.unwrap();
            inflated.sequences.push(header[3]);
            if length(4) == 0 {
                inflated.bytes.extend(payload);
                continue;
            }
            let mut out = Vec::with_capacity(length(4));
            Decompress::new(true).decompress_vec(&payload, &mut out, FlushDecompress::Finish).unwrap();
            assert_eq!(out.len(), length(4));
            inflated.bytes.extend(out);
        }
        into.copy_from_slice(&inflated.bytes[inflated.read..inflated.read + into.len()]);
        inflated.read += into.len();
        true
    }

    /// The next packet, joined, with its first sequence number; `None` at the end.
    pub async fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut joined = Vec::new();
        let mut first = None;
        loop {
            let mut header = [0; 4];
            if !self.read_exact(&mut header).await {
                assert!(joined.is_empty(), "the server closed amid a packet");
                return None;
            }
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let at = joined.len();
            joined.resize(at + length, 0);
            assert!(self.read_exact(&mut joined[at..]).await, "the server closed amid a packet");
            let first = *first.get_or_insert(header[3]);
            if length < CHUNK_MAX {
                return Some((first, joined));
            }
        }
    }

    pub async fn read_ok(&mut self) -> Ok {
        let (sequence, payload) = self.read().await.expect("the connection is open");
        assert!(is_ok(&payload), "not OK: {:?}", String::from_utf8_lossy(&payload));
        assert!(sequence > 0);
        let (affected_rows, rest) = match payload[1] {
            0xfc => (u64::from(u16::from_le_bytes([payload[2], payload[3]])), &payload[4..]),
            0xfd => (u64::from(u32::from_le_bytes([payload[2], payload[3], payload[4], 0])), &payload[5..]),
            0xfe => (u64::from_le_bytes(payload[2..10].try_into().unwrap()), &payload[10..]),
            short => (u64::from(short), &payload[2..]),
        };
        assert_eq!(rest[0], 0);
        Ok { affected_rows, status: u16::from_le_bytes([rest[1], rest[2]]) }
    }

    pub async fn query_ok(&mut self, sql: &str) -> Ok {
        self.send(&[&[3], sql.as_bytes()].concat()).await;
        self.read_ok().await
    }

    pub async fn ping(&mut self) -> bool {
        self.send(&[14]).await;
        self.read().await.is_some_and(|(_, payload)| is_ok(&payload))
    }

    /// All packets of a result set.
    pub async fn raw_result(&mut self, sql: &str) -> Vec<Vec<u8>> {
        self.send(&[&[3], sql.as_bytes()].concat()).await;
        self.read_result().await
    }

    pub async fn read_result(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut ends = 0;
        let mut expected = 1_u8;
        while ends < if self.deprecate_eof { 1 } else { 2 } {
            let (sequence, packet) = self.read().await.unwrap();
            assert!(!is_err(&packet), "{:?}", String::from_utf8_lossy(&packet));
            assert_eq!(sequence, expected);
            expected = expected.wrapping_add((packet.len() / CHUNK_MAX) as u8 + 1);
            ends += usize::from(packet[0] == 0xfe && packet.len() < 9);
            packets.push(packet);
        }
        packets
    }

    /// The rows of a result set of one column.
    pub async fn query(&mut self, sql: &str) -> Vec<Vec<u8>> {
        let packets = self.raw_result(sql).await;
        packets[3..packets.len() - 1].to_vec()
    }

    /// Counts the definitions that answer `COM_FIELD_LIST`.
    pub async fn read_columns(&mut self) -> usize {
        let mut count = 0;
        loop {
            let (_, packet) = self.read().await.unwrap();
            if packet[0] == 0xfe {
                return count;
            }
            assert_eq!(packet.last(), Some(&0xfb));
            count += 1;
        }
    }

    /// Prepares a statement and returns its id.
    pub async fn prepare(&mut self, sql: &str) -> u32 {
        self.send(&[&[0x16], sql.as_bytes()].concat()).await;
        let (_, packet) = self.read().await.unwrap();
        assert!(is_ok(&packet), "{:?}", String::from_utf8_lossy(&packet));
        assert_eq!(packet.len(), 12);
        for count in [u16::from_le_bytes([packet[7], packet[8]]), u16::from_le_bytes([packet[5], packet[6]])]
        {
            for _ in 0..count + u16::from(count > 0 && !self.deprecate_eof) {
                self.read().await.unwrap();
            }
        }
        u32::from_le_bytes(packet[1..5].try_into().unwrap())
    }
}
