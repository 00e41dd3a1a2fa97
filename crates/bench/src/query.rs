//! TPC-H query 1 while a tenth of the rows is in memory, compared with plain DataFusion over the same rows in the server's own
//! Parquet files.

use crate::cell::{Cell, Form, Mode, compacted, settle};
use crate::client::closed_loop::{self, Limit, Watch};
use crate::error::BenchError;
use crate::server::Server;
use crate::suite::{Own, Target};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tributary_yardstick::Yardstick;

pub const QUERY: &str = "SELECT L_RETURNFLAG, L_LINESTATUS, SUM(L_QUANTITY) AS sum_qty, \
SUM(L_EXTENDEDPRICE) AS sum_base_price, SUM(L_EXTENDEDPRICE * (1 - L_DISCOUNT)) AS sum_disc_price, \
SUM(L_EXTENDEDPRICE * (1 - L_DISCOUNT) * (1 + L_TAX)) AS sum_charge, AVG(L_QUANTITY) AS avg_qty, \
AVG(L_EXTENDEDPRICE) AS avg_price, AVG(L_DISCOUNT) AS avg_disc, COUNT(*) AS count_order \
FROM lineitem WHERE L_SHIPDATE <= DATE '1998-09-02' \
GROUP BY L_RETURNFLAG, L_LINESTATUS ORDER BY L_RETURNFLAG, L_LINESTATUS";
/// Settings that leave rows in memory.
const KEEP: [(&str, &str); 3] = [
    ("TRIBUTARY_FLUSH_BYTES", "4294967296"),
    ("TRIBUTARY_FLUSH_AGE_MS", "86400000"),
    ("TRIBUTARY_GROUP_COMMIT_QUEUE_MEM_LIMIT", "4294967296"),
];
const TEST: &str = "the query test";
/// Share of the rows that stay in memory.
const IN_MEMORY: f64 = 0.1;

/// Loads, queries both, prints both medians and their ratio.
///
/// # Errors
/// A load or a query failed, or both did not see the same rows.
pub fn run(target: &Target, rows: u64, runs: usize) -> Result<(), BenchError> {
    let in_memory = (rows as f64 * IN_MEMORY) as u64;
    // One connection, so that two servers are given the same rows.
    let cell = Cell::new(Form::Text { rows: 1000 }, Mode::Async, 1, 1000);
    // The same rows by a server of their own, all in data files when it has stopped.
    let (mut other, _) = target.own_server(TEST, &cell)?;
    load(&cell, &other, rows)?;
    other.stop()?;
    let (mut server, own) = target.own_server(TEST, &cell)?;
    load(&cell, &server, rows - in_memory)?;
    let mut settings = own.settings.to_vec();
    settings.extend(KEEP.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // Stopping flushes everything.
    server.restart(&settings)?;
    load(&cell, &server, in_memory)?;
    compacted(&server)?;
    let held = server.metric("tributary_memtable_rows")? as u64;
    let files = live_files(&server)?;
    let (mut ours, mut plain) = ask_in_turn(&server, &live_files(&other)?, runs)?;
    println!(
        "TPC-H query 1 over {} rows, {held} of them in memory, the others in {} data files; medians of {runs} runs",
        rows,
        files.len()
    );
    let (ours, plain) = (median(&mut ours), median(&mut plain));
    println!("Tributary, by MySQL:                     {:8.1} ms", ours.as_secs_f64() * 1e3);
    println!("DataFusion over all rows in data files:  {:8.1} ms", plain.as_secs_f64() * 1e3);
    println!("ratio:                                   {:8.2}", ours.as_secs_f64() / plain.as_secs_f64());
    Ok(())
}

/// Tells how far a load is.
pub struct Quiet;

impl Watch for Quiet {
    fn measuring(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn progress(&mut self, elapsed: Duration, rows: u64) {
        eprintln!("loading: {:.1} s, {rows} rows", elapsed.as_secs_f64());
    }
}

pub(crate) fn load(cell: &Cell, server: &Server, rows: u64) -> Result<(), BenchError> {
    let mut connections = cell.connect(server)?;
    closed_loop::run(&mut connections, Limit::Rows(rows), &mut Quiet)?;
    server.connect("bench")?.query("SYNC").map(drop)
}

/// A server of the test's own with rows of the cell, all of them in data files.
pub(crate) fn in_files<'a>(
    target: &'a Target,
    test: &str,
    cell: &Cell,
    rows: u64,
) -> Result<(Server, Own<'a>), BenchError> {
    let (mut server, own) = target.own_server(test, cell)?;
    load(cell, &server, rows)?;
    // Stopping flushes everything.
    server.restart(own.settings)?;
    settle(&server)?;
    Ok((server, own))
}

/// Queries the server and DataFusion alternately, so that a machine that slows down slows both. Returns the times of each run but
/// the first.
fn ask_in_turn(
    server: &Server,
    files: &[PathBuf],
    runs: usize,
) -> Result<(Vec<Duration>, Vec<Duration>), BenchError> {
    let mut client = server.connect("bench")?;
    let plain = Yardstick::over("lineitem", files).map_err(BenchError::Server)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=runs {
        let begin = Instant::now();
        let rows = client.query(QUERY)?;
        ours.push(begin.elapsed());
        let count: u64 = rows.iter().filter_map(|row| row.last()?.parse::<u64>().ok()).sum();
        let (took, plain_count) = plain.ask(QUERY).map_err(BenchError::Server)?;
        theirs.push(took);
        if count != plain_count {
            return Err(BenchError::Verification(format!(
                "query 1 counted {count} rows here and {plain_count} in the data files"
            )));
        }
    }
    ours.remove(0);
    theirs.remove(0);
    Ok((ours, theirs))
}

/// The data files that the table's Delta log says are live.
pub(crate) fn live_files(server: &Server) -> Result<Vec<PathBuf>, BenchError> {
    let mut logs = Vec::new();
    let data = server.data().unwrap_or_default();
    crate::server::walk(&data, &mut |path, _| {
        let is_entry = path.extension().is_some_and(|ending| ending == "json")
            && path.parent().is_some_and(|parent| parent.ends_with("_delta_log"));
        if is_entry {
            logs.push(path.to_path_buf());
        }
    });
    logs.sort();
    let mut live = std::collections::BTreeSet::new();
    for log in logs {
        let table = log.parent().and_then(|log| log.parent()).map(PathBuf::from).unwrap_or_default();
        for line in std::fs::read_to_string(&log)?.lines() {
            let entry: serde_json::Value =
                serde_json::from_str(line).map_err(|error| BenchError::Server(error.to_string()))?;
            let path = |kind: &str| entry[kind]["path"].as_str().map(|path| table.join(path));
            live.extend(path("add"));
            if let Some(removed) = path("remove") {
                live.remove(&removed);
            }
        }
    }
    Ok(live.into_iter().collect())
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
