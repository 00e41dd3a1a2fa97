//! Loads with names: idempotency keys and offsets of channels. Clients send each one until it is answered, through a proxy that
//! cuts connections, to a server that is killed again and again; in the end each is there once.
//!
//! Meanwhile other connections read loads by their receipts, acknowledged loads are sent again and get their first answers, and
//! other bytes with used names are refused.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `gate` | where the server is; clients wait while there is none |
//! | `proxy` | the proxy |
//! | `books` | sixteen bytes for each load |
//! | `connection` | a load and its name, through each way into the server |
//! | `client` | the clients that send |
//! | `receipts` | the readers |
//! | `check` | the books against the tables |
//! | `figures` | the report's figures |

mod books;
mod check;
mod client;
mod connection;
mod figures;
mod gate;
mod proxy;
mod receipts;

pub use figures::KeyedFigures;

use crate::TortureError;
use crate::books::{Mode, without_numbers};
use crate::check::NoCheck;
use crate::doors::ROOT;
use crate::load::{DATABASE, Load};
use crate::mysql::connect;
use crate::report::{ModeFigures, grouped};
use crate::run::{Torture, create_plain_tables};
use crate::server::Server;
use crate::writers::PATIENCE;
use books::Books;
use client::ChannelEnd;
use gate::Gate;
use parking_lot::Mutex;
use proxy::Proxy;
use rand::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Readers of loads by their receipts. The last one looks in the table whose groups take seconds, the others in the others.
const READERS: usize = 5;
/// Loads that wait for a reader, at most; then clients wait.
const LOOKS_MAX: usize = 4096;
/// How often it is looked whether it is time for a kill.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Loads compared after a kill: the last ones, and as many from anywhere.
const SAMPLED: u64 = 4000;
/// The age in ms and the bytes at which rows are flushed: never so often that only few loads are left.
const FLUSHES: [(&str, &str); 4] =
    [("100", "50000"), ("250", "200000"), ("1000", "2000000"), ("60000", "67108864")];
/// The length of every long key.
const LONG_KEY_BYTES: usize = 255;

/// A run under way, as clients, readers and checks share it.
#[derive(Debug)]
pub(crate) struct Keyed {
    seed: u64,
    gate: Gate,
    proxy: Proxy,
    books: Books,
    figures: Mutex<KeyedFigures>,
    acknowledged: Mutex<BTreeMap<Mode, ModeFigures>>,
    refusals: Mutex<BTreeMap<String, u64>>,
    /// Of clients that have ended.
    channels: Mutex<Vec<ChannelEnd>>,
    violations: Mutex<Vec<String>>,
    /// No new load is sent.
    is_over: AtomicBool,
    /// Clients and readers that have not ended.
    clients: AtomicUsize,
    looked_for_one_in: u32,
}

impl Keyed {
    fn new(torture: &Torture<'_>) -> Result<Self, TortureError> {
        let options = torture.options;
        Ok(Self {
            seed: options.seed,
            gate: Gate::default(),
            proxy: Proxy::new(options.seed)?,
            books: Books::new(options.loads.unwrap_or(u64::MAX)),
            figures: Mutex::default(),
            acknowledged: Mutex::default(),
            refusals: Mutex::default(),
            channels: Mutex::default(),
            violations: Mutex::default(),
            is_over: AtomicBool::new(false),
            clients: AtomicUsize::new(options.writers.max(1) + READERS),
            looked_for_one_in: options.looked_for_one_in.max(1),
        })
    }

    fn violation(&self, text: String) {
        self.violations.lock().push(text);
    }

    fn is_broken(&self) -> bool {
        !self.violations.lock().is_empty()
    }

    fn refused(&self, message: &str) {
        *self.refusals.lock().entry(without_numbers(message)).or_default() += 1;
    }

    /// Counts a load that a client has sent until it was stored.
    fn stored(&self, load: &Load, mode: Mode, has_key: bool, is_large: bool) {
        let rows = u64::from(load.rows);
        self.acknowledged.lock().entry(mode).or_default().acknowledged(rows);
        let mut figures = self.figures.lock();
        figures.loads += 1;
        figures.rows += rows;
        figures.channel_loads += u64::from(!has_key);
        figures.large_loads += u64::from(is_large);
    }

    /// The key of a load: a short one, and now and then one as long as can be.
    fn key_of(&self, id: u64) -> String {
        let key = format!("k{}-{id}-", self.seed);
        if id.is_multiple_of(97) { format!("{key:x<LONG_KEY_BYTES$}") } else { key }
    }
}

