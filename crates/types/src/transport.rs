//! The security of a client's connection: what it has, and what a user demands.

use serde::{Deserialize, Serialize};

/// The encryption of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// `TLSv1.3`
    pub version: String,
    /// The cipher suite, by its name in the standard: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The client showed a certificate that the server's authority signed.
    pub has_client_certificate: bool,
}

/// The encryption that a user's connections must have: `REQUIRE` of CREATE USER.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsRequirement {
    #[default]
    None,
    Ssl,
    /// TLS with a certificate of the client.
    X509,
}

impl TlsRequirement {
    /// Whether a connection may be this user's; `None` is one without TLS.
    #[must_use]
    pub fn allows(self, tls: Option<&TlsSession>) -> bool {
        match self {
            Self::None => true,
            Self::Ssl => tls.is_some(),
            Self::X509 => tls.is_some_and(|tls| tls.has_client_certificate),
        }
    }
}
