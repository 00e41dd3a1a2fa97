//! Lines in files of a limited size and number.
//!
//! `NAME` is written; `NAME.1` was written before it, and so on. Lines are written in one piece: what a failed write leaves of one is cut
//! off before the next.
//!
//! Not here: the contents of lines.

use rustix::fs::FallocateFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Disk space that is allocated at a time.
const RESERVED_BYTES: u64 = 64 << 20;

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

/// The files of one name in a directory.
#[derive(Debug)]
pub struct LineFiles {
    directory: PathBuf,
    name: &'static str,
    bytes_max: u64,
    count: u64,
    current: Option<Current>,
}

/// The file that is written.
#[derive(Debug)]
struct Current {
    file: File,
    bytes: u64,
    /// Bytes of it for which there is space.
    reserved: u64,
}

impl Current {
    /// Allocates disk space ahead of the lines. A file system that allocates it for each write does so together with what else waits
    /// for the disk, and syncs of the write-ahead log wait for that, too.
    fn reserve(&mut self, bytes_max: u64) {
        if self.bytes >= self.reserved && self.reserved < bytes_max {
            let more = RESERVED_BYTES.min(bytes_max - self.reserved);
            if let Err(error) =
                rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.reserved, more)
            {
                tracing::debug!(%error, "a file of lines grows as it is written");
            }
            self.reserved += more;
        }
    }
}

impl LineFiles {
    /// At most `count` files of at most `bytes_max` bytes each, but for longer lines.
    #[must_use]
    pub const fn new(directory: PathBuf, name: &'static str, bytes_max: u64, count: u64) -> Self {
        Self { directory, name, bytes_max, count, current: None }
    }

    /// Makes the directory if necessary, and checks that the file can be written.
    ///
    /// # Errors
    /// It can't.
    pub fn check(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        open(&self.directory.join(self.name)).map(drop)
    }

    /// Writes whole lines, and shortens `lines` by the written ones.
    ///
    /// # Errors
    /// The lines that are left are not in the file, and may be written again.
    pub fn write(&mut self, lines: &mut &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            let current = match &mut self.current {
                Some(current) => current,
                None => self.current.insert(opened(&self.directory.join(self.name))?),
            };
            let fitting = fitting(lines, self.bytes_max.saturating_sub(current.bytes));
            if fitting == 0 && current.bytes > 0 {
                self.rotate()?;
                continue;
            }
            current.reserve(self.bytes_max);
            let (now, later) = lines.split_at(fitting.max(first_line(lines)));
            if let Err(error) = current.file.write_all(now) {
                let cut = current.file.set_len(current.bytes);
                // It is opened again, and begins with a line of its own.
                self.current = None;
                return Err(cut.err().unwrap_or(error));
            }
            current.bytes += now.len() as u64;
            *lines = later;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.current = None;
        let path = |number: u64| match number {
            0 => self.directory.join(self.name),
            _ => self.directory.join(format!("{}.{number}", self.name)),
        };
        if self.count == 1 {
            return fs::remove_file(path(0));
        }
        for number in (0..self.count - 1).rev() {
            match fs::rename(path(number), path(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// How many bytes of whole lines are at most this many.
fn fitting(lines: &[u8], bytes_max: u64) -> usize {
    let max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(lines.len());
    lines[..max].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines.iter().position(|&byte| byte == b'\n').map_or(lines.len(), |end| end + 1)
}

/// The file and its length. A line that a crash cut off is ended.
fn opened(path: &Path) -> io::Result<Current> {
    let mut file = open(path)?;
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(Current { file, bytes, reserved: 0 });
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(Current { file, bytes, reserved: bytes });
    }
    file.write_all(b"\n")?;
    Ok(Current { file, bytes: bytes + 1, reserved: bytes + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "audit.log";

    fn files(directory: &Path, bytes_max: u64, count: u64) -> LineFiles {
        let files = LineFiles::new(directory.to_owned(), NAME, bytes_max, count);
        files.check().expect("it can be made");
        files
    }

    fn text(directory: &Path, name: &str) -> String {
        fs::read_to_string(directory.join(name)).unwrap_or_default()
    }

    #[test]
    fn files_have_a_size_and_a_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let inside = directory.path().join("new");
        let mut written = files(&inside, 10, 3);
        for lines in ["1111\n2222\n3333\n", "4444444444444444\n5555\n", "6666\n"] {
            written.write(&mut lines.as_bytes()).expect("written");
        }
        assert_eq!(text(&inside, "audit.log"), "5555\n6666\n");
        assert_eq!(text(&inside, "audit.log.1"), "4444444444444444\n");
        assert_eq!(text(&inside, "audit.log.2"), "3333\n");
        assert_eq!(fs::read_dir(&inside).expect("a directory").count(), 3);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(inside.join("audit.log")).expect("it").permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let mut alone = files(&inside, 1, 1);
        alone.write(&mut &b"7\n"[..]).expect("written");
        alone.write(&mut &b"8\n"[..]).expect("written");
        assert_eq!(text(&inside, "audit.log"), "8\n");
    }

    #[test]
    fn disk_space_is_allocated_ahead_and_is_not_part_of_the_file() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().expect("a directory");
        let mut written = files(directory.path(), 1 << 20, 2);
        written.write(&mut &b"1\n"[..]).expect("written");
        let found = fs::metadata(directory.path().join(NAME)).expect("it");
        assert_eq!(found.len(), 2);
        // Unless the file system can't.
        assert!(
            matches!(found.blocks() * 512, 0..=8192 | 0x10_0000..=0x11_0000),
            "{} blocks",
            found.blocks()
        );
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_spoil_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(NAME), "1\n{\"cut").expect("written");
        let mut written = files(directory.path(), 1000, 2);
        written.write(&mut &b"2\n"[..]).expect("written");
        assert_eq!(text(directory.path(), NAME), "1\n{\"cut\n2\n");
    }
}
