//! Whole tables, for copies of a catalog.

use super::errors::Sql;
use super::link::{Session, Values};
use crate::rows::{BATCH, Columns, Kind, TABLES, Value};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// A table that is read by a cursor, within a transaction.
pub(super) struct Reading<'s> {
    session: &'s Session,
    table: &'static Columns,
}

impl<'s> Reading<'s> {
    pub async fn begin(session: &'s Session, table: &'static Columns) -> Sql<Self> {
        let declared =
            format!("DECLARE reading NO SCROLL CURSOR FOR SELECT {} FROM {}", table.names(), table.table);
        session.batch(&declared).await?;
        Ok(Self { session, table })
    }

    /// The next rows; `None` at the end.
    pub async fn next(&self) -> Sql<Option<Vec<Vec<Value>>>> {
        let rows = self.session.rows_once(&format!("FETCH {BATCH} FROM reading")).await?;
        let rows = rows.iter().map(|row| read(self.table, row)).collect::<Sql<Vec<_>>>()?;
        Ok((!rows.is_empty()).then_some(rows))
    }

    pub async fn end(self) -> Sql<()> {
        self.session.batch("CLOSE reading").await
    }
}

fn read(table: &Columns, row: &Row) -> Sql<Vec<Value>> {
    let value = |(place, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Number => row.try_get::<_, Option<i64>>(place)?.map(Value::Number),
            Kind::Text => row.try_get::<_, Option<String>>(place)?.map(Value::Text),
            Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(place)?.map(Value::Bytes),
        }
        .unwrap_or(Value::Null))
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// Removes all rows.
pub(super) async fn clear(session: &Session) -> Sql<()> {
    // Not TRUNCATE, whose lock would wait for readers.
    for table in TABLES.iter().rev() {
        session.batch(&format!("DELETE FROM {}", table.table)).await?;
    }
    Ok(())
}

/// Inserts rows.
pub(super) async fn put(session: &Session, table: &Columns, rows: Vec<Vec<Value>>) -> Sql<()> {
    let places: Vec<String> = (1..=table.columns.len()).map(|place| format!("${place}")).collect();
    let statement = format!("INSERT INTO {} ({}) VALUES ({})", table.table, table.names(), places.join(", "));
    let rows: Vec<Values> = rows
        .into_iter()
        .map(|row| {
            row.into_iter()
                .zip(table.columns)
                .map(|(value, (name, kind))| parameter(value, name, *kind))
                .collect()
        })
        .collect();
    session.execute_each(&statement, &rows).await
}

fn parameter(value: Value, name: &str, kind: Kind) -> Box<dyn ToSql + Send + Sync> {
    match (value, kind) {
        (Value::Number(number), _) => Box::new(number),
        // As in transactions that are written here: PostgreSQL has no text with a zero byte.
        (Value::Text(text), _) if name == "reason" => Box::new(text.replace('\0', "\u{fffd}")),
        (Value::Text(text), _) => Box::new(text),
        (Value::Bytes(bytes), _) => Box::new(bytes),
        (Value::Null, Kind::Number) => Box::new(None::<i64>),
        (Value::Null, Kind::Text) => Box::new(None::<String>),
        (Value::Null, Kind::Bytes) => Box::new(None::<Vec<u8>>),
    }
}
