//! Addresses of the Internet Protocol: IPV4 is a `UInt32` in plans and IPV6 sixteen bytes, which nothing else is.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::convert;
use crate::types::kind::{IPV4, IPV6};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Int64Array, StringArray, UInt32Array,
};
use arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use std::sync::Arc;
use tributary_types::address::{is_in_network, parse_ipv4, parse_ipv6, show_ipv4, show_ipv6};

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    let (text, int, boolean) = (crate::functions::utf8, crate::functions::int64, crate::functions::boolean);
    let (v4, v6) = (|| IPV4, || IPV6);
    vec![
        MySqlFunction::new("to_ipv4", &[Any], v4, |args| ipv4(&args[0], Otherwise::Fails)),
        MySqlFunction::new("to_ipv4_or_null", &[Any], v4, |args| ipv4(&args[0], Otherwise::Null)),
        MySqlFunction::new("to_ipv4_or_default", &[Any], v4, |args| ipv4(&args[0], Otherwise::Default)),
        MySqlFunction::new("to_ipv6", &[Any], v6, |args| ipv6(&args[0], Otherwise::Fails)),
        MySqlFunction::new("to_ipv6_or_null", &[Any], v6, |args| ipv6(&args[0], Otherwise::Null)),
        MySqlFunction::new("to_ipv6_or_default", &[Any], v6, |args| ipv6(&args[0], Otherwise::Default)),
        MySqlFunction::new("ipv4_string_to_num", &[Any], int, |args| number(&args[0], Otherwise::Fails)),
        MySqlFunction::new("ipv4_string_to_num_or_null", &[Any], int, |args| {
            number(&args[0], Otherwise::Null)
        }),
        MySqlFunction::new("ipv4_string_to_num_or_default", &[Any], int, |args| {
            number(&args[0], Otherwise::Default)
        }),
        MySqlFunction::new("ipv4_num_to_string", &[Int], text, |args| {
            let numbers = args[0].as_primitive::<Int64Type>().iter();
            let texts = numbers.map(|number| u32::try_from(number?).ok().map(show_ipv4));
            Ok(Arc::new(texts.collect::<StringArray>()))
        }),
        MySqlFunction::new("is_ipv4_string", &[Text], boolean, |args| {
            Ok(each(&args[0], |text| parse_ipv4(text).is_some()))
        }),
        MySqlFunction::new("is_ipv6_string", &[Text], boolean, |args| {
            Ok(each(&args[0], |text| parse_ipv4(text).is_none() && parse_ipv6(text).is_some()))
        }),
        MySqlFunction::new("is_ip_address_in_range", &[Text, Text], boolean, in_range),
    ]
}

/// The result for a text that is not an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    Fails,
    Null,
    /// The address of zeros.
    Default,
}

impl Otherwise {
    /// The result for NULL.
    pub fn of_null<T: Default>(self) -> Option<T> {
        (self == Self::Default).then(T::default)
    }

    pub fn of<T: Default>(self, text: &str, address: Option<T>, name: &str) -> Result<Option<T>> {
        match (address, self) {
            (Some(address), _) => Ok(Some(address)),
            (None, Self::Null) => Ok(None),
            (None, Self::Default) => Ok(Some(T::default())),
            (None, Self::Fails) => {
                exec_err!(
                    "Invalid {name} value '{text}'; to_{}_or_null gives NULL for it",
                    name.to_lowercase()
                )
            }
        }
    }
}

fn each(texts: &ArrayRef, f: impl Fn(&str) -> bool) -> ArrayRef {
    let texts = texts.as_string::<i32>().iter();
    Arc::new(texts.map(|text| text.map(&f)).collect::<BooleanArray>())
}

pub(super) fn ipv4(array: &ArrayRef, otherwise: Otherwise) -> Result<ArrayRef> {
    if *array.data_type() == IPV4 {
        return Ok(Arc::clone(array));
    }
    let texts = convert::to_text(array)?;
    let address = |text: Option<&str>| {
        let Some(text) = text else { return Ok(otherwise.of_null::<u32>()) };
        otherwise.of(text, parse_ipv4(text), "IPv4")
    };
    let addresses = texts.as_string::<i32>().iter().map(address);
    Ok(Arc::new(addresses.collect::<Result<UInt32Array>>()?))
}

pub(super) fn ipv6(array: &ArrayRef, otherwise: Otherwise) -> Result<ArrayRef> {
    if *array.data_type() == IPV6 {
        return Ok(Arc::clone(array));
    }
    let texts = convert::to_text(array)?;
    let address = |text: Option<&str>| {
        let Some(text) = text else { return Ok(otherwise.of_null::<[u8; 16]>()) };
        otherwise.of(text, parse_ipv6(text), "IPv6")
    };
    let addresses = texts.as_string::<i32>().iter().map(address).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(addresses.into_iter(), 16)?))
}

fn number(array: &ArrayRef, otherwise: Otherwise) -> Result<ArrayRef> {
    let addresses = ipv4(array, otherwise)?;
    let numbers = addresses.as_primitive::<UInt32Type>().iter().map(|number| number.map(i64::from));
    Ok(Arc::new(numbers.collect::<Int64Array>()))
}

fn in_range(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (addresses, networks) = (args[0].as_string::<i32>(), args[1].as_string::<i32>());
    let is_in = |(address, network): (Option<&str>, Option<&str>)| {
        let (Some(address), Some(network)) = (address, network) else { return Ok(None) };
        let wrong = |what: &str| exec_datafusion_err!("is_ip_address_in_range: '{what}' is not legal");
        let address = address.trim().parse().map_err(|_| wrong(address))?;
        is_in_network(address, network).map(Some).ok_or_else(|| wrong(network))
    };
    Ok(Arc::new(addresses.iter().zip(networks).map(is_in).collect::<Result<BooleanArray>>()?))
}

/// The texts of addresses; `None` if the array has others.
pub fn texts(array: &ArrayRef) -> Option<ArrayRef> {
    let texts: StringArray = match array.data_type() {
        data_type if *data_type == IPV4 => {
            array.as_primitive::<UInt32Type>().iter().map(|address| address.map(show_ipv4)).collect()
        }
        data_type if *data_type == IPV6 => {
            let addresses = array.as_fixed_size_binary().iter();
            addresses.map(|address| address?.try_into().ok().map(show_ipv6)).collect()
        }
        _ => return None,
    };
    Some(Arc::new(texts))
}

/// A constant text as an address of that type; NULL if it is not one.
pub fn constant(text: &str, data_type: &DataType) -> ScalarValue {
    if *data_type == IPV4 {
        return ScalarValue::UInt32(parse_ipv4(text));
    }
    ScalarValue::FixedSizeBinary(16, parse_ipv6(text).map(|address| address.to_vec()))
}
