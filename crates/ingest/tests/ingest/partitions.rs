//! Partitions that are dropped while loads are under way.

use crate::support::*;
use tributary_types::partition::{Bound, PartitionRows, PartitionValue};
use tributary_types::{ColumnId, PartitionMethod, Partitioning, Partitions};

/// The table in partitions of ten ids each.
fn divided(interval_ms: u64) -> Machine {
    let mut machine = Machine::new(properties(interval_ms));
    let mut partitions = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
    for number in 0..3 {
        partitions.add(&format!("p{number}"), tens(number), BTreeMap::new());
    }
    machine.has_partitions(partitions);
    machine
}

fn tens(number: i128) -> PartitionRows {
    let bound = |value| vec![Bound::Value(PartitionValue::Int(value))];
    PartitionRows::Range { lower: bound(number * 10), upper: bound(number * 10 + 10) }
}

impl Machine {
    /// The catalog's part of a change.
    fn has_partitions(&mut self, partitions: Partitions) {
        let partitioning = Partitioning::By(Arc::new(partitions));
        self.def = Arc::new(TableDef { partitioning, ..TableDef::clone(&self.def) });
    }

    fn partitions(&self) -> Partitions {
        Partitions::clone(self.def.partitioning.partitions().unwrap())
    }

    /// Drops the partition of the ids from 10 on as the server does, up to the cut.
    async fn begin_drop(&mut self, running: &Running) -> Partitions {
        let mut partitions = self.partitions();
        let id = partitions.list[partitions.index_of("p1").unwrap()].id;
        let dropped = partitions.only(&[id]);
        partitions.remove(&[id]);
        self.has_partitions(partitions);
        running.table.alter(Arc::clone(&self.def)).await.unwrap();
        dropped
    }

    async fn drop_partition(&mut self, running: &Running) {
        let dropped = self.begin_drop(running).await;
        running.ingest.cut(&running.table, dropped).await.unwrap();
    }

    /// Adds it again, as the server does.
    async fn add_again(&mut self, running: &Running) {
        let mut partitions = self.partitions();
        let before = partitions.clone();
        partitions.add("p1", tens(1), BTreeMap::new());
        running.ingest.cut(&running.table, partitions.without(&before)).await.unwrap();
        self.has_partitions(partitions);
        running.table.alter(Arc::clone(&self.def)).await.unwrap();
    }
}

