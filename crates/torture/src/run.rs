//! Rounds: write, kill, start, check.

use crate::changes::Changes;
use crate::check::{Settled, check, check_settled};
use crate::divided::{self, Divided};
use crate::doors::{Certificate, ROOT};
use crate::load::{DATABASE, TABLES};
use crate::mysql::connect;
use crate::report::{Figures, Report, grouped};
use crate::rights::{self, Rights};
use crate::server::{Launch, NotReady, Server};
use crate::upserts::{self, Upserts};
use crate::writers::{Round, Shared, write};
use crate::{Options, Progress, TortureError, full_disk, keyed, reader};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tributary_client::ClientError;

/// Number of readers.
const READERS: usize = 2;
/// How long a server may take to stop in order.
const STOP_WITHIN: Duration = Duration::from_secs(120);

/// Runs torture as `options` say; `progress` gets a line for each round.
///
/// # Errors
/// See [`TortureError`]. A broken promise is not an error but part of the report.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<Report, TortureError> {
    std::fs::create_dir_all(&options.directory)
        .map_err(|error| TortureError::Setup(format!("creating {}: {error}", options.directory.display())))?;
    let mut torture = Torture::new(options, progress)?;
    let outcome = if options.keyed {
        keyed::run(&mut torture)
    } else if options.full_disk {
        full_disk::run(&mut torture)
    } else {
        torture.rounds()
    };
    match outcome {
        // A server that does not start again is a broken promise and in the report.
        Err(TortureError::Setup(_)) if torture.is_broken() => Ok(torture.report()),
        outcome => outcome.map(|()| torture.report()),
    }
}

/// A run under way.
pub(crate) struct Torture<'a> {
    pub options: &'a Options,
    pub progress: Progress<'a>,
    pub rng: StdRng,
    pub launch: Launch,
    pub shared: Shared,
    pub settled: Settled,
    pub upserts: Upserts,
    pub divided: Divided,
    pub changes: Changes,
    /// Of a run with users.
    pub rights: Option<Rights>,
    pub figures: Figures,
    pub began: Instant,
    round: u32,
}

impl<'a> Torture<'a> {
    fn new(options: &'a Options, progress: Progress<'a>) -> Result<Self, TortureError> {
        let mut rng = StdRng::seed_from_u64(options.seed);
        let data = options.directory.join("data");
        if data.exists() && std::fs::read_dir(&data).is_ok_and(|mut files| files.next().is_some()) {
            let text = format!("{} is not empty; give another --storage-root-path", data.display());
            return Err(TortureError::Setup(text));
        }
        let mut settings = settings(&mut rng, &data.display().to_string());
        let certificate = options.secure.then(|| Certificate::make(&options.directory)).transpose()?;
        settings.extend(certificate.iter().flat_map(Certificate::settings));
        if options.memory_max_bytes != u64::MAX {
            let limit = options.memory_max_bytes.saturating_sub(MEMORY_SLACK).max(1);
            settings.push(("mem_limit".to_owned(), limit.to_string()));
        }
        settings.extend(options.settings.iter().cloned());
        let launch = Launch {
            program: options.program.clone(),
            data,
            log: options.directory.join("server.log"),
            settings,
            tls: certificate.map(|certificate| certificate.client),
        };
        Ok(Self {
            options,
            progress,
            rng,
            launch,
            shared: Shared::default(),
            settled: Settled::default(),
            upserts: Upserts::new(),
            divided: Divided::new(),
            changes: Changes::default(),
            rights: options.secure.then(Rights::default),
            figures: Figures::default(),
            began: Instant::now(),
            round: 0,
        })
    }

    pub fn is_time_left(&self) -> bool {
        self.began.elapsed() < self.options.duration
    }

    pub fn is_broken(&self) -> bool {
        !self.shared.violations.lock().is_empty()
    }

    fn rounds(&mut self) -> Result<(), TortureError> {
        let mut server = self.start()?;
        if self.rights.is_some() {
            rights::set_passwords(&server.doors)?;
        }
        create_tables(&server)?;
        if self.rights.is_some() {
            rights::create_users(&server.doors)?;
        }
        while self.is_time_left() && !self.is_broken() {
            self.change_settings();
            let round = self.new_round(&server, false);
            let run_ms = self.random_time_ms();
            let killed = self.write_until_killed(server, &round, run_ms);
            if let Some(sabotage) = self.options.sabotage {
                sabotage(&self.launch.data);
            }
            let early = self.kill_starts()?;
            server = self.start()?;
            let rows = round.books.acknowledged_rows();
            self.check(&server, &round)?;
            (self.progress)(&format!(
                "[{:7.1} s] round {}: killed after {} ms{}, ready in {} ms; {} rows acknowledged, {} in the tables",
                self.began.elapsed().as_secs_f64(),
                round.number,
                killed.as_millis(),
                if early == 0 { String::new() } else { format!(" and {early} times while starting") },
                server.ready_after.as_millis(),
                grouped(rows),
                grouped(self.settled.rows()),
            ));
        }
        self.last_check(server)
    }

