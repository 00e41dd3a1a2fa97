use super::*;

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
fn a_crash_tears_an_unsynced_write_at_sectors() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = MemDisk::new();
        let file = synced_file(&disk, "a", &[0; 1536]);
        file.write_all_at(&[1; 1536], 0).unwrap();
        disk.crash(seed);
        let kept = disk.contents(&dir().join("a")).unwrap();
        for sector in kept.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole or not at all");
        }
        outcomes.insert([kept[0], kept[512], kept[1024]]);
    }
    assert_eq!(outcomes.len(), 8, "every choice of sectors happens");
}

#[test]
fn a_crash_may_undo_an_unsynced_rename_but_not_a_synced_one() {
    let mut undone = 0;
    for seed in 0..50 {
        let disk = MemDisk::new();
        synced_file(&disk, "a", b"1");
        disk.rename(&dir().join("a"), &dir().join("b")).unwrap();
        disk.crash(seed);
        undone += u32::from(disk.contents(&dir().join("a")).is_some());

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
    let file = synced_file(&disk, "a", b"old");
    file.write_all_at(b"new", 0).unwrap();
    disk.fail_next_sync();
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(disk.contents(&dir().join("a")).unwrap(), b"new");
    disk.crash(1);
    assert_eq!(disk.contents(&dir().join("a")).unwrap(), b"old");
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
