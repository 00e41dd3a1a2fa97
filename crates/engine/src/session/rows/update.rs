//! UPDATE of a table with DUPLICATE KEY: the query engine finds the rows and computes their new values, which are written to data
//! files, and the table replaces the rows in one commit.
//!
//! A statement changes the rows that were visible when it began, as a whole or not at all, and is durable when it is answered.
//! Rows that were acknowledged and wait for their group's commit stay as they are. Statements that change rows of one table take
//! turns.
//!
//! Not the business of this module: rows of other tables ([`crate::session::rows::change`]).

use crate::access::interrupt::{Interrupt, Interrupted};
use crate::access::limits::AdmittedLoad;
use crate::answer::{Answer, Done};
use crate::ddl::tables::table_error;
use crate::generated::Completer;
use crate::load::Loads;
use crate::load::lanes::Read;
use crate::load::sink::{LoadSink, SinkError};
use crate::session::EngineSession;
use crate::session::rows::change::{NewValues, new_values};
use crate::session::rows::changed_rows::{Unchanged, count_unchanged};
use crate::session::rows::insert::refusal;
use parking_lot::Mutex;
use std::sync::Arc;
use tributary_decode::{BlockBuilder, InsertOptions, Reject, Target, decode_batch};
use tributary_ingest::{IngestError, LoadTraits};
use tributary_query::{PlacedRows, QueryEngine, ScalarValue, SessionView};
use tributary_sql::{Expr, Update};
use tributary_table::{RowUpdate, Snapshot, Table, TableError, UnpublishedFiles};
use tributary_types::{SqlError, TableDef};

/// Why rows were not changed.
enum Failed {
    Table(TableError),
    Sql(SqlError),
}

impl From<TableError> for Failed {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<Interrupted> for Failed {
    fn from(interrupted: Interrupted) -> Self {
        Self::Sql(interrupted.into())
    }
}

impl From<SinkError> for Failed {
    fn from(error: SinkError) -> Self {
        Self::Sql(error.into())
    }
}

impl EngineSession {
    /// Replaces the rows that the statement finds in data files.
    pub(in crate::session) async fn update_by_position(
        &mut self,
        table: Arc<Table>,
        update: &Update,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        self.change_at_once("UPDATE of a table with DUPLICATE KEY", &table)?;
        let traits =
            LoadTraits { from_query: true, partial_update: false, in_transaction: false, ..self.traits(0) };
        let admitted = self.engine.loads.admit(&self.principal, &table, &traits)?;
        let _turn = self.turn_to_change(&table).await?;
        let view = self.view();
        let options = self.insert_options();
        let process = Arc::clone(&self.process);
        let zone = self.variables.values().time_zone.name.clone();
        let replacing = Replacing {
            queries: &self.queries,
            loads: &self.engine.loads,
            view: &view,
            interrupt: Interrupt::by_kill(&process.stop).or_after(self.insert_query_timeout()),
            table: &table,
            update,
            params,
            options,
            zone: &zone,
            admitted: &admitted,
            unchanged: self.count_changed(),
            rejects: Mutex::default(),
        };
        let predicate = update.rows.condition().map_or_else(|| "true".to_owned(), ToString::to_string);
        let updated = table.update(&predicate, |snapshot| replacing.find(snapshot)).await;
        let (rejects, unchanged) = (replacing.rejects.into_inner(), replacing.unchanged);
        self.keep_warnings(&rejects);
        match updated {
            Ok(report) => {
                let unchanged = unchanged.map_or(0, |unchanged| unchanged.rows());
                let affected_rows = report.rows.saturating_sub(unchanged);
                Ok(Answer::Done(Done { affected_rows, ..Done::default() }))
            }
            Err(Failed::Table(error)) => Err(table_error(error)),
            Err(Failed::Sql(error)) => Err(error),
        }
    }
}

/// A statement that replaces rows.
struct Replacing<'a> {
    queries: &'a QueryEngine,
    loads: &'a Arc<Loads>,
    view: &'a SessionView,
    interrupt: Interrupt<'a>,
    table: &'a Arc<Table>,
    update: &'a Update,
    params: &'a [ScalarValue],
    options: InsertOptions,
    zone: &'a str,
    admitted: &'a AdmittedLoad,
    /// Counts rows that keep their values, if they are not counted as changed.
    unchanged: Option<Arc<Unchanged>>,
    /// The rows that can't have their new values.
    rejects: Mutex<Vec<Reject>>,
}

