//! `/api/health` and `/api/ready` tell orchestrators the truth, without a login.

use crate::support::{Curl, Server, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn ask(server: &Server, path: &str) -> (u16, Value) {
    let url = format!("http://127.0.0.1:{}{path}", server.http_port());
    let (status, text) = Curl::anonymous(&url).status_and_text();
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The reasons of a server that is not ready.
fn reasons(server: &Server) -> Option<String> {
    let (status, answer) = ask(server, "/api/ready");
    let data = &answer["data"];
    assert_eq!(data["ready"], json!(status == 200), "{answer}");
    (status == 503).then(|| data["reasons"].to_string())
}

/// A small file system, which only root can mount.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(at.to_owned()))
    }

    fn fill(&self) {
        // Written as far as the disk allows.
        drop(std::fs::write(self.0.join("ballast"), vec![0; 80 << 20]));
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_server_on_a_full_disk_is_alive_and_not_ready_until_there_is_space() {
    let mut disk = None;
    let server = Server::on(&[("wal_segment_bytes", "1048576"), ("flush_age_ms", "500")], |directory| {
        disk = SmallDisk::mount(&directory.join("data"));
    });
    let Some(disk) = disk else {
        return eprintln!("not tried: it takes root to mount a small disk");
    };
    let server = server.with_manual_table();
    assert_eq!(reasons(&server), None);
    disk.fill();
    let reason = reasons(&server).expect("no data file can be written");
    assert!(reason.contains("the disk of the tables is full"), "{reason}");
    let mut client = server.connect_to("db");
    let rows = vec!["(1, 'some text that takes space', 1)"; 4000].join(", ");
    let insert = format!("INSERT INTO dt VALUES {rows}");
    wait_until("the log refuses a load", || client.try_query(&insert).is_err());
    let reason = reasons(&server).expect("loads are refused");
    assert!(reason.contains("the disk of the write-ahead log is full"), "{reason}");
    assert!(!reason.contains(&server.data().display().to_string()), "no paths for strangers: {reason}");
    let (status, health) = ask(&server, "/api/health");
    assert_eq!((status, &health["data"]["online_backend_num"]), (200, &json!(0)), "{health}");
    assert_eq!(health["data"]["total_backend_num"], 1);
    assert_eq!(health["data"]["reasons"].to_string(), reason);
    assert_eq!(server.metric("tributary_ready "), 0.0);
    wait_until("the log says so", || server.log().contains("not ready: GET /api/ready answers 503"));
    disk.free();
    wait_until("the server is ready", || reasons(&server).is_none());
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    assert_eq!(
        ask(&server, "/api/health").1["data"],
        json!({"total_backend_num": 1, "online_backend_num": 1})
    );
    assert_eq!(server.metric("tributary_ready "), 1.0);
}

#[test]
fn a_server_whose_flushes_all_fail_is_not_ready_until_one_succeeds() {
    let server = Server::with_settings(&[("flush_age_ms", "50")]).with_manual_table();
    let mut client = server.connect_to("db");
    let table = std::fs::read_dir(server.data().join("tables/db")).expect("a table");
    let table = table.flatten().next().expect("a table").path();
    let (log, aside) = (table.join("_delta_log"), table.join("aside"));
    std::fs::rename(&log, &aside).expect("moved");
    std::fs::write(&log, "no directory").expect("written");
    client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    wait_until("flushes have failed", || reasons(&server).is_some());
    let reason = reasons(&server).expect("flushes fail");
    assert!(reason.contains("flushes have failed, of 1 tables, since 20"), "{reason}");
    assert!(!reason.contains("dt"), "no names for strangers: {reason}");
    let (_, ready) = ask(&server, "/api/ready");
    wait_until("the table is in trouble, too", || {
        ask(&server, "/api/ready").1["data"]["warnings"].to_string().contains("a table is in trouble")
    });
    assert_eq!(ask(&server, "/api/health").0, 200, "a restart would not help: {ready}");
    std::fs::remove_file(&log).expect("removed");
    std::fs::rename(&aside, &log).expect("moved back");
    wait_until("the server is ready", || reasons(&server).is_none());
    assert_eq!(client.rows("SELECT * FROM dt"), ["1|a|1"]);
}
