//! The columns of a file as columns for the query engine, for values that are computed from them.

use super::mapping::{ascending, is_nested, named, place};
use super::source::{Part, Source};
use super::{ColumnarFormat, Pending, damaged, guarded, zone};
use crate::cells::reject::{Counts, Reject};
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::formats::host::LoadHost;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Reads columns of a file. Unlike fields of text they have types: those of the file, without alternative encodings of a type.
pub(crate) struct ColumnarFields {
    host: Arc<dyn LoadHost>,
    source: Source,
    /// Fields that the load names; `None`: all of the file.
    names: Option<Vec<String>>,
    output: Option<Output>,
    pending: Pending,
    batches: Vec<RecordBatch>,
    counts: Counts,
}

/// The columns of batches.
#[derive(Clone)]
struct Output {
    schema: SchemaRef,
    /// For each field its place in the batches of the source.
    places: Vec<usize>,
}

impl ColumnarFields {
    pub(crate) fn new(names: FieldNames<'_>, format: ColumnarFormat, host: Arc<dyn LoadHost>) -> Self {
        let names = match names {
            FieldNames::Given(names) => Some(names.to_vec()),
            FieldNames::Numbered | FieldNames::OfBody => None,
        };
        Self {
            source: Source::new(format, &host),
            host,
            names,
            output: None,
            pending: Pending::default(),
            batches: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Chooses the columns of the file, once they are known.
    fn choose(&mut self) -> Result<(), SqlError> {
        if self.output.is_none() {
            let Some(schema) = self.source.schema() else { return Ok(()) };
            let columns = match &self.names {
                Some(names) => named(schema, names)?,
                None => (0..schema.fields().len()).collect(),
            };
            let field = |(number, at): (usize, &usize)| {
                let field = schema.field(*at);
                let name = self.names.as_ref().map_or_else(|| field.name(), |names| &names[number]);
                Field::new(name, plain(field.data_type()), true)
            };
            let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
            let chosen = ascending(columns.iter().copied());
            let places = columns.iter().map(|&column| place(&chosen, column)).collect();
            self.output = Some(Output { schema: Arc::new(Schema::new(fields)), places });
            self.source.choose(chosen)?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<bool, SqlError> {
        self.choose()?;
        let source = &mut self.source;
        let piece = self.pending.next(|| source.next())?;
        let (Some(batch), Some(output)) = (piece, &self.output) else { return Ok(false) };
        let batch = guarded("file's", || output.batch(&batch, &*self.host))?;
        self.counts.total += batch.num_rows() as u64;
        self.counts.loaded += batch.num_rows() as u64;
        self.batches.push(batch);
        Ok(true)
    }
}

impl Output {
    fn batch(&self, batch: &RecordBatch, host: &dyn LoadHost) -> Result<RecordBatch, SqlError> {
        let column = |(&at, field): (&usize, &Arc<Field>)| {
            stored_plainly(batch.column(at), field.data_type(), host)
                .map_err(|error| damaged("file's", format_args!("column '{}': {error}", field.name())))
        };
        let arrays =
            self.places.iter().zip(self.schema.fields()).map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| damaged("file's", error))
    }
}

/// The canonical type of all that store the same values.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        nested if is_nested(nested) => nested.clone(),
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        DataType::Null
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_) => DataType::Utf8,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal256(precision, scale) if *precision <= 38 => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal256(..) => DataType::Utf8,
        DataType::Date64 | DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => other.clone(),
    }
}

fn stored_plainly(
    array: &ArrayRef,
    to: &DataType,
    host: &dyn LoadHost,
) -> Result<ArrayRef, arrow::error::ArrowError> {
    if let DataType::Timestamp(_, Some(_)) = array.data_type() {
        return zone::local(array, host);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if let DataType::FixedSizeBinary(_) = array.data_type() {
        let binary = cast_with_options(array, &DataType::Binary, &options)?;
        return cast_with_options(&binary, to, &options);
    }
    cast_with_options(array, to, &options)
}

impl FieldDecoder for ColumnarFields {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.source.push(chunk)?;
        self.advance()?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.source.finish()?;
        self.advance()?;
        Ok(())
    }

    fn resume(&mut self) -> Result<bool, SqlError> {
        self.advance()
    }

    fn divide(&mut self, count: usize, bytes_min: u64) -> Result<Vec<Box<dyn FieldDecoder>>, SqlError> {
        if !self.source.has_parts() {
            return Ok(Vec::new());
        }
        self.source.finish()?;
        self.choose()?;
        let part = |Part { source, .. }| {
            Box::new(Self {
                host: Arc::clone(&self.host),
                source,
                names: self.names.clone(),
                output: self.output.clone(),
                pending: Pending::default(),
                batches: Vec::new(),
                counts: Counts::default(),
            }) as Box<dyn FieldDecoder>
        };
        Ok(self.source.divide(&*self.host, count, bytes_min).into_iter().map(part).collect())
    }

    fn parts_lacked_memory(&self) -> bool {
        self.source.parts_lacked_memory()
    }

    fn held_bytes(&self) -> usize {
        self.source.held_bytes()
    }

    fn schema(&self) -> Result<SchemaRef, SqlError> {
        let output = self.output.as_ref().map(|output| Arc::clone(&output.schema));
        output.ok_or_else(|| SqlError::detail(ErrorCode::Unknown, "the body has no columns yet"))
    }

    fn take_batches(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.batches)
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn rejects(&self) -> &[Reject] {
        &[]
    }
}
