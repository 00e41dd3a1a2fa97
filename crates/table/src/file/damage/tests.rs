use super::*;
use crate::StoreOptions;
use crate::testing::{Bench, expected, publish, read_files, two_columns};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_footer_is_an_error_that_names_the_file_or_does_no_harm() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, 1..100);
    table.flush().await.unwrap();
    let name = table.snapshot().files[0].path().to_owned();
    let path = bench.dir.path().join("demo/events-7").join(&name);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(read_files(&table).await.unwrap(), expected(1..100));
    let mut refused = 0;
    for from_end in 1..800.min(whole.len()) {
        for flip in [0x01, 0x40, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[whole.len() - from_end] ^= flip;
            std::fs::write(&path, damaged).unwrap();
            match read_files(&table).await {
                // Names and bounds have no checksum.
                Ok(rows) => assert_eq!(rows.len(), 99, "byte {from_end} from the end"),
                Err(TableError::DamagedFile { file, .. }) => {
                    assert!(file.ends_with(&name), "{file}");
                    refused += 1;
                }
                Err(error) => panic!("byte {from_end} from the end, flipped by {flip:#x}: {error}"),
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_meets_a_damaged_file_names_it_and_changes_nothing() {
    let bench = Bench::with(StoreOptions { compact_min_files: 2, ..StoreOptions::default() });
    let table = bench.store.create(&two_columns()).await.unwrap();
    for id in 0..3 {
        publish(&table, [id]);
        table.flush().await.unwrap();
    }
    let before = bench.data_files();
    let path = bench.dir.path().join("demo/events-7").join(&before[1]);
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len() - 8;
    bytes[length + 1] ^= 0x40;
    std::fs::write(&path, bytes).unwrap();
    let error = table.compact().await.unwrap_err();
    assert!(matches!(&error, TableError::DamagedFile { file, .. } if file.ends_with(&before[1])), "{error}");
    assert!(error.to_string().contains("Restore it from a copy"), "{error}");
    assert_eq!(bench.data_files(), before);
}
