//! A block in a file of its own, with the name of its object and a checksum over everything.
//!
//! Nothing here is made durable: a block that a crash or the disk has damaged is found by its checksum and read from the store again.

use super::index::BlockId;
use bytes::{Buf, BufMut, Bytes};
use crc32c::crc32c;
use object_store::path::Path as ObjectPath;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of a block; an object's last one may have fewer.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"TRBBLK01";
/// Magic, checksum, the object's size and time, the block's number, and the length of the path.
const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 4 + 4;
/// The end of names of files that are being written.
const STAGED: &str = ".new";

/// Bytes of an object from a multiple of [`BLOCK_BYTES`] on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) bytes: Bytes,
    /// The size of the whole object.
    pub(super) object_bytes: u64,
    /// When the object was written.
    pub(super) modified_ms: i64,
}

/// Why a block can't be had from its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not there any more.
    Gone,
    /// It is not what was written.
    Damaged,
}

/// The directory of blocks.
#[derive(Clone, Debug)]
pub(super) struct Files {
    directory: PathBuf,
}

impl Files {
    /// Opens the directory, which is created for nobody else to read, and finds its blocks, the oldest first. Deletes what is
    /// unfinished.
    pub(super) fn open(directory: PathBuf) -> io::Result<(Self, Vec<(BlockId, u64)>)> {
        let mut found = Vec::new();
        for first in 0..=u8::MAX {
            let part = directory.join(format!("{first:02x}"));
            DirBuilder::new().recursive(true).mode(0o700).create(&part)?;
            for entry in fs::read_dir(part)? {
                let entry = entry?;
                let meta = entry.metadata()?;
                match entry.file_name().to_str().and_then(id_of) {
                    Some(id) => {
                        found.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), id, meta.len()));
                    }
                    None => fs::remove_file(entry.path())?,
                }
            }
        }
        found.sort_unstable_by_key(|(modified, id, _)| (*modified, *id));
        Ok((Self { directory }, found.into_iter().map(|(_, id, bytes)| (id, bytes)).collect()))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a block. Returns the bytes of its file.
    pub(super) fn write(&self, object: &ObjectPath, id: BlockId, block: &Block) -> io::Result<u64> {
        let path = self.path(id);
        let staged = path.with_extension(&STAGED[1..]);
        let name = object.as_ref().as_bytes();
        let mut head = Vec::with_capacity(HEADER_BYTES + name.len());
        head.put_u64_le(block.object_bytes);
        head.put_i64_le(block.modified_ms);
        head.put_u32_le(id.number);
        head.put_u32_le(u32::try_from(name.len()).map_err(io::Error::other)?);
        head.put_slice(name);
        let sum = crc32c::crc32c_append(crc32c(&head), &block.bytes);
        let written = File::create(&staged).and_then(|mut file| {
            file.write_all(&[MAGIC.as_slice(), &sum.to_le_bytes(), &head].concat())?;
            file.write_all(&block.bytes)
        });
        if let Err(error) = written.and_then(|()| fs::rename(&staged, &path)) {
            // A full disk gets its space back.
            let _ = fs::remove_file(&staged);
            return Err(error);
        }
        Ok((MAGIC.len() + 4 + head.len() + block.bytes.len()) as u64)
    }

    /// Reads a block of this object.
    pub(super) fn read(&self, object: &ObjectPath, id: BlockId) -> Result<Block, Missing> {
        match fs::read(self.path(id)) {
            Ok(file) => decode(file.into(), object, id).ok_or(Missing::Damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Missing::Gone),
            Err(_) => Err(Missing::Damaged),
        }
    }

    pub(super) fn remove(&self, ids: &[BlockId]) {
        for id in ids {
            if let Err(error) = fs::remove_file(self.path(*id))
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(block = ?id, %error, "a block of the read cache could not be deleted");
            }
        }
    }

    pub(super) fn path(&self, id: BlockId) -> PathBuf {
        self.directory
            .join(format!("{:02x}", id.object >> 120))
            .join(format!("{:032x}-{:08x}", id.object, id.number))
    }
}

/// The hash by which an object's blocks are found.
pub(super) fn object_hash(path: &ObjectPath) -> u128 {
    xxh3_128(path.as_ref().as_bytes())
}

fn id_of(name: &str) -> Option<BlockId> {
    let (object, number) =
        name.split_once('-').filter(|(object, number)| (object.len(), number.len()) == (32, 8))?;
    Some(BlockId {
        object: u128::from_str_radix(object, 16).ok()?,
        number: u32::from_str_radix(number, 16).ok()?,
    })
}

fn decode(mut file: Bytes, object: &ObjectPath, id: BlockId) -> Option<Block> {
    if file.len() < HEADER_BYTES || file.split_to(MAGIC.len()) != MAGIC.as_slice() {
        return None;
    }
    if file.get_u32_le() != crc32c(&file) {
        return None;
    }
    let (object_bytes, modified_ms, number) = (file.get_u64_le(), file.get_i64_le(), file.get_u32_le());
    let name_bytes = file.get_u32_le() as usize;
    let is_its = file.len() >= name_bytes
        && number == id.number
        && file.split_to(name_bytes) == object.as_ref().as_bytes();
    let start = u64::from(number) * BLOCK_BYTES;
    let wanted = object_bytes.saturating_sub(start).min(BLOCK_BYTES);
    (is_its && file.len() as u64 == wanted).then_some(Block { bytes: file, object_bytes, modified_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_back_and_no_flipped_bit_is_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let (files, found) = Files::open(dir.path().join("cache")).unwrap();
        assert!(found.is_empty());
        let object = ObjectPath::from("a/tables/part.parquet");
        let id = BlockId { object: object_hash(&object), number: 1 };
        let bytes = Bytes::from_static(b"twelve bytes");
        let block = Block { bytes, object_bytes: BLOCK_BYTES + 12, modified_ms: -5 };
        assert_eq!(files.read(&object, id), Err(Missing::Gone));
        let file_bytes = files.write(&object, id, &block).unwrap();
        assert_eq!(files.read(&object, id).as_ref(), Ok(&block));
        let whole = fs::read(files.path(id)).unwrap();
        assert_eq!(whole.len() as u64, file_bytes);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(files.path(id), damaged).unwrap();
            assert_eq!(files.read(&object, id), Err(Missing::Damaged), "byte {at}");
            fs::write(files.path(id), &whole[..at]).unwrap();
            assert_eq!(files.read(&object, id), Err(Missing::Damaged), "{at} bytes");
        }
        fs::write(files.path(id), &whole).unwrap();
        assert_eq!(files.read(&ObjectPath::from("a/tables/other.parquet"), id), Err(Missing::Damaged));
        fs::write(files.path(id).with_extension("new"), b"half").unwrap();
        let (files, found) = Files::open(dir.path().join("cache")).unwrap();
        assert_eq!(found, [(id, file_bytes)]);
        assert!(!files.path(id).with_extension("new").exists());
        files.remove(&[id, id]);
        assert_eq!(files.read(&object, id), Err(Missing::Gone));
    }
}
