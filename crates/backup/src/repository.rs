//! A directory, or a part of an object store, with backups.
//!
//! | object | contents |
//! | --- | --- |
//! | `backups/<name>/manifest.json` | the backup's files; there once all of them are |
//! | `backups/<name>/…` | its catalog, identity, logs, and Delta logs |
//! | `running/<node>.json` | what a server does here now ([`keep`](crate::keep)) |
//! | `data/<location>/…` | data files and deletion vectors, shared by all backups: none ever changes, so each is copied once |
//!
//! Invariant: an object under `data/` that a manifest names stays as it is while that manifest exists.

use crate::error::BackupError;
use crate::manifest::{FORMAT, Manifest, SavedFile, shown};
use crate::pace::Pace;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use serde::Deserialize;
use std::sync::Arc;
use tributary_table::DurableLocal;
use xxhash_rust::xxh3::Xxh3;

/// Larger objects are uploaded in pieces of this size.
const PIECE_BYTES: u64 = 8 << 20;
const PIECES_AT_ONCE: usize = 4;
pub(crate) const MANIFEST: &str = "manifest.json";

/// A place for backups.
#[derive(Clone, Debug)]
pub struct Repository {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
    shown: String,
    pace: Pace,
}

/// A backup in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub name: String,
    /// Milliseconds since 1970.
    pub moment_ms: i64,
    pub tables: usize,
    pub files: usize,
    pub bytes: u64,
}

impl Summary {
    /// The moment of the backup, for people.
    #[must_use]
    pub fn moment(&self) -> String {
        shown(self.moment_ms)
    }
}

