//! The orders of joins of TPC-H, from what its tables know of themselves at scale factor 1.

use super::{AsWritten, with_join_order};
use crate::workarounds::InUse;
use crate::workarounds::logical::optimizer_rules;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, JoinType, Result, ScalarValue, Statistics};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::collections::HashSet;
use std::sync::Arc;

/// A table that knows the number of its rows and bounds of its columns.
#[derive(Debug)]
struct Known {
    schema: SchemaRef,
    rows: usize,
    columns: Vec<ColumnStatistics>,
}

/// A column: its name, and its bounds if it is a number.
type Bounds = (&'static str, Option<(i32, i32)>);

impl Known {
    fn new(rows: usize, columns: &[Bounds]) -> Self {
        let data_type = |bounds: &Option<_>| if bounds.is_some() { DataType::Int32 } else { DataType::Utf8 };
        let fields = columns.iter().map(|(name, bounds)| Field::new(*name, data_type(bounds), true));
        let known = |bounds: &Option<(i32, i32)>| match bounds {
            Some((min, max)) => ColumnStatistics {
                min_value: Precision::Inexact(ScalarValue::from(*min)),
                max_value: Precision::Inexact(ScalarValue::from(*max)),
                ..ColumnStatistics::new_unknown()
            },
            None => ColumnStatistics::new_unknown(),
        };
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, rows, columns: columns.iter().map(|(_, bounds)| known(bounds)).collect() }
    }
}

#[async_trait::async_trait]
impl TableProvider for Known {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn statistics(&self) -> Option<Statistics> {
        let num_rows = Precision::Exact(self.rows);
        let total_byte_size = Precision::Absent;
        Some(Statistics { num_rows, total_byte_size, column_statistics: self.columns.clone() })
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(EmptyExec::new(Arc::clone(&self.schema))))
    }
}

const NATIONS: Option<(i32, i32)> = Some((0, 24));
const REGIONS: Option<(i32, i32)> = Some((0, 4));
const SUPPLIERS: Option<(i32, i32)> = Some((1, 10_000));
const PARTS: Option<(i32, i32)> = Some((1, 200_000));
const CUSTOMERS: Option<(i32, i32)> = Some((1, 150_000));
const ORDERS: Option<(i32, i32)> = Some((1, 6_000_000));
/// Days of orders since 1970, and those of line items.
const ORDERED: Option<(i32, i32)> = Some((8035, 10440));
const SHIPPED: Option<(i32, i32)> = Some((8036, 10561));

/// A context with the columns of TPC-H that joins and their filters ask.
fn tpch(as_written: bool) -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().extensions.insert(AsWritten { is_on: as_written });
    let rules = with_join_order(optimizer_rules(InUse::default()));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_optimizer_rules(rules)
        .build();
    let context = SessionContext::new_with_state(state);
    let tables: [(&str, usize, &[Bounds]); 8] = [
        ("region", 5, &[("r_regionkey", REGIONS), ("r_name", None)]),
        ("nation", 25, &[("n_nationkey", NATIONS), ("n_name", None), ("n_regionkey", REGIONS)]),
        ("supplier", 10_000, &[("s_suppkey", SUPPLIERS), ("s_nationkey", NATIONS)]),
        ("part", 200_000, &[("p_partkey", PARTS), ("p_name", None), ("p_type", None)]),
        ("partsupp", 800_000, &[("ps_partkey", PARTS), ("ps_suppkey", SUPPLIERS)]),
        ("customer", 150_000, &[("c_custkey", CUSTOMERS), ("c_nationkey", NATIONS)]),
        ("orders", 1_500_000, &[("o_orderkey", ORDERS), ("o_custkey", CUSTOMERS), ("o_orderdate", ORDERED)]),
        (
            "lineitem",
            6_001_215,
            &[
                ("l_orderkey", ORDERS),
                ("l_partkey", PARTS),
                ("l_suppkey", SUPPLIERS),
                ("l_shipdate", SHIPPED),
                ("l_quantity", Some((1, 50))),
            ],
        ),
    ];
    for (name, rows, columns) in tables {
        context.register_table(name, Arc::new(Known::new(rows, columns))).expect("a new name");
    }
    context
}

/// The tables of a plan, with brackets around those of a join.
fn shown(plan: &LogicalPlan) -> String {
    let inputs = plan.inputs();
    match (plan, inputs.as_slice()) {
        (LogicalPlan::TableScan(scan), _) => scan.table_name.table().to_owned(),
        (LogicalPlan::SubqueryAlias(alias), [input]) => {
            let (name, input) = (alias.alias.table(), shown(input));
            if name.starts_with("__") || input.contains(' ') { input } else { name.to_owned() }
        }
        (LogicalPlan::Aggregate(aggregate), [input]) if !aggregate.group_expr.is_empty() => {
            format!("groups of {}", shown(input))
        }
        (LogicalPlan::Join(join), [left, right]) => {
            let kind = match join.join_type {
                JoinType::Inner => String::new(),
                other => format!("{other} "),
            };
            format!("({} {kind}{})", shown(left), shown(right))
        }
        (_, [input]) => shown(input),
        _ => panic!("a plan of another kind: {plan}"),
    }
}

async fn optimized(context: &SessionContext, sql: &str) -> LogicalPlan {
    let plan = context.state().create_logical_plan(sql).await.expect("a query");
    context.state().optimize(&plan).expect("a plan")
}

