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
    let test = "durable::tests::a_name_that_cannot_be_made_durable_ends_the_process";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(IS_CHILD, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(6), "{said}");
    assert!(said.contains("can't be made durable: the test said so"), "{said}");
    assert_eq!(names(dir.path()), ["x", "y"], "the name is there, and nobody was told so");
}
