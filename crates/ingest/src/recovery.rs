//! Rebuilds tables and transactions from the log.
//!
//! A commit whose version the table's Delta log already has is skipped (that makes replay idempotent); later ones are published
//! in the order of their versions. Rows of acknowledged async loads whose group has no commit record get one now. Prepared
//! two-phase loads wait again. Everything else without a commit never happened.

pub mod account;
pub mod inspect;
pub mod record;

use crate::error::IngestError;
use crate::error::wal_error;
use crate::group::Group;
use crate::group::columns::columns;
use crate::keys::AnsweredAs;
use crate::keys::record::Kept;
use crate::load::LoadRows;
use crate::load::facts::LoadFacts;
use crate::maintenance::wal_space::WalSpace;
use crate::options::{IngestOptions, SchemaHistory};
use crate::queue::{Core, OwnTransaction, TableQueue, recovered_appends, recovered_member};
use crate::recovery::record::{
    AbortBody, Body, CommitBody, CutBody, PrepareBody, RejectedBody, TruncateBody, kind,
};
use crate::rejects::{HeldRejects, RejectedLoad};
use crate::transactions::prepared::{Prepared, PreparedLoads};
use crate::transactions::{NewTransaction, TransactionInfo};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tributary_decode::Block;
use tributary_table::{Publication, Table, TableError, UnpublishedFiles};
use tributary_types::{
    Label, Lsn, Partitions, TableId, TableRef, TableSchema, TransactionKind, TxnId, Version, host,
};
use tributary_wal::{Disk, Entry, Wal};

/// The findings and actions of recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    pub entries: u64,
    /// Commits that the tables had in data files already.
    pub commits_skipped: u64,
    pub commits_replayed: u64,
    pub rows_replayed: u64,
    /// Groups that a crash left without a commit record, with acknowledged rows.
    pub groups_finished: u64,
    /// Two-phase loads that wait for their commit or abort.
    pub prepared: u64,
    /// Transactions that were never committed.
    pub discarded: u64,
    /// Bytes of a torn tail that were cut, over all logs.
    pub torn_bytes: u64,
    /// Places that a repair skipped.
    pub skipped: u64,
    /// Rows of commits that are missing because a repair skipped them.
    pub rows_given_up: u64,
}

/// The open logs with their contents.
pub(crate) struct Logs {
    wals: Vec<Wal>,
    pub next_txn: TxnId,
    pub contents: Contents,
}

impl Logs {
    pub fn spaces(&self, options: &IngestOptions, disk: &Arc<dyn Disk>) -> Vec<Arc<WalSpace>> {
        let dirs = options.wal_dirs.iter().chain(&options.retired_wal_dirs);
        dirs.zip(&self.wals)
            .map(|(dir, wal)| {
                Arc::new(WalSpace::new(dir.clone(), wal.clone(), Arc::clone(disk), options.wal_limit.clone()))
            })
            .collect()
    }
}

/// The contents of the logs, ordered for application.
#[derive(Default)]
pub(crate) struct Contents {
    changes: HashMap<TableId, BTreeMap<Version, Change>>,
    finished: Vec<TransactionInfo>,
    /// Idempotency keys and channels of stored loads.
    kept: Vec<Kept>,
    /// Rejected rows of stored loads.
    rejected: Vec<RejectedLoad>,
    unfinished: BTreeMap<TxnId, Pending>,
    /// The logs of the changes.
    homes: HashMap<TableId, usize>,
    given_up: GivenUp,
    report: RecoveryReport,
}

impl Contents {
    /// The log says of these transactions that their labels are used, and the label store that they were freed since.
    pub fn free_labels(&mut self, freed: &[TxnId]) {
        let freed: HashSet<TxnId> = freed.iter().copied().collect();
        for info in self.finished.iter_mut().filter(|info| freed.contains(&info.txn)) {
            info.label_is_kept = false;
        }
    }

