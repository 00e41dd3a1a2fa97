use super::*;
use crate::testing::{entry, options};
use crate::{OsDisk, Wal};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A log of twelve frames, three to a segment, on a real disk. Returns where each frame is.
fn filled(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut log = Wal::recover(Arc::new(OsDisk), dir, options()).unwrap().into_core().unwrap().0;
    for number in 1..=12 {
        log.write_batch(&[[entry(number, 4000)]]).unwrap();
    }
    drop(log);
    let mut frames = Vec::new();
    Survey::open(&OsDisk, dir)
        .unwrap()
        .walk(&mut |found| {
            if let crate::Found::Frame(frame) = found {
                frames.push((frame.file, frame.offset));
            }
        })
        .unwrap();
    frames
}

fn flip((path, offset): &(PathBuf, u64), at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset + at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x40], offset + at).unwrap();
}

/// Kind and transaction of every entry, as the next start reads them.
fn read(dir: &Path) -> Result<(Vec<(u8, u64)>, u64), WalError> {
    let mut recovered = Wal::recover(Arc::new(OsDisk), dir, options())?;
    let entries = crate::testing::read(&mut recovered)?;
    let value = recovered.report().header_value;
    // The log accepts writes after it was read.
    let mut log = recovered.into_core()?.0;
    log.write_batch(&[[entry(99, 10)]])?;
    Ok((entries.iter().map(|(_, entry)| (entry.kind, entry.txn.0)).collect(), value))
}

fn kept(transactions: impl IntoIterator<Item = u64>) -> Vec<(u8, u64)> {
    transactions.into_iter().map(|txn| (txn as u8, txn)).collect()
}

fn first_damage(survey: &Survey<'_>) -> (Damage, u64) {
    let mut first = None;
    let extent = survey
        .walk(&mut |found| {
            if let crate::Found::Damage(damage) = found {
                first.get_or_insert(damage);
            }
        })
        .unwrap();
    (first.expect("damage"), extent.header_value)
}

fn cut(dir: &Path) -> Repaired {
    let survey = Survey::open(&OsDisk, dir).unwrap();
    let (damage, value) = first_damage(&survey);
    survey.cut(&damage, value, "backup-1").unwrap()
}

#[test]
fn a_cut_keeps_what_is_before_the_damage_and_a_copy_of_the_rest() {
    for at in 0..12 {
        let temp = tempfile::tempdir().unwrap();
        let frames = filled(temp.path());
        flip(&frames[at], 500);
        let damaged = std::fs::read(&frames[at].0).unwrap();
        if at < 11 {
            assert!(matches!(read(temp.path()), Err(WalError::Damaged { .. })));
        }
        let repaired = cut(temp.path());
        assert_eq!(repaired.changed, [frames[at].0.clone()]);
        let copy = repaired.backup.join(frames[at].0.file_name().unwrap());
        assert_eq!(std::fs::read(copy).unwrap(), damaged);
        for moved in &repaired.moved {
            assert!(!moved.exists());
            assert!(repaired.backup.join(moved.file_name().unwrap()).exists());
        }
        let (entries, value) = read(temp.path()).unwrap();
        assert_eq!(entries, kept(1..=at as u64));
        // No transaction id is reused, although the entries are lost.
        let greatest = if at == 11 { 12 } else { 13 };
        assert!(value >= greatest, "{value}");
    }
}

#[test]
fn a_skip_keeps_what_is_behind_the_damage() {
    for at in 0..11 {
        let temp = tempfile::tempdir().unwrap();
        let frames = filled(temp.path());
        flip(&frames[at], 500);
        let damaged = std::fs::read(&frames[at].0).unwrap();
        let survey = Survey::open(&OsDisk, temp.path()).unwrap();
        let repaired = survey.skip(&first_damage(&survey).0, "backup-1").unwrap();
        drop(survey);
        let copy = repaired.backup.join(frames[at].0.file_name().unwrap());
        assert_eq!(std::fs::read(copy).unwrap(), damaged);
        let mut expected = kept(1..=12);
        expected[at] = (SKIPPED, 0);
        assert_eq!(read(temp.path()).unwrap().0, expected);
    }
}

#[test]
fn a_missing_segment_can_be_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let frames = filled(temp.path());
    std::fs::remove_file(&frames[3].0).unwrap();
    let survey = Survey::open(&OsDisk, temp.path()).unwrap();
    survey.skip(&first_damage(&survey).0, "backup-1").unwrap();
    drop(survey);
    let mut expected = kept(1..=3);
    expected.push((SKIPPED, 0));
    expected.extend(kept(7..=12));
    assert_eq!(read(temp.path()).unwrap().0, expected);
}

#[test]
fn a_segment_without_a_header_can_only_be_cut_off() {
    for (segment, left) in [(0, 0), (1, 3), (3, 9)] {
        let temp = tempfile::tempdir().unwrap();
        let frames = filled(temp.path());
        flip(&(frames[segment * 3].0.clone(), 0), 24);
        let survey = Survey::open(&OsDisk, temp.path()).unwrap();
        let refused = survey.skip(&first_damage(&survey).0, "backup-1").unwrap_err();
        assert!(refused.to_string().contains("cut the log there"), "{refused}");
        drop(survey);
        cut(temp.path());
        let (entries, value) = read(temp.path()).unwrap();
        assert_eq!(entries, kept(1..=left));
        assert!(value >= if segment == 3 { 10 } else { 13 }, "{value}");
    }
}

#[test]
fn a_segment_that_is_cut_short_in_its_header_is_cut_off_and_kept_in_the_backup() {
    for (segment, left) in [(0, 0), (1, 3), (3, 9)] {
        let temp = tempfile::tempdir().unwrap();
        let frames = filled(temp.path());
        let path = &frames[segment * 3].0;
        let short = std::fs::read(path).unwrap()[..100].to_vec();
        std::fs::write(path, &short).unwrap();
        assert!(matches!(read(temp.path()), Err(WalError::Damaged { .. })));
        let repaired = cut(temp.path());
        assert!(repaired.moved.contains(path));
        assert_eq!(std::fs::read(repaired.backup.join(path.file_name().unwrap())).unwrap(), short);
        assert_eq!(read(temp.path()).unwrap().0, kept(1..=left));
    }
}

#[test]
fn a_torn_tail_is_not_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let frames = filled(temp.path());
    flip(&frames[11], 500);
    let survey = Survey::open(&OsDisk, temp.path()).unwrap();
    assert!(matches!(survey.skip(&first_damage(&survey).0, "backup-1"), Err(RepairError::CannotSkip { .. })));
}

#[test]
fn a_backup_is_never_written_over() {
    let temp = tempfile::tempdir().unwrap();
    let frames = filled(temp.path());
    flip(&frames[4], 500);
    std::fs::create_dir(temp.path().join("backup-1")).unwrap();
    let survey = Survey::open(&OsDisk, temp.path()).unwrap();
    let (damage, value) = first_damage(&survey);
    assert!(matches!(survey.cut(&damage, value, "backup-1"), Err(RepairError::BackupExists(_))));
    assert!(matches!(survey.skip(&damage, "backup-1"), Err(RepairError::BackupExists(_))));
}