    /// A clean stop, and everything once more.
    pub fn last_check(&mut self, server: Server) -> Result<(), TortureError> {
        self.stop(server);
        let server = self.start()?;
        let outcome =
            connect(&server.doors, ROOT, Some(DATABASE)).map_err(Into::into).and_then(|mut client| {
                self.upserts.check(&self.shared, &mut client, &mut self.figures)?;
                self.divided.check(&self.shared, &mut client, &mut self.figures)?;
                check_settled(&self.shared, &mut client, &self.settled, &mut self.figures)?;
                self.rights.as_ref().map_or(Ok(()), |rights| rights.check(&self.shared, &server.doors))
            });
        if let Err(problem) = outcome {
            self.violation(&format!("the last check could not be made: {}", problem.0));
        }
        self.stop(server);
        Ok(())
    }

    pub fn stop(&mut self, server: Server) {
        self.figures.stops += 1;
        match server.stop(STOP_WITHIN) {
            Some(status) if status.success() => {}
            Some(status) => self.violation(&format!("a stop by SIGTERM ended with {status}")),
            None => self.violation(&format!("a stop by SIGTERM took more than {} s", STOP_WITHIN.as_secs())),
        }
    }

    pub fn violation(&self, text: &str) {
        self.shared.violation(format!("{text}; the end of the server's log:\n{}", self.launch.log_tail()));
    }

    pub fn start(&mut self) -> Result<Server, TortureError> {
        match self.launch.start()?.ready() {
            Ok(server) => {
                self.figures.ready_after(server.ready_after);
                Ok(server)
            }
            Err(problem) => Err(self.not_ready(&problem)),
        }
    }

    fn not_ready(&self, problem: &NotReady) -> TortureError {
        self.violation(&format!("the server does not start: {problem}"));
        TortureError::Setup(format!(
            "the server does not start again: {problem}; its log ends with:\n{}",
            self.launch.log_tail()
        ))
    }

    /// Sometimes kills the server while it starts, up to three times in a row.
    pub fn kill_starts(&mut self) -> Result<u64, TortureError> {
        let mut killed = 0;
        while killed < 3 && self.rng.random_bool(0.35) {
            let (p50, _) = self.figures.ready_ms();
            let within = Duration::from_micros(self.rng.random_range(0..=p50.max(5) * 1200));
            if let Some(starting) = self.launch.start()?.kill_before_ready(within) {
                // It was ready before: then it is killed as soon as it is.
                match starting.ready() {
                    Ok(server) => {
                        self.figures.ready_after(server.ready_after);
                        self.figures.kills_while_running += 1;
                        server.kill();
                    }
                    Err(problem) => return Err(self.not_ready(&problem)),
                }
            } else {
                self.figures.kills_while_starting += 1;
                killed += 1;
            }
        }
        Ok(killed)
    }

    pub fn new_round(&mut self, server: &Server, expects_refusals: bool) -> Round {
        self.round += 1;
        self.figures.rounds += 1;
        Round {
            number: self.round,
            doors: server.doors.clone(),
            books: crate::books::Books::default(),
            is_over: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            expects_refusals,
        }
    }

    /// Most rounds last for a second or so, some only for some milliseconds.
    pub fn random_time_ms(&mut self) -> u64 {
        match self.rng.random_range(0..10) {
            0..2 => self.rng.random_range(0..60),
            2..8 => self.rng.random_range(100..2500),
            _ => self.rng.random_range(2500..6000),
        }
    }

    /// Changes the flush settings in each round: tiny flushes all the time, small ones, or none.
    fn change_settings(&mut self) {
        self.change_flushes(&[("20", "3000"), ("250", "200000"), ("1000", "2000000"), ("60000", "67108864")]);
    }

    /// Takes one of these settings for the age and the bytes at which rows are flushed.
    pub fn change_flushes(&mut self, choices: &[(&str, &str)]) {
        let (age, bytes) = choices[self.rng.random_range(0..choices.len())];
        for (name, value) in [("flush_age_ms", age), ("flush_bytes", bytes)] {
            if let Some(setting) = self.launch.settings.iter_mut().find(|(key, _)| key == name) {
                value.clone_into(&mut setting.1);
            }
        }
    }

    /// Runs the clients and, concurrently, `meanwhile`; then ends the round.
    pub fn with_clients<T>(&self, round: &Round, meanwhile: impl FnOnce() -> T) -> T {
        let seed = self.options.seed;
        std::thread::scope(|scope| {
            for number in 0..self.options.writers.max(1) {
                scope.spawn(move || write(&self.shared, round, number, seed));
            }
            for number in 0..self.upserts.count() {
                scope.spawn(move || self.upserts.write(&self.shared, round, number, seed));
            }
            for number in 0..self.divided.count() {
                scope.spawn(move || self.divided.write(&self.shared, round, number, seed));
            }
            scope.spawn(|| self.changes.write(&self.shared, round));
            if let Some(rights) = &self.rights {
                scope.spawn(|| rights.write(&self.shared, round, seed));
            }
            for _ in 0..READERS {
                scope.spawn(|| reader::read(&self.shared, round));
            }
            let outcome = meanwhile();
            round.is_over.store(true, Ordering::SeqCst);
            outcome
        })
    }

