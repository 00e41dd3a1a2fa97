//! The bytes of a segment, as drawn in the crate's documentation.

use crate::entry::Entry;
use crate::log_id::{LOG_ID_BYTES, LogId};
use bytes::Bytes;
use tributary_types::{Lsn, TableId, TxnId};

pub(crate) const LOCK_NAME: &str = "LOCK";
/// Offset of the first frame: the header has disk sectors of its own, so no later write can tear it.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 4096;
pub(crate) const FRAME_HEADER_BYTES: usize = 32;
pub(crate) const ENTRY_HEADER_BYTES: usize = 25;
/// The largest payload of a frame, so that a reader never allocates on the word of a broken length.
pub(crate) const FRAME_PAYLOAD_BYTES_MAX: u64 = 1 << 30;
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Every segment begins before this LSN (four exbibytes), so that no sum of an LSN and a length overflows.
pub(crate) const FIRST_LSN_END: Lsn = Lsn(1 << 62);

const MAGIC: [u8; 8] = *b"TRIBWAL\n";
const SEGMENT_CRC_AT: usize = 40;
const LOG_ID_AT: usize = 44;
const LOG_ID_CRC_AT: usize = LOG_ID_AT + LOG_ID_BYTES;
const FRAME_CRC_AT: usize = 28;

/// The file name of the segment that begins at `first`.
pub(crate) fn segment_name(first: Lsn) -> String {
    format!("wal-{:020}.log", first.0)
}

/// Parses the first LSN from a segment's name; `None` if it is not one.
pub(crate) fn parse_segment_name(name: &str) -> Option<Lsn> {
    parse_number(name.strip_prefix("wal-")?.strip_suffix(".log")?, 20).map(Lsn)
}

pub(crate) fn spare_name(number: u64) -> String {
    format!("spare-{number:010}.wal")
}

pub(crate) fn parse_spare_name(name: &str) -> Option<u64> {
    parse_number(name.strip_prefix("spare-")?.strip_suffix(".wal")?, 10)
}

fn parse_number(digits: &str, len: usize) -> Option<u64> {
    (digits.len() == len && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The next value of the SplitMix64 sequence whose state is given.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) first: Lsn,
    /// Random for each use of a file, so that bytes left from an earlier use are never mistaken for frames, and no client can
    /// send rows whose bytes look like a frame.
    pub(crate) salt: u64,
    pub(crate) value: u64,
    /// The log that the segment belongs to; `None` in segments of servers without ids. It has a checksum of its own, and damage
    /// in it is not damage of the log.
    pub(crate) log: Option<LogId>,
}

/// Why bytes are not a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderProblem {
    Broken(&'static str),
    UnknownFormat(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(SEGMENT_HEADER_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.value.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..SEGMENT_CRC_AT]);
        bytes[40..44].copy_from_slice(&crc.to_le_bytes());
        if let Some(LogId(id)) = self.log {
            bytes[LOG_ID_AT..LOG_ID_CRC_AT].copy_from_slice(&id);
            bytes[LOG_ID_CRC_AT..LOG_ID_CRC_AT + 4].copy_from_slice(&crc32c::crc32c(&id).to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderProblem> {
        if bytes.len() < SEGMENT_HEADER_BYTES as usize {
            return Err(HeaderProblem::Broken("the file is shorter than a segment header"));
        }
        if bytes[..8] != MAGIC {
            return Err(HeaderProblem::Broken("the segment header's magic is wrong"));
        }
        if u32_at(bytes, SEGMENT_CRC_AT) != crc32c::crc32c(&bytes[..SEGMENT_CRC_AT]) {
            return Err(HeaderProblem::Broken("the segment header's checksum is wrong"));
        }
        match u32_at(bytes, 8) {
            FORMAT_VERSION => {}
            other => return Err(HeaderProblem::UnknownFormat(other)),
        }
        if u64::from(u32_at(bytes, 12)) != SEGMENT_HEADER_BYTES {
            return Err(HeaderProblem::Broken("the segment header says that frames begin elsewhere"));
        }
        let first = Lsn(u64_at(bytes, 16));
        if first >= FIRST_LSN_END {
            return Err(HeaderProblem::Broken(
                "the segment header's first LSN is beyond what a log can reach",
            ));
        }
        let id = &bytes[LOG_ID_AT..LOG_ID_CRC_AT];
        // The checksum of zeros is not zero, so an old header has no id.
        let has_id = u32_at(bytes, LOG_ID_CRC_AT) == crc32c::crc32c(id);
        let log = has_id.then(|| LogId(id.try_into().expect("the range has the length of an id")));
        Ok(Self { first, salt: u64_at(bytes, 24), value: u64_at(bytes, 32), log })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) salt: u64,
    pub(crate) lsn: Lsn,
    pub(crate) payload_bytes: u32,
    pub(crate) entries: u32,
    pub(crate) payload_crc: u32,
}

impl FrameHeader {
    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.salt.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.entries.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..FRAME_CRC_AT]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if the header's own checksum is wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER_BYTES)?;
        (u32_at(bytes, FRAME_CRC_AT) == crc32c::crc32c(&bytes[..FRAME_CRC_AT])).then(|| Self {
            salt: u64_at(bytes, 0),
            lsn: Lsn(u64_at(bytes, 8)),
            payload_bytes: u32_at(bytes, 16),
            entries: u32_at(bytes, 20),
            payload_crc: u32_at(bytes, 24),
        })
    }

    /// The length of header and payload.
    pub(crate) fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }
}

