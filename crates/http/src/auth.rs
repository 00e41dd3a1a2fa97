//! Basic and Bearer authentication: from the header to a user and a password, or a token, which stands in the place of one.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

/// A client's claimed identity.
pub(crate) struct Credentials {
    /// Without Doris's old suffix `@cluster`. Empty with Bearer: the token knows its user.
    pub(crate) user: String,
    pub(crate) password: String,
}

/// Reads the credentials of a request; `None` if they are missing or malformed.
pub(crate) fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials { user: String::new(), password: encoded.trim().to_owned() });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let encoded = encoded.trim();
    let decoded = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    let user = user.split_once('@').map_or(user, |(user, _cluster)| user);
    Some(Credentials { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        credentials(&headers).map(|credentials| (credentials.user, credentials.password))
    }

    #[test]
    fn a_password_may_hold_colons_and_a_user_may_name_its_cluster() {
        let encoded = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(read(&encoded("root:")), Some(("root".into(), String::new())));
        assert_eq!(read(&encoded("ann:a:b@c")), Some(("ann".into(), "a:b@c".into())));
        assert_eq!(read(&encoded("root@default_cluster:x")), Some(("root".into(), "x".into())));
        assert_eq!(read("basic cm9vdDo"), Some(("root".into(), String::new())));
    }

    #[test]
    fn a_token_comes_without_a_user_or_in_the_place_of_a_password() {
        assert_eq!(read("Bearer trb_1"), Some((String::new(), "trb_1".into())));
        assert_eq!(read("bearer  trb_1 "), Some((String::new(), "trb_1".into())));
        let encoded = format!("Basic {}", STANDARD.encode("ann:trb_1"));
        assert_eq!(read(&encoded), Some(("ann".into(), "trb_1".into())));
    }

    #[test]
    fn garbled_credentials_are_none() {
        for value in ["Digest cm9vdDo=", "Bearer", "Basic", "Basic !!!", "Basic cm9vdA=="] {
            assert_eq!(read(value), None, "{value}");
        }
        assert!(credentials(&HeaderMap::new()).is_none());
    }
}
