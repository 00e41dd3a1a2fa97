//! One value at a time: what a load has of it, its conversion to a column's type, and the words for what is wrong with it.
//!
//! What may not be here: rows, columns of a table, formats of bodies.

pub(crate) mod array_cells;
pub(crate) mod cell;
pub(crate) mod convert;
pub(crate) mod nested;
pub(crate) mod reject;
