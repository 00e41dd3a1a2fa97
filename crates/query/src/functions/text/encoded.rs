//! Base64 and checksums of texts.

use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Text};
    vec![
        MySqlFunction::new("to_base64", &[Any], crate::functions::utf8, |args| to_base64(&args[0])),
        MySqlFunction::new(
            "from_base64",
            &[Text],
            || DataType::Binary,
            |args| {
                let values = args[0].as_string::<i32>().iter().map(|text| decode(text?.as_bytes()));
                Ok(Arc::new(values.collect::<BinaryArray>()))
            },
        ),
        MySqlFunction::new("crc32", &[Any], crate::functions::int64, |args| {
            let sums = bytes_of(&args[0])?;
            let sums = sums.as_binary::<i32>().iter().map(|bytes| bytes.map(|bytes| i64::from(crc32(bytes))));
            Ok(Arc::new(sums.collect::<Int64Array>()))
        }),
    ]
}

/// The bytes of texts, or of the texts of other values.
fn bytes_of(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Binary => Ok(Arc::clone(array)),
        _ => {
            let texts = crate::functions::conversion::convert::to_text(array)?;
            crate::functions::conversion::convert::safe_cast(&texts, &DataType::Binary)
        }
    }
}

fn to_base64(array: &ArrayRef) -> Result<ArrayRef> {
    let bytes = bytes_of(array)?;
    let bytes = bytes.as_binary::<i32>();
    let of = |row| Ok(bytes.is_valid(row).then(|| encode(bytes.value(row))));
    growth::texts("to_base64", std::slice::from_ref(array), of)
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes that a text in base64 encodes; `None` for other texts.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = text.get(..text.len() - padding).filter(|_| padding <= 2)?;
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for (at, digit) in group.iter().enumerate() {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits |= u32::from(value) << (18 - 6 * at);
        }
        bytes.extend(bits.to_be_bytes().iter().skip(1).take(group.len() - 1));
    }
    Some(bytes)
}

/// The checksum of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0_u32; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut sum = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
                bit += 1;
            }
            table[byte] = sum;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}
