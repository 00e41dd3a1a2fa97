//! Statements as the other crates see them.
//!
//! Statements are our own; the expressions and queries in them are sqlparser's, re-exported as [`Expr`] and
//! [`sqlparser::ast::Query`]. Names are stored as written: database and table names are case-sensitive, column and variable names
//! are not. Nothing here is checked against a catalog. Trees of sqlparser are [`Sealed`], so that callers compile fast.

use crate::file_calls::FileCall;
use crate::parse::{
    Backup, BrokerLoad, CreateTableAs, Export, HiddenProperties, JobStatement, JobsBy, Outfile, PartitionBy,
    PartitionItem, Recover, RecycledId, Verify, ViewStatement,
};
use sqlparser::ast as sp;
use sqlparser::tokenizer::Location;
use std::ops::ControlFlow;
use tributary_types::privilege::{GrantScope, Grantee, Grants};
use tributary_types::{
    Aggregation, DataType, DefaultValue, Distribution, ErrorCode, IndexKind, KeyModel, NewPassword,
    PartitionNames, PolicyChange, Sealed, SqlError, TableRef, TlsRequirement,
};

pub use sqlparser::ast::Expr;

/// The only catalog there is; `internal.db.t` is the long form of `db.t`.
pub const INTERNAL_CATALOG: &str = "internal";

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// `None`: the session's database.
    pub db: Option<String>,
    pub table: String,
}

