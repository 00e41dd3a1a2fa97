//! A connection's bytes, with or without TLS.

use crate::doors::Doors;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

/// A connection of a client.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket().fmt(f)
    }
}

impl Stream {
    /// Connects to one of the ports, and waits so long for each answer. There is no TLS yet.
    pub fn connect(port: u16, patience: Duration) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(stream)
    }

    /// Connects to the port for HTTP.
    pub fn to_http(doors: &Doors, patience: Duration) -> io::Result<Self> {
        Self::with(Self::connect(doors.http_port, patience)?, doors.tls.as_ref())
    }

    /// From here on with TLS, if the server requires it.
    pub fn with(socket: TcpStream, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let Some(config) = tls else { return Ok(Self::Plain(socket)) };
        let address = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let client = ClientConnection::new(Arc::clone(config), address).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(client, socket))))
    }

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
            // Sent at once: the other end waits for it.
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
