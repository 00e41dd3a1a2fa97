//! A snapshot as the server that writes a table sends it to one that reads it.
//!
//! Only what the receiver lacks is sent: of the data files the difference of two lists, and of the memtable the batches that are new.
//! Lists and batches never change, so both sides call them by numbers of the sender's.
//!
//! Invariant: the received snapshot is the sent one, or there is an error. Not here: when a snapshot is asked for, and how it travels.

use crate::ambient::new_uuid;
use crate::error::TableError;
use crate::file::{DataFile, Deletes, LiveFile, RowSet, rows_from_text, rows_to_text};
use crate::view::memtable::{MemPart, batch_bytes};
use crate::view::snapshot::Snapshot;
use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Instant;
use tributary_types::{Lsn, TableDef, TableId, Version};

/// The form of a head; servers with another one do not understand each other.
const FORMAT: u32 = 1;
/// Lists of data files that a sender remembers, for receivers that have one of them.
const LISTS_MAX: usize = 8;

/// The parts of a table's last snapshot that a receiver has, by the sender's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownParts {
    sender: String,
    list: u64,
    batches: Vec<u64>,
}

/// A snapshot on its way.
#[derive(Clone, Debug)]
pub struct SentSnapshot {
    /// Everything but the rows, as JSON.
    pub head: Bytes,
    /// The schema of the batches.
    pub schema: SchemaRef,
    /// The batches of the memtable that the receiver lacks, in their order. The rows may come in more and smaller ones.
    pub batches: Vec<RecordBatch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    sender: String,
    def: Arc<TableDef>,
    version: Version,
    delta_version: i64,
    list: u64,
    /// The list from which `files` and `gone` differ. `None`: `files` are all.
    base: Option<u64>,
    files: Vec<SentFile>,
    /// Paths of files of `base` that the snapshot does not have.
    gone: Vec<String>,
    parts: Vec<SentPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentFile {
    file: DataFile,
    deleted: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentPart {
    batch: u64,
    /// Whether the batch comes with the head.
    is_sent: bool,
    version: Version,
    rows: u64,
    superseded: Option<String>,
    deletions: Option<String>,
}

/// The numbers by which a server sends the snapshots of one table.
#[derive(Debug)]
pub(crate) struct SnapshotSender {
    /// Numbers of another one mean nothing here.
    name: String,
    next: u64,
    /// The last ones, oldest first.
    lists: VecDeque<(u64, Arc<Vec<LiveFile>>)>,
    /// Those of the last snapshot, by their columns, which are not kept alive.
    batches: Vec<(u64, Vec<Weak<dyn Array>>)>,
}

impl SnapshotSender {
    pub(crate) fn new() -> Self {
        Self { name: new_uuid().to_string(), next: 1, lists: VecDeque::new(), batches: Vec::new() }
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The parts of a snapshot that a receiver lacks who knows these.
    ///
    /// # Errors
    /// [`TableError::Answer`]: it has no form in JSON.
    pub(crate) fn send(
        &mut self,
        snapshot: &Snapshot,
        known: Option<&KnownParts>,
    ) -> Result<SentSnapshot, TableError> {
        let known = known.filter(|known| known.sender == self.name);
        let base = known.and_then(|known| self.lists.iter().find(|(number, _)| *number == known.list));
        let base = base.cloned();
        let (files, gone) = match &base {
            Some((_, before)) => difference(before, &snapshot.files),
            None => (snapshot.files.iter().collect(), Vec::new()),
        };
        let files = files.into_iter().map(|live| SentFile {
            file: live.file.as_ref().clone(),
            deleted: live.deletes.as_ref().map(|deletes| deletes.rows()).map(rows_to_text),
        });
        let files = files.collect();
        let list = self.number_of_list(&snapshot.files);
        let mut batches = Vec::new();
        let mut numbered = Vec::with_capacity(snapshot.memtable.len());
        let mut parts = Vec::with_capacity(snapshot.memtable.len());
        for part in &snapshot.memtable {
            let batch = self.number_of_batch(&part.batch);
            let is_sent = !known.is_some_and(|known| known.batches.contains(&batch));
            // On the way, batches without rows get lost.
            if is_sent && part.batch.num_rows() > 0 {
                batches.push(part.batch.clone());
            }
            numbered.push((batch, part.batch.columns().iter().map(Arc::downgrade).collect()));
            parts.push(SentPart {
                batch,
                is_sent,
                version: part.version,
                rows: part.batch.num_rows() as u64,
                superseded: part.superseded.as_deref().map(rows_to_text),
                deletions: part.deletions.as_deref().map(rows_to_text),
            });
        }
        self.batches = numbered;
        let head = Head {
            format: FORMAT,
            sender: self.name.clone(),
            def: Arc::clone(&snapshot.def),
            version: snapshot.version,
            delta_version: snapshot.delta_version,
            list,
            base: base.map(|(number, _)| number),
            files,
            gone,
            parts,
        };
        let head =
            serde_json::to_vec(&head).map_err(|error| TableError::Answer { reason: error.to_string() })?;
        Ok(SentSnapshot { head: head.into(), schema: Arc::clone(&snapshot.schema), batches })
    }

    fn number_of_list(&mut self, files: &Arc<Vec<LiveFile>>) -> u64 {
        if let Some((number, _)) = self.lists.iter().find(|(_, list)| Arc::ptr_eq(list, files)) {
            return *number;
        }
        let number = self.next();
        if self.lists.len() == LISTS_MAX {
            self.lists.pop_front();
        }
        self.lists.push_back((number, Arc::clone(files)));
        number
    }

    fn number_of_batch(&mut self, batch: &RecordBatch) -> u64 {
        // A weak reference keeps the address from being used again.
        let is_same = |columns: &[Weak<dyn Array>]| {
            let mut pairs = columns.iter().zip(batch.columns());
            columns.len() == batch.num_columns()
                && pairs.all(|(known, column)| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(column)))
        };
        let known = self.batches.iter().find(|(_, columns)| is_same(columns)).map(|(number, _)| *number);
        known.unwrap_or_else(|| self.next())
    }
}

/// The files of a list that another one does not have in this state, and the paths that only that one has.
fn difference<'a>(
    before: &Arc<Vec<LiveFile>>,
    after: &'a Arc<Vec<LiveFile>>,
) -> (Vec<&'a LiveFile>, Vec<String>) {
    if Arc::ptr_eq(before, after) {
        return (Vec::new(), Vec::new());
    }
    let mut known: HashMap<&str, &LiveFile> = before.iter().map(|live| (live.path(), live)).collect();
    let mut is_new = |live: &&LiveFile| {
        let before = known.remove(live.path());
        !before.is_some_and(|before| {
            before.deletes == live.deletes
                && (Arc::ptr_eq(&before.file, &live.file) || before.file == live.file)
        })
    };
    let files = after.iter().filter(|live| is_new(live)).collect();
    let mut gone: Vec<String> = known.into_keys().map(str::to_owned).collect();
    gone.sort_unstable();
    (files, gone)
}

/// A snapshot that was received, and what it consists of.
#[derive(Debug)]
pub(crate) struct ReceivedSnapshot {
    pub snapshot: Arc<Snapshot>,
    sender: String,
    list: u64,
    /// The numbers of the memtable's batches, in its order.
    batches: Vec<u64>,
}

impl ReceivedSnapshot {
    /// The parts that need not be sent again.
    pub(crate) fn known(&self) -> KnownParts {
        KnownParts { sender: self.sender.clone(), list: self.list, batches: self.batches.clone() }
    }

