//! Expressions of loads: the `where` and `columns` of a Stream Load, compiled once for a load and
//! evaluated batch by batch. They see the columns of one batch, no tables and no aggregates.

use super::QueryEngine;
use crate::context::SettledSnapshots;
use crate::deep::on_deep_stack;
use crate::error::{external, plan_error};
use crate::functions::dates::zone;
use crate::meaning::operators::coerce_expr;
use crate::meaning::rewrite::{self, Environment};
use crate::model::SessionView;
use crate::scan::provider::lower_case;
use crate::scan::table_functions::TableFunctions;
use crate::types::metadata;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr as LogicalExpr, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use sqlparser::ast::{Expr, SelectItem, SetExpr};
use std::sync::Arc;
use tributary_sql::{SelectQuery, disallowed_in_generated};
use tributary_types::{SqlError, TableSchema};

/// A condition over the rows of a load.
#[derive(Clone, Debug)]
pub struct RowFilter {
    condition: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl RowFilter {
    /// Whether each row is retained; a NULL condition counts as false. The batch has the columns that the filter was compiled
    /// for, in order.
    ///
    /// # Errors
    /// When the batch has other columns or the condition cannot be computed.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, SqlError> {
        let value = evaluate(&self.condition, &self.schema, batch)?;
        let mask = value.as_boolean();
        Ok(if mask.null_count() == 0 { mask.clone() } else { arrow::compute::prep_null_mask_filter(mask) })
    }
}

/// Columns that are computed from the rows of a load.
#[derive(Clone, Debug)]
pub struct Projection {
    columns: Vec<Arc<dyn PhysicalExpr>>,
    source: SchemaRef,
    target: SchemaRef,
}

impl Projection {
    /// The names and types of the computed columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.target
    }

    /// Computes the columns. The batch has the columns that the projection was compiled for.
    ///
    /// # Errors
    /// When the batch has other columns or an expression cannot be computed.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let arrays = self
            .columns
            .iter()
            .map(|column| evaluate(column, &self.source, batch))
            .collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.target), arrays, &options)
            .map_err(|error| plan_error(&error.into()))
    }
}

fn evaluate(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    batch: &RecordBatch,
) -> Result<ArrayRef, SqlError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let renamed = RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options);
    let computed = renamed
        .map_err(DataFusionError::from)
        .and_then(|batch| expr.evaluate(&batch)?.into_array(batch.num_rows()));
    computed.map_err(|error| plan_error(&error))
}

impl QueryEngine {
    /// Compiles a condition over the columns of a table (`where` of a Stream Load).
    ///
    /// # Errors
    /// Syntax errors, unknown columns, and anything that is not a condition over one row.
    pub fn compile_filter(
        &self,
        session: &SessionView,
        schema: &TableSchema,
        condition: &str,
    ) -> Result<RowFilter, SqlError> {
        let condition = tributary_sql::parse_expression(condition)?;
        self.compile_source_filter(session, &schema.arrow(), &condition)
    }

    /// Compiles a condition over the columns of `source`.
    ///
    /// # Errors
    /// Unknown columns, and anything that is not a condition over one row.
    pub fn compile_source_filter(
        &self,
        session: &SessionView,
        source: &Schema,
        condition: &Expr,
    ) -> Result<RowFilter, SqlError> {
        let schema = lower_case(source);
        let (condition, _) = self.compile(session, &schema, rewrite::fulfilled(condition.clone()))?;
        Ok(RowFilter { condition, schema })
    }

    /// Compiles a list of target columns and their expressions over the columns of `source`
    /// (`columns` of a Stream Load, the select list of an HTTP Stream).
    ///
    /// # Errors
    /// As [`Self::compile_source_filter`].
    pub fn compile_projection(
        &self,
        session: &SessionView,
        source: &Schema,
        columns: &[(String, Expr)],
    ) -> Result<Projection, SqlError> {
        let source = lower_case(source);
        let mut compiled = Vec::with_capacity(columns.len());
        let mut fields = Vec::with_capacity(columns.len());
        for (name, expr) in columns {
            let (expr, data_type) = self.compile(session, &source, expr.clone())?;
            compiled.push(expr);
            fields.push(Field::new(name, data_type, true));
        }
        Ok(Projection { columns: compiled, source, target: Arc::new(Schema::new(fields)) })
    }

