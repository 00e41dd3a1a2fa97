//! Tables in a bucket of S3, or of a store that speaks its protocol.
//!
//! Invariant: no key or token is in an error or in the output of `Debug`. A request that the store throttles or does not answer is
//! sent again for half of the time that a call may take, so that a busy store slows its callers down and fails none.
//!
//! Not its business: whether the bucket belongs to this server ([`crate::TableStore::claim`]).

use super::cache::ReadCache;
use super::remote::Remote;
use super::traffic::{Counted, StoreTraffic};
use super::uploads::{Uploads, listed_uploads};
use crate::error::TableError;
use crate::options::StoreOptions;
use crate::place::storage::{ObjectStorage, TableStorage};
use crate::place::store::TableStore;
use async_trait::async_trait;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{ClientConfigKey, HttpConnector};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::Secret;
use url::{Host, Url};

/// The region of stores that have none.
const REGION_DEFAULT: &str = "us-east-1";
/// More retries than their time allows.
const RETRIES_MAX: usize = 100;
/// The longest pause between two of them.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;

/// A bucket and the beginning of its keys: `s3://bucket/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Location {
    bucket: String,
    /// Without slashes at its ends; may be empty.
    prefix: String,
}

impl FromStr for S3Location {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (scheme, rest) = text.split_once("://").ok_or(())?;
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
        (scheme.eq_ignore_ascii_case("s3") && is_bucket && is_prefix)
            .then(|| Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
            .ok_or(())
    }
}

impl std::fmt::Display for S3Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.prefix.as_str() {
            "" => write!(f, "s3://{}", self.bucket),
            prefix => write!(f, "s3://{}/{prefix}", self.bucket),
        }
    }
}

/// Where tables are in S3, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Options {
    pub location: S3Location,
    /// `http://` or `https://`, a host and a port. `None`: that of AWS, or of the environment.
    pub endpoint: Option<Url>,
    pub region: Option<String>,
    /// Empty, as `secret_key`: the credentials of the environment or of the machine.
    pub access_key: Secret,
    pub secret_key: Secret,
    /// May be empty.
    pub session_token: Secret,
    /// Whether the bucket is in the path of requests and not in the host.
    pub path_style: bool,
    /// Whether requests to other machines may go without TLS.
    pub allow_http: bool,
}

impl TableStore {
    /// A root in S3. No request is sent yet. Opens the read cache, if the options name one.
    ///
    /// # Errors
    /// [`TableError::StoreUnfit`]: what was given cannot be used together. [`TableError::BadOption`], [`TableError::Local`].
    pub fn s3(given: &S3Options, options: StoreOptions) -> Result<Self, TableError> {
        let text = given.location.to_string();
        let url = Url::parse(&text)
            .map_err(|error| TableError::BadRoot { url: text.clone(), reason: error.to_string() })?;
        let cache = match &options.read_cache {
            Some(options) => Some(Arc::new(ReadCache::open(options)?)),
            None => None,
        };
        let storage = S3Storage::new(given, &url, options.call_timeout, cache.clone())?;
        let mut store = Self::with_storage(Arc::new(storage), url, options)?;
        store.cache = cache;
        Ok(store)
    }
}

/// A bucket.
struct S3Storage {
    objects: ObjectStorage,
    store: Arc<AmazonS3>,
    /// The address of the bucket.
    bucket_url: Url,
    region: String,
    client: ClientOptions,
    connector: Counted,
}

