use super::*;
use crate::testing::{Bench, column, def_of, expected, logged, publish, two_columns, visible};
use crate::{StoreOptions, Table};
use std::collections::BTreeSet;
use tributary_types::DataType;

async fn empty_table() -> (Bench, Arc<Table>) {
    let options =
        StoreOptions { target_file_bytes: 1 << 20, compact_min_files: 2, ..StoreOptions::default() };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    (bench, table)
}

/// A table of two data files, of a large row group each.
async fn two_files() -> (Bench, Arc<Table>) {
    let (bench, table) = empty_table().await;
    flushed(&table, 0..30_000).await;
    flushed(&table, 30_000..60_000).await;
    (bench, table)
}

/// The row groups of all data files, with their bytes and each column's entry in the page index.
async fn row_groups(table: &Table) -> BTreeSet<(i64, Vec<Vec<u8>>, String)> {
    let mut all = BTreeSet::new();
    for file in table.snapshot().files.iter() {
        let file = EncodedFile::open(table.root(), file).await.unwrap();
        for row_group in file.encoded(file.row_groups()) {
            let group = row_group.group();
            let pages = group.columns().iter().map(|column| {
                let (start, bytes) = column.byte_range();
                row_group.bytes[start as usize..][..bytes as usize].to_vec()
            });
            let columns = group.columns().iter().map(|column| (column.statistics(), column.encodings_mask()));
            let index = &row_group.metadata.column_index().unwrap()[row_group.number];
            let starts = row_group.metadata.offset_index().unwrap()[row_group.number].iter().map(|column| {
                column.page_locations().iter().map(|page| page.first_row_index).collect::<Vec<_>>()
            });
            let known =
                format!("{:?} {index:?} {:?}", columns.collect::<Vec<_>>(), starts.collect::<Vec<_>>());
            all.insert((group.num_rows(), pages.collect(), known));
        }
    }
    all
}

async fn flushed(table: &Table, ids: std::ops::Range<i64>) {
    publish(table, ids);
    table.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_takes_large_row_groups_as_they_are_and_gathers_small_ones() {
    let (bench, table) = empty_table().await;
    flushed(&table, 0..30_000).await;
    flushed(&table, 40_000..90_000).await;
    flushed(&table, 30_000..30_010).await;
    flushed(&table, 30_010..30_020).await;
    let before = row_groups(&table).await;
    let report = table.compact().await.unwrap().unwrap();
    assert_eq!((report.files_before, report.files_after, report.rows), (4, 1, 80_020));
    let after = row_groups(&table).await;
    assert_eq!(after.iter().map(|group| group.0).collect::<Vec<_>>(), [20, 30_000, 50_000]);
    assert_eq!(after.iter().filter(|group| before.contains(*group)).count(), 2, "not as they were");
    let all = expected((0..30_020).chain(40_000..90_000));
    assert_eq!(visible(&table).await, all);
    assert_eq!(logged(&table).await, all);
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(again.snapshot().files[0].file.stats, table.snapshot().files[0].file.stats);
    assert_eq!(again.snapshot().files[0].file.stats.columns["id"].max.as_deref(), Some("89999"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_groups_of_another_schema_are_encoded_anew() {
    let (_bench, table) = two_files().await;
    let mut columns = two_columns().schema.columns.clone();
    columns.push(column(3, "more", DataType::Int, false));
    table.alter(def_of(2, columns)).await.unwrap();
    let before = row_groups(&table).await;
    table.compact().await.unwrap().unwrap();
    let after = row_groups(&table).await;
    assert!(after.is_disjoint(&before));
    let rows = expected(0..60_000).into_iter().map(|row| row + "|NULL").collect::<Vec<_>>();
    assert_eq!(visible(&table).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_page_index_is_named_before_anything_is_copied() {
    let (bench, table) = two_files().await;
    let damaged = table.snapshot().files[0].clone();
    let file = EncodedFile::open(table.root(), &damaged).await.unwrap();
    let index = file.footer.metadata().row_group(0).column(0).offset_index_offset().unwrap() as usize;
    let mut bytes = file.bytes.to_vec();
    bytes[index..index + 4].fill(0xff);
    let path = bench.dir.path().join("demo/events-7").join(damaged.path());
    std::fs::write(path, bytes).unwrap();
    let before = bench.data_files();
    let error = table.compact().await.unwrap_err();
    assert!(
        matches!(&error, TableError::DamagedFile { file, .. } if file.ends_with(damaged.path())),
        "{error}"
    );
    assert_eq!(bench.data_files(), before);
}
