use super::*;
use tributary_wal::{Fault, MemDisk};

const ID: &str = "0123456789abcdef0123456789abcdef";

fn dir() -> PathBuf {
    PathBuf::from("/state")
}

fn shared(disk: &MemDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn read(disk: &MemDisk) -> Result<Option<NodeFile>, StartError> {
    NodeFile::read(shared(disk), &dir())
}

fn golden() -> Node {
    let log = "000102030405060708090a0b0c0d0e0f".parse().expect("an id");
    Node {
        format: 1,
        id: ID.to_owned(),
        created_at_ms: 1_700_000_000_123,
        wal_dirs: vec![
            KeptLog { dir: "wal".to_owned(), log: Some(log), is_new: false },
            KeptLog { dir: "/mnt/fast/wal".to_owned(), log: None, is_new: false },
            KeptLog { dir: "wal2".to_owned(), log: None, is_new: true },
        ],
        table_storage: None,
        catalog: None,
    }
}

/// A catalog as far as a node is concerned: its changes are atomic and durable.
struct Catalog {
    disk: MemDisk,
    entry: NodeEntry,
}

impl Catalog {
    fn mark(&mut self, id: String) -> Result<(), ()> {
        let happened = match self.disk.atomic_change("mark") {
            Ok(()) => Ok(()),
            Err((_, true)) => Err(true),
            Err((_, false)) => Err(false),
        };
        if happened != Err(false) {
            self.entry = NodeEntry::InFile(id);
        }
        happened.map_err(|_| ())
    }
}

/// The steps of a start on the file and the catalog, until the power fails.
fn start(disk: &MemDisk, catalog: &mut Catalog) -> Result<NodeFile, Option<StartError>> {
    let off = |error| (!disk.is_off()).then_some(error);
    let found = read(disk).map_err(off)?;
    let file = NodeFile::settle(found, &catalog.entry, shared(disk), &dir()).map_err(off)?;
    if catalog.entry != NodeEntry::InFile(file.id()) {
        catalog.mark(file.id()).map_err(|()| None)?;
    }
    Ok(file)
}

#[test]
fn the_file_is_written_and_read_as_the_golden_file_says() {
    let disk = MemDisk::new();
    let written = NodeFile::written(shared(&disk), &dir(), golden()).expect("written");
    let text = disk.contents(&written.path()).expect("the file");
    assert_eq!(String::from_utf8(text).expect("a text"), include_str!("golden/node-1.json"));
    disk.put(&written.path(), include_bytes!("golden/node-1.json").to_vec());
    assert_eq!(*read(&disk).expect("read").expect("there").node.lock(), golden());
}

#[test]
fn fields_of_later_servers_are_passed_over() {
    let disk = MemDisk::new();
    let later = include_str!("golden/node-1.json").replacen('{', "{ \"zone\": \"a\",", 1);
    disk.put(&dir().join(FILE), later.into_bytes());
    assert_eq!(*read(&disk).expect("read").expect("there").node.lock(), golden());
}

/// Runs starts on an old root with a power failure at each operation, and recovers it in many ways.
fn crash_everywhere(begin: &NodeEntry, check: impl Fn(&NodeFile, &Catalog)) {
    let operations = {
        let disk = MemDisk::new();
        let mut catalog = Catalog { disk: disk.clone(), entry: begin.clone() };
        start(&disk, &mut catalog).expect("opens");
        disk.operations()
    };
    assert!(operations >= 5, "write, sync, rename, sync, mark: {operations}");
    for stopped_at in 0..operations {
        for seed in 0..30 {
            let disk = MemDisk::new();
            let mut catalog = Catalog { disk: disk.clone(), entry: begin.clone() };
            disk.power_off_at(stopped_at);
            let stopped = start(&disk, &mut catalog);
            assert!(matches!(stopped, Err(None)), "{stopped_at}, {seed}: {stopped:?}");
            disk.crash(seed);
            let file = start(&disk, &mut catalog)
                .unwrap_or_else(|error| panic!("{stopped_at}, {seed}: {}", error.expect("the power is on")));
            assert_eq!(catalog.entry, NodeEntry::InFile(file.id()), "{stopped_at}, {seed}");
            check(&file, &catalog);
            let again = start(&disk, &mut catalog).expect("opens again");
            assert_eq!(*again.node.lock(), *file.node.lock(), "{stopped_at}, {seed}");
        }
    }
}

#[test]
fn a_crash_at_any_step_of_taking_over_what_the_catalog_kept_leaves_a_root_that_opens() {
    let old = OldNode {
        id: ID.to_owned(),
        created_at_ms: 5,
        wal_dirs: vec!["wal".to_owned(), "/mnt/fast/wal".to_owned()],
    };
    crash_everywhere(&NodeEntry::Here(old.clone()), |file, _| {
        assert_eq!(*file.node.lock(), Node::of_catalog(&old), "nothing is lost and nobody is made anew");
    });
}

#[test]
fn a_crash_at_any_step_of_a_first_start_leaves_a_root_that_opens() {
    crash_everywhere(&NodeEntry::Nowhere, |file, _| assert_eq!(file.id().len(), 32));
}

#[test]
fn a_file_that_a_process_left_before_it_was_durable_is_durable_before_the_catalog_is_told() {
    for stopped_at in 0..6 {
        for seed in 0..30 {
            let disk = MemDisk::new();
            let mut catalog = Catalog { disk: disk.clone(), entry: NodeEntry::Nowhere };
            disk.fail_operation(stopped_at, Fault::Io);
            drop(start(&disk, &mut catalog));
            disk.kill_process();
            let id = start(&disk, &mut catalog).expect("opens").id();
            disk.crash(seed);
            assert_eq!(start(&disk, &mut catalog).expect("opens again").id(), id, "{stopped_at}, {seed}");
        }
    }
}

#[test]
fn a_crash_while_the_list_of_logs_is_replaced_leaves_the_earlier_one_or_the_new_one() {
    for stopped_at in 0..4 {
        for seed in 0..30 {
            let disk = MemDisk::new();
            let file = NodeFile::written(shared(&disk), &dir(), golden()).expect("written");
            disk.power_off_at(disk.operations() + stopped_at);
            file.keep_wal_dirs(golden().wal_dirs[..1].to_vec()).expect_err("the power is off");
            assert_eq!(file.wal_dirs(), golden().wal_dirs, "what is not written is not so");
            disk.crash(seed);
            let kept = read(&disk).expect("read").expect("there").wal_dirs();
            assert!([golden().wal_dirs, golden().wal_dirs[..1].to_vec()].contains(&kept), "{kept:?}");
        }
    }
}

#[test]
fn a_file_that_is_gone_is_missed_and_the_error_says_how_to_write_it() {
    let disk = MemDisk::new();
    let mut catalog = Catalog { disk: disk.clone(), entry: NodeEntry::InFile(ID.to_owned()) };
    let error = start(&disk, &mut catalog).expect_err("refused").expect("the power is on").to_string();
    assert!(error.contains("/state/node.json is missing") && error.contains("Restore"), "{error}");
    let line = error.split('`').nth(1).expect("the line to write");
    disk.put(&dir().join(FILE), line.as_bytes().to_vec());
    let file = start(&disk, &mut catalog).expect("opens");
    assert_eq!((file.id(), file.wal_dirs()[0].dir.clone()), (ID.to_owned(), "wal".to_owned()));
}

#[test]
fn a_file_that_cannot_be_read_is_refused_and_not_touched() {
    let whole = include_str!("golden/node-1.json");
    let broken = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        "\0".repeat(100),
        whole.replace("format", "fermat"),
        whole.replace("wal_dirs", "val_dirs"),
        whole.replace("0e0f", "0e0"),
    ];
    for text in broken {
        let disk = MemDisk::new();
        disk.put(&dir().join(FILE), text.clone().into_bytes());
        let error = read(&disk).expect_err("refused");
        assert!(matches!(error, StartError::NodeBroken { .. }), "{text}: {error}");
        let error = error.to_string();
        assert!(error.contains("/state/node.json") && error.contains("Restore"), "{error}");
        assert_eq!(disk.operations(), 0, "{text}");
    }
}

