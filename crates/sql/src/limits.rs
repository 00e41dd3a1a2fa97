//! The limits of a statement.

/// The longest statement that is parsed, in bytes. Tokens take about thirty times the text's memory.
pub const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How deep parentheses, functions and subqueries may nest (some forms count twice).
pub(crate) const DEPTH_MAX: usize = 128;
