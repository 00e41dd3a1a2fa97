//! Arrow's IPC format: concatenated streams, and files, which are a stream between two marks.
//!
//! Messages are gathered and decoded one by one, while the body arrives. A message's claims are checked first: the library
//! allocates the size that a buffer claims to decompress to.
//!
//! Invariant: one batch is decoded at a time. It and the dictionaries of the stream are charged to the body's memory when their
//! message is admitted.

use super::memory::{BodyMemory, Charge};
use super::{damaged, guarded};
use crate::formats::host::LoadHost;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::{self, root_as_message};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tributary_types::SqlError;

const NAME: &str = "arrow";
/// The beginning of a file, padded to at least eight bytes.
const FILE_MARK: &[u8] = b"ARROW1\0\0";
/// Precedes the length of a message, since version 0.15.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The end of a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// The longest description of a message, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest message, in bytes; also the limit on the decompressed size of its buffers together.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most rows of a batch: columns of nothing but NULL take no bytes.
const BATCH_ROWS_MAX: i64 = 1 << 26;

/// The messages of a body.
pub(super) struct IpcSource {
    memory: Arc<BodyMemory>,
    state: State,
    /// The bytes from `start` on are not decoded yet.
    carry: Vec<u8>,
    start: usize,
    decoder: StreamDecoder,
    /// The memory of the stream's dictionaries, by their ids.
    dictionaries: HashMap<i64, Charge>,
    schema: Option<SchemaRef>,
    chosen: Option<Vec<usize>>,
    batches: VecDeque<RecordBatch>,
    /// The body has no more bytes.
    is_complete: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    #[default]
    Start,
    /// Behind the mark of a file, which zeros fill up.
    Padding,
    /// Within a stream or behind one. `is_file`: what follows the stream is the file's own.
    Messages { is_file: bool },
    /// The rest is not needed.
    Closed,
}

/// The next message.
enum Next {
    /// It has not arrived completely.
    Incomplete,
    /// It has this many bytes, and this claim.
    Message(usize, Claim),
    /// The end of a stream, which has this many bytes.
    End(usize),
}

/// The memory that decoding a message takes, in bytes.
#[derive(Clone, Copy, Debug)]
enum Claim {
    Nothing,
    Batch(usize),
    Dictionary { id: i64, bytes: usize, is_delta: bool },
}

impl IpcSource {
    pub(super) fn new(host: &dyn LoadHost) -> Self {
        Self {
            memory: BodyMemory::new(host),
            state: State::default(),
            carry: Vec::new(),
            start: 0,
            decoder: StreamDecoder::new(),
            dictionaries: HashMap::new(),
            schema: None,
            chosen: None,
            batches: VecDeque::new(),
            is_complete: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        if self.state == State::Closed {
            return Ok(());
        }
        self.carry.drain(..std::mem::take(&mut self.start));
        self.carry.extend_from_slice(chunk);
        self.fill()
    }

    /// Decodes messages until a batch is complete, or no whole message is left.
    fn fill(&mut self) -> Result<(), SqlError> {
        if self.state == State::Start {
            self.begin();
        }
        if self.state == State::Padding {
            self.skip_padding();
        }
        while self.batches.is_empty() {
            let State::Messages { is_file } = self.state else { return Ok(()) };
            match next(&self.carry[self.start..])? {
                Next::Incomplete => return Ok(()),
                Next::End(length) => {
                    self.start += length;
                    self.end_stream()?;
                    if is_file {
                        (self.carry, self.start) = (Vec::new(), 0);
                        self.state = State::Closed;
                    }
                }
                Next::Message(length, claim) => {
                    self.admit(claim)?;
                    let message = self.take(length);
                    self.decode(message)?;
                }
            }
        }
        Ok(())
    }

    /// Charges the memory of a message.
    fn admit(&mut self, claim: Claim) -> Result<(), SqlError> {
        let charged = match claim {
            Claim::Nothing => Ok(()),
            Claim::Batch(bytes) => {
                self.memory.begin_batch();
                self.memory.add_to_batch(bytes)
            }
            Claim::Dictionary { id, bytes, is_delta } => {
                let charge = self.dictionaries.entry(id).or_insert_with(|| Charge::none(&self.memory));
                if !is_delta {
                    // The previous one may still be referenced by a decoded batch, which is charged as a whole.
                    *charge = Charge::none(&self.memory);
                }
                charge.grow(bytes)
            }
        };
        charged.map_err(|refused| damaged(NAME, refused))
    }

    /// Takes a message off the carry: copies the smaller part.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let end = self.start + length;
        if self.start == 0 && self.carry.len() - end < length {
            let rest = self.carry.split_off(end);
            return std::mem::replace(&mut self.carry, rest);
        }
        let message = self.carry[self.start..end].to_vec();
        self.start = end;
        message
    }

