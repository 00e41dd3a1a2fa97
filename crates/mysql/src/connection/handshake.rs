//! The beginning of a connection: the greeting, encryption, and who the client says it is.
//!
//! Not here: the proof of the password (`login`).

use super::login::{Challenge, Login, Proved};
use super::statements::Statements;
use super::{Connection, Link, guard, refused};
use crate::auth::{NONCE_BYTES, Nonce, fresh_nonce};
use crate::error::{MalformedPacket, ProtocolError};
use crate::places::SessionPlace;
use crate::result::{OkInfo, write_ok};
use crate::session::{ConnectionInfo, RefusedLogin, SessionStatus};
use crate::shared::Shared;
use crate::wire::cursor::Cursor;
use crate::wire::put;
use mysql_common::constants::CapabilityFlags;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use tributary_admission::Refusal;
use tributary_types::{AuthPlugin, ErrorCode, SqlError};

/// Collation `utf8mb4_general_ci`, the server's default.
const DEFAULT_COLLATION: u8 = 45;
/// The payload's length of a TLS request.
const TLS_REQUEST_BYTES: usize = 32;

/// The server's capabilities; TLS only with a certificate. Not offered: compression other than zlib's, session tracking.
pub(super) const SERVER_CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_NO_SCHEMA)
    .union(CapabilityFlags::CLIENT_COMPRESS)
    .union(CapabilityFlags::CLIENT_ODBC)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_IGNORE_SIGPIPE)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// A client's claimed identity and proof.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) auth_response: Vec<u8>,
    pub(super) database: Option<String>,
    /// The plugin that made the response; `None`: the client knows no plugins.
    pub(super) plugin: Option<String>,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) collation: u16,
}

/// A client's answer to the greeting.
#[derive(Debug, PartialEq, Eq)]
enum Greeted {
    Credentials(CapabilityFlags, Credentials),
    TlsRequest,
    TooOld,
}

