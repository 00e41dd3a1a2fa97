//! The Star Schema Benchmark: one table of line orders with four tables around it, and 13 queries.
//!
//! Its rows are derived from those of TPC-H at the same scale factor, as the benchmark itself is: a line item and its order are a line
//! order, with every fifth customer and every fifth supplier. Parts are those of TPC-H at every scale factor.

mod data;
mod queries;

use super::{Asking, Suite};

/// The Star Schema Benchmark.
pub const SSB: Suite =
    Suite { name: "SSB", tables: &queries::TABLES, queries: named, rows: data::rows, check: None };

fn named() -> Vec<Asking> {
    queries::QUERIES.map(|(name, sql)| Asking::alike(name.to_owned(), sql)).into()
}
