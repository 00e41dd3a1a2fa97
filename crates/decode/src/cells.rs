//! Single values: a load's cells, their conversion to a column's type, and the texts of their faults.
//!
//! Not here: rows, columns of a table, formats of bodies.

pub(crate) mod array_cells;
pub(crate) mod cell;
pub(crate) mod convert;
pub(crate) mod nested;
pub(crate) mod reject;
