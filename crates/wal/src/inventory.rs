//! The inactive files: closed segments that wait for their release, and spare files for new segments.
//!
//! Shared by the writer, which takes spare files and hands over closed segments, and by the keeper, which
//! prepares spare files ahead and recycles released segments.
//!
//! Invariant: segments are released in order, oldest first, each durably before the next, so that a crash never leaves a gap. Not
//! its business: the contents of segments, and when to release them.

use crate::disk::{Disk, DiskDir, DiskFile, OpenMode};
use crate::error::{WalError, is_no_space};
use crate::options::{SegmentHook, WalOptions};
use crate::segment::closed::ClosedSegment;
use crate::segment::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name, spare_name};
use crate::segment::writer::SegmentWriter;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{Lsn, host};

/// Zeros are made durable in steps of this many bytes, so that the writer's syncs between them stay short.
const FILL_STEP_BYTES: u64 = 8 << 20;

/// A file that can become a segment.
pub(crate) struct Spare {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) path: PathBuf,
    pub(crate) file_bytes: u64,
}

/// The inactive files of a log's directory.
pub(crate) struct Inventory {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The directory itself, kept open so that its names can always be synced.
    names: Box<dyn DiskDir>,
    segment_bytes: u64,
    max_spares: usize,
    reserve_bytes: u64,
    on_segment_closed: Option<SegmentHook>,
    files: Ranked<Files>,
}

#[derive(Default)]
struct Files {
    closed: VecDeque<ClosedSegment>,
    spares: Vec<Spare>,
    next_spare: u64,
    /// Closed segments up to here were announced, where there is somebody to announce them to.
    announced: Lsn,
}

/// The inventory's contents in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) closed: usize,
    pub(crate) closed_bytes: u64,
    pub(crate) spares: usize,
    pub(crate) spare_bytes: u64,
    /// The first LSN of the oldest closed segment.
    pub(crate) oldest: Option<Lsn>,
}

