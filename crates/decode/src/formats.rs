//! The formats of bodies and statements: VALUES, binary parameters, CSV, JSON, Parquet, ORC and Arrow.
//!
//! Each reads its input once and adds cells or arrays to rows. Not here: the treatment of rows and values that do not fit;
//! formats may use each other only through [`format`].

pub(crate) mod body;
pub(crate) mod columnar;
pub(crate) mod csv;
pub(crate) mod fork;
pub(crate) mod format;
pub(crate) mod host;
pub(crate) mod json;
pub(crate) mod params;
pub(crate) mod values;
