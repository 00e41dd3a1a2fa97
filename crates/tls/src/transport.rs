//! The bytes of a connection: in clear text, or encrypted. A client's first byte tells which.
//!
//! Not here: what the bytes say.

use crate::{Prefixed, Protocol, Tls, TlsStream, session};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tributary_types::TlsSession;

/// The first byte of a handshake of TLS; no method of HTTP, and no preface of HTTP/2, begins with it.
const HANDSHAKE: u8 = 0x16;

/// One connection.
#[derive(Debug)]
pub enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Transport {
    /// Waits for the client's first byte, and performs the handshake if it begins one. No limit on the time.
    ///
    /// # Errors
    /// The client has left, or the handshake failed.
    pub async fn accept(
        stream: TcpStream,
        tls: Option<&Tls>,
        protocol: Protocol,
    ) -> io::Result<(Self, Option<TlsSession>)> {
        let Some(tls) = tls else { return Ok((Self::Plain(stream), None)) };
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 || first[0] != HANDSHAKE {
            return Ok((Self::Plain(stream), None));
        }
        let stream = tls.accept_for(protocol, Prefixed::new(Vec::new(), stream)).await?;
        let session = session(&stream);
        Ok((Self::Tls(Box::new(stream)), Some(session)))
    }
}

impl Transport {
    /// The client's address.
    ///
    /// # Errors
    /// The system does not know it any more.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Plain(stream) => stream.peer_addr(),
            Self::Tls(stream) => stream.get_ref().0.get_ref().peer_addr(),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
