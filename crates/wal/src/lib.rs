//! The write-ahead log: entries in, durable entries out, in order, each exactly once.
//!
//! The layers, from the bottom: [`disk`] (the file system as a trait, with a simulated one for tests and the simulation) →
//! `segment` (the format, a reader, a writer) → `inventory` (the files: closed segments and spare ones) → [`core`] (the log as a
//! single-threaded state machine) → [`log`] (threads and acknowledgements) and [`recovery`] (reading a log back before it is
//! written again). In addition: [`identity`] (which log a directory contains) and, for the owner of a damaged log, [`survey`]
//! (its contents and damage) and [`repair`].
//!
//! Invariant: an entry is acknowledged only when it and everything before it is durable, and acknowledged entries are read back
//! after any crash, in order and without gaps. A log that cannot guarantee this (a failed fsync, damage before the end) stops
//! instead of guessing.
//!
//! Not its business: the meaning of an entry. Tables, transactions and tags are numbers here.
//!
//! # The files of a log directory
//!
//! | name | what |
//! | --- | --- |
//! | `LOCK` | locked (`flock`) while a process has the log open |
//! | `wal-<first LSN, 20 digits>.log` | a segment; the one with the greatest LSN is the active one |
//! | `spare-<number, 10 digits>.wal` | a file that will become a segment: zero-filled, or an old segment |
//!
//! # The format
//!
//! All integers are little-endian. `docs/wal-format.md` explains why.
//!
//! ```text
//! segment    0          40  44       60  64      4096
//!            +-----------+---+--------+---+-------+---------+---------+----
//!            | header    |crc| log id |crc| zeros | frame   | frame   | …     then zeros or stale bytes
//!            +-----------+---+--------+---+-------+---------+---------+----
//!
//! header     0      magic "TRIBWAL\n"     8 bytes
//!            8      format version (1)    u32
//!            12     where frames begin    u32   (4096)
//!            16     first LSN             u64
//!            24     salt                  u64   random, new each time that a file becomes a segment
//!            32     header value          u64   the next transaction id, see `Wal::set_header_value`
//!            40     crc32c of bytes 0..40 u32
//!            44     log id                16 bytes, the same in all segments; zeros in old ones
//!            60     crc32c of the log id  u32
//!
//! frame      0      salt of the segment   u64
//!            8      LSN of this byte      u64
//!            16     payload length        u32
//!            20     entries               u32
//!            24     crc32c of the payload u32
//!            28     crc32c of bytes 0..28 u32
//!            32     payload: the entries, one after another
//!
//! entry      0      kind                  u8
//!            1      table                 u64
//!            9      transaction           u64
//!            17     tag                   u32
//!            21     body length           u32
//!            25     body
//! ```
//!
//! An LSN counts the bytes of frames since the log's beginning (segment headers do not count): the byte
//! at offset `o` of a segment has LSN `first LSN + o - 4096`, and a segment's first LSN is the end of
//! the log when the segment began. The LSN of an entry is that of its first byte.

pub mod core;
mod cut;
pub mod disk;
pub mod entry;
pub mod error;
mod frame;
pub mod identity;
mod inventory;
pub mod log;
mod log_id;
pub mod options;
pub mod recovery;
pub mod repair;
mod segment;
pub mod stats;
pub mod survey;
#[cfg(test)]
mod testing;

pub use self::core::LogCore;
pub use cut::{Cut, Piece, at_rest};
pub use disk::{Disk, DiskDir, DiskFile, OpenMode, OsDisk};
#[cfg(any(test, feature = "test-util"))]
pub use disk::{Fault, MemDisk};
pub use entry::{Appended, Entry};
pub use error::WalError;
pub use identity::{identify, is_in_use};
pub use log::{Offered, Wal};
pub use log_id::{LogId, LogIdError};
pub use options::{FatalHook, SegmentHook, WalOptions};
pub use recovery::{Extent, Recovered, TornTail};
pub use repair::{RepairError, Repaired, SKIPPED};
pub use segment::closed::ClosedSegment;
pub use stats::{MissingSpace, WalStats};
pub use survey::{Damage, DamageKind, Found, Survey};
