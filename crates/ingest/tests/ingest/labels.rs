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

#[tokio::test(flavor = "multi_thread")]
async fn a_freed_label_stays_free_over_a_crash_whether_the_log_has_its_commit_or_not() {
    for is_released in [false, true] {
        let machine = Machine::new(properties(0));
        let running = machine.start().await;
        for (label, rows) in [("mine", "VALUES (1, 'a')"), ("other", "VALUES (2, 'b')")] {
            let reservation = running.begin(label).unwrap();
            running.ingest.commit(&running.table, reservation, running.rows(rows)).await.unwrap();
        }
        if is_released {
            running.ingest.flush_all().await;
        }
        let running_load = running.begin("running").unwrap();
        assert_eq!(running.ingest.clean_labels(DbId(1), Some("running")).await.unwrap(), 0, "it runs");
        drop(running_load);
        assert_eq!(
            running.ingest.clean_labels(DbId(2), Some("mine")).await.unwrap(),
            0,
            "of another database"
        );
        assert_eq!(running.ingest.clean_labels(DbId(1), Some("mine")).await.unwrap(), 1);
        assert_eq!(running.ingest.clean_labels(DbId(1), Some("mine")).await.unwrap(), 0, "it is free");
        drop(running.begin("mine").expect("free"));
        machine.power_off(running, 1);
        let again = machine.start().await;
        assert!(again.begin("other").is_err());
        let reservation = again.begin("mine").expect("free after the crash, too");
        again.ingest.commit(&again.table, reservation, again.rows("VALUES (3, 'c')")).await.unwrap();
        again.ingest.flush_all().await;
        machine.power_off(again, 2);
        let third = machine.start().await;
        assert!(third.begin("mine").is_err(), "it was used again");
        assert_eq!(third.ingest.clean_labels(DbId(1), None).await.unwrap(), 2, "all of the database");
        drop(third.begin("other").expect("free"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_not_freed_while_it_is_being_stored_as_used() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("mine").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    machine.labels.stalls.store(true, Ordering::SeqCst);
    let ingest = Arc::clone(&running.ingest);
    let flush = tokio::spawn(async move { ingest.flush_all().await });
    until("labels are being stored", || machine.labels.asked.load(Ordering::SeqCst) > 0).await;
    let ingest = Arc::clone(&running.ingest);
    let clean = tokio::spawn(async move { ingest.clean_labels(DbId(1), Some("mine")).await });
    tokio::task::yield_now().await;
    assert!(running.begin("mine").is_err(), "it waits");
    machine.labels.stalls.store(false, Ordering::SeqCst);
    leave(flush).await;
    assert_eq!(clean.await.expect("no panic").unwrap(), 1);
    running.ingest.flush_all().await;
    machine.power_off(running, 1);
    drop(machine.start().await.begin("mine").expect("free"));
}
