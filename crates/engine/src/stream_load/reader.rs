//! From the bytes of a CSV body to blocks.
//!
//! Without derived columns the fields are decoded straight into their columns. With them the
//! fields become texts, the query engine computes the columns, and its results are decoded.

use super::plan_error;
use crate::engine::Engine;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use sqlparser::ast::{Expr, Ident};
use std::sync::Arc;
use tributary_decode::{
    Block, BlockBuilder, Counts, CsvDecoder, CsvOptions, CsvStrings, InsertOptions, Reject, Target,
    batch_to_block, blocks_to_batches, decode_batch,
};
use tributary_http::ColumnMapping;
use tributary_query::{Projection, RowFilter};
use tributary_types::{SqlError, TableDef};

/// A field of the body, or a column and the expression that gives its values.
#[derive(Clone, Debug)]
pub(super) struct MappedColumn {
    pub name: String,
    pub expr: Option<Expr>,
}

/// The entries of the header `columns`, with their expressions parsed.
pub(super) fn mapped(columns: &[ColumnMapping]) -> Result<Vec<MappedColumn>, SqlError> {
    let mapped = |column: &ColumnMapping| {
        let expr = column.expr.as_deref().map(tributary_sql::parse_expression).transpose()?;
        Ok(MappedColumn { name: column.name.clone(), expr })
    };
    columns.iter().map(mapped).collect()
}

/// The headers `columns` and `where`.
pub(super) struct Mapping<'a> {
    pub columns: Option<&'a [MappedColumn]>,
    /// A condition on the columns' final values.
    pub where_expr: Option<&'a str>,
    /// A condition on the fields of the body, for computed columns.
    pub source_where: Option<&'a Expr>,
}

/// Reads the rows of one body.
pub(super) struct RowReader {
    engine: Arc<Engine>,
    fields: Fields,
    filter: Option<RowFilter>,
    def: Arc<TableDef>,
    unselected: u64,
}

enum Fields {
    Direct(Box<CsvDecoder>),
    Computed(Box<Computed>),
}

struct Computed {
    strings: CsvStrings,
    /// Target columns and their expressions.
    targets: Vec<(String, Expr)>,
    source_where: Option<Expr>,
    /// Planned when the fields are known.
    plan: Option<(Projection, Option<RowFilter>)>,
    target: Target,
    options: InsertOptions,
    builder: BlockBuilder,
    /// Rows that the conversion to the columns' types rejected.
    filtered: u64,
    loaded: u64,
    /// Rows that the condition on the fields left out.
    unselected: u64,
    rejects: Vec<Reject>,
}

impl RowReader {
    pub fn new(
        engine: &Arc<Engine>,
        def: &Arc<TableDef>,
        mapping: &Mapping<'_>,
        options: CsvOptions,
    ) -> Result<Self, SqlError> {
        let filter = mapping
            .where_expr
            .map(|text| engine.query.compile_filter(&engine.view(), &def.schema, text))
            .transpose()?;
        let fields = match mapping.columns {
            None => direct(engine, Target::new(def, None)?, options)?,
            Some(columns) if columns.iter().all(|column| column.expr.is_none()) => {
                let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
                let target = Target::with_ignored_fields(def, &names)?;
                direct(engine, target, options)?
            }
            Some(columns) => Fields::Computed(Box::new(Computed::new(
                engine,
                def,
                columns,
                mapping.source_where,
                options,
            )?)),
        };
        Ok(Self { engine: Arc::clone(engine), fields, filter, def: Arc::clone(def), unselected: 0 })
    }

    /// The rows that a chunk completes, in blocks.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Block>, SqlError> {
        let blocks = match &mut self.fields {
            Fields::Direct(decoder) => {
                decoder.push(chunk)?;
                decoder.take_blocks()
            }
            Fields::Computed(computed) => {
                computed.strings.push(chunk)?;
                computed.compute(&self.engine)?
            }
        };
        self.select(blocks)
    }

    /// The rows that were not complete yet.
    pub fn finish(&mut self) -> Result<Vec<Block>, SqlError> {
        let blocks = match &mut self.fields {
            Fields::Direct(decoder) => {
                decoder.finish()?;
                decoder.take_blocks()
            }
            Fields::Computed(computed) => {
                computed.strings.finish()?;
                computed.compute(&self.engine)?
            }
        };
        self.select(blocks)
    }

    /// Leaves out the rows for which `where` is not true.
    fn select(&mut self, blocks: Vec<Block>) -> Result<Vec<Block>, SqlError> {
        let Some(filter) = &self.filter else { return Ok(blocks) };
        let mut selected = Vec::new();
        for batch in blocks_to_batches(&self.def.schema, &blocks)? {
            let mask: BooleanArray = filter.evaluate(&batch)?;
            let kept = filter_record_batch(&batch, &mask).map_err(|error| plan_error(error.to_string()))?;
            self.unselected += (batch.num_rows() - kept.num_rows()) as u64;
            if kept.num_rows() > 0 {
                selected.push(batch_to_block(&kept, &self.def.schema)?);
            }
        }
        Ok(selected)
    }

    pub fn counts(&self) -> Counts {
        let counts = match &self.fields {
            Fields::Direct(decoder) => decoder.counts(),
            Fields::Computed(computed) => {
                let read = computed.strings.counts();
                Counts {
                    total: read.total,
                    loaded: computed.loaded,
                    filtered: read.filtered + computed.filtered,
                    unselected: computed.unselected,
                }
            }
        };
        Counts {
            loaded: counts.loaded - self.unselected,
            unselected: counts.unselected + self.unselected,
            ..counts
        }
    }

    pub fn rejects(&self) -> Vec<Reject> {
        match &self.fields {
            Fields::Direct(decoder) => decoder.rejects().to_vec(),
            Fields::Computed(computed) => {
                let mut all = computed.strings.rejects().to_vec();
                all.extend_from_slice(&computed.rejects);
                all.truncate(tributary_decode::REJECTS_KEPT_MAX);
                all
            }
        }
    }
}

