//! The server's ports, and the users who log in there: root without a password, or, of a server that requires TLS, one user for
//! each kind of client.

use crate::TortureError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tributary_client::{Stream, Trust};

/// The user who may do everything.
pub(crate) const ROOT: &str = "root";

/// The ports of a running server, and the way through them.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    pub mysql_port: u16,
    pub http_port: u16,
    /// The server requires it.
    pub tls: Option<Trust>,
}

impl Doors {
    /// Doors that are open to root without a password.
    pub const fn open(mysql_port: u16, http_port: u16) -> Self {
        Self { mysql_port, http_port, tls: None }
    }

    /// The login of a kind of client.
    pub fn login(&self, user: &str) -> Login {
        match &self.tls {
            Some(_) => Login { user: user.to_owned(), password: password(user) },
            None => Login { user: ROOT.to_owned(), password: String::new() },
        }
    }
}

/// Connects to the port for HTTP. An answer that does not arrive in time counts as a broken connection.
pub(crate) fn to_http(doors: &Doors, patience: Duration) -> io::Result<Stream> {
    let socket = Stream::socket_to(("127.0.0.1", doors.http_port), Some(patience))?;
    Stream::with(socket, doors.tls.as_ref())
}

/// The password that a user has from the start.
pub(crate) fn password(user: &str) -> String {
    format!("Of-{user}-1")
}

/// A user and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub user: String,
    pub password: String,
}

/// A certificate of the server's own, made for one run.
#[derive(Debug)]
pub(crate) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    /// Clients that trust it.
    pub client: Trust,
}

impl Certificate {
    /// Makes one in the directory.
    ///
    /// # Errors
    /// The program `openssl` is missing or fails.
    pub fn make(directory: &Path) -> Result<Self, TortureError> {
        let (chain, key) = (directory.join("server.pem"), directory.join("server.key"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "3650",
                "-subj",
                "/CN=localhost",
            ])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&chain)
            .stdin(Stdio::null())
            .output();
        match made {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(TortureError::Impossible(format!("openssl makes no certificate: {text}")));
            }
            Err(error) => {
                return Err(TortureError::Impossible(format!("openssl, for a certificate: {error}")));
            }
        }
        let client = Trust::only(&chain).map_err(|error| TortureError::Setup(error.to_string()))?;
        Ok(Self { chain, key, client })
    }

    /// The settings of a server that has the certificate and accepts nothing without TLS.
    pub fn settings(&self) -> Vec<(String, String)> {
        [
            ("tls_certificate", self.chain.display().to_string()),
            ("tls_private_key", self.key.display().to_string()),
            ("require_secure_transport", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
