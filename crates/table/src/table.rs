//! A table: its snapshot, and the locks for its changes.
//!
//! Two locks, taken in this order (a table with one row for each key has a third one between them, [`UniqueKeys::keys`]). The
//! *rewriter* lock is held over I/O for a change of the Delta log (flush, compaction, deletion of rows, schema change, sweep),
//! one at a time, because two rewriters of the same files would duplicate their rows. The *unflushed* lock serialises changes of
//! the snapshot and is never held over I/O. Readers take neither.
//!
//! Invariant: rows of versions up to the persisted one are in the Delta log; rows of later
//! versions are in the memtable or in unlogged files of the snapshot, and the write-ahead log from
//! [`Table::oldest_unflushed_lsn`] on has them all.

mod change;
mod cut;
mod delta_versions;
mod follow;
mod publish;
mod rewrite;
mod stuck;
mod verify;

pub use change::heavy::{Recast, SchemaChange, Watch, changed_def};
pub use change::recycle::{KeptFile, Leaving};
pub use change::replace::CopiedFiles;
pub use cut::TableCut;
pub use follow::{Current, Freshness, OldRows, Staleness, Writer};
pub use publish::find::KeyFinder;
pub use publish::own_rows::OwnRows;
pub use publish::publication::{Publication, Replaced};
pub use rewrite::compact::CompactReport;
pub use rewrite::copy::Departure;
pub use rewrite::delete::{DeleteReport, FoundRows};
pub use rewrite::flush::FlushReport;
pub use rewrite::sweep::SweepReport;
pub use rewrite::update::RowUpdate;
pub use stuck::Stuck;
pub use verify::DeltaFacts;

use crate::ambient::now_ms;
use crate::error::TableError;
use crate::file::pruning::FileBounds;
use crate::file::{DataFile, FileWriter, LiveFile, Settled, delete_files};
use crate::keys::Keys;
use crate::log::LogState;
use crate::place::root::TableRoot;
use crate::view::sent::SnapshotSender;
use crate::view::snapshot::Snapshot;
use arc_swap::ArcSwap;
use delta_versions::DeltaVersions;
use follow::Followed;
use object_store::path::Path;
use rewrite::others::is_of_others;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stuck::Failures;
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{Lsn, PartitionId, Partitions, TableDef, TableId, Version};

/// One table, open. All methods may be called from many tasks at once.
pub struct Table {
    root: Arc<TableRoot>,
    id: TableId,
    snapshot: ArcSwap<Snapshot>,
    unflushed: Ranked<Unflushed>,
    rewriter: tokio::sync::Mutex<LogState>,
    /// `None` in a table whose rows all stay.
    unique: Option<UniqueKeys>,
    /// `None` in a table that this server writes.
    followed: Option<Followed>,
    persisted: AtomicU64,
    delta_versions: parking_lot::Mutex<DeltaVersions>,
    closed: AtomicBool,
    /// A heavy schema change is under way.
    changing: AtomicBool,
    /// The sweep deletes none of the table's files.
    keeps_all_files: AtomicBool,
    /// Updates that look for rows; compactions wait for them.
    updates: AtomicUsize,
    /// Copies that the Delta log has, or may get, before the snapshot shows them.
    copies: AtomicUsize,
    /// Of the files that the last query of all of them met.
    bounds: parking_lot::Mutex<Option<Arc<FileBounds>>>,
    failures: Failures,
    /// Made when a server that reads asks first.
    sender: parking_lot::Mutex<Option<SnapshotSender>>,
}

/// The location of a table's data files in an object store.
#[derive(Clone, Debug)]
pub struct ObjectRoot {
    path: Path,
    url: String,
}

impl ObjectRoot {
    /// The path of a data file.
    ///
    /// # Errors
    /// [`TableError::BadRoot`] when the path has characters that no store takes.
    pub fn path_of(&self, file: &DataFile) -> Result<Path, TableError> {
        let bad = |error: object_store::path::Error| TableError::BadRoot {
            url: self.url.clone(),
            reason: error.to_string(),
        };
        let relative = Path::parse(&file.path).map_err(bad)?;
        Ok(self.path.parts().chain(relative.parts()).collect())
    }
}

