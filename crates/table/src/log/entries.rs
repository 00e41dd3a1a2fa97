//! Reading the log's raw entries, to find damage that the Delta library overlooks: it treats an empty entry as one without
//! actions, and would silently show the table without the files that the entry added.

use super::replay::{BYTES_MAX, ENTRIES_MAX};
use crate::error::TableError;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries that are read at a time.
const READ_AT_ONCE: usize = 8;

/// The files of a log.
pub(crate) struct LogFiles {
    /// Those after the last checkpoint, or all, by version.
    entries: BTreeMap<u64, ObjectMeta>,
    /// The version of the last checkpoint.
    checkpoint: Option<u64>,
}

impl LogFiles {
    /// Finds the files of a log.
    ///
    /// # Errors
    /// Storage failed.
    pub(crate) async fn list(store: &Arc<dyn ObjectStore>, location: &str) -> Result<Self, TableError> {
        let doing = || format!("listing the log of '{location}'");
        let folder = Path::from("_delta_log");
        let files: Vec<ObjectMeta> =
            store.list(Some(&folder)).try_collect().await.map_err(TableError::storage(doing()))?;
        let checkpoint = files.iter().filter_map(|file| checkpoint_version(&file.location)).max();
        let entry = |file: ObjectMeta| Some((entry_version(&file.location)?, file));
        let entries = files.into_iter().filter_map(entry);
        Ok(Self { entries: entries.filter(|(version, _)| Some(*version) > checkpoint).collect(), checkpoint })
    }

    /// Whether there is no log.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.checkpoint.is_none()
    }

    /// Whether these are all entries from the first one on, and few.
    pub(crate) fn is_short(&self) -> bool {
        let bytes: u64 = self.entries.values().map(|file| file.size).sum();
        self.checkpoint.is_none()
            && self.entries.len() <= ENTRIES_MAX
            && bytes <= BYTES_MAX
            && self.entries.keys().copied().eq(0..self.entries.len() as u64)
    }

    /// Reads the entries and checks them: each must be lines of JSON, at least one. `None`: another writer has removed one meanwhile.
    ///
    /// # Errors
    /// [`TableError::DamagedLog`] with file and offset; storage failed.
    pub(crate) async fn read(
        &self,
        store: &Arc<dyn ObjectStore>,
        location: &str,
    ) -> Result<Option<Vec<Bytes>>, TableError> {
        // Boxed, because the compiler cannot prove that a stream of borrowing futures may change threads.
        let reads: Vec<BoxFuture<'_, Result<Option<Bytes>, TableError>>> =
            self.entries.values().map(|file| read(store, &file.location, location).boxed()).collect();
        let read: Vec<Option<Bytes>> =
            futures::stream::iter(reads).buffered(READ_AT_ONCE).try_collect().await?;
        Ok(read.into_iter().collect())
    }
}

/// The version of an entry by its name.
fn entry_version(file: &Path) -> Option<u64> {
    let digits = file.filename()?.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// A file of the log, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogPart {
    Entry(u64),
    /// One of `of` files of a checkpoint.
    Checkpoint {
        version: u64,
        of: u32,
    },
    /// Belongs to a checkpoint in another form; without a version if it may belong to several.
    Other {
        version: Option<u64>,
    },
    /// Not needed to read the log: a hint or a checksum.
    Hint,
}

impl LogPart {
    pub(crate) fn entry(self) -> Option<u64> {
        if let Self::Entry(version) = self { Some(version) } else { None }
    }

    pub(crate) fn version(self) -> u64 {
        match self {
            Self::Entry(version)
            | Self::Checkpoint { version, .. }
            | Self::Other { version: Some(version) } => version,
            Self::Other { version: None } => 0,
            Self::Hint => u64::MAX,
        }
    }

    /// Whether the log from `first` to `last` needs the file.
    pub(crate) fn is_needed(self, first: u64, last: u64) -> bool {
        match self {
            Self::Other { version: None } => true,
            Self::Hint => false,
            _ => (first..=last).contains(&self.version()),
        }
    }
}

/// Which part of its log a table's file is; `None` for data files and deletion vectors.
pub(crate) fn log_part(file: &Path) -> Option<LogPart> {
    let name = file.as_ref().strip_prefix("_delta_log/")?;
    if let Some(version) = entry_version(file) {
        return Some(LogPart::Entry(version));
    }
    let Some((digits, rest)) = name.split_once(".checkpoint") else {
        return Some(if name.contains('/') { LogPart::Other { version: None } } else { LogPart::Hint });
    };
    let Ok(version) = digits.parse() else { return Some(LogPart::Hint) };
    let parts = |text: &str| {
        let (number, of) = text.strip_prefix('.')?.split_once('.')?;
        let is_part = number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_part { of.parse().ok() } else { None }
    };
    Some(match rest.strip_suffix(".parquet") {
        Some("") => LogPart::Checkpoint { version, of: 1 },
        Some(text) => parts(text)
            .map_or(LogPart::Other { version: Some(version) }, |of| LogPart::Checkpoint { version, of }),
        None if rest.strip_suffix(".json").is_some() => LogPart::Other { version: Some(version) },
        None => LogPart::Hint,
    })
}

/// The version of a checkpoint, or of a part of one, by its name.
fn checkpoint_version(file: &Path) -> Option<u64> {
    let (digits, rest) = file.filename()?.split_once(".checkpoint")?;
    rest.ends_with(".parquet").then(|| digits.parse().ok())?
}

