//! Limits the time of each call to a store.
//!
//! Invariant: a caller of a store waits no longer than the limit for any one call: a request, a part of an upload, a piece of a
//! body or of a list. An abandoned call may be carried out later nevertheless, so its error means as little as one whose answer
//! was lost.
//!
//! Not its business: retries. Reading a file of the local disk is not a call to a store.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::host;

/// A store whose calls each end within a limit.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    inner: Arc<dyn ObjectStore>,
    limit: Duration,
}

impl Deadline {
    pub fn new(inner: Arc<dyn ObjectStore>, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

/// Waits for a call no longer than `limit`.
async fn in_time<T>(
    limit: Duration,
    doing: &'static str,
    location: &Path,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        answer = call => answer,
        () = host::sleep(limit, || tokio::time::sleep(limit)) => Err(late(limit, doing, location)),
    }
}

fn late(limit: Duration, doing: &str, location: &Path) -> Error {
    let text = format!(
        "the store did not answer within {} ms when {doing} '/{location}'; it may still be carried out. The setting `store_timeout_ms` \
         allows more",
        limit.as_millis()
    );
    Error::Generic { store: "Deadline", source: text.into() }
}

/// The items of a stream, each awaited no longer than `limit`. It ends with the first that does not arrive.
fn items_in_time<T: Send + 'static>(
    limit: Duration,
    doing: &'static str,
    location: Path,
    items: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    stream::unfold(Some(items), move |items| {
        let location = location.clone();
        async move {
            let mut items = items?;
            let next = in_time(limit, doing, &location, async { items.next().await.transpose() }).await;
            match next {
                Ok(None) => None,
                Ok(Some(item)) => Some((Ok(item), Some(items))),
                // An error of the store is not the end of its stream, but no reader continues after one.
                Err(error) => Some((Err(error), None)),
            }
        }
    })
    // Libraries poll again after the end.
    .fuse()
    .boxed()
}

#[async_trait]
impl ObjectStore for Deadline {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        in_time(self.limit, "writing", location, self.inner.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.inner.put_multipart_opts(location, opts);
        let inner = in_time(self.limit, "beginning to write", location, begun).await?;
        Ok(Box::new(Upload { inner, limit: self.limit, location: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut got =
            in_time(self.limit, "reading", location, self.inner.get_opts(location, options)).await?;
        if let GetResultPayload::Stream(body) = got.payload {
            let body = items_in_time(self.limit, "reading", location.clone(), body);
            got.payload = GetResultPayload::Stream(body);
        }
        Ok(got)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        in_time(self.limit, "reading", location, self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        items_in_time(self.limit, "deleting below", Path::default(), self.inner.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let location = prefix.cloned().unwrap_or_default();
        items_in_time(self.limit, "listing", location, self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let location = prefix.cloned().unwrap_or_default();
        items_in_time(self.limit, "listing", location, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let location = prefix.cloned().unwrap_or_default();
        in_time(self.limit, "listing", &location, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        in_time(self.limit, "copying to", to, self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        in_time(self.limit, "renaming to", to, self.inner.rename_opts(from, to, options)).await
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    limit: Duration,
    location: Path,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, limit, location) = (self.inner.put_part(data), self.limit, self.location.clone());
        Box::pin(async move { in_time(limit, "writing a part of", &location, part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        in_time(self.limit, "completing", &self.location, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        in_time(self.limit, "giving up", &self.location, self.inner.abort()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;
    use std::future::pending;

    /// A store that never answers requests about `stuck`, and gives no second piece of a body.
    #[derive(Debug)]
    struct Stuck(InMemory);

    impl fmt::Display for Stuck {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Stuck")
        }
    }

    #[async_trait]
    impl ObjectStore for Stuck {
        async fn put_opts(
            &self,
            location: &Path,
            payload: PutPayload,
            opts: PutOptions,
        ) -> Result<PutResult> {
            if location.as_ref() == "stuck" {
                return pending().await;
            }
            self.0.put_opts(location, payload, opts).await
        }

        async fn put_multipart_opts(
            &self,
            location: &Path,
            opts: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.0.put_multipart_opts(location, opts).await
        }

        async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
            let mut got = self.0.get_opts(location, options).await?;
            let first = Bytes::from_static(b"first");
            let body = stream::once(async move { Ok(first) }).chain(stream::pending()).boxed();
            got.payload = GetResultPayload::Stream(body);
            Ok(got)
        }

        fn delete_stream(
            &self,
            _locations: BoxStream<'static, Result<Path>>,
        ) -> BoxStream<'static, Result<Path>> {
            stream::pending().boxed()
        }

        fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            stream::pending().boxed()
        }

        async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> Result<ListResult> {
            pending().await
        }

        async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> Result<()> {
            pending().await
        }
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_given_up_call_by_call() {
        let limit = Duration::from_millis(20);
        let store = Deadline::new(Arc::new(Stuck(InMemory::new())), limit);
        let (stuck, free) = (Path::from("stuck"), Path::from("free"));
        store.put(&free, "text".into()).await.expect("this one answers");
        let body = store.get(&free).await.expect("it begins to answer").into_stream();
        let mut pieces = body.map_err(|error| error.to_string());
        assert_eq!(pieces.next().await, Some(Ok(Bytes::from_static(b"first"))));
        let late = pieces.next().await.expect("an error").unwrap_err();
        assert!(pieces.next().await.is_none(), "nobody reads on");
        let mut texts = vec![
            late,
            store.put(&stuck, "text".into()).await.unwrap_err().to_string(),
            store.list(None).try_next().await.unwrap_err().to_string(),
            store.list_with_delimiter(Some(&stuck)).await.unwrap_err().to_string(),
            store.copy(&free, &stuck).await.unwrap_err().to_string(),
            store.delete(&stuck).await.unwrap_err().to_string(),
        ];
        texts.retain(|text| {
            !text.contains("did not answer within 20 ms") || !text.contains("store_timeout_ms")
        });
        assert!(texts.is_empty(), "{texts:?}");
        assert_eq!(store.to_string(), "Stuck");
    }
}
