//! Files of others that are written: results of queries.
//!
//! Invariant: a file has its name only when it is complete; one that is given up leaves nothing.

use crate::error::{FileError, cause};
use crate::local;
use crate::options::Properties;
use crate::s3;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::AsyncArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tributary_types::Egress;
use url::Url;

/// A row group is written once this many bytes of it are encoded.
const ROW_GROUP_BYTES: usize = 64 * 1024 * 1024;

/// The target of a result's files: names with a common prefix.
#[derive(Clone, Debug)]
pub struct Output {
    store: Arc<dyn ObjectStore>,
    /// The common prefix of keys.
    prefix: String,
    /// The prefix in the form that users see.
    shown: String,
    /// The directory, if it is one of this machine.
    directory: Option<PathBuf>,
}

/// How the pages of Parquet files are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCompression {
    None,
    #[default]
    Snappy,
    Zstd,
}

/// The store of `s3://bucket/path`, the path, and the place in the form that users see. Takes the properties of the store.
///
/// # Errors
/// [`FileError::Property`] for another place, or one that can't be used.
pub fn store_at(
    uri: &str,
    properties: &mut Properties,
    egress: &Arc<Egress>,
) -> Result<(Arc<dyn ObjectStore>, Path, String), FileError> {
    let (store, bucket, prefix) = s3::prefix(uri, properties, egress)?;
    let path = Path::parse(prefix.trim_end_matches('/'))
        .map_err(|_| FileError::Property(format!("'{prefix}' is no path of files")))?;
    let shown = format!("s3://{bucket}/{path}");
    Ok((Arc::new(store), path, shown))
}

impl Output {
    /// Names with the prefix `uri`: `s3://bucket/path/start_`, or `file:///directory/start_` below the directory `local`. Takes
    /// the properties of the place.
    ///
    /// # Errors
    /// [`FileError::Property`] and [`FileError::NotSupported`] for another place, or one that no file may be written to.
    pub fn open(
        uri: &str,
        properties: &mut Properties,
        local: Option<&std::path::Path>,
        egress: &Arc<Egress>,
    ) -> Result<Self, FileError> {
        let Some(path) = uri.strip_prefix("file://") else {
            let (store, bucket, prefix) = s3::prefix(uri, properties, egress)?;
            let shown = format!("s3://{bucket}/{prefix}");
            return Ok(Self { store: Arc::new(store), prefix, shown, directory: None });
        };
        let text = Url::parse(uri).ok().and_then(|url| url.to_file_path().ok());
        let path = text.ok_or_else(|| {
            FileError::Property(format!(
                "'file://{path}' is no path of this machine; write file:///directory/name_"
            ))
        })?;
        let (directory, prefix) = local::parent_below(local, &path, uri.ends_with('/'))?;
        let failed = |error: object_store::Error| FileError::Unwritable {
            file: uri.to_owned(),
            reason: cause(&error),
        };
        let store = LocalFileSystem::new_with_prefix(&directory).map_err(failed)?;
        let shown = format!("file://{}/{prefix}", directory.display());
        Ok(Self { store: Arc::new(store), prefix, shown, directory: Some(directory) })
    }

    /// The name of this file in the form that users see.
    #[must_use]
    pub fn shown(&self, name: &str) -> String {
        format!("{}{name}", self.shown)
    }

    /// The same directory, for a file whose name does not have the prefix of the result.
    #[must_use]
    pub fn directory(&self) -> Self {
        let cut = |text: &str| {
            text.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"))
        };
        Self {
            store: Arc::clone(&self.store),
            prefix: cut(&self.prefix),
            shown: cut(&self.shown),
            directory: self.directory.clone(),
        }
    }

    fn key(&self, name: &str) -> Result<Path, FileError> {
        let text = format!("{}{name}", self.prefix);
        Path::parse(&text).map_err(|_| FileError::Property(format!("'{text}' is no path of a file")))
    }

    /// Begins a file of bytes.
    ///
    /// # Errors
    /// [`FileError::Property`] if it can't have this name.
    pub fn bytes_file(&self, name: &str) -> Result<OutputFile, FileError> {
        let writer = BufWriter::new(Arc::clone(&self.store), self.key(name)?);
        Ok(OutputFile { name: self.shown(name), bytes: 0, writer: Writer::Bytes(Box::new(writer)) })
    }

    /// Begins a Parquet file.
    ///
    /// # Errors
    /// [`FileError::Property`] if it can't have this name, [`FileError::Unwritable`] if it can't have these columns.
    pub fn parquet_file(
        &self,
        name: &str,
        schema: &SchemaRef,
        compression: PageCompression,
    ) -> Result<OutputFile, FileError> {
        let compression = match compression {
            PageCompression::None => Compression::UNCOMPRESSED,
            PageCompression::Snappy => Compression::SNAPPY,
            PageCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
        };
        let properties = WriterProperties::builder().set_compression(compression).build();
        let upload = BufWriter::new(Arc::clone(&self.store), self.key(name)?);
        let writer = AsyncArrowWriter::try_new(upload, Arc::clone(schema), Some(properties));
        let name = self.shown(name);
        let writer = writer.map_err(|error| unwritable(&name, &error))?;
        Ok(OutputFile { name, bytes: 0, writer: Writer::Parquet(Box::new(writer)) })
    }

