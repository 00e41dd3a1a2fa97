//! Values that rows get after they were decoded: those of generated columns, and those that the server gives.
//!
//! What may not be here: expressions, counters, formats of bodies.

pub(crate) mod computed;
pub(crate) mod unfilled;
