//! Prints the measurements as a table, as JSON and as a plot.

pub mod plot;
pub mod table;
pub mod turns;

use crate::error::BenchError;
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;

pub(crate) fn cannot_write(path: &Path, reason: impl Display) -> BenchError {
    BenchError::Report { path: path.display().to_string(), reason: reason.to_string() }
}

/// Writes all runs of all cells.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, results: &[impl Serialize]) -> Result<(), BenchError> {
    let text = serde_json::to_string_pretty(results).map_err(|error| cannot_write(path, error))?;
    std::fs::write(path, text + "\n").map_err(|error| cannot_write(path, error))
}
