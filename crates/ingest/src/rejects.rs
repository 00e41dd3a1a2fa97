//! Rejected rows: those of loads that were stored, with their reasons.
//!
//! They are an entry of the log next to the load's good rows, in the same frame, or in that of the load's commit. So they are durable
//! and count if and only if the good rows do. From then on they are **recent**: in memory. Before the log is released, they go to a
//! **file**; files are deleted by age, and the oldest ones when they take too much space. When no file can be written and the log is
//! half full, it is released without them, and a crash would lose them. Of each load the first rows are kept, and
//! the number of all; when memory for recent ones is short, because no file can be written, only the number.
//!
//! Invariant: the rejected rows of a stored load are found, once, until their time is over, or others or the log need their space. Those of a load
//! that was not stored are never found. No load fails or waits for them. Not its business: why rows are rejected, and who may see them.
//!
//! | file | purpose |
//! | --- | --- |
//! | `record` | the rejected rows of a load, as bytes |
//! | `store` | the files |

pub(crate) mod record;
mod store;

use crate::rejects::record::{RejectedBody, rejected_entry};
use crate::rejects::store::RejectStore;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tributary_decode::Reject;
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{Label, Live, TableId, TxnId, host};
use tributary_wal::{Disk, Entry};

/// The most rejected rows that are kept of one load.
const LOAD_ROWS_MAX: usize = 1_000;
/// The most bytes of their texts.
const LOAD_BYTES_MAX: usize = 1024 * 1024;
/// Recent ones go to a file when they take this many bytes, even if the log needs no release.
const RECENT_BYTES: u64 = 4 * 1024 * 1024;
/// When recent ones take this many bytes, which can't be stored, no rows are kept of more loads.
const RECENT_BYTES_LIMIT: u64 = 64 * 1024 * 1024;
/// Bytes of a load beside its rows, and of a row beside its texts.
const OVERHEAD_BYTES: usize = 160;

/// Rejected rows of a stored load, which another load has brought again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedRows {
    pub txn: TxnId,
    /// The number of the load that rejected them in its transaction.
    pub load: u32,
    /// Their places among the kept rejected rows of that load, from 0.
    pub rows: Vec<u32>,
}

/// The rejected rows of a load that is on its way, and those of other loads that it brings again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadRejects {
    /// How many rows were rejected, kept or not.
    pub filtered: u64,
    /// Where the load came from, for users.
    pub source: String,
    /// The first ones.
    pub rows: Vec<Reject>,
    pub replays: Vec<ReplayedRows>,
}

impl LoadRejects {
    /// Takes as many of the first rows as are kept.
    #[must_use]
    pub fn new(filtered: u64, rows: &[Reject], source: String) -> Self {
        let mut bytes = 0;
        let fits = |reject: &&Reject| {
            bytes += bytes_of(reject);
            bytes <= LOAD_BYTES_MAX
        };
        let rows = rows.iter().take(LOAD_ROWS_MAX).take_while(fits);
        // The log of errors has the line, which is the row or made of it.
        let kept = |reject: &Reject| Reject { source_line: String::new(), ..reject.clone() };
        Self { filtered, source, rows: rows.map(kept).collect(), replays: Vec::new() }
    }
}

impl LoadRejects {
    /// How many rejected rows were only counted.
    #[must_use]
    pub fn not_kept(&self) -> u64 {
        self.filtered.saturating_sub(self.rows.len() as u64)
    }
}

fn bytes_of(reject: &Reject) -> usize {
    OVERHEAD_BYTES + reject.reason.len() + reject.raw.len() + reject.column.as_ref().map_or(0, String::len)
}

/// The rejected rows of a load that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedLoad {
    pub table: TableId,
    pub txn: TxnId,
    /// The load's number in its transaction.
    pub load: u32,
    pub label: Label,
    /// When they were given to the log, in Unix milliseconds.
    pub at_ms: i64,
    pub rejects: LoadRejects,
    /// The transactions that have brought rows again, by the rows' places.
    pub replayed_by: BTreeMap<u32, TxnId>,
}

impl RejectedLoad {
    fn bytes(&self) -> u64 {
        let LoadRejects { source, rows, replays, .. } = &self.rejects;
        let rows: usize = rows.iter().map(bytes_of).sum();
        let replays: usize = replays.iter().map(|replay| 16 + 4 * replay.rows.len()).sum();
        (OVERHEAD_BYTES + source.len() + rows + replays) as u64
    }
}

