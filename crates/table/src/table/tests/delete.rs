use crate::options::StoreOptions;
use crate::testing::{
    Bench, Fault, column, copying, def_of, expected, logged, open_file, publish, text_rows, two_columns,
    visible, with_default,
};
use crate::{DeleteReport, FoundRows, RowSet, Snapshot, Table, TableError};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{DataType, Live, Lsn, SchemaVersion, TableDef, TableSchema, Version};

/// The positions of the rows of these ids, as a query would find them.
pub(super) async fn find(
    table: &Table,
    view: &Snapshot,
    ids: &BTreeSet<i64>,
) -> Result<FoundRows, TableError> {
    assert!(view.memtable.is_empty());
    let mut found = FoundRows::new();
    for live in view.files.iter() {
        let whole = live.with_deletes(None);
        let mut reader = open_file(table, &whole).await?;
        let (mut rows, mut position) = (RowSet::new(), 0);
        while let Some(batch) = reader.next().await? {
            for row in text_rows(&batch) {
                let id: i64 = row.split('|').next().unwrap().parse().unwrap();
                if ids.contains(&id) {
                    rows.insert(position);
                }
                position += 1;
            }
        }
        found.insert(live.path().to_owned(), rows);
    }
    Ok(found)
}

pub(super) async fn delete(
    table: &Table,
    ids: impl IntoIterator<Item = i64>,
) -> Result<DeleteReport, TableError> {
    let ids: BTreeSet<i64> = ids.into_iter().collect();
    let ids = &ids;
    table.delete("id IN (…)", |view| async move { find(table, &view, ids).await }).await
}

/// Three data files of ids 0 to 9, 10 to 19 and 20 to 29, and 30 to 39 in the memtable.
async fn forty(options: StoreOptions) -> (Bench, Arc<Table>) {
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    for start in [0, 10, 20] {
        publish(&table, start..start + 10);
        table.flush().await.unwrap();
    }
    publish(&table, 30..40);
    (bench, table)
}

fn without(ids: std::ops::Range<i64>, gone: &[i64]) -> Vec<String> {
    expected(ids.filter(|id| !gone.contains(id)))
}

