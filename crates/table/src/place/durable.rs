//! A local file system whose writes are durable when they return.
//!
//! `object_store`'s own local store never calls fsync, so a Delta commit or a data file that it reported as written may be lost
//! in a power failure, when the write-ahead log has already been trimmed. Here every put, upload, copy and rename opens the
//! directory, writes a staged file, makes it durable, gives it its name and makes the directory durable, in that order. Reads,
//! lists and deletes are the inner store's.
//!
//! Staged files are called `<name>#<digits>`, which the inner store never lists.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, Result, UploadPart,
};
use parking_lot::Mutex;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const STORE: &str = "DurableLocal";

/// The local file system, with `/` as its root so that paths are those of `file://` URLs.
#[derive(Clone, Debug)]
pub struct DurableLocal {
    inner: Arc<LocalFileSystem>,
}

impl Default for DurableLocal {
    fn default() -> Self {
        Self { inner: Arc::new(LocalFileSystem::new()) }
    }
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STORE)
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let target = self.inner.path_to_filesystem(location)?;
        let create = match opts.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => {
                return Err(Error::NotImplemented {
                    operation: "`put_opts` with mode `PutMode::Update`".into(),
                    implementer: STORE.into(),
                });
            }
        };
        on_disk_thread(move || {
            let mut staged = Staged::create(&target)?;
            for chunk in &payload {
                staged.file.write_all(chunk)?;
            }
            staged.publish(&target, create)
        })
        .await
        .map_err(|error| generic(location, error))
        .map(|()| PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let target = self.inner.path_to_filesystem(location)?;
        let staging = target.clone();
        let staged = on_disk_thread(move || Staged::create(&staging))
            .await
            .map_err(|error| generic(location, error))?;
        Ok(Box::new(DurableUpload {
            location: location.clone(),
            target,
            staged: Arc::new(Mutex::new(Some(staged))),
            next_offset: 0,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let source = self.inner.path_to_filesystem(from)?;
        let target = self.inner.path_to_filesystem(to)?;
        let create = options.mode == CopyMode::Create;
        on_disk_thread(move || Staged::link(&source, &target)?.publish(&target, create))
            .await
            .map_err(|error| generic(to, error))
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let source = self.inner.path_to_filesystem(from)?;
        let target = self.inner.path_to_filesystem(to)?;
        let create = options.target_mode == RenameTargetMode::Create;
        on_disk_thread(move || rename(&source, &target, create)).await.map_err(|error| generic(to, error))
    }
}

fn rename(source: &FsPath, target: &FsPath, create: bool) -> io::Result<()> {
    File::open(source)?.sync_all()?;
    let (left, entered) = (Directory::of(source)?, Directory::of(target)?);
    let gone = if create {
        fs::hard_link(source, target)?;
        fs::remove_file(source)
    } else {
        fs::rename(source, target)?;
        Ok(())
    };
    entered.sync(target);
    gone?;
    left.sync(source);
    Ok(())
}

/// The directory of a name, opened before the name is created: then a server that is out of file descriptors fails before it has
/// changed anything, instead of having to end because it can't make a name durable.
#[derive(Debug)]
struct Directory(File);

impl Directory {
    /// The directory of `target`, durably created if it is missing.
    fn of(target: &FsPath) -> io::Result<Self> {
        let Some(parent) = target.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
        match File::open(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_dirs(parent)?;
                File::open(parent).map(Self)
            }
            opened => opened.map(Self),
        }
    }

    /// Makes a name durable that readers already see. If that fails the process ends: whether the name survives a power failure
    /// is unknown, no later sync would tell, and readers would consider the file durable.
    fn sync(&self, name: &FsPath) {
        let Err(error) = self.try_sync() else { return };
        tracing::error!(path = %name.display(), %error, "a directory can't be made durable");
        tributary_types::process::abort(&format!(
            "the directory of {} can't be made durable: {error}. What a power failure would leave is unknown, so the server \
             ends here. Check the disk (dmesg, SMART), then restart it",
            name.display()
        ))
    }

    fn try_sync(&self) -> io::Result<()> {
        #[cfg(test)]
        if tests::FAIL_DIRECTORY_SYNCS.load(Ordering::Relaxed) {
            return Err(io::Error::other("the test said so"));
        }
        self.0.sync_all()
    }
}

/// A file that does not have its name yet. Dropped without [`Staged::publish`] it is deleted.
#[derive(Debug)]
struct Staged {
    file: File,
    path: PathBuf,
    directory: Directory,
    named: bool,
}

impl Staged {
    fn create(target: &FsPath) -> io::Result<Self> {
        let directory = Directory::of(target)?;
        let (file, path) =
            with_free_name(target, |path| OpenOptions::new().write(true).create_new(true).open(path))?;
        Ok(Self { file, path, directory, named: false })
    }

    /// Creates a second name of `source`, which is no longer written to.
    fn link(source: &FsPath, target: &FsPath) -> io::Result<Self> {
        let (file, directory) = (File::open(source)?, Directory::of(target)?);
        let ((), path) = with_free_name(target, |path| fs::hard_link(source, path))?;
        Ok(Self { file, path, directory, named: false })
    }

    /// Makes the content durable, then its name. With `create` an existing target is an error, and is made durable before that is
    /// reported: its creator may have been cancelled just before the sync. After an error the target is unchanged.
    fn publish(mut self, target: &FsPath, create: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if create {
            if let Err(error) = fs::hard_link(&self.path, target) {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    self.directory.sync(target);
                }
                return Err(error);
            }
            self.remove();
        } else {
            fs::rename(&self.path, target)?;
        }
        self.named = true;
        self.directory.sync(target);
        Ok(())
    }

    /// Leftovers are swept later.
    fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a staged file could not be removed");
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.named {
            self.remove();
        }
    }
}

