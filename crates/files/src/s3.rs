//! Files of S3 and of every store that speaks its protocol.

use crate::error::{FileError, cause};
use crate::options::{Properties, Secret};
use crate::outbound::{Outbound, Redirects};
use crate::pattern::Name;
use crate::place::{CONNECT_MAX, Chunks, FILES_MAX, FoundFile, IDLE_MAX, too_slow};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tributary_types::Egress;
use url::{Host, Url};

/// Doris's prefixes of property names, one for each vendor; the last is empty.
const PREFIXES: [&str; 9] = ["s3.", "minio.", "oss.", "cos.", "obs.", "gs.", "bos.", "tos.", ""];
const PROVIDERS: [&str; 12] =
    ["s3", "aws", "minio", "oss", "cos", "obs", "gcp", "gcs", "gs", "bos", "tos", "ceph"];
const SCHEMES: [&str; 9] = ["s3", "s3a", "s3n", "oss", "cos", "cosn", "obs", "gs", "minio"];
/// Domains of vendors, whose stores are accessed by HTTPS if the endpoint has no scheme.
const VENDORS: [&str; 6] = [
    ".amazonaws.com",
    ".aliyuncs.com",
    ".myqcloud.com",
    ".myhuaweicloud.com",
    ".googleapis.com",
    ".volces.com",
];
/// Properties of Doris that name what we do not have.
const REFUSED: [(&str, &str); 6] = [
    ("resource", "name the endpoint and the keys"),
    ("s3.role_arn", "give keys and a session token"),
    ("s3.external_id", "give keys and a session token"),
    ("s3.credentials_provider_type", "give keys and a session token"),
    ("aws.role_arn", "give keys and a session token"),
    ("aws.credentials_provider_type", "give keys and a session token"),
];
const REGION_DEFAULT: &str = "us-east-1";
const RETRIES_MAX: usize = 3;
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// Files of one bucket.
#[derive(Debug)]
pub struct S3Files {
    store: Arc<AmazonS3>,
    bucket: String,
    path: String,
    names: Vec<Name>,
    idle_max: Duration,
}

/// The parts of a URI.
#[derive(Debug, PartialEq, Eq)]
struct Location {
    /// The store's address, with its scheme, if the URI contains it.
    endpoint: Option<String>,
    bucket: String,
    key: String,
}

/// How a store is reached.
struct Reach {
    endpoint: Option<String>,
    region: Option<String>,
    access_key: Option<Secret>,
    secret_key: Option<Secret>,
    token: Option<Secret>,
    path_style: bool,
    connect_max: Duration,
    idle_max: Duration,
}

impl S3Files {
    pub(crate) fn new(
        uri: &str,
        properties: &mut Properties,
        egress: &Arc<Egress>,
    ) -> Result<Self, FileError> {
        let reach = Reach::take(properties)?;
        let location = locate(uri, &reach)?;
        let names = Name::all(&location.key)?;
        let store = reach.store(&location, egress)?;
        let Location { bucket, key, .. } = location;
        Ok(Self { store: Arc::new(store), bucket, path: key, names, idle_max: reach.idle_max })
    }

