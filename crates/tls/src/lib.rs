//! TLS of the ports: certificate and key from files, read again while the server runs, and the handshake of one connection.
//!
//! Invariant: a failed reload changes nothing; connections go on with the certificate that was good.
//!
//! Not its business: when a connection becomes encrypted, and who may connect without. Protocols decide that.

mod files;
mod stream;

pub use files::{MinimumVersion, TlsError, TlsFiles};
pub use stream::{Prefixed, TlsStream, session};

use arc_swap::ArcSwap;
use files::Contents;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The certificate that ports show, and the rules of their handshakes.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<ServerConfig>,
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
        let config = contents.config(&files)?;
        Ok(Self { files, current: ArcSwap::from_pointee(config), contents: Mutex::new(contents) })
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
        let config = found.config(&self.files)?;
        self.current.store(Arc::new(config));
        *contents = found;
        Ok(true)
    }

    /// Performs the server's half of the handshake. No limit on its time.
    ///
    /// # Errors
    /// The client does not speak TLS, or not one that the settings allow, or has no certificate that was demanded.
    pub async fn accept(&self, stream: Prefixed<TcpStream>) -> std::io::Result<TlsStream> {
        TlsAcceptor::from(self.current.load_full()).accept(stream).await
    }
}

#[cfg(test)]
mod tests;
