//! Data files of loads: deleted if nothing was stored, preserved if that is unknown.

use crate::support::*;
use tributary_types::Live;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_load_leaves_no_data_file() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    for is_prepared in [false, true] {
        let rows = running.file_rows("VALUES (1, 'a')").await;
        assert_eq!(machine.data_files().await, 1);
        let reservation = running.begin("one").unwrap();
        running.wal().shutdown();
        let outcome = if is_prepared {
            running.ingest.prepare(&running.table, reservation, rows).await
        } else {
            running.ingest.commit(&running.table, reservation, rows).await
        };
        assert!(outcome.is_err());
        assert_eq!(machine.data_files().await, 0);
    }
    let rows = running.file_rows("VALUES (1, 'a')").await;
    running.load(false, rows).await.unwrap().unwrap_err();
    assert_eq!(machine.data_files().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_files_stay_while_the_outcome_of_their_load_is_not_known() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let rows = running.file_rows("VALUES (1, 'a')").await;
    let reservation = running.begin("one").unwrap();
    machine.disk.fail_next_sync();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::WalFailed(_)), "{error}");
    assert_eq!(machine.data_files().await, 1, "the next start may find the commit");
}

/// The log knows of data files by the commit only.
#[tokio::test(flavor = "multi_thread")]
async fn an_async_load_of_data_files_is_answered_by_a_commit_that_does_not_wait_for_the_interval() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    let load = running.load(true, running.file_rows("VALUES (2, 'b')").await);
    assert!(load.await.unwrap().unwrap().version.is_some(), "answered after the commit");
    assert_eq!(running.table.snapshot().rows(), 2, "with the rows that were in the group");
    // In sync mode the client waits for the interval.
    let load = running.load(false, running.file_rows("VALUES (3, 'c')").await);
    until("it has joined", || running.ingest.open_groups() == 1).await;
    assert_eq!(running.table.snapshot().rows(), 2);
    running.ingest.sync().await;
    assert!(load.await.unwrap().unwrap().version.is_some());
    machine.power_off(running, 1);
    assert_eq!(machine.start().await.table.snapshot().rows(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn async_loads_of_data_files_that_come_while_the_log_is_busy_share_a_commit() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let held = machine.hold_syncs();
    let mut loads = vec![running.load(true, running.file_rows("VALUES (1, 'a')").await)];
    running.log_is_busy().await;
    for row in 2..=5 {
        loads.push(running.load(true, running.file_rows(&format!("VALUES ({row}, 'a')")).await));
    }
    until("they have joined the next group", || running.ingest.open_groups() == 1).await;
    drop(held);
    let mut versions = Vec::new();
    for load in loads {
        versions.push(load.await.unwrap().unwrap().version.unwrap());
    }
    versions.sort();
    versions.dedup();
    assert!(versions.len() < 5, "{versions:?}");
    assert_eq!(running.table.snapshot().rows(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_whose_client_leaves_while_a_group_is_open_leaves_no_data_file() {
    let mut machine = Machine::new(properties(600_000));
    let url = url::Url::parse("memory:///store/").unwrap();
    let options = StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() };
    machine.store = TableStore::with_object_store(machine.objects.clone(), url, options).unwrap();
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    let rows = running.file_rows("VALUES (2, 'b')").await;
    let rows = LoadRows { replaces: Some(Arc::new(Replaced::All)), ..rows };
    running.table.sweep().await.unwrap();
    assert_eq!(machine.data_files().await, 1, "they are on their way");
    let held = machine.hold_syncs();
    let reservation = running.begin("one").unwrap();
    let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
    let client = tokio::spawn(async move { ingest.commit(&table, reservation, rows).await });
    running.log_is_busy().await;
    leave(client).await;
    drop(held);
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1]);
    assert_eq!(running.status("one"), TransactionStatus::Aborted);
    running.table.sweep().await.unwrap();
    assert_eq!(machine.data_files().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_leaves_files_of_prepared_loads_and_of_loads_whose_outcome_is_not_known() {
    let mut machine = Machine::new(properties(0));
    let url = url::Url::parse("memory:///store/").unwrap();
    let options = StoreOptions { keep_removed_files_ms: Live::new(0), ..StoreOptions::default() };
    machine.store = TableStore::with_object_store(machine.objects.clone(), url, options).unwrap();
    let running = machine.start().await;
    let rows = running.file_rows("VALUES (1, 'a')").await;
    let reservation = running.begin("two").unwrap();
    running.ingest.prepare(&running.table, reservation, rows).await.unwrap();
    running.table.sweep().await.unwrap();
    assert_eq!(machine.data_files().await, 1);
    let rows = running.file_rows("VALUES (2, 'b')").await;
    let reservation = running.begin("one").unwrap();
    machine.disk.fail_next_sync();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::WalFailed(_)), "{error}");
    running.table.sweep().await.unwrap();
    assert_eq!(machine.data_files().await, 2);
}
