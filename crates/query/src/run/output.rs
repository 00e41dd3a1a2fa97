//! A plan's fields and batches → a result's columns and batches.
//!
//! A client's protocol knows few types; DataFusion's types are converted to the ones that [`ResultColumn::data_type`] lists.

use crate::functions::conversion::convert;
use crate::functions::keeping;
use crate::functions::nested::printed::{Quoting, to_text};
use crate::meaning::rewrite::titles::Title;
use crate::model::{QueryResult, ResultColumn};
use crate::types::kind::is_address;
use crate::types::metadata;
use crate::types::metadata::Origin;
use crate::types::shown::result_type;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_sql::names::without_partitions;
use tributary_types::{DataType as Declared, ErrorCode, SqlError};

/// The treatment of nested values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {
    /// They are texts, as clients see them.
    Shown,
    /// They are texts that loads read as they were.
    Written,
    /// They are unchanged, for loads and files that support them.
    Kept,
}

impl Nested {
    fn result_type(self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..)
            | DataType::Struct(_)
                if self == Self::Kept =>
            {
                data_type.clone()
            }
            other => result_type(other),
        }
    }
}

fn convert_array(
    array: &ArrayRef,
    to: &DataType,
    nested: Nested,
    declared: Option<Declared>,
) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    if *array.data_type() == DataType::Null {
        return Ok(arrow::array::new_null_array(to, array.len()));
    }
    if *to == DataType::Utf8 && nested == Nested::Written && array.data_type().is_nested() {
        return to_text(array, Quoting::Json, declared);
    }
    if *to == DataType::Utf8 && array.data_type().is_nested() {
        return to_text(array, Quoting::Plain, declared);
    }
    if *to == DataType::Utf8 && is_address(array.data_type()) {
        return convert::to_text(array);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &options)?)
}

/// The columns of a plan's result.
pub fn columns(
    plan: &LogicalPlan,
    titles: &[Title],
    spellings: &HashMap<String, String>,
    nested: Nested,
) -> Vec<ResultColumn> {
    let schema = plan.schema();
    let titles = place_titles(schema, titles, spellings);
    let direct = direct_columns(plan);
    let (calls, mut aliases) = (calls(plan), aliases(plan).into_iter());
    schema
        .fields()
        .iter()
        .enumerate()
        .zip(titles)
        .map(|((index, field), title)| {
            let is_column = direct.as_ref().is_none_or(|direct| direct.get(index).copied().unwrap_or(false));
            let column = result_column(title, field, nested.result_type(field.data_type()), is_column);
            let is_call = calls.get(index).copied().unwrap_or(false);
            let alias = aliases.next().flatten();
            let is_clock = is_call && metadata::is_clock(field);
            let clock_digits = metadata::clock_digits(field).filter(|_| is_clock);
            ResultColumn { alias, is_clock, clock_digits, ..column }
        })
        .collect()
}

/// A result column of that title; `is_column` says that the field is a column of a table,
/// unchanged.
fn result_column(title: String, field: &Field, data_type: DataType, is_column: bool) -> ResultColumn {
    let origin = if is_column { Origin::of(field) } else { Origin::default() };
    // A computed column states its type if Arrow's type is ambiguous.
    let is_told = |made: &Declared| made.is_state() || matches!(made, Declared::Nested(_));
    let made = || metadata::declared_type(field).filter(is_told);
    let declared = keeping::fitting(origin.data_type.or_else(made), field.data_type());
    ResultColumn {
        name: title,
        declared: declared.or_else(|| metadata::digits(field).map(|scale| Declared::DateTime { scale })),
        database: origin.database,
        table: origin.table,
        alias: None,
        original_name: origin.name,
        is_key: origin.is_key,
        nullable: field.is_nullable(),
        data_type,
        is_clock: false,
        clock_digits: None,
    }
}

/// Which outputs are calls of functions. Only their fields tell about all values: those of a UNION are of its first part.
fn calls(plan: &LogicalPlan) -> Vec<bool> {
    fn is_call(expr: &Expr) -> bool {
        match expr {
            Expr::Alias(alias) => is_call(&alias.expr),
            Expr::ScalarFunction(_) => true,
            _ => false,
        }
    }
    match plan {
        LogicalPlan::Projection(projection) => projection.expr.iter().map(is_call).collect(),
        LogicalPlan::Sort(sort) => calls(&sort.input),
        LogicalPlan::Limit(limit) => calls(&limit.input),
        LogicalPlan::Distinct(datafusion::logical_expr::Distinct::All(input)) => calls(input),
        _ => Vec::new(),
    }
}

