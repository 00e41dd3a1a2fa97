//! A table's Delta log: reading its state, adding entries, checkpoints.
//!
//! Entries are written as they are, put-if-absent, at the version after the last that was read;
//! `deltalake` rebuilds its whole snapshot after each of its own commits, which grows to half a
//! second. Invariant: an entry is only written against the state that includes every entry before
//! it, so the application version that [`LogState`] carries is the log's and may be compared
//! instead of read again.
//!
//! An error of a write does not mean that nothing was written, and a name that is taken may have been taken by the very
//! write that says so. Every entry therefore carries a stamp in its `commitInfo`, and after any error the version is
//! read back (`docs/adr/0013-commits-are-read-back.md`).
//!
//! Where another process can take over the right to write, it *seals* each log with its epoch before it writes anything else. A former
//! writer's entry has the version of the seal or an earlier one: either it is in the log before the seal, and the new writer reads it,
//! or its name is taken, and its writer finds the seal (`docs/adr/0104-one-writer-many-readers.md`).

mod entries;
mod increment;
mod reading;
mod replay;
mod state;

pub(crate) use increment::Following;
pub(crate) use state::{LogChange, LogState, Strays, count_rows};

use entries::LogFiles;
pub(crate) use entries::{LogPart, log_part};
use reading::BoundedLogStore;
use replay::Replayed;

use crate::ambient::{new_uuid, now_ms};
use crate::error::TableError;
use crate::file::vector_path;
use crate::options::{StoreOptions, WriteClaim};
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::{cleanup_expired_logs_for, create_checkpoint};
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::kernel::{Action, CommitInfo, Transaction};
use deltalake_core::logstore::{CommitOrBytes, LogStoreRef};
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use tributary_types::{TableDef, TableId, host};

/// Entries of others that a seal may meet in a row.
const SEALS_MAX: u32 = 64;

/// Keys of ours in an entry's `commitInfo`; together they are its stamp.
const WRITER_KEY: &str = "tributary.writer";
const EPOCH_KEY: &str = "tributary.epoch";
const COMMIT_KEY: &str = "tributary.commit";

/// How a write of an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The entry is in the log, durable.
    Yes,
    /// Another entry has that version.
    Taken,
}

/// The identity of a writer of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writer {
    /// The node's name.
    node: String,
    /// Grows whenever the right to write the table's log changes hands.
    epoch: u64,
}

/// Distinguishes one attempt to write an entry from every other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    writer: Writer,
    commit: String,
}

impl Stamp {
    fn put_into(&self, info: &mut CommitInfo) {
        info.info.extend([
            (WRITER_KEY.to_owned(), Value::from(self.writer.node.as_str())),
            (EPOCH_KEY.to_owned(), Value::from(self.writer.epoch)),
            (COMMIT_KEY.to_owned(), Value::from(self.commit.as_str())),
        ]);
    }

    /// The stamp of an entry, `None` for one that another engine wrote.
    fn of_entry(entry: &[u8]) -> Option<Self> {
        let actions = entry.split(|&byte| byte == b'\n');
        let action = actions.map(serde_json::from_slice::<Value>).find_map(|action| {
            let info = action.ok()?.get_mut("commitInfo")?.take();
            Some(info)
        })?;
        let text = |key: &str| action.get(key).and_then(Value::as_str).map(str::to_owned);
        let writer = Writer { node: text(WRITER_KEY)?, epoch: action.get(EPOCH_KEY)?.as_u64()? };
        Some(Self { writer, commit: text(COMMIT_KEY)? })
    }
}

/// The application id of a table's transactions in its Delta log. It is the table's and not the writer's: the next
/// writer of the table must know which versions the log has.
pub(crate) fn app_id(table: TableId) -> String {
    format!("tributary-{table}")
}

/// The application id under which a table's Delta log has the number of the last drop of partitions.
pub(crate) fn drops_id(table: TableId) -> String {
    format!("tributary-drops-{table}")
}

pub(crate) struct DeltaLog {
    store: LogStoreRef,
    writer: Writer,
    claim: Option<WriteClaim>,
    /// The log is another server's.
    is_only_read: bool,
    location: String,
}

impl DeltaLog {
    pub(crate) fn new(store: LogStoreRef, options: &StoreOptions, location: String) -> Self {
        let writer = Writer { node: options.node.clone(), epoch: options.epoch };
        let is_only_read = options.max_staleness.is_some();
        let store = BoundedLogStore::wrap(store);
        Self { store, writer, claim: options.claim.clone(), is_only_read, location }
    }

