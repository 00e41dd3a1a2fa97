//! The clients: each sends one load after another, and each of them until it is known to be stored.

use super::Keyed;
use super::books::{DECOY, Differs, Door, Loaded, Record};
use super::check::{KeyState, keyed_state};
use super::connection::{Answered, Connection, Name, Sending};
use super::gate::Up;
use super::receipts::{Look, Wait};
use crate::books::Mode;
use crate::doors::ROOT;
use crate::http;
use crate::load::{Load, TABLES};
use crate::writers::{AFTER_REFUSAL, PATIENCE};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// One in this many loads is not waited for as long as it takes.
const HURRIED_ONE_IN: u32 = 100;
/// How long these are waited for, in microseconds, at most.
const HURRIED_US_MAX: u64 = 40_000;
/// One in this many repetitions asks for another mode.
const OTHER_MODE_ONE_IN: u32 = 4;
/// One in this many repetitions comes after a while.
const LATER_ONE_IN: u32 = 3;
/// How long that is at most, in milliseconds.
const LATER_MS_MAX: u64 = 50;
/// One in this many loads is large.
const LARGE_ONE_IN: u32 = 2000;
/// One in this many loads is followed by an older one that is sent again.
const OLD_ONE_IN: u32 = 60;
/// One in this many loads is followed by other bytes with its name.
const OTHER_BYTES_ONE_IN: u32 = 150;
/// One in this many loads without an answer, and one in ten times as many others, is asked for; each that was repeated is.
const ASKED_ONE_IN: u32 = 10;
/// An offset that no channel comes to.
const FAR_OFFSET: u64 = 1 << 50;

/// A way of a client: door, mode, and whether loads have keys or places in a channel.
type Way = (Door, Mode, bool);

/// The ways of the first clients: each once.
const WAYS: [Way; 16] = [
    (Door::StreamLoad, Mode::Async, true),
    (Door::Text, Mode::Sync, true),
    (Door::Prepared, Mode::Async, true),
    (Door::HttpStream, Mode::Off, true),
    (Door::StreamLoad, Mode::Async, false),
    (Door::Text, Mode::Async, true),
    (Door::Prepared, Mode::Sync, true),
    (Door::HttpStream, Mode::Async, true),
    (Door::StreamLoad, Mode::Sync, true),
    (Door::Text, Mode::Off, true),
    (Door::Prepared, Mode::Sync, false),
    (Door::HttpStream, Mode::Sync, true),
    (Door::StreamLoad, Mode::Off, true),
    (Door::Text, Mode::Async, false),
    (Door::Prepared, Mode::Off, true),
    (Door::HttpStream, Mode::Off, false),
];
/// The ways of further clients: those in which loads share groups, so that there are more loads.
const SHARING_WAYS: [Way; 8] = [
    (Door::StreamLoad, Mode::Async, true),
    (Door::Text, Mode::Async, true),
    (Door::Prepared, Mode::Async, true),
    (Door::HttpStream, Mode::Async, true),
    (Door::StreamLoad, Mode::Sync, true),
    (Door::Text, Mode::Async, true),
    (Door::StreamLoad, Mode::Async, false),
    (Door::Text, Mode::Async, false),
];

/// A channel when its client has ended.
#[derive(Clone, Debug)]
pub(super) struct ChannelEnd {
    pub table: &'static str,
    pub channel: String,
    pub next: u64,
}

/// How one attempt to send a load ended.
enum Sent {
    Answered(Answered),
    /// There was no answer, for that reason.
    Broken(&'static str),
    /// There will be no server any more.
    Over,
}

/// A client.
struct Sender<'a> {
    keyed: &'a Keyed,
    rng: StdRng,
    door: Door,
    mode: Mode,
    number: usize,
    connection: Option<(Connection, Up)>,
    /// Where the channel's next load begins.
    offset: u64,
    /// Of a reader of tables that commit soon, and of the one of the table whose groups take seconds.
    looks: [SyncSender<Look>; 2],
}

