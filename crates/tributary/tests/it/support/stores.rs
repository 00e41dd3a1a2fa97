//! External stores: S3, and an HTTP server.

use super::Curl;
use super::programs::s3_server;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// moto, which speaks S3's protocol. Killed when dropped.
pub struct S3Store {
    process: Child,
    pub endpoint: String,
}

impl S3Store {
    /// A store that tests running now share; each has buckets of its own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<S3Store>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let store = shared.upgrade().unwrap_or_else(|| Arc::new(Self::start()));
        *shared = Arc::downgrade(&store);
        store
    }

    fn start() -> Self {
        let mut command = Command::new(s3_server());
        command.args(["-H", "127.0.0.1", "-p", "0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = command.stderr(Stdio::piped()).spawn().expect("moto starts");
        let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let endpoint = lines.by_ref().find_map(|line| {
            let line = line.expect("moto writes text");
            Some(line.split_once("Running on ")?.1.trim().to_owned())
        });
        // It writes a line for each request, and must never wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, endpoint: endpoint.expect("moto says where it listens") }
    }

    /// The address of its API.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn make_bucket(&self, bucket: &str) {
        Curl::anonymous(&format!("{}/{bucket}", self.endpoint)).argument("-X").argument("PUT").text();
    }

    pub fn put(&self, bucket: &str, key: &str, file: &Path) {
        let url = format!("{}/{bucket}/{key}", self.endpoint);
        Curl::anonymous(&url).argument("-X").argument("PUT").file(file).text();
    }

    /// The keys of a bucket that begin with this, at most a thousand.
    pub fn keys(&self, bucket: &str, prefix: &str) -> Vec<String> {
        let url = format!("{}/{bucket}?list-type=2&prefix={prefix}", self.endpoint);
        let list = Curl::anonymous(&url).text();
        let key = |part: &str| Some(part.split_once("</Key>")?.0.to_owned());
        list.split("<Key>").skip(1).filter_map(key).collect()
    }

    /// The number of unfinished uploads of a bucket.
    pub fn uploads(&self, bucket: &str) -> usize {
        Curl::anonymous(&format!("{}/{bucket}?uploads", self.endpoint)).text().matches("<UploadId>").count()
    }

    /// The properties of a table function that reads a bucket's objects.
    pub fn properties(&self, uri: &str) -> String {
        format!(
            r#""uri" = "{uri}", "s3.endpoint" = "{}", "s3.region" = "us-east-1", "s3.access_key" = "key",
               "s3.secret_key" = "hush", "use_path_style" = "true""#,
            self.endpoint
        )
    }
}

impl Drop for S3Store {
    fn drop(&mut self) {
        // It has no data to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An answer of an [`HttpServer`].
#[derive(Clone)]
pub enum Page {
    /// A body of known length.
    Whole(Vec<u8>),
    /// A chunked body.
    Chunked(Vec<u8>),
    /// A body that breaks off.
    Broken(Vec<u8>),
    /// A body that stalls forever.
    Hanging(Vec<u8>),
    /// A chunked body whose end arrives when the flag is set.
    Held(Vec<u8>, Arc<AtomicBool>),
}

/// A small HTTP server, which ends with the tests.
pub struct HttpServer {
    pub url: String,
    requests: Arc<AtomicUsize>,
    heads: Arc<Mutex<String>>,
}

impl HttpServer {
    pub fn start(pages: &[(&str, Page)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let pages: HashMap<String, Page> =
            pages.iter().map(|(path, page)| ((*path).to_owned(), page.clone())).collect();
        let (pages, requests) = (Arc::new(pages), Arc::new(AtomicUsize::new(0)));
        let heads = Arc::new(Mutex::new(String::new()));
        let server = Self { url, requests: Arc::clone(&requests), heads: Arc::clone(&heads) };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (pages, requests, heads) =
                    (Arc::clone(&pages), Arc::clone(&requests), Arc::clone(&heads));
                std::thread::spawn(move || {
                    requests.fetch_add(1, Ordering::SeqCst);
                    // A client that leaves is not an error.
                    let _ = answer(stream, &pages, &heads);
                });
            }
        });
        server
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The heads of all requests so far.
    pub fn heads(&self) -> String {
        self.heads.lock().expect("no test panicked with it").clone()
    }
}

fn answer(
    mut stream: TcpStream,
    pages: &HashMap<String, Page>,
    heads: &Mutex<String>,
) -> std::io::Result<()> {
    let mut head = String::new();
    let mut lines = BufReader::new(stream.try_clone()?);
    while lines.read_line(&mut head)? > 2 {}
    heads.lock().expect("no test panicked with it").push_str(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    match pages.get(&path) {
        None => {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone")
        }
        Some(Page::Whole(body)) => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
            stream.write_all(body)
        }
        Some(Page::Chunked(body)) => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")?;
            for chunk in body.chunks(1000) {
                write!(stream, "{:x}\r\n", chunk.len())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Some(Page::Broken(body)) => {
            let length = body.len() + 1000;
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
            stream.write_all(body)
        }
        Some(Page::Hanging(body)) => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
            stream.write_all(body)?;
            // Until the client leaves.
            stream.read(&mut [0; 1]).map(drop)
        }
        Some(Page::Held(body, ends)) => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")?;
            write!(stream, "{:x}\r\n", body.len())?;
            stream.write_all(body)?;
            stream.write_all(b"\r\n")?;
            while !ends.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(2));
            }
            stream.write_all(b"0\r\n\r\n")
        }
    }
}