    fn shown(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    pub(crate) async fn find(&self) -> Result<Vec<FoundFile>, FileError> {
        let mut all = Vec::new();
        let mut is_there = false;
        let mut add = |key: &Path, size_bytes: u64| {
            is_there = true;
            if size_bytes > 0 {
                let key = key.as_ref().to_owned();
                all.push(FoundFile { name: self.shown(&key), key, size_bytes: Some(size_bytes) });
            }
            all.len()
        };
        let pattern = || self.shown(&self.path);
        let unlistable =
            |error: object_store::Error| FileError::Unlistable { pattern: pattern(), reason: reason(&error) };
        for name in &self.names {
            if let Some(plain) = name.plain() {
                match self.store.head(&key_of(plain)?).await {
                    Ok(meta) => drop(add(&meta.location, meta.size)),
                    Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(unlistable(error)),
                }
                continue;
            }
            let prefix = key_of(name.directory())?;
            let mut listed = self.store.list(Some(&prefix));
            while let Some(meta) = listed.try_next().await.map_err(unlistable)? {
                if name.matches(meta.location.as_ref()) && add(&meta.location, meta.size) > FILES_MAX {
                    return Err(FileError::TooMany { pattern: pattern(), limit: FILES_MAX });
                }
            }
        }
        if !is_there {
            return Err(FileError::NoFile { pattern: pattern() });
        }
        all.sort_by(|left, right| left.key.cmp(&right.key));
        all.dedup();
        Ok(all)
    }

    pub(crate) fn open(&self, file: &FoundFile) -> Chunks {
        let (store, name, idle_max) = (Arc::clone(&self.store), file.name.clone(), self.idle_max);
        let key = key_of(&file.key);
        let opened = async move {
            let unreadable = |error: &object_store::Error| FileError::Unreadable {
                file: name.clone(),
                reason: reason(error),
            };
            let opened = timeout(idle_max.max(RETRY_TIME_MAX), store.get(&key?)).await;
            let opened = opened.map_err(|_| too_slow(&name))?.map_err(|error| unreadable(&error))?;
            // The library requests the rest again after a broken connection, of the object in its original version.
            let bytes = opened.into_stream();
            Ok(stream::try_unfold((bytes, name), move |(mut bytes, name)| async move {
                let next = timeout(idle_max, bytes.next()).await.map_err(|_| too_slow(&name))?;
                match next {
                    None => Ok(None),
                    Some(Ok(chunk)) => Ok(Some((chunk, (bytes, name)))),
                    Some(Err(error)) => Err(FileError::Unreadable { file: name, reason: reason(&error) }),
                }
            }))
        };
        stream::once(opened).try_flatten().boxed()
    }
}

impl Reach {
    fn take(properties: &mut Properties) -> Result<Self, FileError> {
        for (name, instead) in REFUSED {
            if properties.take(name).is_some_and(|text| !text.is_empty()) {
                return Err(FileError::NotSupported(format!(
                    "the property {name} is not supported: {instead}"
                )));
            }
        }
        let named = |name: &str, others: &[&str]| -> Vec<String> {
            let ours = PREFIXES.iter().map(|prefix| format!("{prefix}{name}"));
            ours.chain(others.iter().map(|&other| other.to_owned())).collect()
        };
        let mut text =
            |name: &str, others: &[&str]| properties.take_any(named(name, others).iter().map(String::as_str));
        let endpoint = text("endpoint", &["aws_endpoint"]);
        let region = text("region", &["aws_region"]);
        if let Some(provider) = text("provider", &[])
            && !PROVIDERS.contains(&provider.to_ascii_lowercase().as_str())
        {
            return Err(FileError::NotSupported(format!(
                "provider '{provider}' is not supported; stores with S3's protocol are, as which {} are known",
                PROVIDERS.join(", ")
            )));
        }
        let mut secret = |name: &str, others: &[&str]| {
            properties.take_secret(named(name, others).iter().map(String::as_str))
        };
        let access_key = secret("access_key", &["aws_access_key"]);
        let secret_key = secret("secret_key", &["aws_secret_key"]);
        let token = secret("session_token", &["aws_token", "aws_session_token"]);
        if access_key.is_some() != secret_key.is_some() {
            return Err(FileError::Property(
                "of s3.access_key and s3.secret_key there is one; give both, or none for files that everybody may read"
                    .to_owned(),
            ));
        }
        let names = named("use_path_style", &["path_style_access"]);
        let path_style = properties.take_flag(names.iter().map(String::as_str))?.unwrap_or(false);
        // Keys are literal in every URI.
        properties.take_flag(["force_parsing_by_standard_uri"])?;
        let connect = ["s3.connection.timeout", "connection.timeout", "aws_connection_timeout_ms"];
        let request =
            ["s3.connection.request.timeout", "connection.request.timeout", "aws_request_timeout_ms"];
        // One file needs one connection.
        properties.take_any(["s3.connection.maximum", "connection.maximum", "aws_max_connections"]);
        Ok(Self {
            endpoint,
            region,
            access_key,
            secret_key,
            token,
            path_style,
            connect_max: properties.take_ms(connect)?.unwrap_or(CONNECT_MAX),
            idle_max: properties.take_ms(request)?.unwrap_or(IDLE_MAX),
        })
    }

