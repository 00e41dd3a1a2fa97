//! Which directories have logs of this storage root.
//!
//! The catalog remembers them, so that a log whose disk is not mounted, or that was taken out of the
//! configuration while it still held rows, is missed: starting without it would lose the rows
//! silently. A log that is not configured any more is still opened and emptied, and then forgotten.
//!
//! Invariant: a log is forgotten only when its rows are elsewhere or its owner has given them up, and
//! segments of a forgotten log are never read again, nor taken for those of a log that was moved here.

use crate::start_error::StartError;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tributary_catalog::{Catalog, CatalogError};
use tributary_ingest::Ingest;
use tributary_wal::{Disk, OsDisk};

/// The catalog's key for the remembered directories, one per line.
const KEY: &str = "wal_dirs";
/// An empty file of this name in a log's directory says that its rows are given up, once.
pub(crate) const GIVEN_UP: &str = "GIVEN_UP";
/// A file of this name in a log's directory says that the log is forgotten. Its first line is the
/// directory, as the catalog would remember it, so that it means nothing where it was moved with the log.
const FORGOTTEN: &str = "FORGOTTEN";
/// The bytes of a segment's header that tell it from all others: its first LSN and its random salt.
const SEGMENT_IDENTITY_BYTES: usize = 32;

/// The logs to open. All paths are absolute.
pub(crate) struct WalDirs {
    root: PathBuf,
    configured: Vec<PathBuf>,
    /// Remembered and no longer configured; they take no new loads.
    pub retired: Vec<PathBuf>,
    /// Remembered up to now: moved, copied or given up.
    dropped: Vec<PathBuf>,
}

/// Whether the directory has a segment. A log that was ever started has one for ever.
pub(crate) fn is_in_use(dir: &Path) -> bool {
    !segments(dir).is_empty()
}

/// The directory's segments, from the oldest on.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let is_segment = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("wal-") && name.ends_with(".log")
    };
    let mut segments: Vec<PathBuf> = files.flatten().map(|file| file.path()).filter(is_segment).collect();
    segments.sort();
    segments
}

/// Compares the configured directories with the remembered ones. Segments of a forgotten log in a
/// directory that is configured again are put aside.
///
/// # Errors
/// [`StartError::LogGone`] when a remembered log is missing; [`StartError::LogUnknown`] when nobody can tell
/// whether another has taken its place; [`StartError::Io`].
pub(crate) async fn to_open(
    catalog: &Catalog,
    root: &Path,
    configured: &[PathBuf],
) -> Result<WalDirs, StartError> {
    let root = absolute(root);
    let configured: Vec<PathBuf> = configured.iter().map(|dir| absolute(dir)).collect();
    let text = catalog.meta_get(KEY).await?.unwrap_or_default();
    let remembered: Vec<PathBuf> = text.lines().map(|line| root.join(line)).collect();
    let mut dirs = WalDirs { root, configured, retired: Vec::new(), dropped: Vec::new() };
    for dir in dirs.configured.iter().filter(|dir| !remembered.contains(dir)) {
        dirs.put_forgotten_aside(dir)?;
    }
    // A log that was moved (or copied, with its storage root) shows up as one that is in use and not
    // remembered: then the one that it was before is left alone.
    let is_new = |dir: &&PathBuf| !remembered.contains(dir) && is_in_use(dir);
    let mut arrived: Vec<PathBuf> = dirs.configured.iter().filter(is_new).cloned().collect();
    let mut gone = Vec::new();
    for dir in remembered {
        let is_configured = dirs.configured.contains(&dir);
        if is_configured && is_in_use(&dir) {
            continue;
        }
        if dir.join(GIVEN_UP).exists() {
            tracing::warn!(dir = %dir.display(), "a write-ahead log is given up, as its file {GIVEN_UP} says");
            if !is_configured {
                dirs.dropped.push(dir);
            }
        } else if is_configured || !is_in_use(&dir) {
            gone.push(dir);
        } else if let Some(copy) = arrived.iter().position(|arrived| is_copy(&dir, arrived)) {
            dirs.left_for(dir, &arrived.swap_remove(copy));
        } else {
            dirs.retired.push(dir);
        }
    }
    for dir in gone {
        match arrived.pop() {
            Some(arrived) if !dirs.configured.contains(&dir) => dirs.left_for(dir, &arrived),
            _ => return Err(StartError::LogGone(dir)),
        }
    }
    match (arrived.pop(), dirs.retired.first()) {
        (Some(unknown), Some(known)) => Err(StartError::LogUnknown { unknown, known: known.clone() }),
        _ => Ok(dirs),
    }
}