    /// The action by which a log is sealed for this writer, if it has taken over from another.
    pub(crate) fn seal_action(&self) -> Option<Action> {
        let claim = self.claim.as_ref().filter(|claim| claim.is_takeover)?;
        let epoch = i64::try_from(self.writer.epoch).unwrap_or(i64::MAX);
        Some(Action::Txn(Transaction::new_with_last_update(claim.app_id(), epoch, Some(now_ms()))))
    }

    /// Seals the log against the writers before this one, if it has taken over from one that may be running. `state` has all of their
    /// entries then.
    ///
    /// # Errors
    /// [`TableError::TakenOver`] if a later writer has sealed it, [`TableError::Raced`]; those of reading and writing.
    pub(crate) async fn seal(&self, state: &mut LogState, def: &TableDef) -> Result<(), TableError> {
        let Some(seal) = self.seal_action() else { return Ok(()) };
        for _ in 0..SEALS_MAX {
            if state.sealed_at >= self.writer.epoch {
                return Ok(());
            }
            let info = commit_info("CLAIM", true, &[]);
            match self.write(state.version + 1, info, std::slice::from_ref(&seal)).await? {
                Written::Yes => {
                    state.version += 1;
                    state.uncheckpointed += 1;
                    state.sealed_at = self.writer.epoch;
                }
                Written::Taken => *state = self.load(def).await?,
            }
        }
        Err(TableError::Raced { location: self.location.clone(), attempts: SEALS_MAX })
    }

    /// # Errors
    /// [`TableError::TakenOver`]: the log is sealed for a later writer than this one.
    fn check_seal(&self, sealed_at: u64) -> Result<u64, TableError> {
        let epoch = self.writer.epoch;
        if sealed_at > epoch {
            return Err(TableError::TakenOver { location: self.location.clone(), epoch, sealed_at });
        }
        Ok(sealed_at)
    }

    /// The epoch for which the log is sealed in its newest state.
    async fn sealed_at(&self, table: &DeltaTable) -> Result<u64, TableError> {
        let Some(claim) = &self.claim else { return Ok(0) };
        let failed = || TableError::delta(format!("reading the log of '{}'", self.location));
        let state = table.snapshot().map_err(failed())?;
        let version = state.transaction_version(table.log_store().as_ref(), claim.app_id()).await;
        self.check_seal(epoch_of(version.map_err(failed())?))
    }

    /// The number of the last drop of partitions, if the definition has a mark that it is compared with.
    async fn last_drop(&self, table: &DeltaTable, def: &TableDef) -> Result<Option<u64>, TableError> {
        if def.drop_mark.is_none() {
            return Ok(None);
        }
        let failed = || TableError::delta(format!("reading the log of '{}'", self.location));
        let state = table.snapshot().map_err(failed())?;
        let number = state.transaction_version(table.log_store().as_ref(), drops_id(def.id)).await;
        Ok(number.map_err(failed())?.and_then(|number| u64::try_from(number).ok()))
    }