async fn order(sql: &str) -> String {
    shown(&optimized(&tpch(false), sql).await)
}

const Q5: &str = "SELECT COUNT(*) FROM customer, orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey \
     AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey \
     AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= 8766 AND o_orderdate < 9131";
const Q7: &str = "SELECT COUNT(*) FROM supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey \
     AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey \
     AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')) \
     AND l_shipdate BETWEEN 9131 AND 9861";
const Q8: &str = "SELECT COUNT(*) FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region \
     WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey \
     AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey \
     AND o_orderdate BETWEEN 9131 AND 9861 AND p_type = 'ECONOMY ANODIZED STEEL'";
const Q9: &str = "SELECT COUNT(*) FROM part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey \
     AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey \
     AND s_nationkey = n_nationkey AND p_name LIKE '%green%'";

#[tokio::test]
async fn joins_begin_where_filters_leave_few_rows() {
    let expected = [
        (Q5, "(supplier ((((region nation) customer) orders) lineitem))"),
        (Q7, "(((n2 customer) orders) ((n1 supplier) lineitem))"),
        (Q8, "((n2 supplier) (((region n1) customer) ((part lineitem) orders)))"),
        (Q9, "((((nation supplier) (part partsupp)) lineitem) orders)"),
    ];
    let mut found = Vec::new();
    for (sql, _) in expected {
        found.push(order(sql).await);
    }
    assert_eq!(found, expected.map(|(_, order)| order));
}

#[tokio::test]
async fn an_order_can_be_kept() {
    let written = shown(&optimized(&tpch(true), Q5).await);
    assert_eq!(written, "(((((customer orders) lineitem) supplier) nation) region)");
}

#[tokio::test]
async fn a_semi_join_moves_down_to_the_relation_with_fewer_rows() {
    let q18 = "SELECT COUNT(*) FROM customer, orders, lineitem WHERE o_orderkey IN \
         (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300) \
         AND c_custkey = o_custkey AND o_orderkey = l_orderkey";
    assert_eq!(order(q18).await, "((customer (orders LeftSemi groups of lineitem)) lineitem)");
    // The joins leave fewer suppliers than there are.
    let q20 = "SELECT COUNT(*) FROM supplier, nation, region WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp) \
         AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND n_name = 'CANADA'";
    let found = order(q20).await;
    assert!(found.ends_with(" LeftSemi partsupp)"), "{found}");
}

#[tokio::test]
async fn nothing_moves_across_outer_joins_and_joins_of_other_kinds() {
    for (sql, expected) in [
        (
            "SELECT COUNT(*) FROM lineitem LEFT JOIN orders ON l_orderkey = o_orderkey LEFT JOIN customer ON o_custkey = c_custkey",
            "((lineitem Left orders) Left customer)",
        ),
        (
            "SELECT COUNT(*) FROM lineitem, orders, nation WHERE l_orderkey = o_orderkey AND n_name = 'CANADA'",
            "((lineitem orders) nation)",
        ),
    ] {
        assert_eq!(order(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn an_order_does_not_depend_on_the_text() {
    let orders = [
        "region, nation, supplier, lineitem, orders, customer",
        "lineitem, region, orders, nation, customer, supplier",
        "orders, supplier, region, lineitem, customer, nation",
    ];
    let written = "customer, orders, lineitem, supplier, nation, region";
    let expected = order(Q5).await;
    for other in orders {
        assert_eq!(order(&Q5.replace(written, other)).await, expected, "{other}");
    }
}

#[tokio::test]
async fn many_relations_are_joined_pair_by_pair() {
    let links: Vec<String> =
        (1..20).map(|at| format!("JOIN orders o{at} ON o{at}.o_custkey = c_custkey")).collect();
    let sql = format!(
        "SELECT COUNT(*) FROM lineitem JOIN orders o0 ON l_orderkey = o0.o_orderkey \
         JOIN customer ON o0.o_custkey = c_custkey {} JOIN nation ON c_nationkey = n_nationkey WHERE n_name = 'CANADA'",
        links.join(" ")
    );
    let found = order(&sql).await;
    assert!(found.contains("(nation customer)"), "{found}");
    for table in (0..20).map(|at| format!("o{at}")).chain(["lineitem".to_owned()]) {
        let names = found.split([' ', '(', ')']).filter(|name| *name == table).count();
        assert_eq!(names, 1, "{table}: {found}");
    }
}

/// Each join of which both sides were asked twice would take twice as long as the one below it.
#[tokio::test]
async fn rows_of_deep_joins_are_counted_once() {
    let chain = |kind: &str, of: usize| {
        let joins = (1..of).map(|number| {
            format!("{kind} JOIN nation n{number} ON n{}.n_nationkey = n{number}.n_nationkey", number - 1)
        });
        format!("nation n0 {}", joins.collect::<Vec<_>>().join(" "))
    };
    for (kind, of) in [("LEFT", 45), ("INNER", 70)] {
        let nations = chain(kind, of);
        let sql = format!(
            "SELECT COUNT(*) FROM supplier JOIN customer ON s_nationkey = c_nationkey \
             JOIN (SELECT n0.n_nationkey AS k FROM {nations}) n ON s_nationkey = k"
        );
        let shown = order(&sql).await;
        let tables: HashSet<&str> = shown.split(['(', ')', ' ']).collect();
        assert!((0..of).all(|number| tables.contains(format!("n{number}").as_str())), "{shown}");
    }
}
