//! Commands that ask for names of the catalog, and for what the server can do.
//!
//! Names come from `information_schema`, by statements of the session: it shows a user what it may see.

use crate::session::{Answer, Session};
use crate::status::{invalid, status};
use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes,
    CommandGetTables, CommandGetXdbcTypeInfo, Nullable, Searchable, SqlInfo, SqlSupportedTransaction,
    XdbcDataType, XdbcDatetimeSubcode,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The only catalog, as Doris calls it.
const CATALOG: &str = "internal";
/// Kinds of tables, with their names in `information_schema`.
const TABLE_TYPES: [(&str, &str); 3] =
    [("BASE TABLE", "TABLE"), ("VIEW", "VIEW"), ("SYSTEM VIEW", "SYSTEM VIEW")];

/// Answers that do not depend on a session.
pub(crate) struct Metadata {
    abilities: SqlInfoData,
    types: XdbcTypeInfoData,
}

impl Metadata {
    pub fn new(server_version: &str) -> Self {
        let types = types().build().expect("every type has all facts");
        Self { abilities: abilities(server_version).build().expect("every fact has a value"), types }
    }

    pub const fn abilities(&self) -> &SqlInfoData {
        &self.abilities
    }

    pub const fn types(&self) -> &XdbcTypeInfoData {
        &self.types
    }

    pub fn sql_info(&self, query: CommandGetSqlInfo) -> Result<RecordBatch, Status> {
        query.into_builder(&self.abilities).build().map_err(unbuilt)
    }

    pub fn type_info(&self, query: CommandGetXdbcTypeInfo) -> Result<RecordBatch, Status> {
        query.into_builder(&self.types).build().map_err(unbuilt)
    }

    pub fn catalogs(&self, query: CommandGetCatalogs) -> Result<RecordBatch, Status> {
        let mut builder = query.into_builder();
        builder.append(CATALOG);
        builder.build().map_err(unbuilt)
    }

    pub fn table_types(&self, query: CommandGetTableTypes) -> Result<RecordBatch, Status> {
        let mut builder = query.into_builder();
        TABLE_TYPES.iter().for_each(|(_, name)| builder.append(name));
        builder.build().map_err(unbuilt)
    }

    pub async fn schemas(
        &self,
        query: CommandGetDbSchemas,
        session: &dyn Session,
        left: CancellationToken,
    ) -> Result<RecordBatch, Status> {
        let mut builder = query.into_builder();
        let text = "SELECT schema_name FROM information_schema.schemata";
        for row in texts(session, text, left).await? {
            if let [schema] = row.as_slice() {
                builder.append(CATALOG, schema);
            }
        }
        builder.build().map_err(unbuilt)
    }

    pub async fn tables(
        &self,
        query: CommandGetTables,
        session: &dyn Session,
        left: CancellationToken,
    ) -> Result<RecordBatch, Status> {
        let wants_schema = query.include_schema;
        let shown = Shown::of(&query);
        let mut builder = query.into_builder();
        let text = "SELECT table_schema, table_name, table_type FROM information_schema.tables";
        for row in texts(session, text, left.clone()).await? {
            let [db, table, kind] = row.as_slice() else { continue };
            let kind =
                TABLE_TYPES.iter().find(|(told, _)| told == kind).map_or(kind.as_str(), |(_, name)| name);
            let schema = match wants_schema && shown.has(db, table, kind) {
                // One that was dropped meanwhile is not shown.
                true => match schema_of(session, db, table, left.clone()).await {
                    Some(schema) => schema,
                    None => continue,
                },
                false => Schema::empty().into(),
            };
            builder.append(CATALOG, db, table, kind, &schema).map_err(unbuilt)?;
        }
        builder.build().map_err(unbuilt)
    }

    pub async fn primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        session: &dyn Session,
        left: CancellationToken,
    ) -> Result<RecordBatch, Status> {
        let text = "SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE column_key IN \
                    ('PRI', 'UNI') ORDER BY table_schema, table_name, ordinal_position";
        let mut rows = texts(session, text, left).await?;
        rows.retain(|row| {
            matches!(row.as_slice(), [db, table, _] if is_of(query.db_schema.as_deref(), db) && *table == query.table)
                && is_of(query.catalog.as_deref(), CATALOG)
        });
        let column = |at: usize| rows.iter().map(move |row| row[at].as_str());
        let mut numbers: Vec<i32> = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let is_next = index > 0 && rows[index - 1][0] == row[0];
            numbers.push(if is_next { numbers[index - 1] + 1 } else { 1 });
        }
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![CATALOG; rows.len()])),
            Arc::new(StringArray::from_iter_values(column(0))),
            Arc::new(StringArray::from_iter_values(column(1))),
            Arc::new(StringArray::from_iter_values(column(2))),
            Arc::new(StringArray::from(vec![None::<&str>; rows.len()])),
            Arc::new(Int32Array::from(numbers)),
        ];
        RecordBatch::try_new(primary_key_schema(), arrays).map_err(|error| unbuilt(error.into()))
    }
}

