//! The place of this server's catalog: SQLite's file in its directory, or a database of PostgreSQL; and its move between them.
//!
//! Invariant: `node.json` says which of the two counts. A move switches it last, after the copy was compared with the original; so a
//! server never goes on with names from before a move. Not its business: the catalog's contents.

use crate::node::node_file::NodeFile;
use crate::node::options::EngineOptions;
use crate::node::start_error::StartError;
use crate::node::state_dir;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use tributary_catalog::{
    Catalog, CatalogError, CatalogLocation, Claim, Claimed, Copied, NodeEntry, PostgresOptions,
    copy_to_postgres, copy_to_sqlite,
};
use tributary_wal::{Disk, OsDisk, is_in_use};

const CATALOG_FILE: &str = "catalog.db";
/// The name of the file once its contents were moved.
const MOVED_FILE: &str = "catalog.db.moved";
/// The name of a file that is being written.
const STAGED_FILE: &str = "catalog.db.new";

/// Moves the catalog of the server in a directory, which must not run, from its file to a database.
///
/// # Errors
/// [`StartError::CatalogElsewhere`] if it is not a file; [`StartError::Locked`]; those of both catalogs. Then the file still counts.
pub async fn move_to_postgres(dir: &Path, to: &PostgresOptions) -> Result<Copied, StartError> {
    let (_lock, node) = stopped_server(dir)?;
    if node.catalog().is_some() {
        return Err(StartError::CatalogElsewhere { directory: dir.to_owned() });
    }
    let file = dir.join(CATALOG_FILE);
    if !CatalogLocation::in_directory(dir).exists() {
        return Err(StartError::NoServer { directory: dir.to_owned() });
    }
    let copied = copy_to_postgres(&file, to, &node.id(), &own_host()).await?;
    node.keep_catalog(Some(&copied.id))?;
    // Nothing opens it any more.
    if let Err(error) = std::fs::rename(&file, dir.join(MOVED_FILE)) {
        tracing::warn!(%error, "the file catalog.db stays, and does not count any more");
    }
    Ok(copied)
}

/// Moves the catalog of the server in a directory, which must not run, from its database to a file.
///
/// # Errors
/// [`StartError::CatalogHere`] if it is a file; [`StartError::Locked`]; those of both catalogs. Then the database still counts.
pub async fn move_to_file(from: &PostgresOptions, dir: &Path) -> Result<Copied, StartError> {
    let (_lock, node) = stopped_server(dir)?;
    let Some(known) = node.catalog() else {
        return Err(StartError::CatalogHere { file: dir.join(CATALOG_FILE), wanted: from.url.to_string() });
    };
    let failed =
        |action: &'static str, path: &Path, source| StartError::Io { action, path: path.to_owned(), source };
    let (staged, file) = (dir.join(STAGED_FILE), dir.join(CATALOG_FILE));
    for left in [STAGED_FILE, "catalog.db.new-wal", "catalog.db.new-shm", "catalog.db-wal", "catalog.db-shm"]
    {
        let left = dir.join(left);
        match std::fs::remove_file(&left) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("remove", &left, error));
            }
            _ => {}
        }
    }
    keep_private(&staged);
    let id = node.id();
    let claim = Claim { node: &id, host: &own_host(), known: Some(&known) };
    let copied = copy_to_sqlite(from, &staged, &claim).await?;
    let synced = std::fs::File::open(&staged).and_then(|file| file.sync_all());
    synced.map_err(|error| failed("sync", &staged, error))?;
    std::fs::rename(&staged, &file).map_err(|error| failed("rename", &staged, error))?;
    OsDisk.sync_dir(dir).map_err(|error| failed("sync the directory", dir, error))?;
    node.keep_catalog(None)?;
    Ok(copied)
}

/// A server's directory, locked, and its identity.
fn stopped_server(dir: &Path) -> Result<(std::fs::File, NodeFile), StartError> {
    if !dir.join("node.json").exists() {
        return Err(StartError::NoServer { directory: dir.to_owned() });
    }
    let lock = state_dir::lock(dir)?;
    let node = NodeFile::read(Arc::new(OsDisk), dir)?;
    let node = node.ok_or_else(|| StartError::NoServer { directory: dir.to_owned() })?;
    Ok((lock, node))
}

/// This node's identity, and its catalog.
pub(crate) struct Opened {
    pub node: NodeFile,
    pub catalog: Arc<Catalog>,
    /// `None`: the catalog is a file, which nobody else can claim.
    pub claimed: Option<Claimed>,
}

/// Opens this node's identity, and its catalog, which records it.
///
/// # Errors
/// [`StartError::CatalogElsewhere`], [`StartError::CatalogHere`]; those of the node's file and of the catalog.
pub(crate) async fn open(options: &EngineOptions) -> Result<Opened, StartError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let found = NodeFile::read(Arc::clone(&disk), &options.state_dir)?;
    let known = found.as_ref().and_then(NodeFile::catalog);
    if options.only_reads() {
        return of_another(options, found, disk).await;
    }
    match (&options.catalog_database, known) {
        (Some(database), known) => in_database(options, database, found, known, disk).await,
        (None, Some(_)) => Err(StartError::CatalogElsewhere { directory: options.state_dir.clone() }),
        (None, None) => {
            let (node, catalog) = in_file(options, found, disk).await?;
            Ok(Opened { node, catalog, claimed: None })
        }
    }
}

