//! The directories with logs of this storage root.
//!
//! The node's file remembers them, so that a log whose disk is not mounted, whose directory has another log, or that
//! was taken out of the configuration while it still held rows, is missed: starting without it would lose the rows
//! silently. A log that is not configured any more is still opened and emptied, and then forgotten.
//!
//! A log is known by its id ([`LogId`]), wherever it is. One without an id is neither the same as another nor a
//! different one: then its directory decides.
//!
//! Invariant: a log is forgotten only when its rows are elsewhere or its owner has given them up, and segments of a forgotten log
//! are never read again, nor mistaken for those of a log that was moved here.

#[cfg(test)]
mod tests;

use crate::node::node_file::{KeptLog, NodeFile};
use crate::node::start_error::{GIVEN_UP, StartError};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tributary_ingest::Ingest;
use tributary_wal::identity::move_segments;
use tributary_wal::{Disk, LogId, OsDisk, identify, is_in_use};

/// A file of this name in a log's directory says that the log is forgotten. Its first line is the
/// directory, as the node's file would remember it, so that it means nothing where it was moved with the log.
const FORGOTTEN: &str = "FORGOTTEN";

/// The logs to open. All paths are absolute.
pub(crate) struct WalDirs {
    root: PathBuf,
    configured: Vec<PathBuf>,
    /// Remembered and no longer configured; they take no new loads.
    pub retired: Vec<PathBuf>,
    /// Remembered up to now: moved, copied or given up.
    dropped: Vec<PathBuf>,
}

/// A log that the node's file remembers.
struct Remembered {
    dir: PathBuf,
    log: Option<LogId>,
}

/// The contents of the directory of a remembered log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No log.
    Empty,
    /// The log, as far as can be determined.
    Own,
    /// Certainly another log.
    Other { known: LogId, found: LogId },
}

/// Whether two logs are one; `None` if one of them has no id.
fn is_same(one: Option<LogId>, other: Option<LogId>) -> Option<bool> {
    Some(one? == other?)
}

impl Remembered {
    fn place(&self) -> Place {
        match (self.log, identify(&self.dir)) {
            _ if !is_in_use(&self.dir) => Place::Empty,
            (Some(known), Some(found)) if known != found => Place::Other { known, found },
            _ => Place::Own,
        }
    }

    /// The log that was moved or copied to one of the directories, which is taken out.
    fn take_from(&self, arrived: &mut Vec<PathBuf>, may_be_unknown: bool) -> Option<PathBuf> {
        let own = self.log.or_else(|| identify(&self.dir));
        let find = |wanted| arrived.iter().position(|dir| is_same(own, identify(dir)) == wanted);
        let found = find(Some(true)).or_else(|| if may_be_unknown { find(None) } else { None })?;
        Some(arrived.swap_remove(found))
    }
}

/// Compares the configured directories with the remembered ones. Segments of a forgotten log in a directory that is configured
/// again are put aside.
///
/// # Errors
/// [`StartError::LogGone`] if a remembered log is missing; [`StartError::LogDiffers`] if another is in its directory;
/// [`StartError::LogUnknown`] if it can't be determined whether another has taken its place; [`StartError::Io`].
pub(crate) fn to_open(node: &NodeFile, root: &Path, configured: &[PathBuf]) -> Result<WalDirs, StartError> {
    let root = absolute(root);
    let configured: Vec<PathBuf> = configured.iter().map(|dir| absolute(dir)).collect();
    let (announced, kept): (Vec<KeptLog>, Vec<KeptLog>) =
        node.wal_dirs().into_iter().partition(|kept| kept.is_new);
    let remembered: Vec<Remembered> =
        kept.into_iter().map(|kept| Remembered { dir: root.join(kept.dir), log: kept.log }).collect();
    let is_remembered = |dir: &PathBuf| remembered.iter().any(|one| one.dir == *dir);
    let mut dirs = WalDirs { root, configured, retired: Vec::new(), dropped: Vec::new() };
    for dir in dirs.configured.iter().filter(|dir| !is_remembered(dir)) {
        dirs.put_forgotten_aside(dir)?;
    }
    // A log that was moved (or copied, with its storage root) shows up as one that is in use and not
    // remembered: then the one that it was before is left alone.
    let is_new = |dir: &&PathBuf| !is_remembered(dir) && is_in_use(dir);
    let mut arrived: Vec<PathBuf> = dirs.configured.iter().filter(is_new).cloned().collect();
    let mut gone = Vec::new();
    for one in &remembered {
        let is_configured = dirs.configured.contains(&one.dir);
        match one.place() {
            Place::Own if is_configured => {}
            Place::Other { known, found } if is_configured && dirs.are_swapped(known, found, &remembered) => {
            }
            _ if one.dir.join(GIVEN_UP).exists() => {
                tracing::warn!(dir = %one.dir.display(), "a write-ahead log is given up, as its file {GIVEN_UP} says");
                if !is_configured {
                    dirs.dropped.push(one.dir.clone());
                }
            }
            Place::Own => match one.take_from(&mut arrived, false) {
                Some(copy) => dirs.left_for(one, &copy),
                None => dirs.retired.push(one.dir.clone()),
            },
            Place::Empty | Place::Other { .. } => gone.push(one),
        }
    }
    // Identifiable logs come first: no other may take their place.
    gone.sort_by_key(|one| one.log.is_none());
    for one in gone {
        let is_configured = dirs.configured.contains(&one.dir);
        let moved = if is_configured { None } else { one.take_from(&mut arrived, true) };
        match (moved, one.place()) {
            (Some(moved), _) => dirs.left_for(one, &moved),
            (None, Place::Other { known, found }) => {
                return Err(StartError::LogDiffers { dir: one.dir.clone(), known, found });
            }
            (None, _) => return Err(StartError::LogGone(one.dir.clone())),
        }
    }
    // Created by a start that did not complete.
    arrived.retain(|dir| announced.iter().all(|one| dirs.root.join(&one.dir) != *dir));
    if let (Some(unknown), Some(known)) = (arrived.pop(), dirs.retired.first()) {
        return Err(StartError::LogUnknown { unknown, known: known.clone() });
    }
    dirs.announce(node)?;
    Ok(dirs)
}

