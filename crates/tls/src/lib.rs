//! TLS of the ports: certificate and key from files, read again while the server runs, and the bytes of one connection.
//!
//! Invariant: a failed reload changes nothing; connections go on with the certificate that was good.
//!
//! Not its business: who may connect without. Protocols decide that.

mod files;
mod known;
mod stream;
mod transport;

pub use files::{MinimumVersion, TlsError, TlsFiles};
pub use known::connect_known;
pub use stream::{Prefixed, TlsStream, session};
pub use transport::Transport;

use arc_swap::ArcSwap;
use files::{Contents, HTTP_2};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The protocol over TLS of a port, for clients that ask for it by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or one that ALPN has no name for.
    Http1,
    /// HTTP/2, which gRPC speaks.
    Http2,
}

/// The certificate that ports show, and the rules of their handshakes.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<Configs>,
    /// The contents of the files that `current` was made of. One reload at a time.
    contents: Mutex<Contents>,
}

impl Tls {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// A file that can't be read or used, by its name.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = Contents::read(&files)?;
        let configs = Configs::of(contents.config(&files)?, contents.digest(&files)?);
        Ok(Self { files, current: ArcSwap::from_pointee(configs), contents: Mutex::new(contents) })
    }

    /// Reads certificate and key again; new connections get them. Returns whether they have changed.
    ///
    /// # Errors
    /// As of [`Tls::open`]; the ones before stay in use then.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let mut contents = self.contents.lock();
        let found = Contents::read(&self.files)?;
        if found == *contents {
            return Ok(false);
        }
        let configs = Configs::of(found.config(&self.files)?, found.digest(&self.files)?);
        self.current.store(Arc::new(configs));
        *contents = found;
        Ok(true)
    }

    /// The digest of the certificate, by which [`connect_known`] knows it.
    #[must_use]
    pub fn digest(&self) -> String {
        self.current.load().digest.clone()
    }

    /// Performs the server's half of the handshake. No limit on its time.
    ///
    /// # Errors
    /// The client does not speak TLS, or not one that the settings allow, or has no certificate that was demanded.
    pub async fn accept(&self, stream: Prefixed<TcpStream>) -> std::io::Result<TlsStream> {
        self.accept_for(Protocol::Http1, stream).await
    }

    /// As [`Tls::accept`], on a port of that protocol.
    ///
    /// # Errors
    /// As of [`Tls::accept`]; or the client asks for other protocols only.
    pub async fn accept_for(
        &self,
        protocol: Protocol,
        stream: Prefixed<TcpStream>,
    ) -> std::io::Result<TlsStream> {
        let config = self.current.load().of_protocol(protocol);
        TlsAcceptor::from(config).accept(stream).await
    }
}

/// The rules of handshakes, for each protocol.
#[derive(Debug)]
struct Configs {
    http_1: Arc<ServerConfig>,
    http_2: Arc<ServerConfig>,
    /// Of the certificate.
    digest: String,
}

impl Configs {
    fn of(http_1: ServerConfig, digest: String) -> Self {
        let mut http_2 = http_1.clone();
        http_2.alpn_protocols = vec![HTTP_2.to_vec()];
        Self { http_1: Arc::new(http_1), http_2: Arc::new(http_2), digest }
    }

    fn of_protocol(&self, protocol: Protocol) -> Arc<ServerConfig> {
        Arc::clone(match protocol {
            Protocol::Http1 => &self.http_1,
            Protocol::Http2 => &self.http_2,
        })
    }
}

#[cfg(test)]
mod tests;