    /// Compiles the expression of a generated column over the columns of a table.
    ///
    /// # Errors
    /// As [`Self::compile_source_filter`]; functions that give no value of one row, or another one each time.
    pub fn compile_generated(
        &self,
        session: &SessionView,
        source: &TableSchema,
        column: &str,
        expr: &Expr,
    ) -> Result<Projection, SqlError> {
        // As queries see them: members of a VARIANT and digits of a second are known by the declared types.
        let fields = source.columns.iter().map(|column| {
            let field = Field::new(&column.name, column.data_type.to_arrow(), column.nullable);
            field.with_metadata(metadata::declared(column.data_type))
        });
        let source = lower_case(&Schema::new(fields.collect::<Vec<_>>()));
        let check = |expr: &LogicalExpr| match disallowed(expr) {
            Some(function) => {
                Err(external(disallowed_in_generated(column, function.trim_start_matches('_'))))
            }
            None => Ok(()),
        };
        let compiled = on_deep_stack(|| self.compile_here(session, &source, expr.clone(), &check));
        let (expr, data_type) = compiled?;
        let target = Schema::new(vec![Field::new(column, data_type, true)]);
        Ok(Projection { columns: vec![expr], source, target: Arc::new(target) })
    }

    fn compile(
        &self,
        session: &SessionView,
        schema: &SchemaRef,
        expr: Expr,
    ) -> Result<(Arc<dyn PhysicalExpr>, DataType), SqlError> {
        on_deep_stack(|| self.compile_here(session, schema, expr, &|_| Ok(())))
    }

    fn compile_here(
        &self,
        session: &SessionView,
        schema: &SchemaRef,
        expr: Expr,
        check: &Check<'_>,
    ) -> Result<(Arc<dyn PhysicalExpr>, DataType), SqlError> {
        let Some(query) = SelectQuery::of_rows(vec![vec![expr]]) else { return Err(not_one_expression()) };
        let global = |name: &str| self.global_variable(name);
        let environment = Environment {
            session,
            global: &global,
            columns: &|_, _| Ok(Vec::new()),
            params: Some(&[]),
            lenient_casts: true,
        };
        let rewritten = rewrite::rewrite(&query.ast, &query.text, &environment)?;
        let SetExpr::Select(mut select) = *rewritten.query.body else { return Err(not_one_expression()) };
        let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
            select.projection.pop()
        else {
            return Err(not_one_expression());
        };
        let zone = zone::offset_of(session.zone(), session.now_unix_micros);
        zone::within(zone, || self.compile_ast(session, schema, expr, check))
            .map_err(|error| plan_error(&error))
    }

    fn compile_ast(
        &self,
        session: &SessionView,
        schema: &SchemaRef,
        expr: Expr,
        check: &Check<'_>,
    ) -> Result<(Arc<dyn PhysicalExpr>, DataType), DataFusionError> {
        let (functions, settled) = (TableFunctions::default(), SettledSnapshots::new());
        let state = self.state_of(session);
        let context = self.context(&state, session, &functions, &settled, false);
        let fields = DFSchema::try_from(Arc::clone(schema))?;
        let expr = SqlToRel::new(&context).sql_to_expr(expr, &fields, &mut PlannerContext::new())?;
        check(&expr)?;
        let expr = expr.transform_up(|expr| coerce_expr(expr, &fields))?.data;
        let fields = Arc::new(fields);
        let simplify = SimplifyContext::builder()
            .with_schema(Arc::clone(&fields))
            .with_config_options(Arc::clone(state.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(simplify);
        let expr = simplifier.simplify(simplifier.coerce(expr, &fields)?)?;
        let compiled = state.create_physical_expr(expr, &fields)?;
        let data_type = compiled.data_type(schema)?;
        Ok((compiled, data_type))
    }
}

/// A check of an expression before it is compiled.
type Check<'a> = dyn Fn(&LogicalExpr) -> Result<(), DataFusionError> + 'a;

/// A function in the expression that gives no value of one row, or another one each time.
fn disallowed(expr: &LogicalExpr) -> Option<String> {
    let mut found = None;
    let walked = expr.apply(|part| {
        found = match part {
            LogicalExpr::AggregateFunction(call) => Some(call.func.name().to_owned()),
            LogicalExpr::WindowFunction(call) => Some(call.fun.name().to_owned()),
            LogicalExpr::ScalarFunction(call) if call.func.signature().volatility == Volatility::Volatile => {
                Some(call.func.name().to_owned())
            }
            LogicalExpr::GroupingSet(_) => Some("grouping".to_owned()),
            LogicalExpr::Unnest(_) => Some("explode".to_owned()),
            _ => None,
        };
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.ok()?;
    found
}

fn not_one_expression() -> SqlError {
    SqlError::detail(tributary_types::ErrorCode::Unknown, "one expression is needed here")
}
