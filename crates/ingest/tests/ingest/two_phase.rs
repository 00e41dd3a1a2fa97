//! A prepared load waits for its commit or abort, whatever happens meanwhile.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_load_is_invisible_survives_a_crash_and_can_be_committed_once() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("two").unwrap();
    let prepared =
        running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')")).await.unwrap();
    running.ingest.flush_all().await;
    assert_eq!(running.ids(), [0; 0]);
    machine.power_off(running, 5);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.prepared), (vec![], 1));
    let target = TwoPhaseTarget { txn: Some(prepared.txn), label: Some(Label::new("two").unwrap()) };
    assert_eq!(again.ingest.commit_prepared(DbId(1), &target).await.unwrap(), prepared.txn);
    assert_eq!(again.ids(), [7]);
    assert_eq!(
        again.ingest.commit_prepared(DbId(1), &target).await.unwrap_err().to_string(),
        format!("transaction [{}] is already visible, not pre-committed.", prepared.txn)
    );
    machine.power_off(again, 6);
    assert_eq!(machine.start().await.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_load_leaves_nothing_and_frees_its_label() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("two").unwrap();
    running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')")).await.unwrap();
    let target = TwoPhaseTarget { txn: None, label: Some(Label::new("two").unwrap()) };
    running.ingest.abort_prepared(DbId(1), &target, "User Abort").await.unwrap();
    let error = running.ingest.commit_prepared(DbId(1), &target).await.unwrap_err();
    assert!(error.to_string().ends_with("is already aborted. abort reason: User Abort"), "{error}");
    running.begin("two").expect("free");
    machine.power_off(running, 8);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.prepared), (vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_prepared_load_continues_when_its_client_leaves() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.commit_prepared(DbId(1), &target).await });
    running.log_is_busy().await;
    leave(client).await;
    drop(held);
    until("it is visible", || running.status("two") == TransactionStatus::Visible).await;
    until("its memory is free", || running.ingest.memory().in_groups() == 0).await;
    assert_eq!(running.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_of_a_prepared_load_continues_when_its_client_leaves() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.abort_prepared(DbId(1), &target, "User Abort").await });
    running.log_is_busy().await;
    leave(client).await;
    drop(held);
    until("it is aborted", || running.status("two") == TransactionStatus::Aborted).await;
    drop(running.begin("two").expect("its label is free"));
    until("its memory is free", || running.ingest.memory().in_groups() == 0).await;
    running.ingest.flush_all().await;
    assert_eq!(running.wal().live_bytes(), 0, "nothing holds the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pre_commit_continues_when_its_client_leaves_and_retains_its_label() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let held = machine.hold_syncs();
    let client = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        let (reservation, rows) = (running.begin("two").unwrap(), running.rows("VALUES (7, 'g')"));
        async move { ingest.prepare(&table, reservation, rows).await }
    });
    running.log_is_busy().await;
    leave(client).await;
    let again = running.begin("two").map(drop);
    assert!(matches!(again, Err(IngestError::LabelUsed { .. })), "its rows may become durable: {again:?}");
    drop(held);
    until("it is prepared", || running.status("two") == TransactionStatus::Precommitted).await;
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!(again.report.prepared, 1);
    let target = TwoPhaseTarget { txn: None, label: Some(Label::new("two").unwrap()) };
    again.ingest.commit_prepared(DbId(1), &target).await.unwrap();
    assert_eq!(again.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_loads_of_a_dropped_table_give_their_memory_back() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let waiting = running.prepare("waiting", "VALUES (7, 'g')").await;
    let committing = running.prepare("committing", "VALUES (8, 'h')").await;
    assert!(running.ingest.memory().in_groups() > 0);
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.commit_prepared(DbId(1), &committing).await });
    running.log_is_busy().await;
    running.ingest.detach(TableId(1));
    drop(held);
    client.await.unwrap().unwrap();
    assert_eq!(running.status("waiting"), TransactionStatus::Aborted);
    assert_eq!(running.ingest.memory().in_groups(), 0);
    let error = running.ingest.commit_prepared(DbId(1), &waiting).await.unwrap_err();
    assert!(
        error.to_string().ends_with("is already aborted. abort reason: the table was dropped"),
        "{error}"
    );
}
