//! The type of an expression, in its three meanings.
//!
//! | module | answers |
//! | --- | --- |
//! | [`kind`] | how values of an Arrow type behave next to others |
//! | [`common`](mod@common) | in which type values of several types are shown together, and in which they are compared |
//! | [`metadata`] | which column a field comes from, and how that column was declared |
//! | [`shown`] | in which type a client or a table gets the values |
//!
//! Not here: expressions and arrays. How a value is converted is the business of `functions::conversion`.

mod common;
pub mod kind;
pub mod metadata;
pub mod shown;

pub use common::{DIGITS_MAX, common, comparison, digits};
