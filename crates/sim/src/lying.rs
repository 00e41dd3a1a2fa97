//! A disk that lies about durability: the planted bugs of a log or a store that omits, postpones or ignores a sync.
//!
//! Invariant: without a lie every operation reaches the simulated disk as it is. Not its business: when a seed has
//! a lie, and who notices.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_wal::disk::DirLock;
use tributary_wal::{Disk, DiskDir, DiskFile, MemDisk, OpenMode};

/// The first bytes of a segment's header (see `docs/wal-format.md`).
const SEGMENT_MAGIC: &[u8] = b"TRIBWAL\n";
/// The root of the object store's files.
pub const STORE_ROOT: &str = "/store";

/// The lies of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    WalSkipsSync,
    WalAnswersBeforeSync,
    WalIgnoresFailedSync,
    WalSkipsHeaderSync,
    WalSkipsDirSync,
    WalTrustsPageCache,
    StoreSkipsFileSync,
    StoreSkipsDirSync,
}

impl Lie {
    pub const ALL: [Self; 8] = [
        Self::WalSkipsSync,
        Self::WalAnswersBeforeSync,
        Self::WalIgnoresFailedSync,
        Self::WalSkipsHeaderSync,
        Self::WalSkipsDirSync,
        Self::WalTrustsPageCache,
        Self::StoreSkipsFileSync,
        Self::StoreSkipsDirSync,
    ];

    /// The name and the meaning of the bug.
    #[must_use]
    pub const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::WalSkipsSync => ("wal-skips-sync", "The log never syncs a frame."),
            Self::WalAnswersBeforeSync => (
                "wal-answers-before-sync",
                "The log answers first and syncs before it writes the next frame.",
            ),
            Self::WalIgnoresFailedSync => {
                ("wal-ignores-failed-sync", "The log takes a failed sync of a frame for a good one.")
            }
            Self::WalSkipsHeaderSync => {
                ("wal-skips-header-sync", "A file becomes a segment without its header being synced.")
            }
            Self::WalSkipsDirSync => {
                ("wal-skips-dir-sync", "A file becomes a segment without its name being synced.")
            }
            Self::WalTrustsPageCache => (
                "wal-trusts-page-cache",
                "Recovery relies on a last frame that may be in the page cache only.",
            ),
            Self::StoreSkipsFileSync => {
                ("store-skips-file-sync", "A data file gets its name without being synced.")
            }
            Self::StoreSkipsDirSync => ("store-skips-dir-sync", "The name of a data file is not synced."),
        }
    }
}

/// The simulated disk as the log and the store see it. Clones are the same disk with the same lie.
#[derive(Clone, Debug)]
pub struct LyingDisk {
    disk: MemDisk,
    lie: Option<Lie>,
    told: Arc<Mutex<Told>>,
}

/// The state of a liar.
#[derive(Debug, Default)]
struct Told {
    /// Files that were opened, by their present name.
    files: BTreeMap<PathBuf, Arc<Mutex<Story>>>,
    /// Directories in which a file has become a segment since their last sync.
    has_new_segment: BTreeSet<PathBuf>,
}

/// The history of an open file.
#[derive(Debug)]
struct Story {
    part: Part,
    /// A sync was promised and not done.
    owes_sync: bool,
}

/// The server's use of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It became a segment since it was opened, and takes frames.
    ActiveSegment,
    /// It was a segment when it was opened: a recovery reads it.
    OldSegment,
    /// It may become a segment; `true` once it has a segment's header.
    Spare { has_header: bool },
    /// The object store writes it.
    Object,
}

impl LyingDisk {
    #[must_use]
    pub fn new(disk: MemDisk, lie: Option<Lie>) -> Self {
        Self { disk, lie, told: Arc::default() }
    }
}

/// Operations that only the simulation performs on a disk go to the real one.
impl Deref for LyingDisk {
    type Target = MemDisk;

    fn deref(&self) -> &MemDisk {
        &self.disk
    }
}

