//! A file system that fills up and is freed again.
//!
//! The promise: while the disk is full, loads are refused with an error that says so (or answered), queries continue and the
//! server stays up; when there is space again, everything acknowledged exists once and loads of every mode work.

use crate::TortureError;
use crate::doors::ROOT;
use crate::load::{DATABASE, Load};
use crate::mysql::connect;
use crate::report::grouped;
use crate::run::{Torture, create_tables};
use crate::server::{NotReady, Server};
use crate::writers::Round;
use rand::Rng;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The file system's size.
const DISK_BYTES: u64 = 192 << 20;
/// How long the clients write before the disk is filled.
const BEFORE_FULL: Duration = Duration::from_millis(700);
/// How long a full disk stays full once a load was refused, at least and at most, in ms.
const FULL_MS: std::ops::Range<u64> = 500..5000;
/// How long it may take until a load is refused.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take until loads work again.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Runs cycles of filling and freeing.
pub(crate) fn run(torture: &mut Torture<'_>) -> Result<(), TortureError> {
    let disk = SmallDisk::mount(&torture.options.directory)?;
    (torture.progress)(&format!("{} on {}, {} MiB", disk.kind, disk.mounted.display(), DISK_BYTES >> 20));
    torture.launch.data = disk.mounted.join("data");
    for (name, value) in &mut torture.launch.settings {
        if name == "group_commit_wal_path" {
            *value = format!("{0}/wal-a;{0}/wal-b", torture.launch.data.display());
        }
    }
    torture.launch.settings.push(("group_commit_wal_max_disk_limit".to_owned(), "50%".to_owned()));
    let mut server = torture.start()?;
    create_tables(&server)?;
    while torture.is_time_left() && !torture.is_broken() && disk.free_bytes() > DISK_BYTES / 3 {
        server = cycle(torture, &disk, server)?;
    }
    torture.last_check(server)
}

fn cycle(torture: &mut Torture<'_>, disk: &SmallDisk, mut server: Server) -> Result<Server, TortureError> {
    let round = torture.new_round(&server, true);
    let is_killed = torture.rng.random_bool(0.5);
    torture.figures.disks_filled += 1;
    let stays_full = Duration::from_millis(torture.rng.random_range(FULL_MS));
    let (ended, resident) = torture.with_clients(&round, || {
        let outcome = fill_and_wait(disk, &round, &mut server, stays_full);
        let resident = server.resident_bytes();
        if is_killed {
            round.is_killed.store(true, Ordering::SeqCst);
            server.kill_in_place();
        } else {
            disk.free();
        }
        (outcome, resident)
    });
    torture.check_memory(resident);
    if let Some(problem) = ended {
        torture.violation(&problem);
    }
    unclear_refusals(torture, &round);
    if is_killed {
        torture.figures.kills_while_running += 1;
        start_on_full_disk(torture)?;
        disk.free();
        drop(server);
        server = torture.start()?;
    }
    wait_until_loads_work(torture, &server);
    torture.check(&server, &round)?;
    (torture.progress)(&format!(
        "[{:7.1} s] round {}: full{}, freed; {} loads refused meanwhile, {} rows acknowledged, {} in the tables, {} MiB free",
        torture.began.elapsed().as_secs_f64(),
        round.number,
        if is_killed { " and killed" } else { "" },
        grouped(round.books.refused_loads()),
        grouped(round.books.acknowledged_rows()),
        grouped(torture.settled.rows()),
        disk.free_bytes() >> 20,
    ));
    Ok(server)
}

