//! Turns the bytes of a body into blocks.
//!
//! Without derived columns the fields are decoded straight into their columns. With them the
//! fields become texts, the query engine computes the columns, and its results are decoded
//! ([`crate::load::body::computed`]).

use crate::access::interrupt::{Interrupt, Interrupted};
use crate::generated::Completer;
use crate::load::Loads;
use crate::load::body::computed::{Computed, Terms};
use crate::load::body::parts::read_parts;
use crate::load::body::rows::{Rows, Tallies};
use crate::load::body::segments::{Giving, LARGE_BODY_BYTES, Segments};
use crate::load::body::time::LoadTime;
use crate::load::hidden_columns;
use crate::load::partial_update::Updates;
use crate::load::sink::{LoadSink, SinkError};
use crate::node::host::{Host, memory_full};
use sqlparser::ast::{Expr, VisitorMut};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_decode::{
    Block, BodyDecoder, BodyFormat, Counts, FieldNames, LoadHost, LoadRules, Reject, Target,
};
use tributary_http::ColumnMapping;
use tributary_ingest::memory::InFlight;
use tributary_sql::visit::walk_expr_mut;
use tributary_types::{ErrorCode, PartitionNames, Sealed, SqlError, TableDef};

/// A name in the header `columns` and its meaning.
#[derive(Clone, Debug)]
pub(crate) struct MappedColumn {
    pub name: String,
    pub value: Value,
}

/// The source of a value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The next field of the body, which has the column's name.
    Field,
    /// The field at this place (from 0), whatever its name.
    FieldAt(usize),
    Expr(Sealed<Expr>),
}

/// The entries of the header `columns`, with their expressions parsed.
pub(crate) fn mapped(columns: &[ColumnMapping]) -> Result<Vec<MappedColumn>, SqlError> {
    let mapped = |column: &ColumnMapping| {
        let value = match &column.expr {
            None => Value::Field,
            Some(text) => Value::Expr(Sealed::new(tributary_sql::parse_expression(text)?)),
        };
        Ok(MappedColumn { name: column.name.clone(), value })
    };
    let mut columns = columns.iter().map(mapped).collect::<Result<Vec<_>, SqlError>>()?;
    resolve_derived(&mut columns);
    Ok(columns)
}

/// Puts the expressions of derived columns in the place of their names where later columns use them. A name that is a field's,
/// too, stays the field's.
pub(crate) fn resolve_derived(columns: &mut [MappedColumn]) {
    let fields: Vec<String> = columns
        .iter()
        .filter(|column| matches!(column.value, Value::Field))
        .map(|column| column.name.to_lowercase())
        .collect();
    let mut derived: HashMap<String, Expr> = HashMap::new();
    for MappedColumn { name, value } in columns {
        let Value::Expr(sealed) = value else { continue };
        let mut expr = Expr::clone(sealed);
        if !derived.is_empty() {
            // It never breaks.
            let _ = walk_expr_mut(&mut expr, &mut Substitute { derived: &derived });
            *value = Value::Expr(Sealed::new(expr.clone()));
        }
        if !fields.contains(&name.to_lowercase()) {
            derived.insert(name.to_lowercase(), Expr::Nested(Box::new(expr)));
        }
    }
}

/// Replaces names by expressions.
struct Substitute<'a> {
    derived: &'a HashMap<String, Expr>,
}

impl VisitorMut for Substitute<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(value) = self.derived.get(&name.value.to_lowercase())
        {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}

/// The error for a statement that gives another number of values than columns.
pub(crate) fn wrong_width(columns: usize, values: usize) -> SqlError {
    SqlError::detail(
        ErrorCode::ColumnCountMismatch,
        format!("Column count doesn't match value count: {columns} columns, {values} values"),
    )
}

/// The headers `columns` and `where`, or a statement's equivalents.
pub(crate) struct Mapping<'a> {
    pub columns: Option<&'a [MappedColumn]>,
    /// A condition on the columns' final values.
    pub where_expr: Option<&'a Expr>,
    /// A condition on the fields of the body, for computed columns.
    pub source_where: Option<&'a Expr>,
    /// The rows delete the rows of their keys.
    pub deletes: bool,
    pub updates: Updates,
    /// How the fields are named when no column names one.
    pub unnamed_fields: FieldNames<'static>,
    /// The partitions that the load names.
    pub partitions: &'a PartitionNames,
}

/// Reads the rows of one body.
pub(crate) struct RowReader {
    loads: Arc<Loads>,
    rows: Rows,
    target: Target,
    /// Memory of the body, except its rows.
    body_memory: InFlight,
    read_time: Duration,
    /// The results of parts that were read in parallel.
    parts: Tallies,
    /// Whether the sink may get rows later than with the chunk that brings them.
    may_fork: bool,
    /// Bytes that were fed.
    fed_bytes: usize,
    /// The rest of the body, if it is decoded in parallel.
    segments: Option<Box<Segments>>,
}