impl Disk for LyingDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Option<DirLock>> {
        self.disk.lock_dir(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(path, mode)?;
        let Some(lie) = self.lie else { return Ok(file) };
        let part = if path.starts_with(STORE_ROOT) {
            Part::Object
        } else if is_segment(path) {
            Part::OldSegment
        } else {
            Part::Spare { has_header: false }
        };
        let story = Arc::new(Mutex::new(Story { part, owes_sync: false }));
        self.told.lock().files.insert(path.to_owned(), Arc::clone(&story));
        Ok(Box::new(LyingFile { file, lie, story }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)?;
        let mut told = self.told.lock();
        if let Some(story) = told.files.remove(from) {
            if is_segment(to) {
                story.lock().part = Part::ActiveSegment;
            }
            told.files.insert(to.to_owned(), story);
        }
        if is_segment(to)
            && let Some(dir) = to.parent()
        {
            told.has_new_segment.insert(dir.to_owned());
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.told.lock().files.remove(path);
        self.disk.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        let names = self.disk.open_dir(dir)?;
        Ok(Box::new(LyingDir { names, dir: dir.to_owned(), disk: self.clone() }))
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.available_bytes(dir)
    }
}

struct LyingDir {
    names: Box<dyn DiskDir>,
    dir: PathBuf,
    disk: LyingDisk,
}

impl DiskDir for LyingDir {
    fn sync(&self) -> io::Result<()> {
        let names_a_segment = self.disk.told.lock().has_new_segment.remove(&self.dir);
        match self.disk.lie {
            Some(Lie::WalSkipsDirSync) if names_a_segment => Ok(()),
            Some(Lie::StoreSkipsDirSync) if self.dir.starts_with(STORE_ROOT) => Ok(()),
            _ => self.names.sync(),
        }
    }
}

struct LyingFile {
    file: Box<dyn DiskFile>,
    lie: Lie,
    story: Arc<Mutex<Story>>,
}

impl LyingFile {
    /// Acts before a write. `false`: the write is only reported as done.
    fn before_write(&self, first: &[u8]) -> io::Result<bool> {
        let mut story = self.story.lock();
        if let Part::Spare { has_header } = &mut story.part {
            *has_header = first.starts_with(SEGMENT_MAGIC);
        }
        if std::mem::take(&mut story.owes_sync) {
            self.file.sync_data()?;
        }
        Ok(!(self.lie == Lie::WalTrustsPageCache && story.part == Part::OldSegment))
    }
}

impl DiskFile for LyingFile {
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if self.before_write(buf)? { self.file.write_all_at(buf, offset) } else { Ok(()) }
    }

    fn write_vectored_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let first = bufs.first().map_or(&[][..], |slice| slice);
        if self.before_write(first)? { self.file.write_vectored_all_at(bufs, offset) } else { Ok(()) }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut story = self.story.lock();
        match (self.lie, story.part) {
            (Lie::WalSkipsSync, Part::ActiveSegment)
            | (Lie::WalSkipsHeaderSync, Part::Spare { has_header: true })
            | (Lie::WalTrustsPageCache, Part::OldSegment)
            | (Lie::StoreSkipsFileSync, Part::Object) => Ok(()),
            (Lie::WalAnswersBeforeSync, Part::ActiveSegment) => {
                story.owes_sync = true;
                Ok(())
            }
            (Lie::WalIgnoresFailedSync, Part::ActiveSegment) => {
                drop(self.file.sync_data());
                Ok(())
            }
            _ => self.file.sync_data(),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log") && !path.starts_with(STORE_ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(lie: Lie) -> (LyingDisk, MemDisk) {
        let disk = MemDisk::new();
        (LyingDisk::new(disk.clone(), Some(lie)), disk)
    }

    /// How many bytes of a file the worst of some power cuts leaves; `None` if not even its name.
    fn worst(lie: Lie, act: impl Fn(&LyingDisk, &MemDisk)) -> Option<usize> {
        let left = |seed| {
            let (lying, disk) = disk(lie);
            act(&lying, &disk);
            disk.crash(seed);
            disk.contents(Path::new(SEGMENT)).ok().map(|bytes| bytes.len())
        };
        (0..50).map(left).min().flatten()
    }

    const SPARE: &str = "/wal/spare-0.wal";
    const SEGMENT: &str = "/wal/wal-0.log";

    /// A segment with frames, in the steps of the log.
    fn write_segment(disk: &LyingDisk, frames: u64) {
        let file = disk.open(Path::new(SPARE), OpenMode::CreateNew).unwrap();
        file.write_all_at(SEGMENT_MAGIC, 0).unwrap();
        file.sync_data().unwrap();
        disk.rename(Path::new(SPARE), Path::new(SEGMENT)).unwrap();
        disk.open_dir(Path::new("/wal")).unwrap().sync().unwrap();
        for frame in 0..frames {
            file.write_vectored_all_at(&mut [IoSlice::new(b"a frame.")], 8 + frame * 8).unwrap();
            file.sync_data().unwrap();
        }
    }

    #[test]
    fn each_lie_loses_what_it_is_about() {
        let left = |lie, frames| worst(lie, |disk, _| write_segment(disk, frames));
        assert_eq!(left(Lie::StoreSkipsDirSync, 2), Some(24), "a lie about other files");
        assert_eq!(left(Lie::WalSkipsSync, 2), Some(8));
        assert_eq!(left(Lie::WalAnswersBeforeSync, 2), Some(16), "all but the last frame");
        assert_eq!(left(Lie::WalSkipsHeaderSync, 0), Some(0));
        assert_eq!(left(Lie::WalSkipsDirSync, 2), None);
    }

    #[test]
    fn a_recovery_that_trusts_the_page_cache_leaves_the_last_frame_to_it() {
        let rewritten = |lie| {
            worst(lie, |lying, disk| {
                disk.open(Path::new(SEGMENT), OpenMode::CreateNew)
                    .unwrap()
                    .write_all_at(b"a frame.", 0)
                    .unwrap();
                disk.sync_dir(Path::new("/wal")).unwrap();
                disk.kill_process();
                let file = lying.open(Path::new(SEGMENT), OpenMode::Existing).unwrap();
                file.write_all_at(b"a frame.", 0).unwrap();
                file.sync_data().unwrap();
            })
        };
        assert_eq!(rewritten(Lie::WalTrustsPageCache), Some(0));
        assert_eq!(rewritten(Lie::WalSkipsSync), Some(8), "a lie about frames that are written, not read");
    }

    #[test]
    fn objects_lose_what_was_not_synced() {
        let object = Path::new("/store/t/1");
        for lie in [Lie::StoreSkipsFileSync, Lie::StoreSkipsDirSync, Lie::WalSkipsSync] {
            let is_whole = |seed| {
                let (lying, disk) = disk(lie);
                let file = lying.open(Path::new("/store/t/1#0"), OpenMode::CreateNew).unwrap();
                file.write_all_at(b"rows", 0).unwrap();
                file.sync_data().unwrap();
                lying.rename(Path::new("/store/t/1#0"), object).unwrap();
                lying.sync_dir(Path::new("/store/t")).unwrap();
                disk.crash(seed);
                disk.contents(object).is_ok_and(|bytes| bytes == b"rows")
            };
            assert_eq!((0..50).all(is_whole), lie == Lie::WalSkipsSync, "{lie:?}");
        }
    }

    #[test]
    fn a_failed_sync_is_hidden_by_the_lie_about_it_alone() {
        for (lie, is_hidden) in [(Lie::WalIgnoresFailedSync, true), (Lie::WalSkipsHeaderSync, false)] {
            let (lying, disk) = disk(lie);
            let file = lying.open(Path::new("/wal/spare-0.wal"), OpenMode::CreateNew).unwrap();
            lying.rename(Path::new("/wal/spare-0.wal"), Path::new("/wal/wal-0.log")).unwrap();
            disk.fail_next_sync();
            assert_eq!(file.sync_data().is_ok(), is_hidden);
        }
    }
}
