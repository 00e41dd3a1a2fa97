//! A blocking HTTP/1.1 client: one connection for each request, and bodies that are sent in the measure that a pace allows.
//!
//! An error says whether the request may have reached the server, because that decides whether sending it again needs a question
//! first. A body waits for `100 Continue`, so that a redirect or a refusal arrives before it. Not its business: TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a body waits for `100 Continue` before it is sent all the same.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(2);
const REDIRECTS_MAX: usize = 4;
const HEAD_BYTES_MAX: u64 = 64 << 10;
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Bytes between two looks at the pace.
const PIECE_BYTES: usize = 64 << 10;

/// The address of an HTTP server, with the user that the URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
}

impl Address {
    /// Reads `http://[user@]host[:port]`. The port is 8030 if the URL has none.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (address, path) = split_url(url, 8030)?;
        if path.len() > 1 {
            return Err(format!("the URL {url} has a path: give http://host:port"));
        }
        Ok(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}:{}", self.host, self.port)
    }
}

fn split_url(url: &str, default_port: u16) -> Result<(Address, String), String> {
    if url.starts_with("https://") {
        return Err(format!("{url}: https is not supported; use a tunnel or a proxy on this machine"));
    }
    let rest =
        url.strip_prefix("http://").ok_or_else(|| format!("the URL {url} does not begin with http://"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, authority),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| format!("the URL {url} has no valid port"))?)
        }
        _ => (place, default_port),
    };
    if host.is_empty() {
        return Err(format!("the URL {url} names no host"));
    }
    Ok((
        Address { host: host.to_owned(), port, user },
        if path.is_empty() { "/".to_owned() } else { path.to_owned() },
    ))
}

/// A server and the user who asks it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub address: Address,
    pub user: String,
    pub password: String,
    /// How long an answer may take.
    pub patience: Duration,
}

/// A request's body.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// A whole file, which is read while it is sent.
    File(PathBuf, u64),
}

impl Body {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, bytes) => *bytes,
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server was not reached: it has not seen the request.
    Away(io::Error),
    /// The server may have seen the request, and its answer is lost.
    Lost(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(error) => write!(formatter, "the server is not reachable: {error}"),
            Self::Lost(error) => write!(formatter, "the answer is lost: {error}"),
        }
    }
}

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// The bytes that may be sent in a second, by all requests together.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    free_at: std::sync::Mutex<Option<Instant>>,
}

impl Pace {
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, free_at: std::sync::Mutex::default() }
    }

    fn wait(&self, bytes: usize) {
        let Some(rate) = self.bytes_per_second else { return };
        let mut free_at = self.free_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let begin = free_at.unwrap_or(now).max(now);
        *free_at = Some(begin + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64));
        drop(free_at);
        std::thread::sleep(begin.saturating_duration_since(now));
    }
}

