//! The server under measurement: one that the benchmark starts for itself, on free ports and in a temporary directory, or one
//! that is already running.

use crate::client::http;
use crate::client::mysql::Mysql;
use crate::error::BenchError;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;
use tributary_client::Trust;

/// A server under test.
#[derive(Debug)]
pub struct Server {
    pub mysql: SocketAddr,
    pub http: SocketAddr,
    /// Loads are sent over TLS, to a server with one of these certificates.
    pub trust: Option<Trust>,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    program: PathBuf,
    process: Child,
    /// Nothing after it was handed on.
    data: Option<TempDir>,
}

impl Own {
    fn path(&self) -> Option<&Path> {
        self.data.as_ref().map(TempDir::path)
    }
}

/// The address of a running server.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub host: IpAddr,
    pub query_port: u16,
    pub http_port: u16,
}

/// A server's resource usage since its start.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Usage {
    /// CPU seconds, user and system.
    pub cpu_seconds: f64,
    /// Bytes that the process had written to the disk.
    pub written_bytes: u64,
    /// Most memory at one time, in bytes.
    pub peak_rss_bytes: u64,
    pub fsyncs: u64,
}

impl Server {
    /// Starts a `tributary` binary as a server, its data in a directory of its own below `parent`, with settings
    /// in the form `TRIBUTARY_… = …`.
    ///
    /// # Errors
    /// The server does not become ready; its log says why.
    pub fn start(program: &Path, parent: &Path, settings: &[(String, String)]) -> Result<Self, BenchError> {
        let data = tempfile::Builder::new().prefix("tributary-bench-").tempdir_in(parent)?;
        Self::launch(program, data, settings)
    }

    fn launch(program: &Path, data: TempDir, settings: &[(String, String)]) -> Result<Self, BenchError> {
        let log = fs::File::create(data.path().join("server.log"))?;
        let mut process = Command::new(program)
            .args(["serve", "--query-port", "0", "--http-port", "0", "--webserver-port", "0"])
            .arg("--storage-root-path")
            .arg(data.path().join("data"))
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| {
                BenchError::Server(format!("`{}` does not start: {error}", program.display()))
            })?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = |key: &str| {
            let (_, rest) = line.split_once(key)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let (mysql, http) = (address(" mysql="), address(" http="));
        let own = Own { program: program.to_owned(), process, data: Some(data) };
        match (mysql, http) {
            (Some(mysql), Some(http)) => Ok(Self { mysql, http, trust: None, own: Some(own) }),
            _ => {
                let log =
                    own.path().map(|path| fs::read_to_string(path.join("server.log")).unwrap_or_default());
                let log = log.unwrap_or_default();
                Err(BenchError::Server(format!("the server did not start: {line}{log}")))
            }
        }
    }

    #[must_use]
    pub fn running(address: Address) -> Self {
        Self {
            mysql: SocketAddr::new(address.host, address.query_port),
            http: SocketAddr::new(address.host, address.http_port),
            trust: None,
            own: None,
        }
    }

    /// # Errors
    /// The server cannot be reached.
    pub fn connect(&self, database: &str) -> Result<Mysql, BenchError> {
        Mysql::connect(self.mysql, self.trust.as_ref(), database)
    }