impl S3Storage {
    fn new(
        given: &S3Options,
        url: &Url,
        call_timeout: Duration,
        cache: Option<Arc<ReadCache>>,
    ) -> Result<Self, TableError> {
        let unfit = |reason: String| TableError::StoreUnfit { url: given.location.to_string(), reason };
        let S3Options { access_key, secret_key, .. } = given;
        if access_key.is_empty() != secret_key.is_empty() {
            return Err(unfit(
                "of table_storage_access_key and table_storage_secret_key there is one; set both, or none for \
                 the credentials of the environment or of the machine"
                    .to_owned(),
            ));
        }
        let mut builder = match access_key.is_empty() {
            true => AmazonS3Builder::from_env(),
            // Nothing of the environment is mixed with them, such as the token of other keys.
            false => AmazonS3Builder::new()
                .with_access_key_id(access_key.reveal())
                .with_secret_access_key(secret_key.reveal()),
        };
        if !given.session_token.is_empty() {
            builder = builder.with_token(given.session_token.reveal());
        }
        let known = |key| builder.get_config_value(&key).filter(|text| !text.is_empty());
        let region = given.region.clone().or_else(|| known(AmazonS3ConfigKey::Region));
        let region = region.or_else(|| known(AmazonS3ConfigKey::DefaultRegion));
        let region = region.unwrap_or_else(|| REGION_DEFAULT.to_owned());
        let endpoint = match &given.endpoint {
            Some(endpoint) => Some(endpoint.clone()),
            None => match known(AmazonS3ConfigKey::S3Endpoint).or_else(|| known(AmazonS3ConfigKey::Endpoint))
            {
                Some(text) => Some(Url::parse(&text).map_err(|error| {
                    unfit(format!("the endpoint '{text}' of the environment is no URL: {error}"))
                })?),
                None => None,
            },
        };
        let has_tls = endpoint.as_ref().is_none_or(|endpoint| endpoint.scheme() == "https");
        let allow_http = given.allow_http
            || known(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)).as_deref() == Some("true");
        if !has_tls && !allow_http && !endpoint.as_ref().is_some_and(is_loopback) {
            return Err(unfit(
                "its endpoint is on another machine and has no TLS: rows and keys could be read on the way. Name an \
                 https:// endpoint, or set table_storage_allow_http = true"
                    .to_owned(),
            ));
        }
        let client = ClientOptions::new()
            .with_allow_http(!has_tls)
            .with_timeout(half(call_timeout))
            .with_connect_timeout(CONNECT_MAX.min(half(call_timeout)));
        let bucket_url = bucket_url(given, endpoint.as_ref(), &region)
            .ok_or_else(|| unfit("the bucket and the endpoint are no address together".to_owned()))?;
        let bucket_text = bucket_url.as_str().trim_end_matches('/').to_owned();
        let connector = Counted::default();
        let store = builder
            .with_http_connector(connector.clone())
            .with_bucket_name(&given.location.bucket)
            .with_region(&region)
            // The address as it is, with the bucket.
            .with_config(AmazonS3ConfigKey::S3Endpoint, &bucket_text)
            .with_virtual_hosted_style_request(true)
            .with_client_options(client.clone())
            .with_retry(RetryConfig {
                backoff: BackoffConfig { max_backoff: PAUSE_MAX, ..BackoffConfig::default() },
                max_retries: RETRIES_MAX,
                retry_timeout: half(call_timeout),
            })
            .build()
            .map_err(|error| unfit(error.to_string()))?;
        let store = Arc::new(store);
        let remote = Remote::new(Arc::clone(&store) as Arc<dyn ObjectStore>, cache);
        let objects = ObjectStorage { objects: Arc::new(remote), url: url.clone() };
        Ok(Self { objects, store, bucket_url, region, client, connector })
    }
}

