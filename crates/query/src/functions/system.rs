//! Addresses, and names of partitions.

pub mod address;
pub mod partition_name;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    address::functions()
}