/// The kept rejected rows in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectFigures {
    /// Loads in memory whose rejected rows are in no file yet.
    pub recent: u64,
    pub recent_bytes: u64,
    /// Those of them that the log has no more, because it was nearly full and no file could be written.
    pub only_in_memory: u64,
    pub files: u64,
    pub file_bytes: u64,
    /// Rejected rows of stored loads that were only counted, since the start.
    pub not_kept: u64,
}

#[derive(Debug, Default)]
struct State {
    recent: Vec<Arc<RejectedLoad>>,
    recent_bytes: u64,
    /// The first ones, which the log has no more.
    only_in_memory: usize,
    not_kept: u64,
    /// Rejected rows of stored loads since the start.
    counts: HashMap<TableId, u64>,
    /// During recovery: the loads that are in files, by transaction and number.
    in_files: HashSet<(TxnId, u32)>,
}

/// The rejected rows of all tables.
#[derive(Debug)]
pub(crate) struct RejectedRows {
    state: Ranked<State>,
    store: RejectStore,
    /// Held by the one that writes or deletes files.
    changing: Mutex<()>,
    keep: Live<Duration>,
    bytes_max: Live<u64>,
}

impl RejectedRows {
    /// Opens the files.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        keep: Live<Duration>,
        bytes_max: Live<u64>,
    ) -> io::Result<Self> {
        let (store, in_files) = RejectStore::open(disk, dir)?;
        let state = State { in_files, ..State::default() };
        let state = Ranked::new(Rank::RejectedRows, state);
        Ok(Self { state, store, changing: Mutex::default(), keep, bytes_max })
    }

    /// Records from before this time are deleted.
    fn before_ms(&self) -> i64 {
        host::unix_ms() - self.keep.get().as_millis() as i64
    }

    /// Restores the rejected rows of a load that the log has.
    pub fn restore(&self, load: RejectedLoad) {
        let mut state = self.state.lock();
        if !state.in_files.contains(&(load.txn, load.load)) {
            state.keep(Arc::new(load));
        }
    }

    /// The log was read.
    pub fn recovered(&self) {
        self.state.lock().in_files = HashSet::new();
    }

    /// All kept rejected rows of the tables, in the order in which they were stored.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn loads(&self, is_asked: impl Fn(TableId) -> bool) -> io::Result<Vec<RejectedLoad>> {
        // A load goes from one to the other under the lock.
        let (files, recent) = {
            let state = self.state.lock();
            (self.store.files(), state.recent.clone())
        };
        let mut loads = Vec::new();
        for file in files.iter() {
            loads.extend(file.read(&is_asked)?);
        }
        let is_read = |load: &&Arc<RejectedLoad>| is_asked(load.table) || !load.rejects.replays.is_empty();
        loads.extend(recent.iter().filter(is_read).map(|load| RejectedLoad::clone(load)));
        mark_replayed(&mut loads);
        loads.retain(|load| load.rejects.filtered > 0 && is_asked(load.table));
        Ok(loads)
    }

    /// Whether the log alone has some of them.
    pub fn has_recent(&self) -> bool {
        let state = self.state.lock();
        state.recent.len() > state.only_in_memory
    }

    /// Whether the recent ones are enough for a file.
    pub fn are_many(&self) -> bool {
        self.state.lock().recent_bytes >= host::limit(RECENT_BYTES, 2_000)
    }

    /// Moves the recent ones to a file: the log may be released up to its end of before. Not for tasks that others wait for.
    ///
    /// # Errors
    /// Those of the disk; they are recent as before.
    pub fn store_recent(&self) -> io::Result<()> {
        let _changing = self.changing.lock();
        let recent = self.state.lock().recent.clone();
        if recent.is_empty() {
            return Ok(());
        }
        let added = self.store.write(&recent)?;
        let mut state = self.state.lock();
        self.store.add(added);
        let stored = state.recent.drain(..recent.len()).map(|load| load.bytes()).sum::<u64>();
        state.recent_bytes -= stored;
        state.only_in_memory = 0;
        Ok(())
    }

    /// The log is released although the recent ones are in no file: loads need its space.
    pub fn leave_log(&self) {
        let mut state = self.state.lock();
        state.only_in_memory = state.recent.len();
    }

    /// Merges small files.
    ///
    /// # Errors
    /// Those of the disk; all are found as before.
    pub fn merge(&self) -> io::Result<()> {
        let _changing = self.changing.lock();
        while self.store.merge_some()? {}
        Ok(())
    }

    /// Whether [`RejectedRows::merge`] has something to do.
    pub fn has_mergeable(&self) -> bool {
        self.store.has_mergeable()
    }

    /// Deletes what is too old, and the oldest files if all take too much space.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn purge(&self) -> io::Result<()> {
        let _changing = self.changing.lock();
        self.store.purge(self.before_ms(), self.bytes_max.get())
    }

    /// Rejected rows of stored loads since the start, by table.
    pub fn counts(&self) -> HashMap<TableId, u64> {
        self.state.lock().counts.clone()
    }

    pub fn figures(&self) -> RejectFigures {
        let files = self.store.files();
        let state = self.state.lock();
        RejectFigures {
            recent: state.recent.len() as u64,
            recent_bytes: state.recent_bytes,
            only_in_memory: state.only_in_memory as u64,
            files: files.len() as u64,
            file_bytes: files.iter().map(|file| file.bytes()).sum(),
            not_kept: state.not_kept,
        }
    }
}

