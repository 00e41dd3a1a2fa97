//! A local cache of data files that are in a remote store: blocks of them, in files of a directory, across restarts.
//!
//! Data files never change, so a block is right as long as its checksum is. Invariants: readers that lack the same block at the same
//! time have it read once; a block that is damaged is read from the store again, and never given out; the blocks take no more bytes
//! than the limit, apart from blocks that are being written; a reader never waits for the disk to take a block.
//!
//! Not its business: which objects never change ([`super::remote`]).

mod block;
mod index;

use crate::error::TableError;
use crate::options::ReadCacheOptions;
use block::{BLOCK_BYTES, Block, Files, Missing, object_hash};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use index::{BlockId, Index};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, watch};

/// Blocks of one request to the store.
const REQUEST_BLOCKS: u32 = 8;
/// Memory that a range gets before its bytes arrive; more comes with them.
const GATHERED_BYTES: u64 = 64 << 20;
/// Requests that one reader has under way.
const REQUESTS_AT_ONCE: usize = 4;
/// Requests whose blocks wait for the disk or are being written. The blocks of further ones are not kept.
const WRITES_AT_ONCE: usize = 8;

/// Figures of a read cache: of this moment, and since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheFacts {
    pub directory: PathBuf,
    pub limit_bytes: u64,
    pub bytes: u64,
    pub blocks: u64,
    /// Blocks that were read from the disk, or with another reader.
    pub hits: u64,
    /// Blocks that were read from the store.
    pub misses: u64,
    pub hit_bytes: u64,
    pub miss_bytes: u64,
    pub evictions: u64,
    /// Blocks that were not what had been written.
    pub damaged: u64,
    /// Blocks that were not kept: the disk was busy, full or failed.
    pub not_kept: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    hit_bytes: AtomicU64,
    miss_bytes: AtomicU64,
    evictions: AtomicU64,
    damaged: AtomicU64,
    not_kept: AtomicU64,
}

fn count(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

/// A block, or why it could not be read; `None` until then.
type Arrival = watch::Receiver<Option<Result<Block, Arc<Error>>>>;
type Sender = watch::Sender<Option<Result<Block, Arc<Error>>>>;

struct State {
    index: Index,
    /// Blocks that are being read from the store or written to the disk.
    arriving: HashMap<BlockId, Arrival>,
}

/// See the module.
pub(crate) struct ReadCache {
    files: Files,
    limit_bytes: u64,
    state: Mutex<State>,
    counters: Counters,
    writes: Arc<Semaphore>,
}

/// The facts of an object that come with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectFacts {
    pub(super) bytes: u64,
    pub(super) modified_ms: i64,
}

impl ReadCache {
    /// Opens the cache in a directory, with the blocks that an earlier run has left there, as far as the limit allows. Does I/O.
    ///
    /// # Errors
    /// [`TableError::Local`].
    pub(crate) fn open(options: &ReadCacheOptions) -> Result<Self, TableError> {
        let ReadCacheOptions { directory, limit, available_bytes } = options;
        let failed = |source| TableError::Local {
            doing: "opening the cache of data files in",
            path: directory.clone(),
            source,
        };
        let (files, found) = Files::open(directory.clone()).map_err(failed)?;
        let kept_bytes = found.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let limit_bytes = limit.of(available_bytes.saturating_add(kept_bytes));
        let mut index = Index::new(limit_bytes);
        let gone: Vec<BlockId> = found.into_iter().flat_map(|(id, bytes)| index.insert(id, bytes)).collect();
        files.remove(&gone);
        Ok(Self {
            files,
            limit_bytes,
            state: Mutex::new(State { index, arriving: HashMap::new() }),
            counters: Counters::default(),
            writes: Arc::new(Semaphore::new(WRITES_AT_ONCE)),
        })
    }

    pub(crate) fn facts(&self) -> CacheFacts {
        let (bytes, blocks) = {
            let state = self.state.lock();
            (state.index.bytes(), state.index.blocks() as u64)
        };
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { hits, misses, hit_bytes, miss_bytes, evictions, damaged, not_kept } = &self.counters;
        CacheFacts {
            directory: self.files.directory().to_owned(),
            limit_bytes: self.limit_bytes,
            bytes,
            blocks,
            hits: of(hits),
            misses: of(misses),
            hit_bytes: of(hit_bytes),
            miss_bytes: of(miss_bytes),
            evictions: of(evictions),
            damaged: of(damaged),
            not_kept: of(not_kept),
        }
    }

