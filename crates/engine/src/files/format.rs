//! How the files of one call are written, and which columns their rows have.

use super::refused;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;
use tributary_decode::{
    BlockBuilder, BodyFormat, Compression, FieldNames, InsertOptions, LoadClock, LoadFormat, Target,
    blocks_to_batches, decode_batch,
};
use tributary_files::{FileError, Properties};
use tributary_types::{
    ColumnDef, ColumnId, ErrorCode, SchemaVersion, SqlError, TableDef, TableId, TableSchema,
};

/// How files are written.
pub(super) struct FilesFormat {
    pub body: BodyFormat,
    /// `None`: as a file's name says it.
    compression: Option<Compression>,
    /// The columns of `csv_schema`.
    declared: Option<Declared>,
}

/// Declared columns of a statement, for files of text.
struct Declared {
    target: Target,
    options: InsertOptions,
    schema: SchemaRef,
}

impl FilesFormat {
    /// Takes all properties that are left.
    ///
    /// # Errors
    /// Unknown and wrong properties.
    pub fn take(
        function: &str,
        properties: &mut Properties,
        utc_offset_seconds: i32,
    ) -> Result<Self, SqlError> {
        if let Some(columns) = properties.take_any(["path_partition_keys"]) {
            let text = format!(
                "path_partition_keys={columns} is not supported: columns that only a file's path has are not read; name \
                 the files of one value and write it in the query"
            );
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        let declared = properties.take_any(["csv_schema"]);
        let is_plain = properties.rest().any(|(name, text)| {
            name == "compress_type" && matches!(text.to_ascii_lowercase().as_str(), "plain" | "none")
        });
        if is_plain {
            properties.take("compress_type");
        }
        // An unknown property is named without its text, which may be a key under a wrong name.
        if let Some((name, _)) = properties.rest().find(|(name, _)| !LoadFormat::PROPERTIES.contains(name)) {
            return Err(FileError::Property(format!(
                "Unknown properties: {name}; besides those of the place {function}() has csv_schema and {}",
                LoadFormat::PROPERTIES.join(", ")
            ))
            .into());
        }
        let LoadFormat { body, compression } = LoadFormat::from_properties(properties.rest())?;
        let compression = match compression {
            Compression::None => is_plain.then_some(Compression::None),
            other => Some(other),
        };
        let declared = declared.map(|text| Declared::parse(&text, &body, utc_offset_seconds)).transpose()?;
        Ok(Self { body, compression, declared })
    }

    /// How a file of that name is packed.
    pub fn compression(&self, name: &str) -> Compression {
        match self.compression {
            Some(compression) => compression,
            None if self.body.has_types() => Compression::None,
            None => Compression::of_name(name),
        }
    }

    /// How files' fields are named.
    pub const fn names(&self) -> FieldNames<'static> {
        FieldNames::OfBody
    }

    /// The columns, if the statement says them.
    pub fn declared(&self) -> Option<&SchemaRef> {
        self.declared.as_ref().map(|declared| &declared.schema)
    }

    /// A file's rows with the columns of the table. Those of a file with names have their names; otherwise they have their
    /// places. What a file does not have is NULL, and what only it has is left out.
    ///
    /// # Errors
    /// A file's column has values that are not of the table's type.
    pub fn adapted(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<Vec<RecordBatch>, SqlError> {
        let rows = batch.num_rows();
        let source = batch.schema_ref();
        let by_place = self.declared.is_some() || !self.body.names_fields();
        let column = |(place, field): (usize, &Arc<Field>)| -> Result<ArrayRef, SqlError> {
            let found = if by_place { Some(place) } else { find(source, field.name()) };
            let to = if self.declared.is_some() { &DataType::Utf8 } else { field.data_type() };
            match found.filter(|&found| found < batch.num_columns()) {
                None => Ok(new_null_array(to, rows)),
                Some(found) => converted(batch.column(found), field.name(), to),
            }
        };
        let columns = schema.fields().iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
        match &self.declared {
            Some(declared) => declared.decode(columns, rows),
            None => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
                Ok(vec![batch.map_err(|error| refused(error.to_string()))?])
            }
        }
    }
}

impl Declared {
    fn parse(text: &str, body: &BodyFormat, utc_offset_seconds: i32) -> Result<Self, SqlError> {
        let BodyFormat::Csv(_) = body else {
            return Err(refused("csv_schema has no effect without a format of csv; leave it out"));
        };
        let columns: Vec<ColumnDef> = tributary_sql::parse_csv_schema(text)
            .map_err(|error| {
                let why = error.detail_text();
                refused(format!("csv_schema is not understood, write \"k1:int;k2:decimal(10,2)\": {why}"))
            })?
            .into_iter()
            .zip(0..)
            .map(|(column, id)| ColumnDef::new(id, &column.name, column.data_type))
            .collect();
        let fields = columns.iter().map(|column| {
            let field = Field::new(&column.name, column.data_type.to_arrow(), true);
            field.with_metadata(tributary_query::declared_type(column.data_type))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let next_column_id = ColumnId(columns.len() as u32);
        let table = TableSchema { next_column_id, ..TableSchema::new(SchemaVersion(1), columns) };
        let target = Target::new(&Arc::new(TableDef::new(TableId(0), "", "", table)), None)?;
        // Only the zone of the clock matters for reading values: there are no defaults.
        let clock = LoadClock { now_micros: 0, utc_offset_seconds };
        let options = InsertOptions { strict: false, max_filter_ratio: 1.0, clock };
        Ok(Self { target, options, schema })
    }

    /// Converts texts to values, by the rules of loads: a text that is illegal for its column's type is NULL.
    fn decode(&self, texts: Vec<ArrayRef>, rows: usize) -> Result<Vec<RecordBatch>, SqlError> {
        let fields = self.schema.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, texts, &options)
            .map_err(|error| refused(error.to_string()))?;
        let mut builder = BlockBuilder::new(self.target.schema());
        let decoded = decode_batch(&batch, &self.target, &self.options, &mut builder)?;
        if let Some(reason) = decoded.first_reason() {
            return Err(refused(reason));
        }
        let batches = blocks_to_batches(self.target.schema(), &decoded.blocks)?;
        let typed = |batch: RecordBatch| {
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec());
            batch.map_err(|error| refused(error.to_string()))
        };
        batches.into_iter().map(typed).collect()
    }
}

fn find(schema: &Schema, name: &str) -> Option<usize> {
    let fields = schema.fields();
    let exact = fields.iter().position(|field| field.name() == name);
    exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
}

fn converted(array: &ArrayRef, name: &str, to: &DataType) -> Result<ArrayRef, SqlError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options).map_err(|error| {
        refused(format!(
            "column '{name}' is {}, and {to} in the first file; read files of other columns by a call of their own: {error}",
            array.data_type()
        ))
    })
}