fn with_free_name<T>(target: &FsPath, make: impl Fn(&FsPath) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    loop {
        let mut name = target.as_os_str().to_owned();
        name.push(format!("#{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let path = PathBuf::from(name);
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (made, path)),
        }
    }
}

#[derive(Debug)]
struct DurableUpload {
    location: Path,
    target: PathBuf,
    staged: Arc<Mutex<Option<Staged>>>,
    next_offset: u64,
}

#[async_trait]
impl MultipartUpload for DurableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let offset = self.next_offset;
        self.next_offset += data.content_length() as u64;
        let staged = Arc::clone(&self.staged);
        let location = self.location.clone();
        Box::pin(async move {
            on_disk_thread(move || {
                let mut guard = staged.lock();
                let file = &mut guard.as_mut().ok_or_else(upload_is_over)?.file;
                file.seek(SeekFrom::Start(offset))?;
                data.iter().try_for_each(|chunk| file.write_all(chunk))
            })
            .await
            .map_err(|error| generic(&location, error))
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let staged = self.staged.lock().take().ok_or_else(|| generic(&self.location, upload_is_over()))?;
        let target = self.target.clone();
        on_disk_thread(move || staged.publish(&target, false))
            .await
            .map_err(|error| generic(&self.location, error))?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        drop(self.staged.lock().take());
        Ok(())
    }
}

fn upload_is_over() -> io::Error {
    io::Error::other("the upload is already completed or aborted")
}

/// Creates the absolute path `directory` and its missing parents, each entry durable in its parent.
pub(crate) fn create_dirs(directory: &FsPath) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = Directory::of(directory)?;
    match fs::create_dir(directory) {
        // Somebody else who has just created it may not have synced it yet.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => {
            above.sync(directory);
            Ok(())
        }
    }
}

/// Makes the names in a table's directories durable before anything relies on them: they may exist only
/// in the page cache, left there by a process that died between naming a file and syncing its directory.
pub(crate) fn sync_left_names(directory: &FsPath) -> io::Result<()> {
    let parents = directory.parent().into_iter().chain(directory.parent().and_then(FsPath::parent));
    let log = directory.join("_delta_log");
    for path in [log.as_path(), directory].into_iter().chain(parents) {
        match File::open(path) {
            Ok(opened) => opened.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn on_disk_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn generic(location: &Path, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: error.into() },
        io::ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: error.into() },
        _ => Error::Generic { store: STORE, source: format!("'/{path}': {error}").into() },
    }
}

/// Deletes staged files that a crash left below `directory` and that are older than `age`.
/// Returns how many.
pub(crate) fn sweep_staged(directory: &FsPath, age: Duration) -> io::Result<u64> {
    let mut swept = 0;
    let now = SystemTime::now();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            swept += sweep_staged(&entry.path(), age)?;
            continue;
        }
        let modified = entry.metadata()?.modified()?;
        let old = now.duration_since(modified).is_ok_and(|elapsed| elapsed >= age);
        if old && is_staged(&entry.path()) {
            fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

fn is_staged(path: &FsPath) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('#')
        .is_some_and(|(_, digits)| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
