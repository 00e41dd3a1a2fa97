//! The common type in which values of several types are compared and stored: elements of arrays, keys of maps, the arguments of
//! `FIELD`.

use crate::functions::conversion::convert;
use crate::types;
use crate::types::kind::DATETIME;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::utils::normalize_float_zero;
use std::sync::Arc;

/// The type that can hold a value of each of `types`. Values that have no type in common become texts.
pub fn common_type(types: &[&DataType]) -> DataType {
    let elements: Option<Vec<&DataType>> = types
        .iter()
        .filter(|data_type| ***data_type != DataType::Null)
        .map(|data_type| match data_type {
            DataType::List(field) => Some(field.data_type()),
            _ => None,
        })
        .collect();
    match elements {
        Some(elements) if !elements.is_empty() => {
            crate::functions::nested::arrays::list_of(common_type(&elements))
        }
        _ => types::common(types.iter().copied()).unwrap_or(DataType::Utf8),
    }
}

/// `array` as `to`, by the conversions of MySQL where arrow has others.
pub fn convert_to(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match to {
        to if array.data_type() == to => Ok(Arc::clone(array)),
        DataType::Utf8 => convert::to_text(array),
        DataType::Float64 => convert::to_real(array),
        DataType::Int64 => convert::to_integer(array),
        to if *to == DATETIME => convert::to_datetime(array),
        to => convert::safe_cast(array, to),
    }
}

/// Values that are equal in SQL, equal to the byte: no negative zero.
pub fn normal(array: ArrayRef) -> ArrayRef {
    normalize_float_zero(&array)
}
