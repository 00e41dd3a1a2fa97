//! Connections to another node, whose certificate is known by its digest: no authority has to vouch for it, and none can.
//!
//! Not here: where the digest is from.

use crate::files::HTTP_2;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme, version,
};

/// The digest of a certificate: SHA-256 of its DER, in hexadecimal digits.
#[must_use]
pub(crate) fn digest_of(certificate: &CertificateDer<'_>) -> String {
    Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Performs the client's half of the handshake with a node that speaks HTTP/2. No limit on its time.
///
/// # Errors
/// The node shows another certificate than the one with this digest, or has not its key.
pub async fn connect_known(stream: TcpStream, digest: &str) -> io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Known { digest: digest.to_owned(), provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(io::Error::other)?;
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    config.enable_sni = false;
    let address = stream.peer_addr()?.ip();
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(address), stream).await
}

/// Accepts one certificate.
struct Known {
    digest: String,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match digest_of(certificate) == self.digest {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