    /// Determines the kind of body.
    fn begin(&mut self) {
        let known = self.carry.len().min(FILE_MARK.len());
        let is_file = self.carry[..known] == FILE_MARK[..known];
        if !is_file {
            self.state = State::Messages { is_file: false };
        } else if known == FILE_MARK.len() {
            self.carry.drain(..known);
            self.state = State::Padding;
        }
    }

    fn skip_padding(&mut self) {
        let zeros = self.carry.chunks_exact(8).take_while(|eight| **eight == [0; 8]).count() * 8;
        self.carry.drain(..zeros);
        if self.carry.len() >= 8 {
            self.state = State::Messages { is_file: true };
        }
    }

    fn decode(&mut self, message: Vec<u8>) -> Result<(), SqlError> {
        let (decoder, batches) = (&mut self.decoder, &mut self.batches);
        guarded(NAME, || {
            let mut buffer = Buffer::from_vec(message);
            while !buffer.is_empty() {
                batches.extend(decoder.decode(&mut buffer).map_err(|error| damaged(NAME, error))?);
            }
            Ok(())
        })?;
        if let Some(found) = self.decoder.schema() {
            match &self.schema {
                None => self.schema = Some(found),
                Some(schema) if schema.fields() == found.fields() => {}
                Some(_) => {
                    let what = "its streams have different columns; send them in loads of their own";
                    return Err(damaged(NAME, what));
                }
            }
        }
        Ok(())
    }

    /// Ends a stream. The decoder processes a message without a body only when the next one arrives, which is this end.
    fn end_stream(&mut self) -> Result<(), SqlError> {
        self.decode(END.to_vec())?;
        self.decoder = StreamDecoder::new();
        self.dictionaries.clear();
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        self.is_complete = true;
        self.fill()?;
        self.check_end()
    }

    /// Checks for missing parts, once all messages are decoded.
    fn check_end(&mut self) -> Result<(), SqlError> {
        if !self.is_complete || !self.batches.is_empty() {
            return Ok(());
        }
        let left = self.carry.len() - self.start;
        match self.state {
            State::Start if left == 0 => Ok(()),
            State::Messages { is_file: false } if left == 0 => self.end_stream(),
            State::Closed => Ok(()),
            State::Start | State::Padding => {
                Err(damaged(NAME, "it is neither an IPC stream nor an IPC file"))
            }
            State::Messages { .. } => {
                Err(damaged(NAME, format_args!("it ends within a message, {left} bytes of which are there")))
            }
        }
    }

    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    pub(super) fn choose(&mut self, columns: Vec<usize>) {
        self.chosen = Some(columns);
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.chosen.is_none() {
            return Ok(None);
        }
        if self.batches.is_empty() {
            self.fill()?;
            self.check_end()?;
        }
        let (Some(batch), Some(chosen)) = (self.batches.pop_front(), &self.chosen) else { return Ok(None) };
        batch.project(chosen).map(Some).map_err(|error| damaged(NAME, error))
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.carry.capacity()
    }
}

