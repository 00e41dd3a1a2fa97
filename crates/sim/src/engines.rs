//! Another engine, which commits to the tables' Delta logs while loads go on, and while the server is away.
//!
//! It knows the Delta protocol and nothing of this server: it reads the newest version of a log, writes a file, and puts an entry under
//! the next version, unless another entry has it. So it appends rows, and removes whole files. An entry of it whose write was answered is
//! durable; the server shows what it did as soon as its snapshot says that it has the entry's version, and after each start.
//!
//! In tables with partitions it puts rows of several into one file, while no server runs.
//!
//! Its rows are in tables that retain all rows and have no partitions. A truncation that no log has yet takes rows with it that an engine
//! commits before the entry of the truncation. So nothing is promised of its rows in a table that was truncated once.

use crate::clients::row_count;
use crate::deletes::DeletionId;
use crate::model::{Kind, LoadId};
use crate::process::{follower, process_options};
use crate::rows::{self, batch_of};
use crate::temporary::is_beside;
use crate::trace::note;
use crate::world::World;
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema, SchemaRef};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use std::rc::Rc;
use std::sync::Arc;
use tributary_table::Table;
use tributary_types::host::Host;
use tributary_types::{Partitioning, TableDef, TableId};

/// The time from one commit of the engine to the next, at most, in µs.
const AFTER_US: [u64; 3] = [300, 3_000, 20_000];
/// Commits in one life of the server, at most.
const COMMITS_MAX: u64 = 8;
/// Versions that the engine tries in a row.
const TRIES_MAX: u32 = 4;

/// An entry of the engine that the server may not have taken in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    table: TableId,
    version: i64,
    did: Did,
}

#[derive(Clone, Copy, Debug)]
enum Did {
    Append(LoadId),
    Remove(DeletionId),
}

/// How a write of an entry ended.
enum Put {
    /// It is in the log.
    Done,
    /// Another entry has the version.
    Taken,
    Unknown,
}

/// Commits now and then, until the server's clients are done.
pub async fn engine(world: Rc<World>) {
    for _ in 0..world.throw(|dice| dice.between(1, COMMITS_MAX)) {
        let within_us = world.throw(|dice| dice.pick(&AFTER_US));
        world.think(within_us).await;
        if !world.is_alive() || world.busy.get() == 0 || world.violation.borrow().is_some() {
            return;
        }
        commit(&world).await;
    }
}

/// Commits while no server runs, sometimes.
pub async fn while_away(world: Rc<World>) {
    if world.plan.rewrites {
        rewrite_some(&world).await;
        return;
    }
    for _ in 0..world.throw(|dice| dice.below(3)) {
        commit(&world).await;
    }
}

/// Tells the model what the snapshot of a table has of the engine's entries by now.
pub fn taken_in(world: &World, table: &Table) {
    let (id, version) = (table.id(), table.snapshot().delta_version);
    are_in(world, |entry| entry.table == id && entry.version <= version);
}

/// Tells the model that a start has taken in all entries.
pub fn recovered(world: &World) {
    are_in(world, |_| true);
}

fn are_in(world: &World, is_in: impl Fn(&Entry) -> bool) {
    let mut model = world.model.borrow_mut();
    for entry in world.entries.borrow_mut().extract_if(.., |entry| is_in(entry)) {
        match entry.did {
            Did::Append(load) => model.synced(&[load]),
            Did::Remove(deletion) => model.deleted(deletion),
        }
    }
}

async fn commit(world: &Rc<World>) {
    let tables = world.hardware.catalog.tables().into_iter().filter(|def| takes_part(def));
    let tables: Vec<Arc<TableDef>> = tables.collect();
    if tables.is_empty() {
        return;
    }
    let def = world.throw(|dice| dice.pick(&tables.iter().collect::<Vec<_>>()).to_owned());
    match world.throw(|dice| dice.one_in(3)) {
        true => remove(world, &def).await,
        false => append(world, &def).await,
    }
}

fn takes_part(def: &TableDef) -> bool {
    def.keys.keeps_all_rows() && matches!(def.partitioning, Partitioning::None) && !is_beside(def)
}

