//! The byte stream of a connection: TCP, or memory for fuzzers and tests.
//!
//! Not its business: packets.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The client's bytes.
#[derive(Debug)]
pub(crate) enum ReadHalf {
    Tcp(OwnedReadHalf),
    /// The pieces to read; then the stream ends.
    Memory(VecDeque<Vec<u8>>),
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Memory(pieces) => {
                // An empty read would be the end of the stream.
                while pieces.front().is_some_and(Vec::is_empty) {
                    pieces.pop_front();
                }
                if let Some(piece) = pieces.front_mut() {
                    let count = piece.len().min(into.remaining());
                    into.put_slice(&piece[..count]);
                    piece.drain(..count);
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// The server's bytes.
#[derive(Debug)]
pub(crate) enum WriteHalf {
    Tcp(OwnedWriteHalf),
    /// Takes everything at once.
    Memory(Arc<Mutex<Vec<u8>>>),
}

impl WriteHalf {
    /// Writes as much as is accepted without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Memory(written) => {
                written.lock().extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    /// Returns when more may be taken.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            Self::Memory(_) => Ok(()),
        }
    }
}
