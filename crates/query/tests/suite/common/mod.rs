//! A server of one process for tests: databases, tables with rows in memtable and data files.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod slt;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Int8Array, Int64Array, RecordBatch, StringArray,
    UInt32Array, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tributary_query::{
    FileTable, Namespace, ProcessRow, QueryEngine, QueryOptions, QueryResult, ResultColumn, ScalarValue,
    ServerFacts, SessionView,
};
use tributary_sql::{
    CreateView, Expr, FileCall, InsertSource, SelectQuery, Statement, Value, ViewBody, ViewStatement,
};
use tributary_table::{Publication, Snapshot, StoreOptions, Table, TableError, TableStore};
use tributary_types::address::{parse_ipv4, parse_ipv6};
use tributary_types::{
    ColumnChange, ColumnDef, DbId, ErrorCode, Lsn, SchemaVersion, SqlError, TableId, Version, ViewDef,
};

/// 2024-05-06 07:08:09.123456 UTC.
pub const NOW_MICROS: i64 = 1_714_979_289_123_456;

/// Why rows were not deleted.
struct Failed(SqlError);

impl From<TableError> for Failed {
    fn from(error: TableError) -> Self {
        Self(SqlError::detail(ErrorCode::Unknown, error.to_string()))
    }
}

#[derive(Default)]
pub struct Names {
    tables: Mutex<BTreeMap<(String, String), Arc<Table>>>,
    views: Mutex<BTreeMap<(String, String), Arc<ViewDef>>>,
}

impl Namespace for Names {
    fn databases(&self) -> Vec<String> {
        vec!["db".to_owned(), "other".to_owned()]
    }

    fn tables(&self, database: &str) -> Vec<Arc<Table>> {
        let tables = self.tables.lock().unwrap();
        tables.iter().filter(|((db, _), _)| db == database).map(|(_, table)| Arc::clone(table)).collect()
    }

    fn table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        Ok(self.tables.lock().unwrap().get(&(database.to_owned(), name.to_owned())).cloned())
    }

    fn views(&self, database: &str) -> Vec<Arc<ViewDef>> {
        let views = self.views.lock().unwrap();
        views.values().filter(|view| view.db == database).cloned().collect()
    }

    fn view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        Ok(self.view_of_view(database, name))
    }

    fn table_of_view(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        self.table(database, name).unwrap()
    }

    fn view_of_view(&self, database: &str, name: &str) -> Option<Arc<ViewDef>> {
        self.views.lock().unwrap().get(&(database.to_owned(), name.to_owned())).cloned()
    }

    fn column_changes(&self, table: TableId) -> Vec<ColumnChange> {
        let is_it = |known: &&Arc<Table>| known.def().id == table;
        let tables = self.tables.lock().unwrap();
        let version = tables.values().find(is_it).map_or(1, |table| table.def().schema.version.0);
        let at_ms = |version| 1_714_979_289_000 + i64::from(version);
        (2..=version)
            .map(|version| ColumnChange { version: SchemaVersion(version), made_at_ms: Some(at_ms(version)) })
            .collect()
    }

    /// As many columns and partitions as the properties say, without rows.
    fn files<'a>(
        &'a self,
        call: &'a FileCall,
        _session: &'a SessionView,
    ) -> BoxFuture<'a, Result<Arc<dyn FileTable>, SqlError>> {
        let table = Files::of(&call.properties);
        Box::pin(async move { Ok(Arc::new(table) as Arc<dyn FileTable>) })
    }

    fn jobs(&self, _: tributary_query::JobKind) -> Vec<Vec<tributary_query::Cell>> {
        Vec::new()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        vec![ProcessRow {
            id: 7,
            user: "root".to_owned(),
            command: "Query".to_owned(),
            ..ProcessRow::default()
        }]
    }

    fn server_facts(&self) -> ServerFacts {
        ServerFacts {
            node_name: "node-1".to_owned(),
            host: "127.0.0.1".to_owned(),
            query_port: 9030,
            http_port: 8030,
            webserver_port: 8040,
            status: vec![("Uptime".to_owned(), "1".to_owned())],
            ..ServerFacts::default()
        }
    }

    fn global_variables(&self) -> Vec<(String, String)> {
        [("autocommit", "ON"), ("group_commit", "off_mode"), ("version", "5.7.99"), ("wait_timeout", "28800")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }
}

