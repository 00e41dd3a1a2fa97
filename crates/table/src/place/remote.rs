//! A store that is far away: reads go in requests of a bounded size and through the local cache, and no upload is left unfinished.
//!
//! Invariant: an upload that is neither completed nor aborted, because its writer failed or was cancelled, is aborted when it is
//! dropped; a data file whose completion got no answer is looked at before that is a failure. Only data files and deletion vectors are cached: nothing else below a table keeps its contents.
//!
//! Not its business: time limits ([`super::deadline`]) and the contents of the cache ([`super::cache`]).

use super::cache::{Gathering, ReadCache};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    RenameOptions, Result, UploadPart,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A request reads no more bytes than this.
const REQUEST_BYTES: u64 = 8 << 20;
/// Ranges with no more bytes between them are read together: a request takes longer than these bytes.
const GAP_BYTES: u64 = 1 << 20;
const REQUESTS_AT_ONCE: usize = 4;
/// No object is larger; a range that is can't be right, and the store shall say so.
const OBJECT_BYTES_MAX: u64 = 1 << 40;

/// The ends of names of data files, and of files of deletion vectors.
const CONSTANT: [&str; 2] = [".parquet", ".bin"];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    inner: Arc<dyn ObjectStore>,
    cache: Option<Arc<ReadCache>>,
}

impl Remote {
    pub fn new(inner: Arc<dyn ObjectStore>, cache: Option<Arc<ReadCache>>) -> Self {
        Self { inner, cache }
    }

    /// The cache, if it may have this object.
    fn cache_of(&self, location: &Path) -> Option<&Arc<ReadCache>> {
        self.cache.as_ref().filter(|_| never_changes(location))
    }

    async fn forget(&self, location: &Path) {
        if let Some(cache) = self.cache_of(location) {
            cache.forget(location).await;
        }
    }

    /// Reads a range through the cache. `None`: the object ends before it, and the store shall say so.
    async fn cached(&self, location: &Path, range: Range<u64>) -> Result<Option<GetResult>> {
        let Some(cache) = self.cache_of(location) else { return Ok(None) };
        let (mut read, facts) = cache.read(&self.inner, location, std::slice::from_ref(&range)).await?;
        let bytes = read.pop().unwrap_or_default();
        let last_modified = DateTime::<Utc>::from_timestamp_millis(facts.modified_ms).unwrap_or_default();
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified,
            size: facts.bytes,
            e_tag: None,
            version: None,
        };
        let range = range.start..range.start + bytes.len() as u64;
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed());
        let got = GetResult { payload, meta, range, attributes: Attributes::default() };
        Ok((got.range.start < got.range.end).then_some(got))
    }

    /// Reads ranges in requests of a bounded size.
    async fn read(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let requests = requests(ranges);
        let read = requests.into_iter().map(|range| {
            let start = range.start;
            async move { Ok::<_, object_store::Error>((start, self.inner.get_range(location, range).await?)) }
        });
        let mut read = stream::iter(read).buffered(REQUESTS_AT_ONCE);
        let mut gathered = Gathering::of(ranges);
        while let Some((start, bytes)) = read.try_next().await? {
            gathered.add(start, &bytes);
        }
        Ok(gathered.finish())
    }
}

/// Whether an object keeps its contents as long as it is there: data files and the files of their deletion vectors do.
fn never_changes(location: &Path) -> bool {
    let name = location.filename().unwrap_or_default();
    let is_data = CONSTANT.iter().any(|end| name.ends_with(end));
    is_data && !location.parts().any(|part| part.as_ref() == "_delta_log")
}

/// Whether these options ask for nothing but a range.
fn plain_range(options: &GetOptions) -> Option<Range<u64>> {
    let GetOptions {
        if_match,
        if_none_match,
        if_modified_since,
        if_unmodified_since,
        range,
        version,
        head,
        ..
    } = options;
    let is_plain = if_match.is_none()
        && if_none_match.is_none()
        && if_modified_since.is_none()
        && if_unmodified_since.is_none()
        && version.is_none()
        && !head;
    match range {
        Some(GetRange::Bounded(range))
            if is_plain && range.start < range.end && range.end <= OBJECT_BYTES_MAX =>
        {
            Some(range.clone())
        }
        _ => None,
    }
}

/// Requests for these ranges, in order: near ones together, and large ones in parts.
fn requests(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match runs.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => runs.push(range),
        }
    }
    let parts = |run: Range<u64>| {
        let end = run.end;
        run.step_by(REQUEST_BYTES as usize).map(move |start| start..end.min(start + REQUEST_BYTES))
    };
    runs.into_iter().flat_map(parts).collect()
}

#[async_trait]
impl ObjectStore for Remote {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.forget(location).await;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.forget(location).await;
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        let store = Arc::clone(&self.inner);
        Ok(Box::new(Upload { inner: Some(inner), store, location: location.clone(), bytes: 0 }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if let Some(range) = plain_range(&options)
            && let Some(got) = self.cached(location, range).await?
        {
            return Ok(got);
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if ranges.iter().any(|range| range.start >= range.end || range.end > OBJECT_BYTES_MAX) {
            return self.inner.get_ranges(location, ranges).await;
        }
        match self.cache_of(location) {
            Some(cache) => Ok(cache.read(&self.inner, location, ranges).await?.0),
            None => self.read(location, ranges).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let remote = self.clone();
        let deleted = self.inner.delete_stream(locations);
        deleted
            .then(move |deleted| {
                let remote = remote.clone();
                async move {
                    if let Ok(location) = &deleted {
                        remote.forget(location).await;
                    }
                    deleted
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.forget(to).await;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.forget(from).await;
        self.forget(to).await;
        self.inner.rename_opts(from, to, options).await
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

/// An upload that ends with its writer.
#[derive(Debug)]
struct Upload {
    /// `None`: it is completed or aborted.
    inner: Option<Box<dyn MultipartUpload>>,
    store: Arc<dyn ObjectStore>,
    location: Path,
    /// Of all parts.
    bytes: u64,
}

/// The result of a completion whose answer was lost: an object of a name that nobody else uses has all bytes.
async fn completed(store: &Arc<dyn ObjectStore>, location: &Path, bytes: u64) -> Option<PutResult> {
    if !never_changes(location) {
        return None;
    }
    let meta = store.head(location).await.ok().filter(|meta| meta.size == bytes)?;
    Some(PutResult { e_tag: meta.e_tag, version: meta.version })
}

fn ended() -> object_store::Error {
    object_store::Error::Generic { store: "Remote", source: "the upload has ended".into() }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.bytes += data.content_length() as u64;
        match &mut self.inner {
            Some(inner) => inner.put_part(data),
            None => Box::pin(std::future::ready(Err(ended()))),
        }
    }

    /// One that fails may be tried again, and is aborted otherwise.
    async fn complete(&mut self) -> Result<PutResult> {
        let completed = match self.inner.as_mut().ok_or_else(ended)?.complete().await {
            Ok(completed) => completed,
            Err(error) => completed(&self.store, &self.location, self.bytes).await.ok_or(error)?,
        };
        self.inner = None;
        Ok(completed)
    }

    async fn abort(&mut self) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        inner.abort().await?;
        self.inner = None;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(mut inner), Ok(runtime)) = (self.inner.take(), Handle::try_current()) else { return };
        let location = self.location.clone();
        runtime.spawn(async move {
            if let Err(error) = inner.abort().await {
                tracing::warn!(%location, %error, "an unfinished upload could not be aborted");
            }
        });
    }
}

#[cfg(test)]
mod tests;
