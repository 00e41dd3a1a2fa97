use crate::segment::format::{FrameHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::testing::{Dice, core, dir, entry, open, read_all, segment_path};
use crate::{Entry, MemDisk, WalError};
use std::path::{Path, PathBuf};
use tributary_types::Lsn;

/// A log of 20 one-entry frames of 3000 bytes, over several segments. Returns where each entry is.
fn filled(disk: &MemDisk) -> Vec<Lsn> {
    let mut log = core(disk);
    (0..20).map(|number| log.write_batch(&[[entry(number, 3000)]]).unwrap()[0].first).collect()
}

fn segments(disk: &MemDisk) -> Vec<PathBuf> {
    let mut names: Vec<String> =
        crate::Disk::list(disk, &dir()).unwrap().into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with("wal-"));
    names.sort();
    names.iter().map(|name| dir().join(name)).collect()
}

fn flip(disk: &MemDisk, path: &Path, offset: usize) {
    let mut bytes = disk.contents(path).unwrap();
    bytes[offset] ^= 0x40;
    disk.put(path, bytes);
}

fn damage(disk: &MemDisk) -> (PathBuf, u64, String) {
    match read_all(disk).unwrap_err() {
        WalError::Damaged { file, offset, reason } => (file, offset, reason),
        other => panic!("{other}"),
    }
}

#[test]
fn damage_in_an_older_segment_is_refused_with_file_and_offset() {
    let disk = MemDisk::new();
    filled(&disk);
    let path = segments(&disk)[1].clone();
    flip(&disk, &path, 4096 + 100);
    let (file, offset, reason) = damage(&disk);
    assert_eq!((file, offset), (path, 4096));
    assert!(reason.starts_with("the frame's checksum is wrong"), "{reason}");
}

#[test]
fn damage_before_the_end_of_the_newest_segment_is_not_taken_for_a_torn_tail() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    for number in 0..3 {
        log.write_batch(&[[entry(number, 1000)]]).unwrap();
    }
    drop(log);
    let frame = 32 + 25 + 1000;
    for offset in [4096 + frame, 4096 + frame + 8, 4096 + frame + 16, 4096 + frame + 500] {
        flip(&disk, &segment_path(0), offset);
        let (_, at, reason) = damage(&disk);
        assert_eq!(at, 4096 + frame as u64);
        assert!(reason.contains("a valid frame follows"), "{reason}");
        flip(&disk, &segment_path(0), offset);
    }
    let text = {
        flip(&disk, &segment_path(0), 4096 + frame);
        read_all(&disk).unwrap_err().to_string()
    };
    assert!(text.contains("at byte 5153") && text.contains("Restore the directory from a copy"), "{text}");
}

#[test]
fn a_torn_last_frame_is_cut_and_reported_and_cannot_come_back() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    log.write_batch(&[[entry(1, 1000)]]).unwrap();
    log.write_batch(&[[entry(2, 1000)]]).unwrap();
    drop(log);
    let second = 4096 + 32 + 25 + 1000;
    let whole = disk.contents(&segment_path(0)).unwrap();
    flip(&disk, &segment_path(0), second + 600);
    let (entries, report) = read_all(&disk).unwrap();
    assert_eq!(entries.len(), 1);
    let torn = report.torn.unwrap();
    assert_eq!((torn.file, torn.offset, torn.bytes), (segment_path(0), second as u64, 1057));

    let mut log = core(&disk);
    log.write_batch(&[[entry(3, 10)]]).unwrap();
    drop(log);
    // Even if the missing sector turns up again.
    disk.put(&segment_path(0), whole);
    let numbers: Vec<u64> = read_all(&disk).unwrap().0.iter().map(|(_, entry)| entry.txn.0).collect();
    assert_eq!(numbers, [1, 3]);
}

#[test]
fn a_missing_segment_in_the_middle_is_damage() {
    let disk = MemDisk::new();
    filled(&disk);
    let paths = segments(&disk);
    disk.take_away(&paths[2]);
    let (file, _, reason) = damage(&disk);
    assert_eq!(file, paths[1]);
    assert!(reason.contains("a segment between the two is missing"), "{reason}");
}

#[test]
fn a_broken_segment_header_is_damage_even_in_the_newest_segment() {
    for newest in [false, true] {
        let disk = MemDisk::new();
        filled(&disk);
        let paths = segments(&disk);
        let path = if newest { paths.last().unwrap() } else { &paths[0] };
        flip(&disk, path, 20);
        let error = open(&disk).err().unwrap();
        assert!(matches!(&error, WalError::Damaged { file, offset: 0, .. } if file == path), "{error}");
    }
}