/// Opens the catalog of another server, which it goes on owning, to read it.
async fn of_another(
    options: &EngineOptions,
    found: Option<NodeFile>,
    disk: Arc<dyn Disk>,
) -> Result<Opened, StartError> {
    let dir = &options.state_dir;
    let writes = |file: &NodeFile| file.catalog().is_some() || !file.wal_dirs().is_empty();
    let location = match &options.catalog_database {
        Some(database) if !found.as_ref().is_some_and(writes) && !dir.join(CATALOG_FILE).exists() => {
            CatalogLocation::Postgres(database.clone())
        }
        _ => return Err(StartError::DirectoryOfWriter { directory: dir.clone() }),
    };
    let catalog = Arc::new(Catalog::open(&location).await?);
    let node = match found {
        Some(file) => file,
        None => NodeFile::create(disk, dir)?,
    };
    Ok(Opened { node, catalog, claimed: None })
}

/// Opens the catalog in PostgreSQL.
async fn in_database(
    options: &EngineOptions,
    database: &PostgresOptions,
    found: Option<NodeFile>,
    known: Option<String>,
    disk: Arc<dyn Disk>,
) -> Result<Opened, StartError> {
    let dir = &options.state_dir;
    if known.is_none() {
        let file = CatalogLocation::in_directory(dir);
        if file.exists() {
            return Err(StartError::CatalogHere {
                file: dir.join(CATALOG_FILE),
                wanted: database.url.to_string(),
            });
        }
        refuse_missing_catalog(&file, options, found.as_ref())?;
    }
    if database.url.is_open() {
        tracing::warn!(
            "the way to the catalog {} is not encrypted: definitions and passwords can be read on it (sslmode)",
            database.url
        );
    }
    let file = match found {
        Some(file) => file,
        None => NodeFile::create(Arc::clone(&disk), dir)?,
    };
    let (node, host) = (file.id(), own_host());
    let claim = Claim { node: &node, host: &host, known: known.as_deref() };
    let (catalog, claimed) = Catalog::claim(database, &claim).await?;
    file.keep_catalog(Some(&claimed.id))?;
    let entry = catalog.node_entry().await?;
    let file = NodeFile::settle(Some(file), &entry, disk, dir)?;
    if !matches!(entry, NodeEntry::InFile(_)) {
        catalog.node_is_in_file(&node).await?;
    }
    Ok(Opened { node: file, catalog: Arc::new(catalog), claimed: Some(claimed) })
}

/// The machine and the process, for others to read.
fn own_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} (process {})", name.trim(), std::process::id())
}

/// Opens the catalog in SQLite's file.
async fn in_file(
    options: &EngineOptions,
    mut found: Option<NodeFile>,
    disk: Arc<dyn Disk>,
) -> Result<(NodeFile, Arc<Catalog>), StartError> {
    let dir = &options.state_dir;
    let location = CatalogLocation::in_directory(dir);
    if !location.exists() {
        refuse_missing_catalog(&location, options, found.as_ref())?;
        if found.is_none() {
            found = Some(NodeFile::create(Arc::clone(&disk), dir)?);
        }
    }
    keep_private(&dir.join(CATALOG_FILE));
    let catalog = Catalog::open(&location).await?;
    let entry = catalog.node_entry().await?;
    let node = NodeFile::settle(found, &entry, disk, dir)?;
    if !matches!(entry, NodeEntry::InFile(_)) {
        catalog.node_is_in_file(&node.id()).await?;
    }
    Ok((node, Arc::new(catalog)))
}

/// Restricts reading of the catalog to the server's user: it contains the keys of stores that jobs need, in clear.
fn keep_private(file: &Path) {
    // The files beside it inherit its mode.
    let kept = OpenOptions::new().create(true).append(true).mode(0o600).open(file).and_then(|file| {
        let mode = file.metadata()?.permissions().mode();
        let others = mode & 0o077;
        if others == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode & 0o700)) }
    });
    if let Err(error) = kept {
        tracing::warn!(catalog = %file.display(), %error, "others may be able to read the catalog, which has keys of stores");
    }
    for end in ["-wal", "-shm"] {
        let mut beside = file.to_owned().into_os_string();
        beside.push(end);
        // They exist while a catalog is open, and after a crash.
        let _ = std::fs::set_permissions(beside, Permissions::from_mode(0o600));
    }
}

/// A new catalog beside the tables and logs of an old one would give up every row.
fn refuse_missing_catalog(
    location: &CatalogLocation,
    options: &EngineOptions,
    node: Option<&NodeFile>,
) -> Result<(), StartError> {
    let tables = options.tables.directory().join("tables");
    let log = || options.ingest.wal_dirs.iter().find(|dir| is_in_use(dir)).cloned();
    let table =
        || std::fs::read_dir(&tables).is_ok_and(|mut inside| inside.next().is_some()).then(|| tables.clone());
    let node = || node.filter(|node| !node.wal_dirs().is_empty()).map(NodeFile::path);
    log().or_else(table).or_else(node).map_or(Ok(()), |evidence| {
        let (path, evidence) = (location.to_string(), evidence.display().to_string());
        Err(CatalogError::Missing { path, evidence }.into())
    })
}