/// Appends rows: a file, and an entry that names it.
async fn append(world: &Rc<World>, def: &Arc<TableDef>) {
    let rows = row_count(world);
    let id = world.model.borrow_mut().begin(def.id, Kind::Foreign, rows, None);
    note!(world.trace, "engine", id, rows, "load {id} of {rows} rows by an engine into table {}", def.id);
    let name = format!("engine-{id}.parquet");
    let bytes = file_of(def, id, rows);
    let size = bytes.len();
    let stored = world.hardware.store.put(&below(def, &name), PutPayload::from(bytes)).await;
    let mut put = stored.is_err().then_some(Put::Taken);
    for _ in 0..TRIES_MAX {
        if matches!(put, Some(Put::Done | Put::Unknown)) || stored.is_err() {
            break;
        }
        let Some(table) = newest(world, def).await else { break };
        let version = table.snapshot().delta_version + 1;
        let counts = world.throw(|dice| dice.one_in(2));
        let stats = counts.then(|| json!({ "numRecords": rows }).to_string());
        let add = json!({ "add": {
            "path": name, "partitionValues": {}, "size": size, "modificationTime": world.machine.unix_ms(),
            "dataChange": true, "stats": stats,
        }});
        let tried = put_entry(world, def, version, "WRITE", &format!("load {id}"), &[add]).await;
        if matches!(tried, Put::Done) {
            world.entries.borrow_mut().push(Entry { table: def.id, version, did: Did::Append(id) });
        }
        put = Some(tried);
    }
    if !world.is_alive() {
        return;
    }
    match put {
        Some(Put::Done) => {
            world.count(|counts| counts.foreign += 1);
            world.model.borrow_mut().appended(id);
        }
        Some(Put::Unknown) => world.model.borrow_mut().unanswered(id),
        // No entry names its file.
        Some(Put::Taken) | None => {
            let checked = world.model.borrow_mut().refused(id);
            world.check(checked);
        }
    }
}

/// Removes a file whose rows everybody sees.
async fn remove(world: &Rc<World>, def: &Arc<TableDef>) {
    let Some(table) = newest(world, def).await else { return };
    let snapshot = table.snapshot();
    let whole: Vec<_> = snapshot.files.iter().filter(|live| live.deletes.is_none()).collect();
    if whole.is_empty() {
        return;
    }
    let live = world.throw(|dice| dice.pick(&whole));
    let (store, cache) = (&world.hardware.store, &world.cache);
    let Ok(rows) = rows::of_file(&table, &snapshot, live, store, cache).await else { return };
    if !world.is_alive() {
        return;
    }
    let Some(deletion) = world.model.borrow_mut().removal_begins(def.id, &rows) else { return };
    let version = snapshot.delta_version + 1;
    note!(world.trace, "engine", deletion, version, "removes {} of table {}: {rows:?}", live.path(), def.id);
    let remove = json!({ "remove": {
        "path": live.path(), "deletionTimestamp": world.machine.unix_ms(), "dataChange": true,
        "extendedFileMetadata": true, "partitionValues": {}, "size": live.size_bytes(),
    }});
    let put = put_entry(world, def, version, "DELETE", &format!("deletion {deletion}"), &[remove]).await;
    if matches!(put, Put::Done) {
        world.entries.borrow_mut().push(Entry { table: def.id, version, did: Did::Remove(deletion) });
        world.count(|counts| counts.foreign_removals += 1);
    }
}

async fn rewrite_some(world: &Rc<World>) {
    let is_rewritten = |def: &Arc<TableDef>| {
        def.keys.keeps_all_rows() && def.partitioning.partitions().is_some() && !is_beside(def)
    };
    for def in world.hardware.catalog.tables().into_iter().filter(is_rewritten) {
        // In any case where a partition is being dropped.
        if def.drop_mark.is_some() || !world.throw(|dice| dice.one_in(3)) {
            rewrite(world, &def).await;
        }
    }
}

