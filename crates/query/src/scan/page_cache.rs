//! Pages of data files in memory as they are before compression: nearly a quarter of the time of a query whose files are in the
//! system's cache went into decompression.
//!
//! A column chunk is taken in when it has been read for the second time. Its pages are decompressed in the background, and from
//! then on readers get a footer that describes them as uncompressed, at addresses that are no positions in the file ([`view`]).
//! Nothing else of the Parquet reader has to know.
//!
//! Invariants: a page is checked against its checksum before it is taken in. Within a scan, all readers of a file that live at a
//! time have the same view of it ([`Views`]). The cache has no more than its limit, except for what running queries hold of files
//! that have just left it.
//!
//! Not here: the local cache of a distant store's files, which is on disk and compressed (`tributary_table`).

mod expanded;
mod view;

use bytes::Bytes;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::prelude::SessionConfig;
use expanded::{Expanded, expand};
use moka::sync::Cache;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::Semaphore;
use tributary_table::Checksums;
use tributary_types::memory;
pub(super) use view::{Place, View};

/// The metric of a scan for the bytes of pages that were in memory.
pub const BYTES_IN_MEMORY: &str = "bytes_in_memory";

/// How often a chunk's bytes are read from its file until it is taken in: one that is read once is not worth the memory.
const READS: u64 = 2;
/// A chunk has at most this fraction of the cache, and a file half of it: one that fills the cache would only drive out the others.
const CHUNKS_MIN: u64 = 8;
/// When the cache is full, as many bytes are taken in at most as this fraction of the bytes that queries read from files. Otherwise
/// each scan of more than the cache has would be done twice, once in the background for nothing.
const EXCHANGED: u64 = 16;
/// The most bytes that are taken in at once by a cache that is full.
const EXCHANGED_MAX: u64 = 64 << 20;
/// The unit of the cache's sizes, in bytes.
const UNIT: u64 = 1024;

/// A data file, which never changes: its path, and its size in bytes.
type Key = (Path, u64);

/// A column chunk, by its row group and its column.
type ChunkId = (usize, usize);

/// Bytes of pages that queries have read since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheFigures {
    /// In the cache, footers included.
    pub held_bytes: u64,
    pub limit_bytes: u64,
    /// From memory, uncompressed.
    pub hit_bytes: u64,
    /// From files.
    pub miss_bytes: u64,
}

