//! A full disk, a closed log, an oversized load: the answers, and how the server continues.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_loads_and_the_group_commits_when_space_is_back() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    machine.disk.set_capacity(Some(0));
    let long = format!("VALUES (2, '{}')", "x".repeat(50));
    let mut refused = None;
    for _ in 0..100_000 {
        if let Err(error) = running.group(true, &long).await {
            refused = Some(error);
            break;
        }
    }
    assert!(matches!(refused, Some(IngestError::NoSpace { .. })), "{refused:?}");
    let acknowledged = running.ingest.transactions().of_db(DbId(1)).len();
    assert!(acknowledged >= 1);
    machine.disk.set_capacity(None);
    running.ingest.sync().await;
    assert!(running.ids().contains(&1));
    running.group(true, "VALUES (3, 'c')").await.expect("space is back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_closed_refuses_whatever_comes_and_nobody_waits() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    running.wal().shutdown();
    let sync = in_time("a sync load", running.load(false, running.rows("VALUES (1, 'a')"))).await.unwrap();
    assert!(matches!(sync, Err(IngestError::ShuttingDown)), "{sync:?}");
    let commit = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        let (reservation, rows) = (running.begin("own").unwrap(), running.rows("VALUES (2, 'b')"));
        async move { ingest.commit(&table, reservation, rows).await }
    });
    let commit = in_time("a commit", commit).await.unwrap();
    assert!(matches!(commit, Err(IngestError::ShuttingDown)), "{commit:?}");
    let truncated = in_time("a truncation", running.ingest.truncate(&running.table)).await;
    assert!(matches!(truncated, Err(IngestError::ShuttingDown)), "{truncated:?}");
    let prepared = in_time("a prepared load", running.ingest.commit_prepared(DbId(1), &target)).await;
    assert!(matches!(prepared, Err(IngestError::ShuttingDown)), "{prepared:?}");
    assert_eq!(running.status("two"), TransactionStatus::Precommitted, "it still waits");
    assert_eq!(running.status("own"), TransactionStatus::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_too_large_for_the_log_is_refused_with_the_limit_and_the_table_goes_on() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let schema = Arc::clone(&running.table.def().schema);
    let mut builder = BlockBuilder::new(&schema);
    for id in 0..1024 {
        builder.push_i32(0, id);
        builder.push_text(1, &"x".repeat(1024));
        builder.finish_row();
    }
    // Blocks share their bytes: this takes 1 MiB.
    let block = builder.finish().unwrap();
    let rows = LoadRows::of_blocks(schema, vec![block; 1050]);
    let reservation = running.begin("large").unwrap();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    for part in ["1073741824", "nothing of the load was kept", "large_load_bytes"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    drop(running.begin("large").expect("its label is free"));
    running.group(false, "VALUES (1, 'a')").await.unwrap();
    assert_eq!(running.ids(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_on_a_full_disk_ends_flushes_make_room_for_the_last_groups() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for (number, label) in ["first", "second"].into_iter().enumerate() {
        let rows = running.rows(&many_rows(number as i32 * 20_000, 20_000));
        let reservation = running.begin(label).unwrap();
        running.ingest.commit(&running.table, reservation, rows).await.unwrap();
    }
    assert!(running.wal().stats().segments > 1);
    machine.disk.set_capacity(Some(0));
    let mut acknowledged = 0;
    for values in [many_rows(100_000, 10_000), format!("VALUES (2, '{}')", "x".repeat(50))] {
        let rows = running.rows(&values).rows;
        while running.group(true, &values).await.is_ok() {
            acknowledged += rows;
        }
    }
    assert!(acknowledged > 0);
    in_time("the shutdown ends", Box::pin(running.ingest.shutdown())).await;
    drop(running);
    machine.disk.set_capacity(None);
    let again = machine.start().await;
    assert_eq!(again.table.snapshot().rows(), 40_000 + acknowledged);
    assert_eq!(again.report.groups_finished, 0, "the shutdown committed them");
}

/// `VALUES` of this many rows with ids from `first`.
fn many_rows(first: i32, count: i32) -> String {
    let rows: Vec<String> =
        (first..first + count).map(|id| format!("({id}, 'a name that takes some bytes')")).collect();
    format!("VALUES {}", rows.join(", "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_that_found_no_space_is_told_how_much_was_missing() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    machine.disk.set_capacity(Some(0));
    let values = many_rows(0, 20_000);
    let memory = running.rows(&values).memory_bytes();
    let mut loads = Vec::new();
    for number in 1..=2 {
        loads.push(running.load(false, running.rows(&values)));
        until("it has joined", || running.ingest.memory().in_groups() == number * memory).await;
        until("the log has answered", || running.wal().is_idle()).await;
    }
    in_time("SYNC", running.ingest.sync()).await;
    let second = loads.pop().unwrap().await.unwrap();
    assert!(loads.pop().unwrap().await.unwrap().is_ok(), "there was space for the first");
    let Err(IngestError::NoSpace { needed, available, .. }) = second else { panic!("{second:?}") };
    assert!(needed > available, "{needed} bytes are needed and {available} are available");
}