/// Refuses a mapping that computes values of a generated column itself. A field of such a column's name is left out.
fn check_mapped(def: &TableDef, columns: &[MappedColumn]) -> Result<(), SqlError> {
    let is_given = |name: &str| {
        let given = columns.iter().filter(|column| !matches!(column.value, Value::Field));
        given.into_iter().any(|column| column.name.eq_ignore_ascii_case(name))
    };
    match def.schema.generated().find(|(_, column, _)| is_given(&column.name)) {
        Some((_, column, _)) => Err(Target::not_to_be_given(def, column)),
        None => Ok(()),
    }
}

/// Why a body was not read to its end.
pub(crate) enum ReadError {
    /// The body can't be read.
    Rows(SqlError),
    /// Its rows can't be stored.
    Sink(SinkError),
    Interrupted(Interrupted),
}

impl From<SqlError> for ReadError {
    fn from(error: SqlError) -> Self {
        Self::Rows(error)
    }
}

impl From<SinkError> for ReadError {
    fn from(error: SinkError) -> Self {
        Self::Sink(error)
    }
}

impl From<Interrupted> for ReadError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Interrupted(interrupted)
    }
}

impl RowReader {
    pub fn new(
        loads: &Arc<Loads>,
        def: &Arc<TableDef>,
        mapping: &Mapping<'_>,
        format: &BodyFormat,
        strict: bool,
        time: LoadTime,
    ) -> Result<Self, SqlError> {
        let names: Option<Vec<String>> =
            mapping.columns.map(|columns| columns.iter().map(|column| column.name.clone()).collect());
        let updates = match mapping.updates {
            Updates::Named if mapping.columns.is_none() => Updates::Whole,
            updates => updates,
        };
        if updates != Updates::OfRows {
            hidden_columns::check_given(def, names.as_deref(), updates == Updates::Named)?;
        }
        if let Some(columns) = mapping.columns {
            check_mapped(def, columns)?;
        }
        let zone = def.schema.generated().next().map(|_| time.view.time_zone.clone());
        let filter = mapping
            .where_expr
            .map(|condition| loads.query.compile_source_filter(&time.view, &def.schema.arrow(), condition))
            .transpose()?;
        let rules = LoadRules { strict, clock: time.clock };
        let host: Arc<dyn LoadHost> = Arc::new(Host { room: loads.spool_room(), zone: time.zone });
        let direct = |target: Target| {
            target.check_no_states()?;
            let target = if mapping.deletes { target.deleting() } else { target };
            let target = target.into_partitions(mapping.partitions)?;
            let builder = loads.builders.take(target.schema());
            Ok::<_, SqlError>((target.clone(), format.decoder(target, rules, builder, &host)?))
        };
        let (target, decoder) = match mapping.columns {
            None if updates == Updates::OfRows => direct(Target::flexible(def)?)?,
            None if updates == Updates::OfNewRows => direct(Target::upserting(def, None, &[])?)?,
            None => direct(Target::new(def, None)?)?,
            Some(columns)
                if updates == Updates::OfNewRows
                    && columns.iter().all(|column| matches!(column.value, Value::Field))
                    && columns.iter().all(|column| def.schema.index_of(&column.name).is_some()) =>
            {
                let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
                direct(Target::upserting(def, Some(&names), &[])?)?
            }
            Some(columns)
                if updates != Updates::OfNewRows
                    && columns.iter().all(|column| matches!(column.value, Value::Field)) =>
            {
                let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
                direct(if updates == Updates::Named {
                    Target::partial_with_ignored_fields(def, &names)?
                } else {
                    Target::with_ignored_fields(def, &names)?
                })?
            }
            Some(columns) => {
                let terms = Terms { rules, view: time.view, host };
                let computed = Computed::new(loads, def, columns, mapping, format, terms)?;
                (computed.target().clone(), Box::new(computed) as Box<dyn BodyDecoder>)
            }
        };
        let completer =
            Completer::of_body(&loads.generated, &target, rules, zone.as_deref().unwrap_or_default())?;
        Ok(Self {
            rows: Rows::new(decoder, filter, completer, def),
            target,
            body_memory: InFlight::new(loads.ingest.memory()),
            loads: Arc::clone(loads),
            read_time: Duration::ZERO,
            parts: Tallies::default(),
            may_fork: false,
            fed_bytes: 0,
            segments: None,
        })
    }

    /// Lets several threads decode a large body while it arrives. The sink gets rows later than [`RowReader::feed`] returns, all of
    /// them by the end.
    pub fn in_parallel(mut self) -> Self {
        self.may_fork = true;
        self
    }

