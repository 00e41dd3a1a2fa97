//! Values that rows get after decoding: generated columns and AUTO_INCREMENT.
//!
//! Not here: expressions, counters, formats of bodies.

pub(crate) mod computed;
pub(crate) mod unfilled;
