//! Early ends of planning. DataFusion's rules do not ask whether they should go on, so rules of ours stand between them and ask.
//!
//! The statement that is planned is the thread's for as long as planning runs on it ([`within`]): rules belong to a state that
//! statements share.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::sync::Arc;
use tributary_types::SqlError;

/// Whether a statement should go on.
pub trait Stop: Debug + Send + Sync {
    /// Why it should not; `None`: it should. Asked often.
    fn reason(&self) -> Option<SqlError>;
}

thread_local! {
    static IS_OPTIMIZING: Cell<bool> = const { Cell::new(false) };
    static PLANNED: RefCell<Option<Arc<dyn Stop>>> = const { RefCell::new(None) };
}

/// Runs a part of the planning of a statement.
pub(crate) fn within<T>(stop: Option<&Arc<dyn Stop>>, work: impl FnOnce() -> T) -> T {
    struct Back(Option<Arc<dyn Stop>>, bool);
    impl Drop for Back {
        fn drop(&mut self) {
            PLANNED.replace(self.0.take());
            IS_OPTIMIZING.set(self.1);
        }
    }
    let _back = Back(PLANNED.replace(stop.cloned()), IS_OPTIMIZING.replace(false));
    work()
}

/// Whether this thread is between the first and the last rule of the logical optimizer, which keeps a call that it can't compute.
pub(crate) fn is_optimizing() -> bool {
    IS_OPTIMIZING.get()
}

/// Asks whether the planning that runs on this thread should go on.
///
/// # Errors
/// It should not; the error says why.
pub(crate) fn check() -> Result<(), SqlError> {
    let reason = PLANNED.with_borrow(|planned| planned.as_ref().and_then(|stop| stop.reason()));
    reason.map_or(Ok(()), Err)
}

fn ask() -> Result<()> {
    check().map_err(|reason| DataFusionError::External(Box::new(reason)))
}

/// A rule that changes nothing, and fails when planning should end.
#[derive(Debug)]
pub(crate) struct StopRule;

const NAME: &str = "stop";

impl AnalyzerRule for StopRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        ask().map(|()| plan)
    }

    fn name(&self) -> &str {
        NAME
    }
}

impl OptimizerRule for StopRule {
    fn name(&self) -> &str {
        NAME
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        IS_OPTIMIZING.set(true);
        ask().map(|()| Transformed::no(plan))
    }
}

/// The last rule of the logical optimizer; see [`is_optimizing`].
#[derive(Debug)]
pub(crate) struct LastRule;

impl OptimizerRule for LastRule {
    fn name(&self) -> &str {
        "last"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        IS_OPTIMIZING.set(false);
        Ok(Transformed::no(plan))
    }
}

impl PhysicalOptimizerRule for StopRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        ask().map(|()| plan)
    }

    fn name(&self) -> &str {
        NAME
    }

    fn schema_check(&self) -> bool {
        false
    }
}

/// These rules with a question before each.
pub(crate) fn interleaved<R: Clone>(rules: Vec<R>, question: &R) -> Vec<R> {
    rules.into_iter().flat_map(|rule| [question.clone(), rule]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tributary_types::ErrorCode;

    /// Stops when it was asked this often.
    #[derive(Debug)]
    struct After(AtomicUsize);

    impl Stop for After {
        fn reason(&self) -> Option<SqlError> {
            let left = self.0.fetch_sub(1, Ordering::Relaxed);
            (left == 0).then(|| SqlError::new(ErrorCode::QueryInterrupted, "enough"))
        }
    }

    #[test]
    fn a_statement_is_asked_for_while_it_is_planned_and_not_afterwards() {
        assert_eq!(check(), Ok(()));
        let stop: Arc<dyn Stop> = Arc::new(After(AtomicUsize::new(1)));
        within(Some(&stop), || {
            assert_eq!(check(), Ok(()));
            within(None, || assert_eq!(check(), Ok(()), "another one"));
            assert_eq!(check().map_err(|error| error.code), Err(ErrorCode::QueryInterrupted));
        });
        assert_eq!(check(), Ok(()));
    }
}
