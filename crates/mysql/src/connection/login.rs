//! A client's proof of its password, at connecting and when it changes its user.
//!
//! The client chooses the plugin, as far as the server stores what that plugin needs; otherwise the server asks for another one.
//! Not here: the arithmetic of proofs (`auth`), and what is stored of a password (behind [`ServerHooks`]).
//!
//! [`ServerHooks`]: crate::session::ServerHooks

use super::handshake::Credentials;
use super::{Link, refused};
use crate::auth::{Nonce, fresh_nonce, native, sha2};
use crate::error::ProtocolError;
use crate::session::{Account, RefusedLogin};
use crate::shared::Shared;
use mysql_common::constants::CapabilityFlags;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tributary_types::{AuthPlugin, ErrorCode, Secret};

/// The first major version of MySQL's own clients that has no `mysql_native_password`.
const WITHOUT_NATIVE: u32 = 9;

/// The challenge that a client's proof of its password answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Challenge {
    /// The challenge of this login.
    Fresh(Nonce),
    /// The challenge of an earlier login: a wrong proof may have been made for another one, and the
    /// client is challenged again.
    Earlier(Nonce),
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
    pub(super) nonce: Nonce,
}

impl Login {
    /// Checks the password, if necessary by asking again in another way.
    ///
    /// # Errors
    /// [`ProtocolError::Refused`] with 1045 when the password is wrong or the user unknown; any other
    /// error when the client went away.
    pub(super) async fn prove(
        self,
        link: &mut Link,
        shared: &Arc<Shared>,
        id: u32,
        peer: SocketAddr,
    ) -> Result<Proved, ProtocolError> {
        let begun = Instant::now();
        let (user, database) = (self.credentials.user.clone(), self.credentials.database.clone());
        let proved = self.check(link, shared, peer).await;
        if let Err(ProtocolError::Refused(error)) = &proved {
            let (user, database) = (user.as_str(), database.as_deref());
            shared.hooks.login_refused(RefusedLogin { id, user, database, peer, begun, error });
        }
        proved
    }

    async fn check(
        self,
        link: &mut Link,
        shared: &Arc<Shared>,
        peer: SocketAddr,
    ) -> Result<Proved, ProtocolError> {
        let address = peer.ip().to_canonical();
        let host = address.to_string();
        let Self { capabilities, credentials, challenge, sequence } = self;
        let hooks = &shared.hooks;
        hooks.may_log_in(&credentials.user, address).await.map_err(ProtocolError::Refused)?;
        let account = hooks.find_account(&credentials.user, &host);
        let is_allowed = account.as_ref().is_none_or(|account| account.tls.allows(link.tls.as_ref()));
        let mut talk = Talk { link, shared, user: &credentials.user, host: &host, account, sequence };
        let proof = talk.prove(capabilities, &credentials, challenge).await?;
        let is_right = proof.is_right && is_allowed;
        hooks.login_ended(&credentials.user, address, is_right);
        if is_right {
            return Ok(Proved { credentials, nonce: proof.nonce });
        }
        let with_password = if proof.has_password { "YES" } else { "NO" };
        let user = &credentials.user;
        Err(refused(
            ErrorCode::AccessDenied,
            format!("Access denied for user '{user}'@'{host}' (using password: {with_password})"),
        ))
    }
}

/// The outcome of a proof.
struct Proof {
    is_right: bool,
    has_password: bool,
    /// The challenge that was answered last.
    nonce: Nonce,
}

/// The packets of one proof.
struct Talk<'a> {
    link: &'a mut Link,
    shared: &'a Arc<Shared>,
    user: &'a str,
    host: &'a str,
    /// `None`: no such user, which the client must not notice.
    account: Option<Account>,
    /// The sequence number of the client's latest packet.
    sequence: u8,
}

