//! ClickBench: one wide table of page views, and 43 queries.
//!
//! The original rows are 14 GB of a web analytics service. These are generated and resemble them: `data` says in what.

mod data;
mod people;
mod queries;
mod sites;
mod table;
mod words;

use super::{Asking, Suite};

/// ClickBench.
pub const CLICKBENCH: Suite = Suite {
    name: "ClickBench",
    tables: &table::TABLES,
    queries: numbered,
    rows: |_, scale| Box::new(data::rows(scale)),
    check: None,
};

/// The queries by their numbers from 1 on, as the benchmark's tables of results have them.
fn numbered() -> Vec<Asking> {
    let numbered = (1..).zip(queries::queries());
    numbered.map(|(number, sql)| in_all_dialects(format!("Q{number}"), sql)).collect()
}

/// Puts a query into the words of each database: LENGTH counts bytes in MySQL, and only MySQL reads `\\` as one backslash.
fn in_all_dialects(name: String, sql: String) -> Asking {
    let others = sql.replace(r"\\", r"\");
    Asking {
        name,
        datafusion: others.replace("length(", "octet_length("),
        duckdb: others.replace("length(", "strlen("),
        ours: sql,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_is_asked_in_its_own_words() {
        let queries = numbered();
        assert_eq!(queries.len(), 43);
        let host = &queries[28];
        assert!(host.ours.contains(r"(?:www\\.)?([^/]+)/.*$', '\\1')"), "{}", host.ours);
        assert!(host.duckdb.contains(r"(?:www\.)?([^/]+)/.*$', '\1')"), "{}", host.duckdb);
        assert!(host.ours.contains("avg(length(Referer))"), "{}", host.ours);
        assert!(host.datafusion.contains("avg(octet_length(Referer))"), "{}", host.datafusion);
        assert!(host.duckdb.contains("avg(strlen(Referer))"), "{}", host.duckdb);
    }
}
