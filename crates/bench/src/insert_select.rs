//! `INSERT INTO … SELECT` of a whole table into another, compared with plain DataFusion writing the rows of the same data files
//! to Parquet files with the same compression.

use crate::cell::{Cell, Form, Mode};
use crate::data::lineitem;
use crate::error::BenchError;
use crate::query::{in_files, live_files, median};
use crate::suite::Target;
use std::time::Instant;
use tributary_yardstick::Yardstick;

/// The server's default compression of data files.
const COMPRESSION: &str = "zstd(1)";
const INSERT: &str = "INSERT INTO copy SELECT * FROM lineitem";

/// Loads, lets both write alternately, prints both medians and their ratio.
///
/// # Errors
/// A load or a statement failed, or both did not write the same rows.
pub fn run(target: &Target, rows: u64, runs: usize) -> Result<(), BenchError> {
    let cell = Cell::new(Form::Text { rows: 1000 }, Mode::Async, 1, 1000);
    let (server, own) = in_files(target, "the test of INSERT INTO … SELECT", &cell, rows)?;
    let files = live_files(&server)?;
    let plain = Yardstick::over("lineitem", &files).map_err(BenchError::Server)?;
    let mut client = server.connect("bench")?;
    let table = lineitem::table(cell.interval_ms).replacen("bench.lineitem", "bench.copy", 1);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=runs {
        client.query("DROP TABLE IF EXISTS copy FORCE")?;
        client.query(&table)?;
        let begin = Instant::now();
        client.query(INSERT)?;
        ours.push(begin.elapsed());
        let count = client.query("SELECT COUNT(*) FROM copy")?;
        let count = count.first().and_then(|row| row.first()?.parse().ok()).unwrap_or(0);
        let written = tempfile::tempdir_in(own.directory)?;
        let (took, plain_count) =
            plain.copy("lineitem", written.path(), COMPRESSION).map_err(BenchError::Server)?;
        theirs.push(took);
        if count != rows || plain_count != rows {
            return Err(BenchError::Verification(format!(
                "of {rows} rows {count} were inserted here, and {plain_count} written by DataFusion"
            )));
        }
    }
    // The first one of both fills caches.
    let (ours, plain) = (median(&mut ours[1..]), median(&mut theirs[1..]));
    println!("{INSERT}: {rows} rows in {} data files; medians of {runs} runs", files.len());
    println!("Tributary, by MySQL, sorted and durable: {:8.1} ms", ours.as_secs_f64() * 1e3);
    println!("DataFusion, COPY … TO Parquet:           {:8.1} ms", plain.as_secs_f64() * 1e3);
    println!("speed of DataFusion's:                   {:8.2}", plain.as_secs_f64() / ours.as_secs_f64());
    Ok(())
}