/// Greets a client and opens its session.
///
/// # Errors
/// The client left, took too long, or was refused and informed of it.
pub(super) async fn open(
    mut link: Link,
    id: u32,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<Connection, ProtocolError> {
    let timeout = shared.options.handshake_timeout;
    let login = shared.places.log_in(peer.ip());
    let handshake = async {
        let opened = tokio::time::timeout(timeout, greet(&mut link, id, peer, shared)).await;
        match opened {
            Err(_) => Err(ProtocolError::Timeout(timeout.as_secs())),
            Ok(Err(ProtocolError::Malformed(error))) => {
                Err(refused(ErrorCode::BadHandshake, format!("Bad handshake: {}", error.what)))
            }
            Ok(result) => result,
        }
    };
    let result = tokio::select! {
        result = handshake => result,
        () = shared.shutdown.cancelled() => Err(ProtocolError::Closing),
        () = login.taken_away() => {
            Refusal::MysqlMadeRoom.log(|left_out| {
                info!(connection = id, %peer, left_out, "a client that was logging in made room for another");
            });
            Err(ProtocolError::Closing)
        }
    };
    let opened = match result {
        Ok(opened) => opened,
        Err(ProtocolError::Refused(reply)) => {
            refusal(reply.code).log(|left_out| {
                info!(connection = id, %peer, error = %reply, left_out, "a client was refused");
            });
            link.send_error(&reply).await?;
            return Err(ProtocolError::Refused(reply));
        }
        Err(error) => return Err(error),
    };
    link.reader.set_max_packet_bytes(shared.options.max_allowed_packet);
    // The OK packet, which waits to be sent, is the last one that is not compressed.
    if opened.info.capabilities.contains(CapabilityFlags::CLIENT_COMPRESS) {
        link.begin_compression();
    }
    Ok(Connection {
        id,
        peer,
        shared: Arc::clone(shared),
        link,
        statements: Statements::default(),
        memory: None,
        multi_statements: opened.info.capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        capabilities: opened.info.capabilities,
        kill: opened.info.kill,
        nonce: opened.nonce,
        session: opened.session,
        _place: opened.place,
    })
}

/// The kind of a refusal, by its error.
pub(super) const fn refusal(code: ErrorCode) -> Refusal {
    match code {
        ErrorCode::TooManyConnections => Refusal::MysqlSessions,
        ErrorCode::BadHandshake | ErrorCode::UnsupportedAuthMode | ErrorCode::SecureTransportRequired => {
            Refusal::MysqlHandshake
        }
        _ => Refusal::MysqlLogin,
    }
}

struct Opened {
    info: ConnectionInfo,
    nonce: Nonce,
    session: Box<dyn crate::session::Session>,
    place: SessionPlace,
}

async fn greet(
    link: &mut Link,
    id: u32,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<Opened, ProtocolError> {
    let nonce = fresh_nonce();
    let greeting = Greeting {
        version: shared.hooks.server_version(),
        id,
        nonce: &nonce,
        offers_tls: shared.options.tls.is_some(),
        plugin: shared.options.auth_plugin,
    };
    link.out.with(|pending| pending.packet(|out| greeting.write(out)));
    let mut packet = link.handshake_packet(1).await?;
    link.answer_to(packet.sequence);
    let mut greeted = parse_greeted(link.reader.payload(packet))?;
    if greeted == Greeted::TlsRequest {
        let Some(tls) = &shared.options.tls else {
            return Err(refused(ErrorCode::BadHandshake, NO_TLS_TEXT));
        };
        link.begin_tls(tls).await?;
        packet = link.handshake_packet(2).await?;
        link.answer_to(packet.sequence);
        greeted = parse_greeted(link.reader.payload(packet))?;
    }
    let (capabilities, credentials) = match greeted {
        Greeted::Credentials(capabilities, credentials) => (capabilities, credentials),
        Greeted::TlsRequest => return Err(refused(ErrorCode::BadHandshake, TWICE_TEXT)),
        Greeted::TooOld => return Err(refused(ErrorCode::UnsupportedAuthMode, TOO_OLD_TEXT)),
    };
    if shared.options.requires_tls && link.tls.is_none() {
        return Err(refused(ErrorCode::SecureTransportRequired, PLAIN_TEXT));
    }
    let login =
        Login { capabilities, credentials, challenge: Challenge::Fresh(nonce), sequence: packet.sequence };
    let begun = Instant::now();
    let Proved { credentials, nonce } = login.prove(link, shared, id, peer).await?;
    let Some(place) = shared.places.open_session(shared.hooks.is_operator(&credentials.user)) else {
        let error = SqlError::new(ErrorCode::TooManyConnections, "Too many connections");
        let (user, database) = (credentials.user.as_str(), credentials.database.as_deref());
        shared.hooks.login_refused(RefusedLogin { id, user, database, peer, begun, error: &error });
        return Err(ProtocolError::Refused(error));
    };
    let info = ConnectionInfo {
        id,
        user: credentials.user,
        database: credentials.database,
        peer,
        attributes: credentials.attributes,
        capabilities,
        collation: credentials.collation,
        tls: link.tls.clone(),
        kill: CancellationToken::new(),
    };
    let session = match guard::guarded(shared.hooks.open_session(info.clone()), &link.out).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return Err(ProtocolError::Refused(error)),
        Err(panic) => {
            warn!(connection = id, %peer, %panic, "opening a session panicked");
            return Err(refused(ErrorCode::Unknown, format!("internal error: {panic}")));
        }
    };
    let status = session.status().flags();
    link.out.with(|pending| pending.packet(|out| write_ok(out, 0, OkInfo::default(), status)));
    Ok(Opened { info, nonce, session, place })
}

const NO_TLS_TEXT: &str = "Bad handshake: the client asks for TLS, which this server does not offer; connect without TLS \
     (mysql --ssl-mode=DISABLED, mariadb --skip-ssl, JDBC sslMode=DISABLED), or give the server a certificate (tls_certificate)";
const TWICE_TEXT: &str = "Bad handshake: the client asks for TLS within TLS";
const PLAIN_TEXT: &str =
    "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
const TOO_OLD_TEXT: &str = "Client does not support authentication protocol requested by server; consider upgrading \
                            MySQL client (4.1 or later is needed)";

/// The server's first packet.
#[derive(Clone, Copy)]
struct Greeting<'a> {
    version: &'a str,
    /// The connection's.
    id: u32,
    nonce: &'a Nonce,
    offers_tls: bool,
    plugin: AuthPlugin,
}

