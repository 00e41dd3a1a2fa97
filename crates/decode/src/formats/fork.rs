//! Decoders of later lines of a body, so that several may decode it at the same time as it arrives.
//!
//! Not here: the division of the body into runs of lines, and threads.

use crate::blocks::builder::BlockBuilder;
use crate::formats::body::BodyDecoder;
use crate::formats::csv::LINE_BYTES_MAX;
use memchr::memrchr;
use tributary_types::SqlError;

/// The rest of a body whose rows are lines that can be decoded in any order.
pub struct LineFork {
    /// Ends a line, and is in no line.
    delimiter: u8,
    /// The beginning of the next line, which no decoder has.
    pub rest: Vec<u8>,
    decoder: Box<Make>,
}

/// Makes a decoder with a builder, after a number of rejected rows.
type Make = dyn Fn(BlockBuilder, usize) -> Result<Box<dyn BodyDecoder>, SqlError> + Send + Sync;

impl LineFork {
    pub(crate) fn new<D: BodyDecoder + 'static>(
        delimiter: u8,
        rest: Vec<u8>,
        decoder: impl Fn(BlockBuilder, usize) -> Result<D, SqlError> + Send + Sync + 'static,
    ) -> Self {
        let decoder =
            move |builder, rejects| Ok(Box::new(decoder(builder, rejects)?) as Box<dyn BodyDecoder>);
        Self { delimiter, rest, decoder: Box::new(decoder) }
    }

    /// The bytes of `chunk` up to the end of its last line; `None` if it ends no line.
    #[must_use]
    pub fn whole_lines(&self, chunk: &[u8]) -> Option<usize> {
        memrchr(self.delimiter, chunk).map(|at| at + 1)
    }

    /// Whether a decoder refuses a line that begins with this number of bytes, wherever it ends.
    #[must_use]
    pub const fn is_too_long(bytes: usize) -> bool {
        bytes > LINE_BYTES_MAX
    }

    /// A decoder of whole lines behind the lines that had been decoded when the body was forked. `builder` may be any builder;
    /// `rejects_before` rejected rows of the body are kept already.
    ///
    /// # Errors
    /// As those of the forked decoder's constructor.
    pub fn decoder(
        &self,
        builder: BlockBuilder,
        rejects_before: usize,
    ) -> Result<Box<dyn BodyDecoder>, SqlError> {
        (self.decoder)(builder, rejects_before)
    }
}
