//! A heavy schema change of a large table while loads continue: the rows per second that it converts, and the longest wait of a
//! load.

use crate::cell::{Cell, Form, Mode};
use crate::error::BenchError;
use crate::query::in_files;
use crate::server::Server;
use crate::suite::Target;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ALTER: &str = "ALTER TABLE lineitem MODIFY COLUMN L_SUPPKEY BIGINT KEY NOT NULL";
const JOB: &str =
    "SHOW ALTER TABLE COLUMN FROM bench WHERE TableName = 'lineitem' ORDER BY CreateTime DESC LIMIT 1";
/// The place of the state among the columns of [`JOB`], and of the message after it.
const STATE: usize = 9;
/// Interval of polling the job's state.
const LOOK: Duration = Duration::from_millis(5);
/// Loads start this long before the statement.
const WARM_UP: Duration = Duration::from_secs(1);

/// The observations of one writer.
#[derive(Default)]
struct Writer {
    mode: &'static str,
    loads: u64,
    refused: u64,
    longest: Duration,
}

/// Loads, changes the type of a column while two writers load single rows, and prints what that took.
///
/// # Errors
/// A load or the statement failed, the job was cancelled, or rows are missing.
pub fn run(target: &Target, rows: u64) -> Result<(), BenchError> {
    let cell = Cell::new(Form::Text { rows: 1000 }, Mode::Async, 1, 1000);
    let (server, _) = in_files(target, "the test of schema changes", &cell, rows)?;
    let stop = AtomicBool::new(false);
    let (took, writers) = thread::scope(|scope| {
        let writers: Vec<_> = ["off_mode", "sync_mode"]
            .into_iter()
            .zip(1..)
            .map(|(mode, number)| {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || write(server, mode, number * 500_000_000, stop))
            })
            .collect();
        thread::sleep(WARM_UP);
        let took = change(&server);
        stop.store(true, Ordering::SeqCst);
        let writers = writers.into_iter().map(|writer| writer.join().expect("a writer does not panic"));
        (took, writers.collect::<Vec<_>>())
    });
    let took = took?;
    let writers = writers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let loaded: u64 = writers.iter().map(|writer| writer.loads).sum();
    let mut client = server.connect("bench")?;
    client.query("SYNC")?;
    let found = client.query("SELECT COUNT(*) FROM lineitem")?;
    if found != [[(rows + loaded).to_string()]] {
        return Err(BenchError::Verification(format!("of {rows} + {loaded} rows there are {found:?}")));
    }
    println!("{ALTER}: {rows} rows");
    println!("took {:.2} s: {:.2} M rows/s", took.as_secs_f64(), rows as f64 / took.as_secs_f64() / 1e6);
    for writer in writers {
        println!(
            "{}: {} loads of a row, {} refused, the longest took {:.1} ms",
            writer.mode,
            writer.loads,
            writer.refused,
            writer.longest.as_secs_f64() * 1e3
        );
    }
    Ok(())
}

/// Runs the statement and waits until its job is finished.
fn change(server: &Server) -> Result<Duration, BenchError> {
    let mut client = server.connect("bench")?;
    let begin = Instant::now();
    client.query(ALTER)?;
    loop {
        let job = client.query(JOB)?;
        let column = |at: usize| job.first().and_then(|row| row.get(at)).map_or("", String::as_str);
        match column(STATE) {
            "FINISHED" => return Ok(begin.elapsed()),
            "CANCELLED" => return Err(BenchError::Refused(column(STATE + 1).to_owned())),
            _ => thread::sleep(LOOK),
        }
    }
}

/// Loads rows one by one until it is stopped. A refused load is sent again, and its time continues.
fn write(server: &Server, mode: &'static str, first: u32, stop: &AtomicBool) -> Result<Writer, BenchError> {
    let mut client = server.connect("bench")?;
    client.query(&format!("SET group_commit = {mode}"))?;
    let mut writer = Writer { mode, ..Writer::default() };
    let mut id = first;
    while !stop.load(Ordering::SeqCst) {
        let insert = format!(
            "INSERT INTO lineitem VALUES ({id}, 1, 1, 1, 1, 1, 0, 0, 'N', 'O', '2024-01-01', '2024-01-01', \
             '2024-01-01', 'NONE', 'AIR', 'x')"
        );
        let begin = Instant::now();
        while let Err(error) = client.query(&insert) {
            let text = error.to_string();
            if !text.contains("is blocked on schema change") && !text.contains("schema version not match") {
                return Err(error);
            }
            writer.refused += 1;
            thread::sleep(Duration::from_millis(1));
        }
        writer.longest = writer.longest.max(begin.elapsed());
        (writer.loads, id) = (writer.loads + 1, id + 1);
    }
    Ok(writer)
}
