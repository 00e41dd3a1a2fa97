//! Many connections on one thread, each with one request under way at a time: a closed loop, or, at a pace, an open one.
//!
//! Times are taken from just before a request's first byte is sent, or from the moment when the pace wanted it sent, to just after
//! its answer's last byte has been read.

use crate::data::{FIRST_ID, Order, ROWS_MAX, Request};
use crate::error::BenchError;
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use tokio_rustls::rustls::ClientConnection;
use tributary_client::Stream;

/// Longest time without any answer before a run is given up.
const PATIENCE: Duration = Duration::from_secs(120);
const RECEIVE_BYTES: usize = 64 * 1024;

/// A server's answer to a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This many rows were loaded.
    Loaded(u64),
    /// All rows were loaded, by a protocol that does not count them.
    Accepted,
    /// The load was refused, with this reason.
    Refused(String),
}

/// The protocol of a connection's answers: looks for a complete answer to a load in the bytes received since the request was
/// sent.
pub type Dialogue = fn(&[u8]) -> Option<Reply>;

/// A connection with its requests.
#[derive(Debug)]
pub struct Connection {
    stream: mio::net::TcpStream,
    tls: Option<Box<ClientConnection>>,
    dialogue: Dialogue,
    first: Option<Request>,
    requests: Vec<Request>,
    next: usize,
    /// Bytes of the request that the socket, or TLS, has taken.
    sent: usize,
    sent_at: Instant,
    is_waiting: bool,
    received: Vec<u8>,
}

