//! A proxy between the clients and the server. It cuts connections: before a request, within it, after it, or within the answer.
//!
//! It knows where requests of HTTP and of MySQL's protocol begin and end. A client sends none before the last is answered.

use super::gate::Gate;
use crate::TortureError;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::Scope;

/// One in this many requests is cut.
const CUT_ONE_IN: u32 = 100;
/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 16 << 10;

/// Where a connection was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    /// Nothing of the request reaches the server.
    BeforeRequest,
    WithinRequest,
    /// The server has the whole request, the client nothing of the answer.
    AfterRequest,
    WithinAnswer,
}

impl Cut {
    const ALL: [Self; 4] = [Self::BeforeRequest, Self::WithinRequest, Self::AfterRequest, Self::WithinAnswer];

    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeRequest => "cut_before_request",
            Self::WithinRequest => "cut_within_request",
            Self::AfterRequest => "cut_after_request",
            Self::WithinAnswer => "cut_within_answer",
        }
    }
}

/// The fate of the server's next bytes.
#[repr(u8)]
enum Answer {
    Passes = 0,
    IsDropped = 1,
    IsCut = 2,
}

/// A protocol whose requests the proxy tells from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Mysql,
}

impl Protocol {
    /// The length of the request that begins with these bytes. `None`: more of them are needed.
    fn request_bytes(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Http => {
                let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
                let text = String::from_utf8_lossy(&bytes[..head]);
                let length = text.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
                });
                Some(head + length.unwrap_or(0_usize))
            }
            Self::Mysql => {
                let &[low, middle, high, _] = bytes.first_chunk()?;
                Some(4 + u32::from_le_bytes([low, middle, high, 0]) as usize)
            }
        }
    }

    /// Whether it is a statement or a load, and no part of a login.
    fn is_command(self, request: &[u8]) -> bool {
        self == Self::Http || request.get(3) == Some(&0)
    }
}

/// The proxy. Its ports stay the same while servers come and go.
#[derive(Debug)]
pub(super) struct Proxy {
    http: TcpListener,
    mysql: TcpListener,
    pub http_port: u16,
    pub mysql_port: u16,
    seed: u64,
    connections: AtomicU64,
    /// Cuts by the ports of the clients that have not noticed yet.
    cuts: Mutex<HashMap<u16, Cut>>,
    is_over: AtomicBool,
}

impl Proxy {
    pub fn new(seed: u64) -> Result<Self, TortureError> {
        let failed = |error: io::Error| TortureError::Setup(format!("the proxy cannot listen: {error}"));
        let listener = || TcpListener::bind(("127.0.0.1", 0)).map_err(failed);
        let (http, mysql) = (listener()?, listener()?);
        let port = |of: &TcpListener| of.local_addr().map(|address| address.port()).map_err(failed);
        Ok(Self {
            http_port: port(&http)?,
            mysql_port: port(&mysql)?,
            http,
            mysql,
            seed,
            connections: AtomicU64::new(0),
            cuts: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Passes on connections until [`Proxy::end`].
    pub fn serve<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, gate: &'env Gate) {
        for (listener, protocol) in [(&self.http, Protocol::Http), (&self.mysql, Protocol::Mysql)] {
            scope.spawn(move || {
                for client in listener.incoming() {
                    if self.is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    if let Ok(client) = client {
                        // Its end is one of both others', which they notice.
                        scope.spawn(move || drop(self.pass(&client, protocol, gate)));
                    }
                }
            });
        }
    }

    /// Accepts nothing more. Connections end with those of their clients.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for port in [self.http_port, self.mysql_port] {
            // Wakes up who accepts; if that fails, it was awake.
            let _ = TcpStream::connect(("127.0.0.1", port));
        }
    }

    /// Whether and where the connection from that port was cut; asked once.
    pub fn cut_of(&self, client_port: u16) -> Option<Cut> {
        self.cuts.lock().remove(&client_port)
    }

