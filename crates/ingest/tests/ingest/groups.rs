//! Loads share a group, and are answered as their mode promises.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn loads_of_a_group_share_label_and_transaction_and_become_visible_together() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let first = running.group(true, "VALUES (1, 'a'), (2, 'b')").await.unwrap();
    let second = running.group(true, "VALUES (3, NULL)").await.unwrap();
    assert_eq!((&first.label, first.txn), (&second.label, second.txn));
    assert_eq!(running.ids(), [0; 0], "acknowledged, not visible yet");
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1, 2, 3]);
    assert_eq!(running.ingest.transactions().by_id(first.txn).unwrap().status, TransactionStatus::Visible);
    let third = running.group(true, "VALUES (4, 'd')").await.unwrap();
    assert_ne!(third.txn, first.txn, "a committed group takes no more loads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_is_visible_when_it_is_answered_and_shares_the_group_of_async_loads() {
    let machine = Machine::new(properties(50));
    let running = machine.start().await;
    let (held, logged) =
        tokio::join!(running.group(false, "VALUES (1, 'a')"), running.group(true, "VALUES (2, 'b')"));
    let (held, logged) = (held.unwrap(), logged.unwrap());
    assert!(held.version.is_some());
    assert!(running.ids().contains(&1));
    assert_eq!(held.txn, logged.txn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_closes_at_its_bytes() {
    let machine = Machine::new(TableProperties { group_commit_data_bytes: 1, ..properties(600_000) });
    let running = machine.start().await;
    running.group(false, "VALUES (1, 'a')").await.unwrap();
    assert_eq!(running.ids(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_fill_the_memory_close_before_their_interval() {
    let machine = Machine { memory_limit_bytes: 8000, ..Machine::new(properties(600_000)) };
    let running = machine.start().await;
    // Each takes some 300 bytes: without it the later ones would wait until the interval is over.
    for id in 0..100 {
        in_time("a load", running.group(true, &format!("VALUES ({id}, 'a')"))).await.unwrap();
    }
    running.ingest.sync().await;
    assert_eq!(running.ids(), (0..100).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_loads_become_columns_while_their_group_is_open() {
    const LOADS: i32 = 6000;
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let values: Vec<String> = (0..LOADS).map(|id| format!("VALUES ({id}, 'small')")).collect();
    let kept_as_they_came: u64 = values.iter().map(|values| running.rows(values).memory_bytes()).sum();
    for some in values.chunks(100) {
        let loads = futures::future::join_all(some.iter().map(|values| running.group(true, values))).await;
        loads.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
    // A large one, and a sync one whose rows the log gets with the commit.
    let name = "x".repeat(40);
    let large: Vec<String> = (LOADS..LOADS + 200).map(|id| format!("({id}, '{name}')")).collect();
    running.group(true, &format!("VALUES {}", large.join(", "))).await.unwrap();
    let in_group = running.ingest.memory().in_groups();
    assert!(in_group < kept_as_they_came / 2, "{in_group} of {kept_as_they_came} bytes");
    assert_eq!(running.ids(), [0; 0], "none is visible before the commit");
    let sync = running.load(false, running.rows(&format!("VALUES ({}, 'sync')", LOADS + 200)));
    until("the sync load joins", || running.ingest.memory().in_groups() > in_group).await;
    running.ingest.sync().await;
    let group = sync.await.unwrap().unwrap();
    let all: Vec<i32> = (0..=LOADS + 200).collect();
    assert_eq!(running.ids(), all);
    let transaction = running.ingest.transactions().by_id(group.txn).unwrap();
    assert_eq!((transaction.loads, transaction.rows), (LOADS as u32 + 2, all.len() as u64));
    assert_eq!(running.ingest.memory().in_groups(), 0);
    machine.power_off(running, 1);
    assert_eq!(machine.start().await.ids(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_of_zero_commits_as_soon_as_the_log_is_free() {
    for may_write_here in [false, true] {
        let machine = Machine { may_write_here, ..Machine::new(properties(0)) };
        let running = machine.start().await;
        let rows: Vec<String> = (0..200).map(|id| format!("VALUES ({id}, 'x')")).collect();
        futures::future::join_all(rows.iter().map(|values| running.group(false, values)))
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        assert_eq!(running.ids(), (0..200).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_that_are_written_by_their_own_threads_keep_every_promise() {
    const CLIENTS: i32 = 4;
    const EACH: i32 = 150;
    for is_async in [false, true] {
        let machine = Machine { may_write_here: true, ..Machine::new(properties(0)) };
        let running = Arc::new(machine.start().await);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let running = Arc::clone(&running);
                tokio::spawn(async move {
                    let mut last = None;
                    for id in (client * EACH..).take(EACH as usize) {
                        let done = running.group(is_async, &format!("VALUES ({id}, 'x')")).await.unwrap();
                        assert!(done.version.is_none() == is_async && done.version >= last);
                        assert!(is_async || running.ids().contains(&id), "visible when it is answered");
                        last = done.version;
                    }
                })
            })
            .collect();
        for client in clients {
            in_time("a client's loads", client).await.unwrap();
        }
        machine.power_off(Arc::into_inner(running).unwrap(), 1);
        assert_eq!(machine.start().await.ids(), (0..CLIENTS * EACH).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_table_tells_the_loads_that_wait() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let waiting = tokio::spawn({
        let (ingest, table, rows) =
            (Arc::clone(&running.ingest), Arc::clone(&running.table), running.rows("VALUES (1, 'a')"));
        async move { ingest.load_into_group(&table, false, rows, LONG).await }
    });
    while running.ingest.open_groups() == 0 {
        tokio::task::yield_now().await;
    }
    running.ingest.detach(TableId(1));
    assert!(matches!(waiting.await.unwrap(), Err(IngestError::TableDropped(_))));
    assert!(matches!(running.group(true, "VALUES (2, 'b')").await, Err(IngestError::TableDropped(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_that_times_out_learns_the_label_and_its_group_continues() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let rows = running.rows("VALUES (1, 'a')");
    let outcome = running.ingest.load_into_group(&running.table, false, rows, Duration::from_millis(1)).await;
    let Err(IngestError::Timeout { label, .. }) = outcome else { panic!("{outcome:?}") };
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1]);
    let info = running.ingest.transactions().by_label(DbId(1), label.as_str()).unwrap();
    assert_eq!(info.status, TransactionStatus::Visible);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_interval_zero_loads_gather_while_the_log_is_busy() {
    for is_async in [false, true] {
        let machine = Machine::new(properties(0));
        let running = machine.start().await;
        let held = machine.hold_syncs();
        let first = running.load(false, running.rows("VALUES (0, 'x')"));
        running.log_is_busy().await;
        let one = running.ingest.memory().in_groups();
        let mut others = Vec::new();
        for id in 1..=9 {
            others.push(running.load(is_async, running.rows(&format!("VALUES ({id}, 'x')"))));
            until("it has joined", || running.ingest.memory().in_groups() == (id + 1) * one).await;
        }
        drop(held);
        let first = in_time("the first", first).await.unwrap().unwrap();
        let mut groups = BTreeSet::new();
        for load in others {
            groups.insert(in_time("the others", load).await.unwrap().unwrap().txn);
        }
        assert_eq!(groups.len(), 1, "async {is_async}");
        assert!(!groups.contains(&first.txn));
        until("all are visible", || running.ids() == (0..10).collect::<Vec<_>>()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_interval_zero_every_load_is_answered_also_when_groups_fail() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let loads: Vec<_> = (0..400)
        .map(|id| {
            let values = format!("VALUES ({id}, 'x')");
            let is_bad = id % 7 == 3;
            running.load(false, if is_bad { running.bad_rows(&values) } else { running.rows(&values) })
        })
        .collect();
    let mut kept = 0;
    for load in loads {
        match in_time("an answer", load).await.unwrap() {
            Ok(_) => kept += 1,
            Err(error) => assert!(matches!(error, IngestError::BadBlock(_)), "{error}"),
        }
    }
    assert_eq!(running.ids().len(), kept);
    assert_eq!(running.ingest.open_groups(), 0);
    in_time("one more", running.group(false, "VALUES (1000, 'x')")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_waits_for_a_free_log_closes_although_its_table_got_an_interval() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let held = machine.hold_syncs();
    let first = running.load(false, running.rows("VALUES (1, 'a')"));
    running.log_is_busy().await;
    let second = running.load(false, running.rows("VALUES (2, 'b')"));
    until("it has joined", || running.ingest.open_groups() == 1).await;
    let slow = TableDef { properties: properties(600_000), ..(*machine.def).clone() };
    running.table.alter(Arc::new(slow)).await.unwrap();
    drop(held);
    in_time("the first", first).await.unwrap().unwrap();
    in_time("the second", second).await.unwrap().unwrap();
    assert_eq!(running.ids(), [1, 2]);
}
