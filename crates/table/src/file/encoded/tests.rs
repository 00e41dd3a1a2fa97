use super::*;
use crate::file::FileReader;
use crate::testing::{Bench, column, def_of, expected, logged, publish, text_rows, two_columns, visible};
use crate::{StoreOptions, Table};
use std::collections::BTreeSet;
use tributary_types::{DataType, Live, TableSchema};

async fn empty_table() -> (Bench, Arc<Table>) {
    let options = StoreOptions {
        target_file_bytes: Live::new(1 << 20),
        compact_min_files: 2,
        ..StoreOptions::default()
    };
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
        for number in file.row_groups() {
            let row_group = file.encoded(number, |_| true).await.unwrap();
            let group = row_group.group();
            let pages = group.columns().iter().map(|column| {
                let (start, bytes) = column.byte_range();
                row_group.pieces.get_bytes(start, bytes as usize).unwrap().to_vec()
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
    let path = bench.dir.path().join("demo/events-7").join(damaged.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[index..index + 4].fill(0xff);
    std::fs::write(path, bytes).unwrap();
    let before = bench.data_files();
    let error = table.compact().await.unwrap_err();
    assert!(
        matches!(&error, TableError::DamagedFile { file, .. } if file.ends_with(damaged.path())),
        "{error}"
    );
    assert_eq!(bench.data_files(), before);
}

/// The rows of these positions, or all, of the table's only file, and the bytes that were read for them.
async fn read(bench: &Bench, table: &Table, columns: usize, rows: Option<&[u32]>) -> (Vec<String>, u64) {
    let schema = &table.def().schema;
    let schema = Arc::new(TableSchema::new(schema.version, schema.columns[..columns].to_vec()));
    let before = bench.faults.read_bytes();
    let file = EncodedFile::open(table.root(), &table.snapshot().files[0]).await.unwrap();
    let mut reader = match rows {
        Some(rows) => FileReader::of_rows(&file, rows, &schema, 0).unwrap(),
        None => FileReader::new(&file, file.row_groups(), &schema, 0).unwrap(),
    };
    let mut texts = Vec::new();
    while let Some(batch) = reader.next().await.unwrap() {
        texts.extend(text_rows(&batch));
    }
    (texts, bench.faults.read_bytes() - before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_wanted_of_a_file_is_not_read() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    flushed(&table, 0..400_000).await;
    let bytes = table.snapshot().files[0].size_bytes();
    assert!(bytes > 8 * END_BYTES, "{bytes}");
    let (all, read_bytes) = read(&bench, &table, 2, None).await;
    assert_eq!(all.len(), 400_000);
    assert_eq!(all[399_999], "399999|n399999");
    assert!(read_bytes > bytes * 9 / 10, "{read_bytes} of {bytes}");
    let (ids, read_bytes) = read(&bench, &table, 1, None).await;
    assert_eq!((ids.len(), ids[7].as_str()), (400_000, "7"));
    assert!(read_bytes < bytes * 9 / 10, "one column of two: {read_bytes} of {bytes}");
    let (few, few_bytes) = read(&bench, &table, 1, Some(&[5, 399_990])).await;
    assert_eq!(few, ["5", "399990"]);
    assert!(few_bytes < read_bytes * 3 / 4, "some pages: {few_bytes} of {read_bytes}");
    let (few, _) = read(&bench, &table, 2, Some(&[5, 399_990])).await;
    assert_eq!(few, ["5|n5", "399990|n399990"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_another_length_is_named() {
    let (bench, table) = two_files().await;
    let live = table.snapshot().files[0].clone();
    let path = bench.dir.path().join("demo/events-7").join(live.path());
    let whole = std::fs::read(&path).unwrap();
    for bytes in [0, 5, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..bytes]).unwrap();
        let error = EncodedFile::open(table.root(), &live).await.map(drop).unwrap_err();
        assert!(matches!(&error, TableError::DamagedFile { .. }), "{bytes}: {error}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = EncodedFile::open(table.root(), &live).await.map(drop).unwrap_err();
    assert!(matches!(&error, TableError::Storage { .. }), "{error}");
}

#[test]
fn near_ranges_are_read_together_and_pieces_give_only_what_they_have() {
    let gap = GAP_BYTES;
    let near = [10..20, 0..5, 18..30, 30 + gap..40 + gap, 41 + 2 * gap..50 + 2 * gap, 7..7];
    assert_eq!(merged(&near), [0..40 + gap, 41 + 2 * gap..50 + 2 * gap]);
    assert!(merged(&[]).is_empty());
    let pieces = Pieces(vec![(4, Bytes::from_static(b"abc")), (10, Bytes::from_static(b"defg"))]);
    assert_eq!(pieces.get_bytes(5, 2).unwrap(), "bc");
    assert_eq!(pieces.get_bytes(10, 4).unwrap(), "defg");
    for (start, bytes) in [(3, 1), (5, 3), (8, 1), (12, 3), (15, 1)] {
        assert!(pieces.get_bytes(start, bytes).is_err(), "{start} {bytes}");
    }
    assert_eq!(std::io::read_to_string(pieces.get_read(11).unwrap()).unwrap(), "efg");
}
