//! Functions that create and read values of BITMAP and HLL columns. Names and rules are Doris's.
//!
//! A value that is no number from 0 on, as text or otherwise, makes the empty set in `to_bitmap`, as NULL does in all functions
//! that make a set of one value. Aggregates over such values are in [`crate::functions::states::aggregates`].

use crate::functions::{Body, MySqlFunction, Param, boolean, int64, utf8};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Int64Array, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use std::sync::Arc;
use tributary_types::DataType as Declared;
use tributary_types::state::{Bitmap, Hll, hash32, hash64};

fn binary() -> DataType {
    DataType::Binary
}

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Text};
    type Params = &'static [Param];
    let bitmap = |name: &'static str, params: Params, body: Body| {
        MySqlFunction::new(name, params, binary, body).making(Declared::Bitmap)
    };
    let hll = |name: &'static str, params: Params, body: Body| {
        MySqlFunction::new(name, params, binary, body).making(Declared::Hll)
    };
    vec![
        bitmap("to_bitmap", &[Text], to_bitmap),
        bitmap("bitmap_hash", &[Text], bitmap_hash),
        bitmap("bitmap_hash64", &[Text], bitmap_hash64),
        bitmap("bitmap_empty", &[Any], bitmap_empty).optional(1),
        bitmap("bitmap_from_string", &[Text], bitmap_from_string),
        bitmap("bitmap_and", &[Any, Any], bitmap_and).variadic(),
        bitmap("bitmap_or", &[Any, Any], bitmap_or).variadic(),
        bitmap("bitmap_xor", &[Any, Any], bitmap_xor).variadic(),
        bitmap("bitmap_not", &[Any, Any], bitmap_not),
        bitmap("bitmap_and_not", &[Any, Any], bitmap_not),
        MySqlFunction::new("bitmap_count", &[Any], int64, bitmap_count),
        MySqlFunction::new("bitmap_contains", &[Any, Text], boolean, bitmap_contains),
        MySqlFunction::new("bitmap_to_string", &[Any], utf8, bitmap_to_string),
        hll("hll_hash", &[Text], hll_hash),
        hll("hll_empty", &[Any], hll_empty).optional(1),
        MySqlFunction::new("hll_cardinality", &[Any], int64, hll_cardinality),
    ]
}

/// The bytes of values, NULL for each row of an argument that is NULL alone.
pub fn bytes_of(array: &ArrayRef) -> Result<BinaryArray> {
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary().clone()),
        DataType::Null | DataType::LargeBinary | DataType::BinaryView => {
            Ok(cast(array, &DataType::Binary)?.as_binary().clone())
        }
        other => exec_err!(
            "No matching function: an argument is {other}, where a BITMAP or HLL is needed; make one by to_bitmap, bitmap_hash, \
             bitmap_from_string or hll_hash"
        ),
    }
}

pub fn read_bitmap(bytes: &[u8]) -> Result<Bitmap> {
    match Bitmap::read(bytes) {
        Some(bitmap) => Ok(bitmap),
        None => exec_err!("an argument is not a BITMAP"),
    }
}

pub fn read_hll(bytes: &[u8]) -> Result<Hll> {
    match Hll::read(bytes) {
        Some(hll) => Ok(hll),
        None => exec_err!("an argument is not an HLL"),
    }
}

/// One value for each text, the one of no text where it is NULL.
fn made(texts: &ArrayRef, make: impl Fn(Option<&str>) -> Vec<u8>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(texts.as_string::<i32>().iter().map(make)))
}

fn set_of(value: Option<u64>) -> Vec<u8> {
    value.into_iter().collect::<Bitmap>().bytes()
}

fn to_bitmap(args: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(made(&args[0], |text| set_of(text.and_then(|text| text.trim().parse().ok()))))
}

fn bitmap_hash(args: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(made(&args[0], |text| set_of(text.map(|text| u64::from(hash32(text.as_bytes()))))))
}

fn bitmap_hash64(args: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(made(&args[0], |text| set_of(text.map(|text| hash64(text.as_bytes())))))
}

