use super::*;
use crate::testing::{core, dir, entry, segment_path};
use crate::{Disk, MemDisk};

/// Twelve frames of one entry each, three to a segment. Returns where each is: file and offset.
fn filled(disk: &MemDisk) -> Vec<(PathBuf, u64)> {
    let mut log = core(disk);
    for number in 1..=12 {
        log.write_batch(&[[entry(number, 4000)]]).unwrap();
    }
    drop(log);
    let mut frames = Vec::new();
    look(disk, |found| {
        if let Found::Frame(frame) = found {
            frames.push((frame.file, frame.offset));
        }
    });
    assert_eq!(frames.len(), 12);
    frames
}

fn look(disk: &MemDisk, mut visit: impl FnMut(Found)) -> Extent {
    Survey::open(disk, &dir()).unwrap().walk(&mut visit).unwrap()
}

fn flip(disk: &MemDisk, path: &Path, offset: u64) {
    let mut bytes = disk.contents(path).unwrap();
    bytes[offset as usize] ^= 0x40;
    disk.put(path, bytes);
}

/// The transactions of the valid entries, and the damage.
fn seen(disk: &MemDisk) -> (Vec<u64>, Vec<Damage>) {
    let (mut transactions, mut damage) = (Vec::new(), Vec::new());
    look(disk, |found| match found {
        Found::Entry { entry, .. } => transactions.push(entry.txn.0),
        Found::Damage(one) => damage.push(one),
        _ => {}
    });
    (transactions, damage)
}

#[test]
fn a_sound_log_is_listed_as_recovery_reads_it() {
    let disk = MemDisk::new();
    filled(&disk);
    let mut entries = Vec::new();
    let extent = look(&disk, |found| {
        if let Found::Entry { lsn, entry } = found {
            entries.push((lsn, entry));
        }
    });
    let (read, report) = crate::testing::read_all(&disk).unwrap();
    assert_eq!(entries, read);
    assert_eq!(extent, report);
}

#[test]
fn a_log_in_use_is_not_looked_at() {
    let disk = MemDisk::new();
    let log = core(&disk);
    assert!(matches!(Survey::open(&disk, &dir()), Err(WalError::Locked { .. })));
    drop(log);
    assert!(Survey::open(&disk, &dir()).is_ok());
}

#[test]
fn after_a_damaged_frame_the_survey_continues_and_reports_its_contents() {
    let disk = MemDisk::new();
    let frames = filled(&disk);
    for (at, (path, offset)) in frames.iter().enumerate().take(11) {
        flip(&disk, path, offset + 100);
        let (transactions, damage) = seen(&disk);
        let expected: Vec<u64> = (1..=12).filter(|&txn| txn != at as u64 + 1).collect();
        assert_eq!(transactions, expected);
        let [damage] = &damage[..] else { panic!("{damage:?}") };
        assert_eq!((&damage.file, damage.offset, damage.kind), (path, *offset, DamageKind::Hole));
        assert_eq!(damage.bytes, 32 + 25 + 4000);
        assert!(damage.reason.contains("checksum"), "{damage:?}");
        assert_eq!(damage.remains.iter().map(|entry| entry.txn.0).collect::<Vec<_>>(), [at as u64 + 1]);
        flip(&disk, path, offset + 100);
    }
}

#[test]
fn a_frame_whose_header_is_damaged_is_a_hole_too() {
    let disk = MemDisk::new();
    let frames = filled(&disk);
    let (path, offset) = &frames[4];
    for byte in [0, 9, 17, 30] {
        flip(&disk, path, offset + byte);
        let (transactions, damage) = seen(&disk);
        assert_eq!(transactions.len(), 11);
        assert_eq!((damage.len(), damage[0].bytes), (1, 32 + 25 + 4000));
        flip(&disk, path, offset + byte);
    }
}

#[test]
fn a_torn_tail_is_distinguished_from_a_hole() {
    let disk = MemDisk::new();
    let frames = filled(&disk);
    let (path, offset) = frames.last().unwrap();
    flip(&disk, path, offset + 2000);
    let (transactions, damage) = seen(&disk);
    assert_eq!(transactions.len(), 11);
    assert_eq!((damage.len(), damage[0].kind), (1, DamageKind::TornTail));
    assert_eq!(look(&disk, |_| ()), crate::testing::read_all(&disk).unwrap().1);
}

#[test]
fn a_missing_segment_is_a_hole_that_ends_where_the_next_begins() {
    let disk = MemDisk::new();
    let frames = filled(&disk);
    let second = frames[3].0.clone();
    assert_ne!(second, segment_path(0));
    disk.remove(&second).unwrap();
    let (transactions, damage) = seen(&disk);
    assert_eq!(transactions, [1, 2, 3, 7, 8, 9, 10, 11, 12]);
    let [damage] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!((damage.kind, damage.bytes), (DamageKind::Hole, 3 * (32 + 25 + 4000)));
    assert_eq!(damage.file, segment_path(0));
}

#[test]
fn a_segment_without_a_valid_header_is_damaged_as_a_whole() {
    let disk = MemDisk::new();
    let frames = filled(&disk);
    flip(&disk, &frames[3].0, 24);
    let (transactions, damage) = seen(&disk);
    assert_eq!(transactions, [1, 2, 3, 7, 8, 9, 10, 11, 12]);
    assert_eq!((damage.len(), damage[0].kind), (1, DamageKind::Header));
}

#[test]
fn a_segment_that_is_cut_short_in_its_header_is_damaged_as_a_whole() {
    for bytes in [0, 100, 4095] {
        let disk = MemDisk::new();
        let frames = filled(&disk);
        disk.put(&frames[3].0, disk.contents(&frames[3].0).unwrap()[..bytes].to_vec());
        let (transactions, damage) = seen(&disk);
        assert_eq!(transactions, [1, 2, 3, 7, 8, 9, 10, 11, 12]);
        let [damage] = &damage[..] else { panic!("{damage:?}") };
        assert_eq!((&damage.file, damage.offset, damage.kind), (&frames[3].0, 0, DamageKind::Header));
        assert!(damage.reason.contains("shorter than a segment header"), "{damage:?}");
    }
}