/// Files whose rows count up: `c1` is the row's number in all parts, `Name` a text.
struct Files {
    schema: SchemaRef,
    rows: u64,
    parts: usize,
}

impl Files {
    fn of(properties: &BTreeMap<String, String>) -> Self {
        let number = |name: &str| properties.get(name).and_then(|text| text.parse().ok()).unwrap_or(1);
        let fields = [("c1", DataType::Int64), ("Name", DataType::Utf8)];
        let fields: Vec<Field> = fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec();
        Self { schema: Arc::new(Schema::new(fields)), rows: number("rows"), parts: number("parts") as usize }
    }
}

impl FileTable for Files {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn partitions(&self) -> usize {
        self.parts
    }

    fn read(&self, partition: usize) -> BoxStream<'static, Result<RecordBatch, SqlError>> {
        let numbers = (0..self.rows as i64).skip(partition).step_by(self.parts);
        let numbers: Int64Array = numbers.collect();
        let names: StringArray =
            numbers.iter().map(|number| number.map(|number| format!("row {number}"))).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::new(numbers), Arc::new(names)]);
        Box::pin(futures::stream::iter([Ok(batch.unwrap())]))
    }
}

pub struct Server {
    pub names: Arc<Names>,
    pub engine: QueryEngine,
    pub session: SessionView,
    store: TableStore,
    _directory: tempfile::TempDir,
}

impl Server {
    pub fn new() -> Self {
        Self::with_options(QueryOptions { target_partitions: 2, ..QueryOptions::default() })
    }

    pub fn with_options(options: QueryOptions) -> Self {
        Self::with_engine(|names, store| QueryEngine::new(names, store, options))
    }

    /// A server whose engine lacks one of the workarounds for DataFusion.
    pub fn without_workaround(name: &str) -> Self {
        let options = QueryOptions { target_partitions: 2, ..QueryOptions::default() };
        Self::with_engine(|names, store| QueryEngine::without_workaround(names, store, options, name))
    }

    /// An engine with other options over the same tables.
    pub fn another(&self, options: QueryOptions) -> QueryEngine {
        QueryEngine::new(Arc::clone(&self.names) as Arc<dyn Namespace>, &self.store, options).unwrap()
    }

    /// An engine that knows no table, over the same files.
    pub fn stranger(&self, options: QueryOptions) -> QueryEngine {
        QueryEngine::new(Arc::new(Names::default()), &self.store, options).unwrap()
    }

    fn with_engine(
        engine: impl FnOnce(Arc<dyn Namespace>, &TableStore) -> Result<QueryEngine, SqlError>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = TableStore::local(directory.path(), StoreOptions::default()).unwrap();
        let names = Arc::new(Names::default());
        let engine = engine(Arc::clone(&names) as Arc<dyn Namespace>, &store).unwrap();
        let mut session = SessionView::new("root@127.0.0.1", NOW_MICROS);
        session.database = Some("db".to_owned());
        session.connection_id = 7;
        session.variables = Arc::new(names.global_variables().into_iter().collect());
        Self { names, engine, session, store, _directory: directory }
    }

