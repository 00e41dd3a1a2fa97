//! Optimized queries without the origins of their columns.
//!
//! A column says of itself which table's it is and how its name is spelled, for clients only. Columns of different tables that a
//! UNION puts together would be converted to say the same, and such a conversion is not written: the query would not travel.

use crate::types::metadata::field_without_origin;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::{LogicalPlan, TableScan, Union};
use std::sync::Arc;

/// The query with scans and unions whose columns have no origin, and with the columns of all steps that follow from these.
///
/// # Errors
/// A step does not accept its inputs.
pub fn without_origins(query: LogicalPlan) -> Result<LogicalPlan> {
    query
        .transform_up_with_subqueries(|step| {
            let step = match step {
                LogicalPlan::TableScan(scan) => {
                    let projected_schema = plain(&scan.projected_schema)?;
                    LogicalPlan::TableScan(TableScan { projected_schema, ..scan })
                }
                LogicalPlan::Union(Union { inputs, schema }) => {
                    LogicalPlan::Union(Union { inputs, schema: plain(&schema)? })
                }
                step => step.recompute_schema()?,
            };
            Ok(Transformed::yes(step))
        })
        .data()
}

fn plain(schema: &DFSchema) -> Result<DFSchemaRef> {
    let fields = schema.iter().map(|(table, field)| (table.cloned(), Arc::new(field_without_origin(field))));
    let plain = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    Ok(Arc::new(plain.with_functional_dependencies(schema.functional_dependencies().clone())?))
}
