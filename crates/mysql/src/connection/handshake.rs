//! The beginning of a connection: the greeting, who the client is, and the proof of the password.

use super::statements::Statements;
use super::{Connection, Link, guard};
use crate::auth::{self, NATIVE_PASSWORD, NONCE_BYTES, fresh_nonce};
use crate::error::{MalformedPacket, ProtocolError};
use crate::places::SessionPlace;
use crate::result::{OkInfo, write_ok};
use crate::session::{ConnectionInfo, SessionStatus};
use crate::shared::Shared;
use crate::wire::cursor::Cursor;
use crate::wire::put;
use mysql_common::constants::CapabilityFlags;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use tributary_types::{ErrorCode, SqlError};

/// Collation `utf8mb4_general_ci`, the server's default.
const DEFAULT_COLLATION: u8 = 45;
/// The payload's length of a TLS request.
const TLS_REQUEST_BYTES: usize = 32;

/// The server's capabilities. Not offered: TLS, compression other than zlib's, session tracking.
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
        () = login.taken_away() => Err(ProtocolError::Closing),
    };
    let opened = match result {
        Ok(opened) => opened,
        Err(ProtocolError::Refused(reply)) => {
            info!(connection = id, %peer, error = %reply, "a client was refused");
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

struct Opened {
    info: ConnectionInfo,
    nonce: [u8; NONCE_BYTES],
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
    link.out.with(|pending| {
        pending.packet(|out| write_greeting(out, shared.hooks.server_version(), id, &nonce));
    });
    let packet = link.handshake_packet(1).await?;
    link.answer_to(packet.sequence);
    let (capabilities, credentials) = match parse_greeted(link.reader.payload(packet))? {
        Greeted::Credentials(capabilities, credentials) => (capabilities, credentials),
        Greeted::TlsRequest => return Err(refused(ErrorCode::BadHandshake, TLS_TEXT)),
        Greeted::TooOld => return Err(refused(ErrorCode::UnsupportedAuthMode, TOO_OLD_TEXT)),
    };
    let login =
        Login { capabilities, credentials, challenge: Challenge::Fresh(nonce), sequence: packet.sequence };
    let Proved { credentials, nonce } = login.prove(link, shared, peer).await?;
    let Some(place) = shared.places.open_session(shared.hooks.is_operator(&credentials.user)) else {
        return Err(refused(ErrorCode::TooManyConnections, "Too many connections"));
    };
    let info = ConnectionInfo {
        id,
        user: credentials.user,
        database: credentials.database,
        peer,
        attributes: credentials.attributes,
        capabilities,
        collation: credentials.collation,
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

const TLS_TEXT: &str = "Bad handshake: the client asks for TLS, which this server does not offer; connect without TLS \
     (mysql --ssl-mode=DISABLED, mariadb --skip-ssl, JDBC sslMode=DISABLED)";
const TOO_OLD_TEXT: &str = "Client does not support authentication protocol requested by server; consider upgrading \
                            MySQL client (4.1 or later is needed)";

fn refused(code: ErrorCode, message: impl Into<String>) -> ProtocolError {
    ProtocolError::Refused(SqlError::new(code, message))
}

/// The challenge that a client's proof of its password answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Challenge {
    /// The challenge of this login.
    Fresh([u8; NONCE_BYTES]),
    /// The challenge of an earlier login: a wrong proof may have been made for another one, and the
    /// client is challenged again.
    Earlier([u8; NONCE_BYTES]),
}

/// A client that says who it is and has to prove it.
#[derive(Debug)]
pub(super) struct Login {
    pub(super) capabilities: CapabilityFlags,
    pub(super) credentials: Credentials,
    pub(super) challenge: Challenge,
    /// The sequence number of the packet with the credentials.
    pub(super) sequence: u8,
}

/// A client that has proved who it is.
#[derive(Debug)]
pub(super) struct Proved {
    pub(super) credentials: Credentials,
    /// The challenge that the client answered.
    pub(super) nonce: [u8; NONCE_BYTES],
}

impl Login {
    /// Checks the password, if necessary by asking again for `mysql_native_password`.
    ///
    /// # Errors
    /// [`ProtocolError::Refused`] with 1045 when the password is wrong or the user unknown; any other
    /// error when the client went away.
    pub(super) async fn prove(
        self,
        link: &mut Link,
        shared: &Shared,
        peer: SocketAddr,
    ) -> Result<Proved, ProtocolError> {
        let Self { capabilities, mut credentials, challenge, sequence } = self;
        let host = peer.ip().to_canonical().to_string();
        let stored = shared.hooks.lookup_password(&credentials.user, &host);
        let is_right = |nonce: &[u8; NONCE_BYTES], response: &[u8]| {
            stored.is_some_and(|stored| auth::verify(&stored, nonce, response))
        };
        let (nonce, may_be_stale) = match challenge {
            Challenge::Fresh(nonce) => (nonce, false),
            Challenge::Earlier(nonce) => (nonce, true),
        };
        let native = credentials.plugin.as_deref().is_none_or(|plugin| plugin == NATIVE_PASSWORD);
        let may_be_right = native || credentials.auth_response.is_empty();
        if may_be_right && is_right(&nonce, &credentials.auth_response) {
            return Ok(Proved { credentials, nonce });
        }
        if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && (may_be_stale || !native) {
            let nonce = fresh_nonce();
            link.out.with(|pending| pending.packet(|out| write_auth_switch(out, &nonce)));
            let packet = link.handshake_packet(sequence.wrapping_add(2)).await?;
            credentials.auth_response = link.reader.payload(packet).to_vec();
            link.answer_to(packet.sequence);
            if is_right(&nonce, &credentials.auth_response) {
                return Ok(Proved { credentials, nonce });
            }
        }
        let with_password = if credentials.auth_response.is_empty() { "NO" } else { "YES" };
        let user = &credentials.user;
        Err(refused(
            ErrorCode::AccessDenied,
            format!("Access denied for user '{user}'@'{host}' (using password: {with_password})"),
        ))
    }
}

fn write_greeting(out: &mut Vec<u8>, version: &str, id: u32, nonce: &[u8; NONCE_BYTES]) {
    let capabilities = SERVER_CAPABILITIES.bits();
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
    out.extend_from_slice(NATIVE_PASSWORD.as_bytes());
    out.push(0);
}

fn write_auth_switch(out: &mut Vec<u8>, nonce: &[u8; NONCE_BYTES]) {
    out.push(0xfe);
    out.extend_from_slice(NATIVE_PASSWORD.as_bytes());
    out.push(0);
    out.extend_from_slice(nonce);
    out.push(0);
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
