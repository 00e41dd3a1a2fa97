//! Backups of the running server, and servers made of them after all of the machine's files are lost.
//!
//! At a backup's moment the rules are copied, too. A server that is restored must keep every promise of that moment, exactly as if it
//! had been killed then; what happened later never did.

use crate::catalog::CatalogRows;
use crate::channels::Channels;
use crate::feeds::Feeds;
use crate::increments::Increments;
use crate::keyed::Keys;
use crate::model::Model;
use crate::rejected::Rejected;
use crate::shares::Shares;
use crate::store::SimStore;
use crate::trace::note;
use crate::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_backup::{
    BackupError, CatalogSource, FrozenCatalog, Layout, Repository, SavedCatalog, SavedTable, Server, take,
};
use tributary_table::TableError;
use tributary_types::host;
use tributary_wal::Disk;

/// The most time between the beginning of a life and a backup, in µs.
const AFTER_US_MAX: u64 = 60_000;

/// A backup, and the state of the simulation that it must restore.
pub struct Kept {
    repository: Repository,
    name: String,
    catalog: CatalogRows,
    rules: Rules,
}

/// The rules at one moment.
struct Rules {
    model: Model,
    feeds: Feeds,
    shares: Shares,
    increments: Increments,
    keys: Keys,
    channels: Channels,
    rejected: Rejected,
}

impl Rules {
    fn of(world: &World) -> Self {
        Self {
            model: world.model.borrow().clone(),
            feeds: world.feeds.borrow().clone(),
            shares: world.shares.borrow().clone(),
            increments: world.increments.borrow().clone(),
            keys: world.keys.borrow().clone(),
            channels: world.channels.borrow().clone(),
            rejected: world.rejected.borrow().at_moment_of(&world.process().ingest),
        }
    }

    fn apply(self, world: &World) {
        *world.model.borrow_mut() = self.model;
        *world.feeds.borrow_mut() = self.feeds;
        *world.shares.borrow_mut() = self.shares;
        *world.increments.borrow_mut() = self.increments;
        *world.keys.borrow_mut() = self.keys;
        *world.channels.borrow_mut() = self.channels;
        *world.rejected.borrow_mut() = self.rejected;
    }
}

/// The catalog as a backup sees it. Its changes are atomic, so it is copied at the moment itself.
struct Catalog {
    catalog: crate::catalog::SimCatalog,
    taken: Arc<Mutex<Option<CatalogRows>>>,
}

#[async_trait]
impl CatalogSource for Catalog {
    async fn freeze(&self) -> std::result::Result<Box<dyn FrozenCatalog>, String> {
        Ok(Box::new(Self { catalog: self.catalog.clone(), taken: Arc::clone(&self.taken) }))
    }
}

#[async_trait]
impl FrozenCatalog for Catalog {
    fn at_moment(&mut self) {
        *self.taken.lock() = Some(self.catalog.copy());
    }

    async fn save(self: Box<Self>) -> std::result::Result<SavedCatalog, String> {
        let tables = self.taken.lock().as_ref().map(CatalogRows::tables).unwrap_or_default();
        let saved = |def: &Arc<tributary_types::TableDef>| SavedTable {
            id: def.id,
            name: def.name.clone(),
            location: def.location.clone(),
        };
        Ok(SavedCatalog { file: Bytes::new(), tables: tables.iter().map(saved).collect() })
    }
}

/// Takes a backup now and then, until the server dies.
pub async fn operator(world: Rc<World>) {
    let store: Arc<dyn ObjectStore> = Arc::new(FarStore::default());
    let repository = Repository::new(store, Path::from("backups"), "memory".to_owned());
    for number in 0..3_u32 {
        world.think(AFTER_US_MAX).await;
        let name = format!("b{number}");
        match backup(&world, &repository, &name).await {
            Ok(kept) => {
                world.count(|counts| counts.backups += 1);
                note!(world.trace, "backup", number, 0, "{name}");
                *world.backup.borrow_mut() = Some(kept);
            }
            Err(error) if world.is_alive() && (world.plan.power_off == 0 || is_of_a_lost_file(&error)) => {
                world.violated(format!("a backup failed: {error}"));
            }
            Err(error) => note!(world.trace, "no backup", number, 0, "{error}"),
        }
    }
}

