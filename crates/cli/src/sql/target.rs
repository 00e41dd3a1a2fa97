//! Where and as whom a session connects.

use std::time::Duration;
use tributary_client::{Client, ClientError};

/// A server, a user and a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: String,
    pub database: Option<String>,
}

impl Target {
    /// Reads `mysql://[user@]host[:port][/database]`. The port is 9030 if the URL has none.
    pub fn parse(url: &str) -> Result<Self, String> {
        let rest = url
            .strip_prefix("mysql://")
            .ok_or_else(|| format!("the URL {url} does not begin with mysql://"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| format!("the URL {url} has no valid port"))?)
            }
            _ => (place, 9030),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("the URL {url} names no host"));
        }
        let database = Some(path.to_owned()).filter(|name| !name.is_empty());
        Ok(Self { host: host.to_owned(), port, user, password: String::new(), database })
    }

    pub fn connect(&self, patience: Option<Duration>) -> Result<Client, ClientError> {
        let user = self.user.as_deref().unwrap_or("root");
        let address = (self.host.as_str(), self.port);
        Client::connect_with(user, &self.password, address, self.database.as_deref(), patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_perhaps_more() {
        let parse =
            |url| Target::parse(url).map(|found| (found.host, found.port, found.user, found.database));
        assert_eq!(parse("mysql://h"), Ok(("h".to_owned(), 9030, None, None)));
        let whole = ("::1".to_owned(), 1, Some("u".to_owned()), Some("d".to_owned()));
        assert_eq!(parse("mysql://u@[::1]:1/d"), Ok(whole));
        assert!(parse("http://h").is_err() && parse("mysql://").is_err() && parse("mysql://h:x").is_err());
    }
}
