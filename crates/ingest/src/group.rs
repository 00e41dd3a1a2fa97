//! One group: the loads of a table that one internal transaction commits.

use crate::build::{Built, Gathering};
use crate::error::IngestError;
use crate::load::{LOAD_OVERHEAD_BYTES, LoadRows};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use tributary_decode::column_overhead_bytes;
use tributary_types::planted::{self, Bug};
use tributary_types::{Label, Lsn, TxnId, Version, host};

/// Why a group closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    Interval,
    Bytes,
    /// Groups that are open take too much of the memory for rows.
    Memory,
    /// The interval is 0 and the log was free.
    LogFree,
    Sync,
    SchemaChange,
    Shutdown,
    Recovery,
}

impl CloseReason {
    pub const ALL: [Self; 8] = [
        Self::Interval,
        Self::Bytes,
        Self::Memory,
        Self::LogFree,
        Self::Sync,
        Self::SchemaChange,
        Self::Shutdown,
        Self::Recovery,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Bytes => "bytes",
            Self::Memory => "memory",
            Self::LogFree => "log_free",
            Self::Sync => "sync",
            Self::SchemaChange => "schema_change",
            Self::Shutdown => "shutdown",
            Self::Recovery => "recovery",
        }
    }
}

/// A group is written in one piece with the blocks that the log has not been given yet. It closes before they
/// come near the largest piece that the log takes.
const HELD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Loads of at most this size are gathered.
const SMALL_BYTES_MAX: u64 = 2048;
/// As many small loads are waited for before those of them that are durable are gathered: more than are on their way
/// to the log at a time, few enough to take some 100 µs.
const GATHERED_LOADS: u64 = 2048;
/// What an entry of the log has beside its block, roughly.
const ENTRY_BYTES: u64 = 32;

/// The data entries of a group's loads that the log does not have yet, and the columns that are not built yet.
#[derive(Debug, Default)]
pub(crate) struct Appends {
    state: Mutex<AppendState>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct AppendState {
    pending: usize,
    /// The log has answered for the loads below this number, in their order.
    answered: u32,
    /// Loads that were turned into columns while the group was open.
    gathered: Vec<Result<Built, IngestError>>,
    /// The numbers of the loads that do not count.
    failed: Vec<u32>,
    /// Why, for those that still wait to be told.
    reasons: Vec<(u32, IngestError)>,
}

impl Appends {
    /// Of a group whose entries are in the log already, without those of `failed`.
    pub fn settled_without(failed: Vec<u32>) -> Self {
        let state = AppendState { failed, ..AppendState::default() };
        Self { state: Mutex::new(state), settled: Notify::new() }
    }

    pub fn submitted(&self) {
        self.state.lock().pending += 1;
    }

    pub fn done(&self, load: u32, outcome: Result<(), IngestError>) {
        let mut state = self.state.lock();
        state.answered = state.answered.max(load + 1);
        if let Err(reason) = outcome {
            state.failed.push(load);
            state.reasons.push((load, reason));
        }
        self.one_less(&mut state);
    }

    fn one_less(&self, state: &mut AppendState) {
        state.pending -= 1;
        if state.pending == 0 {
            self.settled.notify_waiters();
        }
    }

    /// The number below which all loads that were submitted are durable, if none has failed. The group is not
    /// settled before [`Appends::gathered`] is called for what is made of them.
    pub fn begin_gathering(&self) -> Option<u32> {
        let mut state = self.state.lock();
        let is_sound = state.failed.is_empty() && state.answered > 0;
        is_sound.then(|| {
            state.pending += 1;
            if planted::is(Bug::GatheredBeforeLog) { u32::MAX } else { state.answered }
        })
    }

    /// Keeps what was made of loads that are no members any more.
    pub fn gathered(&self, built: Result<Built, IngestError>) {
        let mut state = self.state.lock();
        state.gathered.push(built);
        self.one_less(&mut state);
    }

    /// Everything that was gathered.
    pub fn all_gathered(&self) -> Vec<Result<Built, IngestError>> {
        self.state.lock().gathered.clone()
    }

