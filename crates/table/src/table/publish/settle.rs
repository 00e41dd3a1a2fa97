//! Settling rows of a table with unique keys: which rows supersede which, in the memtable and in data files.
//!
//! A publication only appends. Reads and flushes first settle everything published since the last settling; the result is swapped
//! in while further publications continue. The data files' keys are read from the files on first use.

use crate::error::{TableError, blocking};
use crate::file::{Deletes, EncodedFile, FileReader, LiveFile, RowSet, Settled, publish_names};
use crate::keys::{FileKeys, KeyHash, KeyReader, Keyed, Keys, Marks, Orphans};
use crate::log::LogState;
use crate::place::root::TableRoot;
use crate::table::Table;
use crate::table::publish::fold::Derived;
use crate::view::memtable::{MemPart, append};
use crate::view::snapshot::Snapshot;
use arrow::array::UInt64Array;
use arrow::compute::take_record_batch;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::TableSchema;

/// The result of settling.
pub(in crate::table) struct Found {
    pub(in crate::table) marks: Marks,
    /// Rows that take the place of superseded ones.
    pub(in crate::table) derived: Option<Derived>,
}

/// Positions of rows by the paths of data files.
pub(in crate::table) type RowsOfFiles = HashMap<String, RowSet>;

/// A data file and its keys.
pub(in crate::table) type WithKeys = (LiveFile, Arc<FileKeys>);

impl Table {
    /// A snapshot with one row per key, if the table has unique keys: everything published before the call, and perhaps more.
    /// Takes no time if nothing has to be settled.
    ///
    /// # Errors
    /// [`TableError::Storage`] and [`TableError::DamagedFile`]: the keys of a data file could not be read.
    pub async fn settled(&self) -> Result<Arc<Snapshot>, TableError> {
        let current = self.snapshot();
        let Some(unique) = self.unique.as_ref().filter(|_| !current.is_settled()) else { return Ok(current) };
        let _folding = unique.folding.read().await;
        if unique.in_doubt.load(Ordering::Acquire) {
            self.end_doubt(&mut *self.lock_log().await?).await?;
        }
        self.settle_others_if_possible().await;
        let mut keys = unique.keys.lock().await;
        self.settle(&mut keys).await
    }

    /// [`Table::settled`] for a caller that has the keys.
    pub(in crate::table) async fn settle(&self, keys: &mut Keys) -> Result<Arc<Snapshot>, TableError> {
        Ok(self.settle_in_epoch(keys).await?.0)
    }

    /// [`Table::settle`], with the epoch of the snapshot: while that lasts, the memtable begins with the snapshot's.
    pub(in crate::table) async fn settle_in_epoch(
        &self,
        keys: &mut Keys,
    ) -> Result<(Arc<Snapshot>, u64), TableError> {
        let settled = self.try_settle(keys).await;
        self.note_settling(&settled);
        settled
    }

    async fn try_settle(&self, keys: &mut Keys) -> Result<(Arc<Snapshot>, u64), TableError> {
        let mut losses = 0;
        loop {
            let (current, epoch, next_row) = {
                let mut unflushed = self.unflushed.lock();
                unflushed.settles();
                let current = self.snapshot.load_full();
                if current.is_settled() {
                    return Ok((current, unflushed.epoch));
                }
                unflushed.settled_parts = current.memtable.len();
                let next_row = self.unique.as_ref().map(|unique| unique.next_row.load(Ordering::Relaxed));
                (current, unflushed.epoch, next_row.unwrap_or_default())
            };
            self.read_keys(keys, &current.files).await?;
            keys.logged = self.persisted_version();
            let found = if current.def.keys.is_aggregate() {
                self.fold(keys, &current, epoch).await
            } else {
                self.supersede(keys, &current, epoch, next_row).await
            };
            let found = match found {
                // Each is made again once.
                Err(TableError::LostKeys { .. }) if losses <= current.files.len() => {
                    losses += 1;
                    continue;
                }
                found => found?,
            };
            let known_at = keys.known_at.take();
            if let Some(settled) = self.swap_settled(&current, epoch, found)? {
                keys.known_at = known_at;
                keys.orphans = Orphans::default();
                return Ok((settled, epoch));
            }
            // A truncation came between, and the memtable has other contents. Its keys are now read again, as after an error:
            // they have rows that no snapshot shows as settled.
        }
    }

