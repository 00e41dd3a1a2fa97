use super::*;
use object_store::ObjectStoreExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;

pub(super) static FAIL_DIRECTORY_SYNCS: AtomicBool = AtomicBool::new(false);
/// Set for the child process of a test that ends its process.
const IS_CHILD: &str = "TRIBUTARY_TEST_IS_CHILD";

fn at(dir: &FsPath, name: &str) -> Path {
    Path::from_absolute_path(dir.join(name)).unwrap()
}

fn names(dir: &FsPath) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_put_creates_missing_directories_and_leaves_no_staged_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableLocal::default();
    store.put(&at(dir.path(), "a/b/x"), "one".into()).await.unwrap();
    store.put(&at(dir.path(), "a/b/x"), "two".into()).await.unwrap();
    assert_eq!(names(&dir.path().join("a/b")), ["x"]);
    assert_eq!(fs::read(dir.path().join("a/b/x")).unwrap(), b"two");
}

#[tokio::test]
async fn a_put_that_must_create_never_replaces_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableLocal::default();
    let location = at(dir.path(), "x");
    store.put_opts(&location, "one".into(), PutMode::Create.into()).await.unwrap();
    let error = store.put_opts(&location, "two".into(), PutMode::Create.into()).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(names(dir.path()), ["x"]);
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"one");
}

#[tokio::test]
async fn an_upload_is_invisible_until_it_is_complete_and_its_parts_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableLocal::default();
    let location = at(dir.path(), "x");
    let mut upload = store.put_multipart(&location).await.unwrap();
    let first = upload.put_part("one".into());
    let second = upload.put_part("two".into());
    second.await.unwrap();
    first.await.unwrap();
    assert!(matches!(store.head(&location).await, Err(Error::NotFound { .. })));
    upload.complete().await.unwrap();
    assert_eq!(names(dir.path()), ["x"]);
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"onetwo");
}

#[tokio::test]
async fn an_aborted_or_forgotten_upload_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableLocal::default();
    let mut aborted = store.put_multipart(&at(dir.path(), "x")).await.unwrap();
    aborted.put_part("one".into()).await.unwrap();
    aborted.abort().await.unwrap();
    assert!(aborted.complete().await.is_err());
    drop(store.put_multipart(&at(dir.path(), "y")).await.unwrap());
    assert!(names(dir.path()).is_empty());
}

#[test]
fn staged_files_of_a_crash_are_swept_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    for name in ["a.parquet", "a.parquet#12", "sub/b#3", "sub/c#x"] {
        fs::write(dir.path().join(name), b"").unwrap();
    }
    assert_eq!(sweep_staged(dir.path(), Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(sweep_staged(dir.path(), Duration::ZERO).unwrap(), 2);
    assert_eq!(names(dir.path()), ["a.parquet", "sub"]);
    assert_eq!(names(&dir.path().join("sub")), ["c#x"]);
}

#[tokio::test]
async fn a_name_that_cannot_be_made_durable_ends_the_process() {
    if let Some(dir) = std::env::var_os(IS_CHILD) {
        let store = DurableLocal::default();
        let location = at(FsPath::new(&dir), "x");
        store.put(&location, "one".into()).await.unwrap();
        FAIL_DIRECTORY_SYNCS.store(true, Ordering::Relaxed);
        let outcome = store.put(&at(FsPath::new(&dir), "y"), "two".into()).await;
        panic!("the process went on with {outcome:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    dies_in("a_name_that_cannot_be_made_durable_ends_the_process", dir.path());
    assert_eq!(names(dir.path()), ["x", "y"], "the name is there, and nobody was told so");
}

#[tokio::test]
async fn that_a_name_is_taken_is_said_when_the_name_is_durable() {
    if let Some(dir) = std::env::var_os(IS_CHILD) {
        let (store, location) = (DurableLocal::default(), at(FsPath::new(&dir), "x"));
        store.put(&location, "one".into()).await.unwrap();
        FAIL_DIRECTORY_SYNCS.store(true, Ordering::Relaxed);
        let outcome = store.put_opts(&location, "two".into(), PutMode::Create.into()).await;
        panic!("it was said that the name is taken: {outcome:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    dies_in("that_a_name_is_taken_is_said_when_the_name_is_durable", dir.path());
}

/// Runs the test as a process of its own, which ends itself because a directory can't be made durable.
fn dies_in(test: &str, dir: &FsPath) {
    let test = format!("place::durable::tests::{test}");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(IS_CHILD, dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(6), "{said}");
    assert!(said.contains("can't be made durable: the test said so"), "{said}");
}

#[tokio::test]
async fn without_a_free_file_descriptor_a_write_is_refused_and_the_process_goes_on() {
    if let Some(dir) = std::env::var_os(IS_CHILD) {
        let dir = PathBuf::from(dir);
        let store = DurableLocal::default();
        store.put(&at(&dir, "x"), "one".into()).await.unwrap();
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        for free in 0..10 {
            let [put, over, copied, renamed] =
                ["put", "over", "copied", "renamed"].map(|name| format!("{name}-{free}"));
            let outcomes = [
                (&put, store.put_opts(&at(&dir, &put), "two".into(), PutMode::Create.into()).await.map(drop)),
                (&over, store.put(&at(&dir, &over), "two".into()).await.map(drop)),
                (&copied, store.copy_if_not_exists(&at(&dir, "x"), &at(&dir, &copied)).await),
                (&renamed, store.rename_if_not_exists(&at(&dir, &copied), &at(&dir, &renamed)).await),
            ];
            for (name, outcome) in outcomes {
                let is_there = dir.join(name).exists() || *name == copied && dir.join(&renamed).exists();
                assert_eq!(outcome.is_ok(), is_there, "{name}: {outcome:?}");
                assert!(free > 0 || !is_there, "{name} needs a descriptor");
                assert!(free < 9 || is_there, "{name}: {outcome:?}");
            }
            drop(taken.pop());
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let test =
        "place::durable::tests::without_a_free_file_descriptor_a_write_is_refused_and_the_process_goes_on";
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(IS_CHILD, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(sweep_staged(dir.path(), Duration::ZERO).unwrap(), 0);
}

#[tokio::test]
async fn a_copy_and_a_rename_take_the_place_of_a_file_or_respect_it_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableLocal::default();
    let place = |name: &str| at(dir.path(), name);
    for name in ["x", "y"] {
        store.put(&place(name), name.to_owned().into()).await.unwrap();
    }
    for refused in [
        store.copy_if_not_exists(&place("x"), &place("y")).await,
        store.rename_if_not_exists(&place("x"), &place("y")).await,
    ] {
        assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
    }
    let missing = store.rename(&place("z"), &place("y")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    store.copy(&place("x"), &place("y")).await.unwrap();
    store.rename(&place("x"), &place("new/z")).await.unwrap();
    assert_eq!(names(dir.path()), ["new", "y"]);
    assert_eq!(names(&dir.path().join("new")), ["z"]);
    assert_eq!(fs::read(dir.path().join("y")).unwrap(), b"x");
}