impl Server {
    /// Sends a request without a body.
    pub fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.request("GET", path, &[], None, &Pace::default(), &mut || Ok(()))
    }

    /// Sends a request that needs no user.
    pub fn get_without_login(&self, path: &str) -> Result<Answer, Failure> {
        self.once(&self.address, "GET", path, false, &[], None, &Pace::default(), &mut || Ok(()))
    }

    /// Fetches an absolute URL. The credentials are sent to the server's own host only.
    pub fn fetch(&self, url: &str) -> Result<Answer, Failure> {
        let (address, path) = split_url(url, 80).map_err(|error| Failure::Away(io::Error::other(error)))?;
        let is_own = address.host == self.address.host;
        self.once(&address, "GET", &path, is_own, &[], None, &Pace::default(), &mut || Ok(()))
    }

    /// Sends a request, to other addresses as well if the server says so. `before` runs when the server is connected and has not seen
    /// anything yet.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&Body>,
        pace: &Pace,
        before: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<Answer, Failure> {
        let (mut address, mut path) = (self.address.clone(), path.to_owned());
        for _ in 0..REDIRECTS_MAX {
            let answer = self.once(&address, method, &path, true, headers, body, pace, before)?;
            match (answer.status, answer.header("Location")) {
                (301 | 302 | 307 | 308, Some(location)) => {
                    (address, path) =
                        split_url(location, 80).map_err(|error| Failure::Lost(io::Error::other(error)))?;
                }
                _ => return Ok(answer),
            }
        }
        Err(Failure::Away(io::Error::other("too many redirects")))
    }

    #[expect(clippy::too_many_arguments)]
    fn once(
        &self,
        address: &Address,
        method: &str,
        path: &str,
        with_login: bool,
        headers: &[(String, String)],
        body: Option<&Body>,
        pace: &Pace,
        before: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<Answer, Failure> {
        let stream = connect(address).map_err(Failure::Away)?;
        before().map_err(Failure::Away)?;
        let head = self.head(address, method, path, with_login, headers, body);
        self.exchange(stream, &head, body, pace).map_err(Failure::Lost)
    }

    fn head(
        &self,
        address: &Address,
        method: &str,
        path: &str,
        with_login: bool,
        headers: &[(String, String)],
        body: Option<&Body>,
    ) -> String {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n",
            address.host, address.port
        );
        if with_login {
            let login = STANDARD.encode(format!("{}:{}", self.user, self.password));
            head.push_str(&format!("Authorization: Basic {login}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len()));
        }
        head.push_str("\r\n");
        head
    }

    fn exchange(
        &self,
        stream: TcpStream,
        head: &str,
        body: Option<&Body>,
        pace: &Pace,
    ) -> io::Result<Answer> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        writer.write_all(head.as_bytes())?;
        let mut written = Ok(());
        if let Some(body) = body {
            writer.set_read_timeout(Some(CONTINUE_PATIENCE))?;
            match reader.fill_buf() {
                Ok(_) => {
                    writer.set_read_timeout(Some(self.patience))?;
                    let answer = read_answer(&mut reader)?;
                    if answer.status != 100 {
                        return Ok(answer);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
            // A server that refuses a load answers before it has read all of it: the answer counts, not the broken pipe.
            written = send_body(&mut writer, body, pace);
        }
        writer.set_read_timeout(Some(self.patience))?;
        loop {
            match read_answer(&mut reader) {
                Ok(answer) if answer.status == 100 => {}
                Ok(answer) => return Ok(answer),
                Err(error) => return written.and(Err(error)),
            }
        }
    }
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::other("the host has no address");
    for place in (host, address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, CONNECT_PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(Duration::from_secs(300)))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn send_body(stream: &mut TcpStream, body: &Body, pace: &Pace) -> io::Result<()> {
    match body {
        Body::Bytes(bytes) => {
            for piece in bytes.chunks(PIECE_BYTES) {
                pace.wait(piece.len());
                stream.write_all(piece)?;
            }
        }
        Body::File(path, bytes) => {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(0))?;
            let (mut piece, mut left) = (vec![0; PIECE_BYTES], *bytes);
            while left > 0 {
                let size = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                file.read_exact(&mut piece[..size])?;
                pace.wait(size);
                stream.write_all(&piece[..size])?;
                left -= size as u64;
            }
        }
    }
    stream.flush()
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.take(HEAD_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the connection was closed before the answer",
        ));
    }
    let line = String::from_utf8_lossy(&line);
    Ok(line.trim_end_matches('\r').to_owned())
}

fn read_answer(reader: &mut impl BufRead) -> io::Result<Answer> {
    let first = read_line(reader)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status =
        status.filter(|_| first.starts_with("HTTP/")).ok_or_else(|| broken("an answer that is not HTTP"))?;
    let mut answer = Answer { status, headers: Vec::new(), body: Vec::new() };
    loop {
        let line = read_line(reader)?;
        let Some((name, value)) = line.split_once(':') else { break };
        answer.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if status == 100 || status == 204 {
        return Ok(answer);
    }
    if answer.header("Transfer-Encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        answer.body = read_pieces(reader)?;
    } else if let Some(length) = answer.header("Content-Length") {
        let length: u64 = length.parse().map_err(|_| broken("an answer without a valid length"))?;
        reader.take(length.min(ANSWER_BYTES_MAX)).read_to_end(&mut answer.body)?;
        if (answer.body.len() as u64) < length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection was closed within the answer",
            ));
        }
    } else {
        reader.take(ANSWER_BYTES_MAX).read_to_end(&mut answer.body)?;
    }
    Ok(answer)
}

/// Reads a body that arrives in pieces, each with its length before it.
fn read_pieces(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| broken("a piece without a valid length"))?;
        if size == 0 {
            while !read_line(reader)?.is_empty() {}
            return Ok(body);
        }
        if body.len() as u64 + size > ANSWER_BYTES_MAX {
            return Err(broken("an answer that is too long"));
        }
        let start = body.len();
        reader.take(size).read_to_end(&mut body)?;
        if ((body.len() - start) as u64) < size || !read_line(reader)?.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection was closed within the answer",
            ));
        }
    }
}

/// Escapes a text for a place between two slashes of a path, or for a value of a query.
pub(crate) fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_perhaps_user_and_port() {
        let parse = |url| Address::parse(url).map(|found| (found.host, found.port, found.user));
        assert_eq!(parse("http://h"), Ok(("h".to_owned(), 8030, None)));
        assert_eq!(parse("http://u@[::1]:80/"), Ok(("[::1]".to_owned(), 80, Some("u".to_owned()))));
        assert!(parse("https://h").is_err_and(|error| error.contains("https is not supported")));
        assert!(parse("h:80").is_err() && parse("http://:80").is_err() && parse("http://h/path").is_err());
    }

    #[test]
    fn an_answer_may_come_in_pieces() {
        let mut text =
            &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"[..];
        let answer = read_answer(&mut text).expect("an answer");
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abcde"[..]));
        let mut cut = &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"[..];
        assert!(read_answer(&mut cut).is_err());
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a b/ä"), "a%20b%2F%C3%A4");
    }
}