    /// The same rows in fewer batches, instead of everything that was gathered.
    pub fn put_together(&self, built: Built) {
        self.state.lock().gathered = vec![Ok(built)];
    }

    /// Whether every append is durable or failed.
    pub fn is_settled(&self) -> bool {
        self.state.lock().pending == 0
    }

    /// The numbers of the loads whose append failed.
    pub fn failed(&self) -> Vec<u32> {
        self.state.lock().failed.clone()
    }

    /// Why the load's append failed, if it did.
    pub fn reason(&self, load: u32) -> Option<IngestError> {
        let state = self.state.lock();
        state.reasons.iter().find(|(failed, _)| *failed == load).map(|(_, reason)| reason.clone())
    }

    /// Waits until every append is durable or failed; the numbers of the failed loads.
    pub async fn settled(&self) -> Vec<u32> {
        loop {
            let settled = self.settled.notified();
            {
                let state = self.state.lock();
                if state.pending == 0 {
                    return state.failed.clone();
                }
            }
            settled.await;
        }
    }
}

/// A load in a group.
#[derive(Debug)]
pub(crate) struct Member {
    pub load: u32,
    pub rows: LoadRows,
    /// The log has (or is getting) its blocks; otherwise they are written with the commit.
    pub is_logged: bool,
    /// Acknowledged as soon as the log has it.
    pub is_async: bool,
}

impl Member {
    /// Whether it may be turned into columns with others before the group's end: once the log has it, its blocks
    /// are needed for nothing else.
    fn is_small(&self) -> bool {
        self.is_async && self.is_logged && self.rows.bytes <= SMALL_BYTES_MAX && !self.rows.blocks.is_empty()
    }

    /// Bytes of the budget that its rows do not need as columns. `None`: they would need more than they have.
    fn spares_bytes(&self, overhead: u64) -> Option<u64> {
        LOAD_OVERHEAD_BYTES.checked_sub(self.rows.rows * overhead)
    }
}

/// Who waits for a group's commit.
pub(crate) type Waiter = oneshot::Sender<Result<Version, IngestError>>;

/// A group, open or closed.
#[derive(Debug)]
pub(crate) struct Group {
    pub txn: TxnId,
    pub label: Label,
    pub prepared_at_ms: i64,
    /// When it closes. `None`: as soon as nothing of its table is on its way to the log (interval 0).
    pub deadline: Option<Instant>,
    pub close_at_bytes: u64,
    /// Without those that were gathered.
    pub members: Vec<Member>,
    /// Members that may be gathered, about.
    pub small: usize,
    pub gathered_loads: usize,
    /// Sync loads, by their numbers.
    pub waiters: Vec<(u32, Waiter)>,
    pub next_load: u32,
    pub rows: u64,
    pub bytes: u64,
    /// Bytes that count against the memory budget.
    pub memory_bytes: u64,
    /// Bytes of members that the log has not been given yet, with all that belongs to them.
    pub held_bytes: u64,
    pub appends: Arc<Appends>,
    /// No entry of the group lies below this place in the log.
    pub low: Lsn,
}

impl Group {
    /// A group without loads that closes when it is told to.
    pub fn new(txn: TxnId, label: Label, prepared_at_ms: i64, low: Lsn) -> Self {
        Self {
            txn,
            label,
            prepared_at_ms,
            deadline: None,
            close_at_bytes: u64::MAX,
            members: Vec::new(),
            small: 0,
            gathered_loads: 0,
            waiters: Vec::new(),
            next_load: 0,
            rows: 0,
            bytes: 0,
            memory_bytes: 0,
            held_bytes: 0,
            appends: Arc::default(),
            low,
        }
    }

    /// Adds a load and gives its number in the group.
    pub fn add(&mut self, rows: LoadRows, is_logged: bool, is_async: bool) -> u32 {
        let load = self.next_load;
        self.next_load += 1;
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        self.memory_bytes += rows.memory_bytes();
        if !is_logged {
            self.held_bytes += rows.memory_bytes() + rows.blocks.len() as u64 * ENTRY_BYTES;
        }
        let member = Member { load, rows, is_logged, is_async };
        self.small += usize::from(member.is_small());
        self.members.push(member);
        load
    }

