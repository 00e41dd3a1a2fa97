//! Whether the server does its work, for `/api/health` and `/api/ready`.
//!
//! Invariant: an answer needs no plan, no call to the store and no wait: it is known, or read from the disks' free space. It is
//! for everybody, so it names no tables and no files; the log and SHOW TABLE STATUS do.
//!
//! | found | makes it |
//! | --- | --- |
//! | background work that has ended | not alive: a restart helps |
//! | a full disk, a store that fails all flushes, a catalog that can't be written | not ready: loads are refused, or will be |
//! | single tables in trouble, a log that has used its limit, a catalog's database that is away | a warning |
//!
//! Not here: what happens to loads meanwhile.

use crate::node::clock::date_time;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_catalog::Catalog;
use tributary_http::Health;
use tributary_ingest::Ingest;
use tributary_wal::{Disk, OsDisk};

/// With fewer free bytes on the tables' disk, hardly a data file can be written.
const TABLES_FREE_BYTES_MIN: u64 = 1024 * 1024;

/// The health of this node. `tables` is the directory of the tables.
pub(crate) fn of(ingest: &Ingest, catalog: &Catalog, tables: &Path) -> Health {
    let failures: Vec<String> = ingest.watcher().ended().into_iter().map(ended).collect();
    let logs = ingest.wal_spaces().iter().filter_map(|space| space.wal.missing_space());
    let log = logs.max_by_key(|missing| missing.needed).map(|missing| {
        format!(
            "the disk of the write-ahead log is full: the last load needed {} bytes and {} are free",
            missing.needed, missing.available
        )
    });
    let flushes = ingest.stalled_flushes().map(|stalled| {
        format!(
            "no flush succeeds: the last {} flushes have failed, of {} tables, since {}: the server's log and the Comment of SHOW TABLE STATUS say \
             why; acknowledged rows stay in the write-ahead log",
            stalled.failures,
            stalled.tables,
            date_time(stalled.since_ms)
        )
    });
    let (away, refusing): (Option<_>, Option<_>) = match catalog.write_trouble() {
        Some(trouble) if trouble.is_away => {
            (Some("the catalog's database can't be reached: loads and queries go on".to_owned()), None)
        }
        Some(trouble) => (None, Some(format!("the catalog can't be written: {}", trouble.reason))),
        None => (None, None),
    };
    let obstacles: Vec<String> =
        [log, tables_disk(tables), flushes, refusing].into_iter().flatten().collect();
    let alive = usize::from(failures.is_empty() && obstacles.is_empty());
    Health {
        nodes: 1,
        alive,
        failures,
        obstacles,
        warnings: warnings(ingest).into_iter().chain(away).collect(),
    }
}

fn ended(work: &'static str) -> String {
    format!("the background work '{work}' has ended: restart the server, and report this")
}

fn tables_disk(tables: &Path) -> Option<String> {
    match OsDisk.available_bytes(tables) {
        Ok(free) if free < TABLES_FREE_BYTES_MIN => {
            Some(format!("the disk of the tables is full: {free} bytes are free"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("the directory of the tables can't be reached: {error}")),
    }
}

fn warnings(ingest: &Ingest) -> Vec<String> {
    let tables = match ingest.troubled_tables() {
        0 => None,
        1 => Some("a table is in trouble: the Comment of SHOW TABLE STATUS says why".to_owned()),
        count => Some(format!("{count} tables are in trouble: the Comments of SHOW TABLE STATUS say why")),
    };
    let has_log = !ingest.wal_spaces().is_empty();
    let log = (has_log && ingest.wal_available_bytes() == 0).then(|| {
        "the write-ahead logs have used their group_commit_wal_max_disk_limit: async loads are answered as in sync mode"
            .to_owned()
    });
    [tables, log].into_iter().flatten().collect()
}

/// Whether loads were acknowledged when somebody looked last.
#[derive(Debug)]
pub(crate) struct LastReadiness(AtomicBool);

impl Default for LastReadiness {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl LastReadiness {
    /// Logs a change.
    pub fn look(&self, health: &Health) {
        let is_ready = health.alive > 0;
        if self.0.swap(is_ready, Ordering::Relaxed) == is_ready {
            return;
        }
        if is_ready {
            tracing::info!("ready again");
        } else {
            let reasons = [&health.failures[..], &health.obstacles[..]].concat().join("; ");
            tracing::warn!(reasons, "not ready: GET /api/ready answers 503");
        }
    }
}
