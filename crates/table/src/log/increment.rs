//! Takes the entries that follow a known state of a log.
//!
//! The Delta library reads a log from its last checkpoint on each time, which is some tens of requests to the store where one entry is
//! new. A server that reads follows the logs of another that writes them, and reads new entries only.
//!
//! Invariant: the state is what reading the whole log finds, or there is none: an entry with anything that is not understood here, or
//! that does not fit the state, leaves the log to the library.
//!
//! Not its business: when to look, and writers' logs, whose seals have to be checked.

use super::entries::read;
use super::state::{LogState, WrittenWith};
use super::{DeltaLog, drops_id};
use crate::error::TableError;
use crate::file::VectorReader;
use deltalake_core::kernel::{Action, Add, DeletionVectorDescriptor};
use object_store::path::Path;
use tributary_types::{TableDef, Version};

/// Entries that are taken one by one. With more of them, the library is faster.
const ENTRIES_MAX: usize = 32;

/// The continuation of a log after a known state.
#[derive(Debug)]
pub(crate) enum Following {
    /// The log has no later entry.
    Nothing,
    /// The newest state.
    State(Box<LogState>),
    /// The log has to be read as a whole.
    Unknown,
}

/// The changes of one entry that are of interest.
#[derive(Default)]
struct Changes {
    gone: Vec<(String, Option<DeletionVectorDescriptor>)>,
    added: Vec<Add>,
    applications: Vec<(String, i64)>,
}

impl Changes {
    /// `None`: the entry has others, too.
    fn of(entry: &[u8], state: &LogState) -> Option<Self> {
        let mut changes = Self::default();
        for line in entry.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
        {
            match serde_json::from_slice::<Action>(line).ok()? {
                Action::CommitInfo(_) => {}
                // The library decodes names.
                Action::Add(add) if add.path.contains('%') => return None,
                Action::Add(add) => changes.added.push(add),
                Action::Remove(remove) => changes.gone.push((remove.path, remove.deletion_vector)),
                Action::Txn(application) => {
                    changes.applications.push((application.app_id, application.version));
                }
                // Compactions repeat it.
                Action::Metadata(metadata) if metadata == state.metadata => {}
                Action::Protocol(protocol) if protocol == state.protocol => {}
                Action::Metadata(_) | Action::Protocol(_) | Action::Cdc(_) | Action::DomainMetadata(_) => {
                    return None;
                }
            }
        }
        Some(changes)
    }
}

impl DeltaLog {
    /// Takes the entries after `state` in a log that another server writes. The schema of `def` is for the statistics of files.
    ///
    /// # Errors
    /// [`TableError::DamagedLog`]; those of reading.
    pub(crate) async fn following(&self, state: &LogState, def: &TableDef) -> Result<Following, TableError> {
        let store = self.store.object_store(None);
        let entry_after = |version: u64| Path::from(format!("_delta_log/{:020}.json", version + 1));
        let Some(mut entry) = read(&store, &entry_after(state.version), &self.location).await? else {
            return Ok(Following::Nothing);
        };
        if self.claim.is_some() {
            return Ok(Following::Unknown);
        }
        let written_with = WrittenWith::read(&state.metadata, &def.schema);
        let mut vectors = VectorReader::new(&store, &self.location);
        let mut next = state.clone();
        for _ in 0..ENTRIES_MAX {
            let changes = Changes::of(&entry, state);
            let Some(changes) = changes.filter(|changes| self.fits(&mut next, changes, def)) else {
                return Ok(Following::Unknown);
            };
            for add in changes.added {
                let path = add.path.clone();
                let live =
                    written_with.live_file(add, &store, &mut vectors, &self.location, &def.schema).await?;
                if next.live.insert(path, live).is_some() {
                    return Ok(Following::Unknown);
                }
            }
            next.version += 1;
            entry = match read(&store, &entry_after(next.version), &self.location).await? {
                Some(entry) => entry,
                None => return Ok(Following::State(Box::new(next))),
            };
        }
        Ok(Following::Unknown)
    }

    /// Takes everything but added files from an entry. Returns whether it fits the state.
    fn fits(&self, state: &mut LogState, changes: &Changes, def: &TableDef) -> bool {
        let [current, former] = self.app_ids(def);
        for (application, version) in &changes.applications {
            let Ok(version) = u64::try_from(*version) else { return false };
            match application {
                id if *id == current => state.app_version = Version(version),
                id if *id == former => return false,
                id if *id == drops_id(def.id) => state.last_drop = def.drop_mark.as_ref().map(|_| version),
                _ => {}
            }
        }
        // A file whose deletion vector is replaced is removed and added in one entry, in any order.
        changes.gone.iter().all(|(path, vector)| {
            let known = state.live.remove(path);
            known.is_some_and(|known| {
                known.deletes.as_ref().map(|deletes| deletes.vector()) == vector.as_ref()
            })
        })
    }
}
