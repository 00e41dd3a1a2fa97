//! Messages that name their table: `table|row`.
//!
//! Invariant: a message goes to the table that has the name when a batch first meets it, or to none, and never to a table that
//! has the message already.
//!
//! Not its business: the format of rows.

use super::kept::Reason;
use super::runner::Halt;
use super::task::Part;
use crate::access::{Object, Privilege};
use crate::jobs::ServerJobs;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_decode::{Counts, REJECTS_KEPT_MAX, Reject, RejectCode};
use tributary_ingest::Progress;
use tributary_kafka::Chunk;
use tributary_sql::names::NAME_BYTES_MAX;
use tributary_table::Table;
use tributary_types::Principal;

/// Ends the name of a message's table.
const NAME_END: u8 = b'|';
/// Names that a batch knows. Those of no table beyond that are looked up again each time: messages may name anything.
const NAMES_KNOWN_MAX: usize = 1000;

/// A batch's knowledge of table names.
pub(super) struct Names {
    /// Whose privileges the job has.
    principal: Principal,
    known: HashMap<Box<[u8]>, Named>,
    stray: Stray,
    rejects: Vec<Reject>,
}

/// The meaning of a name.
enum Named {
    Table {
        table: Arc<Table>,
        /// Its index in the batch, once it has a row there.
        part: Option<usize>,
    },
    /// There is no such table, with the reason.
    Nothing(String),
}

/// Messages for no table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stray {
    pub counts: Counts,
    pub bytes: u64,
}

impl Names {
    pub fn new(principal: Principal) -> Self {
        Self { principal, known: HashMap::new(), stray: Stray::default(), rejects: Vec::new() }
    }

    /// Adds each message's row to its table's part of the batch, unless the table has it; `begin` creates a part.
    ///
    /// # Errors
    /// A table may not be loaded into, or no load of it can begin.
    pub fn sort(
        &mut self,
        jobs: &ServerJobs,
        db: &str,
        progress: &Progress,
        chunk: &Chunk,
        parts: &mut Vec<Part>,
        begin: impl Fn(Arc<Table>) -> Result<Part, Halt>,
    ) -> Result<(), Halt> {
        let mut from = 0;
        for place in &chunk.places {
            let message = &chunk.bytes[from..place.end];
            from = place.end;
            // A name can't end later: none is that long.
            let head = &message[..message.len().min(NAME_BYTES_MAX + 1)];
            let Some(end) = head.iter().position(|&byte| byte == NAME_END) else {
                let reason = "the message names no table: in a job without ON it is table|row";
                self.reject(reason, message);
                continue;
            };
            let (name, row) = (&message[..end], &message[end + 1..]);
            if !self.known.contains_key(name) {
                match self.look_up(jobs, db, name)? {
                    Named::Nothing(reason) if self.known.len() >= NAMES_KNOWN_MAX => {
                        self.reject(&reason, message);
                        continue;
                    }
                    named => self.known.insert(name.into(), named),
                };
            }
            let reason = match self.known.get_mut(name) {
                Some(Named::Table { table, part }) => {
                    if progress.has(table.id(), place.partition, place.offset) {
                        continue;
                    }
                    let at = match *part {
                        Some(at) => at,
                        None => {
                            parts.push(begin(Arc::clone(table))?);
                            *part.insert(parts.len() - 1)
                        }
                    };
                    parts[at].rows.extend_from_slice(row);
                    continue;
                }
                Some(Named::Nothing(reason)) => reason.clone(),
                None => continue,
            };
            self.reject(&reason, message);
        }
        Ok(())
    }

    fn look_up(&self, jobs: &ServerJobs, db: &str, name: &[u8]) -> Result<Named, Halt> {
        let shown = String::from_utf8_lossy(name);
        let nothing = || Named::Nothing(format!("unknown table '{shown}' in database '{db}'"));
        let Ok(name) = std::str::from_utf8(name) else { return Ok(nothing()) };
        jobs.gate
            .check(&self.principal, Privilege::Load, Object::Table { db, table: name })
            .map_err(|error| Halt::Pause(Reason::internal(error.detail_text())))?;
        let Some(table) = jobs.names.find(db, name) else { return Ok(nothing()) };
        Ok(Named::Table { table, part: None })
    }

    fn reject(&mut self, reason: &str, message: &[u8]) {
        self.stray.bytes += message.len() as u64;
        self.stray.counts.total += 1;
        self.stray.counts.filtered += 1;
        if self.rejects.len() < REJECTS_KEPT_MAX {
            let line = message.strip_suffix(b"\n").unwrap_or(message);
            self.rejects.push(Reject::of_bytes(RejectCode::UnknownTable, reason, line));
        }
    }

    /// The messages without a table, and their faults.
    pub fn into_stray(self) -> (Stray, Vec<Reject>) {
        (self.stray, self.rejects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestEngine;
    use tributary_kafka::{Framing, Shape};

    /// The reasons why messages are for no table, and how many names are known then.
    async fn sorted(messages: impl Iterator<Item = String>) -> (Stray, Vec<Reject>, usize) {
        let test = TestEngine::open(|_| ()).await;
        let mut chunk = Chunk::default();
        let shape = Shape { framing: Framing::Lines, has_places: true };
        for (offset, message) in (0..).zip(messages) {
            chunk.push_from(0, offset, message.as_bytes(), shape);
        }
        let mut names = Names::new(Principal::new("root", "%", 0));
        let begin = |_| panic!("there is no table");
        let sorted = names.sort(&test.engine.jobs, "d", &Progress::default(), &chunk, &mut Vec::new(), begin);
        assert!(sorted.is_ok());
        let known = names.known.len();
        test.engine.shutdown().await;
        let (stray, rejects) = names.into_stray();
        (stray, rejects, known)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_that_name_very_many_tables_that_are_not_there_fill_no_memory() {
        let (stray, rejects, known) = sorted((0..5000).map(|number| format!("t{number}|1,a"))).await;
        assert_eq!((stray.counts.total, stray.counts.filtered), (5000, 5000));
        assert!(known <= NAMES_KNOWN_MAX, "{known}");
        assert!(rejects[0].reason.contains("unknown table 't0' in database 'd'"), "{:?}", rejects[0]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_longer_than_a_name_names_no_table() {
        let (stray, rejects, known) =
            sorted([format!("{}|1", "n".repeat(65)), "n".repeat(64) + "|1"].into_iter()).await;
        assert_eq!((stray.counts.filtered, known), (2, 1));
        assert!(rejects[0].reason.starts_with("the message names no table"), "{:?}", rejects[0]);
        assert!(rejects[1].reason.starts_with("unknown table 'nnn"), "{:?}", rejects[1]);
    }
}
