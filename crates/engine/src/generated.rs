//! Values of generated columns: their expressions, compiled once for each version of a table, and the rows that get them.
//!
//! They are inserted right after rows are decoded, for every kind of load: before conditions on final values, before partitions
//! are created, before the log. Tables are checked once per load for such columns.
//!
//! Not here: which columns may be generated (`sql`), and what becomes of values that don't fit (`decode`).

use arrow::datatypes::{DataType as ArrowType, Field};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tributary_decode::{Block, Decoded, InsertOptions, LoadRules, Strictness, Target, Wording, complete};
use tributary_query::{Projection, QueryEngine, SessionView, type_text};
use tributary_types::host::unix_ms;
use tributary_types::{DataType, ErrorCode, SchemaVersion, SqlError, TableDef, TableId, TableSchema};

/// How many time zones' expressions are cached per table.
const ZONES_MAX: usize = 8;

/// The compiled expressions of tables.
pub(crate) struct GeneratedColumns {
    /// Queries of nobody, who sees no table.
    query: Arc<QueryEngine>,
    known: Mutex<HashMap<TableId, Vec<Known>>>,
}

/// Expressions of a table in one zone.
struct Known {
    version: SchemaVersion,
    zone: String,
    expressions: Arc<Expressions>,
}

/// By the places of their columns.
type Expressions = HashMap<usize, Projection>;

impl GeneratedColumns {
    pub fn new(query: Arc<QueryEngine>) -> Self {
        Self { query, known: Mutex::default() }
    }

    /// Removes a dropped table.
    pub fn forget(&self, table: TableId) {
        self.known.lock().remove(&table);
    }

    fn find(&self, def: &TableDef, zone: &str) -> Option<Arc<Expressions>> {
        let known = self.known.lock();
        let mut of_table = known.get(&def.id)?.iter();
        let found = of_table.find(|known| known.version == def.schema.version && known.zone == zone)?;
        Some(Arc::clone(&found.expressions))
    }

    fn keep(&self, def: &TableDef, zone: &str, expressions: &Arc<Expressions>) {
        let mut all = self.known.lock();
        let of_table = all.entry(def.id).or_default();
        of_table.retain(|known| known.version == def.schema.version && known.zone != zone);
        if of_table.len() >= ZONES_MAX {
            of_table.remove(0);
        }
        of_table.push(Known {
            version: def.schema.version,
            zone: zone.to_owned(),
            expressions: Arc::clone(expressions),
        });
    }

    /// The expressions of a table's generated columns, in the zone of a load.
    fn expressions(&self, def: &TableDef, zone: &str) -> Result<Arc<Expressions>, SqlError> {
        if let Some(known) = self.find(def, zone) {
            return Ok(known);
        }
        let expressions = Arc::new(self.compile_generated(&def.schema, zone)?);
        self.keep(def, zone, &expressions);
        Ok(expressions)
    }

    fn compile_generated(&self, schema: &TableSchema, zone: &str) -> Result<Expressions, SqlError> {
        let view = SessionView {
            time_zone: zone.to_owned(),
            ..SessionView::new("root@%", unix_ms().saturating_mul(1000))
        };
        let compiled = schema.generated().map(|(place, column, generated)| {
            let expr = tributary_sql::parse_expression(&generated.expr)?;
            let projection = self.query.compile_generated(&view, schema, &column.name, &expr)?;
            Ok((place, projection))
        });
        compiled.collect()
    }

    /// Checks that the generated columns of a new table can be computed.
    ///
    /// # Errors
    /// Unknown functions, wrong types, functions that no such column can have.
    pub(crate) fn check(&self, def: &TableDef, zone: &str) -> Result<(), SqlError> {
        if def.schema.generated().next().is_none() {
            return Ok(());
        }
        for (place, column, _) in def.schema.generated() {
            // One by one: the error is of this column.
            let alone = without_others(&def.schema, place);
            let expressions = self.compile_generated(&alone, zone).map_err(|error| {
                let text = error.detail_text();
                match text.starts_with("Expression of generated column") {
                    true => error,
                    false => refused(format!("In generated column '{}', {}", column.name, lower_first(text))),
                }
            })?;
            let fields = expressions.values().map(|expression| expression.schema().field(0));
            if let Some(found) = fields.into_iter().find(|field| !takes(column.data_type, field)) {
                return Err(refused(format!(
                    "In generated column '{}', cannot cast from {} to {}",
                    column.name,
                    type_text(found),
                    column.data_type
                )));
            }
        }
        Ok(())
    }
}