/// Whether a file was gone that the backup needed. No fault of the disk does that.
fn is_of_a_lost_file(error: &BackupError) -> bool {
    match error {
        BackupError::Place { source: object_store::Error::NotFound { .. }, .. }
        | BackupError::Damaged { .. }
        | BackupError::Table(TableError::DamagedFile { .. }) => true,
        BackupError::Source { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

async fn backup(
    world: &Rc<World>,
    repository: &Repository,
    name: &str,
) -> std::result::Result<Kept, BackupError> {
    let process = world.process();
    let taken = Arc::default();
    let catalog = Catalog { catalog: world.hardware.catalog.clone(), taken: Arc::clone(&taken) };
    let logs = (0..process.ingest.log_dirs().len()).map(|number| format!("wal-{number}")).collect();
    let server = Server {
        ingest: &process.ingest,
        store: &process.store,
        disk: Arc::new(world.hardware.lying.clone()) as Arc<dyn Disk>,
        catalog: &catalog,
        layout: Layout {
            catalog: "catalog".to_owned(),
            node: "node".to_owned(),
            logs,
            keys: "keys".to_owned(),
            rejected: "rejected".to_owned(),
            tables: SimStore::disk_path(&Path::default()).display().to_string().replace('/', ""),
        },
        node: (String::new(), Bytes::new()),
        version: "simulated",
    };
    let rules = RefCell::new(None);
    take(&server, repository, Some(name), || *rules.borrow_mut() = Some(Rules::of(world))).await?;
    let catalog = taken.lock().take().expect("a backup has a moment");
    let rules = rules.into_inner().expect("a backup has a moment");
    Ok(Kept { repository: repository.clone(), name: name.to_owned(), catalog, rules })
}

/// Loses all files and restores the last backup, now and then if there is one. The server is dead.
pub fn restore_sometimes(world: &Rc<World>) {
    if world.backup.borrow().is_none() || !world.throw(|dice| dice.one_in(2)) {
        return;
    }
    let Some(kept) = world.backup.borrow_mut().take() else { return };
    note!(world.trace, "restore", 0, 0, "{}", kept.name);
    world.count(|counts| counts.restored += 1);
    let to = InMemory::new();
    let restored = futures::executor::block_on(async {
        kept.repository.restore(Some(&kept.name), &to, &Path::default(), |_, _| ()).await?;
        Ok::<_, BackupError>(contents(&to).await.expect("memory can be read"))
    });
    let files = match restored {
        Ok(files) => files,
        Err(error) => return world.violated(format!("a backup can't be restored: {error}")),
    };
    let disk = &world.hardware.disk;
    for (path, ..) in disk.files_below(std::path::Path::new("/")).unwrap_or_default() {
        disk.take_away(&path);
    }
    for (location, bytes) in files {
        disk.put(&PathBuf::from(format!("/{location}")), bytes.to_vec());
    }
    world.hardware.catalog.put_back(kept.catalog);
    kept.rules.apply(world);
}

async fn contents(store: &InMemory) -> Result<Vec<(Path, Bytes)>> {
    let listed: Vec<_> = store.list(None).try_collect().await?;
    let mut files = Vec::with_capacity(listed.len());
    for meta in listed {
        let bytes = store.get(&meta.location).await?.bytes().await?;
        files.push((meta.location, bytes));
    }
    Ok(files)
}

/// The store of backups: a perfect one, far away.
#[derive(Debug, Default)]
struct FarStore(InMemory);

impl fmt::Display for FarStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FarStore")
    }
}

/// The way there and back, during which the server works.
async fn travel() {
    let way = Duration::from_micros((host::random(|| 0) % 4_000) as u64);
    host::sleep(way, || std::future::ready(())).await;
}

#[async_trait]
impl ObjectStore for FarStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        travel().await;
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
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}
