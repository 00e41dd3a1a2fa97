//! Data files from before a column's STRUCTs got further fields.
//!
//! The library fills fields that a file lacks in structs and in lists of them, but not in maps. All of them are read here by the function that
//! everyone else reads such files with ([`tributary_types::widen`]).

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tributary_types::widen::{has_other_fields, widened};

/// Creates adapters of expressions over a table's columns to those of its data files.
#[derive(Debug)]
pub(super) struct Grown;

impl PhysicalExprAdapterFactory for Grown {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let grown = |field: &&FieldRef| {
            let own = physical.field_with_name(field.name());
            own.is_ok_and(|own| has_other_fields(own.data_type(), field.data_type()))
        };
        let fields: Vec<FieldRef> = logical.fields().iter().filter(grown).cloned().collect();
        if fields.is_empty() {
            return DefaultPhysicalExprAdapterFactory.create(logical, physical);
        }
        // The library sees these columns as the file has them.
        let seen = logical.fields().iter().map(|field| match physical.fields().find(field.name()) {
            Some((_, own)) if grown(&field) => Arc::clone(own),
            _ => Arc::clone(field),
        });
        let seen = Schema::new_with_metadata(seen.collect::<Vec<_>>(), logical.metadata().clone());
        let library = DefaultPhysicalExprAdapterFactory.create(Arc::new(seen), physical)?;
        Ok(Arc::new(Adapter { library, fields }))
    }
}

/// Adapts expressions to a file that lacks fields within columns.
#[derive(Debug)]
struct Adapter {
    library: Arc<dyn PhysicalExprAdapter>,
    /// The columns, as the table has them.
    fields: Vec<FieldRef>,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let widened = |expr: Arc<dyn PhysicalExpr>| {
            let column = expr.downcast_ref::<Column>();
            let field =
                column.and_then(|column| self.fields.iter().find(|field| field.name() == column.name()));
            Ok(match field {
                Some(field) => {
                    let to = Arc::clone(field);
                    Transformed::yes(Arc::new(Widened { column: expr, to }) as Arc<dyn PhysicalExpr>)
                }
                None => Transformed::no(expr),
            })
        };
        // Bottom-up, so that a column within its replacement is not visited again.
        self.library.rewrite(expr)?.transform_up(widened).data()
    }
}

/// A column of a file in its type of today.
#[derive(Debug, Eq)]
struct Widened {
    column: Arc<dyn PhysicalExpr>,
    to: FieldRef,
}

impl PartialEq for Widened {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.to == other.to
    }
}

impl Hash for Widened {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.to.hash(state);
    }
}

impl fmt::Display for Widened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.column.fmt(f)
    }
}

impl PhysicalExpr for Widened {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.to.data_type().clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(self.to.is_nullable())
    }

    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.to))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(widened(&values, self.to.data_type())?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let column = children.pop().unwrap_or_else(|| Arc::clone(&self.column));
        Ok(Arc::new(Self { column, to: Arc::clone(&self.to) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.column.fmt_sql(f)
    }
}
