//! The engine's services to decoders of bodies: space for bodies that are read from their end, and the load's zone.
//!
//! A small body is held in memory, where it counts like a load on its way in; a larger one goes to a file without a name, which
//! disappears when the load ends, however it ends.
//!
//! Invariant: all files together use no more of the disk than their limit, so that they leave space for the log and the catalog.
//! Space is charged before it is written, and returned when the file is deleted.

use crate::variables::time_zone::{self, Zone};
use bytes::Bytes;
use parking_lot::Mutex;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_decode::{BodyFormat, LoadHost, MemoryAccount, Spool, Spooled};
use tributary_ingest::memory::{InFlight, MemoryBudget};
use tributary_types::{ErrorCode, SqlError};
use tributary_wal::{Disk, OsDisk};

/// Size in bytes above which a body goes to a file …
const IN_MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// … and, where loads on their way in hold much already, one that has more than this.
const IN_CROWDED_MEMORY_BYTES_MAX: usize = 64 * 1024;

/// The disk is charged in multiples of this, in bytes.
const CHARGED_STEP_BYTES: u64 = 1024 * 1024;
/// The bytes for bodies on a server whose disk can't be measured.
const UNMEASURED_LIMIT_BYTES: u64 = 1 << 30;

/// Room for bodies.
#[derive(Clone)]
pub(crate) struct SpoolRoom {
    pub memory: Arc<MemoryBudget>,
    /// For files.
    pub directory: PathBuf,
    pub disk: Arc<SpoolDisk>,
}

impl SpoolRoom {
    /// The maximum bytes of a body of a format: unlimited if it is read while it arrives.
    pub fn limit_of(&self, format: &BodyFormat) -> u64 {
        if format.is_gathered() { self.disk.limit } else { u64::MAX }
    }
}

/// The limit in bytes for a setting, of which 0 means a tenth of the free space on the disk of `directory`.
pub(crate) fn disk_limit(setting_bytes: u64, directory: &Path) -> u64 {
    match setting_bytes {
        0 => OsDisk.available_bytes(directory).map_or(UNMEASURED_LIMIT_BYTES, |free| free / 10),
        bytes => bytes,
    }
}

/// Creates an empty, private directory for files that are not needed after a restart.
///
/// # Errors
/// If it can't be emptied or created.
pub(crate) fn emptied(directory: PathBuf) -> io::Result<PathBuf> {
    match std::fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

/// The error of a load for lack of memory.
pub(crate) fn memory_full() -> SqlError {
    let text =
        "loads hold all the memory that there is for them; nothing of this one was kept, load it again later";
    SqlError::detail(ErrorCode::Unknown, text)
}

/// The disk space that bodies may use together.
#[derive(Debug)]
pub(crate) struct SpoolDisk {
    limit: u64,
    used: AtomicU64,
}

impl SpoolDisk {
    pub fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }
}

/// The disk space of one body.
#[derive(Debug)]
struct DiskCharge {
    disk: Arc<SpoolDisk>,
    bytes: u64,
}

impl DiskCharge {
    /// Raises the charge to `bytes`.
    ///
    /// # Errors
    /// If all bodies together would exceed their limit.
    fn grow_to(&mut self, bytes: u64) -> io::Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let more = bytes.next_multiple_of(CHARGED_STEP_BYTES) - self.bytes;
        let SpoolDisk { limit, used } = &*self.disk;
        let grown = |used: u64| used.checked_add(more).filter(|used| used <= limit);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).map_err(|used| {
            let text = format!(
                "bodies and files on their way take {used} bytes of the disk, and {more} more are above the limit of {limit}; \
                 try it again when others have ended, or raise spool_limit_bytes"
            );
            io::Error::new(io::ErrorKind::StorageFull, text)
        })?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for DiskCharge {
    fn drop(&mut self) {
        self.disk.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The services for the decoders of one load, or of one query over files.
pub(crate) struct Host {
    pub room: SpoolRoom,
    pub zone: Zone,
}

impl LoadHost for Host {
    fn spool(&self) -> Box<dyn Spool> {
        let charge = DiskCharge { disk: Arc::clone(&self.room.disk), bytes: 0 };
        Box::new(BodySpool { room: self.room.clone(), memory: Vec::new(), file: None, bytes: 0, charge })
    }

    fn offset_seconds(&self, unix_micros: i64) -> i32 {
        self.zone.offset_seconds(unix_micros)
    }

    fn zone_offset_seconds(&self, zone: &str, unix_micros: i64) -> Option<i32> {
        time_zone::is_known(zone).then(|| Zone::named(zone).offset_seconds(unix_micros))
    }

    fn memory(&self) -> Box<dyn MemoryAccount> {
        Box::new(Account(Mutex::new(InFlight::new(&self.room.memory))))
    }
}

/// The memory of a decoder, as memory of an incoming load.
struct Account(Mutex<InFlight>);

impl MemoryAccount for Account {
    fn resize(&self, bytes: usize) -> bool {
        self.0.lock().try_set(bytes as u64)
    }
}

/// A body on its way in.
struct BodySpool {
    room: SpoolRoom,
    memory: Vec<u8>,
    file: Option<File>,
    bytes: u64,
    charge: DiskCharge,
}

impl BodySpool {
    fn fits(&self, more: usize) -> bool {
        let is_crowded = self.room.memory.is_crowded();
        let limit = if is_crowded { IN_CROWDED_MEMORY_BYTES_MAX } else { IN_MEMORY_BYTES_MAX };
        self.memory.len() + more <= limit
    }
}

impl Spool for BodySpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.file.is_none() && self.fits(bytes.len()) {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        self.charge.grow_to(self.bytes)?;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = tempfile::tempfile_in(&self.room.directory)?;
                file.write_all(&std::mem::take(&mut self.memory))?;
                self.file.insert(file)
            }
        };
        file.write_all(bytes)
    }

    fn held_bytes(&self) -> usize {
        self.memory.capacity()
    }

    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Spooled>> {
        Ok(match self.file {
            None => Arc::new(Bytes::from(self.memory)),
            Some(file) => Arc::new(BodyFile { file, bytes: self.bytes, _charge: Some(self.charge) }),
        })
    }
}