/// The state for settling a table's keys.
#[derive(Default)]
struct UniqueKeys {
    /// Held while rows are settled, or settled rows are moved between memtable and files. Taken after the rewriter lock.
    keys: tokio::sync::Mutex<Keys>,
    /// The arrival number of the next row. Changed under the unflushed lock.
    next_row: AtomicU64,
    /// Held for reading while rows are settled for a query, and for writing by a deletion of rows of a table that folds. Taken
    /// before the rewriter lock.
    folding: tokio::sync::RwLock<()>,
    /// Copies whose entry failed or got no answer, and may nevertheless be in the log. Locked briefly, under the rewriter lock.
    lost_copies: parking_lot::Mutex<Vec<change::light::Replacement>>,
    /// Replacement files in the log that the snapshot does not show yet, because reading keys failed. Work under the rewriter
    /// lock shows them first. Locked briefly, under the rewriter lock.
    unshown: parking_lot::Mutex<Vec<change::light::Replacement>>,
    /// A deletion of rows of a table that folds may be in the log or not.
    in_doubt: AtomicBool,
    /// The log has files of other engines whose rows may have the keys of others there ([`LogState::others`]). Always false in a table
    /// that folds. Changed under the rewriter lock.
    has_others: AtomicBool,
}

/// State that is not in the Delta log yet.
#[derive(Debug, Default)]
struct Unflushed {
    /// Leading parts of the memtable that a flush took; they are not merged with later ones.
    frozen_parts: usize,
    /// Leading parts of the memtable that are settled or about to be; they are not merged with later ones. 0 in a table whose
    /// rows all stay.
    settled_parts: usize,
    /// The last publication with data files, whose rows are between those of earlier and of later parts.
    last_files: Version,
    /// Publications that a flush took but did not finish.
    frozen: Option<Pending>,
    /// Publications since the freeze that are settled or about to be; transient in a table that retains all rows.
    settled: Option<Pending>,
    /// Publications after those.
    active: Option<Pending>,
    /// The last truncation; 0 if there was none.
    truncated_at: Version,
    /// When partitions were emptied last.
    cut_at: HashMap<PartitionId, Version>,
    /// The partitions before some were dropped whose rows the Delta log may have: files of other engines are divided by these.
    dropping: Option<Arc<Partitions>>,
    /// Grows when rows of the memtable disappear without a later row of their key.
    epoch: u64,
    /// The log's metadata or files lag behind the snapshot without a publication.
    log_behind: bool,
    /// Data files that were taken out of the snapshot although some were in no Delta log yet.
    left: Vec<Left>,
}

/// A data file that is not in the snapshot any more.
#[derive(Debug)]
struct Left {
    path: String,
    /// When it left, in milliseconds of Unix time.
    since_ms: i64,
    /// The publication of its last rows. As long as the Delta log does not have that, a replay publishes the file again.
    version: Version,
}

impl Unflushed {
    /// Queries that began before may still read these files, and so may the next start.
    fn leaves<'a>(&mut self, files: impl Iterator<Item = &'a LiveFile>) {
        let since_ms = now_ms();
        let left = |live: &LiveFile| Left { path: live.path().to_owned(), since_ms, version: live.version() };
        self.left.extend(files.map(left));
    }
}

/// Publications that the write-ahead log must retain.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lsn: Lsn,
    since: Instant,
}

impl Pending {
    fn join(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        match (left, right) {
            (Some(left), Some(right)) => {
                Some(Self { lsn: left.lsn.min(right.lsn), since: left.since.min(right.since) })
            }
            (one, other) => one.or(other),
        }
    }
}

impl Unflushed {
    fn pending(&self) -> Option<Pending> {
        Pending::join(Pending::join(self.frozen, self.settled), self.active)
    }

    /// Separates what is already published from what comes next.
    fn settles(&mut self) {
        let active = self.active.take();
        self.settled = Pending::join(self.settled, active);
    }

    /// Freezes everything published until the last call of [`Unflushed::settles`], which `snapshot` contains. `None` if the log
    /// has it.
    fn freeze(&mut self, snapshot: Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        if self.frozen.is_none() && self.settled.is_none() && !self.log_behind {
            return None;
        }
        self.frozen_parts = snapshot.memtable.len();
        let settled = self.settled.take();
        self.frozen = Pending::join(self.frozen, settled);
        Some(snapshot)
    }
}

/// Checks that the log is that of the table.
fn check_id(state: &LogState, def: &TableDef) -> Result<(), TableError> {
    let id = def.id.to_string();
    if state.table_id() == Some(id.as_str()) {
        return Ok(());
    }
    Err(TableError::LocationTaken {
        location: def.location.clone(),
        expected: def.id,
        found: state.table_id().unwrap_or("of another writer").to_owned(),
    })
}

/// The rows that the log has.
fn logged_snapshot(def: &Arc<TableDef>, state: &LogState) -> Snapshot {
    let has_partition = |live: &&LiveFile| publish::cut::has_partition(def, &live.file);
    let files: Vec<_> = state.live.values().filter(has_partition).cloned().collect();
    Snapshot {
        def: Arc::clone(def),
        schema: def.schema.arrow(),
        version: state.app_version,
        files: Arc::new(files),
        memtable: Vec::new(),
        delta_version: delta_version(state),
    }
}

