//! A table's Delta log: reading its state, adding entries, checkpoints.
//!
//! Entries are written as they are, put-if-absent, at the version after the last that was read;
//! `deltalake` rebuilds its whole snapshot after each of its own commits, which grows to half a
//! second. Invariant: an entry is only written against the state that includes every entry before
//! it, so the application version that [`LogState`] carries is the log's and may be compared
//! instead of read again.

mod entries;
mod state;

pub(crate) use state::{LogChange, LogState};

use crate::error::TableError;
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::{cleanup_metadata, create_checkpoint};
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::kernel::{Action, CommitInfo};
use deltalake_core::logstore::{CommitOrBytes, LogStoreRef};
use futures::TryStreamExt;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use tributary_types::{TableSchema, host};

/// How a write of an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The entry is in the log, durable.
    Yes,
    /// Another entry has that version.
    Taken,
}

pub(crate) struct DeltaLog {
    store: LogStoreRef,
    app_id: String,
    location: String,
}

impl DeltaLog {
    pub(crate) fn new(store: LogStoreRef, app_id: String, location: String) -> Self {
        Self { store, app_id, location }
    }

    pub(crate) fn app_id(&self) -> &str {
        &self.app_id
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    pub(crate) async fn exists(&self) -> Result<bool, TableError> {
        self.store
            .is_delta_table_location()
            .await
            .map_err(TableError::delta(format!("looking for a log in '{}'", self.location)))
    }

    /// Finds entries that can't be what their writer wrote.
    ///
    /// # Errors
    /// [`TableError::DamagedLog`].
    pub(crate) async fn verify(&self) -> Result<(), TableError> {
        entries::verify(&self.store.object_store(None), &self.location).await
    }

    /// Reads the newest state. `schema` is for the statistics of files.
    pub(crate) async fn load(&self, schema: &TableSchema) -> Result<LogState, TableError> {
        host::foreign(async {
            let table = self.load_table().await?;
            LogState::read(&table, &self.app_id, &self.location, schema).await
        })
        .await
    }

    async fn load_table(&self) -> Result<DeltaTable, TableError> {
        let mut table = DeltaTable::new(self.store.clone());
        table.load().await.map_err(TableError::delta(format!("reading the log of '{}'", self.location)))?;
        Ok(table)
    }

    /// Adds the entry `version`. On `Yes` it is durable. After an error it may or may not be in
    /// the log: load the state to know.
    pub(crate) async fn write(&self, version: u64, actions: &[Action]) -> Result<Written, TableError> {
        let mut entry = Vec::with_capacity(actions.len() * 512);
        for action in actions {
            serde_json::to_writer(&mut entry, action)
                .map_err(TableError::json("writing a Delta log entry"))?;
            entry.push(b'\n');
        }
        let bytes = CommitOrBytes::LogBytes(entry.into());
        match self.store.write_commit_entry(version, bytes, crate::file::new_uuid()).await {
            Ok(()) => Ok(Written::Yes),
            Err(TransactionError::VersionAlreadyExists(_)) => Ok(Written::Taken),
            Err(error) => Err(
                TableError::delta(format!("writing version {version} of '{}'", self.location))(error.into()),
            ),
        }
    }

    /// Writes a checkpoint of the newest state and removes log entries past their retention.
    pub(crate) async fn checkpoint(&self) -> Result<(), TableError> {
        host::foreign(self.write_checkpoint()).await
    }

    async fn write_checkpoint(&self) -> Result<(), TableError> {
        let table = self.load_table().await?;
        create_checkpoint(&table, None)
            .await
            .map_err(TableError::delta(format!("writing a checkpoint of '{}'", self.location)))?;
        cleanup_metadata(&table, None)
            .await
            .map_err(TableError::delta(format!("removing old log entries of '{}'", self.location)))?;
        Ok(())
    }

    /// Paths of files that were removed from the table at `since_ms` or later.
    pub(crate) async fn removed_since(&self, since_ms: i64) -> Result<HashSet<String>, TableError> {
        host::foreign(self.read_removed_since(since_ms)).await
    }

    async fn read_removed_since(&self, since_ms: i64) -> Result<HashSet<String>, TableError> {
        let failed = || TableError::delta(format!("listing the removed files of '{}'", self.location));
        let table = self.load_table().await?;
        let state = table.snapshot().map_err(failed())?;
        let tombstones: Vec<_> =
            state.all_tombstones(self.store.as_ref()).try_collect().await.map_err(failed())?;
        let recent =
            tombstones.iter().filter(|tombstone| tombstone.deletion_timestamp().unwrap_or(0) >= since_ms);
        Ok(recent.map(|tombstone| tombstone.path().into_owned()).collect())
    }
}

/// The first action of an entry: who did what.
pub(crate) fn commit_info(operation: &str, blind_append: bool, parameters: &[(&str, Value)]) -> Action {
    let parameters: HashMap<String, Value> =
        parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Action::CommitInfo(CommitInfo {
        timestamp: Some(crate::schema::now_ms()),
        operation: Some(operation.to_owned()),
        operation_parameters: Some(parameters),
        is_blind_append: Some(blind_append),
        engine_info: Some(concat!("tributary/", env!("CARGO_PKG_VERSION")).to_owned()),
        ..CommitInfo::default()
    })
}