impl Name {
    /// The table's full name, with the session's database if the statement names none.
    ///
    /// # Errors
    /// [`ErrorCode::NoDbSelected`] when neither the statement nor the session names a database.
    pub fn resolve(&self, session_db: Option<&str>) -> Result<TableRef, SqlError> {
        match self.db.as_deref().or(session_db) {
            Some(db) => Ok(TableRef { db: db.to_owned(), table: self.table.clone() }),
            None => Err(SqlError::new(ErrorCode::NoDbSelected, "No database selected")),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Nothing but blanks, comments or `;`.
    Empty,
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
        force: bool,
    },
    CreateTable(Box<CreateTable>),
    CreateTableAs(Box<CreateTableAs>),
    CreateTableLike {
        table: Name,
        if_not_exists: bool,
        source: Name,
        /// The rollups that the table also gets; an empty list means all rollups of the source.
        rollups: Option<Vec<String>>,
        /// `CREATE TEMPORARY TABLE`
        is_temporary: bool,
    },
    View(Box<ViewStatement>),
    DropTable {
        table: Name,
        if_exists: bool,
        force: bool,
    },
    Recover(Recover),
    /// `DROP CATALOG RECYCLE BIN WHERE …`
    DropRecycled(RecycledId),
    TruncateTable {
        table: Name,
        /// `Any`: all rows.
        partitions: PartitionNames,
        force: bool,
    },
    AlterTable {
        table: Name,
        ops: Vec<AlterOp>,
    },
    Delete(Box<Delete>),
    Update(Box<Update>),
    Insert(Box<Insert>),
    LoadData(Box<LoadData>),
    BrokerLoad(Box<BrokerLoad>),
    CancelLoad {
        db: Option<String>,
        by: JobsBy,
    },
    RoutineLoad(Box<RoutineLoad>),
    /// A job that runs an INSERT at given times.
    Job(Box<JobStatement>),
    Backup(Box<Backup>),
    Verify(Verify),
    /// `ADMIN SET FRONTEND CONFIG ("name" = "value", …)`
    SetConfig(HiddenProperties),
    Export(Box<Export>),
    CancelExport {
        db: Option<String>,
        by: JobsBy,
    },
    /// `CANCEL ALTER TABLE COLUMN FROM t`, and `CANCEL ALTER TABLE ROLLUP FROM t`
    CancelAlter {
        table: Name,
        is_rollup: bool,
    },
    /// Makes labels of finished loads free: one or all.
    CleanLabel {
        db: Option<String>,
        label: Option<String>,
    },
    Query(SelectQuery),
    Outfile(Box<Outfile>),
    /// `SELECT … INTO @x, @y`: the one row's values become user variables, whose names are in lower case.
    SelectInto {
        query: SelectQuery,
        variables: Vec<String>,
    },
    Explain(Explain),
    Use {
        db: String,
    },
    Set(Vec<SetItem>),
    Show(Box<Show>),
    Describe {
        table: Name,
        /// `DESC t ALL`.
        all: bool,
    },
    /// `DESC FUNCTION s3(…)`
    DescribeFunction(Box<FileCall>),
    Begin {
        label: Option<String>,
        /// `READ ONLY` or `READ WRITE`; `None`: as the session says.
        only_reads: Option<bool>,
    },
    Commit,
    Rollback,
    /// Waits until every acknowledged load is visible.
    /// `None`: for all loads that were acknowledged.
    Sync {
        receipt: Option<u64>,
    },
    CreateUser {
        user: UserName,
        if_not_exists: bool,
        password: Option<NewPassword>,
        /// `DEFAULT ROLE 'r'`
        role: Option<String>,
        require: Option<TlsRequirement>,
        policy: PolicyChange,
        comment: String,
    },
    AlterUser {
        user: UserName,
        if_exists: bool,
        password: Option<NewPassword>,
        require: Option<TlsRequirement>,
        policy: PolicyChange,
        /// `ACCOUNT_UNLOCK`
        unlocks: bool,
    },
    DropUser {
        user: UserName,
        if_exists: bool,
    },
    /// `SET PROPERTY [FOR u] 'name' = 'value', …`
    SetProperty(Box<SetProperty>),
    Role(RoleStatement),
    Token(Box<TokenStatement>),
    Grant(Box<GrantStatement>),
    Revoke(Box<GrantStatement>),
    Kill(Kill),
    /// `ALTER INSTANCE RELOAD TLS`: reads certificate and key again.
    ReloadTls,
    /// `ALTER SYSTEM DECOMMISSION BACKEND 'host:port', …`: the server takes no loads, and moves all rows to data files.
    /// `CANCEL DECOMMISSION BACKEND …` ends that.
    Decommission {
        backends: Vec<String>,
        cancels: bool,
    },
    /// `SAVEPOINT s`, `RELEASE SAVEPOINT s` and `ROLLBACK TO [SAVEPOINT] s`
    Savepoint {
        verb: SavepointVerb,
        name: String,
    },
    /// A statement of MySQL that has nothing to do here. The note says why.
    WithoutEffect(WithoutEffect),
    /// `RENAME TABLE a TO b, …`: each table's new name.
    RenameTables(Vec<(Name, Name)>),
    /// `DROP TABLE a, b, …`, and `DROP TEMPORARY TABLE a, …`
    DropTables {
        tables: Vec<Name>,
        if_exists: bool,
        force: bool,
        /// Tables that are not temporary stay.
        only_temporary: bool,
    },
    /// `PREPARE name FROM …`; names are in lower case.
    Prepare {
        name: String,
        text: PreparedText,
    },
    /// `EXECUTE name [USING @x, …]`
    Execute {
        name: String,
        /// In lower case.
        variables: Vec<String>,
    },
    /// `DEALLOCATE PREPARE name`
    Deallocate {
        name: String,
    },
    /// `DO expression, …`: a query whose rows nobody sees.
    Compute(SelectQuery),
    /// `CHECK TABLE t, …` and the like
    Maintain {
        verb: Maintenance,
        tables: Vec<Name>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavepointVerb {
    Set,
    Release,
    RollBackTo,
}

/// A statement that has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutEffect {
    LockTables,
    UnlockTables,
    Flush,
    /// A part of DDL that a compatible parse left out was the whole statement.
    LeftOut,
}

/// A statement of MySQL about the state of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    Check,
    Analyze,
    Optimize,
    Repair,
    Checksum,
}

impl Maintenance {
    /// Its word in answers, as MySQL's column `Op` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Analyze => "analyze",
            Self::Optimize => "optimize",
            Self::Repair => "repair",
            Self::Checksum => "checksum",
        }
    }
}

