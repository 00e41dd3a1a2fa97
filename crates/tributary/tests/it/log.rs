//! The server's log when nobody takes it, and texts of clients in it.

use crate::support::server::command;
use crate::support::{Client, Curl, Server, wait_until};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server that logs everything to a pipe of the test.
struct Piped {
    child: Child,
    mysql: u16,
    webserver: u16,
    stderr: Option<ChildStderr>,
    _directory: tempfile::TempDir,
}

impl Piped {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut child = command(&directory.path().join("data"))
            .env("TRIBUTARY_LOG_LEVEL", "trace")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        // The start logs more than the pipe holds.
        let is_ready = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let is_ready = Arc::clone(&is_ready);
            move || {
                let mut logged = String::new();
                while !is_ready.load(Ordering::SeqCst)
                    && stderr.read_line(&mut logged).is_ok_and(|bytes| bytes > 0)
                {}
                stderr.into_inner()
            }
        });
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the ready line");
        let port = |name: &str| {
            let fact = line.split(' ').find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='));
            let address = fact.unwrap_or_else(|| panic!("no {name} in {line}"));
            address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
        };
        let (mysql, webserver) = (port("mysql"), port("webserver"));
        is_ready.store(true, Ordering::SeqCst);
        // The reader waits for a line, perhaps.
        wait_until("the reader has stopped", || {
            drop(std::net::TcpStream::connect(("127.0.0.1", mysql)));
            reader.is_finished()
        });
        let stderr = Some(reader.join().expect("it read"));
        Self { child, mysql, webserver, stderr, _directory: directory }
    }

    /// Statements, requests and connections of which each is logged.
    fn is_used(&self) {
        let mut client = Client::connect(self.mysql, None);
        client.ok("CREATE DATABASE IF NOT EXISTS d");
        client.ok("CREATE TABLE IF NOT EXISTS d.t (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
        for _ in 0..100 {
            client.ok("INSERT INTO d.t VALUES (1)");
            client.error("SELECT * FROM d.nothing");
        }
        let url = format!("http://127.0.0.1:{}/api/d/nothing/_stream_load", self.webserver);
        assert!(Curl::put(&url).body("1\n").text().contains("nothing"));
        assert_eq!(Client::connect(self.mysql, None).value("SELECT COUNT(*) > 0 FROM d.t"), "1");
    }

    fn lines_dropped(&self) -> f64 {
        let text = Curl::anonymous(&format!("http://127.0.0.1:{}/metrics", self.webserver)).text();
        let line = text.lines().find_map(|line| line.strip_prefix("tributary_log_lines_dropped_total "));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no such line in {text}"))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_whose_log_nobody_takes_answers_and_counts_what_was_lost() {
    let mut server = Piped::start();
    server.is_used();
    drop(server.stderr.take());
    server.is_used();
    assert!(server.lines_dropped() > 0.0);
    let pid = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert!(server.child.wait().expect("it ends").success());
}

#[test]
fn a_server_whose_log_is_read_no_further_answers() {
    let mut server = Piped::start();
    (0..5).for_each(|_| server.is_used());
    // More than the pipe holds waits; nothing of it is read before the server ends.
    let pid = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert!(server.child.wait().expect("it ends").success());
}

#[test]
fn a_line_break_of_a_client_begins_no_line_of_the_log() {
    let server = Server::with_settings(&[("log_level", "debug")]);
    let forged = "2026-11-25T00:00:00Z ERROR forged";
    let base = format!("http://127.0.0.1:{}/api", server.webserver_port());
    let database = forged.replace(' ', "%20");
    Curl::put(&format!("{base}/d%0A{database}/t/_stream_load")).body("1\n").text();
    // A user whose name has a line break and begins a color.
    let user = "Authorization: Basic eAobWzMxbWZvcmdlZDo=";
    Curl::anonymous(&format!("{base}/d/t/_stream_load")).header(user).body("1\n").text();
    server.connect().error(&format!("SELECT 'a\n{forged}' FROM nothing"));
    wait_until("the log has such a text", || server.log().contains("forged"));
    for line in server.log().lines() {
        assert!(!line.starts_with("forged") && !line.starts_with(forged), "{line}");
        assert!(!line.contains('\x1b'), "{line}");
    }
}

#[test]
fn lines_go_to_files_of_a_limited_size_and_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let logs = directory.path().join("logs");
    let path = logs.to_str().expect("UTF-8");
    let settings = [
        ("log_dir", path),
        ("log_roll_bytes", "4000"),
        ("log_roll_num", "2"),
        ("log_level", "tributary=debug"),
    ];
    let server = Server::with_settings(&settings);
    let mut client = server.connect();
    let text = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap_or_default();
    let mut sent = 0;
    wait_until("two files were full", || {
        client.error("SELECT nothing FROM nowhere");
        sent += 1;
        sent > 50 && !text("tributary.log.1").is_empty()
    });
    assert_eq!(std::fs::read_dir(&logs).expect("a directory").count(), 2);
    for name in ["tributary.log", "tributary.log.1"] {
        let text = text(name);
        assert!(text.len() <= 4000 && text.contains("nowhere"), "{name}: {text}");
    }
    assert!(!server.log().contains("nowhere"), "nothing is on standard error: {}", server.log());
    let occupied = directory.path().join("occupied");
    std::fs::write(&occupied, "").expect("written");
    let refusal = Server::refusal(
        &directory.path().join("data"),
        &[("log_dir".to_owned(), occupied.to_str().expect("UTF-8").to_owned())],
    );
    assert!(refusal.contains("occupied (setting log_dir)"), "{refusal}");
}
