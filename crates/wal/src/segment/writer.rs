//! Appends frames to one segment file.

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::disk::DiskFile;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use tributary_types::Lsn;

/// The active segment. Its header and its name are durable.
pub(crate) struct SegmentWriter {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    header: SegmentHeader,
    end: Lsn,
    file_bytes: u64,
}

impl SegmentWriter {
    pub(crate) fn new(
        file: Box<dyn DiskFile>,
        path: PathBuf,
        header: SegmentHeader,
        file_bytes: u64,
    ) -> Self {
        Self { file, path, header, end: header.first, file_bytes }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn first(&self) -> Lsn {
        self.header.first
    }

    pub(crate) fn salt(&self) -> u64 {
        self.header.salt
    }

    /// Where the next frame begins.
    pub(crate) fn end(&self) -> Lsn {
        self.end
    }

    /// The file's length, or the length it will have.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The bytes in use, header included.
    pub(crate) fn used_bytes(&self) -> u64 {
        SEGMENT_HEADER_BYTES + (self.end.0 - self.header.first.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.header.first
    }

    /// How many bytes longer a frame of that length makes the file.
    pub(crate) fn growth_bytes(&self, frame_bytes: u64) -> u64 {
        (self.used_bytes() + frame_bytes).saturating_sub(self.file_bytes)
    }

    /// Writes a frame after the last one. Until [`SegmentWriter::sync`] has returned `Ok` it does not count, and the next
    /// frame is written in its place.
    pub(crate) fn write(&self, frame: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.file.write_vectored_all_at(frame, self.used_bytes())
    }

    /// Makes the frame just written durable.
    pub(crate) fn sync(&mut self, frame_bytes: u64) -> io::Result<()> {
        self.file.sync_data()?;
        self.end.0 += frame_bytes;
        self.file_bytes = self.file_bytes.max(self.used_bytes());
        Ok(())
    }
}
