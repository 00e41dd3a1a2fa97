//! Messages that name their table: `table|row`.
//!
//! Invariant: a message goes to the table that has the name when a batch first meets it, or to none; to none that has it already.
//!
//! Not its business: what a row is.

use super::kept::Reason;
use super::runner::Halt;
use super::task::Part;
use crate::access::{Object, Privilege};
use crate::engine::Engine;
use crate::engine::unfinished::is_unfinished;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_decode::{Counts, REJECTS_KEPT_MAX, Reject};
use tributary_ingest::Progress;
use tributary_kafka::Chunk;
use tributary_table::Table;
use tributary_types::Principal;

/// What ends the name of a message's table.
const NAME_END: u8 = b'|';

/// What a batch knows of tables' names.
pub(super) struct Names {
    /// Whose privileges the job has.
    principal: Principal,
    known: HashMap<Box<[u8]>, Named>,
    stray: Stray,
    rejects: Vec<Reject>,
}

/// What a name stands for.
enum Named {
    Table {
        table: Arc<Table>,
        /// Its place in the batch, once it has a row there.
        part: Option<usize>,
    },
    /// There is no such table, and why not.
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

    /// Gives each message's row to its table's part of the batch, unless the table has it; `begin` makes a part.
    ///
    /// # Errors
    /// A table must not be loaded into, or no load of it can begin.
    pub fn sort(
        &mut self,
        engine: &Engine,
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
            let Some(end) = message.iter().position(|&byte| byte == NAME_END) else {
                let reason = "the message names no table: in a job without ON it is table|row";
                self.reject(reason, message);
                continue;
            };
            let (name, row) = (&message[..end], &message[end + 1..]);
            if !self.known.contains_key(name) {
                let named = self.look_up(engine, db, name)?;
                self.known.insert(name.into(), named);
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

    fn look_up(&self, engine: &Engine, db: &str, name: &[u8]) -> Result<Named, Halt> {
        let shown = String::from_utf8_lossy(name);
        let nothing = || Named::Nothing(format!("unknown table '{shown}' in database '{db}'"));
        let Ok(name) = std::str::from_utf8(name) else { return Ok(nothing()) };
        let found = engine.names().find(db, name).filter(|_| !is_unfinished(name));
        let Some(table) = found else { return Ok(nothing()) };
        engine
            .check(&self.principal, Privilege::Load, Object::Table { db, table: name })
            .map_err(|error| Halt::Pause(Reason::internal(error.detail_text())))?;
        Ok(Named::Table { table, part: None })
    }

    fn reject(&mut self, reason: &str, message: &[u8]) {
        self.stray.bytes += message.len() as u64;
        self.stray.counts.total += 1;
        self.stray.counts.filtered += 1;
        if self.rejects.len() < REJECTS_KEPT_MAX {
            let line = message.strip_suffix(b"\n").unwrap_or(message);
            self.rejects.push(Reject::of_bytes(reason, line));
        }
    }

    /// The messages for no table, and what is wrong with them.
    pub fn into_stray(self) -> (Stray, Vec<Reject>) {
        (self.stray, self.rejects)
    }
}
