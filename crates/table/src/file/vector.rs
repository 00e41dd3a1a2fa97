//! Delta's deletion vectors: files that hold sets of rows, and how a log refers to one.
//!
//! A file starts with the version of its format, 1. Then follow vectors, each with its length (4 bytes, big-endian), the format
//! of the set (4 bytes, little-endian), a 64-bit Roaring bitmap in the portable form, and the CRC-32 of these two (4 bytes,
//! big-endian). Source: "Deletion Vector Format" in the Delta protocol.
//!
//! We write one file for each entry of a log, with the vectors of all data files that it changes.

use super::deletes::{Deletes, RowSet};
use crate::error::TableError;
use crate::place::root::TableRoot;
use bytes::Bytes;
use deltalake_core::kernel::{DeletionVectorDescriptor, StorageType};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

const FILE_VERSION: u8 = 1;
/// The format of a set: a Roaring bitmap in the portable form.
const PORTABLE: u32 = 1_681_511_377;
const NUMBER_BYTES: usize = size_of::<u32>();
/// Characters of an encoded UUID.
const ENCODED_UUID: usize = 20;
const NAME_START: &str = "deletion_vector_";
const NAME_END: &str = ".bin";

/// Whether a file below a table may be one of vectors, by its path.
pub(crate) fn is_vector_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with(NAME_START) && name.ends_with(NAME_END)
}

/// The path of the file that has the vector, relative to the table. `None`: it is in the log itself, or elsewhere.
pub(crate) fn path_of(vector: &DeletionVectorDescriptor) -> Option<String> {
    if vector.storage_type != StorageType::UuidRelativePath {
        return None;
    }
    let encoded = vector.path_or_inline_dv.as_bytes();
    let (folder, uuid) = encoded.split_at_checked(encoded.len().checked_sub(ENCODED_UUID)?)?;
    let uuid = Uuid::from_slice(&z85::decode(uuid).ok()?).ok()?;
    let folder = std::str::from_utf8(folder).ok()?;
    let separator = if folder.is_empty() { "" } else { "/" };
    Some(format!("{folder}{separator}{NAME_START}{uuid}{NAME_END}"))
}

/// Stores sets of rows, none of them empty. On return they are durable. The name of their file is protected from a sweep
/// until it is published.
///
/// # Errors
/// [`TableError::Storage`]: the file may be there.
pub(crate) async fn write(root: &TableRoot, sets: Vec<RowSet>) -> Result<Vec<Arc<Deletes>>, TableError> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let uuid = Uuid::from_bytes(*crate::ambient::new_uuid().as_bytes());
    let encoded_uuid = z85::encode(uuid.as_bytes());
    let mut file = vec![FILE_VERSION];
    let mut all = Vec::with_capacity(sets.len());
    for rows in sets {
        let too_large = |_| TableError::VectorTooLarge { rows: rows.len() };
        let offset = i32::try_from(file.len()).map_err(too_large)?;
        let length = NUMBER_BYTES + rows.serialized_size();
        // The protocol's readers know signed lengths only.
        let size_in_bytes = i32::try_from(length).map_err(too_large)?;
        file.extend_from_slice(&size_in_bytes.to_be_bytes());
        let start = file.len();
        file.extend_from_slice(&PORTABLE.to_le_bytes());
        rows.serialize_into(&mut file).expect("a vector in memory takes all bytes");
        let checksum = crc32fast::hash(&file[start..]);
        file.extend_from_slice(&checksum.to_be_bytes());
        let vector = DeletionVectorDescriptor {
            storage_type: StorageType::UuidRelativePath,
            path_or_inline_dv: encoded_uuid.clone(),
            offset: Some(offset),
            size_in_bytes,
            cardinality: i64::try_from(rows.len()).unwrap_or(i64::MAX),
        };
        all.push(Arc::new(Deletes::new(rows, vector)));
    }
    let name = format!("{NAME_START}{uuid}{NAME_END}");
    root.unpublished.lock().insert(name.clone());
    let put = root.store.put(&Path::from(name.as_str()), PutPayload::from(file)).await;
    if put.is_err() {
        root.unpublished.lock().remove(&name);
    }
    put.map_err(TableError::storage(format!("writing the deletion vectors '{name}'")))?;
    Ok(all)
}

/// Reads vectors that a log refers to. Each file is read once.
pub(crate) struct VectorReader<'a> {
    store: &'a Arc<dyn ObjectStore>,
    location: &'a str,
    files: HashMap<String, Bytes>,
}

