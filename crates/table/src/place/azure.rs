//! Tables in a container of Azure's blob storage, or of a store that speaks its protocol.
//!
//! Invariant: no key is in an error or in the output of `Debug`. Uploads that are not completed leave nothing to abort: the blocks of
//! a blob that is not there are removed by the store after a week.

use super::cache::ReadCache;
use super::location::{RemoteOptions, client, retries};
use super::remote::Remote;
use super::storage::{ObjectStorage, TableStorage};
use super::traffic::{Counted, StoreTraffic};
use crate::error::TableError;
use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::ClientConfigKey;
use object_store::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// A container.
struct AzureStorage {
    objects: ObjectStorage,
    store: Arc<dyn ObjectStore>,
    connector: Counted,
}

/// The container that was named.
///
/// # Errors
/// [`TableError::StoreUnfit`].
pub(super) fn storage(
    given: &RemoteOptions,
    url: &Url,
    call_timeout: Duration,
    cache: Option<Arc<ReadCache>>,
) -> Result<Arc<dyn TableStorage>, TableError> {
    let (account, key) = (given.access_key.reveal(), given.secret_key.reveal());
    if account.is_empty() && !key.is_empty() {
        return Err(given.unfit(
            "table_storage_secret_key is set, and the account's name is not: set table_storage_access_key",
        ));
    }
    // Nothing of the environment is mixed with a key.
    let mut builder = match key.is_empty() {
        true => MicrosoftAzureBuilder::from_env(),
        false => MicrosoftAzureBuilder::new().with_access_key(key),
    };
    if !account.is_empty() {
        builder = builder.with_account(account);
    }
    let known =
        |builder: &MicrosoftAzureBuilder, key| builder.get_config_value(&key).filter(|text| !text.is_empty());
    let Some(account) = known(&builder, AzureConfigKey::AccountName) else {
        return Err(given.unfit(
            "the account's name is not known: set table_storage_access_key, or AZURE_STORAGE_ACCOUNT_NAME of the environment",
        ));
    };
    let endpoint = given.endpoint_or(known(&builder, AzureConfigKey::Endpoint))?;
    let is_allowed =
        known(&builder, AzureConfigKey::Client(ClientConfigKey::AllowHttp)).as_deref() == Some("true");
    let without_tls = given.goes_without_tls(endpoint.as_ref(), is_allowed)?;
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(address(&endpoint, &account));
    }
    let connector = Counted::default();
    let store = builder
        .with_http_connector(connector.clone())
        .with_container_name(&given.location.bucket)
        .with_client_options(client(call_timeout, without_tls))
        .with_retry(retries(call_timeout))
        .build()
        .map_err(|error| given.unfit(error.to_string()))?;
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let remote = Remote::new(Arc::clone(&store), cache);
    let objects = ObjectStorage { objects: Arc::new(remote), url: url.clone() };
    Ok(Arc::new(AzureStorage { objects, store, connector }))
}

/// The address of the account at an endpoint: a host that is no name of the account has it in its path, as emulators do.
fn address(endpoint: &Url, account: &str) -> String {
    let text = endpoint.as_str().trim_end_matches('/');
    match endpoint.host() {
        Some(Host::Domain(name)) if name != "localhost" => text.to_owned(),
        _ if endpoint.path().trim_matches('/').is_empty() => format!("{text}/{account}"),
        _ => text.to_owned(),
    }
}

#[async_trait]
impl TableStorage for AzureStorage {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.objects()
    }

    fn direct(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Remote::new(Arc::clone(&self.store), None))
    }

    fn traffic(&self) -> Option<StoreTraffic> {
        Some(self.connector.traffic())
    }

    fn shown(&self, path: &Path) -> String {
        self.objects.shown(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;
    use crate::TableStore;

    fn options(endpoint: &str, account: &str, key: &str) -> RemoteOptions {
        RemoteOptions::of_test("az://container/a/b", endpoint, account, key)
    }

    #[test]
    fn an_account_is_in_the_path_of_an_address_and_in_the_host_of_a_name() {
        let of = |text: &str| address(&Url::parse(text).expect("a URL"), "me");
        assert_eq!(of("http://127.0.0.1:10000"), "http://127.0.0.1:10000/me");
        assert_eq!(of("http://localhost:10000/"), "http://localhost:10000/me");
        assert_eq!(of("https://me.blob.core.windows.net"), "https://me.blob.core.windows.net");
    }

    #[test]
    fn what_is_missing_or_unsafe_is_refused_without_the_key() {
        let refused = |endpoint: &str, account: &str, key: &str| {
            let given = options(endpoint, account, key);
            TableStore::remote(&given, StoreOptions::default()).map(drop).unwrap_err().to_string()
        };
        let key = "aHVzaC1odXNo";
        for (text, expected) in [
            (refused("http://127.0.0.1:9", "", key), "table_storage_access_key"),
            (refused("http://store.example.com", "me", key), "table_storage_allow_http"),
            (refused("http://127.0.0.1:9", "me", "hush!"), "az://container/a/b"),
        ] {
            assert!(text.contains(expected) && !text.contains(key) && !text.contains("hush"), "{text}");
        }
        TableStore::remote(&options("http://127.0.0.1:9", "me", key), StoreOptions::default())
            .map(drop)
            .expect("it fits");
    }
}
