//! The answers of a connection on their way to the client.
//!
//! Packets are gathered in one buffer and leave in as few writes as possible: when it has grown to
//! [`FLUSH_BYTES`], when no further command waits in the reader's buffer, or when a statement has
//! to wait while earlier answers are still here.
//!
//! Compressed answers are compressed when they leave; those to different commands never share a
//! compressed packet, since each has sequence numbers of its own.
//!
//! Invariants: packets leave in the order in which they were added; an unfinished packet never leaves. The packet that ends a
//! result is held until it is known whether another result follows, since its status bits say so.

use super::deflate::Deflater;
use super::stream::WriteHalf;
use super::{CHUNK_MAX, HEADER_BYTES, put};
use mysql_common::constants::StatusFlags;
use parking_lot::Mutex;
use std::io;
use std::time::Duration;
use tributary_types::SqlError;

/// An answer is sent on when this many bytes have gathered.
pub(crate) const FLUSH_BYTES: usize = 64 * 1024;
/// How long the end of a stream may take to be sent.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// A buffer larger than this is given back when it has been sent.
const RETAINED_BYTES: usize = 4 * FLUSH_BYTES;

/// The write side of a connection. One task uses it; the lock exists because a running statement holds a reference to it while
/// the connection sends earlier answers.
#[derive(Debug)]
pub(crate) struct Out {
    io: WriteHalf,
    /// How long a client may refuse to take bytes before it is given up.
    write_timeout: Duration,
    pending: Mutex<Pending>,
}

/// Packets that have not been sent yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) buffer: Vec<u8>,
    /// The next packet's sequence number.
    sequence: u8,
    /// Offset of the header of the packet being written.
    open: Option<usize>,
    terminator: Option<Terminator>,
    /// Boxed: few connections are compressed.
    compressed: Option<Box<Compressed>>,
    /// Bytes are being written. If it is still set when a later write begins, that write was dropped halfway, and the connection
    /// is unusable.
    writing: bool,
    broken: bool,
}

/// Replaces [`Pending::buffer`] if the client requested compression.
#[derive(Debug)]
struct Compressed {
    deflater: Deflater,
    /// Bytes as they are sent.
    wire: Vec<u8>,
}

/// The packet that ends the latest result.
#[derive(Clone, Copy, Debug)]
struct Terminator {
    packet: usize,
    status: usize,
}

