//! Addresses of IPv6 as their sixteen bytes, which Doris calls numbers, and the ranges of networks.

use super::address::{Otherwise, ipv4, ipv6};
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::IPV6;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, StringArray, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, UInt32Type};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;
use tributary_types::address::{mapped, parse_ipv6, show_ipv4, show_ipv6};

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    let (text, boolean) = (crate::functions::utf8, crate::functions::boolean);
    let binary = || DataType::Binary;
    vec![
        MySqlFunction::new("ipv6_string_to_num", &[Text], binary, |args| {
            bytes_of(&args[0], Otherwise::Fails)
        }),
        MySqlFunction::new("ipv6_string_to_num_or_null", &[Text], binary, |args| {
            bytes_of(&args[0], Otherwise::Null)
        }),
        MySqlFunction::new("ipv6_string_to_num_or_default", &[Text], binary, |args| {
            bytes_of(&args[0], Otherwise::Default)
        }),
        MySqlFunction::new("ipv6_num_to_string", &[Any], text, |args| {
            let texts = addresses(&args[0])?.into_iter().map(|address| address.map(show_ipv6));
            Ok(Arc::new(texts.collect::<StringArray>()))
        }),
        MySqlFunction::new("is_ipv4_compat", &[Any], boolean, |args| {
            each(&args[0], |address| address[..12] == [0; 12] && address[12..] != [0; 4])
        }),
        MySqlFunction::new("is_ipv4_mapped", &[Any], boolean, |args| {
            each(&args[0], |address| address[..10] == [0; 10] && address[10..12] == [0xff; 2])
        }),
        MySqlFunction::new(
            "ipv4_to_ipv6",
            &[Any],
            || IPV6,
            |args| {
                let addresses = ipv4(&args[0], Otherwise::Fails)?;
                let all = addresses.as_primitive::<UInt32Type>().iter().map(|address| address.map(mapped));
                Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(all, 16)?))
            },
        ),
        MySqlFunction::new("ipv4_cidr_to_range", &[Any, Int], range_type, ipv4_range),
        MySqlFunction::new("ipv6_cidr_to_range", &[Any, Int], range_type, ipv6_range),
        MySqlFunction::new("cut_ipv6", &[Any, Int, Int], text, cut),
    ]
}

fn range_type() -> DataType {
    DataType::Struct(range_fields())
}

fn range_fields() -> Fields {
    Fields::from(vec![Field::new("min", DataType::Utf8, true), Field::new("max", DataType::Utf8, true)])
}

/// The bytes of the addresses that texts are.
fn bytes_of(texts: &ArrayRef, otherwise: Otherwise) -> Result<ArrayRef> {
    let texts = texts.as_string::<i32>();
    let bytes = texts.iter().map(|text| match text {
        None => Ok(otherwise.of_null()),
        Some(text) => otherwise.of::<[u8; 16]>(text, parse_ipv6(text), "IPv6"),
    });
    let bytes = bytes.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(bytes.iter().map(|bytes| bytes.as_ref().map(|bytes| &bytes[..])).collect::<BinaryArray>()))
}

/// The addresses that sixteen bytes are; NULL for other bytes. A value of type IPV6, or its text, is one, too.
fn addresses(array: &ArrayRef) -> Result<Vec<Option<[u8; 16]>>> {
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary::<i32>().iter().map(|bytes| bytes?.try_into().ok()).collect()),
        _ => {
            let addresses = ipv6(array, Otherwise::Null)?;
            Ok(addresses.as_fixed_size_binary().iter().map(|bytes| bytes?.try_into().ok()).collect())
        }
    }
}

fn each(array: &ArrayRef, holds: impl Fn([u8; 16]) -> bool) -> Result<ArrayRef> {
    let found = addresses(array)?.into_iter().map(|address| address.map(&holds));
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

/// The first and the last address of each network; `bits` are those of the address that are the network's.
fn range(
    networks: impl Iterator<Item = Option<u128>>,
    lengths: &ArrayRef,
    bits: u32,
    show: impl Fn(u128) -> String,
) -> Result<ArrayRef> {
    let lengths = lengths.as_primitive::<Int64Type>();
    let (mut first, mut last, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for (address, length) in networks.zip(lengths) {
        let Some((address, length)) = address.zip(length) else {
            first.push(None);
            last.push(None);
            valid.push(false);
            continue;
        };
        let kept = u32::try_from(length).ok().filter(|length| *length <= bits);
        let Some(kept) = kept else {
            return exec_err!("Illegal cidr value '{length}'; it is a number from 0 to {bits}");
        };
        let hosts = u128::MAX.checked_shr(128 - (bits - kept)).unwrap_or(0);
        first.push(Some(show(address & !hosts)));
        last.push(Some(show(address | hosts)));
        valid.push(true);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(first)), Arc::new(StringArray::from(last))];
    Ok(Arc::new(StructArray::try_new(range_fields(), columns, Some(NullBuffer::from(valid)))?))
}

fn ipv4_range(args: &[ArrayRef]) -> Result<ArrayRef> {
    let addresses = ipv4(&args[0], Otherwise::Fails)?;
    let addresses = addresses.as_primitive::<UInt32Type>().iter().map(|address| address.map(u128::from));
    range(addresses, &args[1], 32, |address| show_ipv4(address as u32))
}

fn ipv6_range(args: &[ArrayRef]) -> Result<ArrayRef> {
    let addresses = ipv6(&args[0], Otherwise::Fails)?;
    let addresses = addresses.as_fixed_size_binary().iter();
    let addresses = addresses.map(|bytes| Some(u128::from_be_bytes(bytes?.try_into().ok()?)));
    range(addresses, &args[1], 128, |address| show_ipv6(address.to_be_bytes()))
}

/// The texts of addresses with zeros at the end: as many bytes as the arguments say for IPv6 and for IPv4 in it.
fn cut(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counts = |at: usize| args[at].as_primitive::<Int64Type>().iter();
    let all = addresses(&args[0])?.into_iter().zip(counts(1).zip(counts(2)));
    let texts = all.map(|(address, (of_ipv6, of_ipv4))| {
        let (mut address, of_ipv6, of_ipv4) = (address?, of_ipv6?, of_ipv4?);
        let is_mapped = address[..10] == [0; 10] && address[10..12] == [0xff; 2];
        let zeros = usize::try_from(if is_mapped { of_ipv4 } else { of_ipv6 }).unwrap_or(0).min(16);
        address[16 - zeros..].fill(0);
        Some(show_ipv6(address))
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