/// A query and its source text.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectQuery {
    pub ast: Sealed<sp::Query>,
    /// The whole statement as the client sent it, without a final `;`. The spans in `ast` (line and column, both from 1) refer to
    /// this text. Empty if the query was built from expressions; their spans still give their order.
    pub text: String,
    /// Whether tables show their hidden columns, even if the text does not name them.
    pub reads_hidden: bool,
}

impl SelectQuery {
    /// How many `?` the query has.
    #[must_use]
    pub fn param_count(&self) -> usize {
        placeholders(&self.ast).len()
    }
}

/// The places of the `?` of a query, in the order of the text.
#[must_use]
pub fn placeholders(query: &sp::Query) -> Vec<Location> {
    struct Find(Vec<Location>);
    impl sp::Visitor for Find {
        type Break = ();
        fn pre_visit_value(&mut self, value: &sp::ValueWithSpan) -> ControlFlow<()> {
            if matches!(value.value, sp::Value::Placeholder(_)) {
                self.0.push(value.span.start);
            }
            ControlFlow::Continue(())
        }
    }
    let mut find = Find(Vec::new());
    let _ = crate::visit::walk_query(query, &mut find);
    find.0.sort();
    // An expression may be in a query twice: once as a value, once compared.
    find.0.dedup();
    find.0
}

/// `DELETE FROM t [[AS] alias] [PARTITION p] [USING …] [WHERE …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub table: Name,
    pub partitions: PartitionNames,
    /// The condition as a text for people, if there is one.
    pub condition: Option<String>,
    pub rows: TargetRows,
}

impl Delete {
    /// The rows to delete: a query with the columns [`FILE_COLUMN`] and [`ROW_COLUMN`] of the table function [`ROWS_FUNCTION`],
    /// which replaces the table.
    #[must_use]
    pub fn places(&self) -> SelectQuery {
        self.rows.places(Vec::new())
    }
}

/// `UPDATE t [[AS] alias] SET column = expression, … [FROM …] [WHERE …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub table: Name,
    /// Each column with its qualifiers, and its new value.
    pub assignments: Vec<(Vec<String>, Assigned)>,
    pub rows: TargetRows,
}

impl Update {
    /// The rows to update and these values of each: the query of [`Delete::places`] with further columns.
    #[must_use]
    pub fn places_and(&self, values: Vec<sp::Expr>) -> SelectQuery {
        self.rows.places(values)
    }
}

/// The new value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Assigned {
    Default,
    Expr(Sealed<sp::Expr>),
}

/// The rows of a table that a statement changes: a query whose first relation represents the table.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRows {
    /// The statement's alias for the table.
    pub alias: String,
    query: Sealed<sp::Query>,
}

impl TargetRows {
    /// The rows of the table for which `condition` is true, joined with `others`.
    ///
    /// # Panics
    /// If `template` is not `SELECT … FROM f() AS t`.
    #[must_use]
    pub fn new(
        template: SelectQuery,
        alias: &str,
        others: Vec<sp::TableWithJoins>,
        condition: Option<sp::Expr>,
    ) -> Self {
        let mut query = template.ast.into_inner();
        let select = select_of(&mut query);
        if let sp::TableFactor::Table { alias: Some(named), .. } = &mut select.from[0].relation {
            named.name = sp::Ident::with_quote('`', alias);
        }
        select.from.extend(others);
        select.selection = condition;
        Self { alias: alias.to_owned(), query: Sealed::new(query) }
    }

    /// Whether other relations than the table are read.
    #[must_use]
    pub fn has_others(&self) -> bool {
        matches!(self.query.body.as_ref(), sp::SetExpr::Select(select) if select.from.len() > 1)
    }

    /// The condition that the rows meet, if there is one.
    #[must_use]
    pub fn condition(&self) -> Option<&sp::Expr> {
        match self.query.body.as_ref() {
            sp::SetExpr::Select(select) => select.selection.as_ref(),
            _ => None,
        }
    }