    /// Settles all rows of the snapshot of a table of unique keys.
    async fn supersede(
        &self,
        keys: &mut Keys,
        snapshot: &Arc<Snapshot>,
        epoch: u64,
        next_row: u64,
    ) -> Result<Found, TableError> {
        match self.complete(keys, snapshot, epoch, next_row).await? {
            Some(found) => Ok(found),
            None => compute(keys, snapshot, epoch).await,
        }
    }

    /// Reads the keys of new files, and drops those of others.
    async fn read_keys(&self, keys: &mut Keys, files: &[LiveFile]) -> Result<(), TableError> {
        let paths: HashSet<&str> = files.iter().map(LiveFile::path).collect();
        keys.files.retain(|path, of_file| paths.contains(path.as_str()) && !of_file.is_lost());
        for live in files {
            if !keys.files.contains_key(live.path()) {
                let of_file = self.keys_of(live).await?;
                keys.files.insert(live.path().to_owned(), of_file);
            }
        }
        Ok(())
    }

    /// The keys of all rows of a data file.
    pub(in crate::table) async fn keys_of(&self, live: &LiveFile) -> Result<Arc<FileKeys>, TableError> {
        read_file_keys(&self.root, live, &self.def().schema).await
    }

    /// Publishes the settled state of `settled`. Returns the resulting snapshot; `None` if a truncation came between.
    fn swap_settled(
        &self,
        settled: &Snapshot,
        epoch: u64,
        Found { marks, derived }: Found,
    ) -> Result<Option<Arc<Snapshot>>, TableError> {
        let mut unflushed = self.unflushed.lock();
        if unflushed.epoch != epoch {
            return Ok(None);
        }
        let current = self.snapshot.load_full();
        let (known, later) = current.memtable.split_at(settled.memtable.len());
        let mut memtable = Vec::with_capacity(current.memtable.len());
        let is_aggregate = current.def.keys.is_aggregate();
        for (index, part) in known.iter().enumerate() {
            if is_aggregate && !part.is_settled {
                // All its rows were folded.
                continue;
            }
            let part = with_marks(part, &marks);
            if index < unflushed.frozen_parts {
                memtable.push(Arc::new(part));
            } else {
                append(&mut memtable, unflushed.frozen_parts, part)?;
            }
        }
        let mut derived_rows = 0;
        if let Some(derived) = &derived {
            derived_rows = derived.rows_in_memory();
            for part in derived.parts(&current, settled)? {
                let part = if is_aggregate { part } else { with_marks(&part, &marks) };
                append(&mut memtable, unflushed.frozen_parts, part)?;
            }
        }
        let in_files: &[WithKeys] = derived.as_ref().map_or(&[], |derived| &derived.files);
        let paths: HashSet<&str> = settled.files.iter().map(LiveFile::path).collect();
        let nothing = RowSet::new();
        let with_marks = |live: &LiveFile| match marks.files.get(live.path()) {
            _ if !paths.contains(live.path()) => live.clone(),
            None if live.settled == Settled::Yes => live.clone(),
            rows => live.with_more_deletes(rows.unwrap_or(&nothing)),
        };
        let is_all = later.is_empty() && current.files.len() == settled.files.len();
        let new_files = || in_files.iter().map(|(live, _)| live.clone());
        let files: Arc<Vec<LiveFile>> =
            Arc::new(current.files.iter().map(with_marks).chain(new_files()).collect());
        let of_version = Snapshot {
            version: settled.version,
            memtable: memtable.clone(),
            files: if is_all {
                Arc::clone(&files)
            } else {
                let old = files.iter().filter(|live| paths.contains(live.path())).cloned();
                Arc::new(old.chain(new_files()).collect())
            },
            ..current.as_ref().clone()
        };
        unflushed.settled_parts = memtable.len();
        let is_older = |live: &LiveFile| live.settled == Settled::Older;
        if is_aggregate && derived.is_some() && settled.files.iter().any(is_older) {
            // Perhaps nothing was published, and the rows of an engine alone were folded.
            unflushed.log_behind = true;
        }
        if is_aggregate || derived_rows == 0 {
            memtable.extend(later.iter().cloned());
        } else {
            // The numbers of later rows are not in use yet, and derived ones precede them.
            let renumbered = |part: &Arc<MemPart>| {
                Arc::new(MemPart { first_row: part.first_row + derived_rows, ..MemPart::clone(part) })
            };
            memtable.extend(later.iter().map(renumbered));
            if let Some(unique) = &self.unique {
                unique.next_row.fetch_add(derived_rows, Ordering::Relaxed);
            }
        }
        self.swap(&current, |next| {
            next.memtable = memtable;
            next.files = files;
        });
        // From now on the snapshot keeps them from the sweep.
        publish_names(&self.root, in_files.iter().map(|(live, _)| live.path()));
        Ok(Some(Arc::new(of_version)))
    }