    /// The log of each table that has rows in one and not in data files.
    pub fn homes(&self) -> HashMap<TableId, usize> {
        let unfinished = self.unfinished.values().map(|pending| (pending.table, pending.log));
        self.homes.iter().map(|(&table, &log)| (table, log)).chain(unfinished).collect()
    }
}

/// The possible effect of a repair on commits: the rows of a group stay in the log as if it had none.
#[derive(Default)]
struct GivenUp {
    /// The locations of the repairs.
    places: Vec<(usize, Lsn)>,
    /// The last group of each table that is in data files, and where its commit is.
    persisted: HashMap<TableId, (TxnId, Lsn)>,
}

impl GivenUp {
    fn is_persisted(&mut self, table: TableId, txn: TxnId, commit: Lsn) {
        let last = self.persisted.entry(table).or_insert((txn, commit));
        *last = (txn, commit).max(*last);
    }

    /// Whether the group's commit was in bytes that were given up: groups commit in order, and a later one is in data files. Then
    /// this one is there, too.
    fn had_commit(&self, txn: TxnId, pending: &Pending) -> bool {
        let Some(&(later, its_commit)) = self.persisted.get(&pending.table) else { return false };
        let is_between =
            |&(log, lsn): &(usize, Lsn)| log == pending.log && pending.last < lsn && lsn < its_commit;
        txn < later && self.places.iter().any(is_between)
    }
}

enum Change {
    Commit { txn: TxnId, low: Lsn, body: CommitBody, loads: Vec<LoadData> },
    Truncate { low: Lsn },
    Cut { low: Lsn, partitions: Partitions },
}

struct LoadData {
    load: u32,
    is_async: bool,
    schema: Arc<TableSchema>,
    block: Block,
}

struct Pending {
    table: TableId,
    low: Lsn,
    /// LSN of its last entry.
    last: Lsn,
    log: usize,
    loads: Vec<LoadData>,
    /// Keys and channels of loads that count only with the commit, with the loads' numbers.
    kept: Vec<(u32, Kept)>,
    /// Rejected rows, and whether they count without a commit.
    rejected: Vec<(RejectedLoad, bool)>,
    prepare: Option<PrepareBody>,
}

/// Reads all logs.
pub(crate) fn read_logs(
    options: &IngestOptions,
    disk: &Arc<dyn Disk>,
    tables: &[Arc<Table>],
    history: &dyn SchemaHistory,
) -> Result<Logs, IngestError> {
    let by_id: HashMap<TableId, &Arc<Table>> = tables.iter().map(|table| (table.id(), table)).collect();
    let mut reader = Reader { tables: &by_id, history, contents: Contents::default(), next_txn: TxnId(1) };
    let mut wals = Vec::new();
    for (log, dir) in options.wal_dirs.iter().chain(&options.retired_wal_dirs).enumerate() {
        let mut recovered = Wal::recover(Arc::clone(disk), dir, options.wal.clone()).map_err(wal_error)?;
        while let Some((lsn, entry)) =
            recovered.next().map_err(|error| IngestError::Recovery(error.to_string()))?
        {
            reader.entry(log, lsn, entry)?;
        }
        let (wal, report) = recovered.start().map_err(|error| IngestError::Recovery(error.to_string()))?;
        reader.next_txn = reader.next_txn.max(TxnId(report.header_value));
        reader.contents.report.torn_bytes += report.torn.as_ref().map_or(0, |torn| torn.bytes);
        wals.push(wal);
    }
    Ok(Logs { wals, next_txn: reader.next_txn, contents: reader.contents })
}

struct Reader<'a> {
    tables: &'a HashMap<TableId, &'a Arc<Table>>,
    history: &'a dyn SchemaHistory,
    contents: Contents,
    next_txn: TxnId,
}

