//! Bounds of a statement's size: of its lists and common table expressions before it is planned, and of its plan before that is
//! optimised.
//!
//! A plan is a graph as long as it is not optimised: what is named twice is there once. The optimizer makes a tree of it, in which it
//! is there twice, and DataFusion's planner walks the graph as if it were a tree; so a text of a few lines, each of which names the
//! one before twice, would fill any memory and take any time.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use sqlparser::ast::{GroupByExpr, ObjectName, OrderByKind, Query, SetExpr, Visit, Visitor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use tributary_types::{ErrorCode, SqlError};

/// Columns of a SELECT, GROUP BY or ORDER BY, as in MySQL. Planning compares each with each.
const COLUMNS_MAX: usize = 4096;
/// Nodes of a plan, each as often as it is reached.
const NODES_MAX: u64 = 20_000;

/// Checks the lengths of lists.
///
/// # Errors
/// One is longer than [`COLUMNS_MAX`].
pub(crate) fn check_lists(query: &Query) -> Result<(), SqlError> {
    match query.visit(&mut Lists) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(found) => Err(SqlError::new(
            ErrorCode::TooManyFields,
            format!("Too many columns: a list has {found}, the limit is {COLUMNS_MAX}"),
        )),
    }
}

struct Lists;

impl Lists {
    fn longest(set: &SetExpr) -> usize {
        match set {
            SetExpr::Select(select) => {
                let grouped = match &select.group_by {
                    GroupByExpr::Expressions(list, _) => list.len(),
                    GroupByExpr::All(_) => 0,
                };
                select.projection.len().max(grouped)
            }
            SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.len()),
            // Queries are visited on their own, the sides of a set operation here.
            SetExpr::SetOperation { left, right, .. } => Self::longest(left).max(Self::longest(right)),
            _ => 0,
        }
    }
}

impl Visitor for Lists {
    type Break = usize;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<usize> {
        let ordered = match query.order_by.as_ref().map(|order| &order.kind) {
            Some(OrderByKind::Expressions(list)) => list.len(),
            _ => 0,
        };
        let longest = Self::longest(&query.body).max(ordered);
        if longest > COLUMNS_MAX { ControlFlow::Break(longest) } else { ControlFlow::Continue(()) }
    }
}

/// Checks the size that a query will have once its common table expressions are put in wherever they are named.
///
/// # Errors
/// It has more queries and tables than [`NODES_MAX`].
pub(crate) fn check_expansion(query: &Query) -> Result<(), SqlError> {
    let mut expansion = Expansion::default();
    let _ = query.visit(&mut expansion);
    if expansion.total <= NODES_MAX { Ok(()) } else { Err(too_many_steps()) }
}

/// Sizes of the queries that are open, the outermost first.
#[derive(Default)]
struct Expansion {
    open: Vec<OpenQuery>,
    total: u64,
}

#[derive(Default)]
struct OpenQuery {
    size: u64,
    /// Names of its common table expressions, whose queries are its first ones; in reverse.
    undefined: Vec<String>,
    defined: HashMap<String, u64>,
}

impl Visitor for Expansion {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables);
        let mut undefined: Vec<String> = names.map(|cte| cte.alias.name.value.to_lowercase()).collect();
        undefined.reverse();
        self.open.push(OpenQuery { size: 1, undefined, defined: HashMap::new() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        let size = self.open.pop().map_or(0, |query| query.size);
        let Some(outer) = self.open.last_mut() else {
            self.total = size;
            return ControlFlow::Continue(());
        };
        match outer.undefined.pop() {
            Some(name) => {
                outer.defined.insert(name, size);
            }
            None => outer.size = outer.size.saturating_add(size),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = match relation.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.to_lowercase()),
            _ => None,
        };
        let defined =
            |name: &String| self.open.iter().rev().find_map(|query| query.defined.get(name)).copied();
        let size = name.as_ref().and_then(defined).unwrap_or(1);
        if let Some(query) = self.open.last_mut() {
            query.size = query.size.saturating_add(size);
        }
        ControlFlow::Continue(())
    }
}

/// Checks the size that a plan will have as a tree.
///
/// # Errors
/// It has more nodes than [`NODES_MAX`].
pub(crate) fn check_nodes(plan: &LogicalPlan) -> Result<(), SqlError> {
    if Sizes::default().of(plan) <= NODES_MAX { Ok(()) } else { Err(too_many_steps()) }
}

fn too_many_steps() -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!(
            "the query has more than {NODES_MAX} steps once its views and common table expressions are put in wherever they are \
             named: load what is named repeatedly into a table"
        ),
    )
}

