//! Heavy schema changes beside loads: columns get wider types, or the keys another order. They are interrupted by crashes at
//! every write and cancelled half way.
//!
//! Added columns are INTs whose values identify their rows; they become BIGINTs and LARGEINTs. The values read back must be the
//! values sent, in any schema.

use crate::clients::group_load;
use crate::dice::Dice;
use crate::model::Kind;
use crate::partial::is_partial;
use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Mutex;
use tributary_ddl::{Change, Columns, Effect, Failed, run};
use tributary_ingest::{Halt, Switched};
use tributary_table::{SchemaChange, Table};
use tributary_types::{Aggregation, ColumnDef, DataType, SchemaVersion, SourceId, TableDef, TableSchema};

/// How often a change is tried that something is in the way of.
const TRIES_MAX: u64 = 12;

/// The table after some heavy change. `None`: there is nothing to change in this one.
pub(crate) fn target(old: &TableDef, dice: &mut Dice) -> Option<TableDef> {
    if is_partial(&old.schema) {
        // Their texts state the expected values.
        return None;
    }
    let mut schema = TableSchema::clone(&old.schema);
    let wider = schema.columns.iter_mut().filter(|column| column.name.starts_with('c')).find_map(|column| {
        let to = match column.data_type {
            DataType::Int => DataType::BigInt,
            DataType::BigInt => DataType::LargeInt,
            _ => return None,
        };
        column.data_type = to;
        Some(())
    });
    let reorders = old.keys.keeps_all_rows() && (wider.is_none() || dice.one_in(3));
    if reorders {
        // The text becomes the first key, or stops being a key: rows are in another order.
        let place = schema.index_of("text")?;
        let mut text = schema.columns.remove(place);
        text.is_key = !text.is_key;
        let place = usize::from(!text.is_key);
        schema.columns.insert(place, text);
    }
    if wider.is_none() && !reorders {
        return None;
    }
    schema.version = SchemaVersion(schema.version.0 + 1);
    Some(TableDef { schema: Arc::new(schema), ..old.clone() })
}

/// Whether a table is changed often; it has a column for that from the beginning.
#[must_use]
pub fn is_often_changed(def: &TableDef) -> bool {
    def.id.0 * 59 % 100 < 40 && !is_partial(&def.schema)
}

/// The table with a column whose type can change.
#[must_use]
pub fn with_number(def: &TableDef) -> Arc<TableDef> {
    let mut schema = TableSchema::clone(&def.schema);
    let id = schema.next_column_id;
    let mut column = ColumnDef::new(id.0, &format!("c{id}"), DataType::Int);
    column.aggregation = def.keys.is_aggregate().then_some(Aggregation::Max);
    schema.columns.insert(schema.visible_count(), column);
    schema.next_column_id = id.next();
    Arc::new(TableDef { schema: Arc::new(schema), ..def.clone() })
}

/// Begins a change of the table and carries it out, if it may.
pub async fn change(world: &Rc<World>, table: &Arc<Table>) {
    let (id, to) = {
        let changing = Rc::clone(&world.changing);
        let Ok(_changing) = changing.try_lock() else { return };
        let old = table.def();
        if table.is_changing() || world.hardware.catalog.is_changing(table.id()) {
            return;
        }
        let Some(to) = world.throw(|dice| target(&old, dice)) else { return };
        let to = Arc::new(to);
        let id = world.hardware.catalog.next_change();
        let job = Change { id, table: table.id(), effect: Effect::Columns(Arc::clone(&to)) };
        if world.hardware.catalog.put_job(&job).is_err() {
            return;
        }
        note!(world.trace, "change", table.id().0, id.0, "change {id} of table {} begins", table.id());
        (id, to)
    };
    if world.plan.changes_often && world.throw(|dice| dice.one_in(2)) {
        // It may make a partition, which the change has not seen when it began.
        group_load(world, table, Kind::Sync).await;
        if !world.is_alive() {
            return;
        }
    }
    let halt = Arc::new(Halt::default());
    if world.throw(|dice| dice.one_in(5)) {
        let (world, halt) = (Rc::clone(world), Arc::clone(&halt));
        world.clone().machine.spawn_local(async move {
            world.think(20_000).await;
            halt.ask();
        });
    }
    let is_changed = carry_out(world, table, id, to, &halt).await;
    if !world.is_alive() {
        return;
    }
    note!(world.trace, "changed", table.id().0, id.0, "change {id} of table {}: {is_changed}", table.id());
    if is_changed {
        world.count(|counts| counts.heavy_changes += 1);
    }
    if !is_changed {
        drop(world.hardware.catalog.end_job(id));
    }
}

async fn carry_out(
    world: &Rc<World>,
    table: &Arc<Table>,
    id: SourceId,
    to: Arc<TableDef>,
    halt: &Arc<Halt>,
) -> bool {
    let process = world.process();
    let Ok(mut change) = process.ingest.begin_schema_change(table, id.0, to).await else { return false };
    for _ in 0..TRIES_MAX {
        match convert_and_switch(world, table, &mut change, halt).await {
            Ok(Switched::Yes(_)) => return true,
            Ok(Switched::NotYet) => process.ingest.pause().await,
            Err(error) => {
                note!(world.trace, "unchanged", table.id().0, id.0, "change {id}: {error:?}");
                break;
            }
        }
    }
    if world.is_alive() {
        table.abandon(change).await;
    }
    false
}

async fn convert_and_switch(
    world: &Rc<World>,
    table: &Arc<Table>,
    change: &mut SchemaChange,
    halt: &Arc<Halt>,
) -> Result<Switched, Failed> {
    let ingest = Arc::clone(&world.process().ingest);
    ingest.convert(table, change, halt).await.map_err(Failed::Table)?;
    let changing = Rc::clone(&world.changing);
    let _changing = changing.lock().await;
    let id = SourceId(change.id());
    let effect = Effect::Columns(Arc::new(change.result(&table.def())));
    let job = Change { id, table: table.id(), effect };
    let subject = Columns { ingest: &ingest, table, change: Mutex::new(change) };
    run(&world.hardware.catalog, &subject, job, halt, &|| false).await
}
