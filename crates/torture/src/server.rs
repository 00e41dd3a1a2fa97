//! The server under test as a child process.

use crate::TortureError;
use crate::doors::Doors;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tributary_client::Trust;

/// How long a start may take before it counts as hanging.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// How much of the server's log an error shows, in bytes.
const LOG_SHOWN_BYTES: usize = 2048;

/// How a server is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub program: PathBuf,
    pub data: PathBuf,
    /// The file of the server's log, for all starts.
    pub log: PathBuf,
    pub settings: Vec<(String, String)>,
    /// For clients of a server that requires it.
    pub tls: Option<Trust>,
}

/// A server that was started and may not be ready yet. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Starting {
    child: Guard,
    ready: Receiver<String>,
    started: Instant,
    tls: Option<Trust>,
}

/// A server that is ready. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Guard,
    pub doors: Doors,
    /// The time from its start to its ready line.
    pub ready_after: Duration,
}

/// Why a start did not end in a ready server.
#[derive(Debug)]
pub(crate) enum NotReady {
    Exited(ExitStatus),
    Hangs,
    Confused(String),
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "it ended with {status}"),
            Self::Hangs => write!(f, "it was not ready within {} s", READY_WITHIN.as_secs()),
            Self::Confused(what) => write!(f, "it said {what:?}"),
        }
    }
}

#[derive(Debug)]
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Launch {
    pub fn start(&self) -> Result<Starting, TortureError> {
        let failed = |what: &str, error: std::io::Error| TortureError::Setup(format!("{what}: {error}"));
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| failed(&format!("opening {}", self.log.display()), error))?;
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TRIBUTARY_") {
                command.env_remove(name);
            }
        }
        command.arg("serve").arg("--storage-root-path").arg(&self.data);
        command.args(["--query-port", "0", "--http-port", "0", "--webserver-port", "0"]);
        command.envs(
            self.settings.iter().map(|(name, value)| (format!("TRIBUTARY_{}", name.to_uppercase()), value)),
        );
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let started = Instant::now();
        let mut child = command
            .spawn()
            .map(Guard)
            .map_err(|error| failed(&format!("starting {}", self.program.display()), error))?;
        let (sender, ready) = mpsc::channel();
        if let Some(stdout) = child.0.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // Nobody listens any more once the server is ready.
                    let _ = sender.send(line);
                }
            });
        }
        Ok(Starting { child, ready, started, tls: self.tls.clone() })
    }

    /// The last lines of the server's log.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

fn tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_SHOWN_BYTES)..]).into_owned()
}

impl Starting {
    /// Waits for the ready line.
    pub fn ready(mut self) -> Result<Server, NotReady> {
        let line = match self.ready.recv_timeout(READY_WITHIN) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err(NotReady::Hangs),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(match self.child.0.wait() {
                    Ok(status) => NotReady::Exited(status),
                    Err(error) => NotReady::Confused(error.to_string()),
                });
            }
        };
        let ready_after = self.started.elapsed();
        let (Some(mysql_port), Some(http_port)) = (port(&line, "mysql"), port(&line, "http")) else {
            return Err(NotReady::Confused(line));
        };
        let doors = Doors { mysql_port, http_port, tls: self.tls };
        Ok(Server { child: self.child, doors, ready_after })
    }

    /// Kills it unless it is ready within that time; then it is left as it is.
    pub fn kill_before_ready(self, within: Duration) -> Option<Self> {
        match self.ready.recv_timeout(within) {
            Ok(line) => {
                // A later wait gets the line again.
                let (sender, ready) = mpsc::channel();
                let _ = sender.send(line);
                Some(Self { ready, ..self })
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(self),
        }
    }
}

impl Server {
    /// SIGKILL: no code of the server runs any more when this returns.
    pub fn kill(self) {
        drop(self.child);
    }

    /// Sends SIGKILL, like [`Server::kill`], to a server that is still in use.
    pub fn kill_in_place(&mut self) {
        let _ = self.child.0.kill();
        let _ = self.child.0.wait();
    }

    /// Its exit status, if it ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.0.try_wait().ok().flatten()
    }

    /// SIGTERM; how it ended, or `None` if it did not within that time.
    pub fn stop(mut self, within: Duration) -> Option<ExitStatus> {
        let line = format!("kill -TERM {}", self.child.0.id());
        let _ = Command::new("sh").args(["-c", &line]).status();
        let asked = Instant::now();
        while asked.elapsed() < within {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Its resident memory in bytes; 0 if the system does not report it.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.0.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

/// A port of `tributary ready: mysql=… http=… …`.
fn port(line: &str, name: &str) -> Option<u16> {
    let facts = line.strip_prefix("tributary ready: ")?;
    let address = facts.split(' ').find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='))?;
    address.rsplit(':').next()?.parse().ok()
}