/// The cache; see the module.
pub struct PageCache {
    files: Cache<Key, Arc<CachedFile>>,
    limit: u64,
    /// One file at a time is worked at in the background.
    turn: Arc<Semaphore>,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Bytes that may be taken in although the cache is full, times [`EXCHANGED`].
    credit: AtomicU64,
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl PageCache {
    /// A cache of at most `limit` bytes, which gives way when the process has no more memory. 0: it keeps nothing.
    #[must_use]
    pub fn new(limit: u64) -> Arc<Self> {
        let weight =
            |_: &Key, file: &Arc<CachedFile>| u32::try_from(file.bytes().div_ceil(UNIT)).unwrap_or(u32::MAX);
        let cache = Arc::new(Self {
            files: Cache::builder().weigher(weight).max_capacity(limit / UNIT).build(),
            limit,
            turn: Arc::new(Semaphore::new(1)),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            credit: AtomicU64::new(0),
        });
        if limit > 0 {
            let weak = Arc::downgrade(&cache);
            memory::give_way(move || weak.upgrade().map(|cache| cache.clear()));
        }
        cache
    }

    /// The cache of an engine, from the configuration of its sessions.
    pub(crate) fn of(config: &SessionConfig) -> Arc<Self> {
        config.get_extension::<Self>().unwrap_or_else(|| Self::new(0))
    }

    pub fn figures(&self) -> PageCacheFigures {
        // Sizes are up to date only then.
        self.files.run_pending_tasks();
        PageCacheFigures {
            held_bytes: self.files.weighted_size() * UNIT,
            limit_bytes: self.limit,
            hit_bytes: self.hits.load(Ordering::Relaxed),
            miss_bytes: self.misses.load(Ordering::Relaxed),
        }
    }

    pub(super) fn get(&self, path: &Path, size: u64) -> Option<Arc<CachedFile>> {
        self.files.get(&(path.clone(), size))
    }

    pub(super) fn insert(&self, path: &Path, size: u64, file: &Arc<CachedFile>) {
        self.files.insert((path.clone(), size), Arc::clone(file));
    }

    /// Forgets all files and returns how many bytes they had.
    fn clear(&self) -> u64 {
        self.files.run_pending_tasks();
        let held = self.files.weighted_size() * UNIT;
        self.files.invalidate_all();
        self.files.run_pending_tasks();
        held
    }

    pub(super) fn count_hit(&self, bytes: u64) {
        self.hits.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts what was read from a file, and takes in the chunks that have been read often enough.
    pub(super) fn count_misses(
        self: &Arc<Self>,
        source: &Source,
        file: &Arc<CachedFile>,
        read: &[Range<u64>],
    ) {
        let bytes = read.iter().map(|range| range.end - range.start).sum();
        self.misses.fetch_add(bytes, Ordering::Relaxed);
        if self.limit == 0 {
            return;
        }
        self.credit.fetch_add(bytes, Ordering::Relaxed);
        self.credit.fetch_min(EXCHANGED_MAX * EXCHANGED, Ordering::Relaxed);
        let due: Vec<ChunkId> = read.iter().filter_map(|range| file.count(range)).collect();
        if due.is_empty() {
            return;
        }
        let (cache, source, file) = (Arc::clone(self), source.clone(), Arc::clone(file));
        tokio::spawn(async move {
            let Ok(_turn) = Arc::clone(&cache.turn).acquire_owned().await else { return };
            cache.take_in(&source, &file, due).await;
        });
    }

    /// Whether there is room for a chunk of this size of a file that has `held` bytes, with a reason for another attempt if not.
    fn has_room(&self, size: u64, held: u64) -> Result<(), Later> {
        if size > self.limit / CHUNKS_MIN || held.saturating_add(size) > self.limit / 2 {
            return Err(Later::Never);
        }
        if memory::left() < 2 * size {
            return Err(Later::WhenReadAgain);
        }
        if self.files.weighted_size() * UNIT + size <= self.limit {
            return Ok(());
        }
        let pay = |credit: u64| credit.checked_sub(size * EXCHANGED);
        let paid = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        paid.map(drop).map_err(|_| Later::WhenReadAgain)
    }

    async fn take_in(&self, source: &Source, file: &Arc<CachedFile>, due: Vec<ChunkId>) {
        self.files.run_pending_tasks();
        let mut added = HashMap::new();
        let mut held = file.bytes();
        for id in due {
            let size = file.expanded_bytes(id);
            match self.has_room(size, held) {
                Ok(()) => {}
                Err(Later::Never) => continue,
                Err(Later::WhenReadAgain) => {
                    file.count_again(id);
                    continue;
                }
            }
            match file.expand(source, id).await {
                Ok(chunk) => {
                    held += size;
                    added.insert(id, Arc::new(chunk));
                }
                // The query that reads the chunk from the file next says what is wrong.
                Err(error) => {
                    tracing::debug!(path = %source.path, ?id, %error, "not taken into the page cache");
                }
            }
        }
        if !added.is_empty() && file.add(added) {
            // With its new weight.
            self.insert(&source.path, source.size, file);
        }
    }
}

/// When a chunk without room is considered the next time.
enum Later {
    Never,
    WhenReadAgain,
}

/// Where a file is.
#[derive(Clone)]
pub(super) struct Source {
    pub store: Arc<dyn ObjectStore>,
    pub path: Path,
    pub size: u64,
}

/// A file of which something was read: its footer, and chunks in memory.
pub(super) struct CachedFile {
    footer: Arc<ParquetMetaData>,
    /// Which files of other writers lack.
    checksums: Option<Checksums>,
    footer_bytes: u64,
    /// By their first byte.
    chunks: Vec<Chunk>,
    held: Mutex<Held>,
}

struct Chunk {
    bytes: Range<u64>,
    id: ChunkId,
    /// Bytes that were read of it.
    read: AtomicU64,
}

struct Held {
    chunks: HashMap<ChunkId, Arc<Expanded>>,
    bytes: u64,
    view: Arc<View>,
}

impl CachedFile {
    /// A file with a footer that can be its own, of which nothing is in memory.
    pub(super) fn new(footer: Arc<ParquetMetaData>, checksums: Option<Checksums>) -> Self {
        let mut chunks: Vec<Chunk> = Vec::new();
        for (row_group, group) in footer.row_groups().iter().enumerate() {
            chunks.extend(group.columns().iter().enumerate().map(|(column, chunk)| {
                let (start, bytes) = chunk.byte_range();
                let bytes = start..start.saturating_add(bytes);
                Chunk { bytes, id: (row_group, column), read: AtomicU64::new(0) }
            }));
        }
        chunks.sort_by_key(|chunk| chunk.bytes.start);
        let view = Arc::new(View::of_file(Arc::clone(&footer)));
        let footer_bytes = (footer.memory_size() + chunks.len() * size_of::<Chunk>()) as u64;
        let held = Mutex::new(Held { chunks: HashMap::new(), bytes: 0, view });
        Self { footer, checksums, footer_bytes, chunks, held }
    }

    /// The file's own footer.
    pub(super) fn footer(&self) -> &Arc<ParquetMetaData> {
        &self.footer
    }

    pub(super) fn view(&self) -> Arc<View> {
        Arc::clone(&self.held.lock().view)
    }

    /// Describes the damage of bytes of the file from `start` on, if any.
    pub(super) fn fault(&self, start: u64, bytes: &[u8]) -> Option<String> {
        self.checksums.as_ref()?.fault(&self.footer, start, bytes)
    }

    fn bytes(&self) -> u64 {
        self.footer_bytes + self.held.lock().bytes
    }

    /// Counts bytes that were read, and returns their chunk if it has just been read often enough.
    fn count(&self, range: &Range<u64>) -> Option<ChunkId> {
        let behind = self.chunks.partition_point(|chunk| chunk.bytes.start <= range.start);
        let chunk = self.chunks.get(behind.checked_sub(1)?)?;
        if range.end > chunk.bytes.end {
            return None;
        }
        let enough = READS * (chunk.bytes.end - chunk.bytes.start);
        let before = chunk.read.fetch_add(range.end - range.start, Ordering::Relaxed);
        (before < enough && before + (range.end - range.start) >= enough).then_some(chunk.id)
    }

    /// Lets a chunk be taken in another time.
    fn count_again(&self, id: ChunkId) {
        if let Some(chunk) = self.chunks.iter().find(|chunk| chunk.id == id) {
            chunk.read.store(0, Ordering::Relaxed);
        }
    }

    /// The size of a chunk in memory, as the footer has it.
    fn expanded_bytes(&self, (row_group, column): ChunkId) -> u64 {
        let chunk = self.footer.row_group(row_group).column(column);
        u64::try_from(chunk.uncompressed_size()).unwrap_or(u64::MAX / 4)
    }

    async fn expand(
        self: &Arc<Self>,
        source: &Source,
        (row_group, column): ChunkId,
    ) -> Result<Expanded, String> {
        let (start, length) = self.footer.row_group(row_group).column(column).byte_range();
        let bytes = source.store.get_range(&source.path, start..start + length).await;
        let bytes: Bytes = bytes.map_err(|error| error.to_string())?;
        let file = Arc::clone(self);
        let expanded = tokio::task::spawn_blocking(move || {
            if let Some(fault) = file.fault(start, &bytes) {
                return Err(fault);
            }
            expand(&file.footer, row_group, column, bytes).map_err(|error| error.to_string())
        });
        expanded.await.map_err(|error| error.to_string())?
    }

    /// Adds chunks, and returns whether there is a view with them.
    fn add(&self, added: HashMap<ChunkId, Arc<Expanded>>) -> bool {
        let mut chunks = self.held.lock().chunks.clone();
        chunks.extend(added);
        match View::new(&self.footer, &chunks) {
            Ok(view) => {
                let bytes = chunks.values().map(|chunk| chunk.bytes.len() as u64).sum();
                *self.held.lock() = Held { chunks, bytes, view: Arc::new(view) };
                true
            }
            Err(error) => {
                tracing::debug!(%error, "a footer can't describe pages in memory");
                false
            }
        }
    }
}

/// A file and the view of it that one scan has.
pub(super) struct Bound {
    pub file: Arc<CachedFile>,
    pub view: Arc<View>,
}

/// The views of one scan. DataFusion asks one reader for the footer and another one for the pages that it describes, which it
/// creates while the first one lives.
#[derive(Default)]
pub(super) struct Views(Mutex<HashMap<Path, Weak<Bound>>>);

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").finish_non_exhaustive()
    }
}

impl Views {
    /// The view that a reader of the file has now.
    pub(super) fn get(&self, path: &Path) -> Option<Arc<Bound>> {
        self.0.lock().get(path)?.upgrade()
    }

    /// The view that a reader of the file has, or that of the cache.
    pub(super) fn bind(&self, path: &Path, file: &Arc<CachedFile>) -> Arc<Bound> {
        let mut views = self.0.lock();
        if let Some(bound) = views.get(path).and_then(Weak::upgrade) {
            return bound;
        }
        let bound = Arc::new(Bound { file: Arc::clone(file), view: file.view() });
        views.insert(path.clone(), Arc::downgrade(&bound));
        bound
    }
}

#[cfg(test)]
mod tests;