impl Talk<'_> {
    async fn prove(
        &mut self,
        capabilities: CapabilityFlags,
        credentials: &Credentials,
        challenge: Challenge,
    ) -> Result<Proof, ProtocolError> {
        let response = credentials.auth_response.as_slice();
        let (nonce, is_fresh) = match challenge {
            Challenge::Fresh(nonce) => (nonce, true),
            Challenge::Earlier(nonce) => (nonce, false),
        };
        let first = |is_right| Proof { is_right, has_password: !is_without_password(response), nonce };
        if self.account.as_ref().is_some_and(|account| account.is_open) && is_without_password(response) {
            return Ok(first(true));
        }
        let named = credentials.plugin.as_deref();
        // A client that knows no plugins has the native one.
        let client = named.map_or(Some(AuthPlugin::Native), AuthPlugin::named);
        let plugin = self.plugin(client, credentials);
        let has_answered = !is_without_password(response) && client == Some(plugin);
        if has_answered {
            if self.is_proof(plugin, &nonce, response) {
                self.confirm(plugin);
                return Ok(first(true));
            }
            if is_fresh && plugin == AuthPlugin::CachingSha2 {
                return Ok(first(self.ask_for_password(&nonce).await?));
            }
        }
        // A client whose plugin is not the one of the greeting sends nothing until it is challenged for its own.
        let was_asked = client == Some(self.shared.options.auth_plugin);
        let is_final = is_fresh && (has_answered || (is_without_password(response) && was_asked));
        if is_final || !capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            return Ok(first(false));
        }
        let nonce = fresh_nonce();
        self.link.out.with(|pending| pending.packet(|out| write_auth_switch(out, plugin, &nonce)));
        let response = self.next_packet().await?;
        let again = |is_right| Proof { is_right, has_password: !is_without_password(&response), nonce };
        if is_without_password(&response) {
            return Ok(again(self.account.as_ref().is_some_and(|account| account.is_open)));
        }
        if self.is_proof(plugin, &nonce, &response) {
            self.confirm(plugin);
            return Ok(again(true));
        }
        match plugin {
            AuthPlugin::Native => Ok(again(false)),
            AuthPlugin::CachingSha2 => Ok(again(self.ask_for_password(&nonce).await?)),
        }
    }

    /// The plugin by which this client can prove its password to this server.
    fn plugin(&self, client: Option<AuthPlugin>, credentials: &Credentials) -> AuthPlugin {
        let (has_native, is_proven) = match &self.account {
            // Without a password, none is right in either way.
            Some(account) => (account.is_open || !account.native.is_empty(), account.proven.is_some()),
            None => (self.shared.options.auth_plugin == AuthPlugin::Native, false),
        };
        match client {
            Some(AuthPlugin::CachingSha2) => {
                // Without TLS many clients refuse to send a password that the server has not seen before.
                let is_sure = is_proven || self.link.tls.is_some() || lacks_native(credentials);
                if has_native && !is_sure { AuthPlugin::Native } else { AuthPlugin::CachingSha2 }
            }
            _ if has_native => AuthPlugin::Native,
            _ => AuthPlugin::CachingSha2,
        }
    }

    fn is_proof(&self, plugin: AuthPlugin, nonce: &Nonce, response: &[u8]) -> bool {
        let Some(account) = &self.account else { return false };
        match plugin {
            AuthPlugin::Native => {
                !account.native.is_empty() && native::verify(&account.native, nonce, response)
            }
            AuthPlugin::CachingSha2 => {
                account.proven.is_some_and(|proven| sha2::verify(&proven, nonce, response))
            }
        }
    }

    /// Says that the proof was right, where the plugin has a word for it.
    fn confirm(&self, plugin: AuthPlugin) {
        if plugin == AuthPlugin::CachingSha2 {
            self.say(&[sha2::FAST_PROOF_IS_RIGHT]);
        }
    }

    /// Has the client send its password, and checks that.
    async fn ask_for_password(&mut self, nonce: &Nonce) -> Result<bool, ProtocolError> {
        self.say(&[sha2::SEND_PASSWORD]);
        let mut answer = self.next_packet().await?;
        let password = if self.link.tls.is_some() {
            sha2::clear_password(&answer).map(Secret::new)
        } else {
            if answer == [sha2::SEND_PUBLIC_KEY] {
                let public = self.with_key(|shared| shared.password_key.public().map(str::to_owned)).await;
                let Some(public) = public else { return Ok(false) };
                self.say(public.as_bytes());
                answer = self.next_packet().await?;
            }
            // A password in clear text is never taken here, even if it came.
            let nonce = *nonce;
            self.with_key(move |shared| shared.password_key.reveal(&answer, &nonce)).await.map(Secret::new)
        };
        match password {
            Some(password) => Ok(self.shared.hooks.check_password(self.user, self.host, &password).await),
            None => Ok(false),
        }
    }

    /// Works with the key, which takes time, beside the runtime.
    async fn with_key<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(self.shared);
        let worked = tokio::task::spawn_blocking(move || work(&shared)).await;
        worked.ok().flatten()
    }

    /// Sends a word of the plugin.
    fn say(&self, word: &[u8]) {
        self.link.out.with(|pending| {
            pending.packet(|out| {
                out.push(1);
                out.extend_from_slice(word);
            });
        });
    }

    async fn next_packet(&mut self) -> Result<Vec<u8>, ProtocolError> {
        let packet = self.link.handshake_packet(self.sequence.wrapping_add(2)).await?;
        self.sequence = packet.sequence;
        self.link.answer_to(packet.sequence);
        Ok(self.link.reader.payload(packet).to_vec())
    }
}

