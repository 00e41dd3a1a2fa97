//! Columns of a table that is created from a query or like another table.

use super::location;
use crate::ast::{ColumnSpec, CreateTable};
use crate::names;
use crate::parse::CreateTableAs;
use std::sync::Arc;
use tributary_types::data_type::VARCHAR_BYTES_MAX;
use tributary_types::{
    DataType, DbId, ErrorCode, SchemaVersion, SqlError, TableDef, TableId, TableRef, TableRole, TableSchema,
};

/// A column of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryColumn {
    pub name: String,
    pub data_type: DataType,
    /// It is a column of a table, which has no NULL there.
    pub is_never_null: bool,
}

impl CreateTableAs {
    /// The statement with the columns of the query. CHAR and VARCHAR become STRING, which no key can be: keys, and the
    /// first column, are VARCHAR(65533). What no table's column gives may be NULL.
    ///
    /// # Errors
    /// Another number of names than of columns, or bad names.
    pub fn with_columns(&self, of_query: &[QueryColumn]) -> Result<CreateTable, SqlError> {
        if !self.create.columns.is_empty() {
            return self.with_written_columns(of_query);
        }
        if let Some(names) = &self.names
            && names.len() != of_query.len()
        {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "ctas column size is not equal to the query's: {} names for {} columns",
                    names.len(),
                    of_query.len()
                ),
            ));
        }
        let columns = of_query.iter().enumerate().map(|(index, column)| {
            let name = match &self.names {
                Some(names) => names[index].clone(),
                None => column_name(&column.name, index),
            };
            let keys = self.create.keys.as_deref().unwrap_or_default();
            let is_key = keys.iter().any(|key| key.eq_ignore_ascii_case(&name));
            ColumnSpec {
                data_type: match column.data_type {
                    DataType::Char { .. } | DataType::Varchar { .. } | DataType::String
                        if index == 0 || is_key =>
                    {
                        DataType::Varchar { bytes: VARCHAR_BYTES_MAX }
                    }
                    DataType::Char { .. } | DataType::Varchar { .. } => DataType::String,
                    DataType::Varbinary { bytes } if index == 0 || is_key => {
                        DataType::Varbinary { bytes: bytes.min(VARCHAR_BYTES_MAX) }
                    }
                    other => other,
                },
                name,
                nullable: Some(!column.is_never_null),
                is_key: false,
                aggregation: None,
                on_update: None,
                auto_increment: None,
                is_of_mysql: false,
                generated: None,
                default: None,
                comment: None,
            }
        });
        Ok(CreateTable { columns: columns.collect(), ..self.create.clone() })
    }
}

impl CreateTableAs {
    /// The statement that has columns of its own, among which are those of the query.
    fn with_written_columns(&self, of_query: &[QueryColumn]) -> Result<CreateTable, SqlError> {
        let written = &self.create.columns;
        let is_written =
            |column: &QueryColumn| written.iter().any(|other| other.name.eq_ignore_ascii_case(&column.name));
        match of_query.iter().find(|column| !is_written(column)) {
            None => Ok(self.create.clone()),
            Some(column) => Err(SqlError::detail(
                ErrorCode::NotSupported,
                format!(
                    "CREATE TABLE … AS SELECT with columns that are not among the written ones is not supported: the query's \
                     column '{}' needs the name of one of them",
                    column.name
                ),
            )),
        }
    }

    /// The columns of the table that the query's are stored in, in its order; `None`: all.
    #[must_use]
    pub fn stored_columns(&self, of_query: &[QueryColumn]) -> Option<Vec<String>> {
        let are_written = !self.create.columns.is_empty();
        are_written.then(|| of_query.iter().map(|column| column.name.clone()).collect())
    }
}

