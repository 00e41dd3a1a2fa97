use super::*;
use tributary_decode::RejectCode;
use tributary_wal::MemDisk;
use tributary_wal::disk::{DiskFile, Faults, OpenMode, OsDisk};

const LONG: Duration = Duration::from_secs(1_000_000);

fn load(txn: u64, at_ms: i64, bytes: usize) -> RejectedLoad {
    let reject = Reject::of_bytes(RejectCode::WrongValue, format!("of {txn}"), &vec![b'x'; bytes]);
    RejectedLoad {
        table: TableId(1 + txn % 2),
        txn: TxnId(txn),
        load: 3,
        label: Label::of_group(u128::from(txn)),
        at_ms,
        rejects: LoadRejects::new(5, &[Reject { row: Some(txn), ..reject }], "here".into()),
        replayed_by: BTreeMap::new(),
    }
}

fn open(disk: &Arc<dyn Disk>, bytes_max: u64) -> RejectedRows {
    RejectedRows::open(Arc::clone(disk), "/rejected".into(), Live::new(LONG), Live::new(bytes_max))
        .expect("opens")
}

fn found(all: &RejectedRows) -> Vec<u64> {
    all.loads(|_| true).expect("readable").iter().map(|load| load.txn.0).collect()
}

/// Stores a load as the answer to its commit does.
fn store(all: &Arc<RejectedRows>, load: &RejectedLoad) {
    HeldRejects::restored(all, load.clone()).are_stored();
}

#[test]
fn they_are_found_in_memory_in_files_and_after_merges_and_restarts() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let open = || {
        let path = dir.path().join("rejected");
        Arc::new(
            RejectedRows::open(Arc::clone(&disk), path, Live::new(LONG), Live::new(u64::MAX)).expect("opens"),
        )
    };
    let all = open();
    let now = host::unix_ms();
    for txn in 1..=30 {
        store(&all, &load(txn, now, 10));
        if txn < 29 {
            all.store_recent().expect("stored");
            all.merge().expect("merged");
        }
    }
    let figures = all.figures();
    assert!(figures.files < 9, "{figures:?}");
    assert_eq!((figures.recent, figures.not_kept), (2, 30 * 4));
    assert_eq!(found(&all), (1..=30).collect::<Vec<_>>());
    let odd = all.loads(|table| table == TableId(2)).expect("readable");
    assert_eq!(odd.len(), 15);
    assert_eq!(odd[3], load(7, now, 10));
    // The log has the last ones, and one of a file.
    let all = open();
    for txn in 28..=30 {
        all.restore(load(txn, now, 10));
    }
    all.recovered();
    assert_eq!(found(&all), (1..=30).collect::<Vec<_>>());
}

#[test]
fn rows_that_a_load_of_another_table_brings_again_are_marked_with_its_transaction() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let all = Arc::new(open(&disk, u64::MAX));
    let now = host::unix_ms();
    store(&all, &load(2, now, 10));
    let replays = vec![ReplayedRows { txn: TxnId(2), load: 3, rows: vec![0, 7] }];
    let rejects = LoadRejects { replays, ..LoadRejects::default() };
    store(&all, &RejectedLoad { rejects, ..load(5, now, 10) });
    let marked = BTreeMap::from([(0, TxnId(5)), (7, TxnId(5))]);
    let check = |all: &RejectedRows| {
        let found = all.loads(|table| table == TableId(1)).expect("readable");
        assert_eq!(found, [RejectedLoad { replayed_by: marked.clone(), ..load(2, now, 10) }]);
        assert_eq!(all.loads(|table| table == TableId(2)).expect("readable"), []);
    };
    check(&all);
    all.store_recent().expect("stored");
    check(&all);
    check(&open(&disk, u64::MAX));
}

#[test]
fn old_ones_and_those_beyond_the_space_are_deleted_file_by_file() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let all = Arc::new(open(&disk, 5_000));
    let now = host::unix_ms();
    for (txn, at_ms) in [(1, 0), (2, now), (3, now), (4, now)] {
        store(&all, &load(txn, at_ms, 900));
        all.store_recent().expect("stored");
    }
    all.purge().expect("purged");
    assert_eq!(found(&all), [2, 3, 4], "the first one is too old");
    for txn in 5..9 {
        store(&all, &load(txn, now, 900));
        all.store_recent().expect("stored");
    }
    all.purge().expect("purged");
    assert_eq!(found(&all), [5, 6, 7, 8]);
    assert!(all.figures().file_bytes <= 5_000);
    assert_eq!(found(&open(&disk, 5_000)), [5, 6, 7, 8]);
}

#[test]
fn they_are_stored_once_whenever_the_power_fails() {
    for operations in 0.. {
        let mem = MemDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(mem.clone());
        let all = Arc::new(open(&disk, u64::MAX));
        let now = host::unix_ms();
        let mut stored = 0;
        mem.set_faults(Faults { power_off_at: Some(mem.operations() + operations), ..Faults::default() });
        for txn in 1..=20 {
            store(&all, &load(txn, now, 10));
            if all.store_recent().is_err() || all.merge().is_err() {
                break;
            }
            stored = txn;
        }
        let was_off = mem.is_off();
        mem.crash(operations);
        mem.set_faults(Faults::default());
        let after = open(&disk, u64::MAX);
        // The log still has the one that was not answered.
        for txn in stored.max(1)..=(stored + 1).min(20) {
            after.restore(load(txn, now, 10));
        }
        after.recovered();
        assert_eq!(found(&after), (1..=(stored + 1).min(20)).collect::<Vec<_>>(), "at {operations}");
        if !was_off {
            break;
        }
    }
}

#[test]
fn a_damaged_file_is_read_up_to_its_damage() {
    let mem = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(mem.clone());
    let all = Arc::new(open(&disk, u64::MAX));
    (1..=3).for_each(|txn| store(&all, &load(txn, host::unix_ms(), 10)));
    all.store_recent().expect("stored");
    let path = "/rejected/0000000000000001-0000000000000001.rejects";
    let file = mem.open(path.as_ref(), OpenMode::Existing).expect("there");
    let len = DiskFile::len(&*file).expect("it has one");
    file.write_all_at(b"#", len - 5).expect("written");
    assert_eq!(found(&open(&disk, u64::MAX)), [1, 2]);
}

#[test]
fn a_load_keeps_its_first_rows_and_the_number_of_all() {
    let row = |bytes: usize| Reject::of_bytes(RejectCode::BadJson, "r".repeat(bytes), b"x");
    let many = LoadRejects::new(2_000, &vec![row(1); 2_000], String::new());
    assert_eq!((many.filtered, many.rows.len()), (2_000, LOAD_ROWS_MAX));
    let large = LoadRejects::new(10, &vec![row(300 * 1024); 10], String::new());
    assert_eq!(large.rows.len(), 3);
}
