//! A table of `information_schema` whose rows are built when a query reads it, for only the databases and tables that it names: a
//! query about one table of thousands is answered as fast as with one table.
//!
//! Not its business: the contents of the rows.

use super::chosen::Chosen;
use super::{grid, with_lower_names};
use crate::model::SessionView;
use crate::namespace::Namespace;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A table of `information_schema`.
pub(super) struct FactsTable {
    /// In lower case.
    pub database: String,
    pub name: String,
    pub schema: SchemaRef,
    pub namespace: Arc<dyn Namespace>,
    pub session: SessionView,
}

impl fmt::Debug for FactsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactsTable").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for FactsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match named(filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut chosen = Chosen::of(Arc::clone(&self.namespace));
        for (column, names) in filters.iter().filter_map(named) {
            match column {
                Named::Database => chosen.only_databases(names),
                Named::Table => chosen.only_tables(names),
            }
        }
        let rows = grid(&self.database, &self.name, &chosen, &self.session)
            .expect("the table was found when it was planned");
        let batch = with_lower_names(&rows.batch()?)?;
        let table = MemTable::try_new(Arc::clone(&self.schema), vec![vec![batch]])?;
        table.scan(state, projection, &[], limit).await
    }
}

/// The kind of name in a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Database,
    Table,
}

/// The names that a condition selects; `None` for other conditions.
fn named(filter: &Expr) -> Option<(Named, BTreeSet<String>)> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let ((Expr::Column(column), Expr::Literal(value, _))
            | (Expr::Literal(value, _), Expr::Column(column))) = (&**left, &**right)
            else {
                return None;
            };
            Some((kind(column.name())?, BTreeSet::from([text(value)?])))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let Expr::Column(column) = &**expr else { return None };
            let texts = list.iter().map(|item| match item {
                Expr::Literal(value, _) => text(value),
                _ => None,
            });
            Some((kind(column.name())?, texts.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

fn kind(column: &str) -> Option<Named> {
    match column {
        "table_schema" => Some(Named::Database),
        "table_name" => Some(Named::Table),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    #[test]
    fn only_equal_names_choose() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(named(&col("table_name").eq(lit("t"))), Some((Named::Table, set(&["t"]))));
        assert_eq!(named(&lit("d").eq(col("table_schema"))), Some((Named::Database, set(&["d"]))));
        let several = col("table_schema").in_list(vec![lit("d"), lit("e")], false);
        assert_eq!(named(&several), Some((Named::Database, set(&["d", "e"]))));
        for other in [
            col("table_name").not_eq(lit("t")),
            col("table_name").eq(col("table_schema")),
            col("column_name").eq(lit("c")),
            col("table_name").in_list(vec![lit("t")], true),
            col("table_name").in_list(vec![col("table_schema")], false),
            col("table_name").eq(lit("t")).or(col("table_name").eq(lit("u"))),
        ] {
            assert_eq!(named(&other), None, "{other}");
        }
    }
}
