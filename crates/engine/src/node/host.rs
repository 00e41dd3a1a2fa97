//! The engine's services to decoders of bodies: space for bodies that are read from their end, and the load's zone.
//!
//! A small body is held in memory, where it counts like a load on its way in; a larger one goes to a file without a name, which
//! disappears when the load ends, however it ends.

use crate::variables::time_zone::{self, Zone};
use bytes::Bytes;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_decode::{LoadHost, MemoryAccount, Spool, Spooled};
use tributary_ingest::memory::{InFlight, MemoryBudget};

/// Size in bytes above which a body goes to a file …
const IN_MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// … and, where loads on their way in hold much already, one that has more than this.
const IN_CROWDED_MEMORY_BYTES_MAX: usize = 64 * 1024;

/// Room for bodies.
#[derive(Clone)]
pub(crate) struct SpoolRoom {
    pub memory: Arc<MemoryBudget>,
    /// For files.
    pub directory: PathBuf,
}

/// The services for the decoders of one load, or of one query over files.
pub(crate) struct Host {
    pub room: SpoolRoom,
    pub zone: Zone,
}

impl LoadHost for Host {
    fn spool(&self) -> Box<dyn Spool> {
        Box::new(BodySpool { room: self.room.clone(), memory: Vec::new(), file: None, bytes: 0 })
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

/// What a decoder holds, as memory of a load on its way in.
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
            Some(file) => Arc::new(BodyFile { file, bytes: self.bytes }),
        })
    }
}

/// A body in a file.
pub(crate) struct BodyFile {
    file: File,
    bytes: u64,
}

impl BodyFile {
    /// A file as it is now.
    ///
    /// # Errors
    /// Nothing is known of the file.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
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
        let host = Host { room: test.engine.spool_room(), zone: Zone::Utc };
        let body: Vec<u8> = (0..IN_MEMORY_BYTES_MAX + 100).map(|at| (at % 251) as u8).collect();
        let files = || std::fs::read_dir(&test.engine.options.state_dir).expect("it is there").count();
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
}