    /// Drops the blocks of an object that is deleted or written again.
    pub(super) async fn forget(self: &Arc<Self>, location: &Path) {
        let gone = self.state.lock().index.remove_object(object_hash(location));
        if gone.is_empty() {
            return;
        }
        let cache = Arc::clone(self);
        // It only fails when the process ends.
        let _ = tokio::task::spawn_blocking(move || cache.files.remove(&gone)).await;
    }

    /// Reads these ranges of an object, none of them empty. Ranges are cut at the object's end, as a store does.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn read(
        self: &Arc<Self>,
        store: &Arc<dyn ObjectStore>,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> Result<(Vec<Bytes>, ObjectFacts)> {
        let object = object_hash(location);
        let requests = requests(ranges);
        let read = requests.into_iter().map(|numbers| {
            let (cache, store, location) = (Arc::clone(self), Arc::clone(store), location.clone());
            async move { cache.blocks(store, location, object, numbers).await }
        });
        let mut read = futures::stream::iter(read).buffered(REQUESTS_AT_ONCE);
        let mut gathered = Gathering::of(ranges);
        let mut facts = ObjectFacts { bytes: 0, modified_ms: 0 };
        while let Some(blocks) = read.try_next().await? {
            for (number, block) in blocks {
                facts = ObjectFacts { bytes: block.object_bytes, modified_ms: block.modified_ms };
                gathered.add(u64::from(number) * BLOCK_BYTES, &block.bytes);
            }
        }
        Ok((gathered.finish(), facts))
    }