    /// How long the server ran.
    fn write_until_killed(&mut self, mut server: Server, round: &Round, run_ms: u64) -> Duration {
        let began = Instant::now();
        self.figures.kills_while_running += 1;
        let (ended, resident) = self.with_clients(round, || {
            while began.elapsed() < Duration::from_millis(run_ms) && server.ended().is_none() {
                let left = Duration::from_millis(run_ms).saturating_sub(began.elapsed());
                std::thread::sleep(left.min(Duration::from_millis(50)));
            }
            let resident = server.resident_bytes();
            let ended = server.ended();
            round.is_killed.store(true, Ordering::SeqCst);
            server.kill();
            (ended, resident)
        });
        if let Some(status) = ended {
            self.violation(&format!("the server ended by itself: {status}"));
        }
        self.check_memory(resident);
        began.elapsed()
    }

    /// Checks the most memory that a server had resident, in bytes.
    pub fn check_memory(&mut self, resident: u64) {
        self.figures.resident_bytes_max = self.figures.resident_bytes_max.max(resident);
        if resident > self.options.memory_max_bytes {
            let (has, may) = (resident >> 20, self.options.memory_max_bytes >> 20);
            self.violation(&format!("the server has {has} MiB of memory and may have {may}"));
        }
    }

    pub fn check(&mut self, server: &Server, round: &Round) -> Result<(), TortureError> {
        let outcome = check(&self.shared, round, &server.doors, &mut self.settled, &mut self.figures)
            .and_then(|()| {
                let mut client = connect(&server.doors, ROOT, Some(DATABASE))?;
                self.upserts.check(&self.shared, &mut client, &mut self.figures)?;
                self.divided.check(&self.shared, &mut client, &mut self.figures)?;
                self.rights.as_ref().map_or(Ok(()), |rights| rights.check(&self.shared, &server.doors))
            });
        self.figures.refusals(round.books.refusals());
        outcome.map_err(|problem| {
            self.violation(&format!("a check could not be made: {}", problem.0));
            TortureError::Setup(format!("{}; see {}", problem.0, self.launch.log.display()))
        })
    }

    fn report(mut self) -> Report {
        self.figures.queries = self.shared.queries.load(Ordering::Relaxed);
        self.figures.rights = self.rights.map(Rights::into_figures);
        (self.figures.light_changes, self.figures.heavy_changes) = self.changes.counts();
        let violations = std::mem::take(&mut *self.shared.violations.lock());
        Report::new(self.options.seed, self.began.elapsed(), self.figures, violations)
    }
}

/// Memory that may be taken between two looks at the limit of the process, in bytes.
const MEMORY_SLACK: u64 = 256 << 20;

/// Small limits, so that flushes, checkpoints, segments and large loads are frequent.
fn settings(rng: &mut StdRng, data: &str) -> Vec<(String, String)> {
    let mut settings = vec![
        ("flush_age_ms", "250".to_owned()),
        ("flush_bytes", "200000".to_owned()),
        ("wal_segment_bytes", "1048576".to_owned()),
        ("checkpoint_every", "10".to_owned()),
        ("large_load_bytes", "262144".to_owned()),
        ("target_file_bytes", "1000000".to_owned()),
    ];
    if rng.random_bool(0.5) {
        settings.push(("group_commit_wal_path", format!("{data}/wal-a;{data}/wal-b")));
    }
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Creates the database and its tables.
pub(crate) fn create_tables(server: &Server) -> Result<(), TortureError> {
    create_plain_tables(server)?;
    let mut client = connect(&server.doors, ROOT, Some(DATABASE)).map_err(not_created)?;
    for table in upserts::TABLES {
        client.run(&upserts::create(table)).map_err(not_created)?;
    }
    for sql in divided::create() {
        client.run(&sql).map_err(not_created)?;
    }
    Ok(())
}

fn not_created(error: ClientError) -> TortureError {
    TortureError::Setup(format!("creating the tables: {error}"))
}

/// Creates the database and the tables that keep every row.
pub(crate) fn create_plain_tables(server: &Server) -> Result<(), TortureError> {
    let mut client = connect(&server.doors, ROOT, None).map_err(not_created)?;
    client.run(&format!("CREATE DATABASE {DATABASE}")).map_err(not_created)?;
    for (name, interval_ms) in TABLES {
        let sql = format!(
            "CREATE TABLE {DATABASE}.{name} (load_id BIGINT NOT NULL, part INT NOT NULL, size INT NOT NULL, \
             round INT NOT NULL, chk BIGINT NOT NULL, pad VARCHAR(200)) DUPLICATE KEY(load_id, part) \
             DISTRIBUTED BY HASH(load_id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"{interval_ms}\")"
        );
        client.run(&sql).map_err(not_created)?;
    }
    Ok(())
}
