//! Headers that change no rows: Doris's headers that this server cannot obey, and the ones it need not obey.
//!
//! Invariant: no header of Doris's Stream Load passes in silence. It is obeyed, it is refused by its name, or it is a
//! hint at how to run the load, whose value is checked.

use super::{HeaderError, Headers};
use crate::code::LoadCode;

/// Headers that name what this server does not have, and what to do instead.
const MISSING: [(&str, &str); 3] = [
    ("compute_group", "there are no compute groups, leave it out"),
    ("cloud_cluster", "there are no compute groups, leave it out"),
    ("token", "there are no cluster tokens, give a user and a password (HTTP Basic)"),
];

/// Headers of other requests. A load with one of them was most likely meant to be that request.
const OF_SECOND_PHASE: [&str; 2] = ["txn_id", "txn_operation"];

/// Refuses headers that a Stream Load and an HTTP Stream cannot obey, and checks hints.
///
/// # Errors
/// The first such header, or a hint that is not a number where Doris expects one.
pub(super) fn check(headers: Headers<'_>) -> Result<(), HeaderError> {
    for (name, remedy) in MISSING {
        if headers.text(name)?.is_some() {
            let text = format!("header {name} is not supported: {remedy}");
            return Err(HeaderError::new(LoadCode::NotImplemented, text));
        }
    }
    for name in OF_SECOND_PHASE {
        if headers.text(name)?.is_some() {
            return Err(HeaderError::invalid(format!(
                "header {name} has no effect on a load; it belongs to PUT /api/{{db}}/_stream_load_2pc"
            )));
        }
    }
    check_hints(headers)
}

/// Refuses a statement in a Stream Load.
///
/// # Errors
/// If there is a header `sql`.
pub(super) fn check_no_statement(headers: Headers<'_>) -> Result<(), HeaderError> {
    match headers.text("sql")? {
        None => Ok(()),
        Some(_) => Err(HeaderError::invalid(
            "header sql has no effect on a Stream Load; it belongs to PUT /api/_http_stream",
        )),
    }
}

/// Checks the hints that Doris reads as numbers. Flags (`memtable_on_sink_node`, `enable_profile`,
/// `skip_record_to_audit_log_table`) have no illegal value.
fn check_hints(headers: Headers<'_>) -> Result<(), HeaderError> {
    if let Some(text) = headers.text("exec_mem_limit")? {
        text.parse::<i64>().map_err(|what| {
            HeaderError::invalid(format!("Invalid mem limit format, exec_mem_limit={text}: {what}"))
        })?;
    }
    for name in ["send_batch_parallelism", "load_stream_per_node"] {
        if let Some(text) = headers.text(name)? {
            text.parse::<i32>().map_err(|what| {
                HeaderError::invalid(format!(
                    "invalid HTTP header {name}={text}: {what}; give a whole number"
                ))
            })?;
        }
    }
    Ok(())
}