/// Marks rows of loads that later ones have brought again.
fn mark_replayed(loads: &mut [RejectedLoad]) {
    let replaying: Vec<usize> =
        (0..loads.len()).filter(|&at| !loads[at].rejects.replays.is_empty()).collect();
    if replaying.is_empty() {
        return;
    }
    let places: HashMap<(TxnId, u32), usize> =
        loads.iter().enumerate().map(|(at, load)| ((load.txn, load.load), at)).collect();
    for at in replaying {
        let by = loads[at].txn;
        for replay in loads[at].rejects.replays.clone() {
            if let Some(&replayed) = places.get(&(replay.txn, replay.load)) {
                loads[replayed].replayed_by.extend(replay.rows.iter().map(|&row| (row, by)));
            }
        }
    }
}

impl State {
    fn keep(&mut self, load: Arc<RejectedLoad>) {
        self.recent_bytes += load.bytes();
        self.not_kept += load.rejects.not_kept();
        self.recent.push(load);
    }
}

/// The rejected rows of a load with the place for them.
#[derive(Debug)]
pub(crate) struct HeldRejects {
    all: Arc<RejectedRows>,
    rejects: LoadRejects,
    /// As the log was given them.
    logged: OnceLock<Arc<RejectedLoad>>,
    are_stored: AtomicBool,
}

impl HeldRejects {
    pub fn new(all: &Arc<RejectedRows>, mut rejects: LoadRejects) -> Self {
        if all.state.lock().recent_bytes >= RECENT_BYTES_LIMIT {
            rejects.rows.clear();
        }
        Self { all: Arc::clone(all), rejects, logged: OnceLock::new(), are_stored: AtomicBool::new(false) }
    }

    /// Those of a prepared load that the log has.
    pub fn restored(all: &Arc<RejectedRows>, load: RejectedLoad) -> Self {
        Self {
            rejects: load.rejects.clone(),
            logged: OnceLock::from(Arc::new(load)),
            ..Self::new(all, LoadRejects::default())
        }
    }

    /// The entry of a load. `is_acknowledged`: it counts whatever follows.
    pub fn entry(&self, load: (TableId, TxnId, u32), label: &Label, is_acknowledged: bool) -> Entry {
        let (table, txn, load) = load;
        let logged = || RejectedLoad {
            table,
            txn,
            load,
            label: label.clone(),
            at_ms: host::unix_ms(),
            rejects: self.rejects.clone(),
            replayed_by: BTreeMap::new(),
        };
        let logged = self.logged.get_or_init(|| Arc::new(logged()));
        rejected_entry(logged, &RejectedBody::of(logged, is_acknowledged))
    }

    /// The load is stored.
    pub fn are_stored(&self) {
        if let Some(logged) = self.logged.get()
            && !self.are_stored.swap(true, Ordering::AcqRel)
        {
            let mut state = self.all.state.lock();
            *state.counts.entry(logged.table).or_default() += logged.rejects.filtered;
            state.keep(Arc::clone(logged));
        }
    }
}

#[cfg(test)]
mod tests;
