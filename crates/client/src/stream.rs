//! A connection's bytes, with or without TLS.
//!
//! Not here: when a protocol changes to TLS.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The certificates that a client trusts. Cheap to share.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the certificates of a PEM file, and no others.
    ///
    /// # Errors
    /// The file can't be read, or has no certificate that can be used.
    pub fn only(certificates: &Path) -> io::Result<Self> {
        let failed = |error: &dyn fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", certificates.display()))
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(certificates).map_err(|error| failed(&error))? {
            roots.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
        }
        if roots.is_empty() {
            return Err(failed(&"no certificate"));
        }
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        Ok(Self(Arc::new(client.with_root_certificates(roots).with_no_client_auth())))
    }
}

/// A connection's bytes. Writes over TLS are sent at once.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self::Plain(socket)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket().fmt(f)
    }
}

impl Stream {
    /// Connects without TLS. `patience` is how long a read or write may take; `None` sets no limit.
    ///
    /// # Errors
    /// The other end cannot be reached.
    pub fn socket_to(address: impl ToSocketAddrs, patience: Option<Duration>) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(patience)?;
        socket.set_write_timeout(patience)?;
        Ok(socket)
    }

    /// Goes on with TLS if there are certificates to trust; one of them must be the server's, for its address. The handshake takes
    /// place with the first byte.
    ///
    /// # Errors
    /// The socket has no peer.
    pub fn with(socket: TcpStream, trust: Option<&Trust>) -> io::Result<Self> {
        let Some(Trust(config)) = trust else { return Ok(Self::Plain(socket)) };
        let name = ServerName::from(socket.peer_addr()?.ip());
        let client = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(client, socket))))
    }

    /// The socket, which carries ciphertext if there is TLS.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            // The other end waits for it.
            Self::Tls(stream) => {
                let written = stream.write(bytes)?;
                stream.flush()?;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