    fn pass(&self, client: &TcpStream, protocol: Protocol, gate: &Gate) -> io::Result<()> {
        let client_port = client.peer_addr()?.port();
        // Of an earlier connection from the same port.
        self.cut_of(client_port);
        let Some(up) = gate.up() else { return client.shutdown(Shutdown::Both) };
        let port = if protocol == Protocol::Http { up.http_port } else { up.mysql_port };
        let server = TcpStream::connect(("127.0.0.1", port))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed ^ number << 20;
        let way = Way { proxy: self, client, server: &server, client_port, answer: AtomicU8::new(0) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = way.answers(StdRng::seed_from_u64(!seed));
                way.close();
            });
            // Either direction ends with the other.
            let _ = way.requests(protocol, StdRng::seed_from_u64(seed));
            way.close();
        });
        Ok(())
    }
}

/// A connection of a client and that to the server.
struct Way<'a> {
    proxy: &'a Proxy,
    client: &'a TcpStream,
    server: &'a TcpStream,
    client_port: u16,
    answer: AtomicU8,
}

impl Way<'_> {
    fn close(&self) {
        // They may be closed already.
        let _ = self.server.shutdown(Shutdown::Both);
        let _ = self.client.shutdown(Shutdown::Both);
    }

    fn cut(&self, cut: Cut) {
        self.proxy.cuts.lock().insert(self.client_port, cut);
        self.close();
    }

    fn requests(&self, protocol: Protocol, mut rng: StdRng) -> io::Result<()> {
        let (mut client, mut server) = (self.client, self.server);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut request = Vec::new();
        loop {
            request.clear();
            let bytes = loop {
                let read = client.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                request.extend(&buffer[..read]);
                if let Some(bytes) = protocol.request_bytes(&request) {
                    break bytes;
                }
            };
            let is_cut = protocol.is_command(&request) && rng.random_ratio(1, CUT_ONE_IN);
            let cut = is_cut.then(|| Cut::ALL[rng.random_range(0..Cut::ALL.len())]);
            if cut == Some(Cut::BeforeRequest) {
                self.cut(Cut::BeforeRequest);
                return Ok(());
            }
            if cut.is_none() {
                server.write_all(&request)?;
            }
            let mut left = bytes.saturating_sub(request.len());
            while left > 0 {
                let read = client.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                left = left.saturating_sub(read);
                if cut.is_none() {
                    server.write_all(&buffer[..read])?;
                } else {
                    request.extend(&buffer[..read]);
                }
            }
            match cut {
                None => {}
                Some(Cut::WithinRequest) => {
                    server.write_all(&request[..rng.random_range(1..request.len())])?;
                    self.cut(Cut::WithinRequest);
                    return Ok(());
                }
                Some(Cut::AfterRequest) if rng.random_bool(0.5) => {
                    server.write_all(&request)?;
                    self.cut(Cut::AfterRequest);
                    return Ok(());
                }
                Some(after) => {
                    let next = if after == Cut::AfterRequest { Answer::IsDropped } else { Answer::IsCut };
                    self.answer.store(next as u8, Ordering::SeqCst);
                    server.write_all(&request)?;
                }
            }
        }
    }

    fn answers(&self, mut rng: StdRng) -> io::Result<()> {
        const DROPPED: u8 = Answer::IsDropped as u8;
        const CUT: u8 = Answer::IsCut as u8;
        let (mut client, mut server) = (self.client, self.server);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = server.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            match self.answer.swap(Answer::Passes as u8, Ordering::SeqCst) {
                DROPPED => {
                    self.cut(Cut::AfterRequest);
                    return Ok(());
                }
                CUT => {
                    client.write_all(&buffer[..rng.random_range(0..read).max(1).min(read - 1)])?;
                    self.cut(Cut::WithinAnswer);
                    return Ok(());
                }
                _ => client.write_all(&buffer[..read])?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_lengths() {
        let http = b"PUT / HTTP/1.1\r\ncontent-LENGTH: 3\r\n\r\nabc";
        assert_eq!(Protocol::Http.request_bytes(&http[..20]), None);
        assert_eq!(Protocol::Http.request_bytes(http), Some(http.len()));
        assert_eq!(Protocol::Http.request_bytes(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        let mysql = b"\x02\x01\x00\x00\x03x";
        assert_eq!(Protocol::Mysql.request_bytes(&mysql[..3]), None);
        assert_eq!(Protocol::Mysql.request_bytes(mysql), Some(4 + 0x102));
        assert!(Protocol::Mysql.is_command(mysql));
        assert!(!Protocol::Mysql.is_command(b"\x02\x00\x00\x01\x03x"), "a login");
    }
}
