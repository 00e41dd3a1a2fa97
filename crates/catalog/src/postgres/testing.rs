//! A server of PostgreSQL in a directory of its own, for tests. Also used by the tests of the whole program, which include this file.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user of all databases, and its password.
pub const USER: &str = "tributary";
pub const PASSWORD: &str = "hush-hush";
/// The user as which PostgreSQL runs if the tests run as root, as which it does not.
const SYSTEM_USER: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(60);

/// Ways to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Connections are ended, and everything is written.
    Fast,
    /// Like a crash: the next start reads the log.
    Immediate,
}

/// A server with password logins. Killed when dropped.
pub struct Postgres {
    directory: TempDir,
    /// Its port on 127.0.0.1.
    pub port: u16,
    process: Option<Child>,
    settings: Vec<String>,
}

impl Postgres {
    /// A server that tests running now share; each has databases of its own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let server = shared.upgrade().unwrap_or_else(|| Arc::new(Self::start()));
        *shared = Arc::downgrade(&server);
        server
    }

    pub fn start() -> Self {
        Self::with_settings(|_| Vec::new())
    }

    /// Starts a server with settings like `ssl=on`, which may name files that are written to its directory.
    pub fn with_settings(settings: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let password = directory.path().join("password");
        std::fs::write(&password, PASSWORD).expect("written");
        let settings = settings(directory.path());
        give(directory.path());
        let mut init = as_server("initdb");
        init.args(["-N", "--no-locale", "-E", "UTF8", "--auth=scram-sha-256", "-U", USER, "--pwfile"]);
        done(init.arg(&password).arg("-D").arg(directory.path().join("data")));
        let mut server = Self { directory, port: 0, process: None, settings };
        server.start_on_free_port();
        server
    }

    fn start_on_free_port(&mut self) {
        let started = Instant::now();
        loop {
            // Another process may take the port before the server does.
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            self.port = free.expect("a free port").port();
            if self.try_to_start() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "PostgreSQL does not start: {}", self.log());
        }
    }

    /// Starts the server and waits until it is ready. `false`: it has ended instead.
    fn try_to_start(&mut self) -> bool {
        let log = std::fs::File::options().create(true).append(true).open(self.log_file());
        let mut log = log.expect("a log");
        let mut server = as_server("postgres");
        server.arg("-D").arg(self.directory.path().join("data")).args(["-p", &self.port.to_string()]);
        server.arg("-k").arg(self.directory.path()).args(["-c", "listen_addresses=127.0.0.1"]);
        for setting in &self.settings {
            server.args(["-c", setting]);
        }
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let process = self.process.insert(server.spawn().expect("PostgreSQL starts"));
        let lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let (ready, is_ready) = mpsc::channel();
        // Reads as long as the server writes; when it ends, so does the channel.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                writeln!(log, "{line}").expect("written");
                if line.contains("ready to accept connections") {
                    // Later ones, of a server that has recovered from a crash of its own, are not waited for.
                    let _ = ready.send(());
                }
            }
        });
        match is_ready.recv_timeout(PATIENCE) {
            Ok(()) => true,
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("PostgreSQL is not ready: {}", self.log()),
        }
    }

    /// Starts it again on the same data and port.
    pub fn start_again(&mut self) {
        assert!(self.try_to_start(), "{}", self.log());
    }

    /// Stops it and waits until it has.
    pub fn stop(&mut self, how: Stop) {
        let signal = if how == Stop::Fast { "-INT" } else { "-QUIT" };
        let mut process = self.process.take().expect("it runs");
        done(Command::new("kill").arg(signal).arg(process.id().to_string()));
        process.wait().expect("a child");
    }

    fn log_file(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Makes a database and returns its name.
    pub fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("catalog_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.run("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements and returns the rows of the last one, with `|` between their values.
    pub fn run(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(program("psql"));
        psql.env("PGPASSWORD", PASSWORD).args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
        ]);
        psql.args(["-p", &self.port.to_string(), "-U", USER, "-d", database, "-c", sql]);
        psql.output().expect("psql starts")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.stop(Stop::Immediate);
        }
    }
}

/// A program of PostgreSQL, which Debian has beside the path.
fn program(name: &str) -> PathBuf {
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&of_path).map(|directory| directory.join(name));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let beside = versions.map(|version| version.path().join("bin").join(name));
    let found = in_path.chain(beside).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("PostgreSQL's {name} is not installed: run scripts/setup-test-clients"))
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id starts");
    output.stdout == b"0\n"
}

/// Gives a directory and its files to the user as which PostgreSQL runs.
fn give(directory: &Path) {
    if is_root() {
        done(Command::new("chown").args(["-R", SYSTEM_USER]).arg(directory));
    }
}

/// A command that runs as a user other than root.
fn as_server(name: &str) -> Command {
    if !is_root() {
        return Command::new(program(name));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", SYSTEM_USER, "--regid", SYSTEM_USER, "--init-groups", "--"]).arg(program(name));
    // The current one may be closed to that user.
    command.current_dir("/");
    command
}

fn done(command: &mut Command) {
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