fn hll_hash(args: &[ArrayRef]) -> Result<ArrayRef> {
    let make = |text: Option<&str>| text.map_or_else(Hll::default, |text| Hll::of(text.as_bytes())).bytes();
    Ok(made(&args[0], make))
}

fn bitmap_empty(args: &[ArrayRef]) -> Result<ArrayRef> {
    nothing(args, "bitmap_empty", Bitmap::default().bytes())
}

fn hll_empty(args: &[ArrayRef]) -> Result<ArrayRef> {
    nothing(args, "hll_empty", Hll::default().bytes())
}

fn nothing(args: &[ArrayRef], name: &str, value: Vec<u8>) -> Result<ArrayRef> {
    if !args.is_empty() {
        return exec_err!("Incorrect parameter count in the call to function '{name}'");
    }
    Ok(Arc::new(BinaryArray::from_iter_values([value])))
}

fn bitmap_from_string(args: &[ArrayRef]) -> Result<ArrayRef> {
    let values = args[0].as_string::<i32>().iter().map(|text| Bitmap::parse(text?).map(|set| set.bytes()));
    Ok(Arc::new(values.collect::<BinaryArray>()))
}

fn bitmap_and(args: &[ArrayRef]) -> Result<ArrayRef> {
    combined(args, |all, other| all.intersect(&other))
}

fn bitmap_or(args: &[ArrayRef]) -> Result<ArrayRef> {
    combined(args, Bitmap::union)
}

fn bitmap_xor(args: &[ArrayRef]) -> Result<ArrayRef> {
    combined(args, |all, other| all.symmetric_difference(&other))
}

fn bitmap_not(args: &[ArrayRef]) -> Result<ArrayRef> {
    combined(args, |all, other| all.subtract(&other))
}

/// The first set of each row, changed by the others; NULL where one is.
fn combined(args: &[ArrayRef], combine: impl Fn(&mut Bitmap, Bitmap)) -> Result<ArrayRef> {
    let arrays = args.iter().map(bytes_of).collect::<Result<Vec<_>>>()?;
    let mut values = BinaryBuilder::new();
    for row in 0..arrays[0].len() {
        if arrays.iter().any(|array| array.is_null(row)) {
            values.append_null();
            continue;
        }
        let mut all = read_bitmap(arrays[0].value(row))?;
        for array in &arrays[1..] {
            combine(&mut all, read_bitmap(array.value(row))?);
        }
        values.append_value(all.bytes());
    }
    Ok(Arc::new(values.finish()))
}

fn bitmap_count(args: &[ArrayRef]) -> Result<ArrayRef> {
    let count = |bytes: Option<&[u8]>| -> Result<i64> {
        bytes.map_or(Ok(0), |bytes| Ok(read_bitmap(bytes)?.count() as i64))
    };
    let counts = bytes_of(&args[0])?.iter().map(count).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Int64Array::from(counts)))
}

fn hll_cardinality(args: &[ArrayRef]) -> Result<ArrayRef> {
    let count = |bytes: Option<&[u8]>| -> Result<i64> {
        bytes.map_or(Ok(0), |bytes| Ok(read_hll(bytes)?.estimate() as i64))
    };
    let counts = bytes_of(&args[0])?.iter().map(count).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Int64Array::from(counts)))
}

fn bitmap_contains(args: &[ArrayRef]) -> Result<ArrayRef> {
    let sets = bytes_of(&args[0])?;
    let has = |(bytes, text): (Option<&[u8]>, Option<&str>)| -> Result<Option<bool>> {
        let (Some(bytes), Some(text)) = (bytes, text) else { return Ok(None) };
        let set = read_bitmap(bytes)?;
        Ok(Some(text.trim().parse().is_ok_and(|value| set.contains(value))))
    };
    let found = sets.iter().zip(args[1].as_string::<i32>()).map(has).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(BooleanArray::from(found)))
}

fn bitmap_to_string(args: &[ArrayRef]) -> Result<ArrayRef> {
    let text = |bytes: Option<&[u8]>| -> Result<Option<String>> {
        bytes.map(|bytes| read_bitmap(bytes).map(|set| set.text())).transpose()
    };
    let texts = bytes_of(&args[0])?.iter().map(text).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}
