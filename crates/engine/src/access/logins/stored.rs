//! The stored forms of passwords: made, and compared with a password in clear text.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::pbkdf2;
use std::num::NonZeroU32;
use tributary_types::password::SALT_BYTES;
use tributary_types::{
    AuthPlugin, ErrorCode, NewPassword, PasswordHash, SaltedHash, SqlError, StoredVerifiers, Verifiers,
};

/// Rounds of a new [`SaltedHash`]: some milliseconds of a processor.
const ITERATIONS: u32 = 20_000;

/// Makes the stored form. Takes milliseconds.
///
/// # Errors
/// `kinds` excludes what the password would need.
pub(super) fn of(kinds: StoredVerifiers, password: &NewPassword) -> Result<Verifiers, SqlError> {
    match password {
        password if password.is_empty() => Ok(Verifiers::EMPTY),
        NewPassword::Hash(hash) => {
            check(kinds, AuthPlugin::Native)?;
            Ok((*hash).into())
        }
        NewPassword::Clear { text, plugin } => {
            if let Some(plugin) = plugin {
                check(kinds, *plugin)?;
            }
            let has = |which: AuthPlugin| match plugin {
                Some(plugin) => *plugin == which,
                None => kinds.has(which),
            };
            let mut verifiers = Verifiers::EMPTY;
            if has(AuthPlugin::Native) {
                verifiers.native = PasswordHash::of(text.reveal());
            }
            if has(AuthPlugin::CachingSha2) {
                verifiers.salted = Some(salted(text.reveal())?);
            }
            Ok(verifiers)
        }
    }
}

fn check(kinds: StoredVerifiers, plugin: AuthPlugin) -> Result<(), SqlError> {
    if kinds.has(plugin) {
        return Ok(());
    }
    Err(SqlError::detail(
        ErrorCode::Unknown,
        format!("this server stores nothing for {} (setting password_verifiers)", plugin.name()),
    ))
}

fn salted(password: &str) -> Result<SaltedHash, SqlError> {
    let mut salt = [0; SALT_BYTES];
    let unavailable =
        |_| SqlError::new(ErrorCode::Unknown, "internal error: the machine gives no random numbers");
    aws_lc_rs::rand::fill(&mut salt).map_err(unavailable)?;
    Ok(SaltedHash { iterations: ITERATIONS, salt, hash: derive(ITERATIONS, &salt, password) })
}

/// A hash that takes as long to compare as others, and is nobody's.
pub(super) const fn nobodys() -> SaltedHash {
    SaltedHash { iterations: ITERATIONS, salt: [0; SALT_BYTES], hash: [0; 32] }
}

pub(super) fn is_salted(salted: &SaltedHash, password: &str) -> bool {
    let hash = derive(salted.iterations, &salted.salt, password);
    verify_slices_are_equal(&hash, &salted.hash).is_ok()
}

pub(super) fn is_native(hash: &PasswordHash, password: &str) -> bool {
    match (hash.0, PasswordHash::of(password).0) {
        (Some(stored), Some(given)) => verify_slices_are_equal(&stored, &given).is_ok(),
        (None, None) => true,
        _ => false,
    }
}

fn derive(iterations: u32, salt: &[u8], password: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    let iterations = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::Secret;

    fn clear(text: &str, plugin: Option<AuthPlugin>) -> NewPassword {
        NewPassword::Clear { text: Secret::new(text), plugin }
    }

    #[test]
    fn a_password_is_stored_for_the_plugins_of_the_setting_or_of_the_statement() {
        for (kinds, plugin, native, sha2) in [
            (StoredVerifiers::Both, None, true, true),
            (StoredVerifiers::Sha2, None, false, true),
            (StoredVerifiers::Native, None, true, false),
            (StoredVerifiers::Both, Some(AuthPlugin::Native), true, false),
            (StoredVerifiers::Both, Some(AuthPlugin::CachingSha2), false, true),
        ] {
            let verifiers = of(kinds, &clear("secret", plugin)).expect("it is stored");
            assert_eq!(!verifiers.native.is_empty(), native, "{kinds:?} {plugin:?}");
            assert_eq!(verifiers.salted.is_some(), sha2, "{kinds:?} {plugin:?}");
            if let Some(salted) = &verifiers.salted {
                assert!(is_salted(salted, "secret") && !is_salted(salted, "Secret"));
            }
            assert!(!native || is_native(&verifiers.native, "secret"));
        }
        assert_eq!(of(StoredVerifiers::Both, &clear("", None)), Ok(Verifiers::EMPTY));
    }

    #[test]
    fn a_plugin_that_the_setting_excludes_is_refused() {
        let hash = NewPassword::Hash(PasswordHash::of("secret"));
        for password in [hash, clear("x", Some(AuthPlugin::Native))] {
            let error = of(StoredVerifiers::Sha2, &password).expect_err("it is not stored");
            assert!(error.message.contains("nothing for mysql_native_password"), "{error}");
        }
        assert!(of(StoredVerifiers::Native, &clear("x", Some(AuthPlugin::CachingSha2))).is_err());
    }

    #[test]
    fn equal_passwords_are_stored_differently() {
        let salted = || of(StoredVerifiers::Sha2, &clear("x", None)).expect("it is stored").salted;
        assert_ne!(salted(), salted());
    }
}
