//! Reads a short log entry by entry.
//!
//! The Delta library plans and runs a scan for each log that it opens, which takes milliseconds; a server of thousands of tables
//! has thousands of logs with a few entries each. This module replays those in memory.
//!
//! Invariant: it either finds what the library finds, or nothing: an entry with anything that it does not know leaves the log
//! to the library.
//!
//! Not its business: checkpoints, and whether entries are damaged.

use crate::view::schema::has_only_known_features;
use bytes::Bytes;
use deltalake_core::kernel::{Action, Add, DeletionVectorDescriptor, Metadata, Protocol};
use std::collections::BTreeMap;

/// The most entries that are replayed …
pub(super) const ENTRIES_MAX: usize = 64;
/// … and the most bytes that they may have together.
pub(super) const BYTES_MAX: u64 = 1024 * 1024;

/// A log at its newest version.
pub(crate) struct Replayed {
    pub version: u64,
    pub metadata: Metadata,
    pub protocol: Protocol,
    /// Files by path, and their deletion vectors.
    pub files: BTreeMap<String, Add>,
    /// Versions of applications by their ids.
    pub applications: BTreeMap<String, i64>,
}

/// A file with one deletion vector, or none: both are replaced together.
type FileKey = (String, Option<(String, Option<i32>)>);

fn key(path: String, vector: Option<&DeletionVectorDescriptor>) -> FileKey {
    (path, vector.map(|vector| (vector.path_or_inline_dv.clone(), vector.offset)))
}

impl Replayed {
    /// Replays the entries 0, 1, 2, … of a log. `None`: they are for the library.
    pub(crate) fn of(entries: &[Bytes]) -> Option<Self> {
        let (mut metadata, mut protocol) = (None, None);
        let mut live: BTreeMap<FileKey, Add> = BTreeMap::new();
        let mut applications = BTreeMap::new();
        for entry in entries {
            let (mut gone, mut added) = (Vec::new(), Vec::new());
            for line in entry.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
                // The authors of commits are not part of the state.
                if line.is_empty() || line.starts_with(b"{\"commitInfo\"") {
                    continue;
                }
                match serde_json::from_slice::<Action>(line).ok()? {
                    Action::Metadata(new) => metadata = Some(new),
                    Action::Protocol(new) => protocol = Some(new),
                    Action::Txn(new) => drop(applications.insert(new.app_id, new.version)),
                    Action::Add(add) => added.push(add),
                    Action::Remove(remove) => {
                        gone.push(key(remove.path, remove.deletion_vector.as_ref()));
                    }
                    Action::CommitInfo(_) => {}
                    Action::Cdc(_) | Action::DomainMetadata(_) => return None,
                }
            }
            // A file whose deletion vector is replaced is removed and added in one entry, in any order.
            for key in gone {
                live.remove(&key);
            }
            for add in added {
                live.insert(key(add.path.clone(), add.deletion_vector.as_ref()), add);
            }
        }
        let protocol: Protocol = protocol?;
        let count = live.len();
        let files: BTreeMap<String, Add> = live.into_iter().map(|((path, _), add)| (path, add)).collect();
        (files.len() == count && has_only_known_features(&protocol)).then_some(())?;
        Some(Self { version: entries.len() as u64 - 1, metadata: metadata?, protocol, files, applications })
    }
}

/// The rows that a file's statistics count.
pub(crate) fn rows_of(add: &Add) -> Option<u64> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counted {
        num_records: Option<u64>,
    }
    serde_json::from_str::<Counted>(add.stats.as_deref()?).ok()?.num_records
}
