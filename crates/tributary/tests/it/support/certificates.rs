//! An authority and the certificates that it signs, in files.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use std::path::{Path, PathBuf};

/// An authority of a test, in a directory: `ca.pem`, `server.pem`, `server.key`.
pub struct Authority {
    dir: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority and a certificate for `localhost` and `127.0.0.1`.
    pub fn new(dir: &Path) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("signed");
        let authority = Self { dir: dir.to_owned(), issuer };
        std::fs::write(authority.dir.join("ca.pem"), authority.issuer.pem()).expect("written");
        authority.issue("server");
        authority
    }

    /// Makes `NAME.pem` and `NAME.key`; ones that are there are replaced.
    pub fn issue(&self, name: &str) {
        let key = KeyPair::generate().expect("a key");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate =
            CertificateParams::new(names).expect("names").signed_by(&key, &self.issuer).expect("signed");
        std::fs::write(self.dir.join(format!("{name}.pem")), certificate.pem()).expect("written");
        std::fs::write(self.dir.join(format!("{name}.key")), key.serialize_pem()).expect("written");
    }

    /// The path of one of its files.
    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The settings of a server with this certificate.
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![
            ("tls_certificate".to_owned(), self.path("server.pem")),
            ("tls_private_key".to_owned(), self.path("server.key")),
        ]
    }
}
