//! Bodies of loads: bytes become the rows that a load gets.
//!
//! Not its business: which table a load is for and what is answered; formats, which the crate `decode` knows.

pub(crate) mod computed;
pub(crate) mod reader;
pub(crate) mod time;