/// The title of a query's column if it is a legal column name, otherwise a name derived from it.
fn column_name(title: &str, index: usize) -> String {
    if names::check_column(title).is_ok() && !title.starts_with(|first: char| first.is_ascii_digit()) {
        return title.to_owned();
    }
    let function = title.split_once('(').map(|(name, _)| name.trim());
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_');
    let is_literal = title.starts_with(|first: char| first.is_ascii_digit() || first == '\'' || first == '"');
    let what = match function.filter(is_name) {
        Some(name) => name.to_lowercase(),
        None if is_literal => "literal".to_owned(),
        None => "expression".to_owned(),
    };
    format!("__{what}_{index}")
}

/// A table of another name with the columns, keys, distribution, properties and comment of `source`, and no rows.
///
/// # Errors
/// [`ErrorCode::WrongTableName`].
pub fn like(
    source: &TableDef,
    name: &TableRef,
    db_id: DbId,
    id: TableId,
    rollups: Option<&[String]>,
) -> Result<TableDef, SqlError> {
    names::check_table(&name.table)?;
    Ok(TableDef {
        id,
        db_id,
        db: name.db.clone(),
        name: name.table.clone(),
        schema: Arc::new(TableSchema { version: SchemaVersion(1), ..(*source.schema).clone() }),
        rollups: super::rollup::of_copy(source, rollups)?,
        location: location(&name.db, &name.table, id),
        role: TableRole::Own,
        drop_mark: None,
        ..source.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Statement, parse};

    fn created(sql: &str, columns: &[(&str, DataType, bool)]) -> Result<TableDef, SqlError> {
        let Ok(Statement::CreateTableAs(create)) = parse(sql) else { panic!("{sql}: {:?}", parse(sql)) };
        let column = |(name, data_type, is_never_null): &(&str, DataType, bool)| QueryColumn {
            name: (*name).to_owned(),
            data_type: *data_type,
            is_never_null: *is_never_null,
        };
        let columns: Vec<QueryColumn> = columns.iter().map(column).collect();
        create.with_columns(&columns)?.to_def("d", DbId(1), TableId(7))
    }

    fn shown(def: &TableDef) -> Vec<String> {
        let shown = def.schema.visible().map(|column| {
            let (key, null) =
                (if column.is_key { "key " } else { "" }, if column.nullable { "" } else { " not null" });
            format!("{key}{} {}{null}", column.name, column.data_type)
        });
        shown.collect()
    }

    #[test]
    fn columns_are_those_of_the_query_with_the_types_of_doris() {
        let columns = [
            ("a", DataType::Varchar { bytes: 5 }, true),
            ("b", DataType::Char { bytes: 5 }, false),
            ("count(*)", DataType::BigInt, false),
            ("1", DataType::TinyInt, false),
            ("a + b", DataType::Double, false),
        ];
        let def = created("CREATE TABLE t AS SELECT a FROM x", &columns).expect("legal");
        assert_eq!(
            shown(&def),
            [
                "key a varchar(65533) not null",
                "b string",
                "__count_2 bigint",
                "__literal_3 tinyint",
                "__expression_4 double"
            ]
            .map(|line| line.replace("string", &DataType::String.to_string()))
        );
        let sql = "CREATE TABLE t (x, y) UNIQUE KEY(x, y) COMMENT 'c' DISTRIBUTED BY HASH(y) BUCKETS 3 \
                   PROPERTIES ('replication_num' = '1') WITH w AS (SELECT 1) SELECT * FROM w";
        let def = created(sql, &columns[..2]).expect("legal");
        assert_eq!(shown(&def), ["key x varchar(65533) not null", "key y varchar(65533)"]);
        assert!(def.keys.is_unique() && def.comment == "c");
    }

    #[test]
    fn names_are_as_many_as_columns_and_each_is_there_once() {
        let column = [("a", DataType::Int, false)];
        let error = created("CREATE TABLE t (x, y) SELECT 1", &column).unwrap_err();
        assert!(error.detail_text().contains("2 names for 1 columns"), "{error}");
        let twice = [("a", DataType::Int, false), ("A", DataType::Int, false)];
        assert_eq!(created("CREATE TABLE t AS SELECT 1", &twice).unwrap_err().code.number(), 1060);
    }
}
