//! Bringing the Delta log to a wanted set of files, against other writers.

use crate::ambient::now_ms;
use crate::error::TableError;
use crate::file::{LiveFile, Settled};
use crate::log::{LogChange, LogState, Written, app_id, commit_info, drops_id};
use crate::options::Retention;
use crate::table::{Table, delta_version};
use crate::view::schema::{
    last_change, metadata_for, protocol_for, same_metadata, with_change, with_settings,
};
use deltalake_core::kernel::{Action, CommitInfo, Metadata, Protocol, Transaction};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{TableDef, Version, host};

/// Versions that other writers may take in a row before we give up.
const ATTEMPTS_MAX: u32 = 16;
/// The most time between two cleanings of a log.
const CLEAN_INTERVAL_MS: u64 = 600_000;
/// After a checkpoint of this many actions times a number, the next comes after this number of entries.
const ACTIONS_PER_ENTRY: u64 = 100;
/// The most that readers have to read beside a checkpoint, unless `checkpoint_every` says more.
const ENTRIES_MAX: u64 = 100;

/// Files by path.
pub(in crate::table) type FileSet = BTreeMap<String, LiveFile>;

/// The desired state of the log.
pub(in crate::table) struct Goal {
    pub(in crate::table) operation: &'static str,
    pub(in crate::table) parameters: Vec<(&'static str, Value)>,
    pub(in crate::table) def: Arc<TableDef>,
    /// All files that should be live, and no others.
    pub(in crate::table) files: FileSet,
    /// The table version whose rows are then all in the log.
    pub(in crate::table) version: Version,
    /// `false` when rows only moved between files.
    pub(in crate::table) data_change: bool,
    /// Files that must still be live as they are here, or the goal is void.
    pub(in crate::table) inputs: Vec<LiveFile>,
    /// The heavy schema change that the entry is.
    pub(in crate::table) change: Option<u64>,
    /// Whether no file has rows of partitions that the definition marks as dropped.
    pub(in crate::table) completes_drop: bool,
}

impl Goal {
    /// The number of the last drop of partitions whose rows the log has lost at the goal, if it is known.
    fn last_drop(&self, state: &LogState) -> Option<u64> {
        let mark = self.def.drop_mark.as_ref().filter(|_| self.completes_drop);
        state.last_drop.max(mark.map(|mark| mark.log_version))
    }
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::table) enum Committed {
    /// The log has reached the goal.
    Yes,
    /// Another writer removed an input: nothing was written.
    Void,
}

/// An entry that would bring the log to a goal, and the state after it.
struct Entry {
    info: CommitInfo,
    actions: Vec<Action>,
    metadata: Metadata,
    protocol: Protocol,
}

impl Table {
    /// Writes at most one entry that brings the log from `state` to `goal`. If another writer took the version, its changes are
    /// applied to the snapshot and the goal, and the commit is retried. On `Yes` the entry is durable and `state`, the snapshot's
    /// Delta version and the persisted version are up to date.
    ///
    /// # Errors
    /// [`TableError::Raced`] and the errors of [`crate::log::DeltaLog::write`]: the entry may be in the log after all, or appear
    /// later. The next commit takes it into account; until then the files of the goal must stay.
    pub(in crate::table) async fn commit(
        &self,
        state: &mut LogState,
        mut goal: Goal,
    ) -> Result<Committed, TableError> {
        for _ in 0..ATTEMPTS_MAX {
            // Before the inputs are looked at: an earlier attempt of ours may have removed them.
            let Some(entry) = entry_for(state, &goal, self.root.options.retention())? else {
                self.log_is_at(state);
                return Ok(Committed::Yes);
            };
            if goal.inputs.iter().any(|input| !has(&state.live, input)) {
                return Ok(Committed::Void);
            }
            let (version, last_drop) = (state.version + 1, goal.last_drop(state));
            match self.root.log.write(version, entry.info, &entry.actions).await? {
                Written::Yes => {
                    state.version = version;
                    state.metadata = entry.metadata;
                    state.protocol = entry.protocol;
                    state.live = goal.files;
                    state.app_version = goal.version.max(state.app_version);
                    state.last_drop = last_drop;
                    state.uncheckpointed += 1;
                    self.log_is_at(state);
                    if let Some(unique) = &self.unique {
                        unique.lost_copies.lock().clear();
                    }
                    return Ok(Committed::Yes);
                }
                Written::Taken if goal.change.is_some() => {
                    return self.change_or_void(state, &mut goal).await;
                }
                Written::Taken => self.catch_up(state, &mut goal).await?,
            }
        }
        Err(TableError::Raced { location: self.root.log.location().to_owned(), attempts: ATTEMPTS_MAX })
    }

