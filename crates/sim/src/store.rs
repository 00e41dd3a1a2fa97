//! An object store on the simulated disk, with the steps of the real one (`tributary_table::DurableLocal`):
//! a staged file is written and synced, gets its name, and its directory is synced.
//!
//! Like a store behind a network it loses answers on command: the operation is done, and the caller gets an error, which for a
//! conditional put may say that the name is taken, as the clients of such stores do when they repeat the put and find their own
//! object.

use crate::dice::Dice;
use crate::lying::{LyingDisk, STORE_ROOT as ROOT};
use crate::machine;
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;
use std::fmt;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tributary_types::host;
use tributary_wal::{Disk, OpenMode};

/// The store. Clones are the same store.
#[derive(Clone)]
pub struct SimStore {
    disk: LyingDisk,
    staged: Arc<AtomicU64>,
    /// Chance for the duration of operations.
    dice: Arc<Mutex<Dice>>,
    is_dead: Arc<AtomicBool>,
    /// One answer in this many is lost; 0 for none.
    loses_one_in: Arc<AtomicU64>,
    answers_lost: Arc<AtomicU64>,
    /// The maximum time of each step, in µs.
    step_us: Arc<AtomicU64>,
    /// Prefixes that are never answered.
    stuck: Arc<Mutex<Vec<String>>>,
}

/// The maximum time of a step, in µs, unless the store is a slow one.
const STEP_US: u64 = 300;

impl SimStore {
    #[must_use]
    pub fn new(disk: LyingDisk, dice: Dice, is_dead: Arc<AtomicBool>) -> Self {
        Self {
            disk,
            staged: Arc::default(),
            dice: Arc::new(Mutex::new(dice)),
            is_dead,
            loses_one_in: Arc::default(),
            answers_lost: Arc::default(),
            step_us: Arc::new(AtomicU64::new(STEP_US)),
            stuck: Arc::default(),
        }
    }

    /// From now on each step takes up to `step_us` µs.
    #[cfg(test)]
    pub fn slow_down(&self, step_us: u64) {
        self.step_us.store(step_us, Ordering::Relaxed);
    }

    /// From now on no request below `prefix` is answered.
    #[cfg(test)]
    pub fn get_stuck_below(&self, prefix: &str) {
        self.stuck.lock().push(format!("{prefix}/"));
    }

    /// Never returns for an unanswered prefix.
    async fn answers(&self, location: &Path) {
        let is_stuck = self.stuck.lock().iter().any(|prefix| location.as_ref().starts_with(prefix.as_str()));
        if is_stuck {
            pending::<()>().await;
        }
    }

    /// From now on one answer to a write or a delete out of `one_in` is lost; 0 for none.
    pub fn lose_answers(&self, one_in: u64) {
        self.loses_one_in.store(one_in, Ordering::Relaxed);
    }

    /// One answer in this many is lost; 0 for none.
    #[must_use]
    pub fn loses_one_in(&self) -> u64 {
        self.loses_one_in.load(Ordering::Relaxed)
    }

    /// How many answers were lost.
    #[must_use]
    pub fn answers_lost(&self) -> u64 {
        self.answers_lost.load(Ordering::Relaxed)
    }

    /// Whether the answer to the last operation is lost. Not while a library has the thread: it writes checkpoints only, and its
    /// threads may call in any order.
    fn loses_answer(&self) -> bool {
        let one_in = self.loses_one_in.load(Ordering::Relaxed);
        let is_lost = one_in > 0 && !machine::stands_still() && self.dice.lock().one_in(one_in);
        self.answers_lost.fetch_add(u64::from(is_lost), Ordering::Relaxed);
        is_lost
    }

    /// The path on the disk of an object.
    #[must_use]
    pub fn disk_path(location: &Path) -> PathBuf {
        PathBuf::from(format!("{ROOT}/{location}"))
    }

