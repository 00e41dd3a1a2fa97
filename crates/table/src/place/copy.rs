//! Finding the files that a copy of a table needs.
//!
//! Invariant: a log of the found entries, and no others, has the table at the wanted version, and the found files have all its rows.
//! Older versions can't be read in the copy: entries from before the last checkpoint are left out.
//!
//! Not its business: where the copy goes.

use crate::error::TableError;
use crate::log::{LogPart, log_part};
use crate::place::store::TableStore;
use futures::TryStreamExt;
use object_store::ObjectMeta;
use object_store::path::Path;
use std::collections::{BTreeMap, HashSet};

/// The objects of a table's copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCopy {
    /// The version of the Delta log.
    pub version: u64,
    /// In the order of their paths, so data files come before the log.
    pub objects: Vec<CopiedObject>,
}

/// An object of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedObject {
    /// Relative to the table's location.
    pub path: String,
    /// Its path in [`TableStore::object_store`].
    pub source: Path,
    pub bytes: u64,
    /// A data file or deletion vector: no other object ever has its path.
    pub is_data: bool,
}

impl TableStore {
    /// Finds the objects of the table at `location` at a version of its Delta log (`None`: the newest), and those of `beside` that
    /// there are.
    ///
    /// # Errors
    /// [`TableError::NotFound`] without a log; [`TableError::Delta`], [`TableError::Storage`]; [`TableError::DamagedFile`] if a
    /// file of the version is missing.
    pub async fn copy_of(
        &self,
        location: &str,
        version: Option<u64>,
        beside: &HashSet<String>,
    ) -> Result<TableCopy, TableError> {
        let root = self.root(location)?;
        let doing = format!("listing the files of '{location}'");
        let listed: Vec<ObjectMeta> =
            root.store.list(None).try_collect().await.map_err(TableError::storage(doing))?;
        let parts: BTreeMap<&str, LogPart> = listed
            .iter()
            .filter_map(|meta| Some((meta.location.as_ref(), log_part(&meta.location)?)))
            .collect();
        let newest = parts.values().filter_map(|part| part.entry()).max();
        let Some(version) = version.or(newest) else {
            return Err(TableError::NotFound { location: location.to_owned() });
        };
        let first = first_needed(&parts, version);
        let live = root.log.files_at(version).await?;
        let is_needed = |path: &str| match parts.get(path) {
            Some(part) => part.is_needed(first, version),
            None => live.contains(path) || beside.contains(path),
        };
        let mut objects: Vec<CopiedObject> = listed
            .iter()
            .filter(|meta| is_needed(meta.location.as_ref()))
            .map(|meta| CopiedObject {
                path: meta.location.to_string(),
                source: root.prefix.parts().chain(meta.location.parts()).collect(),
                bytes: meta.size,
                is_data: !parts.contains_key(meta.location.as_ref()),
            })
            .collect();
        objects.sort_by(|one, other| (!one.is_data, &one.path).cmp(&(!other.is_data, &other.path)));
        let there: HashSet<&str> = objects.iter().map(|object| object.path.as_str()).collect();
        if let Some(missing) = live.iter().find(|path| !there.contains(path.as_str())) {
            let reason = format!("version {version} of the Delta log has it, and it is not there");
            return Err(TableError::DamagedFile { file: root.shown(missing), reason });
        }
        Ok(TableCopy { version, objects })
    }
}

/// The first entry that is needed beside checkpoints: that of the last whole checkpoint up to `version`. All, if another engine
/// wrote one in a form whose parts are not known by their names.
fn first_needed(parts: &BTreeMap<&str, LogPart>, version: u64) -> u64 {
    let up_to = || parts.values().filter(move |part| part.version() <= version);
    if up_to().any(|part| matches!(part, LogPart::Other { .. })) {
        return 0;
    }
    let mut found: BTreeMap<(u64, u32), u32> = BTreeMap::new();
    for part in up_to() {
        if let LogPart::Checkpoint { version, of } = *part {
            *found.entry((version, of)).or_default() += 1;
        }
    }
    found.iter().filter(|((_, of), count)| of == *count).map(|((version, _), _)| *version).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::testing::{publish, two_columns};
    use crate::{StoreOptions, TableError, TableStore};
    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt};
    use std::collections::HashSet;
    use std::sync::Arc;
    use tributary_types::Live;
    use url::Url;

    fn store(objects: &Arc<InMemory>) -> TableStore {
        let options =
            StoreOptions { checkpoint_every: Live::new(3), compact_min_files: 2, ..StoreOptions::default() };
        let objects = Arc::clone(objects) as Arc<dyn ObjectStore>;
        TableStore::with_object_store(objects, Url::parse("memory:///").unwrap(), options).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_copy_has_the_rows_of_its_version_and_nothing_from_before_the_last_checkpoint() {
        let here = Arc::new(InMemory::new());
        let source = store(&here);
        let table = source.create(&two_columns()).await.unwrap();
        for row in 0..5 {
            publish(&table, [row]);
            table.flush().await.unwrap();
        }
        let cut = table.cut();
        let version = u64::try_from(cut.delta_version()).unwrap();
        assert!(table.is_at(&cut));
        publish(&table, [5]);
        table.flush().await.unwrap();
        assert!(!table.is_at(&cut));
        let copy = source.copy_of(cut.location(), Some(version), &cut.files()).await.unwrap();
        assert_eq!((copy.version, copy.objects.iter().filter(|object| object.is_data).count()), (5, 5));
        let entries: Vec<&str> =
            copy.objects.iter().filter(|object| !object.is_data).map(|it| it.path.as_str()).collect();
        assert_eq!(
            entries,
            [
                "_delta_log/00000000000000000003.checkpoint.parquet",
                "_delta_log/00000000000000000003.json",
                "_delta_log/00000000000000000004.json",
                "_delta_log/00000000000000000005.json"
            ]
        );
        let there = Arc::new(InMemory::new());
        for object in &copy.objects {
            let bytes = here.get(&object.source).await.unwrap().bytes().await.unwrap();
            assert_eq!(bytes.len() as u64, object.bytes);
            there.put(&object.source, bytes.into()).await.unwrap();
        }
        let copied = store(&there).open(&two_columns()).await.unwrap();
        assert_eq!(copied.snapshot().delta_version, 5);
        assert_eq!(copied.snapshot().files.len(), 5);
        publish(&copied, [9]);
        copied.flush().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_file_goes_while_files_are_kept_and_a_missing_one_is_named() {
        let here = Arc::new(InMemory::new());
        let source = store(&here);
        let table = source.create(&two_columns()).await.unwrap();
        publish(&table, [1]);
        table.flush().await.unwrap();
        let files: Vec<_> = table.snapshot().files.iter().map(|live| live.file.as_ref().clone()).collect();
        let kept = source.keep_files().await;
        table.discard(&files).await;
        let error = source.remove(&two_columns().location).await.unwrap_err();
        assert!(matches!(error, TableError::FilesKept { .. }), "{error}");
        source.copy_of(&two_columns().location, None, &HashSet::new()).await.unwrap();
        drop(kept);
        table.discard(&files).await;
        let error = source.copy_of(&two_columns().location, None, &HashSet::new()).await.unwrap_err();
        assert!(error.to_string().contains("is not there"), "{error}");
    }
}
