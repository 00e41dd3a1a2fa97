use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// An authority, a certificate that it signed in files, and one of a client.
struct Identity {
    dir: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Identity {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("signed");
        let identity = Self { dir: tempfile::tempdir().expect("a directory"), authority };
        std::fs::write(identity.path("ca.pem"), identity.authority.pem()).expect("written");
        identity.issue("server");
        identity
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Makes `NAME.pem` and `NAME.key`, and returns both.
    fn issue(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.authority).expect("signed");
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).expect("written");
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).expect("written");
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).expect("a key"))
    }

    fn files(&self, minimum: MinimumVersion, asks_clients: bool) -> TlsFiles {
        TlsFiles {
            certificate: self.path("server.pem"),
            private_key: self.path("server.key"),
            client_ca: asks_clients.then(|| self.path("ca.pem")),
            minimum,
        }
    }

    fn client(&self, certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>) -> TlsConnector {
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("an authority");
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match certificate {
            Some((chain, key)) => builder.with_client_auth_cert(vec![chain], key).expect("a certificate"),
            None => builder.with_no_client_auth(),
        };
        TlsConnector::from(Arc::new(config))
    }
}

/// Connects, sends a byte and gets it back; the parameters that the server saw, and the client's view of its certificate.
async fn talk(tls: &Tls, client: TlsConnector) -> std::io::Result<(TlsSession, Vec<u8>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = async {
        let (stream, _) = listener.accept().await?;
        let mut stream = tls.accept(Prefixed::new(Vec::new(), stream)).await?;
        let seen = session(&stream);
        let byte = stream.read_u8().await?;
        stream.write_u8(byte).await?;
        stream.shutdown().await?;
        Ok::<_, std::io::Error>(seen)
    };
    let client = async {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = client.connect(name, stream).await?;
        stream.write_u8(7).await?;
        assert_eq!(stream.read_u8().await?, 7);
        let shown = stream.get_ref().1.peer_certificates().expect("a certificate")[0].to_vec();
        Ok::<_, std::io::Error>(shown)
    };
    let (server, client) = tokio::join!(server, client);
    Ok((server?, client?))
}

use tributary_types::TlsSession;

#[tokio::test]
async fn a_client_that_knows_the_authority_talks_in_the_newest_version() {
    let identity = Identity::new();
    let tls = Tls::open(identity.files(MinimumVersion::Tls12, false)).expect("good files");
    let (seen, _) = talk(&tls, identity.client(None)).await.expect("both agree");
    assert_eq!(seen.version, "TLSv1.3");
    assert!(seen.cipher.starts_with("TLS_"), "{}", seen.cipher);
    assert!(!seen.has_client_certificate);
}

#[tokio::test]
async fn a_clients_certificate_is_asked_for_and_optional() {
    let identity = Identity::new();
    let tls = Tls::open(identity.files(MinimumVersion::Tls13, true)).expect("good files");
    let with = identity.client(Some(identity.issue("client")));
    assert!(talk(&tls, with).await.expect("a known authority").0.has_client_certificate);
    assert!(!talk(&tls, identity.client(None)).await.expect("none is needed").0.has_client_certificate);
    let stranger = Identity::new().issue("client");
    assert!(talk(&tls, identity.client(Some(stranger))).await.is_err(), "another authority's");
}

#[tokio::test]
async fn a_reload_takes_changed_files_and_keeps_the_ones_before_if_they_are_bad() {
    let identity = Identity::new();
    let tls = Tls::open(identity.files(MinimumVersion::Tls12, false)).expect("good files");
    let shown = || async { talk(&tls, identity.client(None)).await.expect("both agree").1 };
    let first = shown().await;
    assert!(!tls.reload().expect("good files"), "nothing has changed");
    let (second, _) = identity.issue("server");
    assert!(tls.reload().expect("good files"));
    assert_eq!(shown().await, second.to_vec());
    assert_ne!(first, second.to_vec());
    std::fs::write(identity.path("server.key"), Identity::new().key("server")).expect("written");
    let error = tls.reload().expect_err("the key of another certificate").to_string();
    assert!(error.contains("server.key") && error.contains("does not fit"), "{error}");
    assert_eq!(shown().await, second.to_vec());
}

impl Identity {
    fn key(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(&format!("{name}.key"))).expect("written before")
    }
}

#[test]
fn bad_files_are_named() {
    let identity = Identity::new();
    let error = |change: &dyn Fn(&mut TlsFiles)| {
        let mut files = identity.files(MinimumVersion::Tls12, false);
        change(&mut files);
        Tls::open(files).expect_err("a bad file").to_string()
    };
    let missing = error(&|files| files.certificate = identity.path("absent.pem"));
    assert!(missing.starts_with("cannot read ") && missing.contains("absent.pem"), "{missing}");
    let swapped = error(&|files| std::mem::swap(&mut files.certificate, &mut files.private_key));
    assert!(swapped.ends_with("has no certificate in PEM (`-----BEGIN CERTIFICATE-----`)"), "{swapped}");
    let no_key = error(&|files| files.private_key = Path::to_owned(&files.certificate));
    assert!(no_key.ends_with("has no private key in PEM (`-----BEGIN PRIVATE KEY-----`)"), "{no_key}");
}

#[tokio::test]
async fn a_node_is_known_by_the_digest_of_its_certificate() {
    let identity = Identity::new();
    let tls = Tls::open(identity.files(MinimumVersion::Tls12, false)).expect("good files");
    let talk = |digest: String| {
        let tls = &tls;
        async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let stream = TcpStream::connect(listener.local_addr()?).await?;
            let server = async {
                let (stream, _) = listener.accept().await?;
                let mut stream = tls.accept_for(Protocol::Http2, Prefixed::new(Vec::new(), stream)).await?;
                stream.read_u8().await
            };
            let client = async {
                let mut stream = connect_known(stream, &digest).await?;
                stream.write_u8(7).await?;
                stream.shutdown().await
            };
            let (server, client) = tokio::join!(server, client);
            client?;
            server
        }
    };
    let known = tls.digest();
    assert_eq!(talk(known.clone()).await.expect("it is this one"), 7);
    identity.issue("server");
    assert!(tls.reload().expect("good files"));
    talk(known).await.expect_err("the node has another certificate now");
    assert_eq!(talk(tls.digest()).await.expect("this is the other one"), 7);
}