fn direct(engine: &Engine, target: Target, options: CsvOptions) -> Result<Fields, SqlError> {
    let builder = engine.builders.take(target.schema());
    Ok(Fields::Direct(Box::new(CsvDecoder::with_builder(target, options, builder)?)))
}

impl Drop for RowReader {
    fn drop(&mut self) {
        if let Fields::Direct(decoder) = &mut self.fields {
            self.engine.builders.give_back(decoder.take_builder());
        }
    }
}

impl Computed {
    fn new(
        engine: &Engine,
        def: &Arc<TableDef>,
        columns: &[MappedColumn],
        source_where: Option<&Expr>,
        options: CsvOptions,
    ) -> Result<Self, SqlError> {
        let fields: Vec<String> =
            columns.iter().filter(|column| column.expr.is_none()).map(|column| column.name.clone()).collect();
        let is_derived = |name: &str| {
            columns.iter().any(|column| column.expr.is_some() && column.name.eq_ignore_ascii_case(name))
        };
        let mut targets: Vec<(String, Expr)> = Vec::new();
        for column in columns {
            match &column.expr {
                Some(expr) => targets.push((column.name.clone(), expr.clone())),
                None if def.schema.index_of(&column.name).is_some() && !is_derived(&column.name) => {
                    targets.push((column.name.clone(), Expr::Identifier(Ident::new(&column.name))));
                }
                None => {}
            }
        }
        let names: Vec<String> = targets.iter().map(|(name, _)| name.clone()).collect();
        let target = Target::new(def, Some(&names))?;
        let insert = InsertOptions { strict: options.strict, max_filter_ratio: 1.0, clock: options.clock };
        let strings = if fields.is_empty() {
            CsvStrings::inferred(options)?
        } else {
            CsvStrings::with_names(&fields, options)?
        };
        let mut computed = Self {
            strings,
            targets,
            source_where: source_where.cloned(),
            plan: None,
            target,
            options: insert,
            builder: BlockBuilder::new(&def.schema),
            filtered: 0,
            loaded: 0,
            unselected: 0,
            rejects: Vec::new(),
        };
        if !fields.is_empty() {
            computed.plan(engine)?;
        }
        Ok(computed)
    }

    /// Plans the expressions as soon as the fields are known.
    fn plan(&mut self, engine: &Engine) -> Result<(), SqlError> {
        let source = self.strings.known_schema()?;
        let projection = engine.query.compile_projection(&engine.view(), &source, &self.targets)?;
        let filter = self
            .source_where
            .as_ref()
            .map(|condition| engine.query.compile_source_filter(&engine.view(), &source, condition))
            .transpose()?;
        self.plan = Some((projection, filter));
        Ok(())
    }

    fn compute(&mut self, engine: &Engine) -> Result<Vec<Block>, SqlError> {
        let mut blocks = Vec::new();
        for batch in self.strings.take_batches() {
            if self.plan.is_none() {
                self.plan(engine)?;
            }
            let Some((projection, filter)) = &self.plan else { continue };
            let batch = match filter {
                None => batch,
                Some(filter) => {
                    let kept = filter_record_batch(&batch, &filter.evaluate(&batch)?)
                        .map_err(|error| plan_error(error.to_string()))?;
                    self.unselected += (batch.num_rows() - kept.num_rows()) as u64;
                    kept
                }
            };
            let values: RecordBatch = projection.evaluate(&batch)?;
            let decoded = decode_batch(&values, &self.target, &self.options, &mut self.builder)?;
            self.filtered += decoded.counts.filtered;
            self.loaded += decoded.counts.loaded;
            self.rejects.extend(decoded.rejects);
            self.rejects.truncate(tributary_decode::REJECTS_KEPT_MAX);
            blocks.extend(decoded.blocks);
        }
        Ok(blocks)
    }
}
