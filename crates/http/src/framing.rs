//! Detects request heads that declare both a length and chunks.
//!
//! The HTTP library removes the length from such a head before anyone sees it, so the bytes are watched on
//! their way in. Only heads are looked at, a line at a time, and of a line only the name.
//!
//! As heads are seen here, their times and their bytes are limited here, too ([`Deadline`], [`HeadCharge`]).
//!
//! Invariant: [`HeadWatch::take`] is true only for a request whose own head has both headers. The head of a request
//! that was sent before the answer to the one in front of it may go unseen: then the chunks decide.

use crate::deadline::Deadline;
use crate::head_bytes::HeadCharge;
use memchr::memchr;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tributary_admission::Refusal;
use tributary_tls::Transport;

const CONTENT_LENGTH: &[u8] = b"content-length:";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding:";
/// Bytes of a line that are remembered: enough for its name.
const LINE_BYTES_MAX: usize = TRANSFER_ENCODING.len();

/// State shared by a connection's reader and its requests.
#[derive(Debug)]
pub(crate) struct HeadWatch {
    /// The next bytes are a head, not a body.
    is_head: AtomicBool,
    has_both: AtomicBool,
    pub(crate) deadline: Deadline,
}

impl HeadWatch {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self { is_head: AtomicBool::new(true), has_both: AtomicBool::new(false), deadline }
    }

    /// Returns whether the head of the request that starts now has both headers.
    pub(crate) fn take(&self) -> bool {
        self.deadline.end_head();
        self.is_head.store(false, Ordering::Relaxed);
        self.has_both.swap(false, Ordering::Relaxed)
    }

    /// Says that a request is answered.
    pub(crate) fn expect_head(&self) {
        self.deadline.answered(Instant::now());
        self.is_head.store(true, Ordering::Relaxed);
    }
}

/// A connection whose heads are watched.
pub(crate) struct Watched {
    pub(crate) stream: Transport,
    watch: Arc<HeadWatch>,
    head: Head,
    charge: HeadCharge,
}

/// The head that is read.
#[derive(Debug, Default)]
struct Head {
    /// The beginning of the line that is not over.
    line: Vec<u8>,
    has_lines: bool,
    has_length: bool,
    has_encoding: bool,
}

impl Watched {
    pub(crate) fn new(stream: Transport, watch: Arc<HeadWatch>, charge: HeadCharge) -> Self {
        Self { stream, watch, head: Head::default(), charge }
    }

    /// Takes bytes of a head.
    fn read_head(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.charge.is_empty() && !bytes.is_empty() {
            self.watch.deadline.begin_head(Instant::now());
        }
        if self.head.read(bytes) {
            let head = std::mem::take(&mut self.head);
            self.charge.clear();
            self.watch.has_both.store(head.has_length && head.has_encoding, Ordering::Relaxed);
            self.watch.is_head.store(false, Ordering::Relaxed);
        } else if !self.charge.add(bytes.len()) {
            Refusal::HttpHeadBytes.log(|left_out| {
                let peer = self.stream.peer_addr().ok();
                tracing::warn!(
                    ?peer,
                    left_out,
                    "request heads take all the memory for them: a connection is closed"
                );
            });
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }
}

impl Head {
    /// Reads on; whether the head is over.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(end) = memchr(b'\n', bytes) {
            self.keep(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let is_empty = matches!(self.line.as_slice(), b"" | b"\r");
            if is_empty && self.has_lines {
                return true;
            }
            let is_named =
                |name: &[u8]| self.line.get(..name.len()).is_some_and(|line| line.eq_ignore_ascii_case(name));
            let (has_length, has_encoding) = (is_named(CONTENT_LENGTH), is_named(TRANSFER_ENCODING));
            self.has_length |= has_length;
            self.has_encoding |= has_encoding;
            self.has_lines |= !is_empty;
            self.line.clear();
        }
        self.keep(bytes);
        false
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.watch.is_head.load(Ordering::Relaxed) {
            return Poll::Ready(self.read_head(&buffer.filled()[known..]));
        }
        self.head = Head::default();
        self.charge.clear();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.watch.deadline.taken(Instant::now());
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices));
        self.watch.deadline.taken(Instant::now());
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[u8] = b"\r\nPUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX-Content-Length: 1\r\ncontent-LENGTH:4\r\n\r\n";

    #[test]
    fn a_head_is_read_however_it_is_cut() {
        for at in 0..BOTH.len() {
            let mut head = Head::default();
            assert!(!head.read(&BOTH[..at]), "cut at {at}");
            assert!(head.read(&[&BOTH[at..], b"content of the body\n"].concat()), "cut at {at}");
            assert!(head.has_length && head.has_encoding, "cut at {at}");
        }
    }

    #[test]
    fn other_names_and_values_are_neither() {
        let mut head = Head::default();
        assert!(head.read(b"PUT /content-length: HTTP/1.1\nX: content-length: 1\nContent-Lengthy: 1\n\n"));
        assert!(!head.has_length && !head.has_encoding);
    }
}
