//! The program under test as a child process.

use super::{Client, Curl, PATIENCE, wait_until};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use tempfile::TempDir;

/// How much of the server's log a failed test shows, in bytes.
const LOG_SHOWN_BYTES: usize = 16 * 1024;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tributary");

/// A running server with its data in a temporary directory. Killed when dropped.
pub struct Server {
    process: Process,
    settings: Vec<(String, String)>,
    directory: TempDir,
}

/// The addresses of a ready server, from its one line on standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub mysql: String,
    pub http: String,
    pub webserver: String,
    /// `None`: Arrow Flight SQL is off.
    pub flight: Option<String>,
    pub data: String,
}

struct Process {
    child: Child,
    ready: Ready,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server on an empty directory with default settings.
    pub fn start() -> Self {
        Self::with_settings(&[])
    }

    /// Starts a server with settings as `TRIBUTARY_*` variables have them: `("flush_age_ms", "1000")`.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::in_directory(tempfile::tempdir().expect("a temporary directory"), settings)
    }

    fn in_directory(directory: TempDir, settings: &[(&str, &str)]) -> Self {
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let process = Process::start(command(&directory.path().join("data")), &settings);
        Self { process, settings, directory }
    }

    /// Starts a server with settings on the directory `data` that `write` creates in the given directory.
    pub fn on(settings: &[(&str, &str)], write: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        write(directory.path());
        Self::in_directory(directory, settings)
    }

    /// Starts a server in a shell that allows it this many open files, until it raises the limit.
    pub fn with_file_limit(files: u32) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut shell = without_settings(Command::new("sh"));
        let line = format!("ulimit -S -n {files} && exec \"$0\" \"$@\"");
        shell.args(["-c", &line]).arg(PROGRAM);
        let process = Process::start(serve(shell, &directory.path().join("data")), &[]);
        Self { process, settings: Vec::new(), directory }
    }

    /// Starts a server with one thread for all tasks.
    pub fn with_one_thread() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = command(&directory.path().join("data"));
        command.env("TOKIO_WORKER_THREADS", "1");
        let process = Process::start(command, &[]);
        Self { process, settings: Vec::new(), directory }
    }

    /// A server with default settings that tests running now share; the last one ends it. Other
    /// tests' SYNC commits the open groups of all: a test that needs one to stay open has its own
    /// server.
    pub fn shared() -> SharedServer {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let server = shared.upgrade().unwrap_or_else(|| Arc::new(Self::start()));
        *shared = Arc::downgrade(&server);
        SharedServer(server)
    }

    /// The port of the MySQL protocol.
    pub fn mysql_port(&self) -> u16 {
        port(&self.process.ready.mysql)
    }

    /// The port of HTTP loads.
    pub fn http_port(&self) -> u16 {
        port(&self.process.ready.http)
    }

    /// The second port of HTTP loads.
    pub fn webserver_port(&self) -> u16 {
        port(&self.process.ready.webserver)
    }

    /// The port of Arrow Flight SQL, which a setting has to turn on.
    pub fn flight_port(&self) -> u16 {
        port(self.process.ready.flight.as_ref().expect("arrow_flight_sql_port is set"))
    }

    /// The server's data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A place for files of the test.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// The contents of the ready line.
    pub fn ready(&self) -> &Ready {
        &self.process.ready
    }

    /// The process's number.
    pub fn process_id(&self) -> u32 {
        self.process.child.id()
    }

    /// Sends a signal such as `INT`.
    pub fn signal(&self, name: &str) {
        assert!(self.process.signal(name), "the server had ended already");
    }

    /// The server's log so far.
    pub fn log(&self) -> String {
        lock(&self.process.log).clone()
    }

    /// The value of the metric whose line starts with this: its name with labels, or with a space.
    pub fn metric(&self, line_start: &str) -> f64 {
        let text = Curl::anonymous(&format!("http://127.0.0.1:{}/metrics", self.webserver_port())).text();
        let line = text.lines().find(|line| line.starts_with(line_start));
        let line = line.unwrap_or_else(|| panic!("no {line_start} in\n{text}"));
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    /// A connection without a database.
    pub fn connect(&self) -> Client {
        Client::connect(self.mysql_port(), None)
    }

    /// A connection to a database.
    pub fn connect_to(&self, database: &str) -> Client {
        Client::connect(self.mysql_port(), Some(database))
    }

    /// Makes the database `db` of the manual with its table `dt`.
    pub fn with_manual_table(self) -> Self {
        let mut client = self.connect();
        client.ok("CREATE DATABASE db");
        client.ok("USE db");
        client.ok(super::DT);
        self
    }

    /// A new database with a name that no other test uses.
    pub fn database(&self) -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.connect().ok(&format!("CREATE DATABASE {name}"));
        Database { client: self.connect_to(&name), name }
    }

    /// Ends the server like a crash: none of its code runs any more.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks the server to stop and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.process.terminate()
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// The server with no settings of its own from its next start on.
    pub fn without_settings(mut self) -> Self {
        self.settings.clear();
        self
    }

    /// Tries to start a server on a directory, and returns its complaint.
    ///
    /// # Panics
    /// If it starts.
    pub fn refusal(data: &Path, settings: &[(String, String)]) -> String {
        let mut command = command(data);
        command
            .envs(settings.iter().map(|(name, value)| (format!("TRIBUTARY_{}", name.to_uppercase()), value)));
        let mut child = command.spawn().expect("the program starts");
        // The line of a server that is ready, or nothing once it has ended.
        let mut ready = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut ready).expect("UTF-8");
        if !ready.is_empty() {
            child.kill().expect("it runs");
        }
        let output = child.wait_with_output().expect("the program's output");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(ready.is_empty() && !output.status.success(), "it started: {ready}{text}");
        text
    }

    /// Starts a server again on the same data; the ports are others.
    pub fn start_again(&mut self) {
        self.process = Process::start(command(&self.data()), &self.settings);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill();
        if std::thread::panicking() {
            self.print_log();
        }
    }
}