impl Inventory {
    /// # Errors
    /// [`WalError::Io`] if the directory cannot be opened.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: PathBuf, options: &WalOptions) -> Result<Self, WalError> {
        let names = disk.open_dir(&dir).map_err(|error| WalError::io("open the directory", &dir, error))?;
        Ok(Self {
            disk,
            dir,
            names,
            segment_bytes: options.segment_bytes,
            max_spares: options.max_spare_segments,
            reserve_bytes: options.reserve_bytes,
            on_segment_closed: options.on_segment_closed.clone(),
            files: Ranked::new(Rank::LogInventory, Files::default()),
        })
    }

    pub(crate) fn holdings(&self) -> Holdings {
        let files = self.files.lock();
        Holdings {
            closed: files.closed.len(),
            closed_bytes: files.closed.iter().map(|segment| segment.file_bytes).sum(),
            spares: files.spares.len(),
            spare_bytes: files.spares.iter().map(|spare| spare.file_bytes).sum(),
            oldest: files.closed.front().map(|segment| segment.first),
        }
    }

    pub(crate) fn has_spare(&self) -> bool {
        !self.files.lock().spares.is_empty()
    }

    /// Whether a release up to `lsn` would free a segment.
    pub(crate) fn can_recycle(&self, lsn: Lsn) -> bool {
        self.files.lock().closed.front().is_some_and(|oldest| oldest.end <= lsn)
    }

    /// The closed segments that hold anything at or above `lsn`, oldest first.
    pub(crate) fn closed_beyond(&self, lsn: Lsn) -> Vec<ClosedSegment> {
        self.files.lock().closed.iter().filter(|segment| segment.end > lsn).cloned().collect()
    }

    /// Takes over a closed segment. Segments arrive in order.
    pub(crate) fn add_closed(&self, segment: ClosedSegment) {
        let mut files = self.files.lock();
        assert!(
            files.closed.back().is_none_or(|last| last.end == segment.first) && segment.first < segment.end,
            "closed segments join without a gap"
        );
        files.closed.push_back(segment);
    }

    /// Whether there is a hook for closed segments.
    pub(crate) fn announces(&self) -> bool {
        self.on_segment_closed.is_some()
    }

    /// Announces the closed segments that were not announced yet, oldest first. Holds no lock meanwhile. Only the recycling
    /// thread may call this, so that a segment stays as it is until the hook has returned.
    pub(crate) fn announce(&self) {
        let Some(hook) = &self.on_segment_closed else { return };
        while let Some(segment) = self.next_unannounced() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(&segment))) {
                if host::is_simulated() {
                    // There a panic is a finding.
                    resume_unwind(panic);
                }
                tracing::error!(file = %segment.path.display(), "the notice of a closed segment of the write-ahead log panicked");
            }
            self.files.lock().announced = segment.end;
        }
    }

    fn next_unannounced(&self) -> Option<ClosedSegment> {
        let files = self.files.lock();
        files.closed.iter().find(|segment| segment.end > files.announced).cloned()
    }

    /// Takes over a spare file that an earlier process left, or removes it if it is not fit for use.
    pub(crate) fn adopt_spare(&self, name: &str, number: u64, file_bytes: u64) {
        let path = self.dir.join(name);
        let mut files = self.files.lock();
        let wanted = files.spares.len() < self.max_spares.max(1) && self.wants_for_reuse(file_bytes);
        files.next_spare = files.next_spare.max(number + 1);
        match self.disk.open(&path, OpenMode::Existing) {
            Ok(file) if wanted => files.spares.push(Spare { file, path, file_bytes }),
            _ => drop_file(&*self.disk, &path),
        }
    }

    /// Prepares a spare file of zeros. Its name is not durable yet.
    ///
    /// # Errors
    /// [`WalError::NoSpace`] or [`WalError::Io`]. Either way the directory is as it was.
    pub(crate) fn prepare_spare(&self) -> Result<(), WalError> {
        self.check_space(self.segment_bytes)?;
        let (file, path) = self.create_spare_file()?;
        if let Err(error) = fill_with_zeros(&*file, self.segment_bytes) {
            drop_file(&*self.disk, &path);
            return Err(self.space_or_io("zero-fill", &path, self.segment_bytes, error));
        }
        self.files.lock().spares.push(Spare { file, path, file_bytes: self.segment_bytes });
        Ok(())
    }

    /// Provides a file for a segment whose first frame has that length. If there is no spare file, a new one is created that
    /// grows as it is written, rather than waiting for zeros.
    ///
    /// # Errors
    /// [`WalError::NoSpace`], or [`WalError::Io`] if no file can be created. Nothing has changed.
    pub(crate) fn take_spare(&self, frame_bytes: u64) -> Result<Spare, WalError> {
        if let Some(spare) = self.files.lock().spares.pop() {
            return Ok(spare);
        }
        self.check_space((SEGMENT_HEADER_BYTES + frame_bytes).max(self.segment_bytes))?;
        let (file, path) = self.create_spare_file()?;
        Ok(Spare { file, path, file_bytes: 0 })
    }

    /// Makes a segment of the file: on return its header and name are durable.
    ///
    /// # Errors
    /// [`WalError::NoSpace`] if nothing has changed; [`WalError::Io`] if it is unknown whether the segment's name is
    /// durable: the log must stop.
    pub(crate) fn begin_segment(
        &self,
        spare: Spare,
        header: SegmentHeader,
        frame_bytes: u64,
    ) -> Result<SegmentWriter, WalError> {
        let needed = SEGMENT_HEADER_BYTES + frame_bytes;
        let written = spare.file.write_all_at(&header.encode(), 0).and_then(|()| spare.file.sync_data());
        if let Err(error) = written {
            drop_file(&*self.disk, &spare.path);
            return Err(self.space_or_io("write the header of", &spare.path, needed, error));
        }
        let path = self.dir.join(segment_name(header.first));
        self.disk.rename(&spare.path, &path).map_err(|error| WalError::io("rename to", &path, error))?;
        self.sync_dir()?;
        Ok(SegmentWriter::new(spare.file, path, header, spare.file_bytes))
    }

    /// Recycles the closed segments that end at or before `lsn`, from the oldest on, if they were announced. A segment
    /// that cannot be renamed or removed stays for the next call.
    ///
    /// # Errors
    /// [`WalError::Io`] if the directory cannot be synced: its contents are unknown, and the log must stop.
    pub(crate) fn recycle(&self, lsn: Lsn) -> Result<(), WalError> {
        let lsn = if self.announces() { lsn.min(self.files.lock().announced) } else { lsn };
        while let Some((segment, reuse_as)) = self.next_released(lsn) {
            let path = segment.path.clone();
            let gone = match &reuse_as {
                Some(spare) => self.disk.rename(&path, spare),
                None => self.disk.remove(&path),
            };
            if let Err(error) = gone
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(file = %path.display(), %error, "cannot recycle a released segment; will retry");
                self.files.lock().closed.push_front(segment);
                return Ok(());
            }
            self.sync_dir()?;
            if let Some(path) = reuse_as {
                self.add_spare(path, segment.file_bytes);
            }
        }
        Ok(())
    }

    /// Checks that there is space for a file to grow by `growth_bytes`.
    ///
    /// # Errors
    /// [`WalError::NoSpace`] if there is not.
    pub(crate) fn check_space(&self, growth_bytes: u64) -> Result<(), WalError> {
        if growth_bytes == 0 {
            return Ok(());
        }
        let needed = growth_bytes.saturating_add(self.reserve_bytes);
        match self.disk.available_bytes(&self.dir) {
            Ok(available) if available < needed => {
                Err(WalError::NoSpace { dir: self.dir.clone(), needed, available })
            }
            // If the operating system cannot say, the write will find out.
            _ => Ok(()),
        }
    }

    /// The disk's free bytes, if the operating system knows them.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        self.disk.available_bytes(&self.dir).ok()
    }

    /// Turns an error into [`WalError::NoSpace`] if it means that, otherwise into [`WalError::Io`].
    pub(crate) fn space_or_io(
        &self,
        action: &'static str,
        path: &Path,
        needed: u64,
        error: io::Error,
    ) -> WalError {
        if !is_no_space(&error) {
            return WalError::io(action, path, error);
        }
        let available = self.disk.available_bytes(&self.dir).unwrap_or(0);
        WalError::NoSpace { dir: self.dir.clone(), needed, available }
    }

    fn create_spare_file(&self) -> Result<(Box<dyn DiskFile>, PathBuf), WalError> {
        let path = self.new_spare_path(&mut self.files.lock());
        match self.disk.open(&path, OpenMode::CreateNew) {
            Ok(file) => Ok((file, path)),
            Err(error) => Err(self.space_or_io("create", &path, self.segment_bytes, error)),
        }
    }

    fn new_spare_path(&self, files: &mut Files) -> PathBuf {
        let path = self.dir.join(spare_name(files.next_spare));
        files.next_spare += 1;
        path
    }

    /// Removes the oldest segment from the list if it is released, and returns it with the path of the spare file it will become.
    fn next_released(&self, lsn: Lsn) -> Option<(ClosedSegment, Option<PathBuf>)> {
        let mut files = self.files.lock();
        let segment = files.closed.pop_front_if(|oldest| oldest.end <= lsn)?;
        let reuse = files.spares.len() < self.max_spares && self.wants_for_reuse(segment.file_bytes);
        let reuse_as = reuse.then(|| self.new_spare_path(&mut files));
        Some((segment, reuse_as))
    }

    fn add_spare(&self, path: PathBuf, file_bytes: u64) {
        match self.disk.open(&path, OpenMode::Existing) {
            Ok(file) => self.files.lock().spares.push(Spare { file, path, file_bytes }),
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "cannot open a recycled segment; it is removed");
                drop_file(&*self.disk, &path);
            }
        }
    }

    /// Whether the file has about the length of a segment: others are not worth keeping.
    fn wants_for_reuse(&self, file_bytes: u64) -> bool {
        (self.segment_bytes / 2..=self.segment_bytes.saturating_mul(2)).contains(&file_bytes)
    }

    fn sync_dir(&self) -> Result<(), WalError> {
        self.names.sync().map_err(|error| WalError::io("sync the directory", &self.dir, error))
    }
}

fn fill_with_zeros(file: &dyn DiskFile, bytes: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let step = (bytes - done).min(FILL_STEP_BYTES);
        file.zero_fill(done, step)?;
        file.sync_data()?;
        done += step;
    }
    Ok(())
}

/// Removes a file that nothing depends on; a failure is only logged.
fn drop_file(disk: &dyn Disk, path: &Path) {
    if let Err(error) = disk.remove(path) {
        tracing::warn!(file = %path.display(), %error, "cannot remove an unused file of the write-ahead log");
    }
}
