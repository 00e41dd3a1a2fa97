//! Where tables are in a store, and how it is reached.

use crate::error::TableError;
use crate::options::StoreOptions;
use crate::place::azure;
use crate::place::cache::ReadCache;
use crate::place::google;
use crate::place::s3::S3Storage;
use crate::place::storage::TableStorage;
use crate::place::store::TableStore;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::Secret;
use url::{Host, Url};

/// More retries than their time allows.
const RETRIES_MAX: usize = 100;
/// The longest pause between two of them.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;

/// The protocol of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    S3,
    /// Blobs of Azure, whose buckets are called containers.
    Azure,
    Google,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::S3, Self::Azure, Self::Google];

    const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Azure => "az",
            Self::Google => "gs",
        }
    }
}

/// A bucket and the beginning of its keys: `s3://bucket/prefix`, `az://container/prefix`, `gs://bucket/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocation {
    pub(super) protocol: Protocol,
    pub(super) bucket: String,
    /// Without slashes at its ends; may be empty.
    prefix: String,
}

impl FromStr for StoreLocation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (scheme, rest) = text.split_once("://").ok_or(())?;
        let protocol = Protocol::ALL.into_iter().find(|known| known.scheme().eq_ignore_ascii_case(scheme));
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_bucket = BUCKET_BYTES.contains(&bucket.len())
            && bucket
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte))
            && bucket.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_part = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_=".contains(&byte))
        };
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_part);
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        match protocol {
            Some(protocol) if is_bucket && is_prefix => Ok(Self { protocol, bucket, prefix }),
            _ => Err(()),
        }
    }
}

impl std::fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.protocol.scheme(), self.bucket)?;
        match self.prefix.as_str() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

/// Where tables are in a store, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    pub location: StoreLocation,
    /// `http://` or `https://`, a host and a port. `None`: that of the cloud, or of the environment.
    pub endpoint: Option<Url>,
    pub region: Option<String>,
    /// Of Azure the name of the account. Empty, as `secret_key`: the credentials of the environment or of the machine.
    pub access_key: Secret,
    /// Of Google the JSON of a service account's key.
    pub secret_key: Secret,
    /// May be empty.
    pub session_token: Secret,
    /// Whether the bucket is in the path of requests and not in the host.
    pub path_style: bool,
    /// Whether requests to other machines may go without TLS.
    pub allow_http: bool,
}

impl RemoteOptions {
    pub(super) fn unfit(&self, reason: impl Into<String>) -> TableError {
        TableError::StoreUnfit { url: self.location.to_string(), reason: reason.into() }
    }

    /// The endpoint that was given, or that of the environment. `None`: the cloud's own.
    ///
    /// # Errors
    /// The environment's is no URL.
    pub(super) fn endpoint_or(&self, of_environment: Option<String>) -> Result<Option<Url>, TableError> {
        let Some(text) = of_environment.filter(|_| self.endpoint.is_none()) else {
            return Ok(self.endpoint.clone());
        };
        let failed =
            |error| self.unfit(format!("the endpoint '{text}' of the environment is no URL: {error}"));
        Url::parse(&text).map(Some).map_err(failed)
    }

    /// Whether requests to the endpoint go without TLS.
    ///
    /// # Errors
    /// They do, and to another machine, which is not allowed.
    pub(super) fn goes_without_tls(
        &self,
        endpoint: Option<&Url>,
        is_allowed: bool,
    ) -> Result<bool, TableError> {
        let has_tls = endpoint.is_none_or(|endpoint| endpoint.scheme() == "https");
        if !has_tls && !is_allowed && !self.allow_http && !endpoint.is_some_and(is_loopback) {
            return Err(self.unfit(
                "its endpoint is on another machine and has no TLS: rows and keys could be read on the way. Name an \
                 https:// endpoint, or set table_storage_allow_http = true",
            ));
        }
        Ok(!has_tls)
    }
}

#[cfg(test)]
impl RemoteOptions {
    /// Options of tests, which send no request.
    pub(super) fn of_test(location: &str, endpoint: &str, access_key: &str, secret_key: &str) -> Self {
        Self {
            location: location.parse().expect("a location"),
            endpoint: Some(Url::parse(endpoint).expect("a URL")),
            region: None,
            access_key: Secret::new(access_key),
            secret_key: Secret::new(secret_key),
            session_token: Secret::default(),
            path_style: true,
            allow_http: false,
        }
    }
}

impl TableStore {
    /// A root in a store that is far away. No request is sent yet. Opens the read cache, if the options name one.
    ///
    /// # Errors
    /// [`TableError::StoreUnfit`]: what was given cannot be used together. [`TableError::BadOption`], [`TableError::Local`].
    pub fn remote(given: &RemoteOptions, options: StoreOptions) -> Result<Self, TableError> {
        let text = given.location.to_string();
        let url = Url::parse(&text)
            .map_err(|error| TableError::BadRoot { url: text.clone(), reason: error.to_string() })?;
        let cache = match &options.read_cache {
            Some(options) => Some(Arc::new(ReadCache::open(options)?)),
            None => None,
        };
        let storage: Arc<dyn TableStorage> = match given.location.protocol {
            Protocol::S3 => Arc::new(S3Storage::new(given, &url, options.call_timeout, cache.clone())?),
            Protocol::Azure => azure::storage(given, &url, options.call_timeout, cache.clone())?,
            Protocol::Google => google::storage(given, &url, options.call_timeout, cache.clone())?,
        };
        let mut store = Self::with_storage(storage, url, options)?;
        store.cache = cache;
        Ok(store)
    }
}

/// The client of a store whose calls may take that long, its repetitions included.
pub(super) fn client(call_timeout: Duration, without_tls: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(without_tls)
        .with_timeout(half(call_timeout))
        .with_connect_timeout(CONNECT_MAX.min(half(call_timeout)))
}

/// The repetitions of requests that the store throttles or does not answer.
pub(super) fn retries(call_timeout: Duration) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { max_backoff: PAUSE_MAX, ..BackoffConfig::default() },
        max_retries: RETRIES_MAX,
        retry_timeout: half(call_timeout),
    }
}

fn half(time: Duration) -> Duration {
    time / 2
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_bucket_and_plain_names() {
        for (text, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("S3://my.bucket-1/a/b=1/", "s3://my.bucket-1/a/b=1"),
            ("AZ://container/a", "az://container/a"),
            ("gs://bucket/a/b", "gs://bucket/a/b"),
        ] {
            assert_eq!(text.parse::<StoreLocation>().expect(text).to_string(), shown);
        }
        for text in [
            "bucket",
            "hdfs://bucket/a",
            "s3://",
            "s3:///a",
            "s3://b/a",
            "s3://Bucket/a",
            "s3://bucket/a//b",
            "s3://bucket/../b",
            "s3://bucket/a b",
            "s3://bucket/a?b",
            "s3://user@bucket/a",
            "s3://bucket:1/a",
        ] {
            assert!(text.parse::<StoreLocation>().is_err(), "{text}");
        }
    }
}
