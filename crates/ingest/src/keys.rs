//! Names of loads: a load that a client sends again with the same idempotency key, or the same offset of a channel, is stored once, and
//! gets the first answer again.
//!
//! A name is **running** from its [`claim`](LoadKeys::claim) until the log has said what became of the load; then it is free again, or
//! its record is **recent**: in memory, and durable by an entry of the log, which is written together with the load's rows. Before the
//! log is released, recent records go to a **file of keys**. So the record of a key is durable exactly as long as its load's rows, in
//! one place after the other, and no write is for keys alone.
//!
//! Channels are few and have no end: all of them are in memory, and in one file that is written with those of keys.
//!
//! Invariant: of all loads with one key of a table at most one is stored, until the record's time is over; the loads of a channel are
//! stored in the order of their offsets, without a gap. Not its business: which load has which name, and the words of answers.
//!
//! | file | purpose |
//! | --- | --- |
//! | `record` | the answer to a load that had a key, as bytes |
//! | `filter`, `segment` | a file of records, found with one read |
//! | `store` | all files, merged and purged |

mod filter;
pub(crate) mod record;
mod segment;
mod store;

use crate::error::IngestError;
use crate::keys::record::{ChannelRecord, Kept, KeyRecord, MadeLabel};
use crate::keys::store::KeyStore;
use crate::tasks;
pub use record::AnsweredAs;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tributary_decode::Counts;
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{ChannelOffset, Label, Live, LoadKey, LoadKeyId, LoadName, TableId, TxnId, host};
use tributary_wal::Disk;

/// Recent records go to a file when there are this many, even if the log needs no release.
const RECENT_MAX: u64 = 1_000_000;
/// With this many recent records, which can't be stored, no more loads with keys are taken.
const RECENT_LIMIT: u64 = 4_000_000;
/// Bytes that a recent record takes in memory.
const RECENT_BYTES: u64 = 130;
/// The most channels.
const CHANNELS_MAX: usize = 100_000;

/// A load that can be told from others, and its bytes in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLoad {
    pub name: LoadName,
    /// [`tributary_types::Fingerprinter`] of the load's bytes.
    pub fingerprint: u64,
}

/// The answer to the first load with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstAnswer {
    pub txn: TxnId,
    pub label: Label,
    pub answered_as: AnsweredAs,
    pub counts: Counts,
    pub fingerprint: u64,
}

impl FirstAnswer {
    fn of(record: &KeyRecord) -> Self {
        Self {
            txn: record.txn,
            label: record.label.label(),
            answered_as: record.answered_as,
            counts: record.counts,
            fingerprint: record.fingerprint,
        }
    }

    /// Refuses a load that has the name and other bytes.
    ///
    /// # Errors
    /// [`IngestError::NameOfOtherBytes`].
    pub fn check(&self, load: &NamedLoad) -> Result<(), IngestError> {
        if self.fingerprint == load.fingerprint {
            return Ok(());
        }
        Err(IngestError::NameOfOtherBytes { name: load.name.clone(), txn: Some(self.txn) })
    }
}

/// A channel of a table, and its last load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelState {
    pub table: TableId,
    pub channel: LoadKey,
    /// Where the next load begins.
    pub next_offset: u64,
    pub last_offset: u64,
    pub txn: TxnId,
    pub label: Label,
    pub counts: Counts,
    pub at_ms: i64,
}

/// Whether a load is the first with its key.
#[derive(Debug)]
pub enum Claimed {
    First(Arc<Claim>),
    /// It was loaded before.
    Repeat(FirstAnswer),
}

/// The kept keys in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFigures {
    /// Keys whose loads have no outcome yet.
    pub running: u64,
    /// Keys in memory.
    pub recent: u64,
    /// Keys in files.
    pub stored: u64,
    pub files: u64,
    pub channels: u64,
    /// Memory of the keys.
    pub memory_bytes: u64,
    /// At this many, loads with keys are refused.
    pub limit: u64,
    /// How long a key is kept.
    pub keep_seconds: u64,
}

#[derive(Debug)]
struct Running {
    load: NamedLoad,
    /// The log was given the load.
    is_submitted: bool,
    /// The log never said what became of it: the next start will.
    is_unknown: bool,
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<LoadKeyId, Running>,
    recent: HashMap<LoadKeyId, KeyRecord>,
    channels: HashMap<LoadKeyId, ChannelRecord>,
    /// The file lacks something of the channels.
    are_channels_changed: bool,
}

impl State {
    fn keep(&mut self, id: LoadKeyId, kept: Kept) {
        match kept {
            Kept::Key(record) => {
                let known = self.recent.entry(id).or_insert(record);
                if known.at_ms <= record.at_ms {
                    *known = record;
                }
            }
            Kept::Channel(channel) => {
                let is_newer = |known: &ChannelRecord| known.at.next < channel.at.next;
                if self.channels.get(&id).is_none_or(is_newer) {
                    self.channels.insert(id, *channel);
                    self.are_channels_changed = true;
                }
            }
        }
    }