    /// Whether everything that the table's log has in this state is in the snapshot.
    pub(crate) fn is_as_new_as(&self, logged: &Snapshot) -> bool {
        let version = |snapshot: &Snapshot| (snapshot.version, snapshot.delta_version);
        version(&self.snapshot) >= version(logged)
    }

    /// Puts a snapshot of a table together from the parts that were sent and those of the snapshot before.
    ///
    /// # Errors
    /// [`TableError::Answer`]: parts are missing, or not as the head says.
    pub(crate) fn receive(
        before: Option<&Self>,
        id: TableId,
        sent: &SentSnapshot,
    ) -> Result<Self, TableError> {
        let wrong = |what: String| TableError::Answer { reason: what };
        let head: Head = serde_json::from_slice(&sent.head).map_err(|error| wrong(error.to_string()))?;
        if head.format != FORMAT {
            return Err(wrong(format!("its form is {}, and {FORMAT} is known", head.format)));
        }
        if head.def.id != id {
            return Err(wrong(format!("it is of table {} instead of {id}", head.def.id)));
        }
        let before = before.filter(|before| before.sender == head.sender);
        let files = received_files(before, &head)?;
        let schema = head.def.schema.arrow();
        let mut rows = Rows::new(&sent.batches, &schema)?;
        let mut memtable = Vec::with_capacity(head.parts.len());
        let batches = head.parts.iter().map(|part| part.batch).collect();
        for part in head.parts {
            let batch = match part.is_sent {
                true => rows.take(part.rows)?,
                false => before
                    .and_then(|before| before.batch(part.batch))
                    .filter(|batch| batch.schema_ref() == &schema)
                    .ok_or_else(|| wrong(format!("batch {} is not known here", part.batch)))?,
            };
            if batch.num_rows() as u64 != part.rows {
                return Err(wrong(format!(
                    "batch {} has {} rows instead of {}",
                    part.batch,
                    batch.num_rows(),
                    part.rows
                )));
            }
            memtable.push(Arc::new(MemPart {
                version: part.version,
                bytes: batch_bytes(&batch),
                batch,
                lsn: Lsn(0),
                since: Instant::now(),
                first_row: 0,
                superseded: rows_of(part.superseded.as_deref(), part.rows)?,
                deletions: rows_of(part.deletions.as_deref(), part.rows)?,
                is_settled: true,
            }));
        }
        rows.end()?;
        let snapshot = Snapshot {
            def: head.def,
            schema,
            version: head.version,
            files,
            memtable,
            delta_version: head.delta_version,
        };
        Ok(Self { snapshot: Arc::new(snapshot), sender: head.sender, list: head.list, batches })
    }

