//! The writers: each sends one load after another in its way until the server is killed.

use crate::books::{Books, Fate, Mode};
use crate::doors::Doors;
use crate::load::{COLUMNS, DATABASE, Load, TABLES};
use crate::mysql::Client;
use crate::{http, mysql};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tributary_client::{ClientError, OkAnswer, Value};

/// How long a client waits for an answer before the server counts as hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long a client waits after a refusal.
pub(crate) const AFTER_REFUSAL: Duration = Duration::from_millis(20);
/// Rows of the larger prepared INSERT.
const PREPARED_ROWS: u32 = 5;
/// One in this many visible loads is looked up at once by its client.
const LOOKED_UP_ONE_IN: u32 = 40;
/// One in this many synchronous loads may go to the table whose groups take seconds.
const SLOW_SYNC_ONE_IN: u32 = 50;

/// State shared by the clients of one round.
#[derive(Debug)]
pub(crate) struct Round {
    pub number: u32,
    pub doors: Doors,
    pub books: Books,
    /// Nothing new is sent.
    pub is_over: AtomicBool,
    /// The server was killed on purpose: connections may break.
    pub is_killed: AtomicBool,
    /// Loads are refused for want of space, and clients are to try again.
    pub expects_refusals: bool,
}

/// State shared by all rounds.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub next_load: AtomicU64,
    /// The most rows that a query has seen in each table.
    pub seen: [AtomicU64; TABLES.len()],
    pub queries: AtomicU64,
    pub violations: Mutex<Vec<String>>,
}

impl Shared {
    pub fn violation(&self, text: String) {
        self.violations.lock().push(text);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Text(Mode),
    Prepared(Mode),
    Explicit,
    Stream(Mode),
    StreamLarge,
    TwoPhase,
}

impl Way {
    /// The user of the writers, if each kind has one.
    const fn user(self) -> &'static str {
        match self {
            Self::Text(_) => "texts",
            Self::Prepared(_) => "prepared",
            Self::Explicit => "explicit",
            Self::Stream(_) | Self::StreamLarge => "streams",
            Self::TwoPhase => "two_phase",
        }
    }
}

const WAYS: [Way; 12] = [
    Way::Text(Mode::Async),
    Way::Stream(Mode::Async),
    Way::Prepared(Mode::Sync),
    Way::Stream(Mode::Off),
    Way::TwoPhase,
    Way::Text(Mode::Sync),
    Way::Prepared(Mode::Async),
    Way::Stream(Mode::Sync),
    Way::Explicit,
    Way::Text(Mode::Off),
    Way::StreamLarge,
    Way::Prepared(Mode::Off),
];

/// Why a writer's connection is of no use any more.
pub(crate) struct Gone(pub String);

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<ClientError> for Gone {
    fn from(error: ClientError) -> Self {
        Self(error.to_string())
    }
}

/// Writes until the round is over.
pub(crate) fn write(shared: &Shared, round: &Round, number: usize, seed: u64) {
    let rng = StdRng::seed_from_u64(seed ^ (number as u64) << 32 ^ u64::from(round.number));
    let way = WAYS[number % WAYS.len()];
    let mut writer = Writer { shared, round, rng, user: way.user() };
    let outcome = match way {
        Way::Text(mode) => writer.texts(mode),
        Way::Prepared(mode) => writer.prepared(mode),
        Way::Explicit => writer.explicit(),
        Way::Stream(mode) => writer.streams(mode, false),
        Way::StreamLarge => writer.streams(Mode::Off, true),
        Way::TwoPhase => writer.two_phase(),
    };
    if let Err(Gone(reason)) = outcome
        && !round.is_killed.load(Ordering::SeqCst)
    {
        shared.violation(format!("a connection ({way:?}) broke while the server ran: {reason}"));
    }
}

/// The label of a load.
pub(crate) fn label(load: &Load) -> String {
    format!("torture_{}", load.id)
}

/// Whether an error says that the load may still become visible.
pub(crate) fn is_undecided(message: &str) -> bool {
    message.contains("it goes on") || message.contains("outcome of the load is not known")
}