impl Server {
    fn print_log(&self) {
        let log = self.log();
        let from = (log.len().saturating_sub(LOG_SHOWN_BYTES)..=log.len())
            .find(|&at| log.is_char_boundary(at))
            .unwrap_or(log.len());
        eprintln!("--- end of the server's log ---\n{}", &log[from..]);
    }
}

/// One test's hold on a shared server.
pub struct SharedServer(Arc<Server>);

impl std::ops::Deref for SharedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.print_log();
        }
    }
}

/// A database of one test, and a connection to it.
pub struct Database {
    pub name: String,
    pub client: Client,
}

impl Database {
    /// Makes the manual's table `dt` in it, with properties such as `"group_commit_mode" = "async_mode"`.
    pub fn with_dt(mut self, properties: &str) -> Self {
        let comma = if properties.is_empty() { "" } else { ", " };
        let statement = super::DT.replace(
            "\"replication_num\" = \"1\"",
            &format!("\"replication_num\" = \"1\"{comma}{properties}"),
        );
        self.client.ok(&statement);
        self
    }
}

impl Process {
    fn start(mut command: Command, settings: &[(String, String)]) -> Self {
        command
            .envs(settings.iter().map(|(name, value)| (format!("TRIBUTARY_{}", name.to_uppercase()), value)));
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().expect("standard error is piped");
        let collected = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = lock(&collected);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let stdout = child.stdout.take().expect("standard output is piped");
        let ready = first_line(stdout).and_then(|line| Ready::parse(&line));
        match ready {
            Ok(ready) => Self { child, ready, log },
            Err(problem) => {
                let _ = child.kill();
                let status = child.wait();
                panic!("the server is not ready: {problem}; {status:?}; its log:\n{}", lock(&log));
            }
        }
    }

    fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal; false if the process has ended.
    fn signal(&self, name: &str) -> bool {
        let line = format!("kill -{name} {}", self.child.id());
        Command::new("sh").args(["-c", &line]).status().expect("sh runs").success()
    }

    fn terminate(&mut self) -> ExitStatus {
        assert!(self.signal("TERM"), "the server had ended already; its log:\n{}", lock(&self.log));
        let mut status = None;
        wait_until("the server has stopped", || {
            status = self.child.try_wait().expect("the child's status");
            status.is_some()
        });
        status.expect("it has stopped")
    }
}

/// The program with a data directory and free ports, its output piped and no settings from outside.
pub fn command(data: &Path) -> Command {
    serve(program(), data)
}

fn serve(mut command: Command, data: &Path) -> Command {
    command.arg("serve").arg("--storage-root-path").arg(data);
    command.args(["--query-port", "0", "--http-port", "0", "--webserver-port", "0"]);
    // The stores, web servers and brokers of tests are on this machine.
    command.env("TRIBUTARY_EGRESS", "127.0.0.0/8;::1/128");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program without settings from outside.
pub fn program() -> Command {
    without_settings(Command::new(PROGRAM))
}

fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRIBUTARY_") {
            command.env_remove(name);
        }
    }
    command
}

/// The first line of the output. What follows is read and dropped, so that the child never blocks.
fn first_line(stdout: ChildStdout) -> Result<String, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver.recv_timeout(PATIENCE).map_err(|error| match error {
        RecvTimeoutError::Timeout => format!("it said nothing for {} s", PATIENCE.as_secs()),
        RecvTimeoutError::Disconnected => "it ended without a word".to_owned(),
    })
}

impl Ready {
    /// Reads `tributary ready: mysql=… http=… webserver=… data=…`, perhaps with `flight=…`.
    fn parse(line: &str) -> Result<Self, String> {
        let unknown = || format!("unknown ready line: {line}");
        let facts = line.strip_prefix("tributary ready: ").ok_or_else(unknown)?;
        let (addresses, data) = facts.split_once(" data=").ok_or_else(unknown)?;
        let address = |name: &str| {
            addresses
                .split(' ')
                .find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='))
                .map(str::to_owned)
                .ok_or_else(unknown)
        };
        Ok(Self {
            mysql: address("mysql")?,
            http: address("http")?,
            webserver: address("webserver")?,
            flight: address("flight").ok(),
            data: data.to_owned(),
        })
    }
}

fn port(address: &str) -> u16 {
    address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("the ready line's addresses end in ports")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
