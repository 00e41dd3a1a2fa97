//! The position of a source is restored together with the rows that were read, or not at all.

use crate::support::*;
use tributary_types::Attachment;

const JOB: SourceId = SourceId(7);
const OTHER: SourceId = SourceId(8);

fn at(text: &str) -> Attachment {
    Attachment::new(text.as_bytes()).unwrap()
}

/// The position at which a job would resume.
fn position(running: &Running, source: SourceId) -> Option<String> {
    let position = running.ingest.transactions().position(source)?;
    Some(String::from_utf8(position.bytes().to_vec()).unwrap())
}

/// A load whose label is not retained, like those of jobs.
fn begin(running: &Running, label: &str) -> tributary_ingest::Reservation {
    let def = running.table.def();
    let label = Label::new(label).unwrap();
    running.ingest.begin(&def, label, false, TransactionKind::StreamLoad).unwrap()
}

async fn commit(running: &Running, source: SourceId, to: &str, values: &str) {
    let reservation = begin(running, to);
    reservation.advance(source, at(to));
    running.ingest.commit(&running.table, reservation, running.rows(values)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_position_comes_back_from_the_log_and_from_the_label_store() {
    let machine = Machine::new(properties(600_000));
    let mut running = machine.start().await;
    assert_eq!(position(&running, JOB), None);
    commit(&running, JOB, "job-1", "VALUES (1, 'a')").await;
    commit(&running, JOB, "job-2", "VALUES (2, 'b')").await;
    commit(&running, OTHER, "other-1", "VALUES (3, 'c')").await;
    let aborted = begin(&running, "job-3");
    aborted.advance(JOB, at("never"));
    drop(aborted);
    for round in 0..3 {
        assert_eq!(position(&running, JOB).as_deref(), Some("job-2"), "{round}");
        assert_eq!(position(&running, OTHER).as_deref(), Some("other-1"), "{round}");
        if round == 1 {
            // Then the log may forget them.
            running.ingest.flush_all().await;
            assert_eq!(machine.labels.positions.lock().unwrap().len(), 2);
            assert_eq!(machine.labels.kept.lock().unwrap().len(), 0);
        }
        machine.power_off(running, round);
        running = machine.start().await;
    }
    assert_eq!(running.report.commits_replayed, 0, "they are in data files");
    commit(&running, JOB, "job-5", "VALUES (5, 'e')").await;
    assert_eq!(position(&running, JOB).as_deref(), Some("job-5"));
    machine.power_off(running, 3);
    let running = machine.start().await;
    assert_eq!(position(&running, JOB).as_deref(), Some("job-5"), "the log's is newer than the store's");
    running.ingest.truncate(&running.table).await.unwrap();
    running.ingest.flush_all().await;
    assert_eq!(position(&running, JOB).as_deref(), Some("job-5"), "a truncation reads nothing again");
    machine.power_off(running, 4);
    let running = machine.start().await;
    assert_eq!(position(&running, JOB).as_deref(), Some("job-5"));
    running.ingest.transactions().forget_source(JOB);
    assert_eq!(position(&running, JOB), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_keeps_a_position_that_the_store_does_not_take() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    commit(&running, JOB, "job-1", "VALUES (1, 'a')").await;
    machine.labels.stalls.store(true, Ordering::SeqCst);
    let flush = tokio::time::timeout(Duration::from_secs(2), running.ingest.flush_all());
    assert!(flush.await.is_err(), "the rows are in data files, and the store does not answer");
    machine.labels.stalls.store(false, Ordering::SeqCst);
    machine.power_off(running, 1);
    let running = machine.start().await;
    assert_eq!(running.report.commits_replayed, 0, "the rows are in data files");
    assert_eq!(position(&running, JOB).as_deref(), Some("job-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_position_of_a_prepared_load_counts_once_the_load_is_committed() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("job-1").unwrap();
    reservation.advance(JOB, at("prepared"));
    let rows = running.rows("VALUES (1, 'a')");
    let txn = running.ingest.prepare(&running.table, reservation, rows).await.unwrap().txn;
    assert_eq!(position(&running, JOB), None);
    machine.power_off(running, 1);
    let running = machine.start().await;
    assert_eq!(position(&running, JOB), None);
    let target = TwoPhaseTarget { txn: Some(txn), label: None };
    running.ingest.commit_prepared(DbId(1), &target).await.unwrap();
    assert_eq!(position(&running, JOB).as_deref(), Some("prepared"));
    machine.power_off(running, 2);
    assert_eq!(position(&machine.start().await, JOB).as_deref(), Some("prepared"));
}