    /// The application id that this node used before ids were the tables'.
    fn former_app_id(&self) -> String {
        format!("tributary-{}", self.writer.node)
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// Checks the entries and reads the newest state. The schema of `def` is for the statistics of files.
    ///
    /// # Errors
    /// [`TableError::NotFound`] without a log, [`TableError::DamagedLog`] when an entry can't be what its writer wrote; those of reading.
    pub(crate) async fn open(&self, def: &TableDef) -> Result<LogState, TableError> {
        let store = self.store.object_store(None);
        let files = LogFiles::list(&store, &self.location).await?;
        if files.is_empty() {
            return Err(TableError::NotFound { location: self.location.clone() });
        }
        let entries = files.read(&store, &self.location).await?;
        if let Some(entries) = entries.filter(|_| files.is_short())
            && let Some(replayed) = Replayed::of(&entries)
        {
            let sealed = self.claim.as_ref().and_then(|claim| replayed.applications.get(&claim.app_id()));
            let sealed_at = self.check_seal(epoch_of(sealed.copied()))?;
            let last_drop = replayed.applications.get(&drops_id(def.id)).copied();
            let last_drop = last_drop.and_then(|number| u64::try_from(number).ok());
            let state =
                LogState::replayed(replayed, &store, &self.app_ids(def), &self.location, &def.schema).await?;
            return Ok(LogState { last_drop, sealed_at, ..state });
        }
        self.load(def).await
    }

    /// The ids under which the table's versions may be in the log.
    fn app_ids(&self, def: &TableDef) -> [String; 2] {
        [app_id(def.id), self.former_app_id()]
    }

    /// Reads the newest state. The schema of `def` is for the statistics of files.
    pub(crate) async fn load(&self, def: &TableDef) -> Result<LogState, TableError> {
        self.load_state(def, None).await
    }

    /// Reads the state at a version. The schema of `def` is for the statistics of files.
    pub(crate) async fn state_at(&self, def: &TableDef, version: u64) -> Result<LogState, TableError> {
        self.load_state(def, Some(version)).await
    }

    async fn load_state(&self, def: &TableDef, version: Option<u64>) -> Result<LogState, TableError> {
        host::foreign(async {
            let table = self.load_table(version).await?;
            // An earlier state may be read by everybody.
            let sealed_at = if version.is_none() { self.sealed_at(&table).await? } else { 0 };
            let last_drop = self.last_drop(&table, def).await?;
            let state = LogState::read(&table, &self.app_ids(def), &self.location, &def.schema).await?;
            Ok(LogState { last_drop, sealed_at, ..state })
        })
        .await
    }

    /// The newest state, or that at a version.
    async fn load_table(&self, version: Option<u64>) -> Result<DeltaTable, TableError> {
        let mut table = DeltaTable::new(self.store.clone());
        let loaded = match version {
            Some(version) => table.load_version(version).await,
            None => table.load().await,
        };
        loaded.map_err(TableError::delta(format!("reading the log of '{}'", self.location)))?;
        Ok(table)
    }

    /// Adds the entry `version`, with `info` as its first action. On `Yes` it is durable.
    ///
    /// A client of an object store repeats a conditional put whose answer was lost, meets its own object, and reports that the
    /// name is taken; other lost answers are plain errors. After any error the entry is read back, and it is ours if it carries
    /// the stamp of this very call.
    ///
    /// # Errors
    /// [`TableError::Delta`]: the entry was not in the log when it was read back, or reading failed. It may appear later, so
    /// nothing that it refers to may be deleted.
    pub(crate) async fn write(
        &self,
        version: u64,
        mut info: CommitInfo,
        actions: &[Action],
    ) -> Result<Written, TableError> {
        if self.is_only_read {
            return Err(TableError::OnlyRead { location: self.location.clone() });
        }
        let stamp = Stamp { writer: self.writer.clone(), commit: new_uuid().to_string() };
        stamp.put_into(&mut info);
        let mut entry = Vec::with_capacity((actions.len() + 1) * 512);
        for action in std::iter::once(&Action::CommitInfo(info)).chain(actions) {
            serde_json::to_writer(&mut entry, action)
                .map_err(TableError::json("writing a Delta log entry"))?;
            entry.push(b'\n');
        }
        let bytes = CommitOrBytes::LogBytes(entry.into());
        let written = self.store.write_commit_entry(version, bytes, new_uuid()).await;
        let Err(error) = written else { return Ok(Written::Yes) };
        match self.store.read_commit_entry(version).await {
            Ok(Some(entry)) if Stamp::of_entry(&entry).as_ref() == Some(&stamp) => {
                tracing::info!(location = self.location, version, %error, "a Delta entry is in the log although its write failed");
                Ok(Written::Yes)
            }
            Ok(Some(_)) => Ok(Written::Taken),
            // S3 also answers this while another put of the same name is in progress.
            Ok(None) if matches!(error, TransactionError::VersionAlreadyExists(_)) => Ok(Written::Taken),
            Ok(None) | Err(_) => Err(TableError::delta(format!(
                "writing version {version} of '{}'",
                self.location
            ))(error.into())),
        }
    }

    /// Whether the log has an entry of that version.
    ///
    /// # Errors
    /// Storage failed.
    pub(crate) async fn has_entry(&self, version: u64) -> Result<bool, TableError> {
        let doing = || format!("looking for version {version} of '{}'", self.location);
        let entry = Path::from(format!("_delta_log/{version:020}.json"));
        match self.store.object_store(None).head(&entry).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(TableError::storage(doing())(error)),
        }
    }

    /// Writes a checkpoint of the newest state, and removes log entries that an earlier one contains and that are older than this, in
    /// milliseconds since 1970. Returns the number of the checkpoint's actions, 0 if that can't be read.
    pub(crate) async fn checkpoint(&self, older_than: Option<i64>) -> Result<u64, TableError> {
        host::foreign(async {
            self.write_checkpoint(older_than).await?;
            Ok(self.checkpoint_actions().await.unwrap_or(0))
        })
        .await
    }

    /// Reads how many actions the last checkpoint has.
    async fn checkpoint_actions(&self) -> Option<u64> {
        let hint =
            self.store.object_store(None).get(&Path::from("_delta_log/_last_checkpoint")).await.ok()?;
        let hint: Value = serde_json::from_slice(&hint.bytes().await.ok()?).ok()?;
        hint.get("size")?.as_u64()
    }