    /// The query with the table function [`ROWS_FUNCTION`] for the table, with the places of the rows and these columns.
    fn places(&self, columns: Vec<sp::Expr>) -> SelectQuery {
        let column = |name| sp::Expr::Identifier(sp::Ident::with_quote('`', name));
        // With a name that no text can have.
        let function = vec![sp::Ident::new(ROWS_FUNCTION)];
        let places = [FILE_COLUMN, ROW_COLUMN].map(column);
        self.select(function, &PartitionNames::Any, places.into_iter().chain(columns))
    }

    /// The query with `relation` for the table (a table function if it has one part), of which these partitions are read, and with
    /// these columns.
    #[must_use]
    pub fn select(
        &self,
        relation: Vec<sp::Ident>,
        of: &PartitionNames,
        columns: impl IntoIterator<Item = sp::Expr>,
    ) -> SelectQuery {
        let mut query = sp::Query::clone(&self.query);
        let select = select_of(&mut query);
        select.projection = columns.into_iter().map(sp::SelectItem::UnnamedExpr).collect();
        if let sp::TableFactor::Table { name, args, partitions, .. } = &mut select.from[0].relation {
            if relation.len() > 1 {
                *args = None;
            }
            *name = sp::ObjectName::from(relation);
            *partitions = of.named().iter().map(|name| sp::Ident::with_quote('`', name)).collect();
        }
        SelectQuery { ast: Sealed::new(query), text: String::new(), reads_hidden: true }
    }
}

fn select_of(query: &mut sp::Query) -> &mut sp::Select {
    match query.body.as_mut() {
        sp::SetExpr::Select(select) => select,
        _ => unreachable!("the rows of a table are a SELECT"),
    }
}

/// The table function that a [`Delete`], or an [`Update`] by position, reads. No client can call it so.
pub const ROWS_FUNCTION: &str = "tributary.rows";
/// Its column with the number of a data file.
pub const FILE_COLUMN: &str = "tributary.file";
/// Its column with a row's position in the file.
pub const ROW_COLUMN: &str = "tributary.row";

/// The text of a statement that is prepared by SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedText {
    Written(String),
    /// The text that this user variable has.
    Variable(String),
}

/// `INSERT [INTO] …` and `INSERT OVERWRITE TABLE …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub table: Name,
    pub label: Option<String>,
    pub partitions: PartitionNames,
    pub overwrite: bool,
    /// `INSERT OVERWRITE TABLE t PARTITION (*)`: only the partitions that the rows are in.
    pub overwrites_touched: bool,
    pub columns: Option<Vec<String>>,
    pub source: InsertSource,
    /// `INSERT IGNORE`: rows whose keys exist are left out, and bad rows are warnings.
    pub ignores: bool,
    /// `REPLACE INTO`: rows whose keys exist are replaced, whatever the session says of them.
    pub replaces: bool,
    pub on_duplicate: Option<OnDuplicate>,
}

/// `[AS alias] ON DUPLICATE KEY UPDATE …`
#[derive(Clone, Debug, PartialEq)]
pub struct OnDuplicate {
    /// The columns that rows that exist get other values of: those of the new row, if they are not computed.
    pub updated: Vec<String>,
    /// Those whose values are expressions of the row that exists and of the new one.
    pub computed: Sealed<Vec<(String, Expr)>>,
    /// The name of the new row in these.
    pub alias: Option<String>,
}

/// `LOAD DATA [LOCAL] INFILE …`
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// The file is the client's.
    pub is_local: bool,
    pub file: String,
    pub table: Name,
    pub partitions: PartitionNames,
    /// Whether existing rows should stay (IGNORE).
    pub ignores_duplicates: bool,
    pub column_separator: Option<String>,
    pub line_delimiter: Option<String>,
    pub enclose: Option<String>,
    pub escape: Option<String>,
    pub skip_lines: u64,
    /// The names of the file's fields, columns and `@variables`; `None`: the table's columns.
    pub columns: Option<Vec<String>>,
    /// Columns and their expressions, in which `@variables` of the list are [`LoadData::field_name`]s.
    pub set: Sealed<Vec<(String, Expr)>>,
    pub properties: Vec<(String, String)>,
}