/// Sends loads until there are enough.
pub(super) fn work(keyed: &Keyed, number: usize, looks: [SyncSender<Look>; 2]) {
    let way = WAYS.get(number).unwrap_or(&SHARING_WAYS[number % SHARING_WAYS.len()]);
    let (door, mode, has_key) = *way;
    let rng = StdRng::seed_from_u64(keyed.seed ^ (number as u64 + 1) << 32);
    let mut sender = Sender { keyed, rng, door, mode, number, connection: None, offset: 0, looks };
    while !keyed.is_over.load(Ordering::Relaxed) {
        if sender.send_new(has_key).is_none() {
            break;
        }
    }
    if !has_key {
        keyed.channels.lock().push(ChannelEnd {
            table: TABLES[sender.table_of_channel()].0,
            channel: sender.channel(),
            next: sender.offset,
        });
    }
    keyed.clients.fetch_sub(1, Ordering::SeqCst);
}

impl Sender<'_> {
    fn channel(&self) -> String {
        format!("client {}", self.number)
    }

    fn table_of_channel(&self) -> usize {
        self.number % (TABLES.len() - 1)
    }

    /// A table; the one whose groups take seconds seldom, and not if that would be waited for.
    fn table(&mut self) -> usize {
        match self.rng.random_range(0..100) {
            0..40 => 0,
            40..70 => 1,
            70..95 => 2,
            _ if self.mode == Mode::Sync => 0,
            _ => TABLES.len() - 1,
        }
    }

    /// Sends a load until it is stored, and then perhaps looks at it. `None`: there is nothing more to send.
    fn send_new(&mut self, has_key: bool) -> Option<()> {
        let table = if has_key { self.table() } else { self.table_of_channel() };
        let is_large = self.door != Door::Prepared && self.rng.random_ratio(1, LARGE_ONE_IN);
        let rows = (!is_large).then(|| self.rng.random_range(1..=5));
        let load = self.keyed.books.begin(self.door, has_key, table, rows)?;
        let name = if has_key {
            Name::Key(self.keyed.key_of(load.id))
        } else {
            let next =
                self.offset + if self.rng.random_bool(0.9) { 1 } else { self.rng.random_range(2..100) };
            Name::Channel { channel: self.channel(), offset: self.offset, next }
        };
        let answer = self.until_stored(load, &name)?;
        if let Name::Channel { next, .. } = &name {
            self.offset = *next;
        }
        self.keyed.stored(&load, self.mode, has_key, is_large);
        self.look_for(&load, &answer);
        if self.rng.random_ratio(1, OTHER_BYTES_ONE_IN) {
            self.send_wrong(&load, &name);
        }
        if has_key && self.rng.random_ratio(1, OLD_ONE_IN) {
            self.send_old();
        }
        if has_key && (answer.is_repeated || self.rng.random_ratio(1, 10 * ASKED_ONE_IN)) {
            self.ask_for_stored(&load, &answer);
        }
        Some(())
    }

    /// Sends a load again and again. `None`: it can't be stored.
    fn until_stored(&mut self, load: Load, name: &Name) -> Option<Loaded> {
        let mut mode = self.mode;
        let mut promised = None;
        let mut refused_since = None;
        loop {
            match self.send(load, name, mode) {
                Sent::Answered(Answered::Loaded(answer)) => {
                    self.compare(load.id, &answer);
                    if let Some(KeyState { txn, label, .. }) = promised
                        && (txn, label) != (answer.txn, answer.label)
                    {
                        self.differs(format!("load {} had {promised:?} and got {answer:?}", load.id));
                    }
                    return Some(answer);
                }
                Sent::Answered(Answered::Refused(message)) => {
                    let is_wrong = ["other bytes", "already exists", "out of range"];
                    let since = refused_since.get_or_insert_with(Instant::now).elapsed();
                    if is_wrong.iter().any(|text| message.contains(text)) || since > PATIENCE {
                        self.keyed.violation(format!("{load:?} with {name:?} was refused: {message}"));
                        return None;
                    }
                    self.keyed.refused(&message);
                    self.keyed.figures.lock().repeated("refused");
                    self.keyed.gate.pause(AFTER_REFUSAL);
                }
                Sent::Broken(reason) => {
                    self.keyed.figures.lock().repeated(reason);
                    if let Name::Key(key) = name
                        && self.rng.random_ratio(1, ASKED_ONE_IN)
                    {
                        promised = self.ask(&load, key).filter(KeyState::is_stored).or(promised);
                    }
                    if self.rng.random_ratio(1, LATER_ONE_IN) {
                        let later = Duration::from_millis(self.rng.random_range(0..LATER_MS_MAX));
                        self.keyed.gate.pause(later);
                    }
                }
                Sent::Over => return None,
            }
            if self.rng.random_ratio(1, OTHER_MODE_ONE_IN) {
                mode = [Mode::Async, Mode::Sync, Mode::Off][self.rng.random_range(0..3)];
            }
        }
    }

    /// Sends a load once, and hurries now and then.
    fn send(&mut self, load: Load, name: &Name, mode: Mode) -> Sent {
        let keyed = self.keyed;
        let Some(up) = keyed.gate.wait() else { return Sent::Over };
        if self.connection.as_ref().is_none_or(|(_, of)| *of != up) {
            self.connection = None;
            match Connection::to(self.door, (keyed.proxy.mysql_port, keyed.proxy.http_port), PATIENCE) {
                Ok(connection) => self.connection = Some((connection, up)),
                Err(error) => return Sent::Broken(self.broken(&error, up, None, false)),
            }
        }
        let Some((connection, _)) = &mut self.connection else { return Sent::Over };
        let hurry = self.rng.random_ratio(1, HURRIED_ONE_IN);
        let time = Duration::from_micros(self.rng.random_range(200..HURRIED_US_MAX));
        let by_variables = self.rng.random_ratio(1, 5);
        let sending = Sending { load, name, mode, by_variables };
        let port = connection.local_port().ok();
        let mut send = || -> io::Result<Answered> {
            if hurry {
                connection.set_patience(time)?;
            }
            let answer = connection.send(self.door, &sending)?;
            if hurry {
                connection.set_patience(PATIENCE)?;
            }
            Ok(answer)
        };
        match send() {
            Ok(answer) => {
                if let Answered::Loaded(loaded) = &answer
                    && loaded.is_repeated
                {
                    keyed.figures.lock().answered_repeated += 1;
                }
                Sent::Answered(answer)
            }
            Err(error) => {
                self.connection = None;
                Sent::Broken(self.broken(&error, up, port, hurry))
            }
        }
    }

    /// Why there was no answer. The server's fault is a violation.
    fn broken(&self, error: &io::Error, up: Up, port: Option<u16>, hurry: bool) -> &'static str {
        let cut = port.and_then(|port| self.keyed.proxy.cut_of(port));
        if hurry && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            return "timed_out";
        }
        if let Some(cut) = cut {
            return cut.name();
        }
        if self.keyed.gate.was_killed(up) {
            return "killed";
        }
        let (door, mode) = (self.door, self.mode);
        self.keyed
            .violation(format!("a connection ({door:?}, {mode:?}) broke while the server ran: {error}"));
        "broken"
    }

    fn compare(&self, id: u64, answer: &Loaded) {
        if let Err(Differs(text)) = self.keyed.books.acknowledge(id, answer) {
            self.differs(text);
        }
    }

    fn differs(&self, text: String) {
        self.keyed.figures.lock().differing_answers += 1;
        self.keyed.violation(text);
    }

    /// Lets another connection look for a load.
    fn look_for(&mut self, load: &Load, answer: &Loaded) {
        if !self.rng.random_ratio(1, self.keyed.looked_for_one_in) {
            return;
        }
        let wait = match self.rng.random_range(0..4) {
            0..2 if answer.is_visible => Wait::Needless,
            0 | 2 => Wait::ReadAfter(answer.txn),
            _ => Wait::Sync(answer.txn),
        };
        let is_slow = load.table == TABLES.len() - 1;
        // A reader ends only after its clients.
        let _ = self.looks[usize::from(is_slow)].send(Look { load: *load, wait });
    }

    /// Sends other bytes with a name that is used, or an offset that can't be: nothing of it may be stored.
    fn send_wrong(&mut self, load: &Load, name: &Name) {
        let decoy = Load { id: load.id + DECOY, ..*load };
        let (name, expected) = match name {
            Name::Channel { channel, offset, next } => match self.rng.random_range(0..3) {
                0 if *offset > 0 => {
                    let old = Name::Channel { channel: channel.clone(), offset: 0, next: *offset };
                    (old, "already exists in channel")
                }
                1 => {
                    let (offset, next) = (FAR_OFFSET, FAR_OFFSET + next);
                    (Name::Channel { channel: channel.clone(), offset, next }, "out of range in channel")
                }
                _ => (name.clone(), "used for other bytes"),
            },
            Name::Key(_) => (name.clone(), "used for other bytes"),
        };
        match self.send(decoy, &name, self.mode) {
            Sent::Answered(Answered::Loaded(answer)) => self.keyed.violation(format!(
                "load {} was acknowledged, and other bytes with {name:?} got {answer:?}",
                load.id
            )),
            Sent::Answered(Answered::Refused(message)) if message.contains(expected) => {
                let mut figures = self.keyed.figures.lock();
                if expected == "used for other bytes" {
                    figures.other_bytes_refused += 1;
                } else {
                    figures.offsets_refused += 1;
                }
            }
            Sent::Answered(Answered::Refused(message)) => self.keyed.refused(&message),
            Sent::Broken(_) | Sent::Over => {}
        }
    }

    /// Sends again a load that was acknowledged some time ago, of any client with the same way.
    fn send_old(&mut self) {
        let id = self.rng.random_range(0..self.keyed.books.len());
        let is_same =
            |record: &Record| record.door == self.door && record.has_key() && record.is_acknowledged();
        let Some(record) = self.keyed.books.record(id).filter(is_same) else { return };
        let name = Name::Key(self.keyed.key_of(id));
        match self.send(record.load(id), &name, self.mode) {
            Sent::Answered(Answered::Loaded(answer)) => {
                self.compare(id, &answer);
                self.keyed.figures.lock().late_repeats += 1;
            }
            Sent::Answered(Answered::Refused(message)) if message.contains("other bytes") => {
                self.differs(format!(
                    "load {id}, which has {record:?}, was refused when sent again: {message}"
                ));
            }
            Sent::Answered(Answered::Refused(message)) => self.keyed.refused(&message),
            Sent::Broken(_) | Sent::Over => {}
        }
    }

    /// Asks for the state of an acknowledged load's key.
    fn ask_for_stored(&self, load: &Load, answer: &Loaded) {
        let Some(state) = self.ask(load, &self.keyed.key_of(load.id)) else { return };
        if !state.is_stored() || (state.txn, state.label) != (answer.txn, answer.label) {
            let (door, mode) = (self.door, self.mode);
            self.differs(format!(
                "load {} ({door:?}, {mode:?}) got {answer:?}, and its key {state:?}",
                load.id
            ));
        }
    }

    /// Asks for a key's state, past the proxy. `None`: the server was killed.
    fn ask(&self, load: &Load, key: &str) -> Option<KeyState> {
        let up = self.keyed.gate.up()?;
        let state = http::Client::connect(&up.doors(), ROOT, PATIENCE)
            .and_then(|mut client| keyed_state(&mut client, load.table_name(), key));
        match state {
            Ok(state) => {
                self.keyed.figures.lock().states_asked += 1;
                Some(state)
            }
            Err(error) => {
                if !self.keyed.gate.was_killed(up) {
                    self.keyed.violation(format!("the state of {key} could not be asked for: {error}"));
                }
                None
            }
        }
    }
}