#[test]
fn a_segment_whose_lsns_would_overflow_is_damage() {
    for first in [1 << 62, u64::MAX - 100, u64::MAX] {
        let disk = MemDisk::new();
        let header = SegmentHeader { first: Lsn(first), salt: 7, value: 0, log: None };
        let frame = FrameHeader {
            salt: 7,
            lsn: Lsn(first),
            payload_bytes: 200,
            entries: 0,
            payload_crc: crc32c::crc32c(&[0; 200]),
        };
        let bytes = [&header.encode()[..], &frame.encode(), &[0; 200]].concat();
        disk.put(&segment_path(first), bytes);
        let error = read_all(&disk).err().unwrap();
        assert!(matches!(&error, WalError::Damaged { offset: 0, .. }), "{error}");
    }
}

#[test]
fn a_segment_under_another_name_is_damage() {
    let disk = MemDisk::new();
    filled(&disk);
    let paths = segments(&disk);
    disk.put(&segment_path(999_999), disk.contents(paths.last().unwrap()).unwrap());
    let error = open(&disk).err().unwrap().to_string();
    assert!(error.contains("its header says that it begins at LSN"), "{error}");
}

#[test]
fn a_segment_cut_inside_its_header_is_damage() {
    let disk = MemDisk::new();
    filled(&disk);
    disk.put(&segment_path(0), vec![0; 100]);
    let error = open(&disk).err().unwrap();
    assert!(matches!(error, WalError::Damaged { offset: 0, .. }), "{error}");
    assert!(error.to_string().contains("shorter than a segment header"), "{error}");
}

#[test]
fn a_format_of_the_future_is_refused_with_its_number() {
    let disk = MemDisk::new();
    filled(&disk);
    let mut bytes = disk.contents(&segment_path(0)).unwrap();
    bytes[8] = 2;
    let crc = crc32c::crc32c(&bytes[..40]);
    bytes[40..44].copy_from_slice(&crc.to_le_bytes());
    disk.put(&segment_path(0), bytes);
    let error = open(&disk).err().unwrap().to_string();
    assert!(error.contains("has write-ahead log format 2, this server reads format 1"), "{error}");
}

#[test]
fn a_directory_that_is_in_use_is_refused_by_name() {
    let disk = MemDisk::new();
    let log = core(&disk);
    let error = open(&disk).err().unwrap();
    assert!(error.to_string().starts_with("the write-ahead log /wal is in use by another server"), "{error}");
    drop(log);
    assert!(open(&disk).is_ok());
}

#[test]
fn what_was_not_read_before_the_start_is_still_checked() {
    let disk = MemDisk::new();
    filled(&disk);
    flip(&disk, &segments(&disk)[1], 5000);
    assert!(matches!(open(&disk).unwrap().into_core(), Err(WalError::Damaged { .. })));
}

#[test]
fn a_log_can_be_opened_again_after_an_unfinished_reading() {
    let disk = MemDisk::new();
    let places = filled(&disk);
    let mut recovered = open(&disk).unwrap();
    assert_eq!(recovered.next().unwrap().unwrap().0, places[0]);
    drop(recovered);
    assert_eq!(read_all(&disk).unwrap().0.len(), 20);
}

#[test]
fn any_flipped_bit_gives_an_error_or_cuts_the_last_frame_but_never_changes_an_entry() {
    let clean = MemDisk::new();
    filled(&clean);
    let paths = segments(&clean);
    let expected: Vec<(Lsn, Entry)> = read_all(&clean).unwrap().0;
    let mut dice = Dice(7);
    for _ in 0..1500 {
        let path = &paths[dice.below(paths.len() as u64) as usize];
        let whole = clean.contents(path).unwrap();
        let mut bytes = whole.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << dice.below(8);
        clean.put(path, bytes);
        match read_all(&clean) {
            Ok((entries, _)) => {
                assert!(entries.len() >= expected.len() - 1, "only the last frame can look torn");
                assert_eq!(entries, expected[..entries.len()]);
            }
            Err(WalError::Damaged { file, .. }) => assert_eq!(&file, path),
            Err(error) => panic!("{error}"),
        }
        clean.put(path, whole);
    }
}

#[test]
fn a_frame_at_the_right_place_with_another_salt_is_not_of_this_log() {
    let disk = MemDisk::new();
    let mut log = core(&disk);
    let end = log.write_batch(&[[entry(1, 10)]]).unwrap()[0].end;
    drop(log);
    let mut bytes = disk.contents(&segment_path(0)).unwrap();
    let forged = FrameHeader { salt: 12345, lsn: end, payload_bytes: 0, entries: 0, payload_crc: 0 }.encode();
    let at = (SEGMENT_HEADER_BYTES + end.0) as usize;
    bytes[at..at + forged.len()].copy_from_slice(&forged);
    disk.put(&segment_path(0), bytes);
    let (entries, report) = read_all(&disk).unwrap();
    assert_eq!((entries.len(), report.end_lsn, report.torn), (1, end, None));
}