impl LoadData {
    /// The name of a list entry in expressions: a column's own, a variable's with a leading blank, which no column has.
    #[must_use]
    pub fn field_name(name: &str) -> String {
        name.strip_prefix('@').map_or_else(|| name.to_owned(), |name| format!(" {}", name.to_lowercase()))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// Rows may be empty (`VALUES ()`: all defaults) and need not be of one length.
    Values(Sealed<Vec<Vec<Value>>>),
    Query(SelectQuery),
}

/// One value of a VALUES row.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all values are expressions")]
pub enum Value {
    Default,
    Expr(Expr),
}

/// How EXPLAIN shows a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainForm {
    /// For people.
    #[default]
    Steps,
    /// `PHYSICAL PLAN`: as the query engine has it.
    Physical,
    /// `VERBOSE` (also Doris's `ALL PLAN` and MySQL's `EXTENDED`): the plans before it, too.
    Verbose,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    pub analyze: bool,
    pub form: ExplainForm,
    /// A query or an INSERT. An explained INSERT is not run.
    pub statement: Box<Statement>,
}

/// `CREATE TABLE` as written. [`crate::table`] turns it into a table and applies the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub table: Name,
    pub if_not_exists: bool,
    /// `CREATE TEMPORARY TABLE`
    pub is_temporary: bool,
    pub columns: Vec<ColumnSpec>,
    pub indexes: Vec<IndexSpec>,
    pub rollups: Vec<RollupSpec>,
    /// The columns of `DUPLICATE KEY(…)`, `UNIQUE KEY(…)` or `AGGREGATE KEY(…)`.
    pub keys: Option<Vec<String>>,
    /// The key model, declared or derived from the columns.
    pub model: KeyModel,
    pub comment: String,
    pub partition_by: Option<PartitionBy>,
    pub distribution: Option<Distribution>,
    pub properties: Vec<(String, String)>,
}

/// A rollup of `CREATE TABLE` or `ADD ROLLUP`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupSpec {
    pub name: String,
    pub columns: Vec<String>,
    /// `FROM base`
    pub base: Option<String>,
    /// The columns of `DUPLICATE KEY (…)`; if empty, they are derived.
    pub keys: Vec<String>,
    pub properties: Vec<(String, String)>,
}

/// An index of `CREATE TABLE`, `ADD INDEX` or `CREATE INDEX`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    pub name: String,
    pub if_not_exists: bool,
    /// It is a KEY of MySQL: one that Doris would refuse is left out.
    pub may_be_left_out: bool,
    pub columns: Vec<String>,
    pub kind: IndexKind,
    pub properties: Vec<(String, String)>,
    pub comment: String,
}

/// A column of `CREATE TABLE`, `ADD COLUMN` or `MODIFY COLUMN`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    pub name: String,
    pub data_type: DataType,
    /// `None`: neither NULL nor NOT NULL was written, which means NULL.
    pub nullable: Option<bool>,
    /// `KEY` was written after the type.
    pub is_key: bool,
    pub aggregation: Option<Aggregation>,
    pub default: Option<DefaultValue>,
    /// `ON UPDATE CURRENT_TIMESTAMP`, with this number of digits of a second.
    pub on_update: Option<u8>,
    /// `AUTO_INCREMENT`, and where it starts.
    pub auto_increment: Option<i64>,
    /// `AUTO_INCREMENT` of INT, which only MySQL has.
    pub is_of_mysql: bool,
    /// `[GENERATED ALWAYS] AS (…)`: an expression that [`crate::parse_expression`] reads.
    pub generated: Option<String>,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    First,
    After(String),
}

