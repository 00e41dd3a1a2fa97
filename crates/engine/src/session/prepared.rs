//! Server-side prepared statements.
//!
//! A prepared INSERT … VALUES caches its plan: table, columns, template. Executing it decodes the binary parameters straight into
//! column blocks. The plan is rebuilt when the table's definition has changed. Every other statement is stored as parsed, with
//! its parameters as values.

use super::EngineSession;
use super::rows::insert::InsertLoad;
use super::waiting_calls;
use crate::access::Privilege;
use crate::answer::Answer;
use crate::node::session_memory::SessionCharge;
use std::sync::Arc;
use tributary_decode::{BoundParams, ParamType, PreparedValues, Target, prepare_values, scan_insert_head};
use tributary_ingest::LoadRight;
use tributary_query::{ResultColumn, ScalarValue};
use tributary_sql::{Change, Statement};
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError};

/// Memory of a token in a parsed statement, in bytes: the trees of lists of literals, which have most, take this much.
const TOKEN_BYTES: u64 = 200;
/// Memory of a prepared INSERT … VALUES for each byte of its text: `?,` is a cell of the template.
const INSERT_BYTES_PER_BYTE: u64 = 16;
/// Memory of a statement besides.
const STATEMENT_BYTES: u64 = 1024;

/// A prepared statement with the memory that it holds.
pub(super) struct KeptStatement {
    prepared: PreparedStatement,
    _charge: SessionCharge,
}

impl KeptStatement {
    pub fn text(&self) -> &str {
        match &self.prepared {
            PreparedStatement::Insert(insert) => &insert.text,
            PreparedStatement::General(general) => &general.text,
        }
    }

    /// The kind of the statement.
    pub const fn kind(&self) -> &'static str {
        match &self.prepared {
            PreparedStatement::Insert(_) => "INSERT",
            PreparedStatement::General(general) => general.statement.kind(),
        }
    }

    /// The effect of the statement on the server.
    pub fn change(&self) -> Option<Change> {
        match &self.prepared {
            PreparedStatement::Insert(_) => None,
            PreparedStatement::General(general) => general.statement.change(),
        }
    }

    /// A statement other than INSERT … VALUES.
    pub(super) const fn general(&self) -> Option<&General> {
        match &self.prepared {
            PreparedStatement::Insert(_) => None,
            PreparedStatement::General(general) => Some(general),
        }
    }

    /// Whether it is an INSERT … VALUES, of which clients send thousands a second.
    pub const fn is_values_insert(&self) -> bool {
        matches!(self.prepared, PreparedStatement::Insert(_))
    }
}

/// A statement that was prepared.
enum PreparedStatement {
    Insert(Box<PreparedInsert>),
    General(Box<General>),
}

/// Any other statement.
pub(super) struct General {
    pub(super) text: String,
    pub(super) statement: Statement,
    /// Of the parts of it that are mapped.
    pub(super) notes: Vec<String>,
    pub(super) param_count: u16,
}

/// A prepared INSERT … VALUES.
struct PreparedInsert {
    text: String,
    table: Arc<Table>,
    target: Target,
    values: PreparedValues,
    /// The state of the names that the plan was made from.
    generation: u64,
    right: Arc<LoadRight>,
    /// Whether partial updates were on.
    is_partial: bool,
    /// How often the plan was used.
    uses: u64,
    /// The types of an execution's parameters; retained for its allocation.
    types: Vec<ParamType>,
}

/// The parameters of one execution, as a protocol brings them.
pub(crate) trait Parameters: Send + Sync {
    /// The values as they came, to be decoded straight into columns; `types` is a buffer for their types.
    fn bind<'a>(&'a self, types: &'a mut Vec<ParamType>) -> BoundParams<'a>;

    /// The values for the query engine.
    ///
    /// # Errors
    /// One of them is not what its type says.
    fn values(&self) -> Result<Vec<ScalarValue>, SqlError>;
}

/// The shape of a statement that was prepared.
pub(crate) struct Prepared {
    pub param_count: u16,
    /// The columns of its rows; empty for a statement without any.
    pub columns: Vec<ResultColumn>,
}

