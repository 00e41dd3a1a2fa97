//! Key files on this machine.

use super::*;
use crate::LiveFile;
use crate::testing::open_file;
use tributary_types::Live;

/// The keys of data files can be made again from these at any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_keys_that_are_damaged_or_gone_are_made_again() {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&def()).await.unwrap();
    let mut winners = Winners::default();
    for round in 0..6 {
        let rows = some(round * 10..round * 10 + 30, &format!("round {round}"));
        put(&table, &rows, Vec::new());
        winners.put(&rows);
        assert_eq!(visible(&table).await, winners.texts(), "round {round}");
        table.flush().await.unwrap();
        let kept = bench.kept_keys();
        assert!(!kept.is_empty(), "round {round}");
        for path in kept {
            match round % 3 {
                0 => std::fs::remove_file(path).unwrap(),
                1 => std::fs::write(path, "nonsense").unwrap(),
                _ => {
                    let mut bytes = std::fs::read(&path).unwrap();
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                    std::fs::write(path, bytes).unwrap();
                }
            }
        }
    }
    // A rewrite that meets them fails and leaves everything as it was, and the next one does not.
    if let Err(error) = table.compact().await {
        assert!(matches!(error, TableError::LostKeys { .. }), "{error}");
        table.compact().await.unwrap();
    }
    check(&bench, &table, &winners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_keys_are_read_after_a_start_and_go_with_their_files() {
    let options =
        StoreOptions { compact_min_files: 2, keep_removed_files_ms: Live::new(0), ..StoreOptions::default() };
    let bench = Bench::with(options);
    let table = bench.store.create(&def()).await.unwrap();
    for name in ["first", "second", "third"] {
        put(&table, &some(0..40, name), Vec::new());
        table.flush().await.unwrap();
    }
    assert_eq!(bench.kept_keys().len(), 3);
    let table = bench.store.open(&def()).await.unwrap();
    put(&table, &some([7], "fourth"), Vec::new());
    // Nothing of the data files is read to find out which rows the new one supersedes.
    bench.faults.fail_next_read(".parquet");
    let snapshot = table.settled().await.unwrap();
    assert_eq!(snapshot.rows(), 40);
    assert_eq!(snapshot.files.iter().map(LiveFile::deleted_rows).sum::<u64>(), 81);
    drop(snapshot);
    visible_after_failure(&table).await;
    table.flush().await.unwrap();
    table.compact().await.unwrap().expect("there are small files");
    assert_eq!(bench.kept_keys().len(), table.snapshot().files.len(), "data files stay longer");
    table.close().await;
    bench.store.remove("demo/events-7").await.unwrap();
    assert!(bench.kept_keys().is_empty());
}

/// Reads the table after one file could not be read.
async fn visible_after_failure(table: &Table) {
    let snapshot = table.settled().await.unwrap();
    let first = &snapshot.files[0];
    assert!(open_file(table, first).await.is_err(), "the failure that was ordered is still to come");
}
