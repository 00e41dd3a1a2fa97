//! A storage root beyond its object store: the one place that knows whether there are directories.
//!
//! Object stores have no directories, no half-durable names and no staged files, so for most of them there is nothing to do here;
//! a local disk has all three. Not its business: the meaning of objects.

use crate::error::{TableError, blocking};
use crate::place::durable::{DurableLocal, sweep_staged, sync_left_names};
use crate::place::traffic::StoreTraffic;
use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use std::fs;
use std::io;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// An object store with the operations around it. Prefixes and paths are those of the store.
#[async_trait]
pub trait TableStorage: Send + Sync {
    /// The store. It makes writes durable before it confirms them, and supports put-if-absent.
    fn objects(&self) -> Arc<dyn ObjectStore>;

    /// The store without a cache before it.
    fn direct(&self) -> Arc<dyn ObjectStore> {
        self.objects()
    }

    /// Called before a table below `prefix` is read: from then on every name that is seen there must be durable,
    /// including one from a process that died before it could sync it.
    ///
    /// # Errors
    /// [`TableError::Local`]: the table must not be opened.
    async fn prepare(&self, _prefix: &Path) -> Result<(), TableError> {
        Ok(())
    }

    /// Deletes what unfinished writes below `prefix` have left behind, if it is older than `age`.
    ///
    /// # Errors
    /// [`TableError::Local`]. It may be repeated.
    async fn sweep_staged(&self, _prefix: &Path, _age: Duration) -> Result<(), TableError> {
        Ok(())
    }

    /// Called after all objects below `prefix` were deleted: removes the remains of the location itself.
    ///
    /// # Errors
    /// [`TableError::Local`]. It may be repeated.
    async fn remove_empty(&self, _prefix: &Path) -> Result<(), TableError> {
        Ok(())
    }

    /// Aborts uploads below `prefix` that were begun and not completed. Returns their number.
    ///
    /// # Errors
    /// [`TableError::Storage`]. It may be repeated.
    async fn abort_uploads(&self, _prefix: &Path) -> Result<usize, TableError> {
        Ok(0)
    }

    /// The requests that were sent. `None`: there are none, or they are not counted.
    fn traffic(&self) -> Option<StoreTraffic> {
        None
    }

    /// A path as an operator finds it.
    fn shown(&self, path: &Path) -> String;
}

/// A store that has objects and nothing else.
pub(crate) struct ObjectStorage {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Any URL in the store.
    pub(crate) url: Url,
}

impl TableStorage for ObjectStorage {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.objects)
    }

    fn shown(&self, path: &Path) -> String {
        let mut url = self.url.clone();
        url.set_path(path.as_ref());
        url.to_string()
    }
}

#[async_trait]
impl TableStorage for DurableLocal {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.clone())
    }

    async fn prepare(&self, prefix: &Path) -> Result<(), TableError> {
        in_directory("making the names durable in", prefix, sync_left_names).await
    }

    async fn sweep_staged(&self, prefix: &Path, age: Duration) -> Result<(), TableError> {
        let sweep = move |directory: &FsPath| match sweep_staged(directory, age) {
            // A table without remains.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            swept => swept.map(drop),
        };
        in_directory("sweeping staged files below", prefix, sweep).await
    }

    async fn remove_empty(&self, prefix: &Path) -> Result<(), TableError> {
        let remove = |directory: &FsPath| match fs::remove_dir_all(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        in_directory("removing the directory of a dropped table", prefix, remove).await
    }

    fn shown(&self, path: &Path) -> String {
        directory(path).display().to_string()
    }
}

/// Paths of [`DurableLocal`] start at the root of the file system.
fn directory(path: &Path) -> PathBuf {
    FsPath::new("/").join(path.as_ref())
}

async fn in_directory(
    doing: &'static str,
    prefix: &Path,
    work: impl FnOnce(&FsPath) -> io::Result<()> + Send + 'static,
) -> Result<(), TableError> {
    let path = directory(prefix);
    blocking(doing, move || work(&path).map_err(|source| TableError::Local { doing, path, source })).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{publish, two_columns};
    use crate::{StoreOptions, TableStore};
    use futures::StreamExt;
    use object_store::memory::InMemory;
    use parking_lot::Mutex;
    use std::fs::File;

    #[tokio::test]
    async fn a_local_disk_has_directories_and_staged_files() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().canonicalize().unwrap().join("t");
        let (staged, file) = (table.join("_delta_log/0.json#17"), table.join("part.parquet"));
        fs::create_dir_all(table.join("_delta_log")).unwrap();
        File::create(&staged).unwrap();
        File::create(&file).unwrap();
        let (storage, prefix) = (DurableLocal::default(), Path::from_absolute_path(&table).unwrap());
        assert_eq!(storage.shown(&prefix), table.display().to_string());
        storage.prepare(&prefix).await.unwrap();
        storage.sweep_staged(&prefix, Duration::from_secs(3600)).await.unwrap();
        assert!(staged.exists());
        storage.sweep_staged(&prefix, Duration::ZERO).await.unwrap();
        assert!(!staged.exists() && file.exists());
        storage.remove_empty(&prefix).await.unwrap();
        assert!(!table.exists());
        storage.remove_empty(&prefix).await.unwrap();
        storage.sweep_staged(&prefix, Duration::ZERO).await.unwrap();
    }

    /// A store in memory that records its calls.
    #[derive(Default)]
    struct Noted {
        calls: Arc<Mutex<Vec<String>>>,
        objects: Arc<InMemory>,
    }

    #[async_trait]
    impl TableStorage for Noted {
        fn objects(&self) -> Arc<dyn ObjectStore> {
            Arc::clone(&self.objects) as Arc<dyn ObjectStore>
        }

        async fn prepare(&self, prefix: &Path) -> Result<(), TableError> {
            self.calls.lock().push(format!("prepare {prefix}"));
            Ok(())
        }

        async fn sweep_staged(&self, prefix: &Path, age: Duration) -> Result<(), TableError> {
            self.calls.lock().push(format!("sweep {prefix} {} s", age.as_secs()));
            Ok(())
        }

        async fn remove_empty(&self, prefix: &Path) -> Result<(), TableError> {
            let left = self.objects.list(Some(prefix)).count().await;
            self.calls.lock().push(format!("remove {prefix} with {left} objects"));
            Ok(())
        }

        fn shown(&self, path: &Path) -> String {
            format!("noted {path}")
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_table_asks_its_storage_and_never_the_disk() {
        let noted = Noted::default();
        let calls = Arc::clone(&noted.calls);
        let url = Url::parse("memory:///root").unwrap();
        let store = TableStore::with_storage(Arc::new(noted), url, StoreOptions::default()).unwrap();
        let table = store.create(&two_columns()).await.unwrap();
        publish(&table, [1]);
        table.flush().await.unwrap();
        table.sweep().await.unwrap();
        assert_eq!(table.root().shown("part.parquet"), "noted root/demo/events-7/part.parquet");
        store.remove(&two_columns().location).await.unwrap();
        let calls = calls.lock().clone();
        assert_eq!(
            calls,
            [
                "prepare root/demo/events-7",
                "sweep root/demo/events-7 86400 s",
                "remove root/demo/events-7 with 0 objects"
            ]
        );
    }
}
