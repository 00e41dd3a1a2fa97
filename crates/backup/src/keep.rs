//! Old backups go, and with them what no other backup needs.
//!
//! The work of a server in a place is announced by an object there, `running/<node>.json`, which it renews. Objects that no manifest
//! names may belong to a backup that another server is taking, so nothing is removed meanwhile; and a backup does not begin while
//! another server removes, because it would rely on objects that are about to go.
//!
//! Invariant: a manifest goes first, and the objects of a backup only when it has none. So wherever a removal is broken off, each
//! backup that exists is whole, and the next removal takes the rest.
//!
//! Not its business: backups of the same server at the same time, of which its owner allows one.

use crate::error::BackupError;
use crate::manifest::Manifest;
use crate::repository::{MANIFEST, Repository};
use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::num::NonZero;
use std::time::Duration;
use tributary_types::host;

/// How often an announcement is renewed.
const RENEWED: Duration = Duration::from_secs(60);
/// An announcement that is older than one's own by this much is of a process that has ended.
const STALE: chrono::TimeDelta = chrono::TimeDelta::minutes(15);
/// How often a backup looks whether another server's removal has ended.
const LOOK: Duration = Duration::from_secs(1);
const RUNNING: &str = "running";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Doing {
    /// A backup is taken: objects that no manifest names may be its own.
    Backup,
    /// Objects that no manifest names are removed.
    Removal,
}

#[derive(Serialize, Deserialize)]
struct Announced {
    node: String,
    doing: Doing,
    begun_ms: i64,
}

/// An entry about the work of a server in a repository, which other servers see until [`Announcement::end`].
#[derive(Debug)]
pub struct Announcement {
    repository: Repository,
    node: String,
    path: Path,
}

/// The outcome of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Names of backups that are no more, oldest first.
    pub backups: Vec<String>,
    pub objects: usize,
    pub bytes: u64,
    /// Why nothing was removed; the next removal does it.
    pub postponed: Option<String>,
}

impl Repository {
    /// Announces a backup of a server, once no other server removes backups of this place.
    ///
    /// # Errors
    /// [`BackupError::Place`].
    pub async fn announce(&self, node: &str) -> Result<Announcement, BackupError> {
        let path = self.path(&format!("{RUNNING}/{node}.json"));
        let announcement = Announcement { repository: self.clone(), node: node.to_owned(), path };
        loop {
            announcement.say(Doing::Backup).await?;
            if !announcement.others().await?.contains(&Doing::Removal) {
                return Ok(announcement);
            }
            host::sleep(LOOK, || tokio::time::sleep(LOOK)).await;
        }
    }
}

impl Announcement {
    async fn say(&self, doing: Doing) -> Result<(), BackupError> {
        let announced = Announced { node: self.node.clone(), doing, begun_ms: host::unix_ms() };
        let text = serde_json::to_vec(&announced).expect("a struct of numbers and texts");
        let put = self.repository.store.put(&self.path, PutPayload::from(text)).await;
        put.map(drop).map_err(BackupError::place(format!("writing {}", self.path)))
    }

    /// Renews the announcement of a backup for ever.
    ///
    /// # Errors
    /// [`BackupError::Place`]: it may become stale.
    pub async fn renew(&self) -> BackupError {
        self.repeat(Doing::Backup).await
    }

    async fn repeat(&self, doing: Doing) -> BackupError {
        loop {
            host::sleep(RENEWED, || tokio::time::sleep(RENEWED)).await;
            if let Err(error) = self.say(doing).await {
                return error;
            }
        }
    }

