//! Flushes and compactions for those who look: the ones under way, and the last ones that have ended.
//!
//! Invariant: a bounded number of ended ones is kept. Nothing depends on them.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_types::{TableId, host};

/// Ended ones that are kept.
pub const TABLE_WORK_KEPT: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableWorkKind {
    /// A memtable becomes data files.
    Flush,
    /// Small data files become large ones.
    Compaction,
}

impl TableWorkKind {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flush => "FLUSH",
            Self::Compaction => "COMPACTION",
        }
    }
}

/// One flush or compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWork {
    pub table: TableId,
    pub kind: TableWorkKind,
    /// In milliseconds of Unix time.
    pub began_at_ms: i64,
    pub is_running: bool,
    /// Its duration, so far if it is running.
    pub took: Duration,
    pub rows: u64,
    /// Bytes of the files that it wrote.
    pub bytes: u64,
    /// Files that it wrote.
    pub files: u64,
    /// Files that it replaced.
    pub files_replaced: u64,
    /// The version of the Delta table that has its files.
    pub delta_version: Option<i64>,
    /// Why it failed; the rows stay where they were.
    pub error: Option<String>,
}

impl TableWork {
    /// `RUNNING`, `FINISHED` or `FAILED`.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match (self.is_running, &self.error) {
            (true, _) => "RUNNING",
            (false, None) => "FINISHED",
            (false, Some(_)) => "FAILED",
        }
    }
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, (TableWork, Instant)>,
    ended: VecDeque<TableWork>,
}

/// The work on all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableWorks(Arc<Mutex<State>>);

impl TableWorks {
    /// Notes that work begins.
    pub fn begin(&self, table: TableId, kind: TableWorkKind) -> UnderWay {
        let work = TableWork {
            table,
            kind,
            began_at_ms: host::unix_ms(),
            is_running: true,
            took: Duration::ZERO,
            rows: 0,
            bytes: 0,
            files: 0,
            files_replaced: 0,
            delta_version: None,
            error: None,
        };
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, (work, host::now()));
        UnderWay { works: self.clone(), number }
    }

    /// The ended ones, oldest first, and then the running ones.
    pub fn all(&self) -> Vec<TableWork> {
        let state = self.0.lock();
        let now = host::now();
        let running = state.running.values();
        let running = running
            .map(|(work, since)| TableWork { took: now.saturating_duration_since(*since), ..work.clone() });
        state.ended.iter().cloned().chain(running).collect()
    }
}

/// Work that has begun. Dropped without an end, it was broken off.
#[derive(Debug)]
#[must_use]
pub(crate) struct UnderWay {
    works: TableWorks,
    number: u64,
}

impl UnderWay {
    /// It has done what `note` says.
    pub fn done(self, note: impl FnOnce(&mut TableWork)) {
        self.end(note);
    }

    pub fn failed(self, error: &impl ToString) {
        self.end(|work| work.error = Some(error.to_string()));
    }

    /// There was nothing to do.
    pub fn nothing(self) {
        self.works.0.lock().running.remove(&self.number);
    }

    fn end(&self, note: impl FnOnce(&mut TableWork)) {
        let mut state = self.works.0.lock();
        let Some((mut work, since)) = state.running.remove(&self.number) else { return };
        work.took = host::now().saturating_duration_since(since);
        work.is_running = false;
        note(&mut work);
        if state.ended.len() >= TABLE_WORK_KEPT {
            state.ended.pop_front();
        }
        state.ended.push_back(work);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.end(|work| work.error = Some("it was broken off".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_running_until_it_ends_and_the_oldest_is_forgotten() {
        let works = TableWorks::default();
        let flush = works.begin(TableId(1), TableWorkKind::Flush);
        works.begin(TableId(2), TableWorkKind::Compaction).nothing();
        drop(works.begin(TableId(3), TableWorkKind::Flush));
        works.begin(TableId(4), TableWorkKind::Compaction).failed(&"the disk");
        let states: Vec<_> = works.all().iter().map(|work| (work.table.0, work.state())).collect();
        assert_eq!(states, [(3, "FAILED"), (4, "FAILED"), (1, "RUNNING")]);
        assert_eq!(works.all()[1].error.as_deref(), Some("the disk"));
        flush.done(|work| work.rows = 7);
        let last = works.all().pop().expect("it is there");
        assert_eq!((last.table, last.state(), last.rows), (TableId(1), "FINISHED", 7));
        for _ in 0..TABLE_WORK_KEPT {
            works.begin(TableId(5), TableWorkKind::Flush).done(|_| {});
        }
        let all = works.all();
        assert!(all.len() == TABLE_WORK_KEPT && all.iter().all(|work| work.table == TableId(5)));
    }
}
