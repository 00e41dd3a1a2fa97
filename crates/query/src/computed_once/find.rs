//! Equal aggregations of a plan.
//!
//! Plans are compared with the sources of their scans: a scan says of its source only the name.

use super::Mark;
use super::node::Equal;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Extension, LogicalPlan, TableSource};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The plan with a mark on each aggregation that it has several times. `None`: it has none.
///
/// # Errors
/// DataFusion's, for a plan that it can't rewrite.
pub(super) fn marked(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut classes = Classes::of(plan)?;
    classes.leave_out_inner(plan)?;
    if classes.all.is_empty() {
        return Ok(None);
    }
    let mark = |node: LogicalPlan| {
        let equal = match &node {
            LogicalPlan::RecursiveQuery(_) => {
                return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
            }
            LogicalPlan::Aggregate(aggregate) => {
                classes.find(aggregate).map(|class| Arc::clone(&class.equal))
            }
            _ => None,
        };
        let Some(equal) = equal else { return Ok(Transformed::no(node)) };
        let node = LogicalPlan::Extension(Extension { node: Arc::new(Mark { input: node, equal }) });
        Ok(Transformed::new(node, true, TreeNodeRecursion::Jump))
    };
    plan.clone().transform_down_with_subqueries(mark).data().map(Some)
}

/// Aggregations that are equal.
struct Class {
    one: Aggregate,
    equal: Arc<Equal>,
}

impl Class {
    fn has(&self, aggregate: &Aggregate) -> bool {
        self.one == *aggregate && same_sources(&self.one, aggregate)
    }
}

/// Aggregations that a plan has several times, by their hashes.
struct Classes {
    all: HashMap<u64, Vec<Class>>,
}

impl Classes {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        // Most plans have few aggregations, which differ in their groups or values.
        let mut by_values: HashMap<u64, Vec<Aggregate>> = HashMap::new();
        visit(plan, &mut |aggregate| {
            let values = hash(&(&aggregate.group_expr, &aggregate.aggr_expr));
            by_values.entry(values).or_default().push(aggregate.clone());
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut found: HashMap<u64, Vec<(Class, usize)>> = HashMap::new();
        for aggregate in by_values.into_values().filter(|alike| alike.len() > 1).flatten() {
            let same = found.entry(hash(&aggregate)).or_default();
            match same.iter_mut().find(|(class, _)| class.has(&aggregate)) {
                Some((_, count)) => *count += 1,
                None => same.push((Class { one: aggregate, equal: Arc::default() }, 1)),
            }
        }
        let mut all = HashMap::new();
        for (hash, same) in found {
            let mut several = Vec::new();
            for (class, count) in same {
                if count > 1 && !is_volatile(&class.one)? {
                    several.push(class);
                }
            }
            if !several.is_empty() {
                all.insert(hash, several);
            }
        }
        Ok(Self { all })
    }

    fn find(&self, aggregate: &Aggregate) -> Option<&Class> {
        if self.all.is_empty() {
            return None;
        }
        self.all.get(&hash(aggregate))?.iter().find(|class| class.has(aggregate))
    }

    /// Leaves out aggregations that are several times in the plan only because ones around them are.
    fn leave_out_inner(&mut self, plan: &LogicalPlan) -> Result<()> {
        while !self.all.is_empty() {
            let mut counts: HashMap<*const Equal, usize> = HashMap::new();
            visit(plan, &mut |aggregate| {
                let Some(class) = self.find(aggregate) else { return Ok(TreeNodeRecursion::Continue) };
                *counts.entry(Arc::as_ptr(&class.equal)).or_default() += 1;
                Ok(TreeNodeRecursion::Jump)
            })?;
            let is_outer =
                |class: &Class| counts.get(&Arc::as_ptr(&class.equal)).is_some_and(|count| *count > 1);
            let before: usize = self.all.values().map(Vec::len).sum();
            self.all.values_mut().for_each(|same| same.retain(is_outer));
            self.all.retain(|_, same| !same.is_empty());
            if self.all.values().map(Vec::len).sum::<usize>() == before {
                break;
            }
        }
        Ok(())
    }
}

/// Visits all aggregations, except in recursive queries, which compute theirs in each step.
fn visit(plan: &LogicalPlan, f: &mut dyn FnMut(&Aggregate) -> Result<TreeNodeRecursion>) -> Result<()> {
    plan.apply_with_subqueries(|node| match node {
        LogicalPlan::RecursiveQuery(_) => Ok(TreeNodeRecursion::Jump),
        LogicalPlan::Aggregate(aggregate) => f(aggregate),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether anything in the plan of an aggregation may have another value each time.
fn is_volatile(aggregate: &Aggregate) -> Result<bool> {
    let mut is_volatile = false;
    LogicalPlan::Aggregate(aggregate.clone()).apply_with_subqueries(|node| {
        is_volatile |= node.expressions().iter().any(datafusion::logical_expr::Expr::is_volatile);
        Ok(if is_volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_volatile)
}

/// Whether the scans of equal plans have the same sources.
fn same_sources(one: &Aggregate, other: &Aggregate) -> bool {
    let (one, other) = (sources(one), sources(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| Arc::ptr_eq(one, other))
}

fn sources(aggregate: &Aggregate) -> Vec<Arc<dyn TableSource>> {
    let mut sources = Vec::new();
    let visited = aggregate.input.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            sources.push(Arc::clone(&scan.source));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.expect("no visit fails");
    sources
}