/// One clause of `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterOp {
    SetProperties(Vec<(String, String)>),
    AddColumn {
        column: ColumnSpec,
        position: Option<Position>,
    },
    AddColumns(Vec<ColumnSpec>),
    DropColumn {
        name: String,
    },
    RenameColumn {
        from: String,
        to: String,
    },
    ModifyColumn {
        column: ColumnSpec,
        position: Option<Position>,
    },
    /// All columns in their new order.
    OrderBy {
        columns: Vec<String>,
    },
    ModifyColumnComment {
        name: String,
        comment: String,
    },
    /// `ALTER [COLUMN] c SET DEFAULT …`, or without a value `DROP DEFAULT`.
    ColumnDefault {
        name: String,
        default: Option<DefaultValue>,
    },
    RenameTable {
        to: String,
    },
    /// `CHANGE old new …`: the column gets the definition, and with it its name.
    ChangeColumn {
        from: String,
        column: ColumnSpec,
        position: Option<Position>,
    },
    /// `REPLACE WITH TABLE t`: the two tables swap their contents.
    ReplaceTable {
        with: String,
        properties: Vec<(String, String)>,
    },
    ModifyComment {
        comment: String,
    },
    /// `ADD PARTITION p …`, and `ADD PARTITIONS FROM … TO … INTERVAL …`.
    AddPartitions {
        item: PartitionItem,
        if_not_exists: bool,
    },
    DropPartition {
        name: String,
        if_exists: bool,
        /// It can't be recovered.
        force: bool,
    },
    RenamePartition {
        from: String,
        to: String,
    },
    /// `ADD TEMPORARY PARTITION tp …`, and `ADD TEMPORARY PARTITIONS FROM … TO … INTERVAL …`.
    AddTemporaryPartitions {
        item: PartitionItem,
        if_not_exists: bool,
    },
    DropTemporaryPartition {
        name: String,
        if_exists: bool,
    },
    ReplacePartitions(ReplacePartitions),
    /// No names: all partitions.
    ModifyPartitions {
        names: Vec<String>,
        properties: Vec<(String, String)>,
    },
    AddRollups(Vec<RollupSpec>),
    DropRollups(Vec<String>),
    RenameRollup {
        from: String,
        to: String,
    },
    AddIndex(IndexSpec),
    DropIndex {
        name: String,
        if_exists: bool,
    },
    /// Nothing happens if the table has no index of that name.
    RenameIndex {
        from: String,
        to: String,
    },
    /// `ENABLE FEATURE`, in upper case.
    EnableFeature {
        name: String,
    },
}

/// `REPLACE PARTITION (p, …) WITH TEMPORARY PARTITION (tp, …)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacePartitions {
    pub names: Vec<String>,
    pub with: Vec<String>,
    pub properties: Vec<(String, String)>,
}

/// The scope of a variable in a statement. The default is the session's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Session,
    Global,
}

/// One assignment of `SET`.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// A system variable; `name` is in lower case, without `@@`.
    Variable { scope: Scope, name: String, value: SetValue },
    /// All system variables get their defaults.
    AllVariables { scope: Scope },
    /// `@name`, without the `@`, in lower case.
    UserVariable { name: String, value: SetValue },
    /// `SET NAMES`; `None` is `DEFAULT`.
    Names { charset: Option<String>, collation: Option<String> },
    /// `SET CHARACTER SET`; `None` is `DEFAULT`.
    CharacterSet { charset: Option<String> },
    Transaction {
        /// `None`: only the next transaction.
        scope: Option<Scope>,
        /// In upper case with one blank between words, e.g. `READ COMMITTED`.
        isolation: Option<String>,
        read_only: Option<bool>,
    },
    /// `None`: the session's own user.
    Password { user: Option<UserName>, password: NewPassword },
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    Default,
    Null,
    /// A string, or a bare word such as `ON` or `async_mode`, as written.
    Text(String),
    /// A number as written, with its sign.
    Number(String),
    /// `@@x`, with the name in lower case.
    Variable {
        scope: Scope,
        name: String,
    },
    Expr(Sealed<Expr>),
}

