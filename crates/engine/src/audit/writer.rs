//! The thread of the audit log: makes records of entries and hands them to the file and the table.
//!
//! If requests without a record are refused, it retries until a record is written, and requests are refused meanwhile. Otherwise
//! a record that can't be written is dropped and counted.
//!
//! Not here: the queue's limits.

use super::options::WhenFull;
use super::record::Record;
use super::{Admission, Shared};
use crate::line_files::LineFiles;
use std::io;
use std::time::{Duration, Instant};

/// Lines that are written at once, in bytes.
const LINES_BYTES: usize = 256 << 10;
/// Entries whose memory is kept between two writes.
const ENTRIES_KEPT: usize = 8192;
/// The pause before a failed write is retried.
const RETRY: Duration = Duration::from_millis(100);
/// How often a failing sink is reported.
const REPORT: Duration = Duration::from_secs(60);

struct Writer<'a> {
    shared: &'a Shared,
    files: Option<LineFiles>,
    /// Complete lines, their number, and the places that their records take.
    lines: Vec<u8>,
    count: u64,
    admissions: Vec<Admission>,
    reported: Option<Instant>,
}

/// Runs until the queue is closed and empty.
pub(super) fn run(shared: &Shared) {
    let files = shared.options.line_files();
    let mut writer =
        Writer { shared, files, lines: Vec::new(), count: 0, admissions: Vec::new(), reported: None };
    let mut entries = Vec::new();
    while shared.queue.take(&mut entries) {
        for (entry, admission) in entries.drain(..) {
            writer.write(Record::of(entry), admission);
        }
        // Memory of a burst is given back.
        entries.shrink_to(ENTRIES_KEPT);
        writer.flush();
    }
}

impl Writer<'_> {
    fn write(&mut self, record: Record, admission: Option<Admission>) {
        if self.files.is_some() {
            match serde_json::to_writer(&mut self.lines, &record) {
                Ok(()) => {
                    self.lines.push(b'\n');
                    self.count += 1;
                }
                Err(error) => {
                    // Memory takes every write, and a record is text and numbers.
                    tracing::error!(%error, "a record of the audit log has no form");
                    self.shared.metrics.dropped_from_file.inc();
                }
            }
        }
        if self.shared.rows.is_open() {
            self.hand_on(record);
        }
        self.admissions.extend(admission);
        if self.lines.len() >= LINES_BYTES {
            self.flush();
        }
    }

    /// Hands a record to the table.
    fn hand_on(&self, record: Record) {
        let mut waits = self.shared.rows.push(record);
        while let Some(record) = waits {
            if self.gives_up() || !self.shared.rows.is_open() {
                return self.shared.rows.give_up(record);
            }
            std::thread::sleep(RETRY);
            waits = self.shared.rows.push(record);
        }
    }

    /// Whether a record that can't be written now is dropped.
    fn gives_up(&self) -> bool {
        self.shared.options.when_full == WhenFull::Drop || self.shared.queue.is_closed()
    }

    /// Writes the lines so far. Their records take no places any more.
    fn flush(&mut self) {
        if let Some(files) = &mut self.files
            && !self.lines.is_empty()
        {
            let mut left = &self.lines[..];
            let is_written = loop {
                let error = match files.write(&mut left) {
                    Ok(()) => break true,
                    Err(error) => error,
                };
                report(&mut self.reported, &error);
                let shared = self.shared;
                if shared.options.when_full == WhenFull::Drop || shared.queue.is_closed() {
                    break false;
                }
                std::thread::sleep(RETRY);
            };
            let lost = left.iter().filter(|&&byte| byte == b'\n').count() as u64;
            debug_assert!(is_written == (lost == 0), "what is left was not written");
            self.shared.metrics.dropped_from_file.inc_by(lost);
            self.shared.metrics.file_lines.inc_by(self.count - lost);
        }
        self.lines.clear();
        self.count = 0;
        self.admissions.clear();
    }
}

fn report(reported: &mut Option<Instant>, error: &io::Error) {
    if reported.is_none_or(|at| at.elapsed() >= REPORT) {
        *reported = Some(Instant::now());
        tracing::error!(%error, "the file of the audit log can't be written");
    }
}
