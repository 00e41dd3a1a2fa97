use super::*;
use std::collections::BTreeSet;

fn dir() -> PathBuf {
    PathBuf::from("/d")
}

fn synced_file(disk: &MemDisk, name: &str, contents: &[u8]) -> Box<dyn DiskFile> {
    let file = disk.open(&dir().join(name), OpenMode::CreateNew).unwrap();
    file.write_all_at(contents, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(&dir()).unwrap();
    file
}

#[test]
fn a_crash_keeps_what_was_synced() {
    for seed in 0..50 {
        let disk = MemDisk::new();
        let file = synced_file(&disk, "a", b"hello");
        file.write_all_at(b"J", 0).unwrap();
        disk.crash(seed);
        let kept = disk.contents(&dir().join("a")).unwrap();
        assert!(kept == b"hello" || kept == b"Jello", "{kept:?}");
        assert!(file.sync_data().is_err(), "a file opened before the crash is dead");
    }
}

#[test]
fn a_crash_keeps_sectors_of_an_unsynced_write_or_its_beginning() {
    let mut sectors = BTreeSet::new();
    let mut beginnings = 0;
    for seed in 0..1000 {
        let disk = MemDisk::new();
        let file = synced_file(&disk, "a", &[0; 2048]);
        // Four sectors, the first and the last of them only in part.
        file.write_all_at(&[1; 1536], 256).unwrap();
        disk.crash(seed);
        let kept = disk.contents(&dir().join("a")).unwrap();
        assert!(kept[..256].iter().chain(&kept[1792..]).all(|byte| *byte == 0));
        let parts = [256..512, 512..1024, 1024..1536, 1536..1792].map(|part| &kept[part]);
        if parts.iter().all(|part| part.iter().all(|byte| *byte == part[0])) {
            sectors.insert(parts.map(|part| part[0]));
        } else {
            let torn_at = 256 + kept.iter().filter(|byte| **byte == 1).count();
            assert!(kept[256..torn_at].iter().all(|byte| *byte == 1), "no byte after the tear");
            beginnings += 1;
        }
    }
    assert_eq!(sectors.len(), 16, "every choice of sectors happens");
    assert!(beginnings > 100, "{beginnings}");
}

#[test]
fn a_crash_keeps_any_choice_of_several_unsynced_writes() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let disk = MemDisk::new();
        let file = synced_file(&disk, "a", b"0");
        for byte in [b"1", b"2"] {
            file.write_all_at(byte, 0).unwrap();
        }
        disk.crash(seed);
        outcomes.insert(disk.contents(&dir().join("a")).unwrap());
    }
    assert_eq!(outcomes.into_iter().flatten().collect::<Vec<_>>(), b"012");
}

#[test]
fn a_crash_may_undo_an_unsynced_rename_but_not_a_synced_one() {
    let mut undone = 0;
    for seed in 0..50 {
        let disk = MemDisk::new();
        synced_file(&disk, "a", b"1");
        disk.rename(&dir().join("a"), &dir().join("b")).unwrap();
        disk.crash(seed);
        undone += u32::from(disk.contents(&dir().join("a")).is_ok());

        let disk = MemDisk::new();
        synced_file(&disk, "a", b"1");
        disk.rename(&dir().join("a"), &dir().join("b")).unwrap();
        disk.sync_dir(&dir()).unwrap();
        disk.crash(seed);
        assert_eq!(disk.contents(&dir().join("b")).unwrap(), b"1");
    }
    assert!(undone > 0 && undone < 50);
}

#[test]
fn what_a_failed_sync_lost_is_seen_until_the_crash_and_no_later_sync_saves_it() {
    let disk = MemDisk::new();
    let file = synced_file(&disk, "a", &[0; 50]);
    for at in 0..50 {
        file.write_all_at(&[1], at).unwrap();
    }
    disk.fail_next_sync();
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(disk.contents(&dir().join("a")).unwrap(), [1; 50]);
    disk.crash(1);
    let saved = disk.contents(&dir().join("a")).unwrap().iter().filter(|byte| **byte == 1).count();
    assert!((5..30).contains(&saved), "some of it got there before the failure: {saved}");
}

#[test]
fn a_full_disk_takes_what_fits_and_then_says_so() {
    let disk = MemDisk::new();
    let file = synced_file(&disk, "a", b"12345");
    disk.set_capacity(Some(8));
    assert_eq!(disk.available_bytes(&dir()).unwrap(), 3);
    let error = file.write_all_at(b"abcdef", 5).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.contents(&dir().join("a")).unwrap(), b"12345abc");
    file.write_all_at(b"xyz", 5).unwrap();
}

#[test]
fn after_power_off_nothing_works_until_the_crash_brings_it_back() {
    let disk = MemDisk::new();
    let file = synced_file(&disk, "a", b"1");
    disk.power_off_at(disk.operations());
    assert!(file.write_all_at(b"2", 0).is_err());
    assert!(file.sync_data().is_err());
    assert!(disk.list(&dir()).is_err());
    disk.crash(3);
    assert_eq!(disk.list(&dir()).unwrap(), [("a".to_owned(), 1)]);
}

#[test]
fn a_directory_is_locked_once_until_the_lock_is_dropped() {
    let disk = MemDisk::new();
    let lock = disk.lock_dir(&dir()).unwrap();
    assert!(lock.is_some());
    assert!(disk.lock_dir(&dir()).unwrap().is_none());
    drop(lock);
    assert!(disk.lock_dir(&dir()).unwrap().is_some());
}

#[test]
fn a_fault_by_chance_a_full_disk_and_an_unreadable_file_are_counted() {
    let disk = MemDisk::new();
    let file = synced_file(&disk, "a", b"1");
    let path = dir().join("a");
    disk.set_faults(Faults { io_error_one_in: 1, sync_error_one_in: 1, ..Faults::default() });
    assert!(file.write_all_at(b"2", 0).is_err());
    assert!(disk.remove(&path).is_err());
    assert!(disk.sync_dir(&dir()).is_err());
    disk.set_faults(Faults { full: Some((5, 6)), unreadable: Some(path.clone()), ..Faults::default() });
    assert!(disk.contents(&path).is_err());
    file.write_all_at(b"3", 0).unwrap();
    disk.set_time(5);
    assert_eq!(file.write_all_at(b"4", 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.kill_process();
    assert_eq!(disk.contents(&path).unwrap(), b"3");
    let counts = disk.counts();
    assert_eq!((counts.write_errors, counts.sync_errors), (2, 1));
    assert_eq!((counts.full_errors, counts.read_errors), (1, 1));
}
