//! An encrypted connection, and one whose first bytes were read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tributary_types::TlsSession;

/// An encrypted connection.
pub type TlsStream = tokio_rustls::server::TlsStream<Prefixed<TcpStream>>;

/// A stream whose first bytes were read before.
#[derive(Debug)]
pub struct Prefixed<S> {
    first: Vec<u8>,
    stream: S,
}

impl<S> Prefixed<S> {
    /// `first` are the bytes that were read.
    pub const fn new(first: Vec<u8>, stream: S) -> Self {
        Self { first, stream }
    }

    /// The stream below.
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.first.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, into);
        }
        let count = this.first.len().min(into.remaining());
        into.put_slice(&this.first[..count]);
        this.first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The parameters on which a handshake has agreed.
#[must_use]
pub fn session(stream: &TlsStream) -> TlsSession {
    let (_, connection) = stream.get_ref();
    TlsSession {
        version: connection
            .protocol_version()
            .and_then(|version| version.as_str())
            .unwrap_or_default()
            .replace('_', "."),
        cipher: connection
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .unwrap_or_default()
            .replace("TLS13_", "TLS_"),
        has_client_certificate: connection.peer_certificates().is_some_and(|chain| !chain.is_empty()),
    }
}
