//! The byte stream of a connection: TCP, TLS over it, or memory for fuzzers and tests.
//!
//! Not its business: packets.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tributary_tls::{Prefixed, Tls, TlsStream};
use tributary_types::TlsSession;

/// The client's bytes.
#[derive(Debug)]
pub(crate) enum ReadHalf {
    Tcp(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream>),
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
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
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
    /// One task uses it.
    Tls(Mutex<tokio::io::WriteHalf<TlsStream>>),
    /// Takes everything at once.
    Memory(Arc<Mutex<Vec<u8>>>),
}

impl WriteHalf {
    /// Writes as much as is accepted without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Tls(stream) => {
                let context = &mut Context::from_waker(Waker::noop());
                match Pin::new(&mut *stream.lock()).poll_write(context, bytes) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
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
            Self::Tls(_) => self.flush().await,
            Self::Memory(_) => Ok(()),
        }
    }

    /// Whether bytes that were accepted may still be here.
    pub(crate) const fn keeps_bytes(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns when the operating system has every byte that was accepted.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => poll_fn(|context| Pin::new(&mut *stream.lock()).poll_flush(context)).await,
            Self::Tcp(_) | Self::Memory(_) => Ok(()),
        }
    }

    /// Says that nothing follows, where the stream has a word for it.
    pub(crate) async fn shutdown(&self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => {
                poll_fn(|context| Pin::new(&mut *stream.lock()).poll_shutdown(context)).await
            }
            Self::Tcp(_) | Self::Memory(_) => Ok(()),
        }
    }
}

/// Encrypts a TCP connection from here on. `read_ahead` was read from it already, and is the beginning of the client's handshake:
/// nothing that came in clear text is understood as anything else.
///
/// # Errors
/// The handshake failed, or the connection is not TCP.
pub(crate) async fn encrypt(
    read: ReadHalf,
    write: WriteHalf,
    read_ahead: Vec<u8>,
    tls: &Tls,
) -> io::Result<(ReadHalf, WriteHalf, TlsSession)> {
    let (ReadHalf::Tcp(read), WriteHalf::Tcp(write)) = (read, write) else {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "only TCP can be encrypted"));
    };
    let stream = read.reunite(write).map_err(io::Error::other)?;
    let stream = tls.accept(Prefixed::new(read_ahead, stream)).await?;
    let session = tributary_tls::session(&stream);
    let (read, write) = tokio::io::split(stream);
    Ok((ReadHalf::Tls(read), WriteHalf::Tls(Mutex::new(write)), session))
}