/// Whether one of the directories was copied from the other: they share a segment.
fn is_copy(dir: &Path, copy: &Path) -> bool {
    let identity = |path: &Path| -> io::Result<Vec<u8>> {
        let mut identity = Vec::with_capacity(SEGMENT_IDENTITY_BYTES);
        File::open(path)?.take(SEGMENT_IDENTITY_BYTES as u64).read_to_end(&mut identity)?;
        Ok(identity)
    };
    segments(dir).iter().any(|segment| {
        let name = segment.file_name().unwrap_or_default();
        matches!((identity(segment), identity(&copy.join(name))), (Ok(one), Ok(other)) if one == other)
    })
}

impl WalDirs {
    /// Remembers the logs that hold rows or may get some. Durable on return.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub async fn remember(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        for dir in self.dropped.iter().filter(|dir| is_in_use(dir)) {
            if let Err(error) = self.mark_forgotten(dir) {
                tracing::warn!(dir = %dir.display(), %error, "a write-ahead log without use can't be marked {FORGOTTEN}");
            }
        }
        self.store(catalog, &self.retired).await?;
        // What the files say was done. Left there, it would be done again some day.
        for dir in self.configured.iter().chain(&self.dropped) {
            remove_marker(&dir.join(GIVEN_UP));
        }
        for dir in &self.configured {
            remove_marker(&dir.join(FORGOTTEN));
        }
        Ok(())
    }

    /// Forgets the retired logs that nobody needs any more, after the logs were stopped.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub async fn forget_empty(&self, catalog: &Catalog, ingest: &Ingest) -> Result<(), CatalogError> {
        let spaces = ingest.wal_spaces();
        let is_needed =
            |dir: &PathBuf| spaces.iter().any(|space| space.dir == *dir && space.wal.live_bytes() > 0);
        self.forget(catalog, is_needed).await
    }

    async fn forget(
        &self,
        catalog: &Catalog,
        is_needed: impl Fn(&PathBuf) -> bool,
    ) -> Result<(), CatalogError> {
        let is_kept = |dir: &&PathBuf| {
            is_needed(dir) || self.mark_forgotten(dir).is_err_and(|error| {
                tracing::warn!(dir = %dir.display(), %error, "an empty write-ahead log can't be forgotten");
                true
            })
        };
        let kept: Vec<PathBuf> = self.retired.iter().filter(is_kept).cloned().collect();
        self.store(catalog, &kept).await
    }

    async fn store(&self, catalog: &Catalog, retired: &[PathBuf]) -> Result<(), CatalogError> {
        let dirs: Vec<String> = self.configured.iter().chain(retired).map(|dir| self.shown(dir)).collect();
        let text = dirs.join("\n");
        if catalog.meta_get(KEY).await?.as_deref() != Some(text.as_str()) {
            catalog.meta_set(KEY, &text).await?;
        }
        Ok(())
    }

    /// What is inside the storage root is moved and copied with it.
    fn shown(&self, dir: &Path) -> String {
        dir.strip_prefix(&self.root).unwrap_or(dir).display().to_string()
    }

    fn left_for(&mut self, dir: PathBuf, moved_to: &Path) {
        tracing::warn!(
            from = %dir.display(), to = %moved_to.display(),
            "a write-ahead log was moved; what is left at the old place is not read"
        );
        self.dropped.push(dir);
    }

    /// Durable on return.
    fn mark_forgotten(&self, dir: &Path) -> io::Result<()> {
        let mut file = File::create(dir.join(FORGOTTEN))?;
        writeln!(
            file,
            "{}\nThe server does not need the write-ahead log in this directory any more. If the directory is configured \
             again, the server puts the segments that are here aside and begins a new log.",
            self.shown(dir)
        )?;
        file.sync_all()?;
        File::open(dir)?.sync_all()
    }

    fn is_forgotten(&self, dir: &Path) -> bool {
        fs::read_to_string(dir.join(FORGOTTEN))
            .is_ok_and(|text| text.lines().next() == Some(self.shown(dir).as_str()))
    }

    /// Moves what is left of a forgotten log into a directory below its own.
    fn put_forgotten_aside(&self, dir: &Path) -> Result<(), StartError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StartError::Io { action, path, source }
        };
        let left = segments(dir);
        if left.is_empty() || !self.is_forgotten(dir) {
            return Ok(());
        }
        // Who has the log open will be named when it is opened.
        let Some(_lock) = OsDisk.lock_dir(dir).map_err(failed("lock", dir))? else { return Ok(()) };
        let free = |number: &u32| !dir.join(format!("{}-{number}", FORGOTTEN.to_lowercase())).exists();
        let number = (1..).find(free).unwrap_or_default();
        let aside = dir.join(format!("{}-{number}", FORGOTTEN.to_lowercase()));
        fs::create_dir(&aside).map_err(failed("create", &aside))?;
        for segment in left {
            let target = aside.join(segment.file_name().unwrap_or_default());
            fs::rename(&segment, target).map_err(failed("move", &segment))?;
        }
        for changed in [&aside, dir] {
            OsDisk.sync_dir(changed).map_err(failed("sync the directory", changed))?;
        }
        tracing::warn!(aside = %aside.display(), "segments of a forgotten write-ahead log are put aside");
        Ok(())
    }
}