/// Whether the proof is the one of an empty password.
fn is_without_password(response: &[u8]) -> bool {
    matches!(response, [] | [0])
}

/// Whether the client says that it is one of MySQL's own that have no `mysql_native_password` any more.
fn lacks_native(credentials: &Credentials) -> bool {
    let value =
        |name: &str| credentials.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let is_mysqls = value("_client_name").is_some_and(|name| name == "libmysql")
        || value("_connector_name").is_some_and(|name| name.starts_with("mysql-connector"));
    let version = value("_connector_version").or_else(|| value("_client_version"));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    is_mysqls && major.is_some_and(|major| major >= WITHOUT_NATIVE)
}

fn write_auth_switch(out: &mut Vec<u8>, plugin: AuthPlugin, nonce: &Nonce) {
    out.push(0xfe);
    out.extend_from_slice(plugin.name().as_bytes());
    out.push(0);
    out.extend_from_slice(nonce);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::io::ParseBuf;
    use mysql_common::packets::{AuthPlugin as Plugin, AuthSwitchRequest};
    use mysql_common::proto::MyDeserialize;

    #[test]
    fn a_client_reads_the_request_to_switch_plugins() {
        for (plugin, read) in [
            (AuthPlugin::Native, Plugin::MysqlNativePassword),
            (AuthPlugin::CachingSha2, Plugin::CachingSha2Password),
        ] {
            let nonce = fresh_nonce();
            let mut bytes = Vec::new();
            write_auth_switch(&mut bytes, plugin, &nonce);
            let seen = AuthSwitchRequest::deserialize((), &mut ParseBuf(&bytes)).unwrap();
            assert_eq!(seen.auth_plugin(), read);
            assert_eq!(seen.plugin_data()[..20], nonce);
        }
    }

    #[test]
    fn mysqls_own_clients_say_that_they_have_no_native_plugin() {
        let lacks = |attributes: &[(&str, &str)]| {
            let attributes =
                attributes.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            lacks_native(&Credentials { attributes, ..Credentials::default() })
        };
        assert!(lacks(&[("_client_name", "libmysql"), ("_client_version", "9.4.0")]));
        assert!(lacks(&[("_connector_name", "mysql-connector-python"), ("_connector_version", "26.10.0")]));
        assert!(!lacks(&[("_client_name", "libmysql"), ("_client_version", "8.4.6")]));
        assert!(!lacks(&[("_client_name", "libmariadb"), ("_client_version", "10.11.19")]));
        assert!(!lacks(&[("_client_name", "MySQL Connector/J"), ("_client_version", "9.4.0")]));
        assert!(!lacks(&[("_client_name", "libmysql")]) && !lacks(&[]));
    }
}