    /// Runs a statement. CREATE TABLE, INSERT, ALTER TABLE and `FLUSH <table>` are done by hand
    /// here, the rest by the query engine.
    pub async fn run(
        &mut self,
        sql: &str,
    ) -> Result<Option<(Vec<ResultColumn>, Vec<RecordBatch>)>, SqlError> {
        if let Some(name) = sql.strip_prefix("COMPACT ") {
            self.table(name.trim()).compact_from(2).await.unwrap();
            return Ok(None);
        }
        if let Some(name) = sql.strip_prefix("FLUSH ") {
            self.table(name.trim()).flush().await.unwrap();
            return Ok(None);
        }
        let result = match tributary_sql::parse(sql)? {
            Statement::CreateTable(create) => {
                let id = TableId(self.names.tables.lock().unwrap().len() as u64 + 1);
                let db = create.table.db.clone().unwrap_or_else(|| "db".to_owned());
                let def = create.to_def(&db, DbId(1), id)?;
                let table = self.store.create(&Arc::new(def)).await.unwrap();
                self.names.tables.lock().unwrap().insert((db, create.table.table.clone()), table);
                return Ok(None);
            }
            Statement::View(view) => {
                match *view {
                    ViewStatement::Create(CreateView { view, body, .. }) => {
                        self.create_view(&view.table, &body)?;
                    }
                    ViewStatement::Drop { view, .. } => {
                        self.names.views.lock().unwrap().remove(&("db".to_owned(), view.table));
                    }
                    other => panic!("not in these tests: {other:?}"),
                }
                return Ok(None);
            }
            Statement::DropTable { table, .. } => {
                self.names.tables.lock().unwrap().remove(&("db".to_owned(), table.table));
                return Ok(None);
            }
            Statement::Insert(insert) => {
                let query = match insert.source {
                    InsertSource::Query(query) => query,
                    InsertSource::Values(rows) => values_query(&rows),
                };
                self.insert(&insert.table.table, &query).await?;
                return Ok(None);
            }
            Statement::Delete(delete) => {
                let table = self.table(&delete.table.table);
                let (engine, session) = (&self.engine, &self.session);
                let (delete, of) = (&delete, &table);
                let find = |snapshot: Arc<Snapshot>| async move {
                    let found = engine.rows_to_delete(session, delete, &[], of, &snapshot).await;
                    found.map_err(Failed)
                };
                table.delete("", find).await.map_err(|Failed(error)| error)?;
                return Ok(None);
            }
            Statement::AlterTable { table, ops } => {
                let table = self.table(&table.table);
                for op in &ops {
                    let def = tributary_sql::apply_alter(&table.def(), op)?;
                    table.alter(Arc::new(def)).await.unwrap();
                }
                return Ok(None);
            }
            Statement::Query(query) => self.engine.query(&self.session, &query, &[]).await?,
            Statement::Show(show) => self.engine.show(&self.session, &show).await?,
            Statement::Describe { table, all } => {
                self.engine.describe_table(&self.session, &table, all).await?
            }
            Statement::DescribeFunction(call) => self.engine.describe_files(&self.session, &call).await?,
            Statement::Explain(explain) => {
                let Statement::Query(query) = *explain.statement else { panic!("EXPLAIN of no query") };
                self.engine.explain(&self.session, &query, &[], explain.analyze, explain.form).await?
            }
            Statement::Use { db } => {
                self.session.database = Some(db);
                return Ok(None);
            }
            other => {
                return Err(SqlError::new(ErrorCode::NotSupported, format!("not in these tests: {other:?}")));
            }
        };
        collect(result).await.map(Some)
    }

    pub async fn query(&self, sql: &str, params: &[ScalarValue]) -> Result<Vec<Vec<String>>, SqlError> {
        let query = tributary_sql::parse_query(sql)?;
        let (_, batches) = collect(self.engine.query(&self.session, &query, params).await?).await?;
        Ok(rows(&batches))
    }

    /// The titles of a query's columns.
    pub async fn titles(&self, sql: &str) -> Vec<String> {
        let query = tributary_sql::parse_query(sql).unwrap();
        let described = self.engine.describe(&self.session, &query).await.unwrap();
        described.into_iter().map(|column| column.name).collect()
    }

    pub fn table(&self, name: &str) -> Arc<Table> {
        self.names.table("db", name).unwrap().unwrap_or_else(|| panic!("no table {name}"))
    }