    /// The next offset of a channel.
    fn next_offset(&self, id: LoadKeyId) -> u64 {
        self.channels.get(&id).map_or(0, |channel| channel.at.next)
    }

    /// The answer to the last load of a channel, if that is at this offset. `None`: it is the channel's next one.
    fn at_offset(&self, id: LoadKeyId, at: &ChannelOffset) -> Result<Option<KeyRecord>, IngestError> {
        let (channel, offset, next) = (at.channel.clone(), at.offset, self.next_offset(id));
        match self.channels.get(&id) {
            Some(last) if last.at.offset == offset => Ok(Some(last.last)),
            _ if offset == next && (next > 0 || self.channels.len() < CHANNELS_MAX) => Ok(None),
            _ if offset == next => Err(IngestError::TooManyChannels { limit: CHANNELS_MAX }),
            _ if offset < next => Err(IngestError::OffsetExists { channel, offset, next }),
            _ => Err(IngestError::OffsetOutOfRange { channel, offset, next }),
        }
    }
}

/// The keys of all tables.
#[derive(Debug)]
pub(crate) struct LoadKeys {
    state: Ranked<State>,
    store: KeyStore,
    keep: Live<Duration>,
    limit: Live<u64>,
}

impl LoadKeys {
    /// Opens the files of keys.
    ///
    /// # Errors
    /// Those of the disk; a file is damaged.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        keep: Live<Duration>,
        limit: Live<u64>,
    ) -> io::Result<Self> {
        let store = KeyStore::open(disk, dir)?;
        let channels = store.channels()?.into_iter().map(|channel| (channel.last.id, channel)).collect();
        let state = State { channels, ..State::default() };
        Ok(Self { state: Ranked::new(Rank::LoadKeys, state), store, keep, limit })
    }

    /// Records from before this time no longer count.
    fn before_ms(&self) -> i64 {
        host::unix_ms() - self.keep.get().as_millis() as i64
    }

    /// The answer to the first load with a name, if it is known.
    ///
    /// # Errors
    /// [`IngestError::KeysUnreadable`]; [`IngestError::OffsetExists`] and [`IngestError::OffsetOutOfRange`] for an offset that the
    /// channel can't have next, unless one of its loads is running.
    pub fn first_answer(&self, table: TableId, name: &LoadName) -> Result<Option<FirstAnswer>, IngestError> {
        let id = name.id(table);
        let state = self.state.lock();
        let recent = match name {
            LoadName::Channel(_) if state.running.contains_key(&id) => return Ok(None),
            LoadName::Channel(at) => {
                return Ok(state.at_offset(id, at)?.map(|record| FirstAnswer::of(&record)));
            }
            LoadName::Key(_) => state.recent.get(&id).copied(),
        };
        drop(state);
        let record = match recent {
            Some(record) => Some(record),
            None => self.store.find(id).map_err(|error| IngestError::KeysUnreadable(error.to_string()))?,
        };
        Ok(record.filter(|record| record.at_ms >= self.before_ms()).map(|record| FirstAnswer::of(&record)))
    }

    /// Whether a load with the key, or one of the channel, has no outcome yet.
    pub fn is_running(&self, table: TableId, name: &LoadName) -> bool {
        self.state.lock().running.contains_key(&name.id(table))
    }

    /// The channels of a table, or all, in the order of tables and names.
    pub fn channels(&self, table: Option<TableId>) -> Vec<ChannelState> {
        let state = self.state.lock();
        let of_table = |channel: &&ChannelRecord| table.is_none_or(|table| channel.last.table == table);
        let mut channels: Vec<_> = state.channels.values().filter(of_table).map(channel_state).collect();
        drop(state);
        channels.sort_unstable_by(|a, b| (a.table, a.channel.as_str()).cmp(&(b.table, b.channel.as_str())));
        channels
    }

    /// Forgets the channels of tables that are not there.
    pub fn keep_tables(&self, is_there: impl Fn(TableId) -> bool) {
        let mut state = self.state.lock();
        let before = state.channels.len();
        state.channels.retain(|_, channel| is_there(channel.last.table));
        state.are_channels_changed |= state.channels.len() != before;
    }

    /// Takes a name for a load, or says what became of the first one with it. While that is running, waits for its end: for at most
    /// `patience`.
    ///
    /// # Errors
    /// The key is of other bytes, its first load's outcome is unknown or does not come in time, there are too many keys, or they
    /// can't be read. Nothing of the load was stored.
    pub async fn claim(
        self: &Arc<Self>,
        table: TableId,
        load: &NamedLoad,
        counts: Counts,
        patience: Duration,
    ) -> Result<Claimed, IngestError> {
        let until = host::now() + patience;
        loop {
            let ended = match self.try_claim(table, load, counts)? {
                Tried::Claimed(claimed) => return Ok(claimed),
                Tried::Running(ended) => ended,
            };
            let left = until.saturating_duration_since(host::now());
            if left.is_zero() || tasks::timeout(left, ended).await.is_none() {
                return Err(IngestError::NameRunning {
                    name: load.name.clone(),
                    seconds: patience.as_secs(),
                });
            }
        }
    }

    fn try_claim(
        self: &Arc<Self>,
        table: TableId,
        load: &NamedLoad,
        counts: Counts,
    ) -> Result<Tried, IngestError> {
        let id = load.name.id(table);
        let mut state = self.state.lock();
        if let Some(running) = state.running.get(&id) {
            return self.try_running(running, load);
        }
        let recent = match &load.name {
            LoadName::Channel(at) => state.at_offset(id, at)?,
            LoadName::Key(_) => {
                state.recent.get(&id).copied().filter(|record| record.at_ms >= self.before_ms())
            }
        };
        if let Some(record) = recent {
            drop(state);
            return repeat(&record, load);
        }
        if matches!(load.name, LoadName::Key(_)) {
            self.refuse_too_many(&state)?;
        }
        let running = Running {
            load: load.clone(),
            is_submitted: false,
            is_unknown: false,
            ended: Arc::new(Notify::new()),
        };
        state.running.insert(id, running);
        drop(state);
        let claim = Claim {
            keys: Arc::clone(self),
            id,
            table,
            load: load.clone(),
            counts,
            kept: OnceLock::new(),
            has_ended: AtomicBool::new(false),
        };
        if matches!(load.name, LoadName::Key(_)) {
            // It can't get there meanwhile: this load has the key now, and gives it up if it was there.
            let found =
                self.store.find(id).map_err(|error| IngestError::KeysUnreadable(error.to_string()))?;
            if let Some(record) = found.filter(|record| record.at_ms >= self.before_ms()) {
                return repeat(&record, load);
            }
        }
        Ok(Tried::Claimed(Claimed::First(Arc::new(claim))))
    }

    /// Another load has the key, or is the channel's next.
    fn try_running(&self, running: &Running, load: &NamedLoad) -> Result<Tried, IngestError> {
        if running.load.name == load.name && running.load.fingerprint != load.fingerprint {
            return Err(IngestError::NameOfOtherBytes { name: load.name.clone(), txn: None });
        }
        if running.is_unknown {
            return Err(IngestError::NameUnknown { name: load.name.clone() });
        }
        let mut ended = Box::pin(Arc::clone(&running.ended).notified_owned());
        // Enrolled under the lock: the end can't come before.
        ended.as_mut().enable();
        Ok(Tried::Running(ended))
    }

    fn refuse_too_many(&self, state: &State) -> Result<(), IngestError> {
        let recent = state.recent.len() as u64;
        if recent >= RECENT_LIMIT {
            let text = format!("{recent} of them wait for a file, which can't be written");
            return Err(IngestError::KeysUnreadable(text));
        }
        let limit = self.limit.get();
        if recent + self.store.stored().keys >= limit {
            return Err(IngestError::TooManyKeys { limit });
        }
        Ok(())
    }

    /// Restores what the log has of a load.
    pub fn restore(&self, kept: Kept) {
        self.state.lock().keep(kept.record().id, kept);
    }

    /// Whether the log alone has some of them.
    pub fn has_recent(&self) -> bool {
        let state = self.state.lock();
        !state.recent.is_empty() || state.are_channels_changed
    }

    /// Whether the recent records are enough for a file.
    pub fn are_many(&self) -> bool {
        self.state.lock().recent.len() as u64 >= host::limit(RECENT_MAX, 40)
    }

    /// Moves the recent records to a file: the log may be released up to its end of before. Not for tasks that others wait for.
    ///
    /// # Errors
    /// Those of the disk; the records are recent as before.
    pub fn store_recent(&self) -> io::Result<()> {
        self.store_channels()?;
        let recent: Vec<KeyRecord> = self.state.lock().recent.values().copied().collect();
        if recent.is_empty() {
            return Ok(());
        }
        let known = recent.clone();
        self.store.add(recent)?;
        let mut state = self.state.lock();
        for record in known {
            if state.recent.get(&record.id) == Some(&record) {
                state.recent.remove(&record.id);
            }
        }
        Ok(())
    }

    /// Whether some files of keys should become one.
    pub fn has_mergeable(&self) -> bool {
        self.store.has_mergeable()
    }

    /// Merges files of keys. Not for tasks that others wait for.
    ///
    /// # Errors
    /// Those of the disk; all keys are found as before.
    pub fn merge(&self) -> io::Result<()> {
        while self.store.merge_some(self.before_ms())? {}
        Ok(())
    }

    fn store_channels(&self) -> io::Result<()> {
        let channels: Vec<ChannelRecord> = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.are_channels_changed) {
                return Ok(());
            }
            state.channels.values().cloned().collect()
        };
        let outcome = self.store.put_channels(&channels);
        if outcome.is_err() {
            self.state.lock().are_channels_changed = true;
        }
        outcome
    }

    /// Forgets records whose time is over.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn purge(&self) -> io::Result<()> {
        let before_ms = self.before_ms();
        self.state.lock().recent.retain(|_, record| record.at_ms >= before_ms);
        self.store.purge(before_ms)
    }

    pub fn figures(&self) -> KeyFigures {
        let stored = self.store.stored();
        let state = self.state.lock();
        let recent = state.recent.len() as u64;
        KeyFigures {
            running: state.running.len() as u64,
            recent,
            stored: stored.keys,
            files: stored.files,
            channels: state.channels.len() as u64,
            memory_bytes: recent * RECENT_BYTES + stored.memory_bytes,
            limit: self.limit.get(),
            keep_seconds: self.keep.get().as_secs(),
        }
    }
}