impl Repository {
    /// The repository below `prefix` of a store that makes objects durable before it confirms them. `shown` is its name in messages.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, shown: String) -> Self {
        Self { store, prefix, shown, pace: Pace::default() }
    }

    /// The same repository, written at a pace.
    #[must_use]
    pub fn at_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// The repository in a directory of this machine, an absolute path.
    ///
    /// # Errors
    /// [`BackupError::Place`] for a path that has characters which no store takes.
    pub fn in_directory(directory: &std::path::Path) -> Result<Self, BackupError> {
        let (store, prefix) = local(directory)?;
        Ok(Self::new(store, prefix, directory.display().to_string()))
    }

    /// The name in messages.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn path(&self, object: &str) -> Path {
        self.prefix.parts().chain(Path::from(object).parts()).collect()
    }

    /// The backups, oldest first.
    ///
    /// # Errors
    /// [`BackupError::Place`], [`BackupError::Unreadable`].
    pub async fn list(&self) -> Result<Vec<Summary>, BackupError> {
        let summary = |manifest: Manifest| Summary {
            bytes: manifest.bytes(),
            moment_ms: manifest.moment_ms,
            tables: manifest.tables.len(),
            files: manifest.files.len(),
            name: manifest.name,
        };
        Ok(self.manifests().await?.into_iter().map(summary).collect())
    }

    /// The manifests, oldest first.
    pub(crate) async fn manifests(&self) -> Result<Vec<Manifest>, BackupError> {
        let doing = format!("listing the backups in {}", self.shown);
        let below = self.path("backups");
        let folders =
            self.store.list_with_delimiter(Some(&below)).await.map_err(BackupError::place(doing))?;
        let mut manifests = Vec::new();
        for folder in folders.common_prefixes {
            let file: Path = folder.parts().chain(Path::from(MANIFEST).parts()).collect();
            match self.store.get(&file).await {
                Ok(found) => {
                    let bytes = found.bytes().await.map_err(BackupError::place(format!("reading {file}")))?;
                    manifests.push(read(&bytes, file.as_ref())?);
                }
                // It was not completed.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(BackupError::place(format!("reading {file}"))(error)),
            }
        }
        manifests.sort_by(|one, other| (one.moment_ms, &one.name).cmp(&(other.moment_ms, &other.name)));
        Ok(manifests)
    }

    /// The backup of that name, or the newest.
    ///
    /// # Errors
    /// [`BackupError::NoBackup`]; as [`Repository::list`].
    pub async fn manifest(&self, name: Option<&str>) -> Result<Manifest, BackupError> {
        let mut manifests = self.manifests().await?;
        let others = manifests.iter().map(|manifest| manifest.name.clone()).collect();
        let found = match name {
            Some(name) => manifests.into_iter().find(|manifest| manifest.name == name),
            None => manifests.pop(),
        };
        found.ok_or_else(|| BackupError::NoBackup { place: self.shown.clone(), others })
    }

    /// Writes an object in place of one of that name, and returns its length and hash.
    pub(crate) async fn write(
        &self,
        object: &str,
        bytes: u64,
        mut contents: BoxStream<'_, Result<Bytes, BackupError>>,
    ) -> Result<(u64, String), BackupError> {
        let path = self.path(object);
        let failed = || BackupError::place(format!("writing {path}"));
        let (mut hash, mut written) = (Xxh3::new(), 0);
        self.pace.file();
        if bytes <= PIECE_BYTES {
            let mut whole = Vec::with_capacity(bytes as usize);
            while let Some(piece) = contents.try_next().await? {
                whole.extend_from_slice(&piece);
            }
            hash.update(&whole);
            self.pace.pay(whole.len()).await;
            written = whole.len() as u64;
            self.store.put(&path, PutPayload::from(whole)).await.map_err(failed())?;
            return Ok((written, hex(hash.digest128())));
        }
        let upload = self.store.put_multipart(&path).await.map_err(failed())?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE_BYTES as usize);
        loop {
            match contents.try_next().await {
                Ok(Some(piece)) => {
                    hash.update(&piece);
                    self.pace.pay(piece.len()).await;
                    written += piece.len() as u64;
                    upload.wait_for_capacity(PIECES_AT_ONCE).await.map_err(failed())?;
                    upload.put(piece);
                }
                Ok(None) => break,
                Err(error) => {
                    if let Err(left) = upload.abort().await {
                        tracing::warn!(%path, error = %left, "an upload to a backup could not be given up");
                    }
                    return Err(error);
                }
            }
        }
        upload.finish().await.map_err(failed())?;
        Ok((written, hex(hash.digest128())))
    }

    /// Writes the manifest: from now on the backup exists.
    pub(crate) async fn publish(&self, manifest: &Manifest) -> Result<(), BackupError> {
        let text = serde_json::to_vec_pretty(manifest).expect("a struct of numbers and texts");
        let path = self.path(&format!("backups/{}/{MANIFEST}", manifest.name));
        let put = self.store.put(&path, PutPayload::from(text)).await;
        put.map(drop).map_err(BackupError::place(format!("writing {path}")))
    }

    /// Reads a file piece by piece; the last piece is followed by an error if it is not the one that was written.
    pub(crate) async fn read(
        &self,
        file: &SavedFile,
    ) -> Result<BoxStream<'static, Result<Bytes, BackupError>>, BackupError> {
        let path = self.path(&file.object);
        let damaged = |reason: String| BackupError::Damaged { object: path.to_string(), reason };
        let got = match self.store.get(&path).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Err(damaged("it is not there".to_owned())),
            Err(error) => return Err(BackupError::place(format!("reading {path}"))(error)),
        };
        if got.meta.size != file.bytes {
            return Err(damaged(format!("it has {} bytes, and {} were written", got.meta.size, file.bytes)));
        }
        let (wanted, shown) = (file.hash.clone(), path.to_string());
        let pieces = got.into_stream();
        let checked = futures::stream::unfold(Some((pieces, Xxh3::new())), move |state| {
            let (wanted, shown) = (wanted.clone(), shown.clone());
            async move {
                let (mut pieces, mut hash) = state?;
                match pieces.next().await {
                    Some(Ok(piece)) => {
                        hash.update(&piece);
                        Some((Ok(piece), Some((pieces, hash))))
                    }
                    Some(Err(error)) => {
                        Some((Err(BackupError::place(format!("reading {shown}"))(error)), None))
                    }
                    None if hex(hash.digest128()) == wanted => None,
                    None => {
                        let reason =
                            format!("its hash is {}, and {wanted} was written", hex(hash.digest128()));
                        Some((Err(BackupError::Damaged { object: shown, reason }), None))
                    }
                }
            }
        });
        Ok(checked.boxed())
    }
}

/// A directory of this machine as a store and a prefix. Objects are durable when they are confirmed.
pub(crate) fn local(directory: &std::path::Path) -> Result<(Arc<dyn ObjectStore>, Path), BackupError> {
    let prefix = Path::from_absolute_path(directory)
        .map_err(|error| BackupError::place(format!("naming {}", directory.display()))(error.into()))?;
    Ok((Arc::new(DurableLocal::default()), prefix))
}

fn read(bytes: &[u8], file: &str) -> Result<Manifest, BackupError> {
    /// The field common to all formats.
    #[derive(Deserialize)]
    struct Head {
        format: u64,
    }
    let unreadable = |reason: String| BackupError::Unreadable { file: file.to_owned(), reason };
    let head: Head = serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    if head.format > FORMAT {
        return Err(unreadable(format!("it has format {}, and this version knows {FORMAT}", head.format)));
    }
    serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))
}

fn hex(hash: u128) -> String {
    format!("{hash:032x}")
}