    /// Takes into `state` and the snapshot what others wrote, and what we wrote whose answers were lost.
    pub(in crate::table) async fn take_in_others(&self, state: &mut LogState) -> Result<(), TableError> {
        let mut goal = Goal {
            operation: "",
            parameters: Vec::new(),
            def: self.def(),
            files: state.live.clone(),
            version: state.app_version,
            data_change: false,
            inputs: Vec::new(),
            change: None,
            completes_drop: false,
        };
        match self.catch_up(state, &mut goal).await {
            Ok(()) | Err(TableError::Raced { .. }) => {
                self.log_is_at(state);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Handles the case that the version for a schema change is taken: by an attempt of its own whose answer was lost, or by
    /// another writer. The latter's files have the old schema, so the goal is void.
    async fn change_or_void(&self, state: &mut LogState, goal: &mut Goal) -> Result<Committed, TableError> {
        let fresh = self.root.log.load(&goal.def).await?;
        if fresh.table_id() == state.table_id() && last_change(&fresh.metadata) == goal.change {
            state.advance(fresh);
            self.log_is_at(state);
            if let Some(unique) = &self.unique {
                unique.lost_copies.lock().clear();
            }
            return Ok(Committed::Yes);
        }
        match self.catch_up(state, goal).await {
            Ok(()) | Err(TableError::Raced { .. }) => Ok(Committed::Void),
            Err(error) => Err(error),
        }
    }

    async fn catch_up(&self, state: &mut LogState, goal: &mut Goal) -> Result<(), TableError> {
        let fresh = self.root.log.load(&goal.def).await?;
        if fresh.table_id() != state.table_id() {
            return Err(TableError::LocationTaken {
                location: self.root.log.location().to_owned(),
                expected: self.id,
                found: fresh.table_id().unwrap_or("of another writer").to_owned(),
            });
        }
        // No settling takes place until the snapshot has the change: the replaced files' superseded rows are final.
        let mut keys = match &self.unique {
            Some(unique) => Some(unique.keys.lock().await),
            None => None,
        };
        let mut superseded = self.superseded_since_logged(state);
        let mut next = state.clone();
        let mut change = next.advance(fresh);
        for (live, rows) in self.files_of_lost_copies(&change.added) {
            change.gone.insert(live.path().to_owned());
            superseded.retain(|(other, _)| other.path() != live.path());
            superseded.push((live, rows));
        }
        {
            // Files of an entry whose answer was lost, from before their partition was truncated.
            let unflushed = self.unflushed.lock();
            let version = |file: &LiveFile| file.version().max(next.app_version);
            change.added.retain(|file| !unflushed.is_cut(&goal.def, file, version(file)));
        }
        let is_foreign = !change.gone.is_empty() || !change.added.is_empty();
        if let Some(keys) = &mut keys {
            change.added.iter_mut().for_each(|file| file.settled = Settled::Older);
            self.remember_orphans(keys, superseded, &change.gone).await?;
        }
        self.forget_logged_drop(&next);
        let is_to_divide = self.has_unlogged_cut(&next)
            && goal.def.partitioning.partitions().is_some()
            && change.added.iter().any(|file| file.file.partition.is_none());
        // From here on nothing waits or fails: the state and the snapshot have the change together.
        self.note_others(&mut next, change.added.iter());
        *state = next;
        let persisted = state.app_version;
        self.lost_copies_are_in(&change.added);
        let truncated_at = self.take_in(&change, persisted);
        drop(keys);
        let truncates = truncated_at > persisted && truncated_at <= goal.version;
        // Changes of an input by others make the goal void, unless an earlier attempt has reached it: the goal's own change of
        // the file must survive, or nothing would seem left to do.
        let inputs: HashSet<&str> = goal.inputs.iter().map(LiveFile::path).collect();
        goal.files.retain(|path, _| inputs.contains(path.as_str()) || !change.gone.contains(path));
        if !truncates {
            for file in change.added.into_iter().filter(|file| !inputs.contains(file.path())) {
                goal.files.entry(file.path().to_owned()).or_insert(file);
            }
        }
        if is_to_divide || self.unique.is_some() && is_foreign {
            // Which of their rows are cut or superseded is unknown: the next user divides or settles them first.
            let location = self.root.log.location().to_owned();
            return Err(TableError::Raced { location, attempts: 1 });
        }
        Ok(())
    }

    /// Takes other writers' changes into the snapshot, unless a truncation that is not in the log
    /// yet wiped them out. Returns the version of the last truncation.
    fn take_in(&self, change: &LogChange, persisted: Version) -> Version {
        let unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let mut files: Vec<_> =
            current.files.iter().filter(|file| !change.gone.contains(file.path())).cloned().collect();
        if unflushed.truncated_at <= persisted {
            let have: HashSet<&str> = current.files.iter().map(LiveFile::path).collect();
            let is_new = |file: &&LiveFile| !have.contains(file.path()) || change.gone.contains(file.path());
            files.extend(change.added.iter().filter(is_new).cloned());
        }
        self.swap(&current, |next| next.files = Arc::new(files));
        unflushed.truncated_at
    }

    pub(in crate::table) fn log_is_at(&self, state: &LogState) {
        let _unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        self.swap(&current, |next| next.delta_version = delta_version(state));
        self.delta_versions.lock().reach(state.app_version, delta_version(state));
        let before = self.persisted.swap(state.app_version.0, Ordering::AcqRel);
        assert!(
            before <= state.app_version.0,
            "the log forgets no version: {before} came before {}",
            state.app_version
        );
    }

    /// Writes a checkpoint if enough entries were written since the last. A failure only slows readers, so it is logged and
    /// retried after the next commit.
    pub(in crate::table) async fn checkpoint_if_due(&self, state: &mut LogState) {
        let every = self.root.options.checkpoint_every.get().max(1);
        if state.uncheckpointed < every.max(entries_worth(state.checkpoint_actions)) {
            return;
        }
        let (now, retention) = (now_ms(), self.root.options.retention());
        let is_due = now >= state.cleaned_ms.saturating_add(clean_interval_ms(retention.log_ms));
        let cleans_up = self.root.deletions.allowed().filter(|_| is_due);
        let older_than = cleans_up.is_some().then(|| now.saturating_sub_unsigned(retention.log_ms));
        match self.root.log.checkpoint(older_than).await {
            Ok(actions) => {
                (state.uncheckpointed, state.checkpoint_actions) = (0, actions);
                if older_than.is_some() {
                    state.cleaned_ms = now;
                }
            }
            Err(error) => tracing::warn!(table = %self.id, %error, "a Delta checkpoint could not be written"),
        }
    }
}

/// Number of entries that are worth another checkpoint after one of `actions`: each is written as a whole, so their number times their
/// size stays in proportion to the entries, and readers never read many entries.
fn entries_worth(actions: u64) -> u64 {
    (actions / ACTIONS_PER_ENTRY).min(ENTRIES_MAX)
}

/// How long the old entries of a log are left alone after a cleaning, which lists all of them.
fn clean_interval_ms(log_ms: u64) -> i64 {
    (log_ms / 4).min(host::limit(CLEAN_INTERVAL_MS, 50)).cast_signed()
}

/// Whether `files` has the very file, with the same deletes.
pub(in crate::table) fn has(files: &FileSet, wanted: &LiveFile) -> bool {
    files.get(wanted.path()).is_some_and(|file| file.is_same(wanted))
}

/// Whether the log's metadata can describe the table's new definition.
///
/// # Errors
/// Why not.
pub(in crate::table) fn check_entry(state: &LogState, goal: &Goal) -> Result<(), TableError> {
    metadata_and_protocol(state, goal).map(drop)
}

/// The log's metadata and protocol at the goal.
fn metadata_and_protocol(state: &LogState, goal: &Goal) -> Result<(Metadata, Protocol), TableError> {
    let has_deletes = goal.files.values().any(|file| file.deletes.is_some());
    let metadata = metadata_for(&goal.def, Some(&state.metadata), has_deletes)?;
    let metadata = with_change(metadata, goal.change)?;
    let protocol = protocol_for(&metadata, Some(&state.protocol))?;
    Ok((metadata, protocol))
}

/// The entry from `state` to `goal`, `None` if the log is there already.
fn entry_for(state: &LogState, goal: &Goal, retention: Retention) -> Result<Option<Entry>, TableError> {
    let (metadata, protocol) = metadata_and_protocol(state, goal)?;
    let mut actions = Vec::new();
    if protocol != state.protocol {
        actions.push(Action::Protocol(protocol.clone()));
    }
    let metadata = if same_metadata(&metadata, &state.metadata) {
        state.metadata.clone()
    } else {
        actions.push(Action::Metadata(metadata.clone()));
        metadata
    };
    let now = now_ms();
    let removed = state.live.values().filter(|file| !has(&goal.files, file));
    actions.extend(removed.map(|file| Action::Remove(file.to_remove(goal.data_change, now))));
    let blind_append = actions.is_empty();
    let is_rewrite = !goal.data_change && actions.iter().any(|action| matches!(action, Action::Remove(_)));
    if is_rewrite && !actions.iter().any(|action| matches!(action, Action::Metadata(_))) {
        // `deltalake` overlooks removed files of an entry that changes no rows, and would add the rows of its own copy to those of
        // ours. It does not overlook metadata (docs/adr/0113-compactions-repeat-the-metadata.md).
        actions.push(Action::Metadata(metadata.clone()));
    }
    let added = goal.files.values().filter(|file| !has(&state.live, file));
    actions.extend(added.map(|file| Action::Add(file.to_add(&goal.def.schema, goal.data_change))));
    // The library records application versions without enforcing them: comparing is up to us.
    if goal.version > state.app_version {
        let version = i64::try_from(goal.version.0).unwrap_or(i64::MAX);
        actions.push(Action::Txn(Transaction::new_with_last_update(app_id(goal.def.id), version, Some(now))));
    }
    let last_drop = goal.last_drop(state);
    if let Some(number) = last_drop.filter(|_| last_drop > state.last_drop) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        actions.push(Action::Txn(Transaction::new_with_last_update(
            drops_id(goal.def.id),
            number,
            Some(now),
        )));
    }
    if actions.is_empty() {
        return Ok(None);
    }
    // Settings that have changed are no reason for an entry of their own.
    let metadata = match with_settings(&metadata, retention)? {
        Some(changed) => {
            actions.retain(|action| !matches!(action, Action::Metadata(_)));
            actions.push(Action::Metadata(changed.clone()));
            changed
        }
        None => metadata,
    };
    let info = commit_info(goal.operation, blind_append, &goal.parameters);
    Ok(Some(Entry { info, actions, metadata, protocol }))
}