/// The schema of a list of primary keys.
pub(crate) fn primary_key_schema() -> SchemaRef {
    let text = |name: &str, nullable: bool| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The tables that a client asks for: only their schemas are made.
struct Shown {
    db: Option<String>,
    table: Option<String>,
    types: Vec<String>,
}

impl Shown {
    fn of(query: &CommandGetTables) -> Self {
        Self {
            db: query.db_schema_filter_pattern.clone(),
            table: query.table_name_filter_pattern.clone(),
            types: query.table_types.clone(),
        }
    }

    fn has(&self, db: &str, table: &str, kind: &str) -> bool {
        use tributary_types::pattern::like;
        self.db.as_deref().is_none_or(|pattern| like(db, pattern))
            && self.table.as_deref().is_none_or(|pattern| like(table, pattern))
            && (self.types.is_empty() || self.types.iter().any(|wanted| wanted == kind))
    }
}

/// The schema of a table's rows, as a query returns them.
async fn schema_of(
    session: &dyn Session,
    db: &str,
    table: &str,
    left: CancellationToken,
) -> Option<SchemaRef> {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let text = format!("SELECT * FROM {}.{} LIMIT 0", quoted(db), quoted(table));
    match session.query(text, left).await {
        Ok(Answer::Rows(mut rows)) => {
            let schema = rows.schema();
            while let Ok(Some(_)) = rows.next().await {}
            Some(schema)
        }
        _ => None,
    }
}

/// The rows of a query, as texts. NULL is an empty one.
async fn texts(
    session: &dyn Session,
    text: &str,
    left: CancellationToken,
) -> Result<Vec<Vec<String>>, Status> {
    let answer = session.query(text.to_owned(), left).await.map_err(|error| status(&error))?;
    let Answer::Rows(mut rows) = answer else { return Err(invalid("the server shows no names")) };
    let mut found = Vec::new();
    while let Some(batch) = rows.next().await.map_err(|error| status(&error))? {
        let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| unbuilt(error.into()))?;
        let columns: Vec<&StringArray> =
            columns.iter().filter_map(|column| column.as_any().downcast_ref()).collect();
        found.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| value(column, row)).collect()),
        );
    }
    Ok(found)
}

/// The text of a value; empty for NULL.
fn value(column: &StringArray, row: usize) -> String {
    if column.is_null(row) { String::new() } else { column.value(row).to_owned() }
}

/// Whether a name is the one that a client asks for, if it asks for one.
fn is_of(wanted: Option<&str>, found: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}

fn unbuilt(error: FlightError) -> Status {
    Status::internal(format!("the answer can't be made: {error}"))
}

/// The abilities of the server.
fn abilities(server_version: &str) -> SqlInfoDataBuilder {
    let mut facts = SqlInfoDataBuilder::new();
    facts.append(SqlInfo::FlightSqlServerName, "Tributary");
    facts.append(SqlInfo::FlightSqlServerVersion, server_version);
    facts.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    facts.append(SqlInfo::FlightSqlServerReadOnly, false);
    facts.append(SqlInfo::FlightSqlServerSql, true);
    facts.append(SqlInfo::FlightSqlServerSubstrait, false);
    facts.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    facts.append(SqlInfo::FlightSqlServerCancel, false);
    facts.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    facts.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    facts.append(SqlInfo::FlightSqlServerStatementTimeout, 0i32);
    facts.append(SqlInfo::FlightSqlServerTransactionTimeout, 0i32);
    facts.append(SqlInfo::SqlDdlCatalog, false);
    facts.append(SqlInfo::SqlDdlSchema, true);
    facts.append(SqlInfo::SqlDdlTable, true);
    facts.append(SqlInfo::SqlIdentifierQuoteChar, "`");
    facts.append(SqlInfo::SqlAllTablesAreSelectable, false);
    facts
}

/// The types of columns, as JDBC and ODBC number them.
fn types() -> XdbcTypeInfoDataBuilder {
    use XdbcDataType::*;
    let all = [
        ("BOOLEAN", XdbcBit, 1),
        ("TINYINT", XdbcTinyint, 3),
        ("SMALLINT", XdbcSmallint, 5),
        ("INT", XdbcInteger, 10),
        ("BIGINT", XdbcBigint, 19),
        ("FLOAT", XdbcReal, 7),
        ("DOUBLE", XdbcDouble, 15),
        ("DECIMAL", XdbcDecimal, 38),
        ("DATE", XdbcDate, 10),
        ("DATETIME", XdbcTimestamp, 26),
        ("CHAR", XdbcChar, 255),
        ("VARCHAR", XdbcVarchar, 65_533),
        ("STRING", XdbcLongvarchar, i32::MAX),
    ];
    let mut builder = XdbcTypeInfoDataBuilder::new();
    for (name, data_type, size) in all {
        let is_text = matches!(data_type, XdbcChar | XdbcVarchar | XdbcLongvarchar);
        let is_time = matches!(data_type, XdbcDate | XdbcTimestamp);
        let quote = (is_text || is_time).then(|| "'".to_owned());
        let subcode = match data_type {
            // The name of the number that is DATE there.
            XdbcDate => Some(XdbcDatetimeSubcode::XdbcSubcodeYear),
            XdbcTimestamp => Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
            _ => None,
        };
        builder.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type,
            column_size: Some(size),
            literal_prefix: quote.clone(),
            literal_suffix: quote,
            create_params: (name == "DECIMAL").then(|| vec!["precision".to_owned(), "scale".to_owned()]),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: is_text,
            searchable: Searchable::Full,
            unsigned_attribute: (!is_text && !is_time).then_some(false),
            fixed_prec_scale: false,
            auto_increment: None,
            local_type_name: Some(name.to_owned()),
            minimum_scale: None,
            maximum_scale: None,
            sql_data_type: if is_time { XdbcDatetime } else { data_type },
            datetime_subcode: subcode,
            num_prec_radix: (!is_text && !is_time).then_some(10),
            interval_precision: None,
        });
    }
    builder
}