    /// All loads that count.
    pub fn loads(&self) -> usize {
        self.gathered_loads + self.members.len()
    }

    /// Takes small loads out that are durable, if there are enough, to be turned into columns now. Kept as they
    /// came they would take many times their rows' memory, and all be turned into columns at once at the end.
    pub fn gather(&mut self) -> Option<Gathering> {
        if self.small < host::limit(GATHERED_LOADS, 3) as usize {
            return None;
        }
        self.small = 0;
        let overhead = column_overhead_bytes(&self.members.last()?.rows.schema);
        let durable = self.appends.begin_gathering()?;
        let mut spared = 0;
        let may_go = |member: &mut Member| {
            let spares = member.spares_bytes(overhead).filter(|_| member.is_small() && member.load < durable);
            spared += spares.unwrap_or_default();
            spares.is_some()
        };
        let taken: Vec<Member> = self.members.extract_if(.., may_go).collect();
        self.gathered_loads += taken.len();
        self.memory_bytes -= spared;
        Some(Gathering::new(Arc::clone(&self.appends), taken, spared))
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= self.close_at_bytes || self.held_bytes >= HELD_BYTES_MAX
    }

    /// Whether clients were told that rows of it are kept.
    pub fn is_acknowledged(&self) -> bool {
        self.gathered_loads > 0 || self.members.iter().any(|member| member.is_async)
    }

    /// Removes the loads whose clients were told that they failed.
    pub fn exclude(&mut self, failed: &[u32]) {
        if failed.is_empty() || planted::is(Bug::FailedLoadNotExcluded) {
            return;
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|member| !failed.contains(&member.load));
        self.members = kept;
        self.rows -= gone.iter().map(|member| member.rows.rows).sum::<u64>();
        self.bytes -= gone.iter().map(|member| member.rows.bytes).sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Parts;
    use tributary_decode::BlockBuilder;
    use tributary_types::{ColumnDef, DataType, SchemaVersion, TableSchema};

    fn group() -> Group {
        Group::new(TxnId(1), Label::of_group(1), 0, Lsn(0))
    }

    fn schema(columns: usize) -> Arc<TableSchema> {
        let column = |number| ColumnDef::new(number, &format!("c{number}"), DataType::BigInt);
        Arc::new(TableSchema::new(SchemaVersion(1), (1..=columns as u32).map(column).collect()))
    }

    fn row(schema: &Arc<TableSchema>) -> LoadRows {
        let mut builder = BlockBuilder::new(schema);
        (0..schema.columns.len()).for_each(|column| builder.push_null(column));
        builder.finish_row();
        LoadRows::of_blocks(Arc::clone(schema), vec![builder.finish()])
    }

    /// Async loads that the log has been given, and of which it has answered all but the last few.
    fn fill(group: &mut Group, schema: &Arc<TableSchema>, unanswered: u32) {
        for _ in 0..GATHERED_LOADS {
            group.add(row(schema), true, true);
            group.appends.submitted();
        }
        (0..group.next_load - unanswered).for_each(|load| group.appends.done(load, Ok(())));
    }

    #[test]
    fn durable_loads_are_gathered_and_the_group_is_not_settled_before_they_are_built() {
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
        assert!(!group.appends.is_settled());
        let built = gathering.parts().build(Arc::clone(&schema), 0);
        gathering.done(built);
        assert!(group.appends.is_settled());
        for _ in 0..2 {
            // Again, as after a commit that found no space.
            let built = Parts::of_group(&group).build(Arc::clone(&schema), 0).unwrap();
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
        let gathering = group.gather().unwrap();
        assert_eq!((gathering.spared_bytes(), group.memory_bytes), (0, memory));
        assert_eq!(group.members.len(), GATHERED_LOADS as usize);
    }

    #[test]
    fn a_gathering_that_is_given_up_fails_its_group_and_does_not_hang_it() {
        let (mut group, schema) = (group(), schema(2));
        fill(&mut group, &schema, 0);
        drop(group.gather().unwrap());
        assert!(group.appends.is_settled());
        assert!(matches!(Parts::of_group(&group).build(schema, 0), Err(IngestError::Bug(_))));
    }
}
