//! The rows of a statement as Arrow's clients know them, and the end of the statement.
//!
//! Not here: encoding.

use super::session::{Shared, Statement, Taken};
use crate::access::interrupt::Interrupted;
use crate::answer::Rows;
use crate::session::Volume;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tributary_query::ResultColumn;
use tributary_types::{DataType as Declared, ErrorCode, SqlError};

/// Metadata of a field: its type in SQL.
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";
/// The database that a field comes from.
const SCHEMA_NAME: &str = "ARROW:FLIGHT:SQL:DB_SCHEMA_NAME";
/// The table that a field comes from.
const TABLE_NAME: &str = "ARROW:FLIGHT:SQL:TABLE_NAME";

/// The schema of a result.
pub(super) fn schema_of(columns: &[ResultColumn]) -> Schema {
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

fn field(column: &ResultColumn) -> Field {
    let data_type = match column.declared {
        // Doris's is text, too: connectors expect no decimal there.
        Some(Declared::LargeInt) => DataType::Utf8,
        _ => plain(&column.data_type),
    };
    let type_name = column.table_type().base_name().to_uppercase();
    let mut metadata = HashMap::from([(TYPE_NAME.to_owned(), type_name)]);
    metadata.extend(column.database.clone().map(|database| (SCHEMA_NAME.to_owned(), database)));
    metadata.extend(column.table.clone().map(|table| (TABLE_NAME.to_owned(), table)));
    Field::new(&column.name, data_type, true).with_metadata(metadata)
}

/// The type that all clients know in the place of one that is only another layout of the same values.
pub(super) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            DataType::List(plain_field(item))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect::<Fields>()),
        DataType::Map(entries, is_sorted) => DataType::Map(plain_field(entries), *is_sorted),
        other => other.clone(),
    }
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), plain(field.data_type()), field.is_nullable()))
}

/// A statement and its session, until its last row is taken.
pub(super) struct OpenRows {
    shared: Arc<Shared>,
    /// `None`: the statement has ended.
    taken: Option<Taken>,
    statement: Statement,
    begun: Instant,
    volume: Volume,
    rows: Option<Box<Rows>>,
    schema: SchemaRef,
}

impl OpenRows {
    pub fn new(
        shared: Arc<Shared>,
        taken: Taken,
        statement: Statement,
        begun: Instant,
        volume: Volume,
    ) -> Self {
        let schema = Arc::new(Schema::empty());
        Self { shared, taken: Some(taken), statement, begun, volume, rows: None, schema }
    }

    /// The statement has rows.
    pub fn begin(&mut self, rows: Box<Rows>) {
        self.schema = Arc::new(schema_of(rows.columns()));
        self.rows = Some(rows);
    }

    /// Gives up the file that the statement waits for.
    pub fn give_up_file(&mut self) {
        if let Some(taken) = &mut self.taken {
            taken.session.give_up_file();
        }
    }

    /// Records the end of the statement, and returns the outcome as the client is told it.
    pub fn end(&mut self, affected_rows: u64, outcome: Result<(), SqlError>) -> Result<(), SqlError> {
        // Before another statement of the user is admitted.
        drop(self.rows.take());
        let Some(mut taken) = self.taken.take() else { return outcome };
        let (session, volume) = (&mut taken.session, Volume { affected_rows, ..self.volume });
        session.end_statement();
        match &self.statement {
            Statement::Text(text) => session.finished(text, self.begun, volume, &outcome),
            Statement::Prepared(id) => session.finished_prepared(*id, self.begun, volume, &outcome),
        }
        let told = session.told(outcome);
        self.shared.give_back(taken);
        told
    }

    async fn batch(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let next = tokio::select! {
            biased;
            () = self.shared.client.kill.cancelled() => return Err(Interrupted::Killed.into()),
            next = rows.next() => next?,
        };
        next.map(|batch| self.converted(&batch)).transpose()
    }

    fn converted(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let convert = |(array, field): (&ArrayRef, &FieldRef)| match array.data_type() == field.data_type() {
            true => Ok(Arc::clone(array)),
            false => cast_with_options(array, field.data_type(), &options),
        };
        let arrays = batch.columns().iter().zip(self.schema.fields()).map(convert);
        let arrays = arrays.collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        arrays
            .and_then(|arrays| RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options))
            .map_err(|error| SqlError::detail(ErrorCode::Unknown, format!("the rows can't be sent: {error}")))
    }
}

#[async_trait]
impl tributary_flight::Rows for OpenRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        match self.batch().await {
            Ok(Some(batch)) => {
                self.volume.returned_rows += batch.num_rows() as u64;
                Ok(Some(batch))
            }
            Ok(None) => self.end(0, Ok(())).map(|()| None),
            Err(error) => self.end(0, Err(error)).map(|()| None),
        }
    }
}

impl Drop for OpenRows {
    fn drop(&mut self) {
        if self.taken.is_some() {
            let left = "Query execution was interrupted: the client has left";
            // Nobody reads it.
            let _ = self.end(0, Err(SqlError::new(ErrorCode::QueryInterrupted, left)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::TimeUnit;

    #[test]
    fn clients_get_the_layouts_that_all_know() {
        let item = |data_type| Arc::new(Field::new("item", data_type, true));
        let list = DataType::List(item(DataType::Utf8View));
        assert_eq!(plain(&list), DataType::List(item(DataType::Utf8)));
        let fields = Fields::from(vec![Field::new("a", list, false), Field::new("b", DataType::Int8, true)]);
        let plain_fields = Fields::from(vec![
            Field::new("a", DataType::List(item(DataType::Utf8)), false),
            Field::new("b", DataType::Int8, true),
        ]);
        assert_eq!(plain(&DataType::Struct(fields)), DataType::Struct(plain_fields));
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(plain(&time), time);
        let largeint = ResultColumn {
            declared: Some(Declared::LargeInt),
            ..ResultColumn::computed("a", DataType::Decimal128(38, 0))
        };
        let field = field(&largeint);
        assert_eq!(
            (field.data_type(), field.metadata().get(TYPE_NAME)),
            (&DataType::Utf8, Some(&"LARGEINT".into()))
        );
    }
}
