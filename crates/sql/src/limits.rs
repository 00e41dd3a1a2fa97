//! The limits of a statement.

/// The longest statement that is parsed, in bytes.
pub const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The words, numbers, texts and signs of a statement that is parsed. Each takes up to 450 bytes until the statement is planned.
pub(crate) const TOKENS_MAX: usize = 500_000;
/// The blanks of a statement that is parsed. Each takes some 100 bytes until the statement is cut into words.
pub(crate) const BLANKS_MAX: usize = 2_000_000;
/// How deep parentheses, functions and subqueries may nest (some forms count twice).
pub(crate) const DEPTH_MAX: usize = 128;