const TEXT: &str = "no partition for this tuple: a partition of table db.dt was dropped while the load was under way; nothing \
    of the load was kept, look at SHOW PARTITIONS and retry it";

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_is_committed_after_its_partition_was_dropped_fails_as_a_whole() {
    let mut machine = divided(0);
    let running = machine.start().await;
    let rows = running.rows("VALUES (1, 'a'), (11, 'b')");
    let in_files = running.file_rows("VALUES (12, 'c')").await;
    let decoded = running.rows("VALUES (15, 'x')");
    let prepared = running.prepare("two", "VALUES (13, 'd')").await;
    machine.drop_partition(&running).await;

    let reservation = running.begin("own").unwrap();
    let own = running.ingest.commit(&running.table, reservation, rows.clone()).await.unwrap_err();
    assert_eq!(own.to_string(), TEXT);
    assert_eq!(running.status("own"), TransactionStatus::Aborted);
    for is_async in [false, true] {
        let answer = running.load(is_async, rows.clone()).await.unwrap();
        assert_eq!(answer.unwrap_err().to_string(), TEXT, "async: {is_async}");
    }
    let reservation = running.begin("files").unwrap();
    let files = running.ingest.commit(&running.table, reservation, in_files).await.unwrap_err();
    assert_eq!(files.to_string(), TEXT);
    let written_late = running.written(decoded).await;
    let reservation = running.begin("late-files").unwrap();
    let files = running.ingest.commit(&running.table, reservation, written_late).await.unwrap_err();
    assert_eq!(files.to_string(), TEXT, "its rows were decoded before the drop and written after it");
    assert_eq!(machine.data_files().await, 0, "what was written ahead is deleted");
    let reservation = running.begin("late").unwrap();
    let late = running.ingest.prepare(&running.table, reservation, rows).await.unwrap_err();
    assert_eq!(late.to_string(), TEXT);
    let two_phase = running.ingest.commit_prepared(DbId(1), &prepared).await.unwrap_err();
    assert_eq!(two_phase.to_string(), TEXT);
    running.ingest.abort_prepared(DbId(1), &prepared, "its partition is gone").await.unwrap();

    running.group(false, "VALUES (2, 'e')").await.unwrap();
    assert_eq!(running.ids(), [2]);
    machine.add_again(&running).await;
    machine.power_off(running, 3);
    assert_eq!(machine.start().await.ids(), [2], "nothing of the others is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_the_load_whose_partition_was_dropped_is_answered_so_and_the_others_are_kept() {
    let mut machine = divided(600_000);
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a'), (11, 'b')").await.unwrap();
    let large = format!("VALUES {}", vec![format!("(13, '{}')", "g".repeat(49)); 6000].join(", "));
    let mut in_group = running.ingest.memory().in_groups();
    let mut clients = Vec::new();
    for values in ["VALUES (2, 'c')", "VALUES (3, 'd'), (12, 'e')", "VALUES (21, 'f')", &large] {
        let rows = running.rows(values);
        in_group += rows.memory_bytes();
        clients.push(running.load(false, rows));
        until("it has joined", || running.ingest.memory().in_groups() == in_group).await;
    }
    machine.drop_partition(&running).await;

    let mut answers = Vec::new();
    for client in clients {
        answers.push(client.await.unwrap());
    }
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(answers[1].as_ref().unwrap_err().to_string(), TEXT);
    assert_eq!(answers[3].as_ref().unwrap_err().to_string(), TEXT, "the log had its rows already");
    assert_eq!(running.ids(), [1, 2, 21], "what was acknowledged before is gone with the partition");
    machine.power_off(running, 4);
    let again = machine.start().await;
    assert_eq!(again.ids(), [1, 2, 21]);
    machine.add_again(&again).await;
    again.group(true, "VALUES (14, 'h')").await.unwrap();
    again.ingest.sync().await;
    assert_eq!(again.ids(), [1, 2, 14, 21]);
    machine.power_off(again, 5);
    assert_eq!(machine.start().await.ids(), [1, 2, 14, 21]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_load_is_told_that_it_was_kept_while_its_partition_goes() {
    for seed in 0..20 {
        let mut machine = divided(0);
        let running = machine.start().await;
        let rows = running.rows("VALUES (11, 'a')");
        let dropped = machine.begin_drop(&running).await;
        // The definition lacks the partition, and the log does not say so yet.
        let early = running.load(false, rows.clone()).await.unwrap();
        assert!(matches!(early, Err(IngestError::PartitionDropped(_))), "{early:?}");
        running.ingest.cut(&running.table, dropped).await.unwrap();
        machine.add_again(&running).await;
        // Decoded for the partition before; the log has them after the new one.
        running.load(false, rows).await.unwrap().unwrap();
        assert_eq!(running.ids(), [11]);
        machine.power_off(running, seed);
        assert_eq!(machine.start().await.ids(), [11], "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_table_that_lost_a_partition_become_columns_once() {
    for interval_ms in [0, 600_000] {
        let mut machine = divided(interval_ms);
        let running = machine.start().await;
        let built = || running.ingest.metrics().blocks_built.get();
        let early = running.rows("VALUES (7, 'z')");
        machine.drop_partition(&running).await;
        running.load(true, running.rows("VALUES (1, 'a')")).await.unwrap().unwrap();
        running.ingest.sync().await;
        assert_eq!(built(), 1, "a load of a group");
        let reservation = running.begin("own").unwrap();
        running.ingest.commit(&running.table, reservation, running.rows("VALUES (2, 'b')")).await.unwrap();
        assert_eq!(built(), 2, "a load of its own");
        let target = running.prepare("two", "VALUES (3, 'c')").await;
        running.ingest.commit_prepared(DbId(1), &target).await.unwrap();
        assert_eq!(built(), 3, "a two-phase load");
        running.load(true, early).await.unwrap().unwrap();
        running.ingest.sync().await;
        assert_eq!(built(), 5, "a load that was decoded before is looked at again");
        assert_eq!(running.ids(), [1, 2, 3, 7]);
    }
}

/// A row without a partition is published only if it was acknowledged before; code that relies on a load's statement of its
/// partitions must compare it with the table's.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_an_acknowledged_row_of_a_dropped_partition_leaves_it_out() {
    let mut machine = divided(600_000);
    let running = machine.start().await;
    running.group(true, "VALUES (11, 'a'), (1, 'b')").await.unwrap();
    machine.drop_partition(&running).await;
    running.group(true, "VALUES (2, 'c')").await.unwrap();
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_panics_leaves_its_label_free() {
    let mut machine = divided(0);
    let running = machine.start().await;
    machine.drop_partition(&running).await;
    // Rows that say they are of the table's schema, and lack the column of its partitions.
    let schema = TableSchema::new(
        machine.def.schema.version,
        vec![ColumnDef::new(2, "name", DataType::Varchar { bytes: 50 })],
    );
    let wrong = Arc::new(TableDef::new(TableId(1), "db", "dt", schema));
    let target = Target::new(&wrong, None).unwrap();
    let mut builder = BlockBuilder::new(&wrong.schema);
    let values = decode_values(b"VALUES ('a')", &target, &InsertOptions::default(), &mut builder).unwrap();
    let ValuesOutcome::Rows(decoded) = values else { panic!("they are literals") };
    let rows = LoadRows::of_blocks(Arc::clone(&wrong.schema), decoded.blocks);
    let reservation = running.begin("one").unwrap();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::Bug(_)), "{error}");
    assert_eq!(running.status("one"), TransactionStatus::Aborted);
    let reservation = running.begin("one").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    assert_eq!(running.status("one"), TransactionStatus::Visible);
}
