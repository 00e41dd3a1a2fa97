//! The type of an expression, in its three meanings.
//!
//! | module | question |
//! | --- | --- |
//! | [`kind`] | the behaviour of values of an Arrow type next to others |
//! | [`common`](mod@common) | the type in which values of several types are shown together, and the type in which they are compared |
//! | [`metadata`] | the column that a field comes from, and its declaration |
//! | [`shown`] | the type in which a client or a table gets the values |
//!
//! Not here: expressions and arrays. How a value is converted is the business of `functions::conversion`.

mod common;
pub mod kind;
pub mod metadata;
pub mod shown;

pub use common::{DIGITS_MAX, common, comparison, digits};
