//! Makes the files of a server from a backup, and checks backups.

use crate::error::BackupError;
use crate::manifest::{Manifest, SavedFile};
use crate::repository::{Repository, local};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};

/// Larger files are written in pieces of this size.
const PIECE_BYTES: usize = 8 << 20;

/// A backup that was restored or checked.
#[derive(Clone, Debug)]
pub struct Restored {
    pub manifest: Manifest,
    pub files: usize,
    pub bytes: u64,
}

impl Repository {
    /// Writes the files of a backup below `prefix` of `to`, which makes them durable before it confirms them. Without a name the newest
    /// backup. Call it with an empty directory; the file without which no server starts is written last.
    ///
    /// # Errors
    /// [`BackupError`]; then some files were written.
    pub async fn restore(
        &self,
        name: Option<&str>,
        to: &dyn ObjectStore,
        prefix: &Path,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Restored, BackupError> {
        let manifest = self.manifest(name).await?;
        let all = manifest.bytes();
        let mut bytes = 0;
        for file in &manifest.files {
            self.restore_file(file, to, prefix).await?;
            bytes += file.bytes;
            progress(bytes, all);
        }
        Ok(Restored { files: manifest.files.len(), bytes, manifest })
    }

    /// [`Repository::restore`] into a directory of this machine, an absolute path.
    ///
    /// # Errors
    /// As [`Repository::restore`].
    pub async fn restore_to(
        &self,
        name: Option<&str>,
        directory: &std::path::Path,
        progress: impl FnMut(u64, u64),
    ) -> Result<Restored, BackupError> {
        let (store, prefix) = local(directory)?;
        self.restore(name, &*store, &prefix, progress).await
    }

    async fn restore_file(
        &self,
        file: &SavedFile,
        to: &dyn ObjectStore,
        prefix: &Path,
    ) -> Result<(), BackupError> {
        let path: Path = prefix.parts().chain(Path::from(file.path.as_str()).parts()).collect();
        let failed = || BackupError::place(format!("writing {path}"));
        let mut contents = self.read(file).await?;
        if file.bytes <= PIECE_BYTES as u64 {
            let mut whole = Vec::with_capacity(file.bytes as usize);
            while let Some(piece) = contents.try_next().await? {
                whole.extend_from_slice(&piece);
            }
            return to.put(&path, PutPayload::from(whole)).await.map(drop).map_err(failed());
        }
        let upload = to.put_multipart(&path).await.map_err(failed())?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE_BYTES);
        while let Some(piece) = contents.try_next().await? {
            upload.wait_for_capacity(1).await.map_err(failed())?;
            upload.put(piece);
        }
        upload.finish().await.map(drop).map_err(failed())
    }

    /// Reads every object of a backup and compares it with what was written. Without a name the newest backup.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] with the first object that differs; [`BackupError`].
    pub async fn check(&self, name: Option<&str>) -> Result<Restored, BackupError> {
        let manifest = self.manifest(name).await?;
        for file in &manifest.files {
            let mut contents = self.read(file).await?;
            while contents.try_next().await?.is_some() {}
        }
        Ok(Restored { files: manifest.files.len(), bytes: manifest.bytes(), manifest })
    }
}
