use super::*;
use std::sync::Arc;
use tempfile::tempdir;
use tributary_wal::{Wal, WalOptions};

const SEGMENT: &str = "wal-00000000000000000000.log";

/// A log that was started once in the directory, which is created if necessary.
fn used(root: &Path, name: &str) -> PathBuf {
    let dir = root.join(name);
    let options = WalOptions { segment_bytes: 8192, ..WalOptions::default() };
    let log = Wal::recover(Arc::new(OsDisk), &dir, options).expect("opens").start().expect("starts").0;
    log.shutdown();
    dir
}

/// A log without a readable header.
fn without_id(root: &Path, name: &str) -> PathBuf {
    let dir = root.join(name);
    fs::create_dir_all(&dir).expect("a directory");
    fs::write(dir.join(SEGMENT), "no header").expect("a file");
    assert!(is_in_use(&dir) && identify(&dir).is_none());
    dir
}

fn remove_log(dir: &Path) {
    fs::remove_dir_all(dir).expect("removed");
}

fn give_up(dir: &Path) {
    fs::create_dir_all(dir).expect("a directory");
    fs::write(dir.join(GIVEN_UP), b"").expect("a file");
}

/// A node that remembers logs with their current ids.
fn node(root: &Path, remembered: &[&PathBuf]) -> NodeFile {
    let kept = |dir: &&PathBuf| KeptLog { dir: dir.display().to_string(), log: identify(dir), is_new: false };
    node_of(root, remembered.iter().map(kept).collect())
}

fn node_of(root: &Path, wal_dirs: Vec<KeptLog>) -> NodeFile {
    let node = NodeFile::create(Arc::new(OsDisk), root).expect("written");
    node.keep_wal_dirs(wal_dirs).expect("written");
    node
}

fn opened(node: &NodeFile, root: &Path, configured: &[&PathBuf]) -> Result<WalDirs, StartError> {
    let configured: Vec<PathBuf> = configured.iter().map(|&dir| dir.clone()).collect();
    to_open(node, root, &configured)
}

fn kept(node: &NodeFile) -> Vec<String> {
    node.wal_dirs().into_iter().map(|kept| kept.dir).collect()
}

#[test]
fn a_remembered_log_that_is_gone_is_missed() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), used(root, "b"));
    let node = node(root, &[&a, &b]);
    remove_log(&b);
    for configured in [&[&a, &b][..], &[&a]] {
        let outcome = opened(&node, root, configured);
        assert!(matches!(outcome, Err(StartError::LogGone(dir)) if dir == b));
    }
    give_up(&b);
    assert!(opened(&node, root, &[&a]).expect("may open").retired.is_empty());
}

#[test]
fn a_log_in_whose_directory_is_another_is_missed() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), used(root, "b"));
    let node = node(root, &[&a, &b]);
    let known = identify(&b).expect("an id");
    remove_log(&b);
    used(root, "b");
    let found = identify(&b).expect("an id");
    for configured in [&[&a, &b][..], &[&a]] {
        let error = opened(&node, root, configured).map(|dirs| dirs.retired).expect_err("refused");
        assert!(
            matches!(&error, StartError::LogDiffers { dir, known: k, found: f } if (dir, k, f) == (&b, &known, &found)),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains(&known.to_string()) && text.contains(&found.to_string()), "{text}");
    }
    give_up(&b);
    let dirs = opened(&node, root, &[&a, &b]).expect("may open");
    dirs.remember(&node).expect("written");
    assert!(!b.join(GIVEN_UP).exists());
    opened(&node, root, &[&a, &b]).expect("it is the one that is known now");
}

#[test]
fn logs_whose_directories_were_exchanged_are_both_there() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b, c) = (used(root, "a"), used(root, "b"), root.join("c"));
    let node = node(root, &[&a, &b]);
    for (from, to) in [(&a, &c), (&b, &a), (&c, &b)] {
        fs::rename(from, to).expect("moved");
    }
    let dirs = opened(&node, root, &[&a, &b]).expect("may open");
    assert!(dirs.retired.is_empty());
    dirs.remember(&node).expect("written");
    let ids: Vec<_> = node.wal_dirs().into_iter().map(|kept| kept.log).collect();
    assert_eq!(ids, [identify(&a), identify(&b)]);
    remove_log(&b);
    assert!(opened(&node, root, &[&a, &b]).is_err());
}

