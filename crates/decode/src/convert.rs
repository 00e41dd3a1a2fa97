//! Text to values of each type, the lenient way that loads use.
//!
//! Invariant: a conversion either gives a value that is legal for the type or says that there is
//! none; it never guesses. Whether "none" becomes NULL or rejects the row is decided in
//! [`crate::Strictness`]'s users, not here.

pub(crate) mod decimal;
pub(crate) mod number;
pub(crate) mod temporal;

use crate::builder::ColumnBuffer;
use crate::cell::{Cell, Fault, push_cell};
use tributary_types::DataType;

/// Checks that `text` is a legal value of `data_type`: the rule for `DEFAULT` literals.
///
/// # Errors
/// Why not, in words that name the value and the type.
pub fn check_literal(text: &str, data_type: DataType) -> Result<(), String> {
    stored_literal(text, data_type).map(|_| ())
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

/// Without ASCII blanks at both ends.
#[inline]
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    match (text.first(), text.last()) {
        (Some(first), Some(last)) if !first.is_ascii_whitespace() && !last.is_ascii_whitespace() => text,
        _ => text.trim_ascii(),
    }
}

#[cfg(test)]
mod tests;