/// Sizes of plans, by their places in memory, all of which are parts of the one that is measured.
#[derive(Default)]
struct Sizes(HashMap<*const LogicalPlan, u64>);

impl Sizes {
    fn of(&mut self, plan: &LogicalPlan) -> u64 {
        let place = std::ptr::from_ref(plan);
        if let Some(known) = self.0.get(&place) {
            return *known;
        }
        let mut nodes = 1_u64;
        for input in plan.inputs() {
            nodes = nodes.saturating_add(self.of(input));
        }
        if let LogicalPlan::TableScan(scan) = plan {
            match scan.source.get_logical_plan() {
                Some(Cow::Borrowed(view)) => nodes = nodes.saturating_add(self.of(view)),
                // It will be gone when its place is used again.
                Some(Cow::Owned(view)) => nodes = nodes.saturating_add(Self::default().of(&view)),
                None => {}
            }
        }
        let walked = plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(subquery) = subquery_of(expr) {
                    nodes = nodes.saturating_add(self.of(&subquery.subquery));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        });
        debug_assert!(walked.is_ok(), "nothing here fails");
        self.0.insert(place, nodes);
        nodes
    }
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::LogicalPlanBuilder;

    /// A plan whose tree has more than 2 to the power of `levels` nodes, and whose graph has a few for each.
    fn doubled(levels: u32) -> LogicalPlan {
        let mut plan = LogicalPlanBuilder::empty(true).build().expect("a row");
        for _ in 0..levels {
            let once = LogicalPlanBuilder::from(plan);
            let again = once.clone().build().expect("a plan");
            plan = once.union(again).and_then(LogicalPlanBuilder::build).expect("both have the same columns");
        }
        plan
    }

    #[test]
    fn nodes_are_counted_as_often_as_they_are_reached() {
        assert_eq!(check_nodes(&doubled(10)), Ok(()));
        let error = check_nodes(&doubled(60)).expect_err("more than any memory has");
        assert!(error.message.contains("more than 20000 steps"), "{error}");
    }

    #[test]
    fn common_table_expressions_count_wherever_they_are_named() {
        let checked = |sql: &str| check_expansion(&tributary_sql::parse_query(sql).expect("legal").ast);
        let chain = |levels: u32, step: &dyn Fn(u32) -> String| {
            let ctes: Vec<String> =
                (1..=levels).map(|level| format!("c{level} AS ({})", step(level - 1))).collect();
            format!("WITH c0 AS (SELECT 1 a), {} SELECT * FROM C{levels}", ctes.join(", "))
        };
        let union = |level: u32| format!("SELECT * FROM c{level} UNION ALL SELECT * FROM `C{level}`");
        let join = |level: u32| format!("SELECT x.a FROM c{level} x JOIN c{level} y USING (a)");
        let within = |level: u32| {
            format!("SELECT a FROM (SELECT a FROM c{level}) x WHERE a IN (SELECT a FROM c{level})")
        };
        for step in [&union as &dyn Fn(u32) -> String, &join, &within] {
            assert_eq!(checked(&chain(8, step)), Ok(()));
            let error = checked(&chain(40, step)).expect_err("more than any memory has");
            assert!(error.message.contains("more than 20000 steps"), "{error}");
        }
        let once = |level: u32| format!("SELECT * FROM c{level}");
        assert_eq!(checked(&chain(100, &once)), Ok(()));
        let hidden = "WITH c AS (SELECT 1 a) SELECT * FROM (WITH c AS (SELECT 2 a FROM c) SELECT * FROM c) x";
        assert_eq!(checked(hidden), Ok(()));
    }

    #[test]
    fn lists_are_limited_wherever_they_are() {
        let checked = |sql: &str| check_lists(&tributary_sql::parse_query(sql).expect("legal").ast);
        let list = |count: usize| vec!["1"; count].join(",");
        assert_eq!(checked(&format!("SELECT {}", list(COLUMNS_MAX))), Ok(()));
        let long = list(COLUMNS_MAX + 1);
        for sql in [
            format!("SELECT {long}"),
            format!("SELECT * FROM (SELECT 1 UNION ALL SELECT {long}) x"),
            format!("SELECT (SELECT COUNT(*) FROM (SELECT {long}) x)"),
            format!("SELECT 1 ORDER BY {long}"),
            format!("SELECT 1 GROUP BY {long}"),
        ] {
            let error = checked(&sql).expect_err("too long");
            assert_eq!(error.code, ErrorCode::TooManyFields);
            assert!(error.message.contains("a list has 4097"), "{error}");
        }
    }
}
