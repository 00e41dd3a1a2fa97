//! What a load has its transaction keep comes back with the load, or not at all.

use crate::support::*;
use tributary_types::Attachment;

fn attachment(text: &str) -> Attachment {
    Attachment::new(text.as_bytes()).unwrap()
}

/// What a job would go on from, whose labels begin so.
fn last(running: &Running, job: &str) -> Option<String> {
    let is_of = |info: &TransactionInfo| info.label.as_str().starts_with(job);
    let last = running.ingest.transactions().last_attachment(is_of)?;
    Some(String::from_utf8(last.bytes().to_vec()).unwrap())
}

async fn commit(running: &Running, label: &str, values: &str) {
    let reservation = running.begin(label).unwrap();
    reservation.attach(attachment(&format!("{label} is done")));
    running.ingest.commit(&running.table, reservation, running.rows(values)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_attachment_comes_back_from_the_log_and_from_the_label_store() {
    let machine = Machine::new(properties(600_000));
    let mut running = machine.start().await;
    assert_eq!(last(&running, "job"), None);
    commit(&running, "job-1", "VALUES (1, 'a')").await;
    commit(&running, "job-2", "VALUES (2, 'b')").await;
    commit(&running, "other-1", "VALUES (3, 'c')").await;
    let aborted = running.begin("job-3").unwrap();
    aborted.attach(attachment("never"));
    drop(aborted);
    let plain = running.begin("job-4").unwrap();
    running.ingest.commit(&running.table, plain, running.rows("VALUES (4, 'd')")).await.unwrap();
    for round in 0..3 {
        assert_eq!(last(&running, "job").as_deref(), Some("job-2 is done"), "{round}");
        assert_eq!(last(&running, "other").as_deref(), Some("other-1 is done"), "{round}");
        if round == 1 {
            // Then the log may forget them.
            running.ingest.flush_all().await;
            assert_eq!(machine.labels.kept.lock().unwrap().len(), 4);
        }
        machine.power_off(running, round);
        running = machine.start().await;
    }
    assert_eq!(running.report.commits_replayed, 0, "they are in data files");
    commit(&running, "job-5", "VALUES (5, 'e')").await;
    assert_eq!(last(&running, "job").as_deref(), Some("job-5 is done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attachment_of_a_prepared_load_counts_once_the_load_is_committed() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("job-1").unwrap();
    reservation.attach(attachment("prepared"));
    let rows = running.rows("VALUES (1, 'a')");
    let txn = running.ingest.prepare(&running.table, reservation, rows).await.unwrap().txn;
    assert_eq!(last(&running, "job"), None);
    machine.power_off(running, 1);
    let running = machine.start().await;
    assert_eq!(last(&running, "job"), None);
    let target = TwoPhaseTarget { txn: Some(txn), label: None };
    running.ingest.commit_prepared(DbId(1), &target).await.unwrap();
    assert_eq!(last(&running, "job").as_deref(), Some("prepared"));
    machine.power_off(running, 2);
    assert_eq!(last(&machine.start().await, "job").as_deref(), Some("prepared"));
}