impl EngineSession {
    /// Keeps a plan of the statement under `id`.
    ///
    /// # Errors
    /// It is wrong, or too many or too large ones are kept.
    pub(crate) async fn prepare(&mut self, id: u32, text: &str) -> Result<Prepared, SqlError> {
        self.running = super::ends::Running::default();
        self.check_statement_count()?;
        if let Some(insert) = self.plan_insert(text).await? {
            let param_count = insert.values.param_count();
            let prepared = Prepared { param_count: param_count_u16(param_count)?, columns: Vec::new() };
            let bytes = text.len() as u64 * INSERT_BYTES_PER_BYTE;
            self.keep(id, PreparedStatement::Insert(Box::new(insert)), bytes)?;
            return Ok(prepared);
        }
        self.running.kind = None;
        self.prepare_parsed(id, text, |_| Ok(())).await
    }

    /// Refuses one more prepared statement than a session may keep.
    fn check_statement_count(&self) -> Result<(), SqlError> {
        let limit = self.engine.global_variables().values().max_prepared_stmt_count;
        if (self.statements.len() as i64) < limit {
            return Ok(());
        }
        Err(SqlError::new(
            ErrorCode::TooManyPreparedStatements,
            format!("Can't create more than max_prepared_stmt_count statements (current value: {limit})"),
        ))
    }

    /// Keeps a statement under `id` as it is parsed, if `check` does not refuse it.
    ///
    /// # Errors
    /// As [`EngineSession::prepare`].
    pub(super) async fn prepare_parsed(
        &mut self,
        id: u32,
        text: &str,
        check: impl FnOnce(&Statement) -> Result<(), SqlError>,
    ) -> Result<Prepared, SqlError> {
        self.check_statement_count()?;
        let (statement, notes) = self.parse(text)?;
        check(&statement)?;
        self.running.kind = Some(statement.kind());
        let Counted { params, tokens } = Counted::of(text);
        let param_count = param_count_u16(params)?;
        let mut columns = match &statement {
            Statement::Query(query) => {
                let called = waiting_calls::with_numbers(query)?;
                self.queries.describe(&self.view(), called.as_ref().unwrap_or(query)).await?
            }
            _ => Vec::new(),
        };
        self.mark_keys(&mut columns);
        let general = Box::new(General { text: text.to_owned(), statement, notes, param_count });
        self.keep(id, PreparedStatement::General(general), text.len() as u64 + tokens * TOKEN_BYTES)?;
        Ok(Prepared { param_count, columns })
    }

    /// Keeps a statement that takes about this much memory.
    fn keep(&mut self, id: u32, prepared: PreparedStatement, bytes: u64) -> Result<(), SqlError> {
        let mut charge = self.memory.charge();
        charge.set(STATEMENT_BYTES + bytes)?;
        self.statements.insert(id, KeptStatement { prepared, _charge: charge });
        Ok(())
    }

    /// The plan of an INSERT … VALUES of literals and parameters; `None` for anything else.
    async fn plan_insert(&mut self, text: &str) -> Result<Option<PreparedInsert>, SqlError> {
        if self.refuses_existing_keys() {
            return Ok(None);
        }
        let Some(head) = scan_insert_head(text.as_bytes()) else { return Ok(None) };
        let generation = self.engine.generation();
        let table = self.table(Privilege::Load, head.db.as_deref(), &head.table)?;
        let target = self.insert_target(&table, head.columns.as_deref()).await?;
        if target.computed_field().is_some() {
            // Only DEFAULT is allowed there.
            return Ok(None);
        }
        let values = prepare_values(&text.as_bytes()[head.values_offset..], &target);
        let right = self.engine.loads.right(&self.principal, &table, Some(generation));
        Ok(values.map(|values| PreparedInsert {
            text: text.to_owned(),
            table,
            target,
            values,
            generation,
            right,
            is_partial: self.variables.values().enable_unique_key_partial_update,
            uses: 0,
            types: Vec::new(),
        }))
    }

    /// Forgets the statement `id`.
    pub(crate) fn forget_prepared(&mut self, id: u32) {
        self.statements.remove(&id);
    }

    /// Whether a statement is kept under `id`.
    pub(crate) fn has_prepared(&self, id: u32) -> bool {
        self.statements.contains_key(&id)
    }

    /// Forgets the statements that a protocol keeps no more, which are not those with names.
    pub(crate) fn retain_prepared(&mut self, is_kept: impl Fn(u32) -> bool) {
        let named = &self.named_statements;
        self.statements.retain(|id, _| is_kept(*id) || named.values().any(|named| named == id));
    }

