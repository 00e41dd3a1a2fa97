use super::*;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::ObjectStoreExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;

/// The error of reading the footer of a file that should have `file_bytes` bytes and has `bytes`, if any.
async fn error_of(store: Arc<dyn ObjectStore>, bytes: Option<&'static [u8]>, file_bytes: u64) -> String {
    // A name that has the words of other errors in it.
    let path = Path::from("oranges-Invalid range-7/part.parquet");
    if let Some(bytes) = bytes {
        store.put(&path, bytes.into()).await.unwrap();
    }
    let (runtime, config) = (RuntimeEnv::default(), SessionConfig::new());
    let url = ObjectStoreUrl::parse("file://").unwrap();
    runtime.register_object_store(url.as_ref(), store);
    let readers = CheckedReaders::new(&runtime, &config, url, HashMap::new()).unwrap();
    let mut file = PartitionedFile::new(path.as_ref(), file_bytes);
    file.object_meta.location = path;
    let mut reader = readers.create_reader(0, file, None, &ExecutionPlanMetricsSet::new()).unwrap();
    reader.get_metadata(None).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_file_that_is_shorter_than_it_should_be_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let local = || Arc::new(LocalFileSystem::new_with_prefix(dir.path()).unwrap());
    for (store, file_bytes) in
        [(local() as Arc<dyn ObjectStore>, 1000), (local(), 104), (Arc::new(InMemory::new()), 1000)]
    {
        let error = error_of(store, Some(&[b'x'; 100]), file_bytes).await;
        assert!(error.contains("/part.parquet is damaged: "), "{file_bytes}: {error}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_parquet_is_damaged() {
    let error = error_of(Arc::new(InMemory::new()), Some(&[b'x'; 100]), 100).await;
    assert!(error.contains("/part.parquet is damaged: "), "{error}");
}

#[tokio::test]
async fn a_file_that_is_gone_is_an_error_of_the_storage() {
    let dir = tempfile::tempdir().unwrap();
    let local = Arc::new(LocalFileSystem::new_with_prefix(dir.path()).unwrap());
    for store in [local as Arc<dyn ObjectStore>, Arc::new(InMemory::new())] {
        let error = error_of(store, None, 100).await;
        assert!(error.contains("not found") && !error.contains("is damaged"), "{error}");
        assert!(error.contains("oranges-Invalid range-7/part.parquet"), "{error}");
    }
}