    /// The process's number, of a server that the benchmark has started.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.own.as_ref().map(|own| own.process.id())
    }

    /// The server's resource usage. For a remote server, only what its metrics report.
    ///
    /// # Errors
    /// Its metrics cannot be read.
    pub fn usage(&self) -> Result<Usage, BenchError> {
        let fsyncs = self.metric("tributary_wal_fsyncs")? as u64;
        let Some(process) = self.process() else {
            return Ok(Usage { fsyncs, ..Usage::default() });
        };
        let proc = PathBuf::from(format!("/proc/{process}"));
        let line = |file: &str, key: &str| -> u64 {
            let text = fs::read_to_string(proc.join(file)).unwrap_or_default();
            let value = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            value.split_whitespace().next().and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        Ok(Usage {
            cpu_seconds: cpu_seconds(&proc.join("stat")),
            written_bytes: line("io", "write_bytes:"),
            peak_rss_bytes: line("status", "VmHWM:") * 1024,
            fsyncs,
        })
    }

    /// The memory of a server that the benchmark has started, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let status = self.process().map(|process| fs::read_to_string(format!("/proc/{process}/status")));
        let text = status.and_then(Result::ok).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        value.split_whitespace().next().and_then(|value| value.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// The sum of a metric's series.
    ///
    /// # Errors
    /// The metrics cannot be read.
    pub fn metric(&self, name: &str) -> Result<f64, BenchError> {
        let metrics = http::get(self.http, "/metrics")?;
        Ok(metrics
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .filter(|rest| rest.starts_with([' ', '{']))
            .filter_map(|rest| rest.split_whitespace().next_back()?.parse::<f64>().ok())
            .sum())
    }

    /// Stops a server of the benchmark's own in order, which flushes all rows; its data stays.
    ///
    /// # Errors
    /// It does not stop well.
    pub fn stop(&mut self) -> Result<(), BenchError> {
        let Some(own) = &mut self.own else { return Ok(()) };
        Command::new("kill").args(["-s", "TERM", &own.process.id().to_string()]).status()?;
        let status = own.process.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(BenchError::Server(format!("the server stopped with {status}")))
        }
    }

    /// Stops and starts a server of the benchmark's own with other settings, on the same data.
    ///
    /// # Errors
    /// See [`Server::stop`] and [`Server::start`].
    pub fn restart(&mut self, settings: &[(String, String)]) -> Result<(), BenchError> {
        self.stop()?;
        self.start_again(settings)
    }

    /// Starts a server of the benchmark's own that was stopped, on the same data.
    ///
    /// # Errors
    /// See [`Server::start`].
    pub fn start_again(&mut self, settings: &[(String, String)]) -> Result<(), BenchError> {
        if let Some(own) = &mut self.own
            && let Some(data) = own.data.take()
        {
            let trust = self.trust.take();
            *self = Self { trust, ..Self::launch(&own.program.clone(), data, settings)? };
        }
        Ok(())
    }

    /// The directory of the server's data, of a server that the benchmark has started.
    #[must_use]
    pub fn data(&self) -> Option<PathBuf> {
        self.own.as_ref()?.path().map(|path| path.join("data"))
    }
}

/// Calls for each file below a directory, with its bytes.
pub fn walk(directory: &Path, file: &mut dyn FnMut(&Path, u64)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => walk(&entry.path(), file),
            Ok(meta) => file(&entry.path(), meta.len()),
            // Removed meanwhile.
            Err(_) => (),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // The run's data is not needed any more, so no orderly end is necessary.
        if self.process.kill().is_ok() {
            drop(self.process.wait());
        }
    }
}

/// CPU seconds of this process, user and system.
#[must_use]
pub fn own_cpu_seconds() -> f64 {
    cpu_seconds(Path::new("/proc/self/stat"))
}

fn cpu_seconds(stat: &Path) -> f64 {
    let text = fs::read_to_string(stat).unwrap_or_default();
    // The name in brackets may have spaces; the two times are the 12th and 13th fields behind it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / ticks_per_second()
}

/// Clock ticks per second of the times in `/proc`.
#[must_use]
pub fn ticks_per_second() -> f64 {
    static TICKS: OnceLock<f64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let output = Command::new("getconf").arg("CLK_TCK").output().ok();
        let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
        // Linux has reported 100 to user space on every machine for decades.
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(100.0)
    })
}

/// Waits until a condition holds.
///
/// # Errors
/// It does not within the time.
pub fn wait_until(
    what: &str,
    limit: Duration,
    mut holds: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let begin = std::time::Instant::now();
    while !holds()? {
        if begin.elapsed() > limit {
            return Err(BenchError::Server(format!("waited {} s for {what}", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
