//! Segments made from the input.

use super::model::{self, FRAME_HEADER_BYTES, HEADER_BYTES, MAGIC, Segment};
use super::{core, entry, open, read, segment_path};
use arbitrary::{Result, Unstructured};
use tributary_types::Lsn;
use tributary_wal::{MemDisk, WalError};

/// The most bytes of one segment, so that the second reader's search stays quick.
const SEGMENT_BYTES_MAX: usize = HEADER_BYTES + 4096;

/// See [`super`].
pub fn wal_bytes(data: &[u8]) {
    let Ok(segments) = build(&mut Unstructured::new(data)) else { return };
    let disk = MemDisk::new();
    for segment in &segments {
        disk.put(&segment_path(segment.first), segment.bytes.clone());
    }
    let expected = model::contents(&segments);
    let (entries, end) = read(&disk);
    let found: Vec<_> = entries.into_iter().map(|(Lsn(lsn), entry)| (lsn, entry)).collect();
    assert_eq!(found, expected.entries);
    match end {
        Ok(()) => assert!(!expected.is_damaged, "damage was not noticed"),
        Err(WalError::Damaged { .. } | WalError::UnknownFormat { .. }) => {
            assert!(expected.is_damaged, "no damage was there");
            assert!(core(&disk).is_err(), "a damaged log is opened for writing");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    go_on(&disk, expected.entries.len());
}

/// Appends an entry after the ones read.
fn go_on(disk: &MemDisk, count: usize) {
    let mut log = match core(disk) {
        Ok(log) => log,
        Err(error) => panic!("a log that was read cannot be opened: {error}"),
    };
    let written = entry(77, b"written later");
    log.write_batch(&[[written.clone()]]).expect("the disk works");
    drop(log);
    let (entries, end) = read(disk);
    end.expect("what was written is read");
    assert_eq!(entries.len(), count + 1);
    assert_eq!(entries.last().map(|(_, entry)| entry), Some(&written));
    assert!(open(disk).is_ok());
}

fn build(bytes: &mut Unstructured<'_>) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut first = match bytes.int_in_range(0..=7u8)? {
        0 => bytes.arbitrary()?,
        1 => u64::MAX - bytes.int_in_range(0..=300u64)?,
        _ => bytes.int_in_range(0..=10_000u64)?,
    };
    for _ in 0..bytes.int_in_range(1..=3)? {
        let segment = segment(first, bytes)?;
        let used = segment.bytes.len().saturating_sub(HEADER_BYTES) as u64;
        segments.push(segment);
        // Mostly where the segment ends.
        let gap = if bytes.ratio(7u8, 8u8)? { 0 } else { bytes.int_in_range(0..=64u64)? };
        let Some(next) = first.checked_add(used).and_then(|end| end.checked_add(gap)) else { break };
        if next == first {
            break;
        }
        first = next;
    }
    // The newest segment has space after its frames.
    if let Some(newest) = segments.last_mut() {
        let tail = bytes.bytes(bytes.len().min(64))?;
        newest.bytes.extend_from_slice(tail);
    }
    Ok(segments)
}

fn segment(first: u64, bytes: &mut Unstructured<'_>) -> Result<Segment> {
    let salt: u64 = if bytes.ratio(1u8, 4u8)? { bytes.arbitrary()? } else { 0x5a17_0000_0000_0001 };
    let mut header = vec![0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&1u32.to_le_bytes());
    header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    header[16..24].copy_from_slice(&first.to_le_bytes());
    header[24..32].copy_from_slice(&salt.to_le_bytes());
    header[32..40].copy_from_slice(&bytes.arbitrary::<u64>()?.to_le_bytes());
    if bytes.ratio(1u8, 32u8)? {
        let at = bytes.choose_index(44)?;
        header[at] = bytes.arbitrary()?;
    }
    let crc = crc32c::crc32c(&header[..40]);
    header[40..44].copy_from_slice(&crc.to_le_bytes());
    if bytes.ratio(1u8, 32u8)? {
        let at = bytes.choose_index(44)?;
        header[at] = bytes.arbitrary()?;
    }
    let mut segment = Segment { first, bytes: header };
    if bytes.ratio(1u8, 64u8)? {
        segment.bytes.truncate(bytes.choose_index(HEADER_BYTES)?);
        return Ok(segment);
    }
    for _ in 0..bytes.int_in_range(0..=4)? {
        if bytes.ratio(1u8, 8u8)? {
            let length = bytes.int_in_range(0..=40)?;
            let raw = bytes.bytes(length.min(bytes.len()))?;
            segment.bytes.extend_from_slice(raw);
        } else {
            frame(&mut segment, salt, bytes)?;
        }
    }
    segment.bytes.truncate(SEGMENT_BYTES_MAX);
    Ok(segment)
}

/// A frame whose checksums are right, mostly.
fn frame(segment: &mut Segment, salt: u64, bytes: &mut Unstructured<'_>) -> Result<()> {
    let mut entries: u32 = 0;
    let mut payload = Vec::new();
    for _ in 0..bytes.int_in_range(0..=3)? {
        let length = bytes.int_in_range(0..=40)?;
        let body = bytes.bytes(length.min(bytes.len()))?;
        payload.extend_from_slice(&bytes.arbitrary::<[u8; 21]>()?);
        let length = if bytes.ratio(15u8, 16u8)? { body.len() as u32 } else { bytes.arbitrary()? };
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(body);
        entries += 1;
    }
    if bytes.ratio(1u8, 16u8)? {
        entries = bytes.arbitrary()?;
    }
    let offset = (segment.bytes.len() - HEADER_BYTES) as u64;
    let lsn =
        if bytes.ratio(31u8, 32u8)? { segment.first.wrapping_add(offset) } else { bytes.arbitrary()? };
    let mut head = Vec::with_capacity(FRAME_HEADER_BYTES);
    head.extend_from_slice(&salt.to_le_bytes());
    head.extend_from_slice(&lsn.to_le_bytes());
    head.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    head.extend_from_slice(&entries.to_le_bytes());
    head.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
    if bytes.ratio(1u8, 16u8)? {
        let at = bytes.choose_index(28)?;
        head[at] = bytes.arbitrary()?;
    }
    let crc = crc32c::crc32c(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    segment.bytes.extend_from_slice(&head);
    segment.bytes.extend_from_slice(&payload);
    if bytes.ratio(1u8, 32u8)? {
        let at = HEADER_BYTES + bytes.choose_index(segment.bytes.len() - HEADER_BYTES)?;
        segment.bytes[at] ^= bytes.int_in_range(1..=255u8)?;
    }
    Ok(())
}
