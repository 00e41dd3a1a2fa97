//! Text to values of each type, the lenient way that loads use.
//!
//! Invariant: a conversion either returns a value that is legal for the type or says that there is none; it never guesses. The
//! users of [`crate::Strictness`] decide whether "none" becomes NULL or rejects the row.

pub(crate) mod decimal;
pub(crate) mod number;

pub(crate) use tributary_types::moment as temporal;

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