    /// Files whose rows later ones have superseded since the log was written, and these rows.
    pub(in crate::table) fn superseded_since_logged(&self, state: &LogState) -> Vec<(LiveFile, RowSet)> {
        if self.unique.is_none() {
            return Vec::new();
        }
        let since = |live: &LiveFile| {
            let rows = live.deleted_since(state.live.get(live.path())?);
            (!rows.is_empty()).then(|| (live.clone(), rows))
        };
        self.snapshot().files.iter().filter_map(since).collect()
    }

    /// Remembers the keys of the rows whose files no longer exist: files that replaced them may still have the rows.
    pub(in crate::table) async fn remember_orphans(
        &self,
        keys: &mut Keys,
        superseded: Vec<(LiveFile, RowSet)>,
        gone: &HashSet<String>,
    ) -> Result<(), TableError> {
        let mut orphans = Vec::new();
        for (live, rows) in superseded.into_iter().filter(|(live, _)| gone.contains(live.path())) {
            orphans.push((self.keys_in(keys, &live).await?, rows));
        }
        keys.orphans.extend(hashes_of(orphans).await?);
        Ok(())
    }

    /// The keys of a data file that `keys` is likely to have.
    pub(in crate::table) async fn keys_in(
        &self,
        keys: &Keys,
        live: &LiveFile,
    ) -> Result<Arc<FileKeys>, TableError> {
        match keys.files.get(live.path()).filter(|known| !known.is_lost()) {
            Some(known) => Ok(Arc::clone(known)),
            None => self.keys_of(live).await,
        }
    }

    /// The keys of those rows of the frozen memtable that later ones have superseded since. Settled rows change only while the
    /// keys are held.
    pub(in crate::table) fn superseded_since(&self, frozen: &Snapshot) -> Result<Vec<KeyHash>, TableError> {
        let current = {
            let unflushed = self.unflushed.lock();
            if unflushed.truncated_at > frozen.version {
                // The memtable has other contents now, and no frozen row is published.
                return Ok(Vec::new());
            }
            self.snapshot.load_full()
        };
        let reader = KeyReader::new(&frozen.def.schema)?;
        let mut found = Vec::new();
        for (before, now) in frozen.memtable.iter().zip(&current.memtable) {
            let rows =
                |part: &MemPart| part.superseded.as_ref().map(|rows| RowSet::clone(rows)).unwrap_or_default();
            let since = rows(now) - rows(before);
            if since.is_empty() {
                continue;
            }
            let places: UInt64Array = since.iter().collect();
            // The snapshot may have other columns by now.
            let batch = take_record_batch(&before.batch, &places)
                .map_err(TableError::arrow("taking superseded rows out of a memtable"))?;
            found.extend(reader.read(&batch)?.hashes);
        }
        Ok(found)
    }

    /// Files that are about to be rewritten, with those rows left in that delete and have their keys as far as these files go. Other
    /// files, and the memtable, may have later rows of the keys; it does no harm then that they stay.
    pub(in crate::table) async fn with_deletions(
        &self,
        files: Vec<LiveFile>,
    ) -> Result<Vec<LiveFile>, TableError> {
        let mut with_keys = Vec::with_capacity(files.len());
        for live in files {
            let of_file = self.known_keys_of(&live).await?;
            with_keys.push((live, of_file));
        }
        blocking("looking for rows that delete", move || {
            let kept = with_keys.iter().enumerate().map(|(file, _)| deletions_that_stay(&with_keys, file));
            kept.collect()
        })
        .await
    }

