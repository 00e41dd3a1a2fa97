//! Work on a table that fails repeatedly in the same way, to be reported.
//!
//! Not its business: the retries.

use super::Table;
use crate::ambient::now_ms;
use crate::error::TableError;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;

/// Work that has failed several times in a row, each time for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// `settling rows` or `flushing`.
    pub doing: &'static str,
    pub reason: String,
    pub times: u32,
    /// The first of these times, in milliseconds of Unix time.
    pub since_ms: i64,
}

/// The last failures of each kind of work. Locks are taken briefly, alone.
#[derive(Debug, Default)]
pub(super) struct Failures {
    settling: Mutex<Option<Stuck>>,
    flushing: Mutex<Option<Stuck>>,
}

/// A single failure may be bad luck.
const TIMES_MIN: u32 = 2;

impl Table {
    /// The reason why the table can't be read or flushed, if it has occurred repeatedly.
    #[must_use]
    pub fn stuck(&self) -> Option<Stuck> {
        let of = |failure: &Mutex<Option<Stuck>>| failure.lock().clone().filter(|it| it.times >= TIMES_MIN);
        of(&self.failures.settling).or_else(|| of(&self.failures.flushing))
    }

    /// Whether [`Table::trouble`] describes anything.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        let is_stuck = |failure: &Mutex<Option<Stuck>>| {
            failure.lock().as_ref().is_some_and(|stuck| stuck.times >= TIMES_MIN)
        };
        self.keeps_all_files.load(Ordering::Relaxed)
            || is_stuck(&self.failures.settling)
            || is_stuck(&self.failures.flushing)
    }

    /// Describes what operators should know about the table: work that fails repeatedly, or files that can't be deleted.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let stuck = self.stuck().map(|Stuck { doing, reason, times, since_ms }| {
            let since = chrono::DateTime::from_timestamp_millis(since_ms).unwrap_or_default();
            format!(
                "{doing} has failed {times} times since {}: {reason}",
                since.format("%Y-%m-%d %H:%M:%S UTC")
            )
        });
        let kept = self.keeps_all_files.load(Ordering::Relaxed).then(|| {
            "no file is deleted until the table is opened again: the files of a dropped partition are unknown, see the log"
                .to_owned()
        });
        match (stuck, kept) {
            (Some(stuck), Some(kept)) => Some(format!("{stuck}; {kept}")),
            (stuck, kept) => stuck.or(kept),
        }
    }

    pub(super) fn note_settling<T>(&self, outcome: &Result<T, TableError>) {
        note(&self.failures.settling, "settling rows", outcome);
    }

    pub(super) fn note_flushing<T>(&self, outcome: &Result<T, TableError>) {
        note(&self.failures.flushing, "flushing", outcome);
    }
}

fn note<T>(failure: &Mutex<Option<Stuck>>, doing: &'static str, outcome: &Result<T, TableError>) {
    let mut failure = failure.lock();
    let Err(error) = outcome else {
        *failure = None;
        return;
    };
    let reason = error.to_string();
    match &mut *failure {
        Some(stuck) if essence(&stuck.reason) == essence(&reason) => stuck.times += 1,
        other => *other = Some(Stuck { doing, reason, times: 1, since_ms: now_ms() }),
    }
}

/// The words of an error's text that are the same each time: without names, addresses and numbers, such as the time that a store took.
fn essence(reason: &str) -> Vec<&str> {
    let unquoted = reason.split('\'').step_by(2);
    let is_fixed =
        |word: &&str| !word.contains("://") && !word.starts_with(|first: char| first.is_ascii_digit());
    unquoted.flat_map(str::split_whitespace).filter(is_fixed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_away_is_one_reason_however_long_it_took() {
        let failure = |file: &str, took: &str, what: &str| {
            format!(
                "storage failed while making the data file '{file}' durable: Generic S3 error: Error performing PUT \
                 http://127.0.0.1:9/b/{file} in {took}, after 7 retries, max_retries: 100 - {what}"
            )
        };
        let refused = failure("part-1.parquet", "59.1s", "connection refused");
        assert_eq!(essence(&refused), essence(&failure("part-2.parquet", "831ms", "connection refused")));
        assert_ne!(essence(&refused), essence(&failure("part-1.parquet", "59.1s", "no such bucket")));
    }
}