/// `LIKE '…'` or `WHERE …` after SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    Like(String),
    Where(Sealed<Expr>),
}

/// The optional end of a SHOW that lists: filter, order, limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowTail {
    pub filter: Option<ShowFilter>,
    /// Column and whether the order is descending.
    pub order_by: Vec<(String, bool)>,
    pub limit: Option<u64>,
    pub offset: u64,
}

/// The transactions that `SHOW TRANSACTION` selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionBy {
    Id(u64),
    Label(String),
    LabelLike(String),
    /// In upper case.
    Status(String),
}

/// Whose rejected rows `SHOW LOAD WARNINGS` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningsOf {
    Label {
        db: Option<String>,
        label: String,
    },
    /// The `ErrorURL` of a load.
    Url(String),
}

/// The SHOW statements. `db: None` is the session's database.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases {
        filter: Option<ShowFilter>,
    },
    Tables {
        full: bool,
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    Columns {
        full: bool,
        table: Name,
        filter: Option<ShowFilter>,
    },
    CreateTable {
        table: Name,
    },
    CreateView {
        view: Name,
    },
    CreateDatabase {
        db: String,
    },
    Variables {
        scope: Scope,
        filter: Option<ShowFilter>,
    },
    Status {
        scope: Scope,
        filter: Option<ShowFilter>,
    },
    Warnings {
        count: bool,
    },
    Errors {
        count: bool,
    },
    Engines,
    Charset {
        filter: Option<ShowFilter>,
    },
    Collation {
        filter: Option<ShowFilter>,
    },
    ProcessList {
        full: bool,
    },
    Index {
        table: Name,
    },
    Grants {
        user: Option<UserName>,
        all: bool,
    },
    Roles,
    /// `SHOW TOKENS [FOR u]`, `SHOW ALL TOKENS`
    Tokens {
        user: Option<UserName>,
        all: bool,
    },
    /// `SHOW PROPERTY [FOR u] [LIKE …]`
    Property {
        user: Option<UserName>,
        tail: ShowTail,
    },
    Backends,
    Frontends,
    LastInsert,
    Transaction {
        db: Option<String>,
        by: TransactionBy,
    },
    Load {
        db: Option<String>,
        tail: ShowTail,
    },
    StreamLoad {
        db: Option<String>,
        tail: ShowTail,
    },
    Export {
        db: Option<String>,
        tail: ShowTail,
    },
    /// `SHOW JOBS`: the jobs that run an INSERT at given times.
    Jobs {
        tail: ShowTail,
    },
    LoadWarnings {
        of: WarningsOf,
        limit: ShowTail,
    },
    CreateLoad {
        /// A label in the place of a table.
        label: Name,
    },
    Partitions {
        table: Name,
        /// `SHOW TEMPORARY PARTITIONS`
        is_temporary: bool,
        tail: ShowTail,
    },
    /// The partitions that have the number in their tables.
    Partition {
        id: u64,
    },
    RecycleBin {
        tail: ShowTail,
    },
    DynamicPartitionTables {
        db: Option<String>,
    },
    Data {
        table: Option<Name>,
        tail: ShowTail,
    },
    AlterTableColumn {
        db: Option<String>,
        tail: ShowTail,
    },
    AlterTableRollup {
        db: Option<String>,
        tail: ShowTail,
    },
    Triggers {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    Events {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    ProcedureStatus {
        filter: Option<ShowFilter>,
    },
    FunctionStatus {
        filter: Option<ShowFilter>,
    },
    Plugins,
    Privileges,
    /// A part of MySQL's servers that this one does not have.
    Unused(UnusedPart),
    DataTypes,
    /// `is_builtin`: the server's; else functions made by users, of which there are none.
    Functions {
        is_builtin: bool,
        full: bool,
        filter: Option<ShowFilter>,
    },
    Catalogs {
        filter: Option<ShowFilter>,
    },
    Delete {
        db: Option<String>,
    },
    FrontendConfig {
        filter: Option<ShowFilter>,
    },
    BackendConfig {
        filter: Option<ShowFilter>,
    },
    /// `history`: also jobs that have ended. `db` is where no job is named.
    RoutineLoad {
        history: bool,
        job: Option<Name>,
        db: Option<String>,
    },
    RoutineLoadTask {
        job: Name,
    },
    CreateRoutineLoad {
        job: Name,
    },
}

/// A part of MySQL's servers that there is not, but that clients ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedPart {
    SlaveStatus,
    ReplicaStatus,
    SlaveHosts,
    Replicas,
    /// `SHOW MASTER STATUS`
    BinaryLogStatus,
    /// `SHOW BINARY LOGS`, `SHOW MASTER LOGS`
    BinaryLogs,
    OpenTables,
    Profiles,
    /// `SHOW ENGINE e STATUS`
    EngineStatus,
}

/// A statement about jobs that load from a source for as long as they run. A job's name is in the place of a table's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineLoad {
    Create(Box<CreateRoutineLoad>),
    /// Changes the properties that are named.
    Alter {
        job: Name,
        properties: Vec<(String, String)>,
        source: Vec<(String, String)>,
    },
    Pause(Name),
    PauseAll,
    Resume(Name),
    ResumeAll,
    Stop(Name),
}