    /// A name that readers see can't be made durable: a server ends itself there, and all its tasks stop. (A library, on its own
    /// threads or with the simulation's, is released first; it only writes checkpoints.)
    async fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        if host::is_simulated() && !machine::stands_still() {
            pending::<()>().await;
        }
    }

    /// Lets other tasks run first, for a while. Not while a library has the thread.
    async fn take_time(&self) {
        if machine::stands_still() {
            return;
        }
        let wait = host::simulated().map(|host| {
            let micros = self.dice.lock().below(self.step_us.load(Ordering::Relaxed));
            host.sleep_until(host.now() + Duration::from_micros(micros))
        });
        if let Some(wait) = wait {
            wait.await;
        }
    }

    async fn put_file(&self, location: &Path, payload: PutPayload, create: bool) -> Result<PutResult> {
        self.answers(location).await;
        let target = Self::disk_path(location);
        let failed = |error| to_error(location, error);
        let number = self.staged.fetch_add(1, Ordering::Relaxed);
        let staged = PathBuf::from(format!("{}#{number}", target.display()));
        self.take_time().await;
        let file = self.disk.open(&staged, OpenMode::CreateNew).map_err(failed)?;
        let write = async {
            let mut offset = 0;
            for chunk in &payload {
                file.write_all_at(chunk, offset)?;
                offset += chunk.len() as u64;
            }
            self.take_time().await;
            file.sync_data()?;
            self.take_time().await;
            if create { self.disk.rename_new(&staged, &target) } else { self.disk.rename(&staged, &target) }
        };
        if let Err(error) = write.await {
            drop(self.disk.remove(&staged));
            // The task that gave it that name may not have synced it yet.
            if error.kind() == io::ErrorKind::AlreadyExists {
                self.sync_name(&target, location).await?;
            }
            return Err(failed(error));
        }
        self.take_time().await;
        self.sync_name(&target, location).await?;
        self.take_time().await;
        if self.loses_answer() {
            let is_repeated = create && self.dice.lock().one_in(2);
            return Err(if is_repeated {
                failed(io::ErrorKind::AlreadyExists.into())
            } else {
                lost(location)
            });
        }
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn sync_name(&self, target: &std::path::Path, location: &Path) -> Result<()> {
        if let Some(parent) = target.parent()
            && let Err(error) = self.disk.sync_dir(parent)
        {
            self.die().await;
            return Err(to_error(location, error));
        }
        Ok(())
    }

    fn meta(location: Path, bytes: u64, changed_ms: u64) -> ObjectMeta {
        let last_modified = DateTime::<Utc>::from_timestamp_millis(changed_ms as i64).unwrap_or_default();
        ObjectMeta { location, last_modified, size: bytes, e_tag: None, version: None }
    }

    fn listed(&self, prefix: Option<&Path>) -> io::Result<Vec<ObjectMeta>> {
        let dir = prefix.map_or_else(|| PathBuf::from(ROOT), Self::disk_path);
        let files = self.disk.files_below(&dir)?;
        let object = |(path, bytes, changed_ms): (PathBuf, u64, u64)| {
            let name = path.strip_prefix(ROOT).ok()?.to_str()?.to_owned();
            let is_staged = name.contains('#') || path == dir;
            (!is_staged).then(|| Self::meta(Path::from(name), bytes, changed_ms))
        };
        Ok(files.into_iter().filter_map(object).collect())
    }
}

#[async_trait]
impl ObjectStore for SimStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        match opts.mode {
            PutMode::Overwrite => self.put_file(location, payload, false).await,
            PutMode::Create => self.put_file(location, payload, true).await,
            PutMode::Update(_) => Err(not_implemented("put_opts with PutMode::Update")),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload { store: self.clone(), location: location.clone(), parts: Vec::new() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.answers(location).await;
        let failed = |error| to_error(location, error);
        self.take_time().await;
        let path = Self::disk_path(location);
        let (bytes, changed_ms) = self.disk.stat(&path).map_err(failed)?;
        let all =
            if options.head { vec![0; bytes as usize] } else { self.disk.contents(&path).map_err(failed)? };
        let meta = Self::meta(location.clone(), bytes, changed_ms);
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| Error::Generic { store: "SimStore", source: Box::new(error) })?,
            None => 0..meta.size,
        };
        let bytes = Bytes::from(all).slice(range.start as usize..range.end as usize);
        let payload = GetResultPayload::Stream(futures::stream::once(async move { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes: object_store::Attributes::default() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        locations
            .then(move |location| {
                let store = store.clone();
                async move {
                    let location = location?;
                    store.take_time().await;
                    let removed = store.disk.remove(&Self::disk_path(&location));
                    removed.map_err(|error| to_error(&location, error))?;
                    if store.loses_answer() { Err(lost(&location)) } else { Ok(location) }
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.listed(prefix) {
            Ok(metas) => futures::stream::iter(metas.into_iter().map(Ok)).boxed(),
            Err(error) => {
                let error = to_error(&Path::from("/"), error);
                futures::stream::once(async move { Err(error) }).boxed()
            }
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let base = prefix.map_or(0, |prefix| prefix.parts().count());
        let metas = self.listed(prefix).map_err(|error| to_error(&Path::from("/"), error))?;
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        for meta in metas {
            if meta.location.parts().count() == base + 1 {
                result.objects.push(meta);
                continue;
            }
            let common: Path = meta.location.parts().take(base + 1).collect();
            if result.common_prefixes.last() != Some(&common) {
                result.common_prefixes.push(common);
            }
        }
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, _options: CopyOptions) -> Result<()> {
        self.take_time().await;
        let bytes = self.disk.contents(&Self::disk_path(from)).map_err(|error| to_error(from, error))?;
        self.put_file(to, PutPayload::from(bytes), false).await.map(drop)
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimStore")
    }
}

impl fmt::Display for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimStore")
    }
}

#[derive(Debug)]
struct Upload {
    store: SimStore,
    location: Path,
    parts: Vec<Bytes>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.extend(data.iter().cloned());
        Box::pin(futures::future::ready(Ok(())))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let payload = std::mem::take(&mut self.parts).into_iter().collect();
        self.store.put_file(&self.location, payload, false).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}

fn not_implemented(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.into(), implementer: "SimStore".into() }
}

fn lost(location: &Path) -> Error {
    Error::Generic { store: "SimStore", source: format!("'/{location}': the answer was lost").into() }
}

fn to_error(location: &Path, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: error.into() },
        io::ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        _ => Error::Generic { store: "SimStore", source: format!("'/{path}': {error}").into() },
    }
}