async fn check(bench: &Bench, table: &Table, rows: &[String]) {
    assert_eq!(visible(table).await, rows);
    assert_eq!(logged(table).await, rows);
    assert_eq!(table.snapshot().rows(), rows.len() as u64);
    let again = bench.store.open(&two_columns()).await.unwrap();
    assert_eq!(visible(&again).await, rows, "after opening it again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_gone_from_files_and_memtable_for_queries_and_for_readers_of_the_log() {
    let (bench, table) = forty(StoreOptions::default()).await;
    let gone = [0, 9, 15, 35];
    let report = delete(&table, gone).await.unwrap();
    assert_eq!((report.rows, report.files, report.delta_version), (4, 3, 5));
    check(&bench, &table, &without(0..40, &gone)).await;
    // Deleted rows are not deleted again.
    let report = delete(&table, [0, 1, 9]).await.unwrap();
    assert_eq!((report.rows, report.files), (1, 1));
    let gone = [0, 1, 9, 15, 35];
    check(&bench, &table, &without(0..40, &gone)).await;
    let report = delete(&table, [77]).await.unwrap();
    assert_eq!((report.rows, report.files, report.delta_version), (0, 0, 6));
    // Nothing is left of a file.
    let report = delete(&table, 10..20).await.unwrap();
    assert_eq!((report.rows, report.files), (9, 1));
    assert_eq!(table.snapshot().files.len(), 3);
    let gone: Vec<i64> = [0, 1, 9, 35].into_iter().chain(10..20).collect();
    check(&bench, &table, &without(0..40, &gone)).await;
    publish(&table, [100]);
    table.flush().await.unwrap();
    assert_eq!(visible(&table).await.len(), 40 - gone.len() + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_says_that_it_has_vectors_from_the_first_one_on_and_not_before() {
    let (bench, table) = forty(StoreOptions::default()).await;
    let entry = |version: u64| {
        let name = format!("demo/events-7/_delta_log/{version:020}.json");
        std::fs::read_to_string(bench.dir.path().join(name)).unwrap()
    };
    assert!((0..4).all(|version| !entry(version).contains("deletionVectors")));
    delete(&table, [3, 4]).await.unwrap();
    let text = entry(5);
    for part in [
        r#""operation":"DELETE""#,
        r#""minReaderVersion":3,"minWriterVersion":7"#,
        r#""delta.enableDeletionVectors":"true""#,
        r#""cardinality":2"#,
        r#"\"tightBounds\":false"#,
        r#"\"numRecords\":10"#,
        r#""remove":"#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    delete(&table, [5]).await.unwrap();
    let text = entry(6);
    assert!(!text.contains("protocol"), "{text}");
    assert_eq!(text.matches("deletionVector\"").count(), 2, "of the file before and after: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_keeps_the_deletes() {
    let (bench, table) =
        forty(StoreOptions { checkpoint_every: Live::new(1), ..StoreOptions::default() }).await;
    for id in [3, 13, 4] {
        delete(&table, [id]).await.unwrap();
    }
    let log = bench.dir.path().join("demo/events-7/_delta_log");
    for version in 0..7_u64 {
        std::fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    check(&bench, &table, &without(0..40, &[3, 4, 13])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_change_while_rows_are_found_is_searched_again() {
    let (bench, table) = forty(StoreOptions { compact_min_files: 2, ..StoreOptions::default() }).await;
    let ids: BTreeSet<i64> = [5, 15, 50].into();
    let views: Mutex<Vec<usize>> = Mutex::default();
    let find = |view: Arc<Snapshot>| {
        let (table, ids) = (&table, &ids);
        let round = {
            let mut views = views.lock();
            views.push(view.files.len());
            views.len()
        };
        async move {
            let found = find(table, &view, ids).await;
            match round {
                1 => {
                    assert_eq!(table.compact().await.unwrap().unwrap().rows, 40);
                    publish(table, 50..60);
                    table.flush().await.unwrap();
                    publish(table, [51]);
                }
                2 => {
                    delete(table, [6]).await.unwrap();
                    publish(table, [61]);
                }
                // Flushes wait now.
                _ => {
                    let flushed = tokio::time::timeout(Duration::from_millis(50), table.flush()).await;
                    assert!(flushed.is_err());
                }
            }
            found
        }
    };
    let report = table.delete("", find).await.unwrap();
    let views = views.lock().clone();
    assert_eq!(report.rows, 3);
    assert_eq!(views, [4, 2, 2], "all; what compaction and flush wrote; what a deletion changed and flushed");
    table.flush().await.unwrap();
    let rows = (0..40).filter(|id| ![5, 6, 15].contains(id)).chain(51..60).chain([51, 61]);
    check(&bench, &table, &expected(rows)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_while_rows_are_found_wins() {
    let (bench, table) = forty(StoreOptions::default()).await;
    let ids: BTreeSet<i64> = [5].into();
    let find = |view: Arc<Snapshot>| {
        let (table, ids) = (&table, &ids);
        async move {
            let found = find(table, &view, ids).await;
            if table.snapshot().rows() == 40 {
                table.publish_truncate(Version(5), Lsn(500)).unwrap();
                publish(table, [70]);
            }
            found
        }
    };
    let report = table.delete("", find).await.unwrap();
    assert!(report.rows <= 1);
    assert_eq!(visible(&table).await, expected([70]));
    table.flush().await.unwrap();
    check(&bench, &table, &expected([70])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_a_deletion_overtakes_gives_up_and_a_later_one_drops_the_rows() {
    let (bench, table) = forty(StoreOptions { compact_min_files: 2, ..StoreOptions::default() }).await;
    table.flush().await.unwrap();
    let gate = bench.faults.hold_next(".parquet");
    let compaction = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.compact().await }
    });
    gate.arrived().await;
    delete(&table, [1, 21, 31]).await.unwrap();
    gate.open();
    assert_eq!(compaction.await.unwrap().unwrap(), None);
    check(&bench, &table, &without(0..40, &[1, 21, 31])).await;
    assert_eq!(table.compact().await.unwrap().unwrap().rows, 37);
    assert!(table.snapshot().files.iter().all(|live| live.deletes.is_none()));
    check(&bench, &table, &without(0..40, &[1, 21, 31])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_many_deleted_rows_is_rewritten_alone() {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    publish(&table, 0..100);
    table.flush().await.unwrap();
    delete(&table, 0..24).await.unwrap();
    assert_eq!(table.compact().await.unwrap(), None);
    delete(&table, [24]).await.unwrap();
    let report = table.compact().await.unwrap().unwrap();
    assert_eq!((report.files_before, report.files_after, report.rows), (1, 1, 75));
    check(&bench, &table, &expected(25..100)).await;
    assert_eq!(table.compact().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewrite_copies_row_groups_without_deletes_and_reads_the_others() {
    let options = StoreOptions {
        target_file_bytes: Live::new(1 << 20),
        compact_min_files: 2,
        ..StoreOptions::default()
    };
    let bench = Bench::with(options);
    let table = bench.store.create(&two_columns()).await.unwrap();
    for start in [0, 30_000] {
        publish(&table, start..start + 30_000);
        table.flush().await.unwrap();
    }
    delete(&table, [0, 777, 29_999]).await.unwrap();
    assert_eq!(table.compact().await.unwrap().unwrap().rows, 59_997);
    check(&bench, &table, &without(0..60_000, &[0, 777, 29_999])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_deletion_vectors_files_are_written_anew_in_the_entry_that_deletes_their_rows() {
    let bench = Bench::new();
    let table = bench.store.create(&copying(&two_columns())).await.unwrap();
    for start in [0, 10, 20] {
        publish(&table, start..start + 10);
        table.flush().await.unwrap();
    }
    publish(&table, 30..40);
    let report = delete(&table, [0, 9, 15, 35]).await.unwrap();
    assert_eq!((report.rows, report.files), (4, 3));
    check(&bench, &table, &without(0..40, &[0, 9, 15, 35])).await;
    // Nothing is left of some files.
    let report = delete(&table, 0..20).await.unwrap();
    assert_eq!(report.rows, 17);
    check(&bench, &table, &without(20..40, &[35])).await;
    for name in [".parquet", "00000000000000000007.json"] {
        bench.faults.fail_next(name, Fault::Before);
        delete(&table, [20]).await.unwrap_err();
        check(&bench, &table, &without(20..40, &[35])).await;
    }
    bench.faults.fail_next("00000000000000000007.json", Fault::After);
    bench.faults.fail_next_read("00000000000000000007.json");
    delete(&table, [21, 31]).await.unwrap_err();
    publish(&table, [50]);
    table.flush().await.unwrap();
    let rows = expected((20..40).filter(|id| ![21, 31, 35].contains(id)).chain([50]));
    check(&bench, &table, &rows).await;
    table.sweep().await.unwrap();
    check(&bench, &table, &rows).await;
    assert!(!bench.has_vectors());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncation_wins_over_copies_too() {
    let bench = Bench::new();
    let table = bench.store.create(&copying(&two_columns())).await.unwrap();
    publish(&table, 0..40);
    let ids: BTreeSet<i64> = [5].into();
    let find = |view: Arc<Snapshot>| {
        let (table, ids) = (&table, &ids);
        async move {
            let found = find(table, &view, ids).await;
            if table.snapshot().rows() == 40 {
                table.publish_truncate(Version(2), Lsn(500)).unwrap();
                publish(table, [70]);
            }
            found
        }
    };
    table.delete("", find).await.unwrap();
    assert_eq!(visible(&table).await, expected([70]));
    table.flush().await.unwrap();
    check(&bench, &table, &expected([70])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_rows_get_no_default_of_a_new_column() {
    let (bench, table) = forty(StoreOptions::default()).await;
    delete(&table, [3, 33]).await.unwrap();
    let mut columns = two_columns().schema.columns.clone();
    columns.push(with_default(column(3, "score", DataType::Int, false), "7"));
    let def = def_of(2, columns);
    table.alter(Arc::clone(&def)).await.unwrap();
    let rows: Vec<String> = without(0..40, &[3, 33]).into_iter().map(|row| row + "|7").collect();
    assert_eq!(visible(&table).await, rows);
    assert_eq!(logged(&table).await, rows);
    assert_eq!(visible(&bench.store.open(&def).await.unwrap()).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_fails_deletes_nothing_and_can_be_repeated() {
    let (bench, table) =
        forty(StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() }).await;
    table.flush().await.unwrap();
    for name in ["deletion_vector_", "00000000000000000005.json"] {
        bench.faults.fail_next(name, Fault::Before);
        let error = delete(&table, [3]).await.unwrap_err();
        assert!(error.to_string().contains("the test said so"), "{error}");
        check(&bench, &table, &expected(0..40)).await;
    }
    let failed = || async { Err(TableError::Closed { table: "x".to_owned() }) };
    let error = table.delete("", |_| failed()).await;
    assert!(matches!(error, Err(TableError::Closed { .. })));
    delete(&table, [3]).await.unwrap();
    check(&bench, &table, &without(0..40, &[3])).await;
    table.sweep().await.unwrap();
    let vectors = bench.data_files().into_iter().filter(|name| name.starts_with("deletion_vector_"));
    assert_eq!(vectors.count(), 1, "what failed is swept, what is used is not");
    check(&bench, &table, &without(0..40, &[3])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_whose_answer_was_lost_is_taken_in_with_the_next_entry() {
    for fault in [Fault::After, Fault::Echo] {
        let (bench, table) = forty(StoreOptions::default()).await;
        table.flush().await.unwrap();
        bench.faults.fail_next("00000000000000000005.json", fault);
        delete(&table, [3]).await.unwrap();
        check(&bench, &table, &without(0..40, &[3])).await;

        bench.faults.fail_next("00000000000000000006.json", fault);
        bench.faults.fail_next_read("00000000000000000006.json");
        delete(&table, [4, 14]).await.unwrap_err();
        publish(&table, [50]);
        table.flush().await.unwrap();
        let rows = expected((0..40).filter(|id| ![3, 4, 14].contains(id)).chain([50]));
        check(&bench, &table, &rows).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tables_objects_of_one_log_see_each_others_deletes() {
    let (bench, table) = forty(StoreOptions::default()).await;
    table.flush().await.unwrap();
    let other = bench.store.open(&two_columns()).await.unwrap();
    delete(&table, [3, 13]).await.unwrap();
    // Its files have changed: they are read again, searched again, and both deletes stay.
    delete(&other, [4]).await.unwrap();
    check(&bench, &other, &without(0..40, &[3, 4, 13])).await;
    delete(&table, [5]).await.unwrap();
    check(&bench, &table, &without(0..40, &[3, 4, 5, 13])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_out_of_use_stay_for_as_long_as_removed_files() {
    let (bench, table) =
        forty(StoreOptions { keep_removed_files_ms: Live::new(600_000), ..StoreOptions::default() }).await;
    delete(&table, [3]).await.unwrap();
    delete(&table, [4]).await.unwrap();
    let vectors =
        || bench.data_files().into_iter().filter(|name| name.starts_with("deletion_vector_")).count();
    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    for name in bench.data_files() {
        let path = bench.dir.path().join("demo/events-7").join(name);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(table.sweep().await.unwrap().files, 0);
    assert_eq!(vectors(), 2, "the first one has been out of use for a moment only");
    let mut state = table.lock_log().await.unwrap();
    assert_eq!(state.unused_vectors.len(), 1);
    state.unused_vectors.values_mut().for_each(|since_ms| *since_ms -= 700_000);
    drop(state);
    assert_eq!(table.sweep().await.unwrap().files, 1);
    assert_eq!(vectors(), 1);
    check(&bench, &table, &without(0..40, &[3, 4])).await;
}

/// The library reads what others write; what we read without it must be the same.
async fn check_log(bench: &Bench, table: &Table) {
    let def = table.def();
    let log = &table.root().log;
    let (ours, library) = (log.open(&def).await.unwrap(), log.load(&def).await.unwrap());
    assert_eq!(ours.version, library.version);
    assert_eq!(ours.metadata, library.metadata);
    assert_eq!(ours.protocol, library.protocol);
    assert_eq!(ours.app_version, library.app_version);
    assert_eq!(format!("{:?}", ours.live), format!("{:?}", library.live));
    let entries = std::fs::read_dir(bench.dir.path().join("demo/events-7/_delta_log")).unwrap();
    assert!(entries.count() > usize::try_from(ours.version).unwrap(), "no entry is gone: the log is short");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_log_says_what_the_library_finds_in_it() {
    let (bench, table) = forty(StoreOptions { compact_min_files: 2, ..StoreOptions::default() }).await;
    check_log(&bench, &table).await;
    delete(&table, [3, 13, 35]).await.unwrap();
    check_log(&bench, &table).await;
    delete(&table, [4, 14, 36]).await.unwrap();
    check_log(&bench, &table).await;
    let mut renamed = TableDef::clone(&table.def());
    let mut schema = TableSchema::clone(&renamed.schema);
    schema.columns[1].name = "title".to_owned();
    schema.version = SchemaVersion(2);
    renamed.schema = Arc::new(schema);
    table.alter(Arc::new(renamed)).await.unwrap();
    check_log(&bench, &table).await;
    assert!(table.compact().await.unwrap().is_some());
    check_log(&bench, &table).await;
    let reopened = bench.store.open(&table.def()).await.unwrap();
    assert_eq!(visible(&reopened).await, visible(&table).await);
}
