//! The crate as its callers see it: real logs and tables, on a simulated disk or a directory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod data_files;
mod gated;
mod groups;
mod labels;
mod maintenance;
mod order;
mod partitions;
mod recovery;
mod schema_change;
mod sources;
mod space;
mod support;
mod two_phase;