impl Replacing<'_> {
    /// The rows of the snapshot that the statement changes, and files with their new values.
    async fn find(&self, snapshot: Arc<Snapshot>) -> Result<RowUpdate, Failed> {
        let (target, mut values, sign) = target(&snapshot.def, self.update)?;
        if let Some(unchanged) = &self.unchanged {
            unchanged.reset();
            values.push(sign);
        }
        let query = self.update.places_and(values);
        let rows = self.queries.rows_to_update(self.view, &query, self.params, self.table, &snapshot);
        let mut rows = self.interrupt.wait(rows).await??;
        let completer = Completer::of_insert(&self.loads.generated, &target, &self.options, self.zone)?;
        let limit_bytes = self.loads.options.large_load_bytes.get();
        let mut sink = LoadSink::new(Arc::clone(self.table), Arc::clone(target.schema()), limit_bytes);
        let mut builder = self.loads.builders.take(target.schema());
        let read = self.read(&mut rows, (&target, completer.as_deref()), &mut builder, &mut sink).await;
        self.loads.builders.give_back(builder);
        let counts = match read {
            Ok(read) => self.judge(read).await,
            Err(error) => Err(error),
        };
        let rows = rows.into_found();
        match counts {
            Ok(0) => Ok(RowUpdate { rows, files: UnpublishedFiles::default() }),
            Ok(count) => {
                let bytes = sink.taken_bytes();
                let files = sink.into_files().await?;
                self.admitted.charge(count, bytes);
                Ok(RowUpdate { rows, files })
            }
            Err(error) => {
                sink.abort().await;
                Err(error)
            }
        }
    }

    /// Reads the new values into the sink.
    async fn read(
        &self,
        rows: &mut PlacedRows,
        (target, completer): (&Target, Option<&Completer>),
        builder: &mut BlockBuilder,
        sink: &mut LoadSink,
    ) -> Result<Read, Failed> {
        let mut read = Read::default();
        while let Some(batch) = self.interrupt.wait(rows.next()).await?? {
            let batch = count_unchanged(self.unchanged.as_deref(), batch)?;
            let mut decoded = decode_batch(&batch, target, &self.options, builder)?;
            if let Some(completer) = completer {
                completer.complete_all(&mut decoded)?;
            }
            sink.push(self.loads, std::mem::take(&mut decoded.blocks)).await?;
            read.add_decoded(decoded);
        }
        Ok(read)
    }

    /// The number of rows. All of them must have their new values: no row may be removed without a replacement.
    async fn judge(&self, read: Read) -> Result<u64, Failed> {
        if read.counts.filtered > 0 {
            let error_url = self.loads.write_error_log(&read.rejects, None).await;
            let options = InsertOptions { strict: true, ..self.options };
            let error = refusal(&options, read.counts, &read.rejects, error_url.as_deref());
            *self.rejects.lock() = read.rejects;
            return Err(error.into());
        }
        if self.admitted.right().is_some_and(|right| !right.holds()) {
            let table = self.table.with_def(TableDef::table_ref);
            return Err(SqlError::from(IngestError::RightRevoked { table }).into());
        }
        Ok(read.counts.loaded)
    }
}

/// The columns of the new rows, their values, and the sign of a change.
fn target(def: &Arc<TableDef>, update: &Update) -> Result<(Target, Vec<Expr>, Expr), SqlError> {
    let NewValues { values, sign, .. } = new_values(def, update)?;
    let is_given = |name: &str| {
        let index = def.schema.index_of(name);
        index.is_some_and(|index| def.schema.columns[index].generated.is_none())
    };
    let given = values.into_iter().filter(|(name, _)| is_given(name));
    let (names, values): (Vec<String>, Vec<Expr>) = given.unzip();
    Ok((Target::new(def, Some(&names))?, values, sign))
}