    /// [`Table::keys_of`] of a file that is likely to be known.
    pub(in crate::table) async fn known_keys_of(&self, live: &LiveFile) -> Result<Arc<FileKeys>, TableError> {
        let unique = self.unique.as_ref().expect("only a table of unique keys asks for them");
        let known = unique.keys.lock().await.files.get(live.path()).cloned();
        match known.filter(|known| !known.is_lost()) {
            Some(known) => Ok(known),
            None => self.keys_of(live).await,
        }
    }

    /// The keys of rows that were deleted from files since they were read to be rewritten. `now` has the files as they are now.
    pub(in crate::table) async fn deleted_since(
        &self,
        read: &[LiveFile],
        now: impl Fn(&str) -> Option<LiveFile>,
        keys: &Keys,
    ) -> Result<Vec<KeyHash>, TableError> {
        let mut deleted = Vec::new();
        for before in read {
            let since = now(before.path()).map(|now| now.deleted_since(before)).unwrap_or_default();
            if !since.is_empty() {
                deleted.push((self.keys_in(keys, before).await?, since));
            }
        }
        hashes_of(deleted).await
    }
}

/// The file, with those rows left in that delete and have their keys as far as these files go.
fn deletions_that_stay(files: &[WithKeys], file: usize) -> Result<LiveFile, TableError> {
    let (live, keys) = &files[file];
    let mut deletions: Vec<Keyed> = Vec::new();
    if !keys.deletions().is_empty() {
        keys.for_each_key(|of_key| deletions.extend(of_key.iter().filter(|keyed| keys.deletes(keyed.row))))?;
    }
    let mut is_beaten = vec![false; deletions.len()];
    for (other, (live, keys)) in files.iter().enumerate() {
        keys.find(deletions.iter().map(|own| own.hash), |place, found| {
            let own = &deletions[place];
            let is_later = (other, found.row) > (file, own.row);
            let has_its_place = live.is_live(found.row) || (is_later && keys.deletes(found.row));
            is_beaten[place] |=
                found.sequence > own.sequence || (found.sequence == own.sequence && has_its_place);
        })?;
    }
    let stay = deletions.iter().zip(is_beaten).filter(|(_, is_beaten)| !is_beaten);
    Ok(live.with_fewer_deletes(&stay.map(|(own, _)| u64::from(own.row)).collect()))
}

/// The keys of rows of files.
async fn hashes_of(rows: Vec<(Arc<FileKeys>, RowSet)>) -> Result<Vec<KeyHash>, TableError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    blocking("reading keys", move || {
        let mut hashes = Vec::new();
        for (keys, rows) in &rows {
            keys.for_each_key(|of_key| {
                let wanted = of_key.iter().filter(|keyed| rows.contains(keyed.row.into()));
                hashes.extend(wanted.map(|keyed| keyed.hash));
            })?;
        }
        Ok(hashes)
    })
    .await
}

/// The positions of the rows with these keys in files.
pub(in crate::table) async fn find_rows(
    mut hashes: Vec<KeyHash>,
    files: &[WithKeys],
) -> Result<RowsOfFiles, TableError> {
    if hashes.is_empty() {
        return Ok(RowsOfFiles::new());
    }
    let files = files.to_vec();
    blocking("looking for keys", move || {
        hashes.sort_unstable();
        hashes.dedup();
        let mut found = RowsOfFiles::new();
        for (live, keys) in &files {
            let mut rows = RowSet::new();
            keys.find(hashes.iter().copied(), |_, keyed| rows.extend([u64::from(keyed.row)]))?;
            if !rows.is_empty() {
                found.insert(live.path().to_owned(), rows);
            }
        }
        Ok(found)
    })
    .await
}

/// Settles on a thread of its own.
async fn compute(keys: &mut Keys, snapshot: &Arc<Snapshot>, epoch: u64) -> Result<Found, TableError> {
    let snapshot = Arc::clone(snapshot);
    let settle = |keys: &mut Keys, snapshot: &Snapshot, reader: &KeyReader| keys.settle(snapshot, reader);
    let marks = on_a_thread(keys, snapshot, epoch, settle).await?;
    Ok(Found { marks, derived: None })
}