/// One entry. `None`: there is none, or another writer has cleaned up meanwhile.
pub(super) async fn read(
    store: &Arc<dyn ObjectStore>,
    file: &Path,
    location: &str,
) -> Result<Option<Bytes>, TableError> {
    let doing = || format!("reading the log entry '{location}/{file}'");
    let bytes = match store.get(file).await {
        Ok(got) => got.bytes().await.map_err(TableError::storage(doing()))?,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(TableError::storage(doing())(error)),
    };
    match fault(&bytes) {
        None => Ok(Some(bytes)),
        Some((offset, reason)) => {
            Err(TableError::DamagedLog { file: format!("{location}/{file}"), offset, reason })
        }
    }
}

/// The offset and description of an entry's damage.
fn fault(bytes: &[u8]) -> Option<(u64, String)> {
    let mut offset = 0;
    let mut actions = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = line.trim_ascii();
        if !text.is_empty() {
            if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
                let column = error.column().saturating_sub(1);
                return Some(((offset + column) as u64, format!("not JSON: {error}")));
            }
            if text[0] != b'{' {
                return Some((offset as u64, "not an action".to_owned()));
            }
            actions += 1;
        }
        offset += line.len();
    }
    (actions == 0).then(|| (0, "it holds nothing".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_log_are_known_by_their_names() {
        let part = |name: &str| log_part(&Path::from(name));
        let log = |name: &str| part(&format!("_delta_log/{name}"));
        let version = 7;
        assert_eq!(log("00000000000000000007.json"), Some(LogPart::Entry(version)));
        let whole = LogPart::Checkpoint { version, of: 1 };
        assert_eq!(log("00000000000000000007.checkpoint.parquet"), Some(whole));
        let one_of_three = LogPart::Checkpoint { version, of: 3 };
        assert_eq!(log("00000000000000000007.checkpoint.0000000002.0000000003.parquet"), Some(one_of_three));
        let other = LogPart::Other { version: Some(version) };
        assert_eq!(
            log("00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"),
            Some(other)
        );
        assert_eq!(
            log("00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"),
            Some(other)
        );
        assert_eq!(log("_sidecars/a.parquet"), Some(LogPart::Other { version: None }));
        for hint in ["_last_checkpoint", "00000000000000000007.crc", "x.checkpoint.parquet"] {
            assert_eq!(log(hint), Some(LogPart::Hint), "{hint}");
        }
        for data in ["part-1.zstd.parquet", "p=1/part-1.parquet", "deletion_vector_1.bin"] {
            assert_eq!(part(data), None, "{data}");
        }
    }
    use object_store::memory::InMemory;

    #[test]
    fn an_entry_is_lines_of_json_and_at_least_one() {
        assert_eq!(fault(b"{\"a\":1}\n{\"b\":2}\n"), None);
        assert_eq!(fault(b"{\"a\":1}"), None);
        assert_eq!(fault(b"").map(|(offset, _)| offset), Some(0));
        assert_eq!(fault(b"\n\n").map(|(offset, _)| offset), Some(0));
        assert_eq!(fault(b"{\"a\":1}\n{\"b\":").map(|(offset, _)| offset), Some(12));
        assert_eq!(fault(b"{\"a\":1}\n{\"b\"%2}\n").map(|(offset, _)| offset), Some(12));
        assert_eq!(fault(b"{\"a\":1}\n\0\0\0\0").map(|(offset, _)| offset), Some(8));
        assert_eq!(fault(b"7\n").map(|(offset, _)| offset), Some(0));
    }

    async fn verify(store: &Arc<dyn ObjectStore>, location: &str) -> Result<(), TableError> {
        LogFiles::list(store, location).await?.read(store, location).await.map(drop)
    }

    #[tokio::test]
    async fn only_a_log_with_all_its_entries_is_short() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let is_short = async || LogFiles::list(&store, "t").await.expect("listed").is_short();
        let put = async |version: u64, rest: &str| {
            let path = Path::from(format!("_delta_log/{version:020}.{rest}"));
            store.put(&path, "{\"a\":1}\n".into()).await.expect("written");
        };
        assert!(LogFiles::list(&store, "t").await.expect("listed").is_empty());
        put(0, "json").await;
        put(2, "json").await;
        assert!(!is_short().await, "an entry is missing");
        put(1, "json").await;
        assert!(is_short().await);
        put(0, "checkpoint.parquet").await;
        assert!(!is_short().await, "there is a checkpoint");
    }

    #[tokio::test]
    async fn entries_before_the_last_checkpoint_do_not_matter() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let name = |version: u64, rest: &str| Path::from(format!("_delta_log/{version:020}.{rest}"));
        for version in 0..4 {
            store.put(&name(version, "json"), "{\"a\":1}\n".into()).await.expect("written");
        }
        verify(&store, "t").await.expect("sound");
        store.put(&name(1, "json"), "".into()).await.expect("written");
        let error = verify(&store, "t").await.unwrap_err().to_string();
        assert!(error.contains("t/_delta_log/00000000000000000001.json"), "{error}");
        store.put(&name(2, "checkpoint.parquet"), "x".into()).await.expect("written");
        verify(&store, "t").await.expect("what matters is sound");
        store.put(&name(3, "json"), "{".into()).await.expect("written");
        assert!(verify(&store, "t").await.is_err());
    }
}
