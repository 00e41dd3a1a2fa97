//! A log that was written well, damaged in one place.

use super::{core, entry, read, segments};
use arbitrary::{Result, Unstructured};
use std::ops::Range;
use std::path::PathBuf;
use tributary_types::Lsn;
use tributary_wal::MemDisk;

const HEADER_BYTES: u64 = 4096;
const FRAME_HEADER_BYTES: u64 = 32;

/// The position of a frame.
struct Frame {
    lsns: Range<u64>,
}

/// See [`super`].
pub fn wal_damage(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let disk = MemDisk::new();
    let Ok(frames) = write(&disk, &mut bytes) else { return };
    let (before, end) = read(&disk);
    end.expect("a log that was written is read");
    let Ok((file, damaged)) = damage(&disk, &mut bytes) else { return };
    let (after, end) = read(&disk);
    assert!(after.len() <= before.len() && after == before[..after.len()], "entries were invented");
    if end.is_err() {
        assert!(core(&disk).is_err(), "a damaged log is opened for writing");
        return;
    }
    for (Lsn(lsn), _) in &before[after.len()..] {
        let frame = frames.iter().find(|frame| frame.lsns.contains(lsn)).expect("every entry has a frame");
        let first = file.1;
        let start = HEADER_BYTES + frame.lsns.start.wrapping_sub(first);
        let place = start..start + (frame.lsns.end - frame.lsns.start);
        let is_touched = frame.lsns.start >= first && damaged.start < place.end && place.start < damaged.end;
        assert!(is_touched, "the entry at LSN {lsn} is gone without a word");
    }
    core(&disk).expect("a log that was read is opened for writing");
}

/// Batches of entries, with releases and restarts between them.
fn write(disk: &MemDisk, bytes: &mut Unstructured<'_>) -> Result<Vec<Frame>> {
    let mut frames = Vec::new();
    let mut log = core(disk).expect("an empty log");
    for number in 0..bytes.int_in_range(1..=24u64)? {
        let parts = (0..bytes.int_in_range(1..=3)?)
            .map(|_| {
                let length = bytes.int_in_range(0..=6000)?;
                let fill = bytes.arbitrary::<u8>()?;
                Ok([entry(number, &vec![fill; length])])
            })
            .collect::<Result<Vec<_>>>()?;
        let appended = log.write_batch(&parts).expect("the disk works");
        let (Some(first), Some(last)) = (appended.first(), appended.last()) else { continue };
        frames.push(Frame { lsns: first.first.0 - FRAME_HEADER_BYTES..last.end.0 });
        match bytes.int_in_range(0..=15u8)? {
            0 => log.release(last.end).expect("the disk works"),
            1 => {
                drop(log);
                log = core(disk).expect("a log that was written well");
            }
            _ => {}
        }
    }
    Ok(frames)
}

/// Changes one place of one segment; says which file (path, first LSN) and which bytes.
fn damage(disk: &MemDisk, bytes: &mut Unstructured<'_>) -> Result<((PathBuf, u64), Range<u64>)> {
    let files = segments(disk);
    // Usually one with frames: the newest may have none.
    let file = bytes.choose(&files)?.clone();
    let mut contents = disk.contents(&file.0).expect("it was listed");
    let start = bytes.choose_index(contents.len())?;
    let length = match bytes.int_in_range(0..=3u8)? {
        0 => 1,
        1 => bytes.int_in_range(1..=16)?,
        2 => bytes.int_in_range(1..=5000)?,
        _ => contents.len(),
    };
    let range = start..contents.len().min(start + length);
    match bytes.int_in_range(0..=3u8)? {
        0 => contents[range.clone()].fill(0),
        1 => {
            let mask = bytes.int_in_range(1..=255u8)?;
            contents[range.clone()].iter_mut().for_each(|byte| *byte ^= mask);
        }
        2 => {
            let filler = bytes.bytes(bytes.len().min(range.len()))?;
            contents[range.start..range.start + filler.len()].copy_from_slice(filler);
        }
        _ => contents.truncate(start),
    }
    let touched =
        if contents.len() == start { start as u64..u64::MAX } else { range.start as u64..range.end as u64 };
    disk.put(&file.0, contents);
    Ok((file, touched))
}
