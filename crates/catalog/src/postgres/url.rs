//! The address of a database of PostgreSQL, as its URL says it.
//!
//! Invariant: it has no password, so it can be shown.

use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use tributary_types::Secret;
use url::Url;

const PORT: u16 = 5432;

/// A database of PostgreSQL: `postgres://user@host:port/database`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresUrl {
    pub(crate) user: String,
    /// A name, an address, or the directory of a socket.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) encryption: Encryption,
}

/// Whether a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    No,
    /// By a certificate for the host, which these certificates have signed. `None`: the ones that the machine trusts.
    Verified {
        roots: Option<PathBuf>,
    },
}

/// The database and the password of its user, if it needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    pub url: PostgresUrl,
    pub password: Secret,
}

/// A text that is no address of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPostgresUrl(&'static str);

impl FromStr for PostgresUrl {
    type Err = BadPostgresUrl;

    fn from_str(text: &str) -> Result<Self, BadPostgresUrl> {
        let url = Url::parse(text).map_err(|_| BadPostgresUrl("it is no URL"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(BadPostgresUrl("it does not begin with postgres://"));
        }
        if url.password().is_some() {
            return Err(BadPostgresUrl("it has a password, which belongs in the setting catalog_password"));
        }
        let decoded = |part: &str| {
            let text = percent_decode_str(part).decode_utf8();
            text.map(String::from).map_err(|_| BadPostgresUrl("a part of it is not UTF-8"))
        };
        let user = decoded(url.username())?;
        let database = decoded(url.path().trim_start_matches('/'))?;
        if user.is_empty() || database.is_empty() || database.contains('/') {
            return Err(BadPostgresUrl("it needs a user and a database: postgres://user@host:port/database"));
        }
        let host = url.host_str().unwrap_or_default();
        let mut host = decoded(host.trim_start_matches('[').trim_end_matches(']'))?;
        let (mut mode, mut roots) = (None, None);
        for (name, value) in url.query_pairs() {
            match &*name {
                "host" if host.is_empty() && value.starts_with('/') => host = value.into_owned(),
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => roots = Some(PathBuf::from(value.into_owned())),
                _ => {
                    return Err(BadPostgresUrl(
                        "its parameters can be sslmode, sslrootcert, and host with a socket's directory",
                    ));
                }
            }
        }
        if host.is_empty() {
            return Err(BadPostgresUrl("it names no host"));
        }
        let encryption = match mode.as_deref() {
            Some("disable") => Encryption::No,
            None if roots.is_none() && is_here(&host) => Encryption::No,
            // `require` is stricter than PostgreSQL's own: without a check of the certificate, anyone on the way could answer.
            Some("require" | "verify-full") | None => Encryption::Verified { roots },
            Some(_) => {
                return Err(BadPostgresUrl(
                    "its sslmode can be disable, or verify-full, which `require` stands for, too",
                ));
            }
        };
        Ok(Self { user, host, port: url.port().unwrap_or(PORT), database, encryption })
    }
}

impl PostgresUrl {
    /// Whether passwords and definitions could be read on the way.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.encryption == Encryption::No && !is_here(&self.host)
    }
}

/// Whether what is sent to the host stays on this machine.
fn is_here(host: &str) -> bool {
    host.starts_with('/')
        || host == "localhost"
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, host, port, database, .. } = self;
        match host.contains(':') {
            true => write!(f, "postgres://{user}@[{host}]:{port}/{database}"),
            false => write!(f, "postgres://{user}@{host}:{port}/{database}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PostgresUrl, String> {
        text.parse().map_err(|error: BadPostgresUrl| error.to_string())
    }

    #[test]
    fn a_url_names_user_host_port_and_database() {
        let url = read("postgres://a%40b@db.example.com:6000/names").unwrap();
        assert_eq!(
            (&*url.user, &*url.host, url.port, &*url.database),
            ("a@b", "db.example.com", 6000, "names")
        );
        assert_eq!(url.encryption, Encryption::Verified { roots: None }, "of another machine");
        assert!(!url.is_open());
        let url = read("postgresql://u@[::1]/d").unwrap();
        assert_eq!((&*url.host, url.port, url.encryption.clone()), ("::1", 5432, Encryption::No));
        assert_eq!(url.to_string(), "postgres://u@[::1]:5432/d");
        let url = read("postgres:///d?host=/run/postgresql");
        assert!(url.unwrap_err().contains("needs a user"));
        let url = read("postgres://u@/d?host=/run/postgresql&sslmode=disable");
        // A URL with a user has a host.
        assert!(url.is_err(), "{url:?}");
    }

    #[test]
    fn encryption_is_off_only_where_it_is_said_or_on_this_machine() {
        let roots = Some(PathBuf::from("/a.pem"));
        for (parameters, expected) in [
            ("", Encryption::Verified { roots: None }),
            ("?sslmode=require", Encryption::Verified { roots: None }),
            ("?sslmode=verify-full&sslrootcert=/a.pem", Encryption::Verified { roots: roots.clone() }),
            ("?sslmode=disable", Encryption::No),
        ] {
            let url = read(&format!("postgres://u@db/d{parameters}")).unwrap();
            assert_eq!(url.encryption, expected, "{parameters}");
            assert_eq!(url.is_open(), parameters == "?sslmode=disable");
        }
        assert_eq!(
            read("postgres://u@127.0.0.1/d?sslrootcert=/a.pem").unwrap().encryption,
            Encryption::Verified { roots }
        );
        assert_eq!(read("postgres://u@localhost/d").unwrap().encryption, Encryption::No);
    }

    #[test]
    fn a_url_that_can_not_be_used_is_refused_with_its_fault() {
        for (text, fault) in [
            ("postgres://u:hush@h/d", "catalog_password"),
            ("mysql://u@h/d", "postgres://"),
            ("/data", "no URL"),
            ("postgres://h/d", "user and a database"),
            ("postgres://u@h", "user and a database"),
            ("postgres://u@h/d?sslmode=prefer", "verify-full"),
            ("postgres://u@h/d?application_name=x", "parameters"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(fault) && !told.contains("hush"), "{text}: {told}");
        }
    }
}