    /// Deletes a complete file. A missing file is not an error.
    ///
    /// # Errors
    /// [`FileError::Unwritable`].
    pub async fn delete(&self, name: &str) -> Result<(), FileError> {
        match self.store.delete(&self.key(name)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unwritable(&self.shown(name), &error)),
        }
    }

    /// Deletes all files with the prefix, including ones that a crash left half written on this machine.
    ///
    /// # Errors
    /// [`FileError::Unwritable`], [`FileError::Unlistable`]; then some may be left.
    pub async fn delete_all(&self, start: &str) -> Result<(), FileError> {
        match self.directory.clone() {
            Some(directory) => {
                let (start, shown) = (format!("{}{start}", self.prefix), self.shown(start));
                let deleted = tokio::task::spawn_blocking(move || delete_below(&directory, &start));
                let deleted = deleted.await.unwrap_or_else(|error| Err(io::Error::other(error)));
                deleted.map_err(|error| unwritable(&shown, &error))
            }
            None => self.delete_objects(start).await,
        }
    }

    async fn delete_objects(&self, start: &str) -> Result<(), FileError> {
        let key = self.key(start)?;
        let (directory, _) = key.as_ref().rsplit_once('/').unwrap_or_default();
        let directory = Path::parse(directory)
            .map_err(|_| FileError::Property(format!("'{directory}' is no path of a directory")))?;
        let unlistable = |error: object_store::Error| FileError::Unlistable {
            pattern: self.shown(&format!("{start}*")),
            reason: cause(&error),
        };
        // After the prefix itself, which is never a file's whole name.
        let mut listed = self.store.list_with_offset(Some(&directory), &key);
        while let Some(meta) = listed.try_next().await.map_err(unlistable)? {
            if meta.location.as_ref().starts_with(key.as_ref()) {
                match self.store.delete(&meta.location).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(unwritable(meta.location.as_ref(), &error)),
                }
            }
        }
        Ok(())
    }
}

/// Deletes the files of a directory with the prefix.
fn delete_below(directory: &std::path::Path, start: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(start.as_bytes()) {
            match std::fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// A file that is being written. Finish or abort it.
#[must_use = "finish or abort it"]
pub struct OutputFile {
    name: String,
    bytes: u64,
    writer: Writer,
}

enum Writer {
    Bytes(Box<BufWriter>),
    Parquet(Box<AsyncArrowWriter<BufWriter>>),
}

impl OutputFile {
    /// How many bytes it has so far; of Parquet about as many.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        match &self.writer {
            Writer::Bytes(_) => self.bytes,
            Writer::Parquet(writer) => (writer.bytes_written() + writer.in_progress_size()) as u64,
        }
    }

    /// Appends bytes to a file of bytes.
    ///
    /// # Errors
    /// [`FileError::Unwritable`], even for a Parquet file.
    pub async fn append(&mut self, bytes: Bytes) -> Result<(), FileError> {
        let Writer::Bytes(writer) = &mut self.writer else { return Err(other_kind(&self.name)) };
        self.bytes += bytes.len() as u64;
        writer.put(bytes).await.map_err(|error| unwritable(&self.name, &error))
    }

    /// Appends rows to a Parquet file.
    ///
    /// # Errors
    /// [`FileError::Unwritable`], even for a file of bytes.
    pub async fn append_rows(&mut self, rows: &RecordBatch) -> Result<(), FileError> {
        let Writer::Parquet(writer) = &mut self.writer else { return Err(other_kind(&self.name)) };
        let written = async {
            writer.write(rows).await?;
            if writer.in_progress_size() >= ROW_GROUP_BYTES { writer.flush().await } else { Ok(()) }
        };
        written.await.map_err(|error| unwritable(&self.name, &error))
    }

    /// Completes the file; its length in bytes.
    ///
    /// # Errors
    /// [`FileError::Unwritable`].
    pub async fn finish(self) -> Result<u64, FileError> {
        let name = self.name;
        match self.writer {
            Writer::Bytes(mut writer) => {
                writer.shutdown().await.map_err(|error| unwritable(&name, &error))?;
                Ok(self.bytes)
            }
            Writer::Parquet(mut writer) => {
                writer.finish().await.map_err(|error| unwritable(&name, &error))?;
                Ok(writer.bytes_written() as u64)
            }
        }
    }

    /// Abandons the file; nothing of it remains, except on a store that is unreachable.
    pub async fn abort(self) {
        let mut upload = match self.writer {
            Writer::Bytes(writer) => *writer,
            Writer::Parquet(writer) => writer.into_inner(),
        };
        // An upload that was not begun has nothing to abort.
        drop(upload.abort().await);
    }
}

fn other_kind(name: &str) -> FileError {
    FileError::Unwritable {
        file: name.to_owned(),
        reason: "internal error: it is a file of another kind".to_owned(),
    }
}

fn unwritable(file: &str, error: &(dyn std::error::Error + 'static)) -> FileError {
    FileError::Unwritable { file: file.to_owned(), reason: cause(error) }
}
