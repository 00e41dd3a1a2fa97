//! Tables in a bucket of Google's cloud storage, or of a store that speaks its protocol (the XML API).
//!
//! Invariant: no key or token is in an error or in the output of `Debug`.

use super::cache::ReadCache;
use super::location::{RemoteOptions, client, retries};
use super::remote::Remote;
use super::storage::{ObjectStorage, TableStorage};
use super::traffic::{Counted, StoreTraffic};
use super::uploads::{Access, Uploading, abort_uploads};
use crate::error::TableError;
use async_trait::async_trait;
use object_store::client::HttpConnector;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The address of Google's own store.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// A bucket.
struct GoogleStorage {
    objects: ObjectStorage,
    store: Arc<GoogleCloudStorage>,
    /// The address of the bucket.
    bucket_url: Url,
    client: ClientOptions,
    connector: Counted,
}

/// The bucket that was named.
///
/// # Errors
/// [`TableError::StoreUnfit`].
pub(super) fn storage(
    given: &RemoteOptions,
    url: &Url,
    call_timeout: Duration,
    cache: Option<Arc<ReadCache>>,
) -> Result<Arc<dyn TableStorage>, TableError> {
    if !given.access_key.is_empty() || !given.session_token.is_empty() {
        return Err(given.unfit(
            "Google's store knows service accounts, and no pairs of keys: set table_storage_secret_key alone, to the JSON of an \
             account's key, or none for GOOGLE_APPLICATION_CREDENTIALS of the environment or the machine",
        ));
    }
    let key = given.secret_key.reveal();
    // Nothing of the environment is mixed with a key.
    let mut builder = match key.is_empty() {
        true => GoogleCloudStorageBuilder::from_env(),
        false => GoogleCloudStorageBuilder::new().with_service_account_key(key),
    };
    let known = |key| builder.get_config_value(&key).filter(|text| !text.is_empty());
    let endpoint = given.endpoint_or(known(GoogleConfigKey::BaseUrl))?;
    let endpoint = endpoint.unwrap_or_else(|| Url::parse(ENDPOINT).expect("it is a URL"));
    // The library allows it, unless it is told otherwise.
    let without_tls = given.goes_without_tls(Some(&endpoint), false)?;
    let client = client(call_timeout, without_tls);
    let mut bucket_url = endpoint.clone();
    bucket_url
        .path_segments_mut()
        .map_err(|()| given.unfit(format!("'{endpoint}' is no address of a store")))?
        .pop_if_empty()
        .push(&given.location.bucket);
    builder = builder.with_base_url(endpoint.as_str().trim_end_matches('/'));
    let connector = Counted::default();
    let store = builder
        .with_http_connector(connector.clone())
        .with_bucket_name(&given.location.bucket)
        .with_client_options(client.clone())
        .with_retry(retries(call_timeout))
        .build()
        // The library quotes a key that it can't read.
        .map_err(|error| {
            given.unfit(if key.is_empty() { error.to_string() } else { UNREADABLE.to_owned() })
        })?;
    let store = Arc::new(store);
    let remote = Remote::new(Arc::clone(&store) as Arc<dyn ObjectStore>, cache);
    let objects = ObjectStorage { objects: Arc::new(remote), url: url.clone() };
    Ok(Arc::new(GoogleStorage { objects, store, bucket_url, client, connector }))
}

const UNREADABLE: &str = "table_storage_secret_key is not the JSON of a service account's key, with `client_email`, \
    `private_key` and `private_key_id`";

#[async_trait]
impl TableStorage for GoogleStorage {
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
        let failed = TableError::storage(format!("listing unfinished uploads below '{prefix}'"));
        let credentials = self.store.credentials();
        let opened = async {
            Ok::<_, object_store::Error>((
                self.connector.connect(&self.client)?,
                credentials.get_credential().await?,
            ))
        };
        let (client, credential) = opened.await.map_err(failed)?;
        let bucket = Uploading {
            client: &client,
            bucket: &self.bucket_url,
            access: Access::Bearer(&credential.bearer),
        };
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

    const KEY: &str =
        r#"{"private_key": "hush", "private_key_id": "1", "client_email": "a@b", "disable_oauth": true}"#;

    fn options(endpoint: &str, access_key: &str, secret_key: &str) -> RemoteOptions {
        RemoteOptions::of_test("gs://bucket/a/b", endpoint, access_key, secret_key)
    }

    #[test]
    fn credentials_of_other_stores_and_broken_ones_are_refused_without_the_key() {
        let refused = |endpoint: &str, access_key: &str, secret_key: &str| {
            let given = options(endpoint, access_key, secret_key);
            TableStore::remote(&given, StoreOptions::default()).map(drop).unwrap_err().to_string()
        };
        for (text, expected) in [
            (refused("http://127.0.0.1:9", "me", KEY), "service account"),
            (refused("http://store.example.com", "", KEY), "table_storage_allow_http"),
            (refused("http://127.0.0.1:9", "", "hush"), "gs://bucket/a/b"),
            (refused("http://127.0.0.1:9", "", r#"{"private_key": "hush"}"#), "client_email"),
        ] {
            assert!(text.contains(expected) && !text.contains("hush"), "{text}");
        }
        TableStore::remote(&options("http://127.0.0.1:9", "", KEY), StoreOptions::default())
            .map(drop)
            .expect("it fits");
    }
}
