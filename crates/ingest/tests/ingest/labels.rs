//! A client's label is used once.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_label_stays_used_over_a_crash_and_is_free_after_a_failure() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    drop(running.begin("mine").unwrap());
    let reservation = running.begin("mine").expect("the first one was aborted");
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    machine.power_off(running, 3);
    let again = machine.start().await;
    assert!(matches!(again.begin("mine"), Err(IngestError::LabelUsed { status: "VISIBLE", .. })));
    again.ingest.flush_all().await;
    machine.power_off(again, 4);
    let third = machine.start().await;
    assert!(
        matches!(third.begin("mine"), Err(IngestError::LabelUsed { .. })),
        "also when the log was released"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_with_a_label_is_an_insert_after_a_crash_too() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let label = Label::new("daily").unwrap();
    let begun = running.ingest.begin(&running.table.def(), label, true, TransactionKind::Insert).unwrap();
    running.ingest.commit(&running.table, begun, running.rows("VALUES (1, 'a')")).await.unwrap();
    machine.power_off(running, 1);
    let running = machine.start().await;
    let info = running.ingest.transactions().by_label(DbId(1), "daily").unwrap();
    assert_eq!((info.kind, info.status), (TransactionKind::Insert, TransactionStatus::Visible));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_stays_used_when_its_table_was_dropped_before_a_crash() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("mine").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    running.ingest.detach(TableId(1));
    machine.power_off(running, 1);
    let (ingest, _) = machine.open(Vec::new()).await;
    let begun =
        ingest.begin(&machine.def, Label::new("mine").unwrap(), true, TransactionKind::StreamLoad).map(drop);
    assert!(matches!(begun, Err(IngestError::LabelUsed { status: "VISIBLE", .. })), "{begun:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_stored_although_their_storing_was_cut_off_once() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("mine").unwrap();
    let rows = running.rows("VALUES (1, 'a')");
    let txn = running.ingest.commit(&running.table, reservation, rows).await.unwrap().txn;
    machine.labels.stalls.store(true, Ordering::SeqCst);
    let ingest = Arc::clone(&running.ingest);
    let flush = tokio::spawn(async move { ingest.flush_all().await });
    until("labels are being stored", || machine.labels.asked.load(Ordering::SeqCst) > 0).await;
    leave(flush).await;
    machine.labels.stalls.store(false, Ordering::SeqCst);
    running.ingest.flush_all().await;
    assert_eq!(machine.labels.kept.lock().unwrap().keys().collect::<Vec<_>>(), [&txn]);
    let asked = machine.labels.asked.load(Ordering::SeqCst);
    running.ingest.flush_all().await;
    assert_eq!(machine.labels.asked.load(Ordering::SeqCst), asked, "each is stored once");
}