/// `CREATE ROUTINE LOAD … [ON …] … FROM KAFKA`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRoutineLoad {
    pub job: Name,
    /// A table of the job's database; `None`: each message names one.
    pub table: Option<String>,
    pub clauses: RoutineLoadClauses,
    pub properties: Vec<(String, String)>,
    /// The properties of the source.
    pub source: Vec<(String, String)>,
    pub comment: String,
}

/// A job's treatment of rows. Expressions are texts that [`crate::parse_expression`] reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutineLoadClauses {
    pub column_separator: Option<String>,
    /// Fields, and columns with their expressions.
    pub columns: Option<Vec<(String, Option<String>)>>,
    /// A condition on the fields.
    pub preceding_filter: Option<String>,
    /// A condition on the columns.
    pub filter: Option<String>,
    /// Partitions of the table; rows of others are rejected. None: all.
    pub partitions: Vec<String>,
    /// Rows delete the rows of their keys: all, or those for which a condition is true.
    pub deletes: Option<Deletes>,
    /// The name of the sequence in messages.
    pub sequence: Option<String>,
}

/// The rows of a load that delete the rows with their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletes {
    All,
    /// The rows for which a condition, given as text, is true.
    If(String),
}

/// `'user'@'host'`; the host is `%` when it is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName {
    pub name: String,
    pub host: String,
}

/// New values of a user's properties, as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetProperty {
    /// `None`: the session's.
    pub user: Option<UserName>,
    pub properties: Vec<(String, String)>,
}

/// CREATE, ALTER and DROP ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    Create { name: String, if_not_exists: bool, comment: String },
    Alter { name: String, comment: String },
    Drop { name: String, if_exists: bool },
}

/// CREATE and DROP TOKEN. Without a user, it is the one who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenStatement {
    Create {
        name: String,
        user: Option<UserName>,
        /// The rights that it has at most.
        limit: Option<Grants>,
        /// Seconds; `None`: it does not expire.
        lifetime_s: Option<u64>,
        comment: String,
    },
    Drop {
        name: String,
        user: Option<UserName>,
        if_exists: bool,
    },
}

/// `GRANT … TO …`, or `REVOKE … FROM …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantStatement {
    Rights {
        /// The object after `ON`.
        scope: GrantScope,
        /// The rights on it or, for columns, on parts of it.
        grants: Grants,
        grantee: Grantee,
    },
    Roles {
        roles: Vec<String>,
        user: UserName,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kill {
    Connection(u32),
    /// Ends the statement that the connection is running, and leaves the connection open.
    Query(u32),
    /// `KILL QUERY "<query id>"`.
    QueryId(String),
}
