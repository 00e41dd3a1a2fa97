//! Values of AUTO_INCREMENT columns: each is given to one row only, whatever becomes of the row and of the server.
//!
//! Values are reserved a range at a time, and a range is durable before the first of its values is used. So a start continues
//! after everything reserved; the rest of a range is lost when the server ends.
//!
//! Invariant: two ranges of a table have no value in common, and of one server a later one is above.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{TableId, host};

/// How many values are reserved at a time: as many as a load of many rows takes in a second, so that the cost of reserving is
/// negligible.
const RESERVED_VALUES: u64 = 100_000;
/// In a simulation, whose loads are tiny, so that ranges end.
const RESERVED_VALUES_SIMULATED: u64 = 20;

/// Persists which values are reserved. Implemented by the catalog.
#[async_trait]
pub trait IncrementStore: Send + Sync + Debug + 'static {
    /// Reserves the first `count` values of the table that never were, none below `start`, and returns the first. Durable on
    /// return. After an error the values may or may not be reserved; they are never used then.
    async fn reserve(&self, table: TableId, start: i64, count: u64) -> Result<i64, IncrementError>;
}

/// Reasons why there are no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncrementError {
    #[error(
        "values of the AUTO_INCREMENT column can't be reserved: {0}; nothing of the load was kept, retry it"
    )]
    Store(String),
    #[error(
        "the AUTO_INCREMENT column has not {wanted} values left below {}: load the values with the rows",
        i64::MAX
    )]
    Exhausted { wanted: u64 },
    #[error(
        "the AUTO_INCREMENT column has not {wanted} values left up to {most}: change it to BIGINT, or load the values with the rows"
    )]
    TooNarrow { wanted: u64, most: i64 },
}

/// The values that were reserved and not given, by table.
#[derive(Debug)]
pub struct AutoIncrements {
    store: Arc<dyn IncrementStore>,
    reserved: Mutex<HashMap<TableId, Arc<Reserved>>>,
}

/// The rest of a table's range. Held by one load while it reserves, so that the others share the new range.
type Reserved = tokio::sync::Mutex<Range<i64>>;

impl AutoIncrements {
    #[must_use]
    pub fn new(store: Arc<dyn IncrementStore>) -> Self {
        Self { store, reserved: Mutex::default() }
    }

    /// Takes `count` consecutive values, none below `start`, and returns the first. They are never given out again.
    ///
    /// # Errors
    /// [`IncrementError`]: the store fails, or the values are exhausted.
    pub async fn take(&self, table: TableId, start: i64, count: u64) -> Result<i64, IncrementError> {
        let reserved = Arc::clone(self.reserved.lock().entry(table).or_default());
        let mut left = reserved.lock().await;
        if left.end.abs_diff(left.start) < count {
            // The rest is given up: it is smaller than the load's number of rows.
            let wanted = count.max(host::limit(RESERVED_VALUES, RESERVED_VALUES_SIMULATED));
            let first = self.store.reserve(table, start, wanted).await?;
            *left = first..first.saturating_add_unsigned(wanted);
        }
        let first = left.start;
        left.start = first.saturating_add_unsigned(count);
        Ok(first)
    }

    /// Forgets a dropped table.
    pub fn forget(&self, table: TableId) {
        self.reserved.lock().remove(&table);
    }
}

/// Returns the first of `count` values from `next` on, which is the first unreserved one, if any was reserved; and the next
/// unreserved one afterwards.
///
/// # Errors
/// [`IncrementError::Exhausted`].
pub fn following(next: Option<i64>, start: i64, count: u64) -> Result<(i64, i64), IncrementError> {
    let first = next.map_or(start, |next| next.max(start));
    match first.checked_add_unsigned(count) {
        Some(end) => Ok((first, end)),
        None => Err(IncrementError::Exhausted { wanted: count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A store that fails on command, having reserved the values or not.
    #[derive(Debug, Default)]
    struct Kept {
        next: Mutex<HashMap<TableId, i64>>,
        fails: Mutex<Option<bool>>,
        calls: Mutex<u64>,
    }

    #[async_trait]
    impl IncrementStore for Kept {
        async fn reserve(&self, table: TableId, start: i64, count: u64) -> Result<i64, IncrementError> {
            *self.calls.lock() += 1;
            let mut next = self.next.lock();
            let (first, end) = following(next.get(&table).copied(), start, count)?;
            let failure = self.fails.lock().take();
            if failure != Some(false) {
                next.insert(table, end);
            }
            if failure.is_some() { Err(IncrementError::Store("no disk".to_owned())) } else { Ok(first) }
        }
    }

    const T: TableId = TableId(1);

    #[tokio::test]
    async fn values_ascend_and_few_calls_reserve_many() {
        let store = Arc::new(Kept::default());
        let increments = AutoIncrements::new(Arc::clone(&store) as _);
        for number in 0..1000 {
            assert_eq!(increments.take(T, 5, 3).await, Ok(5 + 3 * number));
        }
        assert_eq!(*store.calls.lock(), 1);
        assert_eq!(increments.take(TableId(2), 1, 1).await, Ok(1), "each table has its own");
        assert_eq!(increments.take(T, 5, 10 * RESERVED_VALUES).await, Ok(5 + RESERVED_VALUES as i64));
    }

    #[tokio::test]
    async fn another_server_of_the_same_store_and_a_later_one_go_on_behind_all_that_was_reserved() {
        let store = Arc::new(Kept::default());
        let (one, other) = (AutoIncrements::new(Arc::clone(&store) as _), AutoIncrements::new(store as _));
        let mut given = HashSet::new();
        for _ in 0..10 {
            assert!(given.insert(one.take(T, 1, 1).await.unwrap()));
            assert!(given.insert(other.take(T, 1, 1).await.unwrap()));
        }
    }

    #[tokio::test]
    async fn a_failure_of_the_store_gives_no_value_whether_it_has_reserved_them_or_not() {
        for kept in [true, false] {
            let store = Arc::new(Kept::default());
            let increments = AutoIncrements::new(Arc::clone(&store) as _);
            assert_eq!(increments.take(T, 1, 1).await, Ok(1));
            *store.fails.lock() = Some(kept);
            let refused = increments.take(T, 1, RESERVED_VALUES).await;
            assert!(matches!(refused, Err(IncrementError::Store(_))), "{refused:?}");
            assert_eq!(increments.take(T, 1, 1).await, Ok(2), "the rest of the range is good");
        }
    }

    #[tokio::test]
    async fn the_last_value_is_given_and_none_behind_it() {
        let increments = AutoIncrements::new(Arc::new(Kept::default()));
        let start = i64::MAX - 2 * RESERVED_VALUES as i64;
        assert_eq!(increments.take(T, start, 2 * RESERVED_VALUES).await, Ok(start));
        let refused = increments.take(T, start, 1).await.unwrap_err();
        assert!(refused.to_string().contains("values left"), "{refused}");
    }
}