/// Appends the header of an entry with a body of `body_bytes`.
pub(crate) fn encode_entry_header(entry: &Entry, body_bytes: u32, out: &mut Vec<u8>) {
    let mut bytes = [0; ENTRY_HEADER_BYTES];
    bytes[0] = entry.kind;
    bytes[1..9].copy_from_slice(&entry.table.0.to_le_bytes());
    bytes[9..17].copy_from_slice(&entry.txn.0.to_le_bytes());
    bytes[17..21].copy_from_slice(&entry.tag.to_le_bytes());
    bytes[21..25].copy_from_slice(&body_bytes.to_le_bytes());
    out.extend_from_slice(&bytes);
}

/// Reads the entry at `offset` of a frame's payload and returns it with the offset of the next one. `None` if it does not fit
/// into the payload.
pub(crate) fn decode_entry(payload: &Bytes, offset: usize) -> Option<(Entry, usize)> {
    let head = payload.get(offset..offset + ENTRY_HEADER_BYTES)?;
    let from = offset + ENTRY_HEADER_BYTES;
    let to = from + u32_at(head, 21) as usize;
    let entry = Entry {
        kind: head[0],
        table: TableId(u64_at(head, 1)),
        txn: TxnId(u64_at(head, 9)),
        tag: u32_at(head, 17),
        body: own_if_large(payload, from, to)?,
    };
    Some((entry, to))
}

/// A body from this size on gets memory of its own.
const OWN_BODY_BYTES_MIN: usize = 4096;

/// A small body shares its frame's memory. A large one is copied: it then starts where the allocator aligns it, so that columns
/// inside it can be used in place, and it does not keep its whole frame alive.
fn own_if_large(payload: &Bytes, from: usize, to: usize) -> Option<Bytes> {
    let body = payload.get(from..to)?;
    Some(if body.len() >= OWN_BODY_BYTES_MIN {
        Bytes::copy_from_slice(body)
    } else {
        payload.slice(from..to)
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_segments_and_spares_are_read_back_and_others_are_not() {
        assert_eq!(segment_name(Lsn(42)), "wal-00000000000000000042.log");
        assert_eq!(parse_segment_name("wal-00000000000000000042.log"), Some(Lsn(42)));
        assert_eq!(parse_segment_name(&segment_name(Lsn(u64::MAX))), Some(Lsn(u64::MAX)));
        assert_eq!(parse_segment_name("wal-42.log"), None);
        assert_eq!(parse_segment_name("wal-+0000000000000000042.log"), None);
        assert_eq!(parse_spare_name(&spare_name(7)), Some(7));
        assert_eq!(parse_spare_name("spare-x.wal"), None);
    }

    #[test]
    fn a_header_whose_lsn_no_log_can_reach_is_broken() {
        let header = |first| SegmentHeader { first: Lsn(first), salt: 2, value: 3, log: None };
        let last = header(FIRST_LSN_END.0 - 1);
        assert_eq!(SegmentHeader::decode(&last.encode()), Ok(last));
        for first in [FIRST_LSN_END.0, u64::MAX] {
            let decoded = SegmentHeader::decode(&header(first).encode());
            assert!(matches!(decoded, Err(HeaderProblem::Broken(reason)) if reason.contains("first LSN")));
        }
    }

    #[test]
    fn a_header_of_another_format_is_distinguished_from_a_broken_one() {
        let mut bytes = SegmentHeader { first: Lsn(1), salt: 2, value: 3, log: None }.encode();
        bytes[8] = 9;
        assert!(matches!(SegmentHeader::decode(&bytes), Err(HeaderProblem::Broken(_))));
        let crc = crc32c::crc32c(&bytes[..SEGMENT_CRC_AT]);
        bytes[40..44].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderProblem::UnknownFormat(9)));
    }
}