impl Pending {
    /// Writes one packet: `write` appends the payload.
    pub(crate) fn packet<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.begin_packet();
        let value = write(&mut self.buffer);
        self.end_packet();
        value
    }

    /// Writes the packet that ends a result; `write` returns the offset of the status bits.
    pub(crate) fn terminator(&mut self, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        let packet = self.buffer.len();
        let status = self.packet(write);
        self.terminator = Some(Terminator { packet, status });
    }

    pub(crate) fn begin_packet(&mut self) {
        self.open = Some(self.buffer.len());
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
    }

    pub(crate) fn end_packet(&mut self) {
        let Some(start) = self.open.take() else { return };
        let length = self.buffer.len() - start - HEADER_BYTES;
        if length < CHUNK_MAX {
            self.write_header(start, length);
        } else {
            let payload = self.buffer.split_off(start + HEADER_BYTES);
            self.buffer.truncate(start);
            self.sequence = frame_into(&mut self.buffer, &payload, self.sequence);
        }
    }

    fn write_header(&mut self, at: usize, length: usize) {
        let length = (length as u32).to_le_bytes();
        self.buffer[at..at + HEADER_BYTES].copy_from_slice(&[length[0], length[1], length[2], self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Another result follows the one that ended last.
    pub(crate) fn announce_more(&mut self) {
        if let Some(terminator) = self.terminator.take() {
            self.buffer[terminator.status] |= StatusFlags::SERVER_MORE_RESULTS_EXISTS.bits() as u8;
        }
    }

    /// No result follows: the last one gets the session's status bits.
    pub(crate) fn settle(&mut self, status: StatusFlags) {
        if let Some(terminator) = self.terminator.take() {
            let bytes = status.bits().to_le_bytes();
            self.buffer[terminator.status..terminator.status + 2].copy_from_slice(&bytes);
        }
    }

    /// Writes an error packet, in place of a packet that was begun.
    pub(crate) fn error(&mut self, error: &SqlError, with_sqlstate: bool) {
        if let Some(start) = self.open.take() {
            self.buffer.truncate(start);
        }
        self.announce_more();
        self.packet(|out| {
            out.push(0xff);
            put::u16(out, error.code.number());
            if with_sqlstate {
                out.push(b'#');
                out.extend_from_slice(error.code.sqlstate().as_bytes());
            }
            out.extend_from_slice(error.message.as_bytes());
        });
    }

    /// Bytes that may leave now.
    fn ready(&self) -> usize {
        self.terminator.map_or(self.buffer.len(), |terminator| terminator.packet)
    }

    /// Compresses the packets that may leave, if the client requested it.
    fn compress_ready(&mut self) {
        let ready = self.ready();
        let Some(Compressed { deflater, wire }) = self.compressed.as_deref_mut() else { return };
        deflater.deflate(&self.buffer[..ready], wire);
        self.buffer.drain(..ready);
        self.sent(ready);
    }

    /// Bytes that wait to be sent.
    fn waiting_bytes(&self) -> usize {
        self.buffer.len() + self.compressed.as_ref().map_or(0, |compressed| compressed.wire.len())
    }

    /// Takes the bytes that may leave, as they are sent.
    fn take_ready(&mut self) -> Vec<u8> {
        self.compress_ready();
        if self.leaving().is_empty() {
            return Vec::new();
        }
        if let Some(compressed) = &mut self.compressed {
            return std::mem::take(&mut compressed.wire);
        }
        let ready = self.ready();
        let rest = if ready == self.buffer.len() { Vec::new() } else { self.buffer.split_off(ready) };
        self.sent(ready);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The bytes that may leave, as they are sent; with compression after [`Pending::compress_ready`].
    fn leaving(&self) -> &[u8] {
        match &self.compressed {
            Some(compressed) => &compressed.wire,
            None => &self.buffer[..self.ready()],
        }
    }

    /// The first `count` of [`Pending::leaving`] were sent.
    fn remove(&mut self, count: usize) {
        match &mut self.compressed {
            Some(compressed) => drop(compressed.wire.drain(..count)),
            None => {
                self.buffer.drain(..count);
                self.sent(count);
            }
        }
    }

    /// Gives a buffer back whose bytes were sent.
    fn reuse(&mut self, mut chunk: Vec<u8>) {
        let empty = match &mut self.compressed {
            Some(compressed) => &mut compressed.wire,
            None => &mut self.buffer,
        };
        if empty.is_empty() && chunk.capacity() <= RETAINED_BYTES {
            chunk.clear();
            *empty = chunk;
        }
    }

    /// `count` bytes have left the buffer's beginning.
    fn sent(&mut self, count: usize) {
        if let Some(terminator) = &mut self.terminator {
            terminator.packet -= count;
            terminator.status -= count;
        }
    }

    fn fail(&mut self) -> io::Error {
        self.broken = true;
        io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write to the client failed or was dropped")
    }
}

impl Out {
    pub(crate) fn new(io: WriteHalf, write_timeout: Duration) -> Self {
        Self { io, write_timeout, pending: Mutex::new(Pending::default()) }
    }

    /// Runs `write` on the packets to be sent.
    pub(crate) fn with<T>(&self, write: impl FnOnce(&mut Pending) -> T) -> T {
        write(&mut self.pending.lock())
    }

    /// Begins the answer to a packet with sequence number `request`; `compressed` is the number of the compressed packet that
    /// contained it, if any.
    pub(crate) fn answer_to(&self, request: u8, compressed: u8) {
        let mut pending = self.pending.lock();
        pending.terminator = None;
        pending.compress_ready();
        pending.sequence = request.wrapping_add(1);
        if let Some(out) = &mut pending.compressed {
            out.deflater.set_sequence(compressed.wrapping_add(1));
        }
    }

    /// Compresses all further packets, but not those already queued.
    pub(crate) fn begin_deflating(&self) {
        let mut pending = self.pending.lock();
        let wire = std::mem::take(&mut pending.buffer);
        pending.compressed = Some(Box::new(Compressed { deflater: Deflater::new(), wire }));
    }

    /// The sequence number of the next compressed packet; 0 without compression.
    pub(crate) fn compressed_sequence(&self) -> u8 {
        self.pending.lock().compressed.as_ref().map_or(0, |compressed| compressed.deflater.sequence())
    }

    /// The sequence number of the next packet, in either direction.
    pub(crate) fn next_sequence(&self) -> u8 {
        self.pending.lock().sequence
    }

    /// The client cannot be reached any more.
    pub(crate) fn is_broken(&self) -> bool {
        let pending = self.pending.lock();
        pending.broken || pending.writing
    }

    /// Bytes that wait to be sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.pending.lock().waiting_bytes()
    }

    /// Sends all that may leave; on return the operating system has it. Waits as long as the client
    /// is slow to take it: this is the back-pressure of large results.
    ///
    /// # Errors
    /// The client has left, or has read nothing for the write timeout.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        let Some(chunk) = self.take_ready()? else { return self.flush_io().await };
        let result = self.write_all(&chunk).await;
        let mut pending = self.pending.lock();
        pending.writing = false;
        pending.broken |= result.is_err();
        pending.reuse(chunk);
        result
    }

    fn take_ready(&self) -> io::Result<Option<Vec<u8>>> {
        let mut pending = self.pending.lock();
        if pending.broken || pending.writing {
            return Err(pending.fail());
        }
        let chunk = pending.take_ready();
        if chunk.is_empty() {
            return Ok(None);
        }
        pending.writing = true;
        Ok(Some(chunk))
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.io.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(self.write_timeout, self.io.writable()).await??;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.flush_io().await
    }

    async fn flush_io(&self) -> io::Result<()> {
        if self.io.keeps_bytes() {
            return tokio::time::timeout(self.write_timeout, self.io.flush()).await?;
        }
        Ok(())
    }

    /// Ends the server's half of the stream, where it has a word for that.
    pub(crate) async fn shutdown(&self) {
        // The client may have gone already.
        let _ = tokio::time::timeout(SHUTDOWN, self.io.shutdown()).await;
    }

    /// How long a client may take no bytes.
    pub(crate) const fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    /// The stream, before anything waits to be sent.
    pub(crate) fn into_io(self) -> WriteHalf {
        self.io
    }

    /// Sends as much as the operating system accepts without waiting.
    pub(crate) fn flush_some(&self) {
        let mut pending = self.pending.lock();
        if pending.broken || pending.writing {
            return;
        }
        pending.compress_ready();
        let mut broken = false;
        let mut count = 0;
        let leaving = pending.leaving();
        while count < leaving.len() {
            match self.io.try_write(&leaving[count..]) {
                Ok(0) => break,
                Ok(written) => count += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        pending.broken |= broken;
        pending.remove(count);
    }
}

/// Appends `payload` as packets, the first with sequence number `sequence`; returns the next one.
fn frame_into(out: &mut Vec<u8>, payload: &[u8], mut sequence: u8) -> u8 {
    let mut rest = payload;
    loop {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK_MAX));
        let length = (chunk.len() as u32).to_le_bytes();
        out.extend_from_slice(&[length[0], length[1], length[2], sequence]);
        out.extend_from_slice(chunk);
        sequence = sequence.wrapping_add(1);
        if chunk.len() < CHUNK_MAX {
            return sequence;
        }
        rest = after;
    }
}

/// `payload` as packets, as a client sends it.
#[cfg(test)]
pub(crate) fn frame(payload: &[u8], sequence: u8) -> Vec<u8> {
    let mut out = Vec::new();
    frame_into(&mut out, payload, sequence);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::ErrorCode;

    #[test]
    fn a_packet_of_exactly_a_chunk_is_followed_by_an_empty_one() {
        let mut pending = Pending::default();
        pending.packet(|out| out.resize(out.len() + CHUNK_MAX, 1));
        assert_eq!(pending.buffer.len(), CHUNK_MAX + 2 * HEADER_BYTES);
        assert_eq!(pending.buffer[..4], [0xff, 0xff, 0xff, 0]);
        assert_eq!(pending.buffer[CHUNK_MAX + 4..], [0, 0, 0, 1]);
        assert_eq!(pending.sequence, 2);
    }

    #[test]
    fn an_error_takes_the_place_of_a_packet_that_was_begun() {
        let mut pending = Pending::default();
        pending.packet(|out| out.push(1));
        pending.begin_packet();
        pending.buffer.extend_from_slice(b"half a row");
        pending.error(&SqlError::new(ErrorCode::Unknown, "no"), true);
        assert_eq!(pending.buffer, b"\x01\0\0\0\x01\x0b\0\0\x01\xff\x51\x04#HY000no");
    }

    #[test]
    fn the_end_of_a_result_is_held_until_its_status_is_known() {
        let mut pending = Pending::default();
        let end = |out: &mut Vec<u8>| {
            out.extend_from_slice(&[0xfe, 0, 0]);
            out.extend_from_slice(&[2, 0]);
            out.len() - 2
        };
        pending.packet(|out| out.push(9));
        pending.terminator(end);
        assert_eq!(pending.ready(), 5);
        pending.announce_more();
        pending.terminator(end);
        pending.settle(StatusFlags::SERVER_STATUS_IN_TRANS);
        assert_eq!(pending.ready(), pending.buffer.len());
        assert_eq!(pending.buffer[12..14], [2 | 8, 0]);
        assert_eq!(pending.buffer[21..23], [1, 0]);
    }
}