/// Examines the beginning of `bytes`.
fn next(bytes: &[u8]) -> Result<Next, SqlError> {
    let word = |at: usize| bytes.get(at..at + 4).map(|word| word.try_into().expect("four bytes"));
    let Some(first): Option<[u8; 4]> = word(0) else { return Ok(Next::Incomplete) };
    // Before 0.15 the length stood alone.
    let prefix = if first == CONTINUATION { 8 } else { 4 };
    let Some(length) = word(prefix - 4) else { return Ok(Next::Incomplete) };
    let head = u32::from_le_bytes(length) as usize;
    if head == 0 {
        return Ok(Next::End(prefix));
    }
    if head > HEAD_BYTES_MAX {
        return Err(damaged(
            NAME,
            format_args!(
                "a message's description has {head} bytes, the limit is {HEAD_BYTES_MAX}; is it Arrow IPC?"
            ),
        ));
    }
    let Some(description) = bytes.get(prefix..prefix + head) else { return Ok(Next::Incomplete) };
    let message = root_as_message(description).map_err(|error| damaged(NAME, error))?;
    let body = usize::try_from(message.bodyLength()).unwrap_or(usize::MAX);
    if body > MESSAGE_BYTES_MAX {
        return Err(damaged(
            NAME,
            format_args!(
                "a batch has {} bytes, the limit is {MESSAGE_BYTES_MAX}; write smaller batches",
                message.bodyLength()
            ),
        ));
    }
    let start = prefix + head;
    let Some(body) = bytes.get(start..start + body) else { return Ok(Next::Incomplete) };
    let claim = claim(&message, head, body)?;
    Ok(Next::Message(start + body.len(), claim))
}

/// The claim of a message. `head` is the length of its metadata, which also becomes arrays.
fn claim(message: &ipc::Message<'_>, head: usize, body: &[u8]) -> Result<Claim, SqlError> {
    if let Some(dictionary) = message.header_as_dictionary_batch() {
        let bytes = dictionary.data().map_or(Ok(0), |data| batch_bytes(&data, body))?;
        let (id, is_delta) = (dictionary.id(), dictionary.isDelta());
        return Ok(Claim::Dictionary { id, bytes: bytes.saturating_add(head), is_delta });
    }
    match message.header_as_record_batch() {
        Some(batch) => Ok(Claim::Batch(batch_bytes(&batch, body)?.saturating_add(head))),
        None => Ok(Claim::Nothing),
    }
}

/// The memory of a batch: its bytes, and the decompressed bytes of its buffers.
fn batch_bytes(batch: &ipc::RecordBatch<'_>, body: &[u8]) -> Result<usize, SqlError> {
    let nodes = batch.nodes().into_iter().flatten().map(ipc::FieldNode::length);
    if let Some(rows) = nodes.chain([batch.length()]).find(|rows| !(0..=BATCH_ROWS_MAX).contains(rows)) {
        return Err(damaged(NAME, format_args!("a batch has {rows} rows, the limit is {BATCH_ROWS_MAX}")));
    }
    let mut unpacked = 0;
    for buffer in batch.buffers().into_iter().flatten() {
        let (start, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        let bytes = start
            .ok()
            .zip(length.ok())
            .and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let bytes = bytes.ok_or_else(|| damaged(NAME, "a buffer is not within its message"))?;
        if let (Some(_), Some(claim)) = (batch.compression(), bytes.first_chunk::<8>()) {
            unpacked += usize::try_from(i64::from_le_bytes(*claim)).unwrap_or(0).min(MESSAGE_BYTES_MAX + 1);
        }
    }
    if unpacked > MESSAGE_BYTES_MAX {
        return Err(damaged(
            NAME,
            format_args!("a batch unpacks to more than {MESSAGE_BYTES_MAX} bytes; write smaller batches"),
        ));
    }
    Ok(body.len() + unpacked)
}