    /// The work of other servers here.
    async fn others(&self) -> Result<Vec<Doing>, BackupError> {
        let repository = &self.repository;
        let doing = || format!("listing what other servers do in {}", repository.shown());
        let own = repository.store.head(&self.path).await.map_err(BackupError::place(doing()))?;
        let listed = repository.store.list(Some(&repository.path(RUNNING)));
        let listed: Vec<ObjectMeta> = listed.try_collect().await.map_err(BackupError::place(doing()))?;
        let mut others = Vec::new();
        for other in listed.into_iter().filter(|other| other.location != self.path) {
            if is_stale(other.last_modified, own.last_modified) {
                continue;
            }
            let read = match repository.store.get(&other.location).await {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            match read {
                // What is not understood may be a backup.
                Ok(text) => others.push(
                    serde_json::from_slice::<Announced>(&text).map_or(Doing::Backup, |other| other.doing),
                ),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(BackupError::place(doing())(error)),
            }
        }
        Ok(others)
    }

    /// Removes all backups of this server but the newest ones, and all objects that no backup has. To be called when the announced
    /// backup exists.
    ///
    /// # Errors
    /// [`BackupError::Place`], [`BackupError::Unreadable`]. Each backup that exists is whole.
    pub async fn remove_all_but(&self, newest: NonZero<usize>) -> Result<Removed, BackupError> {
        self.say(Doing::Removal).await?;
        if !self.others().await?.is_empty() {
            let text = "another server works in this place; the next backup removes what is old";
            return Ok(Removed { postponed: Some(text.to_owned()), ..Removed::default() });
        }
        // A removal that takes longer than an announcement lasts would let another server's backup begin.
        tokio::select! {
            removed = self.remove_unannounced(newest) => removed,
            error = self.repeat(Doing::Removal) => Err(error),
        }
    }

    async fn remove_unannounced(&self, newest: NonZero<usize>) -> Result<Removed, BackupError> {
        let repository = &self.repository;
        let manifests = repository.manifests().await?;
        let (expired, kept) = divided(manifests, &self.node, newest);
        let mut removed = Removed::default();
        for manifest in expired {
            let path = repository.path(&format!("backups/{}/{MANIFEST}", manifest.name));
            delete(&*repository.store, &path).await?;
            removed.backups.push(manifest.name);
        }
        for object in self.unneeded(&kept).await? {
            delete(&*repository.store, &object.location).await?;
            removed.objects += 1;
            removed.bytes += object.size;
        }
        Ok(removed)
    }

    /// The objects of no backup.
    async fn unneeded(&self, kept: &[Manifest]) -> Result<Vec<ObjectMeta>, BackupError> {
        let repository = &self.repository;
        let mut needed: HashSet<Path> = HashSet::new();
        for manifest in kept {
            needed.insert(repository.path(&format!("backups/{}/{MANIFEST}", manifest.name)));
            needed.extend(manifest.files.iter().map(|file| repository.path(&file.object)));
        }
        let mut unneeded = Vec::new();
        for part in ["backups", "data"] {
            let doing = format!("listing {part} in {}", repository.shown());
            let mut listed = repository.store.list(Some(&repository.path(part)));
            while let Some(object) = listed.next().await {
                let object = object.map_err(BackupError::place(doing.clone()))?;
                if !needed.contains(&object.location) {
                    unneeded.push(object);
                }
            }
        }
        Ok(unneeded)
    }

    /// Takes the announcement back.
    pub async fn end(self) {
        if let Err(error) = delete(&*self.repository.store, &self.path).await {
            // It becomes stale.
            tracing::warn!(path = %self.path, %error, "the announcement of a backup stays");
        }
    }
}

/// The backups of the server beyond the newest ones, oldest first, and all others.
fn divided(manifests: Vec<Manifest>, node: &str, newest: NonZero<usize>) -> (Vec<Manifest>, Vec<Manifest>) {
    let own = manifests.iter().filter(|manifest| manifest.node == node).count();
    let mut left = own.saturating_sub(newest.get());
    manifests.into_iter().partition(|manifest| {
        let goes = left > 0 && manifest.node == node;
        left -= usize::from(goes);
        goes
    })
}

fn is_stale(other: DateTime<Utc>, own: DateTime<Utc>) -> bool {
    own - other > STALE
}

async fn delete(store: &dyn ObjectStore, path: &Path) -> Result<(), BackupError> {
    match store.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(BackupError::place(format!("deleting {path}"))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{FORMAT, SavedFile};
    use object_store::memory::InMemory;
    use std::sync::Arc;

    const NODE: &str = "n1";

    fn repository() -> Repository {
        Repository::new(Arc::new(InMemory::new()), Path::from("place"), "memory".to_owned())
    }

    /// A backup with a file of its own and these data files.
    async fn backup(repository: &Repository, name: &str, node: &str, moment_ms: i64, data: &[&str]) {
        let own = format!("backups/{name}/catalog.db");
        let objects = data.iter().map(|data| format!("data/{data}")).chain([own]);
        let mut files = Vec::new();
        for object in objects {
            let path = repository.path(&object);
            repository.store.put(&path, PutPayload::from_static(b"bytes")).await.expect("memory");
            files.push(SavedFile { path: object.clone(), object, bytes: 5, hash: String::new() });
        }
        let manifest = Manifest {
            format: FORMAT,
            name: name.to_owned(),
            server_version: String::new(),
            node: node.to_owned(),
            moment_ms,
            tables: Vec::new(),
            files,
        };
        repository.publish(&manifest).await.expect("memory");
    }

    async fn objects(repository: &Repository) -> Vec<String> {
        let listed: Vec<ObjectMeta> =
            repository.store.list(Some(&repository.path(""))).try_collect().await.expect("memory");
        let mut names: Vec<_> = listed.into_iter().map(|object| object.location.to_string()).collect();
        names.sort();
        names
    }

    async fn four_backups() -> Repository {
        let repository = repository();
        backup(&repository, "one", NODE, 1, &["t/a", "t/b"]).await;
        backup(&repository, "other", "n2", 2, &["u/a"]).await;
        backup(&repository, "two", NODE, 3, &["t/b", "t/c"]).await;
        backup(&repository, "three", NODE, 4, &["t/c", "t/d"]).await;
        repository
    }

    fn newest(count: usize) -> NonZero<usize> {
        NonZero::new(count).expect("not 0")
    }

    #[tokio::test]
    async fn the_newest_backups_stay_with_the_files_that_they_share() {
        let repository = four_backups().await;
        // Of a backup that was broken off.
        repository
            .store
            .put(&repository.path("data/t/left"), PutPayload::from_static(b"x"))
            .await
            .expect("memory");
        repository
            .store
            .put(&repository.path("backups/left/wal/1"), PutPayload::from_static(b"x"))
            .await
            .expect("memory");
        let announcement = repository.announce(NODE).await.expect("memory");
        let removed = announcement.remove_all_but(newest(2)).await.expect("memory");
        assert_eq!((removed.backups, removed.objects, removed.postponed), (vec!["one".to_owned()], 4, None));
        assert_eq!(removed.bytes, 12, "a, the catalog, and what was left");
        announcement.end().await;
        assert_eq!(
            objects(&repository).await,
            [
                "place/backups/other/catalog.db",
                "place/backups/other/manifest.json",
                "place/backups/three/catalog.db",
                "place/backups/three/manifest.json",
                "place/backups/two/catalog.db",
                "place/backups/two/manifest.json",
                "place/data/t/b",
                "place/data/t/c",
                "place/data/t/d",
                "place/data/u/a",
            ]
        );
    }

    #[tokio::test]
    async fn nothing_goes_while_another_server_works_and_no_backup_begins_while_it_removes() {
        let repository = four_backups().await;
        let before = objects(&repository).await;
        let other = repository.announce("n2").await.expect("memory");
        let own = repository.announce(NODE).await.expect("two backups may run");
        let removed = own.remove_all_but(newest(1)).await.expect("memory");
        assert!(removed.backups.is_empty() && removed.postponed.is_some(), "{removed:?}");
        own.end().await;
        other.say(Doing::Removal).await.expect("memory");
        let waits = tokio::time::timeout(Duration::from_millis(50), repository.announce(NODE)).await;
        assert!(waits.is_err(), "the other removes");
        other.end().await;
        let own = repository.announce(NODE).await.expect("it has ended");
        own.end().await;
        assert_eq!(objects(&repository).await, before);
        // What a process has left that was killed.
        let now = Utc::now();
        assert!(is_stale(now - STALE - chrono::TimeDelta::seconds(1), now) && !is_stale(now - STALE, now));
    }

    #[tokio::test]
    async fn wherever_a_removal_ends_each_backup_is_whole_and_the_next_one_takes_the_rest() {
        // Manifests go first, so a removal that is broken off is one whose backups are gone, and some of whose objects are there.
        for left in 0..4 {
            let repository = four_backups().await;
            for name in ["one", "two"].into_iter().take(left) {
                let manifest = repository.path(&format!("backups/{name}/{MANIFEST}"));
                delete(&*repository.store, &manifest).await.expect("memory");
            }
            if left == 3 {
                delete(&*repository.store, &repository.path("data/t/a")).await.expect("memory");
            }
            let all = objects(&repository).await;
            for manifest in repository.manifests().await.expect("readable") {
                for file in &manifest.files {
                    let path = repository.path(&file.object).to_string();
                    assert!(all.contains(&path), "{left}: {path} of {}", manifest.name);
                }
            }
            let own = repository.announce(NODE).await.expect("memory");
            own.remove_all_but(newest(1)).await.expect("memory");
            own.end().await;
            let data: Vec<_> =
                objects(&repository).await.into_iter().filter(|name| name.contains("/data/")).collect();
            assert_eq!(data, ["place/data/t/c", "place/data/t/d", "place/data/u/a"], "{left}");
        }
    }

    #[tokio::test]
    async fn nothing_goes_beside_a_backup_of_a_newer_version() {
        let repository = four_backups().await;
        let newer = r#"{"format": 99}"#;
        let path = repository.path(&format!("backups/newer/{MANIFEST}"));
        repository.store.put(&path, PutPayload::from_static(newer.as_bytes())).await.expect("memory");
        let before = objects(&repository).await;
        let own = repository.announce(NODE).await.expect("memory");
        let error = own.remove_all_but(newest(1)).await.expect_err("it can't be read").to_string();
        assert!(error.contains("format 99") && error.contains("newer version"), "{error}");
        own.end().await;
        assert_eq!(objects(&repository).await, before);
    }
}