impl Connection {
    /// # Errors
    /// The socket's.
    pub fn new(
        stream: impl Into<Stream>,
        dialogue: Dialogue,
        first: Option<Request>,
        requests: Vec<Request>,
    ) -> Result<Self, BenchError> {
        let (stream, tls) = match stream.into() {
            Stream::Plain(stream) => (stream, None),
            Stream::Tls(stream) => (stream.sock, Some(Box::new(stream.conn))),
        };
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: mio::net::TcpStream::from_std(stream),
            tls,
            dialogue,
            first,
            requests,
            next: 0,
            sent: 0,
            sent_at: Instant::now(),
            is_waiting: false,
            received: Vec::new(),
        })
    }

    /// The same, whose rows have ids in this order.
    #[must_use]
    pub fn with_ids(mut self, order: Order) -> Self {
        for request in self.first.iter_mut().chain(&mut self.requests) {
            request.order = order;
        }
        self
    }

    fn request(&mut self) -> &mut Request {
        match &mut self.first {
            Some(first) => first,
            None => &mut self.requests[self.next],
        }
    }

    fn turn(&mut self) {
        if self.first.take().is_none() {
            self.next = (self.next + 1) % self.requests.len();
        }
    }

    /// Sends the next request. Its time counts from `due`, or from its first byte.
    fn begin(&mut self, first_id: u32, due: Option<Instant>) -> Result<(), BenchError> {
        self.request().number(first_id);
        self.begin_at(due.unwrap_or_else(Instant::now))
    }

    /// Sends the request as it was.
    fn begin_again(&mut self) -> Result<(), BenchError> {
        self.begin_at(Instant::now())
    }

    fn begin_at(&mut self, begun: Instant) -> Result<(), BenchError> {
        (self.sent, self.sent_at, self.is_waiting) = (0, begun, true);
        self.send()
    }

    fn send(&mut self) -> Result<(), BenchError> {
        let request = match &self.first {
            Some(first) => first,
            None => &self.requests[self.next],
        };
        if let Some(tls) = &mut self.tls {
            // It takes all of it, whatever the socket does.
            tls.set_buffer_limit(None);
            tls.writer().write_all(&request.bytes[self.sent..])?;
            self.sent = request.bytes.len();
            return flush(tls, &mut self.stream);
        }
        while self.sent < request.bytes.len() {
            match self.stream.write(&request.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the available bytes; returns the answer if it is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Reply>, BenchError> {
        loop {
            let read = match &mut self.tls {
                Some(tls) => decrypted(tls, &mut self.stream, buffer),
                None => self.stream.read(buffer),
            };
            let count = match read {
                Ok(0) => return Err(BenchError::Refused("the server closed a connection".into())),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.received.extend_from_slice(&buffer[..count]);
            if let Some(reply) = (self.dialogue)(&self.received) {
                self.received.clear();
                self.is_waiting = false;
                return Ok(Some(reply));
            }
        }
    }
}

/// Sends the records that the socket takes now.
fn flush(tls: &mut ClientConnection, stream: &mut mio::net::TcpStream) -> Result<(), BenchError> {
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads bytes from the records that are available, and goes on with a handshake. Errors are those of a socket.
fn decrypted(
    tls: &mut ClientConnection,
    stream: &mut mio::net::TcpStream,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
        if tls.read_tls(stream)? == 0 {
            return Ok(0);
        }
        tls.process_new_packets().map_err(io::Error::other)?;
        while tls.wants_write() {
            tls.write_tls(stream)?;
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After a warm-up and the measured time.
    Time { warm_up: Duration, measured: Duration },
    /// After this many bytes of rows; everything is measured.
    Bytes(u64),
    /// After at least this many rows; everything is measured.
    Rows(u64),
}

/// The way of a run.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    pub limit: Limit,
    /// Whether a refused load is counted and sent again until it is acknowledged, as by a retrying client; else it ends the run.
    pub sends_again: bool,
    /// Time from one request to the next, of all connections together. Requests that find no free connection are sent as soon as
    /// there is one. Without a pace, each connection sends its next request at once.
    pub pace: Option<Duration>,
}

impl From<Limit> for Course {
    fn from(limit: Limit) -> Self {
        Self { limit, sends_again: false, pace: None }
    }
}

/// The results of a run. Only acknowledgements within the measured time count, except in `rows_in_all`.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub rows: u64,
    pub payload_bytes: u64,
    pub requests: u64,
    pub seconds: f64,
    /// Nanoseconds from request to answer.
    pub latencies: Histogram<u64>,
    /// Rows acknowledged from the first to the last request, numbered from [`FIRST_ID`] on.
    pub rows_in_all: u64,
    pub bytes_in_all: u64,
    /// Rows per second of each tenth of the measured bytes; for [`Limit::Bytes`] only.
    pub tenths: Vec<f64>,
    /// Answers that refused a load, which was sent again.
    pub refusals: u64,
    /// The text of the first refusal.
    pub first_refusal: Option<String>,
}

/// Callbacks during a run.
pub trait Watch {
    /// The measured time starts.
    ///
    /// # Errors
    /// An error that ends the run.
    fn measuring(&mut self) -> Result<(), BenchError>;
    /// The measured time has ended; requests under way are still answered.
    ///
    /// # Errors
    /// An error that ends the run.
    fn measured(&mut self) -> Result<(), BenchError>;
    /// Called about four times a second with the rows acknowledged so far.
    fn progress(&mut self, elapsed: Duration, rows: u64);
}

/// Runs the loop.
///
/// # Errors
/// A load failed, a connection broke, or nothing was answered for two minutes.
pub fn run(
    connections: &mut [Connection],
    course: impl Into<Course>,
    watch: &mut dyn Watch,
) -> Result<Outcome, BenchError> {
    let mut poll = Poll::new()?;
    for (number, connection) in connections.iter_mut().enumerate() {
        poll.registry().register(
            &mut connection.stream,
            Token(number),
            Interest::READABLE | Interest::WRITABLE,
        )?;
    }
    let course = course.into();
    let mut state = State::new(course, watch)?;
    for (number, connection) in connections.iter_mut().enumerate() {
        state.begin_next(number, connection)?;
    }
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; RECEIVE_BYTES];
    let mut last_answer = Instant::now();
    while state.under_way > 0 || !state.idle.is_empty() {
        poll.poll(&mut events, Some(state.patience()))
            .or_else(|error| if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) })?;
        for event in &events {
            let number = event.token().0;
            let connection = &mut connections[number];
            if event.is_writable() && connection.is_waiting {
                connection.send()?;
            }
            if !event.is_readable() {
                continue;
            }
            // An answer is the last event of its connection, and the next answer is a new event.
            if connection.is_waiting
                && let Some(reply) = connection.receive(&mut buffer)?
            {
                last_answer = Instant::now();
                match reply {
                    Reply::Loaded(rows) => {
                        state.acknowledged(connection, rows, last_answer)?;
                        state.begin_next(number, connection)?;
                    }
                    Reply::Accepted => {
                        let rows = connection.request().ids.len() as u64;
                        state.acknowledged(connection, rows, last_answer)?;
                        state.begin_next(number, connection)?;
                    }
                    Reply::Refused(reason) if course.sends_again => {
                        state.outcome.refusals += 1;
                        state.outcome.first_refusal.get_or_insert(reason);
                        connection.begin_again()?;
                    }
                    Reply::Refused(reason) => return Err(BenchError::Load(reason)),
                }
            }
        }
        state.tick()?;
        while let Some(number) = state.next_idle() {
            state.begin_next(number, &mut connections[number])?;
        }
        if state.under_way > 0 && last_answer.elapsed() > PATIENCE {
            return Err(BenchError::Load(format!("no answer for {} s", PATIENCE.as_secs())));
        }
    }
    state.finish()
}

struct State<'a> {
    limit: Limit,
    pace: Option<Duration>,
    /// When the pace wants the next request sent.
    due: Instant,
    /// Connections that wait until a request is due.
    idle: VecDeque<usize>,
    watch: &'a mut dyn Watch,
    started: Instant,
    measuring_since: Option<Instant>,
    measured_until: Option<Instant>,
    shown: Instant,
    under_way: usize,
    rows_begun: u64,
    bytes_begun: u64,
    tenths: Vec<Instant>,
    outcome: Outcome,
}

