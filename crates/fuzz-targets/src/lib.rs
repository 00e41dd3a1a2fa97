//! The fuzz targets: one function per target that accepts any bytes and panics if the code under test breaks a promise.
//!
//! The same functions are run by libFuzzer (the workspace in `fuzz/`) and, on the corpora in the repository, by this crate's
//! test. `docs/fuzzing.md` explains how to run them and what each compares.
//!
//! Invariant: the outcome of a target depends on its bytes only (not on a clock, randomness or earlier runs), so that an input
//! that fails once fails again. Nothing here may need the query engine.

mod accounts;
mod block;
mod columnar;
mod columns;
mod csv;
mod ddl;
mod headers;
mod json;
mod literals;
mod messages;
mod mysql;
mod nested;
mod params;
mod rows;
mod tables;
mod tls;
mod unpack;
mod values;
mod wal;

pub use accounts::accounts;
pub use block::block;
pub use columnar::columnar;
pub use columns::columns;
pub use csv::csv;
pub use ddl::ddl;
pub use headers::headers;
pub use json::json;
pub use messages::messages;
pub use mysql::mysql;
pub use nested::nested;
pub use params::params;
pub use tls::tls;
pub use unpack::unpack;
pub use values::values;
pub use wal::{wal_bytes, wal_damage};

/// A fuzzer.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its binary and of its directories in `fuzz/corpus` and `fuzz/regressions`.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All fuzzers.
pub const TARGETS: [Target; 17] = [
    Target { name: "values", run: values },
    Target { name: "params", run: params },
    Target { name: "csv", run: csv },
    Target { name: "json", run: json },
    Target { name: "messages", run: messages },
    Target { name: "nested", run: nested },
    Target { name: "columnar", run: columnar },
    Target { name: "unpack", run: unpack },
    Target { name: "headers", run: headers },
    Target { name: "columns", run: columns },
    Target { name: "mysql", run: mysql },
    Target { name: "tls", run: tls },
    Target { name: "wal_bytes", run: wal_bytes },
    Target { name: "wal_damage", run: wal_damage },
    Target { name: "block", run: block },
    Target { name: "ddl", run: ddl },
    Target { name: "accounts", run: accounts },
];