/// Puts the rows of all files into one, whatever partitions they are of, as OPTIMIZE does. Nobody may see the table meanwhile: queries
/// would be shown rows of a partition that is being dropped, until the file is divided.
async fn rewrite(world: &Rc<World>, def: &Arc<TableDef>) {
    let whole = TableDef { partitioning: Partitioning::None, drop_mark: None, ..TableDef::clone(def) };
    let Some(table) = newest(world, &Arc::new(whole)).await else { return };
    let snapshot = table.snapshot();
    let (mut rows, mut actions) = (Vec::new(), Vec::new());
    for live in snapshot.files.iter().filter(|live| live.deletes.is_none()) {
        let Some(read) = rows_of(world, &below(def, live.path())).await else { return };
        if rows.first().is_some_and(|first: &RecordBatch| first.schema() != read.schema()) {
            continue;
        }
        rows.push(read);
        actions.push(json!({ "remove": {
            "path": live.path(), "deletionTimestamp": world.machine.unix_ms(), "dataChange": false,
            "extendedFileMetadata": true, "partitionValues": {}, "size": live.size_bytes(),
        }}));
    }
    let Some(first) = rows.first() else { return };
    let all = concat_batches(&first.schema(), &rows).expect("the batches have one schema");
    let version = snapshot.delta_version + 1;
    let name = format!("engine-rewrites-{version}.parquet");
    let bytes = written_as(all.schema(), &all);
    let (count, size) = (all.num_rows(), bytes.len());
    if world.hardware.store.put(&below(def, &name), PutPayload::from(bytes)).await.is_err() {
        return;
    }
    actions.push(json!({ "add": {
        "path": name, "partitionValues": {}, "size": size, "modificationTime": world.machine.unix_ms(),
        "dataChange": false, "stats": json!({ "numRecords": count }).to_string(),
    }}));
    note!(
        world.trace,
        "rewrites",
        def.id.0,
        version,
        "an engine puts {} files of table {} into one",
        rows.len(),
        def.id
    );
    let put = put_entry(world, def, version, "OPTIMIZE", &format!("rewriting {version}"), &actions).await;
    world.count(|counts| counts.foreign_rewrites += u64::from(matches!(put, Put::Done)));
}

/// All rows of a data file, with the columns that it has.
async fn rows_of(world: &World, path: &Path) -> Option<RecordBatch> {
    let bytes = world.hardware.store.get(path).await.ok()?.bytes().await.ok()?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).ok()?.build().ok()?;
    let schema = reader.schema();
    let batches: Result<Vec<RecordBatch>, _> = reader.collect();
    concat_batches(&schema, &batches.ok()?).ok()
}

/// The table as its log has it now.
async fn newest(world: &World, def: &Arc<TableDef>) -> Option<Arc<Table>> {
    let store = follower(&world.hardware, process_options(&world.hardware, &world.plan)).ok()?;
    store.open(def).await.ok()
}

fn below(def: &TableDef, name: &str) -> Path {
    Path::from(format!("{}/{name}", def.location))
}

/// Puts an entry with these actions under a version. `mark` is in no other entry.
async fn put_entry(
    world: &World,
    def: &TableDef,
    version: i64,
    operation: &str,
    mark: &str,
    actions: &[Value],
) -> Put {
    let info = json!({ "commitInfo": {
        "timestamp": world.machine.unix_ms(), "operation": operation, "operationParameters": {},
        "engineInfo": format!("another engine, {mark}."),
    }});
    let lines = std::iter::once(&info).chain(actions);
    let entry: String = lines.map(|line| format!("{line}\n")).collect();
    let path = below(def, &format!("_delta_log/{version:020}.json"));
    let store = &world.hardware.store;
    let put =
        store.put_opts(&path, PutPayload::from(entry.clone().into_bytes()), PutMode::Create.into()).await;
    let put = match put {
        Ok(_) => Put::Done,
        // The answer to the first of two tries may be lost.
        Err(Error::AlreadyExists { .. }) => match written(world, &path).await {
            Some(found) if found == entry.as_bytes() => Put::Done,
            Some(_) => Put::Taken,
            None => Put::Unknown,
        },
        Err(_) => Put::Unknown,
    };
    let outcome = match put {
        Put::Done => "is in the log",
        Put::Taken => "is another's",
        Put::Unknown => "is in doubt",
    };
    note!(world.trace, "entry", version, def.id.0, "of an engine, {mark}: version {version} {outcome}");
    put
}

async fn written(world: &World, path: &Path) -> Option<Vec<u8>> {
    let got = world.hardware.store.get(path).await.ok()?;
    Some(got.bytes().await.ok()?.to_vec())
}

/// A data file with the rows of a load. It has the columns that every table has, as an engine may leave out others.
fn file_of(def: &TableDef, load: LoadId, rows: u64) -> Vec<u8> {
    let batch = batch_of(&def.schema, false, load, rows);
    let columns =
        def.schema.columns.iter().enumerate().filter(|(_, def)| ["id", "text"].contains(&def.name.as_str()));
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (place, column) in columns {
        let field: Field = batch.schema().field(place).clone();
        fields.push(field.with_name(&column.physical_name));
        arrays.push(Arc::clone(batch.column(place)));
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("the columns are the batch's");
    written_as(schema, &batch)
}

fn written_as(schema: SchemaRef, batch: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).expect("the columns have plain types");
    writer.write(batch).expect("memory takes it");
    writer.into_inner().expect("memory takes it")
}
