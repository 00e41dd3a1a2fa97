//! A MySQL connection that becomes one of TLS: the handshake, and the conversation within it.
//!
//! A client that speaks TLS gets, for any bytes within it, the calls and the answers of the same bytes without it. A client that
//! sends clear text where TLS is demanded, before, instead of or behind its request, opens no session; behind the request the
//! server answers with records of TLS only.
//!
//! It runs on TCP, because only that can be encrypted. Keys are random, and nothing that is compared depends on them.

use crate::mysql::{CHALLENGE, Calls, Hooks, LOGIN, PACKET_BYTES_MAX, run};
use rcgen::{CertificateParams, KeyPair};
use std::cell::LazyCell;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tributary_mysql::ServeOptions;
use tributary_mysql::fuzzing::serve_stream;
use tributary_tls::{MinimumVersion, Tls, TlsFiles};

/// A request for TLS, with the capabilities of [`LOGIN`].
const REQUEST: &[u8] = b"\x20\0\0\x01\x05\xaa\x0b\0\0\0\0\x01\x2d\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// The bit of the first byte for a client that sends clear text, and that for one that does not even request TLS.
const IS_CLEAR: u8 = 0x80;
const WITHOUT_REQUEST: u8 = 0x40;

thread_local! {
    static STAGE: LazyCell<Stage> = LazyCell::new(Stage::new);
}

/// A server's certificate, a client that trusts it, and a place to meet.
struct Stage {
    runtime: Runtime,
    listener: TcpListener,
    tls: Arc<Tls>,
    client: TlsConnector,
}

impl Stage {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let bound = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("signed");
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("server.pem"), certificate.pem()).expect("written");
        std::fs::write(path("server.key"), key.serialize_pem()).expect("written");
        let files = TlsFiles {
            certificate: path("server.pem"),
            private_key: path("server.key"),
            client_ca: None,
            minimum: MinimumVersion::Tls12,
        };
        let tls = Tls::open(files).expect("a certificate and its key");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = TlsConnector::from(Arc::new(config));
        Self { runtime, listener: bound.expect("a port"), tls: Arc::new(tls), client }
    }

    /// Serves a connection, at whose other end `client` is.
    async fn meet<C: Future>(&self, hooks: &Arc<Hooks>, client: impl FnOnce(TcpStream) -> C) -> C::Output {
        let address = self.listener.local_addr().expect("bound");
        let (connected, accepted) = tokio::join!(TcpStream::connect(address), self.listener.accept());
        let options = ServeOptions {
            tls: Some(Arc::clone(&self.tls)),
            requires_tls: true,
            max_allowed_packet: PACKET_BYTES_MAX,
            ..ServeOptions::default()
        };
        let served = serve_stream(accepted.expect("a client").0, Arc::clone(hooks) as _, options);
        // A client that has left is an end like any other.
        let (_, outcome) = tokio::join!(served, client(connected.expect("a server")));
        outcome
    }
}

/// The first byte says how the bytes are cut, and whether the client speaks TLS.
pub fn tls(data: &[u8]) {
    let Some((&choice, sent)) = data.split_first() else { return };
    let chunk = usize::from(choice & 0x3f) + 1;
    STAGE.with(|stage| match choice & IS_CLEAR {
        0 => within(stage, sent, chunk),
        _ => in_clear_text(stage, sent, chunk, choice & WITHOUT_REQUEST == 0),
    });
}

/// Says the same within TLS and without it.
fn within(stage: &Stage, sent: &[u8], chunk: usize) {
    let (calls, answers) = run(vec![[LOGIN, sent].concat()]);
    let mut login = LOGIN.to_vec();
    // It comes after the request.
    login[3] += 1;
    let (hooks, encrypted) = Hooks::noting();
    let bytes = [&login[..], sent].concat();
    let heard = stage.runtime.block_on(stage.meet(&hooks, async |mut stream| {
        let greeting = packet(&mut stream).await.expect("a greeting");
        assert!(greeting.starts_with(b"\x0a"), "a greeting begins with its version");
        stream.write_all(REQUEST).await.expect("the server reads");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = stage.client.connect(name, stream).await.expect("both speak TLS");
        talk(stream, &bytes, chunk).await
    }));
    assert_eq!(*hooks.sessions.lock(), [true], "the session within TLS");
    assert_eq!(taken(&encrypted), calls, "calls within TLS and without it");
    // The answers to a client that goes on sending may be lost when the server hangs up.
    let heard = payloads(&heard);
    let plain: Vec<&[u8]> = answers.iter().skip(1).map(|answer| &answer[1..]).collect();
    assert!(heard.len() <= plain.len(), "more answers within TLS");
    for (heard, plain) in heard.iter().zip(&plain) {
        // A challenge is random.
        let is_same = if *plain == CHALLENGE { heard.starts_with(CHALLENGE) } else { heard == plain };
        assert!(is_same, "{heard:?} within TLS, {plain:?} without it");
    }
}

/// Sends clear text where TLS is demanded.
fn in_clear_text(stage: &Stage, sent: &[u8], chunk: usize, has_request: bool) {
    let (hooks, calls) = Hooks::noting();
    let bytes = if has_request { [REQUEST, sent].concat() } else { sent.to_vec() };
    let heard = stage.runtime.block_on(stage.meet(&hooks, async |mut stream| {
        let greeting = packet(&mut stream).await.expect("a greeting");
        assert!(greeting.starts_with(b"\x0a"), "a greeting begins with its version");
        talk(stream, &bytes, chunk).await
    }));
    assert_eq!(*hooks.sessions.lock(), [false; 0], "a session without TLS");
    assert_eq!(taken(&calls), Vec::<Vec<u8>>::new(), "a statement without TLS");
    if has_request {
        let mut rest = &heard[..];
        while let [kind, major, _, high, low, ..] = rest {
            assert!(matches!((kind, major), (20..=23, 3)), "no record of TLS: {rest:?}");
            let length = usize::from(*high) << 8 | usize::from(*low);
            rest = rest.get(5 + length..).unwrap_or_default();
        }
    }
}

/// Sends everything in pieces, and returns what the server says until one of both hangs up.
async fn talk(stream: impl AsyncRead + AsyncWrite, bytes: &[u8], chunk: usize) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(stream);
    let send = async {
        for piece in bytes.chunks(chunk.max(bytes.len() / 64)) {
            // The server may have hung up.
            if write.write_all(piece).await.is_err() || write.flush().await.is_err() {
                return;
            }
        }
        let _ = write.shutdown().await;
    };
    let mut heard = Vec::new();
    let _ = tokio::join!(send, read.read_to_end(&mut heard));
    heard
}

/// The payload of the next packet.
async fn packet(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await?;
    Ok(payload)
}

/// Cuts bytes into the payloads of packets; the last may be missing.
fn payloads(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut payloads = Vec::new();
    while let [a, b, c, _, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let Some(payload) = rest.get(..length) else { break };
        payloads.push(payload);
        bytes = &rest[length..];
    }
    payloads
}

fn taken(calls: &Calls) -> Vec<Vec<u8>> {
    std::mem::take(&mut *calls.lock())
}
