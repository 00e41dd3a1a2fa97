//! Logins with a password in clear text, or with a token, as HTTP and Flight SQL have them.
//!
//! Not its business: proofs of passwords, which MySQL's protocol has.

use crate::access::finished::{Door, Failure, FinishedRequest, Stated};
use crate::access::{Object, Privilege};
use crate::engine::Engine;
use std::net::IpAddr;
use std::time::Instant;
use tributary_types::{Principal, Secret, SqlError, TlsSession, TokenHash};

/// The identity that a client claims.
pub(super) struct Claimed<'a> {
    /// The entry point of its login.
    pub door: Door,
    /// Without Doris's old suffix `@cluster`. Empty with a token, which knows its user.
    pub user: &'a str,
    /// A password, or a token.
    pub password: &'a Secret,
}

/// Checks a client's password or token, and that it may connect. A refusal is recorded.
///
/// # Errors
/// See [`crate::access::logins::Logins::check`]; or no privilege.
pub(super) async fn authenticate(
    engine: &Engine,
    claimed: Claimed<'_>,
    ip: IpAddr,
    tls: Option<&TlsSession>,
) -> Result<Principal, SqlError> {
    let begun = Instant::now();
    let Claimed { door, user, password } = claimed;
    let checked = match TokenHash::of(password.reveal()) {
        Some(token) => engine.logins.check_token(user, ip, token, tls).await.map(Some),
        None => engine.logins.check(user, ip, password, tls).await.map(|()| None),
    };
    let allowed = checked.and_then(|token| {
        let host = ip.to_string();
        let principal = match token {
            None => engine.gate.principal(user, &host),
            Some((of, limit)) => {
                let principal = engine.gate.principal_of(&of, &host);
                limit.map_or(principal.clone(), |limit| principal.limited_to(limit))
            }
        };
        engine.gate.check(&principal, Privilege::Connect, Object::Server)?;
        Ok(principal)
    });
    allowed.inspect_err(|error| refused(engine, (door, user), ip, begun, error))
}

/// Records a login that was refused.
fn refused(engine: &Engine, (door, user): (Door, &str), ip: IpAddr, begun: Instant, error: &SqlError) {
    let host = ip.to_string();
    let principal = engine.gate.principal(user, &host);
    let request = FinishedRequest {
        is_known: engine.catalog.find_user(user, &host).is_some(),
        error: Some(Failure::from(error)),
        ..FinishedRequest::new(&principal, door, Stated::Plain("LOGIN", "LOGIN"), begun.elapsed())
    };
    engine.requests.finished(&request, None);
}
