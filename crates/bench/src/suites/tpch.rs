//! TPC-H: eight tables and 22 queries, with the answers of the specification.

mod answers;
mod data;
mod queries;

use super::{Asking, Suite};

/// TPC-H.
pub const TPCH: Suite = Suite {
    name: "TPC-H",
    tables: &queries::TABLES,
    queries: numbered,
    rows: data::rows,
    check: Some(answers::check),
};

fn numbered() -> Vec<Asking> {
    let numbered = (1..).zip(queries::QUERIES);
    numbered.map(|(number, sql)| Asking::alike(format!("Q{number}"), sql)).collect()
}
