//! Addresses, and names of partitions.

pub mod address;
mod address_bytes;
pub mod partition_name;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [address::functions(), address_bytes::functions()].into_iter().flatten().collect()
}
