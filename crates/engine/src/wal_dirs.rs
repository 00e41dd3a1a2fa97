//! Which directories have logs of this storage root.
//!
//! The catalog remembers them, so that a log whose disk is not mounted, or that was taken out of the
//! configuration while it still held rows, is missed: starting without it would lose the rows
//! silently. A log that is not configured any more is still opened and emptied, and then forgotten.

use crate::engine::StartError;
use std::path::{Path, PathBuf};
use tributary_catalog::{Catalog, CatalogError};
use tributary_ingest::Ingest;

/// The catalog's key for the remembered directories, one per line.
const KEY: &str = "wal_dirs";
/// An empty file of this name in a log's directory says that its rows are given up.
pub(crate) const GIVEN_UP: &str = "GIVEN_UP";

/// The logs to open. All paths are absolute.
pub(crate) struct WalDirs {
    root: PathBuf,
    configured: Vec<PathBuf>,
    /// Remembered and no longer configured; they take no new loads.
    pub retired: Vec<PathBuf>,
}

/// Whether the directory has a segment. A log that was ever started has one for ever.
pub(crate) fn is_in_use(dir: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(dir) else { return false };
    files.flatten().any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("wal-") && name.ends_with(".log")
    })
}

/// Compares the configured directories with the remembered ones.
///
/// # Errors
/// [`StartError::LogGone`] when a remembered log is missing.
pub(crate) async fn to_open(
    catalog: &Catalog,
    root: &Path,
    configured: &[PathBuf],
) -> Result<WalDirs, StartError> {
    let root = absolute(root);
    let configured: Vec<PathBuf> = configured.iter().map(|dir| absolute(dir)).collect();
    let text = catalog.meta_get(KEY).await?.unwrap_or_default();
    let remembered: Vec<PathBuf> = text.lines().map(|line| root.join(line)).collect();
    // A log that was moved (or copied, with its storage root) shows up as one that is in use and not
    // remembered: then the one that it was before is left alone.
    let mut moved = configured.iter().filter(|dir| !remembered.contains(dir) && is_in_use(dir)).count();
    let mut retired = Vec::new();
    for dir in remembered {
        let is_configured = configured.contains(&dir);
        if is_configured && is_in_use(&dir) {
            continue;
        }
        if dir.join(GIVEN_UP).exists() {
            tracing::warn!(dir = %dir.display(), "a write-ahead log is given up, as its file {GIVEN_UP} says");
        } else if !is_configured && moved > 0 {
            moved -= 1;
        } else if is_in_use(&dir) {
            retired.push(dir);
        } else {
            return Err(StartError::LogGone(dir));
        }
    }
    Ok(WalDirs { root, configured, retired })
}

impl WalDirs {
    /// Remembers the logs that hold rows or may get some. Durable on return.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub async fn remember(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        self.store(catalog, |_| true).await
    }

    /// Forgets the retired logs that nobody needs any more, after the logs were stopped.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub async fn forget_empty(&self, catalog: &Catalog, ingest: &Ingest) -> Result<(), CatalogError> {
        let spaces = ingest.wal_spaces();
        let is_needed =
            |dir: &PathBuf| spaces.iter().any(|space| space.dir == *dir && space.wal.stats().live_bytes > 0);
        self.store(catalog, is_needed).await
    }

    async fn store(
        &self,
        catalog: &Catalog,
        is_needed: impl Fn(&PathBuf) -> bool,
    ) -> Result<(), CatalogError> {
        let retired = self.retired.iter().filter(|dir| is_needed(dir));
        // What is inside the storage root is moved and copied with it.
        let shown = |dir: &PathBuf| dir.strip_prefix(&self.root).unwrap_or(dir).display().to_string();
        let dirs: Vec<String> = self.configured.iter().chain(retired).map(shown).collect();
        let text = dirs.join("\n");
        if catalog.meta_get(KEY).await?.as_deref() != Some(text.as_str()) {
            catalog.meta_set(KEY, &text).await?;
        }
        Ok(())
    }
}

fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(root: &Path, name: &str) -> PathBuf {
        let dir = root.join(name);
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::write(dir.join("wal-00000000000000000000.log"), b"").expect("a file");
        dir
    }

    async fn catalog(root: &Path, remembered: &[&PathBuf]) -> Catalog {
        let catalog = Catalog::open(root).await.expect("a catalog");
        let lines: Vec<String> = remembered.iter().map(|dir| dir.display().to_string()).collect();
        catalog.meta_set(KEY, &lines.join("\n")).await.expect("stored");
        catalog
    }

    async fn opened(
        root: &Path,
        remembered: &[&PathBuf],
        configured: &[&PathBuf],
    ) -> Result<WalDirs, StartError> {
        let catalog = catalog(root, remembered).await;
        let configured: Vec<PathBuf> = configured.iter().map(|&dir| dir.clone()).collect();
        to_open(&catalog, root, &configured).await
    }

    #[tokio::test]
    async fn a_remembered_log_that_is_gone_is_missed() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = temp.path();
        let (a, b) = (used(root, "a"), root.join("b"));
        for configured in [&[&a, &b][..], &[&a]] {
            let outcome = opened(root, &[&a, &b], configured).await;
            assert!(matches!(outcome, Err(StartError::LogGone(dir)) if dir == b));
        }
        std::fs::create_dir(&b).expect("a directory");
        std::fs::write(b.join(GIVEN_UP), b"").expect("a file");
        assert!(opened(root, &[&a, &b], &[&a]).await.expect("may open").retired.is_empty());
    }

    #[tokio::test]
    async fn a_log_that_was_taken_out_of_the_configuration_is_still_opened() {
        let temp = tempfile::tempdir().expect("a directory");
        let (a, b) = (used(temp.path(), "a"), used(temp.path(), "b"));
        assert_eq!(opened(temp.path(), &[&a, &b], &[&a]).await.expect("may open").retired, [b]);
    }

    #[tokio::test]
    async fn a_log_that_was_moved_or_copied_is_known_by_its_segments() {
        let temp = tempfile::tempdir().expect("a directory");
        let (old, new) = (temp.path().join("old"), used(temp.path(), "new"));
        assert!(opened(temp.path(), &[&old], &[&new]).await.expect("may open").retired.is_empty());
        let old = used(temp.path(), "old");
        assert!(opened(temp.path(), &[&old], &[&new]).await.expect("may open").retired.is_empty());
    }

    #[tokio::test]
    async fn a_copy_of_the_storage_root_has_nothing_to_do_with_the_logs_of_the_original() {
        let temp = tempfile::tempdir().expect("a directory");
        let (original, copy) = (temp.path().join("original"), temp.path().join("copy"));
        let wal = used(&original, "wal");
        let catalog = catalog(&original, &[]).await;
        to_open(&catalog, &original, &[wal])
            .await
            .expect("may open")
            .remember(&catalog)
            .await
            .expect("stored");
        catalog.close().await;
        let copied = used(&copy, "wal");
        std::fs::copy(original.join("catalog.db"), copy.join("catalog.db")).expect("copied");
        let catalog = Catalog::open(&copy).await.expect("a catalog");
        assert_eq!(catalog.meta_get(KEY).await.expect("read").as_deref(), Some("wal"));
        assert!(to_open(&catalog, &copy, &[copied]).await.expect("may open").retired.is_empty());
    }
}
