//! A table's environment: the time and random identifiers; in a simulation, the seed's.

use tributary_types::host;
use uuid::Uuid;

/// Milliseconds since the Unix epoch, as Delta actions carry them.
pub(crate) fn now_ms() -> i64 {
    host::unix_ms()
}

/// A random UUID.
pub(crate) fn new_uuid() -> Uuid {
    Uuid::from_u128(host::random(|| Uuid::new_v4().as_u128()))
}
