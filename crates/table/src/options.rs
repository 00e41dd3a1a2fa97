//! Settings that all tables of a storage root share: sizes, ages and who commits to them.

use std::path::PathBuf;
use std::time::Duration;
use tributary_types::{Live, Portion};

const MIB: u64 = 1024 * 1024;

/// Settings of a [`crate::TableStore`]. Every limit carries its unit in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// This node's name, which Delta commits carry. It must stay the same over restarts: before their application
    /// ids were the tables' own, commits had `tributary-<node>`, and without it replay would repeat their rows.
    pub node: String,
    /// The epoch of the right to write these tables: it grows whenever that right changes hands. Delta commits carry it.
    pub epoch: u64,
    /// The claim that `epoch` counts, where another process can take that right over. `None`: none can.
    pub claim: Option<WriteClaim>,
    /// A memtable is due for a flush at this many bytes of Arrow memory.
    pub flush_bytes: Live<u64>,
    /// A publication is due for a flush at this age.
    pub flush_age_ms: Live<u64>,
    /// A data file is closed when its encoded size reaches this.
    pub target_file_bytes: Live<u64>,
    /// Parquet's Zstd level, 1 to 22.
    pub zstd_level: i32,
    /// A Delta checkpoint is written after this many commits, or more after large ones.
    pub checkpoint_every: Live<u64>,
    /// How long files that left the table are retained for readers of older Delta versions.
    pub keep_removed_files_ms: Live<u64>,
    /// How long entries of the Delta log are retained that a checkpoint contains.
    pub keep_log_ms: Live<u64>,
    /// A directory on this machine for the keys of data files, which are made again when they are not there. `None`: they
    /// stay in memory.
    pub keys_directory: Option<PathBuf>,
    /// Rows that are folded, or completed from others, are made in pieces of at most this many.
    pub settled_piece_rows: u64,
    /// Such a piece has fewer rows where they come to more bytes than this.
    pub settled_piece_bytes: u64,
    /// Memory for such pieces of all tables together.
    pub settling_bytes: u64,
    /// Compaction starts at this many files smaller than three quarters of `target_file_bytes`, or where
    /// fewer fill a file together.
    pub compact_min_files: usize,
    /// The time limit of one call to the object store.
    pub call_timeout: Duration,
    /// The age up to which queries read the tables of another server, which writes them; zero: any age. `None`: they are this
    /// server's.
    pub max_staleness: Option<Live<Duration>>,
    /// Where data files of a store that is far away are cached. `None`: nowhere.
    pub read_cache: Option<ReadCacheOptions>,
}

impl StoreOptions {
    /// How long what the newest version does not need is retained now.
    pub(crate) fn retention(&self) -> Retention {
        Retention { removed_files_ms: self.keep_removed_files_ms.get(), log_ms: self.keep_log_ms.get() }
    }
}

/// How long what the newest version of a table does not need is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Data files that left the table, and the log's records of them.
    pub removed_files_ms: u64,
    /// Entries of the log.
    pub log_ms: u64,
}

/// A right to write tables, which the next process that claims it takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteClaim {
    /// The thing that was claimed: epochs of another one say nothing about it.
    pub id: String,
    /// The process that had it before may be running: each table is sealed against it before anything else is written.
    pub is_takeover: bool,
}

impl WriteClaim {
    /// The id of the application whose version in a Delta log is the epoch of its last seal.
    pub(crate) fn app_id(&self) -> String {
        format!("tributary-writer-{}", self.id)
    }
}

/// The place and the size of a local cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCacheOptions {
    /// On this machine, and used by nothing else.
    pub directory: PathBuf,
    /// The part of the space that is free for it: of these bytes, and of those of the blocks that are there already.
    pub limit: Portion,
    pub available_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            node: "node-1".to_owned(),
            epoch: 0,
            claim: None,
            flush_bytes: Live::new(64 * MIB),
            flush_age_ms: Live::new(60_000),
            target_file_bytes: Live::new(128 * MIB),
            zstd_level: 1,
            checkpoint_every: Live::new(10),
            keep_removed_files_ms: Live::new(24 * 60 * 60 * 1000),
            keep_log_ms: Live::new(7 * 24 * 60 * 60 * 1000),
            keys_directory: None,
            settled_piece_rows: 64 * 1024,
            settled_piece_bytes: 256 * MIB,
            settling_bytes: 1024 * MIB,
            compact_min_files: 16,
            call_timeout: Duration::from_secs(120),
            max_staleness: None,
            read_cache: None,
        }
    }
}
