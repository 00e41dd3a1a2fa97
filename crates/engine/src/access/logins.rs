//! Passwords: how they are stored, checked and guessed at.
//!
//! Every door checks passwords here, so that a failure at one counts at all. What is stored needs thousands of rounds to check; a
//! password that was right once is remembered as a hash in memory, and checked with two.
//!
//! | file | what it has |
//! | --- | --- |
//! | `stored` | what is stored of a new password |
//! | `proven` | passwords that were right |
//! | `delays` | the time that failures cost |
//!
//! Not here: packets and headers, and what a user may do.

mod delays;
mod proven;
mod stored;

use delays::Delays;
use proven::{Proven, hash_of};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tributary_catalog::{Catalog, User};
use tributary_types::password::PASSWORD_BYTES_MAX;
use tributary_types::{
    AuthPlugin, ErrorCode, NewPassword, PasswordHash, Secret, SqlError, StoredVerifiers, TlsSession,
    Verifiers,
};

/// Slow checks at a time: a flood of logins must leave processors to the others.
const CHECKS_MAX: usize = 2;
/// A client that would have to wait longer is refused.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The passwords of a server's users.
pub(crate) struct Logins {
    catalog: Arc<Catalog>,
    stored: StoredVerifiers,
    proven: Proven,
    delays: Delays,
    checks: Arc<Semaphore>,
}

impl Logins {
    pub fn new(catalog: Arc<Catalog>, stored: StoredVerifiers) -> Self {
        Self {
            catalog,
            stored,
            proven: Proven::default(),
            delays: Delays::default(),
            checks: Arc::new(Semaphore::new(CHECKS_MAX)),
        }
    }

    /// Makes what is stored of a new password.
    ///
    /// # Errors
    /// The password is too long, or the server does not store what it would need.
    pub async fn verifiers(&self, password: NewPassword) -> Result<Verifiers, SqlError> {
        if let NewPassword::Clear { text, .. } = &password
            && text.reveal().len() > PASSWORD_BYTES_MAX
        {
            let text = format!(
                "the password has {} bytes: clients can prove at most {PASSWORD_BYTES_MAX}",
                text.reveal().len()
            );
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        let kinds = self.stored;
        tokio::task::spawn_blocking(move || stored::of(kinds, &password)).await.map_err(internal)?
    }

    /// The user that a client means.
    pub fn find(&self, user: &str, host: &str) -> Option<Arc<User>> {
        self.catalog.find_user(user, host)
    }

    /// `SHA256(SHA256(password))` of a user whose password was seen.
    pub fn proven(&self, user: &User) -> Option<[u8; 32]> {
        self.proven.of(user)
    }

    /// Whether this is the password of the user. Takes as long for one that does not exist.
    pub async fn is_password(&self, user: Option<&User>, password: &Secret) -> bool {
        let text = password.reveal();
        if text.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let Some(user) = user else {
            if !self.stored.has(AuthPlugin::Native) && !text.is_empty() {
                let nobodys = Verifiers { native: PasswordHash::EMPTY, salted: Some(stored::nobodys()) };
                self.slowly(nobodys, password).await;
            }
            return false;
        };
        if user.password.is_empty() || text.is_empty() {
            return user.password.is_empty() && text.is_empty();
        }
        let hash = hash_of(text);
        if let Some(proven) = self.proven.of(user) {
            return proven == hash;
        }
        let is_right = if user.password.native.is_empty() {
            self.slowly(user.password.clone(), password).await
        } else {
            stored::is_native(&user.password.native, text)
        };
        if is_right {
            self.proven.remember(user, hash);
        }
        is_right
    }

    /// Checks a password in clear text, as HTTP has it. `tls` is the connection's encryption.
    ///
    /// # Errors
    /// [`ErrorCode::AccessDenied`].
    pub async fn check(
        &self,
        user: &str,
        address: IpAddr,
        password: &Secret,
        tls: Option<&TlsSession>,
    ) -> Result<(), SqlError> {
        self.may_try(user, address).await?;
        let host = address.to_string();
        let found = self.find(user, &host);
        let is_right = self.is_password(found.as_deref(), password).await
            && found.is_some_and(|user| user.account.require.allows(tls));
        self.ended(user, address, is_right);
        if is_right {
            return Ok(());
        }
        let using = if password.is_empty() { "NO" } else { "YES" };
        Err(SqlError::new(
            ErrorCode::AccessDenied,
            format!("Access denied for user '{user}'@'{host}' (using password: {using})"),
        ))
    }

    /// Waits for as long as earlier failures of this user and address demand.
    ///
    /// # Errors
    /// It would be longer than [`WAIT_MAX`].
    pub async fn may_try(&self, user: &str, address: IpAddr) -> Result<(), SqlError> {
        let Some(wait) = self.delays.wait(user, address, Instant::now()) else { return Ok(()) };
        if wait > WAIT_MAX {
            let seconds = wait.as_secs() + 1;
            return Err(SqlError::new(
                ErrorCode::AccessDenied,
                format!(
                    "Access denied for user '{user}'@'{address}': too many failed logins from this address, try again in \
                     {seconds} s"
                ),
            ));
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Counts a login that has ended.
    pub fn ended(&self, user: &str, address: IpAddr, is_right: bool) {
        if is_right {
            self.delays.succeeded(user, address);
        } else {
            self.delays.failed(user, address, Instant::now());
        }
    }

    async fn slowly(&self, verifiers: Verifiers, password: &Secret) -> bool {
        let Ok(_turn) = Arc::clone(&self.checks).acquire_owned().await else { return false };
        let password = password.clone();
        let checked = tokio::task::spawn_blocking(move || {
            verifiers.salted.is_some_and(|salted| stored::is_salted(&salted, password.reveal()))
        });
        checked.await.unwrap_or(false)
    }
}

fn internal(error: tokio::task::JoinError) -> SqlError {
    SqlError::new(ErrorCode::Unknown, format!("internal error: {error}"))
}

#[cfg(test)]
mod tests;
