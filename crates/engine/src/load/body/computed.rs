//! Columns that are computed from the fields of a body.
//!
//! The fields become columns, of text unless the body has types, the query engine filters and computes, and its results are
//! decoded like those of an INSERT … SELECT.

use crate::load::Loads;
use crate::load::body::plan_error;
use crate::load::body::reader::{MappedColumn, Mapping, Value, wrong_width};
use crate::load::partial_update::Updates;
use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use sqlparser::ast::{Expr, Ident};
use std::borrow::Cow;
use std::sync::Arc;
use tributary_decode::{
    Block, BlockBuilder, BodyDecoder, BodyFormat, Counts, FieldDecoder, FieldNames, InsertOptions, LoadHost,
    LoadRules, REJECTS_KEPT_MAX, Reject, Target, decode_batch, default_text,
};
use tributary_query::{Projection, RowFilter, SessionView};
use tributary_types::{SqlError, TableDef};

/// Decodes a body whose columns are computed.
pub(crate) struct Computed {
    loads: Arc<Loads>,
    /// The load's zone and time.
    view: SessionView,
    fields: Box<dyn FieldDecoder>,
    /// Target columns and the sources of their values.
    targets: Vec<(String, Value)>,
    source_where: Option<Expr>,
    /// Made when the fields are known.
    plan: Option<Plan>,
    target: Target,
    options: InsertOptions,
    builder: BlockBuilder,
    blocks: Vec<Block>,
    /// Rows that the conversion to the columns' types rejected.
    filtered: u64,
    loaded: u64,
    /// Rows that the condition on the fields left out.
    unselected: u64,
    rejects: Vec<Reject>,
}

/// The conditions of a load, whatever its body and its mapping.
pub(crate) struct Terms {
    pub rules: LoadRules,
    /// The load's zone and time, for expressions.
    pub view: SessionView,
    pub host: Arc<dyn LoadHost>,
}

struct Plan {
    projection: Projection,
    filter: Option<RowFilter>,
}