/// The names in FROM that outputs are columns of, if the plan's shape shows them.
fn aliases(plan: &LogicalPlan) -> Vec<Option<String>> {
    fn alias_of(expr: &Expr, input: &LogicalPlan) -> Option<String> {
        match expr {
            Expr::Column(column) => match &column.relation {
                Some(relation) => Some(without_partitions(relation.table()).0.to_owned()),
                // A second column of a name has another one below.
                None => aliases(input).swap_remove(input.schema().maybe_index_of_column(column)?),
            },
            Expr::Alias(alias) => alias_of(&alias.expr, input),
            _ => None,
        }
    }
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().map(|expr| alias_of(expr, &projection.input)).collect()
        }
        LogicalPlan::Sort(sort) => aliases(&sort.input),
        LogicalPlan::Limit(limit) => aliases(&limit.input),
        LogicalPlan::Distinct(datafusion::logical_expr::Distinct::All(input)) => aliases(input),
        other => vec![None; other.schema().fields().len()],
    }
}

/// The outputs that are plain columns, if the plan's shape shows it. `None`: all may be.
fn direct_columns(plan: &LogicalPlan) -> Option<Vec<bool>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let shows_table = direct_columns(&projection.input).is_none_or(|direct| direct.contains(&true));
            Some(projection.expr.iter().map(|expr| shows_table && is_column(expr)).collect())
        }
        LogicalPlan::Sort(sort) => direct_columns(&sort.input),
        LogicalPlan::Limit(limit) => direct_columns(&limit.input),
        LogicalPlan::Distinct(datafusion::logical_expr::Distinct::All(input)) => direct_columns(input),
        LogicalPlan::Union(_) => Some(vec![false; plan.schema().fields().len()]),
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Titles for all fields: those before the first `*` count from the front, those after the last
/// one from the back, all others are found by their fields' names.
fn place_titles(schema: &DFSchema, titles: &[Title], spellings: &HashMap<String, String>) -> Vec<String> {
    let mut placed: Vec<String> = schema.fields().iter().map(|field| own_title(field, spellings)).collect();
    let front = titles.iter().take_while(|title| **title != Title::Wildcard).count();
    for (title, place) in titles.iter().zip(&mut placed).take(front) {
        if let Title::Text(text) = title {
            place.clone_from(text);
        }
    }
    if front < titles.len() {
        for (title, place) in titles.iter().rev().zip(placed.iter_mut().rev()) {
            let Title::Text(text) = title else { break };
            place.clone_from(text);
        }
    }
    placed
}

fn own_title(field: &Field, spellings: &HashMap<String, String>) -> String {
    if let Some(name) = metadata::declared_name(field)
        && name.to_lowercase() == *field.name()
    {
        return name.to_owned();
    }
    let spelled = |name: &str| spellings.get(name).cloned();
    // A column that is shown twice has its place after its name.
    let place_cut = || field.name().rsplit_once('#').and_then(|(name, _)| spelled(name));
    spelled(field.name()).or_else(place_cut).unwrap_or_else(|| field.name().clone())
}

/// Whether files can hold the column.
///
/// # Errors
/// It has a type that only functions produce and read.
pub fn check_written(column: &ResultColumn) -> std::result::Result<(), SqlError> {
    let instead = match column.declared {
        Some(Declared::Bitmap) => "bitmap_to_string(…), which bitmap_from_string(…) reads",
        Some(Declared::Hll) => "hll_cardinality(…)",
        _ => return Ok(()),
    };
    let text = format!(
        "column '{}' is of type {}, which no file holds: write {instead}",
        column.name,
        column.declared.map(|declared| declared.to_string().to_uppercase()).unwrap_or_default()
    );
    Err(SqlError::detail(ErrorCode::NotSupported, text))
}

/// A plan's batches with the columns' types and titles.
pub fn result(columns: Vec<ResultColumn>, stream: SendableRecordBatchStream, nested: Nested) -> QueryResult {
    let fields = columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let to = Arc::clone(&schema);
    let declared: Vec<Option<Declared>> = columns.iter().map(|column| column.declared).collect();
    let converted = stream.map(move |batch| convert_batch(&batch?, &to, nested, &declared));
    QueryResult { columns, stream: Box::pin(RecordBatchStreamAdapter::new(schema, converted)) }
}

fn convert_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    nested: Nested,
    declared: &[Option<Declared>],
) -> Result<RecordBatch> {
    let arrays = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .zip(declared)
        .map(|((array, field), declared)| convert_array(array, field.data_type(), nested, *declared))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

impl QueryResult {
    /// The result with NULL in place of each BITMAP and HLL, as Doris shows them: functions read them.
    #[must_use]
    pub fn without_states(self) -> Self {
        let is_state = |column: &ResultColumn| column.declared.is_some_and(Declared::is_state);
        let places: Vec<bool> = self.columns.iter().map(is_state).collect();
        if !places.contains(&true) {
            return self;
        }
        let hidden = move |batch: Result<RecordBatch>| {
            let batch = batch?;
            let columns = batch.columns().iter().zip(&places).map(|(array, is_state)| match is_state {
                true => new_null_array(array.data_type(), array.len()),
                false => Arc::clone(array),
            });
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)?)
        };
        let schema = self.stream.schema();
        let stream = self.stream.map(hidden);
        Self { stream: Box::pin(RecordBatchStreamAdapter::new(schema, stream)), ..self }
    }
}
