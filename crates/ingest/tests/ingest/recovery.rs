//! A start restores acknowledged rows, once, and nothing else.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_async_rows_survive_a_crash_once_and_sync_rows_without_answer_do_not_appear() {
    for seed in 0..20 {
        let machine = Machine::new(properties(600_000));
        let running = machine.start().await;
        running.group(true, "VALUES (1, 'a')").await.unwrap();
        running.group(true, "VALUES (2, 'b')").await.unwrap();
        let waiting = tokio::spawn({
            let (ingest, table, rows) =
                (Arc::clone(&running.ingest), Arc::clone(&running.table), running.rows("VALUES (3, 'c')"));
            async move { ingest.load_into_group(&table, false, rows, LONG).await }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        machine.power_off(running, seed);
        let again = machine.start().await;
        assert_eq!(again.ids(), [1, 2], "seed {seed}");
        assert_eq!(again.report.groups_finished, 1);
        machine.power_off(again, seed);
        let third = machine.start().await;
        assert_eq!(third.ids(), [1, 2], "the recovered group's commit is durable, seed {seed}");
        assert_eq!((third.report.groups_finished, third.report.commits_replayed), (0, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_flushed_are_not_replayed() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let reservation = running.begin("a").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    running.table.flush().await.unwrap().expect("rows were flushed");
    let reservation = running.begin("b").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (2, 'b')")).await.unwrap();
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!(again.ids(), [2]);
    assert_eq!(again.table.snapshot().rows(), 2);
    assert_eq!((again.report.commits_skipped, again.report.commits_replayed), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_table_is_empty_after_a_crash_too_and_takes_loads() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.ingest.truncate(&running.table).await.unwrap();
    assert_eq!(running.table.snapshot().rows(), 0, "rows acknowledged before are gone too");
    running.group(true, "VALUES (2, 'b')").await.unwrap();
    machine.power_off(running, 9);
    assert_eq!(machine.start().await.ids(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_released_when_everything_is_in_data_files() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    for id in 0..50 {
        running.group(false, &format!("VALUES ({id}, 'x')")).await.unwrap();
    }
    assert!(running.table.oldest_unflushed_lsn().is_some());
    running.ingest.flush_all().await;
    let stats = running.ingest.wal_spaces()[0].wal.stats();
    assert_eq!(stats.released_lsn, stats.end_lsn);
    assert_eq!(running.table.snapshot().rows(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_commits_and_flushes_what_was_acknowledged() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.ingest.shutdown().await;
    assert_eq!(running.table.persisted_version().0, 1);
    let error = running.group(true, "VALUES (2, 'b')").await.unwrap_err();
    assert!(matches!(error, IngestError::ShuttingDown));
    drop(running);
    let again = machine.start().await;
    assert_eq!((again.table.snapshot().rows(), again.report.commits_replayed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_recovery_finished_without_a_large_sync_load_is_replayed_without_it_too() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    let large: Vec<String> =
        (2..20_000).map(|id| format!("({id}, 'a name that takes some bytes')")).collect();
    let rows = running.rows(&format!("VALUES {}", large.join(", ")));
    let waiting = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        async move { ingest.load_into_group(&table, false, rows, LONG).await }
    });
    let wal = running.ingest.wal_spaces()[0].wal.clone();
    while wal.stats().bytes_written < 300_000 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    drop(wal);
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.groups_finished), (vec![1], 1));
    machine.power_off(again, 2);
    assert_eq!(machine.start().await.ids(), [1], "the large load's rows are in the log and never count");
}

/// The log that a table's rows are in is not released under them when the number of logs changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_stays_with_its_log_while_rows_are_there_only() {
    let dirs = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    for (configured, retired) in [(dirs(&["/wal", "/b"]), dirs(&[])), (dirs(&["/b"]), dirs(&["/wal"]))] {
        let mut machine = Machine::new(properties(0));
        let running = machine.start().await;
        let reservation = running.begin("two").unwrap();
        let prepared = running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')"));
        let txn = prepared.await.unwrap().txn;
        machine.power_off(running, 1);
        (machine.wal_dirs, machine.retired_wal_dirs) = (configured, retired);
        let again = machine.start().await;
        again.group(false, "VALUES (8, 'h')").await.unwrap();
        again.ingest.flush_all().await;
        let log = again.ingest.wal_spaces().iter().find(|space| space.dir.as_os_str() == "/wal").unwrap();
        assert!(log.wal.stats().live_bytes > 0, "the prepared load is in no other place");
        machine.power_off(again, 2);
        let third = machine.start().await;
        assert_eq!(third.report.prepared, 1);
        let target = TwoPhaseTarget { txn: Some(txn), label: None };
        third.ingest.commit_prepared(DbId(1), &target).await.unwrap();
        assert_eq!(third.ids(), [7]);
    }
}

/// The first damage of the machine's log, skipped as `tributary wal repair --skip` does.
fn skip_first_damage(machine: &Machine) {
    let survey = tributary_wal::Survey::open(&machine.disk, &machine.wal_dirs[0]).unwrap();
    let damage = survey.damage().unwrap();
    survey.skip(&damage[0], "backup").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_skip_the_loads_of_other_frames_are_there_and_those_of_the_skipped_one_are_not() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for values in ["VALUES (1, 'a')", "VALUES (2, 'b')", "VALUES (3, 'c'), (4, 'd')"] {
        running.group(true, values).await.unwrap();
    }
    running.ingest.sync().await;
    machine.power_off(running, 1);
    // The second load's frame: each load was awaited, so each has one of its own.
    damage(&machine, &frames(&machine)[1]);
    skip_first_damage(&machine);
    let again = machine.start().await;
    assert_eq!(again.ids(), [1, 3, 4]);
    assert_eq!((again.report.skipped, again.report.rows_given_up), (1, 1));
    again.ingest.sync().await;
    machine.power_off(again, 2);
    assert_eq!(machine.start().await.ids(), [1, 3, 4], "and again after the next crash");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_rows_of_a_group_that_fails_stay_in_the_log_and_the_next_start_commits_them() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let waiting = running.load(false, running.rows("VALUES (3, 'c')"));
    until("it has joined", || running.ingest.open_groups() == 1).await;
    let acknowledged = running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.load(true, running.bad_rows("VALUES (2, 'b')")).await.unwrap().unwrap();
    in_time("SYNC", running.ingest.sync()).await;
    assert!(matches!(waiting.await.unwrap(), Err(IngestError::BadBlock(_))));
    assert_eq!(running.ids(), [0; 0]);
    let info = running.ingest.transactions().by_id(acknowledged.txn).unwrap();
    assert_ne!(info.status, TransactionStatus::Aborted, "its rows will be there");
    running.ingest.flush_all().await;
    assert!(running.wal().live_bytes() > 0, "the log keeps the rows");
    running.ingest.shutdown().await;
    drop(running);
    assert_eq!(machine.start().await.ids(), [1, 2]);
}

/// The frames of the machine's log: files and offsets.
fn frames(machine: &Machine) -> Vec<(PathBuf, u64)> {
    let mut frames = Vec::new();
    let survey = tributary_wal::Survey::open(&machine.disk, &machine.wal_dirs[0]).unwrap();
    survey
        .walk(&mut |found| {
            if let tributary_wal::Found::Frame(frame) = found {
                frames.push((frame.file, frame.offset));
            }
        })
        .unwrap();
    frames
}

fn damage(machine: &Machine, (file, offset): &(PathBuf, u64)) {
    let mut bytes = machine.disk.contents(file).unwrap();
    bytes[*offset as usize + 40] ^= 1;
    machine.disk.put(file, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_commit_was_skipped_is_not_committed_again_when_its_rows_are_in_data_files() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for id in 1..=2 {
        running.group(true, &format!("VALUES ({id}, 'a')")).await.unwrap();
        running.ingest.sync().await;
    }
    running.table.flush().await.unwrap().expect("rows were flushed");
    running.group(true, "VALUES (3, 'c')").await.unwrap();
    machine.power_off(running, 1);
    // Each load and each commit has a frame of its own: the second one is the first group's commit.
    damage(&machine, &frames(&machine)[1]);
    skip_first_damage(&machine);
    let again = machine.start().await;
    assert_eq!(again.table.snapshot().rows(), 3, "no row is there twice");
    assert_eq!(again.ids(), [3], "a group that was open is committed");
    assert_eq!((again.report.skipped, again.report.groups_finished), (1, 1));
}