fn remove_marker(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a file that has done its work can't be removed");
        }
        _ => {}
    }
}

fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_catalog::CatalogLocation;

    const SEGMENT: &str = "wal-00000000000000000000.log";

    fn used(root: &Path, name: &str) -> PathBuf {
        let dir = root.join(name);
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join(SEGMENT), format!("the salt of {name}")).expect("a file");
        dir
    }

    async fn catalog(root: &Path, remembered: &[&PathBuf]) -> Catalog {
        let catalog = Catalog::open(&CatalogLocation::in_directory(root)).await.expect("a catalog");
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
        fs::create_dir(&b).expect("a directory");
        fs::write(b.join(GIVEN_UP), b"").expect("a file");
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
        let unknown = opened(temp.path(), &[&old], &[&new]).await.map(|dirs| dirs.retired);
        assert!(
            matches!(&unknown, Err(StartError::LogUnknown { unknown, known }) if *unknown == new && *known == old),
            "they share no segment: {unknown:?}"
        );
        fs::copy(new.join(SEGMENT), old.join(SEGMENT)).expect("copied");
        let dirs = opened(temp.path(), &[&old], &[&new]).await.expect("may open");
        assert!(dirs.retired.is_empty());
        let catalog = catalog(temp.path(), &[&old]).await;
        dirs.remember(&catalog).await.expect("stored");
        // The copy goes on; what is left at the old place is stale from now on.
        let dirs = to_open(&catalog, temp.path(), std::slice::from_ref(&old)).await.expect("may open");
        assert_eq!(dirs.retired, [new]);
        assert!(!is_in_use(&old) && old.join("forgotten-1").join(SEGMENT).exists());
    }

    #[tokio::test]
    async fn a_directory_that_is_configured_again_begins_a_new_log_and_the_one_between_is_opened() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = temp.path();
        let (a, b) = (used(root, "a"), root.join("b"));
        let catalog = catalog(root, &[&a]).await;
        let dirs = to_open(&catalog, root, std::slice::from_ref(&b)).await.expect("may open");
        assert_eq!(dirs.retired, std::slice::from_ref(&a));
        used(root, "b");
        dirs.remember(&catalog).await.expect("stored");
        dirs.forget(&catalog, |_| false).await.expect("stored");
        assert_eq!(catalog.meta_get(KEY).await.expect("read").as_deref(), Some("b"));
        for _ in 0..2 {
            let dirs = to_open(&catalog, root, std::slice::from_ref(&a)).await.expect("may open");
            assert_eq!(dirs.retired, std::slice::from_ref(&b));
            assert!(!is_in_use(&a));
            assert_eq!(fs::read(a.join("forgotten-1").join(SEGMENT)).expect("kept"), b"the salt of a");
        }
        let dirs = to_open(&catalog, root, std::slice::from_ref(&a)).await.expect("may open");
        used(root, "a");
        dirs.remember(&catalog).await.expect("stored");
        assert_eq!(catalog.meta_get(KEY).await.expect("read").as_deref(), Some("a\nb"));
        assert!(!a.join(FORGOTTEN).exists());
        let dirs = to_open(&catalog, root, std::slice::from_ref(&a)).await.expect("may open");
        assert_eq!(dirs.retired, [b]);
        assert!(is_in_use(&a), "its segments are those of a remembered log");
    }

    #[tokio::test]
    async fn a_log_that_is_moved_with_an_old_mark_is_known_all_the_same() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = temp.path();
        let (old, new) = (used(root, "old"), root.join("new"));
        opened(root, &[&old], &[&old]).await.expect("may open").mark_forgotten(&old).expect("written");
        fs::rename(&old, &new).expect("moved");
        assert!(opened(root, &[&old], &[&new]).await.expect("may open").retired.is_empty());
        assert!(is_in_use(&new));
    }

    #[tokio::test]
    async fn a_log_is_given_up_once() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = temp.path();
        let (a, b) = (used(root, "a"), root.join("b"));
        for configured in [&[&a, &b][..], &[&a]] {
            fs::create_dir_all(&b).expect("a directory");
            fs::write(b.join(GIVEN_UP), b"").expect("a file");
            let dirs = opened(root, &[&a, &b], configured).await.expect("may open");
            dirs.remember(&catalog(root, &[&a, &b]).await).await.expect("stored");
            let again = opened(root, &[&a, &b], configured).await;
            assert!(matches!(again, Err(StartError::LogGone(dir)) if dir == b));
        }
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
        fs::copy(original.join("catalog.db"), copy.join("catalog.db")).expect("copied");
        let catalog = Catalog::open(&CatalogLocation::in_directory(&copy)).await.expect("a catalog");
        assert_eq!(catalog.meta_get(KEY).await.expect("read").as_deref(), Some("wal"));
        assert!(to_open(&catalog, &copy, &[copied]).await.expect("may open").retired.is_empty());
    }
}