/// The schema in which only this column is generated.
fn without_others(schema: &TableSchema, place: usize) -> TableSchema {
    let mut alone = schema.clone();
    for (other, column) in alone.columns.iter_mut().enumerate() {
        if other != place && column.generated.take().is_some() {
            column.nullable = true;
        }
    }
    alone
}

/// Whether values of an expression's type can be stored in a column.
fn takes(column: DataType, expression: &Field) -> bool {
    match expression.data_type() {
        ArrowType::Null => !column.is_state(),
        ArrowType::Binary => column.is_state() || column.is_bytes(),
        _ if column.is_state() => false,
        found => !found.is_nested() || takes_nested(column),
    }
}

/// Whether values that consist of values have a form in the column.
const fn takes_nested(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Nested(_)
            | DataType::Json
            | DataType::Variant
            | DataType::String
            | DataType::Varchar { .. }
            | DataType::Char { .. }
    )
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

fn refused(text: String) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

/// Puts values of generated columns into the rows of one load.
#[derive(Clone)]
pub(crate) struct Completer {
    expressions: Arc<Expressions>,
    target: Arc<Target>,
    rules: Strictness,
    now_micros: i64,
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completer")
    }
}

impl Completer {
    /// For the rows of an INSERT. `None`: nothing is computed.
    ///
    /// # Errors
    /// The expressions can't be compiled any more.
    #[inline]
    pub fn of_insert(
        generated: &GeneratedColumns,
        target: &Target,
        options: &InsertOptions,
        zone: &str,
    ) -> Result<Option<Box<Self>>, SqlError> {
        match target.computed() {
            None => Ok(None),
            Some(computed) => {
                let rules = LoadRules { strict: options.strict, clock: options.clock };
                Self::new(generated, computed, rules, Wording::Insert, zone)
            }
        }
    }

    /// For the rows of a body. `None`: nothing is computed.
    ///
    /// # Errors
    /// As [`Completer::of_insert`].
    pub fn of_body(
        generated: &GeneratedColumns,
        target: &Target,
        rules: LoadRules,
        zone: &str,
    ) -> Result<Option<Box<Self>>, SqlError> {
        match target.computed() {
            None => Ok(None),
            Some(computed) => Self::new(generated, computed, rules, Wording::File, zone),
        }
    }

    #[cold]
    fn new(
        generated: &GeneratedColumns,
        target: &Arc<Target>,
        rules: LoadRules,
        wording: Wording,
        zone: &str,
    ) -> Result<Option<Box<Self>>, SqlError> {
        let clock = rules.clock;
        Ok(Some(Box::new(Self {
            expressions: generated.expressions(target.table(), zone)?,
            target: Arc::clone(target),
            rules: Strictness { strict: rules.strict, wording, utc_offset_seconds: clock.utc_offset_seconds },
            now_micros: clock.now_micros,
        })))
    }

    /// Returns the rows with all values, and the rejected ones.
    ///
    /// # Errors
    /// The values are of a type that the column can't have.
    pub fn complete(&self, blocks: &[Block]) -> Result<Decoded, SqlError> {
        complete(blocks, &self.target, self.rules, self.now_micros, &|place, batch| {
            let values =
                self.expressions.get(&place).expect("each generated column has one").evaluate(batch)?;
            Ok(Arc::clone(values.column(0)))
        })
    }

    /// Completes decoded rows.
    ///
    /// # Errors
    /// As [`Completer::complete`].
    pub fn complete_all(&self, decoded: &mut Decoded) -> Result<(), SqlError> {
        if !decoded.blocks.is_empty() {
            let complete = self.complete(&decoded.blocks)?;
            decoded.become_complete(complete);
        }
        Ok(())
    }
}