/// Runs torture with keys.
pub(crate) fn run(torture: &mut Torture<'_>) -> Result<(), TortureError> {
    let keyed = Keyed::new(torture)?;
    let server = torture.start()?;
    create_plain_tables(&server)?;
    let outcome = std::thread::scope(|scope| {
        keyed.proxy.serve(scope, &keyed.gate);
        keyed.gate.open(&server);
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let (sender, looks) = sync_channel(LOOKS_MAX);
            readers.push(sender);
            scope.spawn(|| receipts::read(&keyed, looks));
        }
        for number in 0..torture.options.writers.max(1) {
            let (reader, slow_reader) = (&readers[number % (READERS - 1)], &readers[READERS - 1]);
            let (keyed, looks) = (&keyed, [reader.clone(), slow_reader.clone()]);
            scope.spawn(move || client::work(keyed, number, looks));
        }
        // The readers end when the clients have.
        drop(readers);
        let outcome = rounds(torture, &keyed, server);
        keyed.is_over.store(true, Ordering::SeqCst);
        keyed.gate.end();
        keyed.proxy.end();
        outcome
    });
    torture.shared.violations.lock().append(&mut keyed.violations.into_inner());
    for (mode, figures) in keyed.acknowledged.into_inner() {
        *torture.figures.mode(mode) = figures;
    }
    torture.figures.refusals(keyed.refusals.into_inner());
    torture.figures.keyed = Some(KeyedFigures {
        channels: keyed.channels.into_inner().len() as u64,
        ..keyed.figures.into_inner()
    });
    outcome
}

/// Kills and starts until there are enough loads, or it is time; then compares everything, twice.
fn rounds(torture: &mut Torture<'_>, keyed: &Keyed, mut server: Server) -> Result<(), TortureError> {
    let mut kills = 0;
    while is_to_be_killed(torture, keyed, &mut server, kills) {
        kills += 1;
        server = kill_and_start(torture, keyed, server, kills)?;
    }
    keyed.is_over.store(true, Ordering::SeqCst);
    while keyed.clients.load(Ordering::SeqCst) > 0 {
        if has_ended(torture, &mut server) {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let seconds = torture.began.elapsed().as_secs_f64();
    keyed.figures.lock().loads_per_second = (keyed.books.acknowledged() as f64 / seconds) as u64;
    torture.check_memory(server.resident_bytes());
    for _ in 0..2 {
        compare(torture, keyed, |torture, keyed| {
            let mut client = connect(&server.doors, ROOT, Some(DATABASE))?;
            check::everything(keyed, &mut client, &mut torture.figures)?;
            check::names(keyed, &mut client, &server.doors)
        })?;
        torture.stop(server);
        server = torture.start()?;
    }
    torture.stop(server);
    Ok(())
}

fn compare(
    torture: &mut Torture<'_>,
    keyed: &Keyed,
    check: impl FnOnce(&mut Torture<'_>, &Keyed) -> Result<(), NoCheck>,
) -> Result<(), TortureError> {
    check(torture, keyed).map_err(|NoCheck(why)| {
        torture.violation(&format!("a check could not be made: {why}"));
        TortureError::Setup(format!("{why}; see {}", torture.launch.log.display()))
    })
}

/// Whether the server has ended by itself.
fn has_ended(torture: &Torture<'_>, server: &mut Server) -> bool {
    let Some(status) = server.ended() else { return false };
    torture.violation(&format!("the server ended by itself: {status}"));
    true
}

/// Waits until it is time for the next kill, and says whether there is one.
fn is_to_be_killed(torture: &mut Torture<'_>, keyed: &Keyed, server: &mut Server, kills: u64) -> bool {
    let began = Instant::now();
    let after = Duration::from_millis(torture.random_time_ms());
    let place = torture.rng.random::<f64>();
    let kills_left = torture.options.kills.map(|all| all.saturating_sub(kills));
    let share = (kills as f64 + place) / torture.options.kills.unwrap_or_default() as f64;
    loop {
        if torture.is_broken() || keyed.is_broken() || has_ended(torture, server) {
            return false;
        }
        let done = match torture.options.loads {
            Some(loads) => keyed.books.acknowledged() as f64 / loads as f64,
            None => torture.began.elapsed().as_secs_f64() / torture.options.duration.as_secs_f64(),
        };
        match kills_left {
            Some(1..) if done >= share => return true,
            None if done < 1.0 && began.elapsed() >= after => return true,
            Some(0) | None if done >= 1.0 => return false,
            _ => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Kills the server, starts it again, and compares some of the loads while clients send more.
fn kill_and_start(
    torture: &mut Torture<'_>,
    keyed: &Keyed,
    server: Server,
    kills: u64,
) -> Result<Server, TortureError> {
    torture.check_memory(server.resident_bytes());
    torture.figures.rounds += 1;
    torture.figures.kills_while_running += 1;
    let sent = keyed.books.len();
    keyed.gate.close();
    server.kill();
    if let Some(sabotage) = torture.options.sabotage {
        sabotage(&torture.launch.data);
    }
    torture.change_flushes(&FLUSHES);
    let early = torture.kill_starts()?;
    let server = torture.start()?;
    keyed.gate.open(&server);
    let anywhere = torture.rng.random_range(0..=sent);
    compare(torture, keyed, |_, keyed| {
        let mut client = connect(&server.doors, ROOT, Some(DATABASE))?;
        check::sample(keyed, &mut client, sent.saturating_sub(SAMPLED)..sent)?;
        check::sample(keyed, &mut client, anywhere..sent.min(anywhere + SAMPLED))
    })?;
    (torture.progress)(&format!(
        "[{:7.1} s] kill {kills}{}, ready in {} ms; {} loads acknowledged",
        torture.began.elapsed().as_secs_f64(),
        if early == 0 { String::new() } else { format!(" and {early} while starting") },
        server.ready_after.as_millis(),
        grouped(keyed.books.acknowledged()),
    ));
    Ok(server)
}
