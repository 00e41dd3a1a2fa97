//! A file or standard input as a stream of unpacked bytes, which is cut into chunks at row ends.
//!
//! *Invariant:* offsets count unpacked bytes, so a chunk's place does not depend on the packing or on earlier cuts.

use crate::load::shape::{Format, Packing, Shape};
use crate::load::split;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A row that is longer than this is a sign of a wrong shape.
const ROW_BYTES_MAX: usize = 1 << 30;
const READ_BYTES: usize = 256 << 10;

/// A stream of rows.
pub(crate) struct Source {
    reader: Box<dyn Read>,
    /// The same file again, if its bytes are not packed: then places can be reached without reading.
    plain: Option<File>,
    pub packing: Packing,
    packed_read: Arc<AtomicU64>,
    /// The offset of the first pending byte.
    offset: u64,
    pending: Vec<u8>,
    is_read: bool,
    /// The array's closing bracket has been taken.
    is_closed: bool,
}

struct Counted<R>(R, Arc<AtomicU64>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Source {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let again = file.try_clone()?;
        let mut source = Self::over(file)?;
        source.plain = (source.packing == Packing::None).then_some(again);
        Ok(source)
    }

    pub fn over(reader: impl Read + 'static) -> io::Result<Self> {
        let packed_read = Arc::new(AtomicU64::new(0));
        let mut counted = Counted(reader, Arc::clone(&packed_read));
        let mut first = Vec::new();
        (&mut counted).take(4).read_to_end(&mut first)?;
        let packing = match first.as_slice() {
            [0x1f, 0x8b, ..] => Packing::Gz,
            [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zst,
            _ => Packing::None,
        };
        let whole = Cursor::new(first).chain(counted);
        let reader: Box<dyn Read> = match packing {
            Packing::None => Box::new(whole),
            Packing::Gz => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(READ_BYTES, whole))),
            Packing::Zst => {
                let mut decoder = zstd::Decoder::new(whole)?;
                decoder.window_log_max(31)?;
                Box::new(decoder)
            }
        };
        let pending = Vec::new();
        Ok(Self {
            reader,
            plain: None,
            packing,
            packed_read,
            offset: 0,
            pending,
            is_read: false,
            is_closed: false,
        })
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the file that have been read, packed as they are there. Of a plain file, those before the offset.
    pub fn source_offset(&self) -> u64 {
        match self.packing {
            Packing::None => self.offset,
            _ => self.packed_read.load(Ordering::Relaxed),
        }
    }

    /// The next bytes, without taking them.
    pub fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.pending.len() < bytes && !self.is_read {
            let start = self.pending.len();
            self.pending.resize(start + READ_BYTES.min(bytes - start).max(8 << 10), 0);
            match self.reader.read(&mut self.pending[start..]) {
                Ok(read) => {
                    self.pending.truncate(start + read);
                    self.is_read = read == 0;
                }
                Err(error) => {
                    self.pending.truncate(start);
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(&self.pending[..bytes.min(self.pending.len())])
    }

    /// Takes exactly these bytes.
    pub fn take(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        self.peek(bytes)?;
        if self.pending.len() < bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than before"));
        }
        let rest = self.pending.split_off(bytes);
        self.offset += bytes as u64;
        Ok(std::mem::replace(&mut self.pending, rest))
    }

    /// Goes on to a place of the stream.
    pub fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        let ahead =
            offset.checked_sub(self.offset).ok_or_else(|| io::Error::other("a place that has passed"))?;
        if ahead > self.pending.len() as u64
            && let Some(file) = &mut self.plain
        {
            // The reader has the same position: it is the same open file.
            file.seek(SeekFrom::Start(offset))?;
            self.reader = Box::new(file.try_clone()?);
            self.pending.clear();
            self.offset = offset;
            return Ok(());
        }
        let mut left = ahead;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(4 << 20);
            self.take(piece)?;
            left -= piece as u64;
        }
        Ok(())
    }

    /// Goes to the first row: behind a byte order mark, a line of names, an array's bracket.
    pub fn skip_head(&mut self, shape: &Shape) -> io::Result<()> {
        if self.peek(3)? == b"\xef\xbb\xbf" {
            self.take(3)?;
        }
        if shape.format == Format::JsonArray {
            while self.peek(1)?.first().is_some_and(u8::is_ascii_whitespace) {
                self.take(1)?;
            }
            if self.take(1)? != b"[" {
                return Err(io::Error::other("the file does not begin with ["));
            }
        }
        if shape.header.is_some() {
            let mut goal = READ_BYTES;
            loop {
                let bytes = self.peek(goal)?;
                let (end, length) = (split::first_row_end(shape, bytes), bytes.len());
                if let Some(end) = end {
                    self.take(end)?;
                    break;
                }
                if length < goal {
                    self.take(length)?;
                    break;
                }
                goal *= 2;
            }
        }
        Ok(())
    }

    /// Takes the next chunk: rows of about `target` bytes. `None` is the end.
    pub fn next(&mut self, shape: &Shape, target: usize) -> io::Result<Option<Vec<u8>>> {
        let mut goal = target;
        loop {
            self.peek(goal)?;
            let is_end = self.is_read && self.pending.len() <= goal;
            let reach = goal.min(self.pending.len());
            if self.is_closed {
                let rest = self.pending.trim_ascii();
                return match (rest.is_empty(), is_end) {
                    (false, _) => Err(io::Error::other("there is something behind the array")),
                    (true, true) => Ok(None),
                    (true, false) => {
                        self.take(reach)?;
                        continue;
                    }
                };
            }
            if self.pending.is_empty() {
                return match shape.format {
                    Format::JsonArray => Err(io::Error::other("the array does not end")),
                    _ => Ok(None),
                };
            }
            if is_end && shape.format != Format::JsonArray {
                return self.take(reach).map(Some);
            }
            if let Some(end) = split::last_row_end(shape, &self.pending[..reach]) {
                self.is_closed = shape.format == Format::JsonArray && self.pending[end - 1] == b']';
                return self.take(end).map(Some);
            }
            if is_end {
                return Err(io::Error::other("the array does not end"));
            }
            if goal >= ROW_BYTES_MAX {
                let place = self.offset;
                return Err(io::Error::other(format!(
                    "no row ends within {ROW_BYTES_MAX} bytes from offset {place}: is --enclose right?"
                )));
            }
            goal *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(shape: &Shape, text: &'static [u8], target: usize) -> io::Result<Vec<(u64, String)>> {
        let mut source = Source::over(text)?;
        source.skip_head(shape)?;
        let mut found = Vec::new();
        loop {
            let offset = source.offset();
            let Some(bytes) = source.next(shape, target)? else { return Ok(found) };
            found.push((offset, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }

    #[test]
    fn chunks_are_whole_rows_and_lose_nothing() {
        let shape = Shape { separator: ",".to_owned(), header: Some(vec![]), ..Shape::of(Format::Csv) };
        let text = b"\xef\xbb\xbfid,n\n1,a\n2,bbbbbbbbbbbbbbbb\n3,c\n4,d";
        for target in 1..40 {
            let found = chunks(&shape, text, target).expect("chunks");
            let all: String = found.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(all, "1,a\n2,bbbbbbbbbbbbbbbb\n3,c\n4,d", "{target}");
            let (last, others) = found.split_last().expect("at least one");
            assert!(others.iter().all(|(_, text)| text.ends_with('\n')), "{target}: {others:?}");
            assert_eq!(last.0 as usize + last.1.len(), text.len());
        }
    }

    #[test]
    fn an_array_is_cut_between_elements_and_must_end() {
        let shape = Shape::of(Format::JsonArray);
        for target in 1..40 {
            let found = chunks(&shape, b" [{\"a\":1}, {\"a\":2},{\"a\":3}]\n ", target).expect("chunks");
            let all: String = found.into_iter().map(|(_, text)| text).collect();
            assert_eq!(all, "{\"a\":1}, {\"a\":2},{\"a\":3}]", "{target}");
        }
        assert!(chunks(&shape, b"[{\"a\":1},", 5).is_err());
        assert!(chunks(&shape, b"[{\"a\":1}] x", 5).is_err());
    }

    #[test]
    fn a_place_is_reached_in_plain_and_packed_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let text: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let packed = zstd::encode_all(text.as_slice(), 1).expect("packed");
        for (name, bytes) in [("plain", &text), ("packed.zst", &packed)] {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            let mut source = Source::open(&path).expect("opened");
            source.peek(10).expect("read");
            source.skip_to(700_001).expect("reached");
            assert_eq!(source.take(5).expect("read"), text[700_001..700_006]);
            source.skip_to(999_990).expect("reached");
            assert_eq!(source.take(10).expect("read"), text[999_990..]);
            assert!(source.take(1).is_err());
        }
    }
}
