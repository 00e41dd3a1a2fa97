//! Places of files, of any kind.

use crate::error::FileError;
use crate::http::HttpFiles;
use crate::local::LocalFiles;
use crate::options::Properties;
use crate::s3::S3Files;
use bytes::Bytes;
use futures::stream::BoxStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::Egress;

/// The most files that one name may mean.
pub(crate) const FILES_MAX: usize = 100_000;
/// How long a connection may take.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a file's next bytes may take.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);

/// The bytes of a file.
pub type Chunks = BoxStream<'static, Result<Bytes, FileError>>;

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its name for users, without secrets.
    pub name: String,
    /// Its key in its place.
    pub(crate) key: String,
    /// `None` where it is not known before the file is read.
    pub size_bytes: Option<u64>,
}

/// The place of a statement's files.
#[derive(Debug)]
pub enum Place {
    S3(S3Files),
    Http(HttpFiles),
    Local(LocalFiles),
}

impl Place {
    /// The files of an S3 store that the property `uri` names.
    ///
    /// # Errors
    /// [`FileError::Property`] and [`FileError::NotSupported`] for properties that name no such files, [`FileError::Forbidden`]
    /// for a forbidden server.
    pub fn s3(properties: &mut Properties, egress: &Arc<Egress>) -> Result<Self, FileError> {
        let uri = required(properties, "uri")?;
        S3Files::new(&uri, properties, egress).map(Self::S3)
    }

    /// The files of HTTP servers that the property `uri` names.
    ///
    /// # Errors
    /// As [`Place::s3`].
    pub fn http(properties: &mut Properties, egress: &Arc<Egress>) -> Result<Self, FileError> {
        let uri = required(properties, "uri")?;
        HttpFiles::new(&uri, properties, egress).map(Self::Http)
    }

    /// The files of this machine below `directory` that the property `file_path` names.
    ///
    /// # Errors
    /// As [`Place::s3`]; [`FileError::NotSupported`] if no directory is allowed.
    pub fn local(properties: &mut Properties, directory: Option<&Path>) -> Result<Self, FileError> {
        let path = required(properties, "file_path")?;
        LocalFiles::new(&path, directory).map(Self::Local)
    }

    /// The files with bytes in them, in order of their names.
    ///
    /// # Errors
    /// [`FileError::NoFile`] if nothing has such a name, [`FileError::TooMany`], [`FileError::Unlistable`].
    pub async fn find(&self) -> Result<Vec<FoundFile>, FileError> {
        match self {
            Self::S3(files) => files.find().await,
            Self::Http(files) => Ok(files.find()),
            Self::Local(files) => files.find().await,
        }
    }

    /// The bytes of a file that was found here. Errors are returned in the stream.
    #[must_use]
    pub fn open(&self, file: &FoundFile) -> Chunks {
        match self {
            Self::S3(files) => files.open(file),
            Self::Http(files) => files.open(file),
            Self::Local(files) => files.open(file),
        }
    }

    /// The file, if it is one of this machine.
    ///
    /// # Errors
    /// [`FileError::Unreadable`].
    pub fn open_local(&self, file: &FoundFile) -> Result<Option<std::fs::File>, FileError> {
        match self {
            Self::Local(files) => files.open_file(file).map(Some),
            Self::S3(_) | Self::Http(_) => Ok(None),
        }
    }
}

fn required(properties: &mut Properties, name: &str) -> Result<String, FileError> {
    let text = properties.take(name).filter(|text| !text.trim().is_empty());
    text.map(|text| text.trim().to_owned()).ok_or_else(|| {
        FileError::Property(format!("the property '{name}' is missing, which names the files"))
    })
}

/// The error of a place that stops sending bytes.
pub(crate) fn too_slow(file: &str) -> FileError {
    FileError::Unreadable {
        file: file.to_owned(),
        reason: format!("no bytes came for {} s", IDLE_MAX.as_secs()),
    }
}
