#![expect(clippy::single_range_in_vec_init, reason = "reads are ranges")]

use super::*;
use crate::testing::FaultStore;
use object_store::memory::InMemory;

#[test]
fn only_data_files_and_deletion_vectors_never_change() {
    for (path, expected) in [
        ("a/tables/demo/t-1/part-1.parquet", true),
        ("a/tables/demo/t-1/deletion_vector_0e8f0b4e.bin", true),
        ("a/tables/demo/t-1/_delta_log/00000000000000000010.checkpoint.parquet", false),
        ("a/tables/demo/t-1/_delta_log/_last_checkpoint", false),
        ("a/_tributary_server.json", false),
        ("a/tables/demo/t-1/part-1.parquet.tmp", false),
    ] {
        assert_eq!(never_changes(&Path::from(path)), expected, "{path}");
    }
}

#[test]
fn near_ranges_are_one_request_and_large_ones_several() {
    let (gap, most) = (GAP_BYTES, REQUEST_BYTES);
    assert_eq!(requests(&[10 + gap..20 + gap, 0..10]), [0..20 + gap]);
    assert_eq!(requests(&[0..10, 11 + gap..20 + gap]), [0..10, 11 + gap..20 + gap]);
    assert_eq!(
        requests(&[5..5 + 2 * most + 1]),
        [5..5 + most, 5 + most..5 + 2 * most, 5 + 2 * most..6 + 2 * most]
    );
}

#[tokio::test]
async fn ranges_are_read_as_they_were_asked_for() {
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| (at ^ (at >> 7)) as u8).collect();
    let objects = Arc::new(InMemory::new());
    let path = Path::from("t/part.parquet");
    objects.put(&path, bytes.clone().into()).await.unwrap();
    let remote = Remote::new(objects, None);
    let ranges = [3..19_999_999, 5..6, 15_000_000..20_000_000, 0..5];
    let read = remote.get_ranges(&path, &ranges).await.unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert_eq!(read, bytes[range.start as usize..range.end as usize], "{range:?}");
    }
    assert!(remote.get_ranges(&Path::from("t/gone.parquet"), &[0..5]).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_neither_completed_nor_aborted_is_aborted_when_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let faults = FaultStore::new();
    let remote = Remote::new(Arc::new(faults.clone()), None);
    let path = |name: &str| Path::from_absolute_path(dir.path().canonicalize().unwrap().join(name)).unwrap();
    let mut completed = remote.put_multipart(&path("one")).await.unwrap();
    completed.put_part("one".into()).await.unwrap();
    completed.complete().await.unwrap();
    drop(completed);
    let mut aborted = remote.put_multipart(&path("two")).await.unwrap();
    aborted.put_part("two".into()).await.unwrap();
    aborted.abort().await.unwrap();
    aborted.abort().await.unwrap();
    assert!(aborted.put_part("more".into()).await.is_err() && aborted.complete().await.is_err());
    drop(aborted);
    assert_eq!(faults.aborted_uploads(), 1);
    let mut dropped = remote.put_multipart(&path("three")).await.unwrap();
    dropped.put_part("three".into()).await.unwrap();
    drop(dropped);
    while faults.aborted_uploads() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(remote.get(&path("one")).await.unwrap().bytes().await.unwrap(), "one");
    assert!(remote.get(&path("three")).await.is_err());
}