struct Writer<'a> {
    shared: &'a Shared,
    round: &'a Round,
    rng: StdRng,
    user: &'static str,
}

impl Writer<'_> {
    fn next(&mut self, mode: Mode) -> Load {
        let id = self.shared.next_load.fetch_add(1, Ordering::Relaxed);
        let load = Load::random(id, self.round.number, &mut self.rng);
        if mode == Mode::Sync && !self.rng.random_ratio(1, SLOW_SYNC_ONE_IN) { load.soon() } else { load }
    }

    fn is_over(&self) -> bool {
        self.round.is_over.load(Ordering::Relaxed)
    }

    fn connect(&self, mode: Mode) -> Result<Client, Gone> {
        let mut client = mysql::connect(&self.round.doors, self.user, Some(DATABASE))?;
        client.run(&format!("SET group_commit = {}", mode.setting()))?;
        Ok(client)
    }

    fn texts(&mut self, mode: Mode) -> Result<(), Gone> {
        let mut client = self.connect(mode)?;
        while !self.is_over() {
            let load = self.next(mode);
            self.round.books.sent(load, mode, Fate::Unknown);
            let answer = client.run(&load.insert());
            self.answered(&load, mode, answer, &mut client)?;
        }
        Ok(())
    }

    fn prepared(&mut self, mode: Mode) -> Result<(), Gone> {
        let mut client = self.connect(mode)?;
        let mut statements = Vec::new();
        for (table, _) in TABLES {
            let row = "(?, ?, ?, ?, ?, ?)";
            let one = client.prepare(&format!("INSERT INTO {table} ({COLUMNS}) VALUES {row}"))?;
            let rows = [row; PREPARED_ROWS as usize].join(", ");
            let many = client.prepare(&format!("INSERT INTO {table} ({COLUMNS}) VALUES {rows}"))?;
            statements.push((one, many));
        }
        while !self.is_over() {
            let mut load = self.next(mode);
            load.rows = if self.rng.random_bool(0.7) { 1 } else { PREPARED_ROWS };
            let (one, many) = statements[load.table];
            self.round.books.sent(load, mode, Fate::Unknown);
            let answer = client.execute(if load.rows == 1 { one } else { many }, &values(&load));
            self.answered(&load, mode, answer, &mut client)?;
        }
        Ok(())
    }

    fn explicit(&mut self) -> Result<(), Gone> {
        let mode = Mode::Off;
        let mut client = self.connect(mode)?;
        while !self.is_over() {
            let load = self.next(mode);
            self.round.books.sent(load, mode, Fate::Unknown);
            let answer = explicit_transaction(&mut client, &load);
            let is_refused = matches!(answer, Err(ClientError::Refused(_)));
            self.answered(&load, mode, answer, &mut client)?;
            if is_refused {
                // Nothing is open if it was the COMMIT that failed.
                if let Err(ClientError::Gone(error)) = client.run("ROLLBACK") {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn answered(
        &mut self,
        load: &Load,
        mode: Mode,
        answer: Result<OkAnswer, ClientError>,
        client: &mut Client,
    ) -> Result<(), Gone> {
        match answer {
            Ok(_) => {
                self.round.books.is(load, Fate::Acknowledged);
                if mode != Mode::Async && self.rng.random_ratio(1, LOOKED_UP_ONE_IN) {
                    self.look_up(load, client)?;
                }
                Ok(())
            }
            Err(ClientError::Refused(error)) => {
                self.refused(load, &error.message);
                Ok(())
            }
            Err(ClientError::Gone(error)) => Err(error.into()),
        }
    }

    fn refused(&self, load: &Load, message: &str) {
        if is_undecided(message) {
            return;
        }
        self.round.books.refused(load, message);
        if self.round.expects_refusals {
            std::thread::sleep(AFTER_REFUSAL);
        }
    }

    /// Verifies that rows acknowledged as visible are visible.
    fn look_up(&self, load: &Load, client: &mut Client) -> Result<(), Gone> {
        let sql = format!("SELECT COUNT(*) FROM {} WHERE load_id = {}", load.table_name(), load.id);
        let rows = client.rows(&sql)?.rows;
        let found = rows.first().and_then(|row| row.first()?.as_deref()?.parse::<u32>().ok());
        if found != Some(load.rows) {
            self.shared.violation(format!(
                "load {} of {} was acknowledged as visible with {} rows, and a query found {found:?}",
                load.id,
                load.table_name(),
                load.rows
            ));
        }
        Ok(())
    }

    fn streams(&mut self, mode: Mode, is_large: bool) -> Result<(), Gone> {
        let mut client = http::Client::connect(&self.round.doors, self.user, PATIENCE)?;
        while !self.is_over() {
            let mut load = self.next(mode);
            if is_large {
                load = load.large(&mut self.rng);
            }
            let label = label(&load);
            let headers: &[(&str, &str)] =
                if mode == Mode::Off { &[("label", &label)] } else { &[("group_commit", mode.setting())] };
            let fate = if mode == Mode::Off { Fate::Labelled } else { Fate::Unknown };
            self.round.books.sent(load, mode, fate);
            let answer = client.load(load.table_name(), headers, &load.csv())?;
            self.stream_answered(&load, &answer, Fate::Acknowledged);
        }
        Ok(())
    }

    fn stream_answered(&self, load: &Load, answer: &http::Answer, fate: Fate) {
        if answer.text("Status") == "Success" {
            self.round.books.is(load, fate);
        } else {
            self.refused(load, &answer.text("Message"));
        }
    }

    fn two_phase(&mut self) -> Result<(), Gone> {
        let mut client = http::Client::connect(&self.round.doors, self.user, PATIENCE)?;
        while !self.is_over() {
            let load = self.next(Mode::TwoPhase);
            let label = label(&load);
            self.round.books.sent(load, Mode::TwoPhase, Fate::Preparing);
            let headers = [("label", label.as_str()), ("two_phase_commit", "true")];
            let answer = client.load(load.table_name(), &headers, &load.csv())?;
            self.stream_answered(&load, &answer, Fate::Prepared);
            if answer.text("Status") == "Success" {
                self.second_phase(&load, &mut client)?;
            }
        }
        Ok(())
    }

    fn second_phase(&mut self, load: &Load, client: &mut http::Client) -> Result<(), Gone> {
        let (operation, under_way, done) = match self.rng.random_range(0..10) {
            0..7 => ("commit", Fate::Committing, Fate::Acknowledged),
            7..9 => ("abort", Fate::Aborting, Fate::Refused),
            _ => return Ok(()),
        };
        self.round.books.is(load, under_way);
        let answer = client.second_phase(&label(load), operation)?;
        if answer.text("status") == "Success" {
            self.round.books.is(load, done);
        } else if self.round.expects_refusals {
            // It is still prepared; the round's end decides.
            std::thread::sleep(AFTER_REFUSAL);
        } else {
            self.shared.violation(format!(
                "the {operation} of prepared load {} was refused: {}",
                load.id,
                answer.text("msg")
            ));
        }
        Ok(())
    }
}

fn explicit_transaction(client: &mut Client, load: &Load) -> Result<OkAnswer, ClientError> {
    client.run("BEGIN")?;
    let half = load.rows / 2;
    for parts in [0..half, half..load.rows] {
        if !parts.is_empty() {
            let values = load.sql_values(parts);
            client.run(&format!("INSERT INTO {} ({COLUMNS}) VALUES {values}", load.table_name()))?;
        }
    }
    client.run("COMMIT")
}

pub(crate) fn values(load: &Load) -> Vec<Value> {
    (0..load.rows)
        .flat_map(|part| {
            let numbers = [load.id, part.into(), load.rows.into(), load.round.into(), load.check_of(part)];
            numbers.map(Value::BigInt).into_iter().chain([Value::Text(load.pad(part))])
        })
        .collect()
}
