//! Rows lie in the order of the log.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_group_are_in_the_order_of_the_log_live_and_after_a_replay() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let in_groups = || running.ingest.memory().in_groups();
    // The log receives the small sync load with the commit, after later loads.
    let small_sync = running.load(false, running.rows("VALUES (9, 'sync')"));
    until("the small sync load joins", || in_groups() > 0).await;
    running.group(true, "VALUES (2, 'async'), (1, 'async')").await.unwrap();
    let before = in_groups();
    let large_sync = running.load(false, running.rows(&format!("VALUES {}", wide_rows(1000, 8000))));
    until("the large sync load joins", || in_groups() > before).await;
    running.group(true, "VALUES (5, 'async')").await.unwrap();
    running.ingest.sync().await;
    small_sync.await.unwrap().unwrap();
    large_sync.await.unwrap().unwrap();
    running.group(true, "VALUES (0, 'the next group')").await.unwrap();
    running.ingest.sync().await;
    let expected: Vec<i32> = [2, 1].into_iter().chain(1000..9000).chain([5, 9, 0]).collect();
    assert!(running.ids_in_order() == expected);
    machine.power_off(running, 1);
    assert!(machine.start().await.ids_in_order() == expected, "after a replay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_waits_for_space_is_not_overtaken_by_groups_that_were_opened_after_it() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    // The first group's commit brings the rows of sync loads, more than fit into a segment of the log.
    running.group(true, &format!("VALUES {}", wide_rows(0, 17_000))).await.unwrap();
    let mut held = Vec::new();
    for number in 1..=6 {
        let in_groups = running.ingest.memory().in_groups();
        let rows = running.rows(&format!("VALUES {}", wide_rows(number * 20_000, 4_000)));
        held.push(running.load(false, rows));
        until("the sync load joins", || running.ingest.memory().in_groups() > in_groups).await;
    }
    machine.disk.set_capacity(Some(0));
    let refusals = || machine.gated.refusals();
    // Polled once, it has closed the open group.
    let mut first = Box::pin(running.ingest.sync());
    assert!(futures::poll!(first.as_mut()).is_pending());
    until("the first group has found no space", || refusals() > 0).await;
    // The second group's commit would find space.
    running.group(true, "VALUES (200000, 'second')").await.unwrap();
    let mut second = Box::pin(running.ingest.sync());
    assert!(futures::poll!(second.as_mut()).is_pending());
    let before = refusals();
    until("the first group has been tried twice beside the second", || refusals() >= before + 2).await;
    assert!(running.ids().is_empty(), "the second group waits for the first");
    machine.disk.set_capacity(None);
    in_time("both are visible", async { tokio::join!(first, second) }).await;
    for load in held {
        load.await.unwrap().unwrap();
    }
    let held = (1..=6).flat_map(|number| number * 20_000..number * 20_000 + 4_000);
    let expected: Vec<i32> = (0..17_000).chain(held).chain([200_000]).collect();
    assert!(running.ids_in_order() == expected);
    machine.power_off(running, 1);
    assert!(machine.start().await.ids_in_order() == expected, "after a replay");
}

/// One row of `bytes` bytes, of a user.
fn large_row(running: &Running, user: &str, id: i32, bytes: usize) -> LoadRows {
    let schema = Arc::clone(&running.table.def().schema);
    let mut builder = BlockBuilder::new(&schema);
    builder.push_i32(0, id);
    builder.push_text(1, &"x".repeat(bytes));
    builder.finish_row();
    let rows = LoadRows::of_blocks(schema, vec![builder.finish().unwrap()]);
    LoadRows { user: UserKey::of(user, "%"), ..rows }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_take_turns_when_the_log_has_much_to_write_and_each_ones_loads_keep_their_order() {
    const MIB: usize = 1 << 20;
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let hold = machine.hold_syncs();
    let load = |user: &str, id: i32, bytes: usize| {
        let rows = large_row(&running, user, id, bytes);
        Box::pin(running.ingest.load_into_group(&running.table, true, rows, LONG))
    };
    let mut loads = Vec::new();
    for id in 0..16 {
        loads.push(load("large", id, MIB));
        assert!(futures::poll!(loads[id as usize].as_mut()).is_pending());
    }
    let pending = running.wal().pending_bytes();
    assert!(pending > 16 * MIB as u64, "the log has taken them");
    for id in 16..24 {
        loads.push(load("large", id, MIB));
        assert!(futures::poll!(loads[id as usize].as_mut()).is_pending());
    }
    assert_eq!(running.ingest.wal_spaces()[0].waiting_loads(), 8);
    let mut small = load("small", 100, 10);
    assert!(futures::poll!(small.as_mut()).is_pending());
    // One that is given up.
    let mut gone = load("other", 200, MIB);
    assert!(futures::poll!(gone.as_mut()).is_pending());
    drop(gone);
    assert_eq!(running.wal().pending_bytes(), pending, "the others wait outside");
    drop(hold);
    loads.push(small);
    for outcome in in_time("all are loaded", futures::future::join_all(loads)).await {
        outcome.unwrap();
    }
    running.ingest.sync().await;
    let expected: Vec<i32> = (0..=16).chain([100]).chain(17..24).collect();
    assert_eq!(running.ids_in_order(), expected, "the small one waits for one turn");
    machine.power_off(running, 1);
    assert_eq!(machine.start().await.ids_in_order(), expected, "after a replay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_its_own_and_a_two_phase_load_take_turns_at_the_log_too() {
    const MIB: usize = 1 << 20;
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let hold = machine.hold_syncs();
    let first = running.load(true, large_row(&running, "large", 0, 17 * MIB));
    until("the log has taken it", || running.wal().pending_bytes() > 16 * MIB as u64).await;
    let pending = running.wal().pending_bytes();
    let (own, two_phase) = (running.begin("own").unwrap(), running.begin("two_phase").unwrap());
    let target = TwoPhaseTarget { txn: Some(two_phase.txn()), label: None };
    let own = running.ingest.commit(&running.table, own, large_row(&running, "large", 1, MIB));
    let two_phase = running.ingest.prepare(&running.table, two_phase, large_row(&running, "large", 2, MIB));
    let (mut own, mut two_phase) = (Box::pin(own), Box::pin(two_phase));
    // They run in tasks of their own, once polled.
    assert!(futures::poll!(own.as_mut()).is_pending() && futures::poll!(two_phase.as_mut()).is_pending());
    until("both wait", || running.ingest.wal_spaces()[0].waiting_loads() == 2).await;
    assert_eq!(running.wal().pending_bytes(), pending, "they wait outside");
    drop(hold);
    let (own, two_phase) = in_time("both are loaded", async { tokio::join!(own, two_phase) }).await;
    own.unwrap();
    two_phase.unwrap();
    first.await.unwrap().unwrap();
    running.ingest.commit_prepared(DbId(1), &target).await.unwrap();
    running.ingest.sync().await;
    assert_eq!(running.ids(), [0, 1, 2]);
}

/// Rows of some 50 bytes each.
fn wide_rows(first: i32, count: i32) -> String {
    let name = "x".repeat(40);
    (first..first + count).map(|id| format!("({id}, '{name}')")).collect::<Vec<_>>().join(", ")
}