impl<'a> VectorReader<'a> {
    /// A reader of files in `store`, which is rooted at the table's `location`.
    pub(crate) fn new(store: &'a Arc<dyn ObjectStore>, location: &'a str) -> Self {
        Self { store, location, files: HashMap::new() }
    }

    /// The rows that `vector` deletes of a data file of `file_rows` rows.
    ///
    /// # Errors
    /// [`TableError::Storage`], and [`TableError::DamagedFile`] for anything but a vector of that length, with its
    /// checksum and as many rows as the log says.
    pub(crate) async fn read(
        &mut self,
        vector: DeletionVectorDescriptor,
        file_rows: u64,
    ) -> Result<Arc<Deletes>, TableError> {
        let (rows, name) = match vector.storage_type {
            StorageType::Inline => {
                let rows = z85::decode(&vector.path_or_inline_dv).map_err(|error| error.to_string());
                (rows.and_then(|set| decode(&set)), "in the Delta log".to_owned())
            }
            StorageType::UuidRelativePath => {
                let path = path_of(&vector)
                    .ok_or_else(|| self.damaged(&vector.path_or_inline_dv, "it is no name"))?;
                let file = self.file(&path).await?;
                (in_file(&file, &vector), path)
            }
            StorageType::AbsolutePath => {
                return Err(TableError::UnsupportedLog {
                    location: self.location.to_owned(),
                    what: format!("a deletion vector at '{}'", vector.path_or_inline_dv),
                    remedy: "rewrite the table without vectors in other places (REORG … APPLY (PURGE))",
                });
            }
        };
        let rows = rows.and_then(|rows| check(rows, &vector, file_rows));
        Ok(Arc::new(Deletes::new(rows.map_err(|reason| self.damaged(&name, &reason))?, vector)))
    }

    async fn file(&mut self, path: &str) -> Result<Bytes, TableError> {
        if let Some(file) = self.files.get(path) {
            return Ok(file.clone());
        }
        let failed =
            || TableError::storage(format!("reading the deletion vectors '{}/{path}'", self.location));
        let got = self.store.get(&Path::from(path)).await.map_err(failed())?;
        let file = got.bytes().await.map_err(failed())?;
        self.files.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    fn damaged(&self, name: &str, reason: &str) -> TableError {
        TableError::DamagedVector { file: format!("{}/{name}", self.location), reason: reason.to_owned() }
    }
}

fn in_file(file: &[u8], vector: &DeletionVectorDescriptor) -> Result<RowSet, String> {
    if file.first() != Some(&FILE_VERSION) {
        return Err(format!("it begins with {:?} and not with the version {FILE_VERSION}", file.first()));
    }
    let start = usize::try_from(vector.offset.unwrap_or(1)).map_err(|error| error.to_string())?;
    let length = usize::try_from(vector.size_in_bytes).map_err(|error| error.to_string())?;
    let rest = file.get(start..).ok_or_else(|| format!("it has {} bytes and no byte {start}", file.len()))?;
    let (number, rest) = rest.split_first_chunk::<NUMBER_BYTES>().ok_or("it ends in a vector's length")?;
    let written = u32::from_be_bytes(*number) as usize;
    if written != length {
        return Err(format!("the vector at byte {start} has {written} bytes, and the log says {length}"));
    }
    let (set, rest) = rest.split_at_checked(length).ok_or("it ends in a vector")?;
    let checksum = rest.first_chunk::<NUMBER_BYTES>().ok_or("it ends in a vector's checksum")?;
    let (written, found) = (u32::from_be_bytes(*checksum), crc32fast::hash(set));
    if written != found {
        return Err(format!(
            "the checksum of the vector at byte {start} is {found:08x} and should be {written:08x}"
        ));
    }
    decode(set)
}

fn decode(set: &[u8]) -> Result<RowSet, String> {
    let (format, bitmap) = set.split_first_chunk::<NUMBER_BYTES>().ok_or("a vector has no format")?;
    let format = u32::from_le_bytes(*format);
    if format != PORTABLE {
        return Err(format!("a vector has the format {format}, and {PORTABLE} is the one that is known"));
    }
    RowSet::deserialize_from(bitmap).map_err(|error| error.to_string())
}

fn check(rows: RowSet, vector: &DeletionVectorDescriptor, file_rows: u64) -> Result<RowSet, String> {
    if i64::try_from(rows.len()) != Ok(vector.cardinality) {
        return Err(format!("a vector has {} rows, and the log says {}", rows.len(), vector.cardinality));
    }
    match rows.max() {
        Some(last) if last >= file_rows => {
            Err(format!("a vector has row {last} of a data file that has {file_rows} rows"))
        }
        _ => Ok(rows),
    }
}

#[cfg(test)]
mod tests;
