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
//! | `tokens` | the tokens that stand for users |
//! | `policy` | the rules for passwords, and the users that failures have locked |
//!
//! Not here: packets and headers, and what a user may do.

mod delays;
mod policy;
mod proven;
mod stored;
mod tokens;

use crate::access::accounts::ROOT;
use crate::variables::Variables;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use delays::Delays;
use parking_lot::RwLock;
use policy::Locks;
use proven::{Proven, hash_of};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokens::Tokens;
use tokio::sync::Semaphore;
use tributary_catalog::{Catalog, ReplacedPassword, User};
use tributary_types::host::unix_ms;
use tributary_types::password::PASSWORD_BYTES_MAX;
use tributary_types::privilege::Grants;
use tributary_types::{
    ErrorCode, NewPassword, PasswordHash, Secret, SqlError, StoredToken, StoredVerifiers, TlsSession,
    TokenHash, Verifiers,
};

/// Slow checks at a time: a flood of logins must leave processors to the others.
fn checks_max() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(4))
}

/// The name under which wrong tokens are counted.
const NOBODY: &str = "";
/// A client that would have to wait longer is refused.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The passwords of a server's users.
pub(crate) struct Logins {
    catalog: Arc<Catalog>,
    stored: StoredVerifiers,
    proven: Proven,
    delays: Delays,
    locks: Locks,
    tokens: Arc<Tokens>,
    globals: Arc<RwLock<Variables>>,
    checks: Arc<Semaphore>,
}

impl Logins {
    pub fn new(catalog: Arc<Catalog>, stored: StoredVerifiers, globals: Arc<RwLock<Variables>>) -> Self {
        Self {
            catalog,
            stored,
            globals,
            locks: Locks::default(),
            tokens: Arc::default(),
            proven: Proven::default(),
            delays: Delays::default(),
            checks: Arc::new(Semaphore::new(checks_max())),
        }
    }

    /// Makes what replaces the password of a user; `None`: of one that is created. `history` is the one that the statement sets.
    ///
    /// # Errors
    /// The password is too long or too weak, was used before, or the server does not store what it would need.
    pub async fn replacement(
        &self,
        of: Option<Arc<User>>,
        history: Option<Option<u32>>,
        password: NewPassword,
    ) -> Result<ReplacedPassword, SqlError> {
        let (strength, default_history) = {
            let globals = self.globals.read();
            (globals.values().validate_password_policy, globals.values().password_history)
        };
        if strength == policy::STRONG {
            policy::check_strength(&password)?;
        }
        let mut remembered = 0;
        if let Some(user) = of {
            let mut user = User::clone(&user);
            user.account.policy.history = history.unwrap_or(user.account.policy.history);
            let is_off = user.account.policy.history.map_or(default_history, i64::from) == 0;
            remembered = policy::remembered(&user, default_history);
            let given = password.clone();
            let known = move || policy::is_known(&user, remembered, &given).then(|| policy::reused(&user));
            if !is_off && let Some(reused) = tokio::task::spawn_blocking(known).await.map_err(internal)? {
                return Err(reused);
            }
        }
        let password = if password.is_empty() { Verifiers::EMPTY } else { self.verifiers(password).await? };
        Ok(ReplacedPassword { password, set_at_ms: unix_ms(), history: remembered })
    }

    /// Checks that the user whose password was right may log in: that it has not expired.
    ///
    /// # Errors
    /// [`ErrorCode::PasswordExpired`].
    pub fn check_expiry(&self, user: &str, host: &str) -> Result<(), SqlError> {
        let Some(user) = self.find(user, host) else { return Ok(()) };
        let days = self.globals.read().values().default_password_lifetime;
        policy::check_expiry(&user, days, unix_ms())
    }

