//! Functions by the names under which they travel.
//!
//! A plan names its functions. A node that reads it means by a name what the planner of this server means by it; whether that is the
//! function in the plan is checked before the plan leaves ([`super::same`]).

use super::windows::{Windowed, windowed};
use crate::functions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, exec_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, Volatility, WindowUDF};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The names in one text are divided by this, which no name has.
const BETWEEN: char = ';';

/// DataFusion's functions.
#[derive(Clone, Debug)]
pub struct Stock {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

impl Stock {
    /// The functions that a state has.
    #[must_use]
    pub fn of(state: &SessionState) -> Self {
        Self {
            scalar: state.scalar_functions().clone(),
            aggregate: state.aggregate_functions().clone(),
            window: state.window_functions().clone(),
        }
    }
}

/// The names of the functions of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeSet<String>);

/// The names of a plan's functions, and one of them whose result depends on where it is computed.
///
/// # Errors
/// Never.
pub fn named(plan: &Arc<dyn ExecutionPlan>) -> Result<(Names, Option<String>)> {
    let mut names = Names::default();
    let mut volatile = None;
    plan.apply(|node| {
        if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            names.0.extend(aggregate.aggr_expr().iter().map(|value| value.fun().name().to_owned()));
        }
        for function in windowed(node).iter().filter_map(Windowed::of) {
            if function.volatility() == Volatility::Volatile {
                volatile = Some(function.name().to_owned());
            }
            names.0.insert(function.name().to_owned());
        }
        node.apply_expressions(&mut |expr| {
            expr.apply(|expr| {
                if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
                    let name = call.fun().name();
                    if call.fun().signature().volatility == Volatility::Volatile {
                        volatile = Some(name.to_owned());
                    }
                    names.0.insert(name.to_owned());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((names, volatile))
}

impl Names {
    /// All names in one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().cloned().collect::<Vec<_>>().join(&BETWEEN.to_string())
    }

    /// The names of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(text.split(BETWEEN).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// A state that knows these functions and no others.
    ///
    /// # Errors
    /// There is no function of that name.
    pub fn known_by(&self, builder: SessionStateBuilder, stock: &Stock) -> Result<SessionStateBuilder> {
        let (mut scalar, mut aggregate, mut window) = (Vec::new(), Vec::new(), Vec::new());
        for name in &self.0 {
            let (value, group) =
                (functions::scalar(name, &stock.scalar), functions::aggregate(name, &stock.aggregate));
            let of_rows = stock.window.get(name).cloned();
            if value.is_none() && group.is_none() && of_rows.is_none() {
                return exec_err!("there is no function {name}");
            }
            scalar.extend(value);
            aggregate.extend(group);
            window.extend(of_rows);
        }
        let builder = builder.with_scalar_functions(scalar).with_aggregate_functions(aggregate);
        Ok(builder.with_window_functions(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_as_one_text() {
        let names = Names(["__cast decimal(10,2)", "sum", "__text"].map(str::to_owned).into());
        assert_eq!(Names::of(&names.text()), names);
        assert_eq!(Names::of(""), Names::default());
    }
}