/// The address to which the keys of the bucket are added.
fn bucket_url(given: &S3Options, endpoint: Option<&Url>, region: &str) -> Option<Url> {
    let bucket = &given.location.bucket;
    let (mut url, in_path) = match endpoint {
        Some(endpoint) => {
            (endpoint.clone(), given.path_style || !matches!(endpoint.host(), Some(Host::Domain(_))))
        }
        // A certificate for all buckets fits none with a dot.
        None => (Url::parse(&format!("https://s3.{region}.amazonaws.com")).ok()?, true),
    };
    if in_path {
        url.path_segments_mut().ok()?.pop_if_empty().push(bucket);
    } else {
        let host = format!("{bucket}.{}", url.host_str()?);
        url.set_host(Some(&host)).ok()?;
    }
    Some(url)
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

#[async_trait]
impl TableStorage for S3Storage {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.objects()
    }

    fn direct(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Remote::new(Arc::clone(&self.store) as Arc<dyn ObjectStore>, None))
    }

    fn traffic(&self) -> Option<StoreTraffic> {
        Some(self.connector.traffic())
    }

    async fn abort_uploads(&self, prefix: &Path) -> Result<usize, TableError> {
        let failed =
            |doing: &str| TableError::storage(format!("{doing} unfinished uploads below '{prefix}'"));
        let client = self.connector.connect(&self.client).map_err(failed("listing"))?;
        let credential = self.store.credentials().get_credential().await.map_err(failed("listing"))?;
        // Not of a prefix that only begins alike.
        let prefix = format!("{prefix}/");
        let mut after = None;
        let mut aborted = 0;
        loop {
            let listed =
                listed_uploads(&client, &self.bucket_url, &credential, &self.region, &prefix, after.as_ref());
            let Uploads { uploads, next } = listed.await.map_err(failed("listing"))?;
            // A store that lists all, whatever the prefix, gives those of others, too.
            for upload in uploads.iter().filter(|upload| upload.path.as_ref().starts_with(&prefix)) {
                match self.store.abort_multipart(&upload.path, &upload.id).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => aborted += 1,
                    Err(error) => return Err(failed("aborting")(error)),
                }
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(aborted),
            }
        }
    }

    fn shown(&self, path: &Path) -> String {
        self.objects.shown(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: &str) -> S3Options {
        S3Options {
            location: "s3://bucket/a/b".parse().expect("a location"),
            endpoint: Some(Url::parse(endpoint).expect("a URL")),
            region: None,
            access_key: Secret::new("key"),
            secret_key: Secret::new("hush"),
            session_token: Secret::default(),
            path_style: true,
            allow_http: false,
        }
    }

    #[test]
    fn a_location_is_a_bucket_and_plain_names() {
        for (text, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("S3://my.bucket-1/a/b=1/", "s3://my.bucket-1/a/b=1"),
        ] {
            assert_eq!(text.parse::<S3Location>().expect(text).to_string(), shown);
        }
        for text in [
            "bucket",
            "gs://bucket/a",
            "az://bucket/a",
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
            assert!(text.parse::<S3Location>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_host() {
        let url = |options: &S3Options| {
            bucket_url(options, options.endpoint.as_ref(), "eu-west-1").expect("an address").to_string()
        };
        let mut given = options("https://store.example.com:9000");
        assert_eq!(url(&given), "https://store.example.com:9000/bucket");
        given.path_style = false;
        assert_eq!(url(&given), "https://bucket.store.example.com:9000/");
        given.endpoint = Some(Url::parse("http://127.0.0.1:9000").expect("a URL"));
        assert_eq!(url(&given), "http://127.0.0.1:9000/bucket", "an address has no names below it");
        given.endpoint = None;
        assert_eq!(url(&given), "https://s3.eu-west-1.amazonaws.com/bucket");
    }

    #[test]
    fn requests_without_tls_stay_on_this_machine_unless_they_are_allowed() {
        let opened = |options: &S3Options| TableStore::s3(options, StoreOptions::default()).map(drop);
        let mut given = options("http://store.example.com");
        let refused = opened(&given).unwrap_err().to_string();
        assert!(refused.contains("table_storage_allow_http") && !refused.contains("hush"), "{refused}");
        given.allow_http = true;
        opened(&given).expect("allowed");
        for local in
            ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "https://store.example.com"]
        {
            opened(&options(local)).expect(local);
        }
    }

    #[test]
    fn one_key_of_two_is_refused() {
        let given = S3Options { secret_key: Secret::default(), ..options("http://127.0.0.1:9") };
        let refused = TableStore::s3(&given, StoreOptions::default()).map(drop).unwrap_err().to_string();
        assert!(refused.contains("table_storage_secret_key"), "{refused}");
        assert!(!format!("{:?}", options("http://127.0.0.1:9")).contains("hush"));
    }
}