    /// Decodes a chunk of the body into a load's sink.
    ///
    /// # Errors
    /// The body can't be read, its rows can't be stored, or the time is over.
    pub async fn feed(
        &mut self,
        loads: &Loads,
        sink: &mut LoadSink,
        chunk: &[u8],
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReadError> {
        let before = Instant::now();
        if self.segments.is_some() {
            let fed = Box::pin(self.feed_segments(sink, chunk, interrupt)).await;
            self.read_time += before.elapsed();
            return fed;
        }
        let blocks = self.rows.push(chunk);
        self.read_time += before.elapsed();
        self.give(loads, sink, blocks?, interrupt).await?;
        self.fed_bytes += chunk.len();
        if self.may_fork && self.fed_bytes >= LARGE_BODY_BYTES && self.loads.decode_threads.are_idle() {
            Box::pin(self.fork(sink, interrupt)).await?;
        }
        Ok(())
    }

    /// Has the rest of the body decoded in parallel, if its rows are lines.
    async fn fork(&mut self, sink: &mut LoadSink, interrupt: Interrupt<'_>) -> Result<(), ReadError> {
        self.may_fork = false;
        let Some(fork) = self.rows.fork() else { return Ok(()) };
        let blocks = self.rows.finish()?;
        let loads = Arc::clone(&self.loads);
        self.give(&loads, sink, blocks, interrupt).await?;
        let rejects_before = self.rows.tallies().rejects_kept();
        self.segments = Some(Box::new(Segments::new(fork, rejects_before)));
        Ok(())
    }

    async fn feed_segments(
        &mut self,
        sink: &mut LoadSink,
        chunk: &[u8],
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReadError> {
        let Some(segments) = &mut self.segments else { return Ok(()) };
        let mut to = Giving { loads: &self.loads, sink, interrupt };
        segments.feed(&mut to, chunk).await?;
        if !self.body_memory.try_set(segments.held_bytes() as u64) {
            segments.settle(&mut to).await?;
            self.body_memory.set(segments.held_bytes() as u64);
        }
        Ok(())
    }

    /// Decodes the rest at the body's end into the sink: in parallel if it is much and can be divided.
    ///
    /// # Errors
    /// See [`RowReader::feed`].
    pub async fn end(
        &mut self,
        loads: &Loads,
        sink: &mut LoadSink,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReadError> {
        if let Some(segments) = &mut self.segments {
            let before = Instant::now();
            let ended = Box::pin(segments.end(&mut Giving { loads: &self.loads, sink, interrupt })).await;
            self.read_time += before.elapsed();
            return ended;
        }
        // Boxed: most bodies have no parts.
        if sink.takes_parts() && Box::pin(self.end_in_parts(sink, interrupt)).await? {
            return Ok(());
        }
        let blocks = self.rows.finish()?;
        self.give(loads, sink, blocks, interrupt).await
    }

    /// [`RowReader::end`] in parallel; returns whether it was, or else `end` must still follow.
    async fn end_in_parts(
        &mut self,
        sink: &mut LoadSink,
        interrupt: Interrupt<'_>,
    ) -> Result<bool, ReadError> {
        let Some(threads) = self.loads.decode_threads.take() else { return Ok(false) };
        let parts = self.rows.divide(threads.count(), sink.bytes_left())?;
        if parts.is_empty() {
            return Ok(false);
        }
        self.charge_body()?;
        let before = Instant::now();
        let read = read_parts(&self.loads, sink, parts, interrupt).await;
        self.read_time += before.elapsed();
        match read {
            Ok(tallies) => self.parts = tallies,
            Err(_) if self.rows.parts_lacked_memory() => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Counts the bytes of the body that are held in memory.
    fn charge_body(&mut self) -> Result<(), SqlError> {
        match self.body_memory.try_set(self.rows.held_bytes() as u64) {
            true => Ok(()),
            false => Err(memory_full()),
        }
    }

    /// Adds rows to the sink, including rows that the decoder held back.
    async fn give(
        &mut self,
        loads: &Loads,
        sink: &mut LoadSink,
        mut blocks: Vec<Block>,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ReadError> {
        self.charge_body()?;
        loop {
            if !blocks.is_empty() {
                sink.push(loads, blocks).await?;
            }
            interrupt.check()?;
            let before = Instant::now();
            let more = self.rows.resume();
            self.read_time += before.elapsed();
            let Some(more) = more? else { return Ok(()) };
            blocks = more;
            // A body that is decoded from its end keeps a thread busy for long.
            tokio::task::consume_budget().await;
        }
    }

    /// The target of the rows' values.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The time that decoding took so far.
    pub fn read_time(&self) -> Duration {
        self.read_time
    }

    pub fn counts(&self) -> Counts {
        let in_segments = self.segments.as_ref().map(|segments| segments.tallies().counts);
        self.rows.counts().plus(self.parts.counts).plus(in_segments.unwrap_or_default())
    }

    pub fn rejects(&self) -> Vec<Reject> {
        let mut all = self.rows.tallies();
        all.add(self.parts.clone());
        if let Some(segments) = &self.segments {
            all.add(segments.tallies().clone());
        }
        all.into_rejects()
    }
}

#[cfg(test)]
impl RowReader {
    /// Whether the rest of the body is decoded in parallel.
    pub fn is_in_segments(&self) -> bool {
        self.segments.is_some()
    }
}

impl Drop for RowReader {
    fn drop(&mut self) {
        self.loads.builders.give_back(self.rows.take_builder());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestEngine, block};
    use std::borrow::Cow;
    use tributary_decode::BlockBuilder;
    use tributary_types::TableSchema;

    /// A body of 3 blocks, whose parts fail after a block.
    struct Narrow {
        schema: Arc<TableSchema>,
        ready: Vec<Block>,
        left: usize,
        is_part: bool,
    }

    impl Narrow {
        fn new(schema: &Arc<TableSchema>, left: usize, is_part: bool) -> Self {
            Self { schema: Arc::clone(schema), ready: Vec::new(), left, is_part }
        }
    }

    impl BodyDecoder for Narrow {
        fn push(&mut self, _chunk: &[u8]) -> Result<(), SqlError> {
            Ok(())
        }

        fn finish(&mut self) -> Result<(), SqlError> {
            self.resume().map(drop)
        }

        fn resume(&mut self) -> Result<bool, SqlError> {
            if self.left == 0 {
                return if self.is_part { Err(memory_full()) } else { Ok(false) };
            }
            self.left -= 1;
            self.ready.push(block(&self.schema, 1 << 20));
            Ok(true)
        }

        fn divide(&mut self, count: usize, _: u64) -> Result<Vec<Box<dyn BodyDecoder>>, SqlError> {
            let part = |_| Box::new(Self::new(&self.schema, 1, true)) as Box<dyn BodyDecoder>;
            Ok((0..count).map(part).collect())
        }

        fn parts_lacked_memory(&self) -> bool {
            true
        }

        fn take_blocks(&mut self) -> Vec<Block> {
            std::mem::take(&mut self.ready)
        }

        fn counts(&self) -> Counts {
            Counts::default()
        }

        fn rejects(&self) -> Cow<'_, [Reject]> {
            Cow::Borrowed(&[])
        }

        fn take_builder(&mut self) -> BlockBuilder {
            BlockBuilder::new(&self.schema)
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_body_whose_parts_lack_memory_is_read_whole() {
        let test = TestEngine::open(|_| ()).await;
        test.engine.loads.decode_threads.add_for_test();
        let table = test.table().await;
        let def = table.def();
        let mut reader = RowReader {
            loads: Arc::clone(&test.engine.loads),
            rows: Rows::new(Box::new(Narrow::new(&def.schema, 3, false)), None, None, &def),
            target: Target::new(&def, None).expect("it has columns"),
            body_memory: InFlight::new(test.engine.ingest.memory()),
            read_time: Duration::ZERO,
            parts: Tallies::default(),
            may_fork: false,
            fed_bytes: 0,
            segments: None,
        };
        let mut sink = LoadSink::new(Arc::clone(&table), Arc::clone(&def.schema), 64 << 20);
        let ended = reader.end(&test.engine.loads, &mut sink, Interrupt::NEVER).await;
        assert!(ended.is_ok());
        let rows = sink.take_small().expect("it fits into memory");
        assert_eq!(rows.blocks.len(), 3, "of the whole, and of no part");
    }

    #[test]
    fn a_derived_column_is_used_by_later_ones_and_a_field_before_it() {
        let column = |name: &str, expr: Option<&str>| ColumnMapping {
            name: name.to_owned(),
            expr: expr.map(str::to_owned),
        };
        let header = [
            column("a", None),
            column("t", None),
            column("c", Some("t + 1")),
            column("A", Some("a * 2")),
            column("e", Some("`C` * 10 + a")),
            column("f", Some("abs(e)")),
        ];
        let shown: Vec<String> = mapped(&header)
            .expect("they are expressions")
            .iter()
            .filter_map(|column| match &column.value {
                Value::Expr(expr) => Some(expr.to_string()),
                Value::Field | Value::FieldAt(_) => None,
            })
            .collect();
        assert_eq!(shown, ["t + 1", "a * 2", "(t + 1) * 10 + a", "abs(((t + 1) * 10 + a))"]);
    }
}
