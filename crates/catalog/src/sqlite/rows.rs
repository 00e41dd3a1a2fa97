//! Whole tables, for copies of a catalog.

use super::change::Change;
use super::{SqliteStore, failed_to};
use crate::rows::{BATCH, Columns, Kind, NEXT_DATABASE_ID, TABLES, Value};
use crate::store::Stored;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, query};

/// A table that is read.
pub(crate) struct Reading<'s>(BoxStream<'s, Result<Vec<Value>, sqlx::Error>>);

impl Reading<'_> {
    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Stored<Option<Vec<Vec<Value>>>> {
        let mut rows = Vec::new();
        while rows.len() < BATCH
            && let Some(row) = self.0.try_next().await.map_err(failed_to("read a table"))?
        {
            rows.push(row);
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}

impl SqliteStore {
    /// Reads a table. Nothing may change meanwhile.
    pub(crate) async fn table(&self, table: &'static Columns) -> Stored<Reading<'_>> {
        let statement = match table.table {
            NEXT_DATABASE_ID => {
                "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'databases'".to_owned()
            }
            name => format!("SELECT {} FROM {name}", table.names()),
        };
        let read = move |row: SqliteRow| -> Result<Vec<Value>, sqlx::Error> {
            let value = |(place, (_, kind)): (usize, &(&str, Kind))| {
                Ok(match kind {
                    Kind::Number => row.try_get::<Option<i64>, _>(place)?.map(Value::Number),
                    Kind::Text => row.try_get::<Option<String>, _>(place)?.map(Value::Text),
                    Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(place)?.map(Value::Bytes),
                }
                .unwrap_or(Value::Null))
            };
            table.columns.iter().enumerate().map(value).collect()
        };
        Ok(Reading(query(AssertSqlSafe(statement)).try_map(read).fetch(&self.pool)))
    }

    /// Begins to replace everything.
    pub(crate) async fn fill(&self) -> Stored<Filling> {
        let failed = failed_to("begin a copy");
        let mut change = Change::begin(&self.pool).await.map_err(&failed)?;
        for table in TABLES.iter().rev().filter(|table| table.table != NEXT_DATABASE_ID) {
            let gone = AssertSqlSafe(format!("DELETE FROM {}", table.table));
            query(gone).execute(&mut *change).await.map_err(&failed)?;
        }
        Ok(Filling(change))
    }
}

/// A file whose contents are being replaced. Dropped without a commit, it is as before.
pub(crate) struct Filling(Change);

impl Filling {
    /// Inserts rows.
    pub async fn put(&mut self, table: &Columns, rows: Vec<Vec<Value>>) -> Stored<()> {
        let failed = failed_to("copy a table");
        for row in rows {
            if table.table == NEXT_DATABASE_ID {
                self.put_next_database_id(row).await.map_err(&failed)?;
                continue;
            }
            let places = vec!["?"; table.columns.len()].join(", ");
            let put = format!("INSERT INTO {} ({}) VALUES ({places})", table.table, table.names());
            let mut put = query(AssertSqlSafe(put));
            for (value, (_, kind)) in row.into_iter().zip(table.columns) {
                put = match (value, kind) {
                    (Value::Number(number), _) => put.bind(number),
                    (Value::Text(text), _) => put.bind(text),
                    (Value::Bytes(bytes), _) => put.bind(bytes),
                    (Value::Null, Kind::Number) => put.bind(None::<i64>),
                    (Value::Null, Kind::Text) => put.bind(None::<String>),
                    (Value::Null, Kind::Bytes) => put.bind(None::<Vec<u8>>),
                };
            }
            put.execute(&mut *self.0).await.map_err(&failed)?;
        }
        Ok(())
    }

    async fn put_next_database_id(&mut self, row: Vec<Value>) -> Result<(), sqlx::Error> {
        let Some(Value::Number(next)) = row.into_iter().next() else { return Ok(()) };
        query("DELETE FROM sqlite_sequence WHERE name = 'databases'").execute(&mut *self.0).await?;
        query("INSERT INTO sqlite_sequence (name, seq) VALUES ('databases', ?)")
            .bind(next - 1)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }

    /// Durable on return.
    pub async fn commit(self) -> Stored<()> {
        self.0.commit().await.map_err(failed_to("end a copy"))
    }
}