    /// Makes a view of the database `db`, in place of one of its name.
    fn create_view(&self, name: &str, body: &ViewBody) -> Result<(), SqlError> {
        let query = tributary_sql::parse_query(&body.query)?;
        let text = tributary_sql::with_databases(&query, self.session.database.as_deref())?;
        let query = tributary_sql::parse_query(&text)?;
        let shape = self.engine.view_shape(&self.session, &query, ("db", name))?;
        let given = body.columns.clone().unwrap_or_default();
        let columns = shape.columns.iter().enumerate().map(|(index, column)| {
            let name = given.get(index).map_or(&column.name, |(name, _)| name);
            let nullable = column.nullable;
            ColumnDef { nullable, ..ColumnDef::new(index as u32, name, column.table_type()) }
        });
        let view = ViewDef {
            id: TableId(100),
            db_id: DbId(1),
            db: "db".to_owned(),
            name: name.to_owned(),
            columns: columns.collect(),
            names_columns: body.columns.is_some(),
            comment: String::new(),
            query: text,
            session_db: self.session.database.clone(),
            sources: shape.sources,
        };
        self.names.views.lock().unwrap().insert(("db".to_owned(), name.to_owned()), Arc::new(view));
        Ok(())
    }

    async fn insert(&self, name: &str, query: &SelectQuery) -> Result<(), SqlError> {
        let mut batches = Vec::new();
        for part in self.engine.query_in_parts(&self.session, query, &[]).await? {
            batches.extend(collect(part).await?.1);
        }
        let table = self.table(name);
        let snapshot = table.snapshot();
        let typed = batches.iter().filter(|batch| batch.num_rows() > 0).map(|batch| {
            let columns = batch.columns().iter().zip(snapshot.schema.fields());
            let columns = columns.map(|(array, field)| match array.null_count() == array.len() {
                // NULL is a text if it stands alone.
                true => new_null_array(field.data_type(), array.len()),
                false => address(array, field.data_type())
                    .unwrap_or_else(|| cast(array, field.data_type()).unwrap()),
            });
            // Rows of tables with unique keys have the sign of a deletion behind them.
            let hidden = &snapshot.schema.fields()[snapshot.def.schema.visible_count()..];
            let hidden = hidden.iter().map(|field| {
                let zero: ArrayRef = Arc::new(Int8Array::from(vec![0; batch.num_rows()]));
                cast(&zero, field.data_type()).unwrap()
            });
            let columns = columns.chain(hidden).collect();
            RecordBatch::try_new(Arc::clone(&snapshot.schema), columns).unwrap()
        });
        table
            .publish(Publication {
                version: Version(snapshot.version.0 + 1),
                schema: Arc::clone(&snapshot.def.schema),
                batches: typed.collect(),
                files: Vec::new(),
                replaces: None,
                partitions: None,
                lsn: Lsn(snapshot.version.0 + 1),
            })
            .unwrap();
        Ok(())
    }
}

fn values_query(rows: &[Vec<Value>]) -> SelectQuery {
    let cell = |value: &Value| match value {
        Value::Expr(expr) => expr.clone(),
        Value::Default => Expr::value(sqlparser::ast::Value::Null),
    };
    let rows = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    SelectQuery::of_rows(rows).expect("VALUES has rows")
}

pub async fn collect(mut result: QueryResult) -> Result<(Vec<ResultColumn>, Vec<RecordBatch>), SqlError> {
    let mut batches = Vec::new();
    while let Some(batch) = result.stream.next().await {
        let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
        for (column, array) in result.columns.iter().zip(batch.columns()) {
            assert_eq!(column.data_type, *array.data_type(), "column {}", column.name);
        }
        batches.push(batch);
    }
    Ok((result.columns, batches))
}

pub fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            rows.push(batch.columns().iter().map(|array| cell(array.as_ref(), row)).collect());
        }
    }
    rows
}

fn cell(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".to_owned();
    }
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Boolean => u8::from(array.as_boolean().value(row)).to_string(),
        DataType::Utf8 if array.as_string::<i32>().value(row).is_empty() => "(empty)".to_owned(),
        _ => {
            let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"));
            ArrayFormatter::try_new(array, &options).unwrap().value(row).to_string()
        }
    }
}

/// Texts as addresses, if the type is one of those.
fn address(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let texts = array.as_string_opt::<i32>()?.iter();
    Some(match to {
        DataType::UInt32 => Arc::new(texts.map(|text| parse_ipv4(text?)).collect::<UInt32Array>()),
        DataType::FixedSizeBinary(16) => Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(texts.map(|text| parse_ipv6(text?)), 16)
                .unwrap(),
        ),
        _ => return None,
    })
}
