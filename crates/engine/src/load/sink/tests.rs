use super::*;
use crate::testing::{TestEngine, block, wait_until};
use tributary_types::Live;

const MIB: usize = 1 << 20;

/// A sink that has taken more rows than a run, so that a data file is begun.
async fn with_a_file(test: &TestEngine, table: &Arc<Table>) -> LoadSink {
    let schema = Arc::clone(&table.def().schema);
    let mut sink = LoadSink::new(Arc::clone(table), Arc::clone(&schema), MIB as u64);
    while test.data_files() == 0 {
        sink.push(&test.engine.loads, vec![block(&schema, 8 * MIB)]).await.expect("written");
    }
    sink
}

#[tokio::test(flavor = "multi_thread")]
async fn however_a_load_ends_it_leaves_no_data_file() {
    // Each run of rows fills a file: the upload of a smaller one is still in memory.
    let test = TestEngine::open(|options| options.store.target_file_bytes = Live::new(1)).await;
    let table = test.table().await;
    with_a_file(&test, &table).await.abort().await;
    assert_eq!(test.data_files(), 0, "aborted");
    drop(with_a_file(&test, &table).await);
    wait_until("the files of a load that was dropped are deleted", || test.data_files() == 0).await;
    assert_eq!(test.engine.ingest.memory().in_flight(), 0, "and its memory is given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_that_together_hold_much_go_on_to_data_files_early() {
    let test = TestEngine::open(|options| options.large_load_bytes = Live::new(1 << 40)).await;
    let table = test.table().await;
    let schema = Arc::clone(&table.def().schema);
    let memory = test.engine.ingest.memory();
    let mut sinks = Vec::new();
    for _ in 0..20 {
        let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&schema), 1 << 40);
        sink.push(&test.engine.loads, vec![block(&schema, 1000)]).await.expect("kept");
        sinks.push(sink);
    }
    assert_eq!(memory.in_flight(), 0, "small loads are not counted");
    for sink in sinks.iter_mut().take(3) {
        sink.push(&test.engine.loads, vec![block(&schema, 8 * MIB)]).await.expect("kept");
    }
    let writing = sinks.iter().filter(|sink| sink.writer.is_some()).count();
    assert!(memory.in_flight() >= 16 * MIB as u64, "{}", memory.in_flight());
    assert_eq!(writing, 1, "the third finds a quarter of the budget in use");
    drop(sinks);
    assert_eq!(memory.in_flight(), 0);
}

/// The load waits for its group or its commit then, which can take long.
#[tokio::test(flavor = "multi_thread")]
async fn a_sink_whose_rows_were_taken_holds_neither_memory_nor_the_right_to_write_files() {
    let test = TestEngine::open(|options| options.store.target_file_bytes = Live::new(1)).await;
    let table = test.table().await;
    let memory = test.engine.ingest.memory();
    let turns = test.engine.loads.file_turns.available_permits();
    let mut sink = with_a_file(&test, &table).await;
    assert_eq!(test.engine.loads.file_turns.available_permits(), turns - 1);
    assert!(sink.take_small().is_none());
    let rows = sink.take_files().await.expect("written");
    assert!(!rows.files().is_empty());
    assert_eq!(test.engine.loads.file_turns.available_permits(), turns, "others may write");
    assert_eq!(memory.in_flight(), 0);
    let schema = Arc::clone(&table.def().schema);
    let mut small = LoadSink::new(Arc::clone(&table), Arc::clone(&schema), MIB as u64);
    small.push(&test.engine.loads, vec![block(&schema, MIB / 2)]).await.expect("kept");
    assert!(memory.in_flight() > 0, "large enough to be counted");
    assert!(!small.take_small().expect("no file").is_empty());
    assert_eq!(memory.in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_share_what_one_load_may_hold_and_are_one_load_again_at_the_end() {
    let test = TestEngine::open(|_| ()).await;
    let table = test.table().await;
    let schema = Arc::clone(&table.def().schema);
    let push = async |sink: &mut LoadSink, bytes: usize| {
        sink.push(&test.engine.loads, vec![block(&schema, bytes)]).await.expect("kept");
    };
    // Few rows stay in memory, in the lanes' order.
    let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&schema), 4 * MIB as u64);
    let mut lanes = sink.lanes(2);
    for lane in &mut lanes {
        push(lane, MIB).await;
    }
    sink.join(&test.engine.loads, lanes).await.expect("kept");
    let rows = sink.take_small().expect("it fits into memory");
    assert_eq!((rows.blocks.len(), rows.files().len()), (2, 0));
    assert_ne!(test.engine.ingest.memory().in_flight(), 0, "rows own their memory");
    drop(rows);
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);

    // A lane writes files when it reaches its share; the rows of others go there at the end.
    let turns = test.engine.loads.file_turns.available_permits();
    let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&schema), 4 * MIB as u64);
    let mut lanes = sink.lanes(3);
    push(&mut lanes[0], 2 * MIB).await;
    push(&mut lanes[1], MIB).await;
    push(&mut lanes[2], 2 * MIB).await;
    let writing: Vec<bool> = lanes.iter().map(|lane| lane.writer.is_some()).collect();
    assert_eq!(writing, [true, false, true]);
    assert_eq!(test.engine.loads.file_turns.available_permits(), turns - 1, "one load takes one turn");
    sink.join(&test.engine.loads, lanes).await.expect("kept");
    assert!(sink.take_small().is_none());
    let rows = sink.take_files().await.expect("written");
    let expected =
        [2 * MIB, MIB, 2 * MIB].map(|bytes| block(&schema, bytes).row_count()).iter().sum::<usize>();
    assert_eq!((rows.rows as usize, rows.files().len()), (expected, 2));
    assert_eq!(test.data_files(), 2);
    assert_eq!(test.engine.loads.file_turns.available_permits(), turns);
    assert_eq!(test.engine.ingest.memory().in_flight(), 0);
    table.discard(rows.files()).await;

    // However they end, lanes leave nothing.
    let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&schema), MIB as u64);
    let mut lanes = sink.lanes(2);
    for lane in &mut lanes {
        push(lane, 40 * MIB).await;
        push(lane, 40 * MIB).await;
    }
    sink.join(&test.engine.loads, lanes).await.expect("kept");
    sink.abort().await;
    assert_eq!(test.data_files(), 0);
    assert_eq!(test.engine.loads.file_turns.available_permits(), turns);
}