/// A file of a table with keys as a start finds it. Each version of the log has one row for each key, as far as it is ours; whether
/// another engine's rows were settled before is not known.
fn as_found(live: &LiveFile) -> LiveFile {
    let settled = if is_of_others(live) { Settled::Older } else { live.settled };
    LiveFile { settled, ..live.clone() }
}

impl Table {
    /// Reads the log and completes the changes that `def` is ahead of it.
    pub(crate) async fn open(root: Arc<TableRoot>, def: &Arc<TableDef>) -> Result<Arc<Self>, TableError> {
        root.storage.prepare(&root.prefix).await?;
        let mut state = root.log.open(def).await?;
        check_id(&state, def)?;
        // From here on no former writer's entry can follow the ones that were read.
        root.log.seal(&mut state, def).await?;
        let table = Arc::new(Self::of_state(root, def, state));
        table.align_log().await?;
        table.complete_marked_drop().await?;
        Ok(table)
    }

    /// The table as the log has it.
    fn of_state(root: Arc<TableRoot>, def: &Arc<TableDef>, mut state: LogState) -> Self {
        let is_followed = root.options.max_staleness.is_some();
        let has_keys = !def.keys.keeps_all_rows() && !is_followed;
        let mut snapshot = logged_snapshot(def, &state);
        if has_keys {
            snapshot.files = Arc::new(snapshot.files.iter().map(as_found).collect());
        }
        // A crash happened before the files of a dropped partition were removed.
        let log_behind = !is_followed && snapshot.files.len() < state.live.len();
        let versions = DeltaVersions::at_open(state.app_version, snapshot.delta_version);
        let mut unique = has_keys.then(UniqueKeys::default);
        if let Some(unique) = unique.as_mut().filter(|_| !def.keys.is_aggregate()) {
            let others = state.live.values().filter(|live| is_of_others(live));
            state.others = others.map(|live| live.path().to_owned()).collect();
            *unique.has_others.get_mut() = !state.others.is_empty();
        }
        Self {
            root,
            id: def.id,
            snapshot: ArcSwap::from_pointee(snapshot),
            unflushed: Ranked::new(Rank::Unflushed, Unflushed { log_behind, ..Unflushed::default() }),
            persisted: AtomicU64::new(state.app_version.0),
            delta_versions: parking_lot::Mutex::new(versions),
            rewriter: tokio::sync::Mutex::new(state),
            unique,
            followed: None,
            closed: AtomicBool::new(false),
            changing: AtomicBool::new(false),
            keeps_all_files: AtomicBool::new(false),
            updates: AtomicUsize::new(0),
            copies: AtomicUsize::new(0),
            bounds: parking_lot::Mutex::default(),
            failures: Failures::default(),
            sender: parking_lot::Mutex::default(),
        }
    }

    #[must_use]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The definition that readers see now.
    #[must_use]
    pub fn def(&self) -> Arc<TableDef> {
        Arc::clone(&self.snapshot.load().def)
    }

    /// Whether the table retains all rows. Otherwise a key has one row, and a flush settles rows before it writes any.
    #[must_use]
    pub const fn keeps_all_rows(&self) -> bool {
        self.unique.is_none()
    }

    /// Reads the definition that readers see now, without sharing it.
    pub fn with_def<T>(&self, read: impl FnOnce(&TableDef) -> T) -> T {
        read(&self.snapshot.load().def)
    }

    /// The snapshot that a query reads; cheap, as only a pointer is cloned.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The URL of the table's location, ending in `/`.
    #[must_use]
    pub fn url(&self) -> &url::Url {
        &self.root.url
    }

    /// The location of data files in [`crate::TableStore::object_store`].
    ///
    /// # Errors
    /// [`TableError::BadRoot`] when the path has characters that no store takes.
    pub fn object_root(&self) -> Result<ObjectRoot, TableError> {
        let url = self.root.url.to_string();
        match Path::from_url_path(self.root.url.path()) {
            Ok(path) => Ok(ObjectRoot { path, url }),
            Err(error) => Err(TableError::BadRoot { url, reason: error.to_string() }),
        }
    }

    /// Statistics of the files of a snapshot, to find the files that may contain certain rows. Those of the newest files are
    /// cached from one query to the next.
    #[must_use]
    pub fn bounds_of(&self, snapshot: &Snapshot) -> Arc<FileBounds> {
        let mut kept = self.bounds.lock();
        if let Some(known) = kept.as_ref().filter(|known| known.are_of(&snapshot.files)) {
            return Arc::clone(known);
        }
        let bounds = Arc::new(FileBounds::new(&snapshot.files));
        // Snapshots of the server that writes are not the table's own.
        if self.followed.is_some() || Arc::ptr_eq(&snapshot.files, &self.snapshot().files) {
            *kept = Some(Arc::clone(&bounds));
        }
        bounds
    }