    /// Runs the statement `id`, which [`EngineSession::end_statement`] ends.
    ///
    /// # Errors
    /// There is none, or it fails.
    pub(crate) async fn execute(&mut self, id: u32, params: &dyn Parameters) -> Result<Answer, SqlError> {
        let Some(mut kept) = self.statements.remove(&id) else { return Err(unknown_statement(id)) };
        if kept.is_values_insert() && self.refuses_existing_keys() {
            // Its plan is of rows that may replace others.
            let text = kept.text().to_owned();
            let again = self.prepare_parsed(id, &text, |_| Ok(())).await;
            match (again, self.statements.remove(&id)) {
                (Ok(_), Some(general)) => kept = general,
                (again, _) => {
                    self.statements.insert(id, kept);
                    return Err(again.err().unwrap_or_else(|| unknown_statement(id)));
                }
            }
        }
        if let Err(refused) = self.begin_prepared(&kept) {
            self.statements.insert(id, kept);
            return Err(refused);
        }
        let outcome = match &mut kept.prepared {
            PreparedStatement::Insert(insert) => self.execute_insert(insert, params).await,
            PreparedStatement::General(general) => match params.values() {
                Ok(values) => {
                    self.add_to_name(|| format!("{values:?}").into_bytes());
                    debug_assert_eq!(values.len(), usize::from(general.param_count));
                    // Boxed: its states are many, and the hot INSERT should not carry space for them.
                    let answer = Box::pin(self.run(general.statement.clone(), &values)).await;
                    answer.map(|answer| self.with_notes(answer, general.notes.clone()))
                }
                Err(error) => Err(error),
            },
        };
        self.statements.insert(id, kept);
        outcome
    }

    async fn execute_insert(
        &mut self,
        insert: &mut PreparedInsert,
        params: &dyn Parameters,
    ) -> Result<Answer, SqlError> {
        let is_partial = self.variables.values().enable_unique_key_partial_update;
        let is_known = insert.generation == self.engine.generation() && insert.is_partial == is_partial;
        if !is_known || self.must_be_ready_to_update(insert.target.table()) {
            let Some(again) = self.plan_insert(&insert.text).await? else {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    "the table has changed; prepare the statement again",
                ));
            };
            *insert = again;
        }
        self.check_writes()?;
        self.begin_with_insert().await?;
        let options = self.insert_options();
        let bound = params.bind(&mut insert.types);
        if self.running.named.is_some() {
            self.add_to_name(|| bound.values.to_vec());
            if let Some(answer) = Box::pin(self.loaded_before(&insert.table, None)).await? {
                return Ok(answer);
            }
        }
        let traits = self.traits(bound.values.len());
        let admitted = self.admit_insert(&insert.table, &traits, &insert.right)?;
        let mut builder = self.take_builder(&insert.target);
        let decoded = insert.values.decode(bound, &insert.target, &options, &mut builder);
        self.keep_builder(builder);
        let mut decoded = decoded?;
        if let Some(completer) = self.completer(&insert.target, &options)? {
            completer.complete_all(&mut decoded)?;
        }
        self.warnings.clear();
        let load = InsertLoad {
            table: Arc::clone(&insert.table),
            schema: Arc::clone(insert.target.schema()),
            partitions: insert.target.table().partitioning.partitions().cloned(),
            decoded,
            traits,
            admitted,
            label: None,
            known_keys: self.known_keys(&insert.target),
            reused_plan: insert.uses > 0,
        };
        insert.uses += 1;
        self.finish_insert(load, &options).await
    }
}

/// Counts of a statement's text.
struct Counted {
    /// `?`
    params: usize,
    /// Everything but white space and comments.
    tokens: u64,
}

impl Counted {
    fn of(text: &str) -> Self {
        use sqlparser::dialect::MySqlDialect;
        use sqlparser::tokenizer::{Token, Tokenizer};
        let mut all = Tokenizer::new(&MySqlDialect {}, text).tokenize().unwrap_or_default();
        all.retain(|token| !matches!(token, Token::Whitespace(_)));
        let params = all.iter().filter(|token| matches!(token, Token::Placeholder(mark) if mark == "?"));
        Self { params: params.count(), tokens: all.len() as u64 }
    }
}

fn param_count_u16(count: usize) -> Result<u16, SqlError> {
    u16::try_from(count).map_err(|_| {
        SqlError::detail(
            ErrorCode::Unknown,
            format!("Prepared statement contains {count} placeholders, at most 65535 are possible; send fewer rows at once"),
        )
    })
}

fn unknown_statement(id: u32) -> SqlError {
    SqlError::new(
        ErrorCode::UnknownStatementHandle,
        format!("Unknown prepared statement handler ({id}) given to EXECUTE"),
    )
}
