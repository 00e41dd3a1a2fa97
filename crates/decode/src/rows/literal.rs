//! Literals in definitions: the values of `DEFAULT`.

use crate::blocks::builder::ColumnBuffer;
use crate::cells::cell::{Cell, Fault, push_cell};
use crate::cells::convert::temporal;
use crate::rows::loader::LoadClock;
use tributary_types::{ColumnDef, DataType, DefaultValue};

/// Checks that `text` is a legal value of `data_type`: the rule for `DEFAULT` literals.
///
/// # Errors
/// Why not, in words that name the value and the type.
pub fn check_literal(text: &str, data_type: DataType) -> Result<(), String> {
    stored_literal(text, data_type).map(|_| ())
}

/// The text of `column`'s default in a load at that time; `None` if there is none or it is NULL.
#[must_use]
pub fn default_text(column: &ColumnDef, clock: LoadClock) -> Option<String> {
    let now = clock.now_micros;
    match column.default.as_ref()? {
        DefaultValue::Null => None,
        DefaultValue::Literal(text) => Some(text.clone()),
        DefaultValue::CurrentTimestamp { scale } => {
            Some(temporal::show_datetime(temporal::truncated(now, *scale)))
        }
        DefaultValue::CurrentDate => Some(temporal::show_date(now.div_euclid(temporal::DAY_MICROS))),
    }
}

/// `text` as the stored form of `data_type`.
pub(crate) fn stored_literal(text: &str, data_type: DataType) -> Result<Box<[u8]>, String> {
    let mut buffer = ColumnBuffer::of_type(data_type);
    match push_cell(&mut buffer, data_type, Cell::Text(text.as_bytes()), true, 0) {
        Ok(()) => Ok(buffer.into_stored().into_boxed_slice()),
        Err(Fault::TooLong { limit, .. }) => {
            Err(format!("'{text}' has {} bytes, {data_type} holds at most {limit}", text.len()))
        }
        Err(_) => Err(format!("'{text}' is not a value of type {data_type}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_literal_is_checked_with_words_that_name_value_and_type() {
        assert_eq!(check_literal("12", DataType::Int), Ok(()));
        assert_eq!(check_literal("x", DataType::Int), Err("'x' is not a value of type int".to_owned()));
        let too_long = check_literal("abc", DataType::Varchar { bytes: 2 });
        assert_eq!(too_long, Err("'abc' has 3 bytes, varchar(2) holds at most 2".to_owned()));
    }
}
