//! `map(k, v, …)` with Doris's keys: the last of equal ones wins and is placed last. A NULL key, which Doris accepts, is refused:
//! arrow's maps don't support them.

use crate::functions::keeping;
use crate::functions::nested::alike::{common_type, convert_to, normal};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, MapArray, StructArray, UInt64Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    let empty = || map_type(&[]);
    vec![
        MySqlFunction::new("__map", &[Param::Any], empty, map)
            .optional(1)
            .variadic()
            .returning(map_type)
            .keeping(keeping::map_of_all),
    ]
}

fn sides(types: &[DataType]) -> (DataType, DataType) {
    let or_text = |data_type: DataType| if data_type == DataType::Null { DataType::Utf8 } else { data_type };
    let side = |from: usize| or_text(common_type(&types.iter().skip(from).step_by(2).collect::<Vec<_>>()));
    (side(0), side(1))
}

fn entry_fields(types: &[DataType]) -> Fields {
    let (key, value) = sides(types);
    Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)])
}

fn entries(types: &[DataType]) -> Field {
    Field::new("entries", DataType::Struct(entry_fields(types)), false)
}

fn map_type(types: &[DataType]) -> DataType {
    DataType::Map(Arc::new(entries(types)), false)
}

fn map(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.len() % 2 == 1 {
        return exec_err!("map takes keys and values by turns; it was given {} arguments", args.len());
    }
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    let (key_type, value_type) = sides(&types);
    let column = |from: usize, to: &DataType| -> Result<ArrayRef> {
        let parts = args
            .iter()
            .skip(from)
            .step_by(2)
            .map(|arg| Ok(normal(convert_to(arg, to)?)))
            .collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Ok(new_empty_array(to));
        }
        Ok(concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
    };
    // The rows of one argument follow those of the previous one.
    let (keys, values) = (column(0, &key_type)?, column(1, &value_type)?);
    if keys.null_count() > 0 {
        return exec_err!("map: a key that is NULL is not supported");
    }
    let compared =
        RowConverter::new(vec![SortField::new(key_type)])?.convert_columns(std::slice::from_ref(&keys))?;
    let rows = args.first().map_or(1, Array::len);
    let pairs = args.len() / 2;
    let mut places: Vec<u64> = Vec::with_capacity(rows * pairs);
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut seen = HashSet::with_capacity(pairs);
        let mut kept: Vec<u64> = (0..pairs)
            .rev()
            .map(|pair| pair * rows + row)
            .filter(|place| seen.insert(compared.row(*place)))
            .map(|place| place as u64)
            .collect();
        kept.reverse();
        lengths.push(kept.len());
        places.extend(kept);
    }
    let places = UInt64Array::from(places);
    let columns = vec![take(&keys, &places, None)?, take(&values, &places, None)?];
    let pairs = StructArray::try_new(entry_fields(&types), columns, None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(MapArray::try_new(Arc::new(entries(&types)), offsets, pairs, None, false)?))
}
