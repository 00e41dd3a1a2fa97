//! The memory of queries: of one whose user may not take all that the server's queries have, and of all when the process has no more.
//!
//! Invariant: a query takes no more than its own limit, all queries no more than theirs, and nothing while the process is at its
//! own. Sorts and aggregations that get no more spill to disk.
//!
//! Not here: whose limit it is.

use crate::error::MEMORY_PROPERTY;
use crate::planning::Stop;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_types::{SqlError, memory};

/// How long a query waits for memory of the process before it begins, and the pause between two looks.
const WAIT_MAX: Duration = Duration::from_secs(5);
const WAIT_PAUSE: Duration = Duration::from_millis(50);

/// The pool of all queries, which takes nothing that the process may not have.
#[derive(Debug)]
pub(crate) struct PoolOfProcess(pub Arc<dyn MemoryPool>);

impl fmt::Display for PoolOfProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolOfProcess({})", self.0)
    }
}

impl MemoryPool for PoolOfProcess {
    fn name(&self) -> &str {
        "process"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.0.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.0.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.0.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.0.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        memory::check(additional as u64)
            .map_err(|full| DataFusionError::ResourcesExhausted(full.to_string()))?;
        self.0.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.0.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.0.memory_limit()
    }
}

/// A share of the pool of all queries.
#[derive(Debug)]
struct LimitedPool {
    all: Arc<dyn MemoryPool>,
    limit: usize,
    used: AtomicUsize,
}

impl fmt::Display for LimitedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitedPool(limit: {}, used: {})", self.limit, self.reserved())
    }
}

impl MemoryPool for LimitedPool {
    fn name(&self) -> &str {
        "limited"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        let grown = |used: usize| used.checked_add(additional).filter(|sum| *sum <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{additional} bytes for {} and the {} that it has exceed {MEMORY_PROPERTY} = {}",
                reservation.consumer().name(),
                self.reserved(),
                self.limit
            )));
        }
        let taken = self.all.try_grow(reservation, additional);
        if taken.is_err() {
            self.used.fetch_sub(additional, Ordering::Relaxed);
        }
        taken
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

/// Waits before a query begins while the process has no memory: what ended queries leave comes back within seconds.
///
/// # Errors
/// The statement is to end.
pub(crate) async fn wait(stop: Option<&Arc<dyn Stop>>) -> Result<(), SqlError> {
    let begun = Instant::now();
    while memory::is_full() && begun.elapsed() < WAIT_MAX {
        if let Some(reason) = stop.and_then(|stop| stop.reason()) {
            return Err(reason);
        }
        tokio::time::sleep(WAIT_PAUSE).await;
    }
    Ok(())
}

/// The context of a query that may take `limit` bytes.
pub(crate) fn limited(state: &SessionState, limit: u64) -> Arc<TaskContext> {
    let runtime = state.runtime_env();
    let pool = LimitedPool {
        all: Arc::clone(&runtime.memory_pool),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        used: AtomicUsize::new(0),
    };
    let runtime = RuntimeEnv { memory_pool: Arc::new(pool), ..RuntimeEnv::clone(runtime) };
    Arc::new(TaskContext::from(state).with_runtime(Arc::new(runtime)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    fn pool(all: &Arc<dyn MemoryPool>, limit: usize) -> Arc<dyn MemoryPool> {
        Arc::new(LimitedPool { all: Arc::clone(all), limit, used: AtomicUsize::new(0) })
    }

    #[test]
    fn a_query_takes_no_more_than_its_limit_and_gives_everything_back() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let (small, large) = (pool(&all, 30), pool(&all, 1000));
        let (one, other) =
            (MemoryConsumer::new("sort").register(&small), MemoryConsumer::new("join").register(&large));
        one.try_grow(30).expect("it is the limit");
        let error = one.try_grow(1).unwrap_err().to_string();
        assert!(
            error.contains("1 bytes for sort and the 30 that it has exceed exec_mem_limit = 30"),
            "{error}"
        );
        other.try_grow(71).expect_err("all have 100");
        assert_eq!(large.reserved(), 0, "what was refused is not taken");
        other.try_grow(70).expect("there is so much");
        one.shrink(10);
        assert_eq!((small.reserved(), all.reserved()), (20, 90));
        drop((one, other));
        assert_eq!((small.reserved(), large.reserved(), all.reserved()), (0, 0, 0));
    }
}