    /// A version of the Delta table that has the publication of `version`: the first one, if the log reached it since the table
    /// was opened, in one of the last 1,024 flushes. `None`: the log does not have it yet.
    #[must_use]
    pub fn delta_version_of(&self, version: Version) -> Option<i64> {
        self.delta_versions.lock().with(version)
    }

    /// How long the oldest rows that are not in the Delta log yet have been visible. `None`: all are in it.
    #[must_use]
    pub fn unflushed_for(&self) -> Option<Duration> {
        self.unflushed.lock().pending().map(|pending| pending.since.elapsed())
    }

    /// The last version that the Delta log holds completely. Replay skips publications up to it.
    #[must_use]
    pub fn persisted_version(&self) -> Version {
        Version(self.persisted.load(Ordering::Acquire))
    }

    /// Bytes of Arrow memory in the memtable.
    #[must_use]
    pub fn memtable_bytes(&self) -> u64 {
        self.snapshot.load().memtable_bytes()
    }

    /// Bytes of the part of the memtable that a flush has taken and not yet replaced by data files.
    #[must_use]
    pub fn frozen_bytes(&self) -> u64 {
        let unflushed = self.unflushed.lock();
        let snapshot = self.snapshot.load();
        snapshot.memtable.iter().take(unflushed.frozen_parts).map(|part| part.bytes as u64).sum()
    }

    #[must_use]
    pub fn memtable_rows(&self) -> u64 {
        self.snapshot.load().memtable_rows()
    }

    /// The first byte of the write-ahead log that this table still needs, if any.
    #[must_use]
    pub fn oldest_unflushed_lsn(&self) -> Option<Lsn> {
        self.unflushed.lock().pending().map(|pending| pending.lsn)
    }

    /// Whether the memtable is large enough, or its unflushed rows old enough, for a flush.
    #[must_use]
    pub fn flush_due(&self, now: Instant) -> bool {
        let (pending, behind) = {
            let unflushed = self.unflushed.lock();
            (unflushed.pending(), unflushed.log_behind)
        };
        let Some(pending) = pending else { return behind };
        let age = Duration::from_millis(self.root.options.flush_age_ms.get());
        behind
            || now.saturating_duration_since(pending.since) >= age
            || self.memtable_bytes() >= self.root.options.flush_bytes.get()
    }

    /// Starts data files for a load that is too large for the memtable. Rows must have the schema
    /// that the table has now ([`FileWriter::schema`]).
    ///
    /// # Errors
    /// [`TableError::Closed`] when the table is being dropped.
    pub fn new_file_writer(&self) -> Result<FileWriter, TableError> {
        self.new_file_writer_of(1)
    }

    /// Like [`Table::new_file_writer`], for one of several writers that write in parallel and share the memory of one.
    ///
    /// # Errors
    /// As [`Table::new_file_writer`].
    pub fn new_file_writer_of(&self, side_by_side: usize) -> Result<FileWriter, TableError> {
        let def = self.def();
        if self.closed.load(Ordering::Acquire) {
            return Err(TableError::Closed { table: def.name.clone() });
        }
        Ok(FileWriter::new(&self.root, &def, side_by_side))
    }

    /// Protects `files`, which a transaction prepared and a restart has yet to publish, from the
    /// sweep. Publishing or discarding them ends it.
    pub fn pin(&self, files: &[DataFile]) {
        self.root.unpublished.lock().extend(files.iter().map(|file| file.path.clone()));
    }

    /// Deletes finished files that will never be published. What cannot be deleted now is left to
    /// [`Table::sweep`].
    pub async fn discard(&self, files: &[DataFile]) {
        let names: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        delete_files(&self.root, &names).await;
    }

    /// Waits for a running flush, compaction or schema change and refuses later ones, so that the
    /// table's files can be removed.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.rewriter.lock().await);
    }

    #[cfg(test)]
    pub(crate) fn root(&self) -> &Arc<TableRoot> {
        &self.root
    }

    /// Locks the log's state, for the one task that may change it.
    async fn lock_log(&self) -> Result<tokio::sync::MutexGuard<'_, LogState>, TableError> {
        let state = self.rewriter.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(TableError::Closed { table: self.def().name.clone() });
        }
        self.show_unshown(&state).await?;
        Ok(state)
    }
}

fn delta_version(state: &LogState) -> i64 {
    i64::try_from(state.version).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