/// Fills the disk under the writers; what went wrong, if anything.
fn fill_and_wait(
    disk: &SmallDisk,
    round: &Round,
    server: &mut Server,
    stays_full: Duration,
) -> Option<String> {
    std::thread::sleep(BEFORE_FULL);
    if let Err(error) = disk.fill() {
        return Some(format!("the disk could not be filled: {error}"));
    }
    let filled = Instant::now();
    let mut refused_at = None;
    while refused_at.is_none_or(|at: Instant| at.elapsed() < stays_full) {
        if let Some(status) = server.ended() {
            return Some(format!("the server ended by itself on a full disk: {status}"));
        }
        if refused_at.is_none() && round.books.refused_loads() > 0 {
            refused_at = Some(Instant::now());
        }
        if refused_at.is_none() && filled.elapsed() > REFUSED_WITHIN {
            return Some("no load was refused on a full disk".to_owned());
        }
        // Takes the space that the server frees: full stays full.
        if let Err(error) = disk.fill() {
            return Some(format!("the disk could not be filled: {error}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// Reasons named by refusals on a full disk: space, memory, or a schema change, which is independent of the disk and has its
/// loads sent again.
const CLEAR: [&str; 6] = ["space", "disk", "memory for loads", "Disk", "Space", "schema change"];

fn is_clear(reason: &str) -> bool {
    CLEAR.iter().any(|word| reason.contains(word))
}

/// Every refusal must say why.
fn unclear_refusals(torture: &Torture<'_>, round: &Round) {
    for (reason, times) in round.books.refusals() {
        if !is_clear(&reason) {
            torture.violation(&format!(
                "{times} loads were refused on a full disk with an unclear error: {reason}"
            ));
        }
    }
}

/// A start on a full disk either succeeds or names the missing space.
fn start_on_full_disk(torture: &mut Torture<'_>) -> Result<(), TortureError> {
    match torture.launch.start()?.ready() {
        Ok(server) => {
            torture.figures.ready_after(server.ready_after);
            torture.figures.kills_while_running += 1;
            server.kill();
        }
        Err(NotReady::Exited(_)) if torture.launch.log_tail().contains("space") => {
            torture.figures.starts_refused += 1;
        }
        Err(problem) => {
            torture.violation(&format!("a start on a full disk ended without a clear error: {problem}"));
        }
    }
    Ok(())
}

/// A load of every mode is acknowledged again. These loads are of no round and go to a table of
/// their own.
fn wait_until_loads_work(torture: &Torture<'_>, server: &Server) {
    let began = Instant::now();
    for mode in ["async_mode", "sync_mode", "off_mode"] {
        while let Err(last) = probe(server, mode) {
            if began.elapsed() > BACK_WITHIN {
                torture.violation(&format!(
                    "{} s after the disk had space again a load in {mode} is still refused: {last}",
                    BACK_WITHIN.as_secs()
                ));
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn probe(server: &Server, mode: &str) -> Result<(), String> {
    let mut client = connect(&server.doors, ROOT, Some(DATABASE)).map_err(|error| error.to_string())?;
    let mut run = |sql: &str| client.run(sql).map(drop).map_err(|error| error.to_string());
    run(
        "CREATE TABLE IF NOT EXISTS probe (load_id BIGINT NOT NULL, part INT, size INT, round INT, chk BIGINT, \
         pad VARCHAR(200)) DUPLICATE KEY(load_id) DISTRIBUTED BY HASH(load_id) BUCKETS 1 \
         PROPERTIES (\"group_commit_interval_ms\" = \"10\")",
    )?;
    run(&format!("SET group_commit = {mode}"))?;
    let load = Load { id: 1, table: 0, rows: 3, round: 1, pad_bytes: 10 };
    run(&load.insert().replacen(load.table_name(), "probe", 1))
}

/// A file system of its own, unmounted when dropped.
struct SmallDisk {
    mounted: PathBuf,
    image: Option<PathBuf>,
    kind: &'static str,
}

impl SmallDisk {
    /// An ext4 in a file, or a tmpfs where loop devices are missing.
    fn mount(directory: &Path) -> Result<Self, TortureError> {
        let mounted = directory.join("disk");
        let image = directory.join("disk.img");
        std::fs::create_dir_all(&mounted)
            .map_err(|error| TortureError::Setup(format!("creating {}: {error}", mounted.display())))?;
        let (target, file) = (mounted.display().to_string(), image.display().to_string());
        let ext4 = File::create(&image)
            .and_then(|image| image.set_len(DISK_BYTES))
            .map_err(|error| error.to_string())
            .and_then(|()| shell("mkfs.ext4", &["-q", "-F", "-m", "0", &file]))
            .and_then(|()| shell("mount", &["-o", "loop", &file, &target]));
        let why_not_ext4 = match ext4 {
            Ok(()) => return Ok(Self { mounted, image: Some(image), kind: "ext4 in a file" }),
            Err(why) => why,
        };
        // Nothing depends on the image.
        let _ = std::fs::remove_file(&image);
        let size = format!("size={DISK_BYTES}");
        shell("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &target]).map_err(|why| {
            TortureError::Impossible(format!(
                "a small file system can't be mounted here, so a full disk can't be tested (root is needed): \
                 ext4: {why_not_ext4}; tmpfs: {why}"
            ))
        })?;
        Ok(Self { mounted, image: None, kind: "tmpfs" })
    }

    fn ballast(&self) -> PathBuf {
        self.mounted.join("ballast")
    }

    /// Takes every byte that is free.
    fn fill(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.ballast())?;
        for piece in [vec![0; 1 << 20], vec![0; 4096]] {
            loop {
                match file.write(&piece) {
                    Ok(1..) => {}
                    Ok(0) => break,
                    Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn free(&self) {
        // It does not exist if filling failed.
        let _ = std::fs::remove_file(self.ballast());
    }

    /// Free bytes beside the ballast; 0 if the system does not report them.
    fn free_bytes(&self) -> u64 {
        let output = Command::new("df").args(["--output=avail", "-B1"]).arg(&self.mounted).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let target = self.mounted.display().to_string();
        // Lazily: a server that was just killed may hold a file for a moment.
        if let Err(why) = shell("umount", &["-l", &target]) {
            eprintln!("cannot unmount {target}: {why}");
        }
        if let Some(image) = &self.image {
            let _ = std::fs::remove_file(image);
        }
    }
}

fn shell(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::is_clear;

    #[test]
    fn a_refusal_names_the_missing_space_or_the_schema_change() {
        for clear in [
            "no space for the write-ahead log in # # bytes are needed",
            "writing the data file '#': No space left on device",
            "memory for loads is used up",
            "schema version not match, maybe a schema change is in process. Please retry this load manually.",
            "insert table t is blocked on schema change",
        ] {
            assert!(is_clear(clear), "{clear}");
        }
        assert!(!is_clear("internal error") && !is_clear("transaction [#] not found."));
    }
}
