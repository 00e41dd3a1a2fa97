//! Where bytes lie: storage roots, and one table's place in them.
//!
//! Not here: what the bytes mean. Nothing here knows a row.

mod azure;
pub(crate) mod cache;
mod claim;
pub(crate) mod copy;
pub(crate) mod deadline;
pub(crate) mod durable;
mod google;
pub(crate) mod keep;
pub(crate) mod location;
pub(crate) mod remote;
pub(crate) mod root;
pub(crate) mod s3;
pub(crate) mod storage;
pub(crate) mod store;
pub(crate) mod traffic;
mod uploads;
