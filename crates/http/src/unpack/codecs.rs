//! Codecs whose libraries keep their state themselves.

use super::{Codec, Input};
use bytes::Bytes;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, ErrorKind, Read};

/// The largest window of a zstd frame, as a power of two: 8 MiB, which RFC 8878 requires of every decoder. A frame states its
/// window itself, and all of it is allocated.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

impl Codec for MultiGzDecoder<Input> {
    fn feed(&mut self, bytes: Bytes) {
        self.get_mut().feed(bytes);
    }

    fn end_input(&mut self) {
        self.get_mut().ended = true;
    }
}

impl Codec for MultiBzDecoder<Input> {
    fn feed(&mut self, bytes: Bytes) {
        self.get_mut().feed(bytes);
    }

    fn end_input(&mut self) {
        self.get_mut().ended = true;
    }
}

impl Codec for zstd::stream::read::Decoder<'static, Input> {
    fn feed(&mut self, bytes: Bytes) {
        self.get_mut().feed(bytes);
    }

    fn end_input(&mut self) {
        self.get_mut().ended = true;
    }
}

pub(super) fn gzip() -> impl Codec {
    MultiGzDecoder::new(Input::default())
}

pub(super) fn bzip2() -> impl Codec {
    MultiBzDecoder::new(Input::default())
}

pub(super) fn zstd() -> impl Codec {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(Input::default())
        .expect("a decoder without a dictionary is only an allocation");
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).expect("the limit is within zstd's bounds");
    decoder
}

/// Deflate with zlib's header and checksum. Not the library's reader, to which a stream that is cut off is one that
/// ends.
pub(super) struct Zlib {
    inflate: Decompress,
    input: Input,
    /// A stream ended and no other began.
    is_between: bool,
}

impl Zlib {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(true), input: Input::default(), is_between: true }
    }
}

impl Codec for Zlib {
    fn feed(&mut self, bytes: Bytes) {
        self.input.feed(bytes);
    }

    fn end_input(&mut self) {
        self.input.ended = true;
    }
}

impl Read for Zlib {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let available = self.input.fill_buf()?;
            let is_end = available.is_empty();
            if is_end && self.is_between {
                return Ok(0);
            }
            let (read_before, written_before) = (self.inflate.total_in(), self.inflate.total_out());
            // At the input's end output may be left in the library.
            let status = self
                .inflate
                .decompress(available, into, FlushDecompress::None)
                .map_err(|error| super::damaged(error.to_string()))?;
            let read = (self.inflate.total_in() - read_before) as usize;
            let written = (self.inflate.total_out() - written_before) as usize;
            self.input.consume(read);
            self.is_between = status == Status::StreamEnd;
            if self.is_between {
                self.inflate.reset(true);
            }
            if written > 0 {
                return Ok(written);
            }
            if is_end && !self.is_between {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