    fn store(&self, location: &Location, egress: &Arc<Egress>) -> Result<AmazonS3, FileError> {
        let outbound = Outbound {
            egress: Arc::clone(egress),
            connect_max: self.connect_max,
            // The reader limits the wait for each part of an answer.
            idle_max: None,
            redirects: Redirects::Anywhere,
        };
        let client = ClientOptions::new().with_allow_http(true);
        let retry =
            RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX, ..RetryConfig::default() };
        let endpoint = match self.endpoint.as_deref().or(location.endpoint.as_deref()) {
            Some(text) => Some(endpoint(text)?),
            None => None,
        };
        endpoint.iter().try_for_each(|url| outbound.check(url))?;
        let of_endpoint = endpoint.as_ref().and_then(region_of);
        let region = self.region.clone().or(of_endpoint).unwrap_or_else(|| REGION_DEFAULT.to_owned());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&location.bucket)
            .with_region(region)
            .with_client_options(client)
            .with_http_connector(outbound)
            .with_retry(retry);
        if let Some(url) = &endpoint {
            let path_style = self.path_style || !matches!(url.host(), Some(Host::Domain(_))) || is_local(url);
            let text = match path_style {
                true => url.as_str().trim_end_matches('/').to_owned(),
                false => in_host(url, &location.bucket),
            };
            builder = builder.with_endpoint(text).with_virtual_hosted_style_request(!path_style);
        }
        builder = match (&self.access_key, &self.secret_key) {
            (Some(key), Some(secret)) => {
                builder.with_access_key_id(key.reveal()).with_secret_access_key(secret.reveal())
            }
            // Not the machine's credentials, which are not the client's.
            _ => builder.with_skip_signature(true),
        };
        if let Some(token) = &self.token {
            builder = builder.with_token(token.reveal());
        }
        builder
            .build()
            .map_err(|error| FileError::Property(format!("the S3 store can't be used: {}", reason(&error))))
    }
}

/// A store, and a bucket and the beginning of keys in it.
pub(crate) fn prefix(
    uri: &str,
    properties: &mut Properties,
    egress: &Arc<Egress>,
) -> Result<(AmazonS3, String, String), FileError> {
    let reach = Reach::take(properties)?;
    let location = locate(uri, &reach)?;
    let store = reach.store(&location, egress)?;
    Ok((store, location.bucket, location.key))
}