impl Computed {
    pub fn new(
        loads: &Arc<Loads>,
        def: &Arc<TableDef>,
        columns: &[MappedColumn],
        mapping: &Mapping<'_>,
        format: &BodyFormat,
        terms: Terms,
    ) -> Result<Self, SqlError> {
        let Terms { rules, view, host } = terms;
        let is_field = |column: &&MappedColumn| matches!(column.value, Value::Field);
        let names: Vec<String> = columns.iter().filter(is_field).map(|column| column.name.clone()).collect();
        let is_derived = |name: &str| {
            columns.iter().any(|column| !is_field(&column) && column.name.eq_ignore_ascii_case(name))
        };
        let targets: Vec<(String, Value)> = columns
            .iter()
            .filter(|column| {
                let is_column = def.schema.index_of(&column.name).is_some() && !is_derived(&column.name);
                !is_field(column) || is_column
            })
            .map(|column| (column.name.clone(), column.value.clone()))
            .collect();
        let target_names: Vec<String> = targets.iter().map(|(name, _)| name.clone()).collect();
        let target = match mapping.updates {
            Updates::Named => Target::partial(def, &target_names)?,
            Updates::OfNewRows => Target::upserting(def, Some(&target_names), &[])?,
            Updates::Whole | Updates::OfRows => Target::new(def, Some(&target_names))?,
        };
        let target = if mapping.deletes { target.deleting() } else { target };
        let target = target.into_partitions(mapping.partitions)?;
        // A key that a row omits has its column's default, before anything is computed with it.
        let default_of = |name: &String| {
            let column = &def.schema.columns[def.schema.index_of(name)?];
            default_text(column, rules.clock)
        };
        let absent: Vec<Option<String>> = names.iter().map(default_of).collect();
        let field_names = if names.is_empty() { mapping.unnamed_fields } else { FieldNames::Given(&names) };
        let fields = format.fields(field_names, &absent, &host)?;
        let mut computed = Self {
            loads: Arc::clone(loads),
            view,
            fields,
            targets,
            source_where: mapping.source_where.cloned(),
            plan: None,
            target,
            options: InsertOptions { strict: rules.strict, max_filter_ratio: 1.0, clock: rules.clock },
            builder: loads.builders.take(&def.schema),
            blocks: Vec::new(),
            filtered: 0,
            loaded: 0,
            unselected: 0,
            rejects: Vec::new(),
        };
        if !names.is_empty() && !format.has_types() {
            computed.plan = Some(computed.make_plan()?);
        }
        Ok(computed)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Computes the rows of a part of the body.
    fn part(&self, fields: Box<dyn FieldDecoder>) -> Box<dyn BodyDecoder> {
        Box::new(Self {
            loads: Arc::clone(&self.loads),
            view: self.view.clone(),
            fields,
            targets: self.targets.clone(),
            source_where: self.source_where.clone(),
            plan: None,
            target: self.target.clone(),
            options: self.options,
            builder: BlockBuilder::new(self.builder.schema()),
            blocks: Vec::new(),
            filtered: 0,
            loaded: 0,
            unselected: 0,
            rejects: Vec::new(),
        })
    }

    /// Plans the expressions over the fields, which are known.
    fn make_plan(&self) -> Result<Plan, SqlError> {
        let source = self.fields.schema()?;
        let expressions = self
            .targets
            .iter()
            .map(|target| self.expression(target, &source))
            .collect::<Result<Vec<_>, _>>()?;
        let query = &self.loads.query;
        let projection = query.compile_projection(&self.view, &source, &expressions)?;
        let filter = self
            .source_where
            .as_ref()
            .map(|condition| query.compile_source_filter(&self.view, &source, condition))
            .transpose()?;
        Ok(Plan { projection, filter })
    }

    fn expression(
        &self,
        (name, value): &(String, Value),
        source: &Schema,
    ) -> Result<(String, Expr), SqlError> {
        let field = |name: &str| Expr::Identifier(Ident::with_quote('`', name));
        let expr = match value {
            Value::Field => field(name),
            Value::Expr(expr) => Expr::clone(expr),
            Value::FieldAt(_) if source.fields().len() != self.targets.len() => {
                return Err(wrong_width(self.targets.len(), source.fields().len()));
            }
            Value::FieldAt(at) => field(source.field(*at).name()),
        };
        Ok((name.clone(), expr))
    }

    /// Computes and decodes the rows that are complete.
    fn compute(&mut self) -> Result<(), SqlError> {
        for batch in self.fields.take_batches() {
            let plan = match self.plan.take() {
                Some(plan) => plan,
                None => self.make_plan()?,
            };
            let outcome = self.compute_batch(&plan, batch);
            self.plan = Some(plan);
            outcome?;
        }
        Ok(())
    }

    fn compute_batch(&mut self, plan: &Plan, batch: RecordBatch) -> Result<(), SqlError> {
        let batch = match &plan.filter {
            None => batch,
            Some(filter) => {
                let kept = filter_record_batch(&batch, &filter.evaluate(&batch)?)
                    .map_err(|error| plan_error(error.to_string()))?;
                self.unselected += (batch.num_rows() - kept.num_rows()) as u64;
                kept
            }
        };
        let values = plan.projection.evaluate(&batch)?;
        let decoded = decode_batch(&values, &self.target, &self.options, &mut self.builder)?;
        self.filtered += decoded.counts.filtered;
        self.loaded += decoded.counts.loaded;
        Reject::append(&mut self.rejects, 0, decoded.rejects.into_iter().map(Reject::unnumbered));
        self.blocks.extend(decoded.blocks);
        Ok(())
    }
}

impl BodyDecoder for Computed {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.fields.push(chunk)?;
        self.compute()
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.fields.finish()?;
        self.compute()
    }

    fn resume(&mut self) -> Result<bool, SqlError> {
        let is_more = self.fields.resume()?;
        self.compute()?;
        Ok(is_more)
    }

    fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Box<dyn BodyDecoder>>, SqlError> {
        let parts = self.fields.divide(count, bytes_min)?;
        Ok(parts.into_iter().map(|fields| self.part(fields)).collect())
    }

    fn parts_lacked_memory(&self) -> bool {
        self.fields.parts_lacked_memory()
    }

    fn held_bytes(&self) -> usize {
        self.fields.held_bytes()
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.blocks)
    }

    fn counts(&self) -> Counts {
        let read = self.fields.counts();
        Counts {
            total: read.total,
            loaded: self.loaded,
            filtered: read.filtered + self.filtered,
            unselected: self.unselected,
        }
    }

    fn rejects(&self) -> Cow<'_, [Reject]> {
        let all = self.fields.rejects().iter().chain(&self.rejects);
        all.take(REJECTS_KEPT_MAX).cloned().collect()
    }

    fn take_builder(&mut self) -> BlockBuilder {
        self.builder.take()
    }
}