    /// Forgets the failed logins that have locked a user.
    pub fn unlock(&self, name: &str, host: &str) {
        self.locks.open(name, host);
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

    /// Whether this is the password of the user. Every wrong one takes as long, also that of a user who does not exist.
    pub async fn is_password(&self, user: Option<&User>, password: &Secret) -> bool {
        let text = password.reveal();
        if text.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let is_open = user.is_some_and(|user| user.password.is_empty());
        if is_open || text.is_empty() {
            return is_open && text.is_empty();
        }
        let hash = hash_of(text);
        let proven = user.and_then(|user| self.proven.of(user));
        if proven.is_some_and(|proven| verify_slices_are_equal(&proven, &hash).is_ok()) {
            return true;
        }
        let is_right = match user {
            Some(user) if proven.is_none() && user.password.native.is_empty() => {
                self.slowly(user.password.clone(), password).await
            }
            Some(user) if proven.is_none() && stored::is_native(&user.password.native, text) => true,
            _ => {
                let nobodys = Verifiers { native: PasswordHash::EMPTY, salted: Some(stored::nobodys()) };
                self.slowly(nobodys, password).await;
                false
            }
        };
        if let (true, Some(user)) = (is_right, user) {
            self.proven.remember(user, hash);
        }
        is_right
    }

    /// Checks a password in clear text, as HTTP has it. `tls` is the connection's encryption.
    ///
    /// # Errors
    /// [`ErrorCode::AccessDenied`], [`ErrorCode::AccountLocked`] or [`ErrorCode::PasswordExpired`].
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
            return self.check_expiry(user, &host);
        }
        let using = if password.is_empty() { "NO" } else { "YES" };
        Err(SqlError::new(
            ErrorCode::AccessDenied,
            format!("Access denied for user '{user}'@'{host}' (using password: {using})"),
        ))
    }

    /// Checks a token. `user` is the name that came with it, empty or that of the token's user; `tls` is the connection's encryption.
    /// Returns the user, and the rights that the token is limited to.
    ///
    /// # Errors
    /// [`ErrorCode::AccessDenied`].
    pub async fn check_token(
        &self,
        user: &str,
        address: IpAddr,
        hash: TokenHash,
        tls: Option<&TlsSession>,
    ) -> Result<(Arc<User>, Option<Arc<Grants>>), SqlError> {
        // Guesses are counted for nobody: no token has a name that a stranger could try.
        self.may_try(NOBODY, address).await?;
        let (host, now_ms) = (address.to_string(), unix_ms());
        let refused = |why: &str| {
            let text = format!("Access denied for user '{user}'@'{host}' (using token): {why}");
            SqlError::new(ErrorCode::AccessDenied, text)
        };
        let found = self.tokens.find(&self.catalog, &hash);
        let found = found.filter(|found| {
            let (of, _) = &**found;
            (user.is_empty() || user == of.name) && of.matches_host(&host) && of.account.require.allows(tls)
        });
        self.ended(NOBODY, address, found.is_some());
        let found = found.ok_or_else(|| refused("there is no such token of this user and address"))?;
        let (of, token) = &*found;
        if token.expires_at_ms.is_some_and(|end| end <= now_ms) {
            return Err(refused("it has expired, CREATE TOKEN makes another one"));
        }
        if self.tokens.used(token, now_ms) {
            let (catalog, found) = (Arc::clone(&self.catalog), Arc::clone(&found));
            // Unwatched: the next use after a while records it.
            tokio::spawn(async move {
                let (of, token) = &*found;
                if let Err(error) = catalog.token_used(&of.name, &of.host, &token.name, now_ms).await {
                    tracing::warn!(%error, token = %token.name, "the use of a token was not recorded");
                }
            });
        }
        Ok((Arc::new(of.clone()), token.limit.clone().map(Arc::new)))
    }

    /// When a token was used last, in milliseconds since 1970.
    pub fn last_use(&self, token: &StoredToken) -> Option<i64> {
        self.tokens.last_use(token)
    }

    /// Waits for as long as earlier failures of this user and address demand.
    ///
    /// # Errors
    /// It would be longer than [`WAIT_MAX`], or the user is locked.
    pub async fn may_try(&self, user: &str, address: IpAddr) -> Result<(), SqlError> {
        if let Some(user) = self.lockable(user, address) {
            self.locks.check(&user, Instant::now())?;
        }
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
        if let Some(user) = self.lockable(user, address) {
            self.locks.ended(&user, is_right, Instant::now());
        }
        if is_right {
            self.delays.succeeded(user, address);
        } else {
            self.delays.failed(user, address, Instant::now());
        }
    }

    /// The user, if failed logins lock it. From the machine itself they do not lock `root`: somebody has to be able to open locks.
    fn lockable(&self, user: &str, address: IpAddr) -> Option<Arc<User>> {
        let is_spared = user == ROOT && address.to_canonical().is_loopback();
        let found = if is_spared { None } else { self.find(user, &address.to_string()) };
        found.filter(|user| user.account.policy.locks().is_some())
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
