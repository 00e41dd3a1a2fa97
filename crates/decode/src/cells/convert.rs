//! Text to values of each type, the lenient way that loads use: `tributary-types` converts, as for queries.
//!
//! The users of [`crate::Strictness`] decide whether "none" becomes NULL or rejects the row.

pub(crate) use tributary_types::{decimal, moment as temporal, number};

#[cfg(test)]
mod tests;
