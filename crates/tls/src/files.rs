//! The files of a server's identity, and the configuration that they make.
//!
//! Not here: sockets.

use crate::known::digest_of;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, SupportedProtocolVersion, version};

/// The protocol of HTTPS, for clients that ask by ALPN.
const HTTP: &[u8] = b"http/1.1";
/// That of gRPC, whose clients always ask.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// The files of a server's identity, in PEM, and the rules of handshakes.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and an authority that clients know.
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    /// The authorities whose clients' certificates are accepted. None: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
    pub minimum: MinimumVersion,
}

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinimumVersion {
    Tls12,
    Tls13,
}

impl MinimumVersion {
    /// The version by its number.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "1.2" => Some(Self::Tls12),
            "1.3" => Some(Self::Tls13),
            _ => None,
        }
    }

    const fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static FROM_12: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        static FROM_13: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        match self {
            Self::Tls12 => &FROM_12,
            Self::Tls13 => &FROM_13,
        }
    }
}

/// A certificate or key that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {file}: {reason}")]
    Unreadable { file: String, reason: std::io::Error },
    #[error("{file} has no {expected} in PEM (`-----BEGIN {label}-----`)")]
    Empty { file: String, expected: &'static str, label: &'static str },
    #[error("{file} is damaged: {reason}")]
    Damaged { file: String, reason: String },
    #[error(
        "the key in {key} does not fit the certificate in {certificate}, or is of a kind that is not supported: {reason}"
    )]
    Unusable { certificate: String, key: String, reason: rustls::Error },
}

/// The contents of the files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    certificate: Vec<u8>,
    private_key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            let unreadable = |reason| TlsError::Unreadable { file: path.display().to_string(), reason };
            std::fs::read(path).map_err(unreadable)
        };
        Ok(Self {
            certificate: read(&files.certificate)?,
            private_key: read(&files.private_key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    /// The digest of the server's certificate.
    pub fn digest(&self, files: &TlsFiles) -> Result<String, TlsError> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        Ok(chain.first().map(digest_of).unwrap_or_default())
    }

    pub fn config(&self, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = private_key(&self.private_key, &files.private_key)?;
        let unusable = |reason| TlsError::Unusable {
            certificate: files.certificate.display().to_string(),
            key: files.private_key.display().to_string(),
            reason,
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(files.minimum.versions())
            .map_err(unusable)?;
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(contents), Some(path)) => {
                let damaged = |reason: String| TlsError::Damaged { file: path.display().to_string(), reason };
                let mut roots = RootCertStore::empty();
                for authority in certificates(contents, path)? {
                    roots.add(authority).map_err(|error| damaged(error.to_string()))?;
                }
                // Whether a user needs one is said by REQUIRE X509.
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| damaged(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(config)
    }
}

fn certificates(contents: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = || path.display().to_string();
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(contents).collect();
    let all = all.map_err(|error| TlsError::Damaged { file: file(), reason: error.to_string() })?;
    if all.is_empty() {
        return Err(TlsError::Empty { file: file(), expected: "certificate", label: "CERTIFICATE" });
    }
    Ok(all)
}

fn private_key(contents: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    use rustls::pki_types::pem::Error;
    let file = path.display().to_string();
    PrivateKeyDer::from_pem_slice(contents).map_err(|error| match error {
        Error::NoItemsFound => TlsError::Empty { file, expected: "private key", label: "PRIVATE KEY" },
        error => TlsError::Damaged { file, reason: error.to_string() },
    })
}
