//! Aggregations that a statement has several times are computed once.
//!
//! A view or a common table expression is put into the plan wherever it is named, and each time is computed for itself.
//! [`Planner`] looks for equal aggregations in the plan that the logical optimizer has left, and makes [`node::ComputedOnce`]
//! of each: the one that runs first computes the rows, all hand them on.
//!
//! | file | its part |
//! | --- | --- |
//! | `find` | equal aggregations of a plan |
//! | `node` | the step that computes its rows or hands on those of an equal one |
//! | `rows` | rows in memory, and in files if there are many |
//!
//! Invariant: rows wait for nobody. All are computed before the first is handed on, so no step waits for another to take some.
//!
//! Not here: equal scalar subqueries of one level, which DataFusion computes once.

mod find;
pub(crate) mod node;
mod rows;
#[cfg(test)]
mod tests;

use crate::scan::provider::travels;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use node::{ComputedOnce, Equal};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The name of marks and steps in plans.
const NAME: &str = "ComputedOnce";

/// Plans queries as DataFusion does, with equal aggregations computed once.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Marks)]);
        // Other nodes know no such steps.
        let marked = if travels(session.config_options()) { None } else { find::marked(plan)? };
        planner.create_physical_plan(marked.as_ref().unwrap_or(plan), session).await
    }
}

/// A mark on an aggregation that has equals in the same plan.
#[derive(Clone, Debug)]
struct Mark {
    input: LogicalPlan,
    /// Shared by all equals.
    equal: Arc<Equal>,
}

impl PartialEq for Mark {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.equal, &other.equal) && self.input == other.input
    }
}

impl Eq for Mark {}

impl Hash for Mark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input).filter(|order| order.is_ne() || self == other)
    }
}

impl UserDefinedLogicalNodeCore for Mark {
    fn name(&self) -> &'static str {
        NAME
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, equal: Arc::clone(&self.equal) }),
            _ => internal_err!("{NAME} has one input"),
        }
    }
}

/// Makes steps of marks.
struct Marks;

#[async_trait]
impl ExtensionPlanner for Marks {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(mark), [input]) = (node.as_any().downcast_ref::<Mark>(), inputs) else { return Ok(None) };
        Ok(Some(Arc::new(ComputedOnce::new(Arc::clone(input), Arc::clone(&mark.equal)))))
    }
}