/// A body in a file.
pub(crate) struct BodyFile {
    file: File,
    bytes: u64,
    /// `None` for a file that existed before.
    _charge: Option<DiskCharge>,
}

impl BodyFile {
    /// A file as it is now.
    ///
    /// # Errors
    /// Nothing is known of the file.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, _charge: None })
    }
}

impl Spooled for BodyFile {
    fn len_bytes(&self) -> u64 {
        self.bytes
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        // Requested according to the file's own metadata: nothing is allocated for a part that it does not have.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestEngine;

    #[tokio::test]
    async fn a_large_body_goes_to_a_file_that_nobody_sees() {
        let test = TestEngine::open(|_| ()).await;
        let host = Host { room: test.engine.loads.spool_room(), zone: Zone::Utc };
        let body: Vec<u8> = (0..IN_MEMORY_BYTES_MAX + 100).map(|at| (at % 251) as u8).collect();
        let directory = test.engine.options.state_dir.join("spool");
        let files = || std::fs::read_dir(&directory).expect("it is there").count();
        let before = files();
        for (length, is_held) in [(1000, true), (body.len(), false)] {
            let mut spool = host.spool();
            for chunk in body[..length].chunks(100_000) {
                spool.write(chunk).expect("there is room");
            }
            let spooled = spool.finish().expect("it was written");
            assert_eq!((spooled.len_bytes(), spooled.held_bytes() > 0), (length as u64, is_held));
            assert_eq!(spooled.read(10, length - 10).expect("a part"), body[10..length]);
            assert!(spooled.read(11, length - 10).is_err() && spooled.read(u64::MAX, 2).is_err());
            assert_eq!(files(), before);
        }
    }

    #[tokio::test]
    async fn a_body_without_end_is_refused_at_the_limit_and_gives_the_disk_back() {
        const MIB: usize = 1024 * 1024;
        let test = TestEngine::open(|options| options.spool_limit_bytes = 16 * MIB as u64).await;
        let host = Host { room: test.engine.loads.spool_room(), zone: Zone::Utc };
        let used = || host.room.disk.used.load(Ordering::Relaxed);
        let chunk = vec![7; MIB];
        let mut endless = host.spool();
        let error = (0..100).find_map(|_| endless.write(&chunk).err()).expect("it has no end");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("above the limit of 16777216"), "{error}");
        assert_eq!(used(), 16 * MIB as u64);
        let mut beside = host.spool();
        (0..8).for_each(|_| beside.write(&chunk).expect("it is in memory"));
        assert!(beside.write(&chunk).is_err(), "the disk is full");
        drop(endless);
        assert_eq!(used(), 0);
        let mut later = host.spool();
        (0..12).for_each(|_| later.write(&chunk).expect("the disk is free again"));
        let body = later.finish().expect("it was written");
        assert_eq!(used(), 12 * MIB as u64, "as long as the body is read");
        drop((body, beside));
        assert_eq!(used(), 0);
        assert_eq!(
            host.room.limit_of(&BodyFormat::Columnar(tributary_decode::ColumnarFormat::Arrow)),
            u64::MAX
        );
    }
}