    /// Blocks of an object in order: from the disk, with another reader that waits for them, or from the store.
    async fn blocks(
        self: Arc<Self>,
        store: Arc<dyn ObjectStore>,
        location: Path,
        object: u128,
        numbers: Range<u32>,
    ) -> Result<Vec<(u32, Block)>> {
        let mut found = Vec::with_capacity(numbers.len());
        let mut arriving = Vec::new();
        let mut wanted: Vec<u32> = numbers.collect();
        while !wanted.is_empty() {
            let Plan { on_disk, to_read, waits } = self.plan(object, &wanted);
            for blocks in to_read {
                self.start(&store, &location, object, blocks);
            }
            arriving.extend(waits);
            let (read, lost) = self.from_disk(&location, object, on_disk).await?;
            found.extend(read);
            wanted = lost;
        }
        for (number, mut arrival) in arriving {
            let block = match arrival.wait_for(Option::is_some).await.map(|block| block.clone()) {
                Ok(Some(Ok(block))) => block,
                Ok(Some(Err(error))) => return Err(shared(&location, error)),
                // Its reader has ended without a word. To wait for yet another one could be a circle.
                Ok(None) | Err(_) => {
                    let blocks = fetch(&store, &location, number..number + 1).await?;
                    blocks.into_iter().next().unwrap_or_else(Block::none)
                }
            };
            found.push((number, block));
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(found)
    }

    /// Decides where blocks come from. Blocks that nobody reads yet are this reader's to read.
    fn plan(&self, object: u128, numbers: &[u32]) -> Plan {
        let mut plan = Plan::default();
        let mut state = self.state.lock();
        for &number in numbers {
            let id = BlockId { object, number };
            if let Some(arrival) = state.arriving.get(&id) {
                count(&self.counters.hits, 1);
                plan.waits.push((number, arrival.clone()));
            } else if state.index.uses(id) {
                plan.on_disk.push(number);
            } else {
                let (sender, arrival) = watch::channel(None);
                state.arriving.insert(id, arrival.clone());
                plan.waits.push((number, arrival));
                match plan.to_read.last_mut() {
                    Some(last) if last.first + last.senders.len() as u32 == number => {
                        last.senders.push(sender);
                    }
                    _ => plan.to_read.push(ToRead { first: number, senders: vec![sender] }),
                }
            }
        }
        plan
    }

    /// Reads blocks from the disk. Lost ones come second.
    async fn from_disk(
        self: &Arc<Self>,
        location: &Path,
        object: u128,
        numbers: Vec<u32>,
    ) -> Result<(Vec<(u32, Block)>, Vec<u32>)> {
        if numbers.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let (cache, location) = (Arc::clone(self), location.clone());
        let read = tokio::task::spawn_blocking(move || {
            let (mut found, mut lost) = (Vec::with_capacity(numbers.len()), Vec::new());
            for number in numbers {
                let id = BlockId { object, number };
                match cache.files.read(&location, id) {
                    Ok(block) => {
                        count(&cache.counters.hits, 1);
                        count(&cache.counters.hit_bytes, block.bytes.len() as u64);
                        found.push((number, block));
                    }
                    Err(missing) => {
                        cache.drop_lost(&location, id, missing);
                        lost.push(number);
                    }
                }
            }
            (found, lost)
        });
        read.await.map_err(|error| Error::Generic { store: "ReadCache", source: Box::new(error) })
    }

    fn drop_lost(&self, location: &Path, id: BlockId, missing: Missing) {
        self.state.lock().index.remove(id);
        if missing == Missing::Damaged {
            count(&self.counters.damaged, 1);
            let file = self.files.path(id);
            tracing::warn!(%location, file = %file.display(), "a damaged block of the read cache is read from the store again");
            self.files.remove(&[id]);
        }
    }

    /// Reads blocks from the store in a task of its own: a reader that leaves, or that is not asked to go on, holds up no other.
    fn start(self: &Arc<Self>, store: &Arc<dyn ObjectStore>, location: &Path, object: u128, blocks: ToRead) {
        let ids: Vec<BlockId> =
            (blocks.first..).zip(&blocks.senders).map(|(number, _)| BlockId { object, number }).collect();
        // Whatever happens to the task, they are not arriving for ever.
        let end = Arriving { cache: Arc::clone(self), ids };
        let (store, location) = (Arc::clone(store), location.clone());
        let read = async move {
            let numbers = blocks.first..blocks.first + blocks.senders.len() as u32;
            match fetch(&store, &location, numbers).await {
                Ok(read) => {
                    count(&end.cache.counters.misses, read.len() as u64);
                    count(
                        &end.cache.counters.miss_bytes,
                        read.iter().map(|block| block.bytes.len() as u64).sum(),
                    );
                    for (sender, block) in blocks.senders.iter().zip(&read) {
                        sender.send_replace(Some(Ok(block.clone())));
                    }
                    end.cache.keep(&location, &end.ids, read).await;
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for sender in &blocks.senders {
                        sender.send_replace(Some(Err(Arc::clone(&error))));
                    }
                }
            }
            drop(end);
        };
        tokio::spawn(read);
    }

    /// Writes blocks to the disk, unless it is busy with others.
    async fn keep(self: &Arc<Self>, location: &Path, ids: &[BlockId], blocks: Vec<Block>) {
        let not_kept = |number: usize| count(&self.counters.not_kept, number as u64);
        let Ok(permit) = Arc::clone(&self.writes).try_acquire_owned() else { return not_kept(blocks.len()) };
        let (cache, location, ids, number) = (Arc::clone(self), location.clone(), ids.to_vec(), blocks.len());
        let written = tokio::task::spawn_blocking(move || {
            for (id, block) in ids.into_iter().zip(blocks).filter(|(_, block)| !block.bytes.is_empty()) {
                match cache.files.write(&location, id, &block) {
                    Ok(bytes) => {
                        let gone = cache.state.lock().index.insert(id, bytes);
                        cache.evict(&gone);
                    }
                    Err(error) => cache.failed(&error),
                }
            }
            drop(permit);
        });
        if written.await.is_err() {
            not_kept(number);
        }
    }

    fn evict(&self, gone: &[BlockId]) {
        count(&self.counters.evictions, gone.len() as u64);
        self.files.remove(gone);
    }

    /// A block could not be written. A full disk gets half of the cache back: rows need it more.
    fn failed(&self, error: &io::Error) {
        count(&self.counters.not_kept, 1);
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let gone = {
                let mut state = self.state.lock();
                let half = state.index.bytes() / 2;
                state.index.shrink(half)
            };
            self.evict(&gone);
        }
        tracing::debug!(%error, "a block was not kept in the read cache");
    }

    /// Waits until nothing is being read or written.
    #[cfg(test)]
    pub(super) async fn settle(&self) {
        while !self.state.lock().arriving.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").field("directory", &self.files.directory()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Plan {
    on_disk: Vec<u32>,
    to_read: Vec<ToRead>,
    waits: Vec<(u32, Arrival)>,
}

/// Blocks that follow one another, and those who wait for them.
struct ToRead {
    first: u32,
    senders: Vec<Sender>,
}

/// Ends the arrival of blocks when it is dropped.
struct Arriving {
    cache: Arc<ReadCache>,
    ids: Vec<BlockId>,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        self.ids.iter().for_each(|id| drop(state.arriving.remove(id)));
    }
}

impl Block {
    /// Of an object that ends before it.
    fn none() -> Self {
        Self { bytes: Bytes::new(), object_bytes: 0, modified_ms: 0 }
    }
}

