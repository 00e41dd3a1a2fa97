//! Instants as the load's wall-clock times.

use super::damaged;
use crate::formats::host::LoadHost;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit, TimestampMicrosecondType};
use std::cell::Cell;
use std::sync::Arc;
use tributary_types::SqlError;

/// Zone offsets are looked up once per this duration, in µs: they change at quarters of an hour.
const QUARTER_MICROS: i64 = 15 * 60 * 1_000_000;

/// The batch with all instants as times in the load's zone. Others are left alone.
pub(super) fn localized(batch: &RecordBatch, host: &dyn LoadHost) -> Result<RecordBatch, SqlError> {
    let is_instant = |array: &ArrayRef| matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
    if !batch.columns().iter().any(is_instant) {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut arrays = Vec::with_capacity(batch.num_columns());
    for (array, field) in batch.columns().iter().zip(schema.fields()) {
        if is_instant(array) {
            let array = local(array, host).map_err(|error| damaged("file's", error))?;
            fields.push(Arc::new(Field::new(field.name(), array.data_type().clone(), true)));
            arrays.push(array);
        } else {
            fields.push(Arc::clone(field));
            arrays.push(Arc::clone(array));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| damaged("file's", error))
}

/// An array of instants as times.
pub(super) fn local(array: &ArrayRef, host: &dyn LoadHost) -> Result<ArrayRef, arrow::error::ArrowError> {
    let instants = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())))?;
    let instants = instants.as_primitive::<TimestampMicrosecondType>();
    let known: Cell<Option<(i64, i64)>> = Cell::new(None);
    let times: TimestampMicrosecondArray =
        instants.clone().with_timezone_opt::<String>(None).unary(|instant| {
            let quarter = instant.div_euclid(QUARTER_MICROS);
            let shift = match known.get() {
                Some((at, shift)) if at == quarter => shift,
                _ => {
                    let shift = i64::from(host.offset_seconds(quarter * QUARTER_MICROS)) * 1_000_000;
                    known.set(Some((quarter, shift)));
                    shift
                }
            };
            instant.saturating_add(shift)
        });
    Ok(Arc::new(times))
}