enum Tried {
    Claimed(Claimed),
    /// Until the end of the running load.
    Running(Pin<Box<OwnedNotified>>),
}

fn repeat(record: &KeyRecord, load: &NamedLoad) -> Result<Tried, IngestError> {
    let first = FirstAnswer::of(record);
    first.check(load)?;
    Ok(Tried::Claimed(Claimed::Repeat(first)))
}

fn channel_state(record: &ChannelRecord) -> ChannelState {
    let ChannelRecord { last, at } = record;
    ChannelState {
        table: last.table,
        channel: at.channel.clone(),
        next_offset: at.next,
        last_offset: at.offset,
        txn: last.txn,
        label: last.label.label(),
        counts: last.counts,
        at_ms: last.at_ms,
    }
}

/// A load's hold of its name. The name is free again when this is dropped, unless the load was stored or the log may have it.
#[derive(Debug)]
pub struct Claim {
    keys: Arc<LoadKeys>,
    id: LoadKeyId,
    table: TableId,
    load: NamedLoad,
    counts: Counts,
    /// The part of it that the log was given.
    kept: OnceLock<Kept>,
    /// It holds the name no longer.
    has_ended: AtomicBool,
}

impl Claim {
    /// The entry of a load that joins a group or is its own transaction.
    pub(crate) fn kept(&self, txn: TxnId, label: &Label, answered_as: AnsweredAs) -> Kept {
        let kept = || {
            let record = KeyRecord {
                id: self.id,
                table: self.table,
                fingerprint: self.load.fingerprint,
                txn,
                label: MadeLabel::of(label).unwrap_or_else(|| MadeLabel::of_transaction(txn)),
                answered_as,
                at_ms: host::unix_ms(),
                counts: self.counts,
            };
            match &self.load.name {
                LoadName::Key(_) => Kept::Key(record),
                LoadName::Channel(at) => {
                    Kept::Channel(Box::new(ChannelRecord { last: record, at: at.clone() }))
                }
            }
        };
        self.kept.get_or_init(kept).clone()
    }

