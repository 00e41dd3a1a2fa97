//! The location of one table's files, shared by all its readers and writers.

use crate::log::DeltaLog;
use crate::options::StoreOptions;
use crate::place::keep::Deletions;
use crate::place::storage::TableStorage;
use object_store::ObjectStore;
use object_store::path::Path;
use parquet::basic::ZstdLevel;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use tributary_types::lock::Ranked;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

const MIB: u64 = 1 << 20;

/// Memory for rows that are being folded, shared by all tables of a store.
pub(crate) struct Settling(Semaphore);

impl Settling {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        Self(Semaphore::new(permits(options.settling_bytes).max(1) as usize))
    }

    /// Waits for memory for rows of `bytes` bytes. Its holder may wait for storage only.
    pub(crate) async fn room(&self, bytes: u64, options: &StoreOptions) -> Option<SemaphorePermit<'_>> {
        let wanted =
            permits(bytes.min(options.settled_piece_bytes)).min(permits(options.settling_bytes).max(1));
        if wanted == 0 {
            return None;
        }
        // It is never closed.
        self.0.acquire_many(wanted).await.ok()
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes / MIB).unwrap_or(u32::MAX)
}

pub(crate) struct TableRoot {
    /// Rooted at the table's location.
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) log: DeltaLog,
    pub(crate) options: Arc<StoreOptions>,
    pub(crate) zstd: ZstdLevel,
    /// The URL of the table, ending in `/`.
    pub(crate) url: Url,
    pub(crate) storage: Arc<dyn TableStorage>,
    /// The table's location in the storage.
    pub(crate) prefix: Path,
    /// Data files that are being written or not yet published. A sweep spares them.
    pub(crate) unpublished: Ranked<HashSet<String>>,
    pub(crate) settling: Arc<Settling>,
    pub(crate) deletions: Deletions,
}

impl TableRoot {
    /// The key file of a data file, if key files are on this machine.
    pub(crate) fn keys_path(&self, path: &str) -> Option<PathBuf> {
        Some(self.keys_directory()?.join(keys_name(path)))
    }

    /// The directory of the table's key files, if they are on this machine.
    pub(crate) fn keys_directory(&self) -> Option<PathBuf> {
        Some(self.options.keys_directory.as_ref()?.join(self.log.location()))
    }

    /// Deletes key files of other data files than these.
    pub(crate) fn sweep_keys(&self, files: &HashSet<String>) -> io::Result<()> {
        let Some(directory) = self.keys_directory().filter(|directory| directory.exists()) else {
            return Ok(());
        };
        let used: HashSet<String> = files.iter().map(|path| keys_name(path)).collect();
        for entry in directory.read_dir()? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(|name| used.contains(name)) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// A file's path as an operator finds it.
    pub(crate) fn shown(&self, path: &str) -> String {
        let relative = Path::from(path);
        self.storage.shown(&self.prefix.parts().chain(relative.parts()).collect())
    }
}

/// The name of a data file's key file; the data file's own path may be long and contain directories.
fn keys_name(path: &str) -> String {
    format!("{:032x}.keys", xxh3_128(path.as_bytes()))
}