impl Greeting<'_> {
    fn write(self, out: &mut Vec<u8>) {
        let Self { version, id, nonce, offers_tls, plugin } = self;
        let mut capabilities = SERVER_CAPABILITIES;
        capabilities.set(CapabilityFlags::CLIENT_SSL, offers_tls);
        let capabilities = capabilities.bits();
        out.push(10);
        out.extend_from_slice(version.as_bytes());
        out.push(0);
        put::u32(out, id);
        out.extend_from_slice(&nonce[..8]);
        out.push(0);
        put::u16(out, capabilities as u16);
        out.push(DEFAULT_COLLATION);
        put::u16(out, SessionStatus::default().flags().bits());
        put::u16(out, (capabilities >> 16) as u16);
        out.push(NONCE_BYTES as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&nonce[8..]);
        out.push(0);
        out.extend_from_slice(plugin.name().as_bytes());
        out.push(0);
    }
}

fn parse_greeted(payload: &[u8]) -> Result<Greeted, MalformedPacket> {
    let mut fields = Cursor::new(payload);
    let low_bits = fields.u16("the client's capabilities are missing")?;
    if !CapabilityFlags::from_bits_retain(low_bits.into()).contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Ok(Greeted::TooOld);
    }
    let high_bits = fields.u16("the client's capabilities are cut off")?;
    let asked = CapabilityFlags::from_bits_retain(u32::from(low_bits) | u32::from(high_bits) << 16);
    fields.u32("the client's packet size is missing")?;
    let collation = fields.u8("the client's collation is missing")?;
    fields.bytes(23, "the reserved bytes are cut off")?;
    if asked.contains(CapabilityFlags::CLIENT_SSL) && payload.len() == TLS_REQUEST_BYTES {
        return Ok(Greeted::TlsRequest);
    }
    let capabilities = asked & SERVER_CAPABILITIES;
    let user = text(fields.null_terminated("the user's name does not end")?);
    let auth_response = if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
        fields.lenenc_bytes("the password's proof is cut off")?
    } else if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
        let length = fields.u8("the password's proof is missing")?;
        fields.bytes(length.into(), "the password's proof is cut off")?
    } else {
        fields.null_terminated_or_rest()
    };
    let mut credentials = Credentials {
        user,
        auth_response: auth_response.to_vec(),
        collation: collation.into(),
        ..Credentials::default()
    };
    if capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
        credentials.database = some_text(fields.null_terminated_or_rest());
    }
    parse_plugin_and_attributes(&mut fields, capabilities, &mut credentials)?;
    Ok(Greeted::Credentials(capabilities, credentials))
}

/// The payload of `COM_CHANGE_USER`, after the command byte.
pub(super) fn parse_change_user(
    payload: &[u8],
    capabilities: CapabilityFlags,
) -> Result<Credentials, MalformedPacket> {
    let mut fields = Cursor::new(payload);
    let user = text(fields.null_terminated("the user's name does not end")?);
    let auth_response = if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
        let length = fields.u8("the password's proof is missing")?;
        fields.bytes(length.into(), "the password's proof is cut off")?
    } else {
        fields.null_terminated("the password's proof does not end")?
    };
    let database = some_text(fields.null_terminated_or_rest());
    let collation =
        if fields.is_empty() { DEFAULT_COLLATION.into() } else { fields.u16("the collation is cut off")? };
    let auth_response = auth_response.to_vec();
    let mut credentials = Credentials { user, auth_response, database, collation, ..Credentials::default() };
    parse_plugin_and_attributes(&mut fields, capabilities, &mut credentials)?;
    Ok(credentials)
}

/// The fields at the end, which some clients leave out although they announced them.
fn parse_plugin_and_attributes(
    fields: &mut Cursor<'_>,
    capabilities: CapabilityFlags,
    credentials: &mut Credentials,
) -> Result<(), MalformedPacket> {
    if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !fields.is_empty() {
        credentials.plugin = some_text(fields.null_terminated_or_rest());
    }
    if capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) && !fields.is_empty() {
        const WHAT: &str = "the connection attributes are cut off";
        let mut attributes = Cursor::new(fields.lenenc_bytes(WHAT)?);
        while !attributes.is_empty() {
            let name = text(attributes.lenenc_bytes(WHAT)?);
            credentials.attributes.push((name, text(attributes.lenenc_bytes(WHAT)?)));
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn some_text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}

#[cfg(test)]
mod tests;
