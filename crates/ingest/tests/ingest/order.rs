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

/// Rows of some 50 bytes each.
fn wide_rows(first: i32, count: i32) -> String {
    let name = "x".repeat(40);
    (first..first + count).map(|id| format!("({id}, '{name}')")).collect::<Vec<_>>().join(", ")
}
