//! Tables in a bucket of S3, or of a store that speaks its protocol.
//!
//! Invariant: no key or token is in an error or in the output of `Debug`. A request that the store throttles or does not answer is
//! sent again for half of the time that a call may take, so that a busy store slows its callers down and fails none.
//!
//! Not its business: whether the bucket belongs to this server ([`crate::TableStore::claim`]).

use super::cache::ReadCache;
use super::location::{RemoteOptions, client, retries};
use super::remote::Remote;
use super::traffic::{Counted, StoreTraffic};
use super::uploads::{Access, Uploading, abort_uploads};
use crate::error::TableError;
use crate::place::storage::{ObjectStorage, TableStorage};
use async_trait::async_trait;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{ClientConfigKey, HttpConnector};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// The region of stores that have none.
const REGION_DEFAULT: &str = "us-east-1";

/// A bucket.
pub(super) struct S3Storage {
    objects: ObjectStorage,
    store: Arc<AmazonS3>,
    /// The address of the bucket.
    bucket_url: Url,
    region: String,
    client: ClientOptions,
    connector: Counted,
}

impl S3Storage {
    pub(super) fn new(
        given: &RemoteOptions,
        url: &Url,
        call_timeout: Duration,
        cache: Option<Arc<ReadCache>>,
    ) -> Result<Self, TableError> {
        let unfit = |reason: String| given.unfit(reason);
        let RemoteOptions { access_key, secret_key, .. } = given;
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
        let of_environment =
            known(AmazonS3ConfigKey::S3Endpoint).or_else(|| known(AmazonS3ConfigKey::Endpoint));
        let endpoint = given.endpoint_or(of_environment)?;
        let is_allowed =
            known(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)).as_deref() == Some("true");
        let client = client(call_timeout, given.goes_without_tls(endpoint.as_ref(), is_allowed)?);
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
            .with_retry(retries(call_timeout))
            .build()
            .map_err(|error| unfit(error.to_string()))?;
        let store = Arc::new(store);
        let remote = Remote::new(Arc::clone(&store) as Arc<dyn ObjectStore>, cache);
        let objects = ObjectStorage { objects: Arc::new(remote), url: url.clone() };
        Ok(Self { objects, store, bucket_url, region, client, connector })
    }
}

/// The address to which the keys of the bucket are added.
fn bucket_url(given: &RemoteOptions, endpoint: Option<&Url>, region: &str) -> Option<Url> {
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
        let failed = || TableError::storage(format!("listing unfinished uploads below '{prefix}'"));
        let client = self.connector.connect(&self.client).map_err(failed())?;
        let credential = self.store.credentials().get_credential().await.map_err(failed())?;
        let access = Access::Aws { credential: &credential, region: &self.region };
        let bucket = Uploading { client: &client, bucket: &self.bucket_url, access };
        abort_uploads(&*self.store, &bucket, prefix).await
    }

    fn shown(&self, path: &Path) -> String {
        self.objects.shown(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreOptions, TableStore};
    use tributary_types::Secret;

    fn options(endpoint: &str) -> RemoteOptions {
        RemoteOptions::of_test("s3://bucket/a/b", endpoint, "key", "hush")
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_host() {
        let url = |options: &RemoteOptions| {
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
        let opened = |options: &RemoteOptions| TableStore::remote(options, StoreOptions::default()).map(drop);
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
        let given = RemoteOptions { secret_key: Secret::default(), ..options("http://127.0.0.1:9") };
        let refused = TableStore::remote(&given, StoreOptions::default()).map(drop).unwrap_err().to_string();
        assert!(refused.contains("table_storage_secret_key"), "{refused}");
        assert!(!format!("{:?}", options("http://127.0.0.1:9")).contains("hush"));
    }
}