    /// The log may have the load from now on.
    pub(crate) fn is_submitted(&self) {
        self.set_submitted(true);
    }

    /// The log has refused the load for sure.
    pub(crate) fn is_refused(&self) {
        self.set_submitted(false);
    }

    fn set_submitted(&self, is_submitted: bool) {
        if self.has_ended.load(Ordering::Acquire) {
            return;
        }
        if let Some(running) = self.keys.state.lock().running.get_mut(&self.id) {
            running.is_submitted = is_submitted;
        }
    }

    /// The log has said what became of the load.
    pub(crate) fn is_settled(&self, error: Option<&IngestError>) {
        match error {
            None => self.is_stored(),
            Some(error) if error.says_nothing_was_kept() => self.is_refused(),
            Some(_) => {}
        }
    }

    /// The load is stored: repetitions get its answer.
    pub(crate) fn is_stored(&self) {
        let Some(kept) = self.kept.get() else { return };
        if self.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.keys.state.lock();
        state.keep(self.id, kept.clone());
        if let Some(running) = state.running.remove(&self.id) {
            running.ended.notify_waiters();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.has_ended.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.keys.state.lock();
        let Some(running) = state.running.get_mut(&self.id) else { return };
        running.ended.notify_waiters();
        running.is_unknown = running.is_submitted;
        if !running.is_unknown {
            state.running.remove(&self.id);
        }
    }
}
