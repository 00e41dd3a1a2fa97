//! Starts and stops the servers, each in a data directory of its own on free ports of the loopback address, with the settings
//! that durability needs and otherwise defaults, except for caches and connections.

use crate::peer::Peer;
use crate::{Options, Outcome, http, postgres};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tributary_client::Client;

/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// A stop that takes longer is made short.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);
/// More than any load has.
const CONNECTIONS: &str = "600";

/// Memory that the others may use for their tables.
fn buffers(options: &Options) -> &'static str {
    if options.upserts.is_some() { "4GB" } else { "1GB" }
}

/// A server that runs. When it is dropped, its process is ended and its directory removed.
pub struct Server {
    child: Child,
    /// The address for MySQL's or PostgreSQL's protocol.
    pub sql: SocketAddr,
    pub http: SocketAddr,
    dir: TempDir,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server in order and waits for it.
    pub fn stop(mut self) -> Outcome<()> {
        done(Command::new("kill").args(["-s", "TERM", &self.pid().to_string()]))?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() && began.elapsed() < STOPPED_WITHIN {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, as a rule; then both fail and nothing is left to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts the peer's server with the empty database `bench` and waits until it answers.
pub fn start(peer: Peer, options: &Options) -> Outcome<Server> {
    let dir = tempfile::Builder::new().prefix("tributary-compare-").tempdir_in(&options.dir)?;
    let (sql_port, http_port) = (free_port()?, free_port()?);
    let mut command = match peer {
        Peer::Tributary { .. } => tributary(options, dir.path(), sql_port, http_port)?,
        Peer::MariaDb => mariadb(options, dir.path(), sql_port)?,
        Peer::PostgreSql => postgresql(options, dir.path(), sql_port)?,
        Peer::QuestDb => questdb(options, dir.path(), http_port)?,
    };
    let log = File::create(dir.path().join("server.log"))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let [sql, http] = [sql_port, http_port].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut server = Server { child, sql, http, dir };
    ready(peer, &mut server)?;
    Ok(server)
}

fn ready(peer: Peer, server: &mut Server) -> Outcome<()> {
    let began = Instant::now();
    loop {
        let Err(error) = greet(peer, server) else { return Ok(()) };
        let ended = server.child.try_wait()?;
        if ended.is_some() || began.elapsed() > READY_WITHIN {
            let log = std::fs::read_to_string(server.dir.path().join("server.log")).unwrap_or_default();
            return Err(format!("{} does not answer: {error}\n{log}", peer.name()).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn greet(peer: Peer, server: &Server) -> Outcome<()> {
    match peer {
        Peer::Tributary { .. } | Peer::MariaDb => {
            Client::connect(server.sql, None, None)?.run("CREATE DATABASE IF NOT EXISTS bench").map(drop)?;
        }
        Peer::PostgreSql => postgres::Connection::open(server.sql)?.query("SELECT 1").map(drop)?,
        Peer::QuestDb => http::get(server.http, "/ping").map(drop)?,
    }
    Ok(())
}

fn tributary(options: &Options, dir: &Path, sql_port: u16, http_port: u16) -> Outcome<Command> {
    let mut command = Command::new(&options.tributary);
    command
        .arg("serve")
        .arg("--storage-root-path")
        .arg(dir.join("data"))
        .args(["--query-port", &sql_port.to_string()])
        .args(["--http-port", &http_port.to_string()])
        .args(["--webserver-port", "0"]);
    Ok(command)
}

/// InnoDB's log is written and synced at every commit; there is no binary log.
fn mariadb(options: &Options, dir: &Path, port: u16) -> Outcome<Command> {
    let data = dir.join("data");
    let mut install = Command::new("mariadb-install-db");
    install
        .arg("--no-defaults")
        .arg("--skip-test-db")
        .arg("--auth-root-authentication-method=normal")
        .arg(format!("--datadir={}", data.display()));
    if is_root()? {
        install.arg("--user=root");
    }
    done(&mut install)?;
    let mut command = Command::new(&options.mariadbd);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", dir.join("socket").display()))
        .arg(format!("--pid-file={}", dir.join("pid").display()))
        .arg(format!("--port={port}"))
        .arg(format!("--max-connections={CONNECTIONS}"))
        .args(["--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"])
        .arg(format!("--innodb-buffer-pool-size={}", buffers(options).trim_end_matches('B')))
        .args(["--innodb-log-file-size=1G", "--local-infile=1"])
        .args(["--max-allowed-packet=64M", "--skip-name-resolve", "--character-set-server=utf8mb4"]);
    if is_root()? {
        command.arg("--user=root");
    }
    Ok(command)
}

/// PostgreSQL refuses to run as root, so it runs as its own user then.
fn postgresql(options: &Options, dir: &Path, port: u16) -> Outcome<Command> {
    let data = dir.join("data");
    std::fs::create_dir(&data)?;
    let mut init = Command::new(options.postgres_bin.join("initdb"));
    init.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "-D"])
        .arg(&data);
    let mut command = Command::new(options.postgres_bin.join("postgres"));
    command
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(&data)
        .args(["-p", &port.to_string(), "-h", "127.0.0.1"])
        .args(["-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on"])
        .args(["-c", &format!("shared_buffers={}", buffers(options)), "-c", "max_wal_size=8GB"])
        .arg("-c")
        .arg(format!("max_connections={CONNECTIONS}"));
    if is_root()? {
        let (uid, gid) = user_ids("postgres")?;
        std::os::unix::fs::chown(&data, Some(uid), Some(gid))?;
        std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        init.uid(uid).gid(gid);
        command.uid(uid).gid(gid);
    }
    done(&mut init)?;
    Ok(command)
}

/// Every commit to a table's log is synced before it is acknowledged (`cairo.commit.mode=sync`).
fn questdb(options: &Options, dir: &Path, http_port: u16) -> Outcome<Command> {
    let data = dir.join("data");
    std::fs::create_dir_all(data.join("conf"))?;
    let mut conf = File::create(data.join("conf/server.conf"))?;
    write!(
        conf,
        "cairo.commit.mode=sync\nhttp.net.bind.to=127.0.0.1:{http_port}\nhttp.net.connection.limit={CONNECTIONS}\n\
         http.min.enabled=false\npg.enabled=false\nline.tcp.enabled=false\ntelemetry.enabled=false\n\
         cairo.wal.writer.pool.max.segments=64\n"
    )?;
    let mut command = Command::new(&options.java);
    command
        .args(["-Xms512m", "-Xmx2g", "-cp"])
        .arg(absolute(&options.questdb_jar)?)
        .args(["io.questdb.ServerMain", "-d"])
        .arg(&data);
    Ok(command)
}

fn absolute(path: &Path) -> Outcome<PathBuf> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()).into())
}

fn is_root() -> Outcome<bool> {
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

/// Runs a command to its end.
fn done(command: &mut Command) -> Outcome<()> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}: {}\n{said}{wrong}", command.get_program().display(), output.status).into())
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The numbers of a user in `/etc/passwd`.
fn user_ids(name: &str) -> Outcome<(u32, u32)> {
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name));
    let fields: Vec<&str> = line.ok_or_else(|| format!("there is no user '{name}'"))?.split(':').collect();
    Ok((fields[2].parse()?, fields[3].parse()?))
}