impl WalDirs {
    /// Records which logs will be created, and which ones will get other ids because they have lost theirs: if this start does
    /// not complete, the next one must not consider the former foreign, nor miss the latter.
    fn announce(&self, node: &NodeFile) -> Result<(), StartError> {
        let mut kept = node.wal_dirs();
        for one in &mut kept {
            let dir = self.root.join(&one.dir);
            if is_in_use(&dir) && identify(&dir).is_none() {
                one.log = None;
            }
        }
        for dir in self.configured.iter().filter(|dir| !is_in_use(dir)) {
            if kept.iter().all(|one| self.root.join(&one.dir) != *dir) {
                kept.push(KeptLog { dir: self.shown(dir), log: None, is_new: true });
            }
        }
        node.keep_wal_dirs(kept)
    }

    /// Remembers the logs that hold rows or may get some. Durable on return.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn remember(&self, node: &NodeFile) -> Result<(), StartError> {
        for dir in self.dropped.iter().filter(|dir| is_in_use(dir)) {
            if let Err(error) = self.mark_forgotten(dir) {
                tracing::warn!(dir = %dir.display(), %error, "a write-ahead log without use can't be marked {FORGOTTEN}");
            }
        }
        self.store(node, &self.retired)?;
        // The files' requests were executed. Left there, they would be executed again some day.
        for dir in self.configured.iter().chain(&self.dropped) {
            remove_marker(&dir.join(GIVEN_UP));
        }
        for dir in &self.configured {
            remove_marker(&dir.join(FORGOTTEN));
        }
        Ok(())
    }

    /// Forgets the retired logs that are not needed any more, after the logs were stopped.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn forget_empty(&self, node: &NodeFile, ingest: &Ingest) -> Result<(), StartError> {
        let spaces = ingest.wal_spaces();
        let is_needed =
            |dir: &PathBuf| spaces.iter().any(|space| space.dir == *dir && space.wal.live_bytes() > 0);
        self.forget(node, is_needed)
    }

    fn forget(&self, node: &NodeFile, is_needed: impl Fn(&PathBuf) -> bool) -> Result<(), StartError> {
        let is_kept = |dir: &&PathBuf| {
            is_needed(dir) || self.mark_forgotten(dir).is_err_and(|error| {
                tracing::warn!(dir = %dir.display(), %error, "an empty write-ahead log can't be forgotten");
                true
            })
        };
        let kept: Vec<PathBuf> = self.retired.iter().filter(is_kept).cloned().collect();
        self.store(node, &kept)
    }

    fn store(&self, node: &NodeFile, retired: &[PathBuf]) -> Result<(), StartError> {
        let kept = |dir: &PathBuf| KeptLog { dir: self.shown(dir), log: identify(dir), is_new: false };
        node.keep_wal_dirs(self.configured.iter().chain(retired).map(kept).collect())
    }

    /// Whether the log that is missing in one configured directory is in another, and the one found instead is remembered too:
    /// disks were mounted in another order.
    fn are_swapped(&self, known: LogId, found: LogId, remembered: &[Remembered]) -> bool {
        remembered.iter().any(|one| one.log == Some(found))
            && self.configured.iter().any(|dir| identify(dir) == Some(known))
    }

    /// Paths inside the storage root are moved and copied with it.
    fn shown(&self, dir: &Path) -> String {
        dir.strip_prefix(&self.root).unwrap_or(dir).display().to_string()
    }

    fn left_for(&mut self, log: &Remembered, moved_to: &Path) {
        tracing::warn!(
            from = %log.dir.display(), to = %moved_to.display(),
            "a write-ahead log was moved; what is left at the old place is not read"
        );
        self.dropped.push(log.dir.clone());
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

    /// Moves the remains of a forgotten log into a directory below its own.
    fn put_forgotten_aside(&self, dir: &Path) -> Result<(), StartError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StartError::Io { action, path, source }
        };
        if !is_in_use(dir) || !self.is_forgotten(dir) {
            return Ok(());
        }
        // The process that has the log open is named when it is opened.
        let Some(_lock) = OsDisk.lock_dir(dir).map_err(failed("lock", dir))? else { return Ok(()) };
        let free = |number: &u32| !dir.join(format!("{}-{number}", FORGOTTEN.to_lowercase())).exists();
        let number = (1..).find(free).unwrap_or_default();
        let aside = dir.join(format!("{}-{number}", FORGOTTEN.to_lowercase()));
        fs::create_dir(&aside).map_err(failed("create", &aside))?;
        move_segments(dir, &aside).map_err(failed("move segments of", dir))?;
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