impl Reader<'_> {
    fn entry(&mut self, log: usize, lsn: Lsn, entry: Entry) -> Result<(), IngestError> {
        self.contents.report.entries += 1;
        self.next_txn = self.next_txn.max(entry.txn.next());
        match entry.kind {
            kind::SKIPPED => {
                self.contents.report.skipped += 1;
                self.contents.given_up.places.push((log, lsn));
                tracing::warn!(%lsn, bytes = entry.body.len(), "a repair has skipped a damaged place of the write-ahead log");
                Ok(())
            }
            kind::DATA_ASYNC | kind::DATA_HELD => self.data(log, lsn, &entry),
            kind::COMMIT => self.commit(log, lsn, &entry),
            kind::KEY | kind::CHANNEL => self.kept(log, lsn, &entry),
            kind::REJECTED => self.rejected(log, lsn, &entry),
            kind::PREPARE => self.prepare(log, lsn, &entry),
            kind::ABORT => self.abort(&entry),
            kind::TRUNCATE => {
                let body: TruncateBody = parse(lsn, &entry)?;
                self.change(log, &entry, body.version, Change::Truncate { low: lsn });
                Ok(())
            }
            kind::CUT => {
                let CutBody { version, partitions, .. } = parse(lsn, &entry)?;
                self.change(log, &entry, version, Change::Cut { low: lsn, partitions });
                Ok(())
            }
            other => Err(IngestError::Recovery(format!(
                "the write-ahead log has an entry of unknown kind {other} at LSN {lsn}; \
                 it was written by a newer server: start that one"
            ))),
        }
    }

    fn data(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> Result<(), IngestError> {
        let Some(table) = self.tables.get(&entry.table) else { return Ok(()) };
        let damaged = |what: String| {
            IngestError::Recovery(format!(
                "rows of table {} in the write-ahead log at LSN {lsn} can't be read: {what}",
                table.def().table_ref()
            ))
        };
        let block = Block::from_bytes(entry.body.clone()).map_err(|error| damaged(error.to_string()))?;
        let version = block.schema_version();
        let current = Arc::clone(&table.def().schema);
        let schema = if version == current.version {
            current
        } else {
            self.history
                .schema(entry.table, version)
                .ok_or_else(|| damaged(format!("its schema version {version} is not in the catalog")))?
        };
        let pending = self.pending(log, lsn, entry);
        pending.loads.push(LoadData {
            load: entry.tag,
            is_async: entry.kind == kind::DATA_ASYNC,
            schema,
            block,
        });
        Ok(())
    }

    fn kept(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> Result<(), IngestError> {
        if !self.tables.contains_key(&entry.table) {
            return Ok(());
        }
        let kept = record::read_kept(entry).ok_or_else(|| {
            IngestError::Recovery(format!(
                "an idempotency key or a channel in the write-ahead log at LSN {lsn} can't be read; it may be of a newer server: start that one"
            ))
        })?;
        if kept.record().answered_as == AnsweredAs::GroupAsync {
            // Its rows were acknowledged with this entry, whatever becomes of the group.
            self.contents.kept.push(kept);
        } else {
            self.pending(log, lsn, entry).kept.push((entry.tag, kept));
        }
        Ok(())
    }

    fn rejected(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> Result<(), IngestError> {
        if !self.tables.contains_key(&entry.table) {
            return Ok(());
        }
        let body: RejectedBody = parse(lsn, entry)?;
        let is_acknowledged = body.is_acknowledged;
        let load = body.load((entry.table, entry.txn, entry.tag));
        self.pending(log, lsn, entry).rejected.push((load, is_acknowledged));
        Ok(())
    }

    fn pending(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> &mut Pending {
        let pending = self.contents.unfinished.entry(entry.txn).or_insert_with(|| Pending {
            table: entry.table,
            low: lsn,
            last: lsn,
            log,
            loads: Vec::new(),
            kept: Vec::new(),
            rejected: Vec::new(),
            prepare: None,
        });
        pending.last = lsn;
        pending
    }

    fn commit(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> Result<(), IngestError> {
        let body: CommitBody = parse(lsn, entry)?;
        let mut pending = self.contents.unfinished.remove(&entry.txn);
        let kept = pending.as_mut().map(|pending| std::mem::take(&mut pending.kept)).unwrap_or_default();
        let counts = |(load, _): &(u32, Kept)| !body.excluded.contains(load);
        self.contents.kept.extend(kept.into_iter().filter(counts).map(|(_, kept)| kept));
        let rejected = pending.as_mut().map(|pending| std::mem::take(&mut pending.rejected));
        let rejected = rejected.unwrap_or_default().into_iter().map(|(load, _)| load);
        self.contents.rejected.extend(rejected.filter(|load| !body.excluded.contains(&load.load)));
        let table = self.tables.get(&entry.table);
        // The label of a load stays used when its table is dropped.
        let begun = NewTransaction {
            db: body.db,
            table: entry.table,
            table_ref: table.map_or_else(|| dropped(entry.table), |table| table.def().table_ref()),
            label: body.label.clone(),
            label_is_kept: body.label_is_kept,
            kind: body.kind(),
            now_ms: body.prepared_at_ms,
        };
        let mut info = TransactionInfo::begun(entry.txn, begun);
        info.commit(body.version, body.committed_at_ms, (body.loads, body.rows, body.bytes));
        info.source = body.source;
        info.attachment.clone_from(&body.attachment);
        self.contents.finished.push(info);
        let Some(table) = table else { return Ok(()) };
        if body.version <= table.persisted_version() {
            self.contents.report.commits_skipped += 1;
            if body.is_group {
                self.contents.given_up.is_persisted(entry.table, entry.txn, lsn);
            }
            return Ok(());
        }
        let (low, mut loads) = pending.map_or((lsn, Vec::new()), |pending| (pending.low, pending.loads));
        loads.retain(|data| !body.excluded.contains(&data.load));
        let version = body.version;
        let change = Change::Commit { txn: entry.txn, low, body, loads };
        self.contents.homes.insert(entry.table, log);
        self.contents.changes.entry(entry.table).or_default().insert(version, change);
        Ok(())
    }

    fn prepare(&mut self, log: usize, lsn: Lsn, entry: &Entry) -> Result<(), IngestError> {
        let body: PrepareBody = parse(lsn, entry)?;
        if self.tables.contains_key(&entry.table) {
            self.pending(log, lsn, entry).prepare = Some(body);
        }
        Ok(())
    }

    fn abort(&mut self, entry: &Entry) -> Result<(), IngestError> {
        let body: AbortBody = parse(Lsn(0), entry)?;
        tracing::debug!(txn = %entry.txn, label = %body.label, reason = %body.reason, "aborted before the restart");
        self.contents.unfinished.remove(&entry.txn);
        Ok(())
    }

    /// Records the change that makes a version which is not in data files.
    fn change(&mut self, log: usize, entry: &Entry, version: Version, change: Change) {
        let Some(table) = self.tables.get(&entry.table) else { return };
        if version > table.persisted_version() {
            self.contents.changes.entry(entry.table).or_default().insert(version, change);
            self.contents.homes.insert(entry.table, log);
        }
    }
}

/// The name for a table whose own is lost.
fn dropped(table: TableId) -> TableRef {
    TableRef { db: String::new(), table: format!("(dropped table {table})") }
}

fn parse<T: Body>(lsn: Lsn, entry: &Entry) -> Result<T, IngestError> {
    record::read(entry).map_err(|error| {
        IngestError::Recovery(format!(
            "an entry of kind {} at LSN {lsn} of the write-ahead log can't be read: {error}",
            entry.kind
        ))
    })
}

/// The tables and transactions restored from the logs.
pub(crate) struct Recovered {
    pub queues: HashMap<TableId, Arc<TableQueue>>,
    pub prepared: PreparedLoads,
    pub report: RecoveryReport,
}

/// Applies the contents of the logs to tables that have just been opened.
pub(crate) async fn replay(
    core: &Core,
    mut contents: Contents,
    queues: Vec<Arc<TableQueue>>,
) -> Result<Recovered, IngestError> {
    let mut report = std::mem::take(&mut contents.report);
    for queue in &queues {
        let changes = contents.changes.remove(&queue.table.id()).unwrap_or_default();
        apply(queue, changes, &mut report)?;
    }
    for info in contents.finished {
        core.transactions.restore(info, false);
    }
    let mut labels = HashMap::new();
    for kept in contents.kept {
        labels.insert(kept.record().txn, kept.record().label.label());
        core.keys.restore(kept);
    }
    contents.rejected.into_iter().for_each(|load| core.rejected.restore(load));
    let queues = queues.into_iter().map(|queue| (queue.table.id(), queue)).collect();
    let mut recovered = Recovered { queues, prepared: PreparedLoads::new(), report };
    for (txn, pending) in contents.unfinished {
        let had_commit = contents.given_up.had_commit(txn, &pending);
        recovered.finish(core, txn, pending, (had_commit, labels.remove(&txn))).await?;
    }
    core.rejected.recovered();
    Ok(recovered)
}

fn apply(
    queue: &TableQueue,
    changes: BTreeMap<Version, Change>,
    report: &mut RecoveryReport,
) -> Result<(), IngestError> {
    let schema = Arc::clone(&queue.table.def().schema);
    let now_micros = host::unix_ms() * 1000;
    let mut last = queue.table.persisted_version();
    for (version, change) in changes {
        last = version;
        match change {
            Change::Truncate { low } => {
                queue.table.publish_truncate(version, low).map_err(|error| unpublished(queue, &error))?;
            }
            Change::Cut { low, partitions } => {
                let cut = queue.table.publish_cut(version, low, &partitions);
                cut.map_err(|error| unpublished(queue, &error))?;
            }
            Change::Commit { txn, low, body, loads } => {
                let parts: Vec<_> = loads.into_iter().map(|data| (data.schema, vec![data.block])).collect();
                let batches = columns(&parts, &schema, now_micros)?;
                let in_blocks: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                let in_files: u64 = body.files.iter().map(|file| file.rows).sum();
                let found = in_blocks + in_files;
                if found < body.rows && report.skipped > 0 {
                    // The owner has given them up. A load is in one frame, so no half of one is left.
                    report.rows_given_up += body.rows - found;
                    tracing::warn!(%txn, table = %queue.table.def().table_ref(), committed = body.rows, found, "rows that a repair gave up are missing");
                } else if found != body.rows {
                    return Err(IngestError::Recovery(format!(
                        "transaction {txn} of table {} committed {} rows and the write-ahead log holds {}; \
                         the log is incomplete, restore it from a copy (`tributary wal inspect` lists what is there)",
                        queue.table.def().table_ref(),
                        body.rows,
                        found
                    )));
                }
                report.commits_replayed += 1;
                report.rows_replayed += found;
                let publication = Publication {
                    version,
                    schema: Arc::clone(&schema),
                    batches,
                    files: body.files,
                    replaces: body.replaces,
                    partitions: None,
                    lsn: low,
                };
                queue.table.publish(publication).map_err(|error| unpublished(queue, &error))?;
            }
        }
    }
    queue.continue_after(last);
    Ok(())
}

fn unpublished(queue: &TableQueue, error: &TableError) -> IngestError {
    IngestError::Table { table: queue.table.def().table_ref(), reason: error.to_string() }
}

impl Recovered {
    /// Ends, or retains for its commit, a transaction that has none in the log.
    async fn finish(
        &mut self,
        core: &Core,
        txn: TxnId,
        mut pending: Pending,
        (had_commit, label): (bool, Option<Label>),
    ) -> Result<(), IngestError> {
        let Some(queue) = self.queues.get(&pending.table) else { return Ok(()) };
        let report = &mut self.report;
        if let Some(body) = pending.prepare {
            report.prepared += 1;
            let rejected =
                pending.rejected.pop().map(|(load, _)| HeldRejects::restored(&core.rejected, load));
            let prepared = restore_prepared(core, queue, txn, pending.low, body, (pending.loads, rejected));
            self.prepared.insert(txn, prepared);
            return Ok(());
        }
        let counts = |(load, is_acknowledged): (RejectedLoad, bool)| is_acknowledged.then_some(load);
        pending.rejected.into_iter().filter_map(counts).for_each(|load| core.rejected.restore(load));
        let (acknowledged, held): (Vec<LoadData>, Vec<LoadData>) =
            pending.loads.into_iter().partition(|data| data.is_async);
        if acknowledged.is_empty() {
            report.discarded += 1;
            return Ok(());
        }
        if had_commit {
            tracing::warn!(%txn, table = %queue.table.def().table_ref(), "a repair gave up the commit of a group whose rows are in data files; they are not committed again");
            report.discarded += 1;
            return Ok(());
        }
        report.groups_finished += 1;
        let mut unanswered: Vec<u32> = held.into_iter().map(|data| data.load).collect();
        unanswered.dedup();
        let group = recovered_group(core, queue, (txn, label), pending.low, acknowledged, unanswered);
        report.rows_replayed += group.rows;
        queue.commit_recovered(group).await;
        tracing::debug!(%txn, log = pending.log, "committed a group that a crash left open");
        queue.drain(crate::group::CloseReason::Recovery).await;
        if queue.is_stranded(txn) {
            return Err(IngestError::Recovery(format!(
                "acknowledged rows of transaction {txn} of table {} in the write-ahead log can't be committed; \
                 the server's log says why",
                queue.table.def().table_ref()
            )));
        }
        Ok(())
    }
}

fn recovered_group(
    core: &Core,
    queue: &TableQueue,
    (txn, label): (TxnId, Option<Label>),
    low: Lsn,
    loads: Vec<LoadData>,
    unanswered: Vec<u32>,
) -> Group {
    let def = queue.table.def();
    // A client may know it.
    let label = label.unwrap_or_else(|| Label::of_group(host::random(rand::random)));
    let now_ms = host::unix_ms();
    let begun = NewTransaction::of_group(&def, label.clone(), now_ms);
    core.transactions.restore(TransactionInfo::begun(txn, begun), false);
    let mut group = Group { appends: recovered_appends(unanswered), ..Group::new(txn, label, now_ms, low) };
    for data in loads {
        let rows = LoadRows::of_blocks(data.schema, vec![data.block]);
        group.rows += rows.rows;
        group.bytes += rows.bytes;
        group.memory_bytes += rows.memory_bytes();
        group.members.push(recovered_member(data.load, rows));
    }
    group
}

fn restore_prepared(
    core: &Core,
    queue: &Arc<TableQueue>,
    txn: TxnId,
    low: Lsn,
    body: PrepareBody,
    (loads, rejected): (Vec<LoadData>, Option<HeldRejects>),
) -> Prepared {
    let def = queue.table.def();
    let schema = loads.first().map_or_else(|| Arc::clone(&def.schema), |data| Arc::clone(&data.schema));
    let blocks = loads.into_iter().map(|data| data.block).collect();
    // Its files are held for as long as the process lives, or until its end.
    queue.table.pin(&body.files);
    let unpublished = Some(Arc::new(UnpublishedFiles::from(body.files)));
    let facts = LoadFacts::new(None, rejected);
    let (rows, bytes) = (body.rows, body.bytes);
    let rows = LoadRows { unpublished, rows, bytes, facts, ..LoadRows::of_blocks(schema, blocks) };
    let kind = TransactionKind::StreamLoad;
    let begun = NewTransaction::of_load(&def, body.label.clone(), true, kind, body.prepared_at_ms);
    let mut info = TransactionInfo::begun(txn, begun);
    info.source = body.source;
    info.attachment.clone_from(&body.attachment);
    info.precommit(body.prepared_at_ms, body.rows, body.bytes);
    core.transactions.restore(info, false);
    queue.pin_prepared(txn, low);
    core.memory.restore_prepared(rows.memory_bytes());
    let own = OwnTransaction {
        txn,
        label: body.label,
        label_is_kept: true,
        kind,
        prepared_at_ms: body.prepared_at_ms,
        source: body.source,
        attachment: body.attachment,
        client: body.client,
    };
    Prepared { queue: Arc::clone(queue), own, rows }
}