/// Reads a URI: `s3://bucket/key`, `http://endpoint/bucket/key` or `http://bucket.endpoint/key`.
fn locate(uri: &str, reach: &Reach) -> Result<Location, FileError> {
    let wrong = |what: &str| {
        FileError::Property(format!(
            "the property 'uri' {what}; write s3://bucket/path, or http://endpoint/bucket/path with use_path_style"
        ))
    };
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
    let scheme = scheme.to_ascii_lowercase();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (endpoint, bucket, key) = if SCHEMES.contains(&scheme.as_str()) {
        (None, host.to_owned(), path.to_owned())
    } else if scheme == "http" || scheme == "https" {
        let url = Url::parse(&format!("{scheme}://{host}")).map_err(|_| wrong("has no legal host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("has a user or a password"));
        }
        let is_whole = reach.endpoint.as_deref().is_some_and(|endpoint| {
            endpoint.split_once("://").map_or(endpoint, |(_, host)| host).trim_end_matches('/') == host
        });
        let is_path_style =
            reach.path_style || is_whole || !matches!(url.host(), Some(Host::Domain(_))) || is_local(&url);
        if is_path_style {
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            (Some(format!("{scheme}://{host}")), bucket.to_owned(), key.to_owned())
        } else {
            let (bucket, host) = host.split_once('.').ok_or_else(|| wrong("has no bucket in its host"))?;
            (Some(format!("{scheme}://{host}")), bucket.to_owned(), path.to_owned())
        }
    } else {
        return Err(wrong(&format!("has the scheme '{scheme}'")));
    };
    if bucket.is_empty() || key.is_empty() {
        return Err(wrong("has no bucket or no path in it"));
    }
    Ok(Location { endpoint, bucket, key })
}

/// An endpoint with its scheme.
fn endpoint(text: &str) -> Result<Url, FileError> {
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => {
            let host = text.split(['/', ':']).next().unwrap_or(text).to_ascii_lowercase();
            let is_vendor = VENDORS.iter().any(|vendor| host.ends_with(vendor));
            format!("{}://{text}", if is_vendor { "https" } else { "http" })
        }
    };
    let url = Url::parse(&whole).ok().filter(|url| url.has_host() && url.password().is_none());
    url.ok_or_else(|| {
        FileError::Property("s3.endpoint is no host; write https://host or host:port".to_owned())
    })
}

fn is_local(url: &Url) -> bool {
    url.host_str() == Some("localhost")
}

/// The endpoint with the bucket before its host.
fn in_host(url: &Url, bucket: &str) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = match host.strip_prefix(bucket).is_some_and(|rest| rest.starts_with('.')) {
        true => host.to_owned(),
        false => format!("{bucket}.{host}"),
    };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", url.scheme())
}

/// `s3.us-west-2.amazonaws.com` is in `us-west-2`.
fn region_of(endpoint: &Url) -> Option<String> {
    let host = endpoint.host_str()?.strip_suffix(".amazonaws.com")?;
    let region = host.strip_prefix("s3.").or_else(|| host.strip_prefix("s3-"))?;
    Some(region.to_owned())
}

fn key_of(text: &str) -> Result<Path, FileError> {
    Path::parse(text).map_err(|_| {
        FileError::Property(format!("'{text}' is no path of an object: it has an empty or a dotted part"))
    })
}