#[test]
fn a_log_without_an_id_is_unknown_and_not_another_one() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), root.join("b"));
    let node = node(root, &[&a]);
    remove_log(&a);
    // As after a repair that found no header to continue.
    without_id(root, "a");
    opened(&node, root, &[&a]).expect("may open");
    // When it is opened it gets an id, and the process may end before that is remembered.
    remove_log(&a);
    used(root, "a");
    opened(&node, root, &[&a]).expect("may open");
    remove_log(&a);
    without_id(root, "b");
    assert!(opened(&node, root, &[&b]).expect("it may have been moved").retired.is_empty());
    // Logs remembered by the catalog of an earlier version have no ids either.
    let old = node_of(root, vec![KeptLog { dir: "a".to_owned(), log: None, is_new: false }]);
    used(root, "c");
    assert!(opened(&old, root, &[&root.join("c")]).expect("it may have been moved").retired.is_empty());
    used(root, "a");
    opened(&old, root, &[&a]).expect("may open").remember(&old).expect("written");
    assert_eq!(old.wal_dirs(), [KeptLog { dir: "a".to_owned(), log: identify(&a), is_new: false }]);
}

#[test]
fn a_log_without_an_id_is_no_copy_of_another() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (known, unknown) = (used(root, "known"), without_id(root, "unknown"));
    let outcome = opened(&node(root, &[&known]), root, &[&unknown]).map(|dirs| dirs.retired);
    assert!(matches!(&outcome, Err(StartError::LogUnknown { .. })), "{outcome:?}");
}

#[test]
fn another_log_does_not_take_the_place_of_one_that_is_gone() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (old, new) = (used(root, "old"), used(root, "new"));
    let node = node(root, &[&old]);
    remove_log(&old);
    let outcome = opened(&node, root, &[&new]).map(|dirs| dirs.retired);
    assert!(matches!(&outcome, Err(StartError::LogGone(dir)) if *dir == old), "{outcome:?}");
}

#[test]
fn a_log_that_was_taken_out_of_the_configuration_is_still_opened() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), used(root, "b"));
    assert_eq!(opened(&node(root, &[&a, &b]), root, &[&a]).expect("may open").retired, [b]);
}

#[test]
fn a_log_that_was_moved_or_copied_is_known_by_its_id() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (old, new) = (used(root, "old"), root.join("new"));
    let node = node(root, &[&old]);
    fs::rename(&old, &new).expect("moved");
    assert!(opened(&node, root, &[&new]).expect("may open").retired.is_empty());
    used(root, "old");
    let differs = opened(&node, root, &[&old]).map(|dirs| dirs.retired);
    assert!(matches!(&differs, Err(StartError::LogDiffers { .. })), "{differs:?}");
    remove_log(&old);
    fs::create_dir(&old).expect("a directory");
    fs::copy(new.join(SEGMENT), old.join(SEGMENT)).expect("copied");
    let dirs = opened(&node, root, &[&new]).expect("may open");
    assert!(dirs.retired.is_empty());
    dirs.remember(&node).expect("written");
    assert_eq!(kept(&node), ["new"]);
    // The copy is continued; the original is stale from now on.
    let dirs = opened(&node, root, &[&old]).expect("may open");
    assert_eq!(dirs.retired, [new]);
    assert!(!is_in_use(&old) && old.join("forgotten-1").join(SEGMENT).exists());
}

#[test]
fn a_log_created_by_an_unfinished_start_is_recognised() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), root.join("b"));
    let node = node(root, &[&a]);
    for _ in 0..2 {
        // The process ends before the log is made, and after that.
        assert_eq!(opened(&node, root, &[&b]).expect("may open").retired, std::slice::from_ref(&a));
    }
    used(root, "b");
    let dirs = opened(&node, root, &[&b]).expect("may open");
    assert_eq!(dirs.retired, std::slice::from_ref(&a));
    assert!(opened(&node, root, &[&a]).expect("configured back").retired.is_empty());
    remove_log(&b);
    fs::rename(&a, &b).expect("moved");
    assert!(opened(&node, root, &[&b]).expect("it was moved there").retired.is_empty());
    dirs.remember(&node).expect("written");
    assert!(node.wal_dirs().iter().all(|kept| !kept.is_new), "now it would be missed");
}