    fn batch(&self, number: u64) -> Option<RecordBatch> {
        let place = self.batches.iter().position(|known| *known == number)?;
        Some(self.snapshot.memtable[place].batch.clone())
    }
}

fn received_files(before: Option<&ReceivedSnapshot>, head: &Head) -> Result<Arc<Vec<LiveFile>>, TableError> {
    let base = match head.base {
        None => None,
        Some(number) => match before.filter(|before| before.list == number) {
            Some(before) => Some(&before.snapshot.files),
            None => return Err(TableError::Answer { reason: format!("list {number} is not known here") }),
        },
    };
    if let Some(base) = base.filter(|_| head.files.is_empty() && head.gone.is_empty()) {
        return Ok(Arc::clone(base));
    }
    let mut files = Vec::with_capacity(head.files.len());
    for SentFile { file, deleted } in &head.files {
        let deleted = rows_of(deleted.as_deref(), file.rows)?;
        let live = LiveFile::from(file.clone());
        files.push(live.with_deletes(deleted.map(|rows| Arc::new(Deletes::unlogged(rows.as_ref().clone())))));
    }
    let replaced = head.files.iter().map(|sent| sent.file.path.as_str());
    let left: HashSet<&str> = replaced.chain(head.gone.iter().map(String::as_str)).collect();
    let kept = base.into_iter().flat_map(|base| base.iter()).filter(|live| !left.contains(live.path()));
    let all: Vec<LiveFile> = kept.cloned().chain(files).collect();
    Ok(Arc::new(all))
}

/// Rows as they came, to be taken in the lengths that the head says.
struct Rows<'a> {
    schema: SchemaRef,
    batches: std::slice::Iter<'a, RecordBatch>,
}

impl<'a> Rows<'a> {
    fn new(batches: &'a [RecordBatch], schema: &SchemaRef) -> Result<Self, TableError> {
        let is_other = |batch: &&RecordBatch| {
            let columns = batch.schema_ref().fields().iter().zip(schema.fields());
            batch.num_columns() != schema.fields().len()
                || columns.into_iter().any(|(came, known)| came.data_type() != known.data_type())
        };
        match batches.iter().find(is_other) {
            Some(batch) => {
                let reason = format!("its rows have other columns than the table: {}", batch.schema_ref());
                Err(TableError::Answer { reason })
            }
            None => Ok(Self { schema: Arc::clone(schema), batches: batches.iter() }),
        }
    }

    fn take(&mut self, count: u64) -> Result<RecordBatch, TableError> {
        let mut taken = Vec::new();
        let mut rows = 0;
        while rows < count {
            let Some(batch) = self.batches.next() else { break };
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batch = RecordBatch::try_new_with_options(
                Arc::clone(&self.schema),
                batch.columns().to_vec(),
                &options,
            );
            let batch = batch.map_err(|error| TableError::Answer { reason: error.to_string() })?;
            rows += batch.num_rows() as u64;
            taken.push(batch);
        }
        match taken.as_slice() {
            [] => Ok(RecordBatch::new_empty(Arc::clone(&self.schema))),
            [batch] => Ok(batch.clone()),
            batches => arrow::compute::concat_batches(&self.schema, batches)
                .map_err(TableError::arrow("putting the rows of an answer together")),
        }
    }

    fn end(mut self) -> Result<(), TableError> {
        match self.batches.next() {
            None => Ok(()),
            Some(_) => Err(TableError::Answer { reason: "it has more rows than it says".to_owned() }),
        }
    }
}

/// Rows of a file or a batch that has that many.
fn rows_of(text: Option<&str>, count: u64) -> Result<Option<Arc<RowSet>>, TableError> {
    let Some(text) = text else { return Ok(None) };
    let rows = rows_from_text(text).map_err(|reason| TableError::Answer { reason })?;
    match rows.max() {
        Some(last) if last >= count => {
            Err(TableError::Answer { reason: format!("row {last} is named of {count}") })
        }
        _ => Ok(Some(Arc::new(rows))),
    }
}