    async fn write_checkpoint(&self, older_than: Option<i64>) -> Result<(), TableError> {
        let table = self.load_table(None).await?;
        self.sealed_at(&table).await?;
        create_checkpoint(&table, None)
            .await
            .map_err(TableError::delta(format!("writing a checkpoint of '{}'", self.location)))?;
        let Some(older_than) = older_than else { return Ok(()) };
        let failed = TableError::delta(format!("removing old log entries of '{}'", self.location));
        let newest = table.version().unwrap_or(0);
        cleanup_expired_logs_for(newest, self.store.as_ref(), older_than, None).await.map_err(failed)?;
        Ok(())
    }

    /// Reads the paths of the files that the log refers to: those of its newest version, with their deletion vectors, and data
    /// files that were removed from the table at `since_ms` or later.
    pub(crate) async fn files_in_use(&self, since_ms: i64) -> Result<HashSet<String>, TableError> {
        host::foreign(self.read_files_in_use(since_ms)).await
    }

    /// Reads the paths of the data files and deletion vectors of the table at a version.
    pub(crate) async fn files_at(&self, version: u64) -> Result<HashSet<String>, TableError> {
        host::foreign(async {
            let table = self.load_table(Some(version)).await?;
            let failed = TableError::delta(format!("listing the files of '{}'", self.location));
            let mut paths = HashSet::new();
            for file in table.snapshot().map_err(failed)?.log_data().iter() {
                paths.extend(file.deletion_vector_descriptor().as_ref().and_then(vector_path));
                paths.insert(file.path().into_owned());
            }
            Ok(paths)
        })
        .await
    }

    async fn read_files_in_use(&self, since_ms: i64) -> Result<HashSet<String>, TableError> {
        let failed = || TableError::delta(format!("listing the files of '{}'", self.location));
        let table = self.load_table(None).await?;
        // Files of a later writer are unknown to this one, and must not be taken for left ones.
        self.sealed_at(&table).await?;
        let state = table.snapshot().map_err(failed())?;
        let tombstones: Vec<_> =
            state.all_tombstones(self.store.as_ref()).try_collect().await.map_err(failed())?;
        let recent =
            tombstones.iter().filter(|tombstone| tombstone.deletion_timestamp().unwrap_or(0) >= since_ms);
        let mut paths: HashSet<String> = recent.map(|tombstone| tombstone.path().into_owned()).collect();
        for file in state.log_data().iter() {
            paths.extend(file.deletion_vector_descriptor().as_ref().and_then(vector_path));
            paths.insert(file.path().into_owned());
        }
        Ok(paths)
    }
}

/// The epoch that an application's version is.
fn epoch_of(version: Option<i64>) -> u64 {
    version.and_then(|version| u64::try_from(version).ok()).unwrap_or(0)
}

/// The first action of an entry: who did what. [`DeltaLog::write`] adds the stamp.
pub(crate) fn commit_info(operation: &str, blind_append: bool, parameters: &[(&str, Value)]) -> CommitInfo {
    let parameters: HashMap<String, Value> =
        parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    CommitInfo {
        timestamp: Some(now_ms()),
        operation: Some(operation.to_owned()),
        operation_parameters: Some(parameters),
        is_blind_append: Some(blind_append),
        engine_info: Some(concat!("tributary/", env!("CARGO_PKG_VERSION")).to_owned()),
        ..CommitInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_known_by_its_stamp_and_by_nothing_less() {
        let writer = Writer { node: "node-1".to_owned(), epoch: 3 };
        let stamp = Stamp { writer: writer.clone(), commit: "c1".to_owned() };
        let mut info = commit_info("WRITE", true, &[]);
        stamp.put_into(&mut info);
        let entry = serde_json::to_string(&Action::CommitInfo(info)).unwrap();
        let lines = |entry: &str| format!("{{\"add\":{{}}}}\n{entry}\n");
        assert_eq!(Stamp::of_entry(lines(&entry).as_bytes()), Some(stamp.clone()));
        let others = [
            ("\"node-1\"", "\"node-2\""),
            ("\"tributary.epoch\":3", "\"tributary.epoch\":4"),
            ("\"c1\"", "\"c2\""),
        ];
        for (ours, theirs) in others {
            assert!(entry.contains(ours), "{ours} in {entry}");
            let found = Stamp::of_entry(lines(&entry.replace(ours, theirs)).as_bytes());
            assert!(found.is_some() && found != Some(stamp.clone()), "{found:?}");
        }
        assert_eq!(Stamp::of_entry(b"{\"commitInfo\":{\"operation\":\"WRITE\"}}\n"), None);
        assert_eq!(Stamp::of_entry(b"not JSON"), None);
    }
}
