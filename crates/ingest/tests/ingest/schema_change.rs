//! Loads while the schema of their table is changed, with values that are converted.

use crate::support::*;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tributary_ingest::{Halt, LoadRight, Switched};
use tributary_table::{SchemaChange, TableError};
use tributary_types::ColumnId;

/// The table with `name INT`.
fn with_numbers(def: &TableDef) -> Arc<TableDef> {
    let mut schema = TableSchema::clone(&def.schema);
    let name = schema.index_of_id(ColumnId(2)).unwrap();
    schema.columns[name].data_type = DataType::Int;
    schema.version = SchemaVersion(2);
    Arc::new(TableDef { schema: Arc::new(schema), ..def.clone() })
}

struct History(Arc<TableDef>);

impl SchemaHistory for History {
    fn schema(&self, _table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>> {
        (version == self.0.schema.version).then(|| Arc::clone(&self.0.schema))
    }
}

fn own(running: &Running, label: &str, rows: LoadRows) -> Task<tributary_ingest::Answered> {
    let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
    let reservation = running.begin(label).unwrap();
    tokio::spawn(async move { ingest.commit(&table, reservation, rows).await })
}

/// Begins the switch to a change's schema. Loads are held until the sender is used, or dropped: then the catalog could not be told.
async fn held_switch(
    running: &Running,
    mut change: SchemaChange,
    halt: Arc<Halt>,
) -> (oneshot::Sender<()>, JoinHandle<Result<Switched, TableError>>) {
    let (is_held, holds) = oneshot::channel();
    let (go_on, goes_on) = oneshot::channel();
    let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
    let switching = tokio::spawn(async move {
        let keep = |_| async {
            is_held.send(()).unwrap();
            goes_on.await.is_ok()
        };
        ingest.switch_schema(&table, &mut change, &halt, keep).await
    });
    in_time("loads are held", holds).await.unwrap();
    (go_on, switching)
}

async fn all_rows(running: &Running) -> u64 {
    running.ingest.sync().await;
    running.table.snapshot().rows()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_schema_changes_groups_are_refused_and_others_wait_and_are_converted() {
    let machine = Machine::new(properties(10));
    let running = machine.start().await;
    running.group(true, "VALUES (1, '10')").await.unwrap();
    let halt = Arc::new(Halt::default());
    let target = running.prepare("two", "VALUES (2, '20')").await;
    let to = with_numbers(&machine.def);
    let mut change = running.ingest.begin_schema_change(&running.table, 5, Arc::clone(&to)).await.unwrap();
    running.ingest.convert(&running.table, &mut change, &halt).await.unwrap();
    let never = |_| async { panic!("it is not switched to") };
    let switched = running.ingest.switch_schema(&running.table, &mut change, &halt, never).await.unwrap();
    assert!(matches!(switched, Switched::NotYet), "a two-phase load waits");
    running.group(false, "VALUES (3, '30')").await.unwrap();
    running.ingest.commit_prepared(DbId(1), &target).await.unwrap();

    let late = running.rows("VALUES (4, '40')");
    let (good, bad) = (running.rows("VALUES (5, '50')"), running.rows("VALUES (6, 'sixty')"));
    let in_files = running.file_rows("VALUES (7, '70')").await;
    let (go_on, switching) = held_switch(&running, change, halt).await;
    for is_async in [true, false] {
        let error = running.group(is_async, "VALUES (8, 80)").await.unwrap_err();
        assert_eq!(error.to_string(), "insert table dt is blocked on schema change");
        assert!(error.says_nothing_was_kept());
    }
    let waiting = [own(&running, "good", good), own(&running, "bad", bad), own(&running, "files", in_files)];
    until("loads wait", || running.ingest.metrics().held.get() == 3).await;
    assert!(waiting.iter().all(|load| !load.is_finished()), "they wait for the catalog");
    go_on.send(()).unwrap();
    let switched = in_time("the switch", switching).await.unwrap().unwrap();
    assert!(matches!(switched, Switched::Yes(def) if def.schema == to.schema));
    let [good, bad, in_files] = waiting.map(|load| in_time("a load that waits", load));
    good.await.unwrap().unwrap();
    let bad = bad.await.unwrap().unwrap_err().to_string();
    assert!(bad.contains("the value 'sixty' of column 'name' can't be converted"), "{bad}");
    let again =
        "schema version not match, maybe a schema change is in process. Please retry this load manually.";
    assert_eq!(in_files.await.unwrap().unwrap_err().to_string(), again);
    let refused = running.ingest.load_into_group(&running.table, true, late.clone(), LONG).await;
    assert_eq!(refused.unwrap_err().to_string(), again);
    let reservation = running.begin("late").unwrap();
    let refused = running.ingest.prepare(&running.table, reservation, late).await;
    assert_eq!(refused.unwrap_err().to_string(), again);
    running.group(true, "VALUES (8, 80)").await.unwrap();
    assert_eq!(all_rows(&running).await, 5);

    // A load of the old schema that was converted is in the log, and is converted again by the replay.
    machine.power_off(running, 3);
    let table = machine.store.open(&to).await.unwrap();
    let (ingest, report) =
        machine.open_with(vec![Arc::clone(&table)], &History(Arc::clone(&machine.def))).await;
    assert_eq!(report.rows_replayed, 2, "the others were in data files");
    ingest.sync().await;
    assert_eq!(table.snapshot().rows(), 5);
    let numbers: Vec<i32> = table
        .snapshot()
        .memtable
        .iter()
        .flat_map(|part| part.live_batch().unwrap().column(1).as_primitive::<Int32Type>().values().to_vec())
        .collect();
    assert_eq!(numbers, [50, 80]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_table_that_is_dropped_ends_and_so_do_the_loads_that_wait() {
    let machine = Machine::new(properties(10));
    let running = machine.start().await;
    let halt = Arc::new(Halt::default());
    let to = with_numbers(&machine.def);
    let change = running.ingest.begin_schema_change(&running.table, 5, to).await.unwrap();
    let rows = running.rows("VALUES (5, '50')");
    let (go_on, switching) = held_switch(&running, change, halt).await;
    let waiting = own(&running, "waits", rows);
    running.ingest.detach(running.table.id());
    let error = in_time("a load that waits", waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, IngestError::TableDropped(_)), "{error}");
    drop(go_on);
    assert!(in_time("the switch", switching).await.unwrap().is_err(), "the catalog could not be told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_waits_for_a_change_is_asked_for_its_right_again() {
    let machine = Machine::new(properties(10));
    let running = machine.start().await;
    let halt = Arc::new(Halt::default());
    let to = with_numbers(&machine.def);
    let mut change = running.ingest.begin_schema_change(&running.table, 5, to).await.unwrap();
    running.ingest.convert(&running.table, &mut change, &halt).await.unwrap();
    let right = |holds: &Arc<AtomicBool>| {
        let holds = Arc::clone(holds);
        Some(Arc::new(LoadRight::new(move || holds.load(Ordering::SeqCst))))
    };
    let (stays, goes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
    let rows = |holds, text| LoadRows { right: right(holds), ..running.rows(text) };
    let (kept, lost) = (rows(&stays, "VALUES (1, '10')"), rows(&goes, "VALUES (2, '20')"));
    let (go_on, switching) = held_switch(&running, change, halt).await;
    let waiting = [own(&running, "kept", kept), own(&running, "lost", lost)];
    until("loads wait", || running.ingest.metrics().held.get() == 2).await;
    goes.store(false, Ordering::SeqCst);
    go_on.send(()).unwrap();
    in_time("the switch", switching).await.unwrap().unwrap();
    let [kept, lost] = waiting.map(|load| in_time("a load that waits", load));
    kept.await.unwrap().unwrap();
    let error = lost.await.unwrap().unwrap_err();
    assert!(matches!(error, IngestError::RightRevoked { .. }), "{error}");
    assert!(error.says_nothing_was_kept() && running.begin("lost").is_ok(), "its label is free");
    let refused =
        running.ingest.load_into_group(&running.table, true, rows(&goes, "VALUES (3, 30)"), LONG).await;
    assert!(matches!(refused, Err(IngestError::RightRevoked { .. })), "{refused:?}");
    let reservation = running.begin("two").unwrap();
    let refused = running.ingest.prepare(&running.table, reservation, rows(&goes, "VALUES (4, 40)")).await;
    assert!(matches!(refused, Err(IngestError::RightRevoked { .. })), "{refused:?}");
    assert_eq!(all_rows(&running).await, 1);
}