#[test]
fn a_log_that_nobody_knows_is_refused_beside_one_that_is_not_configured_any_more() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (known, unknown) = (used(root, "known"), used(root, "unknown"));
    let outcome = opened(&node(root, &[&known]), root, &[&unknown]).map(|dirs| dirs.retired);
    assert!(
        matches!(&outcome, Err(StartError::LogUnknown { unknown: u, known: k }) if (u, k) == (&unknown, &known)),
        "{outcome:?}"
    );
}

#[test]
fn a_directory_that_is_configured_again_begins_a_new_log_and_the_one_between_is_opened() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), root.join("b"));
    let first = fs::read(a.join(SEGMENT)).expect("a segment");
    let node = node(root, &[&a]);
    let dirs = opened(&node, root, &[&b]).expect("may open");
    assert_eq!(dirs.retired, std::slice::from_ref(&a));
    used(root, "b");
    dirs.remember(&node).expect("written");
    dirs.forget(&node, |_| false).expect("written");
    assert_eq!(kept(&node), ["b"]);
    for _ in 0..2 {
        let dirs = opened(&node, root, &[&a]).expect("may open");
        assert_eq!(dirs.retired, std::slice::from_ref(&b));
        assert!(!is_in_use(&a));
        assert!(fs::read(a.join("forgotten-1").join(SEGMENT)).expect("kept") == first);
    }
    let dirs = opened(&node, root, &[&a]).expect("may open");
    used(root, "a");
    dirs.remember(&node).expect("written");
    assert_eq!(kept(&node), ["a", "b"]);
    assert!(!a.join(FORGOTTEN).exists());
    let dirs = opened(&node, root, &[&a]).expect("may open");
    assert_eq!(dirs.retired, [b]);
    assert!(is_in_use(&a), "its segments are those of a remembered log");
}

#[test]
fn a_log_that_is_moved_with_an_old_mark_is_known_all_the_same() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (old, new) = (used(root, "old"), root.join("new"));
    let node = node(root, &[&old]);
    opened(&node, root, &[&old]).expect("may open").mark_forgotten(&old).expect("written");
    fs::rename(&old, &new).expect("moved");
    assert!(opened(&node, root, &[&new]).expect("may open").retired.is_empty());
    assert!(is_in_use(&new));
}

#[test]
fn a_log_is_given_up_once() {
    let temp = tempdir().expect("a directory");
    let root = temp.path();
    let (a, b) = (used(root, "a"), root.join("b"));
    for configured in [&[&a, &b][..], &[&a]] {
        give_up(&b);
        let node = node(root, &[&a, &b]);
        opened(&node, root, configured).expect("may open").remember(&node).expect("written");
        node.keep_wal_dirs(self::node(root, &[&a, &b]).wal_dirs()).expect("written");
        let again = opened(&node, root, configured);
        assert!(matches!(again, Err(StartError::LogGone(dir)) if dir == b));
    }
}

#[test]
fn a_copy_of_the_storage_root_has_nothing_to_do_with_the_logs_of_the_original() {
    let temp = tempdir().expect("a directory");
    let (original, copy) = (temp.path().join("original"), temp.path().join("copy"));
    let wal = used(&original, "wal");
    let first = node(&original, &[]);
    opened(&first, &original, &[&wal]).expect("may open").remember(&first).expect("written");
    let copied = copy.join("wal");
    fs::create_dir_all(&copied).expect("a directory");
    fs::copy(wal.join(SEGMENT), copied.join(SEGMENT)).expect("copied");
    fs::copy(first.path(), copy.join("node.json")).expect("copied");
    let node = NodeFile::read(Arc::new(OsDisk), &copy).expect("read").expect("there");
    assert_eq!(kept(&node), ["wal"]);
    assert!(opened(&node, &copy, &[&copied]).expect("may open").retired.is_empty());
}