/// Works with keys that include all settled rows of the snapshot's memtable, on a thread of its own. If the caller is cancelled
/// meanwhile, the memtable's keys are read again next time.
pub(in crate::table) async fn on_a_thread<T: Send + 'static>(
    keys: &mut Keys,
    snapshot: Arc<Snapshot>,
    epoch: u64,
    work: impl FnOnce(&mut Keys, &Snapshot, &KeyReader) -> Result<T, TableError> + Send + 'static,
) -> Result<T, TableError> {
    let (files, orphans) = (keys.files.clone(), keys.orphans.clone());
    let mut taken = std::mem::take(keys);
    (keys.files, keys.orphans, keys.logged) = (files, orphans, taken.logged);
    let (done, outcome) = blocking("settling keys", move || {
        let reader = KeyReader::new(&snapshot.def.schema)?;
        if taken.known_at != Some(epoch) {
            taken.read_memtable(&snapshot, epoch, &reader)?;
        }
        let outcome = work(&mut taken, &snapshot, &reader)?;
        Ok((taken, outcome))
    })
    .await?;
    *keys = done;
    Ok(outcome)
}

/// The part, settled, with further rows superseded.
fn with_marks(part: &MemPart, marks: &Marks) -> MemPart {
    let superseded = rows_of_part(&marks.memtable, part);
    let deletions = rows_of_part(&marks.deletions, part);
    MemPart {
        superseded: changed(part.superseded.as_ref(), &(&superseded | &deletions), &RowSet::new()),
        deletions: changed(part.deletions.as_ref(), &deletions, &superseded),
        is_settled: true,
        ..part.clone()
    }
}

/// The rows of the part that have these arrival numbers.
fn rows_of_part(numbers: &RowSet, part: &MemPart) -> RowSet {
    let mut rows = RowSet::new();
    let mut numbers = numbers.iter();
    numbers.advance_to(part.first_row);
    let end = part.first_row + part.batch.num_rows() as u64;
    rows.extend(numbers.take_while(|row| *row < end).map(|row| row - part.first_row));
    rows
}

/// The rows with some more and without others.
fn changed(before: Option<&Arc<RowSet>>, more: &RowSet, gone: &RowSet) -> Option<Arc<RowSet>> {
    let Some(before) = before else { return (!more.is_empty()).then(|| Arc::new(more.clone())) };
    if more.is_empty() && gone.is_disjoint(before) {
        return Some(Arc::clone(before));
    }
    let rows = &(before.as_ref() - gone) | more;
    (!rows.is_empty()).then(|| Arc::new(rows))
}

/// The key file of a data file, or keys that are read from the data file, which are stored from now on.
pub(in crate::table) async fn read_file_keys(
    root: &TableRoot,
    live: &LiveFile,
    schema: &TableSchema,
) -> Result<Arc<FileKeys>, TableError> {
    let path = root.keys_path(live.path());
    let fingerprint = KeyReader::fingerprint(schema);
    if let Some(path) = path.clone() {
        let rows = live.file.rows;
        let kept = blocking("reading keys", move || Ok(FileKeys::kept(&path, fingerprint, rows))).await?;
        if let Some(kept) = kept {
            return Ok(Arc::new(kept));
        }
    }
    let read = Arc::new(KeyReader::columns_of(schema));
    let of_batches = KeyReader::new(&read)?;
    let file = EncodedFile::open(root, &live.with_deletes(None)).await?;
    let mut reader = FileReader::new(&file, file.row_groups(), &read, 0)?;
    let mut keys = FileKeys::builder(fingerprint);
    while let Some(batch) = reader.next().await? {
        keys.append(&of_batches.read(&batch)?, of_batches.has_sequence());
    }
    let keys = blocking("sorting keys", move || keys.finish(path.as_deref())).await?;
    Ok(Arc::new(keys))
}

/// Publishes the logged form of deletes in place of the unlogged ones from which it was made.
pub(in crate::table) struct Stored {
    pub(in crate::table) before: Arc<Deletes>,
    pub(in crate::table) after: LiveFile,
}
