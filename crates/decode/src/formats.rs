//! The formats of bodies and statements: VALUES, binary parameters, CSV, JSON, Parquet, ORC and Arrow.
//!
//! Each reads its input once and puts cells or arrays into rows. What may not be here: what a row or a value that does not fit
//! means; formats know each other only through [`format`].

pub(crate) mod body;
pub(crate) mod columnar;
pub(crate) mod csv;
pub(crate) mod format;
pub(crate) mod host;
pub(crate) mod json;
pub(crate) mod params;
pub(crate) mod values;