fn reason(error: &object_store::Error) -> String {
    match error {
        object_store::Error::NotFound { .. } => "there is no such object".to_owned(),
        object_store::Error::Unauthenticated { .. } => {
            "the store does not know the keys; check s3.access_key, s3.secret_key and s3.region".to_owned()
        }
        object_store::Error::PermissionDenied { .. } => {
            "the store does not allow it with these keys; check s3.access_key, s3.secret_key and s3.region"
                .to_owned()
        }
        other => cause(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(all: &[(&str, &str)]) -> Properties {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn located(uri: &str, all: &[(&str, &str)]) -> Result<(Option<String>, String, String), String> {
        let reach = Reach::take(&mut properties(all)).map_err(|error| error.to_string())?;
        let Location { endpoint, bucket, key } = locate(uri, &reach).map_err(|error| error.to_string())?;
        Ok((endpoint, bucket, key))
    }

    #[test]
    fn every_form_of_uri_names_a_bucket_and_a_key() {
        let found =
            |endpoint: Option<&str>| Ok((endpoint.map(str::to_owned), "b".to_owned(), "x/y*.csv".to_owned()));
        let path_style = [("use_path_style", "true")];
        assert_eq!(located("s3://b/x/y*.csv", &[]), found(None));
        assert_eq!(located("OSS://b/x/y*.csv", &[]), found(None));
        assert_eq!(located("http://h:1/b/x/y*.csv", &path_style), found(Some("http://h:1")));
        assert_eq!(located("http://127.0.0.1:1/b/x/y*.csv", &[]), found(Some("http://127.0.0.1:1")));
        assert_eq!(located("http://localhost:1/b/x/y*.csv", &[]), found(Some("http://localhost:1")));
        assert_eq!(
            located("https://b.s3.eu-west-1.amazonaws.com/x/y*.csv", &[]),
            found(Some("https://s3.eu-west-1.amazonaws.com"))
        );
        let endpoint = [("s3.endpoint", "https://minio.example.com")];
        assert_eq!(
            located("https://minio.example.com/b/x/y*.csv", &endpoint),
            found(Some("https://minio.example.com"))
        );
        for (uri, text) in [
            ("b/x", "has no scheme"),
            ("hdfs://b/x", "has the scheme 'hdfs'"),
            ("s3://b", "has no bucket or no path"),
            ("http://u:p@127.0.0.1/b/x", "has a user or a password"),
        ] {
            assert!(located(uri, &[]).unwrap_err().contains(text), "{uri}");
        }
    }

    #[test]
    fn endpoints_get_a_scheme_and_a_region() {
        let url = |text: &str| endpoint(text).expect(text);
        assert_eq!(url("s3.us-west-2.amazonaws.com").as_str(), "https://s3.us-west-2.amazonaws.com/");
        assert_eq!(url("127.0.0.1:9000").as_str(), "http://127.0.0.1:9000/");
        assert_eq!(region_of(&url("s3.us-west-2.amazonaws.com")).as_deref(), Some("us-west-2"));
        assert_eq!(region_of(&url("oss-cn-beijing.aliyuncs.com")), None);
        assert_eq!(in_host(&url("https://h.com:8443"), "b"), "https://b.h.com:8443");
        assert_eq!(in_host(&url("https://b.h.com"), "b"), "https://b.h.com");
        assert!(endpoint("http://").is_err());
    }

    #[test]
    fn properties_have_the_names_of_every_vendor_and_no_secret_is_shown() {
        for names in [
            ["s3.access_key", "s3.secret_key", "s3.session_token"],
            ["AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_TOKEN"],
            ["minio.access_key", "minio.secret_key", "minio.session_token"],
            ["access_key", "secret_key", "session_token"],
        ] {
            let mut all = properties(&[(names[0], "key"), (names[1], "hush"), (names[2], "hushhush")]);
            let reach = Reach::take(&mut all).expect("legal");
            let reveal = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
            assert_eq!(reveal(&reach.access_key).as_deref(), Some("key"));
            assert_eq!(reveal(&reach.secret_key).as_deref(), Some("hush"));
            assert_eq!(reveal(&reach.token).as_deref(), Some("hushhush"));
            assert_eq!(all.rest().count(), 0);
        }
        let all = [
            ("uri", "s3://b/x"),
            ("s3.endpoint", "http://127.0.0.1:1"),
            ("s3.access_key", "key"),
            ("s3.secret_key", "hush"),
        ];
        let egress = Arc::new(Egress::parse("127.0.0.0/8").expect("a network"));
        let files = S3Files::new("s3://b/x", &mut properties(&all), &egress).expect("legal");
        let forbidden = S3Files::new("s3://b/x", &mut properties(&all), &Arc::default()).unwrap_err();
        assert!(matches!(forbidden, FileError::Forbidden(_)), "{forbidden}");
        assert!(!format!("{files:?} {:?}", properties(&all)).contains("hush"));
        for (name, text) in [
            ("s3.access_key", "there is one"),
            ("s3.role_arn", "s3.role_arn is not supported"),
            ("s3.connection.timeout", "must be a number of milliseconds"),
            ("provider", "provider 'hush' is not supported"),
            ("use_path_style", "must be true or false"),
        ] {
            let error = S3Files::new("s3://b/x", &mut properties(&[(name, "hush")]), &egress).unwrap_err();
            assert!(error.to_string().contains(text), "{name}: {error}");
        }
    }
}