/// The effect of a [`Door`] on requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorMode {
    Open,
    /// Connections end at once, and so do earlier ones.
    Shut,
    /// One answer of this many is lost, and its connection ends: the store has done what it was asked.
    Loses(usize),
    /// Headers that ask for conditional puts do not arrive.
    Unconditional,
    /// One request of this many is answered with 503 (SlowDown), and does not reach the store.
    Throttles(usize),
    /// Parts of uploads from this number on are answered with 500, and do not reach the store.
    RefusesParts(u32),
    /// The first answer to each completion of an upload is lost: the store has done what it was asked.
    LosesCompletions,
}

/// A way to a store that can be shut, that throttles, and that loses answers.
pub struct Door {
    pub url: String,
    shared: Arc<DoorState>,
}

#[derive(Default)]
struct DoorState {
    mode: Mutex<Option<DoorMode>>,
    asked: AtomicUsize,
    answered: AtomicUsize,
    lost: AtomicUsize,
    refused: AtomicUsize,
    /// Uploads whose completion has lost an answer.
    completed: Mutex<HashSet<String>>,
}

impl DoorState {
    fn mode(&self) -> DoorMode {
        self.mode.lock().expect("no test panicked with it").unwrap_or(DoorMode::Open)
    }

    /// The answer to a request that does not reach the store.
    fn refusal(&self, line: &str) -> Option<&'static str> {
        let answer = match self.mode() {
            DoorMode::Throttles(one_in)
                if self.asked.fetch_add(1, Ordering::SeqCst) % one_in == one_in - 1 =>
            {
                SLOW_DOWN
            }
            DoorMode::RefusesParts(first) if part_number(line).is_some_and(|number| number >= first) => {
                INTERNAL_ERROR
            }
            _ => return None,
        };
        self.refused.fetch_add(1, Ordering::SeqCst);
        Some(answer)
    }

    /// Whether the answer to this request is lost.
    fn loses(&self, line: &str) -> bool {
        let is_lost = match self.mode() {
            DoorMode::Loses(one_in) => self.answered.fetch_add(1, Ordering::SeqCst) % one_in == one_in - 1,
            DoorMode::LosesCompletions if line.starts_with("POST ") && line.contains("uploadId=") => {
                self.completed.lock().expect("no test panicked with it").insert(line.to_owned())
            }
            _ => false,
        };
        self.lost.fetch_add(usize::from(is_lost), Ordering::SeqCst);
        is_lost
    }
}

const SLOW_DOWN: &str = "HTTP/1.1 503 Slow Down\r\nContent-Length: 57\r\n\r\n\
                         <Error><Code>SlowDown</Code><Message>m</Message></Error>\n";
const INTERNAL_ERROR: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 62\r\n\r\n\
                              <Error><Code>InternalError</Code><Message>m</Message></Error>\n";

fn part_number(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("partNumber=")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

impl Door {
    pub fn to(endpoint: &str) -> Self {
        let store = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(DoorState::default());
        let door = Self { url, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&store) else { continue };
                let (Ok(client_2), Ok(server_2)) = (client.try_clone(), server.try_clone()) else { continue };
                // The line of the request whose answer has not begun.
                let asked = Arc::new(Mutex::new(None));
                let (shared_1, asked_1) = (Arc::clone(&shared), Arc::clone(&asked));
                std::thread::spawn(move || {
                    // A connection that ends is no error.
                    let _ = pass_requests(&client_2, &server_2, &shared_1, &asked_1);
                    end(&client_2, &server_2);
                });
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    pass(server, client, |_| {
                        let line: Option<String> = asked.lock().expect("no test panicked with it").take();
                        let is_lost = line.is_some_and(|line| shared.loses(&line));
                        shared.mode() != DoorMode::Shut && !is_lost
                    });
                });
            }
        });
        door
    }

    pub fn set(&self, mode: DoorMode) {
        *self.shared.mode.lock().expect("no test panicked with it") = Some(mode);
    }

    /// Number of answers that were lost.
    pub fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }

    /// Number of requests that did not reach the store.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }
}

/// Passes requests on one by one, and answers the ones that do not reach the store.
fn pass_requests(
    mut client: &TcpStream,
    mut server: &TcpStream,
    shared: &DoorState,
    asked: &Mutex<Option<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(client);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if lines.read_until(b'\n', &mut head)? == 0 {
                return Ok(());
            }
        }
        let text = String::from_utf8_lossy(&head).to_lowercase();
        let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
        let length: u64 = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
        let mode = shared.mode();
        if mode == DoorMode::Shut {
            return Ok(());
        }
        if let Some(refusal) = shared.refusal(&line) {
            std::io::copy(&mut lines.by_ref().take(length), &mut std::io::sink())?;
            client.write_all(refusal.as_bytes())?;
            continue;
        }
        if mode == DoorMode::Unconditional {
            hide(&mut head, b"if-none-match");
        }
        *asked.lock().expect("no test panicked with it") = Some(line);
        server.write_all(&head)?;
        std::io::copy(&mut lines.by_ref().take(length), &mut server)?;
    }
}

fn end(one: &TcpStream, other: &TcpStream) {
    // One that has ended already is fine.
    let _ = one.shutdown(std::net::Shutdown::Both);
    let _ = other.shutdown(std::net::Shutdown::Both);
}

/// Copies bytes until their end, or until `passes` refuses a piece; then both connections end.
fn pass(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&mut [u8]) -> bool) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut piece).unwrap_or(0);
        if read == 0 || !passes(&mut piece[..read]) || to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    end(&from, &to);
}

/// Makes the header of this name another one.
fn hide(bytes: &mut [u8], name: &[u8]) {
    let found = bytes.windows(name.len()).position(|window| window.eq_ignore_ascii_case(name));
    if let Some(at) = found {
        bytes[at..at + 2].copy_from_slice(b"xx");
    }
}
