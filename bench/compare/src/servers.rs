//! Starting and stopping the servers, each in a data directory of its own on free ports of the loopback
//! address, with what its durability needs and otherwise its defaults but for caches and connections.

use crate::peer::{Peer, mysql_to, postgres};
use crate::{Options, Outcome};
use mysql_async::prelude::Queryable;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// A stop that takes longer is made short.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);
/// More than any load has.
const CONNECTIONS: &str = "600";

/// A server that runs. When it is dropped, its process is ended and its directory removed.
pub struct Server {
    child: Child,
    /// Of MySQL's or PostgreSQL's protocol.
    pub sql_port: u16,
    pub http_port: u16,
    dir: TempDir,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server in order and waits for it.
    pub async fn stop(mut self) -> Outcome<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() && began.elapsed() < STOPPED_WITHIN {
            tokio::time::sleep(Duration::from_millis(20)).await;
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
pub async fn start(peer: Peer, options: &Options) -> Outcome<Server> {
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
    let mut server = Server { child, sql_port, http_port, dir };
    ready(peer, &mut server).await?;
    Ok(server)
}

async fn ready(peer: Peer, server: &mut Server) -> Outcome<()> {
    let began = Instant::now();
    loop {
        let Err(error) = greet(peer, server).await else { return Ok(()) };
        let ended = server.child.try_wait()?;
        if ended.is_some() || began.elapsed() > READY_WITHIN {
            let log = std::fs::read_to_string(server.dir.path().join("server.log")).unwrap_or_default();
            return Err(format!("{} does not answer: {error}\n{log}", peer.name()).into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn greet(peer: Peer, server: &Server) -> Outcome<()> {
    match peer {
        Peer::Tributary { .. } | Peer::MariaDb => {
            let mut connection = mysql_to(server, None).await?;
            connection.query_drop("CREATE DATABASE IF NOT EXISTS bench").await?;
            connection.disconnect().await?;
        }
        Peer::PostgreSql => postgres(server).await?.batch_execute("SELECT 1").await?,
        Peer::QuestDb => {
            crate::client::http::Http::connect(server.http_port).await?.get("/ping").await?;
        }
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
    if rustix::process::getuid().is_root() {
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
        .args(["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--local-infile=1"])
        .args(["--max-allowed-packet=64M", "--skip-name-resolve", "--character-set-server=utf8mb4"]);
    if rustix::process::getuid().is_root() {
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
        .args(["-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB"])
        .arg("-c")
        .arg(format!("max_connections={CONNECTIONS}"));
    if rustix::process::getuid().is_root() {
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

/// The CPU time that a process and those it has begun have used.
pub fn cpu_of(pid: u32) -> Outcome<Duration> {
    let children = std::fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|other| ticks(other).ok())
        .filter(|&(parent, _)| parent == pid)
        .map(|(_, ticks)| ticks)
        .sum::<u64>();
    let (_, own) = ticks(pid)?;
    Ok(Duration::from_millis((own + children) * 1000 / rustix::param::clock_ticks_per_second()))
}

/// The CPU time that this process has used.
pub fn own_cpu() -> Outcome<Duration> {
    let (_, own) = ticks(std::process::id())?;
    Ok(Duration::from_millis(own * 1000 / rustix::param::clock_ticks_per_second()))
}

/// A process's parent and its CPU time in clock ticks, with that of children that have ended.
fn ticks(pid: u32) -> Outcome<(u32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("a line of /proc without a name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // Fields 14 to 17 of proc(5); the first here is the third there.
    let times = fields[11..15].iter().map(|field| field.parse::<u64>()).sum::<Result<u64, _>>()?;
    Ok((fields[1].parse()?, times))
}
