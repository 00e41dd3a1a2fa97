//! Reads a log as its format is drawn (`docs/wal-format.md` and the log's own documentation), without any code of the log.

use super::entry;
use tributary_wal::Entry;

pub(super) const MAGIC: &[u8; 8] = b"TRIBWAL\n";
pub(super) const HEADER_BYTES: usize = 4096;
pub(super) const FRAME_HEADER_BYTES: usize = 32;
const ENTRY_HEADER_BYTES: usize = 25;

/// A segment's file.
pub(super) struct Segment {
    /// The LSN in its name.
    pub(super) first: u64,
    pub(super) bytes: Vec<u8>,
}

/// The contents of a log.
pub(super) struct Contents {
    pub(super) entries: Vec<(u64, Entry)>,
    pub(super) is_damaged: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The contents of a log with these segments, in order.
pub(super) fn contents(segments: &[Segment]) -> Contents {
    let mut entries = Vec::new();
    let are_headers_good = segments.iter().all(|segment| salt(segment).is_some());
    let is_good = are_headers_good
        && segments.iter().enumerate().all(|(index, segment)| {
            let next = segments.get(index + 1).map(|next| next.first);
            read_segment(segment, next, &mut entries)
        });
    Contents { entries, is_damaged: !is_good }
}

/// The segment's salt, if its header is good.
fn salt(segment: &Segment) -> Option<u64> {
    let bytes = segment.bytes.get(..HEADER_BYTES)?;
    let is_good = bytes.starts_with(MAGIC)
        && u32_at(bytes, 8) == 1
        && u32_at(bytes, 12) as usize == HEADER_BYTES
        && u64_at(bytes, 16) == segment.first
        && segment.first < 1 << 62
        && u32_at(bytes, 40) == crc32c::crc32c(&bytes[..40]);
    is_good.then(|| u64_at(bytes, 24))
}

/// Whether the segment leads to `next`, or is the newest and ends well.
fn read_segment(segment: &Segment, next: Option<u64>, entries: &mut Vec<(u64, Entry)>) -> bool {
    let mut at = HEADER_BYTES;
    loop {
        let Some(lsn) = segment.first.checked_add((at - HEADER_BYTES) as u64) else { return false };
        if next == Some(lsn) {
            return true;
        }
        let Some(payload) = frame_at(segment, at) else {
            let behind = at + 1..segment.bytes.len();
            return next.is_none() && behind.into_iter().all(|place| frame_at(segment, place).is_none());
        };
        let Some(end) = lsn.checked_add((FRAME_HEADER_BYTES + payload.len()) as u64) else { return false };
        if next.is_some_and(|next| end > next) {
            return false;
        }
        if !read_entries(payload, u32_at(&segment.bytes, at + 20), lsn, entries) {
            return false;
        }
        at += FRAME_HEADER_BYTES + payload.len();
    }
}

/// The payload of the valid frame at that offset.
fn frame_at(segment: &Segment, at: usize) -> Option<&[u8]> {
    let head = segment.bytes.get(at..at.checked_add(FRAME_HEADER_BYTES)?)?;
    let lsn = segment.first.checked_add((at - HEADER_BYTES) as u64)?;
    let is_good = u64_at(head, 0) == salt(segment)?
        && u64_at(head, 8) == lsn
        && u32_at(head, 28) == crc32c::crc32c(&head[..28]);
    if !is_good {
        return None;
    }
    let from = at + FRAME_HEADER_BYTES;
    let payload = segment.bytes.get(from..from.checked_add(u32_at(head, 16) as usize)?)?;
    (crc32c::crc32c(payload) == u32_at(head, 24)).then_some(payload)
}

fn read_entries(payload: &[u8], count: u32, frame_lsn: u64, entries: &mut Vec<(u64, Entry)>) -> bool {
    let mut at = 0;
    for _ in 0..count {
        let Some(head) = payload.get(at..at + ENTRY_HEADER_BYTES) else { return false };
        let from = at + ENTRY_HEADER_BYTES;
        let Some(body) = payload.get(from..from + u32_at(head, 21) as usize) else { return false };
        let read = Entry {
            kind: head[0],
            table: tributary_types::TableId(u64_at(head, 1)),
            txn: tributary_types::TxnId(u64_at(head, 9)),
            tag: u32_at(head, 17),
            ..entry(0, body)
        };
        entries.push((frame_lsn + (FRAME_HEADER_BYTES + at) as u64, read));
        at = from + body.len();
    }
    at == payload.len()
}