impl<'a> State<'a> {
    fn new(course: Course, watch: &'a mut dyn Watch) -> Result<Self, BenchError> {
        let now = Instant::now();
        let mut state = Self {
            limit: course.limit,
            pace: course.pace,
            due: now,
            idle: VecDeque::new(),
            watch,
            started: now,
            measuring_since: None,
            measured_until: None,
            shown: now,
            under_way: 0,
            rows_begun: 0,
            bytes_begun: 0,
            tenths: Vec::new(),
            outcome: Outcome {
                rows: 0,
                payload_bytes: 0,
                requests: 0,
                seconds: 0.0,
                latencies: Histogram::new(3).expect("three digits are legal"),
                rows_in_all: 0,
                bytes_in_all: 0,
                tenths: Vec::new(),
                refusals: 0,
                first_refusal: None,
            },
        };
        state.tick()?;
        Ok(state)
    }

    fn is_over(&self) -> bool {
        match self.limit {
            Limit::Time { .. } => self.measured_until.is_some(),
            Limit::Bytes(bytes) => self.bytes_begun >= bytes,
            Limit::Rows(rows) => self.rows_begun >= rows,
        }
    }

    /// Longest wait for events.
    fn patience(&self) -> Duration {
        let longest = Duration::from_millis(250);
        if self.idle.is_empty() {
            longest
        } else {
            longest.min(self.due.saturating_duration_since(Instant::now()))
        }
    }

    /// Returns a connection for a request that is due.
    fn next_idle(&mut self) -> Option<usize> {
        if self.is_over() {
            self.idle.clear();
        }
        if self.due > Instant::now() { None } else { self.idle.pop_front() }
    }

    /// Begins the connection's next request, or lets it wait for the pace.
    fn begin_next(&mut self, number: usize, connection: &mut Connection) -> Result<(), BenchError> {
        if self.is_over() {
            return Ok(());
        }
        let due = self.pace.map(|_| self.due);
        if let Some(pace) = self.pace {
            if self.due > Instant::now() {
                self.idle.push_back(number);
                return Ok(());
            }
            self.due += pace;
        }
        let rows = connection.request().ids.len() as u64;
        if self.rows_begun + rows > ROWS_MAX {
            return Err(BenchError::Load(format!("a run has at most {ROWS_MAX} rows")));
        }
        let first_id = FIRST_ID + self.rows_begun as u32;
        self.rows_begun += rows;
        self.bytes_begun += connection.request().payload_bytes;
        self.under_way += 1;
        connection.begin(first_id, due)
    }

    fn acknowledged(
        &mut self,
        connection: &mut Connection,
        loaded: u64,
        now: Instant,
    ) -> Result<(), BenchError> {
        let request = connection.request();
        let (rows, bytes) = (request.ids.len() as u64, request.payload_bytes);
        if loaded != rows {
            return Err(BenchError::Load(format!("{rows} rows were sent, {loaded} acknowledged as loaded")));
        }
        let outcome = &mut self.outcome;
        outcome.rows_in_all += rows;
        outcome.bytes_in_all += bytes;
        if self.measuring_since.is_some() && self.measured_until.is_none() {
            outcome.rows += rows;
            outcome.payload_bytes += bytes;
            outcome.requests += 1;
            let took = now.duration_since(connection.sent_at).as_nanos() as u64;
            outcome.latencies.record(took).expect("the histogram grows as far as it must");
            if let Limit::Bytes(all) = self.limit
                && outcome.payload_bytes >= all / 10 * (self.tenths.len() as u64 + 1)
            {
                self.tenths.push(now);
            }
        }
        self.under_way -= 1;
        connection.turn();
        Ok(())
    }

    /// Moves from warming up to measuring to the end.
    fn tick(&mut self) -> Result<(), BenchError> {
        let now = Instant::now();
        let (warm_up, measured) = match self.limit {
            Limit::Time { warm_up, measured } => (warm_up, measured),
            Limit::Bytes(_) | Limit::Rows(_) => (Duration::ZERO, Duration::MAX),
        };
        if self.measuring_since.is_none() && now.duration_since(self.started) >= warm_up {
            self.watch.measuring()?;
            self.measuring_since = Some(Instant::now());
        }
        if self.measured_until.is_none()
            && self.measuring_since.is_some_and(|since| now.saturating_duration_since(since) >= measured)
        {
            self.measured_until = Some(now);
            self.watch.measured()?;
        }
        if now.duration_since(self.shown) >= Duration::from_millis(250) {
            self.shown = now;
            self.watch.progress(now.duration_since(self.started), self.outcome.rows_in_all);
        }
        Ok(())
    }

    fn finish(self) -> Result<Outcome, BenchError> {
        let since = self.measuring_since.unwrap_or(self.started);
        if self.measured_until.is_none() {
            self.watch.measured()?;
        }
        let until = self.measured_until.unwrap_or_else(Instant::now);
        let mut outcome = self.outcome;
        outcome.seconds = until.duration_since(since).as_secs_f64();
        let rows_of_tenth = outcome.rows as f64 / 10.0;
        let mut begin = since;
        for end in self.tenths {
            outcome.tenths.push(rows_of_tenth / end.duration_since(begin).as_secs_f64());
            begin = end;
        }
        Ok(outcome)
    }
}
