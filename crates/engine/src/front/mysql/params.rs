//! The parameters of an execution, from the packet that brings them.

use crate::session::Parameters;
use tributary_decode::{BoundParams, ParamType};
use tributary_mysql::{ParamValue, Params};
use tributary_query::ScalarValue;
use tributary_types::SqlError;

/// Slices of the packet.
pub(super) struct PacketParams<'a>(pub Params<'a>);

impl Parameters for PacketParams<'_> {
    fn bind<'a>(&'a self, types: &'a mut Vec<ParamType>) -> BoundParams<'a> {
        types.clear();
        let bound = self.0.types().iter();
        types.extend(bound.map(|param| ParamType { column_type: param.type_code, unsigned: param.unsigned }));
        BoundParams {
            types,
            null_bitmap: self.0.null_bitmap(),
            values: self.0.values(),
            long_data: self.0.long_data(),
        }
    }

    fn values(&self) -> Result<Vec<ScalarValue>, SqlError> {
        self.0.iter().map(|value| value.map(scalar)).collect()
    }
}

fn scalar(value: ParamValue<'_>) -> ScalarValue {
    match value {
        ParamValue::Null => ScalarValue::Null,
        ParamValue::Int(number) => ScalarValue::Int64(Some(number)),
        ParamValue::UInt(number) => match i64::try_from(number) {
            Ok(number) => ScalarValue::Int64(Some(number)),
            Err(_) => ScalarValue::UInt64(Some(number)),
        },
        ParamValue::Float(number) => ScalarValue::Float32(Some(number)),
        ParamValue::Double(number) => ScalarValue::Float64(Some(number)),
        ParamValue::Decimal(bytes) => {
            let number =
                std::str::from_utf8(bytes).ok().and_then(|text| tributary_query::decimal(text.trim()));
            number.unwrap_or_else(|| text(bytes))
        }
        ParamValue::Bytes(bytes) => text(bytes),
        ParamValue::DateTime { year, month, day, hour, minute, second, micros } => ScalarValue::Utf8(Some(
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{}", fraction(micros)),
        )),
        ParamValue::Time { negative, days, hours, minutes, seconds, micros } => {
            ScalarValue::Utf8(Some(format!(
                "{}{:02}:{minutes:02}:{seconds:02}{}",
                if negative { "-" } else { "" },
                u64::from(days) * 24 + u64::from(hours),
                fraction(micros)
            )))
        }
    }
}

fn text(bytes: &[u8]) -> ScalarValue {
    match std::str::from_utf8(bytes) {
        Ok(text) => ScalarValue::Utf8(Some(text.to_owned())),
        Err(_) => ScalarValue::Binary(Some(bytes.to_vec())),
    }
}

fn fraction(micros: u32) -> String {
    if micros == 0 { String::new() } else { format!(".{micros:06}") }
}