/// Reads blocks of an object from the store with one request. They may be empty where it ends before them.
async fn fetch(store: &Arc<dyn ObjectStore>, location: &Path, numbers: Range<u32>) -> Result<Vec<Block>> {
    let (first, end) = (u64::from(numbers.start) * BLOCK_BYTES, u64::from(numbers.end) * BLOCK_BYTES);
    let options = GetOptions { range: Some(GetRange::Bounded(first..end)), ..GetOptions::default() };
    let got = store.get_opts(location, options).await?;
    let (object_bytes, modified_ms) = (got.meta.size, got.meta.last_modified.timestamp_millis());
    let bytes = got.bytes().await?;
    if bytes.len() as u64 != end.min(object_bytes).saturating_sub(first) {
        let text =
            format!("{} bytes of '{location}' arrived for {first} to {end} of {object_bytes}", bytes.len());
        return Err(Error::Generic { store: "ReadCache", source: text.into() });
    }
    let block = |number: u32| {
        let start = usize::try_from(u64::from(number - numbers.start) * BLOCK_BYTES).unwrap_or(usize::MAX);
        let start = start.min(bytes.len());
        let end = start.saturating_add(BLOCK_BYTES as usize).min(bytes.len());
        Block { bytes: bytes.slice(start..end), object_bytes, modified_ms }
    };
    Ok(numbers.clone().map(block).collect())
}

/// An error that several readers get.
fn shared(location: &Path, error: Arc<Error>) -> Error {
    match &*error {
        Error::NotFound { .. } => Error::NotFound { path: location.to_string(), source: Box::new(error) },
        _ => Error::Generic { store: "S3", source: Box::new(error) },
    }
}

/// The numbers of the blocks that these ranges touch, in order, as requests to the store have them.
fn requests(ranges: &[Range<u64>]) -> Vec<Range<u32>> {
    let number = |at: u64| u32::try_from(at / BLOCK_BYTES).unwrap_or(u32::MAX - 1);
    let mut touched: Vec<Range<u32>> =
        ranges.iter().map(|range| number(range.start)..number(range.end.saturating_sub(1)) + 1).collect();
    touched.sort_unstable_by_key(|numbers| numbers.start);
    let mut runs: Vec<Range<u32>> = Vec::new();
    for numbers in touched {
        match runs.last_mut() {
            Some(last) if numbers.start <= last.end => last.end = last.end.max(numbers.end),
            _ => runs.push(numbers),
        }
    }
    let step = REQUEST_BLOCKS as usize;
    let parts = |run: Range<u32>| {
        let end = run.end;
        run.step_by(step).map(move |first| first..end.min(first.saturating_add(REQUEST_BLOCKS)))
    };
    runs.into_iter().flat_map(parts).collect()
}

/// Ranges of an object whose bytes arrive in order.
pub(super) struct Gathering<'a> {
    ranges: &'a [Range<u64>],
    gathered: Vec<Gathered>,
}

enum Gathered {
    Nothing,
    Whole(Bytes),
    Parts(Vec<u8>),
}

impl<'a> Gathering<'a> {
    pub(super) fn of(ranges: &'a [Range<u64>]) -> Self {
        Self { ranges, gathered: ranges.iter().map(|_| Gathered::Nothing).collect() }
    }

    /// Takes the object's next bytes, which begin at `start`.
    pub(super) fn add(&mut self, start: u64, bytes: &Bytes) {
        let end = start + bytes.len() as u64;
        for (range, gathered) in self.ranges.iter().zip(&mut self.gathered) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from >= to {
                continue;
            }
            let part = bytes.slice((from - start) as usize..(to - start) as usize);
            match gathered {
                // A small part does not keep a whole block in memory.
                Gathered::Nothing
                    if (from, to) == (range.start, range.end) && part.len() > bytes.len() / 2 =>
                {
                    *gathered = Gathered::Whole(part);
                }
                Gathered::Nothing => {
                    let mut parts =
                        Vec::with_capacity((range.end - range.start).min(GATHERED_BYTES) as usize);
                    parts.extend_from_slice(&part);
                    *gathered = Gathered::Parts(parts);
                }
                Gathered::Parts(parts) => parts.extend_from_slice(&part),
                Gathered::Whole(_) => {}
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Bytes> {
        let bytes = |gathered| match gathered {
            Gathered::Nothing => Bytes::new(),
            Gathered::Whole(bytes) => bytes,
            Gathered::Parts(parts) => parts.into(),
        };
        self.gathered.into_iter().map(bytes).collect()
    }
}

#[cfg(test)]
mod tests;
