use super::*;
use crate::group::build::ToBuild;
use crate::load::LOAD_OVERHEAD_BYTES;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use tributary_decode::BlockBuilder;
use tributary_types::{ColumnDef, DataType, SchemaVersion, TableSchema};

fn group() -> Group {
    Group::new(TxnId(1), Label::of_group(1), 0, Lsn(0))
}

fn schema(columns: usize) -> Arc<TableSchema> {
    let column = |number| ColumnDef::new(number, &format!("c{number}"), DataType::BigInt);
    Arc::new(TableSchema::new(SchemaVersion(1), (1..=columns as u32).map(column).collect()))
}

/// A load of one row whose only column holds its number in the group.
fn numbered(schema: &Arc<TableSchema>, load: u32, rows: usize) -> LoadRows {
    let mut builder = BlockBuilder::new(schema);
    for _ in 0..rows {
        builder.push_i64(0, load.into());
        builder.finish_row();
    }
    LoadRows::of_blocks(Arc::clone(schema), vec![builder.finish().unwrap()])
}

/// The numbers of the loads in the order in which their rows would be published, each once.
fn published(group: &Group, schema: &Arc<TableSchema>) -> Vec<i64> {
    let built = ToBuild::of_group(group).unwrap().build(Arc::clone(schema), 0).unwrap();
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut loads: Vec<i64> = built.batches.iter().flat_map(of).collect();
    loads.dedup();
    loads
}

fn row(schema: &Arc<TableSchema>) -> LoadRows {
    let mut builder = BlockBuilder::new(schema);
    (0..schema.columns.len()).for_each(|column| builder.push_null(column));
    builder.finish_row();
    LoadRows::of_blocks(Arc::clone(schema), vec![builder.finish().unwrap()])
}

/// Async loads that the log has received, and has answered except for the last few.
fn fill(group: &mut Group, schema: &Arc<TableSchema>, unanswered: u32) {
    for _ in 0..GATHERED_LOADS {
        group.add(row(schema), true, true);
        group.appends.submitted();
    }
    (0..group.next_load - unanswered).for_each(|load| group.appends.done(load, Ok(())));
}

#[test]
fn durable_loads_are_gathered_and_the_group_is_not_answered_before_they_are_built() {
    let (mut group, schema) = (group(), schema(2));
    fill(&mut group, &schema, 10);
    let (rows, bytes, memory) = (group.rows, group.bytes, group.memory_bytes);
    let gathering = group.gather().unwrap();
    assert_eq!((group.members.len(), group.loads()), (10, GATHERED_LOADS as usize));
    assert!(group.members.iter().map(|member| member.load).eq(group.next_load - 10..group.next_load));
    assert_eq!((group.rows, group.bytes), (rows, bytes));
    assert_eq!(group.memory_bytes, memory - gathering.spared_bytes());
    assert!(group.is_acknowledged() && group.gather().is_none());
    (group.next_load - 10..group.next_load).for_each(|load| group.appends.done(load, Ok(())));
    assert!(!group.appends.is_answered());
    let runs = gathering.build(&schema, 0);
    gathering.done(runs);
    assert!(group.appends.is_answered());
    for _ in 0..2 {
        // Again, as after a commit that found no space.
        let built = ToBuild::of_group(&group).unwrap().build(Arc::clone(&schema), 0).unwrap();
        assert_eq!(built.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), rows);
    }
}

#[test]
fn nothing_is_gathered_after_a_load_has_failed() {
    let (mut group, schema) = (group(), schema(2));
    fill(&mut group, &schema, 10);
    group.appends.done(group.next_load - 10, Err(IngestError::ShuttingDown));
    assert!(group.gather().is_none());
}

#[test]
fn rows_that_need_more_as_columns_stay_as_they_came() {
    let (mut group, schema) = (group(), schema(LOAD_OVERHEAD_BYTES as usize / 8 + 1));
    fill(&mut group, &schema, 0);
    let memory = group.memory_bytes;
    assert!(group.gather().is_none());
    assert_eq!(group.memory_bytes, memory);
    assert_eq!(group.members.len(), GATHERED_LOADS as usize);
}

#[test]
fn a_gathering_that_is_given_up_fails_its_group_and_does_not_hang_it() {
    let (mut group, schema) = (group(), schema(2));
    fill(&mut group, &schema, 0);
    drop(group.gather().unwrap());
    assert!(group.appends.is_answered());
    assert!(matches!(ToBuild::of_group(&group), Err(IngestError::Bug(_))));
}

#[test]
fn rows_are_published_in_the_order_of_the_log_also_those_that_were_gathered() {
    let (mut group, schema) = (group(), schema(1));
    // Large loads stay as they are, in their places; of two small ones between them it is not worth it.
    let is_large = |load: u32| load.is_multiple_of(500) || (700..704).contains(&load);
    let (mut logged, mut held) = (Vec::new(), Vec::new());
    let mut gatherings = Vec::new();
    for load in 0..3 * GATHERED_LOADS as u32 {
        let is_held = load % 7 == 3;
        group.add(numbered(&schema, load, if is_large(load) { 100 } else { 1 }), !is_held, !is_held);
        if is_held {
            held.push(i64::from(load));
            continue;
        }
        logged.push(i64::from(load));
        group.appends.submitted();
        group.appends.done(load, Ok(()));
        gatherings.extend(group.gather());
    }
    assert!(gatherings.len() > 1 && group.gathered_loads > 4000, "{} gathered", group.gathered_loads);
    // Later ones may end earlier.
    for gathering in gatherings.into_iter().rev() {
        let runs = gathering.build(&schema, 0);
        gathering.done(runs);
    }
    let expected: Vec<i64> = logged.into_iter().chain(held).collect();
    assert_eq!(published(&group, &schema), expected);
    assert_eq!(published(&group, &schema), expected, "again, as after a commit that found no space");
}
