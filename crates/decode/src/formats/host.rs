//! The services that the decoder of a body needs from the load's owner.

use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// The owner of a load.
pub trait LoadHost: Send + Sync {
    /// Room for a body that is read from its end.
    fn spool(&self) -> Box<dyn Spool>;

    /// How many seconds the load's zone is ahead of UTC, at a time in µs since 1970-01-01 00:00:00 UTC.
    fn offset_seconds(&self, unix_micros: i64) -> i32;

    /// The same for the zone of this name; `None` if it does not exist.
    fn zone_offset_seconds(&self, zone: &str, unix_micros: i64) -> Option<i32>;

    /// An empty account for the memory of a decoder, without the body itself.
    fn memory(&self) -> Box<dyn MemoryAccount>;
}

/// A share of the memory for loads. It is returned when the account is dropped.
pub trait MemoryAccount: Send + Sync {
    /// Resizes the share, and returns whether there is enough memory; a smaller share is always granted, and a share that is not
    /// granted is unchanged.
    fn resize(&self, bytes: usize) -> bool;
}

/// Grants everything.
#[derive(Clone, Copy, Debug)]
struct Unlimited;

impl MemoryAccount for Unlimited {
    fn resize(&self, _bytes: usize) -> bool {
        true
    }
}

/// A body that is gathered.
pub trait Spool: Send {
    /// Appends bytes of the body.
    ///
    /// # Errors
    /// There is no space for them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Its bytes in memory.
    fn held_bytes(&self) -> usize;

    /// The whole body.
    ///
    /// # Errors
    /// The written bytes can't be read.
    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Spooled>>;
}

/// A body that was gathered. What it takes is free again when the last one who has it drops it.
pub trait Spooled: Send + Sync {
    fn len_bytes(&self) -> u64;

    /// Its bytes in memory.
    fn held_bytes(&self) -> usize;

    /// A part of the body.
    ///
    /// # Errors
    /// It can't be read, or the body has no such part.
    fn read(&self, start: u64, length: usize) -> io::Result<Bytes>;
}

/// A host without a disk and with a zone that is always the same: for tests, and where bodies are small.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainHost {
    pub utc_offset_seconds: i32,
}

impl LoadHost for PlainHost {
    fn spool(&self) -> Box<dyn Spool> {
        Box::new(Vec::new())
    }

    fn offset_seconds(&self, _unix_micros: i64) -> i32 {
        self.utc_offset_seconds
    }

    /// Knows UTC, and of the others one: two hours ahead in the second half of each day, else one.
    fn zone_offset_seconds(&self, zone: &str, unix_micros: i64) -> Option<i32> {
        let is_late = unix_micros.rem_euclid(86_400_000_000) >= 43_200_000_000;
        match zone {
            "UTC" => Some(0),
            "Test/Half_Days" => Some(if is_late { 7200 } else { 3600 }),
            _ => None,
        }
    }

    fn memory(&self) -> Box<dyn MemoryAccount> {
        Box::new(Unlimited)
    }
}

impl Spool for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.capacity()
    }

    fn finish(self: Box<Self>) -> io::Result<Arc<dyn Spooled>> {
        Ok(Arc::new(Bytes::from(*self)))
    }
}

impl Spooled for Bytes {
    fn len_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn held_bytes(&self) -> usize {
        self.len()
    }

    fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.checked_add(length).filter(|&end| end <= self.len());
        end.map(|end| self.slice(start..end)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