#[test]
fn a_file_of_a_newer_server_is_refused_by_its_format() {
    let disk = MemDisk::new();
    disk.put(&dir().join(FILE), br#"{"format":3,"name":"x"}"#.to_vec());
    let error = read(&disk).expect_err("refused").to_string();
    assert!(error.contains("has format 3") && error.contains("newer server"), "{error}");
}

#[test]
fn a_file_of_another_node_is_refused() {
    let old = OldNode { id: "another".to_owned(), created_at_ms: 0, wal_dirs: Vec::new() };
    for entry in [NodeEntry::InFile("another".to_owned()), NodeEntry::Here(old)] {
        let disk = MemDisk::new();
        NodeFile::written(shared(&disk), &dir(), golden()).expect("written");
        let error = start(&disk, &mut Catalog { disk: disk.clone(), entry }).expect_err("refused");
        let error = error.expect("the power is on").to_string();
        assert!(error.contains(ID) && error.contains("another"), "{error}");
    }
}

#[test]
fn the_store_of_the_tables_is_remembered() {
    let disk = MemDisk::new();
    let written = NodeFile::written(shared(&disk), &dir(), golden()).expect("written");
    written.keep_table_storage("s3://bucket/a").expect("kept");
    let again = read(&disk).expect("read").expect("there");
    assert_eq!(again.table_storage().as_deref(), Some("s3://bucket/a"));
    assert_eq!(again.wal_dirs(), golden().wal_dirs);
}

#[test]
fn a_catalog_elsewhere_is_remembered_in_a_format_that_earlier_servers_refuse() {
    let disk = MemDisk::new();
    let file = NodeFile::create(shared(&disk), &dir()).expect("written");
    file.keep_catalog(Some("c-1")).expect("written");
    let found = || {
        let file = read(&disk).expect("legal").expect("a file");
        let format = file.node.lock().format;
        (file.catalog(), format)
    };
    assert_eq!(found(), (Some("c-1".to_owned()), 2));
    assert!(!file.text_for_copy(&[]).contains("c-1"), "the catalog of a copy is its own file");
    file.keep_catalog(None).expect("written");
    assert_eq!(found(), (None, 1));
}
