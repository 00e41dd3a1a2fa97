//! Bytes in pages with checksums, in memory or in a file on this machine.
//!
//! For data that can be rebuilt from elsewhere: nothing is synced, and checksums reveal the changes of a crash or a disk. Reading
//! needs memory only for the pages in use; those of files stay in the system's cache.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a page including its checksum, at the end. The last page may be shorter.
const PAGE_BYTES: usize = 4096;
const CHECKSUM_BYTES: usize = 4;
const BODY_BYTES: usize = PAGE_BYTES - CHECKSUM_BYTES;

/// Bytes that do not change.
#[derive(Debug)]
pub(crate) enum Pages {
    Memory(Vec<u8>),
    File(PathBuf),
}

impl Pages {
    pub(crate) fn in_memory(bytes: &[u8]) -> Self {
        let mut pages = Vec::new();
        let written = write_pages(bytes, &mut pages);
        written.expect("there is memory for it, or the process has ended");
        Self::Memory(pages)
    }

    /// Writes the bytes to a file, which has its name when it is whole. What had the name is replaced.
    pub(crate) fn write(bytes: &[u8], path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let unfinished = path.with_added_extension("new");
        let mut file = BufWriter::with_capacity(1 << 16, File::create(&unfinished)?);
        write_pages(bytes, &mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?;
        std::fs::rename(&unfinished, path)?;
        Ok(Self::File(path.to_owned()))
    }

    /// The file of the bytes, if they are in one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::File(path) => Some(path),
        }
    }

    pub(crate) fn open(&self) -> io::Result<Source<'_>> {
        match self {
            Self::Memory(pages) => Ok(Source::Memory(pages)),
            Self::File(path) => Ok(Source::File(File::open(path)?)),
        }
    }
}

fn write_pages(bytes: &[u8], to: &mut impl Write) -> io::Result<()> {
    for (number, body) in bytes.chunks(BODY_BYTES).enumerate() {
        to.write_all(body)?;
        to.write_all(&checksum(number as u64, body))?;
    }
    Ok(())
}

/// The CRC32C of a page's number and its bytes, so that a page in another's place is found too.
fn checksum(number: u64, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), body).to_le_bytes()
}

/// [`Pages`] that are open.
pub(crate) enum Source<'a> {
    Memory(&'a [u8]),
    File(File),
}

impl Source<'_> {
    /// Reads as much as there is from `offset`.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Memory(pages) => {
                let from = pages.get(offset as usize..).unwrap_or_default();
                let count = from.len().min(into.len());
                into[..count].copy_from_slice(&from[..count]);
                Ok(count)
            }
            Self::File(file) => {
                let mut count = 0;
                while count < into.len() {
                    match file.read_at(&mut into[count..], offset + count as u64) {
                        Ok(0) => break,
                        Ok(more) => count += more,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(count)
            }
        }
    }

    /// A reader that reads `pages` pages at a time, or more if a request needs more.
    pub(crate) fn reader(&self, pages: usize) -> PageReader<'_> {
        PageReader { source: self, pages, first: 0, bytes: Vec::new(), raw: Vec::new() }
    }
}

/// Reads [`Pages`], best from the beginning to the end.
pub(crate) struct PageReader<'a> {
    source: &'a Source<'a>,
    pages: usize,
    /// The contents of the pages read last, and their offset.
    bytes: Vec<u8>,
    first: u64,
    raw: Vec<u8>,
}

impl PageReader<'_> {
    /// The bytes from `at` on.
    ///
    /// # Errors
    /// There are fewer bytes, or they are damaged.
    pub(crate) fn read(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let is_there = at >= self.first && at + count as u64 <= self.first + self.bytes.len() as u64;
        if !is_there {
            self.fill(at, count)?;
        }
        let from = (at - self.first) as usize;
        self.bytes
            .get(from..from + count)
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it is too short"))
    }

    fn fill(&mut self, at: u64, count: usize) -> io::Result<()> {
        let first = at / BODY_BYTES as u64;
        let needed = (at + count as u64).div_ceil(BODY_BYTES as u64) - first;
        self.raw.resize((needed as usize).max(self.pages) * PAGE_BYTES, 0);
        let there = self.source.read_at(&mut self.raw, first * PAGE_BYTES as u64)?;
        self.bytes.clear();
        self.first = first * BODY_BYTES as u64;
        for (number, page) in (first..).zip(self.raw[..there].chunks(PAGE_BYTES)) {
            let (body, written) = page.split_at(page.len().saturating_sub(CHECKSUM_BYTES));
            if checksum(number, body) != *written {
                let what = format!("its page {number} has another checksum");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            self.bytes.extend_from_slice(body);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: usize) -> Vec<u8> {
        (0..count).map(|byte| (byte * 7 % 251) as u8).collect()
    }

    #[test]
    fn every_range_is_read_back_from_memory_and_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        for count in [0, 1, 4080, 4092, 4093, 20_000] {
            let bytes = sample(count);
            let file = Pages::write(&bytes, &directory.path().join(count.to_string())).unwrap();
            for pages in [Pages::in_memory(&bytes), file] {
                let source = pages.open().unwrap();
                for ahead in [1, 3, 64] {
                    let mut reader = source.reader(ahead);
                    for (at, length) in
                        [(0, 1), (4091, 2), (0, count), (count / 2, 9), (count, 0), (count - count.min(5), 5)]
                    {
                        let read = reader.read(at as u64, length);
                        match bytes.get(at..at + length) {
                            Some(expected) => assert_eq!(read.unwrap(), expected, "{at} {length} of {count}"),
                            None => assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_changed_byte_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pages");
        let pages = Pages::write(&sample(10_000), &path).unwrap();
        let written = std::fs::read(&path).unwrap();
        for place in (0..written.len()).step_by(97) {
            let mut changed = written.clone();
            changed[place] ^= 4;
            std::fs::write(&path, changed).unwrap();
            let source = pages.open().unwrap();
            let error = source.reader(64).read(0, 10_000).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{place}");
        }
        std::fs::write(&path, &written[..4096]).unwrap();
        let source = pages.open().unwrap();
        assert_eq!(source.reader(1).read(0, 4092).unwrap(), &sample(10_000)[..4092]);
        assert_eq!(source.reader(1).read(4000, 1000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(!directory.path().join("pages.new").exists());
    }
}
